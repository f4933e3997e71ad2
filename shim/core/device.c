/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - which devices a process sees, and which one a thread uses.
 *
 * In a CUDA program: cudaGetDeviceCount(), cudaSetDevice().
 *
 * As many as the card has ranks on a node, less what CUDA_VISIBLE_DEVICES hides.
 */
#include "shim/core/stream.h"

#include <pthread.h>
#include <stdlib.h>

static _Thread_local unsigned current;
static unsigned count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    count = vg_card()->per_node < VG_DEVICES ? vg_card()->per_node : VG_DEVICES;
    if (visible == NULL)
        return;
    unsigned n = 0; /* entries up to the first that names no device */
    for (const char *at = visible; *at != '\0' && *at != '-'; at++)
        n += at == visible || at[-1] == ',';
    count = n < count ? n : count;
}

unsigned vg_device_count(void)
{
    pthread_once(&once, look);
    return count;
}

unsigned vg_device(void)
{
    return current;
}

bool vg_device_set(int device)
{
    if (device < 0 || (unsigned)device >= vg_device_count())
        return false;
    current = (unsigned)device;
    return true;
}
