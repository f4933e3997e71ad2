/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dependencies.c - the dependency graph of a recorded step.
 *
 * A worker has a compute stream, a stream for data-parallel communication and four for pipeline transfers (sends and receptions of
 * activations and of gradients). An operation waits for the one before it on its stream, and
 *
 *   forward, backward   for their reception, and for the parameters of their chunk
 *   send                for the pass that makes what it sends
 *   gradient reduction  for the last backward pass of its chunk, or for the compute stream so far where it has no chunk
 *   norm, update        for reductions and compute; the norm joins all workers
 *
 * A send and its reception begin together when both sides are there, collectives when all members are. A transfer
 * lasts as long as it was recorded to transfer; waiting comes out of the graph. The n-th send of a stage belongs to
 * the n-th reception of its neighbour; the pipeline's neighbour of the last stage is the first one's next chunk.
 * After "Understanding stragglers in large model training using what-if analysis" (OSDI'25), sections 3.1 and 3.2.
 */
#include <math.h>
#include <stddef.h>

#include "base/check.h"
#include "risk/codes.h"
#include "risk/stragglers/replay.h"

#define NONE MAQ_REPLAY_NONE

/* A step while its order is found. */
struct build {
    const struct maq_replay_trace *t;
    const struct maq_replay_op *ops; /* of the step */
    uint32_t n, widest;              /* operations; most of one worker */
    uint32_t (*wait)[3];
    uint32_t *joined; /* [n] next operation of the same group, in a ring; itself when alone */
    /* of each worker: its transfers and collectives in order, by role: list[role][worker * widest + i] is too wide, so the
     * operations of a role are numbered and found through `place` */
    uint32_t *rank;  /* [n] how many of its worker and role came before */
    uint32_t *begin; /* [workers + 1] operations of a worker */
};

static enum maq_replay_role role_of(const struct build *b, uint32_t op)
{
    return b->t->type[b->ops[op].type].role;
}

static void add_wait(struct build *b, uint32_t op, uint32_t other)
{
    if (other == NONE || other == op)
        return;
    int i = 0;
    while (i < 3 && b->wait[op][i] != NONE && b->wait[op][i] != other)
        i++;
    MAQ_ASSERT(i < 3); /* no kind of operation waits for more */
    b->wait[op][i] = other;
}

/* Closes two rings into one. */
static void join(struct build *b, uint32_t a, uint32_t c)
{
    uint32_t next = b->joined[a];
    b->joined[a] = b->joined[c];
    b->joined[c] = next;
}

/* The `rank`-th operation of a role on a worker, NONE when there is none. Operations of a worker are few thousands at most and
 * this is asked in rising order, so `from` remembers where the last search ended. */
static uint32_t nth(const struct build *b, uint32_t worker, enum maq_replay_role role, uint32_t rank, uint32_t *from)
{
    for (uint32_t i = *from; i < b->begin[worker + 1]; i++)
        if (role_of(b, i) == role && b->rank[i] == rank) {
            *from = i;
            return i;
        }
    return NONE;
}

/* Whether the pass of a chunk on a stage receives from, or sends to, another stage. */
static bool at_start(const struct build *b, uint32_t stage, int chunk)
{
    (void)b;
    return stage == 0 && chunk <= 0;
}

static bool at_end(const struct build *b, uint32_t stage, int chunk)
{
    return stage + 1 == b->t->pp && (chunk < 0 || chunk + 1 == (int)b->t->chunks);
}

/* Where a worker's streams stand while its operations are gone through in the order in which they began. */
struct streams {
    uint32_t compute, comm, update, norm;
    uint32_t transfer[4];              /* last of each direction */
    uint32_t received[2], passed[2];   /* where the search for the next reception, or pass to send, begins */
    uint32_t n_received[2], n_sent[2]; /* passes so far that receive; sends so far */
};

/* A forward (0) or backward (1) pass. */
static void order_pass(struct build *b, struct streams *s, uint32_t op, uint32_t worker, int way)
{
    uint32_t stage = worker % b->t->pp;
    int chunk = b->ops[op].chunk;
    add_wait(b, op, s->compute);
    if (!(way == 0 ? at_start(b, stage, chunk) : at_end(b, stage, chunk)))
        add_wait(b, op,
                 nth(b, worker, way == 0 ? MAQ_REPLAY_FORWARD_RECV : MAQ_REPLAY_BACKWARD_RECV, s->n_received[way]++,
                     &s->received[way]));
    if (way == 0) { /* the last gather of its chunk that began before it */
        for (uint32_t i = op; i-- > b->begin[worker];)
            if (role_of(b, i) == MAQ_REPLAY_GATHER && (b->ops[i].chunk < 0 || b->ops[i].chunk == chunk)) {
                add_wait(b, op, i);
                break;
            } else if (role_of(b, i) == MAQ_REPLAY_FORWARD && b->ops[i].chunk == chunk) {
                break; /* it waited already */
            }
    }
    s->compute = op;
}

/* A send waits for the pass that makes what it sends: of the passes of its direction that send, the one with its number. */
static void order_send(struct build *b, struct streams *s, uint32_t op, uint32_t worker, int way)
{
    uint32_t stage = worker % b->t->pp;
    enum maq_replay_role role = way == 0 ? MAQ_REPLAY_FORWARD : MAQ_REPLAY_BACKWARD;
    for (uint32_t i = s->passed[way]; i < b->begin[worker + 1]; i++) {
        int chunk = b->ops[i].chunk;
        if (role_of(b, i) != role || (way == 0 ? at_end(b, stage, chunk) : at_start(b, stage, chunk)))
            continue;
        s->passed[way] = i + 1;
        add_wait(b, op, i);
        return;
    }
}

/* The last backward pass of a chunk before `op`; the compute stream's last where it has no chunk. */
static uint32_t last_backward(const struct build *b, const struct streams *s, uint32_t op, uint32_t worker)
{
    int chunk = b->ops[op].chunk;
    for (uint32_t i = op; chunk >= 0 && i-- > b->begin[worker];)
        if (role_of(b, i) == MAQ_REPLAY_BACKWARD && (b->ops[i].chunk < 0 || b->ops[i].chunk == chunk))
            return i;
    return s->compute;
}

static void order_op(struct build *b, struct streams *s, uint32_t op, uint32_t worker)
{
    enum maq_replay_role role = role_of(b, op);
    switch (role) {
    case MAQ_REPLAY_FORWARD:
    case MAQ_REPLAY_BACKWARD:
        order_pass(b, s, op, worker, role == MAQ_REPLAY_BACKWARD);
        break;
    case MAQ_REPLAY_FORWARD_SEND:
    case MAQ_REPLAY_FORWARD_RECV:
    case MAQ_REPLAY_BACKWARD_SEND:
    case MAQ_REPLAY_BACKWARD_RECV: {
        uint32_t *last = &s->transfer[role - MAQ_REPLAY_FORWARD_SEND];
        add_wait(b, op, *last);
        *last = op;
        if (role == MAQ_REPLAY_FORWARD_SEND || role == MAQ_REPLAY_BACKWARD_SEND)
            order_send(b, s, op, worker, role == MAQ_REPLAY_BACKWARD_SEND);
        break;
    }
    case MAQ_REPLAY_GATHER:
    case MAQ_REPLAY_REDUCE:
    case MAQ_REPLAY_EMBEDDING:
    case MAQ_REPLAY_LOCAL:
        add_wait(b, op, s->comm);
        add_wait(b, op, role == MAQ_REPLAY_GATHER ? s->update : last_backward(b, s, op, worker));
        s->comm = op;
        break;
    case MAQ_REPLAY_NORM:
    case MAQ_REPLAY_UPDATE:
        add_wait(b, op, s->comm);
        add_wait(b, op, s->compute);
        add_wait(b, op, s->norm);
        if (role == MAQ_REPLAY_NORM)
            s->norm = op;
        else
            s->update = s->compute = op;
        break;
    case MAQ_REPLAY_OTHER:
        add_wait(b, op, s->compute);
        s->compute = op;
        break;
    }
}

/* The operations that begin together with one: those of the same number on the other members. */
static void join_groups(struct build *b)
{
    uint32_t pp = b->t->pp, dp = b->t->dp, workers = pp * dp;
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t replica = w / pp, stage = w % pp, next = replica * pp + (stage + 1) % pp,
                 before = replica * pp + (stage + pp - 1) % pp;
        uint32_t at[MAQ_REPLAY_OTHER + 1];
        for (int i = 0; i <= MAQ_REPLAY_OTHER; i++)
            at[i] = NONE;
        for (uint32_t op = b->begin[w]; op < b->begin[w + 1]; op++) {
            enum maq_replay_role role = role_of(b, op), other = role;
            uint32_t partner = NONE;
            if (role == MAQ_REPLAY_FORWARD_SEND) {
                other = MAQ_REPLAY_FORWARD_RECV;
                partner = next;
            } else if (role == MAQ_REPLAY_BACKWARD_SEND) {
                other = MAQ_REPLAY_BACKWARD_RECV;
                partner = before;
            } else if (role == MAQ_REPLAY_GATHER || role == MAQ_REPLAY_REDUCE) {
                partner = replica + 1 < dp ? w + pp : NONE;
            } else if (role == MAQ_REPLAY_EMBEDDING) {
                partner = stage == 0 && pp > 1 ? w + pp - 1 : NONE;
            } else if (role == MAQ_REPLAY_NORM) {
                partner = w + 1 < workers ? w + 1 : NONE;
            }
            if (partner == NONE || partner == w)
                continue;
            if (at[role] == NONE)
                at[role] = b->begin[partner];
            uint32_t found = nth(b, partner, other, b->rank[op], &at[role]);
            if (found != NONE)
                join(b, op, found);
        }
    }
}

