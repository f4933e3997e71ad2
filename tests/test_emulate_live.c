/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_emulate_live.c - ranks that run among replayed ones end when a replay of all says they do. maq-test: threads
 *
 * Threads play the live ranks: a small interpreter of records that meets in the segment, and stops at every meeting.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/build.h"
#include "emulate_traces.h"
#include "replay/live.h"

#define RANKS 64

struct world {
    struct gen_rank rank[RANKS];
    uint32_t n;
    struct maq_capture *capture;
    struct maq_diag *diag;
};

static void open_world(struct world *w, const struct gen_job *job)
{
    char folder[] = "/tmp/maq-live-XXXXXX", path[RANKS][48];
    const char *paths[RANKS];
    *w = (struct world){.n = job->tp * job->pp * job->dp, .diag = maq_diag_new()};
    assert_non_null(mkdtemp(folder));
    for (uint32_t r = 0; r < w->n; r++) {
        gen_job_rank(job, &w->rank[r], r);
        snprintf(path[r], sizeof path[r], "%s/%u", folder, r);
        gen_write(&w->rank[r], paths[r] = path[r]);
    }
    assert_int_equal(maq_capture_of_ranks(&w->capture, paths, w->n, w->diag), MAQ_OK);
    for (uint32_t r = 0; r < w->n; r++)
        unlink(path[r]);
    rmdir(folder);
}

static void close_world(struct world *w)
{
    for (uint32_t r = 0; r < w->n; r++)
        gen_free(&w->rank[r]);
    maq_capture_free(w->capture);
    maq_diag_free(w->diag);
}

/* --- a live rank --- */

struct live_rank {
    const struct gen_rank *g;
    struct maq_shm *meet;
    double slow;
    int64_t end;
    pthread_t thread;
    bool started;
};

struct clocks {
    int64_t host, stream[8], event[16];
    uint32_t colls[32], sends[32][64], recvs[32][64];
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t meet_others(struct live_rank *l, struct clocks *c, const struct maq_rec *rec, int64_t t)
{
    uint32_t comm = MAQ_REC_COLL_COMM(rec->id);
    const struct maq_rec_comm *m = &l->g->comm[comm];
    bool coll = rec->kind == MAQ_REC_COLL, sends = rec->kind == MAQ_REC_SEND;
    uint32_t from = sends ? m->rank : rec->arg, to = sends ? rec->arg : m->rank;
    uint64_t a = coll ? m->lineage : maq_shm_message(m->lineage, from, to);
    uint64_t b = coll ? c->colls[comm]++ : sends ? c->sends[comm][to]++ : c->recvs[comm][from]++;
    struct maq_shm_slot *slot = maq_shm_join(l->meet, a, b, coll ? m->size : 2, 0);
    if (!slot)
        return -1;
    maq_shm_come(l->meet, slot, rec->kind == MAQ_REC_RECV, t, (int64_t)rec->ns);
    if (sends && rec->bytes <= MAQ_EAGER_BYTES)
        return t + (int64_t)rec->ns; /* its slot stays: nobody here waits for the receiver */
    for (uint32_t bell = maq_shm_bell(l->meet); !maq_shm_complete(slot); bell = maq_shm_bell(l->meet))
        if (!maq_shm_sleep(l->meet, bell) && maq_shm_stopped(l->meet))
            return -1;
    int64_t at = later(__atomic_load_n(&slot->at[0], __ATOMIC_ACQUIRE), coll ? 0 : slot->at[1]) + slot->ns;
    maq_shm_leave(l->meet, slot);
    return at;
}

static void one(struct live_rank *l, struct clocks *c, const struct maq_rec *rec)
{
    int64_t *stream = &c->stream[rec->stream < 8 ? rec->stream : 0];
    c->host += rec->host_ns;
    if (rec->kind == MAQ_REC_LAUNCH)
        *stream = later(*stream, c->host) + (int64_t)((double)rec->ns * l->slow + 0.5);
    if (rec->kind == MAQ_REC_COLL || rec->kind == MAQ_REC_SEND || rec->kind == MAQ_REC_RECV)
        *stream = meet_others(l, c, rec, later(*stream, c->host));
    if (rec->kind == MAQ_REC_EVENT_RECORD)
        c->event[rec->id] = later(*stream, c->host);
    if (rec->kind == MAQ_REC_STREAM_WAIT)
        *stream = later(*stream, c->event[rec->id]);
    if (rec->kind == MAQ_REC_STREAM_SYNC)
        c->host = later(c->host, *stream);
    for (int k = 0; rec->kind == MAQ_REC_DEVICE_SYNC && k < 8; k++)
        c->host = later(c->host, c->stream[k]);
}

static void *run_live(void *user)
{
    struct live_rank *l = user;
    struct clocks *c = calloc(1, sizeof *c);
    for (uint32_t i = 0; i < l->g->n_rec; i++)
        one(l, c, &l->g->rec[i]);
    l->end = c->host;
    free(c);
    return NULL;
}

/* --- tests --- */

static void hybrid(struct world *w, const uint32_t *live, uint32_t n, const char *slow)
{
    char path[] = "/tmp/maq-meet-XXXXXX";
    struct maq_shm_opts segment = {.world = w->n, .n_slots = 1 << 12, .live = live, .n_live = n};
    struct maq_shm meet;
    struct maq_replay_opts opts = MAQ_REPLAY_OPTS_INIT;
    struct maq_edit edit;
    struct maq_replay *full, *part;
    struct live_rank l[RANKS] = {{0}};
    if (slow) {
        assert_int_equal(maq_edit_slow(&edit, slow, w->capture, w->diag), MAQ_OK);
        opts.edit = &edit;
        opts.n_edits = 1;
    }
    assert_int_equal(maq_capture_replay(&full, w->capture, &opts, w->diag), MAQ_OK);
    int fd = mkstemp(path);
    close(fd);
    unlink(path);
    assert_int_equal(maq_shm_create(path, &segment), 0);
    assert_int_equal(maq_shm_open(&meet, path), 0);
    for (uint32_t i = 0; i < n; i++) {
        l[i] = (struct live_rank){.g = &w->rank[live[i]], .meet = &meet, .slow = 1};
        if (slow && edit.first == live[i])
            l[i].slow = edit.factor;
        assert_int_equal(pthread_create(&l[i].thread, NULL, run_live, &l[i]), 0);
    }
    assert_int_equal(maq_replay_live(&part, w->capture, live, n, &meet, NULL, &opts, w->diag), MAQ_OK);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(l[i].thread, NULL);
        assert_int_equal(l[i].end, full->end_ns[live[i]]);
    }
    for (uint32_t r = 0, k = 0; r < w->n; r++)
        if (k < n && live[k] == r)
            k++;
        else
            assert_int_equal(part->end_ns[r], full->end_ns[r]);
    maq_replay_free(full);
    maq_replay_free(part);
    maq_shm_close(&meet);
    unlink(path);
}

