/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.c - BERT and its descendants: layers with norms behind the additions (or in front: Megatron-LM's, RoBERTa-PreLayerNorm,
 * XLM-RoBERTa-XL), learned positions, a table of token types, a norm behind the embedding, and a head of a linear, a nonlinearity and a norm
 * in front of the tied table.
 *
 * Queries see the whole sequence, unless is_decoder says otherwise. Counted as `transformers` has them for language modelling
 * (BertLMHeadModel and its like), without a pooler where that class has none. Trained on masked tokens, the head works on those alone;
 * here it works on all.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

static const struct maq_field bert_keys[] = {
    I64(token_types, "type_vocab_size", .min = 0, .max = 1048576, .doc = "rows of the table of token types"),
    REAL(attention_dropout, "attention_probs_dropout_prob", .min = 0, .max = 1,
         .doc = "dropout on attention probabilities"),
    REAL(hidden_dropout, "hidden_dropout_prob", .min = 0, .max = 1, .doc = "dropout before residual additions"),
    BOOL(is_decoder, "is_decoder", .doc = "queries see what is before them only"),
    BOOL(crosses, "add_cross_attention", .doc = "attention to an encoder besides"),
    STR(position_type, "position_embedding_type", .doc = "accepted: absolute"),
    I64(task_types, "task_type_vocab_size", .min = 0, .max = 1048576, .doc = "rows of ERNIE's table of tasks"),
    BOOL(use_task_id, "use_task_id", .doc = "that table"),
    MAQ_FIELD_END};

static void settle_bert(struct maq_hf *hf, struct maq_model_reader *r)
{
    MAQ_READER_CHECK(r, !hf->crosses, MAQ_CODE_MODEL_VALUE, "add_cross_attention", NULL,
                     "attention to an encoder is not modelled");
}

/* A table of `rows` beside that of the tokens, `width` wide. */
static void add_table(struct maq_architecture *arch, const char *name, int64_t rows, int64_t width)
{
    if (rows > 0)
        maq__hf_extra(arch, (struct maq_arch_extra){.name = name,
                                                    .place = MAQ_PLACE_EMBEDDING,
                                                    .kind = MAQ_MODULE_EMBEDDING,
                                                    .shard = MAQ_SHARD_SEQUENCE,
                                                    .flags = MAQ_MODULE_NO_GRAD_INPUT,
                                                    .in = rows,
                                                    .out = width,
                                                    .params = rows * width});
}

/* What stands in front of the head: hidden -> width, a nonlinearity, a norm. */
static void add_transform(struct maq_architecture *arch, int64_t hidden, int64_t width)
{
    maq__hf_extra_linear(arch, "head_transform", MAQ_PLACE_HEAD, hidden, width, true, 0);
    maq__hf_extra_norm(arch, "head_layernorm", MAQ_PLACE_HEAD, width, MAQ_SHARD_SEQUENCE, 0);
}

/* Where the head is not tied, its class still has the bias that is tied to the head's. */
static void add_second_bias(struct maq_architecture *arch, const struct maq_hf *hf)
{
    if (!hf->tie)
        maq__hf_extra_numbers(arch, "bias", MAQ_PLACE_HEAD, hf->hidden, hf->vocab, 0);
}

static void adapt_bert(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->attention.bidirectional = !hf->is_decoder;
    add_table(arch, "token_type_embeddings", hf->token_types, hf->hidden);
    if (hf->use_task_id)
        add_table(arch, "task_type_embeddings", hf->task_types, hf->hidden);
    if (hf->head_transform)
        add_transform(arch, hf->hidden, hf->hidden);
    if (hf->bias_twice)
        add_second_bias(arch, hf);
}

/* BigBird: its class has a pooler. Its attention is block-sparse by default, and full here. */
static const struct maq_field big_bird_keys[] = {
    STR(attention_type, "attention_type", .doc = "original_full; block_sparse sees blocks"),
    I64(index_block, "block_size", COUNT, .doc = "keys of a block"),
    I64(index_blocks, "num_random_blocks", SOME, .doc = "blocks chosen at random"),
    BOOL(use_bias, "use_bias", .doc = "biases in queries, keys and values"), MAQ_FIELD_END};

static void adapt_big_bird(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    adapt_bert(arch, hf, r);
    arch->attention.qkv_bias = hf->use_bias;
    if (!maq_str_is(hf->attention_type,
                    "original_full")) /* its own block and both neighbours, the ends, and random ones */
        arch->attention.selected = (hf->index_blocks + 5) * hf->index_block;
    maq__hf_extra_linear(arch, "pooler", MAQ_PLACE_FINAL, hf->hidden, hf->hidden, true, 0);
}

