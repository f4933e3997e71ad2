/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_draft.c - speculative decoding: what is accepted as it is written and as it is drawn, the layers that draft, and whole runs: none accepted is
 * a token each, all are K + 1, in between the closed form; what is accepted of a request does not depend on who else is there.
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
#include "serve/draft/acceptance.h"
#include "serve/engine/batch.h"
#include "serve/sched/sglang.h"
#include "serve_jobs.h"
#include "temp.h"

static struct maq_speculation speculation(enum maq_draft_method method, int32_t tokens, const char *accepted)
{
    struct maq_speculation s = {.method = method, .tokens = tokens, .seed = 7};
    assert_int_equal(maq_acceptance_read(&s, accepted, NULL), MAQ_OK);
    return s;
}

/* ---- what is accepted ---- */

static void test_shares(void **state)
{
    (void)state;
    for (int32_t k = 1; k <= 8; k++) {
        struct maq_speculation s = speculation(MAQ_DRAFT_NGRAM, k, "0.7");
        expect_close(maq_acceptance_length(&s), (1 - pow(0.7, k + 1)) / (1 - 0.7), 1e-12, "tokens of a verification");
    }
    struct maq_speculation s = speculation(MAQ_DRAFT_NGRAM, 2, " 0.8, 0.5 ,0.1");
    assert_true(s.accepted[0] == 0.8 && s.accepted[1] == 0.5 && s.accepted[2] == 0);
    expect_close(maq_acceptance_length(&s), 2.3, 1e-12, "tokens of a verification");
    s = speculation(MAQ_DRAFT_NGRAM, 4, "1");
    assert_true(s.accepted[3] == 1);
    char path[] = "/tmp/maq-shares-XXXXXX";
    s = speculation(MAQ_DRAFT_NGRAM, 3, temp_text(path, "position,accepted\n1,0.9\n\n2,0.6\n3,0.5\n"));
    assert_true(s.accepted[0] == 0.9 && s.accepted[2] == 0.5);
    assert_int_equal(unlink(path), 0);
}

static void test_shares_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "1.1", "-0.1",    "0.5,x",   "0.5,0.4", "0.5,0.6,0.1",
                                      "x.y", "nan", "0.5,,.1", "2,0.1,0", "."};
    for (size_t i = 0; i < MAQ_COUNT(bad); i++) {
        struct maq_speculation s = {.tokens = 3};
        struct maq_diag *diag = maq_diag_new();
        if (maq_acceptance_read(&s, bad[i], diag) != MAQ_BAD_INPUT)
            fail_msg("'%s' is taken", bad[i]);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_ACCEPTANCE);
        maq_diag_free(diag);
    }
    static const char *const files[] = {"a,b\n1,2\n", "position,accepted\n2,0.5\n", "position,accepted\n1,0.5\n2,0.6\n",
                                        "position,accepted\n1\n", "position,accepted\n1,0.5\n"};
    for (size_t i = 0; i < MAQ_COUNT(files); i++) {
        struct maq_speculation s = {.tokens = 2};
        char path[] = "/tmp/maq-shares-XXXXXX";
        assert_int_equal(maq_acceptance_read(&s, temp_text(path, files[i]), NULL), MAQ_BAD_INPUT);
        assert_int_equal(unlink(path), 0);
    }
}

/* Each place as often as it says, within 5 standard deviations; and a draft is only accepted behind accepted ones. */
static void test_draws(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    const struct maq_speculation s = speculation(MAQ_DRAFT_NGRAM, 4, "0.8,0.55,0.5,0.05");
    uint32_t had[5] = {0};
    for (uint32_t i = 0; i < DRAWS; i++) {
        int32_t n = maq_drafts_accepted(&s, i / 200, i % 200 * 7, 4);
        assert_true(n >= 0 && n <= 4);
        had[n]++;
        assert_int_equal(n, maq_drafts_accepted(&s, i / 200, i % 200 * 7, 4));
        int32_t fewer = maq_drafts_accepted(&s, i / 200, i % 200 * 7, 2);
        assert_int_equal(fewer, n < 2 ? n : 2);
    }
    for (int j = 0; j < 4; j++) {
        double share = 0, p = s.accepted[j];
        for (int n = j + 1; n <= 4; n++)
            share += (double)had[n] / DRAWS;
        assert_true(fabs(share - p) < 5 * sqrt(p * (1 - p) / DRAWS));
    }
    struct maq_speculation other = s;
    other.seed = 8;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < 1000; i++)
        differ += maq_drafts_accepted(&s, i, 0, 4) != maq_drafts_accepted(&other, i, 0, 4);
    assert_true(differ > 300);
}

