/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repetitions.c - repetitions of one kernel, and when there are enough of them.
 *
 * Burst: after WARM_UPS launches that do not count, batches of BATCH launches, each timed by itself. Enough is, with m
 * the mean and s the standard deviation of n of them,
 *
 *   n >= FEWEST  and  s / (m sqrt(n)) <= target      or  n >= MOST  or  the time of the device exceeds LONGEST_S
 *
 * Sustained: launches in a row in slices of about SLICE_S, SUSTAIN_S in all: a device under load needs some seconds
 * until the power limit has pulled the clocks to where they stay. The second half counts; a slice's mean is one
 * repetition.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stat/summary.h"
#include "measure/plan.h"

#define WARM_UPS 5u
#define BATCH 10u
#define FEWEST 20u
#define MOST 1000u
#define LONGEST_S 5.0
_Static_assert(MOST + BATCH == MAQ_PROFILE_REPETITIONS, "room for the last batch");
#define SLICE_S 0.1
#define SUSTAIN_S 12.0
#define SLICES_MOST 4000u
#define TARGET_ERROR 0.005
#define PREPARE_S 0.05 /* tensors, plan of the library, first launch: an assumption, for the estimate alone */

static double target_of(const struct maq_profile_opts *opts)
{
    return opts->target_error > 0 ? opts->target_error : TARGET_ERROR;
}

double maq_profile_measure_estimate_s(double predicted_s, const struct maq_profile_opts *opts,
                                      const struct maq_device *device)
{
    if (opts->sustained)
        return PREPARE_S + SUSTAIN_S;
    double empty = opts->warm || !(device->mem_bps > 0) ? 0 : 2 * device->l2_bytes / device->mem_bps;
    double runs = (WARM_UPS + FEWEST + BATCH) * (predicted_s + empty);
    return PREPARE_S + (runs < LONGEST_S ? runs : LONGEST_S + WARM_UPS * predicted_s);
}

static double mean_square_error(const double *x, size_t n, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sum / (double)(n - 1) : 0;
}

/* Sorts x; *out does not keep it. */
static void summarize(struct maq_kernel_times *out, double *x, uint32_t n)
{
    double mean = maq_mean(x, n);
    out->repetition = NULL;
    out->n = n;
    out->stddev_s = sqrt(mean_square_error(x, n, mean));
    out->median_s = maq_quantile(x, n, 0.5);
    out->p90_s = maq_quantile(x, n, 0.9);
    out->min_s = maq_quantile(x, n, 0);
}

static bool burst(struct maq_kernel_times *times, double kept[MAQ_PROFILE_REPETITIONS],
                  const struct maq_profile_backend *b, const struct maq_profile_opts *opts, char why[MAQ_PROFILE_WHY])
{
    double x[MAQ_PROFILE_REPETITIONS], spent = 0;
    uint32_t n = 0;
    bool enough = false;
    if (!b->run(b->state, !opts->warm, WARM_UPS, x, why))
        return false;
    while (!enough) {
        if (!b->run(b->state, !opts->warm, BATCH, x + n, why))
            return false;
        for (uint32_t i = n; i < n + BATCH; i++)
            spent += x[i];
        n += BATCH;
        double mean = maq_mean(x, n), error = sqrt(mean_square_error(x, n, mean) / n);
        enough = (n >= FEWEST && error <= target_of(opts) * mean) || n >= MOST || spent > LONGEST_S;
    }
    memcpy(kept, x, n * sizeof *kept);
    summarize(times, x, n);
    times->repetition = kept;
    return true;
}

static bool sustained(struct maq_kernel_times *times, const struct maq_profile_backend *b, char why[MAQ_PROFILE_WHY])
{
    double once = 0, spent = 0;
    double *x = malloc(SLICES_MOST * sizeof *x);
    uint32_t n = 0, half = 0, launches = 1;
    snprintf(why, MAQ_PROFILE_WHY, "out of memory");
    bool good = x && b->run_on(b->state, launches, &once, why);
    while (good && once < SLICE_S / 4 && launches < 1u << 20) { /* how many make a slice */
        launches = once > 0 ? (uint32_t)fmin(1u << 20, ceil(launches * fmin(SLICE_S / once, 16))) : launches * 16;
        good = b->run_on(b->state, launches, &once, why);
        spent += once;
    }
    while (good && spent < SUSTAIN_S && n < SLICES_MOST) {
        good = b->run_on(b->state, launches, &once, why);
        x[n++] = once / launches;
        spent += once;
        half = spent < SUSTAIN_S / 2 ? n : half;
    }
    if (good && n == 0) /* one launch takes longer than all of it */
        x[n++] = once / launches;
    half = half < n ? half : n - 1;
    if (good)
        summarize(times, x + half, n - half);
    free(x);
    return good;
}

bool maq_profile_measure(struct maq_kernel_times *times, double kept[MAQ_PROFILE_REPETITIONS],
                         struct maq_profile_sense *sense, const struct maq_profile_backend *backend,
                         const struct maq_profile_opts *opts, char why[MAQ_PROFILE_WHY])
{
    *sense = (struct maq_profile_sense){0};
    why[0] = '\0';
    if (!(opts->sustained ? sustained(times, backend, why) : burst(times, kept, backend, opts, why)))
        return false;
    backend->sense(backend->state, sense);
    return true;
}
