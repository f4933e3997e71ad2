/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placed_step.c - the step of a placed plan: every column simulated pass by pass, then the end of the step over all columns.
 *
 *   column      max-plus over the schedule's skeleton (plan/schedule/schedule.h), passes of its stages and hops between them; a
 *               stage on other stages' devices is a position of the interleaved schedule, whose transfers do not block their
 *               senders
 *   gathering   of parameters before the first forward passes: a device's stages one after another
 *   reduction   of a stage's gradients when all columns that hold one of its layers have run their last backward pass: the exposed
 *               part on its node group, or the ring over node groups where that is longer; a device reduces its stages one after
 *               another, from the back of the model, as their last passes run
 *   tied table  all-reduce of its gradients between first and last stage of a column
 *   end         norm over all devices, the slowest update and gathering of parameters
 *
 * Memory of a device: context and communicators, the states of all its stages, the peak of activations in flight, and the larger of
 * a pass's working set and the memory of the update of all its stages when activations are freed.
 */
#include <math.h>

#include "base/check.h"
#include "plan/mixed/mixed_plan.h"
#include "train/memory/pipeline_transfers.h"
#include "train/mixed/placed.h"

struct skeleton {
    struct maq_schedule schedule;
    double *dur, *hop, *stall, *port, *ready, *late, *finish;
};

