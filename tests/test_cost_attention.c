/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cost_attention.c - attention as training calls it, against published times of single kernels, and what must hold between types,
 * masks and devices.
 *
 * The times are cuDNN's own (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results, MIT: cuDNN 9.19 on an H200, 9.22 on GB200 and
 * GB300, 2026). On Blackwell its kernels in 16 bits take 0.7 to 0.85 of what is predicted, which is what training runs of 2025 are
 * predicted best with (docs/cost-model.md); so types, masks and devices are held against one another, and times to a wider band.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "cost/analytical/analytical.h"
#include "device_of.h"

enum mask { CAUSAL, FULL, WINDOW_128, WINDOW_1024 };
enum type { BF16, FP8, MXFP8, TYPES };

static struct maq_op attention(bool backward, enum type type, enum mask mask, int64_t seq, const int64_t shape[5])
{
    double window = mask == WINDOW_128 ? 128 : 1024, s = (double)seq;
    struct maq_op op = {.kind = backward ? MAQ_OP_ATTENTION_BWD : MAQ_OP_ATTENTION,
                        .dtype = type == BF16 ? MAQ_BF16 : MAQ_FP8,
                        .flags = (uint8_t)(type == MXFP8 ? MAQ_OP_MX : 0),
                        .d = {shape[0] * seq, (seq + 1) / 2, shape[1], shape[2], shape[3], shape[4]}};
    if (mask == CAUSAL)
        op.flags |= MAQ_OP_CAUSAL;
    else if (mask == FULL)
        op.d[1] = seq;
    else {
        op.flags |= MAQ_OP_WINDOW;
        op.queries = (uint32_t)seq;
        op.d[1] = (int64_t)(window * (s - window) / s + (window + 1) / 2 * window / s + 0.5);
    }
    return op;
}

static double milliseconds(const char *device, const struct maq_op *op)
{
    const struct maq_device d = device_of(device);
    return maq_cost_op(&(struct maq_costs){.burst = true}, op, &d).seconds * 1e3;
}

/* sequences, heads, heads of keys, width of queries and of values */
static const int64_t llama[] = {2, 64, 8, 128, 128}, llama_one[] = {1, 64, 8, 128, 128},
                     deepseek[] = {2, 128, 128, 192, 128}, narrow[] = {2, 128, 128, 64, 64},
                     narrow_shared[] = {2, 64, 8, 64, 64};

static const struct published {
    const char *device;
    const int64_t *shape;
    enum mask mask;
    int64_t seq;
    double ms[2][TYPES]; /* forward, backward; 0 = none */
} published[] = {
    {"gb200", llama, CAUSAL, 4096, {{0.391, 0.305, 0.326}, {1.198, 1.167, 1.305}}},
    {"gb200", llama, CAUSAL, 16384, {{5.150, 4.084, 4.400}, {16.554, 13.476, 15.315}}},
    {"gb200", deepseek, CAUSAL, 4096, {{0.977, 0.656, 0.714}, {3.383, 2.112, 2.620}}},
    {"gb200", deepseek, CAUSAL, 16384, {{13.103, 8.845, 9.337}, {50.424, 29.050, 36.835}}},
    {"gb200", narrow, WINDOW_128, 4096, {{0.210, 0.195, 0.210}, {0.465, 1.731, 2.080}}},
    {"gb200", narrow, WINDOW_128, 16384, {{0.822, 0.766, 0.826}, {1.818, 23.231, 27.940}}},
    {"gb300", llama, CAUSAL, 4096, {{0.323, 0, 0}, {1.101, 0, 0}}},
    {"gb300", llama, CAUSAL, 16384, {{4.593, 0, 0}, {14.593, 10.805, 0}}},
    {"gb300", deepseek, CAUSAL, 16384, {{11.178, 0, 0}, {43.911, 23.257, 0}}},
    {"gb300", narrow, WINDOW_128, 16384, {{0.790, 0, 0}, {1.712, 19.354, 0}}},
    {"h200", llama_one, CAUSAL, 8192, {{1.708, 1.141, 0}, {5.083, 6.392, 0}}},
    {"h200", llama_one, FULL, 8192, {{3.182, 2.149, 0}, {9.262, 8.637, 0}}},
    {"h200", narrow_shared, WINDOW_1024, 8192, {{0.738, 0, 0}, {2.149, 0, 0}}},
};

static double of(const struct published *p, int backward, enum type type)
{
    struct maq_op op = attention(backward, type, p->mask, p->seq, p->shape);
    return milliseconds(p->device, &op);
}

