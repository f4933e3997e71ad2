/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_facts.c - what the class of a family fixes, in words.
 *
 * A family is a row of a table: the keys that it reads, and a text with what holds where the keys say nothing:
 *
 *     {.type = "gemma2", .tables = LLAMA_TABLES, .facts = "norms: sandwich, windows: even, head_dim: 256, tie_word_embeddings: true"}
 *
 * Words of the table below are what no key of a config.json changes; all others are keys of the family with the default that its class
 * in `transformers` has for them. The text is read like a document, before the first one. What it leaves out is as in a Llama.
 */
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

#define ENUM(member, key, names, ...) MAQ_FIELD_ENUM(struct maq_hf, member, key, names, __VA_ARGS__)

/* In the order of the enums of model/architecture.h and config.h. */
static const char *const norms[] = {"rms", "layer", "layer_without_bias", "plain", NULL};
static const char *const places[] = {"pre", "sandwich", "post_branch", "post_residual", NULL};
static const char *const residuals[] = {"sequential", "parallel", "parallel_two_norms", NULL};
static const char *const qk_norms[] = {"none", "head", "wide", "plain", "each_head", NULL};
static const char *const windows[] = {"none", "all", "even", "upper", "pattern", "chunked", NULL};
static const char *const gates[] = {"none", "with_queries", "full", "head", NULL};
static const char *const mixers[] = {"none",     "attention", "mla", "mamba2",    "delta", "conv",
                                     "parallel", "mamba",     "kda", "lightning", NULL};

const struct maq_field maq__hf_class[] = {
    ENUM(norm, "norm", norms, .doc = "kind of all norms"),
    ENUM(norm_place, "norms", places, .doc = "where they stand"),
    ENUM(residual, "branches", residuals, .doc = "attention and MLP one behind the other, or side by side"),
    ENUM(qk_norm, "norms_of_queries_and_keys", qk_norms, .doc = "norms on queries and keys, before use_qk_norm"),
    ENUM(window_rule, "windows", windows, .doc = "which layers see a window, where layer_types does not say it"),
    I64(window_pattern, "full_every", .min = 1, .max = MAQ_ARCH_LAYERS_MAX, .doc = "every n-th layer sees everything"),
    I64(full_at, "full_at", LAYERS, .doc = "which one of them, from 0; the last one otherwise"),
    I64(full_first, "full_first", LAYERS, .doc = "so many layers at the start see everything besides"),
    I64(full_last, "full_last", LAYERS, .doc = "and so many at the end"),
    BOOL(not_first, "not_layer_0", .doc = "the pattern says nothing of layer 0"),
    I64(full_interval, "attention_every", .min = 1, .max = MAQ_ARCH_LAYERS_MAX,
        .doc = "every n-th layer attends, all others have linear_attention"),
    ENUM(gate, "gate", gates, .doc = "on the output of attention"),
    ENUM(linear_mixer, "linear_attention", mixers, .doc = "the mixer that layer_types calls so"),
    BOOL(gated, "gated", .doc = "an MLP of three linears"),
    BOOL(out_bias_never, "no_output_bias", .doc = "attention_bias is of queries, keys and values only"),
    BOOL(qkv_bias, "biased_qkv", .doc = "biases in queries, keys and values, whatever the keys say"),
    BOOL(bias, "biased", .doc = "biases in all linears but the head"),
    BOOL(head_bias, "biased_head", .doc = "a bias in the head"),
    BOOL(never_tied, "never_tied", .doc = "tie_word_embeddings has no effect"),
    BOOL(bias_twice, "head_bias_twice", .doc = "and once more where the head is not tied"),
    BOOL(embedding_norm, "embedding_norm", .doc = "a norm behind the embedding"),
    BOOL(no_final_norm, "no_final_norm", .doc = "none in front of the head"),
    BOOL(no_rope, "no_rotation", .doc = "queries and keys do not rotate"),
    BOOL(sinks, "sinks", .doc = "one learned logit for each head"),
    BOOL(router_bias, "router_bias", .doc = "one number per expert, learned or balancing the load"),
    BOOL(expert_bias, "expert_bias", .doc = "biases in experts"),
    BOOL(expert_clamped, "clamped_experts", .doc = "the input of their activation is clamped"),
    BOOL(shared_gate, "shared_gate", .doc = "a number that scales the shared experts"),
    BOOL(rounds_head, "head_dim_rounded", .doc = "hidden / heads may have a remainder"),
    BOOL(learned_positions, "learned_positions", .doc = "a table of positions"),
    I64(position_offset, "position_offset", .min = 0, .max = 65536, .doc = "rows of it before position 0"),
    BOOL(head_transform, "head_transform", .doc = "a linear, a nonlinearity and a norm in front of the head"),
    I64(first_dense, "dense_first", LAYERS, .doc = "layers at the start without experts"),
    I64(act_params, "activation_parameters", .min = 0, .max = 16, .doc = "learned numbers of the nonlinearity"),
    MAQ_FIELD_DOUBLE(struct maq_hf, expansion, "expansion", .min = 0.001, .max = 1024,
                     .doc = "width of the MLP over hidden where it is not given"),
    BOOL(index.weighs, "index_weights", .doc = "scores of an index are weighed by head"),
    BOOL(index.norms_queries, "index_norms_queries", .doc = "a norm on an index's queries as well"),
    ENUM(index.norm, "index_norm", norms, .doc = "kind of it"),
    MAQ_FIELD_END};

void maq__hf_read_facts(struct maq_hf *hf, const struct maq_family *family, struct maq_model_reader *r)
{
    struct maq_doc doc;
    if (!family->facts)
        return;
    const char *text = maq_arena_printf(r->arena, "{%s}", family->facts);
    if (!text) {
        maq__reader_error(r, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for a model");
        return;
    }
    bool ok = maq_doc_parse(&doc, "facts", maq_str_of(text), MAQ_ORIGIN_CATALOGUE, r->diag) == MAQ_OK &&
              maq_fields_read(hf, maq__hf_class, doc.root, NULL, r->arena, r->diag) == MAQ_OK;
    for (size_t i = 0; ok && family->tables[i]; i++)
        ok = maq_fields_read(hf, family->tables[i], doc.root, NULL, r->arena, r->diag) == MAQ_OK;
    for (struct maq_node *c = ok ? doc.root->first : NULL; c; c = c->next)
        ok &= MAQ_READER_CHECK(r, c->used, MAQ_CODE_MODEL_UNKNOWN_KEY, NULL, NULL, "facts of %s: unknown word '%.*s'",
                               family->type, (int)c->key.len, c->key.ptr);
    r->bad |= !ok;
    maq_doc_fini(&doc);
}
