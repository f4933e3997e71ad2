/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_pools.c - collects durations in pools by key, separates waiting and slow runs, and fits a law to the ratios
 * of each operation. See kernel_pools.h.
 */
#include "risk/fit/kernel_pools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/law_fit.h"
#include "base/stat/summary.h"
#include "base/text.h"
#include "risk/fit/series.h"

#define MOST_POOLS (1u << 20)
#define MOST_HELD (1u << 16) /* runs of a pool; later ones count but their durations are not kept */
#define MOST_FITTED 20000u   /* ratios of an operation that its law is fitted to */

void maq_kernel_pools_init(struct maq_kernel_pools *pools, struct maq_arena *arena)
{
    *pools = (struct maq_kernel_pools){.arena = arena};
}

void maq_kernel_pools_fini(struct maq_kernel_pools *pools)
{
    for (uint32_t i = 0; i < pools->n; i++)
        free(pools->at[i].value_s);
    free(pools->at);
    free(pools->table);
    *pools = (struct maq_kernel_pools){0};
}

static uint32_t hash_of(struct maq_str s)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * 16777619u;
    return h;
}

static uint32_t *slot_of(const struct maq_kernel_pools *p, struct maq_str key)
{
    uint32_t mask = p->table_size - 1, i = hash_of(key) & mask;
    while (p->table[i] != 0 && !maq_str_is(key, p->at[p->table[i] - 1].key))
        i = (i + 1) & mask;
    return &p->table[i];
}

static enum maq_status grow(struct maq_kernel_pools *p)
{
    uint32_t size = p->size ? p->size * 2 : 256;
    if (size > MOST_POOLS)
        return MAQ_LIMIT;
    struct maq_kernel_pool *at = maq__realloc(p->at, size * sizeof *at);
    if (!at)
        return MAQ_NO_MEMORY;
    p->at = at;
    uint32_t *table = maq__calloc((size_t)size * 2 * sizeof *table);
    if (!table)
        return MAQ_NO_MEMORY;
    free(p->table);
    p->table = table;
    p->size = size;
    p->table_size = size * 2;
    for (uint32_t i = 0; i < p->n; i++)
        *slot_of(p, maq_str_of(p->at[i].key)) = i + 1;
    return MAQ_OK;
}

/* The pool of a key; *fresh: it has no name yet. */
static enum maq_status find_pool(struct maq_kernel_pool **out, bool *fresh, struct maq_kernel_pools *p,
                                 struct maq_str key)
{
    if (p->n == p->size)
        MAQ_TRY(grow(p));
    uint32_t *slot = slot_of(p, key);
    *fresh = *slot == 0;
    if (*fresh) {
        struct maq_kernel_pool *new = &p->at[p->n];
        *new = (struct maq_kernel_pool){.key = maq_arena_strdup(p->arena, key)};
        if (!new->key)
            return MAQ_NO_MEMORY;
        *slot = ++p->n;
    }
    *out = &p->at[*slot - 1];
    return MAQ_OK;
}

static enum maq_status add_run(struct maq_kernel_pool *pool, double seconds)
{
    if (pool->n == pool->size && pool->size < MOST_HELD) {
        uint32_t size = pool->size ? pool->size * 2 : 16;
        double *value = maq__realloc(pool->value_s, size * sizeof *value);
        if (!value)
            return MAQ_NO_MEMORY;
        pool->value_s = value;
        pool->size = size;
    }
    if (pool->n < pool->size)
        pool->value_s[pool->n++] = seconds;
    pool->runs++;
    pool->sum_s += seconds;
    return MAQ_OK;
}

enum maq_status maq_kernel_pools_add(struct maq_kernel_pools *p, struct maq_str key,
                                     const struct maq_kernel_words *words, double seconds)
{
    struct maq_kernel_pool *pool;
    bool fresh;
    MAQ_TRY(find_pool(&pool, &fresh, p, key));
    if (fresh) {
        pool->waits = maq_kernel_waits(words);
        maq_kernel_name(pool->name, words);
    }
    return add_run(pool, seconds);
}

