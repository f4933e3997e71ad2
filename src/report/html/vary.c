/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vary.c - the page of the best plan on other numbers and kinds of devices: how soon and how cheap, how it scales, the table. Its charts need
 * nothing but the report's document.
 */
#include <stdlib.h>

#include "base/text.h"
#include "report/html/html.h"
#include "report/plan/vary_table.h"
#include "report/train/train_words.h"
#include "report/words.h"

static void put_card(struct maq_html *h, const char *label, const char *value, const struct maq_search_variant *v)
{
    char note[192], n[32];
    maq__snprintf(note, sizeof note, "%s, %s %.64s, batch %u, %u tokens", v->model, maq_words_integer(n, v->gpus),
                  v->gpu, v->gbs, v->seq);
    maq_html_card(h, label, value, note);
}

/* The soonest and the cheapest. */
static void put_cards(struct maq_html *h, const struct maq_search_variants *variants)
{
    const struct maq_search_variant *soonest = NULL, *cheapest = NULL, *best = NULL;
    char value[64], n[48];
    uint32_t searched = 0, unfit = 0;
    for (uint32_t i = 0; i < variants->n; i++) {
        const struct maq_search_variant *v = &variants->at[i];
        searched += v->searched;
        unfit += v->searched && !v->train;
        if (!v->train)
            continue;
        soonest = !soonest || v->days < soonest->days ? v : soonest;
        cheapest = !cheapest || v->gpu_hours < cheapest->gpu_hours ? v : cheapest;
        best = v->usd > 0 && (!best || v->usd < best->usd) ? v : best;
    }
    maq_html_cards(h);
    if (soonest) {
        maq__snprintf(value, sizeof value, "%.3g days", soonest->days);
        put_card(h, "Soonest, for 10^12 tokens", value, soonest);
        maq__snprintf(value, sizeof value, "%s GPU-hours", maq_words_integer(n, (int64_t)(cheapest->gpu_hours + 0.5)));
        put_card(h, "Fewest GPU-hours", value, cheapest);
    }
    if (best) {
        maq__snprintf(value, sizeof value, "%s USD", maq_words_integer(n, (int64_t)(best->usd + 0.5)));
        put_card(h, "Cheapest", value, best);
    }
    maq__snprintf(value, sizeof value, "%u variants", searched);
    maq__snprintf(n, sizeof n, "%u of them fit", searched - unfit);
    maq_html_card(h, "Searched", value, n);
    maq_html_end_cards(h);
}

enum maq_status maq_report_vary_html(char **out, const struct maq_search_variants *variants,
                                     const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_table_column columns[MAQ_VARY_COLUMNS];
    struct maq_html h;
    struct maq_table table;
    char *document = NULL;
    bool priced;
    enum maq_status status = maq_report_vary_json(&document, variants, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_html_begin(&h, "plan", variants->n > 0 ? maq_job_get(variants->at[0].open)->name : "");
    put_cards(&h, variants);
    maq_vary_table(&table, columns, &priced, variants);
    maq_html_section(&h, "variants", "The best plan of each");
    maq_html_put(&h, "<div class=\"pair\">\n");
    maq_html_chart(&h, "soon", "tall",
                   priced ? "Days against money for 10^12 tokens. Filled: no other is as soon done and as cheap."
                          : "Days against GPU-hours for 10^12 tokens. Filled: no other is as soon done and as cheap.");
    maq_html_chart(&h, "scaling", "tall", "Tokens a second that each GPU gives, against how many there are.");
    maq_html_put(&h, "</div>\n");
    maq_html_table(&h, &table, NULL);
    maq_table_fini(&table);
    maq_html_note(
        &h,
        "T: 10^12 tokens. *: no other is as soon done and as cheap%s. scaling: over the first of its kind that fits.",
        priced ? "" : " in GPU-hours");
    maq_html_end_section(&h);
    return maq_html_finish(out, &h, document, NULL, diag);
}
