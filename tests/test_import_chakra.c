/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_chakra.c - captured jobs as Chakra execution traces and back: operators, dependencies, collectives and durations stay;
 * traces as others write them; hostile ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/stat/rng.h"
#include "base/str.h"
#include "capture/import/chakra/read.h"
#include "capture/import/codes.h"
#include "capture/import/readers.h"
#include "maquette/maquette.h"
#include "maquette/replay.h"

static void folder_name(char buf[64])
{
    snprintf(buf, 64, "/tmp/maq-chakra-%ld", (long)getpid());
}

/* --- a job of our own ---------------------------------------------------------------------------------------------------- */

#define WORLD 4

static uint32_t op_named(struct maq_import_job *job, uint32_t i)
{
    struct maq_rec_op op = {.kind = i % 3 ? MAQ_REC_KERNEL : MAQ_REC_GEMM,
                            .type = MAQ_REC_BF16,
                            .out = MAQ_REC_F32,
                            .flags = i % 3 ? 0 : MAQ_REC_BIAS,
                            .grid = {i + 1, 2, 1},
                            .block = {128, 1, 1},
                            .shared = i,
                            .bytes = i * 100};
    char name[32];
    if (op.kind == MAQ_REC_GEMM)
        memcpy(op.d, (int64_t[6]){512, 64 + i, 128, 1, 0, 0}, sizeof op.d);
    snprintf(name, sizeof name, "kernel_%u<int>", i);
    return maq_import_op(job, &op, maq_str_of(name));
}

static struct maq_rec *add(struct maq_import_job *job, struct maq_import_rank *r, enum maq_rec_kind kind,
                           uint16_t stream, uint32_t id, uint64_t ns, struct maq_rng *rng)
{
    struct maq_rec *rec = maq_import_record(job, r, kind, (int64_t)(maq_rng_next(rng) * 5000));
    rec->stream = stream;
    rec->id = id;
    rec->ns = ns;
    return rec;
}

/*
 * The same random program on every rank of two stages: kernels, copies, collectives in pairs of ranks and over all, groups, messages
 * from one stage to the next and back, events, waits of the host, marks.
 */
