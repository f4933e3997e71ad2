/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the pages of a captured job: what it holds, and where the time of its busiest class goes. */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/capture/graph_parts.h"
#include "report/html/html.h"
#include "report/words.h"

#define OPERATORS 100u /* of the table */

/* ---- what it holds ---------------------------------------------------------------------------------------------- */

static void put_verdicts(struct maq_html *h, const struct maq_report_graph *g)
{
    char text[64];
    if (g->stats->n_known < g->capture->world) {
        maq__snprintf(text, sizeof text, "nothing is known of %u ranks", g->capture->world - g->stats->n_known);
        maq_html_verdict(h, MAQ_HTML_WARN, text);
    }
    if (g->checked)
        maq_html_verdict(h, g->meets ? MAQ_HTML_GOOD : MAQ_HTML_BAD,
                         g->meets ? "all collectives and messages meet"
                                  : "some collectives or messages do not meet: see the diagnostics");
}

static void put_cards(struct maq_html *h, const struct maq_report_graph *g)
{
    const struct maq_capture *c = g->capture;
    char value[32], note[128];
    maq_html_cards(h);
    if (c->per_node > 0)
        maq__snprintf(note, sizeof note, "%u to a node; %u known", c->per_node, g->stats->n_known);
    else
        maq__snprintf(note, sizeof note, "%u known", g->stats->n_known);
    maq_html_card(h, "Ranks", maq_words_integer(value, c->world), note);
    maq_html_card(h, "Classes", maq_words_integer(value, c->n_classes), "ranks of a class do the same");
    maq__snprintf(note, sizeof note, "%u operator%s, %u communicator%s", c->n_ops, maq_words_s(c->n_ops), c->n_comms,
                  maq_words_s(c->n_comms));
    maq_html_card(h, "Records", maq_words_integer(value, (int64_t)g->stats->records), note);
    if (g->stats->n_top > 0) {
        maq__snprintf(value, sizeof value, "%.1f %%",
                      g->stats->compute_ns > 0 ? 100 * g->stats->top[0].total_ns / g->stats->compute_ns : 0.0);
        maq__snprintf(note, sizeof note, "of recorded computing, over all ranks, is %.80s", g->stats->top[0].name);
        maq_html_card(h, "Largest operator", value, note);
    }
    maq_html_end_cards(h);
}

static void put_table(struct maq_html *h, const char *id, const char *title, struct maq_table *t)
{
    maq_html_section(h, id, title);
    maq_html_table(h, t, NULL);
    maq_table_fini(t);
    maq_html_end_section(h);
}

static void put_records(struct maq_html *h, const struct maq_capture_stats *s)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 14);
    maq_graph_records_words(&words, s);
    h->out.failed |= words.failed;
    maq_html_section(h, "records", "Records by kind, over all ranks");
    maq_html_note(h, "%s", words.ptr ? words.ptr : "");
    maq_html_end_section(h);
    maq_buf_fini(&words);
}

enum maq_status maq_report_graph_html(char **out, const struct maq_report_graph *graph,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_table t;
    char title[64], *document;
    MAQ_TRY(maq_report_graph_json(&document, graph, opts, diag));
    maq__snprintf(title, sizeof title, "A captured job of %u ranks", graph->capture->world);
    maq_html_begin(&h, "graph", title);
    if (graph->capture->device) {
        maq_html_facts(&h);
        maq_html_fact(&h, "device", graph->capture->device);
        maq_html_end_facts(&h);
    }
    put_verdicts(&h, graph);
    put_cards(&h, graph);
    maq_graph_classes_table(&t, graph);
    put_table(&h, "classes", "Classes of ranks", &t);
    maq_graph_communicators_table(&t, graph->stats);
    put_table(&h, "communicators", "Communicators, and what a rank sends through each", &t);
    put_records(&h, graph->stats);
    if (graph->stats->n_top > 0) {
        maq_html_section(&h, "operators", "Largest operators");
        maq_html_chart(&h, "operator-chart", "bars", "Recorded time over all ranks.");
        maq_graph_operators_table(&t, graph->stats);
        maq_html_table(&h, &t, "As they were recorded, over all ranks");
        maq_table_fini(&t);
        maq_html_end_section(&h);
    }
    return maq_html_finish(out, &h, document, NULL, diag);
}

/* ---- where its time goes ------------------------------------------------------------------------------------------ */

/* A row for each category that takes time, with the bar of its share. */
static void put_buckets(struct maq_html *h, const struct maq_times *s)
{
    static const char *const colors[MAQ_BUCKET_COUNT] = {"c-forward", "c-backward",  "c-recompute", "c-tp",
                                                         "c-cp",      "c-ep",        "c-pp",        "c-dp",
                                                         "c-bubble",  "c-optimizer", "c-host",      "c-other"};
    char time[32];
    maq_html_section(h, "time", "Where the time goes");
    maq_html_put(h,
                 "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th scope=\"col\">category</th><th "
                 "scope=\"col\" class=\"n\">time</th><th scope=\"col\" class=\"n\">share</th><th></th></tr></thead>\n"
                 "<tbody>\n");
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++) {
        double ns = s->times.bucket_ns[b], share = s->times.makespan_ns > 0 ? ns / s->times.makespan_ns : 0;
        if (ns <= 0)
            continue;
        maq_html_putf(h, "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td>",
                      maq_bucket_name((enum maq_bucket)b), maq_format_time(time, ns * 1e-9), 100 * share);
        maq_html_bar_cell(h, share, colors[b]);
        maq_html_put(h, "</tr>\n");
    }
    maq_html_put(h, "</tbody></table></div>\n");
    maq_html_end_section(h);
}

enum maq_status maq_report_times_html(char **out, const struct maq_timed_graph *timed, const double *finish,
                                      const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_times s;
    struct maq_table t;
    char value[32], note[160], *document;
    MAQ_TRY(maq_report_times_json(&document, timed, finish, opts, diag));
    enum maq_status status = maq_times_of(&s, timed, finish, diag);
    if (status != MAQ_OK) {
        free(document);
        return status;
    }
    maq_html_begin(&h, "graph", "Where the time of a captured job goes");
    h.nature = "A captured job with the durations of its file: recorded on a GPU, or the cost model's.";
    maq_html_cards(&h);
    maq__snprintf(note, sizeof note, "from the first operator to the last, %s nodes",
                  maq_words_integer(value, timed->graph.n_nodes));
    maq_html_card(&h, "Takes", maq_format_time(value, s.times.makespan_ns * 1e-9), note);
    if (timed->graph.n_classes > 0) {
        maq_times_table(&t, &s, 0); /* for its arena */
        maq__snprintf(note, sizeof note, "of %u class%s, the one that waits least for others", timed->graph.n_classes,
                      timed->graph.n_classes == 1 ? "" : "es");
        maq_html_card(&h, "Busiest class", maq_text_clean(&t.arena, timed->class_name[s.class_id]), note);
        maq_table_fini(&t);
    }
    maq_html_end_cards(&h);
    put_buckets(&h, &s);
    maq_times_table(&t, &s, OPERATORS);
    put_table(&h, "operators", "Longest operators", &t);
    if (s.n_rows > OPERATORS)
        maq_html_note(&h, "and %u more, in the document", s.n_rows - OPERATORS);
    free(s.row);
    return maq_html_finish(out, &h, document, NULL, diag);
}
