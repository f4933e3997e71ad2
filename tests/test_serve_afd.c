/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_afd.c - attention and FFN on GPUs of their own.
 *
 * A GPU of each with one micro-batch and free ways takes as long as a GPU that has both. One micro-batch takes what both sides and both ways take, and many
 * as long as the slower side. What is sent is what is computed; weights of both sides are those of the model, each once. By chance, iterations that are done
 * at once have the outcome of one by one; and what cannot be is refused.
 *
 * maq-test: long
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
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve_jobs.h"

#define BATCH 48

/* Of `afd`, all else by default; ep: all of FFN's where there are experts. */
static struct maq_serve_options cut(int32_t ffn, int32_t micro_batches, double bps)
{
    return (struct maq_serve_options){.afd = {.ffn_ranks = ffn, .micro_batches = micro_batches, .bps = bps}};
}

static void begin(struct maq_deployment *d, const struct maq_loaded_job *job, const struct maq_serve_options *o)
{
    struct maq_diag *diag = maq_diag_new();
    if (maq_deployment_init(d, maq_job_get(job), o, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
}

static struct maq_pass_batch decodes(const struct maq_deployment *d, uint32_t n, int64_t keys)
{
    struct maq_pass_batch b = maq_batch_decodes(d, n);
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        b.decode_keys[w] = n * maq_pass_keys(&d->passes, w, keys);
    return b;
}

static struct maq_pass_batch prompts(const struct maq_deployment *d, const struct maq_pass_chunk *chunks, uint32_t n)
{
    struct maq_pass_batch b = decodes(d, 5, 700);
    for (uint32_t i = 0; i < n; i++)
        b.tokens += chunks[i].queries;
    b.chunks = chunks;
    b.n_chunks = n;
    b.padded = maq_batch_launch(d, b.tokens, n, 1).padded;
    return b;
}

static double seconds(struct maq_deployment *d, const struct maq_pass_batch *b)
{
    struct maq_pass_parts parts;
    return maq_batch_stage_s(d, 0, b, maq_batch_launch_mode(d, b), &parts);
}

/* ---- closed forms ---- */

static void test_a_gpu_of_each(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b"};
    for (size_t i = 0; i < 2 * MAQ_COUNT(models) - 1; i++) { /* by m2n all but the first, which has no experts */
        struct maq_loaded_job *job = load(models[i % MAQ_COUNT(models)], "h100-sxm:8", "", 8);
        const struct maq_serve_options whole = {0};
        struct maq_serve_options halves = cut(1, 1, (double)INFINITY);
        struct maq_deployment a, b;
        if (i >= MAQ_COUNT(models)) {
            maq_job_free(job);
            job = load(models[i % MAQ_COUNT(models) + 1], "h100-sxm:8", "", 8);
            halves.afd.exchange = MAQ_AFD_M2N;
        }
        begin(&a, job, &whole);
        begin(&b, job, &halves);
        for (uint32_t n = 1; n <= 256; n *= 4) {
            const struct maq_pass_batch one = decodes(&a, n, 3000);
            struct maq_afd_pass pass;
            maq_afd_pass(&pass, b.afd, &one);
            struct maq_pass_parts parts = {0};
            double want = 0;
            maq_pass_add(&a.passes, 0, &one, &parts);
            for (int p = 0; p < MAQ_SERVE_PART_COUNT; p++)
                want += parts.ns[p] * 1e-9;
            expect_close(pass.s, want, 1e-9, maq_job_get(job)->model.name);
            expect_close(pass.attention.memory_ns + pass.ffn.memory_ns, parts.memory_ns, 1e-9, "traffic");
            expect_close(pass.attention.matrix_ns + pass.ffn.matrix_ns, parts.matrix_ns, 1e-9, "products");
        }
        maq_deployment_fini(&a);
        maq_deployment_fini(&b);
        maq_job_free(job);
    }
}

/* Both sides and both ways of one micro-batch; more of them are no faster than the busier side. */
static void test_micro_batches(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", ", tp: 2", 8);
    for (int32_t m = 1; m <= 8; m++) {
        for (int is_free = 0; is_free < 2; is_free++) {
            const struct maq_serve_options o = cut(4, m, is_free ? (double)INFINITY : 0);
            struct maq_deployment d;
            struct maq_afd_pass pass;
            begin(&d, job, &o);
            const struct maq_pass_batch b = decodes(&d, BATCH, 2000);
            maq_afd_pass(&pass, d.afd, &b);
            const struct maq_afd_times *t = &pass.times;
            double all = t->attention_s + t->to_ffn_s + t->ffn_s + t->to_attn_s, most = fmax(t->attention_s, t->ffn_s);
            assert_int_equal(pass.micro_batches, m);
            assert_true(pass.s >= most * (1 - 1e-9) && pass.s <= all * (1 + 1e-9));
            if (m == 1)
                expect_close(pass.s, all, 1e-9, "one micro-batch");
            if (m >= 4 && is_free) /* beside the way in and out of the pipeline */
                assert_true(pass.s < most * 1.05);
            if (is_free)
                assert_true(t->to_ffn_s <= 0 && t->to_attn_s <= 0);
            maq_deployment_fini(&d);
        }
    }
    maq_job_free(job);
}

/* ---- conservation ---- */

static void expect_slices(const struct maq_deployment *d, const struct maq_pass_batch *b, uint32_t n)
{
    static struct maq_pass_chunk chunks[4096];
    struct maq_pass_batch sum = {0};
    double squares = 0, want = 0;
    for (uint32_t k = 0; k < b->n_chunks; k++)
        want += (double)b->chunks[k].queries * (double)(2 * b->chunks[k].context + b->chunks[k].queries);
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_pass_batch s = maq_afd_slice(&d->passes, b, i, n, chunks);
        int64_t queries = s.decodes;
        for (uint32_t k = 0; k < s.n_chunks; k++) {
            queries += chunks[k].queries;
            squares += (double)chunks[k].queries * (double)(2 * chunks[k].context + chunks[k].queries);
        }
        assert_int_equal(queries, s.tokens);
        assert_true(s.padded >= s.tokens && s.tokens - b->tokens / n <= 1 && s.tokens >= b->tokens / n);
        sum.tokens += s.tokens;
        sum.padded += s.padded;
        sum.decodes += s.decodes;
        for (uint32_t w = 0; w < d->passes.n_windows; w++)
            sum.decode_keys[w] += s.decode_keys[w];
    }
    assert_int_equal(sum.tokens, b->tokens);
    assert_int_equal(sum.padded, b->padded);
    assert_int_equal(sum.decodes, b->decodes);
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        assert_int_equal(sum.decode_keys[w], b->decode_keys[w]);
    expect_close(squares, want, 1e-12,
                 "keys that the queries of prompts see"); /* a cut prompt sees what it would have whole */
}

static void test_slices(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = cut(1, 8, 0);
    struct maq_deployment d;
    uint64_t draws = 5;
    begin(&d, job, &o);
    for (int i = 0; i < 2000; i++) {
        struct maq_pass_chunk chunks[6];
        uint32_t n_chunks = draw(&draws, 0, 6), n;
        struct maq_pass_batch b = decodes(&d, draw(&draws, n_chunks == 0, 200), draw(&draws, 1, 5000));
        for (uint32_t k = 0; k < n_chunks; k++) {
            chunks[k] = (struct maq_pass_chunk){draw(&draws, 2, 900), draw(&draws, 0, 3000)};
            b.tokens += chunks[k].queries;
        }
        b.chunks = chunks;
        b.n_chunks = n_chunks;
        b.padded = maq_batch_launch(&d, b.tokens, n_chunks, 1).padded;
        n = draw(&draws, 1, 8);
        expect_slices(&d, &b, n);
    }
    maq_deployment_fini(&d);
    maq_job_free(job);
}

/* Each token once in each layer and direction, h numbers of 16 bits; by m2n as often as it has GPUs. */
static void test_bytes(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", "", 8);
    const struct maq_model *model = &maq_job_get(job)->model;
    static const struct maq_pass_chunk chunks[] = {{1000, 0}, {77, 300}};
    for (int32_t m = 1; m <= 5; m++)
        for (int e = 0; e < MAQ_AFD_EXCHANGE_COUNT; e++) {
            struct maq_serve_options o = cut(4, m, 0);
            struct maq_deployment d;
            struct maq_afd_pass pass;
            o.ep = 4;
            o.afd.exchange = (uint8_t)e;
            begin(&d, job, &o);
            const struct maq_pass_batch batches[] = {decodes(&d, BATCH, 2000), prompts(&d, chunks, 2)};
            for (size_t i = 0; i < MAQ_COUNT(batches); i++) {
                double none = 1; /* that a group of 32 of 128 experts has none of a token's 8 */
                for (int j = 0; j < 8; j++)
                    none *= (128.0 - 32 - j) / (128 - j);
                double ways = e == MAQ_AFD_P2P ? 1 : 4 * (1 - none),
                       want = (double)(batches[i].padded * model->hidden * 2) * model->num_layers * ways;
                maq_afd_pass(&pass, d.afd, &batches[i]);
                expect_close(pass.times.sent_bytes, want, 1e-9, "there");
                expect_close(pass.times.back_bytes, want, 1e-9, "back");
            }
            maq_deployment_fini(&d);
        }
    maq_job_free(job);
}

/* Ways of a token: of one group one, of as many as experts as many as it has; none of a layer that has no routed experts. */
static void test_ways(void **state)
{
    (void)state;
    struct maq_loaded_job *moe = load("qwen3-30b-a3b", "h100-sxm:8 x 32", "", 256),
                          *shares = load("deepseek-v2-lite", "h100-sxm:8", "", 8);
    double before = 0;
    for (int32_t f = 1; f <= 128; f *= 2) {
        struct maq_serve_options o = cut(f, 2, 0);
        struct maq_deployment d;
        o.ep = f;
        o.afd.exchange = MAQ_AFD_M2N;
        begin(&d, moe, &o);
        double ways = d.afd->ways[0];
        assert_true(ways > before && ways <= fmin(f, 8) + 1e-9);
        before = ways;
        maq_deployment_fini(&d);
    }
    expect_close(before, 8, 1e-9, "an expert on each GPU");
    struct maq_serve_options o = cut(4, 2, 0);
    struct maq_deployment d;
    struct maq_pass_parts parts = {0};
    o.ep = 4;
    o.afd.exchange = MAQ_AFD_M2N;
    begin(&d, shares, &o);
    const struct maq_pass_batch b = decodes(&d, 8, 100);
    for (uint32_t k = 0; k < d.afd->n_kinds; k++) {
        const struct maq_layer *layer = &d.job->model.kinds[k];
        assert_true(layer->moe ? d.afd->ways[k] > 1 && d.afd->ways[k] < 4 : d.afd->ways[k] <= 0);
        maq_pass_add(&d.afd->ffn, k, &b, &parts);
    }
    assert_true(parts.ns[MAQ_SERVE_EXPERTS] > 0 && parts.ns[MAQ_SERVE_GEMM] <= 0); /* shared experts are not there */
    maq_deployment_fini(&d);
    maq_job_free(moe);
    maq_job_free(shares);
}

/* ---- memory ---- */

/* What is on all GPUs of both sides is the model, and the cache is as wide as without. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite"};
    for (size_t i = 0; i < MAQ_COUNT(models); i++)
        for (int32_t n = 0; n < (i > 0 ? 4 : 2); n++) {
            const int32_t f = 1 + n % 2;
            const bool routed_alone = n >= 2;
            struct maq_loaded_job *job = load(models[i], "h200:8", "", 8);
            struct maq_serve_options whole = {0}, o = cut(f, 2, 0);
            o.afd.exchange = routed_alone ? MAQ_AFD_M2N : MAQ_AFD_P2P;
            struct maq_serve_result *a, *b;
            struct maq_deployment d;
            o.ep = maq_model_has_experts(&maq_job_get(job)->model) ? f : 1;
            assert_int_equal(maq_serve_plan(&a, maq_job_get(job), &whole, NULL), MAQ_OK);
            assert_int_equal(maq_serve_plan(&b, maq_job_get(job), &o, NULL), MAQ_OK);
            begin(&d, job, &whole);
            double router = 0; /* each GPU of FFN has all of it */
            for (uint32_t l = 0; l < d.job->model.num_layers; l++)
                for (uint32_t k = 0; k < d.job->model.kinds[d.job->model.kind_of[l]].n_modules; k++) {
                    const struct maq_module *m = &d.job->model.kinds[d.job->model.kind_of[l]].modules[k];
                    router += m->kind == MAQ_MODULE_ROUTER ? (double)m->params * 2 : 0;
                }
            router = routed_alone ? 0 : router;
            expect_close(b->memory[MAQ_SERVE_MEM_WEIGHTS] + f * b->afd.ffn_weights_bytes - (f - 1) * router,
                         a->memory[MAQ_SERVE_MEM_WEIGHTS], 1e-9, models[i]);
            expect_close(a->memory[MAQ_SERVE_MEM_WEIGHTS], maq_deployment_checkpoint_bytes(&d), 1e-9, "all of it");
            expect_close(b->kv_bytes_per_token, a->kv_bytes_per_token, 0, "a token in the cache");
            assert_true(b->kv_tokens > a->kv_tokens && b->afd.ffn_fits && b->fits);
            assert_int_equal(b->n_devices, 1 + f);
            maq_deployment_fini(&d);
            maq_serve_free(a);
            maq_serve_free(b);
            maq_job_free(job);
        }
}

