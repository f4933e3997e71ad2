/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price_server.c - the table of price requests by hash, their mapping to the cost chain (capture/price/price.h), and
 * the protocol on the socket (shim/link.h). See price_server.h.
 */
#include "launch/price_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "capture/build.h"
#include "launch/codes.h"

#define NAME_MAX_BYTES (1u << 20)
#define MEMBERS_MAX (1u << 22)
#define ASKED_MAX (1u << 22)
/* The fixed price without a cost chain (link.h). */
#define RULE_NS 2000u
#define RULE_BYTES_PER_NS 1000u

/* ---- the table ---- */

static uint32_t slot_of(const struct maq_price_server *s, struct maq_str question)
{
    uint32_t mask = s->size * 2 - 1, at = (uint32_t)maq_rec_hash(question.ptr, question.len, 0) & mask;
    while (s->table[at] != 0 && !maq_str_eq(s->question[s->table[at] - 1], question))
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct maq_price_server *s)
{
    uint32_t size = s->size ? s->size * 2 : 64;
    if (size > ASKED_MAX)
        return false;
    struct maq_asked **asked = maq__realloc(s->asked, size * sizeof *asked);
    s->asked = asked ? asked : s->asked;
    struct maq_str *question = maq__realloc(s->question, size * sizeof *question);
    s->question = question ? question : s->question;
    uint32_t *table = maq__calloc(size * 2 * sizeof *table);
    if (!asked || !question || !table) {
        free(table);
        return false;
    }
    free(s->table);
    s->table = table;
    s->size = size;
    for (uint32_t i = 0; i < s->n; i++)
        s->table[slot_of(s, s->question[i])] = i + 1;
    return true;
}

/* ---- pricing ---- */

static void answer_with(struct maq_asked *a, struct maq_price price)
{
    a->ns = price.ns;
    a->provider = price.provider;
    a->modelled = price.modelled;
}

/* The key of a request: of a collective, only what its price depends on. `rank` is the rank that asks. */
static struct maq_ask essence(const struct maq_ask *ask, uint32_t rank)
{
    struct maq_ask out;
    memset(&out, 0, sizeof out);
    out.kind = ask->kind;
    if (ask->kind == MAQ_ASK_OP) {
        out.op = ask->op;
        return out;
    }
    out.coll = ask->coll;
    out.bytes = ask->bytes;
    out.comm.size = ask->comm.size;
    out.comm.n_members = ask->comm.n_members;
    if (ask->comm.n_members == 0) { /* the placement of the group follows from the position of the asking rank in it */
        out.comm.rank = ask->comm.rank;
        out.comm.parent = rank;
    }
    return out;
}

static bool price(struct maq_price_server *s, struct maq_asked *a, const struct maq_ask *ask, const char *tail)
{
    if (ask->kind == MAQ_ASK_OP) {
        a->bytes = ask->op.bytes;
        a->name = maq_arena_strdup(&s->arena, (struct maq_str){tail, ask->op.name_bytes});
        if (a->name && s->pricer)
            answer_with(a, maq_price_op(s->pricer, &ask->op, a->name, &s->pricer->cluster->groups[0].device));
    } else {
        struct maq_price_group group = {.size = ask->comm.size, .rank = ask->comm.parent, .position = ask->comm.rank};
        uint32_t *members = MAQ_ARENA_NEW(&s->arena, uint32_t, ask->comm.n_members);
        if (!members)
            return false;
        memcpy(members, tail, ask->comm.n_members * sizeof *members);
        group.member = ask->comm.n_members > 0 ? members : NULL;
        group.world = s->world;
        a->collective = true;
        a->bytes = ask->bytes;
        a->ranks = ask->comm.size;
        a->name = maq_rec_coll_word(ask->coll);
        if (s->pricer)
            answer_with(a, maq_price_coll(s->pricer, (enum maq_rec_coll)ask->coll, ask->bytes, &group));
    }
    if (!s->pricer)
        a->ns = RULE_NS + a->bytes / RULE_BYTES_PER_NS;
    return a->name != NULL;
}

