/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.c - measured collectives against predictions: rows, and what they have in common.
 *
 * Statistics are those of validate.h. Groups come in a fixed order: totals, sources, devices, numbers of devices,
 * collectives, sizes; each over all rows, inside a scale-up domain and between domains, as far as there are such rows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "cost/collective/collective.h"
#include "spec/foreign_file.h"
#include "validate/codes.h"
#include "validate/collectives/nccl_tests_log.h"
#include "validate/collectives/row.h"
#include "validate/input.h"
#include "validate/stat.h"

struct coll_owner {
    struct maq_validate_coll_result result; /* first: a pointer to it is one to the owner */
    struct maq_arena arena;
    struct maq_validate_coll_row *rows;
    struct maq_validate_coll_group *groups;
    struct maq_validate_coll_skip *skips;
    uint32_t groups_size, skips_size;
    double *errors; /* scratch, one per row */
    bool failed;
};

/* ---- rows ---- */

static const char *keep_text(struct coll_owner *o, struct maq_str s)
{
    const char *copy = maq_arena_strdup(&o->arena, s);
    o->failed |= !copy;
    return copy ? copy : "";
}

static void predict(struct maq_validate_coll_row *out, const struct maq_coll_point *point)
{
    struct maq_costs costs = {.library = point->library};
    struct maq_cost cost = maq_cost_coll(&costs, &point->coll, point->cluster);
    struct maq_coll_links links = maq__coll_links(&point->coll, point->cluster);
    struct maq_coll_parts parts = maq__coll_parts(&point->coll, &links, point->library);

    out->far = !maq__coll_point_near(point);
    out->measured_s = point->measured_s;
    out->predicted_s = cost.seconds;
    out->error = cost.seconds / point->measured_s - 1.0;
    out->stated_error = (double)cost.error;
    out->how = parts.how;
    out->largest = maq__coll_largest(&parts);
}

static void fill_row(struct coll_owner *o, uint32_t i, const struct maq_coll_table *table,
                     struct maq_coll_clusters *clusters, const struct maq_diag *diag)
{
    struct maq_validate_coll_row *out = &o->rows[i];
    struct maq_coll_point point;
    /* What the reader of clusters says about a row goes into its reason, not to the caller. */
    struct maq_diag *quiet = maq_diag_new();

    out->source = keep_text(o, maq__coll_cell(table, i, MAQ_COLL_COLUMN_source));
    out->gpu = keep_text(o, maq__coll_cell(table, i, MAQ_COLL_COLUMN_gpu));
    out->collective = keep_text(o, maq__coll_cell(table, i, MAQ_COLL_COLUMN_collective));
    out->line = diag ? maq_diag_place(diag, maq_csv_span(&table->csv, i, 0)).line : 0;
    out->why = out->how = out->largest = "";
    if (!quiet) {
        o->failed = true;
        return;
    }
    const char *why = maq__coll_row(&point, table, i, clusters, quiet);
    if (!why) {
        out->collective = maq_coll_kind_name((enum maq_coll_kind)point.coll.kind);
        out->gpu = point.cluster->groups[point.coll.at.group].device.name;
        out->devices = point.coll.at.size;
        out->devices_per_node = (uint32_t)point.cluster->groups[point.coll.at.group].devices_per_node;
        out->bytes = point.coll.bytes;
        why = point.doubt;
    }
    if (why)
        out->why = why;
    else
        predict(out, &point);
    maq_diag_free(quiet);
}

static bool compared(const struct maq_validate_coll_row *row)
{
    return !row->filtered && row->why[0] == '\0';
}

/* ---- groups ---- */

enum distance { ALL, NEAR, FAR, DISTANCES };
static const char *const distances[DISTANCES] = {"all", "near", "far"};

static bool at_distance(const struct maq_validate_coll_row *row, enum distance d)
{
    return compared(row) && (d == ALL || row->far == (d == FAR));
}

typedef bool row_test(const struct maq_validate_coll_row *row, const void *what);

static void add_group(struct coll_owner *o, const char *by, const char *name, enum distance d, uint32_t n)
{
    struct maq_validate_coll_result *r = &o->result;
    if (n == 0)
        return;
    if (r->n_groups == o->groups_size) {
        uint32_t size = 2 * o->groups_size + 64;
        struct maq_validate_coll_group *more = maq__realloc(o->groups, size * sizeof *more);
        if (!more) {
            o->failed = true;
            return;
        }
        o->groups = more;
        o->groups_size = size;
    }
    o->groups[r->n_groups++] =
        (struct maq_validate_coll_group){by, name, distances[d], maq__validate_stat(o->errors, n)};
}

