/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assemble.c - what is put together from mixers and feed-forward parts: a layer, and the blocks at both ends.
 *
 * A layer, for each of its two branches f, by where the norms stand:
 *   pre            x + f(n(x))              sandwich       x + n'(f(n(x)))
 *   post branch    x + n'(f(x))             post residual  n(x + f(x))
 * A parallel layer adds both branches at once, and their partial sums are reduced together.
 *
 * Embedding: token table cut by vocabulary, learned positions, a projection where the table is narrower than hidden,
 * a norm. Output: final norm, head (its weight counted here unless tied), cross-entropy. A multi-token-prediction
 * depth (arXiv 2412.19437 section 2.2): norms of the hidden state and of the next token's embedding, their joint
 * projection 2 hidden -> hidden, a transformer layer, a norm; it runs the embedding, the head and the loss of the
 * main model again.
 */
#include "model/layer/module_list.h"

static bool norm_before(const struct maq_architecture *arch)
{
    return arch->norm_place == MAQ_NORM_PRE || arch->norm_place == MAQ_NORM_SANDWICH;
}

static void write_norm(struct maq_block_writer *b, const struct maq_architecture *arch, const char *name,
                       bool shared_input)
{
    struct maq_module *m =
        maq__block_norm(b, name, MAQ_PART_NORM, MAQ_SHARD_SEQUENCE, arch->norm, arch->hidden, arch->hidden);
    if (shared_input)
        m->flags |= MAQ_MODULE_SHARED_INPUT;
}

/* In front of a mixer, whose attention may read more than the residual stream. */
static void write_mixer_norm(struct maq_block_writer *b, const struct maq_architecture *arch,
                             const struct maq_arch_layer *layer)
{
    bool wide = layer->mixer == MAQ_MIXER_ATTENTION && arch->attention.input > 0;
    int64_t width = wide ? arch->attention.input : arch->hidden;
    if (norm_before(arch) && !layer->bare)
        maq__block_norm(b, "input_layernorm", MAQ_PART_NORM, MAQ_SHARD_SEQUENCE, arch->norm, width, width);
}

static void write_residual(struct maq_block_writer *b, const struct maq_architecture *arch, const char *name)
{
    maq__block_plain(b, MAQ_MODULE_RESIDUAL, name, MAQ_PART_RESIDUAL, MAQ_SHARD_SEQUENCE, arch->hidden, arch->hidden,
                     arch->hidden_dropout ? MAQ_MODULE_DROPOUT : 0u);
}

static void write_mixer(struct maq_block_writer *b, const struct maq_architecture *arch,
                        const struct maq_arch_layer *layer, struct maq_branch branch)
{
    switch (layer->mixer) {
    case MAQ_MIXER_NONE:
        break;
    case MAQ_MIXER_ATTENTION:
        maq__write_attention(b, arch, layer, branch);
        break;
    case MAQ_MIXER_MLA:
        maq__write_mla(b, arch, layer);
        break;
    case MAQ_MIXER_MAMBA2:
        maq__write_mamba(b, arch, branch);
        break;
    case MAQ_MIXER_DELTA:
        maq__write_delta(b, arch);
        break;
    case MAQ_MIXER_CONV:
        maq__write_conv(b, arch);
        break;
    case MAQ_MIXER_PARALLEL:
        maq__write_attention(b, arch, layer, (struct maq_branch){.keep_partial = true});
        maq__write_mamba(b, arch, (struct maq_branch){.shared_input = true});
        break;
    case MAQ_MIXER_MAMBA1:
        maq__write_mamba1(b, arch);
        break;
    case MAQ_MIXER_KDA:
        maq__write_kda(b, arch);
        break;
    case MAQ_MIXER_LIGHTNING:
        maq__write_lightning(b, arch);
        break;
    }
}

static void write_ffn(struct maq_block_writer *b, const struct maq_architecture *arch,
                      const struct maq_arch_layer *layer, struct maq_branch branch)
{
    if (layer->ffn == MAQ_FFN_MOE)
        maq__write_moe(b, arch, branch);
    else if (layer->ffn == MAQ_FFN_DENSE)
        maq__write_mlp(b, arch, layer, branch);
}

static bool norm_on_branch(const struct maq_architecture *arch)
{
    return arch->norm_place == MAQ_NORM_SANDWICH || arch->norm_place == MAQ_NORM_POST_BRANCH;
}

