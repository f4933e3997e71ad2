/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulate_capture.c - traces of ranks into a captured job: damaged files, classes, ranks that did not run, what does not meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "capture/build.h"
#include "capture/codes.h"
#include "capture/mqt/mqt.h"
#include "emulate_traces.h"
#include "maquette/replay.h"
#include "temp.h"

static char folder[32], path_of[512][64];

static void open_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/maq-capture-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

/* The i-th trace of the folder. */
static void keep(struct gen_rank *g, uint32_t i)
{
    snprintf(path_of[i], sizeof path_of[i], "%s/%u", folder, i);
    gen_write(g, path_of[i]);
    gen_free(g);
}

/* The job of the n traces that were kept; they and the folder are gone then. */
static struct maq_capture *read_kept(uint32_t n, struct maq_diag *diag)
{
    const char *paths[512] = {NULL};
    struct maq_capture *c = NULL;
    for (uint32_t i = 0; i < n; i++)
        paths[i] = path_of[i];
    if (maq_capture_of_ranks(&c, paths, n, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    for (uint32_t i = 0; i < n; i++)
        unlink(path_of[i]);
    rmdir(folder);
    return c;
}

/* A capture of these ranks of a job. */
static struct maq_capture *capture_of(const struct gen_job *job, const uint32_t *ranks, uint32_t n,
                                      struct maq_diag *diag)
{
    open_folder();
    for (uint32_t i = 0; i < n; i++) {
        struct gen_rank g;
        gen_job_rank(job, &g, ranks[i]);
        keep(&g, i);
    }
    return read_kept(n, diag);
}

/* Runs rank 0, another one, and what inference asks for until it is content; the number of ranks that ran. */
static uint32_t probe_also(struct maq_capture **out, const struct gen_job *job, uint32_t also, struct maq_diag *diag)
{
    uint32_t ranks[512] = {0, also}, n = also ? 2 : 1;
    for (;;) {
        struct maq_capture *c = capture_of(job, ranks, n, diag);
        uint32_t asked = 512 - n;
        enum maq_status status = maq_capture_infer(c, ranks + n, &asked, diag);
        if (status == MAQ_OK) {
            assert_int_equal(asked, 0);
            *out = c;
            return n;
        }
        assert_int_equal(status, MAQ_NO);
        assert_true(asked > 0);
        for (uint32_t i = 0; i < asked; i++) {
            assert_int_equal(c->class_of[ranks[n + i]], UINT32_MAX);
            for (uint32_t k = 0; k < n + i; k++)
                assert_int_not_equal(ranks[k], ranks[n + i]);
        }
        maq_capture_free(c);
        n += asked;
        assert_true(n < 512);
    }
}

static uint32_t probe_all(struct maq_capture **out, const struct gen_job *job, struct maq_diag *diag)
{
    return probe_also(out, job, 0, diag);
}

static const uint32_t *members(const struct maq_capture *c, uint32_t rank, uint32_t ordinal, uint32_t *size,
                               uint32_t *position)
{
    const struct maq_rank_class *m = &c->class_of_ranks[c->class_of[rank]];
    uint32_t i = 0;
    while (m->rank[i] != rank)
        i++;
    const struct maq_captured_comm *comm = &c->comm[m->comm[(size_t)i * m->n_comms + ordinal]];
    *size = comm->size;
    *position = m->position[(size_t)i * m->n_comms + ordinal];
    return comm->member;
}

static void same_job(const struct maq_capture *a, const struct maq_capture *b)
{
    assert_int_equal(a->n_classes, b->n_classes);
    assert_int_equal(a->n_comms, b->n_comms);
    for (uint32_t r = 0; r < a->world; r++) {
        const struct maq_rank_class *m = &a->class_of_ranks[a->class_of[r]];
        assert_int_equal(m->signature, b->class_of_ranks[b->class_of[r]].signature);
        for (uint32_t k = 0; k < m->n_comms; k++) {
            uint32_t size, position, other, place;
            const uint32_t *x = members(a, r, k, &size, &position), *y = members(b, r, k, &other, &place);
            assert_int_equal(size, other);
            assert_int_equal(position, place);
            assert_int_equal(x[position], r);
            assert_memory_equal(x, y, size * sizeof *x);
        }
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_replay *p, *q;
    assert_int_equal(maq_capture_check(a, diag), MAQ_OK);
    assert_int_equal(maq_capture_replay(&p, a, NULL, diag), MAQ_OK);
    assert_int_equal(maq_capture_replay(&q, b, NULL, diag), MAQ_OK);
    assert_memory_equal(p->end_ns, q->end_ns, a->world * sizeof *p->end_ns);
    maq_replay_free(p);
    maq_replay_free(q);
    maq_diag_free(diag);
}

static const struct gen_job jobs[] = {
    {.tp = 1, .pp = 1, .dp = 16, .steps = 1, .layers = 1, .micro = 1, .members = true},
    {.tp = 2, .pp = 4, .dp = 4, .steps = 1, .layers = 1, .micro = 4, .members = true, .message = 1 << 20},
    {.tp = 2,
     .pp = 6,
     .dp = 4,
     .steps = 1,
     .layers = 1,
     .micro = 4,
     .members = true,
     .message = 8 << 20,
     .pairs = true},
    {.tp = 4,
     .pp = 2,
     .dp = 8,
     .ep = 4,
     .steps = 1,
     .layers = 1,
     .micro = 2,
     .members = true,
     .message = 64,
     .zero = true},
    {.tp = 2,
     .pp = 4,
     .dp = 4,
     .steps = 1,
     .layers = 1,
     .micro = 4,
     .message = 1 << 20}, /* nobody says who is in what */
    {.tp = 4, .pp = 1, .dp = 8, .ep = 2, .steps = 1, .layers = 1, .micro = 1},
    {.tp = 4, .pp = 4, .dp = 4, .steps = 1, .layers = 1, .micro = 8, .message = 1 << 20, .model = true, .logs = true},
    {.tp = 4,
     .pp = 4,
     .dp = 8,
     .steps = 1,
     .layers = 1,
     .micro = 8,
     .message = 1 << 20,
     .model = true,
     .members = true},
};

static void test_infer(void **state)
{
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct maq_diag *diag = maq_diag_new();
        uint32_t ranks[512], n = jobs[i].tp * jobs[i].pp * jobs[i].dp;
        struct maq_capture *some, *all;
        for (uint32_t r = 0; r < n; r++)
            ranks[r] = r;
        all = capture_of(&jobs[i], ranks, n, diag);
        uint32_t ran = probe_all(&some, &jobs[i], diag);
        print_message("    job %zu: %u of %u ranks ran, %u classes\n", i, ran, n, all->n_classes);
        assert_true(ran < n);
        same_job(some, all);
        maq_capture_free(some);
        maq_capture_free(all);
        maq_diag_free(diag);
    }
}

static void test_infer_large(void **state)
{
    struct gen_job job = {
        .tp = 8, .pp = 16, .dp = 64, .steps = 1, .layers = 1, .micro = 4, .members = false, .message = 1 << 20};
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *c;
    uint32_t ran = probe_all(&c, &job, diag);
    print_message("    %u of %u ranks ran\n", ran, c->world);
    assert_true(ran <= 32);
    assert_int_equal(maq_capture_check(c, diag), MAQ_OK);
    assert_int_equal(c->n_comms, 1 + 1024 + 512 + 128);
    for (uint32_t r = 0; r < c->world; r += 37) { /* the digits, as the generator has them */
        uint32_t size, position;
        members(c, r, 1, &size, &position);
        assert_int_equal(position, r % 8);
        members(c, r, 2, &size, &position);
        assert_int_equal(position, r / 8 % 64);
    }
    maq_capture_free(c);
    maq_diag_free(diag);
}

/*
 * Every stage has its own schedule, the first tensor-parallel rank computes more, one replica of the last stage logs, and nobody says
 * who is in which group: classes of that many ranks, from few more ranks than there are classes.
 */
static void test_infer_lines(void **state)
{
    struct gen_job job = {.tp = 8,
                          .pp = 16,
                          .dp = 64,
                          .steps = 1,
                          .layers = 1,
                          .micro = 16,
                          .message = 1 << 20,
                          .model = true,
                          .logs = true};
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *c;
    uint32_t ran = probe_all(&c, &job, diag);
    print_message("    %u of %u ranks ran, %u classes\n", ran, c->world, c->n_classes);
    assert_int_equal(c->n_classes, 33);
    assert_true(ran <= 60);
    for (uint32_t r = 1; r < c->world; r++) {
        uint32_t stage = r / 512,
                 first = stage * 512 + 8 + (r % 8 > 0); /* of the same stage, and alike in the tensor group */
        assert_int_equal(c->class_of[r] == c->class_of[first], r != 15 * 512);
    }
    assert_int_equal(maq_capture_check(c, diag), MAQ_OK);
    maq_capture_free(c);
    maq_diag_free(diag);
}

/* A rank that is like no other runs by chance: all the others are what they are. */
static void test_infer_odd(void **state)
{
    static const uint32_t odd[] = {5, 27, 54, 63};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct gen_job job = {
            .tp = 4, .pp = 4, .dp = 4, .steps = 1, .layers = 1, .micro = 8, .members = true, .odd = odd[i]};
        struct maq_diag *diag = maq_diag_new();
        uint32_t ranks[64];
        struct maq_capture *some, *all;
        for (uint32_t r = 0; r < 64; r++)
            ranks[r] = r;
        all = capture_of(&job, ranks, 64, diag);
        uint32_t ran = probe_also(&some, &job, odd[i], diag);
        print_message("    rank %u: %u of 64 ranks ran, %u classes\n", odd[i], ran, all->n_classes);
        assert_true(ran < 64);
        same_job(some, all);
        maq_capture_free(some);
        maq_capture_free(all);
        maq_diag_free(diag);
    }
}

/* Two ranks do the same with other events: one with one handle for ever, one with a pool of three; a third one waits for less. */
static void test_events(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    open_folder();
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct gen_rank g = {.world = 3, .rank = rank, .per_node = 8};
        gen_launch(&g, 0, "first", 100); /* so that both streams are there */
        gen_launch(&g, 1, "other", 100);
        for (uint32_t step = 0; step < 6; step++) {
            uint32_t event = rank == 1 ? step % 3 : 0, told = rank == 1 ? 3 : 1;
            gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_EVENT_RECORD, .stream = 0, .id = event});
            gen_rec(&g, (struct maq_rec){
                            .kind = MAQ_REC_EVENT_RECORD, .stream = 1, .id = rank == 1 && step < 2 ? event + 1 : told});
            gen_rec(&g, (struct maq_rec){
                            .kind = MAQ_REC_STREAM_WAIT, .stream = 1, .id = rank == 2 && step == 4 ? told : event});
            gen_launch(&g, 1, "other", 100);
        }
        gen_end(&g);
        keep(&g, rank);
    }
    struct maq_capture *c = read_kept(3, diag);
    assert_int_equal(c->n_classes, 2);
    assert_int_equal(c->class_of[0], c->class_of[1]);
    assert_int_not_equal(c->class_of[0], c->class_of[2]);
    assert_int_equal(c->class_of_ranks[c->class_of[0]].n_events, 2);
    maq_capture_free(c);
    maq_diag_free(diag);
    (void)state;
}

