/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.c - reads a table, keeps the rows that are asked for, and has them run and summarized.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "validate/codes.h"
#include "validate/input.h"
#include "validate/train/run.h"

const char *maq_validate_metric_name(enum maq_validate_metric metric)
{
    return metric == MAQ_VALIDATE_TIME ? "time" : metric == MAQ_VALIDATE_MEMORY ? "memory" : "?";
}

const char *maq_validate_skip_text(enum maq_validate_skip skip)
{
    static const char *const texts[MAQ_VALIDATE_SKIP_COUNT] = {
#define SKIP_TEXT(name, text) [MAQ_VALIDATE_SKIP_##name] = (text),
        MAQ_VALIDATE_SKIP_LIST(SKIP_TEXT)
#undef SKIP_TEXT
    };
    return (unsigned)skip < MAQ_VALIDATE_SKIP_COUNT ? texts[skip] : "?";
}

/* ---- the whole ---- */

static void fill_lines(struct maq_validate_row *rows, const struct maq_csv *csv, const struct maq_diag *diag)
{
    for (uint32_t i = 0; i < csv->n_rows; i++)
        rows[i].line = diag ? maq_diag_place(diag, maq_csv_span(csv, i, 0)).line : 0;
}

static enum maq_status run(struct maq_validate_owner *owner, const char *name, struct maq_str text,
                           const struct maq_validate_opts *opts, struct maq_diag *diag)
{
    struct maq_validate_result *r = &owner->result;
    struct maq_row_table *table = MAQ_ARENA_NEW(&owner->arena, struct maq_row_table, 1);
    r->table = maq_arena_strdup(&owner->arena, maq_str_of(name));
    if (!table || !r->table)
        return maq_no_memory(diag, "the table");
    MAQ_TRY(maq_csv_parse(&table->csv, name, text, &owner->arena, diag));
    MAQ_TRY(maq_row_table_bind(table, diag));
    uint32_t n = table->csv.n_rows;
    bool *keep = MAQ_ARENA_NEW(&owner->arena, bool, n);
    struct maq_validate_row *rows = MAQ_ARENA_NEW(&owner->arena, struct maq_validate_row, n);
    if (!keep || !rows)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                             "no memory for %u rows", n);
    MAQ_TRY(maq__validate_filter(keep, &table->csv, opts, diag));
    r->n_rows = n;
    r->rows = rows;
    fill_lines(rows, &table->csv, diag);
    MAQ_TRY(maq__validate_run(owner, rows, keep, table, opts->threads, diag));
    MAQ_TRY(maq__validate_summarize(owner, diag));
    if (r->total.stats[MAQ_VALIDATE_TIME][MAQ_VALIDATE_ALL].n +
            r->total.stats[MAQ_VALIDATE_MEMORY][MAQ_VALIDATE_ALL].n ==
        0)
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_VALIDATE_NOTHING, (struct maq_span){0}, "--json says why of each row",
                     "no row of %s could be compared", name);
    return MAQ_OK;
}

enum maq_status maq_validate_train_text(struct maq_validate_result **out, const char *name, struct maq_str text,
                                        const struct maq_validate_opts *opts, struct maq_diag *diag)
{
    struct maq_validate_opts given = maq__validate_opts(opts);
    struct maq_validate_owner *owner = maq__calloc(sizeof *owner);
    if (!owner)
        return maq_no_memory(diag, "a result");
    maq_arena_init(&owner->arena, 0);
    enum maq_status status = run(owner, name, text, &given, diag);
    if (status != MAQ_OK) {
        maq_validate_free(&owner->result);
        return status;
    }
    *out = &owner->result;
    return MAQ_OK;
}

void maq_validate_free(struct maq_validate_result *result)
{
    struct maq_validate_owner *owner = (struct maq_validate_owner *)result;
    if (!owner)
        return;
    for (uint32_t i = 0; i < owner->n_workers; i++)
        maq_arena_fini(&owner->workers[i]);
    maq_arena_fini(&owner->arena);
    free(owner);
}

enum maq_status maq_validate_train(struct maq_validate_result **out, const char *path,
                                   const struct maq_validate_opts *opts, struct maq_diag *diag)
{
    char *text = NULL;
    size_t len = 0;
    MAQ_TRY(maq__validate_read(&text, &len, path, diag));
    enum maq_status status = maq_validate_train_text(out, path, (struct maq_str){text, len}, opts, diag);
    free(text);
    return status;
}
