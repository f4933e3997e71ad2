/* SPDX-License-Identifier: Apache-2.0 */
/* fit_text.c - the law of recorded step times, for people. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "report/risk/fit_parts.h"
#include "report/words.h"

/* "1.531 s", "-" where there is none. */
static const char *seconds(char buf[32], double s)
{
    if (!isfinite(s))
        return "-";
    bool ms = s < 0.99995; /* which four digits round to a second */
    maq__snprintf(buf, 32, ms ? "%#.4g ms" : "%#.4g s", ms ? 1e3 * s : s);
    return buf;
}

void maq_fit_figures_table(struct maq_table *t, const struct maq_risk_series *s)
{
    static const struct maq_table_column columns[] = {
        {"", false, false},         {"predicted", true, false}, {"95 % low", true, false}, {"high", true, false},
        {"next: low", true, false}, {"high", true, false},      {"observed", true, false}, {"error", true, false}};
    char a[32], b[32], c[32], d[32];
    maq_table_init(t, columns, s->judged > 0 ? MAQ_COUNT(columns) : MAQ_COUNT(columns) - 2);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++) {
        const struct maq_risk_estimate *e = &s->figure[f];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_risk_figure_name((enum maq_risk_figure)f));
        maq_table_cell(t, "%s", seconds(a, e->predicted));
        maq_table_cell(t, "%s", seconds(b, e->low));
        maq_table_cell(t, "%s", seconds(c, e->high));
        maq_table_cell(t, "%s", seconds(b, e->next_low));
        maq_table_cell(t, "%s", seconds(c, e->next_high));
        if (s->judged == 0)
            continue;
        maq_table_cell(t, "%s", seconds(d, e->observed));
        maq_table_cell(t, "%+.2f %%", 100 * e->error);
    }
}

static void line(const struct maq_lines *to, const char *label, const char *fmt, ...) MAQ_PRINTF(3, 4);
static void line(const struct maq_lines *to, const char *label, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    (void)maq__vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    to->put(to->user, label, text);
}

static void law_line(const struct maq_lines *to, const struct maq_risk_series *s)
{
    if (s->n_laws == 0)
        line(to, "law", "the recorded values");
    else if (s->pooled)
        line(to, "law", "the recorded values: nearest is %s, KS distance %.4f, floor %.4f", s->laws[0].name,
             s->laws[0].distance, s->floor);
    else
        line(to, "law", "%s: KS distance %.4f, floor %.4f", s->laws[0].name, s->laws[0].distance, s->floor);
}

void maq_fit_lines(const struct maq_lines *to, const struct maq_risk_series *s)
{
    char a[32], b[32];
    line(to, "warm-up", "%s at the start left out", maq_words_integer(a, s->warm_up));
    line(to, "body", "CV %.2f %%, correlation of neighbours %.2f, drift %+.2f %%", 100 * s->cv, s->correlation,
         100 * expm1(s->drift));
    if (s->slow_share > 0)
        line(to, "slow mode", "%.1f %% of the steps, %.3f x as long; CV around both %.2f %%", 100 * s->slow_share,
             s->slow_ratio, 100 * s->mode_cv);
    if (s->spikes > 0)
        line(to, "spikes", "%s (clumps: %s), %.2f %% of the steps, mean %s", maq_words_integer(a, s->spikes),
             maq_words_integer(b, s->clumps), 100 * s->spike_rate, seconds((char[32]){0}, s->spike_mean_s));
    law_line(to, s);
    if (s->held_stretch > 1 && s->held_stretch > s->stretch)
        line(to, "held out", "%s steps in a row above the predicted p99; of those fitted %s at most",
             maq_words_integer(a, s->held_stretch), maq_words_integer(b, s->stretch));
    if (isfinite(s->guarantee_s))
        line(to, "guarantee", "with 95 %% confidence at most 5 %% of steps exceed %s", seconds(a, s->guarantee_s));
}

static void put_line(void *user, const char *label, const char *text)
{
    maq_page_putf(user, MAQ_INK_PLAIN, "  %-9s  %s\n", label, text);
}

