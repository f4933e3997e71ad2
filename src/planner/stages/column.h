/*
 * column.h - one way to run stages, as sums over atoms: a column of a stage table.
 *
 * A pass over the atoms [first, end) takes time that is no sum over atoms: the host's lead, and collectives of ZeRO-2 and 3 that wait for
 * one another, depend on where it begins. With P(i) the time of a stage that holds the first i atoms, and c what a stage in the
 * middle takes beyond P(end) - P(first),
 *
 *   time_s(i) = P(i) - c/2,      and c/2 on each hop that a stage sends
 *
 * is P for a stage at the front, P + c for those between, and so on to the last: exact at the front, for the layer range that c is taken from,
 * and wherever a layer more costs as much as the last one did.
 *
 * sync(P) goes through the synchronization of stages of 1, 2, 3, 4, 6, 8, 12, ... layers and of the whole model, with
 * straight lines between, and never falls. The halves of a tied table are added up by the stage that holds the
 * embedding, unless it holds the whole model (tied_s of the option).
 */
#ifndef MAQ_PLANNER_STAGES_COLUMN_H
#define MAQ_PLANNER_STAGES_COLUMN_H

#include "planner/compose/stage_table.h"
#include "train/mixed/range_costs.h"

#define MAQ_CHAIN_KNOTS 28u

struct maq_chain_column {
    struct maq_stage_option option;
    double hop_bytes, extra_s; /* of a transfer; time that is added to each */
    uint32_t n_knots;
    double knot_bytes[MAQ_CHAIN_KNOTS], knot_s[MAQ_CHAIN_KNOTS];
};

/* What a column needs to know beside its layer ranges. */
struct maq_chain_around {
    double capacity_bytes; /* of a device */
    double norm_s;         /* at the end of the step */
    double tied_s;         /* first and last stage add up the halves of a tied table */
    bool gathered;         /* parameters are gathered for each pass (ZeRO-3) */
};

/* Of layer ranges that have begun; option.id, kind, devices and samples are the caller's. MAQ_LIMIT when no atom fits into the capacity.
 * Lives in the arena. */
enum maq_status maq_chain_column_fill(struct maq_chain_column *out, const struct maq_range_costs *range_costs,
                                      const struct maq_chain_around *around, struct maq_arena *arena);

/* Synchronization of a stage whose gradients have so many bytes. */
double maq_chain_column_sync_s(const struct maq_chain_column *column, double bytes);

/* Whether `other`, of the same pool and with as many devices, is no worse in anything. */
bool maq_chain_column_useless(const struct maq_chain_column *column, const struct maq_chain_column *other,
                              uint32_t n_atoms);

#endif
