/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - a replayed job, as text and as JSON, schema "maquette.replay/1". */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/capture/replay_parts.h"
#include "report/json_util.h"

#define LABEL 12
#define STEPS_SHOWN 8u

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void put_steps(const struct maq_lines *to, const struct maq_replay *r)
{
    struct maq_buf line;
    char text[32];
    if (r->n_steps == 0) {
        to->put(to->user, "steps", "none were marked, and the records have no period");
        return;
    }
    maq_buf_init(&line, 1 << 14);
    maq_buf_addf(&line, "%u%s: ", r->n_steps, r->steps_marked ? "" : ", found as the period of the records");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        if (r->n_steps > STEPS_SHOWN && i == STEPS_SHOWN / 2) {
            maq_buf_adds(&line, ", ...");
            i = r->n_steps - STEPS_SHOWN / 2;
        }
        int64_t from = i > 0 ? r->step_end_ns[i - 1] : 0;
        maq_buf_addf(&line, "%s%s", i > 0 ? ", " : "", maq_format_time(text, seconds(r->step_end_ns[i] - from)));
    }
    to->put(to->user, "steps", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
}

static void put_share(struct maq_table *t, int64_t part, int64_t whole)
{
    maq_table_cell(t, "%.1f %%", whole > 0 ? 100.0 * (double)part / (double)whole : 0.0);
}

void maq_replay_classes_table(struct maq_table *t, const struct maq_replay *r)
{
    static const struct maq_table_column columns[] = {
        {"class", false, true},        {"ranks", true, false},       {"end", true, false},
        {"computing", true, false},    {"moving", true, false},      {"for peers", true, false},
        {"for the host", true, false}, {"peak memory", true, false}, {"last rank", true, false}};
    char text[32];
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct maq_replay_class *c = &r->class_of_ranks[i];
        const struct maq_replay_share *m = &c->mean;
        int64_t whole = m->compute_ns + m->communication_ns + m->peers_ns + m->host_ns;
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_text_clean(&t->arena, c->name));
        maq_table_cell(t, "%u", c->n_ranks);
        maq_table_cell(t, "%s", maq_format_time(text, seconds(c->last_end_ns)));
        put_share(t, m->compute_ns, whole);
        put_share(t, m->communication_ns, whole);
        put_share(t, m->peers_ns, whole);
        put_share(t, m->host_ns, whole);
        maq_table_cell(t, "%s", maq_format_bytes(text, (double)c->peak_bytes));
        maq_table_cell(t, "%u", c->last_rank);
    }
}

static void put_failure(const struct maq_lines *to, const struct maq_replay *r)
{
    struct maq_buf line;
    char at[32], end[32];
    maq_buf_init(&line, 1 << 12);
    maq_buf_addf(&line, "rank %u stops at %s; ", r->failed_rank, maq_format_time(at, seconds(r->failed_ns)));
    if (r->n_waiting > 0)
        maq_buf_addf(&line, "%u ranks wait for it, and rank %u reports the time-out of its collective at %s",
                     r->n_waiting, r->reporting_rank, maq_format_time(end, seconds(r->reported_ns)));
    else
        maq_buf_adds(&line, "nobody waits for it");
    to->put(to->user, "failure", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
}

void maq_replay_lines(const struct maq_lines *to, const struct maq_replay *r)
{
    if (r->failed)
        put_failure(to, r);
    put_steps(to, r);
}

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

enum maq_status maq_report_replay_text(char **out, const struct maq_report_replay *report,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_replay *r = report->replay;
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    struct maq_table classes;
    char text[32];
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "%u ranks replayed: %s", r->n_known,
                  maq_format_time(text, seconds(r->makespan_ns)));
    if (report->base && !r->failed && report->base->makespan_ns > 0)
        maq_page_putf(&page, MAQ_INK_PLAIN, ", %+.2f %% against the job as captured (%s)",
                      100.0 * ((double)r->makespan_ns / (double)report->base->makespan_ns - 1),
                      maq_format_time(text, seconds(report->base->makespan_ns)));
    maq_buf_adds(&page.out, "\n\n");
    if (r->n_known < r->world)
        maq_page_putf(&page, MAQ_INK_BAD, "nothing is known of %u ranks: what they do is in time for the others\n\n",
                      r->world - r->n_known);
    maq_replay_lines(&to, r);
    maq_replay_classes_table(&classes, r);
    maq_buf_adds(&page.out, "\n");
    maq_table_print(&page, &classes, 0);
    maq_table_fini(&classes);
    maq_page_putf(
        &page, MAQ_INK_FAINT,
        "\nShares are of the stream that computes most, mean of the class: computing; waiting while bytes move, for "
        "peers\nthat come later, and for the host to launch. %llu records, %llu meetings.\n",
        (unsigned long long)r->records, (unsigned long long)r->meetings);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_report_replay_json(char **out, const struct maq_report_replay *report,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_replay *r = report->replay;
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.replay/1");
    maq_json_real(document.root, "makespan_s", seconds(r->makespan_ns));
    if (report->base)
        maq_json_real(document.root, "captured_makespan_s", seconds(report->base->makespan_ns));
    maq_json_int(document.root, "ranks", r->world);
    maq_json_int(document.root, "ranks_known", r->n_known);
    maq_json_bool(document.root, "steps_marked", r->steps_marked);
    struct maq_json list = maq_json_list(document.root, "steps"), item;
    for (uint32_t i = 0; i < r->n_steps; i++) {
        item = maq_json_item(list);
        maq_json_real(item, "end_s", seconds(r->step_end_ns[i]));
        maq_json_real(item, "time_s", seconds(r->step_end_ns[i] - (i > 0 ? r->step_end_ns[i - 1] : 0)));
    }
    list = maq_json_list(document.root, "classes");
    for (uint32_t i = 0; i < r->n_classes; i++) {
        const struct maq_replay_class *c = &r->class_of_ranks[i];
        item = maq_json_item(list);
        maq_json_text(item, "name", c->name);
        maq_json_int(item, "ranks", c->n_ranks);
        maq_json_int(item, "last_rank", c->last_rank);
        MAQ_JSON_REALS(item, {"first_end_s", seconds(c->first_end_ns)}, {"last_end_s", seconds(c->last_end_ns)},
                       {"computing_s", seconds(c->mean.compute_ns)}, {"moving_s", seconds(c->mean.communication_ns)},
                       {"waiting_for_peers_s", seconds(c->mean.peers_ns)},
                       {"waiting_for_host_s", seconds(c->mean.host_ns)});
        maq_json_count(item, "peak_bytes", (double)c->peak_bytes);
    }
    if (r->failed) {
        item = maq_json_map(document.root, "failure");
        maq_json_int(item, "rank", r->failed_rank);
        maq_json_real(item, "at_s", seconds(r->failed_ns));
        maq_json_int(item, "ranks_waiting", r->n_waiting);
        maq_json_int(item, "reporting_rank", r->n_waiting > 0 ? (int64_t)r->reporting_rank : -1);
        maq_json_real(item, "reported_s", seconds(r->reported_ns));
    }
    maq_json_count(document.root, "records", (double)r->records);
    maq_json_count(document.root, "meetings", (double)r->meetings);
    return maq_json_finish(out, &document, diag);
}
