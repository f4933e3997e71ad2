/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.c - connections of gloo, PyTorch's collectives on the host, with ranks that are not there.
 *
 * In a host program: the other ranks of a process group of torch.distributed with the backend gloo.
 *
 * gloo keeps a TCP connection between each two ranks of a group. maquette's store gives it an address for a rank that is not there by
 * which connect() knows it (link.h). The connection then is a real one, over the loopback, of the socket with itself: gloo may
 * set its options and wait for it. What gloo writes into it is read here, within the call; answers are written into it, all
 * but their data, which recv() puts where gloo wants it.
 *
 * First gloo writes 8 bytes, by which the other side knows the pair (here the rank's own number); then messages of 48 bytes, six numbers
 * of 8, with data behind those of kind 1:
 *
 *     bytes of message and data   kind   slot   offset   bytes of data   offset there
 *
 *   kind 2   I have `bytes` to send under this slot          answered by 3: send them
 *   kind 3   I am ready for `bytes` under this slot          answered by 2 and by 1, the data
 *   kind 1   the data
 *   kind 0   data for a buffer that both know beforehand     not answered: PyTorch uses none
 *
 * So it is always known what is waited for, and how large it is. This is how gloo's processes speak to each other and
 * no interface; it has been the same since 2018. What does not fit in ends the connection, and says so. Source:
 * gloo/transport/tcp/{pair.h,pair.cc,listener.cc} of pytorch/gloo.
 */
#include "shim/boot/gloo.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot/gloo_data.h"
#include "shim/boot/libc.h"
#include "shim/boot/virtual_descriptors.h"

enum { BUFFER_DATA, DATA, SENDS, READY };
struct message {
    uint64_t bytes, kind, slot, offset, length, offset_there;
};
static_assert(sizeof(struct message) == 48, "as gloo writes it");

struct vg_gloo_pair {
    struct vg_gloo_ends ends;
    int other; /* the other end of the connection: mostly the socket itself */
    bool named, broken;
    size_t out_bytes, in_bytes;          /* bytes of the messages that are under way, to us and from us */
    struct message out, in;              /* these messages */
    uint64_t data_out, data_in;          /* bytes of data that are still to come behind them */
    struct vg_gloo_answer *first, *last; /* whose data goes out next */
};

static struct vg_gloo_pair *pairs[VG_FDS];
static struct group {
    struct group *next;
    uint64_t name;
    unsigned connections;
} * groups;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int listener = -1;
static struct sockaddr_in listens;

static struct vg_gloo_pair *pair_of(int fd)
{
    return fd >= 0 && fd < VG_FDS ? __atomic_load_n(&pairs[fd], __ATOMIC_ACQUIRE) : NULL;
}

bool vg_gloo_has(int fd)
{
    return pair_of(fd) != NULL;
}

/* gloo finds the connection closed. */
static void give_up(struct vg_gloo_pair *pair)
{
    static bool said;
    static const char why[] =
        "maquette: gloo: a message to a rank that is not there is of no form that is known here\n";
    pair->broken = true;
    (void)shutdown(pair->other, SHUT_RDWR);
    if (!said && vg_libc_write(STDERR_FILENO, why, sizeof why - 1) > 0)
        said = true;
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

static void put(struct vg_gloo_pair *pair, uint64_t kind, uint64_t slot, uint64_t bytes)
{
    struct message m = {.bytes = sizeof m + (kind == DATA ? bytes : 0), .kind = kind, .slot = slot, .length = bytes};
    ssize_t n = vg_libc_send(pair->other, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != (ssize_t)sizeof m)
        give_up(pair);
}

static void drop(struct vg_gloo_answer *answer)
{
    vg_gloo_answered(answer);
    vg_gloo_free(answer);
}

static void reply(struct vg_gloo_answer *answer)
{
    struct vg_gloo_pair *pair = answer->pair;
    answer->next = NULL;
    if (answer->bytes > 0) {
        if (pair->last)
            pair->last->next = answer;
        else
            pair->first = answer;
        pair->last = answer;
    }
    put(pair, SENDS, answer->slot, answer->bytes);
    put(pair, DATA, answer->slot, answer->bytes);
    if (answer->bytes == 0)
        drop(answer);
}

static void asked(struct vg_gloo_pair *pair, struct vg_gloo_call *call, const struct message *m)
{
    struct vg_gloo_answer *answer = calloc(1, sizeof *answer);
    if (!answer) {
        give_up(pair);
        return;
    }
    *answer =
        (struct vg_gloo_answer){.pair = pair, .ends = pair->ends, .call = call, .slot = m->slot, .bytes = m->length};
    vg_gloo_asked(answer);
    if (vg_gloo_find(answer)) {
        reply(answer);
        return;
    }
    struct vg_gloo_answer **end = vg_gloo_waiting(call);
    while (*end)
        end = &(*end)->next;
    *end = answer;
}

static void sent(struct vg_gloo_pair *pair, const void *data)
{
    struct vg_gloo_call *call = vg_gloo_call_of(&pair->ends, pair->out.slot);
    if (!call) {
        give_up(pair);
        return;
    }
    vg_gloo_sent(call, &pair->ends, data, pair->out.length);
    for (struct vg_gloo_answer **at = vg_gloo_waiting(call); *at;) {
        struct vg_gloo_answer *answer = *at;
        if (vg_gloo_find(answer)) {
            *at = answer->next;
            reply(answer);
        } else {
            at = &answer->next;
        }
    }
}

/* --- what gloo writes --------------------------------------------------------------------------------------------------- */

static bool makes_sense(const struct message *m)
{
    uint64_t data = m->kind == DATA ? m->length : 0;
    return m->kind >= DATA && m->kind <= READY && m->length < UINT64_C(1) << 48 && m->bytes == sizeof *m + data;
}

/* A whole message has come. */
static void take(struct vg_gloo_pair *pair)
{
    const struct message *m = &pair->out;
    struct vg_gloo_call *call = makes_sense(m) ? vg_gloo_call_of(&pair->ends, m->slot) : NULL;
    if (!call) {
        give_up(pair);
        return;
    }
    if (m->kind == DATA) {
        pair->data_out = m->length;
        if (m->length == 0)
            sent(pair, NULL);
    } else if (m->kind == SENDS) {
        vg_gloo_announced(call, m->length);
        put(pair, READY, m->slot, m->length);
    } else {
        asked(pair, call, m);
    }
}

/* Some of what is next; how many bytes of it. gloo hands out its data in one piece. */
static size_t take_some(struct vg_gloo_pair *pair, const unsigned char *at, size_t n)
{
    size_t want = (pair->named ? sizeof pair->out : sizeof(uint64_t)) - pair->out_bytes;
    if (pair->data_out > 0) {
        size_t data = pair->data_out < n ? (size_t)pair->data_out : n;
        bool whole = data == pair->out.length;
        pair->data_out -= data;
        if (whole)
            sent(pair, at);
        else
            give_up(pair);
        return data;
    }
    want = want < n ? want : n;
    memcpy((unsigned char *)&pair->out + pair->out_bytes, at, want);
    pair->out_bytes += want;
    if (!pair->named && pair->out_bytes == sizeof(uint64_t)) {
        pair->ends.me = (uint32_t)pair->out.bytes;
        pair->named = true;
        pair->out_bytes = 0;
    } else if (pair->named && pair->out_bytes == sizeof pair->out) {
        pair->out_bytes = 0;
        take(pair);
    }
    return want;
}

ssize_t vg_gloo_send(int fd, const struct iovec *piece, int n)
{
    ssize_t all = 0;
    pthread_mutex_lock(&lock);
    struct vg_gloo_pair *pair = pair_of(fd);
    for (int i = 0; pair && i < n; i++) {
        const unsigned char *at = piece[i].iov_base;
        for (size_t left = piece[i].iov_len; left > 0 && !pair->broken;) {
            size_t took = take_some(pair, at, left);
            at += took;
            left -= took;
        }
        all += (ssize_t)piece[i].iov_len;
    }
    pthread_mutex_unlock(&lock);
    return all;
}

/* --- what gloo reads ---------------------------------------------------------------------------------------------------- */

/* The data behind a message: gloo asks for all of it. */
static ssize_t give_data(struct vg_gloo_pair *pair, void *to, size_t bytes)
{
    struct vg_gloo_answer *answer = pair->first;
    if (!answer || answer->bytes != pair->data_in || bytes < pair->data_in) {
        give_up(pair);
        return 0;
    }
    vg_gloo_fill(answer, to);
    pair->first = answer->next;
    pair->last = pair->first ? pair->last : NULL;
    pair->data_in = 0;
    ssize_t n = (ssize_t)answer->bytes;
    drop(answer);
    return n;
}

/* Messages come over the connection, at most to the end of one. */
static ssize_t give_message(struct vg_gloo_pair *pair, void *to, size_t bytes, int fd, int flags)
{
    size_t left = sizeof pair->in - pair->in_bytes;
    ssize_t n = vg_libc_recv(fd, to, bytes < left ? bytes : left, flags);
    if (n <= 0)
        return n;
    memcpy((unsigned char *)&pair->in + pair->in_bytes, to, (size_t)n);
    pair->in_bytes += (size_t)n;
    if (pair->in_bytes == sizeof pair->in) {
        pair->in_bytes = 0;
        pair->data_in = pair->in.kind == DATA ? pair->in.length : 0;
    }
    return n;
}

ssize_t vg_gloo_receive(int fd, void *to, size_t bytes, int flags)
{
    pthread_mutex_lock(&lock);
    struct vg_gloo_pair *pair = pair_of(fd);
    bool data = pair && pair->data_in > 0;
    ssize_t n = data ? give_data(pair, to, bytes) : 0;
    pthread_mutex_unlock(&lock);
    /* Not under the lock: gloo's thread alone reads, and may be let wait. */
    return data || !pair ? n : give_message(pair, to, bytes, fd, flags);
}

/* --- groups ------------------------------------------------------------------------------------------------------------- */

/* Counts a connection of a group; false: no memory. */
static bool join_group(uint64_t name)
{
    struct group *group = groups;
    while (group && group->name != name)
        group = group->next;
    if (!group) {
        group = calloc(1, sizeof *group);
        if (!group)
            return false;
        *group = (struct group){.next = groups, .name = name};
        groups = group;
    }
    group->connections++;
    return true;
}

static void leave_group(uint64_t name)
{
    for (struct group *group = groups; group; group = group->next)
        if (group->name == name && --group->connections == 0)
            vg_gloo_over(name);
}

/* --- connections -------------------------------------------------------------------------------------------------------- */

static bool listen_here(void)
{
    socklen_t bytes = sizeof listens;
    if (listener >= 0)
        return true;
    listens = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = vg_new_socket(SOCK_CLOEXEC);
    if (listener >= 0 && bind(listener, (struct sockaddr *)&listens, sizeof listens) == 0 &&
        listen(listener, SOMAXCONN) == 0 && getsockname(listener, (struct sockaddr *)&listens, &bytes) == 0)
        return true;
    if (listener >= 0)
        (void)vg_libc_close(listener);
    listener = -1;
    return false;
}

/* The other end of a connection to ourselves: of that socket, whoever else may find the port. */
static int other_end(int fd)
{
    struct sockaddr_in mine = {0}, from;
    for (;;) {
        socklen_t bytes = sizeof from, own = sizeof mine;
        int end = vg_libc_accept4(listener, (struct sockaddr *)&from, &bytes, SOCK_CLOEXEC);
        if (end < 0 && errno == EINTR)
            continue;
        if (end < 0 || (getsockname(fd, (struct sockaddr *)&mine, &own) == 0 && mine.sin_port == from.sin_port))
            return end;
        (void)vg_libc_close(end);
    }
}

/*
 * An address of the loopback for this socket alone. The kernel's own choice looks at thousands of ports for each where thousands are taken; here
 * processes begin at ports that are far from each other, and take one after another.
 */
static bool bind_own(int fd, struct sockaddr_in *own)
{
    /* Linux's own range (net.ipv4.ip_local_port_range); STEP is a prime, so that processes which follow each other begin far apart */
    enum { FIRST = 32768, PORTS = 28232, STEP = 9973, TRIES = 256 };
    static unsigned next;
    static pid_t of;
    if (of != getpid()) { /* a fork begins anew */
        of = getpid();
        next = (unsigned)of * STEP;
    }
    for (unsigned i = 0; i <= TRIES; i++) {
        own->sin_port = i < TRIES ? htons((uint16_t)(FIRST + next++ % PORTS)) : 0;
        if (bind(fd, (struct sockaddr *)own, sizeof *own) == 0)
            return true;
        if (errno != EADDRINUSE)
            return false;
    }
    return false;
}

/*
 * A socket that connects to its own address is connected to itself (RFC 9293, 3.5: both ends open at once): one descriptor for each peer,
 * where there may be thousands. false: the program has given it an address of its own.
 */
static bool connect_to_itself(int fd)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    return bind_own(fd, &own) && getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
           (vg_libc_connect(fd, (struct sockaddr *)&own, sizeof own) == 0 || errno == EINPROGRESS);
}

static bool connect_here(int fd)
{
    return listen_here() &&
           (vg_libc_connect(fd, (const struct sockaddr *)&listens, sizeof listens) == 0 || errno == EINPROGRESS);
}

/*
 * One message does not wait for the acknowledgement of the one before; and a connection that is closed is gone at once: else its port would be taken
 * for a minute more (TIME-WAIT), and four runs of 8,192 ranks would have taken all that a host has.
 */
static void set_options(int fd)
{
    const int yes = 1;
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static int make_pair(int fd, const struct maq_gloo_peer *peer)
{
    struct vg_gloo_pair *pair = calloc(1, sizeof *pair);
    bool itself = pair && connect_to_itself(fd);
    if (!pair || (!itself && !connect_here(fd))) {
        free(pair);
        errno = ECONNREFUSED;
        return -1;
    }
    *pair = (struct vg_gloo_pair){.ends.peer = *peer, .other = itself ? fd : other_end(fd)};
    vg_allow_descriptors(fd);
    set_options(fd);
    if (!itself)
        set_options(pair->other);
    if (pair->other < 0 || !join_group(peer->group)) {
        if (pair->other >= 0 && !itself)
            (void)vg_libc_close(pair->other);
        free(pair);
        return -1;
    }
    __atomic_store_n(&pairs[fd], pair, __ATOMIC_RELEASE);
    return 0;
}

bool vg_gloo_connect(int fd, const struct sockaddr *address, int *result)
{
    struct maq_gloo_peer peer;
    unsigned char bytes[14];
    memcpy(bytes, (const unsigned char *)address + sizeof address->sa_family, sizeof bytes);
    if (fd < 0 || fd >= VG_FDS || !maq_gloo_peer_of(&peer, bytes))
        return false;
    pthread_mutex_lock(&lock);
    *result = make_pair(fd, &peer);
    pthread_mutex_unlock(&lock);
    return true;
}

void vg_gloo_close(int fd)
{
    pthread_mutex_lock(&lock);
    struct vg_gloo_pair *pair = pair_of(fd);
    if (pair) {
        __atomic_store_n(&pairs[fd], NULL, __ATOMIC_RELEASE);
        vg_gloo_forget(pair);
        while (pair->first) {
            struct vg_gloo_answer *answer = pair->first;
            pair->first = answer->next;
            drop(answer);
        }
        if (pair->other != fd)
            (void)vg_libc_close(pair->other);
        leave_group(pair->ends.peer.group);
        free(pair);
    }
    pthread_mutex_unlock(&lock);
}
