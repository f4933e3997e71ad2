/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - predicts every row of every table under a path.
 *
 * A file is one table of one device and library: it is read, predicted and forgotten, but for its errors. Files are
 * independent, so threads take them in turn.
 */
#include "validate/kernels/run.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "cost/fitted/table.h"
#include "spec/cannot_read.h"
#include "validate/codes.h"

#define MAX_DEPTH 3
#define MAX_THREADS 64
#define TABLE_NAME "SYSTEM/OP__TABLE__FRAMEWORK__VERSION.csv[.gz], for example h100_sxm/gemm__gemm__vllm__0.24.0.csv.gz"

const char *maq_validate_kernels_skip(size_t i)
{
    static const char *const texts[] = {
#define SKIP_TEXT(name, text) [MAQ_KERNEL_SKIP_##name] = (text),
        MAQ_KERNEL_SKIP_LIST(SKIP_TEXT)
#undef SKIP_TEXT
    };
    return i < MAQ_KERNEL_SKIP_COUNT ? texts[i] : NULL;
}

/* ---- which files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum maq_status add_file(struct maq_kernel_owner *o, const char *path, bool alone)
{
    struct maq_kernel_table table;
    struct maq_str system;
    if (!maq_kernel_table_name(&table, &system, path, &o->arena)) {
        o->result.n_other++;
        return !alone ? MAQ_OK
                      : maq_diag_fail(MAQ_BAD_INPUT, o->diag, MAQ_CODE_KERNEL_FILE, (struct maq_span){0}, TABLE_NAME,
                                      "%s is not named like a table of kernels that can be read", path);
    }
    if (o->n_files == o->size) {
        uint32_t size = o->size ? o->size * 2 : 64;
        struct maq_kernel_file *files = maq__realloc(o->files, size * sizeof *files);
        if (!files)
            return maq_no_memory(o->diag, "the rows");
        o->files = files;
        o->size = size;
    }
    o->files[o->n_files++] = (struct maq_kernel_file){.path = path};
    return MAQ_OK;
}

static enum maq_status add_path(struct maq_kernel_owner *o, const char *path, int depth);

static enum maq_status add_folder(struct maq_kernel_owner *o, DIR *folder, const char *path, int depth)
{
    const char *names[4096] = {NULL};
    size_t n = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL && n < sizeof names / sizeof names[0];)
        if (e->d_name[0] != '.') {
            names[n] = maq_arena_printf(&o->arena, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", e->d_name);
            if (!names[n++])
                return maq_no_memory(o->diag, "the rows");
        }
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++)
        MAQ_TRY(add_path(o, names[i], depth + 1));
    return MAQ_OK;
}

#define TABLES "a table of kernels or a folder of them, as docs/validate.md has them"

static enum maq_status add_path(struct maq_kernel_owner *o, const char *path, int depth)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return maq_cannot_read(o->diag, path, TABLES, errno);
    if (!S_ISDIR(st.st_mode))
        return add_file(o, path, depth == 0);
    if (depth > MAX_DEPTH)
        return MAQ_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return maq_cannot_read(o->diag, path, TABLES, errno);
    enum maq_status status = add_folder(o, folder, path, depth);
    closedir(folder);
    return status;
}

static enum maq_status refuse_nothing(const struct maq_kernel_owner *o)
{
    if (o->result.n_other == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, o->diag, MAQ_CODE_KERNEL_FILE, (struct maq_span){0}, TABLE_NAME,
                             "there is no table of kernels in %s: it has no files", o->result.path);
    return maq_diag_fail(MAQ_BAD_INPUT, o->diag, MAQ_CODE_KERNEL_FILE, (struct maq_span){0}, TABLE_NAME,
                         "there is no table of kernels in %s: of %u file%s none is named like one", o->result.path,
                         o->result.n_other, o->result.n_other == 1 ? "" : "s");
}

/* ---- filters ---- */

static const char *const filter_columns[] = {"op", "device", "library", "table", "kernel", "dtype"};
enum { BY_OP, BY_DEVICE, BY_LIBRARY, BY_TABLE, BY_KERNEL, BY_DTYPE, BY_COUNT };

static enum maq_status check_filters(const struct maq_kernel_owner *o)
{
    enum maq_status status = MAQ_OK;
    for (size_t f = 0; f < o->opts.n_where; f++) {
        char show[MAQ_SHOW_SIZE];
        bool known = false;
        for (int c = 0; c < BY_COUNT; c++)
            known |= strcmp(o->opts.where[f].column, filter_columns[c]) == 0;
        if (!known)
            status = maq_diag_fail(MAQ_BAD_INPUT, o->diag, MAQ_CODE_CSV_FILTER, (struct maq_span){0},
                                   "op, device, library, table, kernel, dtype", "kernels have no '%s' to filter by",
                                   maq_str_show(show, maq_str_of(o->opts.where[f].column)));
    }
    return status;
}

