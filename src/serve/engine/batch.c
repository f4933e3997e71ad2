/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - the work of an iteration.
 *
 * A batch that a CUDA graph holds is padded to its size.
 */
#include "serve/engine/batch.h"

#include "base/alloc.h"

#include <stdlib.h>

/* Those that decode have a query each: a token, or with speculative decoding that and their drafts. Others are prompts. */
static int64_t queries_of(const struct maq_deployment *d)
{
    return d->options.speculation.method == MAQ_DRAFT_NONE ? 1 : d->options.speculation.verified;
}

/* Keys at each window of a further sequence that decodes with `queries`, the last of which sees `keys`. */
static void add_decode(struct maq_pass_batch *b, const struct maq_passes *p, int64_t keys)
{
    b->decodes++;
    for (uint32_t k = 0; k < p->n_windows; k++)
        b->decode_keys[k] += maq_pass_keys(p, k, keys);
}

/*
 * What drafts sees all tokens of the iteration first, and those that are sampled from go on to a draft; then one token of each, as often as
 * there are further drafts. SGLang drafts only where it decodes, and in trees: each step of one has `branches` tokens.
 */
static void draft_batch(struct maq_batch_writer *w, const struct maq_deployment *d, const struct maq_iteration *it)
{
    const struct maq_speculation *s = &d->options.speculation;
    const struct maq_passes *p = &d->draft;
    struct maq_draft_batch *out = &w->draft;
    bool decodes_alone = d->options.engine == MAQ_ENGINE_SGLANG;
    *out = (struct maq_draft_batch){.first = w->batch, .further = {.queries = s->branches}};
    for (uint32_t k = 0; k < MAQ_PASS_WINDOWS; k++)
        out->first.decode_keys[k] = 0;
    out->first.sampled = out->first.decodes = 0;
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *r = &it->scheduled[i];
        if (r->tokens == w->batch.queries)
            add_decode(&out->first, p, r->computed + r->tokens);
        if (!r->samples)
            continue;
        out->first.sampled++;
        out->proposes = out->proposes || !r->last;
        out->known += r->computed + r->tokens + 1;
        if (!decodes_alone || r->drafts > 0)
            add_decode(&out->further, p, r->computed + r->tokens + 1);
    }
    out->passes = it->n > 0;
    if (s->method == MAQ_DRAFT_MODEL) /* the token that was sampled comes on top of those that are verified */
        out->first.tokens = out->first.padded = out->first.tokens + out->first.sampled;
    if (out->proposes && out->further.decodes > 0)
        out->passes = s->tokens;
    if (!out->proposes)
        out->first.sampled = 0;
    out->further.tokens = out->further.decodes * s->branches;
    out->further.sampled = out->further.tokens;
    out->further.padded = maq_draft_padded(d, out->further.decodes) * s->branches;
}

void maq_batch_of(struct maq_batch_writer *w, const struct maq_deployment *d, const struct maq_iteration *it)
{
    struct maq_pass_batch *b = &w->batch;
    const struct maq_passes *p = &d->passes;
    const int64_t queries = queries_of(d);
    *b = (struct maq_pass_batch){.tokens = it->tokens, .queries = queries};
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *s = &it->scheduled[i];
        b->sampled += s->drafts > 0 ? s->tokens : s->samples;
        if (s->tokens != queries) {
            if (!maq__grow((void **)&w->chunks, &w->chunks_size, b->n_chunks, sizeof *w->chunks)) {
                w->failed = true;
                return;
            }
            w->chunks[b->n_chunks++] = (struct maq_pass_chunk){s->tokens, s->computed};
            continue;
        }
        add_decode(b, p, s->computed + s->tokens);
    }
    b->chunks = w->chunks;
    b->padded = maq_batch_launch(d, b->tokens, b->n_chunks, queries).padded;
    w->draft = (struct maq_draft_batch){.passes = 0};
    if (d->options.speculation.method != MAQ_DRAFT_NONE)
        draft_batch(w, d, it);
}

struct maq_pass_batch maq_batch_decodes(const struct maq_deployment *d, uint32_t requests)
{
    const int64_t queries = queries_of(d), tokens = requests * queries;
    return (struct maq_pass_batch){.tokens = tokens,
                                   .padded = maq_batch_launch(d, tokens, 0, queries).padded,
                                   .decodes = requests,
                                   .sampled = tokens,
                                   .queries = queries};
}

