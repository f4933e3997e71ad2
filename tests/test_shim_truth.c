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

static int program(void)
{
    int rank = (int)vg_card()->rank;
    struct vg_nccl_id id = {{0}};
    struct vg_comm *world, *half;
    vg_drive();
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    if (!vg_exchange_from(1, RANKS, (uint32_t)rank, 0, &id, sizeof id))
        return 4;
    MUST(ncclCommInitRank(&world, RANKS, id, rank));
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
            assert_int_equal(*(int64_t *)said, t[i]);
            const uint32_t *half = (uint32_t *)(said + 8);
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

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "truth") == 0)
        return program();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_truth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
