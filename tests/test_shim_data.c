/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_data.c - reductions over every element type, guesses about ranks that nobody ran, the file of contributions.
 */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/nccl/nccl.h"

/* --- reductions ------------------------------------------------------------------------------------------------------- */

#define REDUCE(type, code, op, a, b, wanted)                                                                           \
    do {                                                                                                               \
        type acc_ = (type)(a), x_ = (type)(b);                                                                         \
        vg_reduce(&acc_, &x_, 1, code, op);                                                                            \
        assert_true(acc_ == (type)(wanted));                                                                           \
    } while (0)

static void test_integers(void **state)
{
    (void)state;
    REDUCE(int8_t, MAQ_REC_I8, VG_NCCL_SUM, 127, 1, -128);
    REDUCE(int8_t, MAQ_REC_I8, VG_NCCL_MAX, -1, 1, 1);
    REDUCE(uint8_t, MAQ_REC_U8, VG_NCCL_MAX, 255, 1, 255);
    REDUCE(int32_t, MAQ_REC_I32, VG_NCCL_MIN, -5, 3, -5);
    REDUCE(uint32_t, MAQ_REC_U32, VG_NCCL_MIN, (uint32_t)-5, 3, 3);
    REDUCE(int64_t, MAQ_REC_I64, VG_NCCL_PROD, -3000000000, 2, -6000000000);
    REDUCE(uint64_t, MAQ_REC_U64, VG_NCCL_SUM, UINT64_MAX, 2, 1);
    int32_t x = -3, acc;
    vg_repeat(&acc, &x, 1, MAQ_REC_I32, VG_NCCL_SUM, 8192);
    assert_int_equal(acc, -3 * 8192);
    vg_repeat(&acc, &x, 1, MAQ_REC_I32, VG_NCCL_PROD, 5);
    assert_int_equal(acc, -243);
    vg_repeat(&acc, &x, 1, MAQ_REC_I32, VG_NCCL_MAX, 5);
    assert_int_equal(acc, -3);
    acc = -7;
    vg_reduced(&acc, 1, MAQ_REC_I32, VG_NCCL_AVG, 2);
    assert_int_equal(acc, -3);
}

static void test_reals(void **state)
{
    (void)state;
    REDUCE(float, MAQ_REC_F32, VG_NCCL_SUM, 0.1f, 0.2f, 0.1f + 0.2f);
    REDUCE(double, MAQ_REC_F64, VG_NCCL_PROD, 3, 0.5, 1.5);
    REDUCE(double, MAQ_REC_F64, VG_NCCL_MIN, 3, -INFINITY, -INFINITY);
    /* 1 + 1, 1 + 2^-8 rounds to even, largest + itself */
    REDUCE(uint16_t, MAQ_REC_BF16, VG_NCCL_SUM, 0x3f80, 0x3f80, 0x4000);
    REDUCE(uint16_t, MAQ_REC_BF16, VG_NCCL_SUM, 0x3f80, 0x3b80, 0x3f80);
    REDUCE(uint16_t, MAQ_REC_BF16, VG_NCCL_SUM, 0x3f81, 0x3b80, 0x3f82);
    REDUCE(uint16_t, MAQ_REC_F16, VG_NCCL_SUM, 0x7bff, 0x7bff, 0x7c00);
    REDUCE(uint16_t, MAQ_REC_F16, VG_NCCL_PROD, 0x0001, 0x3800, 0x0000); /* half of the smallest: to even */
    REDUCE(uint16_t, MAQ_REC_F16, VG_NCCL_SUM, 0x03ff, 0x0001, 0x0400);  /* subnormals carry into normals */
    REDUCE(uint8_t, MAQ_REC_F8E4M3, VG_NCCL_SUM, 0x7e, 0x08, 0x7e);      /* 448 + 2^-6 */
    REDUCE(uint8_t, MAQ_REC_F8E4M3, VG_NCCL_SUM, 0x7e, 0x7e, 0x7f);      /* no infinity: not a number */
    REDUCE(uint8_t, MAQ_REC_F8E5M2, VG_NCCL_SUM, 0x7b, 0x7b, 0x7c);
    REDUCE(uint8_t, MAQ_REC_F8E4M3, VG_NCCL_SUM, 0xb8, 0x38, 0x00); /* -1 + 1 */
}

/* Times one is the identity, for every code of every small format that is a number. */
static void test_formats(void **state)
{
    (void)state;
    static const struct {
        unsigned type, one, infinite, mask;
    } f[] = {{MAQ_REC_F16, 0x3c00, 0x7c00, 0x7fff},
             {MAQ_REC_BF16, 0x3f80, 0x7f80, 0x7fff},
             {MAQ_REC_F8E4M3, 0x38, 0x7e, 0x7f},
             {MAQ_REC_F8E5M2, 0x3c, 0x7c, 0x7f}};
    for (size_t i = 0; i < 4; i++)
        for (uint32_t code = 0; code <= f[i].mask * 2 + 1; code++) {
            uint16_t acc = (uint16_t)code, one = (uint16_t)f[i].one;
            vg_reduce(&acc, &one, 1, f[i].type, VG_NCCL_PROD);
            if ((code & f[i].mask) <= f[i].infinite)
                assert_int_equal(acc, code);
            else
                assert_true((acc & f[i].mask) > f[i].infinite);
        }
}

