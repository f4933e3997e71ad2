/* SPDX-License-Identifier: Apache-2.0 */
/* waits.h - timed waits on the device: one state per communicator and context. */
#ifndef MAQ_SHIM_GPU_WAITS_H
#define MAQ_SHIM_GPU_WAITS_H

#include "shim/gpu/driver.h"
#include "shim/gpu/wait.h"

/* The state of a communicator in the current context, made on first use, which must not be under capture; 0 = it cannot be made. */
CUdeviceptr vg_wait_state(uint64_t lineage);
/* Launches the next wait of a communicator on a stream; at most VG_WAIT_BLOCKS. */
bool vg_wait_launch(uint64_t lineage, unsigned blocks, unsigned threads, CUstream stream);

#endif
