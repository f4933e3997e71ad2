/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration_query.c - asks maquette how long an operator or a collective takes (link.h), each distinct question once.
 *
 * In a CUDA program: the time that a kernel or a collective takes on the device.
 *
 * Without somebody to ask, the fixed rule of link.h answers: 2 us and 1 TB/s. It is no model of anything; it makes times
 * that a reader can check by hand.
 */
#include "shim/core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { VG_RULE_NS = 2000, VG_RULE_BYTES_PER_NS = 1000 };

static int line = -1;
static bool hung_up; /* nobody there, or nobody any more */
static pid_t caller; /* a forked child must not talk on its parent's line */

static int64_t rule(uint64_t bytes)
{
    return VG_RULE_NS + (int64_t)(bytes / VG_RULE_BYTES_PER_NS);
}

static bool dial(void)
{
    if (caller != 0 && caller != getpid()) {
        close(line);
        line = -1;
        hung_up = false;
    }
    caller = getpid();
    if (line >= 0 || hung_up)
        return line >= 0;
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    const char *path = vg_card()->ask;
    hung_up = true;
    if (path[0] == '\0' || strlen(path) >= sizeof where.sun_path)
        return false;
    memcpy(where.sun_path, path, strlen(path) + 1);
    line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line >= 0 && connect(line, (struct sockaddr *)&where, sizeof where) != 0) {
        close(line);
        line = -1;
    }
    hung_up = line < 0;
    return line >= 0;
}

static bool say(const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(line, (const char *)data + at, bytes - at, MSG_NOSIGNAL);
        if (n <= 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool hear(void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = recv(line, (char *)data + at, bytes - at, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int64_t ask(const struct maq_ask *question, const void *more, size_t bytes)
{
    struct maq_answer answer;
    if (!dial())
        return rule(question->bytes);
    if (!say(question, sizeof *question) || (bytes > 0 && !say(more, bytes)) || !hear(&answer, sizeof answer)) {
        close(line);
        line = -1;
        hung_up = true;
        return rule(question->bytes);
    }
    return answer.ns <= INT64_MAX / 4 ? (int64_t)answer.ns : INT64_MAX / 4;
}

int64_t vg_duration_query_op(const struct maq_rec_op *what, const char *name)
{
    struct maq_ask question;
    memset(&question, 0, sizeof question);
    question.kind = MAQ_ASK_OP;
    question.bytes = what->bytes;
    question.op = *what;
    vg_lock();
    int64_t ns = ask(&question, name, what->name_bytes);
    vg_unlock();
    return ns;
}

void vg_duration_query_end(int64_t now)
{
    struct maq_ask question;
    memset(&question, 0, sizeof question);
    question.kind = MAQ_ASK_END;
    question.bytes = (uint64_t)now;
    (void)ask(&question, NULL, 0);
}

/* --- collectives: answers are kept by (communicator, kind, bytes) ------------------------------------------------------- */

struct known {
    uint64_t key; /* 0 = free */
    int64_t ns;
};
static struct known *known;
static size_t n_known, n_slots;

static struct known *slot(uint64_t key)
{
    size_t at = key % n_slots;
    while (known[at].key != 0 && known[at].key != key)
        at = (at + 1) % n_slots;
    return &known[at];
}

static bool room(void)
{
    if (n_known * 2 < n_slots)
        return true;
    size_t old = n_slots;
    struct known *was = known, *bigger = calloc(old == 0 ? 256 : old * 2, sizeof *bigger);
    if (bigger == NULL)
        return false;
    known = bigger;
    n_slots = old == 0 ? 256 : old * 2;
    for (size_t i = 0; i < old; i++)
        if (was[i].key != 0)
            *slot(was[i].key) = was[i];
    free(was);
    return true;
}

int64_t vg_duration_query_coll(const struct maq_rec_comm *comm, const uint32_t *members, enum maq_rec_coll kind,
                               uint64_t bytes)
{
    struct maq_ask question;
    memset(&question, 0, sizeof question);
    question.kind = MAQ_ASK_COLL;
    question.coll = kind;
    question.bytes = bytes;
    question.comm = *comm;
    vg_lock();
    uint64_t key = maq_rec_mix(maq_rec_mix(comm->lineage, (uint64_t)kind << 32 | comm->rank), bytes) | 1;
    struct known *at = room() ? slot(key) : NULL;
    int64_t ns = at != NULL && at->key != 0
                     ? at->ns
                     : ask(&question, members, members != NULL ? comm->n_members * sizeof *members : 0);
    if (at != NULL && at->key == 0) {
        *at = (struct known){.key = key, .ns = ns};
        n_known++;
    }
    vg_unlock();
    return ns;
}
