/* worst.h - rows by the size of their errors, largest first; of equal ones the first row. */
#ifndef MAQ_VALIDATE_WORST_H
#define MAQ_VALIDATE_WORST_H

#include <stdint.h>

struct maq_worst {
    double error; /* absolute */
    uint32_t row;
};

void maq_worst_sort(struct maq_worst *rows, uint32_t n);

#endif
