/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakdown.c - the time of a stage by bucket, its operators, and the FLOP of a step.
 *
 * Every moment of a step is one bucket of a stage's compute stream: what it computes, the communication it
 * waits for, or the bubble. The buckets of a stage add up to the step. Waiting for a pipeline transfer is
 * exposed PP communication: the difference to the same schedule with free transfers; the rest of the waiting
 * is bubble.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"

static void add_segment(double *bucket, const struct maq_segment *g, double times)
{
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        bucket[b] += g->bucket_ns[b] * times;
}

/* Passes of a position in a step. DualPipe: a device holds two positions, each for half of the microbatches. */
static double passes_each(const struct maq_blueprint *bp)
{
    return bp->schedule->kind == MAQ_SCHEDULE_DUALPIPE ? bp->schedule->microbatches / 2.0 : bp->schedule->microbatches;
}

static double gaps_ns(const struct maq_program *p)
{
    return p->forward_gap_ns + p->backward_gap_ns + p->weight_gap_ns;
}

/* How much longer the pass that reduces gradients waits for the host. */
static double late_gaps_ns(const struct maq_blueprint *bp, const struct maq_program *p)
{
    if (!p->last)
        return 0;
    return bp->schedule->split_backward ? p->last->weight_gap_ns - p->weight_gap_ns
                                        : p->last->backward_gap_ns - p->backward_gap_ns;
}

/* Calls `visit` for every segment that a stage runs in a step, with how often. */
typedef void visitor(void *user, const struct maq_segment *g, double times);

static void visit_stage(const struct maq_blueprint *bp, uint32_t stage, visitor *visit, void *user)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double each = passes_each(bp);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t e = 0; e < bp->programs[at[c]]->n_entries; e++) {
            const struct maq_entry *entry = &bp->programs[at[c]]->entries[e];
            const struct maq_block *b = bp->blocks[entry->block];
            visit(user, b->forward[entry->redo], each);
            visit(user, b->backward[entry->redo], each);
            if (b->weight)
                visit(user, b->weight, each);
        }
    visit(user, bp->optimizer[stage], 1);
}

static void add_to_buckets(void *user, const struct maq_segment *g, double times)
{
    add_segment(user, g, times);
}

/* Finish times with free transfers, for telling PP communication from the bubble. */
static double *without_transfers(const struct maq_blueprint *bp, const struct maq_step_times *times,
                                 struct maq_arena *arena)
{
    const struct maq_schedule *s = bp->schedule;
    uint32_t n = s->n_positions;
    double *finish = MAQ_ARENA_NEW(arena, double, s->n_tasks),
           *dur = MAQ_ARENA_NEW(arena, double, (size_t)MAQ_TASK_KIND_COUNT *n);
    double *hop = MAQ_ARENA_NEW(arena, double, n), *late = MAQ_ARENA_NEW(arena, double, n),
           *ready = MAQ_ARENA_NEW(arena, double, n), makespan;
    if (!finish || !dur || !hop || !late || !ready)
        return NULL;
    for (uint32_t v = 0; v < n; v++) {
        dur[MAQ_TASK_F * n + v] = bp->programs[v]->forward_ns;
        dur[MAQ_TASK_B * n + v] = bp->programs[v]->backward_ns;
        dur[MAQ_TASK_W * n + v] = bp->programs[v]->weight_ns;
        late[v] = maq_sync_late_ns(bp, bp->programs[v]);
    }
    for (uint32_t st = 0; st < s->stages; st++) { /* of steps that overlap */
        const uint32_t v = s->tasks[s->stage_first[st]].position;
        ready[v] = times->begin[st] > 0 ? times->begin[st] + bp->programs[v]->forward_ns : 0;
    }
    maq_schedule_eval(&makespan, finish, s, 1,
                      &(struct maq_task_times){.dur = dur, .hop = hop, .late = late, .ready = ready});
    return finish;
}

