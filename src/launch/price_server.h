/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price_server.h - the price server: answers how long an operator or collective takes, over a socket, by the cost
 * chain.
 *
 * Every distinct request is priced once, for all ranks of a run; a table keeps what was asked and which provider
 * answered.
 */
#ifndef MAQ_LAUNCH_PRICE_SERVER_H
#define MAQ_LAUNCH_PRICE_SERVER_H

#include "base/arena.h"
#include "capture/price/price.h"
#include "launch/event_loop.h"
#include "maquette/launch.h"
#include "shim/link.h"

/* The table of requests and prices; shared by the ranks of a run, which may use several sockets. */
struct maq_price_server {
    struct maq_arena arena;
    const struct maq_pricer *pricer; /* NULL: the fixed rule of link.h answers */
    uint32_t world;
    struct maq_asked **asked; /* in order of the first asking */
    struct maq_str *question; /* of each */
    uint32_t n, size;
    uint32_t *table; /* index + 1 by hash */
    uint64_t times;
    bool failed; /* out of memory on the way */
};

/* The socket of one rank. */
struct maq_price_server_port {
    struct maq_server server;
    struct maq_price_server *service;
    uint32_t rank;
    uint64_t ended_ns; /* virtual time at the program's end, reported by its last process that used the device */
    const char *path;
};

void maq_price_server_init(struct maq_price_server *s, const struct maq_pricer *pricer, uint32_t world);
void maq_price_server_fini(struct maq_price_server *s);

/* Listens at `path` (AF_UNIX). */
enum maq_status maq_price_server_open(struct maq_price_server_port *port, struct maq_price_server *s, uint32_t rank,
                                      struct maq_loop *loop, const char *path, struct maq_diag *diag);
void maq_price_server_close(struct maq_price_server_port *port);

/*
 * The row of a request by `rank`, added and priced when it is new; NULL when out of memory. `tail`: the bytes that follow the
 * request.
 */
struct maq_asked *maq_price_server_answer(struct maq_price_server *s, const struct maq_ask *ask, uint32_t rank,
                                          const void *tail, size_t tail_bytes);

#endif
