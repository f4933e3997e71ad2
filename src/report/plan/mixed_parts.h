/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_parts.h - tables and lines about the best plan over several node groups, which its text and its page share. */
#ifndef MAQ_REPORT_PLAN_MIXED_PARTS_H
#define MAQ_REPORT_PLAN_MIXED_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* Each makes a table, which the caller ends (maq_table_fini): the stages of the best plan; plans of other micro batches or numbers of
 * replicas; what other planners would choose. */
void maq_mixed_stages_table(struct maq_table *table, const struct maq_mixed_search_result *r);
void maq_mixed_others_table(struct maq_table *table, const struct maq_mixed_search_result *r);
void maq_mixed_planners_table(struct maq_table *table, const struct maq_report_mixed *p);

/* The step, what bounds it, how sure it is that nothing is better, money, memory. */
void maq_mixed_step_lines(const struct maq_lines *to, const struct maq_report_mixed *p);
/* The islands, and what each does alone. */
void maq_mixed_island_lines(const struct maq_lines *to, const struct maq_mixed_search_result *r);

#endif
