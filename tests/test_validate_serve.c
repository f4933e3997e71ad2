/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate_serve.c - a row of a table of serving runs as a deployment: what its source is known to have launched, and whose means are compared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/plan.h"
#include "validate/serve/inference.h"

static struct maq_inference_row row(const char *source, const char *framework, const char *model, const char *gpu,
                                    const char *notes)
{
    return (struct maq_inference_row){.id = maq_str_of("r"),
                                      .source = maq_str_of(source),
                                      .framework = maq_str_of(framework),
                                      .version = maq_str_of(""),
                                      .model = maq_str_of(model),
                                      .gpu = maq_str_of(gpu),
                                      .precision = maq_str_of("fp8"),
                                      .kv_precision = maq_str_of(""),
                                      .notes = maq_str_of(notes),
                                      .tp = 4,
                                      .pp = 1,
                                      .ep = 1,
                                      .dp = 1,
                                      .gpus = 4,
                                      .isl = 1000,
                                      .osl = 500,
                                      .load = 16,
                                      .kind = "serving"};
}

static struct maq_serve_options launched(const struct maq_inference_row *r)
{
    const struct maq_inference_row started = maq_inference_as_started(r);
    struct maq_serve_options o = {.dp = started.dp, .ep = started.ep};
    maq_inference_launch(&o, &started);
    return o;
}

#define SOURCE "InferenceMAX/InferenceX via aiconfigurator"
#define MINIMAX "MiniMaxAI/MiniMax-M2.5"

static void test_a_script_holds_from_its_day(void **unused)
{
    (void)unused;
    struct maq_inference_row before = row(SOURCE, "vllm", MINIMAX, "B200-SXM-180GB",
                                          "kind=serving; measured=2026-04-02; wip"),
                             after = row(SOURCE, "vllm", MINIMAX, "B200-SXM-180GB",
                                         "kind=serving; measured=2026-04-03; wip"),
                             unsaid = row(SOURCE, "vllm", MINIMAX, "B200-SXM-180GB", "kind=serving");
    struct maq_serve_options a = launched(&before), b = launched(&after), c = launched(&unsaid);
    assert_true(!a.kv_fp8 && a.ep == 4 && a.gpu_memory_utilization == 0.95 && a.max_num_batched_tokens == 0);
    assert_true(b.kv_fp8 && b.ep == 1 && b.gpu_memory_utilization == 0.9 && b.max_num_batched_tokens == 2000);
    assert_true(a.block_size == 32 && b.block_size == 32);
    assert_true(c.kv_fp8 == a.kv_fp8 && c.ep == a.ep); /* of no day: the first */
}

static void test_what_follows_the_row(void **unused)
{
    (void)unused;
    struct maq_inference_row r = row(SOURCE, "trtllm", "openai/gpt-oss-120b", "H200-SXM-141GB", "measured=2025-11-02");
    struct maq_serve_options o = launched(&r);
    assert_true(o.ep == 4 && o.max_num_seqs == 16 && o.max_num_batched_tokens == 20000 && o.free_memory_share == 0.85);
    r.notes = maq_str_of("measured=2025-12-15"); /* from then on the table says over how many ranks */
    o = launched(&r);
    assert_true(o.ep == 1 && o.max_num_seqs == 16);
}

static void test_the_row_comes_first(void **unused)
{
    (void)unused;
    struct maq_inference_row r = row(SOURCE, "vllm", "meta-llama/Llama-3.1-70B", "H100-SXM-80GB",
                                     "measured=2025-10-29"),
                             other = row("somebody", "vllm", "meta-llama/Llama-3.1-70B", "H100-SXM-80GB", ""),
                             unknown = row(SOURCE, "vllm", "meta-llama/Llama-3.1-8B", "H100-SXM-80GB", "");
    assert_true(launched(&r).kv_fp8);
    r.kv_precision = maq_str_of("fp16");
    struct maq_serve_options said = launched(&r), a = launched(&other), b = launched(&unknown);
    assert_true(!said.kv_fp8 && said.max_num_seqs == 16);
    assert_true(!a.kv_fp8 && a.max_num_seqs == 0 && a.gpu_memory_utilization == 0 && a.ep == 1);
    assert_true(!b.kv_fp8 && b.max_num_seqs == 0);
}

