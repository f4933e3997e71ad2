/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnccl.so.2 for a real GPU, over a driver that runs on the host: rank 1 of 4 meets three virtual peers. What its streams' clocks
 * show, what its buffers hold, and in which order it was done.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/abi/nccl.h"
#include "shim/link.h"

/* NCCL as programs declare it. */
struct comm;
int ncclGetUniqueId(struct vg_nccl_id *out);
int ncclCommInitRank(struct comm **out, int n, struct vg_nccl_id id, int rank);
int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, struct comm *comm, void *stream);
int ncclAllGather(const void *in, void *out, size_t count, int type, struct comm *comm, void *stream);
int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, struct comm *comm, void *stream);
int ncclSend(const void *in, size_t count, int type, int peer, struct comm *comm, void *stream);
int ncclRecv(void *out, size_t count, int type, int peer, struct comm *comm, void *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

enum { FLOAT = MAQ_REC_F32, N = 6 };

static int64_t *clocks;
static char *done;
static unsigned *grid, *apart; /* blocks and threads of the last wait; blocks that did not end with the others */
static struct comm *comm;

static void *stream(unsigned i)
{
    return (void *)(uintptr_t)i;
}

/* A table of six meetings, 1,000 ns apart for us and 1,100 for the slowest peer, each of 500 ns; then steady. */
static void write_table(const char *path, uint64_t lineage)
{
    struct {
        struct maq_waits_head head;
        struct maq_waits_comm comm;
        struct maq_wait_entry entry[N];
    } file = {
        .head = {.n_comms = 1, .world = 4, .rank = 1},
        .comm = {
            .lineage = lineage, .n = N, .loop = N - 1, .period_ns = 1600, .at = sizeof file.head + sizeof file.comm}};
    int64_t at = 0;
    memcpy(file.head.magic, MAQ_WAITS_MAGIC, sizeof file.head.magic);
    for (int i = 0; i < N; i++) {
        file.entry[i] = (struct maq_wait_entry){at + 1000, at + 1100, 500};
        at += 1600;
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(&file, sizeof file, 1, f), 1);
    fclose(f);
}

static int set_up(void **state)
{
    static char card[64], table[64];
    struct vg_nccl_id id;
    snprintf(card, sizeof card, "%s/maquette-card-%d", P_tmpdir, (int)getpid());
    snprintf(table, sizeof table, "%s/maquette-waits-%d", P_tmpdir, (int)getpid());
    FILE *f = fopen(card, "w");
    assert_non_null(f);
    fprintf(f, "world 4\nrank 1\nper_node 4\nlocal 1\nmode alone\nwaits %s\n", table);
    fclose(f);
    setenv(MAQ_RUN_CARD, card, 1);
    assert_int_equal(ncclGetUniqueId(&id), 0);
    write_table(table, maq_rec_hash(&id, sizeof id, 0));
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(cuda);
    clocks = dlsym(cuda, "fake_stream_ns");
    done = dlsym(cuda, "fake_log");
    assert_non_null(clocks);
    grid = dlsym(cuda, "fake_grid");
    apart = dlsym(cuda, "fake_apart");
    assert_non_null(apart);
    assert_non_null(done);
    assert_non_null(grid);
    assert_int_equal(ncclCommInitRank(&comm, 4, id, 1), 0);
    unlink(card);
    unlink(table);
    return 0;
}

/* On time: every meeting ends when it did in the replay. Late: it ends later by as much, and the peers come later from then on. */
static void test_times(void **state)
{
    float x[4] = {1, 2, 3, 4};
    clocks[2] = 1000;
    assert_int_equal(ncclAllReduce(x, x, 4, FLOAT, VG_NCCL_MAX, comm, stream(2)), 0);
    assert_int_equal(clocks[2], 1600); /* the peers came at 1,100 */
    clocks[2] += 1000;
    assert_int_equal(ncclAllReduce(x, x, 4, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
    assert_int_equal(clocks[2], 3200);
    clocks[2] += 3000;
    assert_int_equal(ncclAllReduce(x, x, 4, FLOAT, VG_NCCL_AVG, comm, stream(2)), 0);
    assert_int_equal(clocks[2], 6700); /* 1,900 after the replay */
    clocks[2] += 1000;
    assert_int_equal(ncclAllReduce(x, x, 4, FLOAT, VG_NCCL_AVG, comm, stream(2)), 0);
    assert_int_equal(clocks[2], 8300); /* the peers, who were let go at 6,700, came at 7,800 */
}

static void test_values(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[16] = {0}, z[4];
    assert_int_equal(ncclAllReduce(x, x, 4, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
    assert_true(x[0] == 4 && x[3] == 16);
    assert_int_equal(ncclAllGather(x, y, 4, FLOAT, comm, stream(2)), 0);
    assert_memory_equal(&y[0], x, sizeof x);
    assert_memory_equal(&y[12], x, sizeof x);
    y[7] = 5;
    assert_int_equal(ncclReduceScatter(y, z, 4, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
    assert_true(z[3] == 20); /* our part begins at 4 */
    y[0] = 77;
    assert_int_equal(ncclAllGather(&y[4], y, 4, FLOAT, comm, stream(2)), 0); /* in place: the rest stays */
    assert_true(y[0] == 77);
}

/* A kernel per group, after all its streams; sends and receives with the same peer give back one's own. */
static void test_group(void **state)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {0}, c[4] = {0};
    done[0] = '\0';
    clocks[4] = clocks[2] + 12345;
    assert_int_equal(ncclGroupStart(), 0);
    assert_int_equal(ncclSend(a, 4, FLOAT, 3, comm, stream(2)), 0);
    assert_int_equal(ncclRecv(b, 4, FLOAT, 3, comm, stream(2)), 0);
    assert_int_equal(ncclRecv(c, 4, FLOAT, 0, comm, stream(4)), 0);
    assert_string_equal(done, "");
    assert_int_equal(ncclGroupEnd(), 0);
    assert_string_equal(done, "E4 F2 W2 C2 N2 E2 F4 ");
    assert_memory_equal(b, a, sizeof a);
    assert_true(c[0] != 0);
    assert_true(clocks[4] == clocks[2]);
}

static void assert_grid(unsigned blocks, unsigned threads)
{
    assert_int_equal(grid[0], blocks);
    assert_int_equal(grid[1], threads);
}

/* A wait holds what NCCL's kernel would: a block for each 32 KiB of the larger buffer, up to 24 within a node; threads of small ones
 * are halved, and one warp comes on top. A block for each 64 KiB of messages. */
static void test_grid(void **state)
{
    static float x[4 << 20];
    static const struct {
        size_t count;
        unsigned blocks, threads;
    } sizes[] = {{4, 1, 96},           {8191 / 4, 1, 96},      {2048, 1, 160},     {4096, 1, 288},
                 {8192, 1, 544},       {2 * 8192 - 1, 1, 544}, {2 * 8192, 2, 544}, {23 * 8192 + 1, 23, 544},
                 {24 * 8192, 24, 544}, {1 << 20, 24, 544}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(ncclAllReduce(x, x, sizes[i].count, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
        assert_grid(sizes[i].blocks, sizes[i].threads);
    }
    assert_int_equal(ncclAllGather(x, x, 8192, FLOAT, comm, stream(2)), 0); /* of four: 128 KiB */
    assert_grid(4, 544);
    assert_int_equal(ncclGroupStart(), 0);
    assert_int_equal(ncclSend(x, 32768, FLOAT, 3, comm, stream(2)), 0); /* 128 KiB */
    assert_int_equal(ncclRecv(x, 16384, FLOAT, 3, comm, stream(2)), 0);
    assert_int_equal(ncclRecv(x, 16385, FLOAT, 0, comm, stream(2)), 0);
    assert_int_equal(ncclGroupEnd(), 0);
    assert_grid(3, 640);
    setenv("NCCL_MAX_NCHANNELS", "8", 1);
    assert_int_equal(ncclAllReduce(x, x, 1 << 20, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
    assert_grid(8, 544);
    setenv("NCCL_MIN_NCHANNELS", "32", 1);
    assert_int_equal(ncclAllReduce(x, x, 4 << 20, FLOAT, VG_NCCL_SUM, comm, stream(2)), 0);
    assert_grid(32, 544);
    unsetenv("NCCL_MAX_NCHANNELS");
    unsetenv("NCCL_MIN_NCHANNELS");
    assert_int_equal(*apart, 0); /* all blocks of a wait end together, however many those before it had */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_grid),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
