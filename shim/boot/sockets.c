/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets.c - the host program's calls on sockets: stands before the C library's, and asks who has a descriptor.
 *
 * In a host program: connect(), accept(), send(), recv(), read(), write() and close().
 *
 *     tcp.c     a program's own rendezvous, on ports that the card names
 *     gloo.c    connections of gloo with ranks that are not there
 *     libc.c    all others: somebody real
 */
#include <netinet/in.h>
#include <unistd.h>

#include "shim/boot/gloo.h"
#include "shim/boot/libc.h"
#include "shim/boot/tcp.h"
#include "shim/vgpu.h"

/* --- connections ------------------------------------------------------------------------------------------------------ */

/* glibc's addresses are unions of pointers. */
VG_EXPORT int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict length, int flags)
{
    return vg_tcp_accept(fd, address.__sockaddr__, length, flags);
}

VG_EXPORT int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
    return vg_tcp_accept(fd, address.__sockaddr__, length, 0);
}

VG_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
    const struct sockaddr *address = to.__sockaddr__;
    bool internet = address && length >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET;
    int result = 0;
    if (internet && (vg_tcp_connect(fd, address) || vg_gloo_connect(fd, address, &result)))
        return result;
    return vg_libc_connect(fd, address, length);
}

VG_EXPORT int close(int fd)
{
    if (vg_tcp_has(fd))
        vg_tcp_close(fd);
    else if (vg_gloo_has(fd))
        vg_gloo_close(fd);
    else
        vg_gloo_loop_close(fd);
    return vg_libc_close(fd);
}

/* --- streams ---------------------------------------------------------------------------------------------------------- */

/* What nobody real gets, and *n bytes of it. */
static bool sent(int fd, const void *data, size_t bytes, ssize_t *n)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    bool tcp = vg_tcp_has(fd);
    if (tcp || vg_gloo_has(fd))
        *n = tcp ? vg_tcp_send(fd, data, bytes) : vg_gloo_send(fd, &piece, 1);
    else
        return false;
    return true;
}

static bool received(int fd, void *to, size_t bytes, int flags, ssize_t *n)
{
    bool tcp = vg_tcp_has(fd);
    if (tcp || vg_gloo_has(fd))
        *n = tcp ? vg_tcp_receive(fd, to, bytes) : vg_gloo_receive(fd, to, bytes, flags);
    else
        return false;
    return true;
}

VG_EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    ssize_t n;
    if (sent(fd, data, bytes, &n))
        return n;
    return vg_libc_send(fd, data, bytes, flags);
}

VG_EXPORT ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    ssize_t n;
    if (received(fd, to, bytes, flags, &n))
        return n;
    return vg_libc_recv(fd, to, bytes, flags);
}

VG_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t n;
    if (sent(fd, data, bytes, &n))
        return n;
    return vg_libc_write(fd, data, bytes);
}

VG_EXPORT ssize_t writev(int fd, const struct iovec *piece, int n)
{
    if (vg_gloo_has(fd))
        return vg_gloo_send(fd, piece, n);
    return vg_libc_writev(fd, piece, n);
}

VG_EXPORT ssize_t read(int fd, void *to, size_t bytes)
{
    ssize_t n;
    if (received(fd, to, bytes, 0, &n))
        return n;
    return vg_libc_read(fd, to, bytes);
}
