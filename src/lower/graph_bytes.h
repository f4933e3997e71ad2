/* SPDX-License-Identifier: Apache-2.0 */
/* graph_bytes.h - what the driver holds on the device for a node (a kernel, a copy, a collective) of a CUDA graph: train/memory/cuda_graphs.c has the source. */
#ifndef MAQ_LOWER_GRAPH_BYTES_H
#define MAQ_LOWER_GRAPH_BYTES_H

#define MAQ_GRAPH_NODE_BYTES (36.0 * 1024)

#endif
