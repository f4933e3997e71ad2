/* SPDX-License-Identifier: Apache-2.0 */
/* run_parts.h - tables and lines about a run, which its text and its page share. */
#ifndef MAQ_REPORT_RISK_RUN_PARTS_H
#define MAQ_REPORT_RISK_RUN_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* "70.73 d"; a few steps in their own unit. Returns buf, or a static string. */
const char *maq_words_days(char buf[32], double s);

/* The run, what fails, checkpoints and nodes. */
void maq_run_asked_lines(const struct maq_lines *to, const struct maq_report_run *r);
/* Bound, goodput, interruptions, cost, promise, what was given up. */
void maq_run_figure_lines(const struct maq_lines *to, const struct maq_report_run *r);

/* Each makes a table, which the caller ends (maq_table_fini): when it is done; where the time goes; what interrupts it; what if. */
void maq_run_quantiles_table(struct maq_table *t, const struct maq_report_run *r);
void maq_run_buckets_table(struct maq_table *t, const struct maq_run_result *run);
void maq_run_causes_table(struct maq_table *t, const struct maq_run_result *run);
void maq_run_variants_table(struct maq_table *t, const struct maq_run_variants *v);

#endif
