/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo.h - connections of gloo with ranks that are not there: for sockets.c.
 */
#ifndef MAQ_SHIM_BOOT_GLOO_H
#define MAQ_SHIM_BOOT_GLOO_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* false: that address is real; otherwise *result is what connect() returns. */
bool vg_gloo_connect(int fd, const struct sockaddr *address, int *result);
/* Whether it is one of these connections. */
bool vg_gloo_has(int fd);
ssize_t vg_gloo_send(int fd, const struct iovec *piece, int n);
ssize_t vg_gloo_receive(int fd, void *to, size_t bytes, int flags);
void vg_gloo_close(int fd);
/* A set of epoll that is closed: another one may have its number next. */
void vg_gloo_loop_close(int set);

#endif
