/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_ranks.c - attention data parallelism: ranks with requests and caches of their own that meet in the experts of every layer.
 *
 * One request waits for ranks that have nobody; equal requests on all ranks take as long as one; what the tokens of all pass is what a TP
 * group of as many ranks would; tokens reach the experts by collectives whose cost is asked for here as well. By chance, iterations that
 * are done at once have the outcome of one by one.
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
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve_jobs.h"

#define RANKS 4

static struct maq_loaded_job *moe(const char *plan)
{
    return load("qwen3-30b-a3b", "h100-sxm:8", plan, 8);
}

/* A pass of which the first rank has a request, and the others a token of nobody. */
static double lonely_pass_s(struct maq_deployment *d, int64_t queries, int64_t context)
{
    const struct maq_pass_chunk chunk = {queries, context};
    struct maq_pass_batch ranks[RANKS] = {{.tokens = queries, .padded = queries, .sampled = 1, .queries = 1}};
    struct maq_pass_parts parts;
    if (queries > 1) {
        ranks[0].chunks = &chunk;
        ranks[0].n_chunks = 1;
    } else {
        ranks[0].decodes = 1;
        ranks[0].decode_keys[0] = context + 1;
    }
    for (int r = 1; r < RANKS; r++)
        ranks[r].queries = 1;
    maq_batch_pad(d, ranks);
    assert_int_equal(ranks[1].padded, queries > 1 ? (maq_serve_graph_size(&d->options, queries, 1) > 0
                                                         ? maq_serve_graph_size(&d->options, queries, 1)
                                                         : 1)
                                                  : 1);
    return maq_batch_host_s(d, 1) + maq_batch_stage_s(d, 0, ranks, maq_batch_launch_mode(d, ranks), &parts);
}

static void test_one_request_alone(void **state)
{
    (void)state;
    struct maq_loaded_job *job = moe("");
    const struct maq_serve_options o = {.dp = RANKS, .ep = RANKS, .async_scheduling = MAQ_OFF};
    const struct maq_request request = {.prompt = 3000, .output = 5};
    const struct maq_requests q = {.at = &request, .n = 1};
    struct maq_deployment d;
    struct maq_serve_result *r = serve(job, &o, &q);
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    double sum = 0;
    for (int64_t k = 1; k < 5; k++)
        sum += lonely_pass_s(&d, 1, 3000 + k - 1);
    expect_close(r->served[0].last_s - r->served[0].first_s, sum, 1e-9, "four tokens");
    double host = maq_batch_host_s(&d, 1);
    expect_close(r->busy_s, lonely_pass_s(&d, 3000, 0) - host + sum, 1e-9, "all passes");
    assert_int_equal(r->n_devices, RANKS);
    assert_int_equal(r->iterations, 5);
    maq_deployment_fini(&d);
    maq_serve_free(r);
    maq_job_free(job);
}

