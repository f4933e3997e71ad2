/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the host's clocks follow the device's virtual time, for threads that drive the device.
 *
 * In a host program: every call that reads a clock, sleeps, or waits until a time.
 *
 * A program that measures with the host's clock would measure how fast nothing runs. So for a thread that has launched,
 * allocated or communicated, clocks that tell the time read
 *
 *     the real time at the process's first such reading + how far virtual time has come since then
 *
 * and a reading costs nothing, since how often a runtime reads a clock is not the program's doing: Python's interpreter lock does at each turn
 * of a wait that takes real time, and an import of a large module some 5,000 times (torch.distributed.fsdp), in a rank that starts by itself and not
 * in one that is forked. From the 65,536th in a row on, with nothing done in between, a reading takes 25 ns of host time (through the vDSO, on current
 * x86 servers), so that a loop which waits for a time to come ends. Its sleeps move virtual time and take none. All other threads (watchdogs, stores,
 * loaders), and all before they drive, are on the real clock: time-outs of sockets must not run out because a kernel was long.
 *
 *   follow    clock_gettime of REALTIME, MONOTONIC, their coarse and raw forms and BOOTTIME; gettimeofday; time
 *   sleep     nanosleep, clock_nanosleep, usleep, sleep; poll, ppoll and select without descriptors
 *   real      CPU-time clocks; poll, select and epoll with descriptors. Deadlines of condition variables and semaphores are taken from
 *             virtual to real time by the difference of the two
 *
 * `clock real` in the run card leaves all of them alone.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "shim/boot/device_lookup.h"
#include "shim/boot/libc.h"

#define READING_NS 25
#define FREE_READINGS 65536
#define SECOND INT64_C(1000000000)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool all_real;

static void read_card(void)
{
    char word[16];
    all_real = vg_card_word(word, sizeof word, "clock") && strcmp(word, "real") == 0;
}

/* The device, if the calling thread's time is virtual. */
static const struct vg_hooks *virtual_time(void)
{
    const struct vg_hooks *device = vg_device_beside();
    if (!device || !device->drives())
        return NULL;
    pthread_once(&once, read_card);
    return all_real ? NULL : device;
}

static int64_t real_ns(clockid_t id)
{
    struct timespec t = {0};
    (void)vg_libc_clock_gettime(id, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* Clocks that tell the time; they differ by constants. */
static bool tells_time(clockid_t id)
{
    return id == CLOCK_REALTIME || id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW || id == CLOCK_REALTIME_COARSE ||
           id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
}

/* What is added to vg_now(), one number for each clock and process: set at the first reading, so that what a thread read before
 * it drove the device is not in its future, and differences between readings are differences of virtual time. */
static int64_t origin(const struct vg_hooks *device, clockid_t id)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int64_t origins[CLOCK_BOOTTIME + 1];
    static bool set;
    pthread_mutex_lock(&lock);
    for (clockid_t i = 0; i <= CLOCK_BOOTTIME && !set; i++)
        origins[i] = tells_time(i) ? real_ns(i) - device->now() : 0;
    set = true;
    int64_t out = origins[id];
    pthread_mutex_unlock(&lock);
    return out;
}

static int64_t virtual_ns(const struct vg_hooks *device, clockid_t id)
{
    return device->now() + origin(device, id);
}

/* This thread reads a clock: one of many in a row takes time. Not so those of a loop that asks the device and looks how long it has:
 * that waits for the device. */
static void count_reading(const struct vg_hooks *device)
{
    static _Thread_local int64_t stood = -1;
    static _Thread_local unsigned in_a_row, asked;
    in_a_row = device->now() == stood && device->asked() == asked ? in_a_row + 1 : 1;
    asked = device->asked();
    if (in_a_row >= FREE_READINGS)
        device->host(READING_NS);
    stood = device->now();
}

/* --- clocks ----------------------------------------------------------------------------------------------------------- */

VG_EXPORT int clock_gettime(clockid_t id, struct timespec *t)
{
    const struct vg_hooks *device = tells_time(id) ? virtual_time() : NULL;
    if (!device)
        return vg_libc_clock_gettime(id, t);
    count_reading(device);
    *t = timespec_of(virtual_ns(device, id));
    return 0;
}

VG_EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &t);
    if (result == 0)
        *tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return result;
}