/* --- guesses ---------------------------------------------------------------------------------------------------------- */

#define N 64

/* What is guessed of f when those in `known` and oneself have said it. */
static void guessed(uint32_t *all, uint32_t (*f)(uint32_t), uint32_t me, const uint32_t *known, uint32_t n_known)
{
    unsigned char have[N] = {0};
    memset(all, 0, N * sizeof *all);
    for (uint32_t i = 0; i < n_known; i++) {
        have[known[i]] = 1;
        all[known[i]] = f(known[i]);
    }
    all[me] = f(me);
    vg_assumed_contributions(all, have, N, me, NULL, sizeof *all, false);
}

static uint32_t same(uint32_t i)
{
    return 42 + 0 * i;
}
static uint32_t own(uint32_t i)
{
    return i;
}
static uint32_t backwards(uint32_t i)
{
    return 1000 - 2 * i;
}
static uint32_t tensor_group(uint32_t i)
{
    return i / 8;
}
static uint32_t stage(uint32_t i)
{
    return i / 16 % 4;
}
static uint32_t odd(uint32_t i)
{
    return (uint32_t)maq_rec_mix(i, 1);
}

static void test_patterns(void **state)
{
    (void)state;
    static const uint32_t known[] = {0, 17, 35, 63};
    uint32_t (*const f[])(uint32_t) = {same, own, backwards, tensor_group, stage};
    for (size_t k = 0; k < sizeof f / sizeof *f; k++) {
        uint32_t all[N];
        guessed(all, f[k], 8, known, 4);
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(all[i], f[k](i));
    }
    uint32_t all[N];
    guessed(all, odd, 8, known, 4); /* no pattern: what is known stays, the rest is one's own */
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(all[i], i == 0 || i == 17 || i == 35 || i == 63 ? odd(i) : odd(8));
    guessed(all, own, 8, known, 1); /* two are no pattern */
    assert_int_equal(all[9], 8);
}

/* A guess that says it is steady stays as it is when members say what was guessed of them. */
static void test_steady_guesses(void **state)
{
    enum { MOST = 96, WORDS = 2 };
    static const uint32_t sizes[] = {24, 64, 96};
    unsigned steady = 0, open = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint32_t n = sizes[seed % 3], all[MOST][WORDS] = {{0}}, again[MOST][WORDS],
                 me = (uint32_t)(maq_rec_mix(seed, 1) % n);
        uint32_t a = 1u << maq_rec_mix(seed, 2) % 4, b = 1u << (1 + maq_rec_mix(seed, 3) % 3);
        unsigned char have[MOST] = {0}, more[MOST];
        for (uint32_t i = 0; i < n; i++) { /* a digit, and a sum of two */
            bool divides = i > 0 && n % i == 0;
            have[i] = i == 0 || (divides && maq_rec_mix(seed, 4) % 4 != 0) || maq_rec_mix(seed, 100 + i) % 24 == 0;
            uint32_t said[WORDS] = {7 + 3 * (i / a % b), i % a + 5 * (i / (a * b))};
            if (have[i] || i == me)
                memcpy(all[i], said, sizeof said);
        }
        memcpy(again, all, sizeof all);
        if (!vg_assumed_contributions(all, have, n, me, NULL, sizeof *all, true)) {
            open++;
            continue;
        }
        steady++;
        memcpy(more, have, sizeof more);
        for (uint32_t i = 0; i < n; i++)
            if (maq_rec_mix(seed, 1000 + i) % 16 == 0) {
                more[i] = 1;
                memcpy(again[i], all[i], sizeof *all);
            }
        vg_assumed_contributions(again, more, n, me, NULL, sizeof *all, true);
        for (uint32_t i = 0; i < n; i++)
            assert_memory_equal(again[i], all[i], sizeof *all);
    }
    assert_true(steady > 500 && open > 500);
}

/* Groups of 64 ranks whose colors are hashes: 16 data groups of stride 4 in 4 stages, as PyTorch splits them, one at a time. */
static void test_hashed_colors(void **state)
{
    (void)state;
    uint32_t all[N][2] = {{0}};
    unsigned char have[N] = {0};
    static const uint32_t known[] = {1, 5, 13, 0, 16, 17, 63}; /* three members; four who are not */
    for (unsigned i = 0; i < 7; i++) {
        bool member = known[i] % 4 == 1 && known[i] < 16;
        have[known[i]] = 1;
        all[known[i]][0] = member ? 0x12345678 : UINT32_MAX;
        all[known[i]][1] = member ? known[i] / 4 : 0;
    }
    vg_assumed_contributions(all, have, N, 5, NULL, sizeof *all, true);
    for (uint32_t i = 0; i < N; i++) {
        bool member = i % 4 == 1 && i < 16;
        assert_int_equal(all[i][0], member ? 0x12345678 : UINT32_MAX);
        assert_int_equal(all[i][1], member ? i / 4 : 0);
    }
}

