/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - the one lock of the device: of the calls that a program's threads make, one at a time is inside.
 *
 * In a CUDA program: the lock inside of the CUDA library, which any thread may call.
 */
#include "shim/core/core.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned depth; /* how often this thread holds the mutex */

/* A child must not find the lock held by a thread that it does not have. */
__attribute__((constructor)) static void mind_forks(void)
{
    pthread_atfork(vg_lock, vg_unlock, vg_unlock);
}

void vg_lock(void)
{
    if (depth++ == 0)
        pthread_mutex_lock(&mutex);
}

void vg_unlock(void)
{
    if (--depth == 0)
        pthread_mutex_unlock(&mutex);
}

unsigned vg_lock_drop(void)
{
    unsigned held = depth;
    depth = 0;
    if (held > 0)
        pthread_mutex_unlock(&mutex);
    return held;
}

void vg_lock_again(unsigned held)
{
    if (held > 0)
        pthread_mutex_lock(&mutex);
    depth = held;
}
