/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_input_record.c - whether a slice would be told the same: exchanges, single contributions, keys of the store, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/input_record.h"
#include "launch/private_folder.h"

enum { CHANNEL = 77, OTHER = 78, RANK = 1, N = 4 };

static char path[64];

struct file {
    char bytes[4096];
    size_t n;
};

static void add(struct file *f, const void *bytes, size_t n)
{
    assert_true(f->n + n <= sizeof f->bytes);
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static struct file begun(void)
{
    struct file f = {.n = 0};
    add(&f, &(struct maq_input){.kind = MAQ_INPUT_HEAD}, sizeof(struct maq_input));
    return f;
}

/* Member i said 10 i in an exchange of four, of whom those in `said` had spoken. */
static void add_exchange(struct file *f, unsigned said, bool steady)
{
    struct maq_input g = {.kind = MAQ_INPUT_EXCHANGE,
                          .channel = CHANNEL,
                          .rank = RANK,
                          .n = N,
                          .root = MAQ_REC_NONE,
                          .result = sizeof(uint32_t),
                          .steady = steady};
    add(f, &g, sizeof g);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t word = 10 * i;
        uint64_t hash = maq_input_hash(&word, sizeof word, said >> i & 1);
        add(f, &hash, sizeof hash);
    }
}

static bool same(const struct file *f, const struct maq_contributions *t)
{
    assert_int_equal(maq_folder_write(path, f->bytes, f->n, NULL), MAQ_OK);
    return maq_input_record_same(path, t, RANK);
}

static void say(struct maq_contributions *t, uint64_t channel, uint32_t rank, uint32_t word)
{
    struct maq_contribution said = {
        .channel = channel, .rank = rank, .by = rank, .n = sizeof word, .bytes = memcpy(malloc(4), &word, 4)};
    assert_int_equal(maq_contributions_add(t, &said, NULL), MAQ_OK);
    free((void *)(uintptr_t)said.bytes);
    maq_contributions_settle(t);
}

static void give_key(struct maq_contributions *t, uint32_t by, const char *key, const char *value)
{
    struct maq_store store = {.world = 1};
    maq_store_set(&store, maq_str_of(key), value, strlen(value));
    assert_int_equal(maq_contributions_add_store(t, by, &store, NULL), MAQ_OK);
    maq_contributions_settle(t);
    store.server.fd = -1;
    maq_store_close(&store);
}

static void test_exchange(void **state)
{
    struct file f = begun(), loose = begun();
    struct maq_contributions t;
    (void)state;
    add_exchange(&f, 1 << 0 | 1 << RANK, true);
    add_exchange(&loose, 1 << 0 | 1 << RANK, false);
    maq_contributions_init(&t);
    assert_false(same(&f, &t)); /* what member 0 had said is gone */
    say(&t, CHANNEL, 0, 0);
    assert_true(same(&f, &t));
    assert_true(same(&loose, &t));
    say(&t, CHANNEL, RANK, 999); /* its own is not told it */
    say(&t, OTHER, 2, 5);
    assert_true(same(&loose, &t));
    say(&t, CHANNEL, 2, 20); /* as was guessed */
    assert_true(same(&f, &t));
    assert_false(same(&loose, &t)); /* what is guessed of 3 may be something else by now */
    say(&t, CHANNEL, 3, 30);
    assert_false(same(&f, &t)); /* nothing is guessed any more, and members are known */
    maq_contributions_fini(&t);
    maq_contributions_init(&t);
    say(&t, CHANNEL, 0, 0);
    say(&t, CHANNEL, 2, 21);
    assert_false(same(&f, &t)); /* not as was guessed */
    maq_contributions_fini(&t);
}

static void test_lookups(void **state)
{
    uint32_t word = 5;
    struct maq_input none = {.kind = MAQ_INPUT_LOOKUP, .channel = OTHER, .rank = 2}, found = none;
    struct file a = begun(), b = begun();
    struct maq_contributions t;
    (void)state;
    found.result = maq_input_hash(&word, sizeof word, true);
    add(&a, &none, sizeof none);
    add(&b, &found, sizeof found);
    maq_contributions_init(&t);
    say(&t, OTHER, 3, 1);
    assert_true(same(&a, &t));
    assert_false(same(&b, &t));
    say(&t, OTHER, 2, 5);
    assert_true(same(&b, &t));
    assert_false(same(&a, &t));
    maq_contributions_fini(&t);
}

