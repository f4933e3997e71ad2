/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.c - what the errors of many files say: by kind of operator, by kind and device, by table.
 *
 * A group is the rows of all files that share its names. Files come in the order of their names and rows in that of their
 * file, so that sums do not depend on threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "validate/kernels/run.h"

#define POINTS 4000 /* in a plot */

static bool same(const char *a, const char *b)
{
    return !a || !b || strcmp(a, b) == 0;
}

static bool belongs(const struct maq_kernel_file *f, const struct maq_kernel_group *g)
{
    return same(g->op, f->group.op) && same(g->device, f->group.device) && same(g->library, f->group.library) &&
           same(g->table, f->group.table) && same(g->version, f->group.version);
}

static void fill_group(struct maq_kernel_group *g, const struct maq_kernel_owner *o, double *scratch)
{
    uint64_t inside = 0, fitted = 0, skipped = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct maq_kernel_file *f = &o->files[i];
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

static struct maq_kernel_group key_of(const struct maq_kernel_file *f, enum level level)
{
    struct maq_kernel_group key = f->group;
    if (level == BY_KIND)
        key.device = NULL;
    if (level != BY_FILE)
        key.library = key.table = key.version = NULL;
    return key;
}

static const struct maq_kernel_group *groups_of(uint32_t *n, struct maq_kernel_owner *o, enum level level,
                                                double *scratch)
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

static uint32_t group_of(const struct maq_kernel_owner *o, const struct maq_kernel_file *f)
{
    for (uint32_t g = 0; g < o->result.n_by_op; g++)
        if (belongs(f, &o->result.by_op[g]))
            return g;
    return 0;
}

static int by_error(const void *a, const void *b)
{
    const struct maq_kernel_worst *x = a, *y = b;
    double dx = fabs(x->error), dy = fabs(y->error);
    return dx != dy ? (dx < dy) - (dx > dy) : (x->line > y->line) - (x->line < y->line);
}

static enum maq_status merge_rows(struct maq_kernel_owner *o)
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
        return maq_no_memory(o->diag, "the rows");
    uint32_t every = n_points / POINTS + 1, seen = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct maq_kernel_file *f = &o->files[i];
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
static enum maq_status hand_over(const struct maq_kernel_file *f, struct maq_diag *diag)
{
    for (size_t i = 0; f->diag && i < maq_diag_count(f->diag); i++) {
        const struct maq_diag_item *item = maq_diag_at(f->diag, i);
        uint32_t line = maq_diag_place(f->diag, item->at).line;
        const char *hint = item->hint.len ? item->hint.ptr : NULL;
        int n = (int)item->msg.len;
        if (line > 0)
            maq_diag_add(diag, item->severity, item->code, (struct maq_span){0}, hint, "%s, line %u: %.*s", f->path,
                         line + f->comment_lines, n, item->msg.ptr);
        else if (maq_str_starts(item->msg, f->path))
            maq_diag_add(diag, item->severity, item->code, (struct maq_span){0}, hint, "%.*s", n, item->msg.ptr);
        else
            maq_diag_add(diag, item->severity, item->code, (struct maq_span){0}, hint, "%s: %.*s", f->path, n,
                         item->msg.ptr);
    }
    return f->status;
}

enum maq_status maq__kernel_summarize(struct maq_kernel_owner *o)
{
    struct maq_validate_kernels *r = &o->result;
    size_t rows = 0;
    for (uint32_t i = 0; i < o->n_files; i++) {
        const struct maq_kernel_file *f = &o->files[i];
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
        return maq_no_memory(o->diag, "the rows");
    r->by_op = groups_of(&r->n_by_op, o, BY_KIND, scratch);
    r->by_op_device = groups_of(&r->n_by_op_device, o, BY_KIND_AND_DEVICE, scratch);
    r->by_table = groups_of(&r->n_by_table, o, BY_FILE, scratch);
    free(scratch);
    return r->by_op && r->by_op_device && r->by_table ? merge_rows(o) : maq_no_memory(o->diag, "the rows");
}
