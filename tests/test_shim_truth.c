/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_truth.c - all ranks of a program at once over a segment with nobody behind it: the times that they find are
 * those of a closed form, whatever the host scheduler does, and two runs leave the same traces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "nccl_calls.h"
#include "shim_ranks.h"

#define RANKS 8
#define STEPS 6
#define MICROBATCHES 12

#define MIB (UINT64_C(1) << 20)

/* --- the program ------------------------------------------------------------------------------------------------------ */

static int64_t work(uint32_t rank, uint32_t step, uint32_t what)
{
    return (int64_t)(maq_rec_mix(maq_rec_mix(rank, step), what) % 20000);
}

/* The fixed rule of link.h. */
static int64_t takes(uint64_t bytes)
{
    return 2000 + (int64_t)(bytes / 1000);
}

static uint64_t message_bytes(uint32_t m)
{
    return m % 3 == 2 ? 8 * MIB : MIB; /* above and below what NCCL's buffers hold */
}

static void compute(struct vg_stream *s, int64_t ns)
{
    vg_enqueue(s, (struct maq_rec){.kind = MAQ_REC_LAUNCH, .ns = (uint64_t)ns});
}

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int result_ = (call);                                                                                          \
        if (result_ != VG_NCCL_SUCCESS) {                                                                              \
            fprintf(stderr, "%s: %d\n", #call, result_);                                                               \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void pipeline(struct vg_stream *s, struct vg_comm *comm, char *buffer, int rank)
{
    for (uint32_t m = 0; m < MICROBATCHES; m++) {
        if (rank > 0)
            MUST(ncclRecv(buffer, message_bytes(m), MAQ_REC_U8, rank - 1, comm, s));
        compute(s, work((uint32_t)rank, m, 3));
        if (rank + 1 < RANKS)
            MUST(ncclSend(buffer, message_bytes(m), MAQ_REC_U8, rank + 1, comm, s));
    }
}

static struct vg_comm *start(void)
{
    int rank = (int)vg_card()->rank, n = (int)vg_card()->world;
    struct vg_nccl_id id = {{0}};
    struct vg_comm *world;
    vg_drive();
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    if (!vg_exchange_from(1, (uint32_t)n, (uint32_t)rank, 0, &id, sizeof id))
        exit(4);
    MUST(ncclCommInitRank(&world, n, id, rank));
    return world;
}

static int program(void)
{
    int rank = (int)vg_card()->rank;
    struct vg_comm *world = start(), *half;
    MUST(ncclCommSplit(world, rank % 2, -rank, &half, NULL));
    struct vg_stream *s = vg_stream_new(1, 0);
    char *buffer = vg_mem_alloc(16 * MIB, MAQ_REC_DEVICE, NULL);
    for (uint32_t step = 0; step < STEPS; step++) {
        compute(s, work((uint32_t)rank, step, 1));
        MUST(ncclAllReduce(buffer, buffer, MIB, MAQ_REC_U8, VG_NCCL_SUM, world, s));
        compute(s, work((uint32_t)rank, step, 2));
        MUST(ncclAllReduce(buffer, buffer, 64 * 1024, MAQ_REC_F32, VG_NCCL_SUM, half, s));
        pipeline(s, world, buffer, rank);
    }
    int64_t end;
    if (!vg_stream_end(s, &end))
        return 5;
    struct {
        int64_t end;
        uint32_t n, me, members[4];
    } said = {.end = end, .n = half->n, .me = half->me};
    memcpy(said.members, half->members, sizeof said.members);
    ranks_say(&said, sizeof said);
    return 0;
}

/* Experts: all-to-all by messages, of sizes that differ, in one group with itself; and a group of two collectives. */
#define EXPERTS 16

static uint64_t routed(uint32_t src, uint32_t dst)
{
    return (1 + maq_rec_mix(src, dst) % 7) * 100000;
}

static int experts(void)
{
    int rank = (int)vg_card()->rank;
    struct vg_comm *world = start();
    struct vg_stream *s = vg_stream_new(1, 0);
    char *buffer = vg_mem_alloc(16 * MIB, MAQ_REC_DEVICE, NULL);
    for (uint32_t step = 0; step < STEPS; step++) {
        compute(s, work((uint32_t)rank, step, 1));
        MUST(ncclGroupStart());
        for (int peer = 0; peer < EXPERTS; peer++) {
            MUST(ncclSend(buffer, routed((uint32_t)rank, (uint32_t)peer), MAQ_REC_U8, peer, world, s));
            MUST(ncclRecv(buffer, routed((uint32_t)peer, (uint32_t)rank), MAQ_REC_U8, peer, world, s));
        }
        MUST(ncclGroupEnd());
        compute(s, work((uint32_t)rank, step, 2));
        MUST(ncclGroupStart());
        MUST(ncclAllGather(buffer, buffer, MIB, MAQ_REC_U8, world, s));
        MUST(ncclReduceScatter(buffer, buffer, MIB / 4, MAQ_REC_BF16, VG_NCCL_SUM, world, s));
        MUST(ncclGroupEnd());
    }
    int64_t end;
    if (!vg_stream_end(s, &end))
        return 5;
    ranks_say(&end, sizeof end);
    return 0;
}

/* --- the closed form -------------------------------------------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void meet_all(int64_t *t, uint32_t first, uint32_t stride, int64_t ns)
{
    int64_t latest = 0;
    for (uint32_t r = first; r < RANKS; r += stride)
        latest = later(latest, t[r]);
    for (uint32_t r = first; r < RANKS; r += stride)
        t[r] = latest + ns;
}

static void expected(int64_t *t)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t r = 0; r < RANKS; r++)
            t[r] += work(r, step, 1);
        meet_all(t, 0, 1, takes(MIB));
        for (uint32_t r = 0; r < RANKS; r++)
            t[r] += work(r, step, 2);
        meet_all(t, 0, 2, takes(256 * 1024));
        meet_all(t, 1, 2, takes(256 * 1024));
        for (uint32_t m = 0; m < MICROBATCHES; m++)
            for (uint32_t r = 0; r < RANKS; r++) {
                t[r] += work(r, m, 3);
                if (r + 1 == RANKS)
                    continue;
                int64_t ns = takes(message_bytes(m)), both = later(t[r], t[r + 1]) + ns;
                t[r] = message_bytes(m) <= MAQ_EAGER_BYTES ? t[r] + ns : both;
                t[r + 1] = both;
            }
    }
}

/* What a rank gives as the duration of each of its messages: an all-to-all of what it moves on average. */
static int64_t shuffled(uint32_t rank)
{
    uint64_t sent = 0, got = 0;
    for (uint32_t peer = 0; peer < EXPERTS; peer++) {
        sent += peer == rank ? 0 : routed(rank, peer);
        got += peer == rank ? 0 : routed(peer, rank);
    }
    return takes((sent > got ? sent : got) / EXPERTS);
}

static void expected_of_experts(int64_t *t)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        int64_t began[EXPERTS], latest = 0;
        for (uint32_t r = 0; r < EXPERTS; r++)
            began[r] = t[r] + work(r, step, 1);
        for (uint32_t r = 0; r < EXPERTS; r++) {
            t[r] = began[r] + shuffled(r); /* what it sends is small */
            for (uint32_t peer = 0; peer < EXPERTS; peer++)
                t[r] = later(t[r], later(began[r], began[peer]) + later(shuffled(r), shuffled(peer)));
        }
        for (uint32_t r = 0; r < EXPERTS; r++)
            latest = later(latest, t[r] + work(r, step, 2));
        for (uint32_t r = 0; r < EXPERTS; r++)
            t[r] = latest + takes(MIB) + takes(MIB / 2);
    }
}

