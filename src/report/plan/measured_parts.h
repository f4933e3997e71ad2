/* SPDX-License-Identifier: Apache-2.0 */
/* measured_parts.h - what text and page share of pipelines composed from a profile. */
#ifndef MAQ_REPORT_PLAN_MEASURED_PARTS_H
#define MAQ_REPORT_PLAN_MEASURED_PARTS_H

#include "maquette/report.h"
#include "report/page.h"

#define MAQ_COMPOSED_SIGNS "*: the slowest stage; memory: of the fullest device"

/* Each appends to b: "OPT-350 on 32 A100-40 + 96 V100-16"; what plan i takes; a pipeline of it; how sure it is that nothing is better. */
void maq_composed_title(struct maq_buf *b, const struct maq_compose_problem *problem);
void maq_composed_plan_words(struct maq_buf *b, const struct maq_compose_result *r, uint32_t i);
void maq_composed_pipeline_words(struct maq_buf *b, const struct maq_compose_pipeline *p);
void maq_composed_proof(struct maq_buf *b, const struct maq_compose_result *r);
/* Devices of the problem that the plan does not use. */
void maq_composed_idle_lines(const struct maq_lines *to, const struct maq_compose_problem *problem,
                             const struct maq_compose_plan *plan);
/* Its stages. The caller ends it (maq_table_fini). */
void maq_composed_stages_table(struct maq_table *t, const struct maq_compose_problem *problem,
                               const struct maq_compose_pipeline *p);

#endif
