/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the slowdown of a recorded job by stragglers, by part and by operation.
 *
 * With T the mean replayed step when nothing waits for a launch and T0 the step in which every operation is ideal,
 * the slowdown is S = T / T0, a part's slowdown is T(only that part as recorded) / T0, and the share of the loss that
 * goes when a part is made ideal is M = (T - T(that part ideal)) / (T - T0). The measures are those of "Understanding
 * stragglers in large model training using what-if analysis" (OSDI'25), section 3.
 */
#include "risk/stragglers/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/stat/summary.h"

#define WORKERS_REPLAYED 256u

enum which { AS_RECORDED, ALL, NOTHING, STAGE, DP_RANK, WORKER, OPERATION, ALL_BUT_WORKERS, ALL_BUT_LAST };

struct run {
    struct maq_replay_trace t;
    struct maq_arena *arena;
    double *ideal;       /* [types] us */
    uint32_t *operation; /* [types] which of the reported operations it is a part of */
    const bool *slowest; /* [workers] for ALL_BUT_WORKERS */
    uint32_t n_operations;
};

/* Whether an operation lasts as recorded. */
static bool recorded(const struct run *r, const struct maq_replay_op *op, enum which which, uint32_t part)
{
    uint32_t pp = r->t.pp;
    switch (which) {
    case AS_RECORDED:
    case ALL:
        return true;
    case NOTHING:
        return false;
    case STAGE:
        return op->worker % pp == part;
    case DP_RANK:
        return op->worker / pp == part;
    case WORKER:
        return op->worker == part;
    case OPERATION:
        return r->operation[op->type] == part;
    case ALL_BUT_WORKERS:
        return !r->slowest[op->worker];
    case ALL_BUT_LAST:
        return op->worker % pp != pp - 1;
    }
    return true;
}

/* A set of what-ifs that are evaluated together, step by step. */
struct question {
    enum which which;
    uint32_t part;
    double sum; /* of the steps, us */
};

static enum maq_status ask(struct question *q, uint32_t n, const struct run *r, double *step_us, struct maq_diag *diag)
{
    for (uint32_t s = 0; s < r->t.n_steps; s++) {
        struct maq_arena_mark mark = maq_arena_mark(r->arena);
        const struct maq_replay_op *ops = r->t.ops + r->t.first[s];
        struct maq_replay_graph g;
        MAQ_TRY(maq_replay_order(&g, &r->t, s, r->arena, diag));
        double *dur = MAQ_ARENA_NEW(r->arena, double, g.n_ops), *finish = MAQ_ARENA_NEW(r->arena, double, g.n_ops);
        double *delay = MAQ_ARENA_NEW(r->arena, double, g.n_units);
        if (!dur || !finish || !delay)
            return maq_no_memory(diag, "a step");
        maq_replay_delays(delay, &g, ops, finish);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < g.n_ops; k++)
                dur[k] = recorded(r, &ops[k], q[i].which, q[i].part) ? ops[k].dur_us : r->ideal[ops[k].type];
            double end = maq_replay_time(&g, dur, q[i].which == AS_RECORDED ? delay : NULL, finish);
            q[i].sum += end;
            if (q[i].which == AS_RECORDED && step_us)
                step_us[s] = end;
        }
        maq_arena_reset(r->arena, mark);
    }
    return MAQ_OK;
}

/* --- kinds of operations --------------------------------------------------------------------------------------------- */

/* Sending and receiving are one operation in the report. */
static const char *reported_name(const struct maq_replay_type *type)
{
    bool forward = type->role == MAQ_REPLAY_FORWARD_SEND || type->role == MAQ_REPLAY_FORWARD_RECV;
    bool backward = type->role == MAQ_REPLAY_BACKWARD_SEND || type->role == MAQ_REPLAY_BACKWARD_RECV;
    return forward ? "forward-pp-comm" : backward ? "backward-pp-comm" : type->name;
}

static enum maq_status find_ideals(struct run *r, struct maq_risk_operation *out)
{
    double *value = MAQ_ARENA_NEW(r->arena, double, r->t.n_ops);
    uint32_t types = r->t.n_types;
    if (!value)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < types; i++) {
        uint32_t n = 0, at = 0;
        for (uint32_t k = 0; k < r->t.n_ops; k++)
            if (r->t.ops[k].type == i)
                value[n++] = r->t.ops[k].dur_us;
        double mean = maq_mean(value, n), median = maq_quantile(value, n, 0.5);
        r->ideal[i] = r->t.type[i].communication ? median : mean;
        const char *name = reported_name(&r->t.type[i]);
        while (at < r->n_operations && strcmp(out[at].name, name) != 0)
            at++;
        r->operation[i] = at;
        struct maq_risk_operation *o = &out[at];
        if (at == r->n_operations) {
            r->n_operations++;
            *o = (struct maq_risk_operation){.name = name};
        }
        double all =
            (double)(o->count + n); /* of sends and receptions together: means weighted by how many there are */
        o->mean_s = (o->mean_s * (double)o->count + mean * 1e-6 * n) / all;
        o->median_s = (o->median_s * (double)o->count + median * 1e-6 * n) / all;
        o->count += n;
    }
    return MAQ_OK;
}

