/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_times.c - times of iterations of decodes alone that were asked for before. A request that decodes by itself has the same keys as
 * others had before it, so a fleet that is not full asks for the same few times over and over: they are kept by their keys, each in one
 * place, the last one that came there.
 *
 * What is kept is what maq_batch_stage_s() says, to the bit. Of one rank, without drafts and adapters.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/engine/batch.h"

#define FEWEST 64u /* of a stage */
#define MOST (1u << 13)

struct maq_decode_time {
    int64_t decodes, padded, keys[MAQ_PASS_WINDOWS]; /* decodes = 0: none is kept here */
    enum maq_launch_mode mode;
    double s;
    struct maq_pass_parts parts;
};

bool maq_decode_times_init(struct maq_deployment *d, uint32_t requests)
{
    if (d->decode_times || d->passes.dp > 1)
        return true;
    d->n_decode_times = FEWEST;
    while (d->n_decode_times < requests && d->n_decode_times < MOST)
        d->n_decode_times *= 2;
    d->decode_times = maq__calloc((size_t)d->passes.n_stages * d->n_decode_times * sizeof *d->decode_times);
    return d->decode_times != NULL;
}

void maq_decode_times_fini(struct maq_deployment *d)
{
    free(d->decode_times);
    d->decode_times = NULL;
}

static bool is_kept(const struct maq_pass_batch *b)
{
    return b->n_chunks == 0 && b->decodes > 0 && b->queries == 1 && b->adapters == 0 && b->adapted == 0 &&
           b->tokens == b->decodes && b->sampled == b->decodes;
}

static bool same(const struct maq_decode_time *t, const struct maq_pass_batch *b, uint32_t n_windows,
                 enum maq_launch_mode mode)
{
    if (t->decodes != b->decodes || t->padded != b->padded || t->mode != mode)
        return false;
    for (uint32_t w = 0; w < n_windows; w++)
        if (t->keys[w] != b->decode_keys[w])
            return false;
    return true;
}

double maq_decode_times_stage_s(struct maq_deployment *d, uint32_t stage, const struct maq_pass_batch *batches,
                                enum maq_launch_mode mode, struct maq_pass_parts *parts)
{
    const struct maq_pass_batch *b = &batches[0];
    if (!d->decode_times || !is_kept(b))
        return maq_batch_stage_s(d, stage, batches, mode, parts);
    /* those of one request lie side by side; of others apart */
    uint64_t place = (uint64_t)b->decode_keys[0] + (uint64_t)(b->decodes - 1) * 5003;
    struct maq_decode_time *t = &d->decode_times[stage * d->n_decode_times + (place & (d->n_decode_times - 1))];
    if (!same(t, b, d->passes.n_windows, mode)) {
        t->s = maq_batch_stage_s(d, stage, batches, mode, &t->parts);
        t->decodes = b->decodes;
        t->padded = b->padded;
        t->mode = mode;
        for (uint32_t w = 0; w < d->passes.n_windows; w++)
            t->keys[w] = b->decode_keys[w];
    }
    *parts = t->parts;
    return t->s;
}
