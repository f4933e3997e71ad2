/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offloaded_update.h - the update of what the optimizer keeps on the host or on NVMe, as steps of a segment. See offloaded_update.c.
 */
#ifndef MAQ_TRAIN_STEP_OFFLOADED_UPDATE_H
#define MAQ_TRAIN_STEP_OFFLOADED_UPDATE_H

#include "graph/segment.h"
#include "train/step/blueprint.h"

/* Of the parameters that a rank updates: bytes of each. */
struct maq_offloaded_update {
    double params; /* that the rank updates, on the device and on the host */
    double grad;   /* a gradient, as it is kept */
    double
        state; /* what the optimizer reads and writes: master weight, or the parameter where there is none, and moments */
    double copied;     /* the new weight in the type of the model, where the master is another; else 0 */
    double low, shard; /* a weight as the device computes with it, and as an offloaded shard is kept */
};

/* Appends the update of the plan's share of them, and what the copies on the other side of the link need. */
void maq_offloaded_update_put(struct maq_segment_writer *w, const struct maq_blueprint *bp,
                              const struct maq_offloaded_update *u);

/*
 * Seconds of an optimizer whose states are on NVMe: `tiles` times reading, updating and writing, which take so long in all. Whatever is
 * not ahead or behind comes one after the other.
 */
double maq_tiled_update_s(double tiles, double read_s, double update_s, double write_s, bool reads_ahead,
                          bool writes_behind);

#endif