VG_EXPORT time_t time(time_t *out)
{
    struct timespec t;
    if (clock_gettime(CLOCK_REALTIME, &t) != 0)
        return (time_t)-1;
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

/* --- sleeps ----------------------------------------------------------------------------------------------------------- */

static bool slept(int64_t ns)
{
    const struct vg_hooks *device = virtual_time();
    if (device)
        device->host(ns > 0 ? ns : 0);
    return device != NULL;
}

static bool is_time(const struct timespec *t)
{
    return t && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < SECOND;
}

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec < INT64_MAX / SECOND - 1 ? (int64_t)t->tv_sec * SECOND + t->tv_nsec : INT64_MAX / 2;
}

VG_EXPORT int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (is_time(wanted) && slept(ns_of(wanted)))
        return 0;
    return vg_libc_nanosleep(wanted, left);
}

VG_EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *wanted, struct timespec *left)
{
    const struct vg_hooks *device = tells_time(id) && is_time(wanted) ? virtual_time() : NULL;
    if (device) {
        int64_t ns = ns_of(wanted);
        (void)slept(flags & TIMER_ABSTIME ? ns - virtual_ns(device, id) : ns);
        return 0;
    }
    return vg_libc_clock_nanosleep(id, flags, wanted, left);
}

VG_EXPORT int usleep(useconds_t us)
{
    struct timespec t = timespec_of((int64_t)us * 1000);
    return nanosleep(&t, NULL);
}

VG_EXPORT unsigned sleep(unsigned seconds)
{
    struct timespec t = {.tv_sec = seconds}, left = {0};
    return nanosleep(&t, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

VG_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (n == 0 && timeout_ms >= 0 && slept((int64_t)timeout_ms * 1000000))
        return 0;
    return vg_libc_poll(fds, n, timeout_ms);
}

VG_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    if (n == 0 && is_time(timeout) && slept(ns_of(timeout)))
        return 0;
    return vg_libc_ppoll(fds, n, timeout, mask);
}

VG_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                     struct timeval *restrict timeout)
{
    bool none = n <= 0 || (!in && !out && !odd);
    if (none && timeout && slept((int64_t)timeout->tv_sec * SECOND + (int64_t)timeout->tv_usec * 1000))
        return 0;
    return vg_libc_select(n, in, out, odd, timeout);
}

/* --- condition variables and semaphores ---------------------------------------------------------------------------------------------- */

/* A deadline that a thread on virtual time computed, on the real clock: the two are as far apart on every clock. */
static struct timespec real_deadline(const struct timespec *deadline)
{
    const struct vg_hooks *device = is_time(deadline) ? virtual_time() : NULL;
    if (!device)
        return *deadline;
    int64_t ahead = virtual_ns(device, CLOCK_MONOTONIC) - real_ns(CLOCK_MONOTONIC), ns = ns_of(deadline) - ahead;
    return timespec_of(ns > 0 ? ns : 0);
}

VG_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                     const struct timespec *restrict deadline)
{
    struct timespec t = real_deadline(deadline);
    return vg_libc_cond_timedwait(cond, mutex, &t);
}

VG_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t id,
                                     const struct timespec *restrict deadline)
{
    struct timespec t = real_deadline(deadline);
    return vg_libc_cond_clockwait(cond, mutex, id, &t);
}

/* What Python's locks and events wait for. */
VG_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict deadline)
{
    struct timespec t = real_deadline(deadline);
    return vg_libc_sem_timedwait(sem, &t);
}

VG_EXPORT int sem_clockwait(sem_t *restrict sem, clockid_t id, const struct timespec *restrict deadline)
{
    struct timespec t = real_deadline(deadline);
    return vg_libc_sem_clockwait(sem, id, &t);
}
