/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_graphs.c - what CUDA graphs hold on the device beyond what the same step takes without them: the driver's own memory, buffers at
 * fixed addresses, and blocks that two pools of PyTorch's allocator cannot lend each other.
 *
 *   driver   nodes * 36 KiB, a node for each kernel, copy and collective of a graph
 *   buffers  what graphs read from and write to between their replays
 *   pools    what both pools have at their peaks, less the peak of one pool for all
 *
 * Graphs (Megatron-LM at d98e8a6, megatron/core). Of parts of layers (transformer/cuda_graphs.py, TECudaGraphHelper): one forward and
 * one backward graph for each layer and each microbatch of a step, one microbatch without a pipeline. They are captured in the order
 * of the schedule over one pool, and a buffer is used again when its microbatch's backward pass is over, so buffers and activations
 * are those of the microbatches in flight, nodes those of all. Of a whole iteration (full_cuda_graph.py): all forward and backward
 * passes of a step are one graph; the optimizer is outside. The cuda_graph_warmup_steps steps in front of the capture run without
 * graphs; their blocks go back to the driver when the capture begins (empty_cache()), so they cost nothing later.
 *
 * Nodes. A graph is unrolled: the driver keeps a record of every node. Measured on an empty kernel, 500, 1,000 and 2,000 nodes take
 * 362, 395 and 458 MB, 64 KiB each, with driver 470 and CUDA 11.2 (forums.developer.nvidia.com, topic 244901). Newer drivers take
 * less: the 35 graphs of Llama 3.2 1B in vLLM (pull request 11349, December 2024) 0.21 GiB in all, some 175 nodes each: 36 KiB at
 * most, what their pool holds among it. No figure of a driver by itself is published for any later one: between 36 and 64 KiB by the
 * driver's age, and less is possible.
 *
 * Buffers. Of parts of layers: a graph reads its input from a buffer of its own, which the backward graph reads again; what runs
 * outside finds what it needs in the graph's output. So each layer and microbatch in flight has hidden states twice that a step
 * without graphs has once (train/memory/activations.c, graph_tensors()). One gradient of a layer's output and one of its input lie
 * still as well: those are used again by every graph (_reuse_graph_input_output_buffers). Of a whole iteration: the batch's tokens,
 * labels, positions (8 bytes each) and the mask of the loss (4), for every microbatch (StaticBufferLoader). Of either: workspaces of
 * cuBLAS, one for each stream and thread that calls it, 32 MiB on Hopper; the stream that captures has a forward and a backward thread.
 *
 * Pools. Memory that a graph was captured with stays its own: a block that is free between replays is lent to no other tensor
 * (torch.cuda.graph, c10/cuda/CUDACachingAllocator.cpp: private pools). With A the activations at their peak, W the working set of a
 * pass, U that of the update, when activations are gone, and g, e for graphs and what runs eagerly,
 *
 *   without graphs  max(A + W, U)
 *   parts           A_g + W_g + max(A_e + W_e, U)
 *   iteration       A + W + U
 *
 * PyTorch 2.11 on the zero-GPU device (docs/shim.md), eight products with A + W of 342 MiB, 256 MiB of states: the least memory that a
 * step runs in is 605 MiB with an update of 64 MiB and 776 with one of 512; with the step as a graph 794, and between 1,195 and 1,260,
 * 128 of which are workspaces of the capture's and the warm-up's streams (2 MiB are left of them with CUBLAS_WORKSPACE_CONFIG=:16:8).
 *
 * Not in it: blocks that several streams used are not lent again before a capture ends, so overlapped communication may keep more
 * (PyTorch's record_stream()); graphs of validation; NCCL's records of captured collectives. NVIDIA puts parts of layers at "a few
 * gigabytes", and above 10 GB with a pipeline (the performance guide of Megatron-Bridge, at 067f987).
 */
#include "train/memory/cuda_graphs.h"

#include <math.h>

#include "lower/cuda_graph_node.h"

/* Of a token of a batch: token, label, position, mask of the loss. */
#define TOKEN_BYTES (8 + 8 + 8 + 4.0)
#define LYING_GRADIENTS 2 /* of a layer's output and of its input */
#define WORKSPACE_BYTES (2 * 32.0 * 1024 * 1024)

double maq_graph_driver_bytes(double nodes)
{
    return nodes * MAQ_GRAPH_NODE_BYTES;
}

static bool in_parts(const struct maq_plan *p)
{
    return p->graph_scope != 0 && !p->cuda_graphs;
}

static double nodes_of(const struct maq_block *b, bool redo, bool all)
{
    const struct maq_segment *passes[] = {b->forward[redo], b->backward[redo], b->weight};
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += !passes[i] ? 0 : all ? passes[i]->launches : passes[i]->graphed;
    return sum;
}

void maq_program_graphs(struct maq_program *pr, const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &bp->job->plan;
    struct maq_program_graphs *g = &pr->graphs;
    *g = (struct maq_program_graphs){0};
    if (!in_parts(p) && !p->cuda_graphs)
        return;
    for (uint32_t i = 0; i < pr->n_entries; i++) {
        const struct maq_entry *e = &pr->entries[i];
        const struct maq_block *b = bp->blocks[e->block];
        bool end = e->layer == UINT16_MAX;
        g->nodes += nodes_of(b, e->redo, p->cuda_graphs);
        g->act_bytes += b->graphs.act_bytes[e->redo];
        g->buffer_bytes += b->graphs.buffer_bytes;
        g->lying_bytes = fmax(g->lying_bytes, LYING_GRADIENTS * b->graphs.hidden_bytes);
        g->working = fmax(g->working, b->graphs.working[e->redo]);
        g->apart =
            fmax(g->apart, end ? fmax(b->forward_transient, b->backward_transient[e->redo]) : b->graphs.apart[e->redo]);
    }
}

/* Microbatches of a step whose passes are graphs of their own. */
static double copies(const struct maq_job *job)
{
    return job->plan.pp > 1 || job->plan.cuda_graphs ? job->microbatches : 1;
}

static double batch_bytes(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    return p->cuda_graphs ? TOKEN_BYTES * (double)job->workload.seq / p->cp * p->mbs * job->microbatches : 0;
}

double maq_program_graph_bytes(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    const struct maq_program_graphs *g = &pr->graphs;
    return g->nodes > 0 ? maq_graph_driver_bytes(g->nodes * copies(bp->job)) + g->buffer_bytes + g->lying_bytes +
                              batch_bytes(bp->job) + WORKSPACE_BYTES
                        : 0;
}

/* The most that the microbatches in flight keep, of what each chunk keeps for one. */
static double most_in_flight(const struct maq_schedule *s, uint32_t stage, const double *of_chunk, uint32_t n)
{
    double most = 0;
    for (uint32_t i = s->inflight_first[stage]; i < s->inflight_first[stage + 1]; i++) {
        double sum = 0;
        for (uint32_t c = 0; c < n; c++)
            sum += s->inflight[i].chunk[c] * of_chunk[c];
        most = fmax(most, sum);
    }
    return most;
}

double maq_stage_graphs(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage,
                        const struct maq_program *const *programs, uint32_t n, double activations, double working,
                        double update)
{
    struct maq_stage_graphs *g = &st->graphs;
    double act[MAQ_MAX_STAGES], buffers[MAQ_MAX_STAGES], lying = 0, graph = 0, apart = 0;
    *g = (struct maq_stage_graphs){0};
    for (uint32_t c = 0; c < n; c++) {
        const struct maq_program_graphs *of = &programs[c]->graphs;
        act[c] = of->act_bytes;
        buffers[c] = of->buffer_bytes;
        g->nodes += of->nodes * copies(bp->job);
        lying = fmax(lying, of->lying_bytes);
        graph = fmax(graph, of->working);
        apart = fmax(apart, of->apart);
    }
    if (g->nodes <= 0)
        return 0;
    g->driver_bytes = maq_graph_driver_bytes(g->nodes);
    double one = fmax(activations + working, update), two = activations + working + update;
    if (in_parts(&bp->job->plan)) {
        double inside = fmin(most_in_flight(bp->schedule, stage, act, n), activations);
        g->buffer_bytes = most_in_flight(bp->schedule, stage, buffers, n) + lying;
        two = inside + graph + fmax(activations - inside + apart, update);
    } else {
        g->buffer_bytes = batch_bytes(bp->job);
    }
    g->buffer_bytes += WORKSPACE_BYTES;
    g->pool_bytes = fmax(two - one, 0);
    return g->driver_bytes + g->buffer_bytes + g->pool_bytes;
}
