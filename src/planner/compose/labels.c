/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - the best composition of a table, exactly.
 *
 * A label is a partial pipeline: stages that cover the atoms from `atom` to the end. It knows the devices used, the maxima over its
 * stages so far, and the parts of its front stage, since what that stage sends backward depends on the stage that comes before it.
 * Labels grow towards the front by one stage, level by level. Two rules drop labels:
 *
 * Bounds. For each box of priced_bound.c that the label can lie in,
 *   T >= (waves - 1) max(bottleneck, b0) + sum + (rest - y . devices left) + max(sync, s0) + max(update, least).
 * If that reaches the cutoff in every box, no completion is worth having.
 *
 * Dominance. Of two labels with the same front atom and front parts, a dominates b if it has no more stages, uses no more devices
 * of any kind, and no completion can make up for what it costs more. A maximum moves by no more than its argument does, so this is
 *   (waves - 1) max(0, bottleneck_a - bottleneck_b, front_a - front_b) + sum_a - sum_b + max(0, sync_a - sync_b)
 *     + max(0, update_a - update_b) <= 0,
 * and what a step waits (stage_table.h) may add seldom_waves max(0, chain_a - chain_b, slowest_a - slowest_b) between labels of as
 * many stages, and rounds max(0, sum_a + back_a - sum_b - back_b). (Fewer stages are never worse for what is still to come: later
 * positions hold fewer waves. Only the last stage of a pipeline, whose backward hop has a weight of its own, is compared with its
 * like alone.)
 *
 * With `beam` set only that many labels are kept per front atom and front parts, those with the least bound: a quick good answer
 * without a proof.
 */
#include "planner/compose/labels.h"

#include <math.h>
#include <string.h>

#define NONE UINT32_MAX
#define SLACK 1e-12 /* relative: sums in another order must not prune a tie */

struct label {
    uint32_t last;                               /* option of the last stage; */
    struct maq_tail tail;                        /* of a step that waits */
    double bottleneck, front, sum, sync, update; /* front: of the front stage (maq_stage_front) */
    double bound;
    uint32_t behind;  /* the label that this one grew from */
    uint32_t sibling; /* next in its bucket */
    uint32_t level;   /* stages */
    uint32_t atom;
    struct maq_stage_part parts[MAQ_STAGE_PARTS];
    uint32_t n_parts;
    uint32_t used[MAQ_STAGE_KINDS];
    bool dead;
};

struct search {
    const struct maq_layer_ranges *layer_ranges;
    const struct maq_stage_table *table;
    const struct maq_boxes *boxes;
    struct maq_label_options options;
    struct maq_label_count *count;
    struct maq_composition *best;
    double cutoff, bottleneck_hi, sync_hi;
    struct maq_arena *arena;
    struct label **chunks; /* of CHUNK labels each */
    uint32_t n_labels;
    uint32_t *bucket; /* [(atoms + 1) * signatures] */
    uint32_t signatures;
    bool no_memory;
};

#define CHUNK 1024u

static struct label *label_at(const struct search *s, uint32_t i)
{
    return &s->chunks[i / CHUNK][i % CHUNK];
}

static uint32_t signature(const struct search *s, const struct maq_stage_part *parts, uint32_t n)
{
    uint32_t options = s->table->n_options;
    return n == 1 ? parts[0].option : options + parts[0].option * options + parts[1].option;
}

/* The slowest pair of two stages, and the fastest neighbour there could be of one. */
static double hop(const struct maq_stage_table *t, const double *seconds, const struct maq_stage_part *from, uint32_t n,
                  const struct maq_stage_part *to, uint32_t m, uint32_t atom)
{
    double slowest = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < m; j++) {
            double s = maq_hop_row(t, seconds, from[i].option, to[j].option)[atom];
            slowest = s > slowest ? s : slowest;
        }
    return slowest;
}

static double least_backward(const struct search *s, const struct label *l)
{
    double slowest = 0;
    if (l->atom == 0 || l->level == 0)
        return 0;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        double b = s->layer_ranges->backward_s[l->parts[i].option * s->table->n_atoms + l->atom];
        slowest = b > slowest ? b : slowest;
    }
    return slowest * maq_backward_weight(s->table, l->level - 1, false);
}

