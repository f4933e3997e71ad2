/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - tracing on a real GPU: this library, named in CUDA_INJECTION64_PATH, is loaded by the driver and asks CUPTI for
 * what happens. One CUPTI subscriber at a time, so not together with PyTorch's profiler.
 */
#ifndef MAQ_SHIM_GPU_INJECT_H
#define MAQ_SHIM_GPU_INJECT_H

#include "shim/gpu/activity.h"

/* An activity that CUPTI does not know: what our own libnccl did. Copied; from any thread. start and end by vg_inject_now(). */
void vg_inject_add(const struct vg_activity *activity);
/* CUPTI's clock, ns; 0 when nothing is traced. */
int64_t vg_inject_now(void);
/* CUPTI's number of a stream. */
uint32_t vg_inject_stream(void *stream);

#endif
