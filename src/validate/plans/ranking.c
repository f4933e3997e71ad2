/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranking.c - does the prediction put measured plans of one job in the order in which they ran?
 *
 * A table has one plan per row: degrees, microbatch, where the pipeline is cut, and the measured step. Laid over a job, each
 * becomes a job of its own. What a planner needs of a prediction is the order, so the measures are those of ranking:
 *
 *   tau     Kendall's tau-b of predicted and measured step times
 *   rho     Spearman's coefficient of the same
 *   regret  measured step of the plan that is predicted to be best / best measured step - 1
 *
 * A column `predicted_s` holds what another program predicted of the same plans; it is measured alike.
 *
 * `layer_partition` counts pipeline layers as the program that ran the plan does: [0, 15, 30] are two stages of 15 entries,
 * of which some in front of the first transformer layer (embedding, transpositions), behind the last one (norm, output) and, in a
 * pyramid, between its levels are none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/codes.h"
#include "validate/input.h"
#include "validate/stat.h"

enum { TP, DP, PP, MBS, PARTITION, MEASURED, RIVAL, COLUMNS };
static const struct maq_csv_wanted wanted[COLUMNS] = {
    {"tp", true, "tensor_model_parallel_size"},
    {"dp", true, "data_parallel_size"},
    {"pp", true, "pipeline_model_parallel_size"},
    {"micro_batch", true, "micro_batch_size|mbs"},
    {"layer_partition", false, NULL},
    {"measured_s", true, NULL},
    {"predicted_s", false, NULL},
};

/* Entries of a partition that are layers of the model, one range of them. */
struct layer_range {
    int64_t first, end;
};
enum { RANGES = 64 };

struct plans_owner {
    struct maq_validate_plan_ranking result; /* first: a pointer to it is one to the owner */
    struct maq_arena arena;
    struct maq_validate_plan *rows;
    struct maq_csv csv;
    uint32_t at[COLUMNS];
    int32_t layers, devices; /* of the job as it stands */
    struct layer_range ranges[RANGES];
    uint32_t n_ranges;
};

/* ---- cells ---- */

static struct maq_str cell(const struct plans_owner *o, uint32_t row, int column)
{
    return maq_str_trim(maq_csv_get(&o->csv, row, o->at[column]));
}

/* A whole number from 1; 0 when it is none. */
static int32_t count_of(struct maq_str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || n > MAQ_VALIDATE_PLAN_MOST)
            return 0;
        n = n * 10 + (s.ptr[i] - '0');
    }
    return n <= MAQ_VALIDATE_PLAN_MOST ? (int32_t)n : 0;
}

/* Seconds; NaN for an empty cell, `inf` and anything that is no time. */
static double seconds_of(struct maq_str s)
{
    double x;
    size_t n = maq__number_prefix(s);
    bool good = n > 0 && n == s.len && maq__number_scaled(&x, s, 0) && isfinite(x) && x > 0;
    return good ? x : (double)NAN;
}

/* How many of the model's layers lie in entries [from, to) of a partition. */
static int32_t layers_between(const struct plans_owner *o, int64_t from, int64_t to)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < o->n_ranges; i++) {
        int64_t first = from > o->ranges[i].first ? from : o->ranges[i].first;
        int64_t last = to < o->ranges[i].end ? to : o->ranges[i].end;
        n += last > first ? last - first : 0;
    }
    return (int32_t)n;
}

/*
 * "[0, 15, 30]" as layers per stage, "13,11"; NULL with the reason in *why. An empty cell leaves the split to the job.
 */