/* ELECTRA: tables narrower than hidden, and a head that goes back to their width. */
static const struct maq_field electra_keys[] = {
    I64(embedding_dim, "embedding_size", WIDTH, .doc = "width of the token table"), MAQ_FIELD_END};

/* Positions, token types and a norm at the tables' width, then a linear with a bias; the linear in front of the head has one too. */
static void add_narrow_tables(struct maq_architecture *arch, const struct maq_hf *hf, int64_t width)
{
    add_table(arch, "position_embeddings", hf->max_pos, width);
    add_table(arch, "token_type_embeddings", hf->token_types, width);
    maq__hf_extra_norm(arch, "embedding_layernorm", MAQ_PLACE_EMBEDDING, width, MAQ_SHARD_SEQUENCE, 0);
    arch->position_rows = 0;
    arch->embedding_norm = false;
}

static void adapt_electra(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t width = hf->embedding_dim > 0 ? hf->embedding_dim : 128;
    (void)r;
    arch->attention.bidirectional = !hf->is_decoder;
    arch->embedding_dim = width == hf->hidden ? 0 : width;
    add_narrow_tables(arch, hf, width);
    if (width != hf->hidden) {
        maq__hf_extra_numbers(arch, "project_in.bias", MAQ_PLACE_EMBEDDING, hf->hidden, hf->hidden, 0);
        maq__hf_extra_numbers(arch, "project_out.bias", MAQ_PLACE_HEAD, width, width, 0);
    } else {
        maq__hf_extra_linear(arch, "project_out", MAQ_PLACE_HEAD, width, width, true, 0);
    }
    maq__hf_extra_norm(arch, "head_layernorm", MAQ_PLACE_HEAD, width, MAQ_SHARD_SEQUENCE, 0);
}

/* RoFormer: queries and keys rotate; the sines are a table that the class keeps as a parameter. */
static void adapt_roformer(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t width = hf->embedding_dim > 0 ? hf->embedding_dim : hf->hidden;
    (void)r;
    arch->attention.bidirectional = !hf->is_decoder;
    arch->embedding_dim = width == hf->hidden ? 0 : width;
    add_table(arch, "token_type_embeddings", hf->token_types, width);
    maq__hf_extra_norm(arch, "embedding_layernorm", MAQ_PLACE_EMBEDDING, width, MAQ_SHARD_SEQUENCE, 0);
    if (width != hf->hidden)
        maq__hf_extra_numbers(arch, "project_in.bias", MAQ_PLACE_EMBEDDING, hf->hidden, hf->hidden, 0);
    add_table(arch, "embed_positions", hf->max_pos, hf->hidden / hf->heads);
    arch->position_rows = 0;
    arch->embedding_norm = false;
    if (width != hf->hidden)
        maq__hf_extra_numbers(arch, "project_out.bias", MAQ_PLACE_HEAD, width, width, 0);
    else
        maq__hf_extra_linear(arch, "head_transform", MAQ_PLACE_HEAD, width, width, true, 0);
    maq__hf_extra_norm(arch, "head_layernorm", MAQ_PLACE_HEAD, width, MAQ_SHARD_SEQUENCE, 0);
    add_second_bias(arch, hf);
}

/* RoCBERT: tables of pronunciation and shape, joined with the tokens' by one linear. */
static const struct maq_field roc_keys[] = {
    I64(roc.sounds, "pronunciation_vocab_size", .min = 1, .max = 134217728,
        .doc = "rows of the table of pronunciations"),
    I64(roc.sound_width, "pronunciation_embed_dim", WIDTH, .doc = "its width"),
    I64(roc.shapes, "shape_vocab_size", .min = 1, .max = 134217728, .doc = "rows of the table of shapes"),
    I64(roc.shape_width, "shape_embed_dim", WIDTH, .doc = "its width"),
    BOOL(roc.has_sounds, "enable_pronunciation", .doc = "the first table"),
    BOOL(roc.has_shapes, "enable_shape", .doc = "the second one"),
    BOOL(roc.joins, "concat_input", .doc = "joined by a linear, not added"),
    MAQ_FIELD_END};

static void adapt_roc(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t wide =
        hf->hidden + (hf->roc.has_sounds ? hf->roc.sound_width : 0) + (hf->roc.has_shapes ? hf->roc.shape_width : 0);
    if (hf->roc.sounds > 0) /* the tables are there whether they are used or not */
        add_table(arch, "pronunciation_embed", hf->roc.sounds, hf->roc.sound_width);
    if (hf->roc.shapes > 0)
        add_table(arch, "shape_embed", hf->roc.shapes, hf->roc.shape_width);
    if (hf->roc.joins)
        maq__hf_extra_linear(arch, "map_inputs_layer", MAQ_PLACE_EMBEDDING, wide, hf->hidden, true, 0);
    adapt_bert(arch, hf, r);
}

