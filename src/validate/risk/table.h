/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the table of `validate risk` while it is filled. A group of observations is a function that adds its rows; another
 * group is another line in validate.c.
 */
#ifndef MAQ_VALIDATE_RISK_TABLE_H
#define MAQ_VALIDATE_RISK_TABLE_H

#include "base/arena.h"
#include "maquette/validate.h"

#define MAQ_RISK_MOST_ROWS 256u

struct maq_risk_table {
    struct maq_arena *arena; /* texts of rows that are not static go here */
    const char *folder;
    struct maq_diag *diag;
    struct maq_validate_risk_row *rows; /* [MAQ_RISK_MOST_ROWS] */
    uint32_t n;
};

/* What somebody observed: as in struct maq_validate_risk_row. */
struct maq_risk_published {
    const char *id, *what, *unit, *source;
    double observed, low, high;
};
/* Adds it with what is predicted of it. */
void maq_risk_compare(struct maq_risk_table *t, const struct maq_risk_published *p, double predicted);
/* Adds a row; its verdict follows from predicted, low and high, or from `why`. */
void maq_risk_add(struct maq_risk_table *t, struct maq_validate_risk_row row);
/* folder/name in the arena, NULL when out of memory or when there is no such file. */
const char *maq_risk_file(struct maq_risk_table *t, const char *name);

enum maq_status maq_risk_rows_runs(struct maq_risk_table *t);       /* failures, checkpoints, spares */
enum maq_status maq_risk_rows_startup(struct maq_risk_table *t);    /* MLPerf logs */
enum maq_status maq_risk_rows_population(struct maq_risk_table *t); /* jobs, GPUs and steps in great numbers */
enum maq_status maq_risk_rows_placement(struct maq_risk_table *t);  /* a slow node in a pipeline */
enum maq_status maq_risk_rows_variation(struct maq_risk_table *t);  /* recorded jobs and step times */

#endif
