/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - published observations against predictions: the groups of rows, and who owns them. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/cannot_read.h"
#include "validate/risk/table.h"

static enum maq_status (*const groups[])(struct maq_risk_table *t) = {
    maq_risk_rows_runs,      maq_risk_rows_startup,   maq_risk_rows_population,
    maq_risk_rows_placement, maq_risk_rows_variation,
};

struct owner {
    struct maq_validate_risk result; /* first: what the caller sees */
    struct maq_arena arena;
};

static enum maq_status fill(struct owner *o, const char *folder, struct maq_diag *diag)
{
    struct maq_risk_table t = {.arena = &o->arena, .diag = diag};
    t.rows = MAQ_ARENA_NEW(&o->arena, struct maq_validate_risk_row, MAQ_RISK_MOST_ROWS);
    t.folder = maq_arena_strdup(&o->arena, maq_str_of(folder));
    if (!t.rows || !t.folder)
        return maq_no_memory(diag, NULL);
    for (size_t i = 0; i < MAQ_COUNT(groups); i++)
        MAQ_TRY(groups[i](&t));
    o->result = (struct maq_validate_risk){.folder = t.folder, .n_rows = t.n, .rows = t.rows};
    for (uint32_t i = 0; i < t.n; i++)
        o->result.n[t.rows[i].verdict]++;
    return MAQ_OK;
}

enum maq_status maq_validate_risk(struct maq_validate_risk **out, const char *folder, struct maq_diag *diag)
{
    DIR *there = opendir(folder);
    if (!there)
        return maq_cannot_read(diag, folder, "a folder in the layout of docs/validate.md", errno);
    closedir(there);
    struct owner *o = maq__calloc(sizeof *o);
    if (!o)
        return maq_no_memory(diag, NULL);
    maq_arena_init(&o->arena, 0);
    enum maq_status status = fill(o, folder, diag);
    if (status != MAQ_OK) {
        maq_validate_risk_free(&o->result);
        return status;
    }
    *out = &o->result;
    return MAQ_OK;
}

void maq_validate_risk_free(struct maq_validate_risk *result)
{
    struct owner *o = (struct owner *)result;
    if (!o)
        return;
    maq_arena_fini(&o->arena);
    free(o);
}
