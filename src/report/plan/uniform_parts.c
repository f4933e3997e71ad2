/* SPDX-License-Identifier: Apache-2.0 */
/* uniform_parts.c - tables and lines about the best plans of a job. See uniform_parts.h. */
#include "report/plan/uniform_parts.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/keys.h"
#include "report/money.h"
#include "report/words.h"

/* ---- what was asked ---- */

/* What the document decides is kept: say so, or a user wonders why it was not searched. */
void maq_plan_kept_line(const struct maq_lines *to, const struct maq_search_result *r)
{
    struct maq_buf line;
    maq_buf_init(&line, 1 << 16);
    for (uint32_t i = 0; i < r->n_axes; i++)
        if (r->axes[i].fixed)
            maq_buf_addf(&line, "%s%s %s", line.len > 0 ? "; " : "", r->axes[i].key, r->axes[i].values);
    if (line.len > 0)
        to->put(to->user, "kept", line.ptr);
    maq_buf_fini(&line);
}

/* ---- the list ---- */

/* Where a step goes besides forward and backward work: its two largest parts. */
static void bound_by(struct maq_buf *b, const struct maq_train_result *t)
{
    static const char *const names[MAQ_BUCKET_COUNT] = {[MAQ_BUCKET_RECOMPUTE] = "recompute",
                                                        [MAQ_BUCKET_TP] = "TP",
                                                        [MAQ_BUCKET_CP] = "CP",
                                                        [MAQ_BUCKET_EP] = "EP",
                                                        [MAQ_BUCKET_PP] = "PP",
                                                        [MAQ_BUCKET_DP] = "DP",
                                                        [MAQ_BUCKET_BUBBLE] = "bubble",
                                                        [MAQ_BUCKET_OPTIMIZER] = "optimizer",
                                                        [MAQ_BUCKET_HOST] = "host",
                                                        [MAQ_BUCKET_OTHER] = "copies"};
    bool taken[MAQ_BUCKET_COUNT] = {[MAQ_BUCKET_FORWARD] = true, [MAQ_BUCKET_BACKWARD] = true};
    for (int n = 0; n < 2; n++) {
        int most = -1;
        for (int k = 0; k < MAQ_BUCKET_COUNT; k++)
            if (!taken[k] && (most < 0 || t->bucket_s[k] > t->bucket_s[most]))
                most = k;
        taken[most] = true;
        if (t->bucket_s[most] >= 0.005 * t->step_s)
            maq_buf_addf(b, "%s%s %.0f %%", b->len > 0 ? ", " : "", names[most], 100 * t->bucket_s[most] / t->step_s);
    }
}

/* What is recomputed, in a word. */
static void recomputed(struct maq_buf *b, const struct maq_plan *p)
{
    bool block = p->recompute_method == MAQ_RECOMPUTE_BLOCK && p->recompute_num_layers > 0;
    if (p->recompute == MAQ_RECOMPUTE_NONE)
        maq_buf_adds(b, "-");
    else if (p->recompute == MAQ_RECOMPUTE_SELECTIVE && p->selective_ac == MAQ_SELECTIVE_AC_OP)
        maq_buf_adds(b, "by operator");
    else if (p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_stages.len > 0)
        maq_buf_addf(b, "%.*s layers", (int)p->recompute_stages.len, p->recompute_stages.ptr);
    else if (p->recompute == MAQ_RECOMPUTE_FULL && block)
        maq_buf_addf(b, "%d layers", p->recompute_num_layers);
    else if (p->recompute == MAQ_RECOMPUTE_FULL)
        maq_buf_adds(b, "full");
    else
        maq_plan_add_words(b, p, MAQ_PLAN_RECOMPUTE_MODULES, "+");
    if (p->offload_modules != 0) {
        maq_buf_adds(b, ", on host ");
        maq_plan_add_words(b, p, MAQ_PLAN_OFFLOAD_MODULES, "+");
    }
    if (p->offload_layers > 0)
        maq_buf_addf(b, ", %d offloaded", p->offload_layers);
    if (p->optimizer_offload > 0)
        maq_buf_addf(b, ", %.0f %% of optimizer on host", 100 * p->optimizer_offload);
}