/* Units in an order in which everything waited for comes first (Kahn, "Topological sorting of large networks", 1962). */
static enum maq_status sort_units(struct maq_replay_graph *out, const struct build *b, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    uint32_t n = b->n, n_units = 0;
    uint32_t *unit = MAQ_ARENA_NEW(arena, uint32_t, n), *left = MAQ_ARENA_NEW(arena, uint32_t, n + 1),
             *some = MAQ_ARENA_NEW(arena, uint32_t, n + 1), *queue = MAQ_ARENA_NEW(arena, uint32_t, n + 1),
             *after_first = MAQ_ARENA_NEW(arena, uint32_t, n + 2),
             *after = MAQ_ARENA_NEW(arena, uint32_t, 3 * (size_t)n + 1),
             *unit_first = MAQ_ARENA_NEW(arena, uint32_t, n + 1), *member = MAQ_ARENA_NEW(arena, uint32_t, n + 1);
    if (!unit || !left || !some || !queue || !after_first || !after || !unit_first || !member)
        return maq_no_memory(diag, "a step");
    for (uint32_t op = 0; op < n; op++)
        unit[op] = NONE;
    for (uint32_t op = 0; op < n; op++) {
        if (unit[op] != NONE)
            continue;
        some[n_units] = op;
        for (uint32_t i = op; unit[i] == NONE; i = b->joined[i])
            unit[i] = n_units;
        n_units++;
    }
    for (uint32_t op = 0; op < n; op++)
        for (int k = 0; k < 3; k++)
            if (b->wait[op][k] != NONE)
                after_first[b->wait[op][k] + 2]++;
    for (uint32_t op = 0; op < n; op++)
        after_first[op + 1] += after_first[op];
    for (uint32_t op = 0; op < n; op++)
        for (int k = 0; k < 3; k++)
            if (b->wait[op][k] != NONE) {
                after[after_first[b->wait[op][k] + 1]++] = op;
                left[unit[op]]++;
            }
    uint32_t head = 0, tail = 0, placed = 0;
    for (uint32_t u = 0; u < n_units; u++)
        if (left[u] == 0)
            queue[tail++] = u;
    for (; head < tail; head++) {
        unit_first[head] = placed;
        uint32_t op = some[queue[head]];
        do {
            member[placed++] = op;
            for (uint32_t i = after_first[op]; i < after_first[op + 1]; i++)
                if (--left[unit[after[i]]] == 0)
                    queue[tail++] = unit[after[i]];
            op = b->joined[op];
        } while (op != some[queue[head]]);
    }
    unit_first[head] = placed;
    if (placed != n)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_TRACE, (struct maq_span){0},
                             "take the step out: its operations are not complete, or not in their order",
                             "step %u: %u operations wait for each other", b->t->steps[b->ops[0].step], n - placed);
    *out = (struct maq_replay_graph){n, n_units, unit_first, member, (const uint32_t(*)[3])b->wait};
    return MAQ_OK;
}