/* Lower bound of every completion of a label. Unless `exact`, stops at the first box in which the bound is below the cutoff. */
static double label_bound(const struct search *s, const struct label *l, bool exact)
{
    const struct maq_stage_table *t = s->table;
    double backward = least_backward(s, l), lowest = HUGE_VAL;
    double front = l->front + backward;
    double bottleneck = front > l->bottleneck ? front : l->bottleneck;
    double update = l->update > s->layer_ranges->update_s ? l->update : s->layer_ranges->update_s;
    uint32_t row = l->level < s->layer_ranges->rows ? l->level : s->layer_ranges->rows;
    size_t at = (size_t)row * (t->n_atoms + 1) + l->atom;
    for (uint32_t i = 0; i < s->boxes->n; i++) {
        const struct maq_bottleneck_box *box = &s->boxes->at[i];
        double rest = -HUGE_VAL;
        if (bottleneck > box->bottleneck_hi || l->sync > box->sync_hi)
            continue;
        for (uint32_t d = 0; d < MAQ_BOX_DUALS; d++) {
            double r = box->rest[d][at];
            for (uint32_t g = 0; g < t->n_kinds; g++)
                r -= box->price[d][g] * (t->available[g] - l->used[g]);
            rest = r > rest ? r : rest;
        }
        double pace = bottleneck > box->bottleneck_lo ? bottleneck : box->bottleneck_lo;
        double bound = (t->waves - 1) * pace + l->sum + backward + rest +
                       maq_waits(t, l->sum + backward + rest + s->layer_ranges->back_s[l->last], l->tail.slowest_s,
                                 pace, l->level == 1 && l->atom == 0) +
                       (l->sync > box->sync_lo ? l->sync : box->sync_lo) + update;
        lowest = bound < lowest ? bound : lowest;
        if (!exact && lowest < s->cutoff)
            return lowest;
    }
    return lowest;
}

static double above(double a, double b)
{
    return a > b ? a - b : 0;
}

/* By how much longer, at most, the hop from the last stage back to the first may take with label a than with b. */
static double back_above(const struct search *s, const struct label *a, const struct label *b)
{
    const struct maq_layer_ranges *layer_ranges = s->layer_ranges;
    return a->last == b->last ? 0 : layer_ranges->back_most_s[a->last] - layer_ranges->back_s[b->last];
}

static bool dominates(const struct search *s, const struct label *a, const struct label *b)
{
    const struct maq_stage_table *t = s->table;
    if (a->sum > b->sum) /* the common case: everything that is added to the difference below is 0 or more */
        return false;
    if ((a->level == 1) != (b->level == 1) || a->level > b->level || (t->seldom_waves > 0 && a->level != b->level))
        return false;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        if (a->used[g] > b->used[g])
            return false;
    double slower = above(a->bottleneck, b->bottleneck), front = above(a->front, b->front);
    return (t->waves - 1) * (slower > front ? slower : front) + a->sum - b->sum + above(a->sync, b->sync) +
               above(a->update, b->update) +
               t->seldom_waves *
                   fmax(above(a->tail.chain_s, b->tail.chain_s), above(a->tail.slowest_s, b->tail.slowest_s)) +
               t->rounds * above(a->sum + back_above(s, a, b), b->sum) <=
           0;
}

/* Drops the labels of the bucket that a new one dominates; false when the new one is dominated or falls outside of the beam. */
static bool admit(struct search *s, const struct label *l, uint32_t *slot)
{
    uint32_t kept = 0, worst = NONE;
    uint32_t *at = slot;
    while (*at != NONE) {
        struct label *other = label_at(s, *at);
        if (dominates(s, other, l)) {
            s->count->dominated++;
            return false;
        }
        if (other->level == l->level && dominates(s, l, other)) {
            other->dead = true;
            *at = other->sibling;
            s->count->dominated++;
            continue;
        }
        if (other->level == l->level) {
            kept++;
            if (worst == NONE || other->bound > label_at(s, worst)->bound)
                worst = *at;
        }
        at = &other->sibling;
    }
    if (s->options.beam == 0 || kept < s->options.beam)
        return true;
    s->count->complete = false;
    if (l->bound >= label_at(s, worst)->bound)
        return false;
    for (at = slot; *at != worst; at = &label_at(s, *at)->sibling)
        ;
    label_at(s, worst)->dead = true;
    *at = label_at(s, worst)->sibling;
    return true;
}