/* What the other degrees leave. */
static int32_t dp_of(const struct maq_plan *p, int64_t devices)
{
    return (int32_t)(devices / ((int64_t)p->tp * p->cp * p->pp));
}

static void add_degrees(struct maq_buf *b, const struct maq_plan *p, int32_t dp)
{
    maq_words_degrees(b, p, dp);
    maq_buf_addf(b, " mbs%d", p->mbs);
    if (p->pp > 1 && p->schedule != MAQ_SCHEDULE_1F1B && p->schedule != MAQ_SCHEDULE_INTERLEAVED)
        maq_buf_addf(b, " %s", maq_schedule_name((enum maq_schedule_kind)p->schedule));
}

static void put_degrees(struct maq_table *table, const struct maq_plan *p, int32_t dp)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    add_degrees(&words, p, dp);
    maq_table_cell(table, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_sharding(struct maq_table *table, const struct maq_plan *p)
{
    if (p->num_optimizer_instances > 1)
        maq_table_cell(table, "%s x %d", maq_words_sharding_cell(p->sharding), p->num_optimizer_instances);
    else
        maq_table_cell(table, "%s", maq_words_sharding_cell(p->sharding));
}

static void put_words(struct maq_table *table, struct maq_buf *words)
{
    maq_table_cell(table, "%s", words->ptr ? words->ptr : "");
    maq_buf_fini(words);
}

void maq_plan_list_table(struct maq_table *table, const struct maq_report_plan *p)
{
    static const struct maq_table_column columns[] = {
        {"", true, false},          {"plan", false, false}, {"sharding", false, false},
        {"recompute", false, true}, {"step", true, false},  {"loss", true, false},
        {"MFU %", true, false},     {"GiB", true, false},   {"besides compute", false, true},
        {"USD/T", true, false}};
    bool priced = maq_cluster_usd_per_hour(&maq_job_get(p->open)->cluster) > 0; /* T: 10^12 tokens */
    maq_table_init(table, columns, MAQ_COUNT(columns) - (priced ? 0 : 1));
    table->wraps = true;
    for (uint32_t i = 0; i < p->search->n_plans; i++) {
        const struct maq_search_plan *plan = &p->search->plans[i];
        const struct maq_train_result *t = p->trains[i];
        struct maq_buf redo, waits;
        char step[32];
        maq_buf_init(&redo, 1 << 12);
        maq_buf_init(&waits, 1 << 12);
        recomputed(&redo, &t->job->plan);
        bound_by(&waits, t);
        maq_table_row(table, i == 0 ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
        maq_table_cell(table, "%u", i + 1);
        put_degrees(table, &t->job->plan, t->job->dp);
        put_sharding(table, &t->job->plan);
        put_words(table, &redo);
        maq_table_cell(table, "%s", maq_words_seconds(step, plan->step_s));
        if (i == 0)
            maq_table_cell(table, "-");
        else
            maq_table_cell(table, "+%.1f %%", 100 * (plan->step_s / p->search->plans[0].step_s - 1));
        maq_table_cell(table, "%.1f", 100 * t->mfu);
        maq_table_cell(table, "%.1f", plan->needed_bytes / MAQ_GIB);
        put_words(table, &waits);
        if (priced)
            maq_table_cell(table, "%s", maq_words_integer(step, llround(maq_money_of_train(t).per_trillion_tokens)));
    }
}

/* "none of these plans fits", "no other of these plans is faster and fits in 90 of 100 runs": of what is searched. */
static void add_proven(struct maq_buf *line, const struct maq_report_plan *p)
{
    const struct maq_search_result *r = p->search;
    double asked = p->headroom ? p->headroom->min_fit_probability : 0;
    maq_buf_adds(line, r->n_plans > 0 ? "no other of these plans is faster and fits" : "none of these plans fits");
    if (r->n_plans > 0 && asked > 0)
        maq_buf_addf(line, " in %.4g of 100 runs", 100 * asked);
    if (r->n_plans > 0 && r->unproven_share > 0)
        maq_buf_addf(line, ", but for offloading that gains under %.2g %%", 100 * r->unproven_share);
    else if (r->n_plans > 0)
        maq_buf_adds(line, " (gap 0 %)");
}

void maq_plan_proof_lines(const struct maq_lines *to, const struct maq_report_plan *p)
{
    const struct maq_search_result *r = p->search;
    char considered[32], bounded[32], other[32], unfit[32], scored[32], step[32], line[512];
    const struct maq_search_counts *c = &r->counts;
    maq__snprintf(line, sizeof line, "%s plans: %s left out by bounds, %s cannot be, %s do not fit, %s timed",
                  maq_words_integer(considered, (int64_t)c->considered),
                  maq_words_integer(bounded, (int64_t)c->bounded), maq_words_integer(other, (int64_t)c->impossible),
                  maq_words_integer(unfit, (int64_t)c->unfit), maq_words_integer(scored, (int64_t)c->scored));
    to->put(to->user, "searched", line);
    struct maq_buf proven;
    maq_buf_init(&proven, sizeof line - 1);
    add_proven(&proven, p);
    if (r->complete)
        maq__snprintf(line, sizeof line, "%s", proven.ptr ? proven.ptr : "");
    else if (r->n_plans > 0 && r->bound_s == 0)
        maq__snprintf(line, sizeof line,
                      "stopped early: the best of the space without --full; nothing is proven of the rest");
    else if (r->n_plans > 0)
        maq__snprintf(line, sizeof line, "stopped early: no plan is faster than %s, so the best is at most %.1f %% off",
                      maq_words_seconds(step, r->bound_s), 100 * (r->plans[0].step_s / r->bound_s - 1));
    else
        maq__snprintf(line, sizeof line, "stopped early: no plan that fits was found yet");
    to->put(to->user, "proven", line);
    maq_buf_fini(&proven);
}

/* ---- the winner ---- */

void maq_plan_front_table(struct maq_table *table, const struct maq_report_plan *p)
{
    static const struct maq_table_column columns[] = {{"step", true, false},
                                                      {"GiB", true, false},
                                                      {"plan", false, true},
                                                      {"sharding", false, false},
                                                      {"recompute", false, true}};
    const struct maq_search_result *r = p->search;
    int64_t devices = maq_job_get(p->open)->cluster.devices;
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; i < r->n_pareto; i++) {
        const struct maq_plan *plan = &r->pareto[i].plan;
        struct maq_buf redo;
        char step[32];
        maq_buf_init(&redo, 1 << 12);
        recomputed(&redo, plan);
        maq_table_row(table, MAQ_INK_PLAIN);
        maq_table_cell(table, "%s", maq_words_seconds(step, r->pareto[i].step_s));
        maq_table_cell(table, "%.1f", r->pareto[i].needed_bytes / MAQ_GIB);
        put_degrees(table, plan, dp_of(plan, devices));
        put_sharding(table, plan);
        put_words(table, &redo);
    }
}

/* Of the values of a key: the neighbours of the winner's, and the fastest. Values stand in the order of the axis. */
static bool worth_showing(const struct maq_search_alternatives *a, uint32_t i)
{
    const struct maq_search_alternative *own = &a->at[i];
    bool fastest = true;
    for (uint32_t k = 0; k < a->n; k++) {
        const struct maq_search_alternative *other = &a->at[k];
        bool ahead = other->step_s < own->step_s || (other->step_s == own->step_s && other < own);
        fastest &= other->key != own->key || !other->possible || !ahead;
    }
    return own->possible && (fastest || own->neighbour);
}

void maq_plan_alternatives_table(struct maq_table *table, const struct maq_report_plan *p)
{
    static const struct maq_table_column columns[] = {
        {"instead of", false, false}, {"", false, false}, {"step", true, false}, {"", true, false}, {"", false, true}};
    double best = p->search->n_plans > 0 ? p->search->plans[0].step_s : 0;
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; p->alternatives && i < p->alternatives->n; i++) {
        const struct maq_search_alternative *a = &p->alternatives->at[i];
        char step[32], bytes[32];
        if (!worth_showing(p->alternatives, i))
            continue;
        maq_table_row(table, a->fits ? MAQ_INK_PLAIN : MAQ_INK_FAINT);
        maq_table_cell(table, "%s %s", a->name, a->from);
        maq_table_cell(table, "%s", a->to);
        maq_table_cell(table, "%s", maq_words_seconds(step, a->step_s));
        maq_table_cell(table, "%+.1f %%", 100 * (a->step_s / best - 1));
        if (!a->fits)
            maq_table_cell(table, "does not fit: %s", maq_format_bytes(bytes, a->needed_bytes));
    }
}

