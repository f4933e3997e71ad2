/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wall_time.c - the machine's own time, whatever the program is told: how long this library itself waits.
 *
 * In a CUDA program: nothing; these are waits of the library that stands in for the device.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/core.h"

int64_t vg_real_now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* the libc call may be on virtual time */
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

void vg_real_rest(int64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    unsigned held = vg_lock_drop();
    syscall(SYS_nanosleep, &t, NULL);
    vg_lock_again(held);
}
