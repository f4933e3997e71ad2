/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predecessors.c - lists the predecessors of a stage: all options are tried over ever longer layer ranges, and an
 * option that has become too slow or no longer fits is not tried again. See predecessors.h.
 */
#include "planner/compose/predecessors.h"

#include <math.h>
#include <string.h>

/* A group that stands for a kind has options whose hops differ. */
static bool same_class(const struct maq_predecessors *s, uint32_t a, uint32_t b)
{
    const struct maq_hop_groups *g = s->groups;
    size_t row = (size_t)g->n * s->layer_ranges->table->n_atoms;
    return s->units->used[a] == s->units->used[b] && g->of[a] == g->of[b] &&
           memcmp(g->forward + a * row, g->forward + b * row, row * sizeof *g->forward) == 0;
}

static void class_options(struct maq_predecessors *s)
{
    for (uint32_t o = 0; o < s->layer_ranges->table->n_options; o++) {
        uint32_t like = 0;
        while (like < o && !same_class(s, like, o))
            like++;
        s->class_of[o] = like < o ? s->class_of[like] : (uint16_t)s->n_classes++;
        s->itself[o] = (uint16_t)o;
    }
}

bool maq_predecessors_init(struct maq_predecessors *s, const struct maq_layer_ranges *layer_ranges,
                           const struct maq_units *units, const struct maq_hop_groups *groups, struct maq_arena *arena)
{
    size_t most = (size_t)layer_ranges->table->n_atoms * layer_ranges->table->n_options;
    *s = (struct maq_predecessors){.layer_ranges = layer_ranges,
                                   .units = units,
                                   .groups = groups,
                                   .listed = MAQ_ARENA_RAW(arena, struct maq_predecessor_range, most),
                                   .at = MAQ_ARENA_RAW(arena, struct maq_predecessor, most),
                                   .reach = MAQ_ARENA_RAW(arena, struct maq_predecessor_reach, most)};
    class_options(s);
    return s->listed && s->at && s->reach;
}

/* Options that can still run a stage that ends at an atom; there are fewer of them as the stage gets longer. */
struct able {
    uint32_t n;
    uint16_t option[MAQ_STAGE_OPTIONS];
    double until[MAQ_STAGE_OPTIONS]; /* of each option: time_s of the end */
};

/* The cheapest options of a layer range, by class. */
struct cheapest {
    const uint16_t *class_of;
    double s[MAQ_STAGE_OPTIONS];
    uint16_t option[MAQ_STAGE_OPTIONS];
};

/*
 * Takes options that are too slow or do not fit out of `able`: over longer ranges they are too slow and do not fit
 * either.
 */
static void find_cheapest(struct cheapest *out, struct able *able, const struct maq_layer_ranges *a,
                          const struct maq_bottleneck_box *box, uint32_t behind, uint32_t first, uint32_t end)
{
    const struct maq_stage_table *t = a->table;
    const size_t layer_range = maq_layer_range_index(t, 0, first, end);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < able->n; i++) {
        const uint16_t o = able->option[i];
        double s = able->until[o] - t->options[o].time_s[first] + t->options[o].each_s;
        if (s > box->bottleneck_hi || a->deepest[layer_range + o] <= behind)
            continue;
        able->option[kept++] = o;
        if (s < out->s[out->class_of[o]] && a->sync_s[layer_range + o] <= box->sync_hi) {
            out->s[out->class_of[o]] = s;
            out->option[out->class_of[o]] = o;
        }
    }
    able->n = kept;
}

void maq_predecessors_list_ranges(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                                  uint32_t behind, uint32_t end, bool each)
{
    const struct maq_stage_table *t = predecessors->layer_ranges->table;
    const uint32_t n = each ? t->n_options : predecessors->n_classes;
    struct cheapest by;
    struct able able;
    by.class_of = each ? predecessors->itself : predecessors->class_of;
    able.n = t->n_options;
    for (uint32_t o = 0; o < t->n_options; o++) {
        able.option[o] = (uint16_t)o;
        able.until[o] = t->options[o].time_s[end];
    }
    predecessors->n_listed = 0;
    for (uint32_t first = end; first-- > 0 && able.n > 0;) {
        for (uint32_t i = 0; i < n; i++)
            by.s[i] = HUGE_VAL;
        find_cheapest(&by, &able, predecessors->layer_ranges, box, behind, first, end);
        for (uint32_t i = 0; i < n; i++)
            if (by.s[i] < HUGE_VAL)
                predecessors->listed[predecessors->n_listed++] =
                    (struct maq_predecessor_range){by.s[i], (uint16_t)first, by.option[i]};
    }
}

void maq_predecessors_list(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                           const double *rest, uint32_t behind, uint32_t end, uint32_t to)
{
    const struct maq_stage_table *t = predecessors->layer_ranges->table;
    const struct maq_hop_groups *g = predecessors->groups;
    predecessors->n = 0;
    for (uint32_t i = 0; i < predecessors->n_listed; i++) {
        const struct maq_predecessor_range *by = &predecessors->listed[i];
        const uint32_t o = by->option, first = by->first;
        double forward = maq_forward_weight(t, behind, first == 0), sends = 0;
        if (forward > 0) /* 0: there is no stage behind */
            sends = forward * g->forward[((size_t)o * g->n + to) * t->n_atoms + end - 1];
        double least =
            maq_backward_weight(t, behind, first == 0) * g->backward_least[(size_t)g->of[o] * t->n_atoms + first];
        double cost = by->s + sends, holds = maq_end_sends_s(t, sends, behind == 1 && first == 0);
        if (!(cost < HUGE_VAL) || maq_stage_pace(t, by->s, holds + least) > box->bottleneck_hi)
            continue;
        predecessors->at[predecessors->n] = (struct maq_predecessor){.cost = cost,
                                                                     .priced = cost + predecessors->priced[o],
                                                                     .front = maq_stage_front(t, by->s, holds),
                                                                     .least = least,
                                                                     .used = predecessors->units->used[o],
                                                                     .code = predecessors->units->code[o],
                                                                     .first = (uint16_t)first,
                                                                     .option = (uint16_t)o,
                                                                     .group = g->of[o]};
        predecessors->reach[predecessors->n++] =
            (struct maq_predecessor_reach){cost + predecessors->priced[o] + least + rest[first], g->of[o]};
    }
}
