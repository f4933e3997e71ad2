/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - what is known of candidates before anything is simulated: whether they fit, what a request that is alone takes, and how much
 * they carry in closed form (serve/engine/steady.h).
 */
#ifndef MAQ_PLANNER_SERVE_BOUNDS_H
#define MAQ_PLANNER_SERVE_BOUNDS_H

#include "planner/serve/space.h"
#include "serve/engine/steady.h"

/* What a search asks of a deployment, apart from its rate. */
struct maq_serve_asked {
    struct maq_steady_load load;
    double
        typical_prompt; /* the median, or the mean where that is less: half of all requests, or their mean, wait for one like it */
    double ttft_s, tpot_s; /* the tightest bounds, whatever statistic they are of; infinity: none */
    double e2el_s;
};
/* False: out of memory. */
bool maq_serve_ask(struct maq_serve_asked *out, const struct maq_requests *requests, const struct maq_slo *slo);

/* Fills the closed forms and the verdicts UNFIT and SLOW of [n] candidates. */
enum maq_status maq_serve_bound(struct maq_serve_candidate *candidates, uint32_t n, const struct maq_serve_asked *asked,
                                uint32_t threads, struct maq_diag *diag);

/* A candidate's deployment: `d` is another with the same types and degrees, whose passes it shares. */
void maq_serve_same_passes(struct maq_deployment *out, const struct maq_deployment *d,
                           const struct maq_serve_candidate *c);
/* How far candidates share passes with the first: all but the engine's limits is the same. */
uint32_t maq_serve_run_of_passes(const struct maq_serve_candidate *candidates, uint32_t n);
/* The deployment whose passes hold iterations of all of them. To be ended (maq_deployment_fini()) even on failure. */
enum maq_status maq_serve_passes(struct maq_deployment *out, const struct maq_serve_candidate *candidates, uint32_t n,
                                 struct maq_diag *diag);

#endif