/*
 * Ranks 0 and 1 do the same: one found all done, the other asked until it was, twice, before it waited for the whole device. Rank 2 waited as
 * long by a call. Ranks 3 and 4 go on working behind it, so that one waits is another program.
 */
static void test_polls(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    open_folder();
    for (uint32_t rank = 0; rank < 5; rank++) {
        struct gen_rank g = {.world = 5, .rank = rank, .per_node = 8, .host_ns = 5};
        const uint8_t flags = rank == 2 ? 0 : MAQ_REC_POLLED;
        gen_alloc(&g, 1 << 20);
        gen_alloc(&g, 1 << 20);
        gen_launch(&g, 0, "kernel", 1000);
        gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_EVENT_RECORD, .stream = 0, .id = 0});
        g.host_ns = rank == 1 ? 3 : 5;
        if (rank != 0 && rank != 4)
            gen_rec(&g, (struct maq_rec){
                            .kind = MAQ_REC_EVENT_SYNC, .flags = flags, .stream = MAQ_REC_HOST_STREAM, .id = 0});
        g.host_ns = rank == 1 ? 2 : 5;
        gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_FREE, .id = 1, .arg = MAQ_REC_DEVICE});
        g.host_ns = rank == 1 ? 4 : 5;
        if (rank == 1)
            gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .flags = flags, .stream = 0});
        g.host_ns = rank == 1 ? 1 : 5;
        gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_FREE, .id = 0, .arg = MAQ_REC_DEVICE});
        g.host_ns = 5;
        if (rank > 2)
            gen_launch(&g, 0, "kernel", 1000);
        gen_end(&g);
        keep(&g, rank);
    }
    struct maq_capture *c = read_kept(5, diag);
    assert_int_equal(c->n_classes, 4);
    assert_int_equal(c->class_of[0], c->class_of[1]);
    assert_int_equal(c->class_of_ranks[c->class_of[1]].n_deltas, 0); /* the host worked as long */
    const struct maq_rank_class *waits = &c->class_of_ranks[c->class_of[3]];
    assert_int_equal(waits->record[4].kind, MAQ_REC_EVENT_SYNC);
    assert_int_equal(waits->record[4].flags, 0);
    maq_capture_free(c);
    maq_diag_free(diag);
    (void)state;
}