struct maq_draft_batch maq_batch_drafts(const struct maq_deployment *d, const struct maq_pass_batch *b, int64_t keys,
                                        int64_t prompts)
{
    const struct maq_speculation *s = &d->options.speculation;
    struct maq_draft_batch out = {.first = *b, .further = {.queries = s->branches}, .proposes = true};
    int64_t samplers = b->decodes + prompts, go_on = d->options.engine == MAQ_ENGINE_SGLANG ? b->decodes : samplers;
    for (uint32_t w = 0; w < d->draft.n_windows; w++) {
        out.first.decode_keys[w] = b->decodes * maq_pass_keys(&d->draft, w, keys);
        out.further.decode_keys[w] = go_on * maq_pass_keys(&d->draft, w, keys + 1);
    }
    out.known = samplers * (keys + 1);
    out.first.sampled = samplers;
    if (s->method == MAQ_DRAFT_MODEL)
        out.first.tokens = out.first.padded = out.first.tokens + samplers;
    out.passes = go_on > 0 ? s->tokens : samplers > 0;
    out.further.decodes = go_on;
    out.further.tokens = out.further.sampled = go_on * s->branches;
    out.further.padded = maq_draft_padded(d, go_on) * s->branches;
    return out;
}

void maq_batch_fini(struct maq_batch_writer *w)
{
    free(w->chunks);
    *w = (struct maq_batch_writer){0};
}

/* The largest batch of all ranks decides, and a prompt in any. */
static struct maq_batch_launch common_launch(const struct maq_deployment *d, const struct maq_pass_batch *batches)
{
    int64_t most = 1;
    uint32_t prompts = 0;
    for (int32_t r = 0; r < d->passes.dp; r++) {
        most = batches[r].tokens > most ? batches[r].tokens : most;
        prompts += batches[r].n_chunks;
    }
    return maq_batch_launch(d, most, prompts, queries_of(d));
}

enum maq_launch_mode maq_batch_launch_mode(const struct maq_deployment *d, const struct maq_pass_batch *batches)
{
    return common_launch(d, batches).mode;
}

void maq_batch_pad(const struct maq_deployment *d, struct maq_pass_batch *batches)
{
    if (d->passes.dp == 1)
        return;
    struct maq_batch_launch all = common_launch(d, batches);
    bool graph = all.mode == MAQ_LAUNCH_MODE_GRAPH || all.mode == MAQ_LAUNCH_MODE_PIECES;
    for (int32_t r = 0; r < d->passes.dp; r++)
        batches[r].padded = graph ? all.padded : batches[r].tokens > 0 ? batches[r].tokens : 1;
}

/*
 * Of two sides a GPU of attention is looked at, which has what it computes and waits for the rest; how busy matrix units and memory are is the mean
 * over all GPUs.
 */
static double sides_s(struct maq_deployment *d, const struct maq_pass_batch *batches, enum maq_launch_mode mode,
                      struct maq_pass_parts *parts)
{
    const struct maq_afd *a = d->afd;
    double attention = a->attention_ranks, ffn = a->ffn_ranks, all = attention + ffn;
    struct maq_afd_pass pass;
    maq_afd_pass(&pass, d->afd, batches);
    double launches = maq_launch_sides_s(d, mode, &pass), s = launches > pass.s ? launches : pass.s;
    *parts = pass.attention;
    parts->ns[MAQ_SERVE_AFD] = (pass.s - pass.times.attention_s) * 1e9;
    parts->ns[MAQ_SERVE_LAUNCH] += (s - pass.s) * 1e9;
    parts->matrix_ns = (pass.attention.matrix_ns * attention + pass.ffn.matrix_ns * ffn) / all;
    parts->memory_ns = (pass.attention.memory_ns * attention + pass.ffn.memory_ns * ffn) / all;
    d->afd_times = pass.times;
    return s;
}

double maq_batch_least_s(struct maq_deployment *d, const struct maq_pass_batch *batches)
{
    return d->afd ? maq_afd_least_s(d->afd, batches) : maq_pass_least_s(&d->passes, 0, batches);
}

double maq_batch_stage_s(struct maq_deployment *d, uint32_t stage, const struct maq_pass_batch *batches,
                         enum maq_launch_mode mode, struct maq_pass_parts *parts)
{
    double sum = 0;
    if (d->afd)
        return sides_s(d, batches, mode, parts);
    *parts = (struct maq_pass_parts){0};
    maq_pass_add(&d->passes, stage, batches, parts);
    parts->ns[MAQ_SERVE_SAMPLING] += d->passes.stages[stage].first ? d->around_ns : 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        sum += parts->ns[i];
    double launches = maq_launch_s(d, mode, &d->passes, stage, parts) * 1e9;
    if (launches > sum) {
        parts->ns[MAQ_SERVE_LAUNCH] += launches - sum;
        sum = launches;
    }
    return sum * 1e-9;
}

double maq_batch_host_s(const struct maq_deployment *d, uint32_t requests)
{
    return (d->host.iteration_s + d->host.request_s * requests) / maq_device_host_speed(d->device);
}

double maq_batch_transfer_s(const struct maq_deployment *d, int64_t tokens)
{
    struct maq_coll c = {.kind = MAQ_COLL_SEND_RECV,
                         .sharers = 1,
                         .bytes = (double)tokens * (double)d->job->model.hidden * 2 * 2, /* and the residual stream */
                         .at = d->job->groups[MAQ_GROUP_PP]};
    return maq_cost_coll(&d->passes.costs, &c, &d->job->cluster).seconds;
}
