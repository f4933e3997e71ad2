/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - the public calls: what a deployment holds, what becomes of requests, one batch alone. */
#include "maquette/serve.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve/engine/run.h"
#include "serve/sched/sglang.h"

static void fill_plan(struct maq_serve_result *out, const struct maq_deployment *d)
{
    out->job = d->job;
    out->options = d->options;
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++)
        out->memory[i] = d->memory[i];
    out->capacity_bytes = d->capacity_bytes;
    out->weights_bytes = d->memory[MAQ_SERVE_MEM_WEIGHTS];
    out->kv_bytes_per_token = d->kv_bytes_per_token;
    out->blocks = d->blocks;
    out->kv_tokens = d->kv_tokens;
    out->fits = d->fits;
    out->n_devices = (uint32_t)(d->job->plan.tp * d->job->plan.pp);
}

/* Requests that no scheduler could ever take in are named before any runs. */
static enum maq_status check_requests(const struct maq_deployment *d, const struct maq_requests *q,
                                      struct maq_diag *diag)
{
    double before = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_request *r = &q->at[i];
        int64_t tokens = r->prompt + r->output, room = tokens;
        if (d->options.engine == MAQ_ENGINE_SGLANG)
            room = maq_sglang_room(r->prompt, r->output, d->options.block_size);
        if (r->prompt < 1 || r->output < 1)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_EMPTY, (struct maq_span){0}, NULL,
                                 "request %u has %lld tokens in and %lld out: both are at least 1", i + 1,
                                 (long long)r->prompt, (long long)r->output);
        if (tokens > d->options.max_model_len)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                                 "--max-model-len, or shorter requests",
                                 "request %u has %lld tokens in and %lld out, the context is %lld", i + 1,
                                 (long long)r->prompt, (long long)r->output, (long long)d->options.max_model_len);
        if (d->options.no_chunked_prefill && d->options.engine != MAQ_ENGINE_SGLANG &&
            r->prompt > d->options.max_num_batched_tokens)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                                 "--max-num-batched-tokens, or shorter prompts",
                                 "request %u has %lld tokens in, which are computed at once, an iteration has %d",
                                 i + 1, (long long)r->prompt, d->options.max_num_batched_tokens);
        if (room > d->kv_tokens)
            return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0},
                                 "more memory for the cache: a higher --tp, a narrower type, --gpu-memory-utilization",
                                 "request %u needs room for %lld tokens, the cache holds %lld", i + 1, (long long)room,
                                 (long long)d->kv_tokens);
        if (q->concurrency == 0 && r->arrival_s < before)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_ORDER, (struct maq_span){0},
                                 "sort them by arrival", "request %u comes before request %u: time goes back", i + 1,
                                 i);
        before = r->arrival_s;
    }
    return MAQ_OK;
}