/* Either side may be what does not fit. */
static void test_unfit(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-235b-a22b", "h100-sxm:8", ", tp: 4", 8);
    struct maq_serve_options o = cut(4, 2, 0);
    struct maq_serve_result *r;
    o.ep = 4;
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
    assert_true(!r->fits && !r->afd.ffn_fits && r->kv_tokens > 0);
    maq_serve_free(r);
    o.weights = o.expert_weights = MAQ_WEIGHTS_FP8;
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
    assert_true(r->fits && r->afd.ffn_fits);
    maq_serve_free(r);
    maq_job_free(job);
}

/* ---- devices ---- */

/* Of two kinds of nodes attention has the first and FFN the second, each at its own speed. */
static void test_two_kinds(void **state)
{
    (void)state;
    struct maq_loaded_job *mixed = load("qwen3-30b-a3b", "h20:8 + h100-sxm:8", "", 16),
                          *slow = load("qwen3-30b-a3b", "h20:8 x 2", "", 16),
                          *fast = load("qwen3-30b-a3b", "h100-sxm:8 x 2", "", 16);
    const struct maq_loaded_job *jobs[] = {mixed, slow, fast};
    const struct maq_serve_options o = cut(2, 2, (double)INFINITY);
    struct maq_afd_pass pass[3];
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct maq_deployment d;
        begin(&d, jobs[i], &o);
        const struct maq_pass_batch b = decodes(&d, BATCH, 2000);
        maq_afd_pass(&pass[i], d.afd, &b);
        maq_deployment_fini(&d);
    }
    expect_close(pass[0].times.attention_s, pass[1].times.attention_s, 1e-9, "attention");
    expect_close(pass[0].times.ffn_s, pass[2].times.ffn_s, 1e-9, "FFN");
    assert_true(fabs(pass[1].times.ffn_s - pass[2].times.ffn_s) > 0.01 * pass[2].times.ffn_s);
    maq_job_free(mixed);
    maq_job_free(slow);
    maq_job_free(fast);
}