/* Data-parallel communication inside the passes (ZeRO-2/3): what they take beyond their segments. */
static double pass_sync_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double each = passes_each(bp), sum = 0;
    for (uint32_t c = 0; c < n; c++) {
        const struct maq_program *p = bp->programs[at[c]];
        sum += each * (p->forward_ns - p->plain_forward_ns + p->backward_ns - p->plain_backward_ns + p->weight_ns -
                       p->plain_weight_ns - gaps_ns(p));
        sum += maq_sync_late_ns(bp, p) - late_gaps_ns(bp, p);
    }
    return sum;
}

/* Waiting for the host at the ends of the passes. */
static double pass_gaps_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double sum = 0;
    for (uint32_t c = 0; c < n; c++)
        sum += passes_each(bp) * gaps_ns(bp->programs[at[c]]) + late_gaps_ns(bp, bp->programs[at[c]]);
    return sum;
}

/* Of that, waiting for exchanges of experts that no other microbatch hides. */
static double pass_exchanges_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double sum = 0;
    for (uint32_t c = 0; c < n; c++)
        sum += passes_each(bp) * bp->programs[at[c]]->exchange_wait_ns;
    return sum;
}

/* And waiting for copies between host and device. */
static double pass_copies_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double sum = 0;
    for (uint32_t c = 0; c < n; c++) {
        const struct maq_program *p = bp->programs[at[c]];
        sum += passes_each(bp) * p->copies_ns + (p->last ? p->last->copies_ns - p->copies_ns : 0);
    }
    return sum;
}

/* And copying into and out of the buckets of DistributedDataParallel, once a step. */
static double bucket_copies_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double sum = 0;
    for (uint32_t c = 0; c < n; c++)
        sum += bp->programs[at[c]]->ddp_copies_ns;
    return sum;
}

static void break_down(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage,
                       const struct maq_step_times *times, double end_free)
{
    double ns[MAQ_BUCKET_COUNT] = {0};
    visit_stage(bp, stage, add_to_buckets, ns);
    double optimizer = bp->optimizer[stage]->dur_ns, busy = -optimizer; /* inside the pipeline */
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++)
        busy += ns[b];
    double sync = pass_sync_ns(bp, stage), gaps = pass_gaps_ns(bp, stage), copies = pass_copies_ns(bp, stage),
           exchanges = pass_exchanges_ns(bp, stage), filled = bucket_copies_ns(bp, stage);
    ns[MAQ_BUCKET_DP] += sync - copies - exchanges - filled;
    ns[MAQ_BUCKET_BACKWARD] += filled;
    ns[MAQ_BUCKET_EP] += exchanges;
    ns[MAQ_BUCKET_OTHER] += copies;
    ns[MAQ_BUCKET_HOST] += gaps;
    busy += sync + gaps;
    double idle = times->stage_end[stage] - times->begin[stage] - busy;
    double transfers = times->stage_end[stage] - end_free;
    transfers = transfers < 0 ? 0 : transfers > idle ? idle : transfers;
    if (bp->hop_ns)
        ns[MAQ_BUCKET_PP] += transfers;
    else
        ns[MAQ_BUCKET_DP] += transfers; /* no pipeline: what is left is waiting for parameters */
    ns[MAQ_BUCKET_BUBBLE] += idle - transfers;
    ns[MAQ_BUCKET_DP] += times->reduced[stage] - times->stage_end[stage];
    ns[MAQ_BUCKET_BUBBLE] += times->update[stage] - times->norm - times->reduced[stage];
    ns[MAQ_BUCKET_DP] += times->norm + bp->lost_ns[stage];
    ns[MAQ_BUCKET_EP] += bp->unpaired_ns[stage];
    double tail = times->step - (times->update[stage] - times->begin[stage]) - optimizer - bp->lost_ns[stage] -
                  bp->unpaired_ns[stage]; /* gather, and waiting for the slowest stage's update */
    ns[MAQ_BUCKET_DP] += tail < times->gather ? tail : times->gather;
    ns[MAQ_BUCKET_BUBBLE] += tail < times->gather ? 0 : tail - times->gather;
    st->busy_s = 0;
    for (int b = 0; b < MAQ_BUCKET_COUNT; b++) {
        st->bucket_s[b] = ns[b] * 1e-9;
        if (b != MAQ_BUCKET_BUBBLE)
            st->busy_s += st->bucket_s[b];
    }
}

