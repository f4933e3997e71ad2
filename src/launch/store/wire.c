/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - the store on a socket: the protocol of torch.distributed's TCPStore.
 *
 * A request is a byte that names it and its arguments: keys and values with their length (uint64) before them, numbers as they lie
 * in memory. Two dialects, told apart by the first bytes of a connection:
 *
 *   torch 1.13, 2.0    SET 0, COMPARE_SET 1, GET 2, ADD 3, CHECK 4, WAIT 5, GETNUMKEYS 6, WATCH_KEY 7, DELETE_KEY 8, APPEND 9,
 *                      MULTI_GET 10, MULTI_SET 11, CANCEL_WAIT 12
 *   torch 2.2 on       VALIDATE 0 with a magic number first; then SET 1 ... GETNUMKEYS 7, DELETE_KEY 8, APPEND 9, MULTI_GET 10,
 *                      MULTI_SET 11, CANCEL_WAIT 12, PING 13, QUEUE_PUSH 14, QUEUE_POP 15, QUEUE_LEN 16, LIST_KEYS 17; the server
 *                      on libuv and the older one are asked alike
 *
 * Answers: COMPARE_SET, GET a value with its length; MULTI_GET one after the other; ADD, GETNUMKEYS, DELETE_KEY,
 * QUEUE_LEN an int64; CHECK 0 = all there, 1 = not; WAIT 0, when all are there; CANCEL_WAIT 1; PING its number;
 * QUEUE_POP how many there were (int64) and the first; LIST_KEYS how many (int64) and each with its length; SET,
 * APPEND, MULTI_SET, QUEUE_PUSH nothing. Source: torch/csrc/distributed/c10d/TCPStore.cpp, TCPStoreBackend.{hpp,cpp},
 * TCPStoreLibUvBackend.cpp of pytorch/pytorch, whose limits on lengths are here too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "launch/codes.h"
#include "launch/store/store.h"

#define PATIENCE_S 0.25 /* for another thread of the program to set what one waits for */
#define VALIDATE_MAGIC 0x3C85F7CEu
#define KEY_MAX 8192u
#define VALUE_MAX (8u << 20)
#define KEYS_MAX (128u * 1024)

enum dialect { UNKNOWN, OLD, NEW };

enum query {
    SET,
    COMPARE_SET,
    GET,
    ADD,
    CHECK,
    WAIT,
    GETNUMKEYS,
    DELETE_KEY,
    APPEND,
    MULTI_GET,
    MULTI_SET,
    CANCEL_WAIT,
    PING,
    QUEUE_PUSH,
    QUEUE_POP,
    QUEUE_LEN,
    LIST_KEYS,
    WATCH_KEY,
    VALIDATE,
    NONSENSE
};

static const uint8_t old_queries[] = {SET,       COMPARE_SET, GET,    ADD,       CHECK,     WAIT,       GETNUMKEYS,
                                      WATCH_KEY, DELETE_KEY,  APPEND, MULTI_GET, MULTI_SET, CANCEL_WAIT};
static const uint8_t new_queries[] = {VALIDATE,    SET,        COMPARE_SET, GET,       ADD,       CHECK,
                                      WAIT,        GETNUMKEYS, DELETE_KEY,  APPEND,    MULTI_GET, MULTI_SET,
                                      CANCEL_WAIT, PING,       QUEUE_PUSH,  QUEUE_POP, QUEUE_LEN, LIST_KEYS};

/* Keys that a connection waits for. */
struct waits {
    double since_s;
    uint64_t n;
    struct maq_str key[]; /* their text follows */
};