static void write_sequential(struct maq_block_writer *b, const struct maq_architecture *arch,
                             const struct maq_arch_layer *layer)
{
    const struct maq_branch alone = {0};
    if (layer->mixer != MAQ_MIXER_NONE) {
        write_mixer_norm(b, arch, layer);
        maq__block_extras(b, arch, MAQ_PLACE_MIXER_IN, layer);
        write_mixer(b, arch, layer, alone);
        maq__block_extras(b, arch, MAQ_PLACE_MIXER_OUT, layer);
        if (norm_on_branch(arch))
            write_norm(b, arch, "post_attention_layernorm", false);
        write_residual(b, arch, "self_attn_bda");
        if (arch->norm_place == MAQ_NORM_POST_RESIDUAL)
            write_norm(b, arch, "post_attention_layernorm", false);
    }
    if (layer->ffn != MAQ_FFN_NONE) {
        if (norm_before(arch))
            write_norm(b, arch, "pre_mlp_layernorm", false);
        write_ffn(b, arch, layer, alone);
        maq__block_extras(b, arch, MAQ_PLACE_FFN_OUT, layer);
        if (norm_on_branch(arch))
            write_norm(b, arch, "post_mlp_layernorm", false);
        write_residual(b, arch, "mlp_bda");
        if (arch->norm_place == MAQ_NORM_POST_RESIDUAL)
            write_norm(b, arch, "post_mlp_layernorm", false);
    }
}

static void write_parallel(struct maq_block_writer *b, const struct maq_architecture *arch,
                           const struct maq_arch_layer *layer)
{
    bool one_norm = arch->residual == MAQ_RESIDUAL_PARALLEL;
    write_norm(b, arch, "input_layernorm", false);
    /* experts have an exchange of their own, which partial sums of attention are no part of */
    write_mixer(b, arch, layer, (struct maq_branch){.keep_partial = layer->ffn == MAQ_FFN_DENSE});
    if (!one_norm)
        write_norm(b, arch, "pre_mlp_layernorm", true);
    write_ffn(b, arch, layer, (struct maq_branch){.shared_input = one_norm});
    write_residual(b, arch, "mlp_bda");
}

/*
 * Where a level of a pyramid begins, tokens are made from those of the level before (by interpolation, or by moving features to
 * places), and get positions from a table. Counted over the tokens of the layer behind.
 */
static void write_level(struct maq_block_writer *b, const struct maq_arch_level *level, const struct maq_arch_level *of)
{
    int64_t all = maq__block_mul(b, level->tokens, level->hidden), width = all / of->tokens > 0 ? all / of->tokens : 1;
    maq__block_plain(b, MAQ_MODULE_RESIDUAL, "resample", MAQ_PART_RESIDUAL, MAQ_SHARD_SEQUENCE, width, width, 0);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_RESIDUAL, "position_embeddings", MAQ_PART_RESIDUAL,
                                            MAQ_SHARD_SEQUENCE, width, width, 0);
    m->params = all;
}

void maq__write_layer(struct maq_block_writer *b, const struct maq_architecture *arch,
                      const struct maq_arch_layer *layer)
{
    for (int32_t i = layer->enters; i-- > 0;)
        write_level(b, layer->level - i, layer->level);
    bool both = layer->mixer == MAQ_MIXER_ATTENTION && layer->ffn != MAQ_FFN_NONE;
    if (arch->residual != MAQ_RESIDUAL_SEQUENTIAL && both)
        write_parallel(b, arch, layer);
    else
        write_sequential(b, arch, layer);
    maq__block_extras(b, arch, MAQ_PLACE_LAYER_OUT, layer);
}

/* One vector per sequence becomes all its tokens, whose positions have a table: rows of these modules are sequences. */
static void write_projection(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const enum maq_part part = MAQ_PART_EMBEDDING;
    int64_t all = maq__block_mul(b, arch->tokens, arch->hidden);
    maq__block_linear(b, "input_projection", part, MAQ_SHARD_SEQUENCE, arch->input_features, all, MAQ_MODULE_BIAS);
    struct maq_module *m =
        maq__block_plain(b, MAQ_MODULE_EMBEDDING, "position_embeddings", part, MAQ_SHARD_SEQUENCE, 1, all, 0);
    m->params = all;
}

/* Patches of an image, each projected by itself. */
static void write_patches(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const enum maq_part part = MAQ_PART_EMBEDDING;
    maq__block_linear(b, "patch_embed", part, MAQ_SHARD_SEQUENCE, arch->patch_features, arch->hidden,
                      arch->patch_bias ? MAQ_MODULE_BIAS : 0u);
    maq__block_extras(b, arch, MAQ_PLACE_EMBEDDING, NULL);
    if (arch->embedding_norm)
        maq__block_norm(b, "embedding_layernorm", part, MAQ_SHARD_SEQUENCE, arch->norm, arch->hidden, arch->hidden);
}

