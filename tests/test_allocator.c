/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_allocator.c - the caching allocator model: rounding, pools, splitting, joining, options; a search without any structure
 * beside it (allocator_brute.h); what PyTorch's own did (tests/data/allocator_trace.txt).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "allocator_brute.h"
#include "effort.h"
#include "graph/allocator.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024.0)

static double reserved(const struct maq_allocator *a)
{
    return maq_allocator_stats(a).reserved;
}

static void test_segments(void **unused)
{
    (void)unused;
    static const struct {
        double bytes, allocated, reserved;
    } cases[] = {
        {1, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB, MIB, 2 * MIB},
        {MIB + 1, MIB + 512, 20 * MIB},
        /* what remains of a 20 MiB segment is split off when it is over 1 MiB */
        {9.9 * MIB, 10381312, 20 * MIB},
        {10 * MIB, 10 * MIB, 10 * MIB},
        {11 * MIB, 11 * MIB, 12 * MIB}, /* 1 MiB remains: not split */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_allocator *a = maq_allocator_new(NULL);
        uint32_t block = maq_allocator_alloc(a, 0, cases[i].bytes);
        assert_int_not_equal(block, 0);
        assert_true(reserved(a) == cases[i].reserved);
        double held = cases[i].bytes == 11 * MIB ? 12 * MIB : cases[i].allocated;
        assert_true(maq_allocator_stats(a).allocated == held);
        maq_allocator_release(a, block);
        assert_true(maq_allocator_stats(a).allocated == 0);
        assert_true(reserved(a) == cases[i].reserved); /* nothing goes back */
        maq_allocator_free(a);
    }
}

static void test_reuse_and_join(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(NULL);
    uint32_t x = maq_allocator_alloc(a, 0, 6 * MIB), y = maq_allocator_alloc(a, 0, 6 * MIB),
             z = maq_allocator_alloc(a, 0, 6 * MIB);
    assert_true(reserved(a) == 20 * MIB); /* three in one segment */
    maq_allocator_release(a, x);
    maq_allocator_release(a, z);
    uint32_t large = maq_allocator_alloc(a, 0, 9 * MIB);
    assert_true(reserved(a) == 40 * MIB); /* the holes are 6 and 8 MiB: fragmented */
    maq_allocator_release(a, y);          /* joins with both neighbours */
    uint32_t whole = maq_allocator_alloc(a, 0, 20 * MIB);
    assert_true(reserved(a) == 40 * MIB);
    maq_allocator_release(a, large);
    maq_allocator_release(a, whole);
    assert_true(maq_allocator_stats(a).peak_allocated == 29 * MIB);
    maq_allocator_free(a);
}

/* A repeating program settles: what later rounds add to the first one's segments is bounded; never less is reserved than used. */
static void test_steady_state(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(NULL);
    uint32_t held[200];
    uint64_t state = 7;
    double after[6];
    for (int round = 0; round < 6; round++) {
        state = 7;
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            held[i] = maq_allocator_alloc(a, 0, (double)(state >> 40) * 4);
            struct maq_allocator_stats s = maq_allocator_stats(a);
            assert_true(s.allocated <= s.reserved && s.peak_reserved >= s.reserved && s.peak_allocated >= s.allocated);
        }
        for (int i = 200; i-- > 0;)
            maq_allocator_release(a, held[i]);
        after[round] = reserved(a);
    }
    assert_true(after[5] == after[4] && after[5] <= 1.25 * after[0]);
    maq_allocator_free(a);
}

/* A block of 12 MiB is not split for 11.5: the half counts as allocated, until it is free again. */
static void test_waste(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(NULL);
    uint32_t b = maq_allocator_alloc(a, 0, 11.5 * MIB);
    struct maq_allocator_stats s = maq_allocator_stats(a);
    assert_true(s.allocated == 12 * MIB && s.waste == 0.5 * MIB && s.peak_waste == 0.5 * MIB);
    maq_allocator_release(a, b);
    s = maq_allocator_stats(a);
    assert_true(s.waste == 0 && s.peak_waste == 0.5 * MIB);
    maq_allocator_free(a);
}