static bool passes(const struct maq_kernel_owner *o, int column, const char *text)
{
    for (size_t f = 0; f < o->opts.n_where; f++) {
        const char *value = o->opts.where[f].value;
        size_t n = strlen(value);
        bool prefix = n > 0 && value[n - 1] == '*';
        if (strcmp(o->opts.where[f].column, filter_columns[column]) == 0 &&
            (prefix ? strncmp(text, value, n - 1) != 0 : strcmp(text, value) != 0))
            return false;
    }
    return true;
}

/* ---- one file ---- */

/* The largest part of a prediction, in words. */
static const char *why_of(struct maq_kernel_owner *o, const struct maq_kernel_sample *s,
                          const struct maq_device *device)
{
    struct maq_fit_point p;
    struct maq_work work = maq_op_work(&s->op);
    double memory = device->mem_bps > 0.0 ? work.bytes / device->mem_bps : 0.0;
    if (s->cluster || !maq__fit_point(&p, &s->op, device))
        return "";
    const char *what = p.math_s >= memory ? "arithmetic" : "memory";
    double most = fmax(p.math_s, memory), launch = p.base_s - most;
    if (launch > most)
        what = "launch";
    return maq_arena_printf(&o->arena, "%s bounds it: arithmetic %.3g us, memory %.3g us at the datasheet's rates",
                            what, p.math_s * 1e6, memory * 1e6);
}

static void keep_worst(struct maq_kernel_file *f, uint32_t most, const struct maq_kernel_worst *w)
{
    if (f->n_worst < most) {
        f->worst[f->n_worst++] = *w;
        return;
    }
    uint32_t least = 0;
    for (uint32_t i = 1; i < most; i++)
        if (fabs(f->worst[i].error) < fabs(f->worst[least].error))
            least = i;
    if (most > 0 && fabs(w->error) > fabs(f->worst[least].error))
        f->worst[least] = *w;
}

static void predict_rows(struct maq_kernel_owner *o, struct maq_kernel_file *f, const struct maq_kernel_table *t)
{
    struct maq_costs costs = {.best = o->opts.best,
                              .library = t->library,
                              .leave_device_out = o->opts.leave_device_out,
                              .burst = true,
                              .whole_rows = true};
    uint32_t every = t->n / 100 + 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct maq_kernel_sample *s = &t->samples[i];
        const char *dtype = s->cluster ? "" : maq_dtype_name((enum maq_dtype)s->op.dtype);
        if (!passes(o, BY_KERNEL, s->kernel) || !passes(o, BY_DTYPE, dtype))
            continue;
        costs.kernel = s->kernel[0] ? s->kernel : NULL;
        struct maq_cost cost =
            s->cluster ? maq_cost_coll(&costs, &s->coll, s->cluster) : maq_cost_op(&costs, &s->op, &t->device);
        double error = cost.seconds / s->measured_s - 1.0;
        f->errors[f->group.rows++] = (float)error;
        f->inside += fabs(error) <= MAQ_INTERVAL_80 * (double)cost.error;
        f->fitted += cost.provider >= MAQ_PROVIDER_FITTED;
        keep_worst(f, o->opts.worst,
                   &(struct maq_kernel_worst){.file = f->path,
                                              .kernel = s->kernel,
                                              .line = s->row + t->first_line,
                                              .is_coll = s->cluster != NULL,
                                              .op = s->op,
                                              .coll = s->coll,
                                              .provider = (enum maq_provider)cost.provider,
                                              .measured_s = s->measured_s,
                                              .predicted_s = cost.seconds,
                                              .error = error});
        if (i % every == 0)
            f->points[f->n_points++] =
                (struct maq_kernel_point){.measured_s = (float)s->measured_s, .predicted_s = (float)cost.seconds};
    }
}

/* Texts of the table's arena become the result's. */
static void keep_texts(struct maq_kernel_owner *o, struct maq_kernel_file *f, const struct maq_kernel_table *t)
{
    pthread_mutex_lock(&o->lock);
    f->group.op = t->group;
    f->group.library = maq_library_name(t->library);
    f->group.table = maq_arena_strdup(&o->arena, maq_str_of(t->name));
    f->group.version = maq_arena_strdup(&o->arena, maq_str_of(t->version));
    f->group.device = maq_arena_strdup(&o->arena, maq_str_of(t->device.name));
    for (uint32_t i = 0; i < f->n_worst; i++) {
        f->worst[i].kernel = maq_arena_strdup(&o->arena, maq_str_of(f->worst[i].kernel));
        f->worst[i].why =
            f->worst[i].is_coll ? "" : why_of(o, &(struct maq_kernel_sample){.op = f->worst[i].op}, &t->device);
    }
    pthread_mutex_unlock(&o->lock);
}

