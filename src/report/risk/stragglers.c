/* SPDX-License-Identifier: Apache-2.0 */
/* stragglers.c - a recorded job, replayed: text, and schema "maquette.risk.replay/1" (docs/risk.md). */
#include "base/check.h"
#include "base/text.h"
#include "report/json_util.h"
#include "report/risk/stragglers_parts.h"
#include "report/words.h"

#define SHOWN 8u /* workers in the text */

static void put_parts(struct maq_json list, const struct maq_risk_part *part, uint32_t n, bool by_rank, bool by_stage)
{
    for (uint32_t i = 0; i < n; i++) {
        struct maq_json item = maq_json_item(list);
        if (by_rank)
            maq_json_int(item, "dp_rank", part[i].dp_rank);
        if (by_stage)
            maq_json_int(item, "stage", part[i].stage);
        maq_json_real(item, "slowdown", part[i].slowdown);
    }
}

enum maq_status maq_report_risk_replay_json(char **out, const struct maq_risk_replayed *r,
                                            const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.risk.replay/1");
    struct maq_json root = document.root;
    MAQ_JSON_INTS(root, {"steps", r->n_steps}, {"dp_size", r->dp}, {"pp_size", r->pp});
    MAQ_JSON_REALS(root, {"recorded_step_mean_s", r->recorded_s}, {"step_mean_s", r->step_mean_s},
                   {"no_launch_delay_s", r->no_launch_delay_s}, {"ideal_s", r->ideal_s}, {"slowdown", r->slowdown},
                   {"slowest_workers_share", r->worker_share}, {"last_stage_share", r->last_stage_share});
    put_parts(maq_json_list(root, "by_stage"), r->stage, r->pp, false, true);
    put_parts(maq_json_list(root, "by_dp_rank"), r->dp_rank, r->dp, true, false);
    maq_json_bool(root, "workers_estimated", r->workers_estimated);
    put_parts(maq_json_list(root, "by_worker"), r->worker, r->pp * r->dp, true, true);
    struct maq_json list = maq_json_list(root, "by_operation");
    for (uint32_t i = 0; i < r->n_operations; i++) {
        const struct maq_risk_operation *o = &r->operation[i];
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "operation", o->name);
        maq_json_real(item, "slowdown", o->slowdown);
        maq_json_count(item, "count", (double)o->count);
        maq_json_real(item, "mean_s", o->mean_s);
        maq_json_real(item, "median_s", o->median_s);
    }
    list = maq_json_list(root, "step_times");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_int(item, "step", r->step[i]);
        maq_json_real(item, "step_s", r->step_s[i]);
    }
    return maq_json_finish(out, &document, diag);
}

void maq_stragglers_table(struct maq_table *t, const struct maq_risk_replayed *r, uint32_t most)
{
    static const struct maq_table_column columns[] = {{"slowdown by itself of", false, true}, {"", true, false}};
    uint32_t workers = r->dp * r->pp < most ? r->dp * r->pp : most, ranks = r->dp < most ? r->dp : most;
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < r->pp; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "stage %u", r->stage[i].stage);
        maq_table_cell(t, "%.4f", r->stage[i].slowdown);
    }
    for (uint32_t i = 0; i < ranks; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "data-parallel rank %u", r->dp_rank[i].dp_rank);
        maq_table_cell(t, "%.4f", r->dp_rank[i].slowdown);
    }
    for (uint32_t i = 0; i < workers; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "worker of rank %u, stage %u", r->worker[i].dp_rank, r->worker[i].stage);
        maq_table_cell(t, "%.4f", r->worker[i].slowdown);
    }
    for (uint32_t i = 0; i < r->n_operations; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", r->operation[i].name);
        maq_table_cell(t, "%.4f", r->operation[i].slowdown);
    }
}

void maq_stragglers_lines(const struct maq_lines *to, const struct maq_risk_replayed *r)
{
    char text[256];
    maq__snprintf(text, sizeof text, "%#.5g s a step", r->recorded_s);
    to->put(to->user, "recorded", text);
    maq__snprintf(text, sizeof text, "%#.5g s; %#.5g s where nothing waits for a launch", r->step_mean_s,
                  r->no_launch_delay_s);
    to->put(to->user, "replayed", text);
    maq__snprintf(text, sizeof text, "%#.5g s: operations of a kind all last the same", r->ideal_s);
    to->put(to->user, "ideal", text);
    maq__snprintf(text, sizeof text,
                  "%.4f; %.1f %% of the loss goes with the slowest 3 %% of workers, %.1f %% with the last stage",
                  r->slowdown, 100 * r->worker_share, 100 * r->last_stage_share);
    to->put(to->user, "slowdown", text);
}

static void put_line(void *user, const char *label, const char *text)
{
    maq_page_putf(user, MAQ_INK_PLAIN, "%-8s  %s\n", label, text);
}

enum maq_status maq_report_risk_replay_text(char **out, const struct maq_risk_replayed *r,
                                            const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table t;
    const struct maq_lines lines = {put_line, &page};
    char a[32];
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_TITLE, "%s recorded steps", maq_words_integer(a, r->n_steps));
    maq_page_putf(&page, MAQ_INK_FAINT, "  dp%u pp%u\n", r->dp, r->pp);
    maq_stragglers_lines(&lines, r);
    maq_buf_addc(&page.out, '\n');
    maq_stragglers_table(&t, r, SHOWN);
    maq_table_print(&page, &t, 0);
    maq_table_fini(&t);
    if (r->workers_estimated)
        maq_page_putf(&page, MAQ_INK_FAINT, "%s\n", MAQ_STRAGGLERS_ESTIMATED);
    return maq_page_finish(out, &page, diag);
}
