/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - what is to be measured, in which order, and what became of it.
 */
#ifndef MAQ_MEASURE_PLAN_H
#define MAQ_MEASURE_PLAN_H

#include "base/arena.h"
#include "cost/measured/store.h"
#include "maquette/measure.h"
#include "measure/backend.h"

enum maq_profile_state {
    MAQ_PROFILE_PLANNED,
    MAQ_PROFILE_HELD,     /* the file has it */
    MAQ_PROFILE_SKIPPED,  /* it cannot be measured here: `why` */
    MAQ_PROFILE_MEASURED, /* `times` */
    MAQ_PROFILE_REFUSED,  /* the backend would not: `why` */
    MAQ_PROFILE_LEFT,     /* the time was up, or the user had enough */
    MAQ_PROFILE_STATE_COUNT
};
const char *maq_profile_state_name(enum maq_profile_state state);

struct maq_profile_item {
    struct maq_profile_case c; /* op or coll is canonical */
    double calls;              /* per step; 0 in a grid */
    double predicted_s;        /* one call, as the chain without measured costs has it */
    double share;              /* of the predicted time of all items, calls counted; in a grid each is called once */
    double bytes;              /* of memory that measuring takes */
    double estimate_s;         /* that measuring takes */
    uint8_t state;             /* enum maq_profile_state */
    const char *why;           /* in the arena or static */
    struct maq_kernel_times times;
};

struct maq_profile {
    struct maq_arena arena;
    struct maq_cluster cluster; /* what costs are predicted on; group `group` has the GPU that is measured */
    uint16_t group;
    const char *gpu;  /* as the driver calls it; NULL in a dry run */
    const char *path; /* of the file; NULL: none */
    bool has_file;    /* there is one to look into */
    struct maq_profile_opts opts;
    uint32_t n, size;
    struct maq_profile_item *items; /* costliest first */
    uint32_t other_devices;         /* operators of the job that run on devices of other node groups */
    uint32_t counts[MAQ_PROFILE_STATE_COUNT];
    double estimate_s; /* of the items that are planned */
    bool failed;       /* out of memory while adding; check once */
};

/* Adds one operator or collective unless it is there; calls add up. */
void maq_profile_add_op(struct maq_profile *p, const struct maq_op *op, double calls);
void maq_profile_add_coll(struct maq_profile *p, const struct maq_coll *coll, double calls);
/* All operators and collectives of a step of the job; those of other node groups are counted, not added. job.c */
enum maq_status maq_profile_add_job(struct maq_profile *p, const struct maq_job *job, struct maq_diag *diag);
/* grid.c */
void maq_profile_add_grid(struct maq_profile *p, enum maq_profile_grid grid);
/* Prices, sorts, checks against the file and the device's memory, estimates. gpus: in this machine. */
enum maq_status maq_profile_order(struct maq_profile *p, uint32_t gpus, struct maq_diag *diag);

/* Tensors and, for attention, sequences of an operator; why it cannot be run here at all, or NULL. buffers.c */
const char *maq_profile_fill_case(struct maq_profile_case *c);

#define MAQ_PROFILE_REPETITIONS 1010u /* the most of a burst */
/* Repetitions until the mean is known well enough, or until enough is enough; those of a burst are in `kept`, where times->repetition
 * points then. false: the device failed. repetitions.c */
bool maq_profile_measure(struct maq_kernel_times *times, double kept[MAQ_PROFILE_REPETITIONS],
                         struct maq_profile_sense *sense, const struct maq_profile_backend *backend,
                         const struct maq_profile_opts *opts, char why[MAQ_PROFILE_WHY]);
/* Seconds that measuring takes, beforehand. */
double maq_profile_measure_estimate_s(double predicted_s, const struct maq_profile_opts *opts,
                                      const struct maq_device *device);

/* The module that drives this machine's GPU: opens it, or says why not. *handle is to be closed with it. backend.c */
bool maq_profile_find_backend(struct maq_profile_backend *out, void **handle, char why[MAQ_PROFILE_WHY]);
void maq_profile_close_backend(struct maq_profile_backend *backend, void *handle);

/* maq_profile_run() with a backend that is open; NULL for a dry run. It stays the caller's. run.c */
enum maq_status maq_profile_run_with(struct maq_profile **out, const struct maq_job *job,
                                     const struct maq_profile_opts *opts, const struct maq_profile_backend *backend,
                                     struct maq_diag *diag);

/* One node of a device of the catalogue. device.c */
enum maq_status maq_profile_cluster_of(struct maq_cluster *out, const char *device, struct maq_arena *arena,
                                       struct maq_diag *diag);
/* Catalogue name of the GPU that the driver calls so; NULL when the catalogue does not say. */
const char *maq_profile_device_named(const char *gpu);

#endif
