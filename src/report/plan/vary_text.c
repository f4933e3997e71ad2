/* SPDX-License-Identifier: Apache-2.0 */
/* vary_text.c - the best plan on other numbers and kinds of devices, as a table: speed, time and cost of 10^12 tokens. */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/plan/vary_table.h"
#include "report/words.h"

/* Columns that differ between variants, or that there is something for. */
struct shown {
    bool model, seq, gbs, price;
};

static bool same_work(const struct maq_search_variant *a, const struct maq_search_variant *b)
{
    return a->seq == b->seq && a->gbs == b->gbs && maq_str_is(maq_str_of(a->model), b->model);
}

static struct shown differing(const struct maq_search_variants *variants)
{
    struct shown shown = {0};
    for (uint32_t i = 0; i < variants->n; i++) {
        const struct maq_search_variant *a = &variants->at[0], *b = &variants->at[i];
        shown.price |= b->train && b->usd > 0;
        shown.model |= !maq_str_is(maq_str_of(a->model), b->model);
        shown.seq |= a->seq != b->seq;
        shown.gbs |= a->gbs != b->gbs;
    }
    return shown;
}

static void put_row(struct maq_table *t, const struct maq_search_variant *v, const struct shown *shown,
                    double per_device)
{
    char n[32];
    maq_table_row(t, v->train ? v->pareto ? MAQ_INK_GOOD : MAQ_INK_PLAIN : MAQ_INK_FAINT);
    maq_table_cell(t, "%s", v->pareto ? "*" : "");
    if (shown->model)
        maq_table_cell(t, "%s", v->model);
    if (shown->seq)
        maq_table_cell(t, "%s", maq_words_integer(n, v->seq));
    if (shown->gbs)
        maq_table_cell(t, "%s", maq_words_integer(n, v->gbs));
    maq_table_cell(t, "%s", v->gpu);
    maq_table_cell(t, "%s", maq_words_integer(n, v->gpus));
    if (!v->train) {
        maq_table_cell(t, "nothing fits");
        return;
    }
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    maq_words_degrees(&words, &v->train->job->plan, v->train->job->dp);
    maq_table_cell(t, "%s", maq_words_seconds(n, v->train->step_s));
    maq_table_cell(t, "%.1f", 100 * v->train->mfu);
    maq_table_cell(t, "%s", maq_words_integer(n, (int64_t)(v->tokens_per_s / v->gpus + 0.5)));
    maq_table_cell(t, "%.0f", 100 * v->tokens_per_s / v->gpus / per_device);
    maq_table_cell(t, "%.3g", v->days);
    maq_table_cell(t, "%s", maq_words_integer(n, (int64_t)(v->gpu_hours + 0.5)));
    if (shown->price)
        maq_table_cell(t, "%s", v->usd > 0 ? maq_words_integer(n, (int64_t)(v->usd + 0.5)) : "-");
    maq_table_cell(t, "%s mbs%d", words.ptr ? words.ptr : "", v->train->job->plan.mbs);
    maq_buf_fini(&words);
}

void maq_vary_table(struct maq_table *table, struct maq_table_column columns[MAQ_VARY_COLUMNS], bool *priced,
                    const struct maq_search_variants *variants)
{
    const struct shown shown = differing(variants);
    const struct {
        bool shown;
        struct maq_table_column column;
    } all[] = {{true, {"", false, false}},
               {shown.model, {"model", false, false}},
               {shown.seq, {"seq", true, false}},
               {shown.gbs, {"batch", true, false}},
               {true, {"GPU", false, false}},
               {true, {"GPUs", true, false}},
               {true, {"step", true, false}},
               {true, {"MFU %", true, false}},
               {true, {"tok/s/GPU", true, false}},
               {true, {"scaling %", true, false}},
               {true, {"days/T", true, false}},
               {true, {"GPU-h/T", true, false}},
               {shown.price, {"USD/T", true, false}},
               {true, {"plan", false, true}}};
    const struct maq_search_variant *last = NULL;
    double per_device = 0;
    uint32_t n = 0;
    _Static_assert(MAQ_COUNT(all) == MAQ_VARY_COLUMNS, "room for all");
    for (size_t i = 0; i < MAQ_COUNT(all); i++)
        if (all[i].shown)
            columns[n++] = all[i].column;
    *priced = shown.price;
    maq_table_init(table, columns, n);
    table->wraps = true;
    for (uint32_t i = 0; i < variants->n; i++) {
        const struct maq_search_variant *v = &variants->at[i];
        if (!v->searched)
            continue;
        bool first = !last || !same_work(last, v) || !maq_str_is(maq_str_of(v->gpu), last->gpu);
        if (first || per_device == 0) /* scaling: over the first of its kind that fits */
            per_device = v->train ? v->tokens_per_s / v->gpus : 0;
        put_row(table, v, &shown, per_device);
        last = v;
    }
}

enum maq_status maq_report_vary_text(char **out, const struct maq_search_variants *variants,
                                     const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_table_column columns[MAQ_VARY_COLUMNS];
    struct maq_page page;
    struct maq_table table;
    bool priced;
    maq_page_init(&page, opts);
    maq_vary_table(&table, columns, &priced, variants);
    maq_table_print(&page, &table, 0);
    maq_table_fini(&table);
    maq_page_putf(&page, MAQ_INK_FAINT, "\nT: 10^12 tokens. *: no other is as soon done and as cheap%s\n",
                  priced ? "" : " in GPU hours");
    return maq_page_finish(out, &page, diag);
}
