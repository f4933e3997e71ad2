/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zero_bubble_search.c - the searched zero bubble schedules (zb-1p, zb-2p, zb-auto): an order of forwards (F), gradients of inputs
 * (B) and of weights (W) that takes little time with the durations at hand and holds no more microbatches than a limit.
 *
 * Source: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 3 and appendix, and its program,
 * sail-sg/zero-bubble-pipeline-parallelism 39f2c186a275, megatron/core/pipeline_parallel/zerobubble/scheduler/zb.py: the same
 * heuristic with the same eight settings. A microbatch is held from its F to its W; the program takes B to release a little
 * already. Where that program takes the median of the stages for all of them, every stage has its own durations here.
 *
 * The heuristic. After one F on every stage, forwards fill the time until the first B comes back. Then rounds, one per
 * microbatch: each stage takes up to one F, from the first stage on, and one B, from the last stage on. W go where a stage would
 * wait anyway, and where memory has to be given back. Three questions have no answer that is always the better one, and all eight
 * combinations are tried:
 *
 *   late       may a forward before the first B delay that B?
 *   leave_out  may a stage that is two forwards ahead of the next one go without the F of a round, where the B would come later
 *              by it?
 *   patient    does a stage that has waited less than others rather wait than run a W that is longer than its wait?
 *
 * Orders written by hand join in: 1F1B with each W behind its B, and ZB-H1 stretched to L microbatches for L = p and 2p-1, or to
 * the limit where that is less,
 *
 *   warm-up of stage s  a = (L-1)(p-1-s)/(p-1) rounded,  delay of its W  L-1-a
 *
 * which is ZB-H1 at L = p and ZB-H2 at L = 2p-1. What takes least counts: the longest stage from its first task to its last, which is
 * what a step takes whose optimizer does not make the stages wait for each other, or the makespan, where it does. Of equals the
 * first. The answer is therefore never worse than 1F1B, nor than ZB-H1 where the limit leaves room for it.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "plan/schedule/build.h"

enum op { OP_F, OP_B, OP_W }; /* as enum maq_task_kind */

/* p stages, m microbatches, rows by stage. */
struct problem {
    uint32_t p, m;
    const double *dur[3], *hop, *stall, *ready, *late; /* ready, late: NULL = 0 */
    uint32_t *limit;                                   /* [p], 1 to m */
    bool spans;
};

/* A stage while its order is written. */
struct stage {
    uint32_t done[3]; /* F, B, W */
    double end, waited;
};

/* An order of all stages: kinds[s * 3m + k] is the k-th task of stage s; each kind runs its microbatches in their order. */
struct writer {
    const struct problem *z;
    struct stage *at;
    double *ended[2]; /* [s * m + i]: of F and B */
    uint8_t *kinds;
    bool late, leave_out, patient;
};

static double max2(double a, double b)
{
    return a > b ? a : b;
}

/* When the input of the next F or B of a stage has come; 0 where it needs none. */
static double arrival(const struct writer *g, uint32_t s, enum op kind)
{
    const struct problem *z = g->z;
    uint32_t i = g->at[s].done[kind];
    if (kind == OP_F && s > 0)
        return g->ended[OP_F][(s - 1) * z->m + i] + z->hop[s];
    if (kind == OP_B && s + 1 < z->p)
        return g->ended[OP_B][(s + 1) * z->m + i] + z->hop[s + 1];
    return 0;
}

static void put(struct writer *g, uint32_t s, enum op kind)
{
    const struct problem *z = g->z;
    struct stage *at = &g->at[s];
    double start = max2(at->end, arrival(g, s, kind));
    MAQ_ASSERT(kind == OP_W ? at->done[OP_W] < at->done[OP_B] : at->done[kind] < z->m);
    if (at->done[OP_F] > 0)
        at->waited += start - at->end;
    at->end = start + z->dur[kind][s];
    if (kind != OP_W)
        g->ended[kind][s * z->m + at->done[kind]] = at->end;
    g->kinds[s * 3 * z->m + at->done[OP_F] + at->done[OP_B] + at->done[OP_W]] = (uint8_t)kind;
    at->done[kind]++;
}

static double longest_wait(const struct writer *g)
{
    double most = 0;
    for (uint32_t s = 0; s < g->z->p; s++)
        most = max2(most, g->at[s].waited);
    return most;
}

