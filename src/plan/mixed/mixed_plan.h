/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_plan.h - internals shared by the readers and the writer of mixed plans. maquette/mixed_plan.h has the terms. */
#ifndef MAQ_PLAN_MIXED_MIXED_PLAN_H
#define MAQ_PLAN_MIXED_MIXED_PLAN_H

#include "base/arena.h"
#include "maquette/mixed_plan.h"
#include "spec/doc.h"

#define MAQ_MIXED_MAX_DEVICES (UINT32_C(1) << 24)

struct maq_loaded_mixed_plan {
    struct maq_arena arena;
    struct maq_mixed_plan plan;
};

/* Words of the form, NULL-terminated, by enum value. */
extern const char *const maq__mixed_schedules[], *const maq__mixed_shardings[], *const maq__mixed_recomputes[],
                                                                                    *const maq__mixed_cp_comms[];

/* An empty plan whose arena may take `most_bytes`, 0: any number; NULL when out of memory. */
struct maq_loaded_mixed_plan *maq__mixed_new(size_t most_bytes);

/*
 * Hands out a plan that was filled; where filling ran out of memory (`filled` is false), frees it and returns
 * MAQ_NO_MEMORY.
 */
enum maq_status maq__mixed_hand_out(struct maq_loaded_mixed_plan **out, struct maq_loaded_mixed_plan *loaded,
                                    bool filled, struct maq_diag *diag);

/* maquette's form (read.c) and that of Sailor's executed plans (import_sailor.c): the plan's parts go to the arena. */
enum maq_status maq__mixed_read(struct maq_mixed_plan *out, struct maq_node *root, struct maq_arena *arena,
                                struct maq_diag *diag);
enum maq_status maq__mixed_import(struct maq_mixed_plan *out, struct maq_node *root, struct maq_arena *arena,
                                  struct maq_diag *diag);

/* A copy of a slice in the arena; NULL for an empty one. */
enum maq_status maq__mixed_keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag);

/* A stage whose replicas are alike, on the devices of one node group. */
struct maq_even_stage {
    const char *device;
    uint32_t island; /* the node group's number */
    uint32_t first_layer, layers, replicas, tp, cp, ep;
    uint32_t etp;             /* 0: as tp */
    int cp_comm;              /* enum maq_cp_comm, where cp > 1 */
    int sharding, recompute;  /* enum maq_sharding, enum maq_recompute */
    uint32_t recompute_parts; /* selective */
    double optimizer_offload;
    uint32_t optimizer_instances, offload_layers;
    uint32_t offload_modules; /* bits of enum maq_offload_module */
    bool sequence_parallel;   /* where tp > 1 */
};

/* Such a stage as a stage of a mixed plan, in `arena`; false when out of memory. */
bool maq__mixed_even_stage(struct maq_mixed_stage *out, const struct maq_even_stage *stage, struct maq_arena *arena);

#endif
