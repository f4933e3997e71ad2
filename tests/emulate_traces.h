/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulate_traces.h - traces of small jobs, as a zero-GPU device would write them, and a simulator of them that shares nothing
 * with the engine: it goes over all records again and again until no time changes.
 */
#ifndef MAQ_TESTS_EMULATE_TRACES_H
#define MAQ_TESTS_EMULATE_TRACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/link.h"

/* --- writing --------------------------------------------------------------------------------------------------------- */

struct gen_rank {
    uint32_t world, rank, per_node;
    unsigned char *bytes; /* of the file, without its head */
    size_t len, room;
    struct maq_rec *rec; /* the records without definitions */
    uint32_t n_rec, rec_room;
    uint32_t n_ops, n_texts, n_comms, n_allocs;
    struct maq_rec_comm comm[32];
    char op_name[64][32];
    uint32_t host_ns; /* of the next records */
};

static void gen_bytes(struct gen_rank *g, const void *p, size_t n)
{
    if (g->len + n > g->room) {
        g->room = 2 * (g->len + n) + 4096;
        g->bytes = realloc(g->bytes, g->room);
    }
    memcpy(g->bytes + g->len, p, n);
    g->len += n;
}

static void gen_payload(struct gen_rank *g, struct maq_rec rec, const void *payload, size_t n)
{
    static const char zeros[32];
    rec.bytes = n;
    gen_bytes(g, &rec, sizeof rec);
    gen_bytes(g, payload, n);
    gen_bytes(g, zeros, (size_t)maq_rec_padded(n) - n);
}

static void gen_rec(struct gen_rank *g, struct maq_rec rec)
{
    rec.host_ns = g->host_ns;
    gen_bytes(g, &rec, sizeof rec);
    if (g->n_rec == g->rec_room) {
        g->rec_room = g->rec_room ? 2 * g->rec_room : 256;
        g->rec = realloc(g->rec, g->rec_room * sizeof *g->rec);
    }
    g->rec[g->n_rec++] = rec;
}

static uint32_t gen_op(struct gen_rank *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (strcmp(g->op_name[i], name) == 0)
            return i;
    unsigned char payload[sizeof(struct maq_rec_op) + 32];
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL,
                            .grid = {128, 1, 1},
                            .block = {256, 1, 1},
                            .name_bytes = (uint32_t)strlen(name),
                            .bytes = 1 << 20};
    if (strncmp(name, "gemm", 4) == 0)
        op = (struct maq_rec_op){.kind = MAQ_REC_GEMM,
                                 .type = MAQ_REC_BF16,
                                 .out = MAQ_REC_BF16,
                                 .name_bytes = (uint32_t)strlen(name),
                                 .d = {1024, 1024, 1024, 1}};
    memcpy(payload, &op, sizeof op);
    memcpy(payload + sizeof op, name, op.name_bytes);
    gen_payload(g, (struct maq_rec){.kind = MAQ_REC_DEF_OP, .id = g->n_ops}, payload, sizeof op + op.name_bytes);
    snprintf(g->op_name[g->n_ops], 32, "%s", name);
    return g->n_ops++;
}

static uint32_t gen_text(struct gen_rank *g, const char *text)
{
    gen_payload(g, (struct maq_rec){.kind = MAQ_REC_DEF_TEXT, .id = g->n_texts}, text, strlen(text));
    return g->n_texts++;
}

/* member: NULL = the program does not say. */
static uint32_t gen_comm(struct gen_rank *g, uint64_t lineage, uint32_t size, uint32_t rank, const uint32_t *member)
{
    unsigned char *payload = malloc(sizeof(struct maq_rec_comm) + 4 * (size_t)size);
    struct maq_rec_comm c = {
        .lineage = lineage, .size = size, .rank = rank, .parent = MAQ_REC_NONE, .n_members = member ? size : 0};
    memcpy(payload, &c, sizeof c);
    if (member)
        memcpy(payload + sizeof c, member, 4 * (size_t)size);
    gen_payload(g, (struct maq_rec){.kind = MAQ_REC_DEF_COMM, .id = g->n_comms}, payload,
                sizeof c + (member ? 4 * (size_t)size : 0));
    free(payload);
    g->comm[g->n_comms] = c;
    return g->n_comms++;
}

