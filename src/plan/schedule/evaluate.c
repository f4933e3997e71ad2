/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - the makespan of a schedule: max-plus over the packed tasks, many duration vectors at once.
 *
 * For each task in topological order
 *
 *   start  = max( finish[previous] + stall of what it sends, finish[pred] + hop )
 *   finish = start + duration
 *
 * and a pair waits for the predecessors of both its halves. Where transfers may wait for one another at their sender's port, the
 * time at which the predecessor's transfer starts replaces finish[pred]; lanes in which they cannot wait skip this.
 *
 * Nanoseconds are whole numbers in doubles, so sums are exact below 2^53 ns (104 days) and the result is the
 * same from any compiler and in any grouping of lanes.
 *
 * The loop exists once, inlined with constant arguments: lanes 1, 4 or 8 (their arrays then live in registers and the compiler uses
 * vector instructions), with or without stalls, with or without pairs; with ports one lane at a time. Another K is cut into blocks
 * of 8, 4 and 1. Per task it reads the 16 packed bytes and one row each of durations, hops and two finish times; which stage or
 * microbatch it is does not matter any more.
 */
#include "base/check.h"
#include "plan/schedule/schedule.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize(                                                                                                  \
    "O3") /* at -O2 gcc 12 leaves the lanes scalar; nothing here but max and +, so no value can change */
#endif

/* Instrumented, the loop with all its arguments takes as long to compile as thirty other files: there it is a function. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INLINE static inline
#endif
#elif defined(__SANITIZE_THREAD__)
#define INLINE static inline
#endif
#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif
#define MAX_LANES 8

/* One block of lanes: pointers to its first lane. Rows are `stride` apart, those of hop and stall `lanes`. */
struct block {
    double *finish;
    const double *dur, *fb;
    const double *hop;   /* [n_positions * lanes], row 0 is zero */
    const double *stall; /* the same */
    const double *ready; /* rows by position, or NULL */
    const double *late;  /* the same */
    const double *port;  /* as hop, of one lane; NULL where no transfer waits for another */
    double *sent;        /* like finish, with ports: when what a task sends sets out */
};

INLINE double max2(double a, double b)
{
    return a > b ? a : b;
}

/* Adds to x[] the duration of task id. */
INLINE void add_duration(double *x, const struct maq_schedule *s, const struct maq_task_hot *h,
                         const struct maq_task_pair *pair, const struct block *b, size_t stride, uint32_t lanes,
                         bool pairs)
{
    uint32_t n = s->n_positions;
    if (pairs && h->pair && b->fb) {
        const double *d = &b->fb[((size_t)h->dur * n + pair->b_position) * stride]; /* kind F: dur is the position */
        for (uint32_t k = 0; k < lanes; k++)
            x[k] += d[k];
        return;
    }
    const double *d = &b->dur[h->dur * stride];
    for (uint32_t k = 0; k < lanes; k++)
        x[k] += d[k];
    if (pairs && h->pair) {
        const double *in = &b->dur[(size_t)(MAQ_TASK_B * n + pair->b_position) * stride];
        const double *weight = &b->dur[(size_t)(MAQ_TASK_W * n + pair->b_position) * stride];
        for (uint32_t k = 0; k < lanes; k++)
            x[k] += in[k] + weight[k];
    } else if (pairs && h->whole) {
        const double *weight = &b->dur[(size_t)(h->dur + n) * stride]; /* kinds are in the order F, B, W */
        for (uint32_t k = 0; k < lanes; k++)
            x[k] += weight[k];
    }
}

/* The first forward of a position waits for its parameters at the latest point: its end (kind F: dur is the
 * position). */
INLINE void wait_ready(double *x, const struct maq_task_hot *h, const struct block *b, size_t stride, uint32_t lanes)
{
    const double *r = &b->ready[h->dur * stride];
    for (uint32_t k = 0; k < lanes; k++)
        x[k] = max2(x[k], r[k]);
}

INLINE void add_late(double *x, uint32_t position, const struct block *b, size_t stride, uint32_t lanes)
{
    const double *l = &b->late[position * stride];
    for (uint32_t k = 0; k < lanes; k++)
        x[k] += l[k];
}

