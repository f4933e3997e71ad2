/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - what the kernel says of this process's threads: who runs, who sleeps, who has had how much of a processor.
 *
 * In a host program: its threads, as the scheduler sees them.
 *
 * Threads that drive the device take turns here. One that finds another to have driven last waits until that one sleeps: an autograd
 * thread that has told its caller that it is done still lets go of tensors, and whether the caller's next one takes their place would be
 * a matter of scheduling. A thread that does not sleep within TURN_NS is not waited for; after VAIN of those the threads of
 * this program drive side by side, and nobody waits any more. Both are chosen: letting go takes less than a millisecond, and in vain
 * no more than VAIN x TURN_NS = 0.64 s are lost in all.
 */
#include "shim/core/core.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURN_NS = 20000000, AGAIN_NS = 20000, VAIN = 32 };

/* A file of the kernel about a thread of this process, as text; empty where there is none. */
static void about(char *text, size_t size, int thread, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, what);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC); /* the libc calls may be stood in for */
    ssize_t n = fd >= 0 ? syscall(SYS_read, fd, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        syscall(SYS_close, fd);
}

bool vg_thread_awake(int thread)
{
    char text[512];
    about(text, sizeof text, thread, "stat");
    const char *state = strrchr(text, ')'); /* behind the thread's name, which may be anything */
    return state && (strncmp(state, ") R", 3) == 0 || strncmp(state, ") D", 3) == 0);
}

bool vg_others_awake(void)
{
    int self = (int)syscall(SYS_gettid);
    bool awake = false;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *d; tasks && !awake && (d = readdir(tasks)) != NULL;) {
        int thread = (int)strtol(d->d_name, NULL, 10);
        awake = thread > 0 && thread != self && vg_thread_awake(thread);
    }
    if (tasks)
        closedir(tasks);
    return awake;
}

uint64_t vg_thread_ns(int thread)
{
    char text[128];
    about(text, sizeof text, thread, "schedstat");
    return strtoull(text, NULL, 10);
}

/* ---- turns ---- */

static int last; /* thread that drove last */
static unsigned in_vain;

void vg_turn(void)
{
    static _Thread_local int self;
    if (self == 0)
        self = (int)syscall(SYS_gettid);
    int other = __atomic_load_n(&last, __ATOMIC_RELAXED);
    if (other == self)
        return;
    if (other != 0 && __atomic_load_n(&in_vain, __ATOMIC_RELAXED) < VAIN) {
        int64_t give_up = vg_real_now() + TURN_NS;
        bool awake;
        while ((awake = vg_thread_awake(other)) && vg_real_now() < give_up)
            vg_real_rest(AGAIN_NS);
        if (awake)
            __atomic_add_fetch(&in_vain, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&last, self, __ATOMIC_RELAXED);
}
