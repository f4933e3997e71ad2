/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slo.h - what is promised of latencies, and whether a deployment keeps it.
 *
 *   ttft_p95<500ms, tpot_mean<=40ms      a metric, a statistic over all requests, the most that it may be
 *
 * A bound is met or not by the figure that the report shows. Goodput is the requests a second whose own latencies are within the bounds
 * (DistServe, arXiv 2401.09670; the `--goodput` of vLLM's benchmark client, vllm/benchmarks/serve.py): a request counts when its own TTFT,
 * TPOT and E2EL are each within the bound of that metric, whatever statistic that bound is of; where a metric has several, within the
 * widest. A request of one token has no TPOT and passes any bound on it, as there. ITL is a gap between tokens and no figure of a
 * request: bounds on it do not enter goodput.
 */
#ifndef MAQUETTE_SLO_H
#define MAQUETTE_SLO_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_SLO_METRIC_LIST(X) X(TTFT, "ttft") X(TPOT, "tpot") X(E2EL, "e2el") X(ITL, "itl")
enum maq_slo_metric {
#define MAQ_SLO_METRIC_ENUM(id, name) MAQ_SLO_##id,
    MAQ_SLO_METRIC_LIST(MAQ_SLO_METRIC_ENUM)
#undef MAQ_SLO_METRIC_ENUM
        MAQ_SLO_METRIC_COUNT
};
#define MAQ_SLO_REQUEST_METRICS MAQ_SLO_ITL /* those before it are figures of a request */

#define MAQ_SLO_STATISTIC_LIST(X) X(MEAN, "mean") X(P50, "p50") X(P90, "p90") X(P95, "p95") X(P99, "p99")
enum maq_slo_statistic {
#define MAQ_SLO_STATISTIC_ENUM(id, name) MAQ_SLO_##id,
    MAQ_SLO_STATISTIC_LIST(MAQ_SLO_STATISTIC_ENUM)
#undef MAQ_SLO_STATISTIC_ENUM
        MAQ_SLO_STATISTIC_COUNT
};
MAQ_API const char *maq_slo_metric_name(enum maq_slo_metric metric);
MAQ_API const char *maq_slo_statistic_name(enum maq_slo_statistic statistic);

struct maq_slo_limit {
    double most_s;
    bool inclusive; /* "<=": the limit itself is still within */
};

struct maq_slo_bound {
    enum maq_slo_metric metric;
    enum maq_slo_statistic statistic;
    struct maq_slo_limit limit;
};

#define MAQ_SLO_MOST ((int)MAQ_SLO_METRIC_COUNT * (int)MAQ_SLO_STATISTIC_COUNT) /* each figure has one bound at most */
struct maq_slo {
    uint32_t n;
    struct maq_slo_bound at[MAQ_SLO_MOST];
};

/* Reads a list of bounds, cut at commas. All that is wrong with it is said, at its place in `text`. */
MAQ_API enum maq_status maq_slo_read(struct maq_slo *out, const char *text, struct maq_diag *diag);

/* How a run kept them. */
struct maq_slo_outcome {
    struct maq_slo slo;           /* n = 0: nothing was promised */
    double value_s[MAQ_SLO_MOST]; /* the figure of each bound */
    bool met[MAQ_SLO_MOST], all_met;
    bool of_requests; /* there is a bound on a figure of a request, and so there is a goodput */
    bool limited[MAQ_SLO_REQUEST_METRICS];
    struct maq_slo_limit request[MAQ_SLO_REQUEST_METRICS]; /* of one request, where `limited` */
    uint32_t good;                                         /* requests within them */
    double goodput_per_s;
};

struct maq_serve_result;
struct maq_requests;
/* Of a run that has ended, with the requests that it served. */
MAQ_API void maq_slo_judge(struct maq_slo_outcome *out, const struct maq_slo *slo,
                           const struct maq_serve_result *result, const struct maq_requests *requests);

#ifdef __cplusplus
}
#endif
#endif
