/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_trial.h - whether a fleet holds its bounds under one stream of requests at one rate after another.
 *
 * The times between arrivals are scaled, all else stays as it is. A rate that overloads the fleet is not held, whatever the latencies are in
 * so short a run. More traffic does not always mean longer latencies (batches form
 * otherwise), so that what is found is a rate at which the bounds hold, next to one at which they do not.
 */
#ifndef MAQ_SERVE_FLEET_RATE_TRIAL_H
#define MAQ_SERVE_FLEET_RATE_TRIAL_H

#include "maquette/serve_fleet.h"

struct maq_rate_trial {
    const struct maq_fleet *fleet;
    const struct maq_slo *slo;
    const struct maq_requests *draw; /* arrival times, two requests at least */
    double least;                    /* narrowing ends where only rates below it are left */
    double tolerance;
    /* what is known */
    double low, high;                   /* at low the bounds hold, or it is 0; at high they do not, or it is infinity */
    struct maq_slo_outcome met, missed; /* at low, at high */
    double served_per_s;                /* with all at once */
    double e2el_s, ttft_s, tpot_s;      /* in the mean, at low */
    enum maq_status status;             /* of its last run */
    uint32_t runs;
    bool fits, overloaded;      /* overloaded: at high */
    struct maq_request *scaled; /* [draw->n] */
    double own_rate;            /* of the draw as it is */
};

/* What is known is nothing; the members before that are set. To be ended even on failure. */
enum maq_status maq_rate_trial_begin(struct maq_rate_trial *t, struct maq_diag *diag);
void maq_rate_trial_end(struct maq_rate_trial *t);

/* Whether the bounds hold at `rate`, infinity: all at once; what is known then says so. False after a failure, which t->status is. */
bool maq_rate_try(struct maq_rate_trial *t, double rate, struct maq_diag *diag);

/* Narrows low and high to the tolerance, from `guess` on; `near`: it is the answer for a stream like this one. */
bool maq_rate_narrow(struct maq_rate_trial *t, double guess, bool near);

#endif