/* What is freed in one go may be freed in any order; what is freed elsewhere may not. */
static void test_frees(void **state)
{
    static const uint32_t order[3][4] = {{0, 1, 2, 3}, {3, 1, 0, 2}, {0, 1, 2, 3}};
    struct maq_diag *diag = maq_diag_new();
    open_folder();
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct gen_rank g = {.world = 3, .rank = rank, .per_node = 8};
        for (uint64_t i = 0; i < 4; i++)
            gen_alloc(&g, (i + 1) << 20);
        for (uint32_t i = 4; i < 6; i++) /* the host's: no part of the peak */
            gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_ALLOC,
                                         .id = i,
                                         .arg = i == 4 ? MAQ_REC_MANAGED : MAQ_REC_PINNED,
                                         .bytes = 1 << 20});
        gen_launch(&g, 0, "kernel", 100);
        for (uint32_t i = 0; i < 4; i++) {
            gen_rec(&g, (struct maq_rec){.kind = MAQ_REC_FREE, .id = order[rank][i], .arg = MAQ_REC_DEVICE});
            if (rank == 2 && i == 1)
                gen_launch(&g, 0, "kernel", 100);
        }
        if (rank < 2)
            gen_launch(&g, 0, "kernel", 100);
        gen_end(&g);
        keep(&g, rank);
    }
    struct maq_capture *c = read_kept(3, diag);
    assert_int_equal(c->n_classes, 2);
    assert_int_equal(c->class_of[0], c->class_of[1]);
    assert_int_equal(c->class_of_ranks[0].peak_bytes, 10 << 20);
    maq_capture_free(c);
    maq_diag_free(diag);
    (void)state;
}

