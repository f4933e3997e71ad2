/*
 * kernel_run.c - predicts every row of every table under a path, and says how far off the predictions are.
 *
 * A file is one table of one device and library: it is read, predicted and forgotten, but for its errors. Files are
 * independent, so threads take them in turn; groups are sums over files in the order of their names.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/stats.h"
#include "base/str.h"
#include "base/text.h"
#include "cost/fit.h"
#include "maquette/validate.h"
#include "validate/codes.h"
#include "validate/kernel_table.h"

#define MAX_DEPTH 3
#define MAX_THREADS 64
#define INTERVAL_80 1.2816 /* standard deviations on either side that hold 80 % of a normal distribution */
#define POINTS 4000        /* in a plot */

struct file {
    const char *path;
    struct maq_kernel_group group;
    float *errors; /* [rows] signed; owned */
    uint64_t n_rows, skipped[MAQ_KERNEL_SKIP_COUNT];
    uint64_t inside, fitted;
    uint32_t n_worst, n_points;
    struct maq_kernel_worst *worst;  /* owned until merged */
    struct maq_kernel_point *points; /* owned until merged */
    enum maq_status status;
    struct maq_diag *diag; /* what is wrong with it; owned */
};

struct owner {
    struct maq_validate_kernels result; /* first: a pointer to it is one to the owner */
    struct maq_arena arena;             /* all that the result points to */
    pthread_mutex_t lock;               /* of the arena and the diagnostics */
    struct maq_validate_kernels_opts opts;
    struct maq_diag *diag;
    struct file *files;
    uint32_t n_files, size;
    atomic_uint next;
};

const char *maq_validate_kernels_skip(size_t i)
{
    static const char *const texts[] = {
#define SKIP_TEXT(name, text) [MAQ_KERNEL_SKIP_##name] = (text),
        MAQ_KERNEL_SKIP_LIST(SKIP_TEXT)
#undef SKIP_TEXT
    };
    return i < MAQ_KERNEL_SKIP_COUNT ? texts[i] : NULL;
}

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "no memory for the rows");
}

/* ---- which files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum maq_status add_file(struct owner *o, const char *path, bool alone)
{
    struct maq_kernel_table table;
    struct maq_str system;
    if (!maq_kernel_table_name(&table, &system, path, &o->arena)) {
        o->result.n_other++;
        return !alone ? MAQ_OK
                      : maq_diag_fail(MAQ_BAD_INPUT, o->diag, MAQ_CODE_KERNEL_FILE, (struct maq_span){0},
                                      "SYSTEM/OP__TABLE__FRAMEWORK__VERSION.csv[.gz], for example "
                                      "h100_sxm/gemm__gemm__vllm__0.24.0.csv.gz",
                                      "%s is not named like a table of kernels that can be read", path);
    }
    if (o->n_files == o->size) {
        uint32_t size = o->size ? o->size * 2 : 64;
        struct file *files = maq__realloc(o->files, size * sizeof *files);
        if (!files)
            return no_memory(o->diag);
        o->files = files;
        o->size = size;
    }
    o->files[o->n_files++] = (struct file){.path = path};
    return MAQ_OK;
}

static enum maq_status add_path(struct owner *o, const char *path, int depth);

static enum maq_status add_folder(struct owner *o, DIR *folder, const char *path, int depth)
{
    const char *names[4096] = {NULL};
    size_t n = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL && n < sizeof names / sizeof names[0];)
        if (e->d_name[0] != '.') {
            names[n] = maq_arena_printf(&o->arena, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", e->d_name);
            if (!names[n++])
                return no_memory(o->diag);
        }
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++)
        MAQ_TRY(add_path(o, names[i], depth + 1));
    return MAQ_OK;
}

static enum maq_status add_path(struct owner *o, const char *path, int depth)
{
    struct stat st;
    if (path[0] == '\0' || stat(path, &st) != 0)
        return maq_diag_fail(MAQ_IO, o->diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL, "%s: %s", path,
                             strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return add_file(o, path, depth == 0);
    if (depth > MAX_DEPTH)
        return MAQ_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return maq_diag_fail(MAQ_IO, o->diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL, "%s: %s", path,
                             strerror(errno));
    enum maq_status status = add_folder(o, folder, path, depth);
    closedir(folder);
    return status;
}

/* ---- filters ---- */

