/* SPDX-License-Identifier: Apache-2.0 */
/* test_shim_buffers.c - device memory that communicators take: NCCL's rule, a profile, the end of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "nccl_calls.h"
#include "shim_card.h"

enum { FLOAT = MAQ_REC_F32, MIB = 1 << 20, HERE = 0, ELSEWHERE = 9, ELSEWHERE_TOO = 10 };

int ncclSend(const void *, size_t, int, int, struct vg_comm *, void *);
int ncclRecv(void *, size_t, int, int, struct vg_comm *, void *);

static char profile[64];

static uint64_t used_mib(void)
{
    uint64_t left, total;
    vg_mem_info(&left, &total, NULL);
    return (total - left) / MIB;
}

static struct vg_comm *communicator(int n, int me)
{
    struct vg_nccl_id id;
    struct vg_comm *comm;
    assert_int_equal(ncclGetUniqueId(&id), 0);
    assert_int_equal(ncclCommInitRank(&comm, n, id, me), 0);
    return comm;
}

/* Rank 1 of 16 on two nodes: 16 channels, of which two leave the node at this GPU (those of the GPU behind it). */
static void test_across(void **state)
{
    uint64_t before = used_mib();
    void *x = vg_mem_alloc(MIB, MAQ_REC_MANAGED, NULL);
    struct vg_comm *comm = communicator(16, 1);
    (void)state;
    assert_int_equal(used_mib() - before, 2 + 16 * (2 + 2 + 2));
    before = used_mib();
    assert_int_equal(ncclAllReduce(x, x, 64, FLOAT, VG_NCCL_SUM, comm, NULL), 0);
    assert_int_equal(used_mib() - before, 16 * 10 + 2 * 10 + 14 * 2);
    assert_int_equal(ncclAllGather(x, x, 4, FLOAT, comm, NULL), 0);
    assert_int_equal(used_mib() - before, 16 * 10 + 2 * 10 + 14 * 2); /* once */
    before = used_mib();
    assert_int_equal(ncclSend(x, 64, FLOAT, HERE, comm, NULL), 0);
    assert_int_equal(used_mib() - before, 16 * 2);
    assert_int_equal(ncclRecv(x, 64, FLOAT, HERE, comm, NULL), 0);
    assert_int_equal(used_mib() - before, 16 * (2 + 10));
    before = used_mib();
    assert_int_equal(ncclSend(x, 64, FLOAT, ELSEWHERE, comm, NULL), 0);
    assert_int_equal(ncclSend(x, 64, FLOAT, ELSEWHERE_TOO, comm, NULL), 0);
    assert_int_equal(used_mib() - before, 16 * 2); /* a pool for all of them */
    assert_int_equal(ncclCommDestroy(comm), 0);
    assert_int_equal(used_mib(), 0);
    vg_mem_free(x, NULL);
}

/* On a node: the profile has its beginning, and the rule the rest. An exchange of a group connects to everybody at once. */
static void test_profile(void **state)
{
    void *x = vg_mem_alloc(MIB, MAQ_REC_MANAGED, NULL);
    struct vg_comm *comm = communicator(3, 1);
    (void)state;
    assert_int_equal(used_mib(), 4);
    assert_int_equal(ncclAllReduce(x, x, 64, FLOAT, VG_NCCL_SUM, comm, NULL), 0);
    assert_int_equal(used_mib(), 4 + 24 * (10 + 2));
    assert_int_equal(ncclGroupStart(), 0);
    for (int peer = 0; peer < 3; peer++) {
        assert_int_equal(ncclSend(x, 64, FLOAT, peer, comm, NULL), 0);
        assert_int_equal(ncclRecv(x, 64, FLOAT, peer, comm, NULL), 0);
    }
    assert_int_equal(ncclGroupEnd(), 0);
    assert_int_equal(used_mib(), 4 + 24 * (10 + 2) + 2 * 32 * (10 + 2)); /* two peers */
    assert_int_equal(ncclAlltoAll(x, x, 64, FLOAT, comm, NULL), 0);
    assert_int_equal(used_mib(), 4 + 24 * (10 + 2) + 2 * 32 * (10 + 2));
    assert_int_equal(ncclCommDestroy(comm), 0);
    struct vg_comm *own = communicator(1, 0); /* of one: nothing */
    assert_int_equal(ncclAllReduce(x, x, 64, FLOAT, VG_NCCL_SUM, own, NULL), 0);
    assert_int_equal(used_mib(), 0);
    vg_mem_free(x, NULL);
}

/* The call that would connect fails, and so does a communicator for which there is no room; NCCL calls it an error of CUDA. */
static void test_full(void **state)
{
    void *x = vg_mem_alloc(MIB, MAQ_REC_MANAGED, NULL);
    struct vg_comm *comm = communicator(16, 1), *none;
    struct vg_nccl_id id;
    (void)state;
    void *most = vg_mem_alloc((uint64_t)(4096 - 98 - 207) * MIB, MAQ_REC_DEVICE, NULL);
    assert_non_null(most);
    assert_int_equal(ncclAllReduce(x, x, 64, FLOAT, VG_NCCL_SUM, comm, NULL), VG_NCCL_CUDA_ERROR);
    void *rest = vg_mem_alloc(120 * (uint64_t)MIB, MAQ_REC_DEVICE, NULL);
    assert_non_null(rest);
    assert_int_equal(ncclGetUniqueId(&id), 0);
    assert_int_equal(ncclCommInitRank(&none, 16, id, 1), VG_NCCL_CUDA_ERROR);
    assert_int_equal(ncclCommDestroy(comm), 0);
    assert_true(vg_mem_free(most, NULL) && vg_mem_free(rest, NULL));
    assert_int_equal(used_mib(), 0);
    vg_mem_free(x, NULL);
}

static void test_rows(void **state)
{
    static const struct {
        const char *line;
        int result;
        struct maq_comm_memory_row row;
    } lines[] = {{"init 8 node 203423744\n", 1, {MAQ_COMM_MEMORY_INIT, 8, true, 203423744}},
                 {"  recv\tany across 1 # why", 1, {MAQ_COMM_MEMORY_RECV, 0, false, 1}},
                 {"# init 8 node 1", 0, {0}},
                 {" \r\n", 0, {0}},
                 {"", 0, {0}},
                 {"init 0 node 1", -1, {0}},
                 {"init 8 node", -1, {0}},
                 {"init 8 node -1", -1, {0}},
                 {"init 8 node 1 1", -1, {0}},
                 {"init 8 rack 1", -1, {0}},
                 {"ini 8 node 1", -1, {0}},
                 {"init 99999999999 node 1", -1, {0}},
                 {"init 8 node 99999999999999999999", -1, {0}}};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct maq_comm_memory_row row = {0};
        assert_int_equal(maq_comm_memory_read(&row, lines[i].line), lines[i].result);
        if (lines[i].result == 1)
            assert_true(row.what == lines[i].row.what && row.ranks == lines[i].row.ranks &&
                        row.in_node == lines[i].row.in_node && row.bytes == lines[i].row.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_across),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_rows),
    };
    char card[256];
    snprintf(profile, sizeof profile, "/tmp/maq-nccl-memory-%d", (int)getpid());
    FILE *f = fopen(profile, "w");
    if (!f)
        return 1;
    fputs("# seen\ninit 3 across 1\ninit 3 node 4194304\n", f);
    fclose(f);
    snprintf(card, sizeof card, "world 16\nrank 1\nper_node 8\nmemory 4294967296\nnccl_memory %s\n", profile);
    shim_card(card);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    unlink(profile);
    return failed;
}