/* Of equal free blocks the one with the lowest address is taken, whichever was freed last. */
static void test_lowest_address(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(NULL);
    uint32_t held[8];
    for (int i = 0; i < 8; i++)
        held[i] = maq_allocator_alloc(a, 0, 12 * MIB);
    static const int order[] = {5, 1, 6, 3};
    for (int i = 0; i < 4; i++)
        maq_allocator_release(a, held[order[i]]);
    static const int lowest[] = {1, 3, 5, 6};
    for (int i = 0; i < 4; i++) {
        uint32_t block = maq_allocator_alloc(a, 0, 12 * MIB);
        assert_true(maq_allocator_address(a, block) == lowest[i] * 12 * MIB);
    }
    assert_true(reserved(a) == 96 * MIB);
    maq_allocator_free(a);
}

/* What one stream freed is not for another. */
static void test_streams(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(NULL);
    maq_allocator_release(a, maq_allocator_alloc(a, 0, 64 * MIB));
    uint32_t other = maq_allocator_alloc(a, 1, 64 * MIB);
    assert_true(reserved(a) == 128 * MIB && maq_allocator_stats(a).peak_allocated == 64 * MIB);
    maq_allocator_release(a, other);
    maq_allocator_alloc(a, 0, 64 * MIB);
    maq_allocator_alloc(a, 1, 64 * MIB);
    assert_true(reserved(a) == 128 * MIB);
    maq_allocator_free(a);
}

/* Holes of 30 and 31 MiB hold nothing of 40; a segment that grows has no holes of its own making. */
static void test_expandable(void **unused)
{
    (void)unused;
    for (int expandable = 0; expandable < 2; expandable++) {
        struct maq_allocator *a = maq_allocator_new(&(struct maq_allocator_options){.expandable_segments = expandable});
        uint32_t x = maq_allocator_alloc(a, 0, 30 * MIB), y = maq_allocator_alloc(a, 0, 31 * MIB);
        assert_true(reserved(a) == (expandable ? 80 : 62) * MIB);
        maq_allocator_release(a, y);
        maq_allocator_release(a, x);
        maq_allocator_alloc(a, 0, 78 * MIB);
        assert_true(reserved(a) == (expandable ? 80 : 140) * MIB);
        maq_allocator_alloc(a, 0, 1.5 * MIB); /* the last two, before the segment grows again */
        assert_true(reserved(a) == (expandable ? 80 : 140) * MIB);
        maq_allocator_free(a);
    }
}

static void test_rounding(void **unused)
{
    (void)unused;
    static const struct {
        double bytes, allocated;
    } cases[] = {{500, 512},           {2048, 2048},        {2049, 2560}, {1200 * KIB, 1280 * KIB},
                 {40 * MIB, 40 * MIB}, {41 * MIB, 48 * MIB}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_allocator *a = maq_allocator_new(&(struct maq_allocator_options){.roundup_power2_divisions = 4});
        maq_allocator_alloc(a, 0, cases[i].bytes);
        assert_true(maq_allocator_stats(a).allocated == cases[i].allocated);
        maq_allocator_free(a);
    }
}

/* Blocks that are not split serve what is nearly as large, and nothing else. */
static void test_oversize(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new(&(struct maq_allocator_options){.max_split_size = 128 * MIB});
    maq_allocator_release(a, maq_allocator_alloc(a, 0, 200 * MIB));
    maq_allocator_alloc(a, 0, 50 * MIB);
    assert_true(reserved(a) == 250 * MIB);
    maq_allocator_alloc(a, 0, 170 * MIB);
    assert_true(reserved(a) == 420 * MIB);
    maq_allocator_alloc(a, 0, 190 * MIB);
    assert_true(reserved(a) == 420 * MIB);
    maq_allocator_free(a);
}

/* ---- against a search from end to end ---- */

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Few sizes, so that many free blocks are alike; now and then one of any size. */
static int64_t draw_bytes(uint64_t *state)
{
    static const int64_t usual[] = {512,     4096,    300000,         BRUTE_MIB,      3 * BRUTE_MIB,  7340032,
                                    9999999, 2359296, 10 * BRUTE_MIB, 16 * BRUTE_MIB, 33554432 + 512, 150 * BRUTE_MIB};
    if (draw(state, 4) > 0)
        return usual[draw(state, sizeof usual / sizeof usual[0])];
    return 1 + (int64_t)draw(state, 1u << (1 + draw(state, 27)));
}