enum maq_status maq_kernel_pools_add_named(struct maq_kernel_pools *p, struct maq_str key, const char *name,
                                           double seconds)
{
    struct maq_kernel_pool *pool;
    bool fresh;
    MAQ_TRY(find_pool(&pool, &fresh, p, key));
    if (fresh)
        maq__snprintf(pool->name, sizeof pool->name, "%s", name);
    return add_run(pool, seconds);
}

/* --- an operation ------------------------------------------------------------------------------------------------------ */

struct ratio {
    double value, weight;
    uint32_t at;
};

static int by_ratio(const void *pa, const void *pb)
{
    const struct ratio *a = pa, *b = pb;
    if (a->value < b->value || b->value < a->value)
        return a->value < b->value ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

/* Runs of a pool that did not wait: how many of the ascending values. */
static uint32_t without_waiting(const struct maq_kernel_pool *pool, const double *value, const double *even)
{
    struct maq_sample s = {pool->n, value, even};
    if (!pool->waits || !(value[0] > 0) || !(value[0] < value[pool->n - 1]))
        return pool->n;
    uint32_t kept = pool->n - (uint32_t)(maq_series_modes(&s).share * pool->n + 0.5);
    return kept >= MAQ_POOL_LEAST ? kept : pool->n;
}

struct gathering {
    struct maq_risk_kernel *out;
    struct ratio *ratio;
    uint32_t n, size;
    uint64_t waiting, held;
};

static enum maq_status gather_pool(struct gathering *g, const struct maq_kernel_pool *pool, struct maq_arena *scratch)
{
    double *value = MAQ_ARENA_NEW(scratch, double, pool->n), *even = MAQ_ARENA_NEW(scratch, double, pool->n);
    if (!value || !even)
        return MAQ_NO_MEMORY;
    memcpy(value, pool->value_s, pool->n * sizeof *value);
    qsort(value, pool->n, sizeof *value, ascending);
    for (uint32_t i = 0; i < pool->n; i++)
        even[i] = 1.0 / pool->n;
    uint32_t kept = without_waiting(pool, value, even);
    memcpy(even, value, kept * sizeof *even);
    double median = maq_quantile(even, kept, 0.5);
    if (g->n + kept > g->size) {
        uint32_t size = (g->n + kept) * 2;
        struct ratio *more = maq__realloc(g->ratio, size * sizeof *more);
        if (!more)
            return MAQ_NO_MEMORY;
        g->ratio = more;
        g->size = size;
    }
    for (uint32_t i = 0; i < kept && median > 0; i++, g->n++)
        g->ratio[g->n] = (struct ratio){value[i] / median, median, g->n};
    g->waiting += pool->n - kept;
    g->held += pool->n;
    return MAQ_OK;
}

/* The nearest law of a body of ratios; every k-th of them where there are very many. */
static enum maq_status fit_body(struct maq_risk_kernel *out, const struct ratio *body, uint32_t n,
                                struct maq_arena *scratch)
{
    uint32_t step = n / MOST_FITTED + 1, kept = 0;
    double *value = MAQ_ARENA_NEW(scratch, double, n), *weight = MAQ_ARENA_NEW(scratch, double, n), sum = 0, square = 0;
    struct maq_fitted_law *fitted = MAQ_ARENA_NEW(scratch, struct maq_fitted_law, MAQ_FITTED_LAWS);
    if (!value || !weight || !fitted)
        return MAQ_NO_MEMORY;
    for (uint32_t i = step / 2; i < n; i += step, kept++) {
        value[kept] = body[i].value;
        weight[kept] = body[i].weight;
        sum += body[i].weight;
    }
    for (uint32_t i = 0; i < kept; i++) {
        weight[i] /= sum;
        square += weight[i] * weight[i];
    }
    uint32_t laws = maq_fit_laws(fitted, &(struct maq_sample){kept, value, weight}, scratch);
    out->floor = 0.886 * sqrt(square);
    bool accepted = laws > 0 && fitted[0].distance <= out->floor;
    struct maq_law recorded = maq_law_pool(value, kept);
    double *below = weight; /* sums of the weights, in their place */
    for (uint32_t i = 1; i < kept; i++)
        below[i] += below[i - 1];
    recorded.below = below;
    out->law = accepted ? fitted[0].name : "pool";
    out->n_quantiles = MAQ_RISK_KERNEL_QUANTILES;
    for (uint32_t i = 0; i < out->n_quantiles; i++)
        out->quantile[i] = maq_law_quantile(accepted ? &fitted[0].law : &recorded, (i + 0.5) / out->n_quantiles);
    out->distance = laws > 0 ? fitted[0].distance : 0;
    return MAQ_OK;
}

static enum maq_status conclude(struct gathering *g, struct maq_arena *scratch)
{
    struct maq_risk_kernel *out = g->out;
    double sum[2] = {0}, first[2] = {0}, square = 0;
    uint32_t body = 0;
    out->waiting_share = g->held > 0 ? (double)g->waiting / (double)g->held : 0;
    out->slow_ratio = 1;
    out->law = "-";
    if (g->n == 0)
        return MAQ_OK;
    qsort(g->ratio, g->n, sizeof *g->ratio, by_ratio);
    for (uint32_t i = 0; i < g->n; i++) {
        int slow = g->ratio[i].value > MAQ_SERIES_SPIKE;
        body += !slow;
        sum[slow] += g->ratio[i].weight;
        first[slow] += g->ratio[i].weight * g->ratio[i].value;
    }
    double mean = first[0] / sum[0];
    for (uint32_t i = 0; i < body; i++)
        square += g->ratio[i].weight * (g->ratio[i].value - mean) * (g->ratio[i].value - mean);
    out->measured = true;
    out->cv = sqrt(square / sum[0]) / mean;
    out->slow_share = sum[1] / (sum[0] + sum[1]);
    out->slow_ratio = sum[1] > 0 ? first[1] / sum[1] : 1;
    return fit_body(out, g->ratio, body, scratch);
}

static struct maq_risk_kernel *kernel_of(struct maq_risk_record *out, const char *name, struct maq_arena *arena)
{
    for (uint32_t i = 0; i < out->n_kernels; i++)
        if (strcmp(out->kernel[i].name, name) == 0)
            return &out->kernel[i];
    struct maq_risk_kernel *k = &out->kernel[out->n_kernels];
    *k = (struct maq_risk_kernel){.name = maq_arena_strdup(arena, maq_str_of(name)), .slow_ratio = 1};
    out->n_kernels += k->name != NULL;
    return k->name ? k : NULL;
}

static int by_time(const void *pa, const void *pb)
{
    const struct maq_risk_kernel *a = pa, *b = pb;
    if (a->share < b->share || b->share < a->share)
        return a->share > b->share ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum maq_status sum_kernel(struct maq_risk_kernel *k, const struct maq_kernel_pools *pools)
{
    struct gathering g = {.out = k};
    struct maq_arena scratch;
    enum maq_status status = MAQ_OK;
    maq_arena_init(&scratch, 0);
    for (uint32_t i = 0; i < pools->n && status == MAQ_OK; i++)
        if (strcmp(pools->at[i].name, k->name) == 0 && pools->at[i].n >= MAQ_POOL_LEAST)
            status = gather_pool(&g, &pools->at[i], &scratch);
    if (status == MAQ_OK)
        status = conclude(&g, &scratch);
    free(g.ratio);
    maq_arena_fini(&scratch);
    return status;
}

enum maq_status maq_kernel_pools_sum(struct maq_risk_record *out, const struct maq_kernel_pools *pools,
                                     struct maq_arena *arena)
{
    double sum = 0;
    out->kernel = MAQ_ARENA_NEW(arena, struct maq_risk_kernel, pools->n + 1);
    if (!out->kernel)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < pools->n; i++) {
        struct maq_risk_kernel *k = kernel_of(out, pools->at[i].name, arena);
        if (!k)
            return MAQ_NO_MEMORY;
        k->runs += pools->at[i].runs;
        k->pools++;
        k->share += pools->at[i].sum_s;
        sum += pools->at[i].sum_s;
    }
    for (uint32_t i = 0; i < out->n_kernels; i++) {
        out->kernel[i].share = sum > 0 ? out->kernel[i].share / sum : 0;
        MAQ_TRY(sum_kernel(&out->kernel[i], pools));
    }
    qsort(out->kernel, out->n_kernels, sizeof *out->kernel, by_time);
    return MAQ_OK;
}
