/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - what a deployment is and what became of its requests, a line for each matter: text and page show the same. */
#ifndef MAQ_REPORT_SERVE_LINES_H
#define MAQ_REPORT_SERVE_LINES_H

#include "maquette/report_serve.h"

/* Takes a line: its label, "" where it goes on with the one before, and its text, without control characters. */
struct maq_serve_sink {
    void (*put)(void *user, const char *label, const char *text);
    void *user;
};

/* Model, cluster, degrees, engine, memory, what drafts. */
void maq_serve_deployment_lines(const struct maq_serve_sink *to, const struct maq_serve_result *r);
/* Capacity, pools or replicas, throughput, cost, power, batches, bounds. */
void maq_serve_outcome_lines(const struct maq_serve_sink *to, const struct maq_serve_result *r);

#endif
