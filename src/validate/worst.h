/* SPDX-License-Identifier: Apache-2.0 */
/* worst.h - the rows with the largest errors, in the text of a report. */
#ifndef MAQ_VALIDATE_WORST_H
#define MAQ_VALIDATE_WORST_H

#include "base/str.h"

/* The rows of a result. */
struct maq_worst {
    const void *of;
    uint32_t n;
    double (*error)(const void *of, uint32_t row); /* with or without sign; NaN: the row was not compared */
    void (*add)(struct maq_buf *b, const void *of, uint32_t row);
};

/* A title ("worst 5" where it is NULL), then at most `most` rows: the largest error first; of equal ones the first row. */
void maq__add_worst(struct maq_buf *b, const struct maq_worst *worst, const char *title, uint32_t most);

#endif