static enum maq_status run_file(struct maq_kernel_owner *o, struct maq_kernel_file *f, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_kernel_table *t = MAQ_ARENA_NEW(arena, struct maq_kernel_table, 1);
    if (!t)
        return maq_no_memory(diag, "the rows");
    enum maq_status status = maq_kernel_table_read(t, f->path, arena, diag);
    f->comment_lines = t->first_line > 2 ? t->first_line - 2 : 0;
    if (status != MAQ_OK)
        return status;
    f->errors = maq__malloc((t->n + 1) * sizeof f->errors[0]);
    f->worst = maq__malloc((o->opts.worst + 1) * sizeof f->worst[0]);
    f->points = maq__malloc(128 * sizeof f->points[0]);
    if (!f->errors || !f->worst || !f->points)
        return maq_no_memory(diag, "the rows");
    if (passes(o, BY_OP, t->group) && passes(o, BY_DEVICE, t->device.name) &&
        passes(o, BY_LIBRARY, maq_library_name(t->library)) && passes(o, BY_TABLE, t->name)) {
        predict_rows(o, f, t);
        f->n_rows = t->n_rows;
        for (int i = 0; i < MAQ_KERNEL_SKIP_COUNT; i++)
            f->skipped[i] = t->skipped[i];
    }
    keep_texts(o, f, t);
    return MAQ_OK;
}

static void *work(void *user)
{
    struct maq_kernel_owner *o = user;
    for (uint32_t i; (i = atomic_fetch_add(&o->next, 1)) < o->n_files;) {
        struct maq_arena arena;
        struct maq_diag *diag = maq_diag_new();
        maq_arena_init(&arena, 0);
        o->files[i].status = diag ? run_file(o, &o->files[i], &arena, diag) : MAQ_NO_MEMORY;
        if (o->files[i].status != MAQ_OK)
            o->files[i].diag = diag;
        else
            maq_diag_free(diag);
        maq_arena_fini(&arena);
    }
    return NULL;
}

static void run_files(struct maq_kernel_owner *o)
{
    pthread_t ids[MAX_THREADS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t wanted = o->opts.threads ? o->opts.threads : cores > 0 ? (uint32_t)cores : 1, started = 1;
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    while (started < wanted && started < o->n_files && pthread_create(&ids[started], NULL, work, o) == 0)
        started++; /* fewer threads than wanted do the same work */
    work(o);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
}

static void free_files(struct maq_kernel_owner *o)
{
    for (uint32_t i = 0; i < o->n_files; i++) {
        free(o->files[i].errors);
        free(o->files[i].worst);
        free(o->files[i].points);
        maq_diag_free(o->files[i].diag);
    }
    free(o->files);
    o->files = NULL;
    o->n_files = 0;
}

enum maq_status maq_validate_kernels(struct maq_validate_kernels **out, const char *path,
                                     const struct maq_validate_kernels_opts *opts, struct maq_diag *diag)
{
    struct maq_kernel_owner *o = maq__calloc(sizeof *o);
    if (!o)
        return maq_no_memory(diag, "the rows");
    maq_arena_init(&o->arena, 0);
    pthread_mutex_init(&o->lock, NULL);
    o->diag = diag;
    if (opts)
        o->opts = *opts;
    o->result.path = maq_arena_strdup(&o->arena, maq_str_of(path));
    enum maq_status status = o->result.path ? check_filters(o) : maq_no_memory(diag, "the rows");
    if (status == MAQ_OK)
        status = add_path(o, o->result.path, 0);
    if (status == MAQ_OK && o->n_files == 0)
        status = refuse_nothing(o);
    if (status == MAQ_OK) {
        run_files(o);
        status = maq__kernel_summarize(o);
    }
    free_files(o);
    if (status == MAQ_OK)
        *out = &o->result;
    else
        maq_validate_kernels_free(&o->result);
    return status;
}

void maq_validate_kernels_free(struct maq_validate_kernels *result)
{
    struct maq_kernel_owner *o = (struct maq_kernel_owner *)result;
    if (!o)
        return;
    pthread_mutex_destroy(&o->lock);
    maq_arena_fini(&o->arena);
    free(o);
}
