/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_fitted.c - fitted tables: the surface between knots, which table answers, and what a step of training makes of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cost/analytical/analytical.h"
#include "cost/analytical/composite.h"
#include "cost/fitted/table.h"
#include "device_of.h"

static struct maq_op gemm(int64_t m, int64_t n, int64_t k)
{
    return (struct maq_op){.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {m, n, k}};
}

static struct maq_op prefill(int64_t queries, int64_t sequences, int64_t heads, int64_t kv_heads)
{
    return (struct maq_op){.kind = MAQ_OP_ATTENTION,
                           .dtype = MAQ_BF16,
                           .flags = MAQ_OP_CAUSAL,
                           .d = {queries * sequences, queries / 2 + 1, heads, kv_heads, 128, 128}};
}

static const struct maq_costs burst = {.library = MAQ_LIBRARY_VLLM, .burst = true};

static double seconds(const struct maq_costs *costs, struct maq_op op, const struct maq_device *d)
{
    struct maq_cost cost = maq_cost_op(costs, &op, d);
    assert_true(isfinite(cost.seconds) && cost.seconds >= 0.0);
    assert_true(cost.error >= 0.0f && cost.error < 1.0f);
    return cost.seconds;
}

/* A surface that is linear in x and y times y comes back exactly, whatever the cell; beyond the knots it stays. */
static void test_surface_is_multilinear(void **state)
{
    static const float knots[] = {0, 1, 4, 2, 3, 0, 0};
    unsigned char values[6];
    struct maq_fit_table t = {.n = {3, 2, 1, 1}, .knots = knots, .values = values, .step = 0.5f, .center = 0.25f};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            values[2 * i + j] = (unsigned char)(128 + 2 * (int)knots[i] + 3 * (int)knots[3 + j]);
    for (double x = -2.0; x <= 6.0; x += 0.25)
        for (double y = 1.0; y <= 4.0; y += 0.25) {
            double in_x = fmin(fmax(x, 0.0), 4.0), in_y = fmin(fmax(y, 2.0), 3.0), outside;
            double s = maq__fit_surface(&t, (double[]){x, y, 9.0, -9.0}, &outside);
            assert_true(fabs(s - (0.25 + 0.5 * (2.0 * in_x + 3.0 * in_y))) < 1e-12);
            /* an axis of one knot does not know what is far */
            assert_true(fabs(outside - fmax(fmax(fabs(x - in_x), fabs(y - in_y)), 9.0)) < 1e-12);
        }
}

static void test_tables_are_well_formed(void **state)
{
    (void)state;
    assert_true(maq__fit_tables_count > 500);
    for (size_t i = 0; i < maq__fit_tables_count; i++) {
        const struct maq_fit_table *t = &maq__fit_tables[i];
        const float *knots = t->knots;
        assert_true(t->key.family < MAQ_FIT_FAMILY_COUNT && t->key.dtype < MAQ_DTYPE_COUNT);
        assert_true(t->step > 0.0f && t->error >= 0.0f && t->error_p80 >= t->error && t->rows > 0);
        for (int a = 0; a < MAQ_FIT_AXES; a++) {
            assert_true(t->n[a] >= 1);
            for (int k = 1; k < t->n[a]; k++)
                assert_true(knots[k] > knots[k - 1]);
            knots += t->n[a];
        }
        assert_ptr_equal(maq__fit_find(t->device, (enum maq_library)t->library, &t->key, t->kernel), t);
        const struct maq_fit_table *usual = maq__fit_find(t->device, (enum maq_library)t->library, &t->key, NULL);
        assert_true(usual && usual->rows >= t->rows);
    }
    for (size_t i = 0; i < maq__fit_devices_count; i++)
        assert_true(maq__fit_devices[i].burst_flops > 0.5 * maq__fit_devices[i].device.peak_flops[MAQ_BF16]);
}