/* Ways over the network are longer than those in a domain, and as long as is said where something is said. */
static void test_ways_between(void **state)
{
    (void)state;
    struct maq_loaded_job *near = load("qwen3-30b-a3b", "h100-sxm:8 x 2", ", tp: 4", 16),
                          *far = load("qwen3-30b-a3b", "h100-sxm:8 x 2", ", tp: 8", 16);
    const double most[] = {0, 1e9};
    for (size_t i = 0; i < MAQ_COUNT(most); i++) {
        const struct maq_serve_options four = cut(4, 1, most[i]), eight = cut(8, 1, most[i]);
        struct maq_deployment a, b;
        struct maq_afd_pass x, y;
        begin(&a, near, &four);
        begin(&b, far, &eight);
        const struct maq_pass_batch batch = decodes(&a, 256, 2000);
        maq_afd_pass(&x, a.afd, &batch);
        maq_afd_pass(&y, b.afd, &batch);
        double layers = maq_job_get(near)->model.num_layers, h = (double)maq_job_get(near)->model.hidden;
        if (i == 0)
            assert_true(x.times.to_ffn_s < y.times.to_ffn_s);
        else
            assert_true(x.times.to_ffn_s >= layers * 256 * h * 2 / 4 / 1e9 &&
                        x.times.to_ffn_s < layers * (256 * h * 2 / 4 / 1e9 + 20e-6));
        maq_deployment_fini(&a);
        maq_deployment_fini(&b);
    }
    maq_job_free(near);
    maq_job_free(far);
}