/* ---- nothing fits ---- */

static void put_remedy(struct maq_table *table, const char *what, const struct maq_plan *plan, double step_s,
                       int64_t devices)
{
    struct maq_buf redo;
    char step[32];
    maq_buf_init(&redo, 1 << 12);
    recomputed(&redo, plan);
    maq_table_row(table, MAQ_INK_PLAIN);
    maq_table_cell(table, "%s", what);
    put_degrees(table, plan, dp_of(plan, devices));
    put_sharding(table, plan);
    put_words(table, &redo);
    maq_table_cell(table, "%s", maq_words_seconds(step, step_s));
}

void maq_plan_remedies_table(struct maq_table *table, const struct maq_report_plan *p)
{
    static const struct maq_table_column columns[] = {{"", false, true},
                                                      {"plan", false, false},
                                                      {"sharding", false, false},
                                                      {"recompute", false, true},
                                                      {"step", true, false}};
    char bytes[32], what[128];
    const struct maq_search_remedies *r = p->remedies;
    const struct maq_cluster *cluster = &maq_job_get(p->open)->cluster;
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    if (r->memory_bytes > 0) {
        maq__snprintf(what, sizeof what, "%s on each device", maq_format_bytes(bytes, r->memory_bytes));
        put_remedy(table, what, &r->with_memory, r->with_memory_s, cluster->devices);
    }
    if (r->nodes > 0) {
        maq__snprintf(what, sizeof what, "%u nodes", r->nodes);
        put_remedy(table, what, &r->with_nodes, r->with_nodes_s,
                   (int64_t)r->nodes * cluster->groups[0].devices_per_node);
    }
    if (r->fit_probability > 0) {
        maq__snprintf(what, sizeof what, "%.0f of 100 runs: --min-fit-probability 0", 100 * r->fit_probability);
        put_remedy(table, what, &r->with_risk, r->with_risk_s, cluster->devices);
    }
    if (r->offload)
        put_remedy(table, "the host", &r->with_offload, r->with_offload_s, cluster->devices);
}

