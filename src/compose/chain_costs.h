/*
 * chain_costs.h - stage tables from the cost chain: what stretches of a model cost on the node groups of a cluster.
 *
 * A pool is a node group: one kind of node, so that a stage in it is homogeneous. An option is a pool, a TP degree inside a node, what is
 * recomputed, and ZeRO-0 or ZeRO-1. For an atom a (the embedding, a layer, all MTP depths, the output) under an option, from
 * maq_train_sweep_atoms() on the pool alone:
 *
 *   time_s(a)    (forward + backward with what is recomputed)(a)                                             per wave
 *   fixed(a)     params(a) x state bytes per parameter (maq_state_bytes), `replicas` shards, ZeRO-1 shares the optimizer's
 *                + for the embedding and the output, what their working set exceeds that of the heaviest layer by
 *   flight(a)    activations kept for a micro batch
 *   context      CUDA context, workspace, communicators (maq_fixed_bytes) + working set of the heaviest layer
 *   sync(P)      reduction of the gradients of P parameters over the replicas, placed in the pool one beside the other:
 *                all-reduce, or reduce-scatter and all-gather of the new weights (ZeRO-1); in buckets of max(40 M, 1 M x replicas)
 *                parameters (train/sync.c) + the optimizer's norm, clipping, update and zeroing
 *   hop          send/recv of the activations of a micro batch; the slower of what either pool's network takes for it
 *
 * and T as stage_table.h says. Simplifications, and which way they lead the step time:
 *
 *   longer   gradients are reduced after the last backward pass, ZeRO-1's weights gathered after the update: nothing overlaps
 *   longer   a hop is added to the stage that sends, in both directions: transfers never run beside compute
 *   longer   a hop inside a pool of several nodes always crosses the network, with all devices of its node that send at all sending at once
 *   longer   the last wave is a whole one
 *   shorter  the host: gaps where issuing is slower than executing, and the host's part of the step's end
 *   shorter  norm over the job, the sum of a tied table's halves (some milliseconds of a step)
 *   shorter  replicas of a stage that begins in the middle of a node may touch one node more than is priced here
 *   shorter  a rest of less than a sixteenth of a bucket is reduced in proportion: its latency is left out
 *   neither  slots between hops and compute are those of the closed form: exact for even stages, at most (stages - 1) hops too long or short
 *
 * Memory: a stage that holds both embedding and output counts the excess of both; fragmentation is not counted (maq_stage_fits()).
 *
 * sync() is made non-decreasing in P: the collective is priced on sixteenths of a bucket, running maxima, straight lines between.
 */
#ifndef MAQ_COMPOSE_CHAIN_COSTS_H
#define MAQ_COMPOSE_CHAIN_COSTS_H

#include "base/arena.h"
#include "compose/stage_table.h"
#include "maquette/cost.h"
#include "maquette/job.h"

#define MAQ_CHAIN_VALUES 16u /* values of an axis */

struct maq_chain_redo {
    int recompute;  /* enum maq_recompute */
    uint32_t parts; /* selective: bit set of enum maq_part */
};

/* What a composition may choose from. */
struct maq_chain_space {
    struct maq_job job; /* open: model, cluster (all node groups), workload; plan as written */
    uint32_t n_tp, n_mbs, n_redo, n_zero;
    uint32_t tp[MAQ_CHAIN_VALUES], mbs[MAQ_CHAIN_VALUES]; /* n_tp = 0: every divisor of a pool's node */
    struct maq_chain_redo redo[MAQ_CHAIN_VALUES];
    int zero[2]; /* enum maq_sharding: NONE, OPTIM */
};

struct maq_chain_layers; /* the atoms of one (pool, TP, micro batch, recomputation): chain_costs.c */

struct maq_chain_pool {
    struct maq_cluster cluster; /* the node group alone */
    struct maq_node_group group;
    uint32_t count, per_node;
    double capacity_bytes; /* of a device */
    uint32_t n_tp, tp[MAQ_CHAIN_VALUES];
    double update_s, zero_s; /* optimizer per parameter that a rank updates, and that it holds */
};

struct maq_chain_costs {
    const struct maq_chain_space *space; /* borrowed */
    uint32_t n_pools, n_atoms;
    struct maq_chain_pool pools[MAQ_STAGE_KINDS];
    const struct maq_chain_layers **layers; /* [pool][tp][mbs][redo]; NULL: cannot be */
    double grad_bytes, weight_bytes;        /* of a parameter on the wire */
    struct maq_measured *measured;          /* owned */
    struct maq_costs chain;
    uint32_t pools_used; /* bit set: pools that tables have options of */
};

/* Costs every atom under every combination; everything lives in the arena. maq_chain_costs_fini() gives the rest back. */
enum maq_status maq_chain_costs_init(struct maq_chain_costs *costs, const struct maq_chain_space *space,
                                     struct maq_arena *arena, struct maq_diag *diag);
void maq_chain_costs_fini(struct maq_chain_costs *costs);

struct maq_chain_wave {
    uint32_t mbs; /* index into the space */
    uint32_t replicas;
};

/* What an option's id stands for. */
struct maq_chain_option {
    uint32_t pool, tp, redo;
    int sharding;
};
struct maq_chain_option maq_chain_option_of(const struct maq_chain_costs *costs, uint32_t id);

/* The table of a wave lives in the arena: a pure function of its arguments. false when out of memory. */
bool maq_chain_costs_table(struct maq_stage_table *table, const struct maq_chain_costs *costs,
                           const struct maq_chain_wave *wave, struct maq_arena *arena);

/* Bytes that a device of an option sends to a neighbouring stage for a wave, the mean of both directions; mbs: index into the space. */
double maq_chain_costs_hop_bytes(const struct maq_chain_costs *costs, uint32_t id, uint32_t mbs);

#endif
