/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_descriptors.c - sockets for connections with nobody real: a program of thousands of ranks opens more than it was allowed.
 *
 * In a host program: descriptors of sockets that it uses like any other.
 */
#include "shim/boot/virtual_descriptors.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "shim/boot/libc.h"

enum { NEAR = 64 }; /* what a program opens besides before the next one */

/* To the hard limit; a privileged process also beyond it, to what is virtual here. */
static bool allow_more(void)
{
    struct rlimit most, beyond = {VG_FDS, VG_FDS};
    if (getrlimit(RLIMIT_NOFILE, &most) != 0)
        return false;
    if (most.rlim_cur < most.rlim_max)
        most.rlim_cur = most.rlim_max;
    else if (most.rlim_max < VG_FDS)
        most = beyond;
    else
        return false;
    return setrlimit(RLIMIT_NOFILE, &most) == 0;
}

void vg_allow_descriptors(int fd)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && (rlim_t)fd + NEAR >= most.rlim_cur)
        (void)allow_more();
}

int vg_new_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (fd < 0 && errno == EMFILE && allow_more())
        fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (fd >= VG_FDS) {
        (void)vg_libc_close(fd);
        errno = EMFILE;
        return -1;
    }
    return fd;
}
