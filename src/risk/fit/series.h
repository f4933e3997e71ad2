/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h - decomposition of a series of step times: warm-up, spikes, a body that may have two modes, drift.
 */
#ifndef MAQ_RISK_FIT_SERIES_H
#define MAQ_RISK_FIT_SERIES_H

#include "base/arena.h"
#include "base/stat/law_fit.h"
#include "maquette/risk.h"

/* The times of a file in the order of its rows, in `arena`. */
enum maq_status maq_series_read(double **times, uint32_t *n, const char *path, const char *column,
                                struct maq_arena *arena, struct maq_diag *diag);

#define MAQ_SERIES_LEAST 8u   /* least number of fitted steps */
#define MAQ_SERIES_SPIKE 1.5  /* a step above this many medians is a spike */
#define MAQ_SERIES_MEMORY 0.3 /* weight e^-1 that far back, as a share of the series */

/* A decomposed series. Samples are ascending, their weights add up to 1. */
struct maq_series_parts {
    uint32_t warm_up;
    struct maq_sample all, body; /* after warm-up, with the weights of recency; without spikes */
    double median;
    uint32_t spikes, clumps;
    double spike_excess; /* mean excess over the median of the spikes' durations; 0 without one */
    double effective;    /* independent values that the weighted ones are worth */
};
enum maq_status maq_series_split(struct maq_series_parts *out, const double *times, uint32_t n,
                                 struct maq_arena *arena);

/* Two modes of a body: the share of the upper one, the ratio of the medians, and the CV around the modes; share and ratio are 0,
 * and the CV that of the body, when there is one mode. */
struct maq_series_modes {
    double share, ratio, cv;
};
struct maq_series_modes maq_series_modes(const struct maq_sample *body);

#endif
