/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - how fast a captured job is replayed.
 *
 * A GPT-like job, tp 8 x pp 16 x dp 64 = 8,192 ranks, one forward one backward over 32 microbatches, 6 layers a stage, as
 * captured classes; and 65,536 ranks of it (dp 512). Records per second of CPU of one thread; budgets: 50 M records a
 * second with every rank replayed, 10 s for 65,536 ranks. Durations of ranks differ by stage, and rank 17 is slow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/build.h"
#include "maquette/replay.h"

enum { TP = 8, PP = 16, MICRO = 32, LAYERS = 6, STEPS = 3 };

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct program {
    struct maq_rec *rec;
    uint32_t n, room;
};

static void put(struct program *p, struct maq_rec r)
{
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 4096;
        p->rec = realloc(p->rec, p->room * sizeof *p->rec);
        if (!p->rec)
            abort();
    }
    r.host_ns = 1500;
    p->rec[p->n++] = r;
}

static void launch(struct program *p, uint32_t op, uint64_t ns)
{
    put(p, (struct maq_rec){.kind = MAQ_REC_LAUNCH, .id = op, .ns = ns});
}

static void order(struct program *p, uint16_t a, uint16_t b, uint32_t event)
{
    put(p, (struct maq_rec){.kind = MAQ_REC_EVENT_RECORD, .stream = a, .id = event});
    put(p, (struct maq_rec){.kind = MAQ_REC_STREAM_WAIT, .stream = b, .id = event});
}

static void coll(struct program *p, uint16_t stream, uint32_t comm, enum maq_rec_coll kind, uint64_t bytes, uint64_t ns)
{
    put(p, (struct maq_rec){.kind = MAQ_REC_COLL,
                            .stream = stream,
                            .id = MAQ_REC_COLL(comm, 0, MAQ_REC_BF16, kind),
                            .arg = MAQ_REC_NONE,
                            .bytes = bytes,
                            .ns = ns});
}

/* Kernels of a transformer layer as Megatron launches them, two all-reduces on a stream of their own. */
static void layer(struct program *p, int back, uint64_t slower)
{
    for (int part = 0; part < 2; part++) {
        for (uint32_t k = 0; k < (back ? 11u : 7u); k++)
            launch(p, k, 20000 + 7000 * k + slower);
        order(p, 0, 1, 0);
        coll(p, 1, 0, MAQ_REC_ALL_REDUCE, 32 << 20, 180000);
        order(p, 1, 0, 1);
    }
}

static void transfer(struct program *p, int stage, int to, int send)
{
    if (to < 0 || to >= PP)
        return;
    uint16_t stream = (uint16_t)(2 + (to > stage) * 2 + send);
    if (send)
        order(p, 0, stream, 2);
    put(p, (struct maq_rec){.kind = send ? MAQ_REC_SEND : MAQ_REC_RECV,
                            .stream = stream,
                            .id = MAQ_REC_COLL(1, 0, MAQ_REC_BF16, MAQ_REC_P2P_PAIR),
                            .arg = (uint32_t)(to - stage + PP) % PP,
                            .bytes = 16 << 20,
                            .ns = 350000});
    if (!send)
        order(p, stream, 0, 3);
}

static void pass(struct program *p, int stage, int back)
{
    transfer(p, stage, stage + (back ? 1 : -1), 0);
    for (int l = 0; l < LAYERS; l++)
        layer(p, back, (uint64_t)stage * 100);
    transfer(p, stage, stage + (back ? -1 : 1), 1);
}

static struct program stage_program(int stage)
{
    struct program p = {0};
    int warm = PP - 1 - stage < MICRO ? PP - 1 - stage : MICRO;
    for (int s = 0; s < STEPS; s++) {
        for (int m = 0; m < MICRO + warm; m++) {
            if (m < MICRO)
                pass(&p, stage, 0);
            if (m >= warm)
                pass(&p, stage, 1);
        }
        order(&p, 0, 6, 4);
        coll(&p, 6, 2, MAQ_REC_REDUCE_SCATTER, 8 << 20, 9000000);
        order(&p, 6, 0, 5);
        coll(&p, 0, 3, MAQ_REC_ALL_REDUCE, 4, 60000);
        launch(&p, 20, 3000000);
        coll(&p, 0, 2, MAQ_REC_ALL_GATHER, 8 << 20, 8000000);
        put(&p, (struct maq_rec){.kind = MAQ_REC_STREAM_SYNC});
        put(&p, (struct maq_rec){.kind = MAQ_REC_MARK, .id = MAQ_REC_NONE, .arg = MAQ_REC_STEP});
    }
    put(&p, (struct maq_rec){.kind = MAQ_REC_END});
    return p;
}

