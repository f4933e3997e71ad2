/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - what a captured job holds, as text and as JSON, schema "maquette.graph/1". */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/capture/graph_parts.h"
#include "report/json_util.h"
#include "report/words.h"

void maq_graph_classes_table(struct maq_table *t, const struct maq_report_graph *g)
{
    static const struct maq_table_column columns[] = {
        {"class", false, true}, {"ranks", true, false},       {"records", true, false}, {"streams", true, false},
        {"steps", true, false}, {"peak memory", true, false}, {"ran", false, false}};
    char text[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < g->capture->n_classes; i++) {
        const struct maq_rank_class *c = &g->capture->class_of_ranks[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_text_clean(&t->arena, c->name));
        maq_table_cell(t, "%u", c->n_ranks);
        maq_table_cell(t, "%u", c->n_records);
        maq_table_cell(t, "%u", c->n_streams);
        maq_table_cell(t, "%u", g->stats->steps[i]);
        maq_table_cell(t, "%s", maq_format_bytes(text, (double)c->peak_bytes));
        maq_table_cell(t, "%s", c->probed ? "yes" : "no");
    }
}

void maq_graph_communicators_table(struct maq_table *t, const struct maq_capture_stats *s)
{
    static const struct maq_table_column columns[] = {{"communicators", true, false}, {"of ranks", true, false},
                                                      {"apart", true, false},         {"collectives", true, false},
                                                      {"messages", true, false},      {"bytes", true, false}};
    char text[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n_axes; i++) {
        const struct maq_capture_axis *a = &s->axis[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%u", a->count);
        maq_table_cell(t, "%u", a->size);
        maq_table_cell(t, a->stride > 0 ? "%u" : "-", a->stride);
        maq_table_cell(t, "%.1f", a->collectives);
        maq_table_cell(t, "%.1f", a->messages);
        maq_table_cell(t, "%s", maq_format_bytes(text, a->bytes));
    }
}

void maq_graph_records_words(struct maq_buf *b, const struct maq_capture_stats *s)
{
    bool first = true;
    for (uint32_t i = 0; i < s->n_kinds; i++)
        if (s->of_kind[i] > 0) {
            maq_buf_addf(b, "%s%llu %s", first ? "" : ", ", (unsigned long long)s->of_kind[i], s->kind_name[i]);
            first = false;
        }
    if (first)
        maq_buf_adds(b, "none");
}

void maq_graph_operators_table(struct maq_table *t, const struct maq_capture_stats *s)
{
    static const struct maq_table_column columns[] = {
        {"operator", false, true}, {"launches", true, false}, {"each", true, false}, {"share", true, false}};
    char text[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < s->n_top; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_text_clean(&t->arena, s->top[i].name));
        maq_table_cell(t, "%llu", (unsigned long long)s->top[i].launches);
        maq_table_cell(t, "%s", maq_format_time(text, s->top[i].mean_ns * 1e-9));
        maq_table_cell(t, "%.1f %%", s->compute_ns > 0 ? 100 * s->top[i].total_ns / s->compute_ns : 0.0);
    }
}

/* What a table is of stands above it, but above the first. */
static void put_table(struct maq_page *page, struct maq_table *t, const char *title)
{
    if (title)
        maq_page_putf(page, MAQ_INK_HEAD, "\n%s\n", title);
    maq_table_print(page, t, 0);
    maq_table_fini(t);
}

static void put_in_full(struct maq_page *page, const struct maq_capture_stats *s)
{
    struct maq_table t;
    struct maq_buf line;
    maq_graph_communicators_table(&t, s);
    put_table(page, &t, "communicators, and what a rank sends through each");
    maq_buf_init(&line, 1 << 14);
    maq_graph_records_words(&line, s);
    maq_buf_adds(&page->out, "\n");
    maq_page_field(page, 12, "records", line.ptr ? line.ptr : "");
    page->out.failed |= line.failed;
    maq_buf_fini(&line);
    if (s->n_top == 0)
        return;
    maq_graph_operators_table(&t, s);
    put_table(page, &t, "largest operators, as they were recorded, over all ranks");
}

