/* SPDX-License-Identifier: Apache-2.0 */
/* worst.c - collects rows with their errors, and lists the largest. See worst.h. */
#include "validate/worst.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

struct judged {
    double error; /* absolute */
    uint32_t row;
};

static int by_error(const void *a, const void *b)
{
    const struct judged *x = a, *y = b;
    if (x->error < y->error || x->error > y->error)
        return x->error < y->error ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

void maq__add_worst(struct maq_buf *b, const struct maq_worst *worst, const char *title, uint32_t most)
{
    struct judged *rows = maq__calloc(((size_t)worst->n + 1) * sizeof *rows);
    uint32_t n = 0;
    b->failed |= !rows;
    for (uint32_t i = 0; rows && i < worst->n; i++) {
        double error = fabs(worst->error(worst->of, i));
        if (!isnan(error))
            rows[n++] = (struct judged){error, i};
    }
    if (n > 0)
        qsort(rows, n, sizeof *rows, by_error);
    most = most < n ? most : n;
    if (title)
        maq_buf_addf(b, "\n  %s\n", title);
    else
        maq_buf_addf(b, "\n  worst %u\n", most);
    for (uint32_t i = 0; i < most; i++)
        worst->add(b, worst->of, rows[i].row);
    free(rows);
}