static void gen_launch(struct gen_rank *g, uint16_t stream, const char *name, uint64_t ns)
{
    uint32_t op = gen_op(g, name);
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_LAUNCH, .stream = stream, .id = op, .ns = ns});
}

static void gen_coll(struct gen_rank *g, uint16_t stream, uint32_t comm, enum maq_rec_coll kind, uint64_t bytes,
                     uint64_t ns)
{
    bool rooted = kind == MAQ_REC_BROADCAST || kind == MAQ_REC_REDUCE;
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_COLL,
                                .stream = stream,
                                .id = MAQ_REC_COLL(comm, 0, MAQ_REC_BF16, kind),
                                .arg = rooted ? 0 : MAQ_REC_NONE,
                                .bytes = bytes,
                                .ns = ns});
}

static void gen_message(struct gen_rank *g, uint16_t stream, bool send, uint32_t comm, uint32_t peer, uint64_t bytes,
                        uint64_t ns, bool more)
{
    gen_rec(g, (struct maq_rec){.kind = send ? MAQ_REC_SEND : MAQ_REC_RECV,
                                .flags = more ? MAQ_REC_MORE : 0,
                                .stream = stream,
                                .id = MAQ_REC_COLL(comm, 0, MAQ_REC_BF16, MAQ_REC_P2P_PAIR),
                                .arg = peer,
                                .bytes = bytes,
                                .ns = ns});
}

/* stream b waits for what is on stream a now. */
static void gen_order(struct gen_rank *g, uint16_t a, uint16_t b, uint32_t event)
{
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_EVENT_RECORD, .stream = a, .id = event});
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_STREAM_WAIT, .stream = b, .id = event});
}

static void gen_alloc(struct gen_rank *g, uint64_t bytes)
{
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_ALLOC, .id = g->n_allocs++, .arg = MAQ_REC_DEVICE, .bytes = bytes});
}

static void gen_step(struct gen_rank *g, uint32_t text)
{
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_MARK, .id = text, .arg = MAQ_REC_STEP});
}

static void gen_end(struct gen_rank *g)
{
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_DEVICE_SYNC});
    gen_rec(g, (struct maq_rec){.kind = MAQ_REC_END});
}

static void gen_write(const struct gen_rank *g, const char *path)
{
    struct maq_rec_head head = {.magic = {'m', 'a', 'q', 'r', 'a', 'n', 'k', '\n'},
                                .version = MAQ_REC_VERSION,
                                .head_bytes = sizeof head,
                                .world = g->world,
                                .rank = g->rank,
                                .per_node = g->per_node,
                                .program = 77};
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(&head, sizeof head, 1, f) != 1 || fwrite(g->bytes, 1, g->len, f) != g->len || fclose(f) != 0)
        abort();
}

