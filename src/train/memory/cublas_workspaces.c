/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublas_workspaces.c - how large the workspaces are and how many a rank has, by library and generation of GPU.
 *
 * PyTorch gives each thread that has a cuBLAS handle a workspace out of its allocator (aten/src/ATen/cuda/CublasHandlePool.cpp,
 * parseChosenWorkspaceSize()): 32 MiB from Hopper on, 8,320 KiB before it. Forward passes run on one thread, backward passes on autograd's.
 *
 * Transformer Engine has one of its own, of 32 MiB from Hopper on, else 4, and where products are grouped one for each of their streams
 * (2.20, pytorch/cpp_extensions/gemm.py, get_cublas_workspace(); common/util/multi_stream.cpp: four).
 */
#include "train/memory/cublas_workspaces.h"

#include "lower/cublas_workspace.h"
#include "lower/local.h"

#define THREADS 2
#define TE_BYTES (32.0 * 1024 * 1024)
#define TE_BYTES_BEFORE_HOPPER (4.0 * 1024 * 1024)
#define TE_STREAMS 4

static bool has_hopper(const struct maq_job *job)
{
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        if (job->cluster.groups[g].device.arch >= MAQ_ARCH_HOPPER)
            return true;
    return false;
}

double maq_cublas_workspace_bytes(const struct maq_job *job)
{
    return has_hopper(job) ? MAQ_CUBLAS_BYTES : MAQ_CUBLAS_BYTES_BEFORE_HOPPER;
}

double maq_kept_cublas_workspace_bytes(const struct maq_job *job)
{
    return job->framework.keeps_workspaces ? maq_cublas_workspace_bytes(job) : 0;
}

double maq_te_workspace_bytes(const struct maq_job *job)
{
    return has_hopper(job) ? TE_BYTES : TE_BYTES_BEFORE_HOPPER;
}

double maq_rank_workspaces_bytes(const struct maq_job *job)
{
    const double torch = THREADS * maq_kept_cublas_workspace_bytes(job);
    if (!maq_job_has_transformer_engine(job))
        return torch;
    const bool grouped = maq_model_find_module(&job->model, MAQ_MODULE_EXPERT_LINEAR, MAQ_PART_COUNT);
    return torch + maq_te_workspace_bytes(job) * (grouped ? 1 + TE_STREAMS : 1);
}