/* 16 bits within 0.9 and 1.45 of the published time. */
static void test_published_times(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(published); i++)
        for (int back = 0; back < 2; back++) {
            double ratio = of(&published[i], back, BF16) / published[i].ms[back][BF16];
            if (ratio < 0.9 || ratio > 1.45)
                fail_msg("row %zu, %s: %.2f of the published time", i, back ? "backward" : "forward", ratio);
        }
}

/* 8 bits over 16, of the same kernel. Causal backward on Hopper, whose published ratio goes from 0.94 to 1.57 with the sequence, by more. */
static void test_published_types(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(published); i++)
        for (int back = 0; back < 2; back++)
            for (int type = FP8; type < TYPES; type++) {
                const struct published *p = &published[i];
                bool hopper = strcmp(p->device, "h200") == 0 && back && p->mask == CAUSAL;
                if (p->ms[back][type] <= 0)
                    continue;
                double want = p->ms[back][type] / p->ms[back][BF16],
                       got = of(p, back, (enum type)type) / of(p, back, BF16);
                if (fabs(log(got / want)) > log(hopper ? 1.3 : 1.25))
                    fail_msg("row %zu, %s: %.2f of the time in 16 bits, published %.2f", i,
                             back ? "backward" : "forward", got, want);
            }
}

/* GB300 over GB200, of the same kernel: its exponentials take half as long. */
static void test_published_exponentials(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(published); i++) {
        struct published p = published[i], other;
        if (strcmp(p.device, "gb300") != 0)
            continue;
        for (size_t k = 0; k < MAQ_COUNT(published); k++)
            if (strcmp(published[k].device, "gb200") == 0 && published[k].shape == p.shape && published[k].seq == p.seq)
                other = published[k];
        for (int back = 0; back < 2; back++) {
            double want = p.ms[back][BF16] / other.ms[back][BF16], got = of(&p, back, BF16) / of(&other, back, BF16);
            if (fabs(got - want) > 0.13)
                fail_msg("row %zu, %s: %.2f of the time on GB200, published %.2f", i, back ? "backward" : "forward",
                         got, want);
        }
    }
}

/* Attention without a mask has twice the scores of causal attention, and no block on a diagonal. */
static void test_full_attention(void **unused)
{
    (void)unused;
    static const char *const devices[] = {"a100-80gb", "h100-sxm", "h200", "b200", "gb200", "gb300", "l40s"};
    for (size_t i = 0; i < MAQ_COUNT(devices); i++)
        for (int64_t seq = 2048; seq <= 32768; seq *= 2)
            for (int back = 0; back < 2; back++) {
                struct maq_op causal = attention(back, BF16, CAUSAL, seq, llama),
                              full = attention(back, BF16, FULL, seq, llama);
                double ratio = milliseconds(devices[i], &full) / milliseconds(devices[i], &causal);
                if (ratio < 1.4 || ratio > 2.3)
                    fail_msg("%s, %lld tokens, %s: %.2f times as long", devices[i], (long long)seq,
                             back ? "backward" : "forward", ratio);
            }
}

/* A window makes attention linear in the sequence; backward in 8 bits it does not. */
static void test_windows(void **unused)
{
    (void)unused;
    static const double longer[2][TYPES] = {{4, 4, 4}, {4, 16, 16}};
    for (int back = 0; back < 2; back++)
        for (int type = 0; type < TYPES; type++) {
            struct maq_op one = attention(back, (enum type)type, WINDOW_128, 8192, narrow),
                          four = attention(back, (enum type)type, WINDOW_128, 32768, narrow);
            double ratio = milliseconds("b200", &four) / milliseconds("b200", &one);
            if (fabs(ratio / longer[back][type] - 1) > 0.15)
                fail_msg("type %d, %s: %.2f times as long", type, back ? "backward" : "forward", ratio);
        }
}

/* Twice the exponentials never take longer, and never take half of it away. */
static void test_exponentials(void **unused)
{
    (void)unused;
    struct maq_device usual = device_of("b300"), twice = usual;
    assert_int_equal(usual.exponentials, 32);
    usual.exponentials = 0;
    const struct maq_costs costs = {.burst = true};
    for (int back = 0; back < 2; back++)
        for (int type = 0; type < TYPES; type++) {
            struct maq_op op = attention(back, (enum type)type, CAUSAL, 8192, llama);
            double a = maq_cost_op(&costs, &op, &usual).seconds, b = maq_cost_op(&costs, &op, &twice).seconds;
            assert_true(b < a && b > 0.5 * a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_times),
        cmocka_unit_test(test_published_types),
        cmocka_unit_test(test_published_exponentials),
        cmocka_unit_test(test_full_attention),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_exponentials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