static void keep(struct search *s, const struct label *l)
{
    uint32_t sign = s->options.beam > 0 ? 0 : signature(s, l->parts, l->n_parts);
    uint32_t *slot = &s->bucket[(size_t)l->atom * s->signatures + sign];
    if (!admit(s, l, slot))
        return;
    if (s->n_labels == s->options.most) {
        s->count->complete = false;
        return;
    }
    if (s->n_labels % CHUNK == 0) {
        s->chunks[s->n_labels / CHUNK] = MAQ_ARENA_NEW(s->arena, struct label, CHUNK);
        if (!s->chunks[s->n_labels / CHUNK]) {
            s->no_memory = true;
            return;
        }
    }
    struct label *place = label_at(s, s->n_labels);
    *place = *l;
    place->sibling = *slot;
    *slot = s->n_labels++;
}

/* A label that covers all atoms is a composition. */
static void finish(struct search *s, const struct label *last)
{
    struct maq_composition c = {.n_stages = last->level};
    const struct label *l = last;
    s->count->finished++;
    for (uint32_t i = 0; i < c.n_stages && l; i++) { /* as many labels as stages */
        const struct label *behind = l->behind == NONE ? NULL : label_at(s, l->behind);
        c.stages[i] = (struct maq_stage){
            .first = l->atom, .end = behind ? behind->atom : s->table->n_atoms, .n_parts = l->n_parts};
        memcpy(c.stages[i].parts, l->parts, sizeof l->parts);
        l = behind;
    }
    if (maq_composition_cost(&c, s->table) && c.step_s < s->cutoff && c.step_s < s->best->step_s) {
        *s->best = c;
        s->cutoff = c.step_s;
    }
}

/* A stage of given parts over [first, back->atom) in front of a label. */
struct step {
    const struct label *back;
    uint32_t back_index;
    uint32_t first;
    double compute, sync, update;
    struct maq_stage_part parts[MAQ_STAGE_PARTS];
    uint32_t n_parts;
};

static void grow(struct search *s, const struct step *step)
{
    const struct maq_stage_table *t = s->table;
    const struct label *back = step->back;
    struct label l = {.last = back->level > 0 ? back->last : step->parts[0].option,
                      .bottleneck = step->compute > back->bottleneck ? step->compute : back->bottleneck,
                      .front = maq_stage_front(t, step->compute, 0),
                      .sum = back->sum,
                      .sync = step->sync > back->sync ? step->sync : back->sync,
                      .update = step->update > back->update ? step->update : back->update,
                      .behind = step->back_index,
                      .level = back->level + 1,
                      .atom = step->first,
                      .n_parts = step->n_parts};
    memcpy(l.used, back->used, sizeof l.used);
    for (uint32_t i = 0; i < step->n_parts; i++) {
        const struct maq_stage_option *o = &t->options[step->parts[i].option];
        l.parts[i] = step->parts[i];
        l.used[o->kind] += o->devices * step->parts[i].replicas;
        if (l.used[o->kind] > t->available[o->kind])
            return;
    }
    double sends = 0;
    s->count->considered++;
    if (back->level > 0) {
        const bool two = back->level == 1 && step->first == 0;
        double sent = maq_backward_weight(t, back->level - 1, false) *
                      hop(t, t->backward_s, back->parts, back->n_parts, l.parts, l.n_parts, back->atom);
        double whole = back->front + maq_end_sends_s(t, sent, two);
        l.bottleneck = whole > l.bottleneck ? whole : l.bottleneck;
        sends = maq_forward_weight(t, back->level, step->first == 0) *
                hop(t, t->forward_s, l.parts, l.n_parts, back->parts, back->n_parts, back->atom - 1);
        l.front += maq_end_sends_s(t, sends, two);
        l.sum += sent;
        l.tail = maq_tail_grow(t, back->tail, back->level, step->compute, sent);
    }
    if (back->level == 0)
        l.tail = maq_tail_of(t, l.last, step->compute);
    l.sum += step->compute + sends;
    l.bound = s->options.no_bounds ? 0 : label_bound(s, &l, s->options.beam > 0);
    if (l.bound >= s->cutoff * (1 + SLACK) || l.front > s->bottleneck_hi * (1 + SLACK)) {
        s->count->bounded++;
        return;
    }
    if (step->first == 0)
        finish(s, &l);
    else if (l.level < s->layer_ranges->depth)
        keep(s, &l);
}

