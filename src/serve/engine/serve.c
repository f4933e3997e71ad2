/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - the public calls: what a deployment holds, what becomes of requests, one batch alone. */
#include "maquette/serve.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve/engine/run.h"

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
        maq_deployment_fill(r, &d);
    if (status == MAQ_OK && requests && d.fits) {
        status = maq_deployment_check(&d, requests, MAQ_ROLE_BOTH, diag);
        if (status == MAQ_OK)
            status = maq_serve_engine_run(r, &d, requests, diag);
        if (status == MAQ_NO_MEMORY)
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
    if (options->encoder.elsewhere)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_IMAGES, (struct maq_span){0}, NULL,
                             "images are left to a pool, and there is one deployment alone");
    return serve(out, job, options, requests, diag);
}

void maq_serve_free(struct maq_serve_result *result)
{
    if (result) {
        free(result->served);
        free(result->replicas);
        free(result->members);
        free(result->availability.counts);
        free(result->availability.prefill_counts);
        if (result->pools) {
            maq_serve_free(result->pools->prefill);
            free(result->pools->handed);
        }
        free(result->pools);
    }
    free(result);
}

/* ---- one batch ---- */

/* Room for what all ranks have: the same batch each, and what drafts behind it. */
struct alone {
    struct maq_batch_writer writer;
    struct maq_pass_batch *ranks;   /* [dp] */
    struct maq_draft_batch *drafts; /* [dp] */
    struct maq_scheduled *list;     /* [requests], of a pass that verifies drafts */
    struct maq_afd_times *afd;      /* what its passes do on either side is added to it */
};

static double drafting_s(struct maq_deployment *d, const struct alone *a)
{
    if (d->options.speculation.method == MAQ_DRAFT_NONE)
        return 0;
    for (int32_t r = 0; r < d->passes.dp; r++)
        a->drafts[r] = a->writer.draft;
    struct maq_pass_parts work = {0};
    return maq_draft_s(d, a->drafts, maq_batch_launch_mode(d, a->ranks), &work);
}

static double whole_pass(struct maq_deployment *d, const struct maq_pass_batch *b, const struct alone *a,
                         double sum[MAQ_SERVE_PART_COUNT])
{
    struct maq_pass_batch *ranks = a->ranks;
    double s = 0;
    for (int32_t r = 0; r < d->passes.dp; r++)
        ranks[r] = *b;
    maq_batch_pad(d, ranks);
    for (uint32_t stage = 0; stage < d->passes.n_stages; stage++) {
        struct maq_pass_parts parts;
        s += maq_batch_stage_s(d, stage, ranks, maq_batch_launch_mode(d, ranks), &parts);
        s += stage > 0 ? maq_batch_transfer_s(d, b->tokens) : 0;
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            sum[i] += parts.ns[i] * 1e-9;
    }
    maq_afd_times_add(a->afd, &d->afd_times);
    double drafting = drafting_s(d, a);
    sum[MAQ_SERVE_DRAFT] += drafting;
    s += drafting;
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
static double prompt_pass(struct maq_deployment *d, struct alone *a, int64_t prompts, int64_t prompt, int64_t *done,
                          double sum[MAQ_SERVE_PART_COUNT])
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
    maq_batch_of(&a->writer, d, &it);
    return whole_pass(d, &a->writer.batch, a, sum);
}

static double plain_decodes(struct maq_deployment *d, const struct alone *a, int64_t batch, int64_t prompt,
                            int64_t output, double sum[MAQ_SERVE_PART_COUNT])
{
    double s = 0;
    for (int64_t t = 1; t < output; t++) {
        struct maq_pass_batch b = maq_batch_decodes(d, (uint32_t)batch);
        for (uint32_t w = 0; w < d->passes.n_windows; w++)
            b.decode_keys[w] = batch * maq_pass_keys(&d->passes, w, prompt + t);
        s += whole_pass(d, &b, a, sum);
    }
    return s;
}

/* With drafts a pass yields as many tokens as in the mean; of the last one what is too much counts as its share. */
static double drafted_decodes(struct maq_deployment *d, struct alone *a, int64_t batch, int64_t prompt, int64_t output,
                              double sum[MAQ_SERVE_PART_COUNT])
{
    const struct maq_speculation *s = &d->options.speculation;
    double time = 0, each = maq_acceptance_length(s);
    for (double t = 1; t < (double)output; t += each) {
        struct maq_iteration it = {.scheduled = a->list, .n = (uint32_t)batch, .tokens = batch * s->verified};
        double parts[MAQ_SERVE_PART_COUNT] = {0}, left = (double)output - t, share = left < each ? left / each : 1;
        for (int64_t i = 0; i < batch; i++)
            a->list[i] = (struct maq_scheduled){
                .tokens = s->verified, .drafts = s->tokens, .computed = prompt + (int64_t)t - 1, .samples = true};
        maq_batch_of(&a->writer, d, &it);
        time += share * whole_pass(d, &a->writer.batch, a, parts);
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            sum[i] += share * parts[i];
    }
    return time;
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

/* Prompts in as many passes as max_num_batched_tokens asks for, then a pass for each further token; of `batch` each rank has its part. */
enum maq_status maq_serve_static(struct maq_serve_batch *out, const struct maq_job *job,
                                 const struct maq_serve_options *options, int64_t batch, int64_t prompt, int64_t output,
                                 struct maq_diag *diag)
{
    struct maq_deployment d;
    struct alone a = {0};
    enum maq_status status = maq_deployment_init(&d, job, options, diag);
    if (status == MAQ_OK) {
        batch = (batch + d.passes.dp - 1) / d.passes.dp;
        status = check_batch(&d, batch, prompt, output, diag);
        a.ranks = MAQ_ARENA_NEW(&d.arena, struct maq_pass_batch, (size_t)d.passes.dp);
        a.drafts = MAQ_ARENA_NEW(&d.arena, struct maq_draft_batch, (size_t)d.passes.dp);
        a.list = MAQ_ARENA_NEW(&d.arena, struct maq_scheduled, (size_t)(status == MAQ_OK ? batch : 1));
        if (!a.ranks || !a.drafts || !a.list)
            status = maq_no_memory(diag, "a batch");
    }
    *out = (struct maq_serve_batch){0};
    a.afd = &out->afd[0];
    for (int64_t done = 0; status == MAQ_OK && done < batch * prompt;) {
        out->prefill_s += prompt_pass(&d, &a, batch, prompt, &done, out->part_s[0]);
        if (a.writer.failed)
            status = maq_no_memory(diag, "a batch");
    }
    bool drafts = d.options.speculation.method != MAQ_DRAFT_NONE;
    a.afd = &out->afd[1];
    if (status == MAQ_OK)
        out->decode_s += drafts ? drafted_decodes(&d, &a, batch, prompt, output, out->part_s[1])
                                : plain_decodes(&d, &a, batch, prompt, output, out->part_s[1]);
    maq_batch_fini(&a.writer);
    maq_deployment_fini(&d);
    return status;
}
