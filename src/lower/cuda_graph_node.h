/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_graph_node.h - what the driver holds on the device for a node (a kernel, a copy, a collective) of a CUDA graph: train/memory/cuda_graphs.c has the source. */
#ifndef MAQ_LOWER_CUDA_GRAPH_NODE_H
#define MAQ_LOWER_CUDA_GRAPH_NODE_H

#define MAQ_GRAPH_NODE_BYTES (36.0 * 1024)

#endif
