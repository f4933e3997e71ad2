/*
 * mixed_text.c - the best plan over several node groups for a terminal: its stages, what bounds it, how sure it is that nothing is better,
 * and what each group does alone.
 */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/report.h"
#include "plan/plan_fields.h"
#include "report/job_text.h"
#include "report/page.h"
#include "report/words.h"

#define LABEL MAQ_JOB_LABEL

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
    for (int part = 0; s->recompute == MAQ_RECOMPUTE_SELECTIVE && part < MAQ_PART_COUNT; part++)
        if (s->recompute_parts >> part & 1)
            maq_buf_addf(&words, "%s%s", words.len > 0 ? "+" : "", maq_part_recompute_name((enum maq_part)part));
    bool other = s->recompute != MAQ_RECOMPUTE_NONE && words.len == 0;
    maq_table_cell(table, "%s", words.len > 0 ? words.ptr : other ? maq_words_recompute(s->recompute) : "-");
    maq_buf_fini(&words);
}

/* "ZeRO-1 x2, on host, activations offloaded" */
static void put_sharding(struct maq_table *table, const struct maq_mixed_search_stage *s)
{
    char copies[24] = "";
    if (s->optimizer_instances > 1)
        maq__snprintf(copies, sizeof copies, " x%u", s->optimizer_instances);
    maq_table_cell(table, "%s%s%s%s", maq_words_sharding(s->sharding), copies,
                   s->optimizer_offload > 0 ? ", on host" : "", s->offload ? ", activations offloaded" : "");
}

static void put_stages(struct maq_page *page, const struct maq_mixed_search_result *r)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false},       {"on", false, true},         {"layers", false, false},
        {"degrees", false, false},    {"recompute", false, false}, {"sharding", false, false},
        {"micro batch", true, false}, {"hops", true, false},       {"memory", true, false}};
    const struct maq_mixed_search_plan *p = &r->plans[0];
    struct maq_table table;
    char time[32], hop[32], bytes[32], has[32];
    maq_table_init(&table, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_mixed_search_stage *s = &p->stages[i];
        maq_table_row(&table, i == p->bottleneck ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        maq_table_cell(&table, "%u", i);
        maq_table_cell(&table, "%s", maq_text_clean(&table.arena, r->islands[s->island].device));
        put_layers(&table, s, r->n_layers);
        put_degrees(&table, s);
        put_recompute(&table, s);
        put_sharding(&table, s);
        maq_table_cell(&table, "%s", s->compute_s > 0 ? maq_format_time(time, s->compute_s) : "-");
        maq_table_cell(&table, "%s", s->compute_s > 0 ? maq_format_time(hop, s->hop_s) : "-");
        maq_table_cell(&table, "%s of %s", maq_format_bytes(bytes, s->memory_bytes),
                       maq_format_bytes(has, s->capacity_bytes));
    }
    maq_buf_adds(&page->out, "\n");
    maq_table_print(page, &table, 0);
    maq_table_fini(&table);
}

static void put_step(struct maq_page *page, const struct maq_mixed_search_result *r)
{
    const struct maq_mixed_search_plan *p = &r->plans[0];
    const struct maq_mixed_search_stage *slow = &p->stages[p->bottleneck];
    char step[32], pace[32], fill[32], sync[32], line[512];
    maq__snprintf(line, sizeof line, "%s, played pass by pass: %u micro batch%s of %u x %u replicas",
                  maq_words_seconds(step, p->step_s), p->microbatches, p->microbatches == 1 ? "" : "es", p->micro_batch,
                  p->replicas);
    maq_buf_adds(&page->out, "\n");
    maq_page_field(page, LABEL, "step", line);
    if (r->planner != MAQ_MIXED_PLANNER_ALL)
        maq_page_field(page, LABEL, "planner", maq_mixed_planner_name((enum maq_mixed_planner)r->planner));
    if (p->bottleneck_s == 0) /* not composed */
        return;
    maq__snprintf(line, sizeof line,
                  "%s by the closed form that is searched: %s each at the pace of stage %u (%s), the pipeline fills in "
                  "%s, gradients and optimizer take %s",
                  maq_words_seconds(step, p->composed_s), maq_format_time(pace, p->bottleneck_s), p->bottleneck,
                  r->islands[slow->island].device, maq_format_time(fill, p->fill_s), maq_format_time(sync, p->sync_s));
    maq_page_field(page, LABEL, "composed", line);
    if (r->complete && r->gap <= 1e-12)
        maq__snprintf(line, sizeof line, "by that form no other plan of the class is faster (gap 0 %%)");
    else
        maq__snprintf(line, sizeof line,
                      "by that form no plan of the class is faster than %s, so this one is at most %.1f %% off",
                      maq_words_seconds(step, r->bound_s), 100 * r->gap);
    if (r->bound_s > 0)
        maq_page_field(page, LABEL, r->complete ? "proven" : "stopped", line);
}

static void put_islands(struct maq_page *page, const struct maq_mixed_search_result *r)
{
    char step[32], line[512];
    maq_buf_adds(&page->out, "\n");
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
        maq_page_field(page, LABEL, g == 0 ? "islands" : "", line);
    }
}

static void put_remedies(struct maq_page *page, const struct maq_mixed_search_remedies *r)
{
    char bytes[32];
    bool any = false;
    if (!r)
        return;
    maq_page_putf(page, MAQ_INK_PLAIN, "it would fit with one of\n");
    if (r->techniques)
        maq_page_putf(page, MAQ_INK_PLAIN,
                      "  ZeRO-2, ZeRO-3 or the optimizer on the host: --space sharding=optim_grads,optim_grads_params "
                      "--space optimizer_offload_fraction=0,1\n");
    if (r->more_bytes > 0)
        maq_page_putf(page, MAQ_INK_PLAIN, "  %s more on every device\n", maq_format_bytes(bytes, r->more_bytes));
    for (uint32_t g = 0; g < r->n_islands; g++) {
        if (r->islands[g].more_nodes > 0)
            maq_page_putf(page, MAQ_INK_PLAIN, "  %u more node%s of %s\n", r->islands[g].more_nodes,
                          r->islands[g].more_nodes == 1 ? "" : "s", r->islands[g].device);
        any = any || r->islands[g].more_nodes > 0;
    }
    if (!any && r->more_bytes <= 0 && !r->techniques)
        maq_page_putf(page, MAQ_INK_PLAIN, "  nothing that was tried: a tebibyte more on each, 64 times the nodes\n");
}

enum maq_status maq_report_mixed_text(char **out, const struct maq_report_mixed *p, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_mixed_search_result *r = p->search;
    maq_page_init(&page, opts);
    maq_page_open_job(&page, maq_job_get(p->open));
    if (r->n_plans > 0) {
        put_stages(&page, r);
        put_step(&page, r);
        put_islands(&page, r);
    } else {
        maq_buf_adds(&page.out, "\n");
        maq_page_putf(&page, MAQ_INK_BAD, "no plan fits on these node groups, together or alone\n");
        put_remedies(&page, p->remedies);
    }
    return maq_page_finish(out, &page, diag);
}
