/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_training.c - the page of a job of several models: how long a step is, which part takes it, one generation and what it is for over time, and whose
 * the memory is.
 *
 * Beside the report's document the page carries the cycle (`more`), kinds by their number, seconds:
 *
 *   {"kinds": ["sync of weights", ...], "end": 9.1, "kind": [0, ...], "step": [0, ...], "at": [...], "to": [...], "generates": [0.1, 8.3],
 *    "engines": [8.1, ...], "more_engines": 0, "engine": "engine"}
 *
 * Engines are in their order; of many the first are drawn.
 */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/report_post_training.h"
#include "report/html/html.h"
#include "report/rl_cycle.h"
#include "report/words.h"

#define ENGINES_MOST 32u

static const char *const colors[] = {"c-5", "c-2", "c-3", "c-4", "c-6", "c-7", "c-1"};
_Static_assert(MAQ_COUNT(colors) == MAQ_RL_PARTS, "a colour for each part");

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_column(struct maq_buf *b, const char *name, const struct maq_rl_cycle *c,
                       double (*of)(const struct maq_rl_span *))
{
    maq_buf_addf(b, ",\"%s\":[", name);
    for (uint32_t i = 0; i < c->n; i++)
        maq_buf_addf(b, "%s%.9g", i > 0 ? "," : "", of(&c->spans[i]));
    maq_buf_addc(b, ']');
}

static double kind_of(const struct maq_rl_span *s)
{
    return s->kind;
}

static double step_of(const struct maq_rl_span *s)
{
    return s->step;
}

static double start_of(const struct maq_rl_span *s)
{
    return (double)s->start_ns * 1e-9;
}

static double end_of(const struct maq_rl_span *s)
{
    return (double)s->end_ns * 1e-9;
}

static void put_engines(struct maq_buf *b, const struct maq_post_training_result *r, const struct maq_rl_cycle *c)
{
    const struct maq_rollout *o = &r->rollout;
    const uint32_t n = o->engines < ENGINES_MOST ? o->engines : ENGINES_MOST;
    double from = 0, to = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->spans[i].kind == MAQ_RL_GENERATE) {
            from = start_of(&c->spans[i]);
            to = end_of(&c->spans[i]);
        }
    maq_buf_addf(b, ",\"generates\":[%.9g,%.9g],\"engine\":\"%s\",\"more_engines\":%u,\"engines\":[", from, to,
                 r->rl.use_vllm ? "engine" : "rank", o->engines - n);
    for (uint32_t i = 0; i < n; i++)
        maq_buf_addf(b, "%s%.9g", i > 0 ? "," : "", o->ends_s[i]);
    maq_buf_addc(b, ']');
}

static void put_more(struct maq_buf *b, const struct maq_post_training_result *r, const struct maq_rl_cycle *c)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    maq_rl_parts(parts, r);
    maq_buf_addf(b, "{\"end\":%.9g,\"kinds\":[", (double)c->end_ns * 1e-9);
    for (int k = 0; k < MAQ_RL_PARTS; k++)
        maq_buf_addf(b, "%s[\"%s\",\"%s\"]", k > 0 ? "," : "", parts[k].words, colors[k]);
    maq_buf_addc(b, ']');
    put_column(b, "kind", c, kind_of);
    put_column(b, "step", c, step_of);
    put_column(b, "at", c, start_of);
    put_column(b, "to", c, end_of);
    put_engines(b, r, c);
    maq_buf_addc(b, '}');
}

static void put_cards(struct maq_html *h, const struct maq_post_training_result *r)
{
    const struct maq_post_training_memory *m = &r->memory;
    const double most = m->training > m->generating ? m->training : m->generating;
    char value[48], note[128], a[32];
    maq_html_cards(h);
    maq__snprintf(note, sizeof note, "%.0f sequences of %s tokens at most", r->sequences,
                  maq_words_integer(a, r->job->workload.seq));
    maq_html_card(h, "Step time", maq_format_time(value, r->step_s), note);
    maq__snprintf(value, sizeof value, "%.0f tokens/s", r->sequences * (double)r->job->workload.seq / r->step_s);
    maq_html_card(h, "Throughput", value, "that are trained on");
    if (maq_rl_generates(&r->rl)) {
        maq__snprintf(note, sizeof note, "%.0f completions; %.3g a step", r->rollout.sequences, r->rollout.per_step);
        maq_html_card(h, "A generation", maq_format_time(value, r->rollout.seconds), note);
    }
    maq__snprintf(note, sizeof note, "of %s, of the fullest GPU", maq_format_bytes(a, m->capacity));
    maq_html_card_gauge(h, "Memory", maq_format_bytes(value, most), note, most / m->capacity, !r->fits);
    maq_html_end_cards(h);
}