static enum maq_status build(struct skeleton *k, const struct maq_placing *p, const struct maq_placed_column *c)
{
    uint32_t chunks = c->n / c->devices;
    bool round = chunks > 1 || p->plan->schedule == MAQ_SCHEDULE_INTERLEAVED;
    int kind = p->plan->schedule == MAQ_SCHEDULE_GPIPE ? MAQ_SCHEDULE_GPIPE
               : round && c->devices > 1               ? MAQ_SCHEDULE_INTERLEAVED
                                                       : MAQ_SCHEDULE_1F1B;
    uint32_t group = kind == MAQ_SCHEDULE_INTERLEAVED ? p->plan->microbatch_group : 0;
    char why[160];
    const char *refusal = maq_schedule_refuse(why, kind, c->devices, chunks, c->microbatches, group);
    if (refusal)
        return maq__placed_cannot(p->diag, NULL, refusal);
    MAQ_TRY(maq_schedule_build(&k->schedule, kind, c->devices, chunks, c->microbatches, group, p->arena, p->diag));
    k->dur = MAQ_ARENA_NEW(p->arena, double, (size_t)MAQ_TASK_KIND_COUNT * c->n);
    k->hop = MAQ_ARENA_NEW(p->arena, double, c->n);
    k->stall = MAQ_ARENA_NEW(p->arena, double, c->n);
    k->port = MAQ_ARENA_NEW(p->arena, double, c->n);
    k->ready = MAQ_ARENA_NEW(p->arena, double, c->n);
    k->late = MAQ_ARENA_NEW(p->arena, double, c->n);
    k->finish = MAQ_ARENA_NEW(p->arena, double, 2 * (size_t)k->schedule.n_tasks);
    bool all = k->dur && k->hop && k->stall && k->port && k->ready && k->late && k->finish;
    return all ? MAQ_OK : maq_no_memory(p->diag, "the plan");
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* When each stage has run the last pass that completes its gradients. */
static void read_ends(struct maq_placed_column *c, const struct skeleton *k)
{
    const struct maq_schedule *s = &k->schedule;
    for (uint32_t d = 0; d < c->devices; d++)
        for (uint32_t t = s->stage_first[d]; t != MAQ_NO_TASK; t = s->next_on_stage[t])
            if (maq_task_is_last(s, t))
                c->slots[s->tasks[t].position].end_s = k->finish[t] * 1e-9;
}

/* Passes of a column: what its devices do until gradients are complete. */
static enum maq_status play_column(const struct maq_placing *p, struct maq_placed_column *c, struct skeleton *k)
{
    double makespan = 0;
    MAQ_TRY(build(k, p, c));
    MAQ_ASSERT(k->dur && k->hop && k->stall && k->port && k->ready && k->late && k->finish);
    for (uint32_t i = 0; i < c->n; i++) {
        struct maq_placed_slot *s = &c->slots[i], *last = &c->slots[i > 0 ? i - 1 : 0];
        bool apart = maq_pools_apart(&p->pools, (uint32_t[]){last->pool, s->pool},
                                     (uint32_t[]){last->first_device, s->first_device});
        double before = i < c->devices ? 0 : c->slots[i - c->devices].gathered_s;
        s->gathered_s = before + s->cost.gathering_s;
        s->hop_s = i > 0 ? maq__placed_hop_s(p, c, i - 1, i, larger(last->hop_bytes, s->hop_bytes)) : 0;
        k->dur[MAQ_TASK_F * c->n + i] = nearbyint(s->cost.forward_s * 1e9);
        k->dur[MAQ_TASK_B * c->n + i] = nearbyint(s->cost.backward_s * 1e9);
        k->ready[i] = s->cost.ready_s > 0 ? nearbyint((before + s->cost.ready_s) * 1e9) : 0;
        k->late[i] = nearbyint(s->cost.late_s * 1e9);
        k->hop[i] = nearbyint(s->hop_s * 1e9);
        k->stall[i] = s->stalls ? k->hop[i] : 0;
        k->port[i] = apart && !s->stalls ? k->hop[i] : 0; /* a sender that blocks has sent before it goes on */
    }
    const struct maq_task_times times = {
        .dur = k->dur, .hop = k->hop, .stall = k->stall, .port = k->port, .ready = k->ready, .late = k->late};
    maq_schedule_eval(&makespan, k->finish, &k->schedule, 1, &times);
    read_ends(c, k);
    c->busy_end_s = makespan * 1e-9;
    return MAQ_OK;
}

/* ---- memory ---- */

/* One device of a column. */
struct placed_column_view {
    const struct maq_placed_column *column;
    const struct maq_schedule *schedule;
    uint32_t device;
    const struct maq_job *job;
};

/* The activations that it holds at once, at the most; *in_flight: micro batches of all its stages then. */
static double activations(uint32_t *in_flight, const struct placed_column_view *v)
{
    const struct maq_schedule *s = v->schedule;
    double most = -1;
    for (uint32_t k = s->inflight_first[v->device]; k < s->inflight_first[v->device + 1]; k++) {
        double bytes = 0;
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
            bytes +=
                s->inflight[k].chunk[chunk] * v->column->slots[v->device + chunk * v->column->devices].cost.act_bytes;
        if (bytes > most) {
            most = bytes;
            *in_flight = s->inflight[k].total;
        }
    }
    return larger(most, 0);
}

static double memory_of(uint32_t *in_flight, const struct placed_column_view *v)
{
    const struct maq_placed_column *c = v->column;
    double held = activations(in_flight, v), states = 0, working = 0, ending = 0, matrix = 0, border = 0;
    const uint32_t transfers =
        maq_pipeline_transfers(v->job, v->schedule->kind, v->device == 0, v->device + 1 == c->devices);
    for (uint32_t i = v->device; i < c->n; i += c->devices) {
        states += c->slots[i].cost.states_bytes;
        working = larger(working, c->slots[i].cost.working_bytes - c->slots[i].cost.transfer_bytes);
        border = larger(border, c->slots[i].cost.border_bytes);
        ending += c->slots[i].cost.ending_bytes;
        matrix = larger(matrix, c->slots[i].cost.matrix_bytes);
    }
    return c->slots[v->device].context_bytes + states + held +
           larger(working + transfers * border, ending + matrix - held);
}

/* ---- what is told of a column ---- */

static void tell_column(struct maq_mixed_placed *out, struct maq_mixed_placed_stage *list, const struct maq_placing *p,
                        const struct maq_placed_column *c, const struct maq_schedule *schedule)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct maq_placed_slot *s = &c->slots[i];
        const struct maq_node_group *group = &p->job->cluster.groups[s->pool];
        const struct placed_column_view view = {c, schedule, i % c->devices, p->job};
        double busy = 0;
        for (uint32_t k = i % c->devices; k < c->n; k += c->devices)
            busy += c->microbatches * (c->slots[k].cost.forward_s + c->slots[k].cost.backward_s);
        list[i] = (struct maq_mixed_placed_stage){.pipeline = c->pipeline,
                                                  .stage = i,
                                                  .column = c->column,
                                                  .columns = c->alike,
                                                  .group = s->pool,
                                                  .device = group->device.name,
                                                  .first_layer = s->plan->first_layer,
                                                  .layers = s->plan->layers,
                                                  .microbatches = c->microbatches,
                                                  .forward_s = s->cost.forward_s,
                                                  .backward_s = s->cost.backward_s,
                                                  .hop_s = s->hop_s,
                                                  .idle = larger(0, 1 - busy / c->busy_end_s),
                                                  .reduce_s = larger(s->cost.exposed_s, s->across_s),
                                                  .capacity_bytes = group->device.mem_bytes};
        list[i].memory_bytes = memory_of(&list[i].in_flight, &view);
        out->fits = out->fits && list[i].memory_bytes <= list[i].capacity_bytes;
    }
}

