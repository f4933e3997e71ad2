/* SPDX-License-Identifier: Apache-2.0 */
/* times.c - where the time of a graph goes: text, and schema "maquette.times/1" (docs/imports.md). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/text.h"
#include "base/units.h"
#include "report/capture/graph_parts.h"
#include "report/json_util.h"
#include "report/step_json.h"
#include "report/words.h"

#define SHOWN 12u /* operators */
#define BAR 24
#define NAME 64 /* cells of an operator's name */

static int by_name(const void *a, const void *b)
{
    const struct maq_times_row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
    const struct maq_times_row *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

enum maq_status maq_times_of(struct maq_times *s, const struct maq_timed_graph *g, const double *finish,
                             struct maq_diag *diag)
{
    *s = (struct maq_times){.n_rows = 0};
    struct maq_times_row *row = calloc((size_t)g->graph.n_items + 1, sizeof *row);
    enum maq_status status = row ? maq_graph_times(&s->times, &s->class_id, g, finish) : MAQ_NO_MEMORY;
    if (status != MAQ_OK) {
        free(row);
        return maq_diag_fail(status, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for a report");
    }
    for (uint32_t i = 0; i < g->graph.n_items; i++)
        row[i].name = g->item_name[i];
    uint32_t share = 0;
    for (uint32_t v = 0; v < g->graph.n_nodes; v++) {
        bool here = g->graph.stream[v] / MAQ_STREAM_COUNT == s->class_id;
        for (; share < g->n_shares && g->share[share].node == v; share++)
            here |= g->share[share].stream / MAQ_STREAM_COUNT == s->class_id;
        uint32_t item = g->graph.item[v];
        if (!here || g->dur_ns[item] <= 0 || g->item_sort[item] == MAQ_ITEM_HOST)
            continue;
        row[item].seconds += g->dur_ns[item] * 1e-9;
        row[item].count++;
    }
    qsort(row, g->graph.n_items, sizeof *row, by_name);
    for (uint32_t i = 0; i < g->graph.n_items; i++) {
        if (s->n_rows == 0 || strcmp(row[s->n_rows - 1].name, row[i].name) != 0)
            row[s->n_rows++] = row[i];
        else {
            row[s->n_rows - 1].seconds += row[i].seconds;
            row[s->n_rows - 1].count += row[i].count;
        }
    }
    qsort(row, s->n_rows, sizeof *row, by_time);
    while (s->n_rows > 0 && row[s->n_rows - 1].seconds <= 0)
        s->n_rows--;
    s->row = row;
    return MAQ_OK;
}

/* --- text ------------------------------------------------------------------------------------------------------------------ */

static void put_buckets(struct maq_page *page, const struct maq_times *s)
{
    double largest = 0;
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        largest = s->times.bucket_ns[b] > largest ? s->times.bucket_ns[b] : largest;
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++) {
        char time[32];
        double ns = s->times.bucket_ns[b], share = s->times.makespan_ns > 0 ? ns / s->times.makespan_ns : 0;
        if (ns <= 0)
            continue;
        maq_page_putf(page, MAQ_INK_PLAIN, "  %-17s%10s %6.1f %%  ", maq_bucket_name((enum maq_bucket)b),
                      maq_format_time(time, ns * 1e-9), 100 * share);
        maq_page_bar(page, largest > 0 ? ns / largest : 0, BAR);
        maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    }
}

void maq_times_table(struct maq_table *t, const struct maq_times *s, uint32_t most)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"count", true, false}, {"time", true, false}, {"of the whole", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n_rows && i < most; i++) {
        char time[32];
        const char *name = maq_text_clean(&t->arena, s->row[i].name);
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%.*s%s", NAME, name, strlen(name) > NAME ? "..." : "");
        maq_table_cell(t, "%.0f", s->row[i].count);
        maq_table_cell(t, "%s", maq_format_time(time, s->row[i].seconds));
        maq_table_cell(t, "%.1f %%", 100e9 * s->row[i].seconds / s->times.makespan_ns);
    }
}

static void put_rows(struct maq_page *page, const struct maq_times *s)
{
    struct maq_table t;
    maq_times_table(&t, s, SHOWN);
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    if (s->n_rows > SHOWN)
        maq_page_putf(page, MAQ_INK_FAINT, "and %u more\n", s->n_rows - SHOWN);
}

enum maq_status maq_report_times_text(char **out, const struct maq_timed_graph *timed, const double *finish,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_times s;
    struct maq_page page;
    char time[32];
    MAQ_TRY(maq_times_of(&s, timed, finish, diag));
    maq_page_init(&page, opts);
    if (timed->graph.n_classes > 0) {
        uint32_t ranks = timed->graph.multiplicity[s.class_id];
        struct maq_table names; /* for its arena */
        maq_table_init(&names, NULL, 0);
        maq_page_putf(&page, MAQ_INK_TITLE, "%s  %s of %u class%s, %u rank%s\n",
                      maq_format_time(time, s.times.makespan_ns * 1e-9),
                      maq_text_clean(&names.arena, timed->class_name[s.class_id]), timed->graph.n_classes,
                      timed->graph.n_classes == 1 ? "" : "es", ranks, ranks == 1 ? "" : "s");
        maq_table_fini(&names);
    }
    put_buckets(&page, &s);
    put_rows(&page, &s);
    free(s.row);
    return maq_page_finish(out, &page, diag);
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------ */

enum maq_status maq_report_times_json(char **out, const struct maq_timed_graph *timed, const double *finish,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    struct maq_times s;
    (void)opts;
    MAQ_TRY(maq_times_of(&s, timed, finish, diag));
    maq_json_begin(&document, "maquette.times/1");
    struct maq_json root = document.root;
    maq_json_real(root, "makespan_s", s.times.makespan_ns * 1e-9);
    maq_json_int(root, "nodes", timed->graph.n_nodes);
    struct maq_json list = maq_json_list(root, "classes");
    for (uint32_t c = 0; c < timed->graph.n_classes; c++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "name", timed->class_name[c]);
        maq_json_int(item, "ranks", timed->graph.multiplicity[c]);
    }
    maq_json_int(root, "class", s.class_id);
    double seconds[MAQ_BUCKET_COUNT];
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        seconds[b] = s.times.bucket_ns[b] * 1e-9;
    maq_json_buckets(maq_json_map(root, "time"), seconds);
    list = maq_json_list(root, "operators");
    for (uint32_t i = 0; i < s.n_rows; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "operator", s.row[i].name);
        maq_json_count(item, "count", s.row[i].count);
        maq_json_real(item, "seconds", s.row[i].seconds);
    }
    free(s.row);
    return maq_json_finish(out, &document, diag);
}
