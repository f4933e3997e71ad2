/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.c - the fastest product in 8 bits with one scale per tensor.
 *
 * TensorRT-LLM's rows of such products hold three kernels: the search for the largest value of the first operand, its quantization, and
 * cuBLASLt's product (tensorrt_llm/_torch/modules/linear.py, FP8QDQLinearMethod: quantize_e4m3_per_tensor, cublas_scaled_mm). The
 * first two have rows of their own, by rows and columns; a product that lacks one of them does not count, nor one whose quantization is
 * more than a quarter of its row: the difference of two such times says little.
 */
#include <math.h>
#include <stdlib.h>

#include "fit.h"

#define MOST_QUANTIZATION 0.25 /* of a row's time */

static int by_size(const void *a, const void *b)
{
    const struct fit_narrow *x = a, *y = b;
    int d = (x->n > 0) - (y->n > 0); /* products last */
    if (d == 0 && x->n <= 0)
        d = (x->n > y->n) - (x->n < y->n);
    d = d ? d : (x->m > y->m) - (x->m < y->m);
    d = d ? d : (x->k > y->k) - (x->k < y->k);
    d = d ? d : (x->n > y->n) - (x->n < y->n);
    return d ? d : (x->s > y->s) - (x->s < y->s);
}

/* Seconds of the first row of that size; NAN where there is none. */
static double time_of(const struct fit_narrow *rows, size_t n, int64_t m, int64_t kind, int64_t k)
{
    struct fit_narrow key = {m, kind, k, 0.0};
    size_t from = 0, to = n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (by_size(&rows[mid], &key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    bool found = from < n && rows[from].n == kind && rows[from].m == m && rows[from].k == k;
    return found ? rows[from].s : (double)NAN;
}

double fit_fastest_narrow(struct fit_pool *pool)
{
    double best = 0.0;
    if (pool->n_narrow == 0)
        return 0.0;
    qsort(pool->narrow, pool->n_narrow, sizeof pool->narrow[0], by_size);
    for (size_t i = 0; i < pool->n_narrow; i++) {
        const struct fit_narrow *p = &pool->narrow[i];
        if (p->n <= 0)
            continue;
        double s = p->s - time_of(pool->narrow, pool->n_narrow, p->m, 0, p->k) -
                   time_of(pool->narrow, pool->n_narrow, 1, -1, p->m * p->k);
        if (s > (1.0 - MOST_QUANTIZATION) * p->s) /* not for NAN */
            best = fmax(best, 2.0 * (double)p->m * (double)p->n * (double)p->k / s);
    }
    return best;
}
