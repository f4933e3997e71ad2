/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iteration_times.c - times of iterations that were asked for before: of decodes alone, and of one part of a prompt alone. A request that is by
 * itself has the same keys as others had before it, so a fleet that is not full asks for the same few times over and over: they are kept by
 * their keys, each in one place, the last one that came there.
 *
 * What is kept is what maq_batch_stage_s() says, to the bit. Of one rank, without drafts, adapters and images. The place behind all is for
 * what is not kept.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/engine/batch.h"

#define FEWEST 64u /* of a stage */
#define MOST (1u << 13)

bool maq_iteration_times_init(struct maq_deployment *d, uint32_t requests)
{
    if (d->iteration_times)
        return true;
    d->n_iteration_times = d->passes.dp > 1 ? 0 : FEWEST;
    while (d->n_iteration_times > 0 && d->n_iteration_times < requests && d->n_iteration_times < MOST)
        d->n_iteration_times *= 2;
    d->iteration_times =
        maq__calloc(((size_t)d->passes.n_stages * d->n_iteration_times + 1) * sizeof *d->iteration_times);
    return d->iteration_times != NULL;
}

void maq_iteration_times_fini(struct maq_deployment *d)
{
    free(d->iteration_times);
    d->iteration_times = NULL;
}

static bool of_one_rank(const struct maq_deployment *d, const struct maq_pass_batch *b)
{
    return d->n_iteration_times > 0 && b->adapters == 0 && b->adapted == 0 && b->padded > 0;
}

bool maq_iteration_time_is_kept(const struct maq_deployment *d, const struct maq_pass_batch *b)
{
    return of_one_rank(d, b) && b->n_chunks == 0 && b->decodes > 0 && b->queries == 1 && b->tokens == b->decodes &&
           b->sampled == b->decodes;
}

/* A part of a prompt, and whether a token is sampled behind it. */
static bool prompt_is_kept(const struct maq_deployment *d, const struct maq_pass_batch *b)
{
    return of_one_rank(d, b) && b->n_chunks == 1 && b->decodes == 0 && b->tokens == b->chunks[0].queries &&
           b->sampled <= 1;
}

static void compute(struct maq_stage_times *out, struct maq_deployment *d, uint32_t stage,
                    const struct maq_pass_batch *batches, enum maq_launch_mode mode)
{
    struct maq_pass_parts parts;
    out->s[MAQ_STAGE_ALL] = maq_batch_stage_s(d, stage, batches, mode, &parts);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        out->s[i] = parts.ns[i] * 1e-9;
    out->s[MAQ_STAGE_MATRIX] = parts.matrix_ns * 1e-9;
    out->s[MAQ_STAGE_MEMORY] = parts.memory_ns * 1e-9;
    out->afd = d->afd_times;
}

const struct maq_stage_times *maq_iteration_times_of(struct maq_deployment *d, uint32_t stage,
                                                     const struct maq_pass_batch *batches, enum maq_launch_mode mode)
{
    const struct maq_pass_batch *b = &batches[0];
    bool prompt = prompt_is_kept(d, b);
    if (!prompt && !maq_iteration_time_is_kept(d, b)) {
        struct maq_iteration_time *other = &d->iteration_times[d->passes.n_stages * d->n_iteration_times];
        compute(&other->times, d, stage, batches, mode);
        return &other->times;
    }
    const int64_t part[] = {prompt ? b->chunks[0].queries : 0, prompt ? b->chunks[0].context : 0, b->sampled},
                  *keys = prompt ? part : b->decode_keys;
    uint32_t n = prompt ? (uint32_t)MAQ_COUNT(part) : d->passes.n_windows;
    struct maq_iteration_time *t = maq_iteration_time_place(d, stage, b->decodes, keys[0] + (prompt ? keys[1] : 0));
    if (!maq_iteration_time_is(t, b, keys, n, mode)) {
        compute(&t->times, d, stage, batches, mode);
        t->decodes = b->decodes;
        t->padded = b->padded;
        t->mode = mode;
        for (uint32_t w = 0; w < n; w++)
            t->keys[w] = keys[w];
    }
    return &t->times;
}
