/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework.h - what a training framework does besides the plan: a profile.
 *
 *   framework: megatron-lm@2022                 # a name or alias in the catalogue (data/frameworks), a file, or a map
 *   framework: {base: torchtitan, host: {forward: 30 us}}
 *
 * A profile has two parts. Its `plan` holds plan settings that the framework makes when the job says nothing: they
 * come before maquette's own defaults and after whatever the document or a flag sets. The rest describes mechanisms
 * that no plan setting names: what the host spends on a call, and where it waits for the device. Nothing in a profile
 * scales a result.
 */
#ifndef MAQUETTE_FRAMEWORK_H
#define MAQUETTE_FRAMEWORK_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Host time in seconds on the reference host (AMD EPYC 7742, the processor of a DGX A100): Python, the framework's
 * dispatcher, autograd, and the launch itself. An `operator` is one that maquette launches: a matrix product, a norm,
 * a chain of pointwise operations that is one kernel; views and bookkeeping around it are in its time.
 */
struct maq_host_costs {
    double forward_s;  /* per operator of a forward pass, where autograd records */
    double backward_s; /* per operator of a backward pass */
    double kernel_s;   /* per further kernel of an operator that is a chain of them */
    double
        expert_s; /* per further call of an operator that is a loop over the experts of a rank (products, quantization) */
    double collective_s; /* per collective */
    double skew_s;       /* spread (standard deviation) between the hosts of a group when they come to a collective */
    double
        checkpoint_s; /* per recomputed layer: states of the random generators, the pass started from inside the backward */
    double p2p_s;     /* per pass of a pipeline: posting its transfers and waiting for them */
    double pass_s; /* per pass of a virtual stage: schedule, hooks, loss bookkeeping */
    double step_s; /* per step, while the device waits: data, logging, learning rate, the optimizer's driver */
    double read_s; /* per value that the host reads from the device inside a layer: the copy and its synchronisation */
};

enum maq_optimizer_kernels {
    MAQ_OPTIMIZER_FUSED,   /* one kernel over a list of tensors (Apex FusedAdam, PyTorch fused=True) */
    MAQ_OPTIMIZER_FOREACH, /* one kernel per step of Adam over lists of tensors (PyTorch foreach) */
};

/* Buffers of DistributedDataParallel, out of which gradients are reduced. */
enum maq_gradient_buckets {
    MAQ_BUCKETS_NONE,  /* not counted in the memory; what is copied takes its time as below */
    MAQ_BUCKETS_APART, /* copies of the gradients, which live as long as the model */
    MAQ_BUCKETS_VIEWS, /* gradients are views of them (gradient_as_bucket_view), and so stay as well */
    MAQ_BUCKETS_HOOK, /* only a signal: a hook reduces something else when one is full, and is not waited for; not counted */
};

/* Whose words a plan is written in for it: framework_words.h. */
enum maq_framework_vocabulary {
    MAQ_VOCABULARY_NONE, /* none are known here */
    MAQ_VOCABULARY_MEGATRON,
    MAQ_VOCABULARY_TORCHTITAN,
    MAQ_VOCABULARY_FSDP, /* PyTorch's FSDP2 and what goes with it */
    MAQ_VOCABULARY_MAXTEXT,
    MAQ_VOCABULARY_COUNT
};