static void one_sequence(const struct maq_allocator_options *options, uint64_t seed)
{
    static struct brute b;
    enum { HELD = 160, MOVES = 1500 };
    uint32_t mine[HELD] = {0}, other[HELD] = {0}, n = 0;
    uint64_t state = seed;
    b = (struct brute){.options = *options};
    struct maq_allocator *a = maq_allocator_new(options);
    for (int i = 0; i < MOVES; i++) {
        bool grows = (i / 200) % 2 == 0 ? draw(&state, 3) > 0 : draw(&state, 3) == 0;
        if (n < HELD && (grows || n == 0)) {
            uint32_t stream = draw(&state, 8) == 0;
            int64_t bytes = draw_bytes(&state);
            mine[n] = maq_allocator_alloc(a, stream, (double)bytes);
            other[n] = brute_alloc(&b, stream, bytes);
            assert_true(maq_allocator_address(a, mine[n]) == (double)b.at[other[n]].address);
            n++;
        } else {
            uint32_t k = draw(&state, n);
            maq_allocator_release(a, mine[k]);
            brute_release(&b, other[k]);
            n--;
            mine[k] = mine[n];
            other[k] = other[n];
        }
        assert_true(maq_allocator_stats(a).reserved == (double)b.reserved);
    }
    maq_allocator_free(a);
}

static void test_against_search(void **unused)
{
    (void)unused;
    static const struct maq_allocator_options options[] = {
        {0},
        {.expandable_segments = true},
        {.max_split_size = 32 * MIB},
        {.roundup_power2_divisions = 8},
        {.expandable_segments = true, .roundup_power2_divisions = 2},
    };
    uint64_t sequences = long_run() ? 400 : SANITIZED ? 4 : 20;
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++)
        for (uint64_t seed = 1; seed <= sequences; seed++)
            one_sequence(&options[o], seed);
}

/* ---- against PyTorch's allocator ---- */

enum { REQUESTS = 1 << 14 };

/* One line of the recording: a request, a free, or what is reserved from there on, which the request behind it has asked for. */
static void play_line(struct maq_allocator *a, const char *line, uint32_t blocks[REQUESTS], uint32_t *n, double *held)
{
    char *end;
    double number = strtod(line + 1, &end);
    if (line[0] == 'r') {
        *held = number;
    } else if (line[0] == 'f') {
        maq_allocator_release(a, blocks[(uint32_t)number]);
    } else if (line[0] == 'a') {
        assert_true(*n < REQUESTS);
        blocks[*n] = maq_allocator_alloc(a, (uint32_t)number, strtod(end, NULL));
        assert_int_not_equal(blocks[(*n)++], 0);
        assert_true(maq_allocator_stats(a).reserved == *held);
    }
}

/* Four steps of a small Llama under fully_shard(), 2,903 requests on three streams: tests/memory-truth/trace.py wrote them down. */
static void test_against_pytorch(void **unused)
{
    (void)unused;
    static uint32_t blocks[REQUESTS];
    char path[512], line[64];
    const char *root = getenv("MAQ_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/data/allocator_trace.txt", root ? root : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    struct maq_allocator *a = maq_allocator_new(NULL);
    uint32_t n = 0;
    double held = 0;
    while (fgets(line, sizeof line, file))
        play_line(a, line, blocks, &n, &held);
    fclose(file);
    assert_int_equal(n, 2903);
    assert_true(maq_allocator_stats(a).peak_reserved == 2086666240 &&
                maq_allocator_stats(a).peak_allocated == 1479476224);
    maq_allocator_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waste),           cmocka_unit_test(test_segments),
        cmocka_unit_test(test_reuse_and_join),  cmocka_unit_test(test_steady_state),
        cmocka_unit_test(test_streams),         cmocka_unit_test(test_lowest_address),
        cmocka_unit_test(test_expandable),      cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_oversize),        cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_against_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