static void group_by(struct coll_owner *o, const char *by, const char *name, row_test *test, const void *what)
{
    uint32_t before = 0;
    for (int d = ALL; d < DISTANCES; d++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < o->result.n_rows; i++)
            if (at_distance(&o->rows[i], (enum distance)d) && (!test || test(&o->rows[i], what)))
                o->errors[n++] = o->rows[i].error;
        if (d != NEAR || n != before) /* all of them near: `all` says it */
            add_group(o, by, name, (enum distance)d, d == FAR && n == before ? 0 : n);
        if (d == ALL)
            before = n;
    }
}

/* At most MAQ_VALIDATE_CAP rows of a source, evenly spaced in the order of the table. */
static void group_capped(struct coll_owner *o)
{
    for (int d = ALL; d < DISTANCES; d++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < o->result.n_rows; i++) {
            if (!at_distance(&o->rows[i], (enum distance)d))
                continue;
            uint64_t of = 0, k = 0;
            for (uint32_t j = 0; j < o->result.n_rows; j++)
                if (at_distance(&o->rows[j], (enum distance)d) && strcmp(o->rows[j].source, o->rows[i].source) == 0) {
                    k += j < i;
                    of++;
                }
            if (of <= MAQ_VALIDATE_CAP || k == 0 || k * MAQ_VALIDATE_CAP / of != (k - 1) * MAQ_VALIDATE_CAP / of)
                o->errors[n++] = o->rows[i].error;
        }
        add_group(o, "capped", "total", (enum distance)d, n);
    }
}

/* A column by which rows are grouped. */
typedef const char *column_of(const struct maq_validate_coll_row *row);

static const char *source_of(const struct maq_validate_coll_row *row)
{
    return row->source;
}

static const char *device_of(const struct maq_validate_coll_row *row)
{
    return row->gpu;
}

static const char *kind_of(const struct maq_validate_coll_row *row)
{
    return row->collective;
}

struct named {
    column_of *column;
    const char *text;
};

static bool of_text(const struct maq_validate_coll_row *row, const void *what)
{
    const struct named *n = what;
    return strcmp(n->column(row), n->text) == 0;
}

struct range {
    const char *name;
    double from, to;
};

static bool of_count(const struct maq_validate_coll_row *row, const void *what)
{
    const struct range *r = what;
    return row->devices >= r->from && row->devices < r->to;
}

static bool of_size(const struct maq_validate_coll_row *row, const void *what)
{
    const struct range *r = what;
    return row->bytes >= r->from && row->bytes < r->to;
}

static const struct range counts[] = {{"2-4", 2, 5},     {"5-8", 5, 9},       {"9-16", 9, 17},
                                      {"17-64", 17, 65}, {"65-512", 65, 513}, {"513+", 513, (double)INFINITY}};
static const struct range sizes[] = {
    {"under 1 kB", 0, 1e3},      {"1-10 kB", 1e3, 1e4},  {"10-100 kB", 1e4, 1e5},
    {"100 kB - 1 MB", 1e5, 1e6}, {"1-10 MB", 1e6, 1e7},  {"10-100 MB", 1e7, 1e8},
    {"100 MB - 1 GB", 1e8, 1e9}, {"1-10 GB", 1e9, 1e10}, {"over 10 GB", 1e10, (double)INFINITY}};

/* The distinct texts of a column, as they first appear. */
static void group_by_text(struct coll_owner *o, const char *by, column_of *column)
{
    for (uint32_t i = 0; i < o->result.n_rows; i++) {
        const struct named name = {column, column(&o->rows[i])};
        bool known = !compared(&o->rows[i]);
        for (uint32_t j = 0; j < i && !known; j++)
            known = compared(&o->rows[j]) && of_text(&o->rows[j], &name);
        if (!known)
            group_by(o, by, name.text, of_text, &name);
    }
}

static void count_skips(struct coll_owner *o)
{
    struct maq_validate_coll_result *r = &o->result;
    for (uint32_t i = 0; i < r->n_rows; i++) {
        if (o->rows[i].filtered)
            continue;
        r->n_kept++;
        uint32_t k = 0;
        if (o->rows[i].why[0] == '\0')
            continue;
        while (k < r->n_skips && strcmp(o->skips[k].why, o->rows[i].why) != 0)
            k++;
        if (k == r->n_skips)
            o->skips[r->n_skips++] = (struct maq_validate_coll_skip){o->rows[i].why, 0};
        o->skips[k].rows++;
    }
}

