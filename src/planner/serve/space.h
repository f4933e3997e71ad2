/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - the deployments that a search may choose from: a list of values for each axis, and all that go together.
 *
 * A value that the job, a flag or the engine's command line tells is the only one of its axis; the user's own lists come before that.
 */
#ifndef MAQ_PLANNER_SERVE_SPACE_H
#define MAQ_PLANNER_SERVE_SPACE_H

#include "base/arena.h"
#include "maquette/serve_planner.h"

#define MAQ_SERVE_AXIS_VALUES 24u
#define MAQ_SERVE_EP_ALL (-1) /* EP: all ranks that there are */

struct maq_serve_values {
    int32_t at[MAQ_SERVE_AXIS_VALUES];
    uint32_t n;
};

struct maq_serve_space {
    struct maq_serve_values axis[MAQ_SERVE_AXIS_COUNT];
};

/* For a node group of the open job. Faults of the user's lists are reported. */
enum maq_status maq_serve_space_init(struct maq_serve_space *out, const struct maq_loaded_job *open, uint32_t group,
                                     const struct maq_serve_search_opts *opts, struct maq_diag *diag);

/* The candidates of all node groups, in *out; without those that are others again. What they point to is in the arena. */
enum maq_status maq_serve_list(struct maq_serve_search_result *out, const struct maq_loaded_job *open,
                               const struct maq_serve_search_opts *opts, struct maq_arena *arena,
                               struct maq_diag *diag);

/* Devices of its node group. */
uint32_t maq_serve_group_devices(const struct maq_serve_candidate *c);

/* A value in words, as lists have it. */
#define MAQ_SERVE_WORD 24
const char *maq_serve_axis_word(char buf[MAQ_SERVE_WORD], enum maq_serve_axis axis, int32_t value);

#endif
