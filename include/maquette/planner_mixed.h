/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_mixed.h - the best plan of a job over several node groups: how to cut a model into stages, and where each of them runs.
 *
 * An open job (maq_job_load_open) says model, cluster and batch. The layers are composed into one pipeline whose stages each run on
 * one node group (island), with TP, CP, EP, expert-TP, recomputation, ZeRO (and copies of its shards), and optimizer and
 * activations on device or host, each of their own; all stages have equally many replicas and one micro batch. A node group may
 * hold any number of the stages, anywhere in the pipeline, or none. Costs are those of the cost chain
 * (src/planner/stages/stage_costs.h has the equations and what they leave out).
 *
 * Where the model has experts and the job does not decide it, compositions with virtual stages, and uniform plans of one stage, are
 * searched a second time with the expert all-to-all overlapped with another micro batch (overlap_moe_expert_parallel_comm).
 *
 * Besides compositions, all uniform plans are searched: one strategy for all stages, over all devices in the cluster's order, as in
 * maq_train_predict(). Replicas of a stage may then lie on several node groups. Node groups of one kind (maq_cluster_one_kind) are
 * searched as one group as well, and each node group alone, with every technique of maq_search()'s default space.
 *
 * The search is exact for this class, or says how far from its best the plan may be: no plan of the class is faster than bound_s.
 * Costs of a stage do not depend on where in its node group it lies, so bound_s is a bound of the closed form, not of the simulated
 * step.
 *
 * The same job and options give the same result, whatever the number of threads.
 */
#ifndef MAQUETTE_PLANNER_MIXED_H
#define MAQUETTE_PLANNER_MIXED_H

#include <signal.h>

#include "maquette/job.h"
#include "maquette/mixed_step.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The techniques that other planners publish, for comparison on the same costs. Placement is that of this search, which
 * may leave out islands, split them and cut layers unevenly: no plan of theirs with one kind of device for a stage and
 * one number of replicas is missed.
 */
enum maq_mixed_planner {
    MAQ_MIXED_PLANNER_ALL,    /* every technique */
    MAQ_MIXED_PLANNER_METIS,  /* DP, TP, PP */
    MAQ_MIXED_PLANNER_SAILOR, /* DP, TP, PP */
    /* DP, TP, PP, EP. Takes all devices for the slowest of them; the plan found so is then simulated on the real ones. */
    MAQ_MIXED_PLANNER_ALPA,
    /* TP, PP, DP, EP, ZeRO, nothing or all recomputed. One strategy for all stages, which have equally many devices and layers;
     * every device is used, in the cluster's order. */
    MAQ_MIXED_PLANNER_UNIFORM,
    MAQ_MIXED_PLANNER_COUNT
};
MAQ_API const char *maq_mixed_planner_name(enum maq_mixed_planner planner);

struct maq_mixed_search_progress {
    uint32_t tables; /* of a micro batch and a number of replicas: bounded or searched so far, each several times */
    uint64_t ways;   /* strategies of a stage, costed so far */
};

struct maq_mixed_search_opts {
    uint32_t size;            /* set by MAQ_MIXED_SEARCH_OPTS_INIT */
    uint32_t top;             /* plans wanted, each of another micro batch or number of replicas; 0 = 1 */
    uint32_t threads;         /* 0 = one per core */
    const char *const *lists; /* "tp=1,2,4", as struct maq_search_opts */
    size_t n_lists;
    bool together_only;         /* no search on each node group alone */
    bool one_pipeline;          /* no pipelines of several node groups side by side */
    int planner;                /* enum maq_mixed_planner */
    double min_fit_probability; /* as struct maq_search_opts */
    bool as_predicted;
    /*
     * Added to the cluster of the document: memory of every device, and nodes of one node group. No node group is then searched by
     * maq_search(), alone or with others of its kind.
     */
    double more_bytes;
    uint32_t more_nodes, more_nodes_of;
    const volatile sig_atomic_t *stop; /* set by a signal handler: the best so far is the result; NULL = never */
    void (*progress)(
        void *context,
        const struct maq_mixed_search_progress *at); /* now and then, from any thread, one at a time; NULL = none */
    void *context;
};
#define MAQ_MIXED_SEARCH_OPTS_INIT                                                                                     \
    {                                                                                                                  \
        .size = sizeof(struct maq_mixed_search_opts)                                                                   \
    }

