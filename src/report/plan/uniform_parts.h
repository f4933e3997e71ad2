/* SPDX-License-Identifier: Apache-2.0 */
/* uniform_parts.h - tables and lines about the best plans of a job, which its text and its page share. */
#ifndef MAQ_REPORT_PLAN_UNIFORM_PARTS_H
#define MAQ_REPORT_PLAN_UNIFORM_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

/* Each makes a table, which the caller ends (maq_table_fini): the plans; those that no other beats in time and memory; the winner with one
 * thing changed, as far as it is worth showing; what would make the job fit. */
void maq_plan_list_table(struct maq_table *table, const struct maq_report_plan *p);
void maq_plan_front_table(struct maq_table *table, const struct maq_report_plan *p);
void maq_plan_alternatives_table(struct maq_table *table, const struct maq_report_plan *p);
void maq_plan_remedies_table(struct maq_table *table, const struct maq_report_plan *p);

/* What the job says of its plan and the search keeps; nothing where it says nothing. */
void maq_plan_kept_line(const struct maq_lines *to, const struct maq_search_result *r);
/* How much was searched, and how sure it is that nothing is better. */
void maq_plan_proof_lines(const struct maq_lines *to, const struct maq_report_plan *p);
/* Of a plan that was found: its memory, settings that were not searched, what its framework makes of it. */
void maq_plan_winner_lines(const struct maq_lines *to, const struct maq_report_plan *p);

/* "tp4 pp4 vp7 dp16 mbs1, ZeRO-1, recomputing layernorm": a plan on so many devices. */
void maq_plan_sentence(struct maq_buf *b, const struct maq_plan *plan, int64_t devices);
/* Of a search without a plan: that none fits, or none was looked at before it was stopped; two sentences with the least memory found. */
void maq_plan_none(struct maq_buf *b, const struct maq_report_plan *p, const char *between);

#endif
