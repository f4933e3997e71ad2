/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - executed plans against their prediction from a foreign profile.
 *
 * Three kinds of row are left out, and counted: plans without a measured step; plans whose step is all reduction, since then one of the
 * two numbers is not what it says; and of plans with the same three measurements to the last digit all but the one with the most
 * replicas, since two plans do not take the same time to the microsecond (the published set has one plan of each kind).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "maquette/validate.h"
#include "train/profiled/profiled.h"
#include "validate/codes.h"
#include "validate/plans/files.h"
#include "validate/stat.h"

/* `result` comes first: a pointer to it is one to the owner. */
struct owner {
    struct maq_validate_plans result;
    struct maq_arena arena;
    struct maq_profile_dir *profile;
    struct maq_plan_row *rows;
    struct maq_mixed_measured *measured; /* [rows] */
    struct maq_diag *diag;
};

static enum maq_status no_memory(struct owner *o)
{
    return maq_no_memory(o->diag, "plans");
}

const char *maq_plan_judge_name(enum maq_plan_judge judge)
{
    return judge == MAQ_PLAN_JUDGE_SAILOR ? "sailor" : "ours";
}

/* ---- rows ---- */

static void describe(struct maq_plan_row *row, const struct maq_mixed_plan *plan)
{
    row->pipelines = plan->n_pipelines;
    row->micro_batch = plan->micro_batch;
    row->global_batch = plan->global_batch;
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        const struct maq_mixed_pipeline *line = &plan->pipelines[p];
        row->stages = line->n_stages > row->stages ? line->n_stages : row->stages;
        for (uint32_t s = 0; s < line->n_stages; s++) {
            uint32_t n = line->stages[s].n_replicas;
            row->replicas = n > row->replicas ? n : row->replicas;
            for (uint32_t j = 0; j < n && line->stages[s].on_devices_of < 0; j++)
                row->devices += line->stages[s].replicas[j].tp * line->stages[s].replicas[j].cp;
        }
    }
}

static struct maq_plan_point compare(double measured, double predicted)
{
    return (struct maq_plan_point){measured, predicted, measured > 0 ? predicted / measured - 1 : (double)NAN};
}

static enum maq_status predict(struct owner *o, struct maq_plan_row *row, const struct maq_mixed_plan *plan)
{
    struct maq_mixed_cost cost = {0};
    bool sailor = o->result.judge == MAQ_PLAN_JUDGE_SAILOR;
    MAQ_TRY((sailor ? maq_mixed_judge_sailor : maq_mixed_predict)(&cost, plan, o->profile, o->diag));
    row->points[MAQ_PLAN_TIME] = compare(plan->measured.step_s, cost.step_s);
    row->points[MAQ_PLAN_MEMORY] = compare(plan->measured.memory_bytes, cost.memory_bytes);
    row->measured_reduce_s = plan->measured.reduce_s;
    row->pipeline_s = cost.pipeline_s;
    row->reduce_s = cost.reduce_s;
    row->update_s = cost.update_s;
    return MAQ_OK;
}

static enum maq_status run_row(struct owner *o, uint32_t i, const struct maq_plan_file *file)
{
    struct maq_loaded_mixed_plan *loaded;
    struct maq_plan_row *row = &o->rows[i];
    MAQ_TRY(maq_mixed_plan_parse(&loaded, file->name, file->text, o->diag));
    const struct maq_mixed_plan *plan = maq_mixed_plan_get(loaded);
    *row = (struct maq_plan_row){.file = file->name, .why = ""};
    o->measured[i] = plan->measured;
    describe(row, plan);
    enum maq_status status = MAQ_OK;
    if (!(plan->measured.step_s > 0))
        row->why = "no measured step";
    else if (plan->measured.reduce_s >= plan->measured.step_s)
        row->why = "its step is all reduction";
    else
        status = predict(o, row, plan);
    if (status != MAQ_OK)
        maq_diag_add(o->diag, MAQ_NOTE, MAQ_CODE_PLAN_FILES, (struct maq_span){0}, NULL, "this was %s", file->name);
    maq_mixed_plan_free(loaded);
    return status;
}

static bool same_measurement(const struct maq_mixed_measured *a, const struct maq_mixed_measured *b)
{
    return memcmp(&a->step_s, &b->step_s, sizeof a->step_s) == 0 &&
           memcmp(&a->reduce_s, &b->reduce_s, sizeof a->reduce_s) == 0 &&
           memcmp(&a->memory_bytes, &b->memory_bytes, sizeof a->memory_bytes) == 0;
}

static void drop_repeated(struct owner *o)
{
    for (uint32_t i = 0; i < o->result.n_rows; i++)
        for (uint32_t j = i + 1; j < o->result.n_rows; j++) {
            struct maq_plan_row *a = &o->rows[i], *b = &o->rows[j];
            if (a->why[0] == '\0' && b->why[0] == '\0' && same_measurement(&o->measured[i], &o->measured[j]))
                (a->replicas < b->replicas ? a : b)->why = "it repeats the measurement of another plan";
        }
}

/* ---- groups ---- */