/* ---- the layers that draft ---- */

static struct maq_deployment open_deployment(struct maq_loaded_job **job, const char *model, const char *plan,
                                             struct maq_speculation s)
{
    struct maq_deployment d;
    struct maq_serve_options o = {.speculation = s};
    struct maq_diag *diag = maq_diag_new();
    *job = load(model, "h200:8", plan, 8);
    if (maq_deployment_init(&d, maq_job_get(*job), &o, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return d;
}

/* Llama 3.1 8B: hidden 4,096, 14,336 in the MLP, 32 heads and 8 of keys of 128: counted by hand. */
static void test_heads_of_eagle(void **state)
{
    (void)state;
    const double h = 4096, mlp = 3 * h * 14336, out = h * h, qkv = h * (h + 2 * 1024.0), norms = 2 * h;
    const struct {
        enum maq_draft_method method;
        double layer, head;
    } cases[] = {{MAQ_DRAFT_EAGLE, 2 * h * h + qkv + out + mlp + norms, 0},
                 {MAQ_DRAFT_EAGLE3, 2 * qkv + out + mlp + norms + h + 3 * h * h, h * 32000 + h}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job, *plain;
        struct maq_deployment none = open_deployment(&plain, "llama-3.1-8b", "", (struct maq_speculation){0}),
                              d = open_deployment(&job, "llama-3.1-8b", "", speculation(cases[i].method, 3, "0.7"));
        double more = d.memory[MAQ_SERVE_MEM_WEIGHTS] - none.memory[MAQ_SERVE_MEM_WEIGHTS];
        expect_close(more, 2 * (cases[i].layer + cases[i].head), 1e-9, "bytes of the head");
        /* a layer's keys and values, of 32 that the model has */
        expect_close(d.kv_bytes_per_token, none.kv_bytes_per_token * 33 / 32, 1e-12, "bytes of a token");
        assert_true(d.blocks < none.blocks);
        maq_deployment_fini(&d);
        maq_deployment_fini(&none);
        maq_job_free(job);
        maq_job_free(plain);
    }
}

/* DeepSeek-V3's own layer: norms, the joint product on every rank, a layer of experts; a further draft passes the same layer. */
static void test_multi_token_prediction(void **state)
{
    (void)state;
    struct maq_loaded_job *job, *plain;
    struct maq_deployment none = open_deployment(&plain, "deepseek-v3", ", tp: 8", (struct maq_speculation){0}),
                          d = open_deployment(&job, "deepseek-v3", ", tp: 8", speculation(MAQ_DRAFT_MTP, 2, "0.7"));
    const struct maq_model *m = &maq_job_get(job)->model;
    assert_int_equal(m->mtp_layers, 1);
    double more = d.memory[MAQ_SERVE_MEM_WEIGHTS] - none.memory[MAQ_SERVE_MEM_WEIGHTS], joint = 2 * 7168.0 * 7168 * 2;
    assert_true(more > joint && more < joint + (double)m->mtp.params * 2 / 8 + 50e6);
    expect_close(d.kv_bytes_per_token, none.kv_bytes_per_token * 62 / 61, 1e-12, "bytes of a token");
    maq_deployment_fini(&d);
    maq_deployment_fini(&none);
    maq_job_free(job);
    maq_job_free(plain);
}

static void test_nothing_that_drafts(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        enum maq_draft_method method;
        int32_t branches;
    } cases[] = {{"llama-3.1-8b", MAQ_DRAFT_MTP, 0},
                 {"qwen3-30b-a3b", MAQ_DRAFT_EAGLE3, 0},
                 {"llama-3.1-8b", MAQ_DRAFT_MODEL, 0},
                 {"llama-3.1-8b", MAQ_DRAFT_EAGLE, 4}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load(cases[i].model, "h200:8", "", 8);
        struct maq_serve_options o = {.speculation = speculation(cases[i].method, 3, "0.5")};
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        o.speculation.branches = cases[i].branches;
        assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SPECULATION);
        maq_diag_free(diag);
        maq_job_free(job);
    }
}

/* ---- passes ---- */

