/* SPDX-License-Identifier: Apache-2.0 */
/* predict_parts.h - what text and page share of a mixed plan that is predicted. */
#ifndef MAQ_REPORT_PLAN_PREDICT_PARTS_H
#define MAQ_REPORT_PLAN_PREDICT_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* Its file, and the micro batches of a step. */
void maq_placed_plan_words(char words[512], const struct maq_report_placed *r);
/* The stages, those that are alike once. The caller ends it (maq_table_fini). */
void maq_placed_stages_table(struct maq_table *table, const struct maq_report_placed *r);
/* What a step takes, the busiest stage, stages that do not fit. */
void maq_placed_step_lines(const struct maq_lines *to, const struct maq_report_placed *r);

#endif
