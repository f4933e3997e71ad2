/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - checkpoint, failure, restart: the closed forms.
 *
 * Failures come as a Poisson process with mean distance `mtbf_s` of the whole job. Work is cut into segments: `interval_s` of
 * work and then a save that stops the job for `save_s`. A save may go on behind the job for `persist_s` more, and counts only
 * from then on. A failure costs what was done since the last save that counts, and `recover_s`: detection, a new node, start,
 * reading the checkpoint. Whether failures strike during a recovery is a convention, and publications differ:
 *
 *   queued     failures come by the wall clock and each costs one whole recovery, one after another. To first order in the loss
 *              this is "1 - failures x (recovery + half an interval)", the form that fleets publish
 *   paused     nothing fails during a recovery
 *   restarted  a failure during a recovery begins it anew (Daly, "A higher order estimate of the optimum checkpoint interval for
 *              restart dumps", FGCS 2006)
 *
 * Everything here is a pure function of doubles; times are seconds; a result that does not exist is NaN. A job that fails so
 * often that it never ends takes INFINITY.
 */
#ifndef MAQUETTE_CHECKPOINT_H
#define MAQUETTE_CHECKPOINT_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_failure_clock { MAQ_CLOCK_RESTARTED, MAQ_CLOCK_PAUSED, MAQ_CLOCK_QUEUED, MAQ_CLOCK_COUNT };
MAQ_API const char *maq_failure_clock_name(enum maq_failure_clock clock); /* "restarted", "paused", "queued" */

struct maq_checkpointing {
    double mtbf_s;     /* of the job; INFINITY: nothing fails */
    double interval_s; /* work between saves */
    double save_s;     /* stops the job */
    double persist_s;  /* behind the job, until the save counts */
    double recover_s;
    enum maq_failure_clock clock;
};

/* What a run of `work_s` seconds of useful work takes. */
struct maq_checkpoint_run {
    double mean_s, sd_s; /* of the wall clock */
    double failures;     /* mean number; those during recoveries too */
    double segments;
    double useful; /* work_s over mean_s: the effective training time ratio */
};

/*
 * Mean and standard deviation. `paused` and `restarted` are exact without `persist_s`; with it the mean is that of a long run (times
 * e^(persist/mtbf), because an attempt gains e^(-persist/mtbf) / (e^(segment/mtbf) - 1) segments) and the deviation its
 * renewal-reward limit. `queued` is the first passage of a compound Poisson process with drift, with half an interval lost on average.
 */
MAQ_API struct maq_checkpoint_run maq_checkpoint_run(const struct maq_checkpointing *c, double work_s);

/* The q-quantile of the wall clock (0 < q < 1), from the transform of a segment; without `persist_s`, not for `queued`: NaN. */
MAQ_API double maq_checkpoint_quantile(const struct maq_checkpointing *c, double work_s, double q);

/* The interval with the least expected time: exactly, by Daly's series, by Young's first order sqrt(2 save mtbf). It depends on neither
 * recovery nor persistence. INFINITY when nothing fails, 0 when a save costs nothing. */
MAQ_API double maq_checkpoint_optimal(double mtbf_s, double save_s);
MAQ_API double maq_checkpoint_optimal_daly(double mtbf_s, double save_s);
MAQ_API double maq_checkpoint_optimal_young(double mtbf_s, double save_s);

/* The published ratio (1 - (queue + restart + interval/2) / mtbf) / (1 + save / interval): good while losses are small
 * (Kokolis et al., HPCA 2025, arXiv 2410.21680). */
MAQ_API double maq_checkpoint_ettr(const struct maq_checkpointing *c, double queue_s);

/*
 * Levels of checkpoints, each for failures of its own: to first order level i is taken every sqrt(2 save_i mtbf_i), and all of them
 * together cost the share sum of sqrt(2 save_i / mtbf_i) (Di, Bouguerra, Bautista-Gomez, Cappello, IPDPS 2014). Returns that
 * share; interval_s[i] of level i.
 */
MAQ_API double maq_checkpoint_levels(double *interval_s, const double *mtbf_s, const double *save_s, size_t n);

/* Work between saves that are verified first, against silent errors (mean distance silent_mtbf_s, found by the next verification) and
 * failures: sqrt((verify + save) / (1/silent + 1/(2 mtbf))), first order (Benoit, Cavelan, Robert, Sun, IPDPS 2016). */
MAQ_API double maq_checkpoint_verified(double mtbf_s, double silent_mtbf_s, double save_s, double verify_s);

/*
 * Nodes in repair when `failures_per_s` of them fail and each is away for `repair_s` on average: Poisson with the product as
 * its mean, whatever the law of repair (M/G/infinity). The least number of spares that is enough a share q of the time.
 */
MAQ_API uint32_t maq_spares_quantile(double failures_per_s, double repair_s, double q);

#ifdef __cplusplus
}
#endif
#endif
