/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - reads a file of kernel times: its name, its comment, its columns, its rows.
 */
#include "validate/kernels/table.h"

#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"
#include "validate/codes.h"
#include "validate/input.h"
#include "validate/kernels/communication.h"

static const char *const column_names[] = {
#define COLUMN_NAME(name) [MAQ_KERNEL_##name] = #name,
    MAQ_KERNEL_COLUMN_LIST(COLUMN_NAME)
#undef COLUMN_NAME
};

/* ---- cells ---- */

/* ---- the name ---- */

static struct maq_str last_part(struct maq_str path, struct maq_str *folder)
{
    size_t slash = path.len;
    while (slash > 0 && path.ptr[slash - 1] != '/')
        slash--;
    *folder = (struct maq_str){path.ptr, slash > 0 ? slash - 1 : 0};
    return (struct maq_str){path.ptr + slash, path.len - slash};
}

static bool drop_suffix(struct maq_str *s, const char *suffix)
{
    size_t n = strlen(suffix);
    if (s->len < n || memcmp(s->ptr + s->len - n, suffix, n) != 0)
        return false;
    s->len -= n;
    return true;
}

/* Splits at the first "__". */
static struct maq_str split(struct maq_str s, struct maq_str *head)
{
    for (size_t i = 0; i + 1 < s.len; i++)
        if (s.ptr[i] == '_' && s.ptr[i + 1] == '_') {
            *head = (struct maq_str){s.ptr, i};
            return (struct maq_str){s.ptr + i + 2, s.len - i - 2};
        }
    *head = s;
    return (struct maq_str){NULL, 0};
}

static bool library_of(enum maq_library *out, struct maq_str framework)
{
    *out = MAQ_LIBRARY_TRAINING; /* NCCL is nobody's */
    if (maq_str_is(framework, "nccl"))
        return true;
    for (int i = MAQ_LIBRARY_TRTLLM; i < MAQ_LIBRARY_COUNT; i++)
        if (maq_str_is(framework, maq_library_name((enum maq_library)i))) {
            *out = (enum maq_library)i;
            return true;
        }
    return false;
}

/* Kind of operator for reports of a table of collectives; NULL when it is none. */
static const char *comm_group(struct maq_str op, struct maq_str table)
{
    static const char *const groups[][2] = {{"nccl", "nccl"},
                                            {"custom_allreduce", "custom_allreduce"},
                                            {"wideep_deepep_ll", "deepep"},
                                            {"wideep_deepep_normal", "deepep"},
                                            {"trtllm_alltoall", "trtllm_alltoall"}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && maq_str_is(op, "comm"); i++)
        if (maq_str_is(table, groups[i][0]))
            return groups[i][1];
    return NULL;
}

bool maq_kernel_table_name(struct maq_kernel_table *out, struct maq_str *system, const char *path,
                           struct maq_arena *arena)
{
    struct maq_str folder, above, op, table, framework, file = last_part(maq_str_of(path), &folder);
    drop_suffix(&file, ".gz");
    if (!drop_suffix(&file, ".csv"))
        return false;
    struct maq_str version = split(split(split(file, &op), &table), &framework);
    const struct maq_kernel_reader *reader = maq_kernel_reader(op, table);
    *out = (struct maq_kernel_table){.path = path};
    *system = last_part(folder, &above);
    out->group = reader ? reader->group : comm_group(op, table);
    if (!out->group || !library_of(&out->library, framework))
        return false;
    out->name = maq_arena_strdup(arena, table);
    out->version = maq_arena_strdup(arena, version);
    return out->name && out->version;
}

/* The catalogue's device of a system: "h100_sxm" is H100-SXM. */
static enum maq_status find_device(struct maq_kernel_table *t, struct maq_str system, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    char *name = maq_arena_strdup(arena, system);
    if (!name)
        return MAQ_NO_MEMORY;
    for (char *c = name; *c; c++)
        *c = (char)(*c == '_' ? '-' : *c);
    return maq__device_by_name(&t->device, maq_str_of(name), (struct maq_span){0}, arena, diag);
}

/* ---- the file ---- */

/* `# source=PATH key=value;key=value`: constants for columns that the file lacks. The rest of the text is returned. */
static struct maq_str read_comment(struct maq_kernel_table *t, struct maq_str text)
{
    struct maq_str line, rest = maq_str_split(text, '\n', &line), word;
    t->first_line = 2;
    if (!maq_str_starts(text, "#"))
        return text;
    t->first_line = 3;
    for (struct maq_str words = line; words.ptr;) {
        words = maq_str_split(words, ' ', &word);
        while (word.ptr) {
            struct maq_str pair, key, next = maq_str_split(word, ';', &pair), value = maq_str_split(pair, '=', &key);
            for (int c = 0; c < MAQ_KERNEL_COLUMN_COUNT && value.ptr; c++)
                if (maq_str_is(key, column_names[c]))
                    t->constants[c] = value;
            word = next;
        }
    }
    return rest;
}

/* ---- rows ---- */

/* One copy of every text; the last one is nearly always it. */
struct names {
    const char **at;
    uint32_t n, size;
};

static const char *intern(struct names *names, struct maq_str text, struct maq_arena *arena)
{
    for (uint32_t i = names->n; i-- > 0;)
        if (maq_str_is(text, names->at[i]))
            return names->at[i];
    if (names->n == names->size)
        return "";
    char *copy = maq_arena_strdup(arena, text);
    if (copy)
        names->at[names->n++] = copy;
    return copy ? copy : "";
}

