/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - results as text for people and as JSON for programs, both from the one result struct.
 *
 * Every function here writes a NUL-terminated string that the caller owns (free()). Nothing is printed. The text has
 * a line break at the end; control characters that a user's name may hold are not passed on. JSON documents carry
 * `schema` and are described in docs/json.md; the same input gives the same bytes.
 */
#ifndef MAQUETTE_REPORT_H
#define MAQUETTE_REPORT_H

#include "maquette/framework_words.h"
#include "maquette/islands.h"
#include "maquette/launch.h"
#include "maquette/planner.h"
#include "maquette/planner_external.h"
#include "maquette/planner_measured.h"
#include "maquette/planner_mixed.h"
#include "maquette/replay.h"
#include "maquette/risk.h"
#include "maquette/risk_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A second opinion on the step time: the whole graph, run by an engine. */
struct maq_report_engine {
    const char *name; /* "static", "dynamic" */
    double step_s;
    uint32_t nodes, edges;
};

struct maq_report_opts {
    uint32_t size;       /* set by MAQ_REPORT_OPTS_INIT */
    uint32_t columns;    /* width of the text; 0 = 100 */
    bool color;          /* ANSI colours; text only */
    bool unicode;        /* block characters in bars, "±"; otherwise ASCII. Text only */
    const char *explain; /* text of maq_job_explain(), to list every setting with its origin; NULL = not */
    const struct maq_report_engine *engine; /* NULL = none was run */
    const char *advice; /* of maq_search_advice(), for a plan that does not fit; NULL = not asked for */
};
#define MAQ_REPORT_OPTS_INIT                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct maq_report_opts)                                                                         \
    }

/*
 * What every HTML report carries, for a page that shows several of them: the style sheet, the script with the plot library in it, and the
 * hash of the script for a Content-Security-Policy ("sha256-..."). Such a page takes a report's <header>, <main> and documents, gives the
 * documents to maq.show(report, more), and calls maq.forget() when it takes the report away. Static.
 */
struct maq_html_assets {
    const char *style, *script, *script_hash;
};
MAQ_API struct maq_html_assets maq_report_html_assets(void);