static const char *const filter_columns[] = {"op", "device", "library", "table", "kernel", "dtype"};
enum { BY_OP, BY_DEVICE, BY_LIBRARY, BY_TABLE, BY_KERNEL, BY_DTYPE, BY_COUNT };

static enum maq_status check_filters(const struct owner *o)
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

static bool passes(const struct owner *o, int column, const char *text)
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
static const char *why_of(struct owner *o, const struct maq_kernel_sample *s, const struct maq_device *device)
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

static int by_error(const void *a, const void *b)
{
    const struct maq_kernel_worst *x = a, *y = b;
    double dx = fabs(x->error), dy = fabs(y->error);
    return dx != dy ? (dx < dy) - (dx > dy) : (x->line > y->line) - (x->line < y->line);
}

static void keep_worst(struct file *f, uint32_t most, const struct maq_kernel_worst *w)
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

static void predict_rows(struct owner *o, struct file *f, const struct maq_kernel_table *t)
{
    struct maq_costs costs = {
        .best = o->opts.best, .library = t->library, .leave_device_out = o->opts.leave_device_out, .burst = true};
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
        f->inside += fabs(error) <= INTERVAL_80 * (double)cost.error;
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
static void keep_texts(struct owner *o, struct file *f, const struct maq_kernel_table *t)
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

static enum maq_status run_file(struct owner *o, struct file *f, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_kernel_table *t = MAQ_ARENA_NEW(arena, struct maq_kernel_table, 1);
    if (!t)
        return no_memory(diag);
    MAQ_TRY(maq_kernel_table_read(t, f->path, arena, diag));
    f->errors = maq__malloc((t->n + 1) * sizeof f->errors[0]);
    f->worst = maq__malloc((o->opts.worst + 1) * sizeof f->worst[0]);
    f->points = maq__malloc(128 * sizeof f->points[0]);
    if (!f->errors || !f->worst || !f->points)
        return no_memory(diag);
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
    struct owner *o = user;
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

static void run_files(struct owner *o)
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

/* ---- groups ---- */

static bool same(const char *a, const char *b)
{
    return !a || !b || strcmp(a, b) == 0;
}

static bool belongs(const struct file *f, const struct maq_kernel_group *g)
{
    return same(g->op, f->group.op) && same(g->device, f->group.device) && same(g->library, f->group.library) &&
           same(g->table, f->group.table) && same(g->version, f->group.version);
}

static void fill_group(struct maq_kernel_group *g, const struct owner *o, double *scratch)
{
    uint64_t inside = 0, fitted = 0, skipped = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct file *f = &o->files[i];
        if (!belongs(f, g))
            continue;
        for (uint32_t j = 0; j < f->group.rows; j++)
            scratch[n++] = (double)f->errors[j];
        inside += f->inside;
        fitted += f->fitted;
        skipped += f->n_rows > f->group.rows ? f->n_rows - f->group.rows : 0;
    }
    g->rows = (uint32_t)n;
    g->skipped = (uint32_t)skipped;
    g->bias = maq_mean(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(scratch[i]);
    g->mean_ape = maq_mean(scratch, n);
    g->median_ape = maq_quantile(scratch, n, 0.5);
    g->p90_ape = maq_quantile(scratch, n, 0.9);
    g->inside = n ? (double)inside / (double)n : (double)NAN;
    g->fitted = n ? (double)fitted / (double)n : (double)NAN;
}

enum level { BY_KIND, BY_KIND_AND_DEVICE, BY_FILE };

static struct maq_kernel_group key_of(const struct file *f, enum level level)
{
    struct maq_kernel_group key = f->group;
    if (level == BY_KIND)
        key.device = NULL;
    if (level != BY_FILE)
        key.library = key.table = key.version = NULL;
    return key;
}

static const struct maq_kernel_group *groups_of(uint32_t *n, struct owner *o, enum level level, double *scratch)
{
    struct maq_kernel_group *groups = MAQ_ARENA_NEW(&o->arena, struct maq_kernel_group, o->n_files);
    *n = 0;
    for (uint32_t i = 0; i < o->n_files && groups; i++) {
        bool known = o->files[i].group.rows == 0;
        for (uint32_t g = 0; g < *n; g++)
            known |= belongs(&o->files[i], &groups[g]);
        if (known)
            continue;
        groups[*n] = key_of(&o->files[i], level);
        fill_group(&groups[(*n)++], o, scratch);
    }
    return groups;
}

static uint32_t group_of(const struct owner *o, const struct file *f)
{
    for (uint32_t g = 0; g < o->result.n_by_op; g++)
        if (belongs(f, &o->result.by_op[g]))
            return g;
    return 0;
}

static enum maq_status merge_rows(struct owner *o)
{
    struct maq_validate_kernels *r = &o->result;
    uint32_t n_worst = 0, n_points = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        n_worst += o->files[i].n_worst;
        n_points += o->files[i].n_points;
    }
    struct maq_kernel_worst *worst = MAQ_ARENA_NEW(&o->arena, struct maq_kernel_worst, n_worst);
    struct maq_kernel_point *points = MAQ_ARENA_NEW(&o->arena, struct maq_kernel_point, n_points);
    if (!worst || !points)
        return no_memory(o->diag);
    uint32_t every = n_points / POINTS + 1, seen = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct file *f = &o->files[i];
        for (uint32_t j = 0; j < f->n_worst; j++)
            worst[r->n_worst++] = f->worst[j];
        for (uint32_t j = 0; j < f->n_points; j++) {
            if (seen++ % every)
                continue;
            points[r->n_points] = f->points[j];
            points[r->n_points++].group = group_of(o, f);
        }
    }
    qsort(worst, r->n_worst, sizeof worst[0], by_error);
    r->n_worst = r->n_worst < o->opts.worst ? r->n_worst : o->opts.worst;
    r->worst = worst;
    r->points = points;
    return MAQ_OK;
}