/* No prediction is better than the roofline, at any size, inside the tables or far outside. */
static void test_never_better_than_the_roofline(void **state)
{
    static const char *const devices[] = {"a100-80gb", "l40s", "h100-sxm", "h200", "b200", "gb200", "h20", "b300"};
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        struct maq_device d = device_of(devices[i]);
        for (int64_t m = 1; m <= 1 << 22; m *= 7)
            for (int64_t n = 16; n <= 1 << 18; n *= 5)
                for (int64_t k = 16; k <= 1 << 18; k *= 11) {
                    double t = seconds(&burst, gemm(m, n, k), &d);
                    assert_true(t >= 2.0 * (double)m * (double)n * (double)k / d.peak_flops[MAQ_BF16] * (1 - 1e-9));
                }
        for (int64_t s = 1; s <= 1 << 20; s *= 3)
            for (int64_t b = 1; b <= 4096; b *= 8) {
                struct maq_op op = prefill(s, b, 32, 8);
                assert_true(seconds(&burst, op, &d) >=
                            maq_op_work(&op).matrix_flop / d.peak_flops[MAQ_BF16] * (1 - 1e-9));
            }
    }
}

/*
 * Twice as much of a dimension is not faster. Real libraries break this where they change kernels from one size to the next, and
 * tables follow them: by 5 % in less than 1 of 100 doublings, never by half.
 */
static void test_more_work_is_hardly_ever_faster(void **state)
{
    static const char *const devices[] = {"a100-80gb", "l40s", "h100-sxm", "h200", "b200", "gb200"};
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        struct maq_device d = device_of(devices[i]);
        unsigned all = 0, faster = 0;
        for (int axis = 0; axis < 3; axis++)
            for (int64_t x = 64; x <= 32768; x *= 2)
                for (int64_t y = 64; y <= 32768; y *= 2)
                    for (int64_t z = 512; z <= 32768; z *= 2) {
                        struct maq_op op = gemm(0, 0, 0);
                        op.d[axis] = z;
                        op.d[(axis + 1) % 3] = x;
                        op.d[(axis + 2) % 3] = y;
                        double once = seconds(NULL, op, &d);
                        op.d[axis] *= 2;
                        double twice = seconds(NULL, op, &d);
                        all++;
                        faster += twice < 0.95 * once;
                        assert_true(twice > 0.5 * once);
                    }
        assert_true(faster * 100 < all);
    }
}

static void test_who_answers(void **state)
{
    (void)state;
    struct maq_device h100 = device_of("h100-sxm"), h20 = device_of("h20"), mi300x = device_of("mi300x");
    struct maq_op op = gemm(4096, 4096, 4096), half = op;
    struct maq_costs only = burst;
    half.dtype = MAQ_FP16;
    assert_int_equal(maq_cost_op(&burst, &op, &h100).provider, MAQ_PROVIDER_FITTED);
    assert_int_equal(maq_cost_op(&burst, &half, &h100).provider, MAQ_PROVIDER_FITTED);
    assert_int_equal(maq_cost_op(&burst, &op, &h20).provider, MAQ_PROVIDER_FITTED); /* by a relative */
    assert_true(maq_cost_op(&burst, &op, &h20).error > maq_cost_op(&burst, &op, &h100).error);
    assert_int_equal(maq_cost_op(&burst, &op, &mi300x).provider, MAQ_PROVIDER_ANALYTICAL);
    only.best = MAQ_PROVIDER_ANALYTICAL;
    assert_int_equal(maq_cost_op(&only, &op, &h100).provider, MAQ_PROVIDER_ANALYTICAL);
    only = (struct maq_costs){.library = MAQ_LIBRARY_VLLM, .burst = true, .leave_device_out = true};
    assert_int_equal(maq_cost_op(&only, &op, &h100).provider, MAQ_PROVIDER_FITTED);
    struct maq_device l40s = device_of("l40s"); /* the only one of its generation that has tables */
    assert_int_equal(maq_cost_op(&only, &op, &l40s).provider, MAQ_PROVIDER_FITTED);
    assert_true(maq_cost_op(&only, &op, &l40s).error > maq_cost_op(&only, &op, &h100).error);
    only.library = MAQ_LIBRARY_TRAINING;
    assert_int_equal(maq_cost_op(&only, &op, &l40s).provider, MAQ_PROVIDER_ANALYTICAL);
    only.library = MAQ_LIBRARY_VLLM;
    struct maq_op same = op; /* H100 and H200 differ in memory only, and it does not bound this product */
    assert_true(fabs(seconds(&only, same, &h100) / seconds(&burst, same, &h100) - 1.0) < 0.1);
}

