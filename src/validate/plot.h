/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - predictions against measurements as a picture (SVG).
 */
#ifndef MAQ_VALIDATE_PLOT_H
#define MAQ_VALIDATE_PLOT_H

#include <stdbool.h>
#include <stdint.h>

struct maq_plot_point {
    const char *series, *label;
    double measured, predicted, error; /* seconds or bytes; predicted / measured - 1 */
};

struct maq_plot {
    const char *what, *about; /* "time per step"; a line below the title */
    bool bytes;               /* axes count bytes, not seconds */
    const struct maq_plot_point *points;
    uint32_t n;
};

/* Owned by the caller (free()); NULL when out of memory. */
char *maq__plot_svg(const struct maq_plot *plot);

#endif