static void add_program(struct maq_import_job *job, struct maq_import_rank *r, uint32_t seed)
{
    struct maq_rng rng = maq_rng_of(3, MAQ_RNG_TEST, seed);
    uint32_t all[WORLD] = {0, 1, 2, 3}, stage = r->rank / 2, pair[2] = {stage * 2, stage * 2 + 1};
    uint32_t pipe[2] = {r->rank % 2, r->rank % 2 + 2}, n_events = 0;
    uint32_t world = maq_import_comm(job, r, MAQ_STR("all"), all, WORLD);
    uint32_t tp = maq_import_comm(job, r, MAQ_STR("tp"), pair, 2), pp = maq_import_comm(job, r, MAQ_STR("pp"), pipe, 2);
    r->comm[pp].messages = true;
    r->n_streams = 4;
    for (uint32_t i = 0; i < 120; i++) {
        double what = maq_rng_next(&rng);
        uint16_t s = (uint16_t)(maq_rng_next(&rng) * 2);
        uint64_t ns = 1000 + (uint64_t)(maq_rng_next(&rng) * 50000);
        uint32_t id = (uint32_t)(maq_rng_next(&rng) * 9);
        if (what < 0.45)
            add(job, r, MAQ_REC_LAUNCH, s, op_named(job, id), ns + r->rank * 7, &rng);
        else if (what < 0.5)
            add(job, r, MAQ_REC_COPY, s, MAQ_REC_D2H, ns, &rng)->flags = id % 2 ? MAQ_REC_WAITS : 0;
        else if (what < 0.6) {
            struct maq_rec *c =
                add(job, r, MAQ_REC_COLL, 2, MAQ_REC_COLL(id % 2 ? world : tp, 0, MAQ_REC_BF16, id % 3), ns, &rng);
            c->bytes = ns * 10;
            c->arg = MAQ_REC_NONE;
        } else if (what < 0.65) { /* a group of two collectives */
            struct maq_rec *c = add(job, r, MAQ_REC_COLL, 2, MAQ_REC_COLL(tp, 0, MAQ_REC_BF16, 1), ns, &rng);
            c->flags = MAQ_REC_MORE;
            c->arg = MAQ_REC_NONE;
            c = maq_import_record(job, r, MAQ_REC_COLL, 0);
            *c = (struct maq_rec){.kind = MAQ_REC_COLL,
                                  .stream = 2,
                                  .id = MAQ_REC_COLL(world, 0, MAQ_REC_BF16, 0),
                                  .ns = ns / 2,
                                  .arg = MAQ_REC_NONE};
        } else if (what < 0.75) { /* forward or back through the pipeline */
            bool forward = id % 2, sends = forward == (stage == 0);
            struct maq_rec *m = add(job, r, sends ? MAQ_REC_SEND : MAQ_REC_RECV, 3,
                                    MAQ_REC_COLL(pp, 0, MAQ_REC_BF16, MAQ_REC_P2P_PAIR), ns, &rng);
            m->arg = 1 - stage;
            m->bytes = id % 4 < 2 ? 1 << 10 : 8 << 20;
        } else if (what < 0.85) {
            add(job, r, MAQ_REC_EVENT_RECORD, (uint16_t)(id % 4), n_events, 0, &rng);
            add(job, r, MAQ_REC_STREAM_WAIT, (uint16_t)((id + 1) % 4), n_events++, 0, &rng);
        } else if (what < 0.9) {
            add(job, r, MAQ_REC_EVENT_RECORD, (uint16_t)(id % 4), n_events, 0, &rng);
            add(job, r, MAQ_REC_LAUNCH, (uint16_t)(id % 4), op_named(job, id), ns, &rng);
            add(job, r, MAQ_REC_EVENT_SYNC, MAQ_REC_HOST_STREAM, n_events++, 0, &rng);
        } else if (what < 0.94)
            add(job, r, MAQ_REC_STREAM_SYNC, (uint16_t)(id % 4), 0, 0, &rng);
        else if (what < 0.96)
            add(job, r, MAQ_REC_DEVICE_SYNC, MAQ_REC_HOST_STREAM, 0, 0, &rng);
        else
            add(job, r, MAQ_REC_MARK, MAQ_REC_HOST_STREAM, maq_import_text(job, MAQ_STR("part")), 0, &rng)->arg =
                i % 2 ? MAQ_REC_PUSH : MAQ_REC_STEP;
    }
    add(job, r, MAQ_REC_END, MAQ_REC_HOST_STREAM, 0, 0, &rng);
    r->n_events = n_events;
}

static struct maq_capture *make(uint32_t seed)
{
    struct maq_import_job job;
    struct maq_capture *c = NULL;
    assert_int_equal(maq_import_begin(&job, NULL), MAQ_OK);
    job.world = WORLD;
    job.per_node = 2;
    job.device = "h100-sxm";
    for (uint32_t rank = 0; rank < WORLD; rank++)
        add_program(&job, maq_import_add_rank(&job, "own", rank), seed);
    assert_int_equal(maq_import_finish(&c, &job), MAQ_OK);
    return c;
}

/* --- comparing ------------------------------------------------------------------------------------------------------------- */

struct end {
    const char *name;
    double finish, dur;
    uint32_t class_id;
};

static int by_end(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->class_id != y->class_id)
        return x->class_id < y->class_id ? -1 : 1;
    if (x->finish != y->finish)
        return x->finish < y->finish ? -1 : 1;
    if (x->dur != y->dur)
        return x->dur < y->dur ? -1 : 1;
    return strcmp(x->name, y->name);
}

struct ends {
    struct maq_captured_graph g;
    uint32_t n;
    struct end *end;
    double makespan;
};