/* A relative with the same arithmetic and other memory: what memory bounds scales with it, what arithmetic bounds does not. */
static void test_relative_scales_with_what_bounds(void **state)
{
    (void)state;
    struct maq_device h200 = device_of("h200"), half = h200;
    half.name = "half";
    half.mem_bps *= 0.5;
    struct maq_op decode = {
        .kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .queries = 1, .d = {256, 32768, 32, 8, 128, 128}};
    double slower = seconds(&burst, decode, &half) / seconds(&burst, decode, &h200);
    assert_true(slower > 1.5 && slower <= 2.0 + 1e-9);
    double same = seconds(&burst, gemm(8192, 8192, 8192), &half) / seconds(&burst, gemm(8192, 8192, 8192), &h200);
    assert_true(same > 0.85 && same < 1.15); /* two devices, two measurements of one chip */
}

/* The power limit slows large products, and never makes anything faster; memory-bound ones keep their time. */
static void test_training_is_not_faster_than_a_burst(void **state)
{
    static const struct maq_costs training = {.library = MAQ_LIBRARY_TRAINING};
    static const struct maq_costs loop = {.burst = true};
    (void)state;
    struct maq_device d = device_of("h100-sxm");
    for (int64_t m = 1; m <= 1 << 17; m *= 2)
        for (int64_t n = 512; n <= 1 << 15; n *= 4)
            assert_true(seconds(&training, gemm(m, n, 4096), &d) >= seconds(&loop, gemm(m, n, 4096), &d) * (1 - 1e-12));
    double large = seconds(&training, gemm(8192, 8192, 8192), &d) / seconds(&loop, gemm(8192, 8192, 8192), &d);
    assert_true(large > 1.02 && large < 1.35);
}

static double narrow_burst(const struct maq_device *d)
{
    for (size_t i = 0; i < maq__fit_devices_count; i++)
        if (strcmp(maq__fit_devices[i].device.name, d->name) == 0)
            return maq__fit_devices[i].burst_narrow_flops;
    return 0.0;
}

/*
 * Products in 8 bits with one scale per tensor: TensorRT-LLM's row less what it does to the first operand, which its tables have alone. The
 * rest has one rate whatever n is, where the rows have not. In training the power limit holds it back by figures of its own, and sums
 * that are carried over into full precision cost the generation's share.
 */
static void test_tensor_scales(void **state)
{
    static const struct maq_costs training = {.library = MAQ_LIBRARY_TRAINING};
    static const struct maq_costs loop = {.library = MAQ_LIBRARY_TRAINING, .burst = true};
    static const struct maq_costs rows = {.library = MAQ_LIBRARY_TRTLLM, .burst = true, .whole_rows = true};
    static const int64_t widths[] = {4096, 12288, 28672};
    (void)state;
    struct maq_device d = device_of("h100-sxm"), b200 = device_of("b200");
    double least = INFINITY, most = 0.0, least_row = INFINITY, most_row = 0.0;
    for (int i = 0; i < 3; i++) {
        struct maq_op op = gemm(8192, widths[i], 12288), wide = op;
        op.dtype = MAQ_FP8;
        struct maq_op largest = {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_BF16, .d = {8192 * 12288, 2}};
        struct maq_op convert = {.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {8192, 12288}};
        double net = seconds(&rows, op, &d) - seconds(&rows, largest, &d) - seconds(&rows, convert, &d);
        double flop = maq_op_work(&op).matrix_flop, best = narrow_burst(&d);
        assert_true(fabs(seconds(&loop, op, &d) / net - 1.0) < 1e-9);
        assert_int_equal(maq_cost_op(&training, &op, &d).provider, MAQ_PROVIDER_FITTED);
        double slower = cbrt(flop / net / best) / (d.sustained_flops[MAQ_FP8] / best * MAQ_CONTINUOUS_SHARE);
        assert_true(slower > 1.0 && fabs(seconds(&training, op, &d) / (net * slower) - 1.0) < 1e-9);
        least = fmin(least, flop / net);
        most = fmax(most, flop / net);
        least_row = fmin(least_row, flop / seconds(&rows, op, &d));
        most_row = fmax(most_row, flop / seconds(&rows, op, &d));

        wide = op;
        wide.flags = MAQ_OP_PROMOTED;
        double share = maq__kernel_traits(&d)->promoted_share;
        assert_true(share > 0.5 && share < 1.0);
        assert_true(fabs(seconds(&loop, wide, &d) / (net / share) - 1.0) < 1e-9);
        wide.flags = MAQ_OP_BLOCKS; /* nobody's table has a training framework's */
        assert_int_equal(maq_cost_op(&training, &wide, &d).provider, MAQ_PROVIDER_ANALYTICAL);
        wide.flags = MAQ_OP_FINE_SCALES; /* a scale for every row: CUTLASS's kernels, as in SGLang */
        assert_int_equal(maq_cost_op(&training, &wide, &d).provider, MAQ_PROVIDER_FITTED);
        assert_true(seconds(&loop, wide, &d) > net);
        assert_int_equal(maq_cost_op(&training, &wide, &b200).provider, MAQ_PROVIDER_ANALYTICAL);
        assert_int_equal(maq_cost_op(&training, &op, &b200).provider, MAQ_PROVIDER_ANALYTICAL); /* no free loops */
    }
    assert_true(most / least < 1.10 && most_row / least_row > 1.25); /* surfaces are good to a few percent */
}

