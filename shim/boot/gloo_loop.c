/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_loop.c - gloo's loop goes round at once where a connection with nobody real is taken out of it.
 *
 * In a host program: epoll_ctl() and epoll_wait() of gloo's thread.
 *
 * A pair of gloo that ends takes its descriptor out of the thread's set and waits until the thread has gone round, which looks every 10 ms
 * (gloo/transport/tcp/loop.cc: unregisterDescriptor, run). Connections with somebody real go round sooner, by what the other side does. A
 * program of 8,192 ranks would wait for 82 s at its end. So the set looks every 50 us for a while.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "shim/boot/gloo.h"
#include "shim/boot/libc.h"
#include "shim/boot/virtual_descriptors.h"
#include "shim/vgpu.h"

#define LOOK_NS 50000     /* as long as closing a connection takes, about: it neither waits nor spins much */
#define WHILE_NS 20000000 /* two of gloo's rounds: the next pair is taken out before */
#define SECOND INT64_C(1000000000)

static int64_t hurries_until[VG_FDS]; /* by the set's descriptor, in real time; 0: it is like any other */

static int64_t real_now(void)
{
    struct timespec t = {0};
    (void)vg_libc_clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static bool hurries(int set)
{
    const int64_t until = set >= 0 && set < VG_FDS ? __atomic_load_n(&hurries_until[set], __ATOMIC_RELAXED) : 0;
    return until > 0 && real_now() < until;
}

void vg_gloo_loop_close(int set)
{
    if (set >= 0 && set < VG_FDS)
        __atomic_store_n(&hurries_until[set], 0, __ATOMIC_RELAXED);
}

VG_EXPORT int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
    if (op == EPOLL_CTL_DEL && set >= 0 && set < VG_FDS && vg_gloo_has(fd))
        __atomic_store_n(&hurries_until[set], real_now() + WHILE_NS, __ATOMIC_RELAXED);
    return vg_libc_epoll_ctl(set, op, fd, event);
}

VG_EXPORT int epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms)
{
    if (timeout_ms != 0 && hurries(set)) {
        struct pollfd waits = {.fd = set, .events = POLLIN};
        const struct timespec look = {.tv_nsec = LOOK_NS};
        (void)vg_libc_ppoll(&waits, 1, &look, NULL);
        timeout_ms = 0;
    }
    return vg_libc_epoll_wait(set, events, most, timeout_ms);
}
