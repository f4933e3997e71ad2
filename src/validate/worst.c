/* worst.c - see worst.h. */
#include "validate/worst.h"

#include <stdlib.h>

static int by_error(const void *a, const void *b)
{
    const struct maq_worst *x = a, *y = b;
    if (x->error < y->error || x->error > y->error)
        return x->error < y->error ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

void maq_worst_sort(struct maq_worst *rows, uint32_t n)
{
    if (n > 0)
        qsort(rows, n, sizeof *rows, by_error);
}
