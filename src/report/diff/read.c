/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - two files become a comparison: whose reports they are, numbers by their path, figures and tables. See diff.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "report/codes.h"
#include "report/diff/diff.h"
#include "spec/cannot_read.h"

/* What parts leave of a whole by rounding alone: documents have 12 digits. */
#define ROUNDING 1e-9

const struct maq_diff_kind maq_diff_kinds[] = {
    {"maquette.train/1", "maquette train", maq_diff_read_train},
    {"maquette.plan/1", "maquette plan", maq_diff_read_plan},
    {"maquette.plan.mixed/1", "maquette plan, over node groups", maq_diff_read_mixed},
    {"maquette.serve/1", "maquette serve", maq_diff_read_serve},
    {"maquette.serve.plan/1", "maquette serve plan", maq_diff_read_serve_plan},
    {"maquette.risk.step/2", "maquette risk", maq_diff_read_risk_step},
    {"maquette.risk.run/2", "maquette risk --tokens", maq_diff_read_risk_run},
    {"maquette.replay/1", "maquette replay", maq_diff_read_replay},
    {0},
};

/* ---- whose reports ---------------------------------------------------------------------------------------------- */

#define KINDS "reports of train, plan, serve, serve plan, risk and replay are compared"

/* "maquette.train" of "maquette.train/1". */
static struct maq_str stem(struct maq_str schema)
{
    struct maq_str head;
    (void)maq_str_split(schema, '/', &head);
    return head;
}

static const struct maq_diff_kind *kind_of(struct maq_str schema)
{
    for (const struct maq_diff_kind *k = maq_diff_kinds; k->schema; k++)
        if (maq_str_eq(stem(maq_str_of(k->schema)), stem(schema)))
            return k;
    return NULL;
}

static enum maq_status refuse_no_report(const struct maq_node *root, const char *file, struct maq_diag *diag)
{
    struct maq_span at = {0};
    bool job = root && root->kind == MAQ_NODE_MAP && (maq_node_peek(root, "model") || maq_node_peek(root, "cluster"));
    if (root)
        at = (struct maq_span){root->at.file, root->at.off, 1};
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DIFF_NO_REPORT, at,
                         job ? "a job is predicted first: maquette train JOB.yaml --json >REPORT.json"
                             : "what is compared is written by --json: maquette train JOB.yaml --json >REPORT.json",
                         "%.200s is no report of maquette: it has no 'schema'", file);
}

/* What a report is; NULL with a diagnostic where it cannot be compared. */
static const struct maq_diff_kind *check_kind(const struct maq_doc *doc, const char *file, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE], hint[160];
    struct maq_node *schema = doc->root && doc->root->kind == MAQ_NODE_MAP ? maq_node_get(doc->root, "schema") : NULL;
    if (!schema || schema->kind != MAQ_NODE_SCALAR || !maq_str_starts(schema->text, "maquette.")) {
        (void)refuse_no_report(doc->root, file, diag);
        return NULL;
    }
    const struct maq_diff_kind *kind = kind_of(schema->text);
    maq_str_show(show, schema->text);
    if (!kind) {
        bool failed = maq_str_is(stem(schema->text), "maquette.error");
        (void)maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DIFF_SCHEMA, schema->at,
                            failed ? "the command failed that wrote it; `diagnostics` in it say why" : KINDS,
                            "%.200s is a report of the kind %s, which is not compared", file, show);
        return NULL;
    }
    if (!maq_str_is(schema->text, kind->schema)) {
        maq__snprintf(hint, sizeof hint, "this program reads %s; write the report with it again", kind->schema);
        (void)maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DIFF_SCHEMA, schema->at, hint,
                            "%.200s is of another version of its form, %s", file, show);
        return NULL;
    }
    return kind;
}

static enum maq_status check_kinds(const struct maq_diff_kind **out, struct maq_diff *d, struct maq_diag *diag)
{
    const struct maq_diff_kind *of[MAQ_DIFF_SIDES];
    char hint[160];
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        of[s] = check_kind(&d->doc[s], d->file[s], diag);
    if (!of[MAQ_DIFF_BEFORE] || !of[MAQ_DIFF_AFTER])
        return MAQ_BAD_INPUT;
    *out = of[MAQ_DIFF_BEFORE];
    if (of[MAQ_DIFF_BEFORE] == of[MAQ_DIFF_AFTER])
        return MAQ_OK;
    maq__snprintf(hint, sizeof hint, "compare it with another report of `%s`", of[MAQ_DIFF_AFTER]->command);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DIFF_COMMANDS, maq_diff_node(d, MAQ_DIFF_AFTER, "schema")->at,
                         hint, "%.200s is of `%s`, and %.200s is of `%s`", d->file[MAQ_DIFF_AFTER],
                         of[MAQ_DIFF_AFTER]->command, d->file[MAQ_DIFF_BEFORE], of[MAQ_DIFF_BEFORE]->command);
}

/* ---- values by their path ---------------------------------------------------------------------------------------- */

