/* SPDX-License-Identifier: Apache-2.0 */
/* inference.c - `validate serve`: every row of a table of measured serving runs, on a few threads. */
#include "validate/serve/inference.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "validate/codes.h"
#include "validate/input.h"
#include "validate/stat.h"

#define MOST_THREADS 64u

struct owner {
    struct maq_arena arena;
    char *text;
};

struct work {
    const struct maq_inference_row *rows;
    struct maq_inference_prediction *out;
    uint32_t n;
    _Atomic uint32_t *next;
    struct maq_arena arena;
};

static void *predict(void *of)
{
    struct work *w = of;
    for (uint32_t i; (i = atomic_fetch_add(w->next, 1)) < w->n;)
        if (!w->rows[i].left_out)
            maq_inference_predict(&w->out[i], &w->rows[i], &w->arena);
    return NULL;
}

/* The arenas of the workers hold names that predictions point to: they end with the result. */
static void predict_all(const struct maq_inference_row *rows, struct maq_inference_prediction *out, uint32_t n,
                        uint32_t threads, struct work *workers)
{
    pthread_t ids[MOST_THREADS];
    _Atomic uint32_t next = 0;
    uint32_t started = 0;
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (struct work){.rows = rows, .out = out, .n = n, .next = &next};
        maq_arena_init(&workers[i].arena, 0);
    }
    while (started + 1 < threads && pthread_create(&ids[started], NULL, predict, &workers[started + 1]) == 0)
        started++;
    predict(&workers[0]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
}

/* ---- comparing ---- */

static const char *keep(struct maq_arena *a, struct maq_str s)
{
    char *text = maq_arena_strdup(a, s);
    return text ? text : "";
}

static void compare(struct maq_validate_serve *r, struct maq_arena *a, const struct maq_inference_row *row,
                    const struct maq_inference_prediction *p)
{
    const double measured[] = {row->tpot_s, row->ttft_s, row->tokens_per_s},
                 predicted[] = {p->tpot_s, p->ttft_s, p->tokens_per_s};
    for (int m = 0; m < MAQ_VALIDATE_SERVE_METRICS; m++) {
        if (measured[m] <= 0 || predicted[m] <= 0 || (m == MAQ_VALIDATE_SERVE_THROUGHPUT && row->tpot_s > 0))
            continue;
        struct maq_validate_serve_row *to = &r->rows[r->n++];
        *to = (struct maq_validate_serve_row){.id = keep(a, row->id),
                                              .source = keep(a, row->source),
                                              .framework = keep(a, row->framework),
                                              .version = keep(a, row->version),
                                              .model = keep(a, row->model),
                                              .device = keep(a, maq_str_of(p->device ? p->device : "")),
                                              .kind = row->kind,
                                              .precision = keep(a, row->precision),
                                              .complete = row->version.len > 0 && row->precision.len > 0,
                                              .tp = row->tp,
                                              .pp = row->pp > 1 ? row->pp : 1,
                                              .ep = row->ep,
                                              .dp = row->dp,
                                              .isl = row->isl,
                                              .osl = row->osl,
                                              .load = row->load,
                                              .metric = (enum maq_validate_serve_metric)m,
                                              .measured = measured[m],
                                              .predicted = predicted[m],
                                              .error = predicted[m] / measured[m] - 1};
    }
}

static void leave_out(struct maq_validate_serve *r, const char *why)
{
    uint32_t i = 0;
    while (i < r->n_left_out && strcmp(r->left_out[i].why, why) != 0)
        i++;
    if (i == MAQ_VALIDATE_SERVE_REASONS)
        return;
    if (i == r->n_left_out)
        r->left_out[r->n_left_out++].why = why;
    r->left_out[i].rows++;
}

static bool is_of(const struct maq_validate_serve_row *row, const struct maq_validate_serve_group *g)
{
    return strcmp(row->kind, g->kind) == 0 && row->metric == g->metric && row->complete == g->complete;
}

/* Of the rows of a group, whose errors these are: predicted / measured - 1. */
static double share_inside(const struct maq_validate_serve_group *g, const double *errors, uint32_t n)
{
    double low, high, inside = 0;
    if (strncmp(g->kind, "serving", 7) != 0 || g->metric == MAQ_VALIDATE_SERVE_THROUGHPUT)
        return (double)NAN;
    maq_serve_interval(&low, &high, g->metric == MAQ_VALIDATE_SERVE_TTFT ? MAQ_SERVE_TTFT : MAQ_SERVE_TPOT);
    for (uint32_t i = 0; i < n; i++)
        inside += low * (1 + errors[i]) <= 1 && high * (1 + errors[i]) >= 1;
    return inside / n;
}