enum maq_status maq_report_graph_text(char **out, const struct maq_report_graph *graph,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_capture *c = graph->capture;
    struct maq_page page;
    struct maq_table t;
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "captured job of %u ranks", c->world);
    if (c->per_node > 0)
        maq_page_putf(&page, MAQ_INK_TITLE, ", %u to a node", c->per_node);
    maq_page_putf(&page, MAQ_INK_PLAIN, ": %u class%s, %llu records, %u operator%s, %u communicator%s\n", c->n_classes,
                  c->n_classes == 1 ? "" : "es", (unsigned long long)graph->stats->records, c->n_ops,
                  maq_words_s(c->n_ops), c->n_comms, maq_words_s(c->n_comms));
    if (graph->stats->n_known < c->world)
        maq_page_putf(&page, MAQ_INK_BAD, "nothing is known of %u ranks\n", c->world - graph->stats->n_known);
    if (graph->checked)
        maq_page_putf(&page, graph->meets ? MAQ_INK_GOOD : MAQ_INK_BAD,
                      graph->meets ? "all collectives and messages meet\n"
                                   : "some collectives or messages do not meet: see the diagnostics\n");
    maq_buf_adds(&page.out, "\n");
    maq_graph_classes_table(&t, graph);
    put_table(&page, &t, NULL);
    if (graph->in_full)
        put_in_full(&page, graph->stats);
    return maq_page_finish(out, &page, diag);
}

static void add_classes(struct maq_json root, const struct maq_report_graph *g)
{
    struct maq_json list = maq_json_list(root, "classes");
    for (uint32_t i = 0; i < g->capture->n_classes; i++) {
        const struct maq_rank_class *c = &g->capture->class_of_ranks[i];
        struct maq_json item = maq_json_item(list);
        char signature[20];
        maq__snprintf(signature, sizeof signature, "%016llx", (unsigned long long)c->signature);
        maq_json_text(item, "name", c->name);
        maq_json_text(item, "signature", signature);
        MAQ_JSON_INTS(item, {"ranks", c->n_ranks}, {"first_rank", c->n_ranks > 0 ? (int64_t)c->rank[0] : -1},
                      {"records", c->n_records}, {"streams", c->n_streams}, {"steps", g->stats->steps[i]});
        maq_json_count(item, "peak_bytes", (double)c->peak_bytes);
        maq_json_bool(item, "ran", c->probed);
    }
}

enum maq_status maq_report_graph_json(char **out, const struct maq_report_graph *graph,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_capture_stats *s = graph->stats;
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.graph/1");
    MAQ_JSON_INTS(document.root, {"ranks", graph->capture->world}, {"ranks_known", s->n_known},
                  {"ranks_per_node", graph->capture->per_node});
    maq_json_text(document.root, "device", graph->capture->device);
    if (graph->checked)
        maq_json_bool(document.root, "meets", graph->meets);
    maq_json_count(document.root, "records", (double)s->records);
    add_classes(document.root, graph);
    struct maq_json list = maq_json_list(document.root, "communicators"), item;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        item = maq_json_item(list);
        MAQ_JSON_INTS(item, {"count", s->axis[i].count}, {"ranks", s->axis[i].size}, {"stride", s->axis[i].stride});
        MAQ_JSON_REALS(item, {"collectives_per_rank", s->axis[i].collectives},
                       {"messages_per_rank", s->axis[i].messages}, {"bytes_per_rank", s->axis[i].bytes});
    }
    item = maq_json_map(document.root, "records_by_kind");
    for (uint32_t i = 0; i < s->n_kinds; i++)
        if (s->of_kind[i] > 0)
            maq_json_count(item, s->kind_name[i], (double)s->of_kind[i]);
    list = maq_json_list(document.root, "operators");
    for (uint32_t i = 0; i < s->n_top; i++) {
        item = maq_json_item(list);
        maq_json_text(item, "name", s->top[i].name);
        maq_json_count(item, "launches", (double)s->top[i].launches);
        maq_json_real(item, "mean_s", s->top[i].mean_ns * 1e-9);
        maq_json_real(item, "total_s", s->top[i].total_ns * 1e-9);
    }
    return maq_json_finish(out, &document, diag);
}