/* NVIDIA's overview calls the number of GPUs tp; models of experts run there with attention of each rank for itself, and so many requests at once. */
static void test_the_overview_of_trtllm(void **unused)
{
    (void)unused;
#define OVERVIEW "NVIDIA TensorRT-LLM perf-overview v1.0"
    struct maq_inference_row r = row(OVERVIEW, "trtllm", "Qwen3-235B-A22B", "B200-SXM-180GB", ""), started;
    r.version = maq_str_of("1.0");
    started = maq_inference_as_started(&r);
    assert_true(started.tp == 1 && started.dp == 4 && started.ep == 4 && started.pp == 1);
    assert_true(launched(&r).free_memory_share == 0.95 && !launched(&r).kv_fp8);

    r.model = maq_str_of("Llama 3.3 70B");
    started = maq_inference_as_started(&r);
    assert_true(started.tp == 4 && started.dp == 1 && started.ep == 1);
    r.model = maq_str_of("Mixtral 8x7B"); /* of the release before, whose page has one command for all */
    r.version = maq_str_of("0.17");
    assert_true(maq_inference_as_started(&r).tp == 4);

    r.model = maq_str_of("GPT-OSS 120B");
    r.version = maq_str_of("1.3 (approx; doc does not state)");
    r.tp = 1;
    r.dp = r.ep = 2;
    started = maq_inference_as_started(&r);
    assert_true(started.tp == 1 && started.dp == 2 && started.ep == 2 && launched(&r).kv_fp8);
    r.gpu = maq_str_of("H200-SXM-141GB");
    assert_true(!launched(&r).kv_fp8);

    assert_int_equal(maq_inference_requests(&r), 0); /* of 1,000 and 500 tokens the page has none */
    r.isl = r.osl = 1000;
    assert_int_equal(maq_inference_requests(&r), 3000);
    r.source = maq_str_of(SOURCE);
    assert_int_equal(maq_inference_requests(&r), 0);
}

/* All ten waves of a client, simulated. */
static void serve_all(double *ttft_s, double *tpot_s, const struct maq_inference_row *r)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *box;
    const struct maq_override o[] = {{"model", "model", "llama-3.1-8b"}, {"cluster", "cluster", "h100-sxm:1"}};
    assert_int_equal(maq_job_load(&box, NULL, o, 2, diag), MAQ_OK);
    struct maq_request_spec spec = {.prompt = (int64_t)r->isl,
                                    .output = (int64_t)r->osl,
                                    .spread = 0.1,
                                    .seed = 1,
                                    .concurrency = (uint32_t)r->load,
                                    .n = 10 * (uint32_t)r->load};
    struct maq_serve_options options = {.dp = 1, .ep = 1, .no_prefix_caching = true, .weights = MAQ_WEIGHTS_FP8};
    struct maq_request_set *set;
    struct maq_serve_result *result;
    assert_int_equal(maq_requests_generate(&set, &spec, diag), MAQ_OK);
    assert_int_equal(maq_serve_run(&result, maq_job_get(box), &options, maq_requests_get(set), diag), MAQ_OK);
    *ttft_s = result->ttft_s.mean;
    *tpot_s = result->tpot_s.mean;
    maq_serve_free(result);
    maq_requests_free(set);
    maq_job_free(box);
    maq_diag_free(diag);
}

/* A long run is simulated in part, and says what the whole would: the first wave queues, which four waves alike would have of 25 % of requests. */
static void test_long_runs_say_what_whole_ones_do(void **unused)
{
    (void)unused;
    for (double osl = 1000; osl < 5000; osl *= 4) { /* 64,000 and 256,000 tokens a wave */
        struct maq_arena arena;
        struct maq_inference_row r = row("somebody", "vllm", "llama-3.1-8b", "H100-SXM-80GB", "kind=serving");
        struct maq_inference_prediction p;
        double ttft_s, tpot_s, within = osl > 1000 ? 0.05 : 1e-9;
        r.tp = 1, r.gpus = 1, r.load = 64, r.osl = osl;
        maq_arena_init(&arena, 0);
        maq_inference_predict(&p, &r, &arena);
        assert_null(p.why_not);
        serve_all(&ttft_s, &tpot_s, &r);
        print_message("# %g tokens: TTFT %g of %g s, TPOT %g of %g s\n", osl, p.ttft_s, ttft_s, p.tpot_s, tpot_s);
        assert_true(fabs(p.ttft_s / ttft_s - 1) < within);
        assert_true(fabs(p.tpot_s / tpot_s - 1) < within);
        maq_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_script_holds_from_its_day),
        cmocka_unit_test(test_what_follows_the_row),
        cmocka_unit_test(test_the_row_comes_first),
        cmocka_unit_test(test_the_overview_of_trtllm),
        cmocka_unit_test(test_long_runs_say_what_whole_ones_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