static const struct gen_job jobs[] = {
    {.tp = 1, .pp = 1, .dp = 8, .steps = 3, .layers = 2, .micro = 1, .members = true},
    {.tp = 2, .pp = 4, .dp = 2, .steps = 2, .layers = 2, .micro = 4, .message = 1 << 20, .members = true},
    {.tp = 2,
     .pp = 2,
     .dp = 4,
     .ep = 2,
     .steps = 2,
     .layers = 2,
     .micro = 4,
     .message = 2 << 20,
     .zero = true,
     .jitter = 20000},
    {.tp = 1,
     .pp = 2,
     .dp = 2,
     .steps = 2,
     .layers = 2,
     .micro = 1,
     .message = 8 << 20}, /* large messages, no overlap */
};

static void test_hybrid(void **state)
{
    static const uint32_t live[][3] = {{0}, {1, 3}, {0, 2, 3}};
    static const uint32_t n[] = {1, 2, 3};
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        struct world w;
        open_world(&w, &jobs[j]);
        for (size_t i = 0; i < 3; i++) {
            hybrid(&w, live[i], n[i], NULL);
            hybrid(&w, live[i], n[i], "rank:3=1.7x"); /* live or replayed */
            hybrid(&w, live[i], n[i], "rank:0=1.2x");
        }
        close_world(&w);
    }
}

static void *stop_soon(void *user)
{
    usleep(50000);
    maq_shm_stop(user);
    return NULL;
}

/* A live rank that never comes: the replay ends when it is stopped, or when it hears that the rank has ended. */
static void never_comes(bool ended)
{
    char path[] = "/tmp/maq-meet-XXXXXX";
    uint32_t live[1] = {0};
    struct world w;
    struct maq_shm meet;
    struct maq_replay *out = NULL;
    pthread_t stopper;
    atomic_bool flag;
    atomic_init(&flag, ended);
    open_world(&w, &jobs[0]);
    close(mkstemp(path));
    unlink(path);
    assert_int_equal(maq_shm_create(path, &(struct maq_shm_opts){.world = w.n, .n_slots = 64}), 0);
    assert_int_equal(maq_shm_open(&meet, path), 0);
    if (!ended)
        pthread_create(&stopper, NULL, stop_soon, &meet);
    assert_int_equal(maq_replay_live(&out, w.capture, live, 1, &meet, &flag, NULL, w.diag), MAQ_NO);
    assert_null(out);
    if (!ended)
        pthread_join(stopper, NULL);
    assert_int_equal(maq_shm_stopped(&meet), !ended);
    maq_shm_close(&meet);
    unlink(path);
    close_world(&w);
}

static void test_stopped(void **state)
{
    (void)state;
    never_comes(false);
}

static void test_ended(void **state)
{
    (void)state;
    never_comes(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hybrid), cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_ended)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
