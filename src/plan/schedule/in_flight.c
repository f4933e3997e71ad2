/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.c - the activations that a stage holds at once: non-dominated combinations of microbatches per chunk.
 *
 * The activations of a (chunk, microbatch) are held from the start of its F to the end of its B, or of its W
 * when the backward is split, since the weight gradient needs them too. During a pair (FB) both are held:
 * those that the F makes and those that the B uses.
 *
 * Chunks differ in size, so the peak of a stage is not one number: what is kept are the combinations (microbatches in
 * flight per chunk) that no other combination of the same stage exceeds in every chunk. The order of a stage is
 * periodic, so a combination is compared first with the one that followed the last match.
 */
#include <string.h>

#include "base/check.h"
#include "plan/schedule/build.h"

/* Combinations of all stages so far, chunks numbers each; those of the current stage start at `begin`. */
struct pareto {
    struct maq_arena *arena;
    uint16_t *vec;
    uint16_t *stage; /* of each */
    uint32_t n, size, begin, hint, chunks;
};

static bool covers(const uint16_t *a, const uint16_t *b, uint32_t chunks)
{
    for (uint32_t c = 0; c < chunks; c++)
        if (a[c] < b[c])
            return false;
    return true;
}

static bool grow(struct pareto *p)
{
    if (p->n < p->size)
        return true;
    uint32_t size = p->size ? p->size * 2 : 64;
    uint16_t *vec = MAQ_ARENA_NEW(p->arena, uint16_t, (size_t)size * p->chunks);
    uint16_t *stage = MAQ_ARENA_NEW(p->arena, uint16_t, size);
    if (!vec || !stage)
        return false;
    if (p->n > 0) {
        memcpy(vec, p->vec, (size_t)p->n * p->chunks * sizeof(*vec));
        memcpy(stage, p->stage, p->n * sizeof(*stage));
    }
    p->vec = vec;
    p->stage = stage;
    p->size = size;
    return true;
}

/* Adds a combination of the current stage unless an earlier one covers it, and drops what it covers. */
static bool offer(struct pareto *p, const uint16_t *live, uint32_t stage)
{
    uint32_t count = p->n - p->begin, chunks = p->chunks;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = p->hint + i < count ? p->hint + i : p->hint + i - count;
        if (covers(&p->vec[(size_t)(p->begin + at) * chunks], live, chunks)) {
            p->hint = at + 1 < count ? at + 1 : 0;
            return true;
        }
    }
    uint32_t keep = p->begin;
    for (uint32_t i = p->begin; i < p->n; i++) {
        const uint16_t *v = &p->vec[(size_t)i * chunks];
        if (covers(live, v, chunks))
            continue;
        memmove(&p->vec[(size_t)keep++ * chunks], v, chunks * sizeof(*v));
    }
    p->n = keep;
    p->hint = 0;
    if (!grow(p))
        return false;
    memcpy(&p->vec[(size_t)p->n * chunks], live, chunks * sizeof(*live));
    p->stage[p->n++] = (uint16_t)stage;
    return true;
}

/* The chunk of every position, by direction. */
static uint16_t *list_chunks(const struct maq_schedule *s, struct maq_arena *arena)
{
    uint32_t n = 2 * s->n_positions;
    uint16_t stage, *chunks = MAQ_ARENA_NEW(arena, uint16_t, n);
    for (uint32_t i = 0; i < n && chunks; i++)
        maq_schedule_locate(&stage, &chunks[i], s->kind, s->stages, i % s->n_positions, i / s->n_positions);
    return chunks;
}

/* Walks the order of one stage. A combination is offered when something is about to be released, and at the end. */
static enum maq_status walk(struct pareto *p, uint16_t *live, const uint16_t *chunks, const struct maq_orders *o,
                            uint32_t stage)
{
    memset(live, 0, o->chunks * sizeof(*live));
    p->begin = p->n;
    p->hint = 0;
    bool higher = false; /* something was added since the last offer */
    for (const struct maq_order_step *st = &o->steps[o->first[stage]]; st < &o->steps[o->first[stage + 1]]; st++) {
        bool pair = st->kind == MAQ_TASK_FB;
        if (st->kind == MAQ_TASK_F || pair) {
            uint32_t direction = maq__direction_of(o->kind, o->microbatches, st->microbatch);
            uint32_t c = chunks[direction * o->n_positions + st->position];
            if (live[c] == UINT16_MAX)
                return MAQ_LIMIT;
            live[c]++;
            higher = true;
        }
        if (pair || (st->kind == MAQ_TASK_B && !st->split) || st->kind == MAQ_TASK_W) {
            if (higher && !offer(p, live, stage))
                return MAQ_NO_MEMORY;
            higher = false;
            uint32_t position = pair ? st->b_position : st->position, mb = pair ? st->b_microbatch : st->microbatch;
            live[chunks[maq__direction_of(o->kind, o->microbatches, mb) * o->n_positions + position]]--;
        }
    }
    return MAQ_OK;
}

static bool publish(struct maq_schedule *out, const struct pareto *p, struct maq_arena *arena)
{
    struct maq_inflight *list = MAQ_ARENA_NEW(arena, struct maq_inflight, p->n);
    uint16_t *vec = MAQ_ARENA_NEW(arena, uint16_t, (size_t)p->n * p->chunks);
    uint32_t *first = MAQ_ARENA_NEW(arena, uint32_t, out->stages + 1u);
    if (!list || !vec || !first)
        return false;
    if (p->n > 0)
        memcpy(vec, p->vec, (size_t)p->n * p->chunks * sizeof *vec);
    for (uint32_t i = 0; i < p->n; i++) {
        struct maq_inflight *f = &list[i];
        f->stage = p->stage[i];
        f->chunk = &vec[(size_t)i * p->chunks];
        for (uint32_t c = 0; c < p->chunks; c++)
            f->total += f->chunk[c];
        for (uint32_t c = 0; c < p->chunks && p->chunks <= 2; c++)
            f->live[c] = f->chunk[c];
    }
    out->inflight = list;
    out->inflight_first = first;
    for (uint32_t i = 0, s = 0; s <= out->stages; s++) {
        while (i < p->n && list[i].stage < s)
            i++;
        first[s] = i;
    }
    out->n_inflight = p->n;
    return true;
}

enum maq_status maq__schedule_inflight(struct maq_schedule *out, const struct maq_orders *o, struct maq_arena *arena,
                                       struct maq_arena *scratch)
{
    struct pareto p = {.arena = scratch, .chunks = out->chunks};
    uint16_t *live = MAQ_ARENA_NEW(scratch, uint16_t, out->chunks);
    const uint16_t *chunks = list_chunks(out, scratch);
    enum maq_status status = live && chunks ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < out->stages && status == MAQ_OK; s++)
        status = walk(&p, live, chunks, o, s);
    if (status == MAQ_OK && !publish(out, &p, arena))
        status = MAQ_NO_MEMORY;
    return status;
}