/* ---- operators ---- */

struct counts {
    const struct maq_blueprint *bp;
    double *times; /* per item */
    double *uses;  /* [items][names] of each by the modules of a name; NULL = not asked for */
};

static void count_steps(void *user, const struct maq_segment *g, double times)
{
    struct counts *c = user;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct maq_items *items = c->bp->items;
        if (c->uses && g->steps[i].name < items->n_names)
            c->uses[(size_t)g->steps[i].item * items->n_names + g->steps[i].name] += times;
        c->times[g->steps[i].item] += times;
    }
}

static void count_sync(struct counts *c, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    const struct maq_blueprint *bp = c->bp;
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    double m = bp->schedule->microbatches;
    double reduces = bp->sync_every_pass ? m : 1, gathers = bp->gather_every_pass ? m : 1,
           again = bp->gather_backward ? m : 0;
    for (uint32_t i = 0; i < n; i++) {
        c->times[bp->programs[at[i]]->used_map] += reduces;
        for (uint32_t b = 0; b < bp->programs[at[i]]->n_buckets; b++) {
            const struct maq_bucket_sync *s = &bp->programs[at[i]]->buckets[b];
            for (int k = 0; k < MAQ_BUCKET_REDUCES; k++)
                c->times[s->reduce[k]] += reduces;
            for (uint32_t k = 0; k < s->n_ddp; k++) {
                c->times[s->ddp[k].reduce] += reduces;
                c->times[s->ddp[k].empty] += reduces;
            }
            c->times[s->fill] += reduces;
            for (int k = 0; k < MAQ_BUCKET_GATHERS; k++) {
                c->times[s->gather[k]] += gathers;
                c->times[s->again[k]] += again;
            }
            c->times[s->upload] += gathers + again;
            c->times[s->download] += reduces;
        }
    }
}

void maq_stage_count_items(double *times, double *uses, const struct maq_blueprint *bp, uint32_t stage)
{
    struct counts c = {bp, times, uses};
    visit_stage(bp, stage, count_steps, &c);
    count_sync(&c, stage);
}

/* The module that uses an item most often: equal operators of several modules are one row. */
static const char *where_of(const struct counts *c, uint32_t item)
{
    const struct maq_items *items = c->bp->items;
    const double *uses = &c->uses[(size_t)item * items->n_names];
    uint32_t most = 0;
    for (uint32_t k = 1; k < items->n_names; k++)
        most = uses[k] > uses[most] ? k : most;
    return items->n_names > 0 && uses[most] > 0 ? items->names[most] : "data parallel";
}

static void add_row(struct maq_train_result *r, const struct maq_blueprint *bp, uint32_t item, double seconds,
                    double busy, const struct counts *c)
{
    uint32_t i = r->n_ops < MAQ_TRAIN_TOP_OPS ? r->n_ops++ : MAQ_TRAIN_TOP_OPS - 1;
    if (i == MAQ_TRAIN_TOP_OPS - 1 && r->ops[i].count > 0 && r->ops[i].seconds >= seconds)
        return;
    for (; i > 0 && r->ops[i - 1].seconds < seconds; i--)
        r->ops[i] = r->ops[i - 1];
    struct maq_train_op *row = &r->ops[i];
    const struct maq_item *it = &bp->items->at[item];
    struct maq_work work = {0};
    if (!it->is_coll)
        work = maq_op_work(&it->op);
    *row = (struct maq_train_op){.provider = it->cost.provider,
                                 .collective = it->is_coll,
                                 .flop = work.matrix_flop + work.vector_flop,
                                 .bytes = work.bytes,
                                 .count = c->times[item],
                                 .seconds = seconds,
                                 .share = seconds / busy};
    maq_item_describe(row->text, it);
    row->where = where_of(c, item);
}

