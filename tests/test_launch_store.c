/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_launch_store.c - the rendezvous store against a client of its protocol, in both dialects: real semantics where all ranks are
 * live, made-up answers where they are not, and nonsense. maq-test: threads
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/store/gloo.h"
#include "launch/store/store.h"
#include "shim/link.h"

/* ---- a server in a thread, and clients ---- */

struct served {
    struct maq_loop loop;
    struct maq_store store;
    pthread_t thread;
    atomic_bool stop;
};

static void *serve(void *user)
{
    struct served *s = user;
    while (!atomic_load(&s->stop)) {
        maq_loop_turn(&s->loop, 5);
        maq_store_tick(&s->store);
    }
    return NULL;
}

static void serve_begin(struct served *s, uint32_t world, uint32_t live, bool at_once)
{
    memset(s, 0, sizeof *s);
    assert_int_equal(maq_store_open(&s->store, &s->loop, world, live, at_once, NULL), MAQ_OK);
    s->store.patience_s = 0.05;
}

static void serve_start(struct served *s)
{
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* Joins the thread and closes; `invented`: keys that were made up by then. */
static void serve_end(struct served *s, uint32_t invented)
{
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->store.invented, invented);
    maq_store_close(&s->store);
    maq_loop_fini(&s->loop);
}

enum { OLD_SET = 0, OLD_GET = 2, OLD_ADD = 3, OLD_WAIT = 5, OLD_DELETE = 8 };
enum {
    VALIDATE,
    SET,
    COMPARE_SET,
    GET,
    ADD,
    CHECK,
    WAIT,
    NUMKEYS,
    DELETE_KEY,
    APPEND,
    MULTI_GET,
    MULTI_SET,
    CANCEL_WAIT,
    PING,
    QUEUE_PUSH,
    QUEUE_POP,
    QUEUE_LEN,
    LIST_KEYS
};

