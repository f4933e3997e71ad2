/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_times.c - reads a user's table of kernel times in CSV: see price.h.
 *
 *     name,ns                       name,grid,ns
 *     my_kernel(float*),12300       my_kernel(float*),32x4x1,12300
 *
 * A field may stand in double quotes, since names have commas; columns are found by their head. A grid is the blocks in
 * each direction or their number. Rows of one name and grid: the last counts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text.h"
#include "capture/codes.h"
#include "capture/price/price.h"
#include "spec/cannot_read.h"
#include "spec/foreign_file.h"

#define FILE_MOST (64u << 20)
#define FIELDS 16u

struct row {
    struct maq_str name;
    uint64_t blocks; /* 0 = any */
    double ns;
    uint32_t order;
};

struct maq_replay_kernels {
    struct maq_arena arena;
    uint32_t n;
    struct row *row; /* by name, blocks, then the order in the file */
};

static int compare(struct maq_str a, uint64_t a_blocks, struct maq_str b, uint64_t b_blocks)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    if (c != 0)
        return c;
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return (a_blocks > b_blocks) - (a_blocks < b_blocks);
}

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int c = compare(x->name, x->blocks, y->name, y->blocks);
    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

/* One field off the line; quotes are taken away, a doubled quote is one. */
static struct maq_str field(struct maq_str *line)
{
    struct maq_str head;
    if (line->len == 0 || line->ptr[0] != '"') {
        *line = maq_str_split(*line, ',', &head);
        return maq_str_trim(head);
    }
    size_t end = 1;
    while (end < line->len && line->ptr[end] != '"')
        end++;
    head = (struct maq_str){line->ptr + 1, end - 1};
    struct maq_str rest = {line->ptr + end, line->len - end};
    *line = maq_str_split(rest, ',', &rest);
    return head;
}

static bool read_grid(uint64_t *blocks, struct maq_str text)
{
    uint64_t n = 1;
    if (text.len == 0) {
        *blocks = 0;
        return true;
    }
    while (text.len > 0) {
        struct maq_str part;
        int64_t d;
        text = maq_str_split(text, 'x', &part);
        if (!maq_str_to_i64(&d, part) || d < 1 || d > UINT32_MAX || n > UINT64_MAX / (uint64_t)d)
            return false;
        n *= (uint64_t)d;
    }
    *blocks = n;
    return true;
}

struct table {
    uint32_t name, ns, grid; /* columns; FIELDS = none */
    uint32_t file;
    const char *text;
};

static bool read_head(struct table *t, struct maq_str line)
{
    t->name = t->ns = t->grid = FIELDS;
    for (uint32_t i = 0; i < FIELDS && line.len > 0; i++) {
        struct maq_str f = field(&line);
        if (maq_str_is(f, "name"))
            t->name = i;
        if (maq_str_is(f, "ns"))
            t->ns = i;
        if (maq_str_is(f, "grid"))
            t->grid = i;
    }
    return t->name < FIELDS && t->ns < FIELDS;
}

static bool read_row(struct row *row, const struct table *t, struct maq_str line)
{
    struct maq_str f[FIELDS + 1] = {{0}};
    for (uint32_t i = 0; i < FIELDS && line.len > 0; i++)
        f[i] = field(&line);
    row->name = f[t->name];
    return row->name.len > 0 && maq_str_to_double(&row->ns, f[t->ns]) && row->ns >= 0 && row->ns < 1e18 &&
           read_grid(&row->blocks, f[t->grid]);
}

