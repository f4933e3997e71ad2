/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_loop.h - an event loop over poll(): one thread that serves the ends of programs, price requests and the store.
 *
 * A source is a file descriptor with a function that is called when there is something to do. A server is a listening socket with
 * connections; all bytes that a connection has received are offered to the protocol, again with every piece that arrives, until
 * it takes them.
 */
#ifndef MAQ_LAUNCH_EVENT_LOOP_H
#define MAQ_LAUNCH_EVENT_LOOP_H

#include "base/str.h"

typedef void maq_loop_fn(void *user, short events);

struct maq_loop_source {
    int fd; /* -1: removed */
    short events;
    maq_loop_fn *call;
    void *user;
};
struct maq_loop {
    struct maq_loop_source *source;
    uint32_t n, size;
};

void maq_loop_fini(struct maq_loop *loop);
bool maq_loop_add(struct maq_loop *loop, int fd, short events, maq_loop_fn *call, void *user); /* false: no memory */
void maq_loop_change(struct maq_loop *loop, int fd, short events);
void maq_loop_remove(struct maq_loop *loop, int fd);
/* Waits at most `limit_ms` for something to do, and does it. */
void maq_loop_turn(struct maq_loop *loop, int limit_ms);

#define MAQ_CONN_BAD SIZE_MAX

struct maq_server;
struct maq_conn {
    struct maq_server *server;
    struct maq_conn *next;
    int fd;
    uint32_t mode;          /* the server's protocol's to use; 0 at first */
    struct maq_buf in, out; /* received and not taken; to be sent */
    bool gathers;           /* the protocol takes requests: answers are sent together, behind the last */
    void *waits;            /* the protocol's to use; freed with the connection by `forget` */
};
struct maq_server {
    struct maq_loop *loop;
    int fd; /* listens */
    struct maq_conn *conns;
    /*
     * Returns how many of the received bytes it took: 0 = not enough yet, MAQ_CONN_BAD = invalid, the connection is
     * closed.
     */
    size_t (*take)(void *user, struct maq_conn *conn, const char *at, size_t n);
    void (*forget)(void *user, struct maq_conn *conn); /* it is about to be closed; NULL = nothing to do */
    void *user;
};

/* `fd` is listening, and the server's from now on. */
bool maq_server_open(struct maq_server *server, struct maq_loop *loop, int fd);
void maq_server_close(struct maq_server *server);
/* Sends: at once, or when the protocol has taken all requests that have come; what is left when the socket is writable. */
void maq_conn_send(struct maq_conn *conn, const void *bytes, size_t n);

#endif