/* Every kernel, copy and collective with when it ends. */
static void ends_of(struct ends *e, const struct maq_capture *c)
{
    struct maq_diag *diag = maq_diag_new();
    if (maq_capture_graph(&e->g, c, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    const struct maq_graph *g = &e->g.timed.graph;
    double *finish = calloc(g->n_nodes + 1, sizeof *finish);
    e->end = calloc(g->n_nodes + 1, sizeof *e->end);
    e->n = 0;
    maq_engine_static(&e->makespan, finish, g, 1, e->g.timed.dur_ns);
    for (uint32_t v = 0; v < g->n_nodes; v++)
        if (e->g.timed.item_sort[g->item[v]] != MAQ_ITEM_HOST)
            e->end[e->n++] = (struct end){e->g.timed.item_name[g->item[v]], finish[v], e->g.timed.dur_ns[g->item[v]],
                                          g->stream[v] / MAQ_STREAM_COUNT};
    qsort(e->end, e->n, sizeof *e->end, by_end);
    free(finish);
}

static void same(const struct maq_capture *a, const struct maq_capture *b)
{
    struct ends x, y;
    ends_of(&x, a);
    ends_of(&y, b);
    assert_int_equal(x.n, y.n);
    for (uint32_t i = 0; i < x.n; i++) {
        assert_string_equal(x.end[i].name, y.end[i].name);
        assert_true(x.end[i].finish == y.end[i].finish && x.end[i].dur == y.end[i].dur);
        assert_int_equal(x.end[i].class_id, y.end[i].class_id);
    }
    assert_true(x.makespan == y.makespan && x.makespan > 0);
    assert_int_equal(x.g.n_steps, y.g.n_steps);
    assert_int_equal(x.g.unmet, y.g.unmet);
    assert_int_equal(x.g.exact, y.g.exact);
    free(x.end);
    free(y.end);
    maq_captured_graph_free(&x.g);
    maq_captured_graph_free(&y.g);
}

/* The graph says what the replay of all ranks says, and a .mqt file holds all of it. */
static void same_as_replayed(const struct maq_capture *c, const char *mqt)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_replay *replay = NULL;
    struct maq_capture *again = NULL;
    struct ends e;
    ends_of(&e, c);
    if (maq_capture_replay(&replay, c, &opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_true(e.makespan == (double)replay->makespan_ns);
    maq_replay_free(replay);
    if (maq_capture_write(c, mqt, diag) != MAQ_OK || maq_capture_read(&again, &mqt, 1, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    same(c, again);
    maq_capture_free(again);
    free(e.end);
    maq_captured_graph_free(&e.g);
    maq_diag_free(diag);
    unlink(mqt);
}

static void same_ops(const struct maq_capture *a, const struct maq_capture *b)
{
    assert_int_equal(a->n_ops, b->n_ops);
    for (uint32_t i = 0; i < a->n_ops; i++) {
        uint32_t k = 0;
        while (k < b->n_ops && (strcmp(a->op[i].name, b->op[k].name) != 0 ||
                                memcmp(a->op[i].what, b->op[k].what, sizeof *a->op[i].what) != 0))
            k++;
        assert_true(k < b->n_ops);
        assert_int_equal(a->op[i].launches, b->op[k].launches);
        assert_true(a->op[i].recorded_ns == b->op[k].recorded_ns);
    }
}

static void remove_folder(const char *folder)
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        char path[128];
        snprintf(path, sizeof path, "%s/job.%u.et", folder, rank);
        unlink(path);
    }
    rmdir(folder);
}

static void test_round_trip(void **state)
{
    char folder[64], mqt[80], text[WORLD][128];
    const char *paths[WORLD];
    folder_name(folder);
    snprintf(mqt, sizeof mqt, "%s.mqt", folder);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        snprintf(text[rank], sizeof text[rank], "%s/job.%u.et", folder, rank);
        paths[rank] = text[rank];
    }
    uint32_t drawn = 0;
    for (uint32_t seed = 0; seed < 40; seed++) {
        struct maq_capture *a = make(seed), *b = NULL;
        struct maq_captured_graph g;
        if (maq_capture_graph(&g, a, NULL) != MAQ_OK) { /* large messages of a random program may wait in a circle */
            maq_capture_free(a);
            continue;
        }
        maq_captured_graph_free(&g);
        drawn++;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_capture_write_chakra(a, folder, "job", true, diag), MAQ_OK);
        if (maq_import_chakra(&b, paths, WORLD, NULL, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        assert_int_equal(b->world, WORLD);
        assert_int_equal(b->per_node, 2);
        assert_string_equal(b->device, "h100-sxm");
        assert_int_equal(b->n_comms, a->n_comms);
        same(a, b);
        same_ops(a, b);
        same_as_replayed(a, mqt);
        same_as_replayed(b, mqt);
        maq_diag_free(diag);
        maq_capture_free(a);
        maq_capture_free(b);
    }
    assert_true(drawn >= 20);
    remove_folder(folder);
}

/* --- what others write ------------------------------------------------------------------------------------------------------ */

static void put_message(struct maq_buf *to, struct maq_buf *message)
{
    maq_pb_varint(to, message->len);
    maq_buf_add(to, message->ptr ? message->ptr : "", message->len);
    message->len = 0;
}

static void node(struct maq_buf *to, uint64_t id, enum maq_chakra_type type, uint64_t micros, uint64_t dep)
{
    struct maq_buf m;
    maq_buf_init(&m, 4096);
    maq_pb_uint(&m, MAQ_CHAKRA_NODE_ID, id);
    maq_pb_bytes(&m, MAQ_CHAKRA_NODE_NAME, "n", 1);
    maq_pb_uint(&m, MAQ_CHAKRA_NODE_TYPE, type);
    if (dep > 0) { /* packed, as proto3 writes it */
        char one = (char)dep;
        maq_pb_bytes(&m, MAQ_CHAKRA_NODE_DATA, &one, 1);
    }
    maq_pb_uint(&m, MAQ_CHAKRA_NODE_DURATION, micros);
    put_message(to, &m);
    maq_buf_fini(&m);
}

static void test_foreign(void **state)
{
    struct maq_buf file, m;
    maq_buf_init(&file, 1 << 16);
    maq_buf_init(&m, 4096);
    maq_pb_bytes(&m, MAQ_CHAKRA_META_VERSION, "0.0.4", 5);
    put_message(&file, &m);
    node(&file, 10, MAQ_CHAKRA_COMP, 100, 0);
    node(&file, 12, MAQ_CHAKRA_COLL, 50, 11); /* behind a later node: the order is by need */
    node(&file, 11, MAQ_CHAKRA_COMP, 30, 10);
    node(&file, 13, MAQ_CHAKRA_COMP, 5, 12);
    assert_true(maq_import_chakra_probe((unsigned char *)file.ptr, file.len));
    assert_false(maq_import_kineto_probe((unsigned char *)file.ptr, file.len));
    struct maq_import_job job;
    struct maq_chakra c;
    struct maq_chakra_tally tally = {0};
    struct maq_capture *capture = NULL;
    assert_int_equal(maq_import_begin(&job, NULL), MAQ_OK);
    job.world = 2;
    assert_int_equal(maq_chakra_parse(&c, "f", file.ptr, file.len, job.arena, NULL), MAQ_OK);
    assert_int_equal(maq_chakra_records(&job, maq_import_add_rank(&job, "f", 0), &c, &tally), MAQ_OK);
    maq_chakra_fini(&c);
    assert_int_equal(maq_import_finish(&capture, &job), MAQ_OK);
    struct ends e;
    ends_of(&e, capture);
    assert_true(e.makespan == 185000);
    assert_int_equal(capture->class_of_ranks[0].n_ranks, 2); /* the other rank by symmetry */
    assert_int_equal(capture->n_comms, 1);
    free(e.end);
    maq_captured_graph_free(&e.g);
    maq_capture_free(capture);
    maq_buf_fini(&file);
    maq_buf_fini(&m);
}

/* A number or a text as an attribute of the message. */
static void attr(struct maq_buf *to, uint32_t field, const char *name, int64_t v, const char *text)
{
    struct maq_buf m;
    maq_buf_init(&m, 4096);
    maq_pb_bytes(&m, MAQ_CHAKRA_ATTR_NAME, name, strlen(name));
    if (text)
        maq_pb_bytes(&m, MAQ_CHAKRA_ATTR_STRING, text, strlen(text));
    else
        maq_pb_int(&m, MAQ_CHAKRA_ATTR_INT64, v);
    maq_pb_message(to, field, &m);
    maq_buf_fini(&m);
}

/* The file of a rank with one collective of each type, of comm_size bytes. */
static void write_collectives(const char *path, bool ours, const char *size_of, int64_t comm_size)
{
    struct maq_buf file, m;
    maq_buf_init(&file, 1 << 16);
    maq_buf_init(&m, 4096);
    if (ours)
        attr(&m, MAQ_CHAKRA_META_ATTR, "per_node", 2, NULL);
    if (size_of)
        attr(&m, MAQ_CHAKRA_META_ATTR, "comm_size_of", 0, size_of);
    put_message(&file, &m);
    for (int64_t type = 0; type <= 7; type++) {
        maq_pb_uint(&m, MAQ_CHAKRA_NODE_ID, (uint64_t)type + 1);
        maq_pb_bytes(&m, MAQ_CHAKRA_NODE_NAME, "n", 1);
        maq_pb_uint(&m, MAQ_CHAKRA_NODE_TYPE, MAQ_CHAKRA_COLL);
        attr(&m, MAQ_CHAKRA_NODE_ATTR, "comm_type", type, NULL);
        attr(&m, MAQ_CHAKRA_NODE_ATTR, "comm_size", comm_size, NULL);
        put_message(&file, &m);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file.ptr, 1, file.len, f), file.len);
    assert_int_equal(fclose(f), 0);
    maq_buf_fini(&file);
    maq_buf_fini(&m);
}

static const struct maq_diag_item *said(const struct maq_diag *diag, uint16_t code)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->code == code)
            return maq_diag_at(diag, i);
    return NULL;
}