static double decode_ns(struct maq_deployment *d, int64_t requests, int64_t queries, int64_t keys)
{
    struct maq_pass_batch b = {.tokens = requests * queries,
                               .padded = requests * queries,
                               .sampled = requests * queries,
                               .decodes = requests,
                               .queries = queries};
    struct maq_pass_parts parts = {0};
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        b.decode_keys[w] = requests * maq_pass_keys(&d->passes, w, keys);
    for (uint32_t k = 0; k < d->passes.stages[0].n_layers; k++)
        maq_pass_mixer(&d->passes, d->passes.stages[0].layers[k].layer, d->passes.stages[0].layers[k].count, &b,
                       MAQ_MIXER_WHOLE, &parts);
    return parts.ns[MAQ_SERVE_ATTENTION];
}

/*
 * Several queries at the end of a sequence read its keys once: they take no less than one query, but for what fitted tables differ by, and less than as
 * many sequences; those of latent attention too, whose products grow with the tokens.
 */
static void test_queries_share_keys(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-70b", "gpt-oss-120b", "deepseek-v3"};
    for (size_t i = 0; i < MAQ_COUNT(models); i++) {
        struct maq_loaded_job *job;
        struct maq_deployment d = open_deployment(&job, models[i], ", tp: 8", (struct maq_speculation){0});
        for (int64_t keys = 1000; keys <= 64000; keys *= 8) {
            double before = decode_ns(&d, 16, 1, keys);
            for (int64_t q = 2; q <= 8; q++) {
                double now = decode_ns(&d, 16, q, keys);
                if (!(now >= 0.95 * before && now <= decode_ns(&d, 16 * q, 1, keys) * 1.1))
                    fail_msg("%s: %lld queries behind %lld keys take %g ns, %g one less, %g as sequences", models[i],
                             (long long)q, (long long)keys, now, before, decode_ns(&d, 16 * q, 1, keys));
                before = now;
            }
        }
        maq_deployment_fini(&d);
        maq_job_free(job);
    }
}

/* ---- runs ---- */

enum { REQUESTS = 40, K = 3 };

static struct maq_requests some_requests(struct maq_request *at, uint64_t seed, uint32_t concurrency)
{
    uint64_t draws = seed;
    for (uint32_t i = 0; i < REQUESTS; i++)
        at[i] =
            (struct maq_request){.arrival_s = 0.02 * i, .prompt = draw(&draws, 2, 900), .output = draw(&draws, 1, 300)};
    return (struct maq_requests){.at = at, .n = REQUESTS, .concurrency = concurrency};
}

static const struct {
    enum maq_engine engine;
    int async;
    bool mixed;
} engines[] = {{MAQ_ENGINE_VLLM, MAQ_ON, false},
               {MAQ_ENGINE_VLLM, MAQ_OFF, false},
               {MAQ_ENGINE_SGLANG, MAQ_ON, false},
               {MAQ_ENGINE_SGLANG, MAQ_OFF, false},
               {MAQ_ENGINE_TRTLLM, MAQ_ON, false}};

/* Verifications of a request that is accepted `n` drafts each time: its first token comes out of the prompt. */
static uint64_t verifications_of(const struct maq_requests *q, int64_t each)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < q->n; i++)
        sum += (uint64_t)((q->at[i].output - 1 + each - 1) / each);
    return sum;
}

/* None is accepted: a token each, as without drafts; all are: K + 1. */
static void test_none_and_all(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request at[REQUESTS];
    for (size_t e = 0; e < MAQ_COUNT(engines); e++)
        for (int all = 0; all < 2; all++) {
            const struct maq_requests q = some_requests(at, 3, 8);
            struct maq_serve_options o = {.engine = engines[e].engine,
                                          .async_scheduling = engines[e].async,
                                          .speculation = speculation(MAQ_DRAFT_EAGLE, K, all ? "1" : "0")};
            struct maq_serve_result *r = serve(job, &o, &q);
            assert_int_equal(r->finished, REQUESTS);
            assert_int_equal(r->speculated.verifications, verifications_of(&q, all ? K + 1 : 1));
            assert_int_equal(r->speculated.drafted, K * r->speculated.verifications);
            assert_int_equal(r->speculated.accepted, all ? r->speculated.drafted : 0);
            assert_true(r->part_s[MAQ_SERVE_DRAFT] > 0 && r->part_s[MAQ_SERVE_DRAFT] == r->speculated.draft_s);
            maq_serve_free(r);
        }
    maq_job_free(job);
}