static double bytes_of(const struct maq_stage_table *t, uint32_t option, uint32_t first, uint32_t end)
{
    return t->options[option].sync_bytes[end] - t->options[option].sync_bytes[first];
}

static void grow_pure(struct search *s, struct step *step, uint32_t option)
{
    const struct maq_stage_table *t = s->table;
    const struct maq_stage_option *o = &t->options[option];
    step->n_parts = 1;
    step->parts[0] = (struct maq_stage_part){option, maq_replicas(t, option)};
    step->compute = maq_layer_range_compute(t, option, step->first, step->back->atom);
    step->update = maq_stage_update_s(o, step->first, step->back->atom, t->n_atoms);
    if (s->layer_ranges->mixes) /* then layer_ranges holds the synchronization of fewer replicas */
        step->sync =
            t->sync_s(t, step->parts, 1, bytes_of(t, option, step->first, step->back->atom), step->parts[0].replicas);
    else
        step->sync = s->layer_ranges->sync_s[maq_layer_range_index(t, option, step->first, step->back->atom)];
    if (step->sync <= s->sync_hi * (1 + SLACK))
        grow(s, step);
}

/*
 * All splits of a wave between two options in one stage. Where both take equal shares, the synchronization is the same
 * for every split.
 */
static void grow_mixed(struct search *s, struct step *step, uint32_t one, uint32_t two)
{
    const struct maq_stage_table *t = s->table;
    const struct maq_stage_option *a = &t->options[one], *b = &t->options[two];
    uint32_t end = step->back->atom;
    double ca = maq_layer_range_compute(t, one, step->first, end),
           cb = maq_layer_range_compute(t, two, step->first, end);
    double ba = bytes_of(t, one, step->first, end), bb = bytes_of(t, two, step->first, end);
    if (a->kind == b->kind && a->samples == b->samples)
        return; /* the cheaper of the two alone is as fast as the mixture */
    step->n_parts = 2;
    step->compute = ca > cb ? ca : cb;
    double ua = maq_stage_update_s(a, step->first, end, t->n_atoms);
    double ub = maq_stage_update_s(b, step->first, end, t->n_atoms);
    step->update = ua > ub ? ua : ub;
    uint32_t synced = 0;
    for (uint32_t n = 1; n * a->samples < t->wave_samples; n++) {
        uint32_t others = (t->wave_samples - n * a->samples + b->samples - 1) / b->samples;
        if (n * a->devices + step->back->used[a->kind] > t->available[a->kind])
            break;
        if (others * b->devices + step->back->used[b->kind] > t->available[b->kind])
            continue;
        step->parts[0] = (struct maq_stage_part){one, n};
        step->parts[1] = (struct maq_stage_part){two, others};
        uint32_t ranks = n + others;
        if (ranks != synced)
            step->sync = t->sync_s(t, step->parts, 2, ba > bb ? ba : bb, ranks);
        synced = ranks;
        if (step->sync <= s->sync_hi * (1 + SLACK))
            grow(s, step);
    }
}

/* Options to mix: of one kind, an option that takes no fewer devices and synchronizes no less than another is left out. */
static uint32_t worth_mixing(uint32_t *kept, const struct search *s, const struct step *step, const uint32_t *able,
                             uint32_t n)
{
    const struct maq_stage_table *t = s->table;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_stage_option *a = &t->options[able[i]];
        double bytes = bytes_of(t, able[i], step->first, step->back->atom);
        bool worth = true;
        for (uint32_t j = 0; j < n && worth; j++) {
            const struct maq_stage_option *b = &t->options[able[j]];
            double other = bytes_of(t, able[j], step->first, step->back->atom);
            uint32_t mine = a->devices * b->samples, its = b->devices * a->samples;
            worth =
                i == j || a->kind != b->kind || its > mine || other > bytes || (its == mine && other == bytes && j > i);
        }
        if (worth)
            kept[m++] = able[i];
    }
    return m;
}

