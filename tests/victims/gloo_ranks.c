/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_ranks.c - one rank of a group of four as gloo would be: connections with three ranks that are not there, and over them one
 * collective after another, by gloo's algorithms. Prints what they left.
 *
 * usage: gloo_ranks RANK [bad]    bad: a message of no known form
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/link.h"

enum { N = 4, DATA = 1, SENDS, READY };
enum { GATHER = 1, ALLGATHER, REDUCE, ALLREDUCE, SCATTER, BROADCAST, BARRIER, ALLTOALL };
struct message {
    uint64_t bytes, kind, slot, offset, length, offset_there;
};
/* What has been asked for and is under way, one each way and peer. */
static struct wait {
    char *data;
    uint64_t slot, length;
    int open;
} sends[N], recvs[N];
static int fds[N], me;

static void fail(const char *what)
{
    fprintf(stderr, "gloo_ranks: %s\n", what);
    exit(1);
}

static void say(int peer, uint64_t kind, uint64_t slot, const void *data, uint64_t length)
{
    struct message m = {sizeof m + (kind == DATA ? length : 0), kind, slot, 0, length, 0};
    struct iovec piece[2] = {{&m, sizeof m}, {(void *)(uintptr_t)data, length}};
    if (writev(fds[peer], piece, kind == DATA ? 2 : 1) != (ssize_t)m.bytes)
        fail("writev");
}

static void begin_send(int peer, uint64_t slot, const void *data, uint64_t length)
{
    sends[peer] = (struct wait){(char *)(uintptr_t)data, slot, length, 1};
    say(peer, SENDS, slot, NULL, length);
}

static void begin_recv(int peer, uint64_t slot, void *data, uint64_t length)
{
    recvs[peer] = (struct wait){data, slot, length, 1};
    say(peer, READY, slot, NULL, length);
}

static void get(int peer, void *to, uint64_t bytes)
{
    for (uint64_t n = 0; n < bytes;) {
        ssize_t got = recv(fds[peer], (char *)to + n, bytes - n, 0);
        if (got <= 0)
            fail("the connection is closed");
        n += (uint64_t)got;
    }
}

/* Until nothing is open any more with that peer. */
static void finish(int peer)
{
    struct message m;
    while (sends[peer].open || recvs[peer].open) {
        get(peer, &m, sizeof m);
        if (m.kind == READY && sends[peer].open && m.slot == sends[peer].slot) {
            sends[peer].open = 0;
            say(peer, DATA, m.slot, sends[peer].data, sends[peer].length);
        } else if (m.kind == DATA && recvs[peer].open && m.slot == recvs[peer].slot && m.length == recvs[peer].length) {
            get(peer, recvs[peer].data, m.length);
            recvs[peer].open = 0;
        } else if (m.kind != SENDS) {
            fail("an answer to nothing");
        }
    }
}

static uint64_t tag;

static uint64_t slot_of(unsigned kind)
{
    return (uint64_t)kind << 56 | tag++ << 24;
}

static void show(const char *what, const int32_t *data, int n)
{
    printf("%s", what);
    for (int i = 0; i < n; i++)
        printf(" %d", data[i]);
    printf("\n");
}

/*
 * Sums of four numbers: reduced around the ring, then sent around, as gloo does it. It cuts into two segments for each rank, of whole numbers: the
 * first four have one, the others none, and those are not sent.
 */
static void all_reduce(void)
{
    enum { NUMBERS = 4, OWN = 2, SEGMENTS = OWN * N };
    int32_t out[NUMBERS] = {me + 10, me + 20, me + 30, me + 40}, tmp;
    uint64_t slot = slot_of(ALLREDUCE);
    int left = (me + N - 1) % N, right = (me + 1) % N;
    for (int phase = 0; phase < 2; phase++)
        for (int i = 0; i < SEGMENTS - OWN; i++) {
            int sent = ((me + 1 - phase) * OWN + i) % SEGMENTS, got = (sent + OWN) % SEGMENTS;
            tmp = 77; /* what is in a buffer that nobody has set */
            if (got < NUMBERS)
                begin_recv(right, slot, phase ? &out[got] : &tmp, sizeof tmp);
            if (sent < NUMBERS)
                begin_send(left, slot, &out[sent], sizeof tmp);
            finish(left);
            finish(right);
            if (!phase && got < NUMBERS)
                out[got] += tmp;
        }
    show("all-reduce", out, NUMBERS);
}