/*
 * Rows of products in 8 and in 4 bits time a whole Linear: less the conversion of its input they are the product, whoever's they are. SGLang's
 * conversion is vLLM's kernel.
 */
static void test_rows_hold_the_conversion(void **state)
{
    static const struct {
        enum maq_library rows, conversion;
        enum maq_dtype dtype;
        unsigned flags;
    } kinds[] = {{MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_VLLM, MAQ_FP8, 0},
                 {MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_VLLM, MAQ_FP8, MAQ_OP_BLOCKS},
                 {MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_VLLM, MAQ_FP4, 0},
                 {MAQ_LIBRARY_VLLM, MAQ_LIBRARY_VLLM, MAQ_FP4, 0},
                 {MAQ_LIBRARY_TRTLLM, MAQ_LIBRARY_TRTLLM, MAQ_FP8, MAQ_OP_BLOCKS}};
    (void)state;
    struct maq_device b200 = device_of("b200");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int64_t m = 1; m <= 16384; m *= 4) {
            const struct maq_costs row = {.library = kinds[i].rows, .burst = true, .whole_rows = true},
                                   alone = {.library = kinds[i].rows, .burst = true},
                                   conversion = {.library = kinds[i].conversion, .burst = true};
            struct maq_op op = gemm(m, 4096, 4096),
                          convert = {.kind = MAQ_OP_QUANTIZE, .dtype = (uint8_t)kinds[i].dtype, .d = {m, 4096, 1}};
            op.dtype = (uint8_t)kinds[i].dtype;
            op.flags = (uint8_t)kinds[i].flags;
            double both = seconds(&alone, op, &b200) + seconds(&conversion, convert, &b200),
                   whole = seconds(&row, op, &b200);
            assert_true(fabs(both / whole - 1) < 1e-9);
            op.flags |= MAQ_OP_WEIGHT8; /* its inputs stay in 16 bits */
            assert_true(seconds(&row, op, &b200) == seconds(&alone, op, &b200));
        }
}

/*
 * A loop over a few small weights, or over one layer's experts or keys, finds them in the cache; a pass through a model does not, and takes longer
 * by what memory is slower. Where the loop was larger than the cache it found nothing there either.
 */
static void test_cold_operands(void **state)
{
    static const struct maq_costs loop = {.library = MAQ_LIBRARY_VLLM, .burst = true},
                                  run = {.library = MAQ_LIBRARY_VLLM, .short_run = true};
    const struct maq_op small = gemm(16, 512, 4096), large = gemm(16, 32768, 8192),
                        experts = {.kind = MAQ_OP_EXPERTS,
                                   .dtype = MAQ_FP8,
                                   .flags = MAQ_OP_GATED | MAQ_OP_BLOCKS,
                                   .d = {4, 4096, 192, 4},
                                   .resident = 128},
                        keys = {
                            .kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .queries = 1, .d = {4, 2048, 8, 1, 128, 128}};
    (void)state;
    struct maq_device d = device_of("h200"), uncached = d;
    double per_byte = 1 / d.mem_bps - 1 / maq__fit_cache_bps(&d);
    assert_true(fabs((seconds(&run, small, &d) - seconds(&loop, small, &d)) / (512.0 * 4096 * 2 * per_byte) - 1) <
                0.01);
    assert_true(fabs((seconds(&run, experts, &d) - seconds(&loop, experts, &d)) /
                         (4 * 3.0 * 4096 * 192 * (1 + 4.0 / (128 * 128)) * per_byte) -
                     1) < 0.03);
    assert_true(fabs((seconds(&run, keys, &d) - seconds(&loop, keys, &d)) / (4 * 2048.0 * 2 * 128 * 2 * per_byte) - 1) <
                0.05);
    assert_true(seconds(&run, large, &d) < 1.02 * seconds(&loop, large, &d));
    uncached.l2_bytes = 0;
    assert_true(seconds(&run, small, &uncached) == seconds(&loop, small, &uncached));
}

