/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - the distribution of a job's step time: text, and schema "maquette.risk.step/2" (docs/risk.md). */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "report/job_json.h"
#include "report/job_text.h"
#include "report/risk/parts.h"
#include "report/words.h"

static void put_driver(struct maq_json map, const struct maq_risk_driver *d)
{
    maq_json_text(map, "name", d->name);
    maq_json_real(map, "share", d->share);
    maq_risk_json_members(map, "p95_alone", &d->alone);
    maq_risk_json_members(map, "p95_halved", &d->halved);
    maq_risk_json_members(map, "p95_removed", &d->removed);
}

enum maq_status maq_report_risk_step_json(char **out, const struct maq_risk_step *step,
                                          const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.risk.step/2");
    struct maq_json root = document.root;
    maq_json_job(maq_json_map(root, "job"), step->job);
    maq_json_real(root, "base_s", step->base_s);
    maq_risk_json_figures(root, &step->p5, step->figure);
    maq_json_real(root, "sd_s", step->sd_s);
    maq_json_real(root, "bound_s", step->bound_s);
    maq_json_int(root, "bound_steps", step->bound_steps);
    maq_json_count(root, "replicas", step->replicas);
    maq_json_count(root, "lockstep_devices", step->lockstep);
    maq_json_int(root, "stages", step->stages);
    maq_json_bool(root, "exact", step->exact);
    maq_json_int(root, "draws", step->draws);
    maq_json_real(root, "tail_share", step->tail_share);
    maq_risk_json_sources(maq_json_list(root, "sources"), step->source, step->n_sources);
    for (int k = 0; k < MAQ_RISK_PARTS; k++) {
        struct maq_json drivers;
        if (!step->driver[k])
            continue;
        drivers = maq_json_list(root, maq_risk_parts_name((enum maq_risk_parts)k));
        for (uint32_t i = 0; i < step->n_drivers[k]; i++)
            put_driver(maq_json_item(drivers), &step->driver[k][i]);
    }
    if (step->place) {
        struct maq_json places = maq_json_list(root, "places");
        maq_json_real(root, "place_factor", step->place_factor);
        for (uint32_t s = 0; s < step->stages; s++) {
            struct maq_json item = maq_json_item(places);
            maq_json_int(item, "stage", s);
            maq_risk_json_members(item, "p50", &step->place[s].p50);
            maq_risk_json_members(item, "p95", &step->place[s].p95);
        }
    }
    return maq_json_finish(out, &document, diag);
}

/* What holds whatever the law, if the base is right. */
static void put_bound(struct maq_page *page, const struct maq_risk_step *step)
{
    char n[32];
    if (isnan(step->bound_s))
        maq_page_putf(page, MAQ_INK_FAINT, "\na bound that holds for every law takes --draws %s\n",
                      maq_words_integer(n, (int64_t)(MAQ_RISK_BOUND_LEAST * step->replicas)));
    else if (step->exact)
        maq_page_putf(page, MAQ_INK_PLAIN, "\nif the base is right, at most 5 %% of steps exceed %#.5g s\n",
                      step->bound_s);
    else
        maq_page_putf(
            page, MAQ_INK_PLAIN,
            "\nif the base is right, with 95 %% confidence at most 5 %% of steps exceed %#.5g s (%s whole steps)\n",
            step->bound_s, maq_words_integer(n, step->bound_steps));
}

/* Where a slow GPU does least harm. */
static void put_places(struct maq_page *page, const struct maq_risk_step *step)
{
    static const struct maq_table_column columns[] = {
        {"a slow GPU in stage", true, false}, {"p50", true, false}, {"+-", true, false},
        {"over base", true, false},           {"p95", true, false}, {"+-", true, false}};
    struct maq_table t;
    uint32_t best = 0;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t s = 1; s < step->stages; s++)
        best = step->place[s].p50.value_s < step->place[best].p50.value_s ? s : best;
    for (uint32_t s = 0; s < step->stages; s++) {
        const struct maq_risk_place *p = &step->place[s];
        maq_table_row(&t, s == best ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s%u", s == best ? "* " : "", s);
        maq_table_cell(&t, "%#.5g s", p->p50.value_s);
        maq_table_cell(&t, "%.2g s", maq_risk_reach(&p->p50));
        maq_table_cell(&t, "%+.2f %%", 100 * (p->p50.value_s / step->base_s - 1));
        maq_table_cell(&t, "%#.5g s", p->p95.value_s);
        maq_table_cell(&t, "%.2g s", maq_risk_reach(&p->p95));
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    maq_page_putf(page, MAQ_INK_FAINT, "one GPU of one replica takes %.3g times as long; *: where it does least harm\n",
                  step->place_factor);
}

/* What a part does to p95, and what p95 would be with half of its variation and with none. */
static void put_drivers(struct maq_page *page, const struct maq_risk_step *step, enum maq_risk_parts parts)
{
    static const char *const heads[MAQ_RISK_PARTS] = {"kernel", "dimension", "stage"};
    const struct maq_table_column columns[] = {
        {heads[parts], false, true},      {"share", true, false}, {"p95 alone", true, false},  {"+-", true, false},
        {"half its spread", true, false}, {"+-", true, false},    {"without it", true, false}, {"+-", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    maq_risk_driver_rows(&t, step, parts);
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    maq_page_putf(
        page, MAQ_INK_FAINT,
        "one at a time, on the same random numbers; not additive: the slowest decides. Shares, and p95 from one "
        "alone,\nare of the base; +-: half of the 95 %% interval of what it changes; what all GPUs share is "
        "nobody's\n");
}

#define LABEL MAQ_JOB_LABEL

static void put_job(struct maq_page *page, const struct maq_risk_step *step)
{
    char a[32], b[32];
    maq_page_open_job(page, step->job);
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s%s replica%s of %u stage%s, %s device%s in lockstep each\n", LABEL,
                  "joined", maq_words_integer(a, (int64_t)step->replicas), maq_words_s((int64_t)step->replicas),
                  step->stages, maq_words_s(step->stages), maq_words_integer(b, (int64_t)step->lockstep),
                  maq_words_s((int64_t)step->lockstep));
    maq_page_putf(page, MAQ_INK_PLAIN, "%-*s%#.5g s: nothing varies\n\n", LABEL, "base", step->base_s);
}

enum maq_status maq_report_risk_step_text(char **out, const struct maq_risk_step *step,
                                          const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    char c[32];
    maq_page_init(&page, opts);
    put_job(&page, step);
    maq_risk_page_figures(&page, "step", &step->p5, step->figure, step->base_s);
    put_bound(&page, step);
    if (step->place)
        put_places(&page, step);
    for (int k = 0; k < MAQ_RISK_PARTS; k++)
        if (step->driver[k])
            put_drivers(&page, step, (enum maq_risk_parts)k);
    if (step->n_sources > 0)
        maq_risk_page_sources(&page, step->source, step->n_sources, step->base_s);
    if (step->exact)
        maq_page_putf(&page, MAQ_INK_FAINT, "nothing was sampled: the law of one stage is known\n");
    else
        maq_page_putf(&page, MAQ_INK_FAINT, "%s sampled replicas per regime%s; intervals are of sampling alone\n",
                      maq_words_integer(c, step->draws),
                      step->tail_share > 0 ? ", the slowest of all beyond them" : "");
    return maq_page_finish(out, &page, diag);
}
