/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_table.h - how errors stand in reports of validation: columns of a table in text, members in JSON, and why rows were left out.
 */
#ifndef MAQ_VALIDATE_ERROR_TABLE_H
#define MAQ_VALIDATE_ERROR_TABLE_H

#include "base/str.h"
#include "maquette/validate.h"
#include "report/json_util.h"

/* A share in percent behind a blank, right-aligned in `width` columns; "-" where it is not known. */
void maq__add_percent(struct maq_buf *b, int width, double share, bool sign);
/* The columns median, mean, 90th percentile and bias. */
void maq__add_errors(struct maq_buf *b, int width, const struct maq_validate_stat *stat);

/* "3 of 10 rows left out: 2 no time, 1 no device": the head, then a reason at a time (none of no rows), then the end of the line. */
struct maq_left_out {
    struct maq_buf *b;
    bool said;
};
struct maq_left_out maq__left_out(struct maq_buf *b, uint32_t rows, uint32_t of);
void maq__left_out_add(struct maq_left_out *l, uint32_t rows, const char *why);
void maq__left_out_end(struct maq_left_out *l);

/* How many, and the same figures. */
void maq__json_errors(struct maq_json map, const struct maq_validate_stat *stat);
/* What a row was compared by. */
void maq__json_compared(struct maq_json map, double measured, double predicted, double error);

#endif
