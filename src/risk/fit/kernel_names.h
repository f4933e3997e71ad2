/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_names.h - classifies recorded kernels as operations, by their names.
 *
 * The words looked for are those of cuBLAS, CUTLASS, cuDNN, FlashAttention, Transformer Engine, Apex, Triton and NCCL that are
 * unambiguous. A collective's group is known where the profiler recorded it with the kernel (PyTorch 2.2 and later): Megatron-LM's
 * names of groups, and those of PyTorch's DeviceMesh.
 */
#ifndef MAQ_RISK_FIT_KERNEL_NAMES_H
#define MAQ_RISK_FIT_KERNEL_NAMES_H

#include "base/str.h"

#define MAQ_KERNEL_NAME 40

struct maq_kernel_words {
    struct maq_str kernel;
    struct maq_str collective, group; /* "allreduce", "TENSOR_MODEL_PARALLEL_GROUP"; empty where unknown */
};

/* The operation's name in a variation: "gemm", "all_reduce tp", "all_reduce"; "other" where none matches. */
void maq_kernel_name(char out[MAQ_KERNEL_NAME], const struct maq_kernel_words *words);
/* Whether its duration includes waiting for other ranks. */
bool maq_kernel_waits(const struct maq_kernel_words *words);

#endif
