/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_measured.h - the best pipelines on GPUs of several kinds, from measured costs of layers.
 *
 * Given a profile (a folder of measured layer times, sizes and links: docs/planning.md), a model, pools of devices and a global
 * batch, finds how to cut the layers into stages, on what kind of device and with what TP degree each stage runs, how many replicas
 * it has and how the micro batches are dealt. Techniques: DP, TP, PP with 1F1B, fp32, no recomputation, no ZeRO; costs by the rule
 * that Sailor publishes with its profiles.
 *
 * `bound_s` is a proven lower bound of the step of every plan of the class, so `gap` says how far a plan may be from the best.
 * Classes are nested, each contains the ones before it, except that DEGREES does not contain MIXED:
 *
 *   UNIFORM    one micro batch and number of replicas; every stage on one kind of device with one TP degree
 *   MIXED      the same, but the replicas of a stage may be of two kinds (device or TP)
 *   DEGREES    as UNIFORM, but a stage may have 2 or 4 times the replicas of the others, which split its micro batches
 *   PIPELINES  several pipelines of different make-up (each as in DEGREES), with uneven shares of the micro batches
 *
 * UNIFORM, MIXED and DEGREES are searched exactly: with `exact` set, bound_s is the step of plans[0]. PIPELINES is not.
 */
#ifndef MAQUETTE_PLANNER_MEASURED_H
#define MAQUETTE_PLANNER_MEASURED_H

#include "maquette/mixed_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_COMPOSE_CLASS_LIST(X)                                                                                      \
    X(UNIFORM, "uniform")                                                                                              \
    X(MIXED, "mixed")                                                                                                  \
    X(DEGREES, "degrees")                                                                                              \
    X(PIPELINES, "pipelines")

enum maq_compose_class {
#define MAQ_COMPOSE_ENUM(name, text) MAQ_COMPOSE_##name,
    MAQ_COMPOSE_CLASS_LIST(MAQ_COMPOSE_ENUM)
#undef MAQ_COMPOSE_ENUM
        MAQ_COMPOSE_CLASS_COUNT
};
MAQ_API const char *maq_compose_class_name(enum maq_compose_class of); /* "uniform" */

/* Devices of one type in one zone: an island. */
struct maq_compose_pool {
    const char *device, *zone; /* by the profile's names; zone NULL: the profile's own */
    uint32_t count;
    uint32_t max_tp;       /* 0: devices of a node */
    double capacity_bytes; /* of a device; 0: the profile's */
};

struct maq_compose_problem {
    uint32_t size;      /* set by MAQ_COMPOSE_PROBLEM_INIT */
    const char *folder; /* of the profile */
    const char *model;
    const struct maq_compose_pool *pools;
    uint32_t n_pools;      /* at most 8 */
    uint32_t global_batch; /* sequences; 0: the profile's training configuration */
    enum maq_compose_class of;
    uint32_t top;     /* plans wanted; 0: 1. Each of another micro batch or number of replicas. */
    uint32_t threads; /* 0: one per core; plans and counts do not depend on it */
};
#define MAQ_COMPOSE_PROBLEM_INIT                                                                                       \
    {                                                                                                                  \
        .size = sizeof(struct maq_compose_problem)                                                                     \
    }

struct maq_compose_part { /* equal replicas of a stage */
    uint32_t pool, tp, replicas;
    uint32_t micro_batch; /* of a replica: the plan's, or its share where a stage splits it */
};

struct maq_compose_stage {
    uint32_t first_layer, layers;
    uint32_t n_parts;
    struct maq_compose_part parts[2];
    double compute_s, hop_s; /* of a micro batch, the slowest replica */
    double sync_s;           /* of its gradients */
    double memory_share;     /* of the fullest device's capacity */
    uint32_t in_flight;      /* micro batches that a replica holds at most */
};

struct maq_compose_pipeline { /* equal pipelines that run side by side */
    uint32_t count;
    uint32_t microbatches; /* of each in a step */
    double bottleneck_s, fill_s;
    uint32_t n_stages;
    const struct maq_compose_stage *stages; /* parts count the replicas of all these pipelines together */
};

struct maq_compose_plan {
    uint32_t micro_batch;
    double step_s, run_s, sync_s, update_s; /* step = run + sync + update */
    uint32_t n_pipelines;
    const struct maq_compose_pipeline *pipelines;
};

struct maq_compose_counts {
    uint64_t considered;           /* back parts of pipelines that were put together */
    uint64_t bounded, dominated;   /* of them: refuted by a bound, by a better one */
    uint64_t evaluated;            /* whole plans that were costed */
    uint64_t cases, cases_bounded; /* pairs of micro batch and number of replicas; refuted as a whole */
    uint64_t programs, knapsacks;  /* relaxed programs and knapsacks solved */
};

struct maq_compose_result {
    enum maq_compose_class of;
    uint32_t n_plans; /* the best first; 0: none fits */
    const struct maq_compose_plan *plans;
    double bound_s; /* no plan of the class is faster; HUGE_VAL when none fits */
    double gap;     /* plans[0].step_s / bound_s - 1 */
    bool exact;     /* plans[0] is the best of the class */
    struct maq_compose_counts counts;
    void *owner; /* internal */
};

/* *out is owned by the caller (maq_compose_result_free). Nothing that fits is a result, not an error. */
MAQ_API enum maq_status maq_compose(struct maq_compose_result **out, const struct maq_compose_problem *problem,
                                    struct maq_diag *diag);
MAQ_API void maq_compose_result_free(struct maq_compose_result *result);

/* A plan of the result as a mixed plan (maq_mixed_plan_write gives its JSON); *out is owned by the caller (maq_mixed_plan_free).
 * MAQ_NO when stages split micro batches, which a mixed plan cannot say. */
MAQ_API enum maq_status maq_compose_mixed_plan(struct maq_loaded_mixed_plan **out,
                                               const struct maq_compose_result *result, uint32_t plan,
                                               struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
