/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_list.h - the list of modules of one layer while it is being written down, and the writers of each family.
 *
 * A writer appends modules in forward order and never fails: too large a product sets `overflow`, which
 * maq_model_build() turns into a finding once.
 */
#ifndef MAQ_MODEL_LAYER_MODULE_LIST_H
#define MAQ_MODEL_LAYER_MODULE_LIST_H

#include "model/architecture.h"

enum {
    MAQ_BLOCK_MODULES = 64
}; /* the longest layer (sandwich norms, MLA, shared and latent experts, MTP) has under 40 */

struct maq_block_writer {
    struct maq_module modules[MAQ_BLOCK_MODULES];
    uint32_t n;
    uint64_t own; /* bit i: module i is none that a layer takes over from an earlier one */
    bool overflow;
    bool moe;
};

/* a * b and a + b of non-negative numbers; on overflow the flag is set and INT64_MAX returned. */
int64_t maq__block_mul(struct maq_block_writer *b, int64_t x, int64_t y);
int64_t maq__block_add(struct maq_block_writer *b, int64_t x, int64_t y);

/* Appends a module and returns it for further settings; valid until the block ends. */
struct maq_module *maq__block_put(struct maq_block_writer *b, struct maq_module module);

/* A linear; its weight (and bias, if flagged) is counted unless it is TIED. */
struct maq_module *maq__block_linear(struct maq_block_writer *b, const char *name, enum maq_part part,
                                     enum maq_shard shard, int64_t in, int64_t out, uint32_t flags);
/* A norm over `in` features whose learned vectors have `width` entries (they differ for norms inside heads). */
struct maq_module *maq__block_norm(struct maq_block_writer *b, const char *name, enum maq_part part,
                                   enum maq_shard shard, enum maq_norm norm, int64_t in, int64_t width);
/* A module without parameters. */
struct maq_module *maq__block_plain(struct maq_block_writer *b, enum maq_module_kind kind, const char *name,
                                    enum maq_part part, enum maq_shard shard, int64_t in, int64_t out, uint32_t flags);

/* The modules of the architecture that stand at this place of a layer (NULL: of the embedding or output). */
void maq__block_extras(struct maq_block_writer *b, const struct maq_architecture *arch, enum maq_layer_place place,
                       const struct maq_arch_layer *layer);
/* All weights written so far, but of modules besides, are those of an earlier layer: used, but neither counted nor held again. */
void maq__block_reuse(struct maq_block_writer *b);

/* Copies the modules into the arena and sums up. mixer is static. False when out of memory. */
bool maq__block_finish(struct maq_layer *out, struct maq_block_writer *b, const char *mixer, struct maq_arena *arena);

/*
 * What surrounds a mixer or a feed-forward part: how its input enters and its output leaves the tensor-parallel
 * region. Two branches of a parallel layer share one input and one reduction.
 */
struct maq_branch {
    bool shared_input; /* reads the tensor an earlier branch has gathered already */
    bool keep_partial; /* the sums are left to a later branch of the same layer */
};

void maq__write_attention(struct maq_block_writer *b, const struct maq_architecture *arch,
                          const struct maq_arch_layer *layer, struct maq_branch branch);
void maq__write_mla(struct maq_block_writer *b, const struct maq_architecture *arch,
                    const struct maq_arch_layer *layer);
/* How attention chooses its keys, from `hidden` and the narrower tensor that queries come from. */
void maq__write_index(struct maq_block_writer *b, const struct maq_architecture *arch, const struct maq_arch_index *x);
/* A gate on what attention returned, `heads` of `width`. */
void maq__write_gate(struct maq_block_writer *b, const struct maq_architecture *arch, enum maq_gate gate, int64_t heads,
                     int64_t width);
void maq__write_mamba1(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_kda(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_lightning(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_mamba(struct maq_block_writer *b, const struct maq_architecture *arch, struct maq_branch branch);
void maq__write_delta(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_conv(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_mlp(struct maq_block_writer *b, const struct maq_architecture *arch, const struct maq_arch_layer *layer,
                    struct maq_branch branch);
void maq__write_moe(struct maq_block_writer *b, const struct maq_architecture *arch, struct maq_branch branch);
void maq__write_layer(struct maq_block_writer *b, const struct maq_architecture *arch,
                      const struct maq_arch_layer *layer);
void maq__write_embedding(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_output(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_output_apart(struct maq_block_writer *b, const struct maq_architecture *arch);
void maq__write_mtp(struct maq_block_writer *b, const struct maq_architecture *arch);

#endif
