/* SPDX-License-Identifier: Apache-2.0 */
/* block.h - a distinct layer kind on one rank: its segments for each pass, its parameters, what it keeps and what it works with. */
#ifndef MAQ_TRAIN_STEP_BLOCK_H
#define MAQ_TRAIN_STEP_BLOCK_H

#include "lower/lower.h"

/* Allocations of a module, in bytes. */
struct maq_walk_step {
    double out;  /* its output */
    double keep; /* kept for its backward pass besides its input, where that stays: masks, scores, quantized copies */
    double scratch
        [2]; /* temporaries of its forward pass, of its backward pass: gathered input, raw scores, their gradients */
    uint32_t pieces[2]; /* tensors that these are, of one size */
    double gradient;    /* of its input */
    double weight;      /* of its weights, where it is not added to the main gradient in one kernel */
    bool input_stays;   /* its input is kept for the backward pass */
    bool multiplies;    /* a product of cuBLAS */
    bool shares_input;  /* with the module before it */
};

/* The modules of a layer in forward order. */
struct maq_walk {
    const struct maq_walk_step *steps;
    uint32_t n;
    double missing; /* parts that are recomputed, while the layer's backward pass runs */
};

/*
 * Of what a layer keeps: bytes that offloading frees on the device, and bytes that are copied to the host and back for
 * it.
 */
struct maq_moved {
    double freed, travels;
};

/* Of a layer whose parts are CUDA graphs: what their pool holds, and what stays outside (train/memory/cuda_graphs.c). */
struct maq_block_graphs {
    double act_bytes[2];         /* of act_bytes, in graphs [recomputed] */
    double working[2], apart[2]; /* working set of the graphs, and of what runs outside of them [recomputed] */
    double hidden_bytes;         /* of hidden states, on this rank */
    double buffer_bytes;         /* hidden states of a microbatch that lie in buffers besides */
};

/* Matrices that GaLore projects (train/step/galore.h), in numbers: all of theirs, what moments are kept of, and the projections. */
struct maq_low_rank {
    double matrices, moments, projections;
};

/* A trained tensor of a rank, as PyTorch has it: q, k and v apart, gate and up; all experts together, and all biases of a linear. */
struct maq_weight {
    double params;
    uint16_t module; /* of the layer */
    bool expert;
};

struct maq_block {
    const struct maq_layer *layer;
    const struct maq_weight *weights; /* [n_weights] in the order of the modules */
    uint32_t n_weights;
    const struct maq_segment *forward[2];  /* [recomputed]: they differ only in what is offloaded */
    const struct maq_segment *backward[2]; /* [recomputed]; the input half when the schedule splits */
    const struct maq_segment *weight;      /* split schedules only */
    const struct maq_segment
        *late; /* of `backward`, what merged passes leave for later (delay_wgrad_compute); or NULL */
    double dense_params, expert_params, adapter_params; /* of one rank, before data-parallel sharding */
    double dense_matrices, expert_matrices;             /* of those, what Muon would update */
    double dense_narrow, expert_narrow;                 /* of those, what the recipe quantizes */
    double dense_paged, expert_paged, adapter_paged;    /* of those, in tensors whose moments may be paged */
    struct maq_low_rank low_rank;                       /* what GaLore projects */
    double largest;                                     /* parameters of its largest tensor */
    double act_bytes[2];                                /* kept from forward to backward, [recomputed] */
    struct maq_moved moved[2];                          /* inputs of modules that the plan offloads, [recomputed] */
    struct maq_walk walk[2];                            /* the tensors of a pass, [recomputed] */
    double forward_transient, backward_transient[2];
    struct maq_block_graphs graphs;
};

/*
 * Uses of a block: embedding and output are never recomputed; the activations of an offloaded layer are on the host between
 * its passes.
 */
enum maq_block_use { MAQ_BLOCK_LAYER, MAQ_BLOCK_OFFLOADED, MAQ_BLOCK_ENDS };

/* Fills a zeroed block. `split`: the schedule has passes for the weight gradients. */
enum maq_status maq_block_lower(struct maq_block *block, struct maq_lower *lower, const struct maq_layer *layer,
                                enum maq_block_use use, bool split);

/* Bytes that one rank keeps of a layer between its passes, those of them that could be moved, and the working set of its
 * costliest moment beyond them. train/memory/activations.c */
void maq_block_memory(struct maq_block *block, struct maq_lower *lower);

#endif
