/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_pickle_pattern.c - patterns of numbers over the ranks of a group, and pickles whose numbers follow them: what is made for a rank is what that
 * rank would have said, byte for byte but for the frame. (tests/test_launch_first.py has Python's own.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/nccl/gather_guess.h"
#include "shim/nccl/nccl.h"
#include "shim/nccl/rank_pattern.h"

enum { N = 128, NODE = 8, ROOM = 192 };
static const uint32_t sample[] = {1, 2, 8, 67, 127};
enum { SAMPLES = sizeof sample / sizeof *sample };

static void check_pattern(int64_t (*x)(uint32_t), bool found)
{
    struct vg_rank_pattern pattern;
    int64_t said[SAMPLES];
    for (unsigned k = 0; k < SAMPLES; k++)
        said[k] = x(sample[k]);
    assert_int_equal(vg_rank_pattern(&pattern, N, NODE, sample, said, SAMPLES), found);
    for (uint32_t i = 0; i < N && found; i++)
        assert_int_equal(vg_rank_pattern_at(&pattern, i), x(i));
}

static int64_t same(uint32_t i)
{
    return i - i + 7;
}
static int64_t rank(uint32_t i)
{
    return (int64_t)i * -(INT64_C(1) << 40) + 3;
}
static int64_t local(uint32_t i)
{
    return i % NODE;
}
static int64_t node(uint32_t i)
{
    return 100 - (int64_t)(i / NODE);
}
static int64_t middle(uint32_t i)
{
    return 5 * (i / 2 % 16);
}
static int64_t square(uint32_t i)
{
    return (int64_t)i * i;
}

static void test_rank_pattern(void **state)
{
    check_pattern(same, true);
    check_pattern(rank, true);
    check_pattern(local, true);
    check_pattern(node, true);
    check_pattern(middle, true);
    check_pattern(square, false);
    (void)state;
}

/* --- pickles -------------------------------------------------------------------------------------------------------------- */

/* {'rows': 300 * i, 'name': '__<i>_00<i % 8>'}, as protocol 4 has it. */
static size_t pickle(unsigned char *out, uint32_t i, bool framed)
{
    char name[32];
    const uint32_t rows = 300 * i;
    const int length = snprintf(name, sizeof name, "__%u_%03u", i, i % NODE);
    size_t n = 0;
    memset(out, 0, ROOM);
    memcpy(out, "\x80\x04", n = 2);
    if (framed) {
        memcpy(out + n, "\x95\x20\0\0\0\0\0\0", 9);
        n += 9;
    }
    memcpy(out + n, "}\x94(\x8c\x04rows\x94", 10);
    n += 10;
    out[n++] = rows <= UINT8_MAX ? 'K' : rows <= UINT16_MAX ? 'M' : 'J';
    memcpy(out + n, &rows, 4);
    n += rows <= UINT8_MAX ? 1 : rows <= UINT16_MAX ? 2 : 4;
    memcpy(out + n, "\x8c\x04name\x94\x8c", 8);
    n += 8;
    out[n++] = (unsigned char)length;
    memcpy(out + n, name, (size_t)length);
    n += (size_t)length;
    memcpy(out + n, "\x94u.", 3);
    n += 3;
    memset(out + n, 0xee, ROOM - n); /* padding is anything */
    return n;
}

static unsigned char object[N][ROOM];
static const unsigned char *said[N];

static struct vg_pickle_pattern *pattern_of(const uint32_t *places, unsigned n)
{
    memset(said, 0, sizeof said);
    for (unsigned k = 0; k < n; k++)
        said[places[k]] = object[places[k]];
    return vg_pickle_pattern(&(struct vg_pickles){N, ROOM, said, NULL, NODE});
}

static void fill(void)
{
    for (uint32_t i = 0; i < N; i++)
        (void)pickle(object[i], i, true);
}

static void test_said(void **state)
{
    fill();
    struct vg_pickle_pattern *pattern = pattern_of(sample, SAMPLES);
    assert_non_null(pattern);
    for (uint32_t i = 0; i < N; i++) {
        unsigned char want[ROOM], got[ROOM];
        const size_t n = pickle(want, i, false);
        assert_true(vg_pickle_pattern_say(pattern, i, got, ROOM));
        assert_memory_equal(got, want, n);
        assert_int_equal(got[n], 0);
        got[0] = 1;
        assert_false(vg_pickle_pattern_say(pattern, i, got, n - 1));
        assert_int_equal(got[0], 1);
    }
    vg_pickle_pattern_free(pattern);
    (void)state;
}

/* One of another kind is left out, as a coordinator is; two of a kind are too few, and a number without a pattern is none. */
static void test_kinds(void **state)
{
    fill();
    object[8][12] = ']';
    struct vg_pickle_pattern *pattern = pattern_of(sample, SAMPLES);
    unsigned char want[ROOM], got[ROOM];
    const size_t n = pickle(want, 9, false);
    assert_true(pattern && vg_pickle_pattern_say(pattern, 9, got, ROOM));
    assert_memory_equal(got, want, n);
    vg_pickle_pattern_free(pattern);
    assert_null(pattern_of((const uint32_t[]){1, 2, 8}, 3));
    assert_null(pattern_of(sample, 2));
    fill();
    object[2][22] ^= 1; /* of its rows */
    assert_null(pattern_of(sample, SAMPLES));
    fill();
    object[1][1] = 9; /* no protocol that is known */
    object[2][11] = 'c';
    assert_null(pattern_of((const uint32_t[]){1, 2, 8, 67}, 4));
    (void)state;
}

/* Whatever bytes are said, nothing outside of them is read. */
static void test_any_bytes(void **state)
{
    uint32_t seed = 1;
    for (int turn = 0; turn < 20000; turn++) {
        fill();
        for (int k = 0; k < 1 + turn % 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            object[sample[seed >> 8 & 1]][(seed >> 16) % 60] = (unsigned char)(seed >> 9);
        }
        struct vg_pickle_pattern *pattern = pattern_of(sample, SAMPLES);
        unsigned char got[ROOM];
        if (pattern)
            (void)vg_pickle_pattern_say(pattern, 5, got, ROOM);
        vg_pickle_pattern_free(pattern);
    }
    (void)state;
}

/* --- what was recorded of a gather ---------------------------------------------------------------------------------------- */

enum { OBJECTS = 5, LENGTHS = 6 };

static int64_t length_of(uint32_t i)
{
    static const int64_t length[] = {40, 44, 41, 43, 47};
    for (unsigned k = 0; k < SAMPLES; k++)
        if (sample[k] == i)
            return length[k];
    return 0;
}

/* Objects on one channel, each as long as it is, and numbers on another; of the sample. */
static void record(const char *path)
{
    struct maq_peers_head head = {.magic = MAQ_PEERS_MAGIC, .n_entries = 2 * SAMPLES};
    struct maq_peers_entry entry[2 * SAMPLES];
    unsigned char bytes[SAMPLES][ROOM];
    uint64_t at = sizeof head + sizeof entry;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (unsigned k = 0; k < SAMPLES; k++) {
        entry[k] = (struct maq_peers_entry){OBJECTS, 0, sample[k], at, pickle(bytes[k], sample[k], true)};
        at += entry[k].bytes;
    }
    for (unsigned k = 0; k < SAMPLES; k++, at += sizeof(int64_t))
        entry[SAMPLES + k] = (struct maq_peers_entry){LENGTHS, 0, sample[k], at, sizeof(int64_t)};
    fwrite(&head, sizeof head, 1, file);
    fwrite(entry, sizeof entry, 1, file);
    for (unsigned k = 0; k < SAMPLES; k++)
        fwrite(bytes[k], entry[k].bytes, 1, file);
    for (unsigned k = 0; k < SAMPLES; k++)
        fwrite(&(int64_t){length_of(sample[k])}, sizeof(int64_t), 1, file);
    assert_int_equal(fclose(file), 0);
}

static void test_recorded(void **state)
{
    char path[160];
    unsigned char want[ROOM], got[ROOM];
    int64_t x;
    snprintf(path, sizeof path, "%s/maquette-pattern-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    record(path);
    assert_true(vg_contributions_open(path));
    unlink(path);
    for (uint32_t i = 0; i < N; i += 9) {
        const size_t n = pickle(want, i, false);
        assert_true(vg_gather_guess_by_pattern(got, OBJECTS, N, i, ROOM));
        assert_memory_equal(got, want, n);
    }
    assert_false(vg_gather_guess_by_pattern(got, OBJECTS, N, 8, ROOM)); /* it has said it */
    assert_false(vg_gather_guess_by_pattern(got, OBJECTS, N, N, ROOM));
    assert_false(vg_gather_guess_by_pattern(got, 99, N, 9, ROOM));
    assert_true(vg_gather_guess_by_pattern(&x, LENGTHS, N, 5, sizeof x) && x == 44);  /* between 44 and 41 */
    assert_true(vg_gather_guess_by_pattern(&x, LENGTHS, N, 70, sizeof x) && x == 47); /* between 43 and 47 */
    assert_false(vg_gather_guess_by_pattern(&x, LENGTHS, N, 0, sizeof x));            /* nobody is before it */
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rank_pattern), cmocka_unit_test(test_said),
                                       cmocka_unit_test(test_kinds), cmocka_unit_test(test_any_bytes),
                                       cmocka_unit_test(test_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
