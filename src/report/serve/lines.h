/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - what a deployment is and what became of its requests, a line for each matter: text and page show the same. */
#ifndef MAQ_REPORT_SERVE_LINES_H
#define MAQ_REPORT_SERVE_LINES_H

#include "maquette/report_serve.h"
#include "report/page.h"

/* Model, cluster, degrees, engine, memory, what drafts. */
void maq_serve_deployment_lines(const struct maq_lines *to, const struct maq_serve_result *r);
/* Capacity, pools or replicas, throughput, cost, power, batches, bounds. */
void maq_serve_outcome_lines(const struct maq_lines *to, const struct maq_serve_result *r);

/* One batch alone: what it takes, tokens a second. */
void maq_serve_batch_lines(const struct maq_lines *to, const struct maq_serve_batch *b, int64_t size, int64_t prompt,
                           int64_t output);

/* Latencies with their intervals and quantiles, in milliseconds. The caller ends the table (maq_table_fini()). */
void maq_serve_latency_table(struct maq_table *t, const struct maq_serve_result *r);

#endif
