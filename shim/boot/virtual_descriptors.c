/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_descriptors.c - sockets for connections with nobody real: a program of thousands of ranks opens more than it was allowed.
 *
 * In a host program: descriptors of sockets that it uses like any other.
 */
#include "shim/boot/virtual_descriptors.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "shim/boot/libc.h"

int vg_new_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    struct rlimit most;
    if (fd < 0 && errno == EMFILE && getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < most.rlim_max) {
        most.rlim_cur = most.rlim_max;
        fd = setrlimit(RLIMIT_NOFILE, &most) == 0 ? socket(AF_INET, SOCK_STREAM | flags, 0) : -1;
    }
    if (fd >= VG_FDS) {
        (void)vg_libc_close(fd);
        errno = EMFILE;
        return -1;
    }
    return fd;
}
