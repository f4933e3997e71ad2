/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_parts.c - tables and lines about the best plan over several node groups. See mixed_parts.h. */
#include "report/plan/mixed_parts.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/keys.h"
#include "report/money.h"
#include "report/words.h"

#define SHOWN_GAP 5e-4 /* half a digit of what is printed */

/* "a100-40gb", or "a100-40gb to v100-16gb" where the devices fall so. */
static void add_place(struct maq_buf *b, const struct maq_mixed_search_stage *s,
                      const struct maq_mixed_search_result *r, struct maq_arena *arena)
{
    maq_buf_adds(b, maq_text_clean(arena, r->islands[s->island].device));
    if (s->islands > 1)
        maq_buf_addf(b, " to %s", maq_text_clean(arena, r->islands[s->island + s->islands - 1].device));
}

/* "embedding, layers 1-5", by the numbers of the stage: 0 is the embedding, the last one the output. */
static void put_layers(struct maq_table *table, const struct maq_mixed_search_stage *s, uint32_t n_layers)
{
    uint32_t first = s->first_layer > 0 ? s->first_layer : 1, end = s->first_layer + s->layers;
    bool last = end == n_layers;
    uint32_t inner = end - (last ? 1 : 0);
    const char *front = s->first_layer == 0 ? "embedding" : "", *back = last ? "output" : "";
    if (inner > first)
        maq_table_cell(table, "%s%s%u-%u%s%s", front, *front ? ", " : "", first, inner - 1, last ? ", " : "", back);
    else
        maq_table_cell(table, "%s%s%s", front, *front && last ? ", " : "", back);
}

/* "tp2 cp4 ep8 dp2": TP and DP always, the others where there are any. */
static void put_degrees(struct maq_table *table, const struct maq_mixed_search_stage *s)
{
    char cp[24] = "", ep[24] = "", etp[24] = "";
    if (s->cp > 1)
        maq__snprintf(cp, sizeof cp, " cp%u", s->cp);
    if (s->ep > 1)
        maq__snprintf(ep, sizeof ep, " ep%u", s->ep);
    if (s->etp != s->tp)
        maq__snprintf(etp, sizeof etp, " etp%u", s->etp);
    maq_table_cell(table, "tp%u%s%s%s dp%u", s->tp, cp, ep, etp, s->replicas);
}

/* "core_attn+mlp", or "-". */
static void put_recompute(struct maq_table *table, const struct maq_mixed_search_stage *s)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 10);
    if (s->recompute == MAQ_RECOMPUTE_SELECTIVE)
        maq_plan_add_bits(&words, MAQ_PLAN_RECOMPUTE_MODULES, s->recompute_parts, "+");
    bool other = s->recompute != MAQ_RECOMPUTE_NONE && words.len == 0;
    maq_table_cell(table, "%s", words.len > 0 ? words.ptr : other ? maq_words_recompute(s->recompute) : "-");
    maq_buf_fini(&words);
}

/* "ZeRO-1 x2, on host, activations offloaded", "ZeRO-1, core_attn+attn_proj offloaded" */
static void put_sharding(struct maq_table *table, const struct maq_mixed_search_stage *s)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 10);
    maq_buf_adds(&words, maq_words_sharding_cell(s->sharding));
    if (s->optimizer_instances > 1)
        maq_buf_addf(&words, " x%u", s->optimizer_instances);
    if (s->optimizer_offload > 0)
        maq_buf_adds(&words, ", on host");
    if (s->offload)
        maq_buf_adds(&words, ", activations offloaded");
    if (s->offload_modules != 0) {
        maq_buf_adds(&words, ", ");
        maq_plan_add_bits(&words, MAQ_PLAN_OFFLOAD_MODULES, s->offload_modules, "+");
        maq_buf_adds(&words, " offloaded");
    }
    maq_table_cell(table, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

void maq_mixed_stages_table(struct maq_table *table, const struct maq_mixed_search_result *r)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false},    {"on", false, true},        {"layers", false, false},
        {"degrees", false, false}, {"recompute", false, true}, {"sharding", false, true},
        {"compute", true, false},  {"hops", true, false},      {"GiB", true, false}};
    const struct maq_mixed_search_plan *p = &r->plans[0];
    struct maq_buf place;
    char time[32], hop[32];
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_mixed_search_stage *s = &p->stages[i];
        maq_table_row(table, i == p->bottleneck ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        if (s->on_devices_of >= 0)
            maq_table_cell(table, "%u with %d", i, s->on_devices_of);
        else
            maq_table_cell(table, "%u", i);
        maq_buf_init(&place, 1 << 10);
        add_place(&place, s, r, &table->arena);
        maq_table_cell(table, "%s", place.ptr ? place.ptr : "");
        maq_buf_fini(&place);
        put_layers(table, s, r->n_layers);
        put_degrees(table, s);
        put_recompute(table, s);
        put_sharding(table, s);
        maq_table_cell(table, "%s", s->compute_s > 0 ? maq_format_time(time, s->compute_s) : "-");
        maq_table_cell(table, "%s", s->compute_s > 0 ? maq_format_time(hop, s->hop_s) : "-");
        maq_table_cell(table, "%.1f of %.1f", s->memory_bytes / MAQ_GIB, s->capacity_bytes / MAQ_GIB);
    }
}