/* --- the answer ------------------------------------------------------------------------------------------------------ */

static int slower_part(const void *pa, const void *pb)
{
    const struct maq_risk_part *a = pa, *b = pb;
    if (a->slowdown < b->slowdown || b->slowdown < a->slowdown)
        return a->slowdown > b->slowdown ? -1 : 1;
    if (a->dp_rank != b->dp_rank)
        return a->dp_rank < b->dp_rank ? -1 : 1;
    return (a->stage > b->stage) - (a->stage < b->stage);
}

static int slower_operation(const void *pa, const void *pb)
{
    const struct maq_risk_operation *a = pa, *b = pb;
    if (a->slowdown < b->slowdown || b->slowdown < a->slowdown)
        return a->slowdown > b->slowdown ? -1 : 1;
    return strcmp(a->name, b->name);
}

struct answer {
    struct maq_risk_part *stage, *dp_rank, *worker;
    struct maq_risk_operation *operation;
};

static enum maq_status ask_parts(struct maq_risk_replayed *out, struct answer *a, struct run *r, struct maq_diag *diag)
{
    uint32_t pp = out->pp, dp = out->dp, workers = out->workers_estimated ? 0 : pp * dp, n = 0;
    uint32_t size = 3 + pp + dp + workers + r->n_operations;
    struct question *q = MAQ_ARENA_NEW(r->arena, struct question, size);
    double *step_us = MAQ_ARENA_NEW(r->arena, double, out->n_steps);
    if (!q || !step_us)
        return MAQ_NO_MEMORY;
    q[n++] = (struct question){.which = AS_RECORDED};
    q[n++] = (struct question){.which = ALL};
    q[n++] = (struct question){.which = NOTHING};
    const struct {
        enum which which;
        uint32_t n;
    } lists[] = {{STAGE, pp}, {DP_RANK, dp}, {WORKER, workers}, {OPERATION, r->n_operations}};
    for (size_t l = 0; l < MAQ_COUNT(lists); l++)
        for (uint32_t i = 0; i < lists[l].n; i++)
            q[n++] = (struct question){.which = lists[l].which, .part = i};
    MAQ_TRY(ask(q, n, r, step_us, diag));
    for (uint32_t s = 0; s < out->n_steps; s++)
        step_us[s] *= 1e-6;
    out->step_s = step_us;
    out->step_mean_s = q[0].sum * 1e-6 / out->n_steps;
    out->no_launch_delay_s = q[1].sum * 1e-6 / out->n_steps;
    out->ideal_s = q[2].sum * 1e-6 / out->n_steps;
    out->slowdown = out->ideal_s > 0 ? out->no_launch_delay_s / out->ideal_s : 1;
    double scale = q[2].sum > 0 ? 1 / q[2].sum : 0;
    for (uint32_t i = 3; i < n; i++) {
        uint32_t p = q[i].part;
        double slowdown = q[2].sum > 0 ? q[i].sum * scale : 1;
        if (q[i].which == STAGE)
            a->stage[p] = (struct maq_risk_part){0, p, slowdown};
        else if (q[i].which == DP_RANK)
            a->dp_rank[p] = (struct maq_risk_part){p, 0, slowdown};
        else if (q[i].which == WORKER)
            a->worker[p] = (struct maq_risk_part){p / pp, p % pp, slowdown};
        else
            a->operation[p].slowdown = slowdown;
    }
    for (uint32_t w = 0; out->workers_estimated && w < pp * dp; w++) {
        double by_rank = a->dp_rank[w / pp].slowdown, by_stage = a->stage[w % pp].slowdown;
        a->worker[w] = (struct maq_risk_part){w / pp, w % pp, by_rank < by_stage ? by_rank : by_stage};
    }
    qsort(a->stage, pp, sizeof *a->stage, slower_part);
    qsort(a->dp_rank, dp, sizeof *a->dp_rank, slower_part);
    qsort(a->worker, (size_t)pp * dp, sizeof *a->worker, slower_part);
    qsort(a->operation, r->n_operations, sizeof *a->operation, slower_operation);
    return MAQ_OK;
}