static void summarize(struct coll_owner *o)
{
    group_by(o, "total", "total", NULL, NULL);
    group_capped(o);
    group_by_text(o, "source", source_of);
    group_by_text(o, "device", device_of);
    for (size_t i = 0; i < MAQ_COUNT(counts); i++)
        group_by(o, "devices", counts[i].name, of_count, &counts[i]);
    group_by_text(o, "collective", kind_of);
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++)
        group_by(o, "size", sizes[i].name, of_size, &sizes[i]);
    count_skips(o);
    o->result.groups = o->groups;
    o->result.skips = o->skips;
}

/* ---- the whole ---- */

#define MAX_REASONS 32 /* more than maq__coll_row() knows */

static enum maq_status read_table(struct maq_coll_table *table, const char *name, struct maq_str text,
                                  const struct maq_validate_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    if (maq_nccl_tests_log_is(text))
        return maq_nccl_tests_log_read(&table->csv, name, text, opts->collective, arena, diag);
    MAQ_TRY(maq_foreign_refuse(maq_foreign_bytes(text), name, "a table or a log of nccl-tests", (struct maq_span){0},
                               diag));
    return maq_csv_parse(&table->csv, name, text, arena, diag);
}

static enum maq_status run(struct coll_owner *o, const char *name, struct maq_str text,
                           const struct maq_validate_opts *opts, struct maq_diag *diag)
{
    struct maq_validate_coll_result *r = &o->result;
    struct maq_coll_table *table = MAQ_ARENA_NEW(&o->arena, struct maq_coll_table, 1);
    struct maq_coll_clusters clusters = {.arena = &o->arena};
    r->table = maq_arena_strdup(&o->arena, maq_str_of(name));
    if (!table || !r->table)
        return maq_no_memory(diag, "the table");
    MAQ_TRY(read_table(table, name, text, opts, &o->arena, diag));
    if (opts->cluster && maq_str_of(opts->cluster).len > 0) {
        clusters.given = maq_str_of(opts->cluster);
        if (!maq__coll_cluster(&clusters, clusters.given, (struct maq_coll_setting){0}, diag))
            return MAQ_BAD_INPUT;
    }
    MAQ_TRY(maq__coll_table_bind(table, diag));
    uint32_t n = table->csv.n_rows;
    bool *keep = MAQ_ARENA_NEW(&o->arena, bool, n);
    o->rows = MAQ_ARENA_NEW(&o->arena, struct maq_validate_coll_row, n);
    o->errors = MAQ_ARENA_NEW(&o->arena, double, n);
    o->skips = MAQ_ARENA_NEW(&o->arena, struct maq_validate_coll_skip, MAX_REASONS);
    if (!keep || !o->rows || !o->errors || !o->skips)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                             "no memory for %u rows", n);
    MAQ_TRY(maq__validate_filter(keep, &table->csv, opts, diag));
    r->rows = o->rows;
    r->n_rows = n;
    for (uint32_t i = 0; i < n; i++) {
        fill_row(o, i, table, &clusters, diag);
        o->rows[i].filtered = !keep[i];
    }
    summarize(o);
    if (o->failed)
        return maq_no_memory(diag, "the rows");
    if (r->n_groups == 0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_VALIDATE_NOTHING, (struct maq_span){0}, "--json says why of each row",
                     "no row of %s could be compared", name);
    return MAQ_OK;
}

enum maq_status maq_validate_collectives_text(struct maq_validate_coll_result **out, const char *name,
                                              struct maq_str text, const struct maq_validate_opts *opts,
                                              struct maq_diag *diag)
{
    struct maq_validate_opts given = maq__validate_opts(opts);
    struct coll_owner *o = maq__calloc(sizeof *o);
    if (!o)
        return maq_no_memory(diag, "a result");
    maq_arena_init(&o->arena, 0);
    enum maq_status status = run(o, name, text, &given, diag);
    if (status != MAQ_OK) {
        maq_validate_coll_free(&o->result);
        return status;
    }
    *out = &o->result;
    return MAQ_OK;
}

enum maq_status maq_validate_collectives(struct maq_validate_coll_result **out, const char *path,
                                         const struct maq_validate_opts *opts, struct maq_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    MAQ_TRY(maq__validate_bytes(&text, &len, path, diag));
    enum maq_status status = maq_validate_collectives_text(out, path, (struct maq_str){text, len}, opts, diag);
    free(text);
    return status;
}

void maq_validate_coll_free(struct maq_validate_coll_result *result)
{
    struct coll_owner *o = (struct coll_owner *)result;
    if (!o)
        return;
    maq_arena_fini(&o->arena);
    free(o->groups);
    free(o);
}
