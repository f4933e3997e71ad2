/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - virtual time: where the program's host stands.
 *
 * In a CUDA program: the thread that calls CUDA, and the time that passes for it.
 *
 * The host's clock is one number per process. It moves by what calls cost (the card says: call_ns, launch_ns) and when
 * the host waits for its device. Only threads that drive the device move it: a watchdog that polls must not. Threads
 * that drive it at the same time share it; their order is then the program's own, and the trace is as deterministic as
 * the program is.
 */
#include "shim/core/core.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DRIVERS_MOST = 64 };

static _Thread_local bool drives;

static int64_t now;
static int64_t untold; /* host time since the last record */

int64_t vg_now(void)
{
    return __atomic_load_n(&now, __ATOMIC_RELAXED);
}

static void go_to(int64_t t)
{
    __atomic_store_n(&now, t, __ATOMIC_RELAXED);
}

void vg_host(int64_t ns)
{
    if (!drives || ns <= 0)
        return;
    vg_lock();
    go_to(now + ns);
    untold += ns;
    vg_unlock();
}

void vg_call(void)
{
    if (!drives)
        return;
    vg_turn();
    vg_host(vg_card()->call_ns);
}

static int drivers[DRIVERS_MOST]; /* threads; those beyond are not known to watchers */
static unsigned n_drivers;

void vg_drive(void)
{
    vg_turn();
    if (drives)
        return;
    drives = true;
    vg_lock();
    if (n_drivers < DRIVERS_MOST)
        drivers[n_drivers++] = (int)syscall(SYS_gettid);
    vg_unlock();
}

unsigned vg_drivers(const int **threads)
{
    *threads = drivers;
    return n_drivers;
}

bool vg_drives(void)
{
    return drives;
}

static int64_t waited, waited_before; /* when the last wait was over, and the one before */

void vg_wait_until(int64_t t)
{
    if (!drives)
        return;
    vg_lock();
    if (t > now)
        go_to(t);
    if (now > waited) {
        waited_before = waited;
        waited = now;
    }
    vg_unlock();
}

int64_t vg_wait_before_last(void)
{
    return waited_before;
}

/*
 * A question whether something is done costs no host time: how often an allocator looks at its events hangs on when other
 * threads gave memory back, and no time line should hang on that. Where a program does nothing but ask, it waits: the last of
 * ONLY_ASKS questions in a row that time has not moved between takes the host to the end of what is asked for. Lists of tensors are made
 * without a call of CUDA between them, and an allocator may ask for each; so the number is larger than such lists are.
 */
enum { ONLY_ASKS = 16384 };
static _Thread_local unsigned asked;

bool vg_only_asks(void)
{
    static _Thread_local int64_t at;
    static _Thread_local unsigned in_a_row;
    in_a_row = vg_now() == at ? in_a_row + 1 : 1;
    at = vg_now();
    asked++;
    return in_a_row >= ONLY_ASKS;
}

unsigned vg_asked(void)
{
    return asked;
}

int64_t vg_host_taken(void)
{
    int64_t ns = untold;
    untold = 0;
    return ns;
}
