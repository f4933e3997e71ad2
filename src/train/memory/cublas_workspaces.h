/* SPDX-License-Identifier: Apache-2.0 */
/* cublas_workspaces.h - device memory that matrix products have for themselves, by whose products they are. Bytes. */
#ifndef MAQ_TRAIN_MEMORY_CUBLAS_WORKSPACES_H
#define MAQ_TRAIN_MEMORY_CUBLAS_WORKSPACES_H

#include "maquette/job.h"

/* cuBLAS' workspace of one thread, kept or asked for anew with every product (framework.keeps_workspaces). */
double maq_cublas_workspace_bytes(const struct maq_job *job);
/* The same where it is kept; else 0. */
double maq_kept_cublas_workspace_bytes(const struct maq_job *job);
/* One of Transformer Engine's. */
double maq_te_workspace_bytes(const struct maq_job *job);
/* All that a rank holds all through a step. */
double maq_rank_workspaces_bytes(const struct maq_job *job);

#endif
