/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.c - a composition simulated pass by pass: the step of train/step/step_time.c, with a plan of its own for every stage.
 *
 *   pipeline    max-plus over the 1F1B skeleton (plan/schedule/schedule.h), passes and hops of each stage and border
 *   reduction   of each stage after its own last backward pass; all-reduce of a tied table between first and last stage
 *   end         norm over all devices; the slowest update and gathering of parameters
 *
 * Stages take the devices of their pools in the order of the pipeline, each the first free slots that it fits into
 * (train/mixed/device_slots.h), from the front or from the back, whichever is faster. Where all stages are alike, this is the
 * placement of a job (rank order tp-cp-ep-dp-pp), and the step is that of maq_train_predict().
 */
#include <math.h>

#include "base/check.h"
#include "plan/schedule/schedule.h"
#include "planner/stages/stage_costs.h"
#include "planner/stages/strategies.h"
#include "train/mixed/device_slots.h"
#include "train/mixed/range_costs.h"

struct simulated_stage {
    struct maq_range_cost cost;
    double hop_bytes, tied_bytes, held_bytes; /* held: at the peak */
    bool stalls;
    uint32_t pool, first_device, devices; /* in its pool; of all replicas */
};

struct simulation {
    const struct maq_chain_costs *costs;
    const struct maq_chain_wave *wave;
    const struct maq_composition *composition;
    const struct maq_stage_table *table;
    struct maq_schedule schedule;
    uint32_t n;
    struct simulated_stage *stages;
};

static struct maq_stage_strategy option_of(const struct simulation *p, uint32_t stage)
{
    const struct maq_stage_part *part = &p->composition->stages[stage].parts[0];
    return maq_stage_strategy_of(p->costs, p->table->options[part->option].id);
}

/* Devices for all stages, from the front of the pipeline or from its back. */
static enum maq_status slot_stages(struct simulation *p, bool backwards, struct maq_arena *arena)
{
    struct maq_device_slots slots[MAQ_STAGE_KINDS];
    uint32_t *first = MAQ_ARENA_NEW(arena, uint32_t, p->wave->replicas);
    if (!first)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < p->costs->n_pools; i++)
        if (!maq_device_slots_open(&slots[i], p->costs->pools[i].at, arena))
            return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t i = backwards ? p->n - 1 - k : k;
        struct maq_stage_strategy is = option_of(p, i);
        struct simulated_stage *st = &p->stages[i];
        st->pool = is.pool;
        maq_device_slots_take_stage(&slots[is.pool], is.tp * is.cp, p->wave->replicas, first);
        st->first_device = first[0];
    }
    return MAQ_OK;
}

static enum maq_status cost_stage(struct simulation *p, uint32_t stage)
{
    const struct maq_chain_costs *c = p->costs;
    const struct maq_stage *s = &p->composition->stages[stage];
    struct simulated_stage *out = &p->stages[stage];
    struct maq_stage_strategy is = option_of(p, stage);
    struct maq_plan plan = maq_strategy_plan(c->space, &is, c->space->mbs[p->wave->mbs]);
    struct maq_range_costs range_costs;
    uint32_t replicas = p->wave->replicas, each = is.tp * is.cp;
    const struct maq_range_stage at = {replicas, p->table->waves,
                                       maq_device_slots_first(out->first_device, each, replicas), p->n == 1};
    MAQ_TRY(maq_range_costs_begin(&range_costs, c->groups.at[is.pool].sweep, &plan, &at, NULL));
    enum maq_status status = maq_range_costs_of(&out->cost, &range_costs, s->first, s->end, true);
    out->hop_bytes = range_costs.hop_bytes;
    out->tied_bytes = range_costs.tied_bytes;
    out->stalls = range_costs.stalls;
    out->devices = each * replicas;
    double held = out->cost.act_bytes * s->in_flight;
    out->held_bytes = range_costs.context_bytes + out->cost.states_bytes + held +
                      fmax(out->cost.working_bytes, out->cost.ending_bytes + out->cost.matrix_bytes - held);
    maq_range_costs_end(&range_costs);
    return status;
}

/* ---- transfers ---- */

static uint32_t sharers_of(const struct simulation *p, const struct simulated_stage *s)
{
    uint32_t of_pool = 0;
    for (uint32_t i = 0; i < p->n; i++)
        of_pool += p->stages[i].pool == s->pool;
    return maq_pool_sharers(&p->costs->groups.at[s->pool], s->devices, of_pool);
}

static double border_s(const struct simulation *p, const struct simulated_stage *a, const struct simulated_stage *b)
{
    const struct maq_pools *groups = &p->costs->groups;
    double bytes = fmax(a->hop_bytes, b->hop_bytes);
    uint32_t fewest = a->devices < b->devices ? a->devices : b->devices;
    return a->pool == b->pool
               ? maq_pools_inside_s(groups, a->pool, a->first_device, b->first_device, bytes, sharers_of(p, a))
               : maq_pools_between_s(groups, a->pool, b->pool, bytes, fewest);
}

