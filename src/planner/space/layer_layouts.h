/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_layouts.h - the number of layers of each virtual stage of a pipeline: the values of the axis LAYOUT.
 *
 *   first * 64 + last    the embedding counts for `first` layers and the output for `last`: as even as can be, what is left over in
 *                        the middle. An end that counts for more than a stage's share has no layers, and the others share them
 *   BY_WORK              by what layers compute, where they differ: the longest stage is as short as can be, and the others as even
 */
#ifndef MAQ_PLANNER_SPACE_LAYER_LAYOUTS_H
#define MAQ_PLANNER_SPACE_LAYER_LAYOUTS_H

#include "base/arena.h"
#include "maquette/job.h"

#define MAQ_LAYOUT_END 64       /* an end counts for less than this */
#define MAQ_LAYOUT_BY_WORK 4096 /* 64 * 64 */

/* Layers of n virtual stages; false when one in the middle would be empty, or there is no memory. */
bool maq_layout_layers(int32_t *layers, uint32_t n, const struct maq_job *job, int32_t value, struct maq_arena *arena);

/* Work of the output, with trained MTP depths, in units of the mean layer's work. */
double maq_layout_output(const struct maq_job *job);

/* Whether the work of layers differs. */
bool maq_layout_uneven(const struct maq_job *job);

#endif
