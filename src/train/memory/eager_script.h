/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eager_script.h - the tensors that a layer of the transformers library asks PyTorch for, one by one, in the order in which it does.
 *
 * A walk (train/step/block.h) says how much a module keeps; what an allocator reserves for it depends on each tensor, also on those that live
 * for a moment. A script is the list of requests and frees of one forward pass and of one backward pass.
 */
#ifndef MAQ_TRAIN_MEMORY_EAGER_SCRIPT_H
#define MAQ_TRAIN_MEMORY_EAGER_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "lower/lower.h"

/* Tensors are numbered; these are met in every script. */
enum {
    MAQ_SLOT_IN, /* what the layer reads: the output of the one before, which lives until the next layer has returned */
    MAQ_SLOT_OUT,      /* what it returns */
    MAQ_SLOT_GRADIENT, /* of the output, from the layer behind; that of the input when the script is over */
    MAQ_SLOTS_FIXED
};

enum maq_move_kind {
    MAQ_MOVE_TAKE,
    MAQ_MOVE_GIVE,
    MAQ_MOVE_GIVE_ALONE, /* where autograd does not record: the tensor is needed for nothing else */
    MAQ_MOVE_CAST, /* a weight's copy under autocast, which the pass of the model keeps to its end, and autograd as long as it needs it */
    MAQ_MOVE_WEIGHT, /* the gradient of a parameter, which leaves the layer */
    MAQ_MOVE_TIED,   /* of a weight that is the embedding's table: it waits for the gradient from there */
    MAQ_MOVE_RENAME, /* the gradient of the input is this tensor from here on */
    MAQ_MOVE_LOGITS, /* the gradient of the logits is there */
    MAQ_MOVE_PRODUCT /* cuBLAS may need its workspace: slot 0, of forward passes, 1, of autograd's thread */
};

struct maq_move {
    uint16_t slot;
    uint16_t kind;
};

struct maq_moves {
    struct maq_move *at;
    uint32_t n, room;
};

struct maq_eager_script {
    double *bytes; /* [n_slots] */
    uint32_t n_slots, room;
    struct maq_moves forward, backward;
    bool keeps_input; /* the backward pass gives MAQ_SLOT_IN */
    uint16_t
        first_wide; /* what its first norm keeps for the gradient of its input alone where weights are frozen; 0: none */
    uint32_t
        sum; /* the move of `forward` that takes the sum of the stream with which the layer ends; 0: none is known */
    bool failed; /* out of memory */
};

/* False, and nothing to free, where a module is of a kind that is not known here, or memory is out (`failed`). */
bool maq_eager_script(struct maq_eager_script *out, const struct maq_lower *lower, const struct maq_layer *layer);
void maq_eager_script_free(struct maq_eager_script *script);

#endif