static double tied_s(const struct simulation *p)
{
    const struct simulated_stage *a = &p->stages[0], *b = &p->stages[p->n - 1];
    double bytes = fmax(a->tied_bytes, b->tied_bytes);
    if (p->n < 2 || bytes == 0)
        return 0;
    return maq_pools_tied_s(&p->costs->groups, (uint32_t[]){a->pool, b->pool},
                            (uint32_t[]){a->first_device, b->first_device}, bytes, sharers_of(p, a));
}

/* ---- time ---- */

static double *doubles(struct maq_arena *arena, size_t n)
{
    return MAQ_ARENA_NEW(arena, double, n > 0 ? n : 1);
}

static bool simulate_pipeline(double *end_s, const struct simulation *p, struct maq_arena *arena)
{
    const struct maq_schedule *s = &p->schedule;
    double *dur = doubles(arena, (size_t)MAQ_TASK_KIND_COUNT * p->n), *hop = doubles(arena, p->n),
           *stall = doubles(arena, p->n), *port = doubles(arena, p->n), *ready = doubles(arena, p->n),
           *late = doubles(arena, p->n), *finish = doubles(arena, 2 * (size_t)s->n_tasks), makespan = 0;
    if (!dur || !hop || !stall || !port || !ready || !late || !finish)
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct simulated_stage *st = &p->stages[i], *before = &p->stages[i > 0 ? i - 1 : 0];
        bool apart = maq_pools_apart(&p->costs->groups, (uint32_t[]){before->pool, st->pool},
                                     (uint32_t[]){before->first_device, st->first_device});
        dur[MAQ_TASK_F * p->n + i] = nearbyint(st->cost.forward_s * 1e9);
        dur[MAQ_TASK_B * p->n + i] = nearbyint(st->cost.backward_s * 1e9);
        ready[i] = nearbyint(st->cost.ready_s * 1e9);
        late[i] = nearbyint(st->cost.late_s * 1e9);
        hop[i] = i > 0 ? nearbyint(border_s(p, before, st) * 1e9) : 0;
        stall[i] = st->stalls ? hop[i] : 0;
        /* where the sender waits for its transfers, they are over before it goes on */
        port[i] = apart && !st->stalls ? hop[i] : 0;
    }
    const struct maq_task_times times = {
        .dur = dur, .hop = hop, .stall = stall, .port = port, .ready = ready, .late = late};
    maq_schedule_eval(&makespan, finish, s, 1, &times);
    for (uint32_t i = 0; i < p->n; i++)
        end_s[i] = finish[s->stage_last[i]] * 1e-9;
    return true;
}

static enum maq_status simulate(double *step_s, struct simulation *p, struct maq_arena *arena)
{
    double *end = doubles(arena, p->n), pipeline = 0, after = 0;
    if (!end || !simulate_pipeline(end, p, arena))
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct maq_range_cost *c = &p->stages[i].cost;
        end[i] += c->exposed_s;
        pipeline = fmax(pipeline, end[i]);
        after = fmax(after, c->update_s + c->gather_s + c->exchange_s * maq_schedule_unpaired(p->n, p->table->waves));
    }
    pipeline = fmax(pipeline, fmax(end[0], end[p->n - 1]) + tied_s(p));
    *step_s = pipeline + p->costs->norm_s + after;
    return MAQ_OK;
}

/* Costs all stages, each under the lock of its pool. */
static enum maq_status cost_stages(struct simulation *p, bool *fits)
{
    *fits = true;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t pool = p->stages[i].pool;
        pthread_mutex_t *lock = &p->costs->memo->pools[pool].lock;
        pthread_mutex_lock(lock);
        enum maq_status status = cost_stage(p, i);
        pthread_mutex_unlock(lock);
        MAQ_TRY(status);
        *fits = *fits && p->stages[i].held_bytes <= p->costs->pools[pool].capacity_bytes;
    }
    return MAQ_OK;
}

static enum maq_status simulate_both(struct maq_chain_simulated *out, struct simulation *p, struct maq_arena *arena)
{
    if (!p->stages)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_schedule_build(&p->schedule, MAQ_SCHEDULE_1F1B, p->n, 1, p->table->waves, 0, arena, NULL));
    for (int backwards = 0; backwards < 2; backwards++) {
        struct maq_chain_simulated one;
        MAQ_TRY(slot_stages(p, backwards, arena));
        MAQ_TRY(cost_stages(p, &one.fits));
        MAQ_TRY(simulate(&one.step_s, p, arena));
        if (!backwards || one.step_s < out->step_s)
            *out = one;
    }
    return MAQ_OK;
}

enum maq_status maq_chain_costs_simulate(struct maq_chain_simulated *out, const struct maq_chain_costs *c,
                                         const struct maq_chain_wave *wave, const struct maq_composition *composition,
                                         const struct maq_stage_table *table)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct simulation p = {.costs = c,
                           .wave = wave,
                           .composition = composition,
                           .table = table,
                           .n = composition->n_stages,
                           .stages = MAQ_ARENA_NEW(&arena, struct simulated_stage, composition->n_stages)};
    enum maq_status status = simulate_both(out, &p, &arena);
    maq_arena_fini(&arena);
    return status;
}