struct maq_framework {
    const char *name, *title, *source;
    bool named;     /* the job names one */
    int vocabulary; /* enum maq_framework_vocabulary */
    struct maq_host_costs host;
    int optimizer; /* enum maq_optimizer_kernels */
    /*
     * 16-bit gradients are widened before the optimizer's kernel, and master weights narrowed behind it, by kernels of their
     * own.
     */
    bool optimizer_casts_apart;
    /* The host waits for the device at every pipeline transfer that does not overlap (Megatron's batch_p2p_sync). */
    bool p2p_synchronizes;
    /* The attention mask, one seq x seq for a microbatch, travels with the activations, whole from every TP rank. */
    bool p2p_sends_mask;
    /* Activations are scattered over the TP ranks for a transfer, their gradients are not (DeepSpeed). */
    bool p2p_whole_gradients;
    /* The host waits for the device once a step (for the gradient norm, the loss that it prints). */
    bool step_synchronizes;
    /* The host waits for the device before and after every pass of a microbatch (DeepSpeed's wall_clock_breakdown). */
    bool pass_synchronizes;
    /* The host waits for the device in every dropless layer of experts, for the number of tokens per expert. */
    bool moe_synchronizes;
    /* The host waits before and after every collective of a TP group (timers around them); nothing runs beside it. */
    bool tp_synchronizes;
    /* TP cuts the width of every head, not their number: every rank has all scores (a fork of Megatron-LM for images). */
    bool tp_narrows_heads;
    /* The reduction of dX over a TP group comes after the weight gradient instead of running beside it. */
    bool tp_reduces_last;
    /* The batch is the outermost dimension: what sequence parallelism gathers or scatters is copied into order. */
    bool tp_copies_sequence;
    /* Ring attention merges its pieces in 32 bits by pointwise kernels, and waits for gradients of K and V (PyTorch). */
    bool cp_merges_in_fp32;
    /* The bias of the experts' last product, times the tokens' probabilities, is added by pointwise kernels; and so is the input
     * of their activation clamped. */
    bool expert_bias_apart, clamp_apart;
    /* Where pointwise kernels are not fused, the probabilities of the router multiply what the experts' activation returned,
     * which is kept for their gradient. */
    bool expert_scores_apart;
    /*
     * Keys and values of grouped-query attention are copied out to one head per query head in front of it (torchtitan until
     * 2025).
     */
    bool repeats_kv;
    /*
     * The rows of the token table are looked up by a product with one-hot vectors, which are written out and kept (Pax,
     * MaxText).
     */
    bool embeds_by_product;
    /*
     * The softmax of unfused attention is reductions and a quotient that read the scores anew each time, where no kernel holds a
     * row (XLA).
     */
    bool softmax_rereads_scores;
    /* What an activation writes is quantized by a kernel of its own, where a norm quantizes what it writes (Megatron Core). */
    bool activation_quantized_apart;
    /* NVFP4: what weight gradients read goes through a random Hadamard transform and is quantized by a kernel of its own,
     * besides the one for the other products (Transformer Engine until 2.13). */
    bool hadamard_apart;
    /*
     * Switches that it has: tokens sent to their experts by DeepEP's or HybridEP's kernels, TP collectives cut in pieces under
     * the GEMMs by Transformer Engine's userbuffers, shared experts under the exchange of tokens, and CUDA graphs of parts of a
     * layer or of all passes of a step. A search opens them (planner/space/default_values.c).
     */
    bool has_fused_exchange, has_tp_overlap, has_shared_overlap, has_cuda_graphs;
    bool launches_block; /* CUDA_LAUNCH_BLOCKING: the host waits for every kernel */
    /* What the backward pass does not need is not recomputed: the last product of a layer (XLA, PyTorch's early stop). */
    bool recompute_prunes;
    /* Gradients are no buffers: zero_grad() frees them behind the update (PyTorch since 2.0, set_to_none). Of FSDP's shards; without
     * sharding where gradient_buckets says what DistributedDataParallel does. */
    bool frees_gradients;
    /*
     * Memory of PyTorch's programs; none of these changes a time (src/train/memory/torch_layers.h).
     *
     * autocast: parameters that are not sharded stay in 4 bytes, and products read copies of them in 16 bits (torch.autocast).
     * norms_apart: a norm is written out in pointwise operations, which keep a copy in 4 bytes and what is scaled by the weight
     * (the models of Hugging Face). gate_apart: the activated half of a gated activation is kept besides its inputs. root_unit:
     * FSDP wraps layers, and what is left, embedding, last norm and output, is one unit that is gathered from the first
     * operation to the last. reduce_bucket_held: the flat buffer that gradients are reduced in is there all through the backward
     * pass. adapters_widen: an adapter in 4 bytes reads a widened copy of its input. flat_parameters: a unit of FSDP is one
     * parameter (FullyShardedDataParallel), not one for each of its own (fully_shard()). meta_init: parameters are filled when they are
     * shards already; else a unit is on the device whole before it is cut. find_unused_parameters: DistributedDataParallel's argument;
     * outputs_in_fp32: what the model returns is copied to 4 bytes (accelerate's convert_outputs_to_fp32()). keeps_workspaces: the
     * workspace of cuBLAS stays with the thread that asked first (PyTorch until 2.14), else each call takes one and gives it back.
     * transformer_engine: fused layers are its own, with workspaces of their own.
     */
    bool autocast, norms_apart, gate_apart, root_unit, reduce_bucket_held, adapters_widen;
    bool flat_parameters, meta_init, find_unused_parameters, outputs_in_fp32, keeps_workspaces, transformer_engine;
    /* ZeRO-3: parameters are gathered from shards of 16 bits that are kept beside the optimizer's of 32 (DeepSpeed); else the optimizer's are
     * cast for it (FSDP). Where the shards are on the host, this is what travels. */
    bool low_precision_shards;
    int gradient_buckets; /* enum maq_gradient_buckets */
    /* What DistributedDataParallel reduces gradients of unsharded models in, in MiB; 0: the wrapper is another one (src/train/step/ddp.h). */
    double bucket_cap_mb;
    /* ZeRO-1 and -2: members of a shard group broadcast what they updated, one after the other, instead of an all-gather. */
    bool broadcasts_parameters;
    /* ZeRO-1 and -2: the step ends when every rank has the parameters that others updated, and gradients are reduced on the stream that
     * computes (overlap_param_gather and overlap_grad_reduce are off where a plan does not say); else parameters are gathered when the next
     * forward pass comes to them, and gradients beside the backward pass. */
    bool gathers_in_step;
    /* Times that a layer's forward pass runs: 1; 2 where something asks for its result once more. */
    int32_t forward_calls;
    double dropout; /* what the framework's training scripts use: for models described by dimensions alone */
};

#ifdef __cplusplus
}
#endif
#endif
