/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_search.h - the best row of pieces for one wave: a label-setting dynamic program from the end of the model to
 * its front.
 *
 * A label is the back of a pipeline: atoms [a, end) as a row of pieces. It holds what the front depends on: the hop
 * class of its first stage, that stage's time so far, the slowest of the others, the sums, the number of stages, the
 * devices left. Labels of an atom are extended by every piece that ends there. A label is dropped when it is
 *
 *   bounded    its costs plus the lower bound of the front (piece_bound.h) exceed the best pipeline known
 *   dominated  another label of its atom is no worse in anything, hops to it included
 *
 * The range of the bottleneck is split into boxes: in a box [a, b] no stage takes longer than b, so that rows need more
 * devices, and max t counts as at least a, so that more labels are dominated. The box with the least bound is searched
 * next; one that could not be searched to its end is halved.
 *
 * Without a limit of width the result is the optimum. With one, the least bound of the labels that were not extended is
 * a lower bound of what was missed. Rows with equal steps are ordered by their pieces, never by the order in which they
 * were found, so that pieces which are in no best pipeline change nothing.
 */
#ifndef MAQ_PLANNER_EXTERNAL_PIECE_SEARCH_H
#define MAQ_PLANNER_EXTERNAL_PIECE_SEARCH_H

#include "planner/external/piece_table.h"

struct maq_piece_search_opts {
    double cutoff_s;     /* pipelines up to this step are looked for; HUGE_VAL: all */
    uint32_t width;      /* labels of an atom that are extended; 0: all */
    uint32_t most;       /* labels of a box; 0: no limit */
    uint32_t boxes;      /* boxes that are searched; 0: one */
    uint64_t extensions; /* of labels, in all boxes; 0: no limit */
};

struct maq_piece_search_result {
    struct maq_piece_line best; /* n = 0: none under the cutoff */
    double bound_s;             /* no pipeline is below; the cutoff where there is none */
    bool complete;              /* best is the best there is up to the cutoff */
    uint64_t considered, bounded, dominated;
};

/* false when out of memory. The arena is scratch. */
bool maq_piece_search(struct maq_piece_search_result *out, const struct maq_piece_table *table,
                      const struct maq_piece_search_opts *opts, struct maq_arena *arena);

#endif
