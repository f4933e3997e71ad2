/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - connections of a program's own rendezvous, on ports that the run card names: for sockets.c.
 */
#ifndef MAQ_SHIM_BOOT_TCP_H
#define MAQ_SHIM_BOOT_TCP_H

#include <stdbool.h>
#include <sys/socket.h>

int vg_tcp_accept(int fd, struct sockaddr *address, socklen_t *length, int flags);
/* false: that address is real. */
bool vg_tcp_connect(int fd, const struct sockaddr *address);
/* Whether it is one of these connections. */
bool vg_tcp_has(int fd);
ssize_t vg_tcp_send(int fd, const void *data, size_t bytes);
ssize_t vg_tcp_receive(int fd, void *to, size_t bytes);
void vg_tcp_close(int fd);

#endif
