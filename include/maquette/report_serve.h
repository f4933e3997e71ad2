/* SPDX-License-Identifier: Apache-2.0 */
/* report_serve.h - what became of requests, as text and as a document (schema maquette.serve/1). *out is owned by the caller (free()). */
#ifndef MAQUETTE_REPORT_SERVE_H
#define MAQUETTE_REPORT_SERVE_H

#include "maquette/fleet_availability.h"
#include "maquette/report.h"
#include "maquette/serve.h"
#include "maquette/serve_planner.h"

#ifdef __cplusplus
extern "C" {
#endif

MAQ_API enum maq_status maq_report_serve_text(char **out, const struct maq_serve_result *result,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_json(char **out, const struct maq_serve_result *result,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
/* A row for each request: arrival, first and last token, lengths. */
MAQ_API enum maq_status maq_report_serve_csv(char **out, const struct maq_serve_result *result,
                                             const struct maq_requests *requests, struct maq_diag *diag);
/*
 * What happens over time in one engine while it serves, gathered into a bounded number of windows: options.watch = maq_serve_samples_watch,
 * options.watch_user = the samples, for a run.
 */
struct maq_serve_samples;
MAQ_API enum maq_status maq_serve_samples_new(struct maq_serve_samples **out, struct maq_diag *diag);
MAQ_API void maq_serve_samples_watch(const struct maq_serve_iteration *iteration, void *samples);
MAQ_API void maq_serve_samples_free(struct maq_serve_samples *samples);

/* The same deployment under another load. */
struct maq_report_serve_load {
    double load; /* requests a second, requests under way, or times as fast as a file has them */
    bool asked;  /* the run that the report is of */
    bool overloaded;
    double requests_per_s, output_tokens_per_s_per_device;
    struct maq_serve_quantiles ttft_s, tpot_s, e2el_s;
};
enum maq_report_load_kind { MAQ_LOAD_RATE, MAQ_LOAD_CONCURRENCY, MAQ_LOAD_SPEED };

/* As one HTML file that needs no network and carries the document: docs/html.md. */
struct maq_report_serve_page {
    const struct maq_serve_result *result;
    const struct maq_requests *requests;     /* that it served */
    const struct maq_serve_samples *samples; /* NULL: what happens over time is left out */
    const struct maq_report_serve_load *loads;
    uint32_t n_loads; /* 0: throughput against latency is left out */
    enum maq_report_load_kind kind;
};
MAQ_API enum maq_status maq_report_serve_html(char **out, const struct maq_report_serve_page *page,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* What becomes of requests with one combination of values of the options that vary. */
struct maq_serve_variant {
    const char *const *values; /* [n_axes], as they were given */
    const char *why;           /* it cannot be served so; NULL: it was, if it fits */
    bool fits, overloaded, slo_met;
    bool pareto; /* of those that hold the bounds none has more tokens a second, both of a GPU and of a user */
    uint32_t gpus;
    double requests_per_s, goodput_per_s; /* goodput: below 0 without bounds */
    double tokens_per_s_per_gpu, tokens_per_s_per_user;
    double ttft_mean_s, ttft_p95_s, tpot_mean_s, tpot_p95_s, e2el_mean_s, e2el_p95_s;
};
struct maq_serve_variants {
    const char *const *axes; /* [n_axes] options, without dashes */
    uint32_t n_axes;
    struct maq_serve_variant *at; /* [n], the last axis changes fastest */
    uint32_t n;
    bool bounded; /* there are bounds, and a goodput */
};
MAQ_API enum maq_status maq_report_serve_vary_text(char **out, const struct maq_serve_variants *variants,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_serve_vary_html(char **out, const struct maq_serve_variants *variants,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.serve.vary/1". */
MAQ_API enum maq_status maq_report_serve_vary_json(char **out, const struct maq_serve_variants *variants,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);

/* One batch alone (maq_serve_static). */
MAQ_API enum maq_status maq_report_serve_batch_text(char **out, const struct maq_serve_result *plan,
                                                    const struct maq_serve_batch *batch, int64_t size, int64_t prompt,
                                                    int64_t output, const struct maq_report_opts *opts,
                                                    struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_batch_json(char **out, const struct maq_serve_result *plan,
                                                    const struct maq_serve_batch *batch, int64_t size, int64_t prompt,
                                                    int64_t output, const struct maq_report_opts *opts,
                                                    struct maq_diag *diag);
/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_serve_batch_html(char **out, const struct maq_serve_result *plan,
                                                    const struct maq_serve_batch *batch, int64_t size, int64_t prompt,
                                                    int64_t output, const struct maq_report_opts *opts,
                                                    struct maq_diag *diag);

/* What failures make of the best deployment: what was asked, and of the fleet that was found, one kind of replica for each part. */
struct maq_report_plan_failures {
    const char *what;    /* the law, as it was asked for */
    double availability; /* share of the time in which as many replicas are to be there as hold the bounds */
    uint32_t spare_nodes;
    const struct maq_availability *parts,
        *without; /* [n_fleet] in closed form; without: of a fleet that has none to spare. NULL: no fleet */
    const struct maq_availability_draws *there; /* years of draws; NULL likewise */
    double span_s;                              /* of each of them */
    double stream_s;                            /* in which the requests come */
    const struct maq_attainment *attainment;    /* the requests through draws of failures; NULL: they have no bounds */
    const struct maq_what_if *no_spares;        /* the same with none to spare; NULL where there are none */
};

/* The best deployment (schema maquette.serve.plan/1). */
struct maq_report_serve_plan {
    const struct maq_loaded_job *open;
    const struct maq_serve_search_result *search;
    const struct maq_serve_search_opts *opts;
    const struct maq_serve_result *best; /* of maq_fleet_run() with the replicas that are needed; NULL: there is none */
    const struct maq_report_plan_failures *failures; /* NULL: nothing fails */
};
MAQ_API enum maq_status maq_report_serve_plan_text(char **out, const struct maq_report_serve_plan *plan,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_plan_json(char **out, const struct maq_report_serve_plan *plan,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_serve_plan_html(char **out, const struct maq_report_serve_plan *plan,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
/* Of a plan that has a fleet: the engine's command line of each part; a job for `maquette serve`, of a fleet of one part; a manifest of
 * a DynamoGraphDeployment; values of llm-d's Helm chart, of a fleet of vLLM that is one kind of replica, or two pools. */
MAQ_API enum maq_status maq_report_serve_plan_command(char **out, const struct maq_report_serve_plan *plan,
                                                      struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_plan_job(char **out, const struct maq_report_serve_plan *plan,
                                                  struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_plan_manifest(char **out, const struct maq_report_serve_plan *plan,
                                                       struct maq_diag *diag);
MAQ_API enum maq_status maq_report_serve_plan_llm_d(char **out, const struct maq_report_serve_plan *plan,
                                                    struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
