/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variation.h - the variation of a training step, as a product of factors.
 *
 *   duration of a pass = base x GPU x node x microbatch x pass x step x mode x spike
 *   duration of a transfer or collective between stages or replicas = base x communication x congestion x step x mode x spike
 *
 *   GPU, node      static: drawn once for a run
 *   congestion     a regime that all communication of a step shares
 *   episode        a GPU that is slow for a while: how many there are at a time follows Poisson's law, whatever that of their
 *                  length
 *   diurnal        the hour of the day, shared by everything: 1 + swing / 2 x sin(hour)
 *   step, spike    shared by everything in a step
 *   mode           likewise: a share of the steps takes so many times as long, each of them; no step with a spike
 *   others         drawn for each pass, transfer or microbatch
 *
 *   kernels        have laws of their own, where a document gives them; the part of a pass that is such a kernel then does not vary
 *                  with the pass
 *
 * All factors are lognormal with median 1; a share of the GPUs are outliers around a ratio of their own.
 */
#ifndef MAQ_RISK_STEP_VARIATION_H
#define MAQ_RISK_STEP_VARIATION_H

#include "base/arena.h"
#include "base/stat/law.h"
#include "maquette/risk.h"

/*
 * The law of the runs of one operation, where it is known: lognormal with median 1, or equally likely values over the
 * median; and a share of slow runs, which take slow_ratio times as long in addition. It replaces the noise of passes
 * for the operation's part of a pass.
 */
struct maq_kernel_law {
    char name[40]; /* "gemm", "all_reduce tp": risk/step/signature.h */
    double cv, slow_share, slow_ratio;
    uint32_t n_quantiles; /* 0: lognormal by its cv */
    double quantile[MAQ_RISK_KERNEL_QUANTILES];
};
struct maq_law
maq_kernel_law_body(const struct maq_kernel_law *law);      /* borrows the quantiles; constant where it does not vary */
double maq_kernel_law_sd(const struct maq_kernel_law *law); /* of body and slow runs */

#define MAQ_VARIATION_KERNELS 64u

struct maq_variation {
    double gpu_cv, gpu_outlier_share, gpu_outlier_ratio, gpu_outlier_cv;
    double node_cv, pass_cv, step_cv, communication_cv;
    double congested_share, congested_ratio;
    double spike_share, spike_ratio, spike_cv;
    double slow_mode_share, slow_mode_ratio; /* a second mode of steps */
    double microbatch_cv;
    double diurnal_swing;                                        /* of the step, from the fastest hour to the slowest */
    double episodes_per_gpu_day, episode_lasts_s, episode_ratio; /* a GPU that is slow for a while */
    uint32_t n_kernels;
    struct maq_kernel_law kernel[MAQ_VARIATION_KERNELS];
};

/* By a name of the catalogue (data/variability) or the path of a document; NULL: "default". Keys that a document leaves out are
 * those of "default". */
enum maq_status maq_variation_load(struct maq_variation *out, const char *what, struct maq_diag *diag);

/* The sources of variation, each of which can be taken out. */
/*    id             name            what                                                              */
#define MAQ_SOURCE_LIST(X)                                                                                             \
    X(GPU, "gpu", "lasting differences between GPUs")                                                                  \
    X(NODE, "node", "lasting differences between nodes")                                                               \
    X(PASS, "pass", "noise of single passes")                                                                          \
    X(MICROBATCH, "microbatch", "uneven work of microbatches")                                                         \
    X(COMMUNICATION, "communication", "noise of transfers and collectives")                                            \
    X(CONGESTION, "congestion", "congested steps")                                                                     \
    X(KERNEL, "kernel", "kernels with laws of their own")                                                              \
    X(EPISODE, "episode", "GPUs that are slow for a while")                                                            \
    X(DIURNAL, "diurnal", "the hour of the day")                                                                       \
    X(STEP, "step", "noise that all GPUs share")                                                                       \
    X(SPIKE, "spike", "rare long steps")                                                                               \
    X(MODE, "mode", "a second mode of steps")

enum maq_source {
#define MAQ_SOURCE_ENUM(id, name, what) MAQ_SOURCE_##id,
    MAQ_SOURCE_LIST(MAQ_SOURCE_ENUM)
#undef MAQ_SOURCE_ENUM
        MAQ_SOURCE_COUNT
};
const char *maq_source_name(enum maq_source source);
const char *maq_source_text(enum maq_source source);

/* Whether a source that is not always shown varies at all. */
bool maq_variation_has(const struct maq_variation *v, enum maq_source source);
/* Only the sources whose bit is set: the others do not vary. */
struct maq_variation maq_variation_only(const struct maq_variation *v, uint32_t sources);

#endif