/* A rank that knows nobody: PyTorch's color is the rank of the first member, its key the place. */
static void test_named_groups(void **state)
{
    (void)state;
    static const struct {
        uint32_t me, color, key, first, stride, members;
    } cases[] = {
        {21, 5, 1, 5, 16, 4},  /* 4 groups of stride 16 */
        {21, 20, 1, 20, 1, 4}, /* blocks of 4 */
        {20, 20, 0, 20, 1, 4}, /* the first of a block */
        {9, 1, 2, 1, 4, 16},   /* stride 4; they may be as many as fit */
        {0, 0, 0, 0, 1, 64},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint32_t all[N][2] = {{0}};
        unsigned char have[N] = {0};
        all[cases[c].me][0] = cases[c].color;
        all[cases[c].me][1] = cases[c].key;
        vg_assumed_contributions(all, have, N, cases[c].me, NULL, sizeof *all, true);
        for (uint32_t i = 0; i < N; i++) {
            uint32_t key = (i - cases[c].first) / cases[c].stride;
            bool member = i >= cases[c].first && (i - cases[c].first) % cases[c].stride == 0 && key < cases[c].members;
            assert_int_equal(all[i][0], member ? cases[c].color : UINT32_MAX);
            assert_int_equal(all[i][1], member ? key : 0);
        }
    }
}

static uint64_t hashed(uint64_t hash, const char *text)
{
    for (const char *at = text; *at; at++)
        hash = (hash * 33) ^ (unsigned char)*at;
    return hash;
}

/* Without a card a node has one rank: everybody else is on another host. */
static void hosts(const char *suffix)
{
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    name[strcspn(name, ".")] = '\0';
    uint64_t hash = hashed(hashed(5381, name), suffix), all[N] = {0};
    unsigned char have[N] = {0};
    all[3] = hash;
    vg_assumed_contributions(all, have, N, 3, NULL, sizeof *all, false);
    assert_true(all[3] == hash);
    for (uint32_t i = 4; i < N; i++) {
        char other[VG_HOST_NAME];
        vg_host_name(other, i - 3);
        assert_true(all[i] == hashed(hashed(5381, other), suffix));
    }
}

static void test_hosts(void **state)
{
    (void)state;
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        assert_non_null(fgets(boot, sizeof boot, f));
        boot[strcspn(boot, "\n")] = '\0';
        fclose(f);
    }
    hosts("");
    hosts(boot);
}

/* --- contributions ---------------------------------------------------------------------------------------------------- */

static char path[128];

static void write_file(uint64_t n, uint64_t at, const char *magic)
{
    struct maq_peers_head head = {.n_entries = n};
    memcpy(head.magic, magic, 8);
    struct maq_peers_entry entries[3] = {{.channel = 5, .seq = 0, .rank = 1, .at = at, .bytes = 4},
                                         {.channel = 5, .seq = 0, .rank = 9, .at = at + 4, .bytes = 4},
                                         {.channel = 7, .seq = 2, .rank = 0, .at = at, .bytes = 8}};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&head, sizeof head, 1, f);
    fwrite(entries, sizeof entries, 1, f);
    fwrite("onetwo!!", 8, 1, f);
    fclose(f);
}

static void test_contributions(void **state)
{
    (void)state;
    uint64_t data = sizeof(struct maq_peers_head) + 3 * sizeof(struct maq_peers_entry);
    snprintf(path, sizeof path, "%s/maquette-peers-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    write_file(3, data, MAQ_PEERS_MAGIC);
    assert_true(vg_contributions_open(path));
    assert_memory_equal(vg_contribution(5, 0, 1, 4), "onet", 4);
    assert_memory_equal(vg_contribution(5, 0, 9, 4), "wo!!", 4);
    assert_memory_equal(vg_contribution(7, 2, 0, 8), "onetwo!!", 8);
    assert_null(vg_contribution(5, 0, 1, 8)); /* another size: another place in the program */
    assert_null(vg_contribution(5, 1, 1, 4));
    assert_null(vg_contribution(5, 0, 2, 4));
    assert_null(vg_contribution(6, 0, 1, 4));
    write_file(3, UINT64_MAX - 2, MAQ_PEERS_MAGIC); /* points out of the file */
    assert_true(vg_contributions_open(path));
    assert_null(vg_contribution(5, 0, 1, 4));
    assert_null(vg_contribution(7, 2, 0, 8));
    write_file(4, data, MAQ_PEERS_MAGIC);
    assert_false(vg_contributions_open(path));
    write_file(3, data, "maqpeerx");
    assert_false(vg_contributions_open(path));
    unlink(path);
    assert_false(vg_contributions_open(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),       cmocka_unit_test(test_reals),
        cmocka_unit_test(test_formats),        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_steady_guesses), cmocka_unit_test(test_hashed_colors),
        cmocka_unit_test(test_named_groups),   cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_contributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
