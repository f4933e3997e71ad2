/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_costs.h - stage tables from the cost chain: what layer ranges of a model cost on the node groups of a cluster.
 *
 * A pool is a node group: one kind of node, so that a stage in it is homogeneous. A *strategy* to run a stage is a pool and what a
 * plan says of one stage: TP, CP and its kind, EP and expert-TP inside the replicas of the stage, what is recomputed, ZeRO-0 to 3
 * and the copies of its shards (HSDP), the optimizer's share on the host, which activations go there too. A replica takes TP x CP
 * devices; experts are spread over the replicas, so a strategy with EP is only in tables whose TP x CP x replicas is a multiple of
 * expert-TP x EP. A layer range under a strategy costs what it costs in a prediction of `maquette train`
 * (train/mixed/range_costs.h); a table expresses that by sums over atoms (column.h). T is that of stage_table.h, with
 *
 *   sync(P)      exposed reduction of gradients after the last backward pass, exposed gathering of parameters, optimizer, the
 *                host's part of the step's end, the norm over all devices
 *   hop          send/recv of the activations of a micro batch: over the link that the cluster names between two groups, else what
 *                the slower of both pools' networks takes
 *
 * Simplifications, and whether they make the step longer or shorter:
 *
 *   longer   the slowest synchronization of any stage ends the step, also where other stages are still busy with their last passes
 *   longer   the fill of stages behind the slowest one counts in full, also where its own first passes hide it
 *   longer   a hop is added to the stage that sends, in both directions: transfers never overlap with compute
 *   longer   a hop inside a pool of several nodes always crosses the network, with all devices of its node that send at all sending
 *            at once
 *   longer   the last wave is a whole one
 *   longer   the norm is taken over all devices of the cluster, also those that a plan leaves out
 *   neither  the sum of a tied table's halves is priced in the first stage's pool
 *   shorter  groups of a stage that begins in the middle of a node may touch one node more than is priced here
 *   neither  idle time between hops and compute is that of the closed form: exact for even stages, at most (stages - 1) hops too
 *            long or short
 *   neither  gaps of the host and collectives of ZeRO-2 and 3 during a pass are those of a pass from the model's front, split by
 *            atoms
 *
 * maq_chain_costs_simulate() has none of these but the last wave: it simulates the composition pass by pass.
 *
 * Memory: a stage that holds both embedding and output counts the excess of both; with ZeRO-3 every stage counts the parameters
 * that a long one gathers ahead; fragmentation is not counted (maq_stage_fits()).
 *
 * A strategy is left out of a table where another of the same pool, with as many devices, dominates it: in no time of an atom, no
 * byte, no hop, no synchronization of any size is it better. In any composition the other strategy fits in its place and takes no
 * longer, so the best composition of the table keeps its step.
 */
#ifndef MAQ_PLANNER_STAGES_STAGE_COSTS_H
#define MAQ_PLANNER_STAGES_STAGE_COSTS_H

#include <pthread.h>
#include <signal.h>

#include "base/arena.h"
#include "maquette/cost.h"
#include "maquette/job.h"
#include "planner/compose/stage_table.h"
#include "planner/stages/virtual_stages.h"
#include "train/mixed/device_pools.h"

#define MAQ_CHAIN_VALUES 64u /* values of an axis */

struct maq_chain_redo {
    int recompute;  /* enum maq_recompute */
    uint32_t parts; /* selective: bit set of enum maq_part */
};

/* Activations that are offloaded to the host: of all layers of a stage, or the inputs of some modules of each layer. */
struct maq_chain_offload {
    bool layers;
    uint32_t modules; /* bits of enum maq_offload_module */
};

/* The space of compositions of a job. */
struct maq_chain_space {
    struct maq_job job; /* open: model, cluster (all node groups), workload; plan as written */
    uint32_t n_tp, n_cp, n_cp_comm, n_ep, n_etp, n_mbs, n_redo, n_zero, n_host, n_copies, n_offload;
    /* n = 0: the values that a pool's nodes and the sequence allow */
    uint32_t tp[MAQ_CHAIN_VALUES], cp[MAQ_CHAIN_VALUES];
    uint32_t ep[MAQ_CHAIN_VALUES], mbs[MAQ_CHAIN_VALUES];
    uint32_t etp[MAQ_CHAIN_VALUES]; /* 0: as many as TP */
    struct maq_chain_redo redo[MAQ_CHAIN_VALUES];
    int cp_comm[4];                    /* enum maq_cp_comm */
    int zero[4];                       /* enum maq_sharding */
    double host[MAQ_CHAIN_VALUES];     /* share of the optimizer's states on the host */
    uint32_t copies[MAQ_CHAIN_VALUES]; /* of what ZeRO shards (HSDP) */
    struct maq_chain_offload offload[MAQ_CHAIN_VALUES];
    uint32_t n_chunks, chunks[MAQ_CHAIN_VALUES]; /* virtual stages of a stage; 1: 1F1B */
    /* nothing sets overlap_moe_expert_parallel_comm; the job's plan then has it off */
    bool overlap_open;
};

