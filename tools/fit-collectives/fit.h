/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - what the parts of fit-collectives share: measured collectives, coefficients as a vector, the search.
 */
#ifndef MAQ_FIT_COLLECTIVES_H
#define MAQ_FIT_COLLECTIVES_H

#include "cost/collective/collective.h"
#include "validate/collectives/point.h"

/* A measurement and the links that it ran over. */
struct sample {
    struct maq_coll_point point;
    struct maq_coll_links links;
    uint32_t source; /* index into samples.sources */
    uint32_t origin; /* index into samples.origins */
    int generation;  /* index into fit.generations */
    int transport;   /* enum maq_transport; -1 inside a domain */
    bool log;        /* of nccl-tests, not a kernel table */
    double weight;   /* of its source: at most SOURCE_CAP rows count */
};

#define SOURCE_CAP 40.0

struct samples {
    struct maq_arena arena;
    struct sample *list;
    uint32_t n, size;
    const char **sources; /* a log of nccl-tests, or a kernel table with its operation and number of devices */
    uint32_t n_sources, sources_size;
    const char **origins; /* what is left out at a time: a repository of logs, a kernel table */
    uint32_t n_origins, origins_size;
};

/* Rows of collectives.csv, and of all comm tables below a folder. False after a message. samples.c */
bool samples_load(struct samples *out, const char *csv, const char *kernels);
void samples_fini(struct samples *samples);

/* Generations that have coefficients of their own, by architecture. */
#define FIT_GENERATIONS 4
extern const struct fit_generation {
    const char *name;
    enum maq_device_arch arch;
    const char *used_for; /* architectures, as YAML */
} fit_generations[FIT_GENERATIONS];
extern const char *const fit_near_names[MAQ_COLL_NEAR_COUNT], *const fit_far_names[MAQ_COLL_FAR_COUNT];

/* The coefficients at hand; samples point into it. */
struct fit {
    struct maq_coll_generation generations[FIT_GENERATIONS];
    struct maq_coll_transport transports[MAQ_TRANSPORT_COUNT];
};

/* ln(predicted / measured). */
double sample_error(const struct sample *s);

/* Fits without the rows of an origin (UINT32_MAX: with all); what these do not concern stays as it is. search.c */
void fit_search(struct fit *fit, const struct samples *samples, uint32_t except);

/* Errors of every sample: with the coefficients of all rows, and with those fitted without the sample's origin. */
struct residuals {
    double *fitted, *held; /* ln(predicted / measured), by sample */
};

/* 68 % of the held-out |errors| of a regime and band are smaller. report.c */
void held_out_errors(double out[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT], const struct samples *samples,
                     const struct residuals *r);
bool report_write(const char *path, const struct samples *samples, const struct residuals *r);

/* The result as YAML, which tools/coll-table.py reads. yaml.c */
bool fit_write(const char *path, const struct fit *fit, double errors[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT]);

#endif
