/* labels.h - the best composition of a table, exactly. */
#ifndef MAQ_PLANNER_COMPOSE_LABELS_H
#define MAQ_PLANNER_COMPOSE_LABELS_H

#include "planner/compose/enumerate.h"

struct maq_label_options {
    double cutoff_s;
    uint32_t beam;  /* labels kept per front atom and neighbour; 0: all */
    uint32_t most;  /* labels at the same time */
    bool no_bounds; /* for tests: prune by dominance alone */
};

struct maq_label_count {
    uint64_t considered, bounded, dominated, finished;
    bool complete; /* nothing was left out: what was found is the best below the cutoff */
};

/* The best composition of the table below the cutoff, if better than *best. false when out of memory. */
bool maq_labels_search(struct maq_composition *best, struct maq_label_count *count,
                       const struct maq_layer_ranges *layer_ranges, const struct maq_boxes *boxes,
                       const struct maq_label_options *options, struct maq_arena *arena);

#endif