/* X-MOD: an adapter of two linears for each language behind every MLP, of which a batch meets one. */
static const struct maq_field xmod_keys[] = {
    NODE(languages, "languages", .doc = "languages with an adapter each"),
    I64(ffn_multiple, "adapter_reduction_factor", COUNT, .doc = "hidden over the width of an adapter"),
    BOOL(post_norm, "adapter_layer_norm", .doc = "a norm in each adapter"),
    BOOL(norms_biased, "pre_norm", .doc = "norms in front of the branches"),
    STR(position_type, "default_language", .doc = "accepted"),
    MAQ_FIELD_END};

static void settle_xmod(struct maq_hf *hf, struct maq_model_reader *r)
{
    settle_bert(hf, r);
    MAQ_READER_CHECK(r, !hf->norms_biased && !hf->post_norm, MAQ_CODE_MODEL_VALUE, "pre_norm|adapter_layer_norm", NULL,
                     "norms in front of the branches or in adapters are not modelled for xmod");
}

static void adapt_xmod(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    int64_t n = hf->languages && hf->languages->kind == MAQ_NODE_SEQ ? hf->languages->count : 1;
    int64_t width = hf->hidden / hf->ffn_multiple, one = 2 * hf->hidden * width + width + hf->hidden;
    if (hf->languages)
        maq_node_use_all(hf->languages);
    maq__hf_extra_linear(arch, "adapter.dense1", MAQ_PLACE_FFN_OUT, hf->hidden, width, true, 0);
    maq__hf_extra_linear(arch, "adapter.dense2", MAQ_PLACE_FFN_OUT, width, hf->hidden, true, 0);
    if (n > 1)
        maq__hf_extra_numbers(arch, "adapters of other languages", MAQ_PLACE_FFN_OUT, hf->hidden, (n - 1) * one, 0);
    adapt_bert(arch, hf, r);
}

/* XLM: its own names; a table of languages where it has several. */
static const struct maq_field xlm_keys[] = {
    I64(hidden, "emb_dim", WIDTH, .doc = "width of the residual stream"),
    I64(vocab, "n_words", .min = 1, .max = 134217728, .doc = "rows of the token table"),
    I64(token_types, "n_langs", COUNT, .doc = "languages"),
    BOOL(use_bias, "use_lang_emb", .doc = "a table of them, for more than one"),
    BOOL(is_decoder, "causal", .doc = "queries see what is before them only"),
    BOOL(norms_biased, "sinusoidal_embeddings", .doc = "the table of positions has sines in it"),
    BOOL(crosses, "asm", .doc = "an adaptive softmax"),
    MAQ_FIELD_END};

static void settle_xlm(struct maq_hf *hf, struct maq_model_reader *r)
{
    hf->ffn = 4 * hf->hidden;
    hf->token_types = hf->use_bias && hf->token_types > 1 ? hf->token_types : 0;
    MAQ_READER_CHECK(r, !hf->crosses, MAQ_CODE_MODEL_VALUE, "asm", NULL, "an adaptive softmax is not modelled");
}

#define BERT                                                                                                           \
    "norm: layer, norms: post_residual, gated: false, biased: true, no_rotation: true, learned_positions: true, "      \
    "embedding_norm: true, no_final_norm: true, head_transform: true, biased_head: true, head_bias_twice: true, "      \
    "tie_word_embeddings: true, "                                                                                      \
    "hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, max_position_embeddings: 512, "
#define PRE_BERT                                                                                                       \
    "norm: layer, gated: false, biased: true, no_rotation: true, learned_positions: true, head_transform: true, "      \
    "biased_head: true, head_bias_twice: true, tie_word_embeddings: true, hidden_dropout_prob: 0.1, "                  \
    "attention_probs_dropout_prob: 0.1, "
#define BERT_TABLES(...) TABLES(maq__hf_dropout, bert_keys, __VA_ARGS__)