static bool has_w(const struct writer *g, uint32_t s)
{
    return g->at[s].done[OP_W] < g->at[s].done[OP_B];
}

static bool is_full(const struct writer *g, uint32_t s)
{
    return g->at[s].done[OP_F] - g->at[s].done[OP_W] >= g->z->limit[s];
}

/* W in the wait for `until`: those that fit, and one that does not unless the wait can be borne. */
static void fill_wait(struct writer *g, uint32_t s, double until)
{
    const struct stage *at = &g->at[s];
    while (has_w(g, s) && at->end + g->z->dur[OP_W][s] <= until)
        put(g, s, OP_W);
    if (!has_w(g, s) || at->end >= until)
        return;
    bool bearable = until - at->end <= longest_wait(g) - at->waited;
    if (!bearable || !g->patient)
        put(g, s, OP_W);
}

/* Forwards of stage s between its first and its first B, which comes at `first_b`; *end is where they lead. */
static uint32_t forwards_before(const struct writer *g, uint32_t s, double first_b, double *end)
{
    const struct problem *z = g->z;
    uint32_t n = 0;
    *end = g->at[s].end;
    while (1 + n < z->m && 1 + n < z->limit[s]) {
        bool enough = g->late ? *end >= first_b : *end + z->dur[OP_F][s] > first_b;
        if (enough)
            break;
        *end += z->dur[OP_F][s];
        n++;
    }
    return n;
}

/* Everything up to the first B of every stage. */
static void warm_up(struct writer *g, uint32_t *more)
{
    const struct problem *z = g->z;
    uint32_t last = z->p - 1;
    for (uint32_t s = 0; s < z->p; s++)
        put(g, s, OP_F);
    double b_end = g->at[last].end + z->dur[OP_B][last], end;
    more[last] = 0;
    for (uint32_t s = last; s-- > 0;) {
        double comes = b_end + z->hop[s + 1];
        more[s] = forwards_before(g, s, comes, &end);
        b_end = max2(end, comes) + z->dur[OP_B][s];
    }
    for (uint32_t s = 1; s < z->p; s++) { /* fewer than the stage before it, or all of the step */
        uint32_t most = more[s - 1] + 1 == z->m || more[s - 1] == 0 ? more[s - 1] : more[s - 1] - 1;
        more[s] = more[s] < most ? more[s] : most;
    }
    for (uint32_t s = 0; s < z->p; s++)
        for (uint32_t i = 0; i < more[s]; i++)
            put(g, s, OP_F);
    for (uint32_t s = z->p; s-- > 0;)
        put(g, s, OP_B);
}

/* Whether a stage that is ahead of the next one does better without the F of this round. */
static bool leaves_out(const struct writer *g, uint32_t s)
{
    const struct problem *z = g->z;
    const struct stage *at = &g->at[s], *next = &g->at[s + 1];
    if (!g->leave_out || at->done[OP_F] < next->done[OP_F] + 2)
        return false;
    double comes = next->end + z->dur[OP_F][s + 1] + z->dur[OP_B][s + 1] + z->hop[s + 1];
    if (at->end >= comes)
        return true;
    double freeing = is_full(g, s) ? z->dur[OP_W][s] : 0; /* the memory that the F takes */
    if (at->end + z->dur[OP_F][s] + freeing <= comes)
        return false;
    return comes - at->end <= longest_wait(g) - at->waited;
}

static void forward_round(struct writer *g, uint32_t *takes)
{
    const struct problem *z = g->z;
    for (uint32_t s = 0; s < z->p; s++)
        takes[s] = g->at[s].done[OP_F] < z->m && !(s + 1 < z->p && leaves_out(g, s));
    for (uint32_t s = z->p - 1; s-- > 0;) /* what the next stage does not take it need not have */
        takes[s] = takes[s] && takes[s + 1];
    for (uint32_t s = 0; s < z->p; s++) {
        if (!takes[s])
            continue;
        while (is_full(g, s))
            put(g, s, OP_W);
        if (s > 0)
            fill_wait(g, s, arrival(g, s, OP_F));
        put(g, s, OP_F);
    }
}

static void backward_round(struct writer *g)
{
    const struct problem *z = g->z;
    for (uint32_t s = z->p; s-- > 0;) {
        if (s + 1 < z->p)
            fill_wait(g, s, arrival(g, s, OP_B));
        while (s == 0 && g->at[s].done[OP_F] == z->m && has_w(g, s)) /* nobody waits for the first stage's B */
            put(g, s, OP_W);
        put(g, s, OP_B);
    }
}