/* "1 x 200 on a100-40gb, 2 x 56 (1 with 55) on v100-32gb": replicas and micro batches of pipelines side by side. */
static void put_pipelines(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    const struct maq_mixed_search_plan *p = &r->plans[0];
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    for (uint32_t i = 0, at = 0; p->pipelines && i < p->n_pipelines; i++) {
        const struct maq_mixed_search_share *share = &p->pipelines[i];
        while (p->stages[at].pipeline < i)
            at++;
        maq_buf_addf(&words, "%s%u x %u", i > 0 ? ", " : "", share->replicas, share->microbatches);
        if (share->fewer > 0)
            maq_buf_addf(&words, " (%u with %u)", share->fewer, share->microbatches - 1);
        maq_buf_addf(&words, " on %s", r->islands[p->stages[at].island].device);
    }
    if (words.len > 0)
        to->put(to->user, "shares", words.ptr);
    maq_buf_fini(&words);
}

/* A uniform plan that is faster than what was composed. */
static void put_uniform(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    char bound[32], line[256];
    to->put(to->user, "uniform",
            "one way for all stages, over all devices in the order of the cluster, as maquette train predicts it");
    if (r->gap <= 1e-12)
        maq__snprintf(line, sizeof line,
                      "no other uniform plan is faster, nor, by the closed form, any composed pipeline (gap 0 %%)");
    else
        maq__snprintf(
            line, sizeof line,
            "no other uniform plan is faster, and by the closed form no composed pipeline is faster than %s, so "
            "this one is at most %.1f %% off",
            maq_words_seconds(bound, r->bound_s), 100 * r->gap);
    to->put(to->user, r->complete ? "proven" : "stopped", line);
}

/* A plan on one node group that the search of one node group has found. */
static void put_alone(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    char line[256], bound[32];
    to->put(to->user, "alone", "what was found that uses the other node groups is slower");
    if (r->gap <= SHOWN_GAP)
        maq__snprintf(line, sizeof line,
                      "no plan on one node group is faster, nor, by the closed form, any composed pipeline");
    else
        maq__snprintf(line, sizeof line,
                      "no plan on one node group, nor, by the closed form, any composed pipeline is faster than %s, so "
                      "this one is at most %.1f %% off",
                      maq_words_seconds(bound, r->bound_s), 100 * r->gap);
    to->put(to->user, r->complete ? "proven" : "stopped", line);
}

/* What is proven by the closed form. The plan that is fastest when simulated need not be the best by it. */
static void say_proof(char *line, size_t size, const struct maq_mixed_search_result *r)
{
    char bound[32];
    maq_words_seconds(bound, r->bound_s);
    if (r->complete && r->gap <= 1e-12)
        maq__snprintf(line, size, "by that form no other plan of the class is faster (gap 0 %%)");
    else if (r->gap - r->search_gap < SHOWN_GAP)
        maq__snprintf(line, size,
                      "by that form no plan of the class is faster than %s, so this one is at most %.1f %% off", bound,
                      100 * r->gap);
    else if (r->search_gap < SHOWN_GAP)
        maq__snprintf(
            line, size,
            "by that form the best plan of the class takes %s, and is slower as simulated than this one, which "
            "is %.1f %% off",
            bound, 100 * r->gap);
    else
        maq__snprintf(line, size,
                      "by that form no plan of the class is faster than %s: the best by it is at most %.1f %% off, and "
                      "slower as simulated than this one, which is at most %.1f %% off",
                      bound, 100 * r->search_gap, 100 * r->gap);
}