/* --- the test --------------------------------------------------------------------------------------------------------- */

static void test_truth(void **state)
{
    (void)state;
    struct ranks r = ranks_new(RANKS, 4, true, NULL);
    unsigned char *first[RANKS] = {0};
    size_t first_bytes[RANKS] = {0};
    int64_t t[RANKS] = {0};
    expected(t);
    for (int run = 0; run < 2; run++) {
        ranks_card(&r, NULL);
        assert_true(ranks_run(&r, "truth", NULL, RANKS));
        for (uint32_t i = 0; i < RANKS; i++) {
            size_t bytes;
            unsigned char *said = ranks_file(&r, "said", i, &bytes);
            int64_t end;
            uint32_t half[6];
            memcpy(&end, said, sizeof end);
            memcpy(half, said + sizeof end, sizeof half);
            assert_int_equal(end, t[i]);
            assert_int_equal(half[0], 4);
            assert_int_equal(half[1], (RANKS - 1 - i) / 2); /* keys were negative: the last is the first */
            for (uint32_t k = 0; k < 4; k++)
                assert_int_equal(half[2 + k], 6 + i % 2 - 2 * k);
            free(said);
            unsigned char *trace = ranks_file(&r, "trace", i, &bytes);
            assert_true(bytes > 2000);
            if (run == 0) {
                first[i] = trace;
                first_bytes[i] = bytes;
                continue;
            }
            assert_int_equal(bytes, first_bytes[i]);
            assert_memory_equal(trace, first[i], bytes);
            free(trace);
            free(first[i]);
        }
    }
    ranks_free(&r);
}

static void test_experts(void **state)
{
    (void)state;
    struct ranks r = ranks_new(EXPERTS, 8, true, NULL);
    int64_t t[EXPERTS] = {0};
    expected_of_experts(t);
    ranks_card(&r, NULL);
    assert_true(ranks_run(&r, "experts", NULL, EXPERTS));
    for (uint32_t i = 0; i < EXPERTS; i++) {
        size_t bytes;
        int64_t end;
        unsigned char *said = ranks_file(&r, "said", i, &bytes);
        assert_int_equal(bytes, sizeof end);
        memcpy(&end, said, sizeof end);
        assert_int_equal(end, t[i]);
        free(said);
    }
    ranks_free(&r);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "truth") == 0)
        return program();
    if (argc > 1 && strcmp(argv[1], "experts") == 0)
        return experts();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_truth), cmocka_unit_test(test_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
