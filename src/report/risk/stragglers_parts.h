/* SPDX-License-Identifier: Apache-2.0 */
/* stragglers_parts.h - what text and page share of a recorded job that was replayed. */
#ifndef MAQ_REPORT_RISK_STRAGGLERS_PARTS_H
#define MAQ_REPORT_RISK_STRAGGLERS_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

#define MAQ_STRAGGLERS_ESTIMATED "workers: the lesser of their rank's and their stage's slowdown"

/* A step as recorded, replayed, without stragglers. */
void maq_stragglers_lines(const struct maq_lines *to, const struct maq_risk_replayed *r);
/* Stages, data-parallel ranks, workers (of these two so many at most), operations. The caller ends it (maq_table_fini). */
void maq_stragglers_table(struct maq_table *t, const struct maq_risk_replayed *r, uint32_t most);

#endif
