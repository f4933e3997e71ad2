/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - a validation as a page: the plot, the report as it is printed, the lists of its document as tables.
 *
 * What is compared differs from validation to validation, and so do the members of the documents. A list of objects is a table whose columns
 * are the members that are no lists and no maps themselves; a plain member is a fact. Errors are shares and shown in percent.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "maquette/validate.h"
#include "report/html/html.h"

#define COLUMNS 14 /* of a table */
#define ROWS 200   /* the document has all */
#define HEADS 40   /* bytes of a column's name */

/* ---- values ------------------------------------------------------------------------------------------------------- */

static bool is_share(const char *key)
{
    static const char *const shares[] = {"median_ape", "mean_ape",     "p90_ape",    "bias",
                                         "error",      "inside",       "inside_80",  "fitted",
                                         "regret",     "stated_error", "time_error", "memory_error"};
    for (size_t i = 0; i < MAQ_COUNT(shares); i++)
        if (strcmp(key, shares[i]) == 0)
            return true;
    return false;
}

static bool is_plain(const json_t *value)
{
    return !json_is_array(value) && !json_is_object(value);
}

static void put_value(char text[160], const char *key, const json_t *value)
{
    if (json_is_string(value))
        maq__snprintf(text, 160, "%.150s", json_string_value(value));
    else if (json_is_integer(value))
        maq__snprintf(text, 160, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value) && is_share(key))
        maq__snprintf(text, 160, "%.1f %%", 100 * json_real_value(value));
    else if (json_is_real(value))
        maq__snprintf(text, 160, "%.6g", json_real_value(value));
    else
        maq__snprintf(text, 160, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "");
}

/* "median_ape" as "median ape". */
static void put_words(char text[HEADS], const char *key)
{
    maq__snprintf(text, HEADS, "%.38s", key);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

/* ---- tables --------------------------------------------------------------------------------------------------------- */

struct columns {
    size_t n;
    const char *key[COLUMNS];
    char head[COLUMNS][HEADS];
    struct maq_table_column column[COLUMNS];
};

static bool has(const struct columns *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->key[i], key) == 0)
            return true;
    return false;
}

/* Plain members of the items, in the order in which they come, but for jobs, which are documents; right where there is a number. */
static void find_columns(struct columns *c, const json_t *list)
{
    size_t i;
    json_t *item, *value;
    const char *key;
    c->n = 0;
    json_array_foreach(list, i, item)
    {
        json_object_foreach(item, key, value)
        {
            if (!is_plain(value) || strcmp(key, "job") == 0 || has(c, key) || c->n == COLUMNS)
                continue;
            c->key[c->n] = key;
            put_words(c->head[c->n], key);
            c->column[c->n] = (struct maq_table_column){c->head[c->n], json_is_number(value), json_is_string(value)};
            c->n++;
        }
        if (i == ROWS)
            break;
    }
}

static void put_list(struct maq_html *h, const char *key, const json_t *list)
{
    struct columns c;
    struct maq_table t;
    char text[160], title[HEADS];
    size_t n = json_array_size(list);
    find_columns(&c, list);
    if (c.n == 0)
        return;
    maq_table_init(&t, c.column, c.n);
    for (size_t i = 0; i < n && i < ROWS; i++) {
        maq_table_row(&t, MAQ_INK_PLAIN);
        for (size_t k = 0; k < c.n; k++) {
            put_value(text, c.key[k], json_object_get(json_array_get(list, i), c.key[k]));
            maq_table_cell(&t, "%s", maq_text_clean(&t.arena, text));
        }
    }
    put_words(title, key);
    maq_html_section(h, key, title);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    if (n > ROWS)
        maq_html_note(h, "and %zu more, in the document", n - ROWS);
    maq_html_end_section(h);
}

/* ---- the page ------------------------------------------------------------------------------------------------------- */

static void put_facts(struct maq_html *h, json_t *root)
{
    const char *key;
    json_t *value;
    char text[160], head[HEADS];
    maq_html_facts(h);
    json_object_foreach(root, key, value)
    {
        if (!is_plain(value) || json_is_null(value) || strcmp(key, "schema") == 0)
            continue;
        put_value(text, key, value);
        put_words(head, key);
        maq_html_fact(h, head, text);
    }
    maq_html_end_facts(h);
}

static void put_lists(struct maq_html *h, json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) if (json_is_array(value) && strcmp(key, "diagnostics") != 0)
        put_list(h, key, value);
}

static void put_plot(struct maq_html *h, const char *svg)
{
    const char *begin = svg ? strstr(svg, "<svg") : NULL;
    if (!begin)
        return;
    maq_html_section(h, "plot", "Predicted against measured");
    maq_html_put(h, "<div class=\"scroll\">");
    maq_html_put(h, begin);
    maq_html_put(h, "</div>\n");
    maq_html_end_section(h);
}

static void put_report(struct maq_html *h, const char *text)
{
    maq_html_section(h, "printed", "The report");
    maq_html_put(h, "<pre>");
    maq_html_text(h, maq_str_of(text));
    maq_html_put(h, "</pre>\n");
    maq_html_end_section(h);
}

enum maq_status maq_validate_html(char **out, const char *what, const char *text, char *document, const char *svg,
                                  struct maq_diag *diag)
{
    struct maq_html h;
    char title[64];
    json_t *root = document ? json_loads(document, 0, NULL) : NULL;
    if (!text || !root) {
        json_decref(root);
        free(document);
        return maq_no_memory(diag, "a page");
    }
    maq__snprintf(title, sizeof title, "Predictions against measurements: %s", what);
    maq_html_begin(&h, "validate", title);
    put_facts(&h, root);
    maq_html_put(&h, "</header>\n<main>\n");
    put_plot(&h, svg);
    put_report(&h, text);
    put_lists(&h, root);
    json_decref(root);
    return maq_html_finish(out, &h, document, NULL, diag);
}
