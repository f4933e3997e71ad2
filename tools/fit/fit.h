/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - what the files of fit-kernels share: rows of measurements by table, and the fit of one table.
 */
#ifndef FIT_FIT_H
#define FIT_FIT_H

#include <stdio.h>

#include "cost/fitted/table.h"
#include "surface.h"

/* A measurement as a table sees it. */
struct fit_row {
    struct maq_fit_key key;
    const char *kernel;
    float x[FIT_AXES];
    double y;      /* ln(measured / base) */
    uint64_t hash; /* of the operator: the same on every device and library */
};

/* A product in 8 bits with one scale per tensor, and what its library does to its first operand before it: time by rows and columns. */
struct fit_narrow {
    int64_t m, n, k; /* n: 0 for a quantization, -1 for the search of the largest value (m = 1, k = elements) */
    double s;
};

/* Rows of one device and library, ordered by key and kernel. */
struct fit_pool {
    struct fit_row *rows;
    size_t n, size;
    struct maq_device device;
    enum maq_library library;
    char versions[256];
    double burst_flops; /* of the fastest BF16 product */
    struct fit_narrow *narrow;
    size_t n_narrow, narrow_size;
};

/*
 * FLOP/s of the fastest product in 8 bits with one scale per tensor, without the quantization that its library's row contains. 0
 * where the pool has no such products, or no rows of quantization.
 */
double fit_fastest_narrow(struct fit_pool *pool);

/* Rows of one table, ordered by hash. */
struct fit_group {
    const struct fit_pool *pool;
    struct fit_row *rows;
    size_t n;
};

struct fit_errors {
    double median, p80, p90; /* of |predicted / measured - 1| */
};

struct fit_table {
    struct fit_surface surface;
    struct fit_errors seen, held_out;
    const struct fit_group *relative; /* whose rows stood in for missing ones; NULL = nobody's */
};

/* relatives: tables of the same operators elsewhere. False when out of memory. */
bool fit_table(struct fit_table *out, const struct fit_group *group, const struct fit_group *const *relatives,
               size_t n_relatives);

/* One entry of a document; `first`: no comma before it. */
bool fit_write_table(FILE *out, const struct fit_group *group, const struct fit_table *table, bool first);
/* The datasheet that the base times were made with. */
void fit_write_figures(FILE *out, struct fit_pool *pool);

#endif