/* ---- an engine ---- */

/* Parts of an iteration are its time, whoever waits for whom; no pass is shorter than what is sure of it. */
static void test_parts(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("deepseek-v2-lite", "h100-sxm:8", "", 8);
    static const struct maq_pass_chunk chunks[] = {{1000, 0}, {77, 300}};
    for (int32_t m = 1; m <= 4; m++) {
        struct maq_serve_options o = cut(2, m, 0);
        struct maq_deployment d;
        o.dp = 2;
        o.ep = 2;
        begin(&d, job, &o);
        struct maq_pass_batch lonely = {.queries = 1}, sets[][2] = {{decodes(&d, BATCH, 2000), decodes(&d, 3, 100)},
                                                                    {prompts(&d, chunks, 2), decodes(&d, 7, 100)},
                                                                    {decodes(&d, 1, 2000), lonely}};
        for (size_t i = 0; i < MAQ_COUNT(sets); i++) {
            struct maq_pass_parts parts;
            double sum = 0;
            maq_batch_pad(&d, sets[i]);
            double s = maq_batch_stage_s(&d, 0, sets[i], maq_batch_launch_mode(&d, sets[i]), &parts);
            for (int p = 0; p < MAQ_SERVE_PART_COUNT; p++) {
                assert_true(parts.ns[p] >= 0);
                sum += parts.ns[p] * 1e-9;
            }
            expect_close(sum, s, 1e-9, "parts");
            if (i != 1)
                assert_true(maq_batch_least_s(&d, sets[i]) <= s);
        }
        maq_deployment_fini(&d);
    }
    maq_job_free(job);
}

