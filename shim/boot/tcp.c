/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - rendezvous over TCP for a rank that runs alone: rank 0 listens, accepts all others and tells each of them
 * something (a unique id); the others connect and read it.
 *
 * In a host program: the exchange of a unique id that it has written itself, over sockets.
 *
 * Only for ports that the run card names (`tcp 12345,29400`), and only when ranks run one at a time: ranks that run together
 * find each other by themselves.
 *
 *   accept    where no real client is waiting, one of world - 1 virtual clients has come. What it is told goes nowhere, but
 *             what the first of them is told goes into the trace (an exchange of the port, rank 0)
 *   connect   succeeds at once; what is read is what rank 0's slice told its first client, or zeros where nobody has run it
 *
 * What clients say to rank 0 is not carried: it reads the end of the stream. A virtual connection is an unconnected socket, so
 * options can be set on it; descriptors of all 8,191 are made room for.
 */
#include "shim/boot/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "shim/boot/device_lookup.h"
#include "shim/boot/libc.h"
#include "shim/boot/virtual_descriptors.h"

enum { PORTS = 8 };
enum { REAL, TOLD, TELLS, READS }; /* a client nobody listens to; the first one; a connection to rank 0 */

static unsigned char kind[VG_FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct port {
    uint16_t number;
    uint32_t accepted;
    uint32_t seq;   /* of what is being read */
    uint64_t taken; /* of it, so far */
} ports[PORTS];
static unsigned n_ports;
static uint16_t port_of_fd[VG_FDS];

static void read_card(void)
{
    char list[128];
    if (!vg_card_word(list, sizeof list, "tcp"))
        return;
    for (char *at = list, *end = NULL; *at && n_ports < PORTS; at = *end ? end + 1 : end) {
        unsigned long number = strtoul(at, &end, 10);
        if (end == at)
            return;
        if (number > 0 && number <= UINT16_MAX)
            ports[n_ports++].number = (uint16_t)number;
    }
}

/* The port of an address, if peers on it are virtual. */
static struct port *virtual_port(const struct sockaddr *address)
{
    const struct vg_hooks *device = vg_device_beside();
    if (!device || device->card()->meets || device->card()->world < 2 || address->sa_family != AF_INET)
        return NULL;
    pthread_once(&once, read_card);
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    for (unsigned i = 0; i < n_ports; i++)
        if (ports[i].number == ntohs(in.sin_port))
            return &ports[i];
    return NULL;
}

static uint64_t channel(uint16_t port)
{
    return maq_rec_mix(0x746370, port);
}

static unsigned char kind_of(int fd)
{
    return fd >= 0 && fd < VG_FDS ? __atomic_load_n(&kind[fd], __ATOMIC_RELAXED) : REAL;
}

static void mark(int fd, unsigned char as, uint16_t port)
{
    port_of_fd[fd] = port;
    __atomic_store_n(&kind[fd], as, __ATOMIC_RELAXED);
}

static struct port *port_at(int fd)
{
    for (unsigned i = 0; i < n_ports; i++)
        if (ports[i].number == port_of_fd[fd])
            return &ports[i];
    return &ports[0];
}

/* --- rank 0 ----------------------------------------------------------------------------------------------------------- */

int vg_tcp_accept(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    struct sockaddr_in mine = {0};
    socklen_t bytes = sizeof mine;
    struct port *port =
        getsockname(fd, (struct sockaddr *)&mine, &bytes) == 0 ? virtual_port((struct sockaddr *)&mine) : NULL;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    if (!port || vg_libc_poll(&waiting, 1, 0) != 0)
        return vg_libc_accept4(fd, address, length, flags);
    pthread_mutex_lock(&lock);
    bool more = port->accepted + 1 < vg_device_beside()->card()->world;
    int out = more ? vg_new_socket(flags) : -1;
    if (out >= 0)
        mark(out, port->accepted++ == 0 ? TELLS : TOLD, port->number);
    uint16_t from = (uint16_t)(32768 + port->accepted % 28000);
    pthread_mutex_unlock(&lock);
    if (!more)
        return vg_libc_accept4(fd, address, length, flags);
    if (out >= 0 && address && length) {
        mine.sin_port = htons(from);
        memcpy(address, &mine, *length < sizeof mine ? *length : sizeof mine);
        *length = sizeof mine;
    }
    return out;
}

/* --- the others ------------------------------------------------------------------------------------------------------- */

bool vg_tcp_connect(int fd, const struct sockaddr *address)
{
    struct port *port = fd >= 0 && fd < VG_FDS ? virtual_port(address) : NULL;
    if (!port || vg_device_beside()->card()->rank == 0)
        return false;
    mark(fd, READS, port->number);
    return true;
}

/* What rank 0 told, as a stream. */
static ssize_t heard(int fd, char *to, size_t bytes)
{
    const struct vg_hooks *device = vg_device_beside();
    pthread_mutex_lock(&lock);
    struct port *port = port_at(fd);
    uint64_t there = 0;
    const char *told = device->contribution(channel(port->number), port->seq, 0, &there);
    size_t n = bytes;
    if (told) {
        n = there - port->taken < n ? (size_t)(there - port->taken) : n;
        memcpy(to, told + port->taken, n);
        port->taken += n;
        if (port->taken >= there) {
            port->seq++;
            port->taken = 0;
        }
    } else if (port->seq == 0) {
        memset(to, 0, n);
    } else {
        n = 0; /* the end of what was recorded */
    }
    pthread_mutex_unlock(&lock);
    return (ssize_t)n;
}

bool vg_tcp_has(int fd)
{
    return kind_of(fd) != REAL;
}

ssize_t vg_tcp_receive(int fd, void *to, size_t bytes)
{
    return kind_of(fd) == READS ? heard(fd, to, bytes) : 0;
}

ssize_t vg_tcp_send(int fd, const void *data, size_t bytes)
{
    if (kind_of(fd) == TELLS)
        vg_device_beside()->record(channel(port_of_fd[fd]), 0, data, bytes);
    return (ssize_t)bytes;
}

void vg_tcp_close(int fd)
{
    mark(fd, REAL, 0);
}