static int dial(const struct served *s, bool validate)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(s->store.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {20, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    if (validate)
        assert_int_equal(send(fd, "\0\xce\xf7\x85\x3c", 5, MSG_NOSIGNAL), 5);
    return fd;
}

static void put(int fd, const void *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void put_byte(int fd, int byte)
{
    unsigned char b = (unsigned char)byte;
    put(fd, &b, 1);
}

static void put_number(int fd, uint64_t n)
{
    put(fd, &n, sizeof n);
}

static void put_text(int fd, const char *text)
{
    put_number(fd, strlen(text));
    put(fd, text, strlen(text));
}

static void get(int fd, void *out, size_t n)
{
    assert_int_equal(recv(fd, out, n, MSG_WAITALL), (ssize_t)n);
}

static int64_t get_number(int fd)
{
    int64_t n;
    get(fd, &n, sizeof n);
    return n;
}

static int get_byte(int fd)
{
    unsigned char b;
    get(fd, &b, 1);
    return b;
}

static void get_text(int fd, const char *want)
{
    char text[256];
    int64_t n = get_number(fd);
    assert_in_range(n, 0, sizeof text);
    if (n > 0)
        get(fd, text, (size_t)n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, (size_t)n);
}

static void ask_keyed(int fd, int query, const char *key)
{
    put_byte(fd, query);
    put_text(fd, key);
}

static int64_t add(int fd, int query, const char *key, int64_t by)
{
    ask_keyed(fd, query, key);
    put_number(fd, (uint64_t)by);
    return get_number(fd);
}

static void set(int fd, int query, const char *key, const char *value)
{
    ask_keyed(fd, query, key);
    put_text(fd, value);
}

static void ask_several(int fd, int query, const char *a, const char *b)
{
    put_byte(fd, query);
    put_number(fd, b ? 2 : 1);
    put_text(fd, a);
    if (b)
        put_text(fd, b);
}

/* ---- all ranks live: the store that torch.distributed knows ---- */

static void test_all_live(void **state)
{
    struct served s;
    uint32_t nonce = 77, back;
    serve_begin(&s, 2, 2, false);
    serve_start(&s);
    int a = dial(&s, true), b = dial(&s, true);
    put_byte(a, PING);
    put(a, &nonce, sizeof nonce);
    get(a, &back, sizeof back);
    assert_int_equal(back, nonce);

    assert_int_equal(add(a, ADD, "init/", 1), 1);
    assert_int_equal(add(b, ADD, "init/", 1), 2);
    ask_keyed(a, GET, "init/");
    get_text(a, "2");

    ask_several(a, WAIT, "k", "l"); /* neither is there: b sets one, then the other */
    set(b, SET, "k", "one");
    ask_several(b, CHECK, "k", "l");
    assert_int_equal(get_byte(b), 1);
    set(b, SET, "l", "");
    assert_int_equal(get_byte(a), 0);
    ask_several(a, MULTI_GET, "k", "l");
    get_text(a, "one");
    get_text(a, "");
    ask_several(b, CHECK, "k", "l");
    assert_int_equal(get_byte(b), 0);

    set(a, APPEND, "k", "+two");
    ask_keyed(a, GET, "k");
    get_text(a, "one+two");

    ask_keyed(a, COMPARE_SET, "c"); /* a new key, with nothing expected */
    put_text(a, "");
    put_text(a, "x");
    get_text(a, "x");
    ask_keyed(a, COMPARE_SET, "c");
    put_text(a, "y");
    put_text(a, "z");
    get_text(a, "x");
    ask_keyed(a, COMPARE_SET, "c");
    put_text(a, "x");
    put_text(a, "z");
    get_text(a, "z");

    put_byte(a, NUMKEYS);
    assert_int_equal(get_number(a), 4); /* init/, k, l, c */
    ask_keyed(a, DELETE_KEY, "c");
    assert_int_equal(get_number(a), 1);
    ask_keyed(a, DELETE_KEY, "c");
    assert_int_equal(get_number(a), 0);

    put_byte(a, MULTI_SET);
    put_number(a, 2);
    put_text(a, "m");
    put_text(a, "1");
    put_text(a, "n");
    put_text(a, "2");
    ask_several(a, MULTI_GET, "m", "n");
    get_text(a, "1");
    get_text(a, "2");

    put_byte(a, LIST_KEYS);
    assert_int_equal(get_number(a), 5);
    for (int i = 0; i < 5; i++)
        get_text(a, ((const char *[]){"init/", "k", "l", "m", "n"})[i]);

    ask_several(a, WAIT, "never", NULL);
    put_byte(a, CANCEL_WAIT);
    assert_int_equal(get_byte(a), 1);
    close(a);
    close(b);
    serve_end(&s, 0);
}

static void test_queues(void **state)
{
    struct served s;
    serve_begin(&s, 2, 2, false);
    serve_start(&s);
    int a = dial(&s, true), b = dial(&s, true);
    ask_keyed(a, QUEUE_POP, "q");
    assert_int_equal(get_number(a), 0);
    ask_several(a, WAIT, "q", NULL);
    set(b, QUEUE_PUSH, "q", "first");
    assert_int_equal(get_byte(a), 0);
    set(b, QUEUE_PUSH, "q", "second");
    ask_keyed(b, QUEUE_LEN, "q");
    assert_int_equal(get_number(b), 2);
    ask_keyed(a, QUEUE_POP, "q");
    assert_int_equal(get_number(a), 2);
    get_text(a, "first");
    ask_keyed(a, QUEUE_POP, "q");
    assert_int_equal(get_number(a), 1);
    get_text(a, "second");
    close(a);
    close(b);
    serve_end(&s, 0);
}

/* ---- one rank alone ---- */

/* torch 1.13 of rank 4095 of 8192: init/, the counter of the barrier, and the id of a communicator. */
static void test_alone_old(void **state)
{
    struct served s;
    char invented[MAQ_STORE_INVENTED], again[MAQ_STORE_INVENTED];
    serve_begin(&s, 8192, 1, true);
    serve_start(&s);
    int a = dial(&s, false);
    assert_int_equal(add(a, OLD_ADD, "init/", 1), 8192);
    assert_int_equal(add(a, OLD_ADD, "barrier", 1), 8192);
    assert_int_equal(add(a, OLD_ADD, "barrier", 0), 8192);
    assert_int_equal(add(a, OLD_ADD, "barrier", 1), 8193); /* the others came once */
    ask_several(a, OLD_WAIT, "default_pg/0//0", NULL);
    assert_int_equal(get_byte(a), 0);
    ask_keyed(a, OLD_GET, "default_pg/0//0");
    assert_int_equal(get_number(a), MAQ_STORE_INVENTED);
    get(a, invented, sizeof invented);
    assert_memory_equal(invented, MAQ_MADE_UP_MAGIC, 8);
    set(a, OLD_SET, "own", "mine");
    ask_keyed(a, OLD_GET, "own");
    get_text(a, "mine");
    ask_keyed(a, OLD_DELETE, "own");
    assert_int_equal(get_number(a), 1);
    close(a);
    serve_end(&s, 1);

    serve_begin(&s, 8192, 1, true); /* another slice invents the same */
    serve_start(&s);
    a = dial(&s, false);
    ask_several(a, OLD_WAIT, "default_pg/0//0", NULL);
    assert_int_equal(get_byte(a), 0);
    ask_keyed(a, OLD_GET, "default_pg/0//0");
    assert_int_equal(get_number(a), MAQ_STORE_INVENTED);
    get(a, again, sizeof again);
    assert_memory_equal(invented, again, sizeof again);
    close(a);
    serve_end(&s, 1);
}

/* A later pass: what slices set is given; what is missing is invented after a while only, and not for a CHECK. */
static void test_alone_given(void **state)
{
    struct served s;
    serve_begin(&s, 16, 1, false);
    maq_store_give(&s.store, MAQ_STR("id"), "recorded", 8);
    maq_store_give(&s.store, MAQ_STR("id"), "later", 5);
    serve_start(&s);
    int a = dial(&s, true), b = dial(&s, true);
    ask_several(a, CHECK, "exception_dump", NULL);
    assert_int_equal(get_byte(a), 1);
    ask_several(a, WAIT, "id", NULL);
    assert_int_equal(get_byte(a), 0);
    ask_keyed(a, GET, "id");
    get_text(a, "recorded");
    ask_several(a, WAIT, "thread", NULL);
    set(b, SET, "thread", "own"); /* another thread of the program, in time */
    assert_int_equal(get_byte(a), 0);
    ask_keyed(a, GET, "thread");
    get_text(a, "own");
    ask_several(a, WAIT, "nobody", NULL);
    assert_int_equal(get_byte(a), 0);
    close(a);
    close(b);
    serve_end(&s, 1);
}

/* ---- addresses of gloo ---- */

enum { RANKS = 4, HOST = 5, ADDRESS_AT = 16 + HOST, SAID = ADDRESS_AT + 136 + RANKS * 8 };

/* What one of four ranks says: its host, its address with `port`, and a number for each of them. */
static void said_by(char out[SAID], uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t host = HOST, bytes = 136, number;
    memset(out, 0, SAID);
    memcpy(out, &host, 8);
    memcpy(out + 8, "host7", HOST);
    memcpy(out + 8 + HOST, &bytes, 8);
    memcpy(out + ADDRESS_AT, &address, sizeof address);
    for (uint64_t i = 0; i < RANKS; i++) {
        number = 70 + i;
        memcpy(out + ADDRESS_AT + 136 + i * 8, &number, 8);
    }
}

static void set_said(int fd, const char *key, uint16_t port)
{
    char said[SAID];
    said_by(said, port);
    ask_keyed(fd, SET, key);
    put_number(fd, SAID);
    put(fd, said, SAID);
}

/* The value of a key is what a rank that is not there says. */
static struct maq_gloo_peer get_absent(int fd, const char *key)
{
    char value[SAID - HOST];
    struct maq_gloo_peer peer = {0, 0, 0};
    uint64_t number;
    ask_keyed(fd, GET, key);
    assert_int_equal(get_number(fd), sizeof value);
    get(fd, value, sizeof value);
    assert_true(maq_gloo_said((struct maq_str){value, sizeof value}));
    assert_true(maq_gloo_peer_of(&peer, (unsigned char *)value + 16 + 2));
    for (uint64_t i = 0; i < RANKS; i++) {
        memcpy(&number, value + 16 + 136 + i * 8, 8);
        assert_int_equal(number, i);
    }
    return peer;
}

/* One rank alone: addresses of the others are there at once when its own is, and say whose they are. */
static void test_gloo_alone(void **state)
{
    struct served s;
    char said[SAID], other[SAID];
    serve_begin(&s, 64, 1, false);
    s.store.patience_s = 1e9;
    said_by(said, 2000);
    said_by(other, 3000);
    maq_gloo_settle(said, SAID);
    maq_gloo_settle(other, SAID);
    assert_memory_equal(said, other, SAID); /* the same in every run */
    maq_store_give(&s.store, MAQ_STR("p/0/3"), said, SAID);
    serve_start(&s);
    int a = dial(&s, true);
    struct maq_gloo_peer given = get_absent(a, "p/0/3");
    assert_int_equal(given.rank, 3);
    assert_int_equal(given.n, RANKS);
    set_said(a, "p/0/1", 2000);
    ask_several(a, WAIT, "p/0/0", "p/0/1");
    assert_int_equal(get_byte(a), 0);
    struct maq_gloo_peer first = get_absent(a, "p/0/0");
    assert_int_equal(first.rank, 0);
    assert_true(first.group == given.group);
    assert_null(maq_store_find(&s.store, MAQ_STR("p/0/0"))->value); /* made when it is read, and not kept */
    set_said(a, "p/1/1", 2000);                                     /* another group */
    ask_several(a, WAIT, "p/1/2", NULL);
    assert_int_equal(get_byte(a), 0);
    assert_true(get_absent(a, "p/1/2").group != given.group);
    close(a);
    serve_end(&s, 2);
}

/* Two live ranks among four: they wait for each other, and for nobody else. */
static void test_gloo_live(void **state)
{
    static const uint32_t live[] = {1, 2};
    struct served s;
    struct timespec pause = {0, 100000000};
    char byte;
    serve_begin(&s, RANKS, 2, false);
    s.store.live_rank = live;
    maq_store_expect(&s.store, MAQ_STR("sub/1"));
    serve_start(&s);
    int a = dial(&s, true), b = dial(&s, true);
    set_said(a, "all/1", 2000);
    set_said(a, "sub/0", 2000);
    ask_several(a, WAIT, "all/3", "all/0");
    assert_int_equal(get_byte(a), 0);
    ask_several(a, WAIT, "all/2", "sub/1"); /* longer than the store has patience */
    nanosleep(&pause, NULL);
    assert_true(recv(a, &byte, 1, MSG_DONTWAIT) < 0);
    set_said(b, "all/2", 3000);
    set_said(b, "sub/1", 3000);
    assert_int_equal(get_byte(a), 0);
    close(a);
    close(b);
    serve_end(&s, 2);
}

/*
 * No answer waits for an acknowledgement: a client that asks, reads and asks again gets each answer within a turn, whereas TCP would have put
 * off the second piece of each for 40 ms. The bound leaves a busy machine room.
 */
static void test_at_once(void **state)
{
    enum { ASKED = 250 };
    struct served s;
    struct timespec from, to;
    char value[4];
    (void)state;
    serve_begin(&s, 2, 1, false);
    serve_start(&s);
    int a = dial(&s, true), yes = 1;
    assert_int_equal(setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), 0); /* as torch's client does */
    ask_keyed(a, SET, "key");
    put_number(a, sizeof value);
    put(a, "four", sizeof value);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < ASKED; i++) {
        ask_keyed(a, GET, "key");
        assert_int_equal(get_number(a), sizeof value);
        get(a, value, sizeof value);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double took_s = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    assert_true(took_s < 0.04 * ASKED / 2);
    close(a);
    serve_end(&s, 0);
}

/* What is nearly such a value is a value as any. */
static void test_gloo_nonsense(void **state)
{
    char said[SAID];
    uint64_t huge = UINT64_MAX - 7;
    uint32_t ranks;
    size_t n;
    said_by(said, 1);
    assert_true(maq_gloo_said((struct maq_str){said, SAID}));
    assert_true(maq_gloo_ranks(&ranks, (struct maq_str){said, SAID}));
    assert_int_equal(ranks, RANKS);
    assert_null(maq_gloo_absent(&n, MAQ_STR("p/x"), RANKS));
    assert_null(maq_gloo_absent(&n, MAQ_STR("p/4"), RANKS));
    for (size_t cut = 0; cut < SAID; cut++)
        assert_int_equal(maq_gloo_said((struct maq_str){said, cut}), cut >= ADDRESS_AT + 136 && (SAID - cut) % 8 == 0);
    memcpy(said, &huge, 8);
    assert_false(maq_gloo_said((struct maq_str){said, SAID}));
}

/* ---- nonsense ---- */

static void expect_end(int fd)
{
    char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void test_nonsense(void **state)
{
    struct served s;
    serve_begin(&s, 2, 1, true);
    serve_start(&s);
    int fd = dial(&s, true);
    put_byte(fd, 200);
    expect_end(fd);
    fd = dial(&s, true);
    put_byte(fd, GET);
    put_number(fd, UINT64_MAX);
    expect_end(fd);
    fd = dial(&s, true);
    put_byte(fd, WAIT);
    put_number(fd, UINT64_MAX);
    expect_end(fd);
    fd = dial(&s, false);
    put(fd, "GET / HTTP/1.1\r\n", 16);
    expect_end(fd);
    fd = dial(&s, true); /* a request in pieces */
    put_byte(fd, SET);
    put_number(fd, 3);
    put(fd, "a", 1);
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    put(fd, "bc", 2);
    put_text(fd, "v");
    ask_keyed(fd, GET, "abc");
    get_text(fd, "v");
    close(fd);
    serve_end(&s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_live),      cmocka_unit_test(test_queues),     cmocka_unit_test(test_alone_old),
        cmocka_unit_test(test_alone_given),   cmocka_unit_test(test_gloo_alone), cmocka_unit_test(test_gloo_live),
        cmocka_unit_test(test_gloo_nonsense), cmocka_unit_test(test_nonsense),   cmocka_unit_test(test_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
