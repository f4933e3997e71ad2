/* SPDX-License-Identifier: Apache-2.0 */
/* fit_parts.h - tables and lines about the law of recorded times, which their text and their page share. */
#ifndef MAQ_REPORT_RISK_FIT_PARTS_H
#define MAQ_REPORT_RISK_FIT_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* "fitted on 300 steps, judged on the 300 after them"; of kernels. Returns buf, or a static string. */
const char *maq_fit_series_words(char buf[128], const struct maq_risk_series *s);
const char *maq_fit_record_words(char buf[128], const struct maq_risk_record *r);
/* Each makes a table, which the caller ends (maq_table_fini): quantiles, predicted and observed; what kernels vary by. */
void maq_fit_figures_table(struct maq_table *t, const struct maq_risk_series *s);
void maq_fit_kernels_table(struct maq_table *t, const struct maq_risk_record *r);
/* Warm-up, body, slow mode, spikes, law, guarantee. */
void maq_fit_lines(const struct maq_lines *to, const struct maq_risk_series *s);

#endif
