/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what reports of distributions have in common: figures with their intervals, what varies. */
#ifndef MAQ_REPORT_RISK_PARTS_H
#define MAQ_REPORT_RISK_PARTS_H

#include "maquette/risk.h"
#include "report/json_util.h"
#include "report/page.h"

/* value_s, low_s, high_s; and as members of a map, KEY_s, KEY_low_s, KEY_high_s. */
void maq_risk_json_quantile(struct maq_json map, const struct maq_risk_quantile *q);
void maq_risk_json_members(struct maq_json map, const char *key, const struct maq_risk_quantile *q);
/* p5, p50, ..., mean. */
void maq_risk_json_figures(struct maq_json map, const struct maq_risk_quantile *p5,
                           const struct maq_risk_quantile *figures);
void maq_risk_json_sources(struct maq_json list, const struct maq_risk_source *sources, uint32_t n);

/* Half of an interval, in seconds. */
double maq_risk_reach(const struct maq_risk_quantile *q);

void maq_risk_page_figures(struct maq_page *page, const char *what, const struct maq_risk_quantile *p5,
                           const struct maq_risk_quantile *figures, double base_s);
/* Makes a table, which the caller ends (maq_table_fini). */
void maq_risk_sources_table(struct maq_table *t, const struct maq_risk_source *sources, uint32_t n, double base_s);
void maq_risk_page_sources(struct maq_page *page, const struct maq_risk_source *sources, uint32_t n, double base_s);
/* What the longest path of a graph is made of; as well. */
void maq_risk_longest_table(struct maq_table *t, const struct maq_risk_graph *risk);

/* Rows of a table of what drives a step: name, share, p95 with it alone, with half of its spread, without it, each with its interval. */
void maq_risk_driver_rows(struct maq_table *t, const struct maq_risk_step *step, enum maq_risk_parts parts);

#endif
