/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration.c - what programs call beside communication: version, texts of errors, memory, registered buffers,
 * reductions of their own. Registering changes how NCCL moves bytes and not what a program sees: a handle is given and taken back.
 */
#include <stdlib.h>

#include "shim/nccl/nccl.h"

NCCL_API(int, ncclGetVersion, int *version);
int ncclGetVersion(int *version)
{
    if (!version)
        return VG_NCCL_INVALID_ARGUMENT;
    *version = VG_NCCL_VERSION;
    return VG_NCCL_SUCCESS;
}

NCCL_API(const char *, ncclGetErrorString, int result);
const char *ncclGetErrorString(int result)
{
    static const char *const texts[VG_NCCL_RESULTS] = {
        [VG_NCCL_SUCCESS] = "no error",
        [VG_NCCL_CUDA_ERROR] = "a CUDA call failed",
        [VG_NCCL_SYSTEM_ERROR] = "a system call failed",
        [VG_NCCL_INTERNAL_ERROR] = "internal limit of the library",
        [VG_NCCL_INVALID_ARGUMENT] = "invalid argument",
        [VG_NCCL_INVALID_USAGE] = "invalid usage",
        [VG_NCCL_REMOTE_ERROR] = "a peer failed",
        [VG_NCCL_IN_PROGRESS] = "in progress",
    };
    return result >= 0 && result < VG_NCCL_RESULTS ? texts[result] : "unknown result code";
}

NCCL_API(const char *, ncclGetLastError, const struct vg_comm *comm);
const char *ncclGetLastError(const struct vg_comm *comm)
{
    return vg_comm_check(comm) == VG_NCCL_REMOTE_ERROR
               ? "maquette: a rank of the job, or what stands in for it, has ended"
               : "";
}

NCCL_API(void, ncclResetDebugInit, void);
void ncclResetDebugInit(void)
{
}

/* --- memory ----------------------------------------------------------------------------------------------------------- */

NCCL_API(int, ncclMemAlloc, void **out, size_t bytes);
int ncclMemAlloc(void **out, size_t bytes)
{
    if (!out || !bytes)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_drive();
    vg_call();
    *out = vg_mem_alloc(bytes, MAQ_REC_DEVICE, NULL);
    return *out ? VG_NCCL_SUCCESS : VG_NCCL_CUDA_ERROR;
}

NCCL_API(int, ncclMemFree, void *p);
int ncclMemFree(void *p)
{
    vg_call();
    return !p || vg_mem_free(p, NULL) ? VG_NCCL_SUCCESS : VG_NCCL_INVALID_ARGUMENT;
}

/* --- registered buffers and windows ------------------------------------------------------------------------------------- */

static int new_handle(const struct vg_comm *comm, void **out)
{
    int error = vg_comm_check(comm);
    if (error != VG_NCCL_SUCCESS)
        return error;
    if (!out)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_call();
    *out = calloc(1, sizeof(uint64_t));
    return *out ? VG_NCCL_SUCCESS : VG_NCCL_SYSTEM_ERROR;
}

static int old_handle(void *handle)
{
    vg_call();
    free(handle);
    return VG_NCCL_SUCCESS;
}

NCCL_API(int, ncclCommRegister, const struct vg_comm *comm, void *buffer, size_t bytes, void **out);
int ncclCommRegister(const struct vg_comm *comm, void *buffer, size_t bytes, void **out)
{
    return !buffer || !bytes ? VG_NCCL_INVALID_ARGUMENT : new_handle(comm, out);
}

NCCL_API(int, ncclCommDeregister, const struct vg_comm *comm, void *handle);
int ncclCommDeregister(const struct vg_comm *comm, void *handle)
{
    (void)comm;
    return old_handle(handle);
}

NCCL_API(int, ncclCommWindowRegister, struct vg_comm *comm, void *buffer, size_t bytes, void **out, int flags);
int ncclCommWindowRegister(struct vg_comm *comm, void *buffer, size_t bytes, void **out, int flags)
{
    (void)flags;
    return !buffer || !bytes ? VG_NCCL_INVALID_ARGUMENT : new_handle(comm, out);
}

NCCL_API(int, ncclCommWindowDeregister, struct vg_comm *comm, void *window);
int ncclCommWindowDeregister(struct vg_comm *comm, void *window)
{
    (void)comm;
    return old_handle(window);
}

/* --- reductions of the program's own ------------------------------------------------------------------------------------ */

NCCL_API(int, ncclRedOpCreatePreMulSum, int *out, void *scalar, int type, int residence, struct vg_comm *comm);
int ncclRedOpCreatePreMulSum(int *out, void *scalar, int type, int residence, struct vg_comm *comm)
{
    int error = vg_comm_check(comm);
    if (error != VG_NCCL_SUCCESS)
        return error;
    bool known = residence == VG_NCCL_SCALAR_DEVICE || residence == VG_NCCL_SCALAR_HOST;
    if (!out || !scalar || type < 0 || type >= VG_NCCL_TYPES || !known)
        return VG_NCCL_INVALID_ARGUMENT;
    vg_call();
    *out = (int)(VG_NCCL_OPS + comm->own_ops++); /* numbers are not used again */
    return VG_NCCL_SUCCESS;
}

NCCL_API(int, ncclRedOpDestroy, int op, struct vg_comm *comm);
int ncclRedOpDestroy(int op, struct vg_comm *comm)
{
    int error = vg_comm_check(comm);
    if (error != VG_NCCL_SUCCESS)
        return error;
    bool own = op >= VG_NCCL_OPS && (uint32_t)op < VG_NCCL_OPS + comm->own_ops;
    return own ? VG_NCCL_SUCCESS : VG_NCCL_INVALID_ARGUMENT;
}