/* What was found in a file that cannot be used. */
static enum maq_status hand_over(const struct file *f, struct maq_diag *diag)
{
    for (size_t i = 0; f->diag && i < maq_diag_count(f->diag); i++) {
        const struct maq_diag_item *item = maq_diag_at(f->diag, i);
        uint32_t line = maq_diag_place(f->diag, item->at).line;
        maq_diag_add(diag, item->severity, item->code, (struct maq_span){0}, item->hint.len ? item->hint.ptr : NULL,
                     "%s, line %u: %.*s", f->path, line, (int)item->msg.len, item->msg.ptr);
    }
    return f->status;
}

static enum maq_status summarize(struct owner *o)
{
    struct maq_validate_kernels *r = &o->result;
    size_t rows = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct file *f = &o->files[i];
        if (f->status != MAQ_OK)
            return hand_over(f, o->diag);
        rows += f->group.rows;
        r->n_rows += f->n_rows;
        r->n_files += f->group.rows > 0;
        for (int k = 0; k < MAQ_KERNEL_SKIP_COUNT; k++)
            r->skipped[k] += f->skipped[k];
    }
    double *scratch = maq__malloc((rows + 1) * sizeof *scratch);
    if (!scratch)
        return no_memory(o->diag);
    r->by_op = groups_of(&r->n_by_op, o, BY_KIND, scratch);
    r->by_op_device = groups_of(&r->n_by_op_device, o, BY_KIND_AND_DEVICE, scratch);
    r->by_table = groups_of(&r->n_by_table, o, BY_FILE, scratch);
    free(scratch);
    return r->by_op && r->by_op_device && r->by_table ? merge_rows(o) : no_memory(o->diag);
}

static void free_files(struct owner *o)
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
    struct owner *o = maq__calloc(sizeof *o);
    if (!o)
        return no_memory(diag);
    maq_arena_init(&o->arena, 0);
    pthread_mutex_init(&o->lock, NULL);
    o->diag = diag;
    if (opts)
        o->opts = *opts;
    o->result.path = maq_arena_strdup(&o->arena, maq_str_of(path));
    enum maq_status status = o->result.path ? check_filters(o) : no_memory(diag);
    if (status == MAQ_OK)
        status = add_path(o, o->result.path, 0);
    if (status == MAQ_OK) {
        run_files(o);
        status = summarize(o);
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
    struct owner *o = (struct owner *)result;
    if (!o)
        return;
    pthread_mutex_destroy(&o->lock);
    maq_arena_fini(&o->arena);
    free(o);
}
