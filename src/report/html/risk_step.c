/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_step.c - the page of the distribution of a step: the distribution with its quantiles and their intervals, what drives it (a tornado),
 * where a slow GPU does least harm.
 *
 * Beside the report's document the page carries the distribution function (`more`): {"t": [seconds], "share": [...]}.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "report/html/distribution.h"
#include "report/risk/parts.h"
#include "report/words.h"

/* --- headline ---------------------------------------------------------------------------------------------------- */

static void put_cards(struct maq_html *h, const struct maq_risk_step *s)
{
    char value[32], note[160], a[32];
    const double p50 = s->figure[MAQ_RISK_P50].value_s, p95 = s->figure[MAQ_RISK_P95].value_s;
    maq_html_cards(h);
    maq__snprintf(value, sizeof value, "%#.5g s", p50);
    maq__snprintf(note, sizeof note, "median; nine of ten steps lie between %#.5g s and %#.5g s", s->p5.value_s, p95);
    maq_html_card_range(h, "Step time", value, note, s->p5.value_s, p50, p95);
    maq__snprintf(value, sizeof value, "%#.5g s", p95);
    maq__snprintf(note, sizeof note, "95 %% of steps take no longer: %+.2f %% over the step in which nothing varies",
                  100 * (p95 / s->base_s - 1));
    maq_html_card(h, "95th percentile", value, note);
    maq__snprintf(value, sizeof value, "%#.5g s", s->figure[MAQ_RISK_MEAN].value_s);
    maq__snprintf(note, sizeof note, "standard deviation %.3g s; nothing varies: %#.5g s", s->sd_s, s->base_s);
    maq_html_card(h, "Mean", value, note);
    if (!isnan(s->bound_s)) {
        maq__snprintf(value, sizeof value, "%#.5g s", s->bound_s);
        maq__snprintf(
            note, sizeof note,
            s->exact ? "if the base is right, at most 5 %% of steps exceed it"
                     : "if the base is right, with 95 %% confidence at most 5 %% of steps exceed it (%s whole steps)",
            maq_words_integer(a, s->bound_steps));
        maq_html_card(h, "Bound", value, note);
    }
    maq_html_end_cards(h);
}

/* --- sections ---------------------------------------------------------------------------------------------------- */

/* What the distribution rests on. */
static const char *sampled(char note[160], const struct maq_risk_step *s)
{
    char n[32];
    if (s->exact)
        return "Nothing was sampled: the law of one stage is known.";
    maq__snprintf(note, 160, "%s sampled replicas per regime%s; intervals are of sampling alone.",
                  maq_words_integer(n, s->draws), s->tail_share > 0 ? ", the slowest of all beyond them" : "");
    return note;
}

static void put_drivers(struct maq_html *h, const struct maq_risk_step *s, enum maq_risk_parts parts)
{
    static const char *const titles[MAQ_RISK_PARTS] = {"Which kernels drive it", "Which dimensions drive it",
                                                       "Which stages drive it"};
    static const struct maq_table_column columns[] = {{"", false, true},
                                                      {"share", true, false},
                                                      {"p95 alone", true, false},
                                                      {"+-", true, false},
                                                      {"half its spread", true, false},
                                                      {"+-", true, false},
                                                      {"without it", true, false},
                                                      {"+-", true, false}};
    char id[32];
    struct maq_table t;
    if (!s->driver[parts])
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    maq_risk_driver_rows(&t, s, parts);
    maq_html_section(h, maq_risk_parts_name(parts), titles[parts]);
    maq__snprintf(id, sizeof id, "tornado-%s", maq_risk_parts_name(parts));
    maq_html_chart(
        h, id, "bars",
        "What each does to the 95th percentile when it alone varies, and how much would be gone without it.");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_places(struct maq_html *h, const struct maq_risk_step *s)
{
    static const struct maq_table_column columns[] = {
        {"a slow GPU in stage", true, false}, {"p50", true, false}, {"+-", true, false},
        {"over base", true, false},           {"p95", true, false}, {"+-", true, false}};
    struct maq_table t;
    uint32_t best = 0;
    if (!s->place)
        return;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 1; i < s->stages; i++)
        best = s->place[i].p50.value_s < s->place[best].p50.value_s ? i : best;
    for (uint32_t i = 0; i < s->stages; i++) {
        const struct maq_risk_place *p = &s->place[i];
        maq_table_row(&t, i == best ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%u", i);
        maq_table_cell(&t, "%#.5g s", p->p50.value_s);
        maq_table_cell(&t, "%.2g s", maq_risk_reach(&p->p50));
        maq_table_cell(&t, "%+.2f %%", 100 * (p->p50.value_s / s->base_s - 1));
        maq_table_cell(&t, "%#.5g s", p->p95.value_s);
        maq_table_cell(&t, "%.2g s", maq_risk_reach(&p->p95));
    }
    maq_html_section(h, "places", "Where a slow GPU does least harm");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(h, "One GPU of one replica takes %.3g times as long.", s->place_factor);
    maq_html_end_section(h);
}

static struct maq_html_distribution distribution_of(const struct maq_risk_step *s)
{
    return (struct maq_html_distribution){
        .title = "The distribution of a step",
        .density = "How often a step takes how long, and its quantiles. Dashed: nothing varies.",
        .cumulative = "Share of steps that take no longer.",
        .what = "step",
        .base_s = s->base_s,
        .p5 = &s->p5,
        .figure = s->figure,
        .curve_s = s->curve_s,
        .curve_share = s->curve_share};
}

enum maq_status maq_report_risk_step_html(char **out, const struct maq_risk_step *step,
                                          const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_buf more;
    const struct maq_html_distribution distribution = distribution_of(step);
    char *document = NULL, a[32], b[32], joined[160], note[160];
    enum maq_status status = maq_report_risk_step_json(&document, step, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_buf_init(&more, 1 << 20);
    maq_html_distribution_data(&more, &distribution);
    maq_html_begin(&h, "risk", step->job->name);
    maq_html_job(&h, step->job, true);
    maq__snprintf(joined, sizeof joined, "%s replica%s of %u stage%s, %s device%s in lockstep each",
                  maq_words_integer(a, (int64_t)step->replicas), maq_words_s((int64_t)step->replicas), step->stages,
                  maq_words_s(step->stages), maq_words_integer(b, (int64_t)step->lockstep),
                  maq_words_s((int64_t)step->lockstep));
    maq_html_facts(&h);
    maq_html_fact(&h, "joined", joined);
    maq_html_end_facts(&h);
    put_cards(&h, step);
    maq_html_distribution(&h, &distribution, sampled(note, step));
    maq_html_sources(&h, step->source, step->n_sources, step->base_s);
    for (int k = 0; k < MAQ_RISK_PARTS; k++)
        put_drivers(&h, step, (enum maq_risk_parts)k);
    put_places(&h, step);
    status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