static void put_table_head(struct maq_html *h, const char *first, const char *second)
{
    maq_html_putf(h,
                  "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th scope=\"col\">%s</th><th scope=\"col\" "
                  "class=\"n\">%s</th><th scope=\"col\" class=\"n\">share</th><th></th></tr></thead>\n<tbody>\n",
                  first, second);
}

static void put_row(struct maq_html *h, const char *words, const char *value, double share, const char *color)
{
    maq_html_put(h, "<tr><td>");
    maq_html_text(h, maq_str_of(words));
    maq_html_putf(h, "</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td>", value, 100 * share);
    maq_html_bar_cell(h, share < 1 ? share : 1, color);
    maq_html_put(h, "</tr>\n");
}

static void put_parts(struct maq_html *h, const struct maq_post_training_result *r, const struct maq_rl_cycle *c)
{
    struct maq_rl_part parts[MAQ_RL_PARTS];
    char value[48];
    maq_rl_parts(parts, r);
    maq_html_section(h, "breakdown", "Where the step goes");
    put_table_head(h, "part", "of a step");
    for (int k = 0; k < MAQ_RL_PARTS; k++)
        if (parts[k].seconds > 0)
            put_row(h, parts[k].words, maq_format_time(value, parts[k].seconds), parts[k].seconds / r->step_s,
                    colors[k]);
    maq_html_put(h, "</tbody></table></div>\n");
    maq_html_end_section(h);
    maq_html_section(h, "cycle", maq_rl_generates(&r->rl) ? "One generation and what it is for" : "The step");
    maq_html_chart(h, "gantt", "gantt",
                   maq_rl_generates(&r->rl)
                       ? "What the trainer does one after another, and until when each that generates is busy."
                       : "What the trainer does one after another.");
    if (c->steps > 1)
        maq_html_note(h, "A generation is for %.3g optimizer steps.", c->steps);
    else if (c->steps < 1)
        maq_html_note(h, "A step has %.3g generations; one is drawn, with its share of training.", 1 / c->steps);
    if (r->rollout.engines > ENGINES_MOST)
        maq_html_note(h, "The first %u of %u are drawn.", ENGINES_MOST, r->rollout.engines);
    maq_html_end_section(h);
}

static void put_memory(struct maq_html *h, const struct maq_post_training_result *r)
{
    static const char *const of[MAQ_RL_MEMORY_ROWS] = {"c-1", "c-7", "c-4", "c-6", "c-2", "c-3", "c-8", "c-8"};
    struct maq_rl_memory_row rows[MAQ_RL_MEMORY_ROWS];
    char value[32];
    maq_rl_memory_rows(rows, r);
    maq_html_section(h, "memory", "Memory of the fullest GPU");
    put_table_head(h, "held by", "GiB");
    for (size_t i = 0; i < MAQ_RL_MEMORY_ROWS; i++) {
        if (!(rows[i].bytes > 0))
            continue;
        maq__snprintf(value, sizeof value, "%.2f", rows[i].bytes / MAQ_GIB);
        put_row(h, rows[i].words, value, rows[i].bytes / r->memory.capacity, of[i]);
    }
    maq_html_putf(
        h, "</tbody><tfoot><tr><td>device</td><td class=\"n\">%.2f</td><td></td><td></td></tr></tfoot></table></div>\n",
        r->memory.capacity / MAQ_GIB);
    maq_html_end_section(h);
}

enum maq_status maq_report_post_training_html(char **out, const struct maq_post_training_result *r,
                                              const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    const struct maq_lines to = {put_fact, &h};
    struct maq_rl_cycle cycle;
    struct maq_buf more;
    char *document, a[32], b[32], verdict[128];
    MAQ_TRY(maq_report_post_training_json(&document, r, opts, diag));
    if (!maq_rl_cycle_init(&cycle, r)) {
        free(document);
        return maq_no_memory(diag, "a page");
    }
    maq_buf_init(&more, 1 << 20);
    put_more(&more, r, &cycle);
    maq_html_begin(&h, "train", r->job->name);
    maq_html_job(&h, r->job, true);
    maq_html_facts(&h);
    maq_rl_lines(&to, r);
    maq_html_end_facts(&h);
    if (!r->fits) {
        maq__snprintf(
            verdict, sizeof verdict, "does not fit: %s needed, the GPU has %s",
            maq_format_bytes(a, r->memory.training > r->memory.generating ? r->memory.training : r->memory.generating),
            maq_format_bytes(b, r->memory.capacity));
        maq_html_verdict(&h, MAQ_HTML_BAD, verdict);
    }
    put_cards(&h, r);
    put_parts(&h, r, &cycle);
    put_memory(&h, r);
    if (opts && opts->explain)
        maq_html_settings(&h, opts->explain);
    maq_rl_cycle_fini(&cycle);
    enum maq_status status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
