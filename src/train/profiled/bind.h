/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - a mixed plan bound to a foreign profile: names become ids, and every replica gets its tables.
 *
 * The tables are those of the replica's device, micro batch and TP. Binding fails where the profile does not have what the plan
 * needs; nothing is extrapolated. Both cost rules of profiled.h read bound plans.
 */
#ifndef MAQ_TRAIN_PROFILED_BIND_H
#define MAQ_TRAIN_PROFILED_BIND_H

#include "base/arena.h"
#include "maquette/mixed_step.h"
#include "train/profiled/layer_profile.h"

struct maq_bound_member {
    struct maq_link_end at;             /* zone, device, devices of this node */
    const struct maq_layer_time *times; /* of the micro batch, with TP over this member's devices */
};

struct maq_bound_replica {
    const struct maq_mixed_replica *plan;
    const struct maq_bound_member *members; /* [plan->n_members] */
    const struct maq_layer_time *update;    /* of the first member's device at the replica's TP */
    const struct maq_layer_size *sizes;     /* of the replica's TP */
};

struct maq_bound_stage {
    const struct maq_mixed_stage *plan;
    const struct maq_bound_replica *replicas; /* [plan->n_replicas] */
};

struct maq_bound_pipeline {
    uint32_t n_stages;
    const struct maq_bound_stage *stages;
};

struct maq_bound_plan {
    const struct maq_mixed_plan *plan;
    const struct maq_profile_dir *profile;
    uint32_t model;
    const struct maq_layer_size *whole;         /* of TP 1 */
    const struct maq_bound_pipeline *pipelines; /* [plan->n_pipelines] */
};

/* Plan and profile are borrowed; the rest lives in the arena. */
enum maq_status maq_mixed_bind(struct maq_bound_plan *out, const struct maq_mixed_plan *plan,
                               const struct maq_profile_dir *profile, struct maq_arena *arena, struct maq_diag *diag);

/* The link between two replicas, of the devices that work at once on either side; NULL when it was not measured. */
const struct maq_link_fit *maq_bound_link(const struct maq_bound_plan *b, const struct maq_bound_replica *from,
                                          const struct maq_bound_replica *to, bool all_devices);

/* Says that a link was not measured, and fails. */
enum maq_status maq_bound_no_link(const struct maq_bound_plan *b, struct maq_link_end from, struct maq_link_end to,
                                  struct maq_diag *diag);

/* Sum over the layers of a stage. */
double maq_bound_parameters(const struct maq_mixed_stage *stage, const struct maq_layer_size *sizes);

#endif