static void write_order(struct writer *g, uint32_t *scratch)
{
    const struct problem *z = g->z;
    memset(g->at, 0, z->p * sizeof *g->at);
    warm_up(g, scratch);
    for (uint32_t i = 1; i < z->m; i++) {
        forward_round(g, scratch);
        backward_round(g);
    }
    for (uint32_t s = 0; s < z->p; s++)
        while (has_w(g, s))
            put(g, s, OP_W);
}

/* ---- orders by hand ---- */

static void write_stage(uint8_t *kinds, uint32_t m, uint32_t warmup, uint32_t delay)
{
    uint32_t done[3] = {0, 0, 0};
    for (uint32_t n = 0; n < 3 * m; n++) {
        const enum maq_task_kind kind = maq__next_of_late_w(done, m, warmup, delay);
        kinds[n] = (uint8_t)kind;
        done[kind]++;
    }
}

/* 1F1B, or ZB-H1 stretched to `most` microbatches where the limit leaves room for them. */
static void write_by_hand(uint8_t *kinds, const struct problem *z, bool delayed, uint32_t most)
{
    uint32_t least = z->limit[0], p = z->p, m = z->m;
    for (uint32_t s = 1; s < p; s++)
        least = z->limit[s] < least ? z->limit[s] : least;
    if (least < m && least < most) /* of m there are no more */
        most = least;
    for (uint32_t s = 0; s < p; s++) {
        uint32_t left = p - 1 - s, plain = left < most - 1 ? left : most - 1;
        uint32_t warmup = p > 1 ? (2 * (most - 1) * left + p - 1) / (2 * (p - 1)) : 0;
        write_stage(&kinds[s * 3 * m], m, delayed ? warmup : plain, delayed ? most - 1 - warmup : 0);
    }
}

/* ---- what an order takes ---- */

/* A stage while an order is run. */
struct runner {
    uint32_t next, done[3];
    double start, end, stalls; /* of its first task; of its last; how long what that sends keeps it */
};

/* Runs the tasks of a stage for which all has come; false when there was none. */
static bool advance(struct runner *run, double *ended[2], const struct problem *z, const uint8_t *kinds, uint32_t s)
{
    struct runner *me = &run[s];
    uint32_t m = z->m, before = me->next;
    for (; me->next < 3 * m; me->next++) {
        enum op kind = (enum op)kinds[s * 3 * m + me->next];
        uint32_t i = me->done[kind];
        double start = me->end + me->stalls;
        if (kind == OP_F && s > 0) {
            if (run[s - 1].done[OP_F] <= i)
                break;
            start = max2(start, ended[OP_F][(s - 1) * m + i] + z->hop[s]);
        }
        if (kind == OP_B && s + 1 < z->p) {
            if (run[s + 1].done[OP_B] <= i)
                break;
            start = max2(start, ended[OP_B][(s + 1) * m + i] + z->hop[s + 1]);
        }
        if (me->next == 0)
            me->start = start;
        me->end = start + z->dur[kind][s];
        if (kind == OP_F && i == 0 && z->ready)
            me->end = max2(me->end, z->ready[s]);
        if (kind == OP_W && i + 1 == m && z->late)
            me->end += z->late[s];
        me->stalls = !z->stall                      ? 0
                     : kind == OP_F && s + 1 < z->p ? z->stall[s + 1]
                     : kind == OP_B && s > 0        ? z->stall[s]
                                                    : 0;
        if (kind != OP_W)
            ended[kind][s * m + i] = me->end;
        me->done[kind]++;
    }
    return me->next > before;
}

static double cost_of(const uint8_t *kinds, const struct problem *z, struct runner *run, double *ended[2])
{
    double most = 0;
    memset(run, 0, z->p * sizeof *run);
    for (bool any = true; any;) { /* down the stages with the forwards, and up with the backwards */
        any = false;
        for (uint32_t s = 0; s < z->p; s++)
            any |= advance(run, ended, z, kinds, s);
        for (uint32_t s = z->p; s-- > 0;)
            any |= advance(run, ended, z, kinds, s);
    }
    for (uint32_t s = 0; s < z->p; s++) {
        MAQ_ASSERT(run[s].next == 3 * z->m);
        most = max2(most, run[s].end - (z->spans ? run[s].start : 0));
    }
    return most;
}

