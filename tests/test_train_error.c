/* SPDX-License-Identifier: Apache-2.0 */
/* test_train_error.c - how sure a step is: the shares that it is computed from, and the interval. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "predict.h"
#include "train/uncertainty_fit.h"

static struct prediction predict(const char *model, const char *cluster, const char *plan)
{
    return predict_batch(model, cluster, plan, 64, 4096);
}

/* The equation of src/train/uncertainty.c, spelt out. */
static double error_of(const double *x)
{
    static const double c[MAQ_TRAIN_REGIME_COUNT] = {
        MAQ_TRAIN_ERROR_CHAIN,  MAQ_TRAIN_ERROR_HOST,   MAQ_TRAIN_ERROR_NEAR,   MAQ_TRAIN_ERROR_FAR,
        MAQ_TRAIN_ERROR_BUBBLE, MAQ_TRAIN_ERROR_MEMORY, MAQ_TRAIN_ERROR_EXPERTS};
    double sum = pow(MAQ_TRAIN_ERROR_BASE, 2);
    for (int k = 0; k < MAQ_TRAIN_REGIME_COUNT; k++)
        sum += pow(c[k] * x[k], 2);
    return sqrt(sum);
}

static void check(const struct maq_train_result *r)
{
    for (int k = 0; k < MAQ_TRAIN_REGIME_COUNT; k++)
        if (!(r->regime[k] >= 0 && r->regime[k] <= 1))
            fail_msg("%s is %g", maq_train_regime_name((enum maq_train_regime)k), r->regime[k]);
    assert_true(fabs(r->error - error_of(r->regime)) < 1e-12);
    assert_true(r->step_low_s < r->step_high_s);
    assert_true(r->memory_low < 1 && r->memory_high > 1 && r->memory_high < 2);
    assert_true(fabs(log(r->step_high_s / r->step_s) - MAQ_TRAIN_ERROR_Z90 * r->error) < 1e-12);
    assert_true(fabs(log(r->step_low_s / r->step_s) - MAQ_TRAIN_ERROR_Z10 * r->error) < 1e-12);
}

static void test_dense(void **state)
{
    struct prediction p = predict("llama-3.1-8b", "h100-sxm:8", "tensor_model_parallel_size: 2");
    const double *x = p.result->regime;
    check(p.result);
    assert_true(x[MAQ_TRAIN_REGIME_CHAIN] > 0 && x[MAQ_TRAIN_REGIME_MEMORY] > 0);
    assert_true(x[MAQ_TRAIN_REGIME_EXPERTS] == 0 && x[MAQ_TRAIN_REGIME_BUBBLE] == 0);
    assert_true(x[MAQ_TRAIN_REGIME_NEAR] > 0 && x[MAQ_TRAIN_REGIME_FAR] == 0); /* one node: one domain */
    double exposed = (p.result->bucket_s[MAQ_BUCKET_TP] + p.result->bucket_s[MAQ_BUCKET_DP]) / p.result->step_s;
    assert_true(fabs(x[MAQ_TRAIN_REGIME_NEAR] - exposed) < 1e-12);
    drop(&p);
}

/* Sixteen ranks of tensor parallelism over two nodes: what they wait for crosses domains. */
static void test_far(void **state)
{
    struct prediction p = predict("llama-3.1-8b", "h100-sxm:8 x 2", "tensor_model_parallel_size: 16");
    check(p.result);
    assert_true(p.result->regime[MAQ_TRAIN_REGIME_FAR] > p.result->regime[MAQ_TRAIN_REGIME_NEAR]);
    drop(&p);
}

static void test_experts_and_bubble(void **state)
{
    struct prediction p =
        predict("mixtral-8x7b", "h100-sxm:8 x 4", "expert_model_parallel_size: 8, pipeline_model_parallel_size: 4");
    check(p.result);
    assert_true(p.result->regime[MAQ_TRAIN_REGIME_EXPERTS] > 0.1);
    assert_true(p.result->regime[MAQ_TRAIN_REGIME_BUBBLE] > 0);
    drop(&p);
}

/* One sequence of a small model at a time: the device waits for launches. */
static void test_host(void **state)
{
    struct prediction p = predict("gpt2", "h100-sxm:1", "micro_batch_size: 1");
    check(p.result);
    assert_true(p.result->regime[MAQ_TRAIN_REGIME_HOST] > 0);
    assert_true(fabs(p.result->regime[MAQ_TRAIN_REGIME_HOST] - p.result->bucket_s[MAQ_BUCKET_HOST] / p.result->step_s) <
                1e-12);
    drop(&p);
}

/* Kernels of a few percent of error make a chain of the same order. */
static void test_chain_of_a_dense_model(void **state)
{
    struct prediction p = predict("llama-3.1-70b", "h100-sxm:8 x 4", "tensor_model_parallel_size: 8");
    check(p.result);
    assert_true(p.result->regime[MAQ_TRAIN_REGIME_CHAIN] > 0.005 && p.result->regime[MAQ_TRAIN_REGIME_CHAIN] < 0.6);
    drop(&p);
}

/* What has to be there on the fullest device; the job on devices of so much memory. */
static double needed_with(struct prediction *p, double memory_bytes)
{
    char text[512];
    snprintf(text, sizeof text,
             "{model: llama-3.1-8b, cluster: {device: {base: h100-sxm, name: own, memory: %.0f B}, nodes: 1, "
             "devices_per_node: 8}, plan: {tensor_model_parallel_size: 2}, workload: {global_batch_size: 64, "
             "seq_length: 4096}}",
             memory_bytes);
    *p = predict_text(text);
    const struct maq_stage_result *st = &p->result->stages[p->result->worst_stage];
    return st->allocated_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL];
}

/* The probability to fit is the share of the measured / predicted that a device leaves room for: at their quantiles, known. */
static void test_fit_probability(void **state)
{
    static const double q[] = MAQ_TRAIN_MEMORY_QUANTILES;
    const size_t last = sizeof q / sizeof *q - 1;
    struct prediction p;
    double needed = needed_with(&p, 85e9);
    assert_true(p.result->fits && p.result->fit_probability == 1);
    drop(&p);
    for (size_t i = 0; i <= last; i++) {
        assert_true(i == 0 || q[i] > q[i - 1]);
        (void)needed_with(&p, ceil(needed * q[i]));
        assert_true(fabs(p.result->fit_probability - (double)i / (double)last) < 1e-3);
        assert_true(p.result->fits == (q[i] >= 1));
        drop(&p);
    }
    (void)needed_with(&p, needed * q[0] * 0.99);
    assert_true(p.result->fit_probability == 0);
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_experts_and_bubble),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_fit_probability),
        cmocka_unit_test(test_chain_of_a_dense_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
