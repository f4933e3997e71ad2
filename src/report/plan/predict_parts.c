/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_parts.c - a mixed plan on the node groups of a job: what each stage does and holds, what a step takes. Columns of replicas that
 * are alike are one row for each stage.
 */
#include "report/plan/predict_parts.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/words.h"

static const struct maq_mixed_stage *stage_of(const struct maq_report_placed *r, const struct maq_mixed_placed_stage *s)
{
    return &r->plan->pipelines[s->pipeline].stages[s->stage];
}

/* "1-5": by the numbers of the plan, 0 is the embedding and the last one the output. */
static void put_layers(struct maq_table *t, const struct maq_mixed_placed_stage *s)
{
    if (s->layers == 1)
        maq_table_cell(t, "%u", s->first_layer);
    else
        maq_table_cell(t, "%u-%u", s->first_layer, s->first_layer + s->layers - 1);
}

/* "tp2 cp4 x 3 columns" */
static void put_degrees(struct maq_table *t, const struct maq_report_placed *r, const struct maq_mixed_placed_stage *s)
{
    const struct maq_mixed_replica *replica = &stage_of(r, s)->replicas[s->column];
    char cp[24] = "", ep[24] = "";
    if (replica->cp > 1)
        maq__snprintf(cp, sizeof cp, " cp%u", replica->cp);
    if (replica->ep > 1)
        maq__snprintf(ep, sizeof ep, " ep%u", replica->ep);
    maq_table_cell(t, "tp%u%s%s x %u", replica->tp, cp, ep, s->columns);
}

static void put_stage(struct maq_table *t, const struct maq_report_placed *r, const struct maq_mixed_placed_stage *s,
                      bool pipelines)
{
    char a[32];
    if (pipelines)
        maq_table_cell(t, "%u", s->pipeline);
    maq_table_cell(t, "%u", s->stage);
    maq_table_cell(t, "%s", maq_text_clean(&t->arena, s->device));
    put_layers(t, s);
    put_degrees(t, r, s);
    maq_table_cell(t, "%u", s->microbatches);
    maq_table_cell(t, "%s", maq_format_time(a, s->forward_s));
    maq_table_cell(t, "%s", maq_format_time(a, s->backward_s));
    maq_table_cell(t, "%s", s->hop_s > 0 ? maq_format_time(a, s->hop_s) : "-");
    maq_table_cell(t, "%.0f %%", 100 * s->idle);
    maq_table_cell(t, "%s", s->reduce_s > 0 ? maq_format_time(a, s->reduce_s) : "-");
    maq_table_cell(t, "%.1f of %.1f", s->memory_bytes / MAQ_GIB, s->capacity_bytes / MAQ_GIB);
}

void maq_placed_stages_table(struct maq_table *t, const struct maq_report_placed *r)
{
    static const struct maq_table_column columns[] = {
        {"pipeline", true, false},  {"stage", true, false},   {"on", false, true},        {"layers", true, false},
        {"replicas", false, false}, {"batches", true, false}, {"forward", true, false},   {"backward", true, false},
        {"hop", true, false},       {"idle", true, false},    {"reduction", true, false}, {"GiB", true, false}};
    const struct maq_mixed_placed *p = r->placed;
    bool pipelines = r->plan->n_pipelines > 1;
    maq_table_init(t, columns + !pipelines, MAQ_COUNT(columns) - !pipelines);
    t->wraps = true;
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_mixed_placed_stage *s = &p->stages[i];
        bool bad = i == p->slowest || s->memory_bytes > s->capacity_bytes;
        maq_table_row(t, bad ? MAQ_INK_BAD : MAQ_INK_PLAIN);
        put_stage(t, r, s, pipelines);
    }
}

void maq_placed_step_lines(const struct maq_lines *to, const struct maq_report_placed *r)
{
    const struct maq_mixed_placed *p = r->placed;
    const struct maq_mixed_placed_stage *slow = &p->stages[p->slowest];
    char step[32], pipeline[32], update[32], has[32], line[512];
    maq__snprintf(line, sizeof line, "%s: %s to the last gradient, %s for norm and update",
                  maq_format_time(step, p->step_s), maq_format_time(pipeline, p->pipeline_s),
                  maq_format_time(update, p->update_s));
    to->put(to->user, "step", line);
    maq__snprintf(line, sizeof line, "stage %u on %s, idle for %.0f %%", slow->stage, slow->device, 100 * slow->idle);
    to->put(to->user, "busiest", line);
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_mixed_placed_stage *s = &p->stages[i];
        if (s->memory_bytes <= s->capacity_bytes)
            continue;
        maq__snprintf(line, sizeof line, "stage %u needs %s, %s has %s", s->stage,
                      maq_format_bytes(step, s->memory_bytes), s->device, maq_format_bytes(has, s->capacity_bytes));
        to->put(to->user, "does not fit", line);
    }
}

void maq_placed_plan_words(char words[512], const struct maq_report_placed *r)
{
    maq__snprintf(words, 512, "%s: %u micro batches of %u", r->file, maq_mixed_microbatches(r->plan),
                  r->plan->micro_batch);
}