/* The strategy of a stage: what a plan says of one stage. */
struct maq_stage_strategy {
    uint32_t pool, tp, cp, ep, etp;
    int cp_comm;      /* enum maq_cp_comm */
    uint32_t redo;    /* index into the space */
    int sharding;     /* enum maq_sharding */
    double host;      /* share of the optimizer's states on the host */
    uint32_t copies;  /* of what ZeRO shards (HSDP) */
    uint32_t offload; /* index into the space */
};

struct maq_chain_pool {
    const struct maq_pool *at; /* borrowed from the groups */
    double capacity_bytes;     /* of a device */
    uint32_t n_strategies;
    struct maq_stage_strategy *strategies;
};

struct maq_chain_column;

/* The strategies of a pool for one wave that no other dominates, costed. */
struct maq_chain_offer {
    uint32_t n;
    const struct maq_chain_column **columns;
};

/* Offers are costed when a table first asks for them, those of several pools at once. */
struct maq_chain_watch {
    const volatile sig_atomic_t
        *stop; /* when set, tables have a single strategy, so that the search ends soon; its bounds are then invalid */
    void (*report)(void *user, uint32_t tables, uint64_t strategies);
    void *user;
};

struct maq_chain_pool_memo {
    pthread_mutex_t lock; /* guards the memo and the pool's sweep */
    struct maq_arena arena;
    const struct maq_chain_offer **offers; /* [n_mbs * (most_replicas + 1)] */
};

struct maq_chain_memo {
    struct maq_chain_pool_memo pools[MAQ_STAGE_KINDS];
    pthread_mutex_t lock;  /* guards the members below */
    uint32_t tables;       /* built so far */
    uint64_t strategies;   /* costed so far */
    uint32_t most_options; /* options of the largest table so far; those beyond MAQ_STAGE_OPTIONS are cut off */
};

struct maq_chain_costs {
    const struct maq_chain_space *space; /* borrowed */
    struct maq_chain_atoms atoms;
    uint32_t n_pools, most_replicas;
    struct maq_pools groups; /* owned */
    struct maq_chain_pool pools[MAQ_STAGE_KINDS];
    double norm_s;       /* all-reduce of the gradients' norm over all devices */
    uint32_t pools_used; /* bit set: pools that tables have options of */
    struct maq_chain_watch watch;
    bool plain;                  /* tables have only strategies that shard and recompute nothing */
    bool keep_useless;           /* for tests: dominated strategies stay; set before the first table */
    struct maq_chain_memo *memo; /* owned: offers costed so far */
};

/* To be ended by maq_chain_costs_fini(). `space` is borrowed. */
enum maq_status maq_chain_costs_init(struct maq_chain_costs *costs, const struct maq_chain_space *space,
                                     struct maq_diag *diag);
void maq_chain_costs_fini(struct maq_chain_costs *costs);

struct maq_chain_wave {
    uint32_t mbs; /* index into the space */
    uint32_t replicas;
    uint32_t chunks; /* virtual stages of a stage; 0: none, which is 1F1B (virtual_stages.h) */
    uint32_t group;  /* with chunks: micro batches that run in a row through a virtual stage (Megatron-LM's group) */
    bool heaviest;   /* with chunks: every chunk of a stage takes as long as the longest */
};

struct maq_stage_strategy maq_stage_strategy_of(const struct maq_chain_costs *costs, uint32_t id);

/* The table of a wave lives in the arena, its columns with the costs: a pure function of its arguments, from any thread. false when
 * out of memory. */
bool maq_chain_costs_table(struct maq_stage_table *table, const struct maq_chain_costs *costs,
                           const struct maq_chain_wave *wave, struct maq_arena *arena);

/* Whether the search was asked to end. */
bool maq_chain_costs_stopped(const struct maq_chain_costs *costs);

/* MAQ_LIMIT with its diagnostic when some table had more options than it can hold. */
enum maq_status maq_chain_costs_check(const struct maq_chain_costs *costs, struct maq_diag *diag);

/*
 * The step of a composition simulated pass by pass, with stages placed in their pools: that of `maquette train` where all stages
 * are alike.
 */
struct maq_chain_simulated {
    double step_s;
    bool fits;
};
enum maq_status maq_chain_costs_simulate(struct maq_chain_simulated *out, const struct maq_chain_costs *costs,
                                         const struct maq_chain_wave *wave, const struct maq_composition *composition,
                                         const struct maq_stage_table *table);

/*
 * Seconds of a transfer of so many bytes by each of `senders` devices of a node of pool `from` to pool `to`; `inside`: within one
 * node.
 */
double maq_chain_hop_s(const struct maq_chain_costs *costs, uint32_t from, uint32_t to, double bytes, uint32_t senders,
                       bool inside);

/*
 * What an option of such a table sends: bytes of a transfer of each of its devices, the mean of both directions, and
 * seconds that are added to each transfer.
 */
struct maq_chain_sends {
    double bytes, extra_s;
};
struct maq_chain_sends maq_chain_costs_sends(const struct maq_stage_table *table, uint32_t option);

#endif
