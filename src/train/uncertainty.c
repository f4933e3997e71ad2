/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty.c - the error and the 80 % interval of a step time.
 *
 * A prediction is wrong in two ways. Its kernels and collectives cost something else than the chain of providers
 * says; and its composition leaves things out: launch gaps, exposed communication, routing, stragglers. The first
 * comes with every cost as one standard deviation. Errors of one kind of item from one provider have one cause and
 * add up; those of different kinds do not know of each other:
 *
 *   chain^2 = sum over (kind, provider) of (sum over items of seconds * error)^2 / (sum of seconds)^2
 *
 * The second is learned from residuals of published training runs, as a function of what the step is made of (enum
 * maq_train_regime, shares x_k):
 *
 *   s^2 = s_0^2 + sum over k of (c_k x_k)^2                                    one standard deviation of ln(measured / predicted)
 *   80 % interval: step * exp(z_10 s) .. step * exp(z_90 s)
 *
 * s_0, c_k, z_10 and z_90 are in uncertainty_fit.h, written by tools/fit-train-error. z are quantiles of residuals of sources that
 * the coefficients had not seen, so that the interval holds for runs that are new; they are not -1.28 and 1.28 because errors have
 * heavy tails and what is left out always costs time.
 *
 * Memory has no such regimes in the few programs whose peak was published: its distribution is that of their measured / predicted,
 * and its interval the middle 80 %.
 */
#include <math.h>

#include "base/count.h"
#include "train/predict.h"
#include "train/uncertainty_fit.h"

static const struct {
    const char *name;
    double coefficient;
} regimes[MAQ_TRAIN_REGIME_COUNT] = {
#define MAQ_TRAIN_REGIME_ROW(id, name, what) [MAQ_TRAIN_REGIME_##id] = {name, MAQ_TRAIN_ERROR_##id},
    MAQ_TRAIN_REGIME_LIST(MAQ_TRAIN_REGIME_ROW)
#undef MAQ_TRAIN_REGIME_ROW
};

const char *maq_train_regime_name(enum maq_train_regime regime)
{
    return (unsigned)regime < MAQ_TRAIN_REGIME_COUNT ? regimes[regime].name : "?";
}

#define KINDS ((unsigned)MAQ_OP_KIND_COUNT + (unsigned)MAQ_COLL_KIND_COUNT)

static unsigned kind_of(const struct maq_item *it)
{
    return it->is_coll ? (unsigned)MAQ_OP_KIND_COUNT + it->coll.kind : it->op.kind;
}

/* Shares of costed time: error of the chain, kernels bounded by memory, grouped products. */
static void add_items(double x[MAQ_TRAIN_REGIME_COUNT], const struct maq_blueprint *bp, const double *times)
{
    double error[KINDS][MAQ_PROVIDER_COUNT] = {{0}}, total = 0, memory = 0, grouped = 0, squares = 0;
    for (uint32_t i = 1; i < bp->items->n; i++) {
        const struct maq_item *it = &bp->items->at[i];
        double t = times[i] * it->dur_ns;
        if (t <= 0)
            continue;
        total += t;
        error[kind_of(it)][it->cost.provider] += t * (double)it->cost.error;
        memory += !it->is_coll && maq_op_work(&it->op).matrix_flop <= 0 ? t : 0;
        grouped += !it->is_coll && it->op.kind == MAQ_OP_GROUPED_GEMM ? t : 0;
    }
    if (total <= 0)
        return;
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned p = 0; p < MAQ_PROVIDER_COUNT; p++)
            squares += error[k][p] * error[k][p];
    x[MAQ_TRAIN_REGIME_CHAIN] = sqrt(squares) / total;
    x[MAQ_TRAIN_REGIME_MEMORY] = memory / total;
    x[MAQ_TRAIN_REGIME_EXPERTS] = grouped / total;
}

