/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - what a search may choose from: a list of values for each axis of a plan.
 *
 * A key that the document or a flag sets has that one value. Everything else has the values that Megatron-LM runs; `full` adds the rest, and
 * the user's own lists come before both.
 */
#ifndef MAQ_PLANNER_SPACE_SPACE_H
#define MAQ_PLANNER_SPACE_SPACE_H

#include "base/arena.h"
#include "maquette/planner.h"
#include "planner/space/axis.h"

/* The job that is searched: the open one with the nodes and the memory of the options. */
enum maq_status maq_search_job(struct maq_job *out, const struct maq_loaded_job *open,
                               const struct maq_search_opts *opts, struct maq_arena *arena, struct maq_diag *diag);

/* What the options and the job say of memory: bytes that are reserved, and how likely a plan has to fit. */
struct maq_search_memory {
    double reserve_bytes, min_fit_probability;
};
enum maq_status maq_search_memory(struct maq_search_memory *out, const struct maq_loaded_job *open,
                                  const struct maq_search_opts *opts, struct maq_diag *diag);
/* Of a device with so many bytes: the most that a plan may need as predicted. */
double maq_search_usable(const struct maq_search_memory *memory, double device_bytes);
/* The device, of that. */
double maq_search_device_bytes(const struct maq_search_memory *memory, double usable_bytes);

/* Node groups of one kind become one. */
void maq_search_join(struct maq_job *job);

/* Its space; lists live in `arena`. Faults of the user's lists are reported. */
enum maq_status maq_space_init(struct maq_search_space *out, const struct maq_loaded_job *open,
                               const struct maq_job *job, const struct maq_search_opts *opts, struct maq_arena *arena,
                               struct maq_diag *diag);

/* A small part of a space, of the values that good plans mostly have: the first ones of most axes. Lists live in `arena`. */
enum maq_status maq_space_narrow(struct maq_search_space *out, const struct maq_search_space *whole,
                                 struct maq_arena *arena);
/* Leaves a part of a space that is searched in milliseconds. */
void maq_space_quick(struct maq_search_space *space, const struct maq_job *job);

#endif