/* One lane: task id sends, when its stage's port is free. */
static void send(double *free_at, const struct maq_schedule *s, const struct block *b, size_t stride, uint32_t id)
{
    uint32_t border = maq_task_sends(s, &s->tasks[id]);
    double *at = &free_at[s->tasks[id].stage], start = b->finish[id * stride];
    if (b->port[border] > 0) {
        start = max2(start, *at);
        *at = start + b->port[border];
    }
    b->sent[id * stride] = start;
}

INLINE void run(const struct maq_schedule *s, const struct block *b, size_t stride, uint32_t lanes, bool stalls,
                bool pairs, bool ports)
{
    const struct maq_task_hot *restrict hot = s->hot;
    const double *restrict hop = b->hop;
    double *finish = b->finish;
    uint32_t n = s->n_tasks;
    double x[MAX_LANES], free_at[MAQ_MAX_STAGES];

    for (uint32_t stage = 0; ports && stage < s->stages; stage++)
        free_at[stage] = 0;

    for (uint32_t id = 0; id < s->n_sources; id++) {
        for (uint32_t k = 0; k < lanes; k++)
            x[k] = 0;
        add_duration(x, s, &hot[id], pairs ? &s->pair[id] : NULL, b, stride, lanes, pairs);
        if (b->ready && hot[id].first)
            wait_ready(x, &hot[id], b, stride, lanes);
        for (uint32_t k = 0; k < lanes; k++)
            finish[id * stride + k] = x[k];
        if (ports)
            send(free_at, s, b, stride, id);
    }
    for (uint32_t id = s->n_sources; id < n; id++) {
        const struct maq_task_hot *h = &hot[id];
        const struct maq_task_pair *pair = pairs ? &s->pair[id] : NULL;
        const double *before = &finish[h->previous * stride];
        const double *data = (ports && h->hop ? b->sent : finish) + h->pred * stride;
        const double *move = &hop[h->hop * lanes];
        double y[MAX_LANES];
        for (uint32_t k = 0; k < lanes; k++)
            x[k] = before[k];
        if (stalls)
            for (uint32_t k = 0; k < lanes; k++)
                x[k] += b->stall[h->stall * lanes + k];
        for (uint32_t k = 0; k < lanes; k++)
            y[k] = data[k] + move[k];
        for (uint32_t k = 0; k < lanes; k++)
            x[k] = max2(x[k], y[k]);
        if (pairs) {
            const double *data2 = (ports && pair->hop ? b->sent : finish) + pair->pred * stride,
                         *move2 = &hop[pair->hop * lanes];
            for (uint32_t k = 0; k < lanes; k++)
                x[k] = max2(x[k], data2[k] + move2[k]);
        }
        add_duration(x, s, h, pair, b, stride, lanes, pairs);
        if (h->first && b->ready)
            wait_ready(x, h, b, stride, lanes);
        if (h->last && b->late)
            add_late(x, pairs && h->pair ? pair->b_position : h->dur % s->n_positions, b, stride, lanes);
        for (uint32_t k = 0; k < lanes; k++)
            finish[id * stride + k] = x[k];
        if (ports)
            send(free_at, s, b, stride, id);
    }
}

INLINE void run_variant(const struct maq_schedule *s, const struct block *b, size_t stride, uint32_t lanes, bool stalls)
{
    if (s->pair)
        run(s, b, stride, lanes, stalls, true, false);
    else if (stalls)
        run(s, b, stride, lanes, true, false, false);
    else
        run(s, b, stride, lanes, false, false, false);
}

/* A lane in which transfers hold ports, and no stage stalls. */
static void run_ports(const struct maq_schedule *s, const struct block *b, size_t stride)
{
    if (s->pair)
        run(s, b, stride, 1, false, true, true);
    else
        run(s, b, stride, 1, false, false, true);
}

