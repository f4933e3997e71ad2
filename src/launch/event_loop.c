/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_loop.c - poll() over all sources, and buffered connections of servers: bytes received and not taken, and
 * bytes to be sent. See event_loop.h.
 */
#include "launch/event_loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define SOURCES_MAX 4096u
#define CONN_MAX ((size_t)64 << 20) /* bytes that wait in a connection */

void maq_loop_fini(struct maq_loop *loop)
{
    free(loop->source);
    *loop = (struct maq_loop){0};
}

bool maq_loop_add(struct maq_loop *loop, int fd, short events, maq_loop_fn *call, void *user)
{
    if (loop->n == loop->size) {
        uint32_t size = loop->size ? loop->size * 2 : 16;
        struct maq_loop_source *grown = size <= SOURCES_MAX ? maq__realloc(loop->source, size * sizeof *grown) : NULL;
        if (!grown)
            return false;
        loop->source = grown;
        loop->size = size;
    }
    loop->source[loop->n++] = (struct maq_loop_source){fd, events, call, user};
    return true;
}

static struct maq_loop_source *find(struct maq_loop *loop, int fd)
{
    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->source[i].fd == fd)
            return &loop->source[i];
    return NULL;
}

void maq_loop_change(struct maq_loop *loop, int fd, short events)
{
    struct maq_loop_source *s = find(loop, fd);
    if (s)
        s->events = events;
}

void maq_loop_remove(struct maq_loop *loop, int fd)
{
    struct maq_loop_source *s = find(loop, fd);
    if (s)
        s->fd = -1;
}

static void forget_removed(struct maq_loop *loop)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->source[i].fd >= 0)
            loop->source[kept++] = loop->source[i];
    loop->n = kept;
}

void maq_loop_turn(struct maq_loop *loop, int limit_ms)
{
    struct pollfd fds[SOURCES_MAX];
    uint32_t n = loop->n;
    for (uint32_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){loop->source[i].fd, loop->source[i].events, 0};
    if (poll(fds, n, limit_ms) > 0)
        for (uint32_t i = 0; i < n; i++) /* a call may add sources, which come last, or remove some */
            if (fds[i].revents && loop->source[i].fd == fds[i].fd)
                loop->source[i].call(loop->source[i].user, fds[i].revents);
    forget_removed(loop);
}

/* ---- connections ---- */

/* Frees a connection that is on no list any more. */
static void drop_conn(struct maq_conn *conn)
{
    struct maq_server *server = conn->server;
    if (server->forget)
        server->forget(server->user, conn);
    maq_loop_remove(server->loop, conn->fd);
    close(conn->fd);
    maq_buf_fini(&conn->in);
    maq_buf_fini(&conn->out);
    free(conn);
}

static void close_conn(struct maq_conn *conn)
{
    struct maq_conn **at = &conn->server->conns;
    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    drop_conn(conn);
}

/* Sends buffered bytes; false: the other end is closed. */
static bool flush(struct maq_conn *conn)
{
    size_t done = 0;
    bool fine = true;
    while (done < conn->out.len && fine) {
        ssize_t n = send(conn->fd, conn->out.ptr + done, conn->out.len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else
            fine = errno == EINTR;
    }
    if (done > 0)
        memmove(conn->out.ptr, conn->out.ptr + done, conn->out.len - done);
    conn->out.len -= done;
    maq_loop_change(conn->server->loop, conn->fd, (short)(conn->out.len > 0 ? POLLIN | POLLOUT : POLLIN));
    return fine && !conn->out.failed;
}

void maq_conn_send(struct maq_conn *conn, const void *bytes, size_t n)
{
    maq_buf_add(&conn->out, bytes, n);
    if (!conn->gathers)
        (void)flush(conn); /* a connection that is gone is found when it is read */
}

/* Offers the received bytes to the protocol; false: they are invalid. */
static bool offer(struct maq_conn *conn)
{
    struct maq_server *s = conn->server;
    size_t at = 0, took = 1;
    conn->gathers = true;
    while (took > 0 && took != MAQ_CONN_BAD && at < conn->in.len) {
        took = s->take(s->user, conn, conn->in.ptr + at, conn->in.len - at);
        at += took != MAQ_CONN_BAD ? took : 0;
    }
    conn->gathers = false;
    if (took == MAQ_CONN_BAD)
        return false;
    if (conn->out.len > 0)
        (void)flush(conn);
    if (at > 0)
        memmove(conn->in.ptr, conn->in.ptr + at, conn->in.len - at);
    conn->in.len -= at;
    return true;
}

static void on_conn(void *user, short events)
{
    struct maq_conn *conn = user;
    char chunk[65536];
    if ((events & POLLOUT) && !flush(conn)) {
        close_conn(conn);
        return;
    }
    if (!(events & (POLLIN | POLLHUP | POLLERR)))
        return;
    ssize_t n = recv(conn->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        maq_buf_add(&conn->in, chunk, (size_t)n);
    if (n <= 0 || conn->in.failed || !offer(conn))
        close_conn(conn);
}

/*
 * An answer leaves when it is there. Without this TCP holds a small piece back until the one before it is acknowledged (Nagle, RFC
 * 896), which a receiver that has nothing to say puts off for 40 ms: once for each request. Other sockets do not know the option.
 */
static void send_at_once(int fd)
{
    int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void on_listener(void *user, short events)
{
    struct maq_server *server = user;
    (void)events;
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
    struct maq_conn *conn = fd >= 0 ? maq__calloc(sizeof *conn) : NULL;
    if (!conn || !maq_loop_add(server->loop, fd, POLLIN, on_conn, conn)) {
        if (fd >= 0)
            close(fd);
        free(conn);
        return;
    }
    send_at_once(fd);
    *conn = (struct maq_conn){.server = server, .next = server->conns, .fd = fd};
    maq_buf_init(&conn->in, CONN_MAX);
    maq_buf_init(&conn->out, CONN_MAX);
    server->conns = conn;
}

bool maq_server_open(struct maq_server *server, struct maq_loop *loop, int fd)
{
    server->loop = loop;
    server->fd = fd;
    server->conns = NULL;
    return maq_loop_add(loop, fd, POLLIN, on_listener, server);
}

void maq_server_close(struct maq_server *server)
{
    if (server->fd < 0 || !server->loop)
        return;
    for (struct maq_conn *conn = server->conns, *next; conn; conn = next) {
        next = conn->next;
        drop_conn(conn);
    }
    server->conns = NULL;
    maq_loop_remove(server->loop, server->fd);
    close(server->fd);
    server->fd = -1;
}
