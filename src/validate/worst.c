/* worst.c - collects rows with their errors, and lists the largest. See worst.h. */
#include "validate/worst.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static int by_error(const void *a, const void *b)
{
    const struct maq_worst_row *x = a, *y = b;
    if (x->error < y->error || x->error > y->error)
        return x->error < y->error ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

void maq_worst_init(struct maq_worst *w, uint32_t n)
{
    *w = (struct maq_worst){.at = maq__calloc(((size_t)n + 1) * sizeof *w->at)};
    w->failed = !w->at;
}

void maq_worst_add(struct maq_worst *w, uint32_t row, double error)
{
    if (!w->failed)
        w->at[w->n++] = (struct maq_worst_row){fabs(error), row};
}

uint32_t maq_worst_head(struct maq_worst *w, uint32_t most, struct maq_buf *b)
{
    b->failed |= w->failed;
    if (w->n > 0)
        qsort(w->at, w->n, sizeof *w->at, by_error);
    most = most < w->n ? most : w->n;
    maq_buf_addf(b, "\n  worst %u\n", most);
    return most;
}

void maq_worst_fini(struct maq_worst *w)
{
    free(w->at);
    *w = (struct maq_worst){0};
}