/* What is left of a request. */
struct request {
    const char *at;
    size_t n;
    bool cut, bad; /* the rest has not come yet; it never makes sense */
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_bytes(void *out, struct request *r, size_t n)
{
    memset(out, 0, n);
    if (r->cut || r->bad)
        return;
    r->cut = r->n < n;
    if (r->cut)
        return;
    memcpy(out, r->at, n);
    r->at += n;
    r->n -= n;
}

static struct maq_str read_text(struct request *r, size_t most)
{
    uint64_t n;
    struct maq_str out = {r->at, 0};
    read_bytes(&n, r, sizeof n);
    r->bad = r->bad || n > most;
    r->cut = r->cut || r->n < n;
    if (r->cut || r->bad)
        return out;
    out = (struct maq_str){r->at, (size_t)n};
    r->at += n;
    r->n -= (size_t)n;
    return out;
}

static struct maq_str read_key(struct request *r)
{
    return read_text(r, KEY_MAX);
}

static struct maq_str read_value(struct request *r)
{
    return read_text(r, VALUE_MAX);
}

static uint64_t read_count(struct request *r)
{
    uint64_t n;
    read_bytes(&n, r, sizeof n);
    r->bad = r->bad || n > KEYS_MAX;
    return r->bad ? 0 : n;
}

static void answer_number(struct maq_conn *conn, int64_t n)
{
    maq_conn_send(conn, &n, sizeof n);
}

static void answer_value(struct maq_conn *conn, struct maq_str value)
{
    answer_number(conn, (int64_t)value.len);
    maq_conn_send(conn, value.ptr, value.len);
}

static void answer_byte(struct maq_conn *conn, uint8_t byte)
{
    maq_conn_send(conn, &byte, 1);
}

/* ---- waiting ---- */

/* Whether all keys are there. Keys that no live rank will set are invented, at once or after a while. */
static bool all_there(struct maq_store *s, const struct waits *w, double now)
{
    bool all = true, late = s->at_once || now - w->since_s >= s->patience_s;
    for (uint64_t i = 0; i < w->n; i++) {
        bool has = maq_store_has(s, w->key[i]);
        if (!has && maq_store_nobody_comes(s, w->key[i], late)) {
            maq_store_invent(s, w->key[i]);
            has = maq_store_has(s, w->key[i]);
        }
        all = all && has;
    }
    return all;
}

static void forget(void *store, struct maq_conn *conn)
{
    (void)store;
    free(conn->waits);
    conn->waits = NULL;
}

/* A key changed, or time passed: answers the connections that waited for it. */
static void wake(struct maq_store *s)
{
    double now = now_s();
    s->changed = false;
    for (struct maq_conn *conn = s->server.conns; conn; conn = conn->next) {
        if (!conn->waits || !all_there(s, conn->waits, now))
            continue;
        forget(s, conn);
        answer_byte(conn, 0);
    }
}

/* The keys of a WAIT, kept with the connection until they are there. */
static bool wait_for(struct maq_store *s, struct maq_conn *conn, uint64_t n, struct request keys)
{
    size_t text = 0;
    struct request r = keys;
    for (uint64_t i = 0; i < n; i++)
        text += read_key(&r).len;
    struct waits *w = maq__malloc(sizeof *w + n * sizeof w->key[0] + text);
    if (!w)
        return false;
    char *at = (char *)&w->key[n];
    *w = (struct waits){.since_s = now_s(), .n = n};
    for (uint64_t i = 0; i < n; i++) {
        struct maq_str key = read_key(&keys);
        if (key.len > 0)
            memcpy(at, key.ptr, key.len);
        w->key[i] = (struct maq_str){at, key.len};
        at += key.len;
    }
    forget(s, conn);
    conn->waits = w;
    wake(s);
    return true;
}

/* ---- requests of several keys ---- */

/* Reads over them: nothing is done before all has come. */
static void look_through(struct request *r, uint64_t n, bool values)
{
    for (uint64_t i = 0; i < n && !r->cut && !r->bad; i++) {
        (void)read_key(r);
        if (values)
            (void)read_value(r);
    }
}

static struct maq_str value_of(struct maq_store *s, struct maq_str key)
{
    const struct maq_store_key *k = maq_store_find(s, key);
    return k && k->there ? maq_store_value(s, k) : (struct maq_str){"", 0};
}

static void take_several(struct maq_store *s, struct maq_conn *conn, enum query query, struct request *r)
{
    uint64_t n = read_count(r);
    struct request keys = *r;
    bool all = true;
    look_through(r, n, query == MULTI_SET);
    if (r->cut || r->bad)
        return;
    *r = keys;
    for (uint64_t i = 0; i < n; i++) {
        struct maq_str key = read_key(r);
        maq_store_name(s, key);
        if (query == MULTI_SET) {
            struct maq_str value = read_value(r);
            maq_store_set(s, key, value.ptr, value.len);
        } else if (query == MULTI_GET) {
            answer_value(conn, value_of(s, key));
        } else {
            all = maq_store_has(s, key) && all;
        }
    }
    if (query == CHECK)
        answer_byte(conn, all ? 0 : 1);
    if (query == WAIT)
        r->bad = !wait_for(s, conn, n, keys);
}

/* ---- requests of one key ---- */

static void take_pop(struct maq_store *s, struct maq_conn *conn, struct maq_str key)
{
    const struct maq_store_key *k = maq_store_find(s, key);
    size_t n = 0;
    answer_number(conn, k ? (int64_t)k->queued : 0);
    char *value = maq_store_pop(s, key, &n);
    if (value)
        answer_value(conn, (struct maq_str){value, n});
    free(value);
}

static void take_keyed(struct maq_store *s, struct maq_conn *conn, enum query query, struct request *r)
{
    struct maq_str key = read_key(r), a = {0}, b = {0};
    int64_t by = 0;
    if (query == SET || query == APPEND || query == COMPARE_SET || query == QUEUE_PUSH)
        a = read_value(r);
    if (query == COMPARE_SET)
        b = read_value(r);
    if (query == ADD)
        read_bytes(&by, r, sizeof by);
    if (r->cut || r->bad)
        return;
    maq_store_name(s, key);
    if (query == SET)
        maq_store_set(s, key, a.ptr, a.len);
    else if (query == APPEND)
        maq_store_append(s, key, a.ptr, a.len);
    else if (query == COMPARE_SET)
        answer_value(conn, maq_store_compare_set(s, key, a, b));
    else if (query == GET)
        answer_value(conn, value_of(s, key));
    else if (query == ADD)
        answer_number(conn, maq_store_add(s, key, by));
    else if (query == DELETE_KEY)
        answer_number(conn, maq_store_delete(s, key));
    else if (query == QUEUE_PUSH)
        maq_store_push(s, key, a.ptr, a.len);
    else if (query == QUEUE_POP)
        take_pop(s, conn, key);
    else if (query == QUEUE_LEN)
        answer_number(conn, maq_store_find(s, key) ? (int64_t)maq_store_find(s, key)->queued : 0);
    else if (query == WATCH_KEY)
        answer_byte(conn, 3); /* registered; changes are not told: torch.distributed itself watches nothing */
}

static void list_keys(struct maq_store *s, struct maq_conn *conn)
{
    s->listed = true;
    answer_number(conn, (int64_t)maq_store_count(s));
    for (uint32_t i = 0; i < s->n; i++)
        if (s->keys[i].there)
            answer_value(conn, s->keys[i].key);
}

static void take_query(struct maq_store *s, struct maq_conn *conn, enum query query, struct request *r)
{
    uint32_t number;
    switch (query) {
    case CHECK:
    case WAIT:
    case MULTI_GET:
    case MULTI_SET:
        take_several(s, conn, query, r);
        return;
    case GETNUMKEYS:
        answer_number(conn, (int64_t)maq_store_count(s));
        return;
    case LIST_KEYS:
        list_keys(s, conn);
        return;
    case CANCEL_WAIT:
        forget(s, conn);
        answer_byte(conn, 1);
        return;
    case PING:
    case VALIDATE:
        read_bytes(&number, r, sizeof number);
        if (query == PING && !r->cut)
            maq_conn_send(conn, &number, sizeof number);
        r->bad = r->bad || (query == VALIDATE && !r->cut && number != VALIDATE_MAGIC);
        return;
    case NONSENSE:
        r->bad = true;
        return;
    case SET:
    case COMPARE_SET:
    case GET:
    case ADD:
    case DELETE_KEY:
    case APPEND:
    case QUEUE_PUSH:
    case QUEUE_POP:
    case QUEUE_LEN:
    case WATCH_KEY:
        take_keyed(s, conn, query, r);
    }
}

/* The first bytes of a connection tell. No key is as long as the magic number says. */
static enum dialect dialect_of(const char *at, size_t n)
{
    uint32_t magic;
    if (at[0] != 0)
        return OLD;
    if (n < 1 + sizeof magic)
        return UNKNOWN;
    memcpy(&magic, at + 1, sizeof magic);
    return magic == VALIDATE_MAGIC ? NEW : OLD;
}

static size_t take(void *store, struct maq_conn *conn, const char *at, size_t n)
{
    struct maq_store *s = store;
    struct request r = {at + 1, n - 1, false, false};
    uint8_t byte = (uint8_t)at[0];
    if (conn->mode == UNKNOWN)
        conn->mode = dialect_of(at, n);
    if (conn->mode == UNKNOWN)
        return 0;
    const uint8_t *queries = conn->mode == OLD ? old_queries : new_queries;
    size_t known = conn->mode == OLD ? sizeof old_queries : sizeof new_queries;
    take_query(s, conn, byte < known ? (enum query)queries[byte] : NONSENSE, &r);
    if (r.bad)
        return MAQ_CONN_BAD;
    if (r.cut)
        return 0;
    s->requests++;
    if (s->changed)
        wake(s);
    return n - r.n;
}

/* ---- life ---- */

/* A listening socket on a free port of the loopback. */
static int listen_on_loopback(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &n) == 0) {
        *port = ntohs(at.sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

enum maq_status maq_store_open(struct maq_store *s, struct maq_loop *loop, uint32_t world, uint32_t live, bool at_once,
                               struct maq_diag *diag)
{
    *s = (struct maq_store){.world = world, .live = live, .at_once = at_once, .patience_s = PATIENCE_S};
    s->server = (struct maq_server){.take = take, .forget = forget, .user = s, .fd = -1};
    int fd = listen_on_loopback(&s->port);
    if (fd >= 0 && maq_server_open(&s->server, loop, fd))
        return MAQ_OK;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_SOCKET, (struct maq_span){0}, NULL,
                         "cannot listen on the loopback for the ranks' store: %s", strerror(error));
}

void maq_store_close(struct maq_store *s)
{
    maq_server_close(&s->server);
    maq_store_clear(s);
    *s = (struct maq_store){.server.fd = -1};
}

void maq_store_tick(struct maq_store *s)
{
    wake(s);
}