/* Times that differ on one rank stay its own. */
static void test_deltas(void **state)
{
    struct gen_job job = jobs[0];
    struct maq_diag *diag = maq_diag_new();
    uint32_t ranks[3] = {0, 5, 9};
    job.jitter = 1000;
    struct maq_capture *c = capture_of(&job, ranks, 3, diag);
    assert_int_equal(c->n_classes, 1);
    const struct maq_rank_class *m = &c->class_of_ranks[0];
    assert_int_equal(m->n_ranks, 3);
    assert_true(m->n_deltas > 2);
    for (uint32_t i = 1; i < m->n_deltas; i++)
        assert_true(m->delta[i - 1].rank < m->delta[i].rank || m->delta[i - 1].record < m->delta[i].record);
    assert_int_equal(c->class_of[7], UINT32_MAX);
    struct maq_edit edit;
    assert_int_equal(maq_edit_slow(&edit, "rank:9=2x", c, diag), MAQ_OK);
    assert_int_equal(maq_edit_slow(&edit, "rank:7=2x", c, diag), MAQ_USAGE); /* it would change nothing */
    assert_int_equal(maq_edit_fail(&edit, "rank:7=step:1", c, diag), MAQ_USAGE);
    assert_int_equal(m->peak_bytes, 1u << 30);
    maq_capture_free(c);
    maq_diag_free(diag);
}

static bool has_code(const struct maq_diag *diag, uint16_t code)
{
    for (size_t i = 0; i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->code == code)
            return true;
    return false;
}

