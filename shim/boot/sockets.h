/*
 * sockets.h - sockets with nobody real behind them: sockets.c stands before the C library's calls, and asks who has a descriptor.
 *
 *     tcp.c     a program's own rendezvous, on ports that the card names
 *     gloo.c    connections of gloo with ranks that are not there
 */
#ifndef MAQ_SHIM_BOOT_SOCKETS_H
#define MAQ_SHIM_BOOT_SOCKETS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { VG_FDS = 1 << 17 }; /* descriptors that may be virtual: below */

/* A new stream socket, also where a program was allowed less than the most descriptors. -1: errno says why. */
int vg_new_socket(int flags);

/* *_has: whose descriptor it is. *_connect: false = that address is real. */
int vg_tcp_accept(int fd, struct sockaddr *address, socklen_t *length, int flags);
bool vg_tcp_connect(int fd, const struct sockaddr *address);
bool vg_tcp_has(int fd);
ssize_t vg_tcp_send(int fd, const void *data, size_t bytes);
ssize_t vg_tcp_receive(int fd, void *to, size_t bytes);
void vg_tcp_close(int fd);

/* connect: *result is what connect() returns. */
bool vg_gloo_connect(int fd, const struct sockaddr *address, int *result);
bool vg_gloo_has(int fd);
ssize_t vg_gloo_send(int fd, const struct iovec *piece, int n);
ssize_t vg_gloo_receive(int fd, void *to, size_t bytes, int flags);
void vg_gloo_close(int fd);

#endif
