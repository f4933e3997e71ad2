/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - what a capture found and how: text, and JSON of schema "maquette.capture/1" (docs/json.md). */
#include "base/check.h"
#include "base/units.h"
#include "report/json_util.h"
#include "report/page.h"
#include "report/words.h"

static void put_slices(struct maq_page *page, const struct maq_launch_capture *c)
{
    static const struct maq_table_column columns[] = {{"pass", true, false},   {"rank", true, false},
                                                      {"why", false, true},    {"status", true, false},
                                                      {"trace", false, false}, {"wall", true, false}};
    struct maq_table t;
    char text[32];
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    t.wraps = true;
    for (uint32_t i = 0; i < c->n_slices; i++) {
        const struct maq_launch_slice *s = &c->slice[i];
        maq_table_row(&t, s->status == 0 ? MAQ_INK_PLAIN : MAQ_INK_BAD);
        maq_table_cell(&t, "%u", s->pass);
        maq_table_cell(&t, "%u", s->rank);
        maq_table_cell(&t, "%s", s->why ? s->why : "");
        maq_table_cell(&t, "%d", s->status);
        maq_table_cell(&t, "%s%s",
                       s->repeats   ? "not run again"
                       : s->changed ? "new"
                                    : "as before",
                       s->resumed ? ", from before" : "");
        maq_table_cell(&t, "%s", s->repeats ? "" : maq_format_time(text, s->wall_s));
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

enum maq_status maq_report_launch_capture_text(char **out, const struct maq_launch *s,
                                               const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_launch_capture *c = &s->capture;
    struct maq_page page;
    char a[32], b[32];
    double wall = 0;
    uint32_t repeats = 0;
    for (uint32_t i = 0; i < c->n_slices; i++) {
        wall += c->slice[i].resumed ? 0 : c->slice[i].wall_s;
        repeats += c->slice[i].repeats;
    }
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "%s ranks", maq_words_integer(a, s->world));
    maq_page_putf(&page, MAQ_INK_PLAIN, ", %u on a node, on %s, from %u that ran\n\n", s->per_node, s->device,
                  c->n_probed);
    maq_page_putf(&page, MAQ_INK_PLAIN,
                  "classes       %u of ranks that do the same, over %s communicators and %s operators\n", c->n_classes,
                  maq_words_integer(a, c->n_comms), maq_words_integer(b, c->n_operators));
    if (c->n_unknown > 0)
        maq_page_putf(&page, MAQ_INK_BAD, "unknown       %s ranks\n", maq_words_integer(a, c->n_unknown));
    maq_page_putf(&page, MAQ_INK_PLAIN,
                  "slices        %u in %u passes, %s of them one after another; %s contributions to exchanges\n",
                  c->n_slices - repeats, c->passes, maq_format_time(a, wall),
                  maq_words_integer(b, (int64_t)c->contributions));
    if (repeats > 0)
        maq_page_putf(&page, MAQ_INK_PLAIN, "not run       %u, which would have been told what they were told before\n",
                      repeats);
    maq_page_putf(&page, c->stable ? MAQ_INK_PLAIN : MAQ_INK_BAD, "stable        %s\n",
                  c->stable ? "yes: the last pass said nothing new" : "no: the last pass still said something new");
    maq_page_putf(&page, MAQ_INK_PLAIN, "verified      %u ranks that had not run\n", c->n_verified);
    maq_page_putf(&page, MAQ_INK_PLAIN, "written       %s\n", c->path);
    if (opts && opts->explain)
        put_slices(&page, c);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_report_launch_capture_json(char **out, const struct maq_launch *s,
                                               const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_launch_capture *c = &s->capture;
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.capture/1");
    maq_json_text(document.root, "path", c->path);
    maq_json_text(document.root, "device", s->device);
    MAQ_JSON_INTS(document.root, {"world", s->world}, {"ranks_per_node", s->per_node}, {"classes", c->n_classes},
                  {"communicators", c->n_comms}, {"operators", c->n_operators}, {"unknown_ranks", c->n_unknown},
                  {"probed_ranks", c->n_probed}, {"verified_ranks", c->n_verified}, {"passes", c->passes},
                  {"contributions", c->contributions});
    maq_json_bool(document.root, "stable", c->stable);
    struct maq_json list = maq_json_list(document.root, "slices");
    for (uint32_t i = 0; i < c->n_slices; i++) {
        struct maq_json m = maq_json_item(list);
        maq_json_int(m, "pass", c->slice[i].pass);
        maq_json_int(m, "rank", c->slice[i].rank);
        maq_json_text(m, "why", c->slice[i].why);
        maq_json_int(m, "status", c->slice[i].status);
        maq_json_bool(m, "changed", c->slice[i].changed);
        maq_json_bool(m, "resumed", c->slice[i].resumed);
        maq_json_bool(m, "repeats", c->slice[i].repeats);
        maq_json_real(m, "wall_s", c->slice[i].wall_s);
    }
    return maq_json_finish(out, &document, diag);
}
