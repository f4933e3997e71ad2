/* SPDX-License-Identifier: Apache-2.0 */
/* compiled_lengths.c - prefills of a number of tokens that none had before, and how long they wait for a kernel. */
#include "serve/engine/compiled_lengths.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/engine/engine.h"

#define BITS 64

static bool compiles(const struct maq_deployment *d)
{
    for (uint32_t s = 0; !d->options.warm && s < d->passes.n_stages; s++)
        if (d->passes.stages[s].compiled > 0)
            return true;
    return false;
}

/* Room for a number; false: out of memory. */
static bool has_room(struct maq_compiled_lengths *c, int64_t tokens)
{
    uint32_t word = (uint32_t)(tokens / BITS), words = c->n_words > 0 ? c->n_words : 1;
    if (word < c->n_words)
        return true;
    while (words <= word)
        words *= 2;
    uint64_t *more = maq__realloc(c->bits, words * sizeof *more);
    if (!more)
        return false;
    memset(more + c->n_words, 0, (words - c->n_words) * sizeof *more);
    c->bits = more;
    c->n_words = words;
    return true;
}

/* From now on it is not. */
static bool is_new(struct maq_compiled_lengths *c, int64_t tokens)
{
    uint64_t bit = 1ull << (tokens % BITS), *word = &c->bits[tokens / BITS];
    bool seen = (*word & bit) != 0;
    *word |= bit;
    return !seen;
}

void maq_compiles_launch(struct maq_serve_engine *e)
{
    e->compiles = false;
    if (!compiles(e->d) || maq_batch_launch_mode(e->d, e->batches) == MAQ_LAUNCH_MODE_PIECES)
        return;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_pass_batch *b = &e->batches[r];
        if (b->n_chunks == 0)
            continue;
        if (!has_room(&e->ranks[r].compiled, b->tokens)) {
            e->failed = true;
            return;
        }
        e->compiles |= is_new(&e->ranks[r].compiled, b->tokens);
    }
}

double maq_compile_s(const struct maq_serve_engine *e, uint32_t stage)
{
    const struct maq_deployment *d = e->d;
    if (!e->compiles)
        return 0;
    return d->passes.stages[stage].compiled * d->host.compile_s / maq_device_host_speed(d->device);
}

void maq_compiled_lengths_fini(struct maq_compiled_lengths *c)
{
    free(c->bits);
    *c = (struct maq_compiled_lengths){0};
}