static enum maq_status read_bytes(const void *bytes, size_t n, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_rank_trace t;
    char path[] = "/tmp/maq-trace-XXXXXX";
    temp_file(path, bytes, n);
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_rank_trace_read(&t, path, &arena, diag);
    maq_arena_fini(&arena);
    unlink(path);
    return status;
}

/* Cut anywhere, a trace reads up to its last whole record; damaged anywhere, it reads or says where. */
static void test_damaged(void **state)
{
    struct gen_rank g;
    struct maq_rec_head head = {.version = 1, .head_bytes = 64, .world = 32, .rank = 3, .per_node = 8};
    memcpy(head.magic, MAQ_REC_MAGIC, 8);
    gen_job_rank(&jobs[1], &g, 3);
    size_t n = sizeof head + g.len;
    unsigned char *file = malloc(n), *bad = malloc(n);
    memcpy(file, &head, sizeof head);
    memcpy(file + sizeof head, g.bytes, g.len);
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(read_bytes(file, n, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 0);
    maq_diag_free(diag);
    for (size_t cut = 0; cut < n; cut += 1 + cut / 7) {
        diag = maq_diag_new();
        assert_int_equal(read_bytes(file, cut, diag), cut < sizeof head ? MAQ_BAD_INPUT : MAQ_OK);
        assert_true(has_code(diag, cut < sizeof head ? MAQ_CODE_CAPTURE_FORM : MAQ_CODE_CAPTURE_TRUNCATED));
        maq_diag_free(diag);
    }
    for (uint32_t i = 0; i < 400; i++) {
        size_t at = (size_t)(maq_rec_mix(i, 1) % n);
        memcpy(bad, file, n);
        bad[at] ^= (unsigned char)(1u << maq_rec_mix(i, 2) % 8);
        diag = maq_diag_new();
        enum maq_status status = read_bytes(bad, n, diag);
        assert_int_equal(status != MAQ_OK, maq_diag_errors(diag) > 0);
        maq_diag_free(diag);
    }
    free(file);
    free(bad);
    gen_free(&g);
}

static unsigned char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

/* Written, read and written again: the same bytes, the same job; damaged anywhere: a diagnostic or a job that replays. */
static void test_mqt(void **state)
{
    struct gen_job job = jobs[3];
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *a, *b;
    const char *paths[2] = {"/tmp/maq-a.mqt", "/tmp/maq-b.mqt"};
    char names[2][40];
    size_t n, m;
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "/tmp/maq-%d-%d.mqt", (int)getpid(), i);
        paths[i] = names[i];
    }
    job.steps = 12;
    job.jitter = 50; /* differences of ranks that ran */
    (void)probe_all(&a, &job, diag);
    assert_int_equal(maq_capture_write(a, paths[0], diag), MAQ_OK);
    assert_int_equal(maq_capture_read(&b, paths, 1, diag), MAQ_OK);
    assert_int_equal(maq_capture_write(b, paths[1], diag), MAQ_OK);
    same_job(a, b);
    for (uint32_t k = 0; k < a->n_classes; k++) {
        const struct maq_rank_class *x = &a->class_of_ranks[k], *y = &b->class_of_ranks[k];
        assert_memory_equal(x->record, y->record, x->n_records * sizeof *x->record);
        assert_int_equal(x->n_deltas, y->n_deltas);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->peak_bytes, y->peak_bytes);
    }
    unsigned char *file = read_whole(paths[0], &n), *again = read_whole(paths[1], &m);
    assert_int_equal(n, m);
    assert_memory_equal(file, again, n);
    print_message("    %zu bytes\n", n);
    for (uint32_t i = 0; i < 600; i++) {
        struct maq_capture *c = NULL;
        size_t at = (size_t)(maq_rec_mix(i, 1) % n);
        memcpy(again, file, n);
        again[at] ^= (unsigned char)(1u << maq_rec_mix(i, 2) % 8);
        struct maq_diag *d = maq_diag_new();
        enum maq_status status = maq_mqt_parse(&c, again, i % 3 ? n : at, "file", d);
        assert_int_equal(status != MAQ_OK, maq_diag_errors(d) > 0);
        maq_capture_free(c);
        maq_diag_free(d);
    }
    free(file);
    free(again);
    unlink(paths[0]);
    unlink(paths[1]);
    maq_capture_free(a);
    maq_capture_free(b);
    maq_diag_free(diag);
}