const struct maq_family maq__hf_encoder_families[] = {
    {.type = "bert|ernie|roberta|xlm-roberta|camembert|data2vec-text",
     .read = maq__hf_read,
     .architectures = "BertLMHeadModel|BertForMaskedLM|ErnieForCausalLM|ErnieForMaskedLM|RobertaForCausalLM|"
                      "RobertaForMaskedLM|XLMRobertaForCausalLM|XLMRobertaForMaskedLM|CamembertForCausalLM|"
                      "CamembertForMaskedLM|Data2VecTextForCausalLM|Data2VecTextForMaskedLM",
     .tables = BERT_TABLES(NULL),
     .facts = BERT "type_vocab_size: 2",
     .settle = settle_bert,
     .adapt = adapt_bert},
    {.type = "bert-generation",
     .read = maq__hf_read,
     .architectures = "BertGenerationDecoder",
     .tables = BERT_TABLES(NULL),
     .facts =
         "norm: layer, norms: post_residual, gated: false, biased: true, no_rotation: true, learned_positions: true, "
         "embedding_norm: true, no_final_norm: true, biased_head: true, head_bias_twice: true, tie_word_embeddings: "
         "true, "
         "hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, max_position_embeddings: 512",
     .settle = settle_bert,
     .adapt = adapt_bert},
    {.type = "big_bird",
     .read = maq__hf_read,
     .architectures = "BigBirdForCausalLM|BigBirdForMaskedLM",
     .tables = BERT_TABLES(big_bird_keys),
     .facts = BERT "type_vocab_size: 2, use_bias: true, block_size: 64, num_random_blocks: 3",
     .settle = settle_bert,
     .adapt = adapt_big_bird},
    {.type = "electra",
     .read = maq__hf_read,
     .architectures = "ElectraForCausalLM|ElectraForMaskedLM",
     .tables = BERT_TABLES(electra_keys),
     .facts = BERT "type_vocab_size: 2, embedding_size: 128",
     .settle = settle_bert,
     .adapt = adapt_electra},
    {.type = "roformer",
     .read = maq__hf_read,
     .architectures = "RoFormerForCausalLM|RoFormerForMaskedLM",
     .tables = BERT_TABLES(electra_keys),
     .facts = "norm: layer, norms: post_residual, gated: false, biased: true, no_final_norm: true, biased_head: true, "
              "head_bias_twice: true, "
              "tie_word_embeddings: true, hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, "
              "type_vocab_size: 2, max_position_embeddings: 1536",
     .settle = settle_bert,
     .adapt = adapt_roformer},
    {.type = "roc_bert",
     .read = maq__hf_read,
     .architectures = "RoCBertForCausalLM|RoCBertForMaskedLM",
     .tables = BERT_TABLES(roc_keys),
     .facts = BERT "type_vocab_size: 2, pronunciation_vocab_size: 910, pronunciation_embed_dim: 768, "
                   "shape_vocab_size: 24858, shape_embed_dim: 512, enable_pronunciation: true, enable_shape: true, "
                   "concat_input: true",
     .settle = settle_bert,
     .adapt = adapt_roc},
    {.type = "xmod",
     .read = maq__hf_read,
     .architectures = "XmodForCausalLM|XmodForMaskedLM",
     .tables = BERT_TABLES(xmod_keys),
     .facts = BERT "type_vocab_size: 2, adapter_reduction_factor: 2",
     .settle = settle_xmod,
     .adapt = adapt_xmod},
    {.type = "megatron-bert",
     .read = maq__hf_read,
     .architectures = "MegatronBertForCausalLM|MegatronBertForMaskedLM",
     .tables = BERT_TABLES(NULL),
     .facts = PRE_BERT "type_vocab_size: 2, max_position_embeddings: 512",
     .settle = settle_bert,
     .adapt = adapt_bert},
    {.type = "xlm-roberta-xl",
     .read = maq__hf_read,
     .architectures = "XLMRobertaXLForCausalLM|XLMRobertaXLForMaskedLM",
     .tables = BERT_TABLES(NULL),
     .facts = PRE_BERT "type_vocab_size: 1, max_position_embeddings: 514",
     .settle = settle_bert,
     .adapt = adapt_bert},
    {.type = "roberta-prelayernorm",
     .read = maq__hf_read,
     .architectures = "RobertaPreLayerNormForCausalLM|RobertaPreLayerNormForMaskedLM",
     .tables = BERT_TABLES(NULL),
     .facts = PRE_BERT "type_vocab_size: 2, max_position_embeddings: 512, embedding_norm: true",
     .settle = settle_bert,
     .adapt = adapt_bert},
    {.type = "xlm",
     .read = maq__hf_read,
     .architectures = "XLMWithLMHeadModel",
     .tables = TABLES(maq__hf_dropout, xlm_keys),
     .facts =
         "norm: layer, norms: post_residual, gated: false, biased: true, no_rotation: true, learned_positions: true, "
         "embedding_norm: true, no_final_norm: true, biased_head: true, tie_word_embeddings: true, dropout: 0.1, "
         "attention_dropout: 0.1, max_position_embeddings: 512, use_lang_emb: true",
     .settle = settle_xlm,
     .adapt = adapt_bert},
    {.type = NULL},
};