static enum maq_status serve(struct maq_serve_result **out, const struct maq_job *job,
                             const struct maq_serve_options *options, const struct maq_requests *requests,
                             struct maq_diag *diag)
{
    struct maq_deployment d;
    struct maq_serve_result *r = maq__calloc(sizeof *r);
    enum maq_status status = maq_deployment_init(&d, job, options, diag);
    if (!r)
        status = maq_no_memory(diag, "a deployment");
    if (status == MAQ_OK)
        fill_plan(r, &d);
    if (status == MAQ_OK && requests && d.fits) {
        status = check_requests(&d, requests, diag);
        if (status == MAQ_OK)
            status = maq_serve_engine_run(r, &d, requests);
        if (status == MAQ_LIMIT)
            status = maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0}, NULL,
                                   "requests wait that never find room in the cache");
        else if (status == MAQ_NO_MEMORY)
            status = maq_no_memory(diag, "requests under way");
    }
    maq_deployment_fini(&d);
    if (status != MAQ_OK) {
        maq_serve_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

enum maq_status maq_serve_plan(struct maq_serve_result **out, const struct maq_job *job,
                               const struct maq_serve_options *options, struct maq_diag *diag)
{
    return serve(out, job, options, NULL, diag);
}

enum maq_status maq_serve_run(struct maq_serve_result **out, const struct maq_job *job,
                              const struct maq_serve_options *options, const struct maq_requests *requests,
                              struct maq_diag *diag)
{
    return serve(out, job, options, requests, diag);
}

void maq_serve_free(struct maq_serve_result *result)
{
    if (result)
        free(result->served);
    free(result);
}

/* ---- one batch ---- */

static double whole_pass(struct maq_deployment *d, const struct maq_pass_batch *b, double sum[MAQ_SERVE_PART_COUNT])
{
    double s = 0;
    for (uint32_t stage = 0; stage < d->passes.n_stages; stage++) {
        struct maq_pass_parts parts;
        s += maq_batch_stage_s(d, stage, b, &parts);
        s += stage > 0 ? maq_batch_transfer_s(d, b->tokens) : 0;
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            sum[i] += parts.ns[i] * 1e-9;
    }
    double host = maq_batch_host_s(d, (uint32_t)(b->decodes + b->n_chunks));
    if (d->host.async)
        host = host > s ? host - s : 0;
    sum[MAQ_SERVE_HOST] += host;
    return s + host;
}

/*
 * The pass that comes next over `prompts`, of which `done` tokens are computed: the prompts one after another, as much as fits. An
 * iteration as the scheduler would have it, so that a batch alone and one under way cost the same. Returns its time.
 */
static double prompt_pass(struct maq_deployment *d, struct maq_batch_writer *w, int64_t prompts, int64_t prompt,
                          int64_t *done, double sum[MAQ_SERVE_PART_COUNT])
{
    struct maq_scheduled list[64];
    struct maq_iteration it = {.scheduled = list};
    int64_t most = d->options.max_num_batched_tokens;
    while (it.n < MAQ_COUNT(list) && it.tokens < most && *done < prompts * prompt) {
        int64_t context = *done % prompt, n = prompt - context;
        n = n < most - it.tokens ? n : most - it.tokens;
        list[it.n++] =
            (struct maq_scheduled){.tokens = (int32_t)n, .computed = context, .samples = context + n == prompt};
        it.tokens += n;
        *done += n;
    }
    maq_batch_of(w, d, &it);
    return whole_pass(d, &w->batch, sum);
}

/* A batch that no iteration could hold is refused; where the deployment itself does not fit, times are said all the same. */
static enum maq_status check_batch(const struct maq_deployment *d, int64_t batch, int64_t prompt, int64_t output,
                                   struct maq_diag *diag)
{
    int64_t tokens = prompt + output, most = d->options.max_num_seqs;
    if (most > d->options.max_num_batched_tokens)
        most = d->options.max_num_batched_tokens;
    if (batch > most)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                             "--max-num-seqs and --max-num-batched-tokens, or a smaller batch",
                             "a batch of %lld requests: the engine takes %lld into an iteration", (long long)batch,
                             (long long)most);
    if (tokens > d->options.max_model_len)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                             "--max-model-len, or shorter requests",
                             "a request has %lld tokens in and %lld out, the context is %lld", (long long)prompt,
                             (long long)output, (long long)d->options.max_model_len);
    int64_t block = d->options.block_size, room = (tokens + block - 1) / block * block;
    if (d->fits && batch * room > d->kv_tokens)
        return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0},
                             "more memory for the cache: a higher --tp, a narrower type, --gpu-memory-utilization",
                             "a batch of %lld requests of %lld tokens: the cache holds %lld tokens", (long long)batch,
                             (long long)tokens, (long long)d->kv_tokens);
    return MAQ_OK;
}

/* Prompts in as many passes as max_num_batched_tokens asks for, then a pass for each further token. */
enum maq_status maq_serve_static(struct maq_serve_batch *out, const struct maq_job *job,
                                 const struct maq_serve_options *options, int64_t batch, int64_t prompt, int64_t output,
                                 struct maq_diag *diag)
{
    struct maq_deployment d;
    struct maq_batch_writer writer = {0};
    enum maq_status status = maq_deployment_init(&d, job, options, diag);
    if (status == MAQ_OK)
        status = check_batch(&d, batch, prompt, output, diag);
    *out = (struct maq_serve_batch){0};
    for (int64_t done = 0; status == MAQ_OK && done < batch * prompt;) {
        out->prefill_s += prompt_pass(&d, &writer, batch, prompt, &done, out->part_s[0]);
        if (writer.failed)
            status = maq_no_memory(diag, "a batch");
    }
    maq_batch_fini(&writer);
    for (int64_t t = 1; status == MAQ_OK && t < output; t++) {
        struct maq_pass_batch b = maq_batch_decodes(&d, (uint32_t)batch);
        for (uint32_t w = 0; w < d.passes.n_windows; w++)
            b.decode_keys[w] = batch * maq_pass_keys(&d.passes, w, prompt + t);
        out->decode_s += whole_pass(&d, &b, out->part_s[1]);
    }
    maq_deployment_fini(&d);
    return status;
}
