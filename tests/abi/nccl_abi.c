/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_abi.c - shim/abi/nccl.h against the real header: compiling it is the test. */
#include <stddef.h>

#include <nccl.h>

#include "shim/abi/nccl.h"
#include "shim/record.h"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a)

SAME(VG_NCCL_ID_BYTES, NCCL_UNIQUE_ID_BYTES);
SAME(sizeof(struct vg_nccl_id), sizeof(ncclUniqueId));
SAME(VG_NCCL_NO_COLOR, NCCL_SPLIT_NOCOLOR);
SAME(VG_NCCL_UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME(VG_NCCL_SUCCESS, ncclSuccess);
SAME(VG_NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(VG_NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(VG_NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(VG_NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(VG_NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(VG_NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(VG_NCCL_IN_PROGRESS, ncclInProgress);
SAME(VG_NCCL_SUM, ncclSum);
SAME(VG_NCCL_PROD, ncclProd);
SAME(VG_NCCL_MAX, ncclMax);
SAME(VG_NCCL_MIN, ncclMin);
SAME(VG_NCCL_AVG, ncclAvg);
SAME(VG_NCCL_OPS, ncclNumOps);
SAME(MAQ_REC_I8, ncclInt8);
SAME(MAQ_REC_U8, ncclUint8);
SAME(MAQ_REC_I32, ncclInt32);
SAME(MAQ_REC_U32, ncclUint32);
SAME(MAQ_REC_I64, ncclInt64);
SAME(MAQ_REC_U64, ncclUint64);
SAME(MAQ_REC_F16, ncclFloat16);
SAME(MAQ_REC_F32, ncclFloat32);
SAME(MAQ_REC_F64, ncclFloat64);
SAME(MAQ_REC_BF16, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22400
SAME(MAQ_REC_F8E4M3, ncclFloat8e4m3);
SAME(MAQ_REC_F8E5M2, ncclFloat8e5m2);
SAME(VG_NCCL_TYPES, ncclNumTypes);
#endif
SAME(VG_NCCL_SCALAR_DEVICE, ncclScalarDevice);
SAME(VG_NCCL_SCALAR_HOST, ncclScalarHostImmediate);
SAME(offsetof(struct vg_nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(struct vg_nccl_config, blocking), offsetof(ncclConfig_t, blocking));
SAME(offsetof(struct vg_nccl_config, net_name), offsetof(ncclConfig_t, netName));
SAME(offsetof(struct vg_nccl_config, split_share), offsetof(ncclConfig_t, splitShare));
static const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
static const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
SAME(sizeof(struct vg_nccl_sim_info), sizeof info);
SAME(offsetof(struct vg_nccl_sim_info, estimated_us), offsetof(ncclSimInfo_t, estimatedTime));

/* Magic numbers are in initialisers: compared when it runs. */
int main(void)
{
    return config.magic != VG_NCCL_CONFIG_MAGIC || info.magic != VG_NCCL_SIM_MAGIC;
}