/* A collective of `places` reads the upper half of each word; runs are (place, word there, whether it was said). */
static void add_reads(struct file *f, uint32_t places, const uint32_t (*run)[3], uint32_t n)
{
    uint64_t pair[2] = {2, 2};
    struct maq_input g = {.kind = MAQ_INPUT_READS, .channel = CHANNEL, .rank = RANK, .root = places};
    g.n = 2 * (n + 1);
    g.result = sizeof(uint32_t);
    add(f, &g, sizeof g);
    add(f, pair, sizeof pair);
    for (uint32_t i = 0; i < n; i++) {
        pair[0] = run[i][0];
        pair[1] = maq_input_hash((const char *)&run[i][1] + 2, 2, run[i][2]);
        add(f, pair, sizeof pair);
    }
}

/* 8,192 ranks, of which 0 and 100 had spoken; whoever had not was taken to say what the one before him did. */
static void test_reads(void **state)
{
    enum { LOW = 0x20001, HIGH = 0x50000 };
    static const uint32_t run[][3] = {{0, LOW, 1}, {1, LOW, 0}, {100, HIGH, 1}, {101, HIGH, 0}};
    struct file f = begun(), none = begun();
    struct maq_contributions t;
    (void)state;
    add_reads(&f, 8192, run, 4);
    add_reads(&none, 8192, run + 1, 1); /* begins behind rank 0, where it is not looked at */
    maq_contributions_init(&t);
    say(&t, CHANNEL, 0, LOW);
    assert_false(same(&f, &t)); /* what 100 had said is gone */
    say(&t, CHANNEL, 100, HIGH);
    assert_true(same(&f, &t));
    say(&t, CHANNEL, RANK, 999); /* its own it is not told */
    say(&t, CHANNEL, 50, LOW);
    say(&t, CHANNEL, 8191, HIGH + 77); /* the lower half is not read */
    assert_true(same(&f, &t));
    assert_false(same(&none, &t));
    struct maq_contribution longer = {.channel = CHANNEL, .rank = 60, .by = 60, .n = 8, .bytes = "12345678"};
    assert_int_equal(maq_contributions_add(&t, &longer, NULL), MAQ_OK); /* another size is not taken */
    maq_contributions_settle(&t);
    assert_true(same(&f, &t));
    say(&t, CHANNEL, 99, HIGH);
    assert_false(same(&f, &t)); /* as 100 says, and not as was supposed */
    maq_contributions_fini(&t);
}

static bool supposed(const struct file *f)
{
    assert_int_equal(maq_folder_write(path, f->bytes, f->n, NULL), MAQ_OK);
    return maq_input_record_unsaid(path).supposed;
}

/* Bytes that others are taken to say: in a collective of bytes, but for one's own; and where a look-up took another's. */
static void test_supposed(void **state)
{
    static const uint32_t own[][3] = {{0, 1, 1}, {RANK, 2, 0}, {RANK + 1, 3, 1}},
                          others[][3] = {{0, 1, 1}, {RANK, 2, 0}};
    struct file f = begun(), g = begun(), h = begun();
    struct maq_input none = {.kind = MAQ_INPUT_LOOKUP, .channel = OTHER, .rank = 2};
    (void)state;
    add_reads(&f, N, own, 3);
    add_reads(&g, N, others, 2);
    assert_false(supposed(&g)); /* numbers */
    ((struct maq_input *)(void *)f.bytes)[1].steady = 1;
    ((struct maq_input *)(void *)g.bytes)[1].steady = 1;
    assert_false(supposed(&f)); /* nobody's but its own */
    assert_true(supposed(&g));
    add(&h, &none, sizeof none);
    assert_false(supposed(&h)); /* nothing was taken for it */
    none.steady = 1;
    add(&h, &none, sizeof none);
    assert_true(supposed(&h));
}

