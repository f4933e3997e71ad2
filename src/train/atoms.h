/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atoms.h - what the atoms of a model cost one rank of a plan: the embedding, each layer, MTP, the output.
 *
 * A pass of a stage is at least the sum of its atoms' segments (data-parallel communication and the host only add to it), and
 * a rank holds at least the sum of what they hold. So bounds on a step, and the stages of a composition, are sums over
 * ranges of atoms.
 */
#ifndef MAQ_TRAIN_ATOMS_H
#define MAQ_TRAIN_ATOMS_H

#include "base/arena.h"
#include "maquette/train.h"

struct maq_atom {
    double forward_ns, backward_ns; /* of a microbatch, nothing recomputed; both halves where the schedule splits */
    double redone_forward_ns,
        redone_backward_ns;             /* with what the plan recomputes: forward differs where it is offloaded */
    double dense_params, expert_params; /* of one rank, before data-parallel sharding */
    double narrow_params;               /* of both, what the recipe quantizes */
    double act_bytes, redone_act_bytes; /* kept for a microbatch from forward to backward */
    double most_act_bytes;              /* the larger of the two */
    double transient_bytes, redone_transient_bytes; /* working set of its heavier pass beyond them */
};

struct maq_atoms {
    struct maq_atom *at; /* [n]: embedding, layers in order, all MTP depths as one where there are any, output */
    uint32_t n;
    double hop_ns; /* the cheapest transfer between two stages; 0 when pp = 1 */
};

/* Atoms of a model behind its layers, and in all. */
static inline uint32_t maq_atoms_behind(const struct maq_model *model)
{
    return 1 + (model->mtp_layers > 0);
}
static inline uint32_t maq_atoms_of_model(const struct maq_model *model)
{
    return 1 + (uint32_t)model->num_layers + maq_atoms_behind(model);
}

/*
 * The atoms of a plan under the sweep's job, on the devices of its first stage; with offload_layers > 0 all layers are
 * offloaded. MAQ_BAD_INPUT when the plan is impossible. Lives in `arena`.
 */
enum maq_status maq_train_sweep_atoms(struct maq_atoms *out, struct maq_train_sweep *sweep, const struct maq_plan *plan,
                                      struct maq_arena *arena);

/* Data-parallel communication of an atom in each pass of a microbatch: FSDP gathers its parameters before it computes, ZeRO-2 and 3
 * reduce its gradients behind it, all on one stream. */
struct maq_atom_sync {
    double forward_gather_ns, backward_gather_ns, reduce_ns;
};

/* Fills this for each of the n atoms of maq_train_sweep_atoms(); all 0 where a pass communicates nothing. */
enum maq_status maq_train_sweep_syncs(struct maq_atom_sync *out, uint32_t n, struct maq_train_sweep *sweep,
                                      const struct maq_plan *plan);

/* maq_train_sweep_eval, but plans that do not fit are not timed: their step_s stays 0. */
enum maq_status maq_train_sweep_eval_fitting(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                             const struct maq_plan *plans, size_t n);
/* The memory alone: step_s stays 0. */
enum maq_status maq_train_sweep_memory(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                       const struct maq_plan *plans, size_t n);
/* Which of the first n pipeline stages of a plan fit; none where the plan is impossible. */
enum maq_status maq_train_sweep_stages_fit(bool *fits, uint32_t n, struct maq_train_sweep *sweep,
                                           const struct maq_plan *plan);

#endif
