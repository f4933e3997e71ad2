/* SPDX-License-Identifier: Apache-2.0 */
/* plan_failures.h - `maquette serve plan --failures`: how many replicas the search takes, and what becomes of the best fleet. */
#ifndef CLI_SERVE_PLAN_FAILURES_H
#define CLI_SERVE_PLAN_FAILURES_H

#include "cli/serve/options.h"
#include "maquette/report_serve.h"

struct plan_failures {
    const struct serve_given *given; /* NULL: nothing fails */
    struct cli *cli;
    double availability;
    struct maq_serve_reserve reserve; /* of the search; its user is this */
    struct maq_report_plan_failures report;
    /* what the report points to, of the best fleet */
    struct maq_availability *parts;
    struct maq_availability_draws there;
    struct maq_attainment attainment;
    struct maq_what_if no_spares;
};

/* Once all else of the command line is read; `given` is the caller's and has to stay where it is. */
enum maq_status cli_plan_failures_read(struct plan_failures *out, struct serve_given *given, struct cli *cli);
/* Of the fleet that was found: its members have those replicas that are needed. */
enum maq_status cli_plan_failures_look(struct plan_failures *f, const struct maq_serve_search_result *search,
                                       const struct maq_fleet *fleet, const struct maq_requests *requests,
                                       struct cli *cli);
void cli_plan_failures_end(struct plan_failures *f);

#endif