static void gen_free(struct gen_rank *g)
{
    free(g->bytes);
    free(g->rec);
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

struct gen_job {
    uint32_t tp, pp, dp, ep;       /* rank = tp + TP (dp + DP pp); ep divides dp */
    uint32_t steps, layers, micro; /* layers of a stage */
    bool zero;                     /* reduce-scatter and all-gather instead of an all-reduce */
    bool members;                  /* communicators say who is in them */
    bool pairs;                    /* a stream and a communicator for each neighbour, one message at a time */
    uint64_t message;              /* bytes between stages */
    uint64_t jitter;               /* every launch takes up to so many ns more, its own on each rank */
    bool marks;
    bool
        model; /* the norm of gradients is summed over all tensor-parallel ranks of all stages; rank 0 of them computes one more */
    bool logs;    /* the last stage reduces the loss over its replicas, and the first rank of it logs */
    uint32_t odd; /* this rank does something of its own; 0 = none */
};

struct gen_grid {
    uint32_t tp, dp, pp, world;
    uint32_t group[16384];
};

static void gen_members(struct gen_grid *g, uint32_t first, uint32_t size, uint32_t stride)
{
    for (uint32_t i = 0; i < size; i++)
        g->group[i] = first + i * stride;
}

static uint64_t gen_ns(const struct gen_job *j, const struct gen_rank *g, uint64_t ns)
{
    return ns + (j->jitter ? maq_rec_mix(((uint64_t)g->rank << 32) + g->n_rec, 5) % j->jitter : 0);
}

static void gen_layer(const struct gen_job *j, struct gen_rank *g, uint32_t tp, uint32_t ep, bool back)
{
    gen_launch(g, 0, back ? "norm_bwd" : "norm", gen_ns(j, g, 8000));
    gen_launch(g, 0, back ? "gemm_bwd" : "gemm", gen_ns(j, g, back ? 90000 : 45000));
    gen_launch(g, 0, "attention", gen_ns(j, g, 30000));
    if (j->tp > 1)
        gen_coll(g, 0, tp, MAQ_REC_ALL_REDUCE, 1 << 20, 21000);
    if (j->ep > 1) {
        gen_order(g, 0, 2, 0);
        gen_coll(g, 2, ep, MAQ_REC_ALL_TO_ALL, 1 << 16, 34000);
        gen_launch(g, 0, "shared", gen_ns(j, g, 12000));
        gen_order(g, 2, 0, 1);
    }
    gen_launch(g, 0, "mlp", gen_ns(j, g, back ? 120000 : 61000));
}

struct gen_pipe {
    uint32_t comm[2], peer[2]; /* to the stage before, behind */
    uint16_t stream[2];
    bool there[2];
};

static void gen_transfer(const struct gen_job *j, struct gen_rank *g, const struct gen_pipe *p, int side, bool send)
{
    if (!p->there[side])
        return;
    uint16_t stream = (uint16_t)(p->stream[side] + (j->pairs && side == send ? 2 : 0)); /* one for each direction */
    if (send)
        gen_order(g, 0, stream, 2);
    gen_message(g, stream, send, p->comm[side], p->peer[side], j->message, 40000, false);
    if (!send)
        gen_order(g, stream, 0, 3);
}

/* One forward one backward. */
static void gen_schedule(const struct gen_job *j, struct gen_rank *g, const struct gen_pipe *p, uint32_t tp,
                         uint32_t ep, uint32_t stage)
{
    uint32_t warm = j->pp - 1 - stage < j->micro ? j->pp - 1 - stage : j->micro, backs = 0;
    for (uint32_t m = 0; m < j->micro + warm; m++) {
        if (m < j->micro) {
            gen_transfer(j, g, p, 0, false);
            for (uint32_t l = 0; l < j->layers; l++)
                gen_layer(j, g, tp, ep, false);
            gen_transfer(j, g, p, 1, true);
        }
        if (m >= warm) {
            backs++;
            gen_transfer(j, g, p, 1, false);
            for (uint32_t l = 0; l < j->layers; l++)
                gen_layer(j, g, tp, ep, true);
            gen_transfer(j, g, p, 0, true);
        }
    }
    (void)backs;
}

static void gen_optimizer(const struct gen_job *j, struct gen_rank *g, uint32_t dp)
{
    if (j->dp > 1) {
        gen_order(g, 0, 1, 4);
        gen_coll(g, 1, dp, j->zero ? MAQ_REC_REDUCE_SCATTER : MAQ_REC_ALL_REDUCE, 1 << 24, 700000);
        gen_order(g, 1, 0, 5);
    }
    gen_launch(g, 0, "adamw", gen_ns(j, g, 50000));
    if (j->zero && j->dp > 1) {
        gen_order(g, 0, 1, 4);
        gen_coll(g, 1, dp, MAQ_REC_ALL_GATHER, 1 << 24, 500000);
        gen_order(g, 1, 0, 5);
    }
}

struct gen_extra {
    uint32_t model, loss;
};

/* Groups of a job that few frameworks name: a product of two axes, and one that only a stage has. */
static struct gen_extra gen_extra_comms(const struct gen_job *j, struct gen_rank *g, struct gen_grid *grid)
{
    struct gen_extra x = {0};
    uint32_t t = g->rank % j->tp, d = g->rank / j->tp % j->dp, p = g->rank / (j->tp * j->dp), stride = j->tp * j->dp;
    for (uint32_t i = 0; i < j->tp * j->pp; i++)
        grid->group[i] = d * j->tp + i % j->tp + i / j->tp * stride;
    if (j->model)
        x.model = gen_comm(g, maq_rec_lineage(7, 0, d), j->tp * j->pp, p * j->tp + t, j->members ? grid->group : NULL);
    gen_members(grid, g->rank - d * j->tp, j->dp, j->tp);
    if (j->logs && p + 1 == j->pp)
        x.loss = gen_comm(g, maq_rec_lineage(8, 0, t), j->dp, d, j->members ? grid->group : NULL);
    return x;
}

static void gen_extra(const struct gen_job *j, struct gen_rank *g, const struct gen_extra *x)
{
    uint32_t t = g->rank % j->tp, d = g->rank / j->tp % j->dp, p = g->rank / (j->tp * j->dp);
    if (j->model && t == 0)
        gen_launch(g, 0, "shared_norm", 3000);
    if (j->model)
        gen_coll(g, 0, x->model, MAQ_REC_ALL_REDUCE, 4, 15000);
    if (j->logs && p + 1 == j->pp)
        gen_coll(g, 0, x->loss, MAQ_REC_ALL_REDUCE, 4, 12000);
    if (j->logs && p + 1 == j->pp && t == 0 && d == 0)
        gen_launch(g, 0, "log", 2000);
    if (j->odd && g->rank == j->odd)
        gen_launch(g, 0, "odd", 4000);
}

static void gen_job_rank(const struct gen_job *j, struct gen_rank *g, uint32_t rank)
{
    struct gen_grid grid = {.world = j->tp * j->pp * j->dp};
    uint32_t t = rank % j->tp, d = rank / j->tp % j->dp, p = rank / (j->tp * j->dp), stride = j->tp * j->dp;
    uint32_t tp = 0, dp = 0, ep = 0, text;
    struct gen_pipe pipe = {.stream = {3, 4}};
    *g = (struct gen_rank){.world = grid.world, .rank = rank, .per_node = 8, .host_ns = 1500};
    text = gen_text(g, "step");
    for (uint32_t s = 0; s < 7; s++) /* streams in the order of first use */
        gen_rec(g, (struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = (uint16_t)s});
    for (uint32_t e = 0; e < 6; e++)
        gen_rec(g, (struct maq_rec){.kind = MAQ_REC_EVENT_SYNC, .id = e});
    gen_members(&grid, 0, grid.world, 1);
    (void)gen_comm(g, 1, grid.world, rank, j->members ? grid.group : NULL);
    gen_members(&grid, rank - t, j->tp, 1);
    if (j->tp > 1)
        tp = gen_comm(g, maq_rec_lineage(2, 0, rank - t), j->tp, t, j->members ? grid.group : NULL);
    gen_members(&grid, rank - d * j->tp, j->dp, j->tp);
    if (j->dp > 1)
        dp = gen_comm(g, maq_rec_lineage(3, 0, rank - d * j->tp), j->dp, d, j->members ? grid.group : NULL);
    gen_members(&grid, rank - d % (j->ep > 1 ? j->ep : 1) * j->tp, j->ep, j->tp);
    if (j->ep > 1)
        ep = gen_comm(g, maq_rec_lineage(5, 0, grid.group[0]), j->ep, d % j->ep, j->members ? grid.group : NULL);
    if (j->pp > 1 && !j->pairs) {
        gen_members(&grid, rank - p * stride, j->pp, stride);
        uint32_t pp = gen_comm(g, maq_rec_lineage(4, 0, rank - p * stride), j->pp, p, j->members ? grid.group : NULL);
        pipe.comm[0] = pipe.comm[1] = pp;
        pipe.peer[0] = p - 1;
        pipe.peer[1] = p + 1;
    } else if (j->pp > 1) {
        gen_members(&grid, rank - stride, 2, stride);
        if (p > 0)
            pipe.comm[0] = gen_comm(g, maq_rec_lineage(6, 0, rank - stride), 2, 1, j->members ? grid.group : NULL);
        gen_members(&grid, rank, 2, stride);
        if (p + 1 < j->pp)
            pipe.comm[1] = gen_comm(g, maq_rec_lineage(6, 0, rank), 2, 0, j->members ? grid.group : NULL);
        pipe.peer[0] = 0;
        pipe.peer[1] = 1;
    }
    const struct gen_extra extra = gen_extra_comms(j, g, &grid);
    pipe.there[0] = p > 0;
    pipe.there[1] = p + 1 < j->pp;
    gen_alloc(g, UINT64_C(1) << 30);
    gen_coll(g, 0, 0, MAQ_REC_BROADCAST, 1 << 10, 9000);
    for (uint32_t s = 0; s < j->steps; s++) {
        gen_schedule(j, g, &pipe, tp, ep, p);
        gen_extra(j, g, &extra);
        gen_optimizer(j, g, dp);
        gen_rec(g, (struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = 0});
        if (j->marks)
            gen_step(g, text);
    }
    gen_end(g);
}

/* --- the other simulator ------------------------------------------------------------------------------------------------- */

#define NAIVE_UNKNOWN INT64_MIN

struct naive_meet {
    uint64_t a, b;
    uint32_t need, came, side; /* messages: side 0 = sender */
    int64_t at[2], ns;
    bool sent, received;
};

struct naive {
    struct gen_rank *rank;
    uint32_t n, n_meets, meet_room;
    struct naive_meet *meet;
    int64_t *end; /* [n] or NAIVE_UNKNOWN */
    double *slow; /* [n] on launches */
    bool *told;   /* arrivals that are in: [n][records] */
    uint32_t told_room;
};

static int64_t naive_max(int64_t a, int64_t b)
{
    if (a == NAIVE_UNKNOWN || b == NAIVE_UNKNOWN)
        return NAIVE_UNKNOWN;
    return a > b ? a : b;
}

static int64_t naive_add(int64_t a, int64_t b)
{
    return a == NAIVE_UNKNOWN ? a : a + b;
}

static struct naive_meet *naive_find(struct naive *s, uint64_t a, uint64_t b, uint32_t need)
{
    for (uint32_t i = 0; i < s->n_meets; i++)
        if (s->meet[i].a == a && s->meet[i].b == b)
            return &s->meet[i];
    if (s->n_meets == s->meet_room) {
        s->meet_room = s->meet_room ? 2 * s->meet_room : 1024;
        s->meet = realloc(s->meet, s->meet_room * sizeof *s->meet);
    }
    s->meet[s->n_meets] = (struct naive_meet){.a = a, .b = b, .need = need};
    return &s->meet[s->n_meets++];
}

struct naive_clock {
    int64_t host, stream[8], event[16];
    uint32_t colls[32], sends[32][64], recvs[32][64];
};

/* The meeting of a record, and this rank's arrival at it. */
static struct naive_meet *naive_meet_of(struct naive *s, uint32_t r, uint32_t i, struct naive_clock *c, int64_t t)
{
    struct gen_rank *g = &s->rank[r];
    const struct maq_rec *rec = &g->rec[i];
    uint32_t comm = MAQ_REC_COLL_COMM(rec->id);
    const struct maq_rec_comm *m = &g->comm[comm];
    bool *told = &s->told[(size_t)r * s->told_room + i];
    struct naive_meet *x;
    if (rec->kind == MAQ_REC_COLL) {
        x = naive_find(s, m->lineage, c->colls[comm]++, m->size);
    } else {
        bool send = rec->kind == MAQ_REC_SEND;
        uint64_t from = send ? m->rank : rec->arg, to = send ? rec->arg : m->rank;
        x = naive_find(s, maq_rec_mix(m->lineage, from << 32 | to),
                       send ? c->sends[comm][to]++ : c->recvs[comm][from]++, 2);
    }
    unsigned side = rec->kind == MAQ_REC_RECV;
    if (t != NAIVE_UNKNOWN && !*told) {
        *told = true;
        x->at[side] = x->at[side] > t ? x->at[side] : t;
        x->ns = x->ns > (int64_t)rec->ns ? x->ns : (int64_t)rec->ns;
        x->came++;
    }
    return x;
}

static int64_t naive_end(const struct maq_rec *rec, const struct naive_meet *x, int64_t t)
{
    if (rec->kind == MAQ_REC_SEND && rec->bytes <= MAQ_EAGER_BYTES)
        return naive_add(t, (int64_t)rec->ns);
    if (x->came < x->need)
        return NAIVE_UNKNOWN;
    return (x->at[0] > x->at[1] ? x->at[0] : x->at[1]) + x->ns;
}

static uint32_t naive_group(struct naive *s, uint32_t r, uint32_t i, struct naive_clock *c)
{
    const struct gen_rank *g = &s->rank[r];
    uint32_t last = i;
    while (g->rec[last].flags & MAQ_REC_MORE)
        last++;
    for (uint32_t k = i; k <= last; k++)
        c->host = naive_add(c->host, g->rec[k].host_ns);
    int64_t t = c->host, end;
    for (uint32_t k = i; k <= last; k++)
        t = naive_max(t, c->stream[g->rec[k].stream]);
    end = t;
    for (uint32_t k = i; k <= last; k++)
        end = naive_max(end, naive_end(&g->rec[k], naive_meet_of(s, r, k, c, t), t));
    for (uint32_t k = i; k <= last; k++)
        c->stream[g->rec[k].stream] = end;
    return last;
}

static void naive_rank(struct naive *s, uint32_t r)
{
    const struct gen_rank *g = &s->rank[r];
    struct naive_clock *c = calloc(1, sizeof *c);
    for (uint32_t i = 0; i < g->n_rec; i++) {
        const struct maq_rec *rec = &g->rec[i];
        if (rec->kind == MAQ_REC_COLL || rec->kind == MAQ_REC_SEND || rec->kind == MAQ_REC_RECV) {
            i = naive_group(s, r, i, c);
            continue;
        }
        c->host = naive_add(c->host, rec->host_ns);
        int64_t *stream = &c->stream[rec->stream < 8 ? rec->stream : 0];
        double slow = s->slow ? s->slow[r] : 1;
        if (rec->kind == MAQ_REC_LAUNCH)
            *stream = naive_add(naive_max(*stream, c->host), (int64_t)((double)rec->ns * slow + 0.5));
        if (rec->kind == MAQ_REC_EVENT_RECORD)
            c->event[rec->id] = naive_max(*stream, c->host);
        if (rec->kind == MAQ_REC_STREAM_WAIT)
            *stream = naive_max(*stream, c->event[rec->id]);
        if (rec->kind == MAQ_REC_EVENT_SYNC)
            c->host = naive_max(c->host, c->event[rec->id]);
        if (rec->kind == MAQ_REC_STREAM_SYNC)
            c->host = naive_max(c->host, *stream);
        for (int k = 0; rec->kind == MAQ_REC_DEVICE_SYNC && k < 8; k++)
            c->host = naive_max(c->host, c->stream[k]);
    }
    s->end[r] = c->host;
    free(c);
}

/* Ends of all ranks; NAIVE_UNKNOWN where they never come. */
__attribute__((unused)) static int64_t *naive_run(struct gen_rank *rank, uint32_t n, double *slow)
{
    struct naive s = {.rank = rank, .n = n, .slow = slow, .end = malloc(n * sizeof *s.end)};
    for (uint32_t r = 0; r < n; r++)
        s.told_room = rank[r].n_rec > s.told_room ? rank[r].n_rec : s.told_room;
    s.told = calloc((size_t)n * s.told_room, 1);
    uint64_t before = UINT64_MAX, now = 0;
    while (now != before) {
        before = now;
        now = 0;
        for (uint32_t r = 0; r < n; r++)
            naive_rank(&s, r);
        for (uint32_t i = 0; i < s.n_meets; i++)
            now += s.meet[i].came;
    }
    free(s.meet);
    free(s.told);
    return s.end;
}

#endif
