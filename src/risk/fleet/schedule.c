/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - how many replicas are to be there, out of a table. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "maquette/fleet_outages.h"
#include "risk/codes.h"
#include "risk/csv_table.h"

#define PREFILL "prefill_replicas"

/* Replicas that are to be there, of those that there are. */
static enum maq_status read_count(uint32_t *out, struct maq_csv_table *rows, uint32_t column, uint32_t most)
{
    MAQ_TRY(maq_rows_whole(out, rows, column, UINT32_MAX - 1));
    if (*out <= most)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, (struct maq_span){0}, NULL,
                         "%s:%llu: %u replicas are to be there, of %u that there are", rows->path,
                         (unsigned long long)rows->number, *out, most);
}

/* The column of those that compute prompts, where there are such; else it is a fault. */
static enum maq_status find_prefill(uint32_t *column, const struct maq_csv_table *rows, uint32_t most_prefill)
{
    *column = maq_rows_column(rows, PREFILL);
    if (*column == MAQ_NO_COLUMN || most_prefill > 0)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, (struct maq_span){0},
                         "pools, or `replicas` alone",
                         "%s has a column '" PREFILL "': no replicas compute prompts for others", rows->path);
}

static enum maq_status read_rows(struct maq_replica_count **out, uint32_t *n, struct maq_csv_table *rows, uint32_t most,
                                 uint32_t most_prefill)
{
    uint32_t time, replicas, prefill, size = 0;
    bool more = true;
    MAQ_TRY(maq_rows_need(&time, rows, "time_s"));
    MAQ_TRY(maq_rows_need(&replicas, rows, "replicas"));
    MAQ_TRY(find_prefill(&prefill, rows, most_prefill));
    while (true) {
        struct maq_replica_count row = {.prefill_replicas = MAQ_ALL_REPLICAS};
        MAQ_TRY(maq_rows_next(&more, rows));
        if (!more)
            break;
        MAQ_TRY(maq_rows_real(&row.at_s, rows, time));
        MAQ_TRY(read_count(&row.replicas, rows, replicas, most));
        if (prefill != MAQ_NO_COLUMN)
            MAQ_TRY(read_count(&row.prefill_replicas, rows, prefill, most_prefill));
        if (*n == 0 ? row.at_s != 0 : row.at_s < (*out)[*n - 1].at_s)
            return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, (struct maq_span){0},
                                 "time_s from 0 on, in order", "%s:%llu: %g s is %s", rows->path,
                                 (unsigned long long)rows->number, row.at_s,
                                 *n == 0 ? "not the beginning" : "before the row above it");
        if (!maq__grow((void **)out, &size, *n, sizeof **out))
            return maq_no_memory(rows->diag, "a schedule");
        (*out)[(*n)++] = row;
    }
    if (*n == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_SHORT, (struct maq_span){0}, "0,4 as a first row",
                             "%s says of no time how many replicas there are", rows->path);
    return MAQ_OK;
}

enum maq_status maq_replica_counts_read(struct maq_replica_count **out, uint32_t *n, const char *path, uint32_t most,
                                        uint32_t most_prefill, struct maq_diag *diag)
{
    struct maq_csv_table *rows = maq__calloc(sizeof *rows);
    *out = NULL;
    *n = 0;
    if (!rows)
        return maq_no_memory(diag, "a schedule");
    enum maq_status status = maq_rows_open(rows, path, diag);
    if (status == MAQ_OK)
        status = read_rows(out, n, rows, most, most_prefill);
    maq_rows_close(rows);
    free(rows);
    if (status != MAQ_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return status;
}
