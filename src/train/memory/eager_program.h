/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_program.h - a PyTorch program whose requests to its allocator are played one by one: what the ways to train it have in common.
 * eager_replay.c plays the steps; eager_ddp.c, eager_fsdp.c, eager_zero.c say what their wrappers ask for.
 */
#ifndef MAQ_TRAIN_MEMORY_EAGER_PROGRAM_H
#define MAQ_TRAIN_MEMORY_EAGER_PROGRAM_H

#include "train/memory/eager_script.h"
#include "train/memory/held_blocks.h"
#include "train/step/blueprint.h"

/* Streams that memory is asked for. FSDP casts shards, gathers and reduces on its own. */
enum maq_eager_stream { MAQ_EAGER_COMPUTE, MAQ_EAGER_GATHERS, MAQ_EAGER_REDUCTIONS, MAQ_EAGER_CASTS };

/* What one entry of the program has. */
struct maq_eager_layer {
    const struct maq_eager_script *script;
    uint32_t *blocks; /* [n_slots] */
    double *params;   /* [n_params] numbers of each of its tensors; */
    double *rows;     /* of how many rows they are */
    uint32_t n_params, unit;
    double *frozen; /* [n_frozen] numbers of those that are not trained, where only adapters are */
    uint32_t n_frozen;
    bool redone;
    struct maq_held_blocks weights; /* gathered, each */
    struct maq_held_blocks grads;   /* whole ones, of this micro batch; */
    struct maq_held_blocks sums;    /* of those before it, in the type of the wire, where that is another */
    uint32_t full, flat,
        late[2]; /* of a flat unit, at its first entry: gathered, its gradient, and both when they wait for a stream */
};

struct maq_eager {
    const struct maq_blueprint *bp;
    const struct maq_program *program;
    struct maq_allocator *a;
    struct maq_eager_script *scripts; /* [n_blocks] */
    struct maq_eager_layer *layers;   /* [n], forward */
    uint32_t n, micro, micros;        /* entries; micro batch that runs, of how many */
    double store, stored;             /* bytes of a parameter: in products, as a trained one is kept */
    double shares;                    /* ranks that share parameters, or 1 */
    bool shards, flat, zero, failed;  /* FSDP, with flat parameters; ZeRO-1 or -2 */
    uint32_t workspace[2];            /* of the thread of forward passes, of autograd's */
    uint32_t bucket;                  /* DistributedDataParallel's first; DeepSpeed's, and what is in it */
    double in_bucket;
    uint32_t gathered, reduced; /* FSDP: the last buffer of each stream */
    uint32_t hooked;            /* a gradient whose hook runs when autograd is through with the product */
    double hooked_numbers;
    uint32_t tied;                                 /* the output's gradient of a table that the embedding has, too */
    struct maq_held_blocks buckets, states, grads; /* grads: of the step */
    struct maq_held_blocks cached;                 /* autocast's copies of a pass that is not recorded */
};

uint32_t maq_eager_take(struct maq_eager *r, enum maq_eager_stream stream, double bytes); /* 0 for no bytes */
void maq_eager_give(struct maq_eager *r, uint32_t *block);                                /* and forgets it */
void maq_eager_hold(struct maq_eager *r, struct maq_held_blocks *held, double bytes);
/* A tensor of the compute stream for each parameter. */
void maq_eager_hold_params(struct maq_eager *r, struct maq_held_blocks *held, const struct maq_eager_layer *layer,
                           double bytes);
double maq_eager_params(const struct maq_eager_layer *layer);
/* Numbers of a rank's shard of a tensor: whole rows of it (fully_shard()), as many as the rank with most has. */
double maq_eager_shard(const struct maq_eager *r, const struct maq_eager_layer *layer, uint32_t param);
double maq_eager_grad_bytes(const struct maq_eager *r);

/* DistributedDataParallel: when the model is wrapped, in front of a step, behind it. */
void maq_eager_ddp_wrap(struct maq_eager *r);
void maq_eager_ddp_begin(struct maq_eager *r, int step);
void maq_eager_ddp_end(struct maq_eager *r, int step);

/* ZeRO-1 and -2: when the optimizer is made; a gradient is there; behind a backward pass; all of the update. */
void maq_eager_zero_wrap(struct maq_eager *r);
void maq_eager_zero_gradient(struct maq_eager *r, double numbers);
void maq_eager_zero_backward_end(struct maq_eager *r);
void maq_eager_zero_update(struct maq_eager *r);

/* FSDP: the model is cut into units; around the entries of a pass. */
void maq_eager_fsdp_wrap(struct maq_eager *r);
void maq_eager_fsdp_forward(struct maq_eager *r, uint32_t entry);
void maq_eager_fsdp_forward_end(struct maq_eager *r, uint32_t entry);
void maq_eager_fsdp_backward(struct maq_eager *r, uint32_t entry);
void maq_eager_fsdp_backward_end(struct maq_eager *r, uint32_t entry);
/* The backward pass of the loss is over. */
void maq_eager_fsdp_logits(struct maq_eager *r);
/* All passes of a direction are over. */
void maq_eager_fsdp_pass_end(struct maq_eager *r, bool backward);

#endif
