/*
 * sockets.c - the C library's calls on sockets, for those that nobody real is behind: see sockets.h.
 */
#include "shim/boot/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shim/boot/host.h"

int vg_new_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    struct rlimit most;
    if (fd < 0 && errno == EMFILE && getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < most.rlim_max) {
        most.rlim_cur = most.rlim_max;
        fd = setrlimit(RLIMIT_NOFILE, &most) == 0 ? socket(AF_INET, SOCK_STREAM | flags, 0) : -1;
    }
    if (fd >= VG_FDS) {
        (void)close(fd);
        errno = EMFILE;
        return -1;
    }
    return fd;
}

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
    return ((int (*)(int, const struct sockaddr *, socklen_t))vg_behind(VG_BEHIND_connect))(fd, address, length);
}

VG_EXPORT int close(int fd)
{
    if (vg_tcp_has(fd))
        vg_tcp_close(fd);
    else if (vg_gloo_has(fd))
        vg_gloo_close(fd);
    return ((int (*)(int))vg_behind(VG_BEHIND_close))(fd);
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
    return ((ssize_t(*)(int, const void *, size_t, int))vg_behind(VG_BEHIND_send))(fd, data, bytes, flags);
}

VG_EXPORT ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    ssize_t n;
    if (received(fd, to, bytes, flags, &n))
        return n;
    return ((ssize_t(*)(int, void *, size_t, int))vg_behind(VG_BEHIND_recv))(fd, to, bytes, flags);
}

VG_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    ssize_t n;
    if (sent(fd, data, bytes, &n))
        return n;
    return ((ssize_t(*)(int, const void *, size_t))vg_behind(VG_BEHIND_write))(fd, data, bytes);
}

VG_EXPORT ssize_t writev(int fd, const struct iovec *piece, int n)
{
    if (vg_gloo_has(fd))
        return vg_gloo_send(fd, piece, n);
    return ((ssize_t(*)(int, const struct iovec *, int))vg_behind(VG_BEHIND_writev))(fd, piece, n);
}

VG_EXPORT ssize_t read(int fd, void *to, size_t bytes)
{
    ssize_t n;
    if (received(fd, to, bytes, 0, &n))
        return n;
    return ((ssize_t(*)(int, void *, size_t))vg_behind(VG_BEHIND_read))(fd, to, bytes);
}
