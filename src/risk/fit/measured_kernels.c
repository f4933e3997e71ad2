/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured_kernels.c - the variation of operations, from the file of `maquette profile`.
 *
 * Bursts time each repetition by itself and are read; what was measured sustained is means of launches in a row and is not. Where
 * the file has the repetitions, each measurement is a pool, and its law that of a trace's pools (kernel_pools.h). Files of form 1
 * have of each measurement the number of repetitions, their median, 90th percentile and standard deviation alone; so have imported
 * tables:
 *
 *   body    sigma = ln(p90 / median) / 1.2816 of each measurement, a lognormal's; CV^2 = exp(sigma^2) - 1, averaged with the weight
 *           of the time measured, n x median
 *   slow    what the standard deviation has beyond the body's: V = sd^2 / median^2 - CV^2. The least share of n repetitions that
 *           can be slow is one: ratio 1 + sqrt(n V), counted where it is above 1.5, as in `risk fit`
 *
 * Repetitions on one idle GPU leave out what a job adds: heat, neighbours, the network. It is the part of a kernel's own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cost/measured/store.h"
#include "risk/codes.h"
#include "risk/fit/kernel_pools.h"
#include "risk/fit/records.h"
#include "risk/fit/series.h"

#define P90 1.2815515655446004
#define LEAST_REPETITIONS 10u

struct sums {
    double weight, square, runs, slow, slow_ratio;
};

static const char *name_of(const struct maq_kernel_row *row)
{
    return row->is_coll ? maq_coll_kind_name((enum maq_coll_kind)row->coll.kind)
                        : maq_op_kind_name((enum maq_op_kind)row->op.kind);
}

static void add_row(struct sums *s, const struct maq_kernel_times *t)
{
    double sigma = log(t->p90_s / t->median_s) / P90, body = expm1(sigma * sigma), weight = t->n * t->median_s;
    double beyond = t->stddev_s * t->stddev_s / (t->median_s * t->median_s) - body;
    double ratio = beyond > 0 ? 1 + sqrt(t->n * beyond) : 1;
    s->weight += weight;
    s->square += weight * body;
    s->runs += t->n;
    if (ratio > MAQ_SERIES_SPIKE) {
        s->slow += 1;
        s->slow_ratio += ratio;
    }
}

static int by_time(const void *pa, const void *pb)
{
    const struct maq_risk_kernel *a = pa, *b = pb;
    if (a->share < b->share || b->share < a->share)
        return a->share > b->share ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool is_read(const struct maq_kernel_row *row)
{
    return row->mode == MAQ_KERNEL_BURST && row->times.n >= LEAST_REPETITIONS;
}

/* Every repetition into the pool of its measurement; *seconds: of all of them. */
static enum maq_status add_repetitions(struct maq_kernel_pools *pools, double *seconds,
                                       const struct maq_kernel_rows *rows)
{
    char key[32];
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct maq_kernel_times *t = &rows->at[i].times;
        maq__snprintf(key, sizeof key, "%u", i);
        for (uint32_t k = 0; is_read(&rows->at[i]) && t->repetition && k < t->n; k++) {
            if (!(t->repetition[k] > 0)) /* below what the clock sees */
                continue;
            MAQ_TRY(maq_kernel_pools_add_named(pools, maq_str_of(key), name_of(&rows->at[i]), t->repetition[k]));
            *seconds += t->repetition[k];
        }
    }
    return MAQ_OK;
}

/* Operations without repetitions from their summaries, behind those that have some: out->kernel[from..]. */
static enum maq_status sum_rows(struct maq_risk_record *out, double seconds, const struct maq_kernel_rows *rows,
                                struct maq_arena *arena)
{
    struct sums *sums = MAQ_ARENA_NEW(arena, struct sums, out->n_kernels + rows->n + 1);
    struct maq_risk_kernel *kernel = MAQ_ARENA_NEW(arena, struct maq_risk_kernel, out->n_kernels + rows->n + 1);
    double all = seconds;
    uint32_t from = out->n_kernels;
    if (!sums || !kernel)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < from; k++) {
        kernel[k] = out->kernel[k];
        kernel[k].share *= seconds;
    }
    out->kernel = kernel;
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct maq_kernel_row *row = &rows->at[i];
        const char *name = name_of(row);
        uint32_t k = 0;
        if (!is_read(row))
            continue;
        while (k < out->n_kernels && strcmp(out->kernel[k].name, name) != 0)
            k++;
        if (k < from) /* measurements of it have repetitions: better than any summary */
            continue;
        if (k == out->n_kernels)
            out->kernel[out->n_kernels++] = (struct maq_risk_kernel){.name = name, .law = "-", .measured = true};
        add_row(&sums[k], &row->times);
        out->kernel[k].pools++;
    }
    for (uint32_t k = from; k < out->n_kernels; k++) {
        struct maq_risk_kernel *o = &out->kernel[k];
        o->cv = sqrt(sums[k].square / sums[k].weight);
        o->runs = (uint64_t)sums[k].runs;
        o->slow_share = sums[k].slow / sums[k].runs;
        o->slow_ratio = sums[k].slow > 0 ? sums[k].slow_ratio / sums[k].slow : 1;
        o->share = sums[k].weight;
        all += sums[k].weight;
    }
    for (uint32_t k = 0; k < out->n_kernels; k++)
        out->kernel[k].share /= all;
    qsort(out->kernel, out->n_kernels, sizeof *out->kernel, by_time);
    return MAQ_OK;
}

enum maq_status maq_profile_read(struct maq_risk_record *out, const char *path, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    struct maq_kernel_rows rows;
    struct maq_kernel_pools pools;
    double seconds = 0;
    MAQ_TRY(maq_kernel_repetitions_read(&rows, path, arena, diag));
    out->measured = true;
    maq_kernel_pools_init(&pools, arena);
    enum maq_status status = add_repetitions(&pools, &seconds, &rows);
    if (status == MAQ_OK)
        status = maq_kernel_pools_sum(out, &pools, arena);
    maq_kernel_pools_fini(&pools);
    if (status == MAQ_OK)
        status = sum_rows(out, seconds, &rows, arena);
    if (status == MAQ_LIMIT)
        return maq_diag_fail(status, diag, MAQ_CODE_RISK_LIMIT, (struct maq_span){0}, NULL,
                             "%s: more measurements than can be held", path);
    MAQ_TRY(status);
    if (out->n_kernels == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHORT, (struct maq_span){0},
                             "maquette profile --mode burst measures some",
                             "%s: none of %u measurements is a burst of %u repetitions or more", path, rows.n,
                             LEAST_REPETITIONS);
    return MAQ_OK;
}
