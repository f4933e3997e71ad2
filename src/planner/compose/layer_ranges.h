/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_ranges.h - the layer ranges of a stage table: for each range of atoms and each option, the facts that every
 * search of the table needs.
 *
 * Of a range [first, end) under one option: up to which position from the end it fits into memory, the least that its
 * gradients take to reduce, and what it takes in the middle of a pipeline with hops to its nearest neighbours. Worked
 * out once for each table; all of them are lower bounds of what the range costs in a composition.
 */
#ifndef MAQ_PLANNER_COMPOSE_LAYER_RANGES_H
#define MAQ_PLANNER_COMPOSE_LAYER_RANGES_H

#include <math.h>

#include "base/arena.h"
#include "planner/compose/stage_table.h"

#define MAQ_REST_ROWS                                                                                                  \
    16u /* positions that relaxed programs distinguish; positions deeper in the pipeline count as the last of these rows */

struct maq_layer_ranges {
    const struct maq_stage_table *table;
    uint32_t depth; /* the most stages that a pipeline can have */
    uint32_t rows;  /* positions of relaxed programs: depth, at most MAQ_REST_ROWS */
    bool mixes;     /* stages of two options */
    uint16_t *
        deepest; /* by maq_layer_range_index(): the last position from the end at which the range fits into memory; 0: at none */
    double *sync_s; /* by maq_layer_range_index(): reduction over replicas of this option alone, or less */
    double *
        through_s; /* by maq_layer_range_index(): compute and least hops of a stage in the middle; HUGE_VAL where it does not fit */
    double *least_s;                /* [option]: the least of through_s */
    double *forward_s, *backward_s; /* [option * atoms + atom]: hop to the nearest neighbour */
    /* [option] of the last stage: from it to the nearest and to the farthest first stage, and back */
    double *back_s, *back_most_s;
    double *devices; /* [option] devices of its kind that the replicas of a whole wave take */
    double update_s; /* the least update of any stage */
};

static inline size_t maq_layer_range_index(const struct maq_stage_table *t, uint32_t option, uint32_t first,
                                           uint32_t end)
{
    return ((size_t)first * (t->n_atoms + 1) + end) * t->n_options + option;
}

static inline double maq_layer_range_compute(const struct maq_stage_table *t, uint32_t option, uint32_t first,
                                             uint32_t end)
{
    return t->options[option].time_s[end] - t->options[option].time_s[first] + t->options[option].each_s;
}

/* Element by element, the lesser of both, into the first array. */
static inline void maq_lower(double *restrict into, const double *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into[i] = from[i] < into[i] ? from[i] : into[i];
}

/* Replicas of a stage that is run by one option alone. */
static inline uint32_t maq_replicas(const struct maq_stage_table *t, uint32_t option)
{
    const struct maq_stage_option *o = &t->options[option];
    return (t->wave_samples + o->samples - 1) / o->samples;
}

/*
 * How often the hops of a stage with `behind` stages behind it are charged (struct maq_hop_rule); `first`: it begins
 * the pipeline.
 */
double maq_forward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);
double maq_backward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);

/* Everything lives in the arena; `table` is borrowed. false when out of memory. */
bool maq_layer_ranges_init(struct maq_layer_ranges *layer_ranges, const struct maq_stage_table *table,
                           struct maq_arena *arena);

/*
 * farthest [atoms + 1]: for each end of a range the least first atom with which some option computes it in at most `most_s`
 * seconds; the end itself where none does. Every shorter range up to that end has such an option too.
 */
void maq_farthest_starts(uint32_t *farthest, const struct maq_stage_table *table, double most_s);

/*
 * Lower bounds from the work alone, in seconds: of the bottleneck, with all devices busy all the time, and of the step. Neither
 * looks at cuts or memory, so both are cheap.
 */
double maq_wave_bound(const struct maq_stage_table *table);
double maq_work_bound(const struct maq_stage_table *table);

#endif
