/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.c - states of communicators on the device.
 *
 * A communicator without a table (the program made one that the captured job did not have) waits for nobody.
 */
#include "shim/gpu/waits.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shim/gpu/table.h"
#include "shim/nccl/nccl.h"

#define STATES 4096u
#define LOGGED 65536u /* waits of a communicator whose times are kept */

static struct {
    pthread_mutex_t lock;
    bool opened;
    struct vg_waits waits;
    struct {
        uint64_t lineage;
        CUcontext context;
        CUdeviceptr state;
    } at[STATES];
    unsigned n;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void open_table(void)
{
    const char *why = NULL;
    if (gpu.opened)
        return;
    gpu.opened = true;
    if (vg_card()->waits[0] && !vg_waits_open(&gpu.waits, vg_card()->waits, &why))
        fprintf(stderr, "maquette: waits of peers: %s: %s\n", vg_card()->waits, why);
}

/* A copy of host bytes on the device. */
static CUdeviceptr upload(const void *data, size_t bytes)
{
    const struct vg_driver *cu = vg_driver();
    CUdeviceptr at = 0;
    if (cu->alloc(&at, bytes) != CUDA_SUCCESS)
        return 0;
    if ((data ? cu->to_device(at, data, bytes) : cu->set(at, 0, bytes)) == CUDA_SUCCESS)
        return at;
    cu->free(at);
    return 0;
}

static CUdeviceptr make_state(uint64_t lineage)
{
    const struct maq_wait_entry *entries = NULL;
    const struct maq_waits_comm *table = vg_waits_of(&gpu.waits, lineage, &entries);
    struct vg_wait_state state = {0};
    if (table) {
        CUdeviceptr entry = upload(entries, table->n * sizeof *entries);
        CUdeviceptr log = upload(NULL, LOGGED * sizeof(struct vg_wait_log));
        if (!entry || !log)
            return 0;
        state.n = table->n;
        state.loop = table->loop;
        state.period_ns = table->period_ns;
        state.n_log = LOGGED;
        memcpy(&state.entry, &entry, sizeof entry);
        memcpy(&state.log, &log, sizeof log);
    }
    return upload(&state, sizeof state);
}

CUdeviceptr vg_wait_state(uint64_t lineage)
{
    CUcontext context = NULL;
    CUdeviceptr found = 0;
    const struct vg_driver *cu = vg_driver();
    if (!cu || cu->context(&context) != CUDA_SUCCESS || !context)
        return 0;
    pthread_mutex_lock(&gpu.lock);
    open_table();
    unsigned i = 0;
    while (i < gpu.n && !(gpu.at[i].lineage == lineage && gpu.at[i].context == context))
        i++;
    if (i == gpu.n && i < STATES) {
        gpu.at[i].lineage = lineage;
        gpu.at[i].context = context;
        gpu.at[i].state = make_state(lineage);
        gpu.n += gpu.at[i].state != 0;
    }
    found = i < gpu.n ? gpu.at[i].state : 0;
    pthread_mutex_unlock(&gpu.lock);
    return found;
}

bool vg_wait_launch(uint64_t lineage, unsigned blocks, unsigned threads, CUstream stream)
{
    CUdeviceptr state = vg_wait_state(lineage);
    CUfunction kernel = vg_driver_kernel(VG_KERNEL_WAIT);
    void *args[] = {&state};
    return state && kernel && blocks <= VG_WAIT_BLOCKS &&
           vg_driver()->launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, args, NULL) == CUDA_SUCCESS;
}

/* Memory and modules now: a capture must not ask for them. */
void vg_comm_settled(const struct vg_comm *comm)
{
    if (vg_driver() && vg_driver_kernel(VG_KERNEL_WAIT))
        vg_wait_state(comm->lineage);
}
