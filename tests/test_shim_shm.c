/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_shm.c - the segment of meetings: whoever comes first, the same times and the same contributions; slots and
 * payloads are given back; whoever waits in vain is told.
 *
 * maq-test: threads
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/shm.h"

#define RANKS 8
#define ROUNDS 400

static char path[128];

static int fresh(void **state)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/maquette-meet-%d", folder ? folder : "/tmp", (int)getpid());
    (void)unlink(path);
    *state = path;
    return 0;
}

static int gone(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

static struct maq_shm opened(struct maq_shm_opts opts)
{
    struct maq_shm m;
    assert_int_equal(maq_shm_create(path, &opts), 0);
    assert_int_equal(maq_shm_open(&m, path), 0);
    return m;
}

/* --- many ranks at once ----------------------------------------------------------------------------------------------- */

struct rank {
    pthread_t thread;
    struct maq_shm *meet;
    uint32_t rank;
    int64_t at;        /* its virtual time */
    uint64_t gathered; /* hash of all that it got */
};

static bool wait_for(struct maq_shm *m, const struct maq_shm_slot *s)
{
    for (;;) {
        uint32_t bell = maq_shm_bell(m);
        if (maq_shm_complete(s))
            return true;
        if (!maq_shm_sleep(m, bell))
            return false;
    }
}

/* What a rank computes before round r: differs by rank and round. */
static int64_t work(uint32_t rank, uint32_t round)
{
    return (int64_t)(maq_rec_mix(rank, round) % 1000) + 1;
}

static void *one_rank(void *arg)
{
    struct rank *me = arg;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        me->at += work(me->rank, round);
        uint32_t word[2] = {me->rank, round};
        struct maq_shm_slot *s = maq_shm_join(me->meet, 77, round, RANKS, sizeof word);
        if (!s)
            return NULL;
        maq_shm_put(me->meet, s, me->rank, word, sizeof word);
        maq_shm_come(me->meet, s, 0, me->at, 10);
        if (!wait_for(me->meet, s))
            return NULL;
        me->at = maq_shm_ends(s, MAQ_SHM_MEMBER, 0, 10);
        for (uint32_t i = 0; i < RANKS; i++) {
            const void *got = maq_shm_got(me->meet, s, i);
            me->gathered = got ? maq_rec_hash(got, sizeof word, me->gathered) : 0;
        }
        maq_shm_leave(me->meet, s);
    }
    return me;
}

/* Eight ranks, one collective after another: time is the sum of the slowest of each round. A segment of few slots and of
 * little room is enough, since both are given back. */
static void test_collectives(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = RANKS, .n_slots = 4, .data_bytes = 4096});
    struct rank ranks[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.meet = &m, .rank = i};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, one_rank, &ranks[i]), 0);
    }
    int64_t expected = 0;
    uint64_t hash = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int64_t slowest = 0;
        for (uint32_t i = 0; i < RANKS; i++) {
            slowest = work(i, round) > slowest ? work(i, round) : slowest;
            hash = maq_rec_hash((uint32_t[]){i, round}, 8, hash);
        }
        expected += slowest + 10;
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        void *ended;
        pthread_join(ranks[i].thread, &ended);
        assert_non_null(ended);
        assert_int_equal(ranks[i].at, expected);
        assert_int_equal(ranks[i].gathered, hash);
    }
    for (uint64_t i = 0; i < m.head->n_slots; i++)
        assert_true(m.slot[i].state == 0 || m.slot[i].state == 3);
    maq_shm_close(&m);
}

/* --- messages --------------------------------------------------------------------------------------------------------- */

static void ends(struct maq_shm *m, uint64_t nth, uint64_t bytes, int64_t sent, int64_t posted, int64_t sender,
                 int64_t receiver)
{
    struct maq_shm_slot *s = maq_shm_join(m, maq_shm_message(5, 1, 2), nth, 2, 0);
    maq_shm_come(m, s, 0, sent, 30);
    if (bytes <= MAQ_EAGER_BYTES)
        assert_int_equal(maq_shm_ends(s, MAQ_SHM_SENDER, bytes, 30), sender); /* before anybody receives */
    assert_false(maq_shm_complete(s));
    assert_ptr_equal(maq_shm_join(m, maq_shm_message(5, 1, 2), nth, 2, 0), s);
    maq_shm_come(m, s, 1, posted, 30);
    assert_true(maq_shm_complete(s));
    assert_int_equal(maq_shm_ends(s, MAQ_SHM_SENDER, bytes, 30), sender);
    assert_int_equal(maq_shm_ends(s, MAQ_SHM_RECEIVER, bytes, 30), receiver);
    maq_shm_leave(m, s);
    maq_shm_leave(m, s);
    assert_int_equal(s->state, 0);
}

static void test_messages(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 4});
    ends(&m, 0, MAQ_EAGER_BYTES, 100, 500, 130, 530);
    ends(&m, 1, MAQ_EAGER_BYTES, 500, 100, 530, 530);
    ends(&m, 2, MAQ_EAGER_BYTES + 1, 100, 500, 530, 530);
    ends(&m, 3, MAQ_EAGER_BYTES + 1, 500, 100, 530, 530);
    maq_shm_close(&m);
}