/* ---- what else is worth knowing ---- */

#define WORTH 0.01 /* of a step */

/* Of a key the value that gains most, where it gains something. */
static bool worth_setting(const struct maq_search_alternatives *a, uint32_t i, double best_s)
{
    const struct maq_search_alternative *own = &a->at[i];
    bool worth = own->fits && own->step_s < best_s * (1 - WORTH);
    for (uint32_t k = 0; k < a->n && worth; k++) {
        const struct maq_search_alternative *other = &a->at[k];
        worth = other->key != own->key || !other->fits || other->step_s > own->step_s ||
                (other->step_s >= own->step_s && k >= i);
    }
    return worth;
}

/* What a search keeps as the job has it, and would be faster otherwise. */
static void put_settings(const struct maq_lines *to, const struct maq_report_plan *p)
{
    struct maq_buf line;
    double best = p->search->plans[0].step_s;
    maq_buf_init(&line, 1 << 12);
    maq_buf_adds(&line, "not searched: ");
    const size_t begun = line.len;
    for (uint32_t i = 0; p->settings && i < p->settings->n; i++) {
        const struct maq_search_alternative *a = &p->settings->at[i];
        char step[32];
        if (!worth_setting(p->settings, i, best))
            continue;
        maq_buf_addf(&line, "%s%s %s instead of %s %s (%+.1f %%)", line.len > begun ? "; " : "", a->key, a->to, a->from,
                     maq_words_seconds(step, a->step_s), 100 * (a->step_s / best - 1));
    }
    if (line.len > begun && !line.failed)
        to->put(to->user, "settings", line.ptr);
    maq_buf_fini(&line);
}

