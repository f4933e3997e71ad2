/* worst.h - the rows with the largest errors, of a report. */
#ifndef MAQ_VALIDATE_WORST_H
#define MAQ_VALIDATE_WORST_H

#include "base/str.h"

/* Largest error first; of equal ones the first row. */
struct maq_worst {
    struct maq_worst_row {
        double error; /* absolute */
        uint32_t row;
    } * at;
    uint32_t n;
    bool failed; /* out of memory */
};

/* Room for n rows; to be ended with maq_worst_fini(). */
void maq_worst_init(struct maq_worst *w, uint32_t n);
void maq_worst_add(struct maq_worst *w, uint32_t row, double error);
/* Sorts them and heads a list of at most `most`; how many there are to list. b->failed where there was no memory. */
uint32_t maq_worst_head(struct maq_worst *w, uint32_t most, struct maq_buf *b);
void maq_worst_fini(struct maq_worst *w);

#endif
