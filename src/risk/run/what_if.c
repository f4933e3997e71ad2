/* SPDX-License-Identifier: Apache-2.0 */
/*
 * what_if.c - the same run with one thing changed, on the same failures; and the fewest spares that keep a promise.
 *
 * All variants use one seed, and a failure has the same address in each, so that their difference is far better known than
 * either of them.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "risk/codes.h"
#include "risk/run/model.h"

#define MOST_VARIANTS 16u
#define MOST_SPARES 65536u
#define HOPELESS 3.0   /* times the ideal length */
#define REPLICAS 2000u /* of a variant: differences are known better than the variants, on the same failures */

const char *maq_run_what_name(enum maq_run_what what)
{
    static const char *const names[] = {"checkpoint", "spares", "dp-replicas"};
    _Static_assert(MAQ_COUNT(names) == MAQ_WHAT_COUNT, "a name for each");
    return (unsigned)what < MAQ_WHAT_COUNT ? names[what] : "?";
}

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_RUN_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
}

/* --- variants --- */

static enum maq_status add(struct maq_run_variants *v, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    MAQ_ASSERT(v->n < MOST_VARIANTS);
    MAQ_TRY(maq_run_simulate(&v->results[v->n], opts, diag));
    v->n++;
    return MAQ_OK;
}

/* Around the best interval, by factors of two. */
static enum maq_status intervals(struct maq_run_variants *v, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    static const double times[] = {0.125, 0.25, 0.5, 1, 2, 4, 8};
    struct maq_run_model model;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_run_model_build(&model, opts, &arena, diag);
    maq_arena_fini(&arena);
    MAQ_TRY(status);
    if (isinf(model.optimal_interval_s))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RUN_OPTION, (struct maq_span){0}, NULL,
                             "without failures or without checkpoints there is no interval to choose");
    for (size_t i = 0; i < MAQ_COUNT(times); i++) {
        struct maq_run_opts o = *opts;
        o.interval_s = model.optimal_interval_s * times[i];
        MAQ_TRY(add(v, &o, diag));
    }
    return MAQ_OK;
}

/* From none to as many as are in repair at once in 99.9 % of the time. */
static enum maq_status spares(struct maq_run_variants *v, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    struct maq_run_model m;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_run_model_build(&m, opts, &arena, diag);
    double repair = m.n_causes > 0 ? m.causes[0].repair.mean_ns : 0;
    maq_arena_fini(&arena);
    MAQ_TRY(status);
    uint32_t most = maq_spares_quantile(m.loss_rate * (double)(m.nodes + m.shared_nodes), repair, 0.999);
    most = most < MOST_SPARES ? most : MOST_SPARES;
    for (uint32_t k = 0; k <= 6; k++) {
        struct maq_run_opts o = *opts;
        o.spares = (uint32_t)((uint64_t)most * k / 6);
        if (k == 0 || o.spares != (uint32_t)((uint64_t)most * (k - 1) / 6))
            MAQ_TRY(add(v, &o, diag));
    }
    return MAQ_OK;
}

/* What data-parallel replicas are good for: nothing, going on with fewer, going on at once. */
static enum maq_status recoveries(struct maq_run_variants *v, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    for (int k = 0; k < MAQ_RECOVERY_COUNT; k++) {
        struct maq_run_opts o = *opts;
        o.recovery = (enum maq_run_recovery)k;
        MAQ_TRY(add(v, &o, diag));
    }
    return MAQ_OK;
}

enum maq_status maq_run_what_if(struct maq_run_variants **out, const struct maq_run_opts *opts, enum maq_run_what what,
                                struct maq_diag *diag)
{
    static enum maq_status (*const kinds[])(struct maq_run_variants *, const struct maq_run_opts *,
                                            struct maq_diag *) = {intervals, spares, recoveries};
    MAQ_ASSERT((unsigned)what < MAQ_WHAT_COUNT);
    struct maq_run_variants *v = maq__calloc(sizeof *v);
    if (v)
        v->results = maq__calloc(MOST_VARIANTS * sizeof(struct maq_run_result *));
    if (!v || !v->results) {
        free(v);
        return no_memory(diag);
    }
    v->what = what;
    struct maq_run_opts o = *opts; /* a variant that is far too late need not be simulated to its end */
    if (!(o.give_up > 0))
        o.give_up = HOPELESS;
    if (o.replicas == 0)
        o.replicas = REPLICAS;
    enum maq_status status = kinds[what](v, &o, diag);
    if (status != MAQ_OK) {
        maq_run_variants_free(v);
        return status;
    }
    for (uint32_t i = 1; i < v->n; i++)
        if (v->results[i]->wall[2].value < v->results[v->best]->wall[2].value)
            v->best = i;
    *out = v;
    return MAQ_OK;
}

void maq_run_variants_free(struct maq_run_variants *variants)
{
    if (!variants)
        return;
    for (uint32_t i = 0; i < variants->n; i++)
        maq_run_result_free(variants->results[i]);
    free((void *)variants->results);
    free(variants);
}

/* --- a promise --- */

/* Whether it holds with n spares. A run that is late is given up: how late it is does not matter. */
static enum maq_status keeps(bool *kept, const struct maq_run_opts *opts, uint32_t n, struct maq_diag *diag)
{
    struct maq_run_opts o = *opts;
    struct maq_run_result *r = NULL;
    o.spares = n;
    o.give_up = fmax(1.1, 1.01 * o.promise_s / (o.step_s * o.steps));
    enum maq_status status =
        maq_run_simulate(&r, &o, NULL); /* the options have been checked: a simulation of them was reported */
    *kept = status == MAQ_OK && r->promise_met >= o.promise_share;
    maq_run_result_free(r);
    return status == MAQ_OK || status == MAQ_NO || status == MAQ_LIMIT ? MAQ_OK : no_memory(diag);
}

/* More spares are never worse on the same failures, so that halving finds the least number. */
enum maq_status maq_run_least_spares(uint32_t *least, const struct maq_run_opts *opts, struct maq_diag *diag)
{
    uint32_t low = 0, high = 1;
    bool kept = false;
    *least = UINT32_MAX;
    MAQ_TRY(keeps(&kept, opts, MOST_SPARES, diag));
    if (!kept)
        return MAQ_OK;
    MAQ_TRY(keeps(&kept, opts, 0, diag));
    if (kept) {
        *least = 0;
        return MAQ_OK;
    }
    for (;;) {
        MAQ_TRY(keeps(&kept, opts, high, diag));
        if (kept)
            break;
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        MAQ_TRY(keeps(&kept, opts, middle, diag));
        if (kept)
            high = middle;
        else
            low = middle;
    }
    *least = high;
    return MAQ_OK;
}