/* Bytes that a cache of twice the device's could not hold come from memory, and FLOP take their time. */
static bool is_impossible(const struct maq_kernel_sample *s, const struct maq_device *device)
{
    struct maq_work work = maq_op_work(&s->op);
    double peak = device->peak_flops[s->op.dtype];
    if (s->op.flags & MAQ_OP_KV_FP8 && device->peak_flops[MAQ_FP8] > peak)
        peak = device->peak_flops[MAQ_FP8];
    double memory = work.bytes > 2.0 * device->l2_bytes ? (work.bytes - device->l2_bytes) / device->mem_bps : 0.0;
    return s->measured_s < 0.98 * memory || (peak > 0.0 && s->measured_s < 0.98 * work.matrix_flop / peak);
}

static enum maq_kernel_skip read_row(struct maq_kernel_sample *s, struct maq_kernel_line *row, maq_kernel_row_fn *make,
                                     struct names *names, struct maq_arena *arena)
{
    double ms = 0.0;
    memset(s, 0, sizeof *s);
    if (!maq_str_to_double(&ms, maq_kernel_text(row, MAQ_KERNEL_latency)) || !(ms > 0.0))
        return MAQ_KERNEL_SKIP_UNREADABLE;
    bool known = make(&s->op, row);
    if (row->bad)
        return MAQ_KERNEL_SKIP_UNREADABLE;
    if (!known)
        return MAQ_KERNEL_SKIP_UNKNOWN;
    s->kernel = intern(names, maq_kernel_text(row, MAQ_KERNEL_kernel_source), arena);
    s->measured_s = ms * 1e-3;
    s->row = row->row;
    return is_impossible(s, &row->table->device) ? MAQ_KERNEL_SKIP_IMPOSSIBLE : MAQ_KERNEL_SKIP_NONE;
}

static enum maq_status read_rows(struct maq_kernel_table *t, maq_kernel_row_fn *make, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    const char *kernels[64];
    struct names names = {kernels, 0, 64};
    t->n_rows = t->csv.n_rows;
    t->samples = MAQ_ARENA_NEW(arena, struct maq_kernel_sample, t->n_rows);
    if (!t->samples)
        return maq_no_memory(diag, "the rows");
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct maq_kernel_line row = {t, i, false};
        enum maq_kernel_skip skip = read_row(&t->samples[t->n], &row, make, &names, arena);
        t->skipped[skip]++;
        t->n += skip == MAQ_KERNEL_SKIP_NONE;
    }
    t->skipped[MAQ_KERNEL_SKIP_NONE] = 0;
    return MAQ_OK;
}

/* ---- rows of collectives ---- */

static struct maq_str comm_cell(void *user, const char *column)
{
    const struct maq_kernel_line *row = user;
    uint32_t at = maq_csv_column(&row->table->csv, column);
    if (at != UINT32_MAX)
        return maq_csv_get(&row->table->csv, row->row, at);
    for (int c = 0; c < MAQ_KERNEL_COLUMN_COUNT; c++)
        if (strcmp(column, column_names[c]) == 0)
            return row->table->constants[c];
    return (struct maq_str){NULL, 0};
}

static enum maq_status read_comm_rows(struct maq_kernel_table *t, struct maq_str system, struct maq_str table,
                                      struct maq_str framework, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_coll_clusters clusters = {.arena = arena};
    t->n_rows = t->csv.n_rows;
    t->samples = MAQ_ARENA_NEW(arena, struct maq_kernel_sample, (size_t)t->n_rows * MAQ_KERNEL_COMM_POINTS);
    if (!t->samples)
        return maq_no_memory(diag, "the rows");
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct maq_kernel_line row = {t, i, false};
        struct maq_kernel_comm comm;
        maq__kernel_comm_row(&comm, table, system, framework, &(struct maq_kernel_cells){comm_cell, &row}, &clusters,
                             diag);
        for (uint32_t p = 0; p < comm.n; p++)
            t->samples[t->n++] = (struct maq_kernel_sample){.coll = comm.points[p].coll,
                                                            .cluster = comm.points[p].cluster,
                                                            .kernel = "",
                                                            .measured_s = comm.points[p].measured_s,
                                                            .row = i};
        t->skipped[MAQ_KERNEL_SKIP_UNKNOWN] += comm.n == 0;
    }
    return MAQ_OK;
}

enum maq_status maq_kernel_table_read(struct maq_kernel_table *out, const char *path, struct maq_arena *arena,
                                      struct maq_diag *diag)
{
    struct maq_str system, text, op, table, framework, folder, file = last_part(maq_str_of(path), &folder);
    if (!maq_kernel_table_name(out, &system, path, arena))
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL,
                             "%s: not the name of a table of kernels", path);
    split(split(split(file, &op), &table), &framework);
    MAQ_TRY(find_device(out, system, arena, diag));
    MAQ_TRY(maq__validate_unpack(&text, path, arena, diag));
    text = read_comment(out, text);
    MAQ_TRY(maq_csv_parse(&out->csv, path, text, arena, diag));
    for (int c = 0; c < MAQ_KERNEL_COLUMN_COUNT; c++)
        out->at[c] = maq_csv_column(&out->csv, column_names[c]);
    if (!maq_kernel_reader(op, table))
        return read_comm_rows(out, system, table, framework, arena, diag);
    if (out->at[MAQ_KERNEL_latency] == UINT32_MAX)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_COLUMN, (struct maq_span){0}, NULL,
                             "%s: no column 'latency'", path);
    return read_rows(out, maq_kernel_reader(op, table)->row, arena, diag);
}
