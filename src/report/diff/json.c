/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a comparison as a document, schema maquette.diff/1: docs/json.md. */
#include "base/check.h"
#include "base/str.h"
#include "report/diff/diff.h"
#include "report/json_util.h"

static const char *const sides[] = {"before", "after"};

/* A leaf as the report has it: a number, a truth value or a text. Maps and lists that only one report has: how many members. */
static void add_leaf(struct maq_json map, const char *key, const struct maq_node *node)
{
    double number;
    int64_t whole;
    if (!node)
        maq_json_null(map, key);
    else if (node->kind != MAQ_NODE_SCALAR)
        maq_json_int(map, key, node->count);
    else if (!node->quoted && maq_str_to_i64(&whole, node->text))
        maq_json_int(map, key, whole);
    else if (!node->quoted && maq_str_to_double(&number, node->text))
        maq_json_real(map, key, number);
    else if (!node->quoted && (maq_str_is(node->text, "true") || maq_str_is(node->text, "false")))
        maq_json_bool(map, key, maq_str_is(node->text, "true"));
    else
        maq_json_slice(map, key, node->text);
}

static void add_number(struct maq_json map, const char *key, double value, bool has)
{
    if (has)
        maq_json_real(map, key, value);
    else
        maq_json_null(map, key);
}

/* `counts`: what a report does not have is 0 in it. */
static void add_pair(struct maq_json map, struct maq_diff_pair value, bool counts)
{
    double relative = 0;
    bool is_relative = maq_diff_relative(&relative, value);
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        add_number(map, sides[s], value.of[s], value.has[s]);
    add_number(map, "change", maq_diff_change(value),
               counts || (value.has[MAQ_DIFF_BEFORE] && value.has[MAQ_DIFF_AFTER]));
    add_number(map, "relative_change", relative, is_relative);
}

static void add_settings(struct maq_json d, const struct maq_diff *diff)
{
    struct maq_json list = maq_json_list(d, "settings");
    for (uint32_t i = 0; i < diff->n_settings; i++) {
        const struct maq_diff_setting *s = &diff->settings[i];
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "section", s->section);
        maq_json_text(item, "setting", s->key);
        for (int side = 0; side < MAQ_DIFF_SIDES; side++)
            add_leaf(item, sides[side], s->of[side]);
    }
}

static void add_figures(struct maq_json d, const struct maq_diff *diff)
{
    struct maq_json list = maq_json_list(d, "figures");
    for (uint32_t i = 0; i < diff->n_figures; i++) {
        const struct maq_diff_figure *f = &diff->figures[i];
        struct maq_json item = maq_json_item(list);
        double low, high;
        maq_json_text(item, "figure", f->key);
        add_pair(item, f->value, false);
        if (!maq_diff_change_interval(&low, &high, f))
            continue;
        MAQ_JSON_REALS(item, {"before_low", f->low.of[MAQ_DIFF_BEFORE]}, {"before_high", f->high.of[MAQ_DIFF_BEFORE]},
                       {"after_low", f->low.of[MAQ_DIFF_AFTER]}, {"after_high", f->high.of[MAQ_DIFF_AFTER]},
                       {"confidence", f->confidence}, {"relative_change_low", low}, {"relative_change_high", high});
        maq_json_bool(item, "distinct", low > 0 || high < 0);
    }
}

static void add_tables(struct maq_json d, const struct maq_diff *diff)
{
    struct maq_json list = maq_json_list(d, "tables");
    for (uint32_t i = 0; i < diff->n_tables; i++) {
        const struct maq_diff_table *t = &diff->tables[i];
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "table", t->key);
        if (t->adds_up) {
            maq_json_text(item, "whole", t->whole.key);
            add_pair(item, t->whole.value, true);
        }
        struct maq_json rows = maq_json_list(item, "rows");
        for (uint32_t k = 0; k < t->n; k++) {
            struct maq_json row = maq_json_item(rows);
            maq_json_text(row, "row", t->rows[k].key);
            add_pair(row, t->rows[k].value, t->adds_up);
        }
    }
}

enum maq_status maq_report_diff_json(char **out, const struct maq_diff *diff, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.diff/1");
    struct maq_json d = document.root, files = maq_json_map(d, "files");
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        maq_json_text(files, sides[s], diff->file[s]);
    maq_json_text(d, "of", diff->schema);
    maq_json_bool(d, "same", maq_diff_is_same(diff));
    add_settings(d, diff);
    add_figures(d, diff);
    add_tables(d, diff);
    return maq_json_finish(out, &document, diag);
}