static void test_one_request(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", ", tp: 2", 8);
    struct maq_serve_options o = cut(2, 2, 0);
    o.async_scheduling = MAQ_OFF;
    o.front_end = MAQ_FRONT_END_NONE;
    const struct maq_request request = {.prompt = 300, .output = 5};
    const struct maq_requests q = {.at = &request, .n = 1};
    struct maq_serve_result *r = serve(job, &o, &q);
    struct maq_deployment d;
    double sum = 0, ffn = 0;
    begin(&d, job, &o);
    for (int64_t k = 1; k < 5; k++) {
        const struct maq_pass_batch b = decodes(&d, 1, 300 + k);
        sum += seconds(&d, &b) + maq_batch_host_s(&d, 1);
        ffn += d.afd_times.ffn_s;
    }
    expect_close(r->served[0].last_s - r->served[0].first_s, sum, 1e-9, "four tokens");
    const struct maq_pass_chunk chunk = {300, 0};
    const struct maq_pass_batch first = {.tokens = 300,
                                         .padded = maq_batch_launch(&d, 300, 1, 1).padded,
                                         .sampled = 1,
                                         .queries = 1,
                                         .chunks = &chunk,
                                         .n_chunks = 1};
    (void)seconds(&d, &first);
    expect_close(r->afd.times.ffn_s, ffn + d.afd_times.ffn_s, 1e-9, "FFN of all passes");
    assert_true(r->part_s[MAQ_SERVE_AFD] > 0 && r->n_devices == 4);
    maq_deployment_fini(&d);
    maq_serve_free(r);
    maq_job_free(job);
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *jobs[] = {load("qwen3-30b-a3b", "h100-sxm:8", "", 8),
                                     load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8),
                                     load("deepseek-v2-lite", "h100-sxm:8", "", 8)};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t draws = seed;
        enum maq_engine engine = seed % 2 ? MAQ_ENGINE_VLLM : MAQ_ENGINE_SGLANG;
        size_t which = draw(&draws, 0, MAQ_COUNT(jobs) - 1);
        struct maq_serve_options o = draw_options(&draws, engine);
        o.dp = 1 << draw(&draws, 0, 1);
        o.afd = (struct maq_afd_options){.ffn_ranks = 1 << draw(&draws, 0, 2),
                                         .micro_batches = (int32_t)draw(&draws, 1, 4),
                                         .exchange = which != 1 && draw(&draws, 0, 1) ? MAQ_AFD_M2N : MAQ_AFD_P2P};
        o.ep = which != 1 && draw(&draws, 0, 1) ? o.afd.ffn_ranks : 1;
        if (engine == MAQ_ENGINE_SGLANG) { /* its limits are those of all ranks */
            o.max_num_seqs *= o.dp;
            o.max_num_batched_tokens *= o.dp;
        }
        struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        struct maq_serve_result *b, *a = serve_both_ways(&b, jobs[which], o, &q, 1e-9);
        expect_close(a->afd.times.ffn_s, b->afd.times.ffn_s, 1e-9, "FFN");
        expect_close(a->afd.times.sent_bytes, b->afd.times.sent_bytes, 1e-9, "bytes");
        maq_serve_free(a);
        maq_serve_free(b);
    }
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

