/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc.c - the C library's own functions, found behind ours when the library is loaded: a first write() may come from a signal's
 * handler.
 *
 * In a host program: what it would call without this library.
 */
#include "shim/boot/libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

enum behind {
    CLOCK_GETTIME,
    NANOSLEEP,
    CLOCK_NANOSLEEP,
    POLL,
    PPOLL,
    SELECT,
    COND_CLOCKWAIT,
    SEM_TIMEDWAIT,
    SEM_CLOCKWAIT,
    GETHOSTNAME,
    UNAME,
    GETADDRINFO,
    ACCEPT4,
    CONNECT,
    SEND,
    RECV,
    WRITE,
    WRITEV,
    READ,
    CLOSE,
    EPOLL_CTL,
    EPOLL_WAIT,
    FUNCTIONS
};
static const char *const names[FUNCTIONS] = {
    [CLOCK_GETTIME] = "clock_gettime",
    [NANOSLEEP] = "nanosleep",
    [CLOCK_NANOSLEEP] = "clock_nanosleep",
    [POLL] = "poll",
    [PPOLL] = "ppoll",
    [SELECT] = "select",
    [COND_CLOCKWAIT] = "pthread_cond_clockwait",
    [SEM_TIMEDWAIT] = "sem_timedwait",
    [SEM_CLOCKWAIT] = "sem_clockwait",
    [GETHOSTNAME] = "gethostname",
    [UNAME] = "uname",
    [GETADDRINFO] = "getaddrinfo",
    [ACCEPT4] = "accept4",
    [CONNECT] = "connect",
    [SEND] = "send",
    [RECV] = "recv",
    [WRITE] = "write",
    [WRITEV] = "writev",
    [READ] = "read",
    [CLOSE] = "close",
    [EPOLL_CTL] = "epoll_ctl",
    [EPOLL_WAIT] = "epoll_wait",
};
static void *functions[FUNCTIONS];

static void *find(enum behind id)
{
    void *found = dlsym(RTLD_NEXT, names[id]);
    __atomic_store_n(&functions[id], found, __ATOMIC_RELAXED);
    return found;
}

__attribute__((constructor)) static void find_all(void)
{
    for (unsigned id = 0; id < FUNCTIONS; id++)
        (void)find((enum behind)id);
}

typedef void function(void); /* of any type: who calls it knows which */
static function *behind(enum behind id)
{
    void *found = __atomic_load_n(&functions[id], __ATOMIC_RELAXED);
    if (!found) /* another library's constructor was before ours */
        found = find(id);
    function *out;
    memcpy(&out, &found, sizeof out); /* dlsym() gives functions as objects */
    return out;
}

/* --- clocks and sleeps ------------------------------------------------------------------------------------------------ */

int vg_libc_clock_gettime(clockid_t id, struct timespec *t)
{
    return ((int (*)(clockid_t, struct timespec *))behind(CLOCK_GETTIME))(id, t);
}

int vg_libc_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    return ((int (*)(const struct timespec *, struct timespec *))behind(NANOSLEEP))(wanted, left);
}

int vg_libc_clock_nanosleep(clockid_t id, int flags, const struct timespec *wanted, struct timespec *left)
{
    return ((int (*)(clockid_t, int, const struct timespec *, struct timespec *))behind(CLOCK_NANOSLEEP))(id, flags,
                                                                                                          wanted, left);
}

int vg_libc_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return ((int (*)(struct pollfd *, nfds_t, int))behind(POLL))(fds, n, timeout_ms);
}

int vg_libc_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    return ((int (*)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))behind(PPOLL))(fds, n, timeout,
                                                                                                        mask);
}

int vg_libc_select(int n, fd_set *in, fd_set *out, fd_set *odd, struct timeval *timeout)
{
    return ((int (*)(int, fd_set *, fd_set *, fd_set *, struct timeval *))behind(SELECT))(n, in, out, odd, timeout);
}

int vg_libc_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
    /* glibc has two; a plain look-up may find the one of old programs, of another layout. */
    static int (*newest)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!newest)
        *(void **)&newest = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    return newest ? newest(cond, mutex, deadline) : ENOSYS;
}

int vg_libc_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id, const struct timespec *deadline)
{
    return ((int (*)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))behind(COND_CLOCKWAIT))(
        cond, mutex, id, deadline);
}

int vg_libc_sem_timedwait(sem_t *sem, const struct timespec *deadline)
{
    return ((int (*)(sem_t *, const struct timespec *))behind(SEM_TIMEDWAIT))(sem, deadline);
}

int vg_libc_sem_clockwait(sem_t *sem, clockid_t id, const struct timespec *deadline)
{
    return ((int (*)(sem_t *, clockid_t, const struct timespec *))behind(SEM_CLOCKWAIT))(sem, id, deadline);
}

/* --- names ------------------------------------------------------------------------------------------------------------ */

int vg_libc_gethostname(char *name, size_t room)
{
    return ((int (*)(char *, size_t))behind(GETHOSTNAME))(name, room);
}

int vg_libc_uname(struct utsname *out)
{
    return ((int (*)(struct utsname *))behind(UNAME))(out);
}

int vg_libc_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))behind(GETADDRINFO))(
        name, service, hints, out);
}

/* --- sockets ---------------------------------------------------------------------------------------------------------- */

int vg_libc_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return ((int (*)(int, struct sockaddr *, socklen_t *, int))behind(ACCEPT4))(fd, address, length, flags);
}

int vg_libc_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    return ((int (*)(int, const struct sockaddr *, socklen_t))behind(CONNECT))(fd, address, length);
}

ssize_t vg_libc_send(int fd, const void *data, size_t bytes, int flags)
{
    return ((ssize_t(*)(int, const void *, size_t, int))behind(SEND))(fd, data, bytes, flags);
}

ssize_t vg_libc_recv(int fd, void *to, size_t bytes, int flags)
{
    return ((ssize_t(*)(int, void *, size_t, int))behind(RECV))(fd, to, bytes, flags);
}

ssize_t vg_libc_write(int fd, const void *data, size_t bytes)
{
    return ((ssize_t(*)(int, const void *, size_t))behind(WRITE))(fd, data, bytes);
}

ssize_t vg_libc_writev(int fd, const struct iovec *piece, int n)
{
    return ((ssize_t(*)(int, const struct iovec *, int))behind(WRITEV))(fd, piece, n);
}

ssize_t vg_libc_read(int fd, void *to, size_t bytes)
{
    return ((ssize_t(*)(int, void *, size_t))behind(READ))(fd, to, bytes);
}

int vg_libc_close(int fd)
{
    return ((int (*)(int))behind(CLOSE))(fd);
}

int vg_libc_epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
    return ((int (*)(int, int, int, struct epoll_event *))behind(EPOLL_CTL))(set, op, fd, event);
}

int vg_libc_epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms)
{
    return ((int (*)(int, struct epoll_event *, int, int))behind(EPOLL_WAIT))(set, events, most, timeout_ms);
}
