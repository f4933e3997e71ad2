/* layer_ranges.h - a table's layer ranges, under one option each, with their limits: what all searches of a table stand on. */
#ifndef MAQ_PLANNER_COMPOSE_LAYER_RANGES_H
#define MAQ_PLANNER_COMPOSE_LAYER_RANGES_H

#include <math.h>

#include "base/arena.h"
#include "planner/compose/stage_table.h"

#define MAQ_REST_ROWS                                                                                                  \
    16u /* positions that relaxed programs tell apart; those behind them are taken for the first of them */

struct maq_layer_ranges {
    const struct maq_stage_table *table;
    uint32_t depth; /* most stages */
    uint32_t rows;  /* of relaxed programs: depth, at most MAQ_REST_ROWS */
    bool mixes;     /* stages of two options */
    uint16_t *
        deepest; /* by maq_layer_range_index(): the position from the end up to which the layer range fits; 0: nowhere */
    double *sync_s; /* by maq_layer_range_index(): of the option alone, or less */
    double *
        through_s; /* by maq_layer_range_index(): compute and hops of a stage in the middle, HUGE_VAL where it does not fit */
    double *least_s;                /* [option]: a stage in the middle takes this at least */
    double *forward_s, *backward_s; /* [option * atoms + atom]: hop to the best neighbour there is */
    /* [option] in the last stage: from it to the best and the worst first stage, and back */
    double *back_s, *back_most_s;
    double *devices; /* [option] of its kind for a whole wave */
    double update_s; /* the least there is */
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

/* The lesser of each, into the first. */
static inline void maq_lower(double *restrict into, const double *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into[i] = from[i] < into[i] ? from[i] : into[i];
}

/* Replicas of a stage of one option. */
static inline uint32_t maq_replicas(const struct maq_stage_table *t, uint32_t option)
{
    const struct maq_stage_option *o = &t->options[option];
    return (t->wave_samples + o->samples - 1) / o->samples;
}

/* How often a stage with `behind` stages behind it is charged its hops; `first`: it begins the pipeline. */
double maq_forward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);
double maq_backward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);

/* Everything lives in the arena; `table` is borrowed. false when out of memory. */
bool maq_layer_ranges_init(struct maq_layer_ranges *layer_ranges, const struct maq_stage_table *table,
                           struct maq_arena *arena);

/* What all devices together need for a wave at least, and what no composition of the table can be below: from the work alone; cheap. */
double maq_wave_bound(const struct maq_stage_table *table);
double maq_work_bound(const struct maq_stage_table *table);

#endif
