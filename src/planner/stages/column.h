/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.h - the costs of one strategy of a stage as sums over atoms: a column (option) of a stage table.
 *
 * The time of a pass over the atoms [first, end) is not a sum over atoms: how far the host issues ahead, and collectives of ZeRO-2
 * and 3 that wait for one another, depend on where the range begins. With P(i) the time of a stage that holds the first i atoms,
 * and c the time of a stage in the middle beyond P(end) - P(first),
 *
 *   time_s(i) = P(i) - c/2,      and c/2 on each hop that a stage sends
 *
 * gives P for a stage at the front, P(end) - P(first) + c for one in the middle, and so on to the last: exact at the front, for the
 * layer range that c is taken from, and wherever each further layer costs as much as the one before.
 *
 * The synchronization as a function of gradient bytes is piecewise linear and never falls, with knots at stages of 1, 2, 3, 4, 6,
 * 8, 12, ... layers and at the whole model. The gradients of a tied embedding are reduced by the stage that holds the embedding,
 * unless it holds the whole model (tied_s of the option).
 */
#ifndef MAQ_PLANNER_STAGES_COLUMN_H
#define MAQ_PLANNER_STAGES_COLUMN_H

#include "planner/compose/stage_table.h"
#include "train/mixed/range_costs.h"

#define MAQ_CHAIN_KNOTS 28u

struct maq_chain_column {
    struct maq_stage_option option;
    double hop_bytes, extra_s; /* bytes of a transfer; time that is added to each transfer */
    uint32_t n_knots;
    double knot_bytes[MAQ_CHAIN_KNOTS], knot_s[MAQ_CHAIN_KNOTS];
};

/* What a column depends on besides the costs of its layer ranges. */
struct maq_chain_around {
    double capacity_bytes; /* of a device */
    double norm_s;         /* at the end of the step */
    double tied_s;         /* all-reduce of a tied table between first and last stage */
    bool gathered;         /* parameters are gathered for each pass (ZeRO-3) */
};

/* Fills a column from the costs of layer ranges (maq_range_costs, begun); option.id, kind, devices and samples are set by the
 * caller. MAQ_LIMIT when no atom fits into the capacity. Lives in the arena. */
enum maq_status maq_chain_column_fill(struct maq_chain_column *out, const struct maq_range_costs *range_costs,
                                      const struct maq_chain_around *around, struct maq_arena *arena);

/* Seconds of synchronization of a stage whose gradients have so many bytes. */
double maq_chain_column_sync_s(const struct maq_chain_column *column, double bytes);

/* Whether `other`, of the same pool and with as many devices, is no worse in any figure: then the column is dominated. */
bool maq_chain_column_useless(const struct maq_chain_column *column, const struct maq_chain_column *other,
                              uint32_t n_atoms);

#endif