static void put_money(const struct maq_lines *to, const struct maq_report_mixed *p)
{
    const struct maq_money m = maq_money_of_mixed(maq_job_get(p->open), p->search);
    char line[192], hour[48], step[48], tokens[48];
    if (m.per_hour <= 0)
        return;
    maq__snprintf(line, sizeof line, "%s for 10^12 tokens, %s a step, %s an hour of the devices that it uses",
                  maq_words_usd(tokens, m.per_trillion_tokens), maq_words_usd(step, m.per_step),
                  maq_words_usd(hour, m.per_hour));
    to->put(to->user, "cost", line);
}

static void put_step(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    const struct maq_mixed_search_plan *p = &r->plans[0];
    const struct maq_mixed_search_stage *slow = &p->stages[p->bottleneck];
    char step[32], pace[32], fill[32], sync[32], wait[32], waits[96] = "", chunks[80] = "", line[512];
    const char *overlap = p->overlap_ep == MAQ_ON ? ", exchanges of experts under another micro batch" : "";
    if (p->chunks > 1)
        maq__snprintf(chunks, sizeof chunks, ", %u virtual stages a device, micro batches in groups of %u", p->chunks,
                      p->group);
    maq__snprintf(line, sizeof line, "%s%s: %u micro batch%s of %u x %u replicas%s%s",
                  maq_words_seconds(step, p->step_s), p->uniform ? "" : ", simulated pass by pass", p->microbatches,
                  p->microbatches == 1 ? "" : "es", p->micro_batch, p->replicas, chunks, overlap);
    if (p->pipelines)
        maq__snprintf(line, sizeof line, "%s, simulated pass by pass: %u pipelines side by side, micro batches of %u%s",
                      maq_words_seconds(step, p->step_s), p->n_pipelines, p->micro_batch, overlap);
    to->put(to->user, "step", line);
    put_pipelines(to, r);
    if (r->planner != MAQ_MIXED_PLANNER_ALL)
        to->put(to->user, "planner", maq_mixed_planner_name((enum maq_mixed_planner)r->planner));
    if (p->uniform && r->planner == MAQ_MIXED_PLANNER_ALL)
        put_uniform(to, r);
    else if (p->bottleneck_s == 0 && !p->pipelines)
        put_alone(to, r);
    if (p->bottleneck_s == 0) /* not composed */
        return;
    if (p->wait_s > 0)
        maq__snprintf(waits, sizeof waits, " and waits %s for the output and between rounds",
                      maq_format_time(wait, p->wait_s));
    maq__snprintf(line, sizeof line,
                  "%s by the closed form that is searched: %s each at the pace of stage %u (%s), the pipeline fills in "
                  "%s%s, gradients and optimizer take %s",
                  maq_words_seconds(step, p->composed_s), maq_format_time(pace, p->bottleneck_s), p->bottleneck,
                  r->islands[slow->island].device, maq_format_time(fill, p->fill_s), waits,
                  maq_format_time(sync, p->sync_s));
    to->put(to->user, "composed", line);
    say_proof(line, sizeof line, r);
    if (r->bound_s > 0)
        to->put(to->user, r->complete ? "proven" : "stopped", line);
}

static void put_memory(const struct maq_lines *to, const struct maq_report_mixed *p)
{
    const struct maq_mixed_search_headroom h = maq_mixed_search_headroom(p->search, 0, p->open);
    const struct maq_mixed_search_result *w = p->without;
    char step[32];
    struct maq_buf line;
    maq_buf_init(&line, 1 << 12);
    maq_buf_addf(&line, "stage %u: ", h.stage);
    maq_words_fit(&line, h.needed_bytes, h.device_bytes, h.fit_probability);
    if (w && w->n_plans > 0 && w->plans[0].step_s < p->search->plans[0].step_s)
        maq_buf_addf(&line, "; --min-fit-probability 0 takes %s (%+.1f %%) and fits in %.0f",
                     maq_words_seconds(step, w->plans[0].step_s),
                     100 * (w->plans[0].step_s / p->search->plans[0].step_s - 1),
                     100 * maq_mixed_search_headroom(w, 0, p->open).fit_probability);
    else if (w)
        maq_buf_adds(&line, "; with what is left free for that nothing is faster");
    if (!line.failed)
        to->put(to->user, "memory", line.ptr);
    maq_buf_fini(&line);
}