enum maq_status maq_replay_order(struct maq_replay_graph *out, const struct maq_replay_trace *t, uint32_t step,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    uint32_t workers = t->dp * t->pp, n = t->first[step + 1] - t->first[step];
    struct build b = {.t = t, .ops = t->ops + t->first[step], .n = n};
    b.wait = (uint32_t(*)[3])maq_arena_array(arena, n, sizeof *b.wait, _Alignof(uint32_t));
    b.joined = MAQ_ARENA_NEW(arena, uint32_t, n);
    b.rank = MAQ_ARENA_NEW(arena, uint32_t, n);
    b.begin = MAQ_ARENA_NEW(arena, uint32_t, workers + 1);
    if (!b.wait || !b.joined || !b.rank || !b.begin)
        return maq_no_memory(diag, "a step");
    for (uint32_t op = 0; op < n; op++) {
        b.joined[op] = op;
        b.wait[op][0] = b.wait[op][1] = b.wait[op][2] = NONE;
        b.begin[b.ops[op].worker + 1]++;
    }
    for (uint32_t w = 0; w < workers; w++)
        b.begin[w + 1] += b.begin[w];
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t count[MAQ_REPLAY_OTHER + 1] = {0};
        for (uint32_t op = b.begin[w]; op < b.begin[w + 1]; op++)
            b.rank[op] = count[role_of(&b, op)]++;
    }
    for (uint32_t w = 0; w < workers; w++) {
        struct streams s = {.compute = NONE, .comm = NONE, .update = NONE, .norm = NONE};
        for (int i = 0; i < 4; i++)
            s.transfer[i] = NONE;
        for (int way = 0; way < 2; way++)
            s.received[way] = s.passed[way] = b.begin[w];
        for (uint32_t op = b.begin[w]; op < b.begin[w + 1]; op++)
            order_op(&b, &s, op, w);
    }
    join_groups(&b);
    return sort_units(out, &b, arena, diag);
}