/* A result in 4 bytes that is read as well takes longer than one in 2: at least by half of what the cache takes for the other 6. */
static void test_wide_results(void **state)
{
    static const struct maq_costs training = {.library = MAQ_LIBRARY_TRAINING};
    (void)state;
    struct maq_device d = device_of("h100-sxm");
    for (int64_t k = 1024; k <= 16384; k *= 4) {
        struct maq_op plain = gemm(8192, 8192, k), sum = plain;
        sum.flags = MAQ_OP_ACCUMULATE;
        double more = seconds(&training, sum, &d) - seconds(&training, plain, &d);
        double want = 0.5 * 6.0 * 8192.0 * 8192.0 / d.l2_bps;
        assert_true(more > want * (1 - 1e-9) && more < 8.0 * 8192 * 8192 / (0.5 * d.mem_bps));
    }
}

static struct maq_op attention_over(int64_t tokens, bool backward, unsigned flags)
{
    return (struct maq_op){.kind = backward ? MAQ_OP_ATTENTION_BWD : MAQ_OP_ATTENTION,
                           .dtype = MAQ_BF16,
                           .flags = (uint8_t)(MAQ_OP_CAUSAL | flags),
                           .d = {tokens, tokens / 2, 32, 32, 128, 128}};
}

/*
 * Attention without a table is held back by the power limit as products are: clock c s / u^(1/3), u its rate over the best product's. The
 * slower the kernel, the less; the lower the limit, the more; never below the clock of the best product.
 */
static void test_power_limit_holds_attention(void **state)
{
    static const struct maq_costs training = {.library = MAQ_LIBRARY_TRAINING, .best = MAQ_PROVIDER_ANALYTICAL};
    static const struct maq_costs loop = {.burst = true, .best = MAQ_PROVIDER_ANALYTICAL};
    (void)state;
    struct maq_device full = device_of("h100-sxm"), capped = full;
    capped.sustained_flops[MAQ_BF16] *= 0.85;
    for (int backward = 0; backward < 2; backward++) {
        struct maq_op fast = attention_over(16384, backward, 0), slow = attention_over(16384, backward, MAQ_OP_FLASH2);
        double a = seconds(&training, fast, &full) / seconds(&loop, fast, &full);
        double b = seconds(&training, slow, &full) / seconds(&loop, slow, &full);
        double rate = maq_op_work(&fast).matrix_flop / seconds(&loop, fast, &full);
        double best = 0.0;
        for (size_t i = 0; i < maq__fit_devices_count; i++)
            if (strcmp(maq__fit_devices[i].device.name, full.name) == 0)
                best = maq__fit_devices[i].burst_flops;
        assert_true(best > 0.0);
        double want = cbrt(rate / best) / (full.sustained_flops[MAQ_BF16] / best * MAQ_CONTINUOUS_SHARE);
        assert_true(fabs(a / want - 1.0) < 1e-9);
        assert_true(b >= 1.0 && a > b);
        struct maq_op short_one = attention_over(512, backward, 0);
        assert_true(seconds(&training, short_one, &full) / seconds(&loop, short_one, &full) < a);
        /* the capped device is nobody's by name, so that the nearest one's burst stands for its own */
        capped.name = "capped";
        assert_true(seconds(&training, slow, &capped) > 1.03 * seconds(&training, slow, &full));
        if (backward) /* forward its burst is bounded by what the device holds */
            assert_true(seconds(&training, fast, &capped) / seconds(&training, fast, &full) < 1.0 / 0.85 + 0.06);
    }
}