/*
 * comm_size is of a rank's whole input, as the converter writes it and ASTRA-sim takes it, unless who wrote the file or the user says
 * otherwise: of reduce-scatter, scatter and all-to-all a record then has its share.
 */
static void test_comm_size(void **state)
{
    enum { SIZE = 1 << 20, RANKS = 16 };
    static const struct {
        bool ours;
        const char *size_of;
        enum maq_chakra_comm_size chosen;
        uint64_t parts;   /* bytes of a record of what is shared out */
        const char *note; /* in it; NULL = none */
    } cases[] = {
        {false, NULL, MAQ_CHAKRA_SIZE_BY_WRITER, SIZE / RANKS, "size of a rank's whole input"},
        {true, NULL, MAQ_CHAKRA_SIZE_BY_WRITER, SIZE, "NCCL's count"},
        {true, "input", MAQ_CHAKRA_SIZE_BY_WRITER, SIZE / RANKS, NULL},
        {true, "count", MAQ_CHAKRA_SIZE_BY_WRITER, SIZE, NULL},
        {false, NULL, MAQ_CHAKRA_SIZE_COUNT, SIZE, NULL},
        {true, NULL, MAQ_CHAKRA_SIZE_INPUT, SIZE / RANKS, NULL},
    };
    char text[RANKS][128];
    const char *paths[RANKS];
    for (uint32_t i = 0; i < MAQ_COUNT(cases); i++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            snprintf(text[rank], sizeof text[rank], "/tmp/maq-comm-size-%ld.%u.et", (long)getpid(), rank);
            paths[rank] = text[rank];
            write_collectives(paths[rank], cases[i].ours, cases[i].size_of, SIZE);
        }
        struct maq_diag *diag = maq_diag_new();
        struct maq_capture_read_opts opts = {cases[i].chosen};
        struct maq_capture *c = NULL;
        if (maq_capture_read_with(&c, paths, RANKS, &opts, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        const struct maq_rank_class *k = &c->class_of_ranks[0];
        uint32_t n = 0;
        for (uint32_t r = 0; r < k->n_records; r++) {
            if (k->record[r].kind != MAQ_REC_COLL)
                continue;
            unsigned kind = MAQ_REC_COLL_KIND(k->record[r].id);
            bool parts = kind == MAQ_REC_REDUCE_SCATTER || kind == MAQ_REC_ALL_TO_ALL || kind == MAQ_REC_SCATTER;
            assert_int_equal(k->record[r].bytes, parts ? cases[i].parts : SIZE);
            n++;
        }
        assert_int_equal(n, 8);
        const struct maq_diag_item *note = said(diag, MAQ_CODE_IMPORT_COMM_SIZE);
        assert_int_equal(note != NULL, cases[i].note != NULL);
        assert_true(!note || (note->severity == MAQ_NOTE && strstr(note->msg.ptr, cases[i].note)));
        maq_capture_free(c);
        maq_diag_free(diag);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            unlink(paths[rank]);
    }
}

/* A dependency on a node that a filter took out: of control it is counted, and said with the ids of the first; of data it is a fault. */
static void test_dropped_nodes(void **state)
{
    for (int data = 0; data < 2; data++) {
        struct maq_buf file, m;
        maq_buf_init(&file, 1 << 16);
        maq_buf_init(&m, 4096);
        put_message(&file, &m);
        for (uint64_t id = 20; id < 24; id++) {
            maq_pb_uint(&m, MAQ_CHAKRA_NODE_ID, id);
            maq_pb_bytes(&m, MAQ_CHAKRA_NODE_NAME, "gemm", 4);
            maq_pb_uint(&m, MAQ_CHAKRA_NODE_TYPE, MAQ_CHAKRA_COMP);
            if (id != 20)
                maq_pb_uint(&m, MAQ_CHAKRA_NODE_CTRL, id == 23 ? 20 : id - 16); /* 5, 6, and one that is there */
            if (data && id == 22)
                maq_pb_uint(&m, MAQ_CHAKRA_NODE_DATA, 7);
            maq_pb_uint(&m, MAQ_CHAKRA_NODE_DURATION, 10);
            put_message(&file, &m);
        }
        char path[128];
        snprintf(path, sizeof path, "/tmp/maq-dropped-%ld.0.et", (long)getpid());
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(file.ptr, 1, file.len, f), file.len);
        assert_int_equal(fclose(f), 0);
        struct maq_diag *diag = maq_diag_new();
        struct maq_capture *c = NULL;
        const char *paths[] = {path};
        enum maq_status status = maq_capture_read(&c, paths, 1, diag);
        const struct maq_diag_item *note = said(diag, MAQ_CODE_IMPORT_DEPENDENCY);
        assert_non_null(note);
        if (data) {
            assert_int_equal(status, MAQ_BAD_INPUT);
            assert_non_null(strstr(note->msg.ptr, "node 22 'gemm' has a data dependency on node 7"));
        } else {
            assert_int_equal(status, MAQ_OK);
            assert_int_equal(note->severity, MAQ_NOTE);
            assert_non_null(strstr(note->msg.ptr, "leave them: 2 (the first"));
            assert_non_null(strstr(note->msg.ptr, "node 21 on node 5"));
            struct ends e;
            ends_of(&e, c);
            assert_true(e.makespan == 40000);
            free(e.end);
            maq_captured_graph_free(&e.g);
            maq_capture_free(c);
        }
        maq_diag_free(diag);
        unlink(path);
        maq_buf_fini(&file);
        maq_buf_fini(&m);
    }
}

