/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - the run over the rows of a table of training runs, and what is made of their errors.
 */
#ifndef MAQ_VALIDATE_TRAIN_RUN_H
#define MAQ_VALIDATE_TRAIN_RUN_H

#include "base/stat/summary.h"
#include "base/str.h"
#include "validate/train/owner.h"
#include "validate/train/row.h"

/* Simulates rows[i] for every i with keep[i]; the others are FILTERED. Row i depends on the table alone, not on threads. */
enum maq_status maq__validate_run(struct maq_validate_owner *owner, struct maq_validate_row *rows, const bool *keep,
                                  const struct maq_row_table *table, uint32_t threads, struct maq_diag *diag);

/* Names the groups that a row is in; all are "" until there is a job, but for source and framework. false when out of memory. */
bool maq__validate_label_text(struct maq_validate_row *row, struct maq_arena *arena);
bool maq__validate_label_job(struct maq_validate_row *row, const struct maq_job *job, struct maq_arena *arena);

/* Fills groups, totals, baseline and ranking of owner->result from its rows. */
enum maq_status maq__validate_summarize(struct maq_validate_owner *owner, struct maq_diag *diag);

/* Its parts, which need the groups; false when out of memory. */
bool maq__validate_baseline(struct maq_validate_owner *owner);
bool maq__validate_rank(struct maq_validate_owner *owner);

/* The constant that predicts n rows with these utilisations with the least mean absolute error. scratch: room for n. */
double maq__validate_fit_utilisation(const double *utilisations, struct maq_weighted *scratch, uint32_t n);

/* The `worst` rows of a metric, for the text. */
void maq__validate_add_worst(struct maq_buf *b, const struct maq_validate_result *r, int metric, uint32_t worst);

#endif
