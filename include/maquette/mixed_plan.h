/*
 * mixed_plan.h - a plan for GPUs of several kinds: pipelines -> stages -> replicas, each placed on its own devices.
 *
 * Where struct maq_plan cuts a model over a cluster by a handful of degrees, a mixed plan names everything one by one, so that what
 * any planner finds can be written down: stages with any range of layers, replicas of a stage on different kinds of GPU, stages with
 * different degrees of data parallelism, uneven shares of the micro batches, memory techniques stage by stage, several pipelines of
 * different make-up, and an island that serves several stretches of the model.
 *
 * A pipeline is a chain of stages that cover the layers from the first (the embedding) to the last (the head). A stage is copied over
 * its replicas (data parallelism); a replica is a tensor-parallel group, or context- and tensor-parallel ranks together. Micro batches
 * are dealt over pipelines, and inside a stage over its replicas; the gradients of a layer are summed over all replicas that hold it.
 *
 * The written form is one JSON (or YAML) document: docs/plan-form.md. A plan is read-only once loaded: any thread.
 */
#ifndef MAQUETTE_MIXED_PLAN_H
#define MAQUETTE_MIXED_PLAN_H

#include "maquette/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GPUs of one node in a replica. */
struct maq_mixed_member {
    const char *device, *zone; /* zone NULL: not said */
    uint32_t devices;
};

struct maq_mixed_replica {
    const struct maq_mixed_member *members; /* one, unless the tensor-parallel group spans nodes or kinds of GPU */
    uint32_t n_members;
    const char *group;   /* node group or island; NULL: not said */
    uint32_t tp, cp, ep; /* degrees; the members' devices add up to tp x cp */
    uint32_t etp;        /* expert-TP; 0 = as tp */
    int cp_comm;         /* enum maq_cp_comm */
    bool sequence_parallel;
    uint32_t microbatches; /* of a step; 0 = an equal part (then of all replicas of the stage) */
};

struct maq_mixed_stage {
    uint32_t first_layer, layers;
    uint32_t n_replicas;
    const struct maq_mixed_replica *replicas;
    int sharding;                 /* enum maq_sharding */
    int recompute;                /* enum maq_recompute */
    uint32_t recompute_parts;     /* selective: bit set of enum maq_part */
    uint32_t recompute_layers;    /* with full: the first ones of the stage; 0 = all */
    double optimizer_offload;     /* share of the optimizer's states on the host */
    uint32_t optimizer_instances; /* copies of what ZeRO shards (HSDP); 0 or 1: one */
    uint32_t offload_layers;      /* activations of the first so many layers go to the host */
    uint32_t offload_modules;     /* inputs of these modules of every layer do: bits of enum maq_offload_module */
    int32_t on_devices_of; /* an earlier stage of the pipeline whose devices it shares (virtual stage); -1 = its own */
};

struct maq_mixed_pipeline {
    uint32_t n_stages;
    const struct maq_mixed_stage *stages;
    uint32_t microbatches; /* of a step; 0 = an equal part (then of all pipelines) */
};

/* What was measured of an executed plan; 0 = not measured. */
struct maq_mixed_measured {
    double step_s, reduce_s, memory_bytes;
};

struct maq_mixed_plan {
    const char *model;                  /* NULL: not said */
    const char *zone;                   /* of members that name none; NULL: not said */
    uint32_t micro_batch, global_batch; /* sequences */
    uint32_t layers;                    /* that the pipelines cover */
    int schedule;                       /* enum maq_schedule_kind */
    uint32_t
        microbatch_group; /* of an interleaved schedule: micro batches in a row of a virtual stage; 0 = as many as stages with devices of their own */
    int overlap_ep; /* enum maq_auto_bool: exchanges of experts under another micro batch; AUTO: as the job says */
    uint32_t n_pipelines;
    const struct maq_mixed_pipeline *pipelines;
    struct maq_mixed_measured measured;
};

struct maq_mixed_box; /* owns a plan and all it points to */

/*
 * Reads a plan in maquette's form or, when the document has a `pipeline_list`, in the form of Sailor's executed plans
 * (plan_config_*.json). *out is owned by the caller. All faults of the document are reported.
 */
MAQ_API enum maq_status maq_mixed_plan_load(struct maq_mixed_box **out, const char *path, struct maq_diag *diag);
/* The same from text; name is for messages. */
MAQ_API enum maq_status maq_mixed_plan_parse(struct maq_mixed_box **out, const char *name, struct maq_str text,
                                             struct maq_diag *diag);
MAQ_API const struct maq_mixed_plan *maq_mixed_plan_get(const struct maq_mixed_box *box); /* borrowed */
MAQ_API void maq_mixed_plan_free(struct maq_mixed_box *box);

