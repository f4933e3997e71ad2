/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_post_training.c - DPO and GRPO: parts that are readings of their own, to the bit; shares of memory; what more of one thing makes of
 * another; what is refused.
 */
#include <string.h>

#include "effects.h"
#include "maquette/post_training.h"

#define PARAMS 1235814400.0 /* Llama 3.2 1B */

struct posted {
    struct maq_loaded_job *job;
    struct maq_post_training_result *r;
};

static struct posted post(const char *framework, const char *plan, int gbs, const char *rl)
{
    struct posted p = {0};
    struct maq_diag *diag = maq_diag_new();
    char text[1024];
    snprintf(text, sizeof text,
             "model: llama-3.2-1b\ncluster: h100-sxm:8\nframework: %s\nplan: {precision: bf16%s}\n"
             "workload: {seq: 1024, gbs: %d}\nrl: {%s}\n",
             framework, plan, gbs, rl);
    if (maq_job_parse(&p.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_post_training_predict(&p.r, p.job, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return p;
}

static void lose(struct posted *p)
{
    maq_post_training_free(p->r);
    maq_job_free(p->job);
}

static struct prediction tuned(const char *framework, const char *plan, int gbs)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model: llama-3.2-1b\ncluster: h100-sxm:8\nframework: %s\nplan: {precision: bf16%s}\n"
             "workload: {seq: 1024, gbs: %d}\n",
             framework, plan, gbs);
    return predict_text(text);
}

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* DPO whose reference costs nothing is fine-tuning with twice the batch, to the bit. */
static void test_dpo_is_twice_the_batch(void **unused)
{
    (void)unused;
    static const char *const frameworks[] = {"huggingface", "deepspeed"}, *const zero[] = {"0", "2", "3"};
    for (size_t f = 0; f < 2; f++)
        for (size_t z = f; z < 3; z++)
            for (int accumulates = 1; accumulates < 4; accumulates += 2) {
                char pairs[64], sequences[64];
                snprintf(pairs, sizeof pairs, ", zero: %s, mbs: 2, lora_rank: %d", zero[z], accumulates > 1 ? 8 : 0);
                snprintf(sequences, sizeof sequences, ", zero: %s, mbs: 4, lora_rank: %d", zero[z],
                         accumulates > 1 ? 8 : 0);
                struct posted p = post(frameworks[f], pairs, 16 * accumulates, "method: dpo, reference: precomputed");
                struct prediction t = tuned(frameworks[f], sequences, 32 * accumulates);
                assert_true(same(p.r->step_s, t.result->step_s));
                assert_true(same(p.r->memory.training, t.result->stages[0].needed_bytes));
                assert_true(same(p.r->sequences, 32 * accumulates) && same(p.r->reference_s, 0));
                drop(&t);
                lose(&p);
            }
}

/* A reference model is a forward pass of each microbatch, and its weights: whole, or shards under ZeRO-3. */
static void test_reference(void **unused)
{
    (void)unused;
    static const struct {
        const char *framework, *plan;
        double bytes; /* a parameter */
    } cases[] = {
        {"huggingface", ", zero: 0", 4}, /* autocast: weights of 4 bytes */
        {"deepspeed", ", zero: 2", 2},
        {"huggingface", ", zero: 3", 4.0 / 8},
        {"deepspeed", ", zero: 3", 2.0 / 8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct posted one = post(cases[i].framework, cases[i].plan, 16, "method: dpo"),
                      two = post(cases[i].framework, cases[i].plan, 32, "method: dpo"),
                      redone = post(cases[i].framework, cases[i].plan, 16, "method: dpo");
        assert_int_equal(one.r->rl.reference, MAQ_RL_REFERENCE_MODEL);
        assert_close(one.r->memory.reference, cases[i].bytes * PARAMS, 1, cases[i].plan);
        /* the host is farther ahead behind the first */
        assert_close(two.r->reference_s, 2 * one.r->reference_s, 0.03 * two.r->reference_s, "twice the microbatches");
        assert_true(one.r->reference_s > 0.2 * one.r->train_s && one.r->reference_s < 0.5 * one.r->train_s);
        assert_true(same(one.r->reference_s, redone.r->reference_s));
        lose(&one);
        lose(&two);
        lose(&redone);
    }
    /* with adapters the reference is the policy without them: no second model */
    struct posted p = post("huggingface", ", zero: 0, lora_rank: 16", 16, "method: dpo");
    assert_int_equal(p.r->rl.reference, MAQ_RL_REFERENCE_ADAPTER);
    assert_true(p.r->reference_s > 0 && same(p.r->memory.reference, 0));
    lose(&p);
}

#define GRPO "method: grpo, max_completion_length: 512"

/* What is generated is one static batch of an engine, as `maquette serve --batch` times it. */
static void test_generation_is_a_static_batch(void **unused)
{
    (void)unused;
    for (int tp = 1; tp <= 4; tp *= 2) {
        char rl[128], text[256];
        snprintf(rl, sizeof rl, GRPO ", vllm_tensor_parallel_size: %d", tp);
        struct posted p = post("deepspeed", ", zero: 3, mbs: 4", 64, rl);
        struct maq_loaded_job *engine;
        struct maq_serve_batch batch;
        const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM, .gpu_memory_utilization = 0.3};
        snprintf(text, sizeof text, "{model: llama-3.2-1b, cluster: 'h100-sxm:8', plan: {tp: %d}, workload: {gbs: 8}}",
                 tp);
        assert_int_equal(maq_job_parse(&engine, "engine", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(p.r->waves, 1);
        assert_int_equal(p.r->requests, 64 * tp / 8);
        assert_int_equal(maq_serve_static(&batch, maq_job_get(engine), &options, 8 * tp, 512, 512, NULL), MAQ_OK);
        assert_true(same(p.r->generate_s, batch.prefill_s + batch.decode_s));
        maq_job_free(engine);
        lose(&p);
    }
}

static void test_parts_add_up(void **unused)
{
    (void)unused;
    static const char *const more[] = {"",
                                       ", beta: 0.1",
                                       ", num_iterations: 2",
                                       ", steps_per_generation: 8",
                                       ", reward_model: gpt2, vllm_importance_sampling_correction: false",
                                       ", vllm_mode: server, vllm_server: 'h100-sxm:4'"};
    for (size_t i = 0; i < MAQ_COUNT(more); i++) {
        char rl[256];
        snprintf(rl, sizeof rl, GRPO "%s", more[i]);
        struct posted p = post("deepspeed", ", zero: 3, mbs: 2", 64, rl);
        const struct maq_post_training_result *r = p.r;
        assert_close(r->step_s, r->generate_s + r->old_s + r->reference_s + r->reward_s + r->train_s + r->sync_s, 1e-12,
                     more[i]);
        assert_true((r->reference_s > 0) == (r->rl.beta > 0) && (r->reward_s > 0) == (r->rl.reward_model.len > 0));
        assert_close(r->memory.training, r->memory.policy + r->memory.reference + r->memory.reward + r->memory.engine,
                     1, more[i]);
        lose(&p);
    }
}

/* Completions that are trained on twice are generated half as often; a server takes no memory of the trainer; one that sleeps only then. */
static void test_properties(void **unused)
{
    (void)unused;
    struct posted once = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO),
                  twice = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", num_iterations: 2"),
                  asleep = post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_enable_sleep_mode: true"),
                  eight =
                      post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_mode: server, vllm_server: 'h100-sxm:8'"),
                  two =
                      post("deepspeed", ", zero: 3, mbs: 2", 64, GRPO ", vllm_mode: server, vllm_server: 'h100-sxm:2'");
    assert_true(same(once.r->generations, 1) && same(twice.r->generations, 0.5));
    assert_close(twice.r->generate_s, once.r->generate_s / 2, 1e-12, "half as often");
    assert_close(twice.r->sync_s, once.r->sync_s / 2, 1e-12, "and so are weights");
    assert_true(same(twice.r->train_s, once.r->train_s));
    assert_true(once.r->memory.engine > 0.25 * once.r->memory.capacity && same(asleep.r->memory.engine, 0));
    assert_true(asleep.r->memory.generating > asleep.r->memory.policy * 0.1 && same(eight.r->memory.engine, 0));
    assert_true(two.r->generate_s > eight.r->generate_s && eight.r->sync_s > once.r->sync_s);
    /* 2 bytes a parameter through a port of 50 GB/s */
    assert_true(eight.r->sync_s > 2 * PARAMS / 50e9);
    lose(&once);
    lose(&twice);
    lose(&asleep);
    lose(&eight);
    lose(&two);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *plan, *rl, *says;
    } cases[] = {
        {"", "method: ppo", "unknown value 'ppo'"},
        {"", "reference: model", "the key 'method' is missing"},
        {"", "method: dpo, betta: 1", "betta"},
        {"", "method: dpo, num_generations: 4", "nothing is generated"},
        {"", "method: dpo, reference: adapter", "all parameters are trained"},
        {", pp: 2", "method: dpo", "no pipelines"},
        {"", GRPO ", reference: model", "has no effect with beta 0"},
        {"", GRPO ", beta: 1, reference: precomputed", "not generated yet"},
        {"", GRPO ", max_prompt_length: 256", "seq_length 1024 is prompt and completion"},
        {"", "method: grpo, max_completion_length: 1024", "seq_length 1024 is prompt and completion"},
        {"", GRPO ", num_generations: 7", "no multiple of num_generations 7"},
        {"", GRPO ", use_vllm: false", "is not modelled"},
        {"", GRPO ", vllm_mode: server", "without the GPUs of the server"},
        {"", GRPO ", vllm_server: 'h100-sxm:8'", "no effect with vllm_mode colocate"},
        {"", GRPO ", vllm_tensor_parallel_size: 3", "does not divide 8 GPUs"},
        {"", GRPO ", vllm_gpu_memory_utilization: 0.01", "vllm_gpu_memory_utilization"},
        {"", GRPO ", reward_model: nosuch", "no model and no file is named 'nosuch'"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        struct maq_loaded_job *box;
        struct maq_post_training_result *r;
        struct maq_diag *diag = maq_diag_new();
        snprintf(
            text, sizeof text,
            "model: llama-3.2-1b\ncluster: h100-sxm:8\nplan: {mbs: 1%s}\nworkload: {seq: 1024, gbs: 64}\nrl: {%s}\n",
            cases[i].plan, cases[i].rl);
        assert_int_equal(maq_job_parse(&box, "refused", maq_str_of(text), NULL, 0, diag), MAQ_OK);
        enum maq_status status = maq_post_training_predict(&r, box, diag);
        char *told = maq_diag_format(diag, 0, false);
        if (status == MAQ_OK || !strstr(told, cases[i].says))
            fail_msg("%s\n%s", text, told);
        free(told);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dpo_is_twice_the_batch),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_generation_is_a_static_batch),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
