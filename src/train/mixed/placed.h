/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placed.h - the state of placing a mixed plan on the node groups of a job, shared by its files: placed_check.c
 * refuses plans that cannot be placed, placed.c takes devices and costs stages, placed_transfers.c prices transfers,
 * placed_step.c simulates the step.
 */
#ifndef MAQ_TRAIN_MIXED_PLACED_H
#define MAQ_TRAIN_MIXED_PLACED_H

#include "base/arena.h"
#include "maquette/cost.h"
#include "maquette/job.h"
#include "maquette/mixed_step.h"
#include "plan/schedule/schedule.h"
#include "train/mixed/device_pools.h"
#include "train/mixed/device_slots.h"
#include "train/mixed/range_costs.h"

/* A stage of a column, on its device slots. */
struct maq_placed_slot {
    const struct maq_mixed_stage *plan;
    const struct maq_mixed_replica *replica;
    /* first device when stages take devices from the front of the pipeline, and from its back */
    uint32_t pool, taken[2];
    uint32_t first_device, /* the one of these that is used */
        devices;           /* in the pool: where its column begins; of the replicas of the stage that lie there */
    uint32_t replicas, elsewhere; /* that hold its first layer: on its pool, on others */
    bool backwards;               /* which of `taken` is used */
    uint32_t together[2];         /* of those on its pool: in the scale-up domain of the first of them, taken so */
    struct maq_range_cost cost;
    double context_bytes, hop_bytes, grad_bytes, tied_bytes; /* as of its layer ranges */
    bool stalls, reduces_beside;                             /* as of a layer range */
    double hop_s, across_s;                                  /* from the stage before; reduction over node groups */
    double gathered_s; /* the device has its parameters, and those of its stages before */
    double end_s;      /* of the pass that completes its gradients */
};

struct maq_placed_column {
    uint32_t pipeline, column, alike;  /* equal columns, itself included */
    uint32_t microbatches, n, devices; /* stages; of them on devices of their own */
    struct maq_placed_slot *slots;
    double busy_end_s; /* of the last pass of all */
};

struct maq_placing {
    const struct maq_mixed_plan *plan;
    const struct maq_job *job;
    struct maq_pools pools;         /* the job's node groups */
    struct maq_device_slots *slots; /* [pools.n] */
    uint32_t n_columns, n_atoms;
    struct maq_placed_column *columns;
    struct maq_arena *arena;
    struct maq_diag *diag;
};

/* Fails with the reason: "this plan cannot be placed on the job's node groups: ..." */
enum maq_status maq__placed_cannot(struct maq_diag *diag, const char *hint, const char *why);

/* enum maq_auto_bool: overlap_ep of the plan, otherwise that of the job. */
int maq__placed_overlap_ep(const struct maq_placing *p);

/* MAQ_BAD_INPUT where the plan cannot be placed. */
enum maq_status maq__placed_check(const struct maq_placing *p);

/* Simulates all columns; fills in times and memory of the result. */
enum maq_status maq__placed_simulate(struct maq_mixed_placed *out, struct maq_mixed_placed_stage *stages,
                                     struct maq_placing *p);

/* Devices of a node that send at the same time as a slot. */
uint32_t maq__placed_sharers(const struct maq_placing *p, const struct maq_placed_column *c,
                             const struct maq_placed_slot *s);
/* Seconds of a transfer between two slots. */
double maq__placed_hop_s(const struct maq_placing *p, const struct maq_placed_column *c, uint32_t from, uint32_t to,
                         double bytes);

/* maq_mixed_place() on a job that is not from a document, such as an open job with other node groups. */
enum maq_status maq__mixed_place_on(struct maq_mixed_placed **out, const struct maq_mixed_plan *plan,
                                    const struct maq_job *job, struct maq_diag *diag);

#endif