static const char *layout_of(struct plans_owner *o, struct maq_str s, int32_t pp, const char **why)
{
    struct maq_buf b;
    int64_t last = 0, value = 0;
    int32_t edges = 0;
    bool digits = false, ascends = true;
    maq_buf_init(&b, 1 << 16);
    for (size_t i = 0; i <= s.len; i++) {
        char c = i < s.len ? s.ptr[i] : ']';
        if (c >= '0' && c <= '9' && value <= MAQ_VALIDATE_PLAN_MOST) {
            value = value * 10 + (c - '0');
            digits = true;
        } else if (digits) {
            ascends &= edges == 0 ? value == 0 : value > last;
            if (edges > 0)
                maq_buf_addf(&b, "%s%d", edges > 1 ? "," : "", (int)layers_between(o, last, value));
            last = value;
            value = 0;
            edges++;
            digits = false;
        }
    }
    if (s.len > 0 && (edges != pp + 1 || !ascends || last < o->ranges[o->n_ranges - 1].end))
        *why = edges != pp + 1 ? "layer_partition has not one entry more than stages"
               : !ascends      ? "layer_partition does not ascend from 0"
                               : "layer_partition ends before the last layer";
    const char *text = b.failed || *why ? NULL : maq_arena_strdup(&o->arena, (struct maq_str){b.ptr, b.len});
    if (!text && !*why)
        *why = "out of memory";
    maq_buf_fini(&b);
    return text;
}

/* ---- one plan ---- */

#define OVERRIDES 16

struct overrides {
    struct maq_override list[OVERRIDES];
    size_t n;
};

static void set(struct overrides *o, const char *path, const char *value)
{
    MAQ_ASSERT(o->n < OVERRIDES);
    o->list[o->n++] = (struct maq_override){"the table", path, value};
}

/* A key of the plan; its alias in the job's document is taken away. */
static void set_count(struct overrides *o, struct maq_arena *arena, const char *path, const char *alias, int32_t value)
{
    const char *text = maq_arena_printf(arena, "%d", (int)value);
    set(o, alias, "null");
    set(o, path, text ? text : "null");
}

static const char *first_error(const struct maq_diag *diag, struct maq_arena *arena)
{
    const char *text = "refused";
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->severity == MAQ_ERROR) {
            text = maq_arena_strdup(arena, maq_diag_at(diag, i)->msg);
            break;
        }
    return text ? text : "out of memory";
}

static void predict(struct plans_owner *o, struct maq_validate_plan *row, const char *job)
{
    struct overrides with = {.n = 0};
    struct maq_loaded_job *loaded = NULL;
    struct maq_train_result *result = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (!diag) {
        row->why = "out of memory";
        return;
    }
    set_count(&with, &o->arena, "plan.tensor_model_parallel_size", "plan.tp", row->tp);
    set_count(&with, &o->arena, "plan.data_parallel_size", "plan.dp", row->dp);
    set_count(&with, &o->arena, "plan.pipeline_model_parallel_size", "plan.pp", row->pp);
    set_count(&with, &o->arena, "plan.micro_batch_size", "plan.mbs", row->mbs);
    if (row->pp > 1 && row->layout[0] != '\0') {
        set(&with, "plan.layout", "null");
        set(&with, "plan.pipeline_model_parallel_layout",
            maq_arena_printf(&o->arena, "\"%s\"", row->layout)); /* quoted: a list of numbers is text here */
    }
    enum maq_status status = maq_job_load(&loaded, job, with.list, with.n, diag);
    if (status == MAQ_OK)
        status = maq_train_predict(&result, maq_job_get(loaded), diag);
    if (status == MAQ_OK) {
        row->predicted_s = result->step_s;
        row->error = result->step_s / row->measured_s - 1;
        row->fits = result->fits;
    } else {
        row->why = first_error(diag, &o->arena);
    }
    maq_train_result_free(result);
    maq_job_free(loaded);
    maq_diag_free(diag);
}

static void fill_row(struct plans_owner *o, uint32_t i, const char *job, const struct maq_diag *diag)
{
    struct maq_validate_plan *row = &o->rows[i];
    *row = (struct maq_validate_plan){.line = diag ? maq_diag_place(diag, maq_csv_span(&o->csv, i, 0)).line : 0,
                                      .tp = count_of(cell(o, i, TP)),
                                      .dp = count_of(cell(o, i, DP)),
                                      .pp = count_of(cell(o, i, PP)),
                                      .mbs = count_of(cell(o, i, MBS)),
                                      .measured_s = seconds_of(cell(o, i, MEASURED)),
                                      .rival_s = seconds_of(cell(o, i, RIVAL)),
                                      .predicted_s = (double)NAN,
                                      .error = (double)NAN,
                                      .layout = "",
                                      .why = ""};
    if (row->tp < 1 || row->dp < 1 || row->pp < 1 || row->mbs < 1) {
        row->why = "a degree or the microbatch is no count";
        return;
    }
    if (isnan(row->measured_s)) {
        row->why = "not measured";
        return;
    }
    const char *why = NULL, *layout = layout_of(o, cell(o, i, PARTITION), row->pp, &why);
    if (!layout) {
        row->why = why;
        return;
    }
    row->layout = layout;
    predict(o, row, job);
}

