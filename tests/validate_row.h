/* SPDX-License-Identifier: Apache-2.0 */
/* validate_row.h - a table of one row, and the job that is read from it: for the tests of what tables say. */
#ifndef MAQ_TESTS_VALIDATE_ROW_H
#define MAQ_TESTS_VALIDATE_ROW_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/train/interpret.h"

struct table {
    char *text;
    struct maq_csv csv;
    struct maq_arena arena;
    struct maq_diag *diag;
    enum maq_status status;
};

static inline void open_table_as(struct table *t, const char *text, bool strict)
{
    maq_arena_init(&t->arena, 0);
    t->diag = maq_diag_new();
    maq_diag_set_strict(t->diag, strict);
    t->text = strdup(text);
    t->status = maq_csv_parse(&t->csv, "t.csv", maq_str_of(t->text), &t->arena, t->diag);
}

static inline void open_table(struct table *t, const char *text)
{
    open_table_as(t, text, false);
}

static inline void close_table(struct table *t)
{
    maq_arena_fini(&t->arena);
    maq_diag_free(t->diag);
    free(t->text);
}

#define NEEDED "num_layers,hidden,heads,seq_len,gbs,tp,pp,dp,num_gpus,gpus_per_node,gpu,model,derived_iter_time_s"

/* Interprets one row of the needed columns with more columns (a list of names and one of cells). */
struct one {
    struct table t;
    struct maq_row_table table;
    struct maq_interpretation in;
    const char *job;
};

static inline void interpret(struct one *o, const char *needed, const char *columns, const char *cells)
{
    char *text;
    assert_true(
        asprintf(&text, NEEDED "%s%s\n%s%s%s\n", *columns ? "," : "", columns, needed, *columns ? "," : "", cells) > 0);
    memset(o, 0, sizeof *o);
    open_table(&o->t, text);
    assert_int_equal(o->t.status, MAQ_OK);
    o->table.csv = o->t.csv;
    assert_int_equal(maq_row_table_bind(&o->table, o->t.diag), MAQ_OK);
    o->in.row = (struct maq_table_row){&o->table, 0, -1};
    o->in.arena = &o->t.arena;
    maq_interpret_row(&o->in);
    assert_false(o->in.failed);
    o->job = o->in.skip == MAQ_VALIDATE_SKIP_NONE ? maq_interpret_job(&o->in) : "";
    assert_non_null(o->job);
    free(text);
}

#endif