static struct maq_node *item(const struct maq_node *list, struct maq_str number)
{
    int64_t at;
    if (!maq_str_to_i64(&at, number) || at < 0)
        return NULL;
    struct maq_node *node = list->first;
    while (node && at-- > 0)
        node = node->next;
    return node;
}

static struct maq_node *node_in(struct maq_node *node, const char *path)
{
    struct maq_str rest = maq_str_of(path), head;
    char key[64];
    while (node && rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '.', &head);
        MAQ_ASSERT(head.len < sizeof key);
        memcpy(key, head.ptr, head.len);
        key[head.len] = '\0';
        node = node->kind == MAQ_NODE_MAP   ? maq_node_peek(node, key)
               : node->kind == MAQ_NODE_SEQ ? item(node, head)
                                            : NULL;
    }
    return node && maq_node_is_null(node) ? NULL : node;
}

struct maq_node *maq_diff_node(const struct maq_diff *diff, enum maq_diff_side side, const char *path)
{
    return node_in(diff->doc[side].root, path);
}

struct maq_diff_pair maq_diff_member(struct maq_diff_reader *r, struct maq_node *const map[MAQ_DIFF_SIDES],
                                     const char *path)
{
    struct maq_diff_pair pair = {0};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        struct maq_node *node = node_in(map[s], path);
        if (!node)
            continue;
        pair.has[s] = maq_node_double(&pair.of[s], node, r->diag);
        if (!pair.has[s])
            r->status = maq_worse(r->status, MAQ_BAD_INPUT);
    }
    return pair;
}

struct maq_diff_pair maq_diff_number(struct maq_diff_reader *r, const char *path)
{
    struct maq_node *roots[MAQ_DIFF_SIDES] = {r->diff->doc[0].root, r->diff->doc[1].root};
    return maq_diff_member(r, roots, path);
}

void maq_diff_require(struct maq_diff_reader *r, const char *path)
{
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        const struct maq_node *root = r->diff->doc[s].root;
        if (maq_diff_node(r->diff, (enum maq_diff_side)s, path))
            continue;
        r->status =
            maq_worse(r->status,
                      maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_DIFF_SCHEMA,
                                    (struct maq_span){root->at.file, root->at.off, 1}, "write the report again",
                                    "%.200s has no '%s', which every %s has", r->diff->file[s], path, r->diff->schema));
    }
}

void maq_diff_verdict(struct maq_diff *d, const char *path, const char *says_no)
{
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        const struct maq_node *node = maq_diff_node(d, (enum maq_diff_side)s, path);
        if (node && node->kind == MAQ_NODE_SCALAR && maq_str_is(node->text, "false"))
            d->verdict[s] = says_no;
    }
}

/* ---- figures and tables ------------------------------------------------------------------------------------------ */

struct maq_diff_figure *maq_diff_figure(struct maq_diff_reader *r, const char *key, const char *name,
                                        enum maq_diff_unit unit, int better, struct maq_diff_pair value)
{
    if (!value.has[MAQ_DIFF_BEFORE] && !value.has[MAQ_DIFF_AFTER])
        return NULL;
    MAQ_ASSERT(r->diff->n_figures < MAQ_DIFF_FIGURES);
    struct maq_diff_figure *f = &r->diff->figures[r->diff->n_figures++];
    *f = (struct maq_diff_figure){.key = key, .name = name, .unit = unit, .better = better, .value = value};
    return f;
}

void maq_diff_interval(struct maq_diff_figure *f, double confidence, struct maq_diff_pair low,
                       struct maq_diff_pair high)
{
    if (!f)
        return;
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        if (!low.has[s] || !high.has[s] || !(low.of[s] <= f->value.of[s]) || !(high.of[s] >= f->value.of[s]))
            return;
    f->low = low;
    f->high = high;
    f->confidence = confidence;
}

struct maq_diff_table *maq_diff_table(struct maq_diff_reader *r, const char *key, const char *title,
                                      enum maq_diff_unit unit, int better)
{
    MAQ_ASSERT(r->diff->n_tables < MAQ_DIFF_TABLES);
    struct maq_diff_table *t = &r->diff->tables[r->diff->n_tables++];
    *t = (struct maq_diff_table){.key = key, .title = title, .unit = unit, .better = better};
    return t;
}

void maq_diff_row(struct maq_diff_reader *r, struct maq_diff_table *t, const char *key, const char *name,
                  struct maq_diff_pair value)
{
    if (!value.has[MAQ_DIFF_BEFORE] && !value.has[MAQ_DIFF_AFTER])
        return;
    if (t->n == t->size) {
        uint32_t size = t->size ? t->size * 2 : 32;
        struct maq_diff_row *rows = MAQ_ARENA_NEW(&r->diff->arena, struct maq_diff_row, size);
        if (!rows) {
            r->status = maq_worse(r->status, maq_no_memory(r->diag, "a comparison"));
            return;
        }
        if (t->n > 0)
            memcpy(rows, t->rows, t->n * sizeof *rows);
        t->rows = rows;
        t->size = size;
    }
    t->rows[t->n++] = (struct maq_diff_row){key, name, value};
}

