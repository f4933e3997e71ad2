/* SPDX-License-Identifier: Apache-2.0 */
/* serve_batch.c - the page of one batch alone, and the sections that it shares with that of requests that come. */
#include "report/html/serve_parts.h"

#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/serve/lines.h"
#include "report/words.h"

void maq_html_serve_parts(struct maq_html *h, const char *id, const char *title,
                          const double part_s[MAQ_SERVE_PART_COUNT], double passes)
{
    static const char *const colors[MAQ_SERVE_PART_COUNT] = {"c-1", "c-3",      "c-8", "c-6", "c-2", "c-5",
                                                             "c-7", "c-bubble", "c-4", "c-2", "c-6", "c-bubble"};
    double all = 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        all += part_s[i];
    maq_html_section(h, id, title);
    maq_html_put(h, "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th scope=\"col\">part</th><th "
                    "scope=\"col\" class=\"n\">mean</th>"
                    "<th scope=\"col\" class=\"n\">share</th><th></th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++) {
        double share = all > 0 ? part_s[i] / all : 0;
        if (part_s[i] <= 0)
            continue;
        maq_html_putf(h, "<tr><td>%s</td><td class=\"n\">%.3f ms</td><td class=\"n\">%.1f %%</td>",
                      maq_serve_part_name((enum maq_serve_part)i), passes > 0 ? part_s[i] / passes * 1e3 : 0,
                      100 * share);
        maq_html_bar_cell(h, share, colors[i]);
        maq_html_put(h, "</tr>\n");
    }
    maq_html_put(h, "</tbody></table></div>\n");
    maq_html_end_section(h);
}

void maq_html_serve_memory(struct maq_html *h, const struct maq_serve_result *r)
{
    static const char *const colors[] = {"c-1", "c-2", "c-7", "c-4", "c-5", "c-6", "c-8"};
    maq_html_section(h, "memory", r->afd.known ? "Memory of a GPU of attention" : "Memory of a GPU");
    maq_html_put(h, "<div class=\"scroll\"><table class=\"narrow\"><thead><tr><th scope=\"col\">held by</th><th "
                    "scope=\"col\" class=\"n\">GiB</th>"
                    "<th scope=\"col\" class=\"n\">of the device</th><th></th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < MAQ_SERVE_MEM_COUNT; i++) {
        double share = r->capacity_bytes > 0 ? r->memory[i] / r->capacity_bytes : 0;
        if (r->memory[i] <= 0)
            continue;
        maq_html_putf(h, "<tr><td>%s</td><td class=\"n\">%.2f</td><td class=\"n\">%.1f %%</td>",
                      maq_serve_memory_name((enum maq_serve_memory)i), r->memory[i] / MAQ_GIB, 100 * share);
        maq_html_bar_cell(h, share, colors[(size_t)i % MAQ_COUNT(colors)]);
        maq_html_put(h, "</tr>\n");
    }
    maq_html_putf(
        h, "</tbody><tfoot><tr><td>device</td><td class=\"n\">%.2f</td><td></td><td></td></tr></tfoot></table></div>\n",
        r->capacity_bytes / MAQ_GIB);
    maq_html_end_section(h);
}

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_cards(struct maq_html *h, const struct maq_serve_batch *b, int64_t size, int64_t prompt, int64_t output)
{
    char value[48], note[128], n[32];
    double all = b->prefill_s + b->decode_s;
    maq_html_cards(h);
    maq__snprintf(note, sizeof note, "%lld prompt%s of %s tokens", (long long)size, maq_words_s(size),
                  maq_words_integer(n, prompt));
    maq_html_card(h, "Prefill", maq_format_time(value, b->prefill_s), note);
    if (output > 1) {
        maq__snprintf(note, sizeof note, "each of the %s behind the first", maq_words_integer(n, output - 1));
        maq_html_card(h, "A token", maq_format_time(value, b->decode_s / (double)(output - 1)), note);
    }
    maq_html_card(h, "In all", maq_format_time(value, all), "from the first prompt to the last token");
    maq__snprintf(value, sizeof value, "%s tokens/s", maq_words_integer(n, llround((double)(size * output) / all)));
    maq__snprintf(note, sizeof note, "out; %.0f in and out", (double)(size * (prompt + output)) / all);
    maq_html_card(h, "Throughput", value, note);
    maq_html_end_cards(h);
}

enum maq_status maq_report_serve_batch_html(char **out, const struct maq_serve_result *plan,
                                            const struct maq_serve_batch *batch, int64_t size, int64_t prompt,
                                            int64_t output, const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_html h;
    const struct maq_lines to = {put_fact, &h};
    char *document;
    MAQ_TRY(maq_report_serve_batch_json(&document, plan, batch, size, prompt, output, opts, diag));
    struct maq_buf title;
    maq_buf_init(&title, 1 << 12);
    maq_buf_addf(&title, "A batch of %lld on %s, %u x %s", (long long)size, plan->job->model.name, plan->n_devices,
                 plan->job->cluster.groups[plan->job->stages[0].group].device.name);
    maq_html_begin(&h, "serve", title.ptr ? title.ptr : "");
    h.out.failed |= title.failed;
    maq_buf_fini(&title);
    maq_html_facts(&h);
    maq_serve_deployment_lines(&to, plan);
    maq_html_end_facts(&h);
    if (!plan->fits)
        maq_html_verdict(&h, MAQ_HTML_BAD, "does not fit in memory");
    put_cards(&h, batch, size, prompt, output);
    maq_html_section(&h, "outcome", "What becomes of the batch");
    maq_html_facts(&h);
    maq_serve_batch_lines(&to, batch, size, prompt, output);
    maq_html_end_facts(&h);
    maq_html_end_section(&h);
    maq_html_serve_parts(&h, "prefill", "Where the time of prefill goes", batch->part_s[0], 1);
    if (output > 1)
        maq_html_serve_parts(&h, "token", "Where the time of a token goes", batch->part_s[1], (double)(output - 1));
    maq_html_serve_memory(&h, plan);
    return maq_html_finish(out, &h, document, NULL, diag);
}