/* A board of the same die and power with another link costs what the measured one does, by its tables and beside them. */
static void test_same_silicon(void **state)
{
    static const struct maq_costs training = {.library = MAQ_LIBRARY_TRAINING};
    static const char *const pairs[][2] = {{"h100-sxm", "h800"}, {"a100-80gb", "a800-80gb"}};
    const struct maq_op ops[] = {gemm(8192, 4096, 4096),
                                 gemm(300, 512, 1000),
                                 prefill(4096, 2, 32, 8),
                                 attention_over(4096, 0, 0),
                                 attention_over(4096, 1, 0),
                                 attention_over(32768, 1, MAQ_OP_FLASH2),
                                 attention_over(1024, 0, MAQ_OP_FLASH2)};
    (void)state;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
            struct maq_device measured = device_of(pairs[p][0]), sold = device_of(pairs[p][1]);
            double apart = seconds(&training, ops[i], &sold) / seconds(&training, ops[i], &measured) - 1;
            if (!(fabs(apart) < 1e-9))
                fail_msg("%s, operator %zu: %.3g %% beside %s", sold.name, i, 100 * apart, measured.name);
        }
}

/*
 * Boards without tables, by an L40S's, whose ECC takes a 16th of its memory's rate and theirs none: vLLM 0.19 as casys-kaist/LLMServingSim profiled it
 * (perf/RTX4090 and RTXPRO6000, Llama 3.1 8B: gate and up of one row, which the memory bounds, and attention of prompts).
 */
static void test_boards_without_tables(void **state)
{
    (void)state;
    const struct maq_device geforce = device_of("rtx-4090"), l40s = device_of("l40s");
    const struct maq_device pro = device_of("rtx-pro-6000-server");
    assert_true(l40s.inline_ecc && !geforce.inline_ecc && !pro.inline_ecc);
    struct maq_op thin = gemm(1, 28672, 4096);
    double board = 235e6 / seconds(&burst, thin, &geforce) / geforce.mem_bps,
           server = 235e6 / seconds(&burst, thin, &l40s) / (15.0 / 16 * l40s.mem_bps);
    assert_true(fabs(board / server - 1) < 0.02);
    assert_true(fabs(seconds(&burst, thin, &geforce) / 247.3e-6 - 1) < 0.15);
    assert_true(fabs(seconds(&burst, prefill(2048, 1, 32, 8), &pro) / 172.6e-6 - 1) < 0.05);
    assert_true(fabs(seconds(&burst, prefill(1024, 1, 32, 8), &pro) / 61.1e-6 - 1) < 0.05);
    assert_true(fabs(seconds(&burst, prefill(2048, 1, 32, 8), &geforce) / 336.1e-6 - 1) < 0.2);
}

/* A block costs about what its parts cost; one expert layer of one rank. */
static void test_blocks_have_parts(void **state)
{
    (void)state;
    struct maq_op op = {
        .kind = MAQ_OP_EXPERTS, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {8192, 4096, 2048, 8, 0, 2}};
    struct maq_op_list parts;
    assert_true(maq__op_parts(&parts, &op));
    double flop = 0.0;
    for (uint32_t i = 0; i < parts.n; i++)
        flop += maq_op_work(&parts.at[i]).matrix_flop;
    assert_true(fabs(flop - 6.0 * 8192 * 4096 * 2048) < 1.0);
    assert_true(fabs(maq_op_work(&op).matrix_flop - flop) < 1.0);
    op = (struct maq_op){
        .kind = MAQ_OP_MLA_BLOCK, .dtype = MAQ_BF16, .queries = 1, .d = {64, 4096, 128, 7168, 1536, 512}};
    assert_true(maq__op_parts(&parts, &op) && parts.n == 7);
    op.kind = MAQ_OP_GEMM;
    assert_false(maq__op_parts(&parts, &op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surface_is_multilinear),
        cmocka_unit_test(test_tables_are_well_formed),
        cmocka_unit_test(test_never_better_than_the_roofline),
        cmocka_unit_test(test_more_work_is_hardly_ever_faster),
        cmocka_unit_test(test_who_answers),
        cmocka_unit_test(test_relative_scales_with_what_bounds),
        cmocka_unit_test(test_training_is_not_faster_than_a_burst),
        cmocka_unit_test(test_tensor_scales),
        cmocka_unit_test(test_rows_hold_the_conversion),
        cmocka_unit_test(test_cold_operands),
        cmocka_unit_test(test_wide_results),
        cmocka_unit_test(test_power_limit_holds_attention),
        cmocka_unit_test(test_same_silicon),
        cmocka_unit_test(test_boards_without_tables),
        cmocka_unit_test(test_blocks_have_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