/* A training step. opts may be NULL. */
MAQ_API enum maq_status maq_report_train_text(char **out, const struct maq_train_result *result,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.train/1". */
MAQ_API enum maq_status maq_report_train_json(char **out, const struct maq_train_result *result,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/*
 * The same as one HTML file that needs no network and carries its document: docs/html.md. spans: of maq_train_spans(), for the pipeline's
 * chart; memory: of maq_train_memory(), for memory over time. Either may be NULL: the chart is left out.
 */
MAQ_API enum maq_status maq_report_train_html(char **out, const struct maq_train_result *result,
                                              const struct maq_train_spans *spans,
                                              const struct maq_train_memory *memory, const struct maq_report_opts *opts,
                                              struct maq_diag *diag);

/* The best plans of a job. */
struct maq_report_plan {
    const struct maq_loaded_job *open;
    const struct maq_search_result *search;
    struct maq_train_result *const *trains;  /* [search->n_plans] each plan predicted */
    const char *document;                    /* of the best: maq_job_write(); NULL = none */
    const struct maq_framework_words *words; /* and what is said of it to its framework; NULL = none */
    const struct maq_train_result *said;     /* what those words describe, under its profile; NULL = not known */
    const struct maq_search_alternatives *alternatives; /* NULL = not asked for */
    const struct maq_search_alternatives *settings;     /* that are no axis; NULL = not asked for */
    const struct maq_search_remedies *remedies;         /* where nothing fits; NULL = none */
    const struct maq_search_headroom *headroom;         /* of the best plan; NULL = not known */
};
MAQ_API enum maq_status maq_report_plan_text(char **out, const struct maq_report_plan *plan,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan/1". */
MAQ_API enum maq_status maq_report_plan_json(char **out, const struct maq_report_plan *plan,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_plan_html(char **out, const struct maq_report_plan *plan,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);

/* Plans on GPUs of several kinds, from a profile. */
MAQ_API enum maq_status maq_report_compose_text(char **out, const struct maq_compose_problem *problem,
                                                const struct maq_compose_result *result,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan.composed/1". */
MAQ_API enum maq_status maq_report_compose_json(char **out, const struct maq_compose_problem *problem,
                                                const struct maq_compose_result *result,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_compose_html(char **out, const struct maq_compose_problem *problem,
                                                const struct maq_compose_result *result,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);

/* The same job on other devices. */
MAQ_API enum maq_status maq_report_vary_text(char **out, const struct maq_search_variants *variants,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan.vary/1". */
MAQ_API enum maq_status maq_report_vary_json(char **out, const struct maq_search_variants *variants,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_vary_html(char **out, const struct maq_search_variants *variants,
                                             const struct maq_report_opts *opts, struct maq_diag *diag);

/* The best plan over several node groups. */
struct maq_report_mixed {
    const struct maq_loaded_job *open;
    const struct maq_mixed_search_result *search;
    const struct maq_mixed_search_remedies *remedies;      /* NULL: not looked for */
    const struct maq_mixed_search_result *const *planners; /* [n_planners] what other planners would choose */
    uint32_t n_planners;
    const struct maq_mixed_search_result *without; /* the same search with fitting as predicted; NULL = not made */
    const char *document; /* where the winner is uniform: as in struct maq_report_plan; NULL = it is not */
    const struct maq_framework_words *words;
};
MAQ_API enum maq_status maq_report_mixed_text(char **out, const struct maq_report_mixed *plan,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan.mixed/1". */
MAQ_API enum maq_status maq_report_mixed_json(char **out, const struct maq_report_mixed *plan,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_mixed_html(char **out, const struct maq_report_mixed *plan,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* A mixed plan on the node groups of a job. */
struct maq_report_placed {
    const struct maq_loaded_job *open;
    const struct maq_mixed_plan *plan;
    const struct maq_mixed_placed *placed;
    const char *file; /* of the plan */
};
MAQ_API enum maq_status maq_report_placed_text(char **out, const struct maq_report_placed *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan.predict/1". */
MAQ_API enum maq_status maq_report_placed_json(char **out, const struct maq_report_placed *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_placed_html(char **out, const struct maq_report_placed *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* The best plan over several node groups, composed of what a parallelizer answers. */
struct maq_report_slices {
    const struct maq_loaded_job *open;
    const struct maq_slices_result *search;
};
MAQ_API enum maq_status maq_report_slices_text(char **out, const struct maq_report_slices *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.plan.slices/1". */
MAQ_API enum maq_status maq_report_slices_json(char **out, const struct maq_report_slices *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_slices_html(char **out, const struct maq_report_slices *plan,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* The islands of measured nodes. */
MAQ_API enum maq_status maq_report_islands_text(char **out, const struct maq_islands *islands,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.islands/1". */
MAQ_API enum maq_status maq_report_islands_json(char **out, const struct maq_islands *islands,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);

/* Recorded step times: their law, and how well it predicts what was held out. */
MAQ_API enum maq_status maq_report_risk_fit_text(char **out, const struct maq_risk_fit *fit,
                                                 const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.risk.fit/1". */
MAQ_API enum maq_status maq_report_risk_fit_json(char **out, const struct maq_risk_fit *fit,
                                                 const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_risk_fit_html(char **out, const struct maq_risk_fit *fit,
                                                 const struct maq_report_opts *opts, struct maq_diag *diag);

/* A recorded job, replayed. */
MAQ_API enum maq_status maq_report_risk_replay_text(char **out, const struct maq_risk_replayed *replayed,
                                                    const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.risk.replay/1". */
MAQ_API enum maq_status maq_report_risk_replay_json(char **out, const struct maq_risk_replayed *replayed,
                                                    const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_risk_replay_html(char **out, const struct maq_risk_replayed *replayed,
                                                    const struct maq_report_opts *opts, struct maq_diag *diag);

/* The distribution of a job's step time. */
MAQ_API enum maq_status maq_report_risk_step_text(char **out, const struct maq_risk_step *step,
                                                  const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.risk.step/2". */
MAQ_API enum maq_status maq_report_risk_step_json(char **out, const struct maq_risk_step *step,
                                                  const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document; the step with its curve (maq_risk_step_opts). */
MAQ_API enum maq_status maq_report_risk_step_html(char **out, const struct maq_risk_step *step,
                                                  const struct maq_report_opts *opts, struct maq_diag *diag);

/* A graph with times: where the time of its busiest class goes, its longest operators, the classes. finish: of the static engine. */
MAQ_API enum maq_status maq_report_times_text(char **out, const struct maq_timed_graph *timed, const double *finish,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.times/1". */
MAQ_API enum maq_status maq_report_times_json(char **out, const struct maq_timed_graph *timed, const double *finish,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_times_html(char **out, const struct maq_timed_graph *timed, const double *finish,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* The distribution of its time. */
MAQ_API enum maq_status maq_report_risk_graph_text(char **out, const struct maq_risk_graph *risk,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.risk.graph/1". */
MAQ_API enum maq_status maq_report_risk_graph_json(char **out, const struct maq_risk_graph *risk,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document; with its curve (maq_risk_graph_opts). */
MAQ_API enum maq_status maq_report_risk_graph_html(char **out, const struct maq_risk_graph *risk,
                                                   const struct maq_report_opts *opts, struct maq_diag *diag);

/* When a run will be done. */
struct maq_report_run {
    const struct maq_job *job;
    const struct maq_train_result *train; /* of the job; NULL: the step time was given */
    const struct maq_failures *failures;
    double tokens;
    const struct maq_run_result *run;
    const struct maq_run_variants *what_if; /* NULL = not asked for */
    bool promised;                          /* the run has a promise, and ... */
    uint32_t least_spares;                  /* ... keeps it with so many; UINT32_MAX = with none */
    bool dated;                             /* `start_day` counts */
    int64_t start_day;                      /* of the first start, days after 1970-01-01 */
};
MAQ_API enum maq_status maq_report_run_text(char **out, const struct maq_report_run *run,
                                            const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.risk.run/2". */
MAQ_API enum maq_status maq_report_run_json(char **out, const struct maq_report_run *run,
                                            const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_run_html(char **out, const struct maq_report_run *run,
                                            const struct maq_report_opts *opts, struct maq_diag *diag);

/* A captured job. */
struct maq_report_graph {
    const struct maq_capture *capture;
    const struct maq_capture_stats *stats;
    bool checked, meets; /* maq_capture_check() was asked, and what it said */
    bool in_full;        /* text: communicators, records and operators too */
};
MAQ_API enum maq_status maq_report_graph_text(char **out, const struct maq_report_graph *graph,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.graph/1". */
MAQ_API enum maq_status maq_report_graph_json(char **out, const struct maq_report_graph *graph,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_graph_html(char **out, const struct maq_report_graph *graph,
                                              const struct maq_report_opts *opts, struct maq_diag *diag);

/* A replayed job. */
struct maq_report_replay {
    const struct maq_replay *replay;
    const struct maq_replay *base; /* without edits, where there are some; NULL = none */
};
MAQ_API enum maq_status maq_report_replay_text(char **out, const struct maq_report_replay *replay,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);
/* Schema "maquette.replay/1". */
MAQ_API enum maq_status maq_report_replay_json(char **out, const struct maq_report_replay *replay,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* As one HTML file that needs no network and carries the document. */
MAQ_API enum maq_status maq_report_replay_html(char **out, const struct maq_report_replay *replay,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* What a command that failed has to say, in place of its document. Schema "maquette.error/1". */
MAQ_API enum maq_status maq_report_error_json(char **out, enum maq_status status, struct maq_diag *diag);

/* Adds what was said on the way to a document that is text already. Takes `json` (free()); NULL when out of memory. */
MAQ_API char *maq_report_add_diagnostics(char *json, const struct maq_diag *diag);

/* "2027-01-31" as days after 1970-01-01; false where it is no day. */
MAQ_API bool maq_date_read(int64_t *day, const char *text);

/* What this library was built from: "0.1.0", a commit or "unknown", "gcc 12.2.0". Static strings. */
MAQ_API const char *maq_version(void);
MAQ_API const char *maq_build_commit(void);
MAQ_API const char *maq_build_compiler(void);

/* Ranks of a program that ran. Schema "maquette.run/1". */
MAQ_API enum maq_status maq_report_launch_text(char **out, const struct maq_launch *launch,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_report_launch_json(char **out, const struct maq_launch *launch,
                                               const struct maq_report_opts *opts, struct maq_diag *diag);

/* A capture; with opts->explain every slice. Schema "maquette.capture/1". */
MAQ_API enum maq_status maq_report_launch_capture_text(char **out, const struct maq_launch *launch,
                                                       const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_report_launch_capture_json(char **out, const struct maq_launch *launch,
                                                       const struct maq_report_opts *opts, struct maq_diag *diag);

/* Live ranks of an emulation. Schema "maquette.emulate/1". */
MAQ_API enum maq_status maq_report_launch_emulate_text(char **out, const struct maq_launch *launch,
                                                       const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_report_launch_emulate_json(char **out, const struct maq_launch *launch,
                                                       const struct maq_report_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