/* Length of the folder that a file's group is named by: without `N4/`, the number of nodes. */
static size_t folder_len(const char *file)
{
    const char *end = strrchr(file, '/');
    if (!end)
        return 0;
    size_t n = (size_t)(end - file), from = n;
    while (from > 0 && file[from - 1] != '/')
        from--;
    if (from > 0 && from + 1 < n && file[from] == 'N' && strspn(file + from + 1, "0123456789") == n - from - 1)
        return from - 1;
    return n;
}

/* Bytes that all folders begin with, up to a slash. */
static size_t common_folder(const struct owner *o)
{
    const char *first = o->rows[0].file;
    size_t common = folder_len(first);
    for (uint32_t i = 1; i < o->result.n_rows; i++) {
        size_t n = folder_len(o->rows[i].file), k = 0;
        while (k < common && k < n && first[k] == o->rows[i].file[k])
            k++;
        bool whole = k == common && (k == n || o->rows[i].file[k] == '/');
        while (!whole && k > 0 && first[k - 1] != '/')
            k--;
        common = whole ? k : k > 0 ? k - 1 : 0;
    }
    return common;
}

static enum maq_status name_groups(struct owner *o)
{
    size_t common = common_folder(o);
    for (uint32_t i = 0; i < o->result.n_rows; i++) {
        const char *file = o->rows[i].file;
        size_t n = folder_len(file), from = common < n && file[common] == '/' ? common + 1 : common;
        from = from < n ? from : n;
        o->rows[i].group = n > from ? maq_arena_strdup(&o->arena, (struct maq_str){file + from, n - from}) : "plans";
        if (!o->rows[i].group)
            return no_memory(o);
    }
    return MAQ_OK;
}

static void summarize(struct maq_plan_group *g, const struct owner *o, const char *name, double *scratch)
{
    g->name = name ? name : "total";
    for (int m = 0; m < MAQ_PLAN_METRIC_COUNT; m++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < o->result.n_rows; i++) {
            const struct maq_plan_row *row = &o->rows[i];
            if (row->why[0] == '\0' && !isnan(row->points[m].error) && (!name || strcmp(name, row->group) == 0))
                scratch[n++] = row->points[m].error;
        }
        g->stat[m] = maq__validate_stat(scratch, n);
    }
}

static enum maq_status make_groups(struct owner *o)
{
    uint32_t n = o->result.n_rows;
    struct maq_plan_group *groups = MAQ_ARENA_NEW(&o->arena, struct maq_plan_group, n + 1);
    double *scratch = MAQ_ARENA_NEW(&o->arena, double, n);
    if (!groups || !scratch)
        return no_memory(o);
    MAQ_TRY(name_groups(o));
    for (uint32_t i = 0; i < n; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = strcmp(o->rows[i].group, o->rows[j].group) == 0;
        if (!seen)
            summarize(&groups[o->result.n_groups++], o, o->rows[i].group, scratch);
        o->result.n_compared += o->rows[i].why[0] == '\0';
    }
    summarize(&groups[o->result.n_groups++], o, NULL, scratch);
    o->result.groups = groups;
    return MAQ_OK;
}

/* ---- the whole ---- */

static enum maq_status run(struct owner *o, const char *path)
{
    struct maq_plan_files files;
    MAQ_TRY(maq_profile_dir_load(&o->profile, o->result.profile, o->diag));
    MAQ_TRY(maq__plan_files(&files, path, &o->arena, o->diag));
    o->rows = MAQ_ARENA_NEW(&o->arena, struct maq_plan_row, files.n);
    o->measured = MAQ_ARENA_NEW(&o->arena, struct maq_mixed_measured, files.n);
    if (!o->rows || !o->measured)
        return no_memory(o);
    o->result.rows = o->rows;
    o->result.n_rows = files.n;
    for (uint32_t i = 0; i < files.n; i++)
        MAQ_TRY(run_row(o, i, &files.at[i]));
    drop_repeated(o);
    return make_groups(o);
}

enum maq_status maq_validate_plans(struct maq_validate_plans **out, const char *path,
                                   const struct maq_validate_plans_opts *opts, struct maq_diag *diag)
{
    if (!opts || !opts->profile)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_PLAN_PROFILE, (struct maq_span){0},
                             "--profile DIR: a folder in the layout of docs/validate-plans.md",
                             "plans are predicted from a profile, and there is none");
    struct owner *o = maq__calloc(sizeof *o);
    if (!o)
        return maq_no_memory(diag, "plans");
    maq_arena_init(&o->arena, 0);
    o->diag = diag;
    o->result.judge = opts->judge;
    o->result.path = maq_arena_strdup(&o->arena, maq_str_of(path));
    o->result.profile = maq_arena_strdup(&o->arena, maq_str_of(opts->profile));
    enum maq_status status = o->result.path && o->result.profile ? run(o, o->result.path) : no_memory(o);
    maq_profile_dir_free(o->profile);
    o->profile = NULL;
    if (status == MAQ_OK)
        *out = &o->result;
    else
        maq_validate_plans_free(&o->result);
    return status;
}

void maq_validate_plans_free(struct maq_validate_plans *result)
{
    struct owner *o = (struct owner *)result;
    if (!o)
        return;
    maq_arena_fini(&o->arena);
    free(o);
}