/* Control dependencies in a circle: 1 -> 2 -> 3 -> 1, where 3 needs the data of 2. The file's first goes first. */
static void test_circle(void **state)
{
    struct maq_buf file, m;
    maq_buf_init(&file, 1 << 16);
    maq_buf_init(&m, 4096);
    put_message(&file, &m);
    for (uint64_t id = 1; id <= 3; id++) {
        maq_pb_uint(&m, MAQ_CHAKRA_NODE_ID, id);
        maq_pb_bytes(&m, MAQ_CHAKRA_NODE_NAME, "n", 1);
        maq_pb_uint(&m, MAQ_CHAKRA_NODE_TYPE, MAQ_CHAKRA_COMP);
        maq_pb_uint(&m, id == 3 ? MAQ_CHAKRA_NODE_DATA : MAQ_CHAKRA_NODE_CTRL, id == 1 ? 3 : id - 1);
        maq_pb_uint(&m, MAQ_CHAKRA_NODE_DURATION, 10 * id);
        put_message(&file, &m);
    }
    struct maq_chakra c;
    struct maq_arena arena;
    uint32_t *order;
    uint64_t against = 0;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_chakra_parse(&c, "f", file.ptr, file.len, &arena, NULL), MAQ_OK);
    for (uint32_t e = 0; e < c.n_deps; e++)
        c.dep[e].node--; /* ids to places */
    assert_int_equal(maq_chakra_order(&order, &c, &arena, &against), MAQ_OK);
    assert_int_equal(against, 1);
    assert_int_equal(c.node[0].n_deps, 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(order[i], i);
    maq_chakra_fini(&c);
    maq_arena_fini(&arena);
    maq_buf_fini(&file);
    maq_buf_fini(&m);
}

