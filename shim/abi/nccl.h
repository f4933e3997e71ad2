/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi/nccl.h - what programs that were compiled against NCCL 2 pass and expect: numbers and layouts, in our own words.
 *
 * Source: the public header of NCCL 2.28.9 and NVIDIA's user guide. tests/abi/nccl_abi.c compares every one of them with
 * the real header where there is one. Handles are pointers to what the library likes; enumerations are ints.
 */
#ifndef MAQ_SHIM_ABI_NCCL_H
#define MAQ_SHIM_ABI_NCCL_H

#include <limits.h>
#include <stddef.h>

#define VG_NCCL_VERSION 22809 /* 2.28.9: major * 10000 + minor * 100 + patch */
#define VG_NCCL_ID_BYTES 128
#define VG_NCCL_NO_COLOR (-1)
#define VG_NCCL_UNDEFINED INT_MIN
#define VG_NCCL_CONFIG_MAGIC 0xcafebeefu
#define VG_NCCL_SIM_MAGIC 0x74685283u

enum vg_nccl_result {
    VG_NCCL_SUCCESS,
    VG_NCCL_CUDA_ERROR,
    VG_NCCL_SYSTEM_ERROR,
    VG_NCCL_INTERNAL_ERROR,
    VG_NCCL_INVALID_ARGUMENT,
    VG_NCCL_INVALID_USAGE,
    VG_NCCL_REMOTE_ERROR,
    VG_NCCL_IN_PROGRESS,
    VG_NCCL_RESULTS
};

/* Reductions; those that a program makes have numbers from VG_NCCL_OPS on. */
enum vg_nccl_op { VG_NCCL_SUM, VG_NCCL_PROD, VG_NCCL_MAX, VG_NCCL_MIN, VG_NCCL_AVG, VG_NCCL_OPS };

/* Element types have the numbers of enum maq_rec_type up to F8E5M2; 12 of them. */
enum { VG_NCCL_TYPES = 12 };

enum { VG_NCCL_SCALAR_DEVICE, VG_NCCL_SCALAR_HOST };

struct vg_nccl_id {
    char bytes[VG_NCCL_ID_BYTES];
};

/* Grows at its end; `size` says how much of it the caller knows. */
struct vg_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *name;
    int collnet, cta_policy, shrink_share, nvls_ctas, channels_per_net_peer, nvlink_centric;
};

struct vg_nccl_sim_info {
    size_t size;
    unsigned magic, version;
    float estimated_us; /* the header does not say the unit; its model of a collective's time is in microseconds */
};

#endif
