/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_page.c - a plan of measurements and its outcome as a page: what takes the time of a step, which of it is measured, how far predictions are off.
 *
 * Beside the document a page of kernels carries their names for its charts (`more`): {"names": ["gemm 8192x14336x4096 bf16", ...]}.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "measure/parts.h"
#include "report/words.h"

/* ---- what pages share ------------------------------------------------------------------------------------------- */

char *maq_profile_names(uint32_t n, const char *(*name)(char buf[96], const void *of, uint32_t i), const void *of)
{
    struct maq_json_document d = {.root = {json_object(), &d}};
    struct maq_json names = maq_json_list(d.root, "names");
    char buf[96];
    for (uint32_t i = 0; i < n; i++)
        maq_json_word(names, name(buf, of, i));
    return maq_json_take(&d);
}

enum maq_status maq_profile_finish_page(char **out, struct maq_html *h, char *document, char *names,
                                        struct maq_diag *diag)
{
    struct maq_buf more;
    maq_buf_init(&more, (size_t)16 * 1024 * 1024);
    maq_buf_adds(&more, names ? names : "");
    more.failed |= !names;
    free(names);
    enum maq_status status = maq_html_finish(out, h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}

/* ---- a plan ------------------------------------------------------------------------------------------------------- */

static void put_cards(struct maq_html *h, const struct maq_profile *p)
{
    char value[32], note[160], time[32];
    uint32_t cannot = p->counts[MAQ_PROFILE_SKIPPED] + p->counts[MAQ_PROFILE_REFUSED];
    maq_html_cards(h);
    if (p->other_devices > 0)
        maq__snprintf(note, sizeof note, "%u more run on other devices of the cluster", p->other_devices);
    else
        maq__snprintf(note, sizeof note, "costliest first");
    maq_html_card(h, "Operators and collectives", maq_words_integer(value, p->n), note);
    if (p->gpu) {
        maq_html_card(h, "Measured", maq_words_integer(value, p->counts[MAQ_PROFILE_MEASURED]),
                      p->opts.sustained ? "at the clocks of the power limit" : "in bursts");
    } else {
        maq__snprintf(note, sizeof note, "in about %s", maq_format_time(time, p->estimate_s));
        maq_html_card(h, "To be measured", maq_words_integer(value, p->counts[MAQ_PROFILE_PLANNED]), note);
    }
    maq_html_card(h, "In the file already", maq_words_integer(value, p->counts[MAQ_PROFILE_HELD]),
                  "not measured again without --again");
    maq_html_card(h, "Cannot be measured here", maq_words_integer(value, cannot),
                  cannot > 0 ? "the reasons are below" : "");
    maq_html_end_cards(h);
}

static void put_reasons(struct maq_html *h, const struct maq_profile *p)
{
    char text[96];
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->items[i].why)
            continue;
        if (!any) {
            maq_html_section(h, "reasons", "Not measured");
            maq_html_facts(h);
        }
        any = true;
        maq_html_fact(h, maq_profile_item_words(text, &p->items[i]), p->items[i].why);
    }
    if (any) {
        maq_html_end_facts(h);
        maq_html_end_section(h);
    }
}

static void put_items(struct maq_html *h, const struct maq_profile *p)
{
    struct maq_table t;
    maq_html_section(h, "operators", "Where the time goes");
    maq_html_chart(h, "shares", "bars",
                   "Share of the predicted time of all operators, calls counted, and what is known of each.");
    maq_profile_items_table(&t, p, MAQ_PROFILE_PAGE_ROWS);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    if (p->n > MAQ_PROFILE_PAGE_ROWS)
        maq_html_note(h, "and %u more, in the document", p->n - MAQ_PROFILE_PAGE_ROWS);
    maq_html_note(h, "Predicted: one call, without measured costs. Memory and measuring: what measuring takes.");
    maq_html_end_section(h);
}

static const char *item_name(char buf[96], const void *of, uint32_t i)
{
    return maq_profile_item_words(buf, &((const struct maq_profile *)of)->items[i]);
}

enum maq_status maq_profile_html(char **out, const struct maq_profile *p, const struct maq_report_opts *opts,
                                 struct maq_diag *diag)
{
    struct maq_html h;
    char *document, text[160];
    (void)opts;
    MAQ_TRY(maq_profile_json(&document, p, diag));
    maq__snprintf(text, sizeof text, "What a step runs on %.100s", p->cluster.groups[p->group].device.name);
    if (p->opts.grid != MAQ_PROFILE_NO_GRID)
        maq__snprintf(text, sizeof text, "Kernels of %.100s", p->cluster.groups[p->group].device.name);
    maq_html_begin(&h, "profile", text);
    h.nature =
        p->gpu ? "Kernels measured on a GPU, beside predictions." : "A plan of measurements: times are predicted.";
    maq_html_facts(&h);
    if (p->gpu)
        maq_html_fact(&h, "gpu", p->gpu);
    if (p->path)
        maq_html_fact(&h, "file", p->path);
    maq_html_end_facts(&h);
    if (p->counts[MAQ_PROFILE_LEFT] > 0) {
        maq__snprintf(text, sizeof text, "%u are left for another time", p->counts[MAQ_PROFILE_LEFT]);
        maq_html_verdict(&h, MAQ_HTML_WARN, text);
    }
    put_cards(&h, p);
    if (p->counts[MAQ_PROFILE_MEASURED] > 0) {
        maq_html_section(&h, "measured", "Predicted against measured");
        maq_html_chart(&h, "against", "",
                       "Each operator that was measured: on the line where the prediction is right.");
        maq_html_end_section(&h);
    }
    put_items(&h, p);
    put_reasons(&h, p);
    return maq_profile_finish_page(out, &h, document, maq_profile_names(p->n, item_name, p), diag);
}
