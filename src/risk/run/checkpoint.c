/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - expected time of a run that saves and fails, and the interval that makes it least: maquette/checkpoint.h.
 *
 * With lambda = 1 / mtbf, a segment of length L = interval + save succeeds with p = e^(-lambda L). A failed attempt takes X, an
 * exponential time cut at L, and a recovery Y; the number of failed attempts is geometric. So
 *
 *   E[segment]   = (E[X | X < L] + E[Y]) q / p + L                       q = 1 - p
 *                = (mtbf + E[Y]) (e^(lambda L) - 1)
 *   Var[segment] = (q / p) (Var[X | X < L] + Var[Y]) + (q / p^2) (E[X | X < L] + E[Y])^2
 *   E[X | X < L] = mtbf - L p / q          Var[X | X < L] = mtbf^2 - L^2 p / q^2
 *
 * `paused`: Y is the recovery. `restarted`: Y is the time until an interval of that length passes without a failure, which is the
 * same formula without a recovery: E[Y] = mtbf (e^(lambda R) - 1).
 *
 * The best interval tau minimises (e^(lambda (tau + save)) - 1) / tau. Its derivative is zero where, with z = tau / mtbf,
 *
 *   -z - ln(1 - z) = save / mtbf
 *
 * which is tau = mtbf (1 + W0(-e^(-save/mtbf - 1))) with Lambert's function; solved in this form there is no cancellation near the
 * branch point, where all practical cases lie.
 */
#include "maquette/checkpoint.h"

#include <math.h>

#include "base/check.h"

/* Mean and variance of a time. */
struct moments {
    double mean, variance;
};

const char *maq_failure_clock_name(enum maq_failure_clock clock)
{
    static const char *const names[] = {"restarted", "paused", "queued"};
    _Static_assert(MAQ_COUNT(names) == MAQ_CLOCK_COUNT, "a name per convention");
    return (unsigned)clock < MAQ_CLOCK_COUNT ? names[clock] : "?";
}

/* An exponential time with mean m, given that it is below `end`. For a short end: uniform, by its series. */
static struct moments cut_exponential(double m, double end)
{
    double x = end / m;
    if (x < 1e-4)
        return (struct moments){end * (0.5 - x / 12), end * end * (1.0 / 12 - x * x / 240)};
    double q = -expm1(-x), p = exp(-x);
    return (struct moments){m - end * p / q, m * m - end * end * p / (q * q)};
}

/* An interval of `length` that begins anew after every failure and the recovery from it. */
static struct moments retried_interval(double m, double length, struct moments after)
{
    double odds = expm1(length / m); /* q / p: mean number of failed attempts */
    struct moments x = cut_exponential(m, length);
    double lost = x.mean + after.mean;
    return (struct moments){length + odds * lost,
                            odds * (x.variance + after.variance) + odds * (1 + odds) * lost * lost};
}

static struct moments recovery(const struct maq_checkpointing *c)
{
    struct moments none = {0, 0};
    if (c->clock == MAQ_CLOCK_RESTARTED && c->recover_s > 0)
        return retried_interval(c->mtbf_s, c->recover_s, none);
    return (struct moments){c->recover_s, 0};
}

/* Compound Poisson process with drift: the wall clock at which its value is `goal` for the first time. */
static struct maq_checkpoint_run queued(const struct maq_checkpointing *c, double work_s, double goal)
{
    double lost = c->recover_s + c->interval_s / 2 + c->persist_s, rate = 1 / c->mtbf_s;
    double square = lost * lost + c->interval_s * c->interval_s / 12, left = 1 - rate * lost;
    struct maq_checkpoint_run r = {.mean_s = (double)INFINITY, .sd_s = (double)INFINITY, .failures = (double)INFINITY};
    if (left > 0) {
        r.mean_s = goal / left;
        r.sd_s = sqrt(rate * goal * square / (left * left * left));
        r.failures = r.mean_s * rate;
    }
    r.useful = work_s / r.mean_s;
    return r;
}