/* A slice was given "a" and asked for it and for "b", which nobody had set. */
static void test_keys(void **state)
{
    struct file f = begun();
    struct maq_contributions t, more;
    struct maq_store store = {.world = 1};
    (void)state;
    maq_contributions_init(&t);
    give_key(&t, 0, "a", "one");
    give_key(&t, 0, "not asked for", "x");
    maq_contributions_give(&t, &store, RANK);
    maq_store_name(&store, maq_str_of("a"));
    maq_store_name(&store, maq_str_of("b"));
    maq_store_set(&store, maq_str_of("a"), "another", 7); /* by itself, later */
    assert_int_equal(maq_folder_write(path, f.bytes, f.n, NULL), MAQ_OK);
    assert_int_equal(maq_input_record_add_store(path, &store, NULL), MAQ_OK);
    assert_true(maq_input_record_same(path, &t, RANK));
    give_key(&t, 2, "new, and not asked for", "y");
    give_key(&t, RANK, "b", "its own");
    assert_true(maq_input_record_same(path, &t, RANK));
    give_key(&t, 0, "b", "two");
    assert_false(maq_input_record_same(path, &t, RANK));
    maq_contributions_init(&more);
    assert_false(maq_input_record_same(path, &more, RANK)); /* "a" is gone */
    give_key(&more, 0, "a", "uno");
    assert_false(maq_input_record_same(path, &more, RANK));
    maq_contributions_fini(&more);
    maq_contributions_fini(&t);
    store.listed = true; /* it looked at all keys: any new one counts */
    maq_contributions_init(&t);
    give_key(&t, 0, "a", "one");
    give_key(&t, 0, "not asked for", "x");
    assert_int_equal(maq_folder_write(path, f.bytes, f.n, NULL), MAQ_OK);
    assert_int_equal(maq_input_record_add_store(path, &store, NULL), MAQ_OK);
    assert_true(maq_input_record_same(path, &t, RANK));
    give_key(&t, 2, "new", "y");
    assert_false(maq_input_record_same(path, &t, RANK));
    maq_contributions_fini(&t);
    store.server.fd = -1;
    maq_store_close(&store);
}

/* No file, and every cut of one. */
static void test_damage(void **state)
{
    struct file f = begun();
    struct maq_contributions t;
    struct maq_store store = {.world = 1};
    (void)state;
    maq_contributions_init(&t);
    unlink(path);
    assert_int_equal(maq_input_record_add_store(path, &store, NULL), MAQ_OK); /* the device did not begin it */
    assert_true(access(path, F_OK) != 0);
    assert_false(maq_input_record_same(path, &t, RANK));
    add_exchange(&f, 1 << RANK, true);
    size_t whole = f.n;
    assert_true(same(&f, &t));
    for (f.n = 0; f.n < whole; f.n++)
        assert_true(same(&f, &t) == (f.n == sizeof(struct maq_input))); /* the head alone */
    f.n = 0;
    assert_int_equal(maq_folder_write(path, f.bytes, 0, NULL), MAQ_OK); /* the device gave it up */
    maq_store_name(&store, maq_str_of("a"));
    assert_int_equal(maq_input_record_add_store(path, &store, NULL), MAQ_OK);
    assert_false(maq_input_record_same(path, &t, RANK));
    store.server.fd = -1;
    maq_store_close(&store);
    f.n = whole;
    f.bytes[offsetof(struct maq_input, kind)] = 99;
    assert_false(same(&f, &t));
    f = begun();
    add_reads(&f, 8192, (const uint32_t[][3]){{0, 1, 0}}, 1);
    assert_true(same(&f, &t));
    struct maq_input *g = (struct maq_input *)(void *)(f.bytes + sizeof *g);
    for (uint32_t i = 0; i < 3; i++) { /* a part outside of a contribution, an odd number of words, runs that go back */
        struct file bad = f;
        g = (struct maq_input *)(void *)(bad.bytes + sizeof *g);
        *(i == 0 ? (uint32_t *)&g->result : i == 1 ? &g->n : &g->root) = i == 1 ? 3 : 0;
        bad.n -= i == 1 ? sizeof(uint64_t) : 0;
        assert_false(same(&bad, &t));
    }
    maq_contributions_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange), cmocka_unit_test(test_lookups), cmocka_unit_test(test_reads),
        cmocka_unit_test(test_supposed), cmocka_unit_test(test_keys),    cmocka_unit_test(test_damage),
    };
    snprintf(path, sizeof path, "/tmp/maq-given-%d", (int)getpid());
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
