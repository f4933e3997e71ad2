/*
 * validate_internal.h - what the files of validation share: the run over the rows, the statistics.
 */
#ifndef MAQ_VALIDATE_TRAIN_VALIDATE_INTERNAL_H
#define MAQ_VALIDATE_TRAIN_VALIDATE_INTERNAL_H

#include "base/stat/summary.h"
#include "base/str.h"
#include "validate/owner.h"
#include "validate/train/row.h"

/* The bytes of a file, or of standard input for "-"; *text is owned by the caller (free()). validate.c */
enum maq_status maq__validate_read(char **text, size_t *len, const char *path, struct maq_diag *diag);

/* keep[i]: whether record i passes all filters. A filter on a column that is not there is an error. */
enum maq_status maq__validate_filter(bool *keep, const struct maq_csv *csv, const struct maq_validate_opts *opts,
                                     struct maq_diag *diag);

/* What the caller gave, over the defaults; a caller built with an older header gives less. */
struct maq_validate_opts maq__validate_opts(const struct maq_validate_opts *given);

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

/* "median", "mean", ... of a list of signed errors (it is sorted). */
struct maq_validate_stat maq__validate_stat(double *errors, uint32_t n);

/* The `worst` rows of a metric, for the text. */
void maq__validate_add_worst(struct maq_buf *b, const struct maq_validate_result *r, int metric, uint32_t worst);

#endif