struct maq_mixed_search_stage {
    uint32_t pipeline;            /* of the plan's */
    uint32_t first_layer, layers; /* layer 0 is the embedding, the last one the output */
    uint32_t island, islands;     /* the first, and how many in a row: 1, but where a uniform plan's devices fall so */
    uint32_t tp, cp, replicas;
    uint32_t ep, etp; /* spread over the replicas of the stage */
    uint32_t devices; /* of all replicas */
    int cp_comm;      /* enum maq_cp_comm */
    double optimizer_offload;
    uint32_t optimizer_instances; /* copies of what ZeRO shards (HSDP) */
    bool offload;                 /* activations of its layers go to the host */
    uint32_t offload_modules;     /* inputs of these modules do: bits of enum maq_offload_module */
    int recompute, sharding;      /* enum maq_recompute, enum maq_sharding */
    uint32_t recompute_parts;     /* selective: bit set of enum maq_part */
    double compute_s, hop_s;      /* of a micro batch: forward and backward; what it sends */
    double sync_s;                /* reduction of its gradients, and the optimizer */
    double memory_bytes;          /* of a device, at its peak */
    double capacity_bytes;
    uint32_t in_flight;    /* micro batches that a replica holds at most; of virtual stages: chunks of them */
    int32_t on_devices_of; /* an earlier stage whose devices it shares (virtual stage); -1 = its own */
};

/* Of several pipelines side by side, each on a node group of its own. */
struct maq_mixed_search_share {
    uint32_t replicas, microbatches; /* of a replica in a step */
    uint32_t fewer;                  /* so many replicas do one less */
};

struct maq_mixed_search_plan {
    uint32_t micro_batch, replicas;
    uint32_t
        microbatches; /* of a replica in a step; the last may be partly empty. With several pipelines: of the slowest */
    uint32_t n_pipelines;
    const struct maq_mixed_search_share *pipelines; /* NULL: one, all replicas do as much */
    double step_s;       /* simulated pass by pass, as `maquette train` does where all stages are alike */
    double composed_s;   /* the closed form, searched and bounded: (microbatches - 1) bottleneck + fill + wait + sync */
    double bottleneck_s; /* of the slowest stage: compute and hops of a micro batch */
    double fill_s;       /* of all stages together */
    double wait_s;       /* with virtual stages: waits for the output, and between rounds */
    double sync_s;
    uint32_t bottleneck; /* the slowest stage */
    /* One strategy for all stages, over all devices: the plan, as `maquette train` takes it. Then composed_s is step_s and
     * bottleneck_s 0. NULL: a composition. */
    const struct maq_plan *uniform;
    uint32_t chunks; /* virtual stages of a stage; 1: 1F1B, more: interleaved */
    int overlap_ep; /* enum maq_auto_bool: expert all-to-all overlapped with another micro batch; AUTO: as in the job */
    uint32_t group; /* interleaved: micro batches that run in a row through a virtual stage */
    uint32_t n_stages;
    const struct maq_mixed_search_stage *stages;
};

struct maq_mixed_search_island {
    const char *device;
    uint32_t nodes, devices_per_node;
    uint32_t used;                    /* devices that the best plan uses */
    double alone_s, alone_composed_s; /* the best plan on it alone; 0 = none fits, or not asked for */
    double alone_bound_s;
};

struct maq_mixed_search_counts {
    uint64_t waves, waves_bounded; /* pairs of micro batch and number of replicas; refuted as a whole */
    uint64_t programs;             /* relaxed programs solved */
    uint64_t considered;           /* back parts of pipelines that were put together */
    uint64_t bounded, dominated;   /* of them: refuted by a bound, by a better one */
    uint64_t evaluated;            /* whole plans that were costed */
};