static void put_islands(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    char step[32], line[512];
    for (uint32_t g = 0; g < r->n_islands; g++) {
        const struct maq_mixed_search_island *a = &r->islands[g];
        uint32_t has = a->nodes * a->devices_per_node;
        if (!r->alone)
            maq__snprintf(line, sizeof line, "%u %s: %u used", has, a->device, a->used);
        else if (a->alone_s > 0)
            maq__snprintf(line, sizeof line, "%u %s: %u used; alone %s", has, a->device, a->used,
                          maq_words_seconds(step, a->alone_s));
        else
            maq__snprintf(line, sizeof line, "%u %s: %u used; alone it does not fit", has, a->device, a->used);
        to->put(to->user, g == 0 ? "islands" : "", line);
    }
}

/* "43 on a100-40gb, 7 on v100-16gb": layers of the stages, embedding and output included. */
static void put_pipeline(struct maq_table *table, const struct maq_mixed_search_result *r,
                         const struct maq_mixed_search_plan *p)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 14);
    for (uint32_t i = 0, alike; i < p->n_stages; i += alike) {
        const struct maq_mixed_search_stage *s = &p->stages[i];
        for (alike = 1; i + alike < p->n_stages && p->stages[i + alike].island == s->island &&
                        p->stages[i + alike].layers == s->layers && p->stages[i + alike].tp == s->tp;)
            alike++;
        maq_buf_addf(&words, "%s", i > 0 ? ", " : "");
        if (alike > 1)
            maq_buf_addf(&words, "%u x ", alike);
        maq_buf_addf(&words, "%u on ", s->layers);
        add_place(&words, s, r, &table->arena);
        if (s->tp > 1)
            maq_buf_addf(&words, " tp%u", s->tp);
    }
    maq_table_cell(table, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_choice(struct maq_table *table, const struct maq_mixed_search_result *r, uint32_t plan, double best_s)
{
    const struct maq_mixed_search_plan *p = &r->plans[plan];
    char step[32];
    maq_table_cell(table, "%s", maq_words_seconds(step, p->step_s));
    maq_table_cell(table, "%+.1f %%", 100 * (p->step_s / best_s - 1));
    maq_table_cell(table, "%u x %u", p->micro_batch, p->replicas);
    put_pipeline(table, r, p);
}

/* Plans of other micro batches or numbers of replicas. */
void maq_mixed_others_table(struct maq_table *table, const struct maq_mixed_search_result *r)
{
    static const struct maq_table_column columns[] = {{"", true, false},
                                                      {"step", true, false},
                                                      {"loss", true, false},
                                                      {"batch", true, false},
                                                      {"layers", false, true}};
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 1; i < r->n_plans; i++) {
        maq_table_row(table, MAQ_INK_PLAIN);
        maq_table_cell(table, "%u", i + 1);
        put_choice(table, r, i, r->plans[0].step_s);
    }
}

void maq_mixed_planners_table(struct maq_table *table, const struct maq_report_mixed *p)
{
    static const struct maq_table_column columns[] = {{"", false, false},
                                                      {"step", true, false},
                                                      {"loss", true, false},
                                                      {"batch", true, false},
                                                      {"layers", false, true}};
    maq_table_init(table, columns, MAQ_COUNT(columns));
    table->wraps = true;
    for (uint32_t i = 0; i < p->n_planners; i++) {
        const struct maq_mixed_search_result *r = p->planners[i];
        maq_table_row(table, MAQ_INK_PLAIN);
        maq_table_cell(table, "%s", maq_mixed_planner_name((enum maq_mixed_planner)r->planner));
        if (r->n_plans > 0)
            put_choice(table, r, 0, p->search->plans[0].step_s);
        else
            maq_table_cell(table, "nothing fits");
    }
}

void maq_mixed_step_lines(const struct maq_lines *to, const struct maq_report_mixed *p)
{
    put_step(to, p->search);
    put_money(to, p);
    put_memory(to, p);
}

void maq_mixed_island_lines(const struct maq_lines *to, const struct maq_mixed_search_result *r)
{
    put_islands(to, r);
}