/* Requests that come at once go to a rank each, and each ends when the others do. */
static void test_equal_requests(void **state)
{
    (void)state;
    struct maq_loaded_job *job = moe("");
    const enum maq_engine engines[] = {MAQ_ENGINE_VLLM, MAQ_ENGINE_SGLANG, MAQ_ENGINE_TRTLLM};
    struct maq_request list[RANKS * 3];
    for (int i = 0; i < RANKS * 3; i++)
        list[i] = (struct maq_request){.prompt = 400, .output = 50};
    for (size_t e = 0; e < MAQ_COUNT(engines); e++) {
        const struct maq_serve_options o = {.engine = engines[e], .dp = RANKS, .ep = RANKS, .max_num_seqs = 4 * RANKS};
        const struct maq_requests q = {.at = list, .n = RANKS * 3, .concurrency = RANKS * 3};
        struct maq_serve_result *r = serve(job, &o, &q);
        assert_int_equal(r->finished, RANKS * 3);
        for (int i = 1; i < RANKS * 3; i++)
            expect_close(r->served[i].last_s, r->served[0].last_s, 0.1, maq_engine_name(engines[e]));
        assert_true(r->mean_batch > RANKS * 2);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* What the tokens of all ranks pass, beside the pass of a TP group of as many ranks that has them all. */
static void test_experts_of_all(void **state)
{
    (void)state;
    struct maq_loaded_job *one = moe(""), *cut = moe(", tp: 4");
    const struct maq_serve_options wide = {.dp = RANKS, .ep = RANKS}, tp = {.ep = RANKS};
    struct maq_deployment a, b;
    assert_int_equal(maq_deployment_init(&a, maq_job_get(one), &wide, NULL), MAQ_OK);
    assert_int_equal(maq_deployment_init(&b, maq_job_get(cut), &tp, NULL), MAQ_OK);
    const int64_t sizes[] = {4, 64, 512, 4096};
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++) {
        struct maq_pass_parts own = {0}, shared = {0}, group = {0};
        maq_pass_layers(&a.passes, &a.passes.stages[0], MAQ_PASS_OWN, sizes[i] / RANKS, false, &own);
        maq_pass_layers(&a.passes, &a.passes.stages[0], MAQ_PASS_EXPERTS, sizes[i], false, &shared);
        maq_pass_layers(&b.passes, &b.passes.stages[0], MAQ_PASS_WHOLE, sizes[i], false, &group);
        /* the router's two kernels see the rank's own tokens */
        assert_true(shared.ns[MAQ_SERVE_EXPERTS] < group.ns[MAQ_SERVE_EXPERTS]);
        assert_true(shared.ns[MAQ_SERVE_EXPERTS] + own.ns[MAQ_SERVE_EXPERTS] <=
                    group.ns[MAQ_SERVE_EXPERTS] * (1 + 1e-9));
        assert_true(shared.ns[MAQ_SERVE_GEMM] <= 0 && own.ns[MAQ_SERVE_COMM] <= 0);
        struct maq_coll gather = {.kind = MAQ_COLL_ALL_GATHER, .sharers = 1, .at = a.passes.wide},
                        scatter = {.kind = MAQ_COLL_REDUCE_SCATTER, .sharers = 1, .at = a.passes.wide};
        gather.bytes = scatter.bytes = (double)sizes[i] * (double)maq_job_get(one)->model.hidden * 2;
        double each = maq_cost_coll(&a.passes.costs, &gather, &maq_job_get(one)->cluster).seconds +
                      maq_cost_coll(&a.passes.costs, &scatter, &maq_job_get(one)->cluster).seconds;
        expect_close(shared.ns[MAQ_SERVE_COMM] * 1e-9, each * maq_job_get(one)->model.num_layers, 1e-9,
                     "gather and scatter");
    }
    maq_deployment_fini(&a);
    maq_deployment_fini(&b);
    maq_job_free(one);
    maq_job_free(cut);
}

/* Weights: attention whole on each rank, experts in parts; the cache is each rank's own. */
static void test_memory(void **state)
{
    (void)state;
    struct maq_loaded_job *job = moe("");
    const struct maq_serve_options one = {0}, wide = {.dp = 8, .ep = 8}, cut = {.dp = 8, .ep = 1};
    struct maq_serve_result *a, *b, *c;
    assert_int_equal(maq_serve_plan(&a, maq_job_get(job), &one, NULL), MAQ_OK);
    assert_int_equal(maq_serve_plan(&b, maq_job_get(job), &wide, NULL), MAQ_OK);
    assert_int_equal(maq_serve_plan(&c, maq_job_get(job), &cut, NULL), MAQ_OK);
    /* 48 layers of 128 experts, 3 x 2,048 x 768, in 16 bits */
    double experts = 48.0 * 128 * 3 * 2048 * 768 * 2;
    expect_close(a->weights_bytes - b->weights_bytes, experts * 7 / 8, 1e-9, "seven eighths of the experts");
    expect_close(b->weights_bytes, c->weights_bytes, 1e-9, "spread or cut");
    expect_close(a->kv_bytes_per_token, b->kv_bytes_per_token, 1e-12, "a token's bytes");
    assert_true(b->kv_tokens > a->kv_tokens);
    maq_serve_free(a);
    maq_serve_free(b);
    maq_serve_free(c);
    maq_job_free(job);
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *jobs[] = {moe(""), moe(", tp: 2"), load("deepseek-v2-lite", "h100-sxm:8", "", 8)};
    for (uint64_t seed = 1; seed <= 45; seed++) {
        uint64_t draws = seed;
        enum maq_engine engine = (enum maq_engine)(seed % MAQ_ENGINE_COUNT);
        struct maq_serve_options o = draw_options(&draws, engine);
        o.dp = 1 << draw(&draws, 1, 2);
        o.ep = draw(&draws, 0, 1) ? o.dp : 1;
        if (engine == MAQ_ENGINE_SGLANG) { /* its limits are those of all ranks */
            o.max_num_seqs *= o.dp;
            o.max_num_batched_tokens *= o.dp;
        }
        o.chunked_prefill = true;
        struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        const struct maq_loaded_job *job = jobs[draw(&draws, 0, MAQ_COUNT(jobs) - 1)];
        struct maq_serve_result *a = serve_both_ways(NULL, job, o, &q, 1e-9);
        maq_serve_free(a);
    }
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *model;
        struct maq_serve_options o;
    } cases[] = {{"llama-3.1-8b", {.dp = 2}},
                 {"qwen3-30b-a3b", {.dp = 4, .ep = 3}},
                 {"qwen3-30b-a3b", {.ep = 2}},
                 {"qwen3-30b-a3b", {.dp = 16, .ep = 16}}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load(cases[i].model, "h100-sxm:8", "", 8);
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &cases[i].o, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_RANKS);
        maq_diag_free(diag);
        maq_job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_request_alone),     cmocka_unit_test(test_equal_requests),
        cmocka_unit_test(test_experts_of_all),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_at_once_is_one_by_one), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
