/*
 * mixed_text.c - the best plan over several node groups for a terminal: its stages, what bounds it, how sure it is that nothing is better,
 * and what each group does alone.
 */
#include "report/mixed_text.h"
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/report.h"
#include "report/page.h"
#include "report/words.h"

#define LABEL 12

static const char *seconds(char buf[32], double s)
{
    maq__snprintf(buf, 32, "%.*f s", s < 9.9995 ? 4 : s < 99.995 ? 3 : 2, s);
    return buf;
}

void maq_page_open_job(struct maq_page *page, const struct maq_job *job)
{
    struct maq_arena arena;
    struct maq_buf line;
    char n[32];
    maq_arena_init(&arena, 0);
    maq_page_putf(page, MAQ_INK_TITLE, "%.512s", maq_text_clean(&arena, job->name));
    maq_buf_adds(&page->out, "\n\n");
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%s: ", job->model.name);
    maq_words_model(&line, &job->model);
    maq_page_field(page, LABEL, "model", maq_text_clean(&arena, line.ptr ? line.ptr : ""));
    maq_buf_fini(&line);
    maq_buf_init(&line, 1 << 16);
    maq_words_cluster(&line, &job->cluster);
    maq_page_field(page, LABEL, "cluster", maq_text_clean(&arena, line.ptr ? line.ptr : ""));
    maq_buf_fini(&line);
    maq_buf_init(&line, 1 << 16);
    maq_buf_addf(&line, "%s sequences of ", maq_words_whole(n, job->workload.gbs));
    maq_buf_addf(&line, "%s tokens per step", maq_words_whole(n, job->workload.seq));
    maq_page_field(page, LABEL, "workload", line.ptr ? line.ptr : "");
    maq_buf_fini(&line);
    maq_arena_fini(&arena);
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

static void put_stages(struct maq_page *page, const struct maq_mixed_search_result *r)
{
    static const struct maq_table_column columns[] = {
        {"stage", true, false},       {"on", false, true},         {"layers", false, false},
        {"tp x dp", true, false},     {"recompute", false, false}, {"sharding", false, false},
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
        maq_table_cell(&table, "%u x %u", s->tp, s->replicas);
        maq_table_cell(&table, "%s", s->recompute == MAQ_RECOMPUTE_NONE ? "-" : maq_words_recompute(s->recompute));
        maq_table_cell(&table, "%s", maq_words_sharding(s->sharding));
        maq_table_cell(&table, "%s", maq_format_time(time, s->compute_s));
        maq_table_cell(&table, "%s", maq_format_time(hop, s->hop_s));
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
    maq__snprintf(
        line, sizeof line,
        "%s: %u micro batch%s of %u x %u replicas, %s each at the pace of stage %u (%s); the pipeline fills in "
        "%s, gradients and optimizer take %s",
        seconds(step, p->step_s), p->microbatches, p->microbatches == 1 ? "" : "es", p->micro_batch, p->replicas,
        maq_format_time(pace, p->bottleneck_s), p->bottleneck, r->islands[slow->island].device,
        maq_format_time(fill, p->fill_s), maq_format_time(sync, p->sync_s));
    maq_buf_adds(&page->out, "\n");
    maq_page_field(page, LABEL, "step", line);
    if (r->exact)
        maq__snprintf(line, sizeof line, "no other plan of the class is faster under these costs (gap 0 %%)");
    else
        maq__snprintf(line, sizeof line, "no plan of the class is faster than %s, so this one is at most %.1f %% off",
                      seconds(step, r->bound_s), 100 * r->gap);
    maq_page_field(page, LABEL, "proven", line);
}

static void put_islands(struct maq_page *page, const struct maq_mixed_search_result *r)
{
    char step[32], line[512];
    maq_buf_adds(&page->out, "\n");
    for (uint32_t g = 0; g < r->n_islands; g++) {
        const struct maq_mixed_search_island *a = &r->islands[g];
        uint32_t has = a->nodes * a->devices_per_node;
        if (a->alone_s > 0)
            maq__snprintf(line, sizeof line, "%u %s: %u used; alone %s", has, a->device, a->used,
                          seconds(step, a->alone_s));
        else
            maq__snprintf(line, sizeof line, "%u %s: %u used; alone it does not fit", has, a->device, a->used);
        maq_page_field(page, LABEL, g == 0 ? "islands" : "", line);
    }
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
    }
    return maq_page_finish(out, &page, diag);
}
