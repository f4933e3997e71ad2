/* SPDX-License-Identifier: Apache-2.0 */
/* plan_parts.h - tables and lines about the best deployment, which its text and its page share. */
#ifndef MAQ_REPORT_SERVE_PLAN_PARTS_H
#define MAQ_REPORT_SERVE_PLAN_PARTS_H

#include "maquette/report_serve.h"
#include "report/json_util.h"
#include "report/page.h"

/* Model, cluster, and what is asked for. */
void maq_serve_asked_lines(const struct maq_lines *to, const struct maq_report_serve_plan *plan);
/* What was asked of failures, behind all else; what they make of the best fleet; the same in the document. plan_failures.c */
void maq_serve_failures_asked(struct maq_buf *line, const struct maq_report_plan_failures *f);
void maq_serve_failures_lines(const struct maq_lines *to, const struct maq_report_serve_plan *plan);
void maq_serve_failures_json(struct maq_json root, const struct maq_report_serve_plan *plan);
/* The best fleet and what it carries, or that there is none; how much was searched. */
void maq_serve_found_lines(const struct maq_lines *to, const struct maq_report_serve_plan *plan);

/*
 * Each makes a table, which the caller ends (maq_table_fini). Of `cuts` (maq_serve_cuts()): those that were simulated to their end; at most
 * so many others, and why they are not better. Throughput against latency.
 */
void maq_serve_ranked_table(struct maq_table *t, const struct maq_serve_search_result *r, const uint32_t *cuts,
                            uint32_t n);
void maq_serve_losers_table(struct maq_table *t, const struct maq_serve_search_result *r, const uint32_t *cuts,
                            uint32_t n, uint32_t most);
void maq_serve_front_table(struct maq_table *t, const struct maq_serve_search_result *r);

#endif