struct maq_mixed_search_result {
    uint32_t n_plans; /* the best first; 0: none fits */
    const struct maq_mixed_search_plan *plans;
    double
        bound_s; /* by the closed form no plan of the class is faster; 0 when none fits, and where the planner took other devices */
    double gap;        /* plans[0].composed_s / bound_s - 1 */
    double search_gap; /* composed_s / bound_s - 1: how far the search is from its best */
    double composed_s; /* the least closed form found; plans[0] is the one that is fastest when simulated */
    bool exact;        /* composed_s is the least of the class */
    bool complete;     /* false when the search was stopped */
    int planner;       /* enum maq_mixed_planner */
    double reserve_bytes, min_fit_probability; /* as the job and the options have them */
    uint32_t n_layers;                         /* embedding, layers, MTP, output */
    bool alone;                                /* islands were planned alone too */
    uint32_t n_islands;
    const struct maq_mixed_search_island *islands;
    struct maq_mixed_search_counts counts; /* of the search over all node groups */
    void *owner;                           /* internal */
};

/* *out is owned by the caller (maq_mixed_search_free) and borrows the job. No plan that fits is a result without plans. */
MAQ_API enum maq_status maq_mixed_search(struct maq_mixed_search_result **out, const struct maq_loaded_job *open,
                                         const struct maq_mixed_search_opts *opts, struct maq_diag *diag);
MAQ_API void maq_mixed_search_free(struct maq_mixed_search_result *result);

/* How full the fullest stage of a plan is. */
struct maq_mixed_search_headroom {
    uint32_t stage;
    double needed_bytes, device_bytes; /* of its devices */
    double fit_probability;            /* in what the reserve leaves */
};
MAQ_API struct maq_mixed_search_headroom maq_mixed_search_headroom(const struct maq_mixed_search_result *result,
                                                                   uint32_t plan, const struct maq_loaded_job *open);

/* What would make a job fit that does not; 0 = nothing of that kind within the limits tried. MAQ_BAD_INPUT where nothing helps
 * because what the job fixes is possible on no node group. */
struct maq_mixed_search_remedies {
    uint32_t n_techniques;
    char techniques[3]
                   [88]; /* lists that add techniques, as few as suffice together: "optimizer_offload_fraction=0,1" */
    double more_bytes;   /* on every device */
    bool as_predicted;   /* something fits as predicted, in fewer runs than was asked for */
    uint32_t n_islands;
    struct {
        const char *device; /* borrowed from the job */
        uint32_t more_nodes;
    } islands[8]; /* of one node group alone */
};
MAQ_API enum maq_status maq_mixed_search_find_remedies(struct maq_mixed_search_remedies *out,
                                                       const struct maq_loaded_job *open,
                                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag);

/* A plan of the result as a mixed plan (maq_mixed_plan_write gives its JSON); *out is owned by the caller (maq_mixed_plan_free). */
MAQ_API enum maq_status maq_mixed_search_mixed_plan(struct maq_loaded_mixed_plan **out,
                                                    const struct maq_mixed_search_result *result, uint32_t plan,
                                                    struct maq_diag *diag);

/* The step of a mixed plan on the node groups of an open job, by the cost chain. */
struct maq_mixed_search_predicted {
    double step_s; /* simulated pass by pass */
    double
        composed_s; /* the closed form; 0 where a stage does not fit by its upper limit of memory, and for several pipelines */
    bool fits; /* every device has the memory */
};

/*
 * The plan may be any that a search could have found: one pipeline, stages with equally many equal replicas, each on one node
 * group, virtual stages in equal rounds. A replica's `group` is a node group's name or number. MAQ_BAD_INPUT with the reason for
 * others.
 */
MAQ_API enum maq_status maq_mixed_search_predict(struct maq_mixed_search_predicted *out,
                                                 const struct maq_mixed_plan *plan, const struct maq_loaded_job *open,
                                                 struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