/* Errors of the rows of a kind and metric. */
static void summarize(struct maq_validate_serve *r, struct maq_arena *a)
{
    double *errors = MAQ_ARENA_NEW(a, double, r->n + 1);
    r->groups = MAQ_ARENA_NEW(a, struct maq_validate_serve_group, 64);
    if (!errors || !r->groups)
        return;
    static const char *const kinds[] = {"serving", "static_batch", "offline_max_throughput", "serving_saturated"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int m = 0; m < MAQ_VALIDATE_SERVE_METRICS; m++)
            for (int complete = 1; complete >= 0; complete--) {
                struct maq_validate_serve_group g = {
                    .kind = kinds[k], .metric = (enum maq_validate_serve_metric)m, .complete = complete != 0};
                uint32_t n = 0;
                for (uint32_t i = 0; i < r->n; i++)
                    if (is_of(&r->rows[i], &g))
                        errors[n++] = r->rows[i].error;
                if (n == 0)
                    continue;
                g.inside = share_inside(&g, errors, n);
                g.stat = maq__validate_stat(errors, n);
                r->groups[r->n_groups++] = g;
            }
}

static enum maq_status fill(struct maq_validate_serve *r, struct owner *owner, const struct maq_csv *csv,
                            const bool *kept, uint32_t threads)
{
    struct maq_arena *a = &owner->arena;
    struct maq_inference_row *rows = MAQ_ARENA_NEW(a, struct maq_inference_row, csv->n_rows + 1);
    struct maq_inference_prediction *out = MAQ_ARENA_NEW(a, struct maq_inference_prediction, csv->n_rows + 1);
    struct work *workers = MAQ_ARENA_NEW(a, struct work, MOST_THREADS);
    r->rows = MAQ_ARENA_NEW(a, struct maq_validate_serve_row, (size_t)csv->n_rows * MAQ_VALIDATE_SERVE_METRICS + 1);
    if (!rows || !out || !workers || !r->rows)
        return MAQ_NO_MEMORY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < csv->n_rows; i++)
        if (kept[i])
            maq_inference_read(&rows[n++], csv, i, a);
    r->n_table = n;
    predict_all(rows, out, n, threads, workers);
    for (uint32_t i = 0; i < n; i++) {
        const char *why = rows[i].left_out ? rows[i].left_out : out[i].why_not;
        if (why)
            leave_out(r, why);
        else
            compare(r, a, &rows[i], &out[i]);
    }
    summarize(r, a);
    for (uint32_t i = 0; i < threads; i++)
        maq_arena_fini(&workers[i].arena);
    return MAQ_OK;
}

enum maq_status maq_validate_serve(struct maq_validate_serve **out, const char *path,
                                   const struct maq_validate_opts *given, struct maq_diag *diag)
{
    struct maq_validate_opts opts = maq__validate_opts(given);
    struct owner *owner = calloc(1, sizeof *owner);
    struct maq_validate_serve *r = calloc(1, sizeof *r);
    struct maq_csv csv;
    size_t len = 0;
    enum maq_status status = owner && r ? MAQ_OK : maq_no_memory(diag, "a table");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = opts.threads > 0 ? opts.threads : cores > 0 ? (uint32_t)cores : 1;
    if (owner)
        maq_arena_init(&owner->arena, 0);
    if (status == MAQ_OK)
        status = maq__validate_read(&owner->text, &len, path, diag);
    if (status == MAQ_OK)
        status = maq_csv_parse(&csv, path, (struct maq_str){owner->text, len}, &owner->arena, diag);
    if (status == MAQ_OK) {
        bool *kept = MAQ_ARENA_NEW(&owner->arena, bool, csv.n_rows + 1);
        status = kept ? maq__validate_filter(kept, &csv, &opts, diag) : maq_no_memory(diag, "a table");
        if (status == MAQ_OK)
            status = fill(r, owner, &csv, kept, threads < MOST_THREADS ? threads : MOST_THREADS);
    }
    if (r)
        r->owner = owner;
    if (status != MAQ_OK) {
        maq_validate_serve_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

void maq_validate_serve_free(struct maq_validate_serve *r)
{
    struct owner *owner = r ? r->owner : NULL;
    if (owner) {
        maq_arena_fini(&owner->arena);
        free(owner->text);
    }
    free(owner);
    free(r);
}
