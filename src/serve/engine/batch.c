/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - the work of an iteration.
 *
 * A batch that a CUDA graph holds is padded to its size, and its kernels are launched at once. A larger one is launched kernel by
 * kernel: the device then waits for what the launches take beyond its own time.
 */
#include "serve/engine/batch.h"

#include "base/alloc.h"

#include <stdlib.h>

/* The size of the graph that holds a batch; 0 = none. SGLang's hold decodes alone. */
static int64_t graph_of(const struct maq_deployment *d, int64_t tokens, uint32_t prompts)
{
    if (d->options.engine == MAQ_ENGINE_SGLANG && prompts > 0)
        return 0;
    return maq_serve_graph_size(&d->options, tokens);
}

static int64_t padded(const struct maq_deployment *d, int64_t tokens, uint32_t prompts)
{
    int64_t graph = graph_of(d, tokens, prompts);
    return graph > 0 ? graph : tokens;
}

void maq_batch_of(struct maq_batch_writer *w, const struct maq_deployment *d, const struct maq_iteration *it)
{
    struct maq_pass_batch *b = &w->batch;
    const struct maq_passes *p = &d->passes;
    *b = (struct maq_pass_batch){.tokens = it->tokens, .queries = 1};
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *s = &it->scheduled[i];
        b->sampled += s->samples;
        if (s->tokens > 1) {
            if (!maq__grow((void **)&w->chunks, &w->chunks_size, b->n_chunks, sizeof *w->chunks)) {
                w->failed = true;
                return;
            }
            w->chunks[b->n_chunks++] = (struct maq_pass_chunk){s->tokens, s->computed};
            continue;
        }
        b->decodes++;
        for (uint32_t k = 0; k < p->n_windows; k++)
            b->decode_keys[k] += maq_pass_keys(p, k, s->computed + 1);
    }
    b->chunks = w->chunks;
    b->padded = padded(d, b->tokens, b->n_chunks);
}

struct maq_pass_batch maq_batch_decodes(const struct maq_deployment *d, uint32_t requests)
{
    return (struct maq_pass_batch){
        .tokens = requests, .padded = padded(d, requests, 0), .decodes = requests, .sampled = requests, .queries = 1};
}

void maq_batch_fini(struct maq_batch_writer *w)
{
    free(w->chunks);
    *w = (struct maq_batch_writer){0};
}

/* The largest batch of all ranks decides, and a prompt in any. */
static int64_t common_graph(const struct maq_deployment *d, const struct maq_pass_batch *batches)
{
    int64_t most = 1;
    uint32_t prompts = 0;
    for (int32_t r = 0; r < d->passes.dp; r++) {
        most = batches[r].tokens > most ? batches[r].tokens : most;
        prompts += batches[r].n_chunks;
    }
    return graph_of(d, most, prompts);
}

void maq_batch_pad(const struct maq_deployment *d, struct maq_pass_batch *batches)
{
    if (d->passes.dp == 1)
        return;
    int64_t graph = common_graph(d, batches);
    for (int32_t r = 0; r < d->passes.dp; r++)
        batches[r].padded = graph > 0 ? graph : batches[r].tokens > 0 ? batches[r].tokens : 1;
}

double maq_batch_stage_s(struct maq_deployment *d, uint32_t stage, const struct maq_pass_batch *batches,
                         struct maq_pass_parts *parts)
{
    double sum = 0;
    *parts = (struct maq_pass_parts){0};
    maq_pass_add(&d->passes, stage, batches, parts);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        sum += parts->ns[i];
    bool graph = common_graph(d, batches) > 0;
    double launches =
        graph ? d->host.graph_s * 1e9 : parts->kernels * d->host.launch_s * 1e9 / maq_device_host_speed(d->device);
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
