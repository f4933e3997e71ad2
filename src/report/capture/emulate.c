/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c - live ranks beside the replay of their job: text, and JSON of schema "maquette.emulate/1" (docs/json.md). */
#include "base/check.h"
#include "base/units.h"
#include "report/json_util.h"
#include "report/page.h"
#include "report/words.h"

/* Relative difference of the live rank's end from the replay's. */
static double off(const struct maq_launch_live *l)
{
    return l->replayed_ns > 0 ? ((double)l->virtual_ns - (double)l->replayed_ns) / (double)l->replayed_ns : 0;
}

enum maq_status maq_report_launch_emulate_text(char **out, const struct maq_launch *s,
                                               const struct maq_report_opts *opts, struct maq_diag *diag)
{
    static const struct maq_table_column columns[] = {{"rank", true, false},           {"status", true, false},
                                                      {"virtual time", true, false},   {"full replay", true, false},
                                                      {"difference", true, false},     {"device memory", true, false},
                                                      {"in the capture", true, false}, {"program", false, true}};
    struct maq_page page;
    struct maq_table t;
    char a[32];
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "%u live %s", s->n_ranks, s->n_ranks == 1 ? "rank" : "ranks");
    maq_page_putf(&page, MAQ_INK_PLAIN, " among %s replayed ones, on %s\n\n", maq_words_integer(a, (int64_t)s->peers),
                  s->device);
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t i = 0; i < s->n_ranks; i++) {
        const struct maq_launch_live *l = &s->live[i];
        bool odd = s->rank[i].status != 0 || l->differs;
        maq_table_row(&t, odd ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        maq_table_cell(&t, "%u", l->rank);
        maq_table_cell(&t, "%d", s->rank[i].status);
        maq_table_cell(&t, "%s", maq_format_time(a, 1e-9 * (double)l->virtual_ns));
        maq_table_cell(&t, "%s", maq_format_time(a, 1e-9 * (double)l->replayed_ns));
        if (l->compared)
            maq_table_cell(&t, "%.3f %%", 100 * off(l));
        else /* a GPU's time has the start of the program in it */
            maq_table_cell(&t, "-");
        maq_table_cell(&t, "%s", maq_format_bytes(a, (double)l->peak_bytes));
        maq_table_cell(&t, "%s", maq_format_bytes(a, (double)l->captured_peak_bytes));
        maq_table_cell(&t, "%s", !l->compared ? "not compared" : l->differs ? "differs" : "as captured");
    }
    maq_table_print(&page, &t, 0);
    maq_table_fini(&t);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_report_launch_emulate_json(char **out, const struct maq_launch *s,
                                               const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.emulate/1");
    maq_json_text(document.root, "device", s->device);
    maq_json_int(document.root, "world", s->world);
    maq_json_int(document.root, "status", s->status);
    struct maq_json list = maq_json_list(document.root, "live");
    for (uint32_t i = 0; i < s->n_ranks; i++) {
        const struct maq_launch_live *l = &s->live[i];
        struct maq_json m = maq_json_item(list);
        maq_json_int(m, "rank", l->rank);
        maq_json_int(m, "status", s->rank[i].status);
        maq_json_real(m, "virtual_s", 1e-9 * (double)l->virtual_ns);
        maq_json_real(m, "replayed_s", 1e-9 * (double)l->replayed_ns);
        MAQ_JSON_INTS(m, {"device_peak_bytes", l->peak_bytes}, {"captured_peak_bytes", l->captured_peak_bytes},
                      {"records", l->records}, {"captured_records", l->captured_records});
        maq_json_bool(m, "compared", l->compared);
        maq_json_bool(m, "differs", l->differs);
        maq_json_int(m, "host_peak_bytes", (int64_t)s->rank[i].host_peak_bytes);
        maq_json_real(m, "host_cpu_s", s->rank[i].host_cpu_s);
    }
    return maq_json_finish(out, &document, diag);
}