void maq_replay_delays(double *delay_us, const struct maq_replay_graph *g, const struct maq_replay_op *ops,
                       double *end_us)
{
    double origin = (double)INFINITY;
    for (uint32_t op = 0; op < g->n_ops; op++)
        origin = ops[op].placed ? origin : fmin(origin, ops[op].start_us);
    for (uint32_t u = 0; u < g->n_units; u++) {
        double began = origin, ready = origin;
        for (uint32_t i = g->unit_first[u]; i < g->unit_first[u + 1]; i++) {
            uint32_t op = g->member[i];
            began = ops[op].placed ? began : fmax(began, ops[op].start_us);
            for (int k = 0; k < 3; k++) {
                uint32_t other = g->wait[op][k];
                if (other != NONE)
                    ready = fmax(ready, end_us[other]);
            }
        }
        for (uint32_t i = g->unit_first[u]; i < g->unit_first[u + 1]; i++) {
            uint32_t op = g->member[i];
            end_us[op] = (ops[op].placed ? fmax(began, ready) : ops[op].start_us) + ops[op].dur_us;
        }
        delay_us[u] = fmax(began - ready, 0);
    }
}

double maq_replay_time(const struct maq_replay_graph *g, const double *dur_us, const double *delay_us, double *finish)
{
    double end = 0;
    for (uint32_t u = 0; u < g->n_units; u++) {
        double start = 0;
        for (uint32_t i = g->unit_first[u]; i < g->unit_first[u + 1]; i++)
            for (int k = 0; k < 3; k++) {
                uint32_t other = g->wait[g->member[i]][k];
                start = other != NONE && finish[other] > start ? finish[other] : start;
            }
        start += delay_us ? delay_us[u] : 0;
        for (uint32_t i = g->unit_first[u]; i < g->unit_first[u + 1]; i++) {
            uint32_t op = g->member[i];
            finish[op] = start + dur_us[op];
            end = finish[op] > end ? finish[op] : end;
        }
    }
    return end;
}
