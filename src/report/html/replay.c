/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the page of a replayed job: how long it takes and against what was captured, its steps, where the time of each class goes, and
 * what every rank does.
 *
 * Beside the report's document the page carries what its charts need (`more`):
 *
 *   {"ranks_of_a_point": 1, "computing": [...], "moving": [...], "peers": [...], "host": [...], "captured_steps": [...]}
 *
 * Seconds of ranks in their order; of many ranks so many in a row are one point, that of the one which computes longest.
 */
#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "report/capture/replay_parts.h"
#include "report/html/html.h"
#include "report/words.h"

#define POINTS_MOST 2048u

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

/* The rank of a window that computes longest. */
static uint32_t busiest(const struct maq_replay *r, uint32_t from, uint32_t to)
{
    uint32_t most = from;
    for (uint32_t i = from; i < to; i++)
        most = r->share[i].compute_ns > r->share[most].compute_ns ? i : most;
    return most;
}

static void put_more(struct maq_buf *b, const struct maq_report_replay *p)
{
    static const char *const names[] = {"computing", "moving", "peers", "host"};
    const struct maq_replay *r = p->replay;
    uint32_t window = (r->world + POINTS_MOST - 1) / POINTS_MOST;
    maq_buf_addf(b, "{\"ranks_of_a_point\":%u", window);
    for (int k = 0; k < 4; k++) {
        maq_buf_addf(b, ",\"%s\":[", names[k]);
        for (uint32_t i = 0; i < r->world; i += window) {
            const struct maq_replay_share *s = &r->share[busiest(r, i, r->world - i > window ? i + window : r->world)];
            const int64_t ns[] = {s->compute_ns, s->communication_ns, s->peers_ns, s->host_ns};
            maq_buf_addf(b, "%s%.6g", i > 0 ? "," : "", seconds(ns[k]));
        }
        maq_buf_addc(b, ']');
    }
    maq_buf_adds(b, ",\"captured_steps\":[");
    for (uint32_t i = 0; p->base && i < p->base->n_steps; i++)
        maq_buf_addf(b, "%s%.9g", i > 0 ? "," : "",
                     seconds(p->base->step_end_ns[i] - (i > 0 ? p->base->step_end_ns[i - 1] : 0)));
    maq_buf_adds(b, "]}");
}

static void put_cards(struct maq_html *h, const struct maq_report_replay *p)
{
    const struct maq_replay *r = p->replay;
    char value[48], note[160], a[32];
    int64_t compute = 0, whole = 0;
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct maq_replay_share *m = &r->class_of_ranks[i].mean;
        compute += m->compute_ns * r->class_of_ranks[i].n_ranks;
        whole += (m->compute_ns + m->communication_ns + m->peers_ns + m->host_ns) * r->class_of_ranks[i].n_ranks;
    }
    maq_html_cards(h);
    if (p->base && !r->failed && p->base->makespan_ns > 0)
        maq__snprintf(note, sizeof note, "%+.2f %% against the job as captured (%s)",
                      100.0 * ((double)r->makespan_ns / (double)p->base->makespan_ns - 1),
                      maq_format_time(a, seconds(p->base->makespan_ns)));
    else
        maq__snprintf(note, sizeof note, "from the first record to the end of the last rank");
    maq_html_card(h, "Takes", maq_format_time(value, seconds(r->makespan_ns)), note);
    if (r->n_steps > 0) {
        maq__snprintf(note, sizeof note, "mean of %u%s", r->n_steps,
                      r->steps_marked ? "" : ", found as the period of the records");
        maq_html_card(h, "Step", maq_format_time(value, seconds(r->step_end_ns[r->n_steps - 1]) / r->n_steps), note);
    }
    maq__snprintf(value, sizeof value, "%.1f %%", whole > 0 ? 100.0 * (double)compute / (double)whole : 0.0);
    maq_html_card_gauge(h, "Computing", value, "mean of all ranks, of the stream that computes most",
                        whole > 0 ? (double)compute / (double)whole : 0, false);
    maq__snprintf(note, sizeof note, "of %s in the job; %llu records, %llu meetings", maq_words_integer(a, r->world),
                  (unsigned long long)r->records, (unsigned long long)r->meetings);
    maq_html_card(h, "Ranks replayed", maq_words_integer(value, r->n_known), note);
    maq_html_end_cards(h);
}

enum maq_status maq_report_replay_html(char **out, const struct maq_report_replay *report,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_replay *r = report->replay;
    struct maq_html h;
    const struct maq_lines to = {put_fact, &h};
    struct maq_buf more;
    struct maq_table t;
    char title[64], *document = NULL;
    enum maq_status status = maq_report_replay_json(&document, report, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_buf_init(&more, (size_t)16 * 1024 * 1024);
    put_more(&more, report);
    maq__snprintf(title, sizeof title, "A captured job of %u ranks", r->world);
    maq_html_begin(&h, "replay", title);
    if (r->failed)
        maq_html_verdict(&h, MAQ_HTML_BAD, "a failure ends the job");
    if (r->n_known < r->world)
        maq_html_verdict(&h, MAQ_HTML_WARN, "nothing is known of some ranks: what they do is in time for the others");
    put_cards(&h, report);
    maq_html_section(&h, "steps", "Steps");
    maq_html_facts(&h);
    maq_replay_lines(&to, r);
    maq_html_end_facts(&h);
    if (r->n_steps > 0)
        maq_html_chart(&h, "step-chart", "short",
                       report->base ? "Time of each step, and as captured." : "Time of each step.");
    maq_html_end_section(&h);
    maq_html_section(&h, "classes", "Where the time goes");
    maq_html_chart(&h, "class-chart", "bars",
                   "Of the stream that computes most, mean of each class: computing; waiting while bytes move, for "
                   "peers that come later, and for the host to launch.");
    maq_replay_classes_table(&t, r);
    maq_html_table(&h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(&h);
    if (r->world > 1) {
        maq_html_section(&h, "ranks", "Every rank");
        maq_html_chart(&h, "rank-chart", "",
                       "The same, rank by rank: who computes longer than others is waited for by them.");
        if (r->world > POINTS_MOST)
            maq_html_note(&h, "Each point is the rank that computes longest of %u in a row.",
                          (r->world + POINTS_MOST - 1) / POINTS_MOST);
        maq_html_end_section(&h);
    }
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