static void expand(struct search *s, uint32_t index)
{
    const struct maq_stage_table *t = s->table;
    const struct label root = {.level = 0, .atom = t->n_atoms};
    struct step step = {.back = index == NONE ? &root : label_at(s, index), .back_index = index};
    uint32_t able[MAQ_STAGE_OPTIONS], worth[MAQ_STAGE_OPTIONS];
    for (step.first = step.back->atom; step.first-- > 0;) {
        uint32_t n = 0;
        bool any = false;
        for (uint32_t o = 0; o < t->n_options; o++) {
            if (maq_layer_range_compute(t, o, step.first, step.back->atom) > s->bottleneck_hi * (1 + SLACK))
                continue;
            any = true;
            size_t layer_range = maq_layer_range_index(t, o, step.first, step.back->atom);
            if (s->layer_ranges->deepest[layer_range] > step.back->level &&
                s->layer_ranges->sync_s[layer_range] <= s->sync_hi * (1 + SLACK))
                able[n++] = o;
        }
        if (!any)
            break;
        for (uint32_t i = 0; i < n; i++)
            grow_pure(s, &step, able[i]);
        if (t->max_parts < 2)
            continue;
        const uint32_t *mixed = able;
        if (s->options.beam > 0) {
            n = worth_mixing(worth, s, &step, able, n);
            mixed = worth;
        }
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = i + 1; j < n; j++)
                grow_mixed(s, &step, mixed[i], mixed[j]);
    }
}

static bool prepare(struct search *s)
{
    size_t options = s->table->n_options, buckets;
    s->signatures = (uint32_t)(s->table->max_parts > 1 ? options + options * options : options);
    buckets = (size_t)(s->table->n_atoms + 1) * s->signatures;
    s->bucket = MAQ_ARENA_NEW(s->arena, uint32_t, buckets);
    s->chunks = MAQ_ARENA_NEW(s->arena, struct label *, s->options.most / CHUNK + 1);
    if (!s->bucket || !s->chunks)
        return false;
    for (size_t i = 0; i < buckets; i++)
        s->bucket[i] = NONE;
    if (s->options.no_bounds) {
        s->bottleneck_hi = s->sync_hi = HUGE_VAL;
        return true;
    }
    for (uint32_t i = 0; i < s->boxes->n; i++) {
        const struct maq_bottleneck_box *box = &s->boxes->at[i];
        s->bottleneck_hi = box->bottleneck_hi > s->bottleneck_hi ? box->bottleneck_hi : s->bottleneck_hi;
        s->sync_hi = box->sync_hi > s->sync_hi ? box->sync_hi : s->sync_hi;
    }
    return true;
}

bool maq_labels_search(struct maq_composition *best, struct maq_label_count *count,
                       const struct maq_layer_ranges *layer_ranges, const struct maq_boxes *boxes,
                       const struct maq_label_options *options, struct maq_arena *arena)
{
    struct search s = {.layer_ranges = layer_ranges,
                       .table = layer_ranges->table,
                       .boxes = boxes,
                       .options = *options,
                       .count = count,
                       .best = best,
                       .cutoff = best->step_s < options->cutoff_s ? best->step_s : options->cutoff_s,
                       .arena = arena};
    *count = (struct maq_label_count){.complete = true};
    if (layer_ranges->depth == 0 || (!options->no_bounds && boxes->n == 0))
        return true;
    if (!prepare(&s))
        return false;
    expand(&s, NONE);
    uint32_t from = 0;
    for (uint32_t level = 1; level < layer_ranges->depth && from < s.n_labels && !s.no_memory; level++) {
        uint32_t to = s.n_labels;
        for (uint32_t i = from; i < to && !s.no_memory; i++) {
            const struct label *l = label_at(&s, i);
            if (!l->dead && (l->bound < s.cutoff * (1 + SLACK)))
                expand(&s, i);
        }
        from = to;
    }
    return !s.no_memory;
}