/* Attempts gain N segments in X + Y; the time to gain K of them has this variance per segment for large K. */
static double reward_variance(const struct maq_checkpointing *c, double length, struct moments after)
{
    double m = c->mtbf_s, g = exp(-length / m), reach = exp(-c->persist_s / m), odds = g / -expm1(-length / m);
    double n_mean = reach * odds, n_square = reach * odds * (1 + 2 * odds);
    double xn = reach * (length * odds * (1 + odds) + (c->persist_s + m) * odds);
    double per = (m + after.mean) / n_mean;
    double v = m * m + after.variance + per * per * (n_square - n_mean * n_mean) - 2 * per * (xn - m * n_mean);
    return v / n_mean;
}

struct maq_checkpoint_run maq_checkpoint_run(const struct maq_checkpointing *c, double work_s)
{
    double segments = work_s / c->interval_s, length = c->interval_s + c->save_s;
    struct maq_checkpoint_run r = {.segments = segments};
    if (isinf(c->mtbf_s)) {
        r.mean_s = segments * length;
        r.useful = work_s / r.mean_s;
        return r;
    }
    if (c->clock == MAQ_CLOCK_QUEUED) {
        r = queued(c, work_s, segments * length);
        r.segments = segments;
        return r;
    }
    struct moments after = recovery(c), one = retried_interval(c->mtbf_s, length, after);
    double late = exp(c->persist_s / c->mtbf_s);
    r.mean_s = segments * one.mean * late;
    r.sd_s = sqrt(segments * (c->persist_s > 0 ? reward_variance(c, length, after) : one.variance));
    r.failures = segments * expm1(length / c->mtbf_s) * late;
    if (c->clock == MAQ_CLOCK_RESTARTED)
        r.failures *= exp(c->recover_s / c->mtbf_s);
    r.useful = work_s / r.mean_s;
    return r;
}

/* -z - ln(1 - z), which begins with z^2 / 2. */
static double distance(double z)
{
    if (z > 0.01)
        return -z - log1p(-z);
    double sum = 0;
    for (int k = 9; k >= 2; k--)
        sum = sum * z + 1.0 / k;
    return sum * z * z;
}

double maq_checkpoint_optimal(double mtbf_s, double save_s)
{
    if (isinf(mtbf_s))
        return mtbf_s;
    double y = save_s / mtbf_s;
    if (!(y > 0))
        return y == 0 ? 0 : (double)NAN;
    double z = sqrt(2 * y);
    z = z < 0.9 ? z : 1 - exp(-y - 1); /* where saving takes long, z is close to 1 */
    for (int i = 0; i < 60;
         i++) { /* Newton; the function is convex, so that it comes down from the right at the latest from step 2 */
        double next = z - (distance(z) - y) * (1 - z) / z;
        next = next < 1 ? next : (z + 1) / 2;
        if (fabs(next - z) <= 1e-16 * z)
            break;
        z = next;
    }
    return mtbf_s * z;
}

double maq_checkpoint_optimal_daly(double mtbf_s, double save_s)
{
    double x = save_s / (2 * mtbf_s);
    return x < 1 ? sqrt(2 * save_s * mtbf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s : mtbf_s;
}

double maq_checkpoint_optimal_young(double mtbf_s, double save_s)
{
    return sqrt(2 * save_s * mtbf_s);
}

double maq_checkpoint_ettr(const struct maq_checkpointing *c, double queue_s)
{
    return (1 - (queue_s + c->recover_s + c->interval_s / 2 + c->persist_s) / c->mtbf_s) /
           (1 + c->save_s / c->interval_s);
}

double maq_checkpoint_levels(double *interval_s, const double *mtbf_s, const double *save_s, size_t n)
{
    double share = 0;
    for (size_t i = 0; i < n; i++) {
        interval_s[i] = sqrt(2 * save_s[i] * mtbf_s[i]);
        share += sqrt(2 * save_s[i] / mtbf_s[i]);
    }
    return share;
}

double maq_checkpoint_verified(double mtbf_s, double silent_mtbf_s, double save_s, double verify_s)
{
    return sqrt((verify_s + save_s) / (1 / silent_mtbf_s + 1 / (2 * mtbf_s)));
}
