/*
 * risk.h - how sure a duration is: what varies, learnt from records; what it does to a step.
 *
 *   maq_risk_fit()      the law of a series of step times, with the confidence of each of its quantiles
 *
 * A quantile has an interval of its own, from order statistics: no law is assumed for it (David and Nagaraja, "Order statistics",
 * 7.1). NaN stands for a bound that the sample is too small to give.
 */
#ifndef MAQUETTE_RISK_H
#define MAQUETTE_RISK_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is said of a distribution. */
enum maq_risk_figure { MAQ_RISK_P50, MAQ_RISK_P95, MAQ_RISK_P99, MAQ_RISK_MEAN, MAQ_RISK_FIGURE_COUNT };
MAQ_API const char *maq_risk_figure_name(enum maq_risk_figure figure); /* "p50", ..., "mean" */

/* --- learning from a series --------------------------------------------------------------------------------------- */

struct maq_risk_estimate {
    double predicted, low, high; /* 95 % confidence interval of the figure */
    double observed;             /* in the part that was held out; NaN without one */
    double error;                /* predicted / observed - 1; NaN likewise */
};

/* A law that was tried: shift + Y (docs/risk.md). */
struct maq_risk_law {
    const char *name; /* "lognormal", "mixture of two", ... */
    double shift, scale, shape;
    double distance; /* Kolmogorov and Smirnov's, from the body of the series */
    bool accepted;   /* distance at most maq_risk_series.floor */
};
#define MAQ_RISK_LAWS 12

/* A series of step times, as it was understood. Times in seconds. */
struct maq_risk_series {
    const char *name;           /* of the file */
    uint32_t n, fitted, judged; /* steps: all, used to learn, held out */
    uint32_t warm_up;           /* of the fitted ones: at the start, left out */
    double effective;           /* independent recent steps that the fitted ones are worth */
    uint32_t spikes, clumps;    /* steps above 1.5 x the median, and groups of neighbours among them */
    double spike_rate;          /* per step */
    double spike_mean_s;        /* mean duration of such a step; NaN without one */
    double slow_share,
        slow_ratio;     /* a second mode of the body: share of steps, its median over that of the others; 0 = none */
    double drift;       /* ln of the median of the last quarter over that of the first one, after warm-up */
    double correlation; /* of neighbours, of the body */
    double cv;          /* of the body: standard deviation over mean */
    uint32_t n_laws;
    struct maq_risk_law laws[MAQ_RISK_LAWS]; /* in order of distance */
    double floor;                            /* distance above which no law is accepted */
    bool pooled; /* none was: the recorded values themselves are the law. Otherwise laws[0] is */
    struct maq_risk_estimate figure[MAQ_RISK_FIGURE_COUNT];
    double
        guarantee_s; /* with 95 % confidence at most 5 % of steps exceed it; NaN when the series is too short to say */
};

struct maq_risk_fit {
    uint32_t n;
    struct maq_risk_series *series; /* [n], one per file */
    void *owner;                    /* internal */
};

struct maq_risk_fit_opts {
    uint32_t size;      /* set by MAQ_RISK_FIT_OPTS_INIT */
    double holdout;     /* share of the series, from its end, to judge on; 0 = none */
    const char *column; /* the column with times; NULL = found by its name */
};
#define MAQ_RISK_FIT_OPTS_INIT                                                                                         \
    {                                                                                                                  \
        .size = sizeof(struct maq_risk_fit_opts)                                                                       \
    }

/*
 * Learns from CSV files (plain or gzip) with a column of step times: iteration_time_s, step_time_ms, ...; the unit is the end of the
 * name. *out is owned by the caller (maq_risk_fit_free).
 */
MAQ_API enum maq_status maq_risk_fit(struct maq_risk_fit **out, const char *const *paths, uint32_t n_paths,
                                     const struct maq_risk_fit_opts *opts, struct maq_diag *diag);
MAQ_API void maq_risk_fit_free(struct maq_risk_fit *fit);

#ifdef __cplusplus
}
#endif
#endif