/* ---- order ---- */

static bool compared(const struct maq_validate_plan *row)
{
    return !row->filtered && row->why[0] == '\0';
}

static double guess_of(const struct maq_validate_plan *row, bool rival)
{
    return rival ? row->rival_s : row->predicted_s;
}

/* Of the plans that are predicted to be best (several may be equal) the first in the table is taken. */
static double regret_of(const struct maq_validate_plan_ranking *r, bool rival)
{
    const struct maq_validate_plan *taken = NULL, *best = NULL;
    for (uint32_t i = 0; i < r->n_rows; i++) {
        const struct maq_validate_plan *row = &r->rows[i];
        if (!compared(row) || isnan(guess_of(row, rival)))
            continue;
        if (!taken || guess_of(row, rival) < guess_of(taken, rival))
            taken = row;
        if (!best || row->measured_s < best->measured_s)
            best = row;
    }
    return taken ? taken->measured_s / best->measured_s - 1 : (double)NAN;
}

static bool measure(struct maq_validate_order *out, const struct maq_validate_plan_ranking *r, bool rival)
{
    struct maq_pair *pairs = maq__malloc(((size_t)r->n_rows + 1) * sizeof *pairs);
    double *errors = maq__malloc(((size_t)r->n_rows + 1) * sizeof *errors);
    uint32_t n = 0;
    bool good = pairs && errors;
    for (uint32_t i = 0; good && i < r->n_rows; i++) {
        double guess = guess_of(&r->rows[i], rival);
        if (!compared(&r->rows[i]) || isnan(guess))
            continue;
        errors[n] = guess / r->rows[i].measured_s - 1;
        pairs[n++] = (struct maq_pair){r->rows[i].measured_s, guess};
    }
    *out = (struct maq_validate_order){.rows = n};
    good = good && maq_spearman_rho(&out->rho, pairs, n) && maq_kendall_tau(&out->tau, pairs, n);
    if (good) {
        out->regret = regret_of(r, rival);
        out->error = maq__validate_stat(errors, n);
    }
    free(pairs);
    free(errors);
    return good;
}

/* ---- the whole ---- */

/* "3-14,41-52": ascending ranges of entries, each with its ends. */
static bool read_ranges(struct plans_owner *o, struct maq_str text)
{
    int64_t entries = 0;
    while (text.ptr) {
        struct maq_str part, from, to;
        text = maq_str_split(text, ',', &part);
        to = maq_str_split(maq_str_trim(part), '-', &from);
        int64_t first, last;
        if (o->n_ranges == RANGES || !to.ptr || !maq_str_to_i64(&first, maq_str_trim(from)) ||
            !maq_str_to_i64(&last, maq_str_trim(to)) || first < 0 || last < first || last > MAQ_VALIDATE_PLAN_MOST ||
            (o->n_ranges > 0 && first < o->ranges[o->n_ranges - 1].end))
            return false;
        o->ranges[o->n_ranges++] = (struct layer_range){first, last + 1};
        entries += last + 1 - first;
    }
    return entries == o->layers;
}

static enum maq_status find_layers(struct plans_owner *o, const struct maq_validate_plan_ranking_opts *opts,
                                   struct maq_diag *diag)
{
    int64_t before = opts->layers_before;
    if (!opts->layers_at) {
        o->ranges[o->n_ranges++] = (struct layer_range){before, before + o->layers};
        return MAQ_OK;
    }
    if (read_ranges(o, maq_str_of(opts->layers_at)))
        return MAQ_OK;
    return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_VALIDATE_JOB, (struct maq_span){0},
                         "ascending ranges of entries with their ends, such as 3-14,41-52",
                         "'%s' does not say where the %d layers of the job are", opts->layers_at, (int)o->layers);
}