static void test_hostile(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint16_t code;
    } cases[] = {
        {"", 0, 1713},                                                              /* nothing */
        {"\x02\x0a", 2, 1710},                                                      /* ends in a message */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, 1710},                     /* a length over all limits */
        {"\x00\x02\x0a\x7f", 4, 1712},                                              /* a text longer than its message */
        {"\x00\x04\x08\x01\x18\x04\x04\x08\x01\x18\x04", 11, 1717},                 /* an id twice */
        {"\x00\x06\x08\x01\x18\x04\x28\x02", 8, 1717},                              /* waits for nobody */
        {"\x00\x06\x08\x01\x18\x04\x28\x02\x06\x08\x02\x18\x04\x28\x01", 15, 1717}, /* a circle of data */
        {"\x00\x0e\x08\x01\x18\x04\x38\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 16, 1716}, /* a duration of 292 years */
    };
    for (uint32_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_import_job job;
        struct maq_chakra c;
        struct maq_chakra_tally tally = {0};
        maq_diag_set_strict(diag, true);
        assert_int_equal(maq_import_begin(&job, diag), MAQ_OK);
        enum maq_status status = maq_chakra_parse(&c, "f", cases[i].bytes, cases[i].n, job.arena, diag);
        if (status == MAQ_OK)
            status = maq_chakra_records(&job, maq_import_add_rank(&job, "f", 0), &c, &tally);
        assert_int_not_equal(status, MAQ_OK);
        assert_int_equal(maq_diag_count(diag), 1);
        if (maq_diag_at(diag, 0)->code != cases[i].code)
            fail_msg("case %u: %s", i, maq_diag_format(diag, 0, false));
        maq_chakra_fini(&c);
        maq_import_drop(&job);
        maq_diag_free(diag);
    }
}