/* Shares of the step: exposed communication by the links that its group uses, bubble, launch gaps. */
static void add_buckets(double x[MAQ_TRAIN_REGIME_COUNT], const struct maq_train_result *r)
{
    static const struct {
        enum maq_bucket bucket;
        enum maq_group_kind group;
    } exposed[] = {{MAQ_BUCKET_TP, MAQ_GROUP_TP},
                   {MAQ_BUCKET_CP, MAQ_GROUP_CP},
                   {MAQ_BUCKET_EP, MAQ_GROUP_EP},
                   {MAQ_BUCKET_PP, MAQ_GROUP_PP},
                   {MAQ_BUCKET_DP, MAQ_GROUP_DP_CP}};
    if (!(r->step_s > 0))
        return;
    for (size_t i = 0; i < sizeof exposed / sizeof exposed[0]; i++) {
        bool far = r->job->groups[exposed[i].group].domains > 1;
        x[far ? MAQ_TRAIN_REGIME_FAR : MAQ_TRAIN_REGIME_NEAR] += r->bucket_s[exposed[i].bucket] / r->step_s;
    }
    x[MAQ_TRAIN_REGIME_BUBBLE] = r->bucket_s[MAQ_BUCKET_BUBBLE] / r->step_s;
    x[MAQ_TRAIN_REGIME_HOST] = r->bucket_s[MAQ_BUCKET_HOST] / r->step_s;
}

/* Measured over predicted memory at 0, 1 / LAST, ... 1; the distribution is straight between them. */
static const double memory_quantiles[] = MAQ_TRAIN_MEMORY_QUANTILES;
enum { LAST = MAQ_COUNT(memory_quantiles) - 1 };

double maq_train_memory_quantile(double p)
{
    double at = fmin(fmax(p, 0), 1) * LAST;
    size_t i = at < LAST ? (size_t)at : LAST - 1;
    return memory_quantiles[i] + (at - (double)i) * (memory_quantiles[i + 1] - memory_quantiles[i]);
}

double maq_train_fit_probability(double needed_bytes, double capacity_bytes)
{
    const double *q = memory_quantiles, x = needed_bytes > 0 ? capacity_bytes / needed_bytes : HUGE_VAL;
    size_t i = 0;
    if (!(x >= q[0]))
        return 0;
    while (i < LAST && x >= q[i + 1])
        i++;
    return i == LAST ? 1 : ((double)i + (x - q[i]) / (q[i + 1] - q[i])) / LAST;
}

void maq_step_error(struct maq_train_result *r, const struct maq_blueprint *bp, const double *times)
{
    double squares = MAQ_TRAIN_ERROR_BASE * MAQ_TRAIN_ERROR_BASE;
    for (int k = 0; k < MAQ_TRAIN_REGIME_COUNT; k++)
        r->regime[k] = 0;
    add_items(r->regime, bp, times);
    add_buckets(r->regime, r);
    for (int k = 0; k < MAQ_TRAIN_REGIME_COUNT; k++)
        squares += regimes[k].coefficient * r->regime[k] * regimes[k].coefficient * r->regime[k];
    r->error = sqrt(squares);
    r->step_low_s = r->step_s * exp(MAQ_TRAIN_ERROR_Z10 * r->error);
    r->step_high_s = r->step_s * exp(MAQ_TRAIN_ERROR_Z90 * r->error);
    maq_train_memory_interval(&r->memory_low, &r->memory_high);
    r->fit_probability = 1; /* one error is common to all stages */
    for (uint32_t s = 0; s < r->n_stages; s++)
        r->fit_probability =
            fmin(r->fit_probability, maq_train_fit_probability(r->stages[s].needed_bytes, r->stages[s].capacity_bytes));
}

void maq_train_memory_interval(double *low, double *high)
{
    *low = MAQ_TRAIN_MEMORY_LOW;
    *high = MAQ_TRAIN_MEMORY_HIGH;
}
