/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - the best composition of a table, exactly: a label-setting dynamic program with bounds and dominance.
 *
 * Labels are partial pipelines, from the last stage towards the front. labels.c has the two rules by which labels are
 * dropped. Searched are the boxes that enumerate.h left over.
 */
#ifndef MAQ_PLANNER_COMPOSE_LABELS_H
#define MAQ_PLANNER_COMPOSE_LABELS_H

#include "planner/compose/enumerate.h"

struct maq_label_options {
    double cutoff_s;
    uint32_t beam;  /* beam: labels kept per front atom and parts of the front stage; 0: all */
    uint32_t most;  /* labels held at the same time; more are dropped and the search is not complete */
    bool no_bounds; /* for tests: prune by dominance alone */
};

struct maq_label_count {
    uint64_t considered, bounded, dominated, finished;
    bool complete; /* no label was dropped without proof: what was found is the best below the cutoff */
};

/* *best becomes the best composition of the table below the cutoff, if that is better. false when out of memory. */
bool maq_labels_search(struct maq_composition *best, struct maq_label_count *count,
                       const struct maq_layer_ranges *layer_ranges, const struct maq_boxes *boxes,
                       const struct maq_label_options *options, struct maq_arena *arena);

#endif
