/* SPDX-License-Identifier: Apache-2.0 */
/* external_parts.h - tables and lines about plans composed of a parallelizer's answers, which their text and their page share. */
#ifndef MAQ_REPORT_PLAN_EXTERNAL_PARTS_H
#define MAQ_REPORT_PLAN_EXTERNAL_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* Each makes a table of the best plan, which the caller ends (maq_table_fini): its stages; its pieces in the parallelizer's own words. */
void maq_external_stages_table(struct maq_table *table, const struct maq_slices_result *r);
void maq_external_pieces_table(struct maq_table *table, const struct maq_slices_result *r);

/* The step of the best plan, and how sure it is that no other one is faster. */
void maq_external_step_lines(const struct maq_lines *to, const struct maq_slices_result *r);
/* What it uses of each island. */
void maq_external_island_lines(const struct maq_lines *to, const struct maq_slices_result *r);
/* The parallelizer, and what it was asked. */
void maq_external_call_lines(const struct maq_lines *to, const struct maq_slices_result *r);

#endif
