/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc.h - the C library's functions that stand behind those of libmaquette-clock.so.
 *
 * clock.c, host.c and sockets.c define names of the C library, so that a program calls them first. Whoever in this library means the C
 * library's own function calls it here; nothing here asks for the device.
 */
#ifndef MAQ_SHIM_BOOT_LIBC_H
#define MAQ_SHIM_BOOT_LIBC_H

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

/* clocks and sleeps */
int vg_libc_clock_gettime(clockid_t id, struct timespec *t);
int vg_libc_nanosleep(const struct timespec *wanted, struct timespec *left);
int vg_libc_clock_nanosleep(clockid_t id, int flags, const struct timespec *wanted, struct timespec *left);
int vg_libc_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int vg_libc_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
int vg_libc_select(int n, fd_set *in, fd_set *out, fd_set *odd, struct timeval *timeout);
int vg_libc_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
int vg_libc_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id, const struct timespec *deadline);
int vg_libc_sem_timedwait(sem_t *sem, const struct timespec *deadline);
int vg_libc_sem_clockwait(sem_t *sem, clockid_t id, const struct timespec *deadline);
/* names */
int vg_libc_gethostname(char *name, size_t room);
int vg_libc_uname(struct utsname *out);
int vg_libc_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out);
/* sockets */
int vg_libc_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int vg_libc_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t vg_libc_send(int fd, const void *data, size_t bytes, int flags);
ssize_t vg_libc_recv(int fd, void *to, size_t bytes, int flags);
ssize_t vg_libc_write(int fd, const void *data, size_t bytes);
ssize_t vg_libc_writev(int fd, const struct iovec *piece, int n);
ssize_t vg_libc_read(int fd, void *to, size_t bytes);
int vg_libc_close(int fd);
int vg_libc_epoll_ctl(int set, int op, int fd, struct epoll_event *event);
int vg_libc_epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms);

#endif