static void put_kernel(struct maq_table *t, const struct maq_risk_kernel *k)
{
    char a[32], b[32];
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", k->name);
    maq_table_cell(t, "%.1f %%", 100 * k->share);
    maq_table_cell(t, "%s", maq_words_integer(a, (int64_t)k->runs));
    maq_table_cell(t, "%s", maq_words_integer(b, k->pools));
    if (!k->measured) {
        for (int i = 0; i < 5; i++)
            maq_table_cell(t, "-");
        return;
    }
    maq_table_cell(t, "%.2f %%", 100 * k->cv);
    maq_table_cell(t, k->slow_share > 0 ? "%.2f %%" : "-", 100 * k->slow_share);
    maq_table_cell(t, k->slow_share > 0 ? "%.2f x" : "-", k->slow_ratio);
    maq_table_cell(t, k->waiting_share > 0 ? "%.0f %%" : "-", 100 * k->waiting_share);
    maq_table_cell(t, "%s", k->law);
}

void maq_fit_kernels_table(struct maq_table *t, const struct maq_risk_record *r)
{
    static const struct maq_table_column columns[] = {
        {"kernel", false, true},  {"of the time", true, false}, {"runs", true, false},
        {"shapes", true, false},  {"CV", true, false},          {"slow", true, false},
        {"as long", true, false}, {"waited", true, false},      {"law", false, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_kernels; i++)
        put_kernel(t, &r->kernel[i]);
}

const char *maq_fit_series_words(char buf[128], const struct maq_risk_series *s)
{
    char a[32], b[32];
    if (s->judged > 0)
        maq__snprintf(buf, 128, "fitted on %s steps, judged on the %s after them", maq_words_integer(a, s->fitted),
                      maq_words_integer(b, s->judged));
    else
        maq__snprintf(buf, 128, "%s steps", maq_words_integer(a, s->fitted));
    return buf;
}

const char *maq_fit_record_words(char buf[128], const struct maq_risk_record *r)
{
    char a[32], b[32];
    if (r->measured)
        return "measured by maquette profile, bursts on one GPU";
    if (r->steps == 0)
        return "kernels; no step is marked";
    maq__snprintf(buf, 128, "kernels of %s steps, median %s", maq_words_integer(a, r->steps),
                  seconds(b, r->step_median_s));
    return buf;
}

static void put_record(struct maq_page *page, const struct maq_risk_record *r, bool apart, struct maq_arena *scratch)
{
    struct maq_table t;
    char words[128];
    maq_page_putf(page, MAQ_INK_TITLE, "%s%s", apart ? "\n" : "", maq_text_clean(scratch, r->name));
    maq_page_putf(page, MAQ_INK_FAINT, "  %s\n", maq_fit_record_words(words, r));
    if (r->n_kernels == 0)
        return;
    maq_fit_kernels_table(&t, r);
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
}

enum maq_status maq_report_risk_fit_text(char **out, const struct maq_risk_fit *fit, const struct maq_report_opts *opts,
                                         struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_arena scratch;
    struct maq_table t;
    char words[128];
    const struct maq_lines lines = {put_line, &page};
    maq_page_init(&page, opts);
    maq_arena_init(&scratch, 1 << 20);
    for (uint32_t i = 0; i < fit->n; i++) {
        const struct maq_risk_series *s = &fit->series[i];
        maq_page_putf(&page, MAQ_INK_TITLE, "%s%s", i > 0 ? "\n" : "", maq_text_clean(&scratch, s->name));
        maq_page_putf(&page, MAQ_INK_FAINT, "  %s\n", maq_fit_series_words(words, s));
        maq_fit_figures_table(&t, s);
        maq_table_print(&page, &t, 2);
        maq_table_fini(&t);
        maq_fit_lines(&lines, s);
    }
    for (uint32_t i = 0; i < fit->n_records; i++)
        put_record(&page, &fit->record[i], fit->n + i > 0, &scratch);
    maq_arena_fini(&scratch);
    return maq_page_finish(out, &page, diag);
}
