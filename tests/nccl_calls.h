/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_calls.h - NCCL's calls as the tests of the shim make them: handles are what shim/nccl has, enumerations are ints. */
#ifndef MAQ_TESTS_NCCL_CALLS_H
#define MAQ_TESTS_NCCL_CALLS_H

#include "shim/nccl/nccl.h"

int ncclGetVersion(int *);
int ncclGetUniqueId(struct vg_nccl_id *);
int ncclCommInitRank(struct vg_comm **, int, struct vg_nccl_id, int);
int ncclCommInitRankConfig(struct vg_comm **, int, struct vg_nccl_id, int, const struct vg_nccl_config *);
int ncclCommInitRankScalable(struct vg_comm **, int, int, int, const struct vg_nccl_id *,
                             const struct vg_nccl_config *);
int ncclCommInitAll(struct vg_comm **, int, const int *);
int ncclCommSplit(struct vg_comm *, int, int, struct vg_comm **, const void *);
int ncclCommShrink(struct vg_comm *, const int *, int, struct vg_comm **, const void *, int);
int ncclCommFinalize(struct vg_comm *);
int ncclCommDestroy(struct vg_comm *);
int ncclCommAbort(struct vg_comm *);
int ncclCommRevoke(struct vg_comm *, int);
int ncclCommGetAsyncError(const struct vg_comm *, int *);
int ncclCommCount(const struct vg_comm *, int *);
int ncclCommUserRank(const struct vg_comm *, int *);
int ncclCommCuDevice(const struct vg_comm *, int *);
int ncclCommRegister(const struct vg_comm *, void *, size_t, void **);
int ncclCommDeregister(const struct vg_comm *, void *);
int ncclCommWindowRegister(struct vg_comm *, void *, size_t, void **, int);
int ncclCommWindowDeregister(struct vg_comm *, void *);
int ncclMemAlloc(void **, size_t);
int ncclMemFree(void *);
int ncclRedOpCreatePreMulSum(int *, void *, int, int, struct vg_comm *);
int ncclRedOpDestroy(int, struct vg_comm *);
const char *ncclGetErrorString(int);
const char *ncclGetLastError(const struct vg_comm *);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclGroupSimulateEnd(struct vg_nccl_sim_info *);
int ncclAllReduce(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int pncclAllReduce(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int ncclReduce(const void *, void *, size_t, int, int, int, struct vg_comm *, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int ncclBcast(void *, size_t, int, int, struct vg_comm *, void *);
int ncclAllGather(const void *, void *, size_t, int, struct vg_comm *, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int ncclAlltoAll(const void *, void *, size_t, int, struct vg_comm *, void *);
int ncclGather(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int ncclScatter(const void *, void *, size_t, int, int, struct vg_comm *, void *);
int ncclSend(const void *, size_t, int, int, struct vg_comm *, void *);
int ncclRecv(void *, size_t, int, int, struct vg_comm *, void *);

#endif
