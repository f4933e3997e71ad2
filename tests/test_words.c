/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_words.c - plans written for a framework, and as job files, read back: the same plan, or its settings without words named.
 */
#include "maquette/framework_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "effort.h"
#include "failing_alloc.h"
#include "maquette/planner.h"
#include "maquette/train.h"
#include "plan/words/words.h"
#include "random_draws.h"
#include "spec/catalogue.h"

#define TEXT 2048
#define DRAWS EFFORT(60, 150, 400)

/* A job with its plan, and the same without one. */
struct written {
    struct maq_loaded_job *whole, *open;
};

static void forget(struct written *w)
{
    maq_job_free(w->whole);
    maq_job_free(w->open);
}

static bool load(struct written *w, const char *around, const char *plan, bool must)
{
    char text[TEXT];
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{%s, plan: {%s}}", around, plan);
    bool ok = maq_job_parse(&w->whole, "whole", maq_str_of(text), NULL, 0, diag) == MAQ_OK;
    snprintf(text, sizeof text, "{%s}", around);
    if (ok && maq_job_parse_open(&w->open, "open", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s: %s", text, maq_diag_format(diag, 0, false));
    if (!ok && must)
        fail_msg("%s, %s: %s", around, plan, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return ok;
}

struct figures {
    double step_s, peak_bytes;
};

static struct figures figures_of(const struct maq_loaded_job *box)
{
    struct maq_train_result *r;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    struct figures f = {r->step_s, r->stages[r->worst_stage].total_bytes};
    maq_train_result_free(r);
    return f;
}

static void expect_same(const struct maq_loaded_job *a, const struct maq_loaded_job *b, const char *text)
{
    struct figures x = figures_of(a), y = figures_of(b);
    if (x.step_s != y.step_s || x.peak_bytes != y.peak_bytes)
        fail_msg("%.9g s and %.9g bytes, read back %.9g s and %.9g bytes:\n%s", x.step_s, x.peak_bytes, y.step_s,
                 y.peak_bytes, text);
}

/* ---- random plans ---- */

static const char *const models[] = {"gpt2",         "llama-3.1-8b",  "llama-3.1-8b",
                                     "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite"};
static const char *const clusters[] = {"h100-sxm:8 x 4", "a100-80gb:8 x 2", "b200:8 x 2", "v100-32gb:8 x 2"};

static const struct {
    const char *key, *values[7];
} settings[] = {
    {"tp", {"1", "2", "4", "8"}},
    {"pp", {"1", "2", "4"}},
    {"vp", {"1", "1", "2", "4"}},
    {"cp", {"1", "1", "2", "4"}},
    {"ep", {"1", "2", "4", "8"}},
    {"etp", {"0", "1"}},
    {"mbs", {"1", "2", "4"}},
    {"sp", {"auto", "true", "false"}},
    {"order", {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp"}},
    {"cp_comm_type", {"p2p", "all_gather", "a2a", "a2a+p2p"}},
    {"schedule", {"auto", "1f1b", "interleaved-zb", "zb-h1", "zb-v", "dualpipe-v"}},
    {"layout", {"balanced", "\"5,9,9,9\"", "\"17,15\""}},
    {"decoder_last_pipeline_num_layers", {"0", "14"}},
    {"overlap_p2p_comm", {"auto", "true", "false"}},
    {"scatter_gather_tensors_in_pipeline", {"true", "false"}},
    {"zero", {"0", "1", "2", "3", "3"}},
    {"num_distributed_optimizer_instances", {"1", "2", "4"}},
    {"overlap_grad_reduce", {"auto", "true", "false"}},
    {"overlap_param_gather", {"auto", "true", "false"}},
    {"reshard_after_forward", {"true", "false"}},
    {"reduce_once_per_step", {"true", "false"}},
    {"fsdp_prefetch", {"1", "2"}},
    {"bucket_layers", {"0", "2"}},
    {"recompute", {"none", "selective", "full", "full, recompute_method: block, recompute_num_layers: 3"}},
    {"selective_ac_option", {"layer", "op"}},
    {"optimizer_offload_fraction", {"0", "1", "0.5"}},
    {"cpu_offloading_num_layers", {"0", "2"}},
    {"optimizer", {"adam", "sgd"}},
    {"precision", {"auto", "bf16", "fp16", "fp32", "fp8-delayed", "fp8-current", "fp8-rowwise"}},
    {"main_grads_dtype", {"fp32", "bf16", "fp16"}},
    {"grad_reduce_dtype", {"fp32", "bf16"}},
    {"exp_avg_dtype", {"fp32", "bf16", "fp8"}},
    {"pure_low_precision", {"false", "true"}},
    {"dispatcher", {"alltoall", "allgather", "deepep", "hybridep"}},
    {"moe_flex_dispatcher_num_sms", {"0", "24"}},
    {"capacity_factor", {"0", "1.5"}},
    {"moe_pad_expert_input_to_capacity", {"auto", "false"}},
    {"moe_imbalance", {"1", "1.25"}},
    {"overlap_ep", {"auto", "true"}},
    {"tp_comm_overlap", {"auto", "true", "false"}},
    {"attention_backend", {"auto", "flash", "flash2", "unfused"}},
    {"enable_cuda_graph", {"false", "true"}},
    {"masked_softmax_fusion", {"true", "false"}},
    {"fused_kernels", {"true", "false"}},
    {"cross_entropy_loss_fusion", {"true", "false"}},
    {"use_transformer_engine_op_fuser", {"false", "true"}},
    {"gradient_accumulation_fusion", {"true", "false"}},
    {"loss_function", {"vocab_parallel_cross_entropy", "cross_entropy"}},
    {"cuda_module_loading", {"lazy", "eager"}},
    {"expandable_segments", {"false", "true"}},
    {"max_split_size_mb", {"0", "512"}},
    {"roundup_power2_divisions", {"0", "8"}},
    {"lora_rank", {"0", "0", "16"}},
};

static const char *one_of(uint64_t *state, const char *const *values, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && values[n])
        n++;
    return values[draw(state, 0, n - 1)];
}

static const char *a_framework(uint64_t *state)
{
    uint32_t n = 0;
    while (maq_catalogue_at("frameworks", n))
        n++;
    return draw(state, 0, 2) == 0 ? NULL : maq_catalogue_at("frameworks", draw(state, 0, n - 1))->name;
}

static void random_job(char around[TEXT], char plan[TEXT], uint64_t *state, const char *framework)
{
    size_t n = 0;
    char named[64] = "";
    if (framework)
        snprintf(named, sizeof named, "framework: %s, ", framework);
    snprintf(around, TEXT, "model: %s, cluster: '%s', %sworkload: {gbs: 64, seq: 1024}",
             one_of(state, models, MAQ_COUNT(models)), one_of(state, clusters, MAQ_COUNT(clusters)), named);
    plan[0] = '\0';
    for (size_t i = 0; i < MAQ_COUNT(settings); i++)
        if (draw(state, 0, i < 8 ? 1 : 7) == 0)
            n += (size_t)snprintf(plan + n, TEXT - n, "%s%s: %s", n > 0 ? ", " : "", settings[i].key,
                                  one_of(state, settings[i].values, MAQ_COUNT(settings[i].values)));
}

/* What is written as a job file is that plan, whatever a framework would set where the file says nothing. */
static void check_document(const struct written *w)
{
    struct maq_loaded_job *back;
    struct maq_arena arena;
    const struct maq_unsaid *unsaid;
    uint32_t n;
    struct maq_diag *diag = maq_diag_new();
    char *document = maq_job_write(w->open, &maq_job_get(w->whole)->plan);
    if (maq_job_parse(&back, "document", maq_str_of(document), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", document, maq_diag_format(diag, 0, false));
    maq_arena_init(&arena, 0);
    assert_true(maq_plan_differences(&unsaid, &n, maq_job_get(w->whole), maq_job_get(back), &arena));
    if (n > 0)
        fail_msg("%s is %s, read back %s:\n%s", unsaid[0].key, unsaid[0].value, unsaid[0].instead, document);
    expect_same(w->whole, back, document);
    maq_arena_fini(&arena);
    maq_job_free(back);
    maq_diag_free(diag);
    free(document);
}

static void test_documents(void **state)
{
    uint64_t dice = 1;
    uint32_t possible = 0;
    char around[TEXT], plan[TEXT];
    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct written w = {0};
        random_job(around, plan, &dice, a_framework(&dice));
        if (!load(&w, around, plan, false))
            continue;
        check_document(&w);
        forget(&w);
        possible++;
    }
    assert_true(possible > DRAWS / 20);
}

/* ---- words ---- */

static bool among(const char *key, const struct maq_framework_words *words)
{
    for (uint32_t i = 0; i < words->n_unsaid; i++)
        if (strcmp(words->unsaid[i].key, key) == 0)
            return true;
    return false;
}

/* Where all is said, the same figures under the same framework; and nothing that was written is unknown to who reads it. */
static bool check_words(const struct written *w, const char *around, const char *plan)
{
    struct maq_framework_words *words;
    assert_int_equal(maq_framework_words(&words, w->open, maq_job_get(w->whole), NULL), MAQ_OK);
    bool all = words->back && words->n_unsaid == 0;
    for (uint32_t i = 0; i < words->n_unsaid; i++)
        if (strcmp(words->unsaid[i].value, words->unsaid[i].instead) == 0)
            fail_msg("%s %s: %s", around, plan, words->unsaid[i].key);
    if (all && maq_job_get(w->whole)->framework.named)
        expect_same(w->whole, words->back, plan);
    maq_framework_words_free(words);
    return all;
}

static void test_words(void **state)
{
    uint64_t dice = 2;
    uint32_t possible = 0, said = 0;
    char around[TEXT], plan[TEXT];
    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct written w = {0};
        random_job(around, plan, &dice, a_framework(&dice));
        if (!load(&w, around, plan, false))
            continue;
        said += check_words(&w, around, plan);
        forget(&w);
        possible++;
    }
    print_message("# %u plans, %u of them said completely\n", possible, said);
    assert_true(said > possible / 20);
}

#define LLAMA "model: llama-3.1-8b, cluster: 'h100-sxm:8 x 2', workload: {gbs: 64}"
#define MIXTRAL "model: mixtral-8x7b, cluster: 'h100-sxm:8 x 2', workload: {gbs: 64}"

/* Keys without words, in order; "" = all is said. */
static const struct {
    const char *around, *plan, *has, *unsaid;
} known[] = {
    {"model: llama-3.1-8b, cluster: 'h100-sxm:8 x 2', framework: megatron-lm, workload: {gbs: 64}",
     "tp: 2, lora_rank: 16", "--tensor-model-parallel-size 2", "lora_rank"},
    {LLAMA, "pp: 2, schedule: zb-h1", "--bf16", "pipeline_schedule overlap_p2p_comm"},
    {LLAMA, "pp: 2, vp: 2, layout: \"9,7,8,8\"", "--pipeline-model-parallel-layout", ""},
    {LLAMA, "exp_avg_dtype: bf16, zero: 1", "--exp-avg-dtype bf16", ""},
    {LLAMA, "zero: 3, reshard_after_forward: false", "--torch-fsdp2-no-reshard-after-forward", ""},
    {LLAMA, "fused_kernels: false", "--no-rope-fusion", ""},
    {"model: llama-3.1-8b, cluster: 'h100-sxm:8 x 2', workload: {gbs: 64}",
     "attention_backend: unfused, masked_softmax_fusion: false", "--attention-backend unfused", ""},
};

static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(known); i++) {
        struct written w = {0};
        struct maq_framework_words *words;
        char keys[512] = "";
        load(&w, known[i].around, known[i].plan, true);
        assert_int_equal(maq_framework_words(&words, w.open, maq_job_get(w.whole), NULL), MAQ_OK);
        for (uint32_t k = 0; k < words->n_unsaid; k++)
            snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s%s", k > 0 ? " " : "", words->unsaid[k].key);
        if (!words->text) {
            assert_string_equal(words->title, "paxml"); /* nothing is known of its words */
            assert_null(words->back);
        } else if (strcmp(keys, known[i].unsaid) != 0 || !words->back || !strstr(words->text, known[i].has))
            fail_msg("%s: without words %s, not %s (%s):\n%s", known[i].plan, keys, known[i].unsaid,
                     words->refused ? words->refused : "", words->text);
        assert_false(among("tensor_model_parallel_size", words));
        maq_framework_words_free(words);
        forget(&w);
    }
}

/* What a search finds for a framework, most of it can be told, and takes there what was found. */
static void test_searched(void **state)
{
    static const char *const jobs[] = {
        "model: llama-3.1-8b, cluster: 'h100-sxm:8 x 2', workload: {gbs: 64, seq: 8192}",
        "model: llama-3.1-8b, cluster: 'a100-40gb:8', workload: {gbs: 16, seq: 16384}",
        "model: mixtral-8x7b, cluster: 'h100-sxm:8 x 4', workload: {gbs: 64, seq: 4096}"};
    static const char *const frameworks[] = {"megatron-lm", "torchtitan", "pytorch-fsdp", "maxtext"};
    uint32_t plans = 0, said = 0;
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs) * MAQ_COUNT(frameworks); i++) {
        char text[TEXT];
        struct maq_loaded_job *open;
        struct maq_search_result *found;
        if (SANITIZED && i / MAQ_COUNT(frameworks) != i % MAQ_COUNT(frameworks) % MAQ_COUNT(jobs))
            continue; /* every job and every framework, not each with each */
        const struct maq_search_opts opts = {.top = 5};
        snprintf(text, sizeof text, "{%s, framework: %s}", jobs[i / MAQ_COUNT(frameworks)],
                 frameworks[i % MAQ_COUNT(frameworks)]);
        assert_int_equal(maq_job_parse_open(&open, "open", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(maq_search(&found, open, &opts, NULL), MAQ_OK);
        assert_true(found->n_plans > 0);
        for (uint32_t k = 0; k < found->n_plans; k++) {
            struct written w = {.open = open};
            struct maq_framework_words *words;
            assert_int_equal(maq_job_complete(&w.whole, open, &found->plans[k].plan, NULL), MAQ_OK);
            assert_int_equal(maq_framework_words(&words, open, maq_job_get(w.whole), NULL), MAQ_OK);
            for (uint32_t u = 0; u < words->n_unsaid; u++) /* values of one axis that go with some of another alone */
                if (strncmp(words->unsaid[u].key, "expert_", strlen("expert_")) != 0)
                    fail_msg("%s: %s:\n%s", text, words->unsaid[u].key, words->text);
            if (!words->back)
                fail_msg("%s: %s:\n%s", text, words->refused, words->text);
            if (words->n_unsaid == 0)
                expect_same(w.whole, words->back, words->text);
            said += words->n_unsaid == 0;
            plans++;
            maq_framework_words_free(words);
            maq_job_free(w.whole);
        }
        maq_search_result_free(found);
        maq_job_free(open);
    }
    assert_true(10 * said >= 8 * plans);
}

/* Wherever memory ends, that is said and nothing is left. */
static void test_no_memory(void **state)
{
    static const char *const frameworks[] = {"megatron-lm", "torchtitan", "pytorch-fsdp", "maxtext"};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(frameworks); i++) {
        struct written w = {0};
        char around[TEXT];
        enum maq_status status = MAQ_NO_MEMORY;
        snprintf(around, sizeof around, "%s, framework: %s", LLAMA, frameworks[i]);
        load(&w, around, "zero: 3, pp: 2, vp: 2, layout: \"7,9,9,7\", recompute: full", true);
        for (fail_at = 1; status == MAQ_NO_MEMORY; fail_at += 1 + fail_at / 40) {
            struct maq_framework_words *words = NULL;
            asked = 0;
            maq__set_alloc_gate(fail_nth);
            status = maq_framework_words(&words, w.open, maq_job_get(w.whole), NULL);
            maq__set_alloc_gate(NULL);
            assert_int_equal(status == MAQ_OK, words != NULL);
            if (status == MAQ_OK)
                maq_framework_words_free(words);
        }
        assert_int_equal(status, MAQ_OK);
        forget(&w);
    }
}

/* Repetitions of repetitions are read no further than any model goes. */
static void test_layout_is_bounded(void **state)
{
    static const char *const layouts[] = {"E((t*99999)*99999)*99999|L", "E((|*99999)*99999)*99999L",
                                          "E(()*99999)*99999|L"};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(layouts); i++) {
        char text[TEXT];
        struct maq_loaded_job *box;
        snprintf(text, sizeof text, "{model: gpt2, cluster: 'h100-sxm:8', plan: {pp: 2, layout: \"%s\"}}", layouts[i]);
        assert_int_equal(maq_job_parse(&box, "long", maq_str_of(text), NULL, 0, NULL), MAQ_BAD_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_bounded), cmocka_unit_test(test_known),     cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_searched),          cmocka_unit_test(test_documents), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