/* rank = t + TP (d + dp p); communicators: tp, pp, dp, world. */
static struct maq_capture *job(uint32_t dp)
{
    struct maq_capture *c = maq_capture_new();
    struct maq_arena *a = c->owner;
    uint32_t world = TP * PP * dp, n_tp = world / TP, n_pp = world / PP, n_dp = TP * PP, n = n_tp + n_pp + n_dp + 1;
    struct maq_captured_comm *comm = MAQ_ARENA_NEW(a, struct maq_captured_comm, n);
    struct maq_rank_class *k = MAQ_ARENA_NEW(a, struct maq_rank_class, PP);
    struct maq_captured_op *op = MAQ_ARENA_NEW(a, struct maq_captured_op, 21);
    struct maq_rec_op *what = MAQ_ARENA_NEW(a, struct maq_rec_op, 1);
    uint32_t *class_of = MAQ_ARENA_NEW(a, uint32_t, world);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t size = i < n_tp ? TP : i < n_tp + n_pp ? PP : i < n_tp + n_pp + n_dp ? dp : world;
        uint32_t *member = MAQ_ARENA_NEW(a, uint32_t, size);
        uint32_t j = i < n_tp ? i : i < n_tp + n_pp ? i - n_tp : i - n_tp - n_pp;
        for (uint32_t m = 0; m < size; m++)
            member[m] = i < n_tp                 ? j * TP + m
                        : i < n_tp + n_pp        ? j + m * TP * dp
                        : i < n_tp + n_pp + n_dp ? j % TP + TP * (m + dp * (j / TP))
                                                 : m;
        comm[i] = (struct maq_captured_comm){.lineage = i, .size = size, .member = member};
    }
    for (uint32_t i = 0; i < 21; i++)
        op[i] = (struct maq_captured_op){.name = "kernel", .what = what};
    for (uint32_t s = 0; s < PP; s++) {
        struct program p = stage_program((int)s);
        struct maq_rec *rec = MAQ_ARENA_NEW(a, struct maq_rec, p.n);
        uint32_t *rank = MAQ_ARENA_NEW(a, uint32_t, n_pp), *at = MAQ_ARENA_NEW(a, uint32_t, 4 * (size_t)n_pp);
        uint32_t *position = MAQ_ARENA_NEW(a, uint32_t, 4 * (size_t)n_pp);
        memcpy(rec, p.rec, p.n * sizeof *rec);
        free(p.rec);
        for (uint32_t i = 0; i < n_pp; i++) {
            uint32_t r = rank[i] = s * n_pp + i, t = r % TP, d = r / TP % dp;
            uint32_t ids[4] = {r / TP, n_tp + i, n_tp + n_pp + s * TP + t, n - 1}, seats[4] = {t, s, d, r};
            memcpy(at + 4 * (size_t)i, ids, sizeof ids);
            memcpy(position + 4 * (size_t)i, seats, sizeof seats);
            class_of[r] = s;
        }
        k[s] = (struct maq_rank_class){.n_records = p.n,
                                       .record = rec,
                                       .n_comms = 4,
                                       .n_ranks = n_pp,
                                       .rank = rank,
                                       .comm = at,
                                       .position = position,
                                       .probed = true,
                                       .name = "stage"};
        maq_capture_count(&k[s]);
    }
    c->world = world;
    c->per_node = 8;
    c->n_ops = 21;
    c->op = op;
    c->n_comms = n;
    c->comm = comm;
    c->n_classes = PP;
    c->class_of_ranks = k;
    c->class_of = class_of;
    return c;
}

static int measure(uint32_t dp, bool every_rank)
{
    struct maq_capture *c = job(dp);
    struct maq_diag *diag = maq_diag_new();
    struct maq_replay *r = NULL;
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_edit slow;
    opts.every_rank = every_rank;
    (void)maq_edit_slow(&slow, "rank:17=1.3x", c, diag);
    opts.edit = &slow;
    opts.n_edits = 1;
    double start = cpu_s();
    if (maq_capture_replay(&r, c, &opts, diag) != MAQ_OK) {
        char *text = maq_diag_format(diag, 0, false);
        fprintf(stderr, "%s", text ? text : "out of memory\n");
        free(text);
        return 1;
    }
    double took = cpu_s() - start;
    printf(
        "%6u ranks, %d steps: %llu records (%.0f a rank), %llu meetings, %.2f s CPU, %.1f M records/s, %.1f MiB; step "
        "%.3f s\n",
        c->world, STEPS, (unsigned long long)r->records, (double)r->records / c->world, (unsigned long long)r->meetings,
        took, (double)r->records / took / 1e6, (double)r->memory_bytes / (1 << 20),
        (double)(r->step_end_ns[2] - r->step_end_ns[1]) * 1e-9);
    maq_replay_free(r);
    maq_capture_free(c);
    maq_diag_free(diag);
    return 0;
}

int main(void)
{
    return measure(64, true) + measure(64, false) + measure(512, false);
}
