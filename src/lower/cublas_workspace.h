/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublas_workspace.h - what PyTorch sets aside for a thread's cuBLAS handle: 32 MiB from Hopper on, 8,320 KiB before it.
 * train/memory/cublas_workspaces.c has the source.
 */
#ifndef MAQ_LOWER_CUBLAS_WORKSPACE_H
#define MAQ_LOWER_CUBLAS_WORKSPACE_H

#define MAQ_CUBLAS_BYTES (32.0 * 1024 * 1024)
#define MAQ_CUBLAS_BYTES_BEFORE_HOPPER (8320.0 * 1024)

#endif
