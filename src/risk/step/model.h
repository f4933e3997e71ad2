/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - the model of a training step for its variation: the pipeline of one replica, and the end of the step that joins
 * replicas.
 *
 * A *lockstep group* is the devices of one stage that wait for each other inside every layer: those of tensor, context and expert
 * parallelism, and of ZeRO-3. A *replica* is a lockstep group on each stage; replicas meet once a step, in the reduction of
 * gradients and the norm. With e(s) the end of stage s's passes in a replica,
 *
 *   step = max over replicas and stages of (e(s) + rest(s)) + norm + update,     rest: the exposed reduction
 *
 * In the base, in which nothing varies, matrix kernels take as long as on the slowest GPU that a job of this size is expected to
 * have (maq_items.pace). A group whose slowest GPU takes f times as long as a mean one is longer by the excess:
 *
 *   factor of a stage = 1 + paced x max(0, f / pace - 1),     paced: share of matrix kernels in its passes
 */
#ifndef MAQ_RISK_STEP_MODEL_H
#define MAQ_RISK_STEP_MODEL_H

#include "base/arena.h"
#include "maquette/job.h"
#include "risk/step/variation.h"

#define MAQ_RISK_NO_TASK UINT32_MAX

/* A task of the pipeline, for sampling. Rows of `hop` are positions; row 0 is none. */
struct maq_step_task {
    uint32_t previous, pred[2]; /* MAQ_RISK_NO_TASK */
    uint16_t hop[2], stall;
    uint16_t stage;
    double dur_ns, ready_ns; /* ready: it does not end before */
    uint32_t microbatch, pass;
};

struct maq_step_model {
    uint32_t n_tasks, stages, n_positions;
    struct maq_step_task *tasks; /* in topological order */
    uint32_t *stage_last;        /* [stages] */
    uint32_t n_passes;           /* distinct ones: kind and virtual stage */
    double *pass_ns;             /* [n_passes] */
    double *hop_ns;              /* [n_positions] */
    double *stall_ns;            /* [n_positions] zero where transfers do not block */
    double *rest_ns;             /* [stages] */
    double *paced;               /* [stages] share of the passes that the slowest GPU lengthens */
    double pace;                 /* factor by which it is longer in the base */
    double tied_ns;              /* reduction of the tied table, between the first and the last stage */
    double norm_ns, end_ns;      /* after all replicas: communication; update and gather */
    double base_ns;              /* the step when nothing varies: that of maq_train_predict() */
    double replicas, lockstep;   /* how many; devices of a lockstep group */
    uint32_t nodes;              /* of a lockstep group */
    uint32_t microbatches, devices_per_node;
};

/* Factor on a stage's passes where the slowest GPU of the group takes f times as long as a mean one. */
static inline double maq_step_lasting(const struct maq_step_model *m, uint32_t stage, double f)
{
    return f > m->pace ? 1 + m->paced[stage] * (f / m->pace - 1) : 1;
}

/* Everything in `arena`. */
enum maq_status maq_step_model_build(struct maq_step_model *out, const struct maq_job *job, struct maq_arena *arena,
                                     struct maq_diag *diag);

/* The same with some items longer. */
struct maq_slowdown;
enum maq_status maq_step_model_build_slowed(struct maq_step_model *out, const struct maq_job *job,
                                            const struct maq_slowdown *slowdown, struct maq_arena *arena,
                                            struct maq_diag *diag);

/* Slow parts of one replica, beyond variation: given by --slow. */
struct maq_step_slow {
    const double *stage;  /* [stages] factors; NULL: none */
    double communication; /* factor on all of it */
    double somewhere;     /* factor on one stage, another in each draw; 0: none */
};

/*
 * Which part of a step varies, for a question about a part of it, and what varies by a law of its own. A pass then
 * takes
 *
 *   base x slow x (1 - with_pass - own + lasting x work x (with_pass x noise of the pass + draw of the own laws))
 *
 * and a transfer base x slow x (1 - transfer + transfer x draw x congestion); rest and norm likewise. focus.c
 */
struct maq_step_focus {
    const double *with_pass, *own; /* [n_passes] shares of the pass */
    const double *const *
        own_table; /* [n_passes] equally likely values of the own laws' part of the pass, with mean near `own`; NULL: none */
    double transfer, norm;
    const double *rest;                   /* [stages] */
    const double *hop_table, *rest_table; /* equally likely factors of their own; NULL: those of communication_cv */
};
#define MAQ_STEP_TABLE 16384u

struct maq_step_run {
    uint64_t seed;
    uint32_t draws, threads;
    double congestion;                  /* factor of the regime */
    bool independent;                   /* of each other, and all weights 1; otherwise see sample.c */
    const struct maq_step_focus *focus; /* NULL: all of it varies, nothing by a law of its own */
};

/*
 * Ends of the slowest stage with its rest, of `draws` replicas, ns; weight: how many draws of an even sample each stands for. Draws
 * whose numbers leave different remainders by MAQ_STEP_SCRAMBLINGS are independent. sample.c
 */
#define MAQ_STEP_SCRAMBLINGS 10u
enum maq_status maq_step_sample(double *out_ns, double *weight, const struct maq_step_model *m,
                                const struct maq_variation *v, const struct maq_step_slow *slow,
                                const struct maq_step_run *run, struct maq_arena *arena);

#endif