/* Slots that lie behind one another's are found through graves, and graves are used again. */
static void test_probing(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 4, .n_slots = 3});
    struct maq_shm_slot *s[3];
    for (uint64_t i = 0; i < 3; i++)
        s[i] = maq_shm_join(&m, 1, i, 1, 0);
    for (uint64_t i = 0; i < 3; i++)
        assert_ptr_equal(maq_shm_join(&m, 1, i, 1, 0), s[i]);
    maq_shm_leave(&m, s[1]);
    assert_int_equal(s[1]->state, 3);
    assert_ptr_equal(maq_shm_join(&m, 1, 0, 1, 0), s[0]);
    assert_ptr_equal(maq_shm_join(&m, 1, 2, 1, 0), s[2]);
    assert_ptr_equal(maq_shm_join(&m, 9, 9, 1, 0), s[1]);
    assert_null(maq_shm_join(&m, 8, 8, 1, 0)); /* full: everybody gives up */
    assert_int_equal(errno, ENOSPC);
    assert_true(maq_shm_stopped(&m));
    maq_shm_close(&m);
}

static void test_payload_limits(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 4});
    struct maq_shm_slot *s = maq_shm_join(&m, 1, 1, 2, MAQ_SHM_PAYLOAD); /* two of them are too much */
    maq_shm_put(&m, s, 0, "x", 1);
    assert_null(maq_shm_got(&m, s, 0));
    s = maq_shm_join(&m, 1, 2, 2, 8);
    maq_shm_put(&m, s, 1, "seven..", 8);
    maq_shm_put(&m, s, 2, "beside", 7);
    assert_null(maq_shm_got(&m, s, 0)); /* nobody put anything there */
    assert_string_equal(maq_shm_got(&m, s, 1), "seven..");
    assert_null(maq_shm_got(&m, s, 2));
    maq_shm_close(&m);
}

/* --- who waits in vain ------------------------------------------------------------------------------------------------ */

static void test_stop(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 2});
    struct maq_shm_slot *s = maq_shm_join(&m, 1, 1, 2, 0);
    maq_shm_come(&m, s, 0, 1, 1);
    maq_shm_stop(&m);
    assert_false(wait_for(&m, s));
    maq_shm_close(&m);
}

static void test_owner_dies(void **state)
{
    (void)state;
    pid_t owner = fork();
    if (owner == 0)
        _exit(0);
    waitpid(owner, NULL, 0);
    struct maq_shm m = opened((struct maq_shm_opts){.world = 2, .owner = (uint32_t)owner});
    struct maq_shm_slot *s = maq_shm_join(&m, 1, 1, 2, 0);
    maq_shm_come(&m, s, 0, 1, 1);
    for (int i = 0; i < 10000; i++)
        maq_shm_watch(&m);
    assert_true(maq_shm_stopped(&m));
    assert_false(wait_for(&m, s));
    maq_shm_close(&m);
}

static void test_patience(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 2});
    m.heard_ns = -MAQ_SHM_PATIENCE_NS; /* long ago */
    struct maq_shm_slot *s = maq_shm_join(&m, 1, 1, 2, 0);
    assert_false(wait_for(&m, s));
    maq_shm_close(&m);
}

/* --- the file --------------------------------------------------------------------------------------------------------- */

static void test_live(void **state)
{
    (void)state;
    struct maq_shm m = opened((struct maq_shm_opts){.world = 8192, .live = (uint32_t[]){0, 4095}, .n_live = 2});
    assert_true(maq_shm_lives(&m, 0) && maq_shm_lives(&m, 4095));
    assert_false(maq_shm_lives(&m, 1) || maq_shm_lives(&m, 4094) || maq_shm_lives(&m, 8192));
    maq_shm_close(&m);
}

static void damage(size_t at, uint64_t value, size_t bytes)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, (long)at, SEEK_SET);
    fwrite(&value, bytes, 1, f);
    fclose(f);
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        size_t at, bytes;
        uint64_t value;
    } bad[] = {
        {0, 1, 'x'}, {8, 4, 2},           {16, 8, UINT64_MAX}, {16, 8, 0},
        {24, 8, 1},  {24, 8, UINT64_MAX}, {32, 8, UINT64_MAX}, {56, 8, 12},
    };
    struct maq_shm m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(maq_shm_create(path, &(struct maq_shm_opts){.world = 64, .n_slots = 4}), 0);
        damage(bad[i].at, bad[i].value, bad[i].bytes);
        assert_int_equal(maq_shm_open(&m, path), EPROTO);
        unlink(path);
    }
    assert_int_equal(maq_shm_open(&m, path), ENOENT);
    fclose(fopen(path, "wb"));
    assert_int_equal(maq_shm_open(&m, path), EPROTO);
    assert_int_equal(maq_shm_create(path, &(struct maq_shm_opts){.world = 64}), EEXIST);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fresh, gone)
    const struct CMUnitTest tests[] = {
        CASE(test_collectives), CASE(test_messages), CASE(test_probing), CASE(test_payload_limits), CASE(test_stop),
        CASE(test_owner_dies),  CASE(test_patience), CASE(test_live),    CASE(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