struct maq_diff_pair maq_diff_sum(const struct maq_diff_table *t)
{
    struct maq_diff_pair sum = {0};
    for (uint32_t i = 0; i < t->n; i++)
        for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
            sum.of[s] += t->rows[i].value.of[s];
            sum.has[s] |= t->rows[i].value.has[s];
        }
    return sum;
}

static bool before(const struct maq_diff_row *a, const struct maq_diff_row *b)
{
    return fabs(maq_diff_change(a->value)) > fabs(maq_diff_change(b->value));
}

void maq_diff_add_up(struct maq_diff_reader *r, struct maq_diff_table *t, const char *key, const char *name,
                     struct maq_diff_pair whole, const char *rest)
{
    struct maq_diff_pair sum = maq_diff_sum(t), left = {.has = {whole.has[0], whole.has[1]}};
    bool shows = false;
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        left.of[s] = whole.has[s] ? whole.of[s] - sum.of[s] : 0;
        shows |= fabs(left.of[s]) > ROUNDING * fabs(whole.of[s]);
    }
    if (shows)
        maq_diff_row(r, t, "rest", rest, left);
    t->adds_up = true;
    t->whole = (struct maq_diff_row){key, name, whole};
    for (uint32_t i = 1; i < t->n; i++) {
        struct maq_diff_row row = t->rows[i];
        uint32_t at = i;
        for (; at > 0 && before(&row, &t->rows[at - 1]); at--)
            t->rows[at] = t->rows[at - 1];
        t->rows[at] = row;
    }
}

/* ---- loading ------------------------------------------------------------------------------------------------------ */

static enum maq_status read_both(struct maq_diff *d, struct maq_diag *diag)
{
    const struct maq_diff_kind *kind;
    struct maq_diff_reader r = {d, diag, MAQ_OK};
    MAQ_TRY(check_kinds(&kind, d, diag));
    d->schema = kind->schema;
    d->command = kind->command;
    maq_diff_settings(&r, "maquette", "maquette");
    kind->read(&r);
    return r.status;
}

static enum maq_status finish(struct maq_diff **out, struct maq_diff *d, enum maq_status status, struct maq_diag *diag)
{
    if (status == MAQ_OK)
        status = read_both(d, diag);
    if (status == MAQ_OK)
        *out = d;
    else
        maq_diff_free(d);
    return status;
}

static struct maq_diff *begin(const char *before_name, const char *after_name, struct maq_diag *diag)
{
    struct maq_diff *d = maq__calloc(sizeof *d);
    if (!d) {
        (void)maq_no_memory(diag, "a comparison");
        return NULL;
    }
    maq_arena_init(&d->arena, 0);
    d->file[MAQ_DIFF_BEFORE] = maq_arena_strdup(&d->arena, maq_str_of(before_name));
    d->file[MAQ_DIFF_AFTER] = maq_arena_strdup(&d->arena, maq_str_of(after_name));
    if (d->file[MAQ_DIFF_BEFORE] && d->file[MAQ_DIFF_AFTER])
        return d;
    (void)maq_no_memory(diag, "a comparison");
    maq_diff_free(d);
    return NULL;
}

static enum maq_status load_one(struct maq_doc *doc, const char *path, struct maq_diag *diag)
{
    MAQ_TRY(maq_file_expected(path, "a report: maquette train JOB.yaml --json >REPORT.json", diag));
    return maq_doc_load(doc, path, MAQ_ORIGIN_DOCUMENT, diag);
}

enum maq_status maq_diff_load(struct maq_diff **out, const char *before_path, const char *after_path,
                              struct maq_diag *diag)
{
    struct maq_diff *d = begin(before_path, after_path, diag);
    if (!d)
        return MAQ_NO_MEMORY;
    enum maq_status first = load_one(&d->doc[MAQ_DIFF_BEFORE], before_path, diag);
    enum maq_status second = load_one(&d->doc[MAQ_DIFF_AFTER], after_path, diag);
    return finish(out, d, maq_worse(first, second), diag);
}

enum maq_status maq_diff_parse(struct maq_diff **out, const char *before_name, struct maq_str before_text,
                               const char *after_name, struct maq_str after_text, struct maq_diag *diag)
{
    struct maq_diff *d = begin(before_name, after_name, diag);
    if (!d)
        return MAQ_NO_MEMORY;
    enum maq_status first =
        maq_doc_parse(&d->doc[MAQ_DIFF_BEFORE], before_name, before_text, MAQ_ORIGIN_DOCUMENT, diag);
    enum maq_status second = maq_doc_parse(&d->doc[MAQ_DIFF_AFTER], after_name, after_text, MAQ_ORIGIN_DOCUMENT, diag);
    return finish(out, d, maq_worse(first, second), diag);
}

void maq_diff_free(struct maq_diff *d)
{
    if (!d)
        return;
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        maq_doc_fini(&d->doc[s]);
    maq_arena_fini(&d->arena);
    free(d);
}