/* A request alone: the iteration of its prompt, and one for each verification; one more where the next is decided before its end is known. */
static void test_iterations_of_one(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request at[] = {{.prompt = 100, .output = 1 + 10 * (K + 1)}};
    const struct maq_requests q = {.at = at, .n = 1};
    for (size_t e = 0; e < MAQ_COUNT(engines); e++) {
        struct maq_serve_options o = {.engine = engines[e].engine,
                                      .async_scheduling = engines[e].async,
                                      .speculation = speculation(MAQ_DRAFT_NGRAM, K, "1")};
        struct maq_serve_result *r = serve(job, &o, &q);
        assert_true(r->iterations >= 11 && r->iterations <= (engines[e].async == MAQ_ON ? 12 : 11));
        assert_int_equal(r->speculated.verifications, 10);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/*
 * What is accepted of a request depends on it and its text alone: any engine, however many are there, counts the same; and in the mean it is
 * the closed form, within 5 standard deviations.
 */
static void test_the_same_of_all(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request at[REQUESTS];
    struct maq_speculated first = {0};
    for (size_t e = 0; e < MAQ_COUNT(engines); e++)
        for (uint32_t concurrency = 0; concurrency <= 16; concurrency += 8) {
            const struct maq_requests q = some_requests(at, 5, concurrency);
            struct maq_serve_options o = {.engine = engines[e].engine,
                                          .async_scheduling = engines[e].async,
                                          .speculation = speculation(MAQ_DRAFT_EAGLE, K, "0.7")};
            struct maq_serve_result *r = serve(job, &o, &q);
            if (first.verifications == 0)
                first = r->speculated;
            assert_int_equal(r->speculated.verifications, first.verifications);
            assert_int_equal(r->speculated.accepted, first.accepted);
            double n = (double)first.verifications, mean = 1 + (double)first.accepted / n;
            assert_true(fabs(mean - maq_acceptance_length(&o.speculation)) < 5 * 1.2 / sqrt(n));
            maq_serve_free(r);
        }
    maq_job_free(job);
}

/* More accepted is never slower, a further draft that is never accepted never faster; who drafts for nothing is what is left out. */
static void test_order_of_times(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-70b", "h100-sxm:8", ", tp: 4", 8);
    static const char *const rates[] = {"0", "0.3", "0.6", "0.9", "1"};
    double before = INFINITY, plain, ngram;
    struct maq_serve_batch b;
    struct maq_serve_options o = {0};
    assert_int_equal(maq_serve_static(&b, maq_job_get(job), &o, 16, 1000, 200, NULL), MAQ_OK);
    plain = b.decode_s;
    for (size_t i = 0; i < MAQ_COUNT(rates); i++) {
        o.speculation = speculation(MAQ_DRAFT_EAGLE3, K, rates[i]);
        assert_int_equal(maq_serve_static(&b, maq_job_get(job), &o, 16, 1000, 200, NULL), MAQ_OK);
        assert_true(b.decode_s < before);
        assert_true(i > 0 || b.decode_s > plain);
        before = b.decode_s;
    }
    assert_true(before < plain / 2);
    before = plain;
    for (int32_t k = 1; k <= 6; k++) {
        o.speculation = speculation(MAQ_DRAFT_EAGLE, k, "0");
        assert_int_equal(maq_serve_static(&b, maq_job_get(job), &o, 16, 1000, 50, NULL), MAQ_OK);
        assert_true(k > 1 ? b.decode_s >= before : b.decode_s > 0);
        before = b.decode_s;
    }
    o.speculation = speculation(MAQ_DRAFT_NGRAM, 6, "0");
    assert_int_equal(maq_serve_static(&b, maq_job_get(job), &o, 16, 1000, 50, NULL), MAQ_OK);
    ngram = b.decode_s;
    assert_true(ngram < before);
    maq_job_free(job);
}

/* Small caches, long outputs: requests give way, some of them with drafts under way, and all end. One by one is the same. */
static void test_with_little_cache(void **state)
{
    (void)state;
    static struct maq_request list[80];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint64_t preemptions = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t draws = seed;
        enum maq_engine engine = (enum maq_engine)(seed % MAQ_ENGINE_COUNT);
        struct maq_serve_options o = draw_options(&draws, engine);
        const struct maq_requests q = draw_requests(list, draw(&draws, 30, 80), &draws);
        char rate[8];
        snprintf(rate, sizeof rate, "0.%u", draw(&draws, 0, 9));
        bool head = draw(&draws, 0, 1); /* one draw after another: arguments have no order */
        o.speculation = speculation(head ? MAQ_DRAFT_EAGLE : MAQ_DRAFT_NGRAM, (int32_t)draw(&draws, 1, 7), rate);
        o.speculation.branches = engine == MAQ_ENGINE_SGLANG ? (int32_t)draw(&draws, 1, 4) : 0;
        o.max_num_batched_tokens += 3000;
        o.front_end = MAQ_FRONT_END_NONE; /* requests come together, and there is little room */
        struct maq_serve_result *a = serve(job, &o, &q);
        o.one_by_one = true;
        struct maq_serve_result *b = serve(job, &o, &q);
        assert_int_equal(a->finished, q.n);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        preemptions += a->preemptions;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%llu preemptions\n", (unsigned long long)preemptions);
    assert_true(preemptions > 3);
    maq_job_free(job);
}

/* ---- schedulers: what the cache holds ---- */

/* Requests under a scheduler whose answers are random: after each step the cache has room for what is computed, and at the end all of it is back. */
static void conserve(struct maq_scheduler *s, uint64_t *draws, uint32_t requests)
{
    struct maq_iteration it[2] = {{0}};
    int32_t sampled[256];
    int64_t left[64];
    uint32_t came = 0, ended = 0, steps = 0;
    bool late = draw(draws, 0, 1) == 1;
    for (; ended < requests && steps < 20000; steps++) {
        if (came < requests && draw(draws, 0, 2) == 0) {
            struct maq_scheduler_request q = {
                .prompt = draw(draws, 2, 300), .output = draw(draws, 1, 120), .order = came};
            q.content.own = came;
            q.content.unit = 16;
            left[came] = q.output;
            assert_true(s->ops->add(s, &q) != MAQ_NO_SLOT);
            came++;
        }
        struct maq_iteration *now = &it[steps % 2], *past = late ? &it[(steps + 1) % 2] : now;
        s->ops->decide(s, now);
        const struct maq_scheduler_load load = s->ops->load(s);
        assert_true(load.used >= 0 && load.used <= load.all);
        if (late && steps == 0)
            continue;
        for (uint32_t i = 0; i < past->n; i++)
            sampled[i] =
                past->scheduled[i].samples ? 1 + (int32_t)draw(draws, 0, (uint32_t)past->scheduled[i].drafts) : 0;
        s->ops->end(s, past, sampled);
        for (uint32_t i = 0; i < past->n; i++) {
            assert_true(past->scheduled[i].came <= sampled[i]);
            left[past->scheduled[i].order] -= past->scheduled[i].came;
            assert_true(left[past->scheduled[i].order] >= 0);
        }
        ended += past->n_finished;
    }
    assert_int_equal(ended, requests);
    for (uint32_t i = 0; i < requests; i++)
        assert_int_equal(left[i], 0);
    assert_int_equal(s->ops->load(s).used, 0);
    maq_iteration_fini(&it[0]);
    maq_iteration_fini(&it[1]);
    s->ops->fini(s);
}

static void test_blocks_come_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed;
        int32_t k = (int32_t)draw(&draws, 1, 6);
        struct maq_scheduler *s = NULL;
        const struct maq_sglang_knobs sglang = {.tokens = draw(&draws, 600, 3000) / 16 * 16,
                                                .page = draw(&draws, 0, 1) ? 1 : 16,
                                                .max_running = 16,
                                                .max_prefill = 4096,
                                                .chunk = 256,
                                                .conservativeness = 0.2,
                                                .verified = k + 1,
                                                .drafts = k,
                                                .reserve = 2 * (k + 1),
                                                .caching = draw(&draws, 0, 1) == 1,
                                                .overlap = true};
        assert_int_equal(maq_sglang_new(&s, &sglang), MAQ_OK);
        conserve(s, &draws, 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_shares_refused),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_heads_of_eagle),
        cmocka_unit_test(test_multi_token_prediction),
        cmocka_unit_test(test_nothing_that_drafts),
        cmocka_unit_test(test_queries_share_keys),
        cmocka_unit_test(test_none_and_all),
        cmocka_unit_test(test_iterations_of_one),
        cmocka_unit_test(test_the_same_of_all),
        cmocka_unit_test(test_order_of_times),
        cmocka_unit_test(test_with_little_cache),
        cmocka_unit_test(test_blocks_come_back),
    };
    return cmocka_run_group_tests_name("speculative decoding", tests, NULL, NULL);
}