/* The job as it stands: its faults are told once, not for every row. */
static enum maq_status read_job(struct plans_owner *o, const struct maq_validate_plan_ranking_opts *opts,
                                struct maq_diag *diag)
{
    struct maq_loaded_job *loaded = NULL;
    if (!opts->job)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_VALIDATE_JOB, (struct maq_span){0},
                             "--job FILE: model, cluster, framework and batch that the plans share",
                             "plans need the job that they are plans of");
    MAQ_TRY(maq_job_load(&loaded, opts->job, NULL, 0, diag));
    o->layers = (int32_t)maq_job_get(loaded)->model.num_layers;
    o->devices = (int32_t)maq_job_get(loaded)->cluster.devices;
    maq_job_free(loaded);
    MAQ_TRY(find_layers(o, opts, diag));
    o->result.job = maq_arena_strdup(&o->arena, maq_str_of(opts->job));
    return o->result.job ? MAQ_OK : maq_no_memory(diag, "the plans");
}

static enum maq_status run(struct plans_owner *o, const char *name, struct maq_str text,
                           const struct maq_validate_plan_ranking_opts *opts, struct maq_diag *diag)
{
    struct maq_validate_plan_ranking *r = &o->result;
    const struct maq_validate_opts filters = {.size = sizeof filters, .where = opts->where, .n_where = opts->n_where};
    MAQ_TRY(read_job(o, opts, diag));
    MAQ_TRY(maq_csv_parse(&o->csv, name, text, &o->arena, diag));
    MAQ_TRY(maq_csv_bind(o->at, &o->csv, wanted, COLUMNS, diag));
    r->n_rows = o->csv.n_rows;
    r->table = maq_arena_strdup(&o->arena, maq_str_of(name));
    bool *keep = MAQ_ARENA_NEW(&o->arena, bool, r->n_rows + 1);
    o->rows = MAQ_ARENA_NEW(&o->arena, struct maq_validate_plan, r->n_rows + 1);
    if (!keep || !o->rows || !r->table)
        return maq_no_memory(diag, "the plans");
    MAQ_TRY(maq__validate_filter(keep, &o->csv, &filters, diag));
    r->rows = o->rows;
    for (uint32_t i = 0; i < r->n_rows; i++) {
        fill_row(o, i, opts->job, diag);
        o->rows[i].filtered = !keep[i];
        r->n_kept += keep[i];
        r->n_too_large += compared(&o->rows[i]) && !o->rows[i].fits;
    }
    if (!measure(&r->own, r, false) || !measure(&r->rival, r, true))
        return maq_no_memory(diag, "the plans");
    if (r->own.rows == 0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_VALIDATE_NOTHING, (struct maq_span){0}, "--json says why of each row",
                     "no row of %s could be compared", name);
    return MAQ_OK;
}

enum maq_status maq_validate_plan_ranking_text(struct maq_validate_plan_ranking **out, const char *name,
                                               struct maq_str text, const struct maq_validate_plan_ranking_opts *opts,
                                               struct maq_diag *diag)
{
    struct maq_validate_plan_ranking_opts given = MAQ_VALIDATE_PLAN_RANKING_OPTS_INIT;
    struct plans_owner *o = maq__calloc(sizeof *o);
    if (!o)
        return maq_no_memory(diag, "the plans");
    if (opts)
        memcpy(&given, opts, opts->size < sizeof given ? opts->size : sizeof given);
    maq_arena_init(&o->arena, 0);
    enum maq_status status = run(o, name, text, &given, diag);
    if (status != MAQ_OK) {
        maq_validate_plan_ranking_free(&o->result);
        return status;
    }
    *out = &o->result;
    return MAQ_OK;
}

enum maq_status maq_validate_plan_ranking(struct maq_validate_plan_ranking **out, const char *path,
                                          const struct maq_validate_plan_ranking_opts *opts, struct maq_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    MAQ_TRY(maq__validate_read(&text, &len, path, diag));
    enum maq_status status = maq_validate_plan_ranking_text(out, path, (struct maq_str){text, len}, opts, diag);
    free(text);
    return status;
}

void maq_validate_plan_ranking_free(struct maq_validate_plan_ranking *result)
{
    struct plans_owner *o = (struct plans_owner *)result;
    if (!o)
        return;
    maq_arena_fini(&o->arena);
    free(o);
}
