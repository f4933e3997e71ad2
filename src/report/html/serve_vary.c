/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_vary.c - the page of requests with other values of some options: which combination gives most, throughput against latency, what a number among the options
 * does, the table. Its charts need nothing but the report's document.
 */
#include <stdlib.h>

#include "base/text.h"
#include "maquette/report_serve.h"
#include "report/html/html.h"
#include "report/serve/vary_table.h"

/* "rate=8 tp=4" */
static void name_of(struct maq_buf *b, const struct maq_serve_variants *all, const struct maq_serve_variant *v)
{
    for (uint32_t a = 0; a < all->n_axes; a++)
        maq_buf_addf(b, "%s%s=%s", a > 0 ? " " : "", all->axes[a], v->values[a]);
}

static void put_card(struct maq_html *h, const char *label, const char *value, const struct maq_serve_variants *all,
                     const struct maq_serve_variant *v)
{
    struct maq_buf name;
    maq_buf_init(&name, 1 << 12);
    name_of(&name, all, v);
    maq_html_card(h, label, value, name.ptr ? name.ptr : "");
    maq_buf_fini(&name);
}

/* Of those that hold the bounds. */
static void put_cards(struct maq_html *h, const struct maq_serve_variants *all)
{
    const struct maq_serve_variant *gpu = NULL, *user = NULL, *soonest = NULL;
    uint32_t held = 0, served = 0;
    char value[64], note[96];
    for (uint32_t i = 0; i < all->n; i++) {
        const struct maq_serve_variant *v = &all->at[i];
        bool fits = !v->why && v->fits, good = fits && (!all->bounded || v->slo_met);
        served += fits;
        held += good;
        if (!good)
            continue;
        gpu = !gpu || v->tokens_per_s_per_gpu > gpu->tokens_per_s_per_gpu ? v : gpu;
        user = !user || v->tokens_per_s_per_user > user->tokens_per_s_per_user ? v : user;
        soonest = !soonest || v->ttft_mean_s < soonest->ttft_mean_s ? v : soonest;
    }
    maq_html_cards(h);
    if (gpu) {
        maq__snprintf(value, sizeof value, "%.1f tokens/s", gpu->tokens_per_s_per_gpu);
        put_card(h, "Most of a GPU", value, all, gpu);
        maq__snprintf(value, sizeof value, "%.1f tokens/s", user->tokens_per_s_per_user);
        put_card(h, "Most of a user", value, all, user);
        maq__snprintf(value, sizeof value, "%.0f ms", soonest->ttft_mean_s * 1e3);
        put_card(h, "Shortest TTFT", value, all, soonest);
    }
    maq__snprintf(value, sizeof value, "%u", all->n);
    if (all->bounded)
        maq__snprintf(note, sizeof note, "%u were served, %u of them within the bounds", served, held);
    else
        maq__snprintf(note, sizeof note, "%u of them were served", served);
    maq_html_card(h, "Combinations", value, note);
    maq_html_end_cards(h);
}

static void put_title(struct maq_buf *b, const struct maq_serve_variants *all)
{
    for (uint32_t a = 0; a < all->n_axes; a++)
        maq_buf_addf(b, "%s%s", a == 0 ? "" : a + 1 < all->n_axes ? ", " : " and ", all->axes[a]);
    maq_buf_adds(b, " varied");
}

enum maq_status maq_report_serve_vary_html(char **out, const struct maq_serve_variants *variants,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_table_column columns[MAQ_TABLE_COLUMNS];
    struct maq_html h;
    struct maq_table table;
    struct maq_buf title;
    char *document = NULL;
    enum maq_status status = maq_report_serve_vary_json(&document, variants, opts, diag);
    if (status != MAQ_OK)
        return status;
    maq_buf_init(&title, 1 << 12);
    put_title(&title, variants);
    maq_html_begin(&h, "serve", title.ptr ? title.ptr : "");
    maq_buf_fini(&title);
    put_cards(&h, variants);
    maq_html_section(&h, "variants", "Every combination");
    maq_html_put(&h, "<div class=\"pair\">\n");
    maq_html_chart(&h, "front-chart", "tall",
                   "Tokens a second of a user against those of a GPU. Filled: no other has more of both.");
    maq_html_chart(&h, "along", "tall", "Mean time to the first token along the load, or along another number.");
    maq_html_put(&h, "</div>\n");
    maq_serve_vary_table(&table, columns, variants);
    maq_html_table(&h, &table, NULL);
    maq_table_fini(&table);
    maq_html_note(&h, "Means over all requests. *: no other%s has more tokens a second, both of a user and of a GPU.",
                  variants->bounded ? " within the bounds" : "");
    maq_html_end_section(&h);
    return maq_html_finish(out, &h, document, NULL, diag);
}
