/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the rendezvous store of torch.distributed, for live ranks whose peers are absent.
 *
 * A store is a map from keys to bytes with counters, which all ranks of a job fill and wait for (PyTorch's TCPStore). Here some
 * ranks are live and the others absent; the entries of absent ranks are replaced:
 *
 *   ADD      all ranks are taken to add the same: the first ADD of a key by a live rank adds as much for every absent one
 *   SET      keys that other ranks set in their slices are there from the beginning ("given")
 *   GET,     a key that no rank sets: invented, 128 bytes that follow from the key's name, so that every slice invents the
 *   WAIT     same. At once in a first pass; later after a while, for another thread of the program may set it
 *   CHECK    reports keys that are there; nothing is invented for it
 *
 * Addresses of gloo's ranks (gloo.h) are an exception: those of absent ranks are made at once, those of live ranks never.
 *
 * With all ranks live (`maquette run --all`) it behaves as torch.distributed's own store. The keys that live ranks set are kept and
 * given to the slices that follow.
 */
#ifndef MAQ_LAUNCH_STORE_STORE_H
#define MAQ_LAUNCH_STORE_STORE_H

#include "launch/event_loop.h"

#define MAQ_STORE_INVENTED 128u /* bytes of an invented value: the size of an ncclUniqueId */

struct maq_store_key {
    struct maq_str key;
    char *value;
    size_t n;
    bool there;  /* it has a value */
    bool absent; /* its value is the address of an absent rank of gloo, in a group of `ranks`: made when it is read */
    uint32_t ranks;
    bool set;            /* by a live rank */
    bool given;          /* by a slice */
    bool asked;          /* a live rank has named it */
    uint64_t given_hash; /* maq_input_hash(); 0 = not given */
    bool invented;
    bool comes;                   /* a live rank will set it: it is not invented */
    bool counted;                 /* the ADDs of absent ranks are included */
    int64_t added;                /* by live ranks */
    struct maq_store_item *queue; /* values that wait to be popped */
    uint64_t queued;
};

struct maq_store {
    struct maq_server server;
    struct maq_store_key *keys; /* in order of first mention */
    uint32_t n, size;
    uint32_t *table; /* index + 1 by hash */
    uint32_t world, live;
    const uint32_t *live_rank; /* [live], where there are several; NULL: unknown */
    bool at_once;              /* what is missing is invented at once */
    bool failed;               /* out of memory on the way */
    bool changed;              /* a value was set since waiting connections were last served */
    bool listed;               /* a live rank wanted to know all keys */
    double patience_s;
    uint64_t requests;
    uint32_t invented;
    char *made; /* the last value that was made when it was read */
    bool gloo;  /* an absent rank of gloo was given an address */
    uint16_t port;
};

/* A key that another slice set. The first one that gives a key counts. */
void maq_store_give(struct maq_store *s, struct maq_str key, const void *value, size_t n);
/* A key that a live rank will set. */
void maq_store_expect(struct maq_store *s, struct maq_str key);
bool maq_store_lives(const struct maq_store *s, uint32_t rank); /* false where it is not known */

/* ---- what the protocol calls ---- */

struct maq_store_key *maq_store_find(struct maq_store *s, struct maq_str key); /* NULL: never mentioned */
struct maq_store_key *maq_store_at(struct maq_store *s, struct maq_str key);   /* made when new; NULL: no memory */
void maq_store_name(struct maq_store *s, struct maq_str key);                  /* a live rank names it */
void maq_store_set(struct maq_store *s, struct maq_str key, const void *value, size_t n);
void maq_store_append(struct maq_store *s, struct maq_str key, const void *value, size_t n);
int64_t maq_store_add(struct maq_store *s, struct maq_str key, int64_t by);
bool maq_store_delete(struct maq_store *s, struct maq_str key);
/* The value of a key that is there; borrowed, until the next is asked for. */
struct maq_str maq_store_value(struct maq_store *s, const struct maq_store_key *k);
/* The value of the key after the comparison; borrowed. */
struct maq_str maq_store_compare_set(struct maq_store *s, struct maq_str key, struct maq_str expected,
                                     struct maq_str desired);
bool maq_store_has(struct maq_store *s, struct maq_str key); /* a value, or a queue with one */
/* Whether no live rank will set a key that is not there; `late`: the time to wait for one is over. */
bool maq_store_nobody_comes(struct maq_store *s, struct maq_str key, bool late);
void maq_store_invent(struct maq_store *s, struct maq_str key);
uint64_t maq_store_count(const struct maq_store *s); /* keys that are there */
void maq_store_push(struct maq_store *s, struct maq_str key, const void *value, size_t n);
/* The queue's first value, owned by the caller (free()); NULL: it is empty. */
char *maq_store_pop(struct maq_store *s, struct maq_str key, size_t *n);

void maq_store_clear(struct maq_store *s); /* no keys any more */

/* ---- on a socket: wire.c ---- */

/* Listens on a free port of the loopback. `live` of `world` ranks are there. */
enum maq_status maq_store_open(struct maq_store *s, struct maq_loop *loop, uint32_t world, uint32_t live, bool at_once,
                               struct maq_diag *diag);
void maq_store_close(struct maq_store *s);
/* Serves waiting connections: to be called periodically. */
void maq_store_tick(struct maq_store *s);

#endif