struct maq_asked *maq_price_server_answer(struct maq_price_server *s, const struct maq_ask *ask, uint32_t rank,
                                          const void *tail, size_t tail_bytes)
{
    struct maq_ask what = essence(ask, rank);
    struct maq_str question = {NULL, sizeof what + tail_bytes};
    struct maq_arena_mark mark = maq_arena_mark(&s->arena);
    char *copy = maq_arena_alloc(&s->arena, question.len, 8);
    if (!copy || (s->n == s->size && !grow(s)))
        return NULL;
    memcpy(copy, &what, sizeof what);
    if (tail_bytes > 0)
        memcpy(copy + sizeof what, tail, tail_bytes);
    question.ptr = copy;
    uint32_t at = slot_of(s, question);
    if (s->table[at] > 0) {
        maq_arena_reset(&s->arena, mark);
        return s->asked[s->table[at] - 1];
    }
    struct maq_asked *a = MAQ_ARENA_NEW(&s->arena, struct maq_asked, 1);
    if (!a || !price(s, a, &what, copy + sizeof what))
        return NULL;
    s->asked[s->n] = a;
    s->question[s->n] = question;
    s->table[at] = ++s->n;
    return a;
}

void maq_price_server_init(struct maq_price_server *s, const struct maq_pricer *pricer, uint32_t world)
{
    *s = (struct maq_price_server){.pricer = pricer, .world = world};
    maq_arena_init(&s->arena, 0);
}

void maq_price_server_fini(struct maq_price_server *s)
{
    free(s->asked);
    free(s->question);
    free(s->table);
    maq_arena_fini(&s->arena);
    *s = (struct maq_price_server){0};
}

/* ---- the socket ---- */

/* Bytes that follow a request; SIZE_MAX: it is invalid. */
static size_t tail_of(const struct maq_ask *ask)
{
    if (ask->kind == MAQ_ASK_END)
        return 0;
    if (ask->kind == MAQ_ASK_OP)
        return ask->op.name_bytes <= NAME_MAX_BYTES ? ask->op.name_bytes : SIZE_MAX;
    if (ask->kind == MAQ_ASK_COLL && ask->coll < MAQ_REC_COLL_COUNT && ask->comm.size > 0 &&
        (ask->comm.n_members == 0 || ask->comm.n_members == ask->comm.size) && ask->comm.size <= MEMBERS_MAX)
        return (size_t)ask->comm.n_members * sizeof(uint32_t);
    return SIZE_MAX;
}

static size_t take(void *user, struct maq_conn *conn, const char *at, size_t n)
{
    struct maq_price_server_port *port = user;
    struct maq_ask ask;
    if (n < sizeof ask)
        return 0;
    memcpy(&ask, at, sizeof ask);
    size_t tail = tail_of(&ask);
    if (tail == SIZE_MAX)
        return MAQ_CONN_BAD;
    if (n < sizeof ask + tail)
        return 0;
    struct maq_answer answer = {0};
    if (ask.kind == MAQ_ASK_END) {
        port->ended_ns = ask.bytes;
        maq_conn_send(conn, &answer, sizeof answer);
        return sizeof ask;
    }
    struct maq_asked *a = maq_price_server_answer(port->service, &ask, port->rank, at + sizeof ask, tail);
    if (!a) {
        port->service->failed = true;
        return MAQ_CONN_BAD;
    }
    answer.ns = a->ns;
    a->times++;
    port->service->times++;
    maq_conn_send(conn, &answer, sizeof answer);
    return sizeof ask + tail;
}

static int listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(at.sun_path, path, n + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, SOMAXCONN) != 0)) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

enum maq_status maq_price_server_open(struct maq_price_server_port *port, struct maq_price_server *s, uint32_t rank,
                                      struct maq_loop *loop, const char *path, struct maq_diag *diag)
{
    *port = (struct maq_price_server_port){.service = s, .rank = rank, .path = path};
    port->server = (struct maq_server){.take = take, .user = port, .fd = -1};
    int fd = listen_at(path);
    if (fd >= 0 && maq_server_open(&port->server, loop, fd))
        return MAQ_OK;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_SOCKET, (struct maq_span){0}, NULL,
                         "cannot listen for questions at '%.120s': %s", path, strerror(error));
}

void maq_price_server_close(struct maq_price_server_port *port)
{
    if (port->server.loop && port->server.fd >= 0) {
        maq_server_close(&port->server);
        unlink(port->path);
    }
}
