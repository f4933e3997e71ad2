/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_plan.h - a plan for GPUs of several kinds: pipelines -> stages -> replicas, each placed on its own devices.
 *
 * Where struct maq_plan cuts a model over a cluster by a handful of degrees, a mixed plan names everything one by one, so that the
 * plan of any planner can be written down: stages with any range of layers, replicas of a stage on different kinds of GPU, stages
 * with different degrees of data parallelism, uneven shares of the micro batches, memory techniques stage by stage, several
 * pipelines of different make-up, and an island that serves several layer ranges of the model.
 *
 * A pipeline is a chain of stages that cover the layers from the first (the embedding) to the last (the head). A stage is copied
 * over its replicas (data parallelism); a replica is a tensor-parallel group, or context- and tensor-parallel ranks together. Micro
 * batches are dealt over pipelines, and inside a stage over its replicas; the gradients of a layer are summed over all replicas
 * that hold it.
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
    const char *device, *zone; /* zone NULL: not given */
    uint32_t devices;
};

struct maq_mixed_replica {
    const struct maq_mixed_member *members; /* one, unless the tensor-parallel group spans nodes or kinds of GPU */
    uint32_t n_members;
    const char *group;   /* node group or island; NULL: not given */
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
    const char *model;                  /* NULL: not given */
    const char *zone;                   /* of members that name none; NULL: not given */
    uint32_t micro_batch, global_batch; /* sequences */
    uint32_t layers;                    /* that the pipelines cover */
    int schedule;                       /* enum maq_schedule_kind */
    /* of an interleaved schedule: micro batches in a row of a virtual stage; 0 = as many as stages with devices of their own */
    uint32_t microbatch_group;
    int overlap_ep; /* enum maq_auto_bool: expert all-to-all overlapped with another micro batch; AUTO: as in the job */
    uint32_t n_pipelines;
    const struct maq_mixed_pipeline *pipelines;
    struct maq_mixed_measured measured;
};

struct maq_loaded_mixed_plan; /* owns a plan and all it points to */

/*
 * Reads a plan in maquette's form or, when the document has a `pipeline_list`, in the form of Sailor's executed plans
 * (plan_config_*.json). *out is owned by the caller. All faults of the document are reported.
 */
MAQ_API enum maq_status maq_mixed_plan_load(struct maq_loaded_mixed_plan **out, const char *path,
                                            struct maq_diag *diag);
/* The same from text; name is for messages. */
MAQ_API enum maq_status maq_mixed_plan_parse(struct maq_loaded_mixed_plan **out, const char *name, struct maq_str text,
                                             struct maq_diag *diag);
MAQ_API const struct maq_mixed_plan *maq_mixed_plan_get(const struct maq_loaded_mixed_plan *loaded); /* borrowed */
MAQ_API void maq_mixed_plan_free(struct maq_loaded_mixed_plan *loaded);

/* The plan as a JSON document in maquette's form, which reads back as the same plan; *out is owned by the caller (free()). */
MAQ_API enum maq_status maq_mixed_plan_write(char **out, const struct maq_mixed_plan *plan, struct maq_diag *diag);

/* Micro batches of a step over all pipelines: global batch over micro batch, rounded up. */
MAQ_API uint32_t maq_mixed_microbatches(const struct maq_mixed_plan *plan);
/* Of one pipeline, and of one replica of one of its stages; equal parts are rounded up. */
MAQ_API uint32_t maq_mixed_pipeline_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline);
MAQ_API uint32_t maq_mixed_replica_microbatches(const struct maq_mixed_plan *plan, uint32_t pipeline, uint32_t stage,
                                                uint32_t replica);

#ifdef __cplusplus
}
#endif
#endif