/* ---- the search ---- */

#define SETTINGS 8 /* of the heuristic */
#define TRIES (SETTINGS + 3)

/* Writes the n-th order that is tried. Those by hand come last: of equals the heuristic's is what the program runs. */
static void write_try(struct writer *g, uint32_t n, uint32_t *scratch)
{
    if (n >= SETTINGS) {
        uint32_t p = g->z->p;
        write_by_hand(g->kinds, g->z, n > SETTINGS, n == SETTINGS + 2 ? 2 * p - 1 : p);
        return;
    }
    g->late = (n & 1) == 0;
    g->leave_out = (n & 2) == 0;
    g->patient = (n & 4) != 0;
    write_order(g, scratch);
}

static enum maq_status choose(uint8_t **best, const struct problem *z, struct maq_arena *scratch)
{
    size_t cells = (size_t)z->p * z->m;
    struct writer g = {.z = z,
                       .at = MAQ_ARENA_NEW(scratch, struct stage, z->p),
                       .ended = {MAQ_ARENA_RAW(scratch, double, cells), MAQ_ARENA_RAW(scratch, double, cells)},
                       .kinds = MAQ_ARENA_RAW(scratch, uint8_t, 3 * cells)};
    struct runner *run = MAQ_ARENA_NEW(scratch, struct runner, z->p);
    uint32_t *of_stages = MAQ_ARENA_NEW(scratch, uint32_t, z->p);
    uint8_t *kept = MAQ_ARENA_RAW(scratch, uint8_t, 3 * cells);
    double least = HUGE_VAL;
    if (!g.at || !g.ended[0] || !g.ended[1] || !g.kinds || !run || !of_stages || !kept)
        return MAQ_NO_MEMORY;
    for (uint32_t n = 0; n < TRIES; n++) {
        write_try(&g, n, of_stages);
        double cost = cost_of(g.kinds, z, run, g.ended);
        if (cost >= least)
            continue;
        least = cost;
        uint8_t *other = kept;
        kept = g.kinds;
        g.kinds = other;
    }
    *best = kept;
    return MAQ_OK;
}

static void emit(struct maq_orders *o, const uint8_t *kinds)
{
    uint32_t m = o->microbatches;
    for (uint32_t s = 0; s < o->stages; s++) {
        uint32_t done[3] = {0, 0, 0};
        o->first[s] = o->n;
        for (uint32_t k = 0; k < 3 * m; k++) {
            enum op kind = (enum op)kinds[s * 3 * m + k];
            if (kind == OP_B)
                maq__order_add_split(o, s, done[kind]++);
            else
                maq__order_add(o, kind == OP_F ? MAQ_TASK_F : MAQ_TASK_W, s, done[kind]++);
        }
    }
    o->first[o->stages] = o->n;
}

/* Without durations: all passes alike, transfers free. */
static enum maq_status assume(struct problem *z, struct maq_arena *scratch)
{
    double *ones = MAQ_ARENA_NEW(scratch, double, z->p), *zeros = MAQ_ARENA_NEW(scratch, double, z->p);
    if (!ones || !zeros)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < z->p; s++)
        ones[s] = 1;
    for (int kind = 0; kind < 3; kind++)
        z->dur[kind] = ones;
    z->hop = zeros;
    return MAQ_OK;
}

enum maq_status maq__order_zb_searched(struct maq_orders *o, struct maq_arena *scratch)
{
    const struct maq_schedule_durations *d = o->durations;
    uint32_t p = o->stages, m = o->microbatches;
    struct problem z = {.p = p, .m = m, .limit = MAQ_ARENA_NEW(scratch, uint32_t, p), .spans = d && d->spans};
    uint8_t *best;
    if (!z.limit)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < p; s++) {
        uint32_t limit = d && d->limit ? d->limit[s] : o->limit;
        z.limit[s] = limit < 1 ? 1 : limit > m ? m : limit;
    }
    if (d) {
        for (uint32_t kind = 0; kind < 3; kind++)
            z.dur[kind] = &d->times->dur[(size_t)kind * p];
        z.hop = d->times->hop;
        z.stall = d->times->stall;
        z.ready = d->times->ready;
        z.late = d->times->late;
    } else {
        MAQ_TRY(assume(&z, scratch));
    }
    MAQ_TRY(choose(&best, &z, scratch));
    emit(o, best);
    return MAQ_OK;
}