static enum maq_status parse(struct maq_replay_kernels *k, struct maq_str text, uint32_t file, struct maq_diag *diag)
{
    struct table t = {.file = file, .text = text.ptr};
    struct maq_str line, all = text;
    uint32_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    k->row = MAQ_ARENA_NEW(&k->arena, struct row, lines + 1);
    if (!k->row)
        return maq_no_memory(diag, NULL);
    all = maq_str_split(all, '\n', &line);
    if (!read_head(&t, line))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNEL_TIMES, (struct maq_span){file, 0, (uint32_t)line.len},
                             "the first line names the columns: name,ns or name,grid,ns", "no columns `name` and `ns`");
    while (all.len > 0) {
        all = maq_str_split(all, '\n', &line);
        if (maq_str_trim(line).len == 0)
            continue;
        if (!read_row(&k->row[k->n], &t, line))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNEL_TIMES,
                                 (struct maq_span){file, (uint32_t)(line.ptr - text.ptr), (uint32_t)line.len},
                                 "name,grid,ns: a time is a number of nanoseconds, a grid 32x4x1 or empty",
                                 "not a kernel and its time");
        k->row[k->n].order = k->n;
        k->n++;
    }
    qsort(k->row, k->n, sizeof *k->row, by_key);
    return MAQ_OK;
}

static enum maq_status read_all(struct maq_str *out, struct maq_arena *arena, const char *path, struct maq_diag *diag)
{
    MAQ_TRY(maq_file_expected(path, MAQ_WANT_TABLE, diag));
    MAQ_TRY(maq_foreign_refuse(maq_foreign_file(path), path, "a table of kernel times", (struct maq_span){0}, diag));
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = NULL;
    enum maq_status status = MAQ_OK;
    if (size < 0 || (unsigned long)size > FILE_MOST || fseek(f, 0, SEEK_SET) != 0) {
        status = maq_diag_fail(MAQ_IO, diag, f ? MAQ_CODE_FILE_TOO_LARGE : MAQ_CODE_CANNOT_READ, (struct maq_span){0},
                               NULL, "%s: %s", path, f ? "not a file of up to 64 MiB" : strerror(errno));
    } else {
        text = MAQ_ARENA_NEW(arena, char, (size_t)size + 1);
        if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
            status = maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL, "%s: cannot be read",
                                   path);
    }
    if (f)
        (void)fclose(f);
    *out = (struct maq_str){text, status == MAQ_OK ? (size_t)size : 0};
    return status;
}

enum maq_status maq_replay_kernels_read(struct maq_replay_kernels **out, const char *path, struct maq_diag *diag)
{
    struct maq_replay_kernels *k = calloc(1, sizeof *k);
    struct maq_str text;
    if (!k)
        return maq_no_memory(diag, NULL);
    maq_arena_init(&k->arena, 0);
    enum maq_status status = read_all(&text, &k->arena, path, diag);
    if (status == MAQ_OK)
        status = parse(k, text, maq_diag_add_source(diag, path, text.ptr, text.len), diag);
    if (status != MAQ_OK) {
        maq_replay_kernels_free(k);
        return status;
    }
    *out = k;
    return MAQ_OK;
}

void maq_replay_kernels_free(struct maq_replay_kernels *times)
{
    if (!times)
        return;
    maq_arena_fini(&times->arena);
    free(times);
}

/* The last row of exactly this key; NULL = none. */
static const struct row *find(const struct maq_replay_kernels *t, struct maq_str name, uint64_t blocks)
{
    uint32_t low = 0, high = t->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (compare(t->row[mid].name, t->row[mid].blocks, name, blocks) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || compare(t->row[low - 1].name, t->row[low - 1].blocks, name, blocks) != 0)
        return NULL;
    return &t->row[low - 1];
}

double maq_replay_kernels_find(const struct maq_replay_kernels *times, const char *name, size_t name_len,
                               const uint32_t grid[3])
{
    uint64_t blocks = 1;
    for (int i = 0; i < 3; i++)
        blocks *= grid[i] > 0 ? grid[i] : 1;
    const struct row *row = find(times, (struct maq_str){name, name_len}, blocks);
    if (!row)
        row = find(times, (struct maq_str){name, name_len}, 0);
    return row ? row->ns : -1;
}