void maq__write_embedding(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const enum maq_part part = MAQ_PART_EMBEDDING;
    if (arch->input_features > 0) {
        write_projection(b, arch);
        return;
    }
    if (arch->patch_features > 0) {
        write_patches(b, arch);
        return;
    }
    int64_t width = arch->embedding_dim > 0 ? arch->embedding_dim : arch->hidden;
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_EMBEDDING, "word_embeddings", part, MAQ_SHARD_VOCAB,
                                            arch->vocab, width, MAQ_MODULE_NO_GRAD_INPUT | MAQ_MODULE_REDUCE_OUT);
    m->params = maq__block_mul(b, arch->vocab, width);
    if (width != arch->hidden)
        m = maq__block_linear(b, "project_in", part, MAQ_SHARD_SEQUENCE, width, arch->hidden, 0);
    if (arch->position_rows > 0) {
        m = maq__block_plain(b, MAQ_MODULE_EMBEDDING, "position_embeddings", part, MAQ_SHARD_SEQUENCE,
                             arch->position_rows, arch->hidden, MAQ_MODULE_NO_GRAD_INPUT);
        m->params = maq__block_mul(b, arch->position_rows, arch->hidden);
    }
    if (arch->hidden_dropout)
        m->flags |= MAQ_MODULE_DROPOUT;
    maq__block_extras(b, arch, MAQ_PLACE_EMBEDDING, NULL);
    if (arch->embedding_norm)
        maq__block_norm(b, "embedding_layernorm", part, MAQ_SHARD_SEQUENCE, arch->norm, arch->hidden, arch->hidden);
}

void maq__write_output(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const enum maq_part part = MAQ_PART_OUTPUT;
    if (arch->output_features > 0) {
        const struct maq_arch_level *last = arch->layers[arch->num_layers - 1].level;
        maq__block_linear(b, "output_layer", part, MAQ_SHARD_SEQUENCE, last ? last->hidden : arch->hidden,
                          arch->output_features, MAQ_MODULE_UNQUANTIZED | MAQ_MODULE_BIAS);
        return;
    }
    int64_t width = arch->embedding_dim > 0 ? arch->embedding_dim : arch->hidden;
    uint32_t flags = MAQ_MODULE_GATHER_IN | MAQ_MODULE_UNQUANTIZED | (arch->tied ? MAQ_MODULE_TIED : 0u) |
                     (arch->head_bias ? MAQ_MODULE_BIAS : 0u);
    maq__block_extras(b, arch, MAQ_PLACE_FINAL, NULL);
    if (arch->final_norm)
        maq__block_norm(b, "final_layernorm", part, MAQ_SHARD_SEQUENCE, arch->norm, arch->hidden, arch->hidden);
    if (width != arch->hidden)
        maq__block_linear(b, "project_out", part, MAQ_SHARD_SEQUENCE, arch->hidden, width, 0);
    maq__block_extras(b, arch, MAQ_PLACE_HEAD, NULL);
    if (arch->patch_features > 0)
        return;
    maq__block_linear(b, "output_layer", part, MAQ_SHARD_COLUMN, width, arch->vocab, flags);
    maq__block_plain(b, MAQ_MODULE_LOSS, "cross_entropy", part, MAQ_SHARD_VOCAB, arch->vocab, 1, 0);
}

void maq__write_output_apart(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    struct maq_architecture own = *arch;
    own.tied = false;
    maq__write_output(b, &own);
    for (uint32_t i = 0; i < b->n && !arch->tied; i++) /* the head's, and the one that multi-token prediction reads */
        if (b->modules[i].shard == MAQ_SHARD_COLUMN)
            b->modules[i].params =
                maq__block_add(b, b->modules[i].params, maq__block_mul(b, b->modules[i].in, arch->vocab));
}

void maq__write_mtp(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    write_norm(b, arch, "enorm", false);
    write_norm(b, arch, "hnorm", false);
    maq__block_linear(b, "eh_proj", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, 2 * arch->hidden, arch->hidden,
                      MAQ_MODULE_GATHER_IN | MAQ_MODULE_REDUCE_OUT);
    maq__write_layer(b, arch, &arch->mtp_layer);
    write_norm(b, arch, "final_layernorm", false);
}