/* The plan as a JSON document in maquette's form, which reads back as the same plan; *out is owned by the caller (free()). */
MAQ_API enum maq_status maq_mixed_plan_write(char **out, const struct maq_mixed_plan *plan, struct maq_diag *diag);

/* Micro batches of a step over all pipelines: global batch over micro batch, rounded up. */
MAQ_API uint32_t maq_mixed_microbatches(const struct maq_mixed_plan *plan);
/* Of one pipeline, and of one replica of one of its stages; equal parts are rounded up. */
MAQ_API uint32_t maq_mixed_pipeline_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline);
MAQ_API uint32_t maq_mixed_replica_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline, uint32_t stage,
                                                uint32_t replica);

/* ---- what a mixed plan costs from a foreign profile: docs/validate-plans.md has its layout and how far off this is ---- */

struct maq_profile_dir; /* measured layers, memory and links; read-only once loaded: any thread */

/* *out is owned by the caller. All faults of all files are reported. */
MAQ_API enum maq_status maq_profile_dir_load(struct maq_profile_dir **out, const char *folder, struct maq_diag *diag);
MAQ_API void maq_profile_dir_free(struct maq_profile_dir *profile);

struct maq_mixed_cost {
    double step_s;            /* the parts below together */
    double pipeline_s;        /* first forward to last backward pass, of the slowest pipeline */
    double reduce_s;          /* gradients */
    double update_s;          /* optimizer, and what the host does once a step */
    double memory_bytes;      /* of the fullest device */
    bool fits;                /* every device has the memory */
    uint32_t pipeline, stage; /* of the fullest device; of the first that does not fit where one does not */
};

/* maquette's own prediction: the schedule played task by task, reduction, optimizer, memory. */
MAQ_API enum maq_status maq_mixed_predict(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                          const struct maq_profile_dir *profile, struct maq_diag *diag);

/*
 * The published rule of Sailor's simulator, for comparison with what was published, but with compute counted in every stage: where a
 * tensor-parallel group has several members, the simulator finds the slowest of them and then returns the communication alone.
 * Memory is that of its footprint model, `fits` that of its fit check against the profile's capacities. Techniques that the rule
 * does not know (ZeRO, recomputation) are refused.
 */
MAQ_API enum maq_status maq_mixed_judge_sailor(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                               const struct maq_profile_dir *profile, struct maq_diag *diag);

/* ---- what a mixed plan costs on the node groups of a job, by the cost chain ---- */

struct maq_job_box; /* maquette/job.h */

/* A stage as one column of replicas runs it: those that pass a micro batch on to each other. */
struct maq_mixed_placed_stage {
    uint32_t pipeline, stage, column; /* the first of columns that are alike */
    uint32_t columns;                 /* so many */
    uint32_t group;                   /* node group of the cluster */
    const char *device;               /* borrowed from the job */
    uint32_t first_layer, layers;
    uint32_t microbatches;        /* of the step */
    uint32_t in_flight;           /* micro batches whose activations it holds at once, at its peak of memory */
    double forward_s, backward_s; /* a pass */
    double hop_s;                 /* from the stage before */
    double idle;     /* share of the pipeline's time in which its devices run no pass, virtual stages together */
    double reduce_s; /* gradients, after all of its replicas' last backward passes */
    double memory_bytes, capacity_bytes; /* of a device at its peak, all that it runs together */
};

struct maq_mixed_placed {
    double step_s;     /* pipeline, norm of the gradients, update */
    double pipeline_s; /* first pass to the last gradient that is reduced */
    double update_s;   /* norm, optimizer, gathering of parameters */
    bool fits;         /* every device has the memory */
    uint32_t slowest;  /* stage whose devices run passes for the longest */
    uint32_t n_stages;
    const struct maq_mixed_placed_stage *stages;
    void *owner; /* internal */
};

/*
 * Any plan whose stages of a pipeline have as many replicas each, so that replica r of every stage makes a column,
 * and all stages deal a column as many micro batches. Columns may have shares of their own and lie on other node
 * groups; pipelines may be cut elsewhere; stages may share devices (virtual stages, in the order of Megatron-LM's
 * interleaved schedule). Schedules: 1f1b, gpipe, interleaved. A replica's `group` is a node group's name or number,
 * the first one with its device where it has none. *out is owned by the caller and borrows the job; MAQ_BAD_INPUT
 * with the reason for plans that this cannot say.
 */
MAQ_API enum maq_status maq_mixed_place(struct maq_mixed_placed **out, const struct maq_mixed_plan *plan,
                                        const struct maq_job_box *open, struct maq_diag *diag);
MAQ_API void maq_mixed_placed_free(struct maq_mixed_placed *placed);

#ifdef __cplusplus
}
#endif
#endif