/* ---- the end of the step ---- */

static bool overlap(const struct maq_mixed_stage *a, const struct maq_mixed_stage *b)
{
    return a->first_layer < b->first_layer + b->layers && b->first_layer < a->first_layer + a->layers;
}

/* When all columns that hold one of its layers have run their passes. */
static double passed_s(const struct maq_placing *p, const struct maq_placed_slot *slot)
{
    double t = slot->end_s;
    for (uint32_t i = 0; i < p->n_columns; i++)
        for (uint32_t k = 0; k < p->columns[i].n; k++)
            if (overlap(slot->plan, p->columns[i].slots[k].plan))
                t = larger(t, p->columns[i].slots[k].end_s);
    return t;
}

/*
 * When a device has reduced the gradients of its stages; those whose reduction does not overlap with passes wait for all
 * passes.
 */
static double reduced_s(const struct maq_placing *p, const struct maq_placed_column *c, uint32_t device)
{
    double passed = 0, reduced = 0;
    for (uint32_t i = device; i < c->n; i += c->devices)
        passed = larger(passed, passed_s(p, &c->slots[i]));
    for (uint32_t i = (c->n / c->devices - 1) * c->devices + device; i < c->n; i -= c->devices) {
        const struct maq_placed_slot *s = &c->slots[i];
        double from = s->reduces_beside ? passed_s(p, s) : larger(passed, reduced),
               alone = from + larger(s->cost.exposed_s, s->across_s),
               behind = reduced + larger(s->cost.reduce_s, s->across_s);
        reduced = larger(alone, s->reduces_beside ? behind : 0);
    }
    return larger(passed, reduced);
}

static double tied_s(const struct maq_placing *p, const struct maq_placed_column *c)
{
    const struct maq_placed_slot *a = &c->slots[0], *b = &c->slots[c->n - 1];
    double bytes = larger(a->tied_bytes, b->tied_bytes);
    if (bytes == 0 || (a->pool == b->pool && a->first_device == b->first_device))
        return 0;
    return maq_pools_tied_s(&p->pools, (uint32_t[]){a->pool, b->pool}, (uint32_t[]){a->first_device, b->first_device},
                            bytes, maq__placed_sharers(p, c, a));
}

static void end_step(struct maq_mixed_placed *out, const struct maq_placing *p)
{
    double after = 0;
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const struct maq_placed_column *c = &p->columns[i];
        const double unpaired = maq_schedule_unpaired(c->devices, c->microbatches);
        for (uint32_t d = 0; d < c->devices; d++) {
            double update = c->slots[d].cost.update_s; /* of all that it runs */
            for (uint32_t k = d; k < c->n; k += c->devices)
                update += c->slots[k].cost.gather_s + c->slots[k].cost.exchange_s * unpaired;
            out->pipeline_s = larger(out->pipeline_s, reduced_s(p, c, d));
            after = larger(after, update);
        }
        double ends = larger(reduced_s(p, c, 0), reduced_s(p, c, (c->n - 1) % c->devices));
        out->pipeline_s = larger(out->pipeline_s, ends + tied_s(p, c));
    }
    double norm = maq_pools_norm_s(&p->pools);
    out->update_s = norm + after;
    out->step_s = out->pipeline_s + norm + after; /* the order of planner/stages/simulated.c, to the last bit */
}

enum maq_status maq__placed_simulate(struct maq_mixed_placed *out, struct maq_mixed_placed_stage *stages,
                                     struct maq_placing *p)
{
    uint32_t at = 0;
    double busiest = -1;
    out->fits = true;
    for (uint32_t i = 0; i < p->n_columns; i++) {
        struct skeleton k = {.dur = NULL};
        MAQ_TRY(play_column(p, &p->columns[i], &k));
        tell_column(out, &stages[at], p, &p->columns[i], &k.schedule);
        for (uint32_t s = 0; s < p->columns[i].n; s++, at++)
            if (stages[at].microbatches * (stages[at].forward_s + stages[at].backward_s) > busiest) {
                busiest = stages[at].microbatches * (stages[at].forward_s + stages[at].backward_s);
                out->slowest = at;
            }
    }
    end_step(out, p);
    return MAQ_OK;
}
