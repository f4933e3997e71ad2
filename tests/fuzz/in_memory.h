/* SPDX-License-Identifier: Apache-2.0 */
/* in_memory.h - bytes as a file that has a name, for readers that take one. */
#ifndef MAQ_FUZZ_IN_MEMORY_H
#define MAQ_FUZZ_IN_MEMORY_H

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file, to be closed; -1: there is none. */
static inline int in_memory(char path[64], const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
