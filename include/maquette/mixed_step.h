/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_step.h - a training step of a mixed plan (maquette/mixed_plan.h): time and memory of each stage, and the step time, from
 * measured layers of a foreign profile or from the cost chain on the node groups of a job.
 */
#ifndef MAQUETTE_MIXED_STEP_H
#define MAQUETTE_MIXED_STEP_H

#include "maquette/mixed_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* maquette's own prediction: the schedule simulated task by task, reduction, optimizer, memory. */
MAQ_API enum maq_status maq_mixed_predict(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                          const struct maq_profile_dir *profile, struct maq_diag *diag);

/*
 * The published rule of Sailor's simulator, for comparison with what was published, but with compute counted in every stage: where
 * a tensor-parallel group has several members, the simulator finds the slowest of them and then returns the communication alone.
 * Memory is that of its footprint model, `fits` that of its fit check against the profile's capacities. Techniques that the rule
 * does not know (ZeRO, recomputation) are refused.
 */
MAQ_API enum maq_status maq_mixed_judge_sailor(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                               const struct maq_profile_dir *profile, struct maq_diag *diag);

/* ---- what a mixed plan costs on the node groups of a job, by the cost chain ---- */

struct maq_loaded_job; /* maquette/job.h */

/* A stage of a column. A column is one replica of every stage: those that pass a micro batch on to each other. */
struct maq_mixed_placed_stage {
    uint32_t pipeline, stage, column; /* the first of equal columns */
    uint32_t columns;                 /* how many columns are equal to it, itself included */
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
 * Any plan whose stages of a pipeline have equally many replicas, so that replica r of every stage makes a column, and
 * all stages of a column run the same number of micro batches. Columns may differ in their number of micro batches and
 * in their node groups; pipelines may be cut at different layers; stages may share devices (virtual stages, in the
 * order of Megatron-LM's interleaved schedule). Schedules: 1f1b, gpipe, interleaved. A replica's `group` is a node
 * group's name or number, the first one with its device where it has none. *out is owned by the caller and borrows the
 * job; MAQ_BAD_INPUT with the reason for plans that cannot be placed so.
 */
MAQ_API enum maq_status maq_mixed_place(struct maq_mixed_placed **out, const struct maq_mixed_plan *plan,
                                        const struct maq_loaded_job *open, struct maq_diag *diag);
MAQ_API void maq_mixed_placed_free(struct maq_mixed_placed *placed);

#ifdef __cplusplus
}
#endif
#endif
