/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_framework.c - framework profiles: where they may be written, what they say of a plan, who wins, and their faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/job.h"
#include "plan/codes.h"
#include "spec/catalogue.h"

/* `rest` is `framework:` and whatever else the job says besides a model, a cluster and a batch. */
static enum maq_status load(struct maq_loaded_job **box, const char *model, const char *cluster, const char *rest,
                            struct maq_diag *diag)
{
    char text[2048];
    snprintf(text, sizeof text, "model: %s\ncluster: '%s'\nworkload: {seq: 2048, gbs: 64}\n%s\n", model, cluster, rest);
    return maq_job_parse(box, "job", maq_str_of(text), NULL, 0, diag);
}

static struct maq_loaded_job *good(const char *model, const char *cluster, const char *rest)
{
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (load(&box, model, cluster, rest, diag) != MAQ_OK)
        fail_msg("%s: %s", rest, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static struct maq_loaded_job *dense(const char *rest)
{
    return good("llama-3.1-8b", "h100-sxm:8", rest);
}

static void test_forms(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *name;
        double forward_s;
    } cases[] = {
        {"", "default", 62e-6},
        {"framework: pytorch-fsdp", "pytorch-fsdp", 30e-6},
        {"framework: FSDP2", "pytorch-fsdp", 30e-6}, /* an alias, in capitals */
        {"framework: megatron-lm@2022", "megatron-lm-2022", 62e-6},
        {"framework: {base: pytorch-fsdp, host: {forward: 12 us}}", "pytorch-fsdp", 12e-6},
        {"framework: {name: ours, host: {forward: 1 ms}}", "ours", 1e-3},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *box = dense(cases[i].text);
        const struct maq_framework *f = &maq_job_get(box)->framework;
        assert_string_equal(f->name, cases[i].name);
        if (f->host.forward_s < cases[i].forward_s * 0.999 || f->host.forward_s > cases[i].forward_s * 1.001)
            fail_msg("%s: forward %g s", cases[i].text, f->host.forward_s);
        maq_job_free(box);
    }
}

/* The default profile and the catalogue's Megatron-LM have the same host. */
static void test_default_is_megatron(void **unused)
{
    (void)unused;
    struct maq_loaded_job *none = dense(""), *megatron = dense("framework: megatron-lm");
    assert_memory_equal(&maq_job_get(none)->framework.host, &maq_job_get(megatron)->framework.host,
                        sizeof(struct maq_host_costs));
    maq_job_free(none);
    maq_job_free(megatron);
}

/* Defaults < profile < document; a flag is a document's value. */
static void test_who_wins(void **unused)
{
    (void)unused;
    struct maq_loaded_job *box = dense("framework: pytorch-fsdp");
    assert_int_equal(maq_job_get(box)->plan.attention_backend, MAQ_ATTENTION_FLASH2);
    assert_false(maq_job_get(box)->plan.fused_kernels);
    char *why = maq_job_explain(box);
    assert_non_null(strstr(why, "plan.attention_backend = flash2  (framework)\n"));
    assert_non_null(strstr(why, "plan.micro_batch_size = 1  (default)\n"));
    assert_non_null(strstr(why, "framework.host.backward = 20 us  (pytorch-fsdp)\n"));
    assert_non_null(strstr(why, "framework.optimizer = foreach  (pytorch-fsdp)\n"));
    free(why);
    maq_job_free(box);

    box = dense("framework: pytorch-fsdp\nplan: {fused_kernels: true, attention_backend: auto}");
    assert_true(maq_job_get(box)->plan.fused_kernels);
    assert_int_equal(maq_job_get(box)->plan.attention_backend, MAQ_ATTENTION_FLASH); /* auto, decided by the device */
    why = maq_job_explain(box);
    assert_non_null(strstr(why, "plan.fused_kernels = true  (document)\n"));
    free(why);
    maq_job_free(box);
}

/* Settings of a base come first: torchtitan's own reduction type over FSDP's. */
static void test_bases(void **unused)
{
    (void)unused;
    struct maq_loaded_job *fsdp = dense("framework: pytorch-fsdp"), *titan = dense("framework: torchtitan");
    assert_int_equal(maq_job_get(fsdp)->plan.grad_reduce_dtype, MAQ_BF16);
    assert_int_equal(maq_job_get(titan)->plan.grad_reduce_dtype, MAQ_FP32);
    assert_int_equal(maq_job_get(titan)->plan.attention_backend, MAQ_ATTENTION_FLASH2);
    maq_job_free(fsdp);
    maq_job_free(titan);
}

static int wire_of(const char *framework, const char *plan)
{
    char rest[256];
    snprintf(rest, sizeof rest, "framework: %s\nplan: {%s}", framework, plan);
    struct maq_loaded_job *box = dense(rest);
    int type = maq_job_get(box)->plan.grad_reduce_dtype;
    maq_job_free(box);
    return type;
}

/* FSDP's reduce_dtype is its param_dtype where nobody says otherwise; unsharded gradients travel as they are kept. */
static void test_types_on_the_wire(void **unused)
{
    (void)unused;
    assert_int_equal(wire_of("huggingface", "precision: bf16"), MAQ_BF16);
    assert_int_equal(wire_of("huggingface", "precision: fp16"), MAQ_FP16);
    assert_int_equal(wire_of("huggingface", "precision: fp32"), MAQ_FP32);
    assert_int_equal(wire_of("huggingface", "precision: fp8-current"), MAQ_BF16);
    assert_int_equal(wire_of("huggingface", "zero: no_shard"), MAQ_FP32);
    assert_int_equal(wire_of("huggingface", "zero: no_shard, main_grads_dtype: bf16"), MAQ_BF16);
    assert_int_equal(wire_of("huggingface", "zero: no_shard, pure_low_precision: true"), MAQ_BF16);
    assert_int_equal(wire_of("huggingface", "zero: no_shard, grad_reduce_dtype: bf16"),
                     MAQ_BF16); /* a compressing hook */
    assert_int_equal(wire_of("deepspeed", "precision: bf16"), MAQ_BF16);
    assert_int_equal(wire_of("megatron-lm", "precision: bf16"), MAQ_FP32);
    assert_int_equal(wire_of("megatron-lm", "grad_reduce_dtype: auto, main_grads_dtype: bf16"), MAQ_BF16);
}

static void test_cases(void **unused)
{
    (void)unused;
    static const struct {
        const char *model, *cluster, *rest;
        int dispatcher, grad_dtype;
    } cases[] = {
        {"mixtral-8x7b", "h100-sxm:8", "framework: megatron-bridge", MAQ_DISPATCHER_DEEPEP, MAQ_BF16},
        {"mixtral-8x7b", "b200:8", "framework: megatron-bridge", MAQ_DISPATCHER_HYBRIDEP, MAQ_BF16},
        {"mixtral-8x7b", "a100-80gb:8", "framework: megatron-bridge", MAQ_DISPATCHER_ALLTOALL, MAQ_BF16},
        {"llama-3.1-8b", "b200:8", "framework: megatron-bridge", MAQ_DISPATCHER_ALLTOALL, MAQ_BF16},
        {"gpt2", "a100-80gb:8", "framework: megatron-lm-2022\nplan: {precision: fp16}", 0, MAQ_FP16},
        {"gpt2", "a100-80gb:8", "framework: megatron-lm-2022\nplan: {precision: bf16}", 0, MAQ_FP32},
        {"gpt2", "a100-80gb:8", "framework: megatron-lm-2022", 0, MAQ_FP16}, /* FP16 is what those years ran */
        {"gpt2", "a100-80gb:8", "framework: maxtext", 0, MAQ_BF16},          /* XLA: the type of the products */
        {"gpt2", "a100-80gb:8", "framework: paxml", 0, MAQ_BF16},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *box = good(cases[i].model, cases[i].cluster, cases[i].rest);
        const struct maq_plan *p = &maq_job_get(box)->plan;
        if (p->dispatcher != cases[i].dispatcher || p->grad_dtype != cases[i].grad_dtype)
            fail_msg("%s on %s: dispatcher %d, gradients %d", cases[i].rest, cases[i].cluster, p->dispatcher,
                     p->grad_dtype);
        maq_job_free(box);
    }
}

static void test_faults(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        uint16_t code;
        const char *says;
    } cases[] = {
        {"framework: megatron-lmm", MAQ_CODE_UNKNOWN_FRAMEWORK, "did you mean"},
        {"framework: [nemo]", 0, "not a list"},
        {"framework: {plan: 3}", MAQ_CODE_FRAMEWORK_FORM, "must be a map"},
        {"framework: {host: fast}", MAQ_CODE_FRAMEWORK_FORM, "must be a map"},
        {"framework: {host: {forward: 3}}", 0, "no unit"},
        {"framework: {plan: {recompute_modules: [mlp]}}", MAQ_CODE_FRAMEWORK_FORM, "cannot set recompute_modules"},
        {"framework: {plan: {attention_backnd: flash}}", 0, "did you mean 'attention_backend'"},
        {"framework: {cases: [{when: [pascal], plan: {fused_kernels: true}}]}", MAQ_CODE_FRAMEWORK_FORM, "'pascal'"},
        {"framework: {cases: [{when: hopper, plan: {fused_kernels: true}}]}", MAQ_CODE_FRAMEWORK_FORM, "list of words"},
        {"framework: {cases: [{when: [hopper]}]}", MAQ_CODE_FRAMEWORK_FORM, "when and plan"},
        {"framework: {cases: 1}", MAQ_CODE_FRAMEWORK_FORM, "must be a list"},
        {"framework: {dropout: 2}", 0, "must be"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *box = NULL;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(load(&box, "gpt2", "h100-sxm:8", cases[i].text, diag), MAQ_BAD_INPUT);
        char *text = maq_diag_format(diag, 0, false);
        if (!strstr(text, cases[i].says) || (cases[i].code && maq_diag_at(diag, 0)->code != cases[i].code))
            fail_msg("%s: no '%s' in\n%s", cases[i].text, cases[i].says, text);
        free(text);
        maq_diag_free(diag);
    }
}

/* Every profile of the catalogue loads for every generation of hardware, dense and with experts, and has a source. */
static void test_catalogue(void **unused)
{
    (void)unused;
    static const char *const clusters[] = {"a100-80gb:8", "h100-sxm:8", "b200:8", "mi300x:8"}, *const models[] = {
                                                                                                   "gpt2",
                                                                                                   "mixtral-8x7b"};
    const struct maq_catalogue_entry *e;
    size_t n = 0;
    for (; (e = maq_catalogue_at("frameworks", n)) != NULL; n++)
        for (size_t c = 0; c < MAQ_COUNT(clusters); c++)
            for (size_t m = 0; m < MAQ_COUNT(models); m++) {
                char rest[128];
                snprintf(rest, sizeof rest, "framework: %s", e->name);
                struct maq_loaded_job *box = good(models[m], clusters[c], rest);
                const struct maq_framework *f = &maq_job_get(box)->framework;
                assert_string_equal(f->name, e->name);
                assert_true(strlen(f->title) > 3 && strlen(f->source) > 10);
                maq_job_free(box);
            }
    assert_true(n >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_default_is_megatron), cmocka_unit_test(test_who_wins),
        cmocka_unit_test(test_bases),  cmocka_unit_test(test_types_on_the_wire),   cmocka_unit_test(test_cases),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_catalogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