/* Steady steps are stored once. */
static void test_mqt_folds(void **state)
{
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        struct gen_job job = {
            .tp = 1, .pp = 1, .dp = 8, .steps = i ? 2000 : 20, .layers = 2, .micro = 1, .members = true};
        struct maq_diag *diag = maq_diag_new();
        struct maq_capture *c;
        char path[40];
        const char *paths = path;
        snprintf(path, sizeof path, "/tmp/maq-%d.mqt", (int)getpid());
        (void)probe_all(&c, &job, diag);
        assert_int_equal(maq_capture_write(c, path, diag), MAQ_OK);
        free(read_whole(paths, &n[i]));
        unlink(path);
        maq_capture_free(c);
        maq_diag_free(diag);
    }
    print_message("    20 steps %zu bytes, 2000 steps %zu bytes\n", n[0], n[1]);
    assert_true(n[1] < n[0] + 64);
}

/* examples/captured.mqt is this job; MAQ_WRITE_EXAMPLE=1 writes it anew. */
static void test_example(void **state)
{
    static const struct gen_job job = {.tp = 2,
                                       .pp = 2,
                                       .dp = 8,
                                       .steps = 4,
                                       .layers = 6,
                                       .micro = 8,
                                       .message = 8 << 20,
                                       .zero = true,
                                       .members = true,
                                       .pairs = true,
                                       .marks = true};
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char path[4096];
    const char *paths = path;
    struct maq_diag *diag = maq_diag_new();
    struct maq_capture *now, *kept;
    snprintf(path, sizeof path, "%s/examples/captured.mqt", root ? root : ".");
    (void)probe_all(&now, &job, diag);
    if (getenv("MAQ_WRITE_EXAMPLE"))
        assert_int_equal(maq_capture_write(now, path, diag), MAQ_OK);
    if (maq_capture_read(&kept, &paths, 1, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    same_job(now, kept);
    maq_capture_free(now);
    maq_capture_free(kept);
    maq_diag_free(diag);
}

/* One rank leaves a collective out, one reduces another size, one sends what nobody receives. */
static void test_check(void **state)
{
    for (int fault = 0; fault < 4; fault++) {
        struct maq_diag *diag = maq_diag_new();
        struct gen_rank g[4];
        open_folder();
        for (uint32_t r = 0; r < 4; r++) {
            uint32_t all[4] = {0, 1, 2, 3};
            g[r] = (struct gen_rank){.world = 4, .rank = r, .per_node = 4};
            uint32_t comm = gen_comm(&g[r], 9, 4, r, all);
            gen_launch(&g[r], 0, "k", 10);
            for (int i = 0; i < 3; i++)
                if (!(fault == 1 && r == 2 && i == 1))
                    gen_coll(&g[r], 0, comm, MAQ_REC_ALL_REDUCE, fault == 2 && r == 3 && i == 2 ? 8 : 16, 5);
            if (fault == 3 && r == 0)
                gen_message(&g[r], 0, true, comm, 1, 32, 5, false);
            gen_end(&g[r]);
            keep(&g[r], r);
        }
        struct maq_capture *c = read_kept(4, diag);
        assert_int_equal(maq_capture_check(c, diag), fault == 0 ? MAQ_OK : MAQ_NO);
        assert_int_equal(has_code(diag, MAQ_CODE_CAPTURE_UNMATCHED), fault != 0);
        struct maq_replay *replay = NULL;
        enum maq_status status = maq_capture_replay(&replay, c, NULL, diag);
        assert_int_equal(status, fault == 1 ? MAQ_NO : MAQ_OK); /* small messages do not wait to be received */
        assert_int_equal(has_code(diag, MAQ_CODE_REPLAY_DEADLOCK), fault == 1);
        if (replay)
            maq_replay_free(replay);
        maq_capture_free(c);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer),     cmocka_unit_test(test_infer_large), cmocka_unit_test(test_infer_lines),
        cmocka_unit_test(test_infer_odd), cmocka_unit_test(test_events),      cmocka_unit_test(test_frees),
        cmocka_unit_test(test_polls),     cmocka_unit_test(test_deltas),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_mqt),       cmocka_unit_test(test_mqt_folds),   cmocka_unit_test(test_example),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