/* A node that is there twice, one whose duration is below zero, and an end that is missing. */
static void test_dirt(void **state)
{
    static const char bytes[] = "\x00"
                                "\x07\x08\x01\x12\x01\x61\x38\x07" /* a takes 7 us */
                                "\x07\x08\x01\x12\x01\x61\x38\x07" /* once more */
                                "\x07\x08\x02\x12\x01\x61\x38\x09" /* 9 us */
                                "\x10\x08\x03\x12\x01\x61\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* -1 us */
                                "\x07\x08\x04";
    struct maq_diag *diag = maq_diag_new();
    struct maq_arena arena;
    struct maq_chakra c;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_chakra_parse(&c, "f", bytes, sizeof bytes - 1, &arena, diag), MAQ_OK);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.node[2].ns, 8000);
    assert_int_equal(maq_diag_count(diag), 1);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    static const char says[] =
        "3 nodes: 1 repetition left out (node 2), 1 duration below zero (node 4), 1 end missing (node 4); "
        "times may be off by 8e-06 s of 2.4e-05 s";
    if (!memmem(item->msg.ptr, item->msg.len, says, strlen(says)))
        fail_msg("%.*s", (int)item->msg.len, item->msg.ptr);
    maq_chakra_fini(&c);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_foreign), cmocka_unit_test(test_comm_size),
        cmocka_unit_test(test_dropped_nodes), cmocka_unit_test(test_circle),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_dirt),
    };
    if (argc == 3 && strcmp(argv[1], "--write") == 0) { /* for test_chakra_decode.py */
        struct maq_capture *c = make(1);
        enum maq_status status = maq_capture_write_chakra(c, argv[2], "job", true, NULL);
        maq_capture_free(c);
        return status == MAQ_OK ? 0 : 1;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("import_chakra", tests, NULL, NULL);
}