/* The shares of the slowest workers and of the last stage. */
static enum maq_status ask_shares(struct maq_risk_replayed *out, struct run *r, struct maq_diag *diag)
{
    uint32_t workers = out->pp * out->dp, slow = (uint32_t)(0.03 * workers + 0.5);
    bool *slowest = MAQ_ARENA_NEW(r->arena, bool, workers);
    struct question q[] = {{.which = ALL_BUT_WORKERS}, {.which = ALL_BUT_LAST}};
    if (!slowest)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < (slow > 0 ? slow : 1); i++)
        slowest[out->worker[i].dp_rank * out->pp + out->worker[i].stage] = true;
    r->slowest = slowest;
    MAQ_TRY(ask(q, 2, r, NULL, diag));
    double loss = out->no_launch_delay_s - out->ideal_s;
    out->worker_share = loss > 0 ? (out->no_launch_delay_s - q[0].sum * 1e-6 / out->n_steps) / loss : 0;
    out->last_stage_share = loss > 0 ? (out->no_launch_delay_s - q[1].sum * 1e-6 / out->n_steps) / loss : 0;
    return MAQ_OK;
}

static double recorded_mean(const struct maq_replay_trace *t)
{
    double sum = 0;
    for (uint32_t s = 0; s < t->n_steps; s++) {
        double first = t->ops[t->first[s]].start_us, end = first;
        for (uint32_t i = t->first[s]; i < t->first[s + 1]; i++) {
            first = t->ops[i].start_us < first ? t->ops[i].start_us : first;
            end = t->ops[i].start_us + t->ops[i].dur_us > end ? t->ops[i].start_us + t->ops[i].dur_us : end;
        }
        sum += end - first;
    }
    return sum * 1e-6 / t->n_steps;
}

static enum maq_status replay(struct maq_risk_replayed *out, struct run *r, const char *ops, const char *meta,
                              struct maq_diag *diag)
{
    MAQ_TRY(maq_replay_read(&r->t, ops, meta, r->arena, diag));
    uint32_t pp = r->t.pp, dp = r->t.dp;
    struct answer a = {.stage = MAQ_ARENA_NEW(r->arena, struct maq_risk_part, pp),
                       .dp_rank = MAQ_ARENA_NEW(r->arena, struct maq_risk_part, dp),
                       .worker = MAQ_ARENA_NEW(r->arena, struct maq_risk_part, (size_t)pp * dp),
                       .operation = MAQ_ARENA_NEW(r->arena, struct maq_risk_operation, MAQ_REPLAY_TYPES)};
    r->ideal = MAQ_ARENA_NEW(r->arena, double, MAQ_REPLAY_TYPES);
    r->operation = MAQ_ARENA_NEW(r->arena, uint32_t, MAQ_REPLAY_TYPES);
    if (!a.stage || !a.dp_rank || !a.worker || !a.operation || !r->ideal || !r->operation)
        return MAQ_NO_MEMORY;
    MAQ_TRY(find_ideals(r, a.operation));
    *out = (struct maq_risk_replayed){.n_steps = r->t.n_steps,
                                      .dp = dp,
                                      .pp = pp,
                                      .recorded_s = recorded_mean(&r->t),
                                      .step = r->t.steps,
                                      .stage = a.stage,
                                      .dp_rank = a.dp_rank,
                                      .worker = a.worker,
                                      .operation = a.operation,
                                      .n_operations = r->n_operations,
                                      .workers_estimated = pp * dp > WORKERS_REPLAYED,
                                      .owner = r->arena};
    MAQ_TRY(ask_parts(out, &a, r, diag));
    return ask_shares(out, r, diag);
}

enum maq_status maq_risk_replay(struct maq_risk_replayed **out, const char *ops, const char *meta,
                                struct maq_diag *diag)
{
    struct maq_arena *arena = maq__calloc(sizeof *arena);
    if (!arena)
        return maq_no_memory(diag, NULL);
    maq_arena_init(arena, (size_t)16 << 30);
    struct maq_risk_replayed *replayed = MAQ_ARENA_NEW(arena, struct maq_risk_replayed, 1);
    struct run *r = MAQ_ARENA_NEW(arena, struct run, 1);
    enum maq_status status = MAQ_NO_MEMORY;
    if (replayed && r) {
        r->arena = arena;
        status = replay(replayed, r, ops, meta, diag);
    }
    if (status != MAQ_OK) {
        if (status == MAQ_NO_MEMORY && maq_diag_errors(diag) == 0)
            (void)maq_diag_fail(status, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory for %s",
                                ops);
        maq_arena_fini(arena);
        free(arena);
        return status;
    }
    *out = replayed;
    return MAQ_OK;
}

void maq_risk_replayed_free(struct maq_risk_replayed *replayed)
{
    if (!replayed)
        return;
    struct maq_arena *arena = replayed->owner;
    maq_arena_fini(arena);
    free(arena);
}