/* ---- what cannot be ---- */

static void test_refused(void **state)
{
    (void)state;
    const struct maq_afd_options two = {.ffn_ranks = 2};
    const struct {
        const char *model, *cluster, *plan;
        struct maq_serve_options o;
        int code;
    } cases[] = {
        {"llama-3.1-8b", "h100-sxm:8", ", pp: 2", {.afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b", "h100-sxm:8", "", {.engine = MAQ_ENGINE_TRTLLM, .afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b", "h100-sxm:8", "", {.lora = {.enabled = true}, .afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b",
         "h100-sxm:8",
         "",
         {.speculation = {.method = MAQ_DRAFT_NGRAM, .tokens = 2}, .afd = two},
         MAQ_CODE_SERVE_AFD},
        {"qwen3-30b-a3b", "h100-sxm:8", "", {.exchange = MAQ_EXCHANGE_DEEPEP, .afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b", "h100-sxm:8", ", tp: 8", {.afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b", "h100-sxm:8", ", tp: 2", {.afd = {.ffn_ranks = 3}}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b",
         "h100-sxm:8",
         ", tp: 2",
         {.afd = {.ffn_ranks = 2, .exchange = MAQ_AFD_M2N}},
         MAQ_CODE_SERVE_AFD},
        {"qwen3-30b-a3b", "h100-sxm:8", "", {.ep = 6, .afd = {.ffn_ranks = 6}}, MAQ_CODE_SERVE_AFD},
        {"qwen3-30b-a3b", "h100-sxm:8", "", {.ep = 4, .afd = two}, MAQ_CODE_SERVE_RANKS},
        {"mamba2-2.7b", "h100-sxm:8", "", {.afd = two}, MAQ_CODE_SERVE_AFD},
        {"llama-3.1-8b", "h20:1 + h100-sxm:7", "", {.dp = 2, .afd = two}, MAQ_CODE_SERVE_AFD},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load(cases[i].model, cases[i].cluster, cases[i].plan, 8);
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        if (maq_serve_plan(&r, maq_job_get(job), &cases[i].o, diag) != MAQ_BAD_INPUT)
            fail_msg("case %zu is not refused", i);
        assert_int_equal(maq_diag_at(diag, 0)->code, cases[i].code);
        maq_diag_free(diag);
        maq_job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gpu_of_each), cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_slices),        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_ways),          cmocka_unit_test(test_memory),
        cmocka_unit_test(test_unfit),         cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_ways_between),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_one_request),   cmocka_unit_test(test_at_once_is_one_by_one),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