/* Three numbers of each rank, in halves that cut one of them. */
static void all_gather(void)
{
    int32_t out[3 * N] = {0};
    uint64_t slot = slot_of(ALLGATHER), half = 6;
    int left = (me + N - 1) % N, right = (me + 1) % N;
    for (int i = 0; i < 3; i++)
        out[3 * me + i] = 100 * me + i;
    for (int i = 0; i < 2 * (N - 1); i++) {
        int sent = (me + N - i / 2) % N, got = (sent + N - 1) % N, at = i % 2 ? 6 : 0;
        begin_send(right, slot, (char *)&out[3 * sent] + at, half);
        begin_recv(left, slot, (char *)&out[3 * got] + at, half);
        finish(right);
        finish(left);
    }
    show("all-gather", out, 3 * N);
}

/* From rank 0, which gives it to 2 and then to 1; these to nobody else but 1 to 3. */
static void broadcast(void)
{
    int32_t value = me == 0 ? 4711 : -1;
    uint64_t slot = slot_of(BROADCAST);
    if (me != 0) {
        begin_recv(me == 3 ? 1 : 0, slot, &value, sizeof value);
        finish(me == 3 ? 1 : 0);
    }
    for (int to = 3; to > 0; to--)
        if ((me == 0 && to < 3) || (me == 1 && to == 3)) {
            begin_send(to, slot, &value, sizeof value);
            finish(to);
        }
    show("broadcast", &value, 1);
}

static void gather_to_last(void)
{
    int32_t out[N] = {-1, -1, -1, -1}, own = 1000 + me;
    uint64_t slot = slot_of(GATHER);
    for (int i = 0; i < N && me == N - 1; i++)
        if (i != me) {
            begin_recv(i, slot, &out[i], 4);
            finish(i);
        }
    out[me] = own;
    if (me != N - 1) {
        begin_send(N - 1, slot, &own, 4);
        finish(N - 1);
    } else {
        show("gather", out, N);
    }
}

static void all_to_all(void)
{
    int32_t in[N], out[N] = {0};
    uint64_t slot = slot_of(ALLTOALL);
    for (int i = 0; i < N; i++)
        in[i] = 10 * me + i;
    out[me] = in[me];
    for (int i = 1; i < N; i++) { /* what is received comes from others than what is sent goes to */
        begin_send((me + i) % N, slot, &in[(me + i) % N], 4);
        begin_recv((me + N - i) % N, slot, &out[(me + N - i) % N], 4);
    }
    for (int i = 1; i < N; i++)
        finish((me + i) % N);
    show("all-to-all", out, N);
}

/* Two messages to the next rank under one tag, the second of more than slices tell each other. */
static void messages(void)
{
    static int32_t large[300000];
    int32_t got[2] = {-1, -1}, value = 500 + me;
    uint64_t slot = 3;
    int next = (me + 1) % N, before = (me + N - 1) % N;
    for (int i = 0; i < 2; i++) {
        large[0] = i ? 900 + me : value;
        begin_send(next, slot, large, i ? sizeof large : 4);
        finish(next);
    }
    for (int i = 0; i < 2; i++) {
        large[0] = -1;
        begin_recv(before, slot, large, i ? sizeof large : 4);
        finish(before);
        got[i] = large[0];
    }
    show("messages", got, 2);
}

static void barrier(void)
{
    uint64_t slot = slot_of(BARRIER);
    for (int d = 1; d < N; d *= 2) {
        begin_recv((me + N - d) % N, slot, NULL, 0);
        finish((me + N - d) % N);
        begin_send((me + d) % N, slot, NULL, 0);
        finish((me + d) % N);
    }
}

static void join(void)
{
    for (int i = 0; i < N; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET};
        struct maq_gloo_peer peer = {.group = 0x123456789a, .rank = (uint32_t)i, .n = N}, back;
        uint64_t own = (uint64_t)me;
        unsigned char *behind = (unsigned char *)&address + sizeof address.sin_family;
        maq_gloo_address(behind, &peer);
        if (!maq_gloo_peer_of(&back, behind) || back.group != peer.group || back.rank != peer.rank || back.n != N)
            fail("an address does not say who is meant");
        if (i == me)
            continue;
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fds[i], (struct sockaddr *)&address, sizeof address) || write(fds[i], &own, 8) != 8)
            fail("connect");
    }
}

static void leave(void)
{
    for (int i = 0; i < N; i++)
        if (i != me)
            close(fds[i]);
}

int main(int argc, char **argv)
{
    me = argc > 1 ? atoi(argv[1]) : 0;
    join();
    if (argc > 2)
        say((me + 1) % N, 7, 0, NULL, 12);
    all_reduce();
    all_gather();
    broadcast();
    gather_to_last();
    all_to_all();
    messages();
    barrier();
    leave();
    tag = 1; /* the group is made anew, and counts from the beginning */
    join();
    all_gather();
    leave();
    return 0;
}
