/* SPDX-License-Identifier: Apache-2.0 */
/* searching.h - a search of deployments while it goes on: what is asked, the best so far, trials of candidates. */
#ifndef MAQ_PLANNER_SERVE_SEARCHING_H
#define MAQ_PLANNER_SERVE_SEARCHING_H

#include "planner/serve/bounds.h"
#include "serve/fleet/rate_trial.h"

struct maq_serve_owner { /* of a result */
    struct maq_arena arena;
    struct maq_request_set *drawn; /* NULL: the requests are the caller's */
};

struct maq_serve_searching {
    struct maq_serve_search_result *out;
    const struct maq_serve_search_opts *opts;
    struct maq_serve_asked asked;
    const struct maq_requests *stream; /* that all candidates serve, faster and slower */
    /* The first of its requests, and wider bounds for those: a fleet that misses them there is not asked to serve all. */
    uint32_t first;
    struct maq_slo lenient;
    double rate; /* that has to be carried; 0 = as much as can be */
    /* the best so far of the group that is searched */
    uint32_t best; /* UINT32_MAX: none */
    double best_carried, best_gpus, best_slack, best_first_slack;
};

/* One candidate against the best so far; what is found is in it. candidate_trial.c */
enum maq_status maq_serve_look_into(const struct maq_serve_searching *s, struct maq_serve_candidate *c);
/* Whether a fleet of [n] members carries a rate; *t says what was found, of all requests or of the first. candidate_trial.c */
enum maq_status maq_serve_holds(struct maq_rate_trial *t, const struct maq_serve_searching *s,
                                const struct maq_fleet_member *members, uint32_t n, double rate, bool all);
/* Requests that a replica has at its rate in the mean: its part where a router counts them. */
static inline double maq_serve_weight(const struct maq_serve_candidate *c)
{
    return c->rate / c->replicas * c->e2el_s;
}
/* Value over limit of the bound that is nearest to being missed. candidate_trial.c */
double maq_serve_slack(const struct maq_slo_outcome *o);

/* Fills the result's nearest candidate. nearest_candidate.c */
void maq_serve_find_nearest(struct maq_serve_searching *s);

/* ---- request_stream.c ---- */

/* What is asked: lengths are known from a few requests, before how many there are to be. */
enum maq_status maq_serve_ask_stream(struct maq_serve_searching *s, struct maq_diag *diag);
/* The stream, once the candidates have their closed forms. */
enum maq_status maq_serve_stream(struct maq_serve_searching *s, struct maq_diag *diag);
/* Of a stream for a whole fleet, in *fewer, as many as one replica needs; it is the search's then. */
void maq_serve_shorten(struct maq_serve_searching *s, struct maq_requests *fewer);
/* Requests for all of the result's fleet: of replicas that share a stream, as many for each as one had alone. */
void maq_serve_count_stream(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts);

#endif
