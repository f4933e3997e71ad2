/*
 * kernel_names.h - what operation a recorded kernel is, by its name.
 *
 * Libraries name their kernels as they like; the words below are those of cuBLAS, CUTLASS, cuDNN, FlashAttention, Transformer Engine, Apex,
 * Triton and NCCL that speak for themselves. A collective's group is known where the profiler wrote it beside the kernel
 * (PyTorch 2.2 and later): Megatron-LM's names of groups, and those of PyTorch's DeviceMesh.
 */
#ifndef MAQ_RISK_FIT_KERNEL_NAMES_H
#define MAQ_RISK_FIT_KERNEL_NAMES_H

#include "base/str.h"

#define MAQ_KERNEL_NAME 40

struct maq_kernel_words {
    struct maq_str kernel;
    struct maq_str collective, group; /* "allreduce", "TENSOR_MODEL_PARALLEL_GROUP"; empty where nothing is said */
};

/* The name that a variation has for it, "gemm", "all_reduce tp", "all_reduce"; "other" for what is none of them. */
void maq_kernel_name(char out[MAQ_KERNEL_NAME], const struct maq_kernel_words *words);
/* Whether its time has waiting for others in it. */
bool maq_kernel_waits(const struct maq_kernel_words *words);

#endif