/* Copies the block's columns of hop and stall next to each other, so that "no transfer" is a row like any other. */
static bool gather(double *hops, double *stalls, const struct maq_schedule *s, uint32_t K, uint32_t lanes,
                   const double *hop, const double *stall)
{
    bool any = false;
    for (uint32_t k = 0; k < lanes; k++)
        hops[k] = stalls[k] = 0;
    for (uint32_t v = 1; v < s->n_positions; v++)
        for (uint32_t k = 0; k < lanes; k++) {
            hops[v * lanes + k] = hop[(size_t)v * K + k];
            stalls[v * lanes + k] = stall ? stall[(size_t)v * K + k] : 0;
            any = any || stalls[v * lanes + k] > 0;
        }
    return any;
}

static const double *column(const double *rows, uint32_t k)
{
    return rows ? rows + k : NULL;
}

static bool any_below(const double *rows, size_t n, uint32_t K, uint32_t k, double limit)
{
    for (size_t row = 0; row < n; row++)
        if (rows[row * K + k] < limit)
            return true;
    return false;
}

/* Whether a transfer may find its port taken: from one to the next a stage runs a whole forward or backward pass, or a pair. */
static bool queues(const struct maq_schedule *s, const struct maq_task_times *t, uint32_t K, uint32_t k)
{
    const size_t n = s->n_positions;
    double longest = 0;
    for (size_t v = 1; t->port && v < n; v++)
        longest = max2(longest, t->port[v * K + k]);
    return longest > 0 && (any_below(t->dur, (MAQ_TASK_B + 1) * n, K, k, longest) ||
                           (t->fb && any_below(t->fb, n * n, K, k, longest)));
}

/* Runs lane k again, with ports. */
static void queue(double *finish, const struct maq_schedule *s, const struct maq_task_times *t, uint32_t K, uint32_t k)
{
    double hop[MAQ_MAX_STAGES], port[MAQ_MAX_STAGES];
    hop[0] = port[0] = 0;
    for (uint32_t v = 1; v < s->n_positions; v++) {
        hop[v] = t->hop[(size_t)v * K + k];
        port[v] = t->port[(size_t)v * K + k];
    }
    const struct block b = {.finish = finish + k,
                            .dur = t->dur + k,
                            .fb = column(t->fb, k),
                            .hop = hop,
                            .ready = column(t->ready, k),
                            .late = column(t->late, k),
                            .port = port,
                            .sent = finish + (size_t)s->n_tasks * K + k};
    run_ports(s, &b, K);
}

void maq_schedule_eval(double *makespan, double *finish, const struct maq_schedule *s, uint32_t K,
                       const struct maq_task_times *t)
{
    double hops[MAQ_MAX_STAGES * MAX_LANES], stalls[MAQ_MAX_STAGES * MAX_LANES];
    MAQ_ASSERT(s->n_positions <= MAQ_MAX_STAGES);
    for (uint32_t k = 0; k < K;) {
        uint32_t lanes = K - k >= 8 ? 8 : K - k >= 4 ? 4 : 1;
        bool stalled = gather(hops, stalls, s, K, lanes, t->hop + k, column(t->stall, k));
        struct block b = {.finish = finish + k,
                          .dur = t->dur + k,
                          .fb = column(t->fb, k),
                          .hop = hops,
                          .stall = stalls,
                          .ready = column(t->ready, k),
                          .late = column(t->late, k)};
        if (K == 1)
            run_variant(s, &b, 1, 1, stalled);
        else if (K == 4)
            run_variant(s, &b, 4, 4, stalled);
        else if (K == 8)
            run_variant(s, &b, 8, 8, stalled);
        else if (lanes == 8)
            run_variant(s, &b, K, 8, stalled);
        else if (lanes == 4)
            run_variant(s, &b, K, 4, stalled);
        else
            run_variant(s, &b, K, 1, stalled);
        k += lanes;
    }
    for (uint32_t k = 0; k < K; k++) {
        if (queues(s, t, K, k))
            queue(finish, s, t, K, k);
        makespan[k] = 0;
        for (uint32_t i = 0; i < s->stages; i++)
            makespan[k] = max2(makespan[k], finish[(size_t)s->stage_last[i] * K + k]);
    }
}