/* Degrees, sharding and recomputation, where they differ from another plan's. */
static void add_plan(struct maq_buf *line, const struct maq_plan *plan, const struct maq_plan *other, int64_t devices)
{
    add_degrees(line, plan, dp_of(plan, devices));
    if (plan->sharding != other->sharding)
        maq_buf_addf(line, ", %s", maq_words_sharding(plan->sharding));
    if (plan->recompute != MAQ_RECOMPUTE_NONE || plan->offload_layers > 0) {
        maq_buf_adds(line, ", recomputing ");
        recomputed(line, plan);
    }
}

/* How likely the best plan is to fit, and what the memory would buy that it leaves free for that. */
static void put_memory(const struct maq_lines *to, const struct maq_report_plan *p)
{
    const struct maq_search_headroom *h = p->headroom;
    const struct maq_search_plan *own = &p->search->plans[0];
    const struct maq_cluster *cluster = &maq_job_get(p->open)->cluster;
    char size[32], step[32];
    struct maq_buf line;
    if (!h)
        return;
    maq_buf_init(&line, 1 << 12);
    maq_words_fit(&line, own->needed_bytes, cluster->groups[0].device.mem_bytes, h->fit_probability);
    if (h->searched)
        maq_buf_addf(&line, "; the last %s would buy ", maq_format_bytes(size, h->bytes));
    if (h->searched && h->without.step_s > 0) {
        maq_buf_addf(&line, "%.1f %%: --min-fit-probability 0 takes %s and fits in %.0f of 100 runs: ",
                     100 * (1 - h->without.step_s / own->step_s), maq_words_seconds(step, h->without.step_s),
                     100 * h->without_probability);
        add_plan(&line, &h->without.plan, &own->plan, cluster->devices);
    } else if (h->searched) {
        maq_buf_adds(&line, "nothing");
    }
    if (!line.failed)
        to->put(to->user, "memory", line.ptr);
    maq_buf_fini(&line);
}

/* Where no framework is named the best plan's words are Megatron-LM's, and that does more than such a job says. */
static void put_framework(const struct maq_lines *to, const struct maq_report_plan *p)
{
    char step[32], line[160];
    if (!p->said || maq_job_get(p->open)->framework.named || p->words->n_unsaid > 0)
        return;
    double more = p->said->step_s / p->search->plans[0].step_s - 1;
    if (p->said->fits && more < WORTH && more > -WORTH)
        return;
    maq__snprintf(line, sizeof line, "none is named; in Megatron-LM the best plan takes %s (%+.1f %%)%s: %s",
                  maq_words_seconds(step, p->said->step_s), 100 * more, p->said->fits ? "" : " and does not fit",
                  "--framework megatron-lm");
    to->put(to->user, "framework", line);
}

void maq_plan_winner_lines(const struct maq_lines *to, const struct maq_report_plan *p)
{
    put_memory(to, p);
    put_settings(to, p);
    put_framework(to, p);
}

void maq_plan_sentence(struct maq_buf *b, const struct maq_plan *plan, int64_t devices)
{
    add_degrees(b, plan, dp_of(plan, devices));
    maq_buf_addf(b, ", %s", maq_words_sharding(plan->sharding));
    if (plan->recompute != MAQ_RECOMPUTE_NONE || plan->offload_layers > 0) {
        maq_buf_adds(b, ", recomputing ");
        recomputed(b, plan);
    }
}

void maq_plan_none(struct maq_buf *b, const struct maq_report_plan *p, const char *between)
{
    const struct maq_job *job = maq_job_get(p->open);
    const struct maq_device *device = &job->cluster.groups[0].device;
    char size[32];
    maq_buf_addf(b, "%s: %s on %u %s of %s", p->search->complete ? "no plan fits" : "stopped before a plan was found",
                 job->model.name, job->cluster.devices, device->name, maq_format_bytes(size, device->mem_bytes));
    if (p->search->frugal_found)
        maq_buf_addf(b, "%sthe least that was found is %s on a device", between,
                     maq_format_bytes(size, p->search->frugal.needed_bytes));
}