static enum maq_status rank_operators(struct maq_train_result *r, const struct maq_blueprint *bp,
                                      struct maq_arena *arena)
{
    struct counts c = {bp, MAQ_ARENA_NEW(arena, double, bp->items->n),
                       MAQ_ARENA_NEW(arena, double, (size_t)bp->items->n *(bp->items->n_names + 1u))};
    if (!c.times || !c.uses)
        return MAQ_NO_MEMORY;
    maq_stage_count_items(c.times, c.uses, bp, r->critical_stage);
    double total = 0, busy = r->stages[r->critical_stage].busy_s;
    for (uint32_t i = 1; i < bp->items->n; i++) {
        const struct maq_cost *cost = &bp->items->at[i].cost;
        double seconds = c.times[i] * bp->items->at[i].dur_ns * 1e-9;
        if (seconds <= 0)
            continue;
        total += seconds;
        r->provider_share[cost->provider] += seconds;
        if (!bp->items->at[i].is_coll)
            r->kind_s[bp->items->at[i].op.kind] += seconds;
        if (r->n_ops < MAQ_TRAIN_TOP_OPS || seconds > r->ops[MAQ_TRAIN_TOP_OPS - 1].seconds)
            add_row(r, bp, i, seconds, busy, &c);
    }
    for (int p = 0; p < MAQ_PROVIDER_COUNT && total > 0; p++)
        r->provider_share[p] /= total;
    maq_step_error(r, bp, c.times);
    return MAQ_OK;
}

/* ---- FLOP ---- */

struct flop_sum {
    const struct maq_items *items;
    double flop;
};

static void sum_flop(void *user, const struct maq_segment *g, double times)
{
    struct flop_sum *f = user;
    for (uint32_t i = 0; i < g->n; i++)
        if (!f->items->at[g->steps[i].item].is_coll)
            f->flop += times * maq_op_work(&f->items->at[g->steps[i].item].op).matrix_flop;
}

void maq_step_flop(double *model, double *hardware, const struct maq_blueprint *bp)
{
    const struct maq_workload *w = &bp->job->workload;
    int64_t length = w->length_mean > 0 ? (int64_t)w->length_mean : w->seq;
    double tokens = (double)w->gbs * (double)(w->packed ? w->seq : length);
    *model = tokens * maq_model_flop_per_token(&bp->job->model, length, true);
    if (bp->job->plan.lora_rank > 0)
        *model *= 2.0 / 3.0; /* no weight gradients of frozen weights */
    struct flop_sum f = {bp->items, 0};
    uint32_t pp = (uint32_t)bp->job->plan.pp;
    for (uint32_t s = 0; s < pp; s++)
        visit_stage(bp, s, sum_flop, &f);
    *hardware = f.flop * bp->job->cluster.devices / pp;
}

enum maq_status maq_stage_breakdown(struct maq_train_result *result, const struct maq_blueprint *bp,
                                    const struct maq_step_times *times, struct maq_arena *arena)
{
    double *unhindered = without_transfers(bp, times, arena);
    if (!unhindered)
        return MAQ_NO_MEMORY;
    double least = 1e300;
    for (uint32_t s = 0; s < result->n_stages; s++) {
        break_down(&result->stages[s], bp, s, times, unhindered[bp->schedule->stage_last[s]]);
        double bubble = result->stages[s].bucket_s[MAQ_BUCKET_BUBBLE];
        if (bubble < least) {
            least = bubble;
            result->critical_stage = s;
        }
    }
    memcpy(result->bucket_s, result->stages[result->critical_stage].bucket_s, sizeof result->bucket_s);
    result->bubble_fraction = result->step_s > 0 ? least / result->step_s : 0;
    return rank_operators(result, bp, arena);
}
