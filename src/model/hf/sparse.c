/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse.c - Hugging Face families whose attention chooses its keys: latent attention with the index of DeepSeek-V3.2, and blocks of keys.
 *
 * An index has queries from the rank that attention's own come from, one key for all its heads with a LayerNorm, and a weight for each
 * head; attention sees index_topk keys then. A layer whose indexer_types is "shared" sees what an earlier one has chosen.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/family_rows.h"

/* index_topk_freq of n: every n-th layer has an index, from index_skip_topk_offset on; all before it have one. */
static const struct maq_field glm_dsa_keys[] = {
    I64(index_every, "index_topk_freq", COUNT, .doc = "every n-th layer chooses keys, the others share"),
    I64(index_offset, "index_skip_topk_offset", LAYERS, .doc = "layers at the start that all choose"), MAQ_FIELD_END};

static void settle_dsa(struct maq_hf *hf, struct maq_model_reader *r)
{
    maq__hf_settle_latent(hf, r);
    MAQ_READER_CHECK(r, hf->q_lora > 0, MAQ_CODE_MODEL_LATENT, "q_lora_rank", NULL,
                     "the index needs the rank of the queries: q_lora_rank is a number from 1");
    hf->first_dense = hf->first_dense < hf->layers ? hf->first_dense : hf->layers;
    hf->mlp_bias = false; /* the classes have the key and no biases in MLPs */
}

/* Whether layer i chooses keys itself. */
static bool has_index(const struct maq_hf *hf, struct maq_node *word, int64_t i)
{
    int64_t behind = i - hf->index_offset + 1;
    if (word)
        return !maq_str_is(word->text, "shared");
    return hf->index_every <= 1 || (behind > 0 ? behind : 0) % hf->index_every == 0;
}

static void adapt_dsa(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *list = hf->index_types, *word = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL;
    MAQ_READER_CHECK(r, !list || (list->kind == MAQ_NODE_SEQ && (int64_t)list->count == arch->num_layers),
                     MAQ_CODE_MODEL_LAYER_LIST, "indexer_types", NULL, "indexer_types does not fit %" PRId64 " layers",
                     arch->num_layers);
    for (int64_t i = 0; i < arch->num_layers; i++) {
        struct maq_arch_mla own = arch->layers[i].mla ? *arch->layers[i].mla : arch->mla;
        if (!has_index(hf, word, i))
            own.index.heads = 0;
        maq__hf_own_mla(arch, i, &own, r);
        if (word) {
            word->used = true;
            word = word->next;
        }
    }
}

/* A.X K2: a gate that comes with the queries, and norms that are scaled through a narrow MLP, but not in front of dense MLPs. */
static const struct maq_field axk2_keys[] = {
    I64(gate_rank, "gated_norm_rank", COUNT, .doc = "width of the MLP in a norm"), MAQ_FIELD_END};

static void adapt_axk2(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    (void)r;
    arch->mla.queries_twice = true;
    for (int64_t i = 0; i < arch->num_layers; i++)
        arch->layers[i].marks = arch->layers[i].ffn == MAQ_FFN_MOE ? 1 : 0;
    maq__hf_extra_linear(arch, "input_layernorm.fc1", MAQ_PLACE_MIXER_IN, hf->hidden, hf->gate_rank, false, 0);
    maq__hf_extra_linear(arch, "input_layernorm.fc2", MAQ_PLACE_MIXER_IN, hf->gate_rank, hf->hidden, false, 0);
    maq__hf_extra_linear(arch, "pre_mlp_layernorm.fc1", MAQ_PLACE_FFN_OUT, hf->hidden, hf->gate_rank, false, 1);
    maq__hf_extra_linear(arch, "pre_mlp_layernorm.fc2", MAQ_PLACE_FFN_OUT, hf->gate_rank, hf->hidden, false, 1);
}

/*
 * Hunyuan 4: sinks, a gate, and several residual streams: what a branch reads and where it adds is a product of all streams of a token with
 * 2 x streams vectors.
 */
static const struct maq_field streams_keys[] = {I64(streams, "hc_mult", COUNT, .doc = "residual streams"),
                                                MAQ_FIELD_END};

void maq__hf_streams(struct maq_architecture *arch, const struct maq_hf *hf, int64_t mixes, int64_t scales)
{
    int64_t n = hf->streams, wide = n * hf->hidden;
    maq__hf_extra_linear(arch, "attn_hc", MAQ_PLACE_MIXER_IN, wide, mixes, true, 0);
    maq__hf_extra_numbers(arch, "attn_hc.mix", MAQ_PLACE_MIXER_OUT, wide, scales, 0);
    maq__hf_extra_linear(arch, "ffn_hc", MAQ_PLACE_FFN_OUT, wide, mixes, true, 0);
    maq__hf_extra_numbers(arch, "ffn_hc.mix", MAQ_PLACE_FFN_OUT, wide, scales, 0);
    maq__hf_extra_linear(arch, "hc_head", MAQ_PLACE_FINAL, wide, n, true, 0);
    maq__hf_extra_numbers(arch, "hc_head.mix", MAQ_PLACE_FINAL, wide, 1, 0);
}

static void adapt_hy_v4(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    adapt_dsa(arch, hf, r);
    maq__hf_streams(arch, hf, 2 * hf->streams, 2);
}

/* dots3: layers with an index and a gate for each head; those with a window have sizes of their own and no index. */
static const struct maq_field dots3_keys[] = {
    I64(shared_ffn, "shared_experts_intermediate_size", .aliases = "moe_shared_expert_intermediate_size", OPTIONAL,
        .doc = "width of the shared experts"),
    I64(window, "sliding_window", .aliases = "sliding_window_size", .min = 0, .max = 1e12,
        .doc = "tokens that a query of a sliding layer sees"),
    I64(swa.heads, "swa_num_attention_heads", COUNT, .doc = "heads of a sliding layer"),
    I64(swa.q_lora, "swa_q_lora_rank", WIDTH, .doc = "the rank of its queries"),
    I64(swa.kv_lora, "swa_kv_lora_rank", WIDTH, .doc = "that of its keys and values"),
    I64(swa.head_dim, "swa_head_dim", COUNT, .doc = "width of its heads"),
    I64(swa.nope_dim, "swa_qk_nope_head_dim", COUNT, .doc = "of which so much does not rotate"),
    I64(swa.v_dim, "swa_v_head_dim", COUNT, .doc = "width of its values"),
    MAQ_FIELD_END};

/* The width of the shared experts is that of one. */
static void settle_dots3(struct maq_hf *hf, struct maq_model_reader *r)
{
    settle_dsa(hf, r);
    hf->shared_ffn *= hf->shared_count;
}

static void adapt_dots3(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    arch->mla.norms_rotated_key = true;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        struct maq_arch_layer *l = &arch->layers[i];
        struct maq_arch_mla own = l->mla ? *l->mla : arch->mla;
        own.norms_rotated_key = true;
        if (!hf->layer_types)
            l->window = i < 2 || i % 4 == 1 ? 0 : hf->window;
        if (l->window > 0) {
            own.index.heads = own.selected = 0;
            if (!hf->per_layer) {
                own.heads = hf->swa.heads;
                own.q_lora = hf->swa.q_lora;
                own.kv_lora = hf->swa.kv_lora;
                own.nope_dim = hf->swa.nope_dim;
                own.rope_dim = hf->swa.head_dim - hf->swa.nope_dim;
                own.v_dim = hf->swa.v_dim;
            }
        }
        maq__hf_own_mla(arch, i, &own, r);
    }
}

/*
 * DeepSeek-V4: one key, which is its value too, for all heads; a window, and beside it keys that are pooled of several tokens: of many
 * (heavily_compressed_attention, all of them seen), or of a few whose best an index chooses (compressed_sparse_attention). The output
 * is projected in groups. Every layer has experts; in the first ones a token's number chooses them.
 */
static const struct maq_field v4_keys[] = {
    I64(q_lora, "q_lora_rank", WIDTH, .doc = "latent width of queries"),
    I64(shared_count, "n_shared_experts", SOME, .doc = "shared experts of width moe_intermediate_size"),
    I64(out_groups, "o_groups", COUNT, .doc = "groups that the output is projected in"),
    I64(out_rank, "o_lora_rank", WIDTH, .doc = "width that each is projected to"),
    I64(window, "sliding_window", .min = 1, .max = 1e12, .doc = "tokens that a query sees one by one"),
    I64(streams, "hc_mult", COUNT, .doc = "residual streams"),
    I64(index.heads, "index_n_heads", COUNT, .doc = "heads of the index"),
    I64(index.dim, "index_head_dim", .min = 1, .max = 65536, .doc = "width of one"),
    I64(index.selected, "index_topk", .min = 1, .max = 1e12, .doc = "pooled keys that a query attends to"),
    I64(mtp_layers, "num_nextn_predict_layers", .aliases = "num_mtp_layers", .min = 0, .max = 64,
        .doc = "multi-token-prediction depths"),
    I64(rope_dim, "qk_rope_head_dim", .min = 0, .max = 65536, .doc = "rotated features of a head"),
    I64(rate_sparse, "compress_rate_csa", COUNT, .doc = "tokens of a pooled key that is chosen"),
    I64(rate_heavy, "compress_rate_hca", COUNT, .doc = "tokens of one that all see"),
    I64(hash_layers, "num_hash_layers", LAYERS, .doc = "layers at the start whose experts a token's number chooses"),
    NODE(rates, "compress_rates", .doc = "both rates, by the kind of layer"),
    NODE(sparse_types, "layer_types", .doc = "sliding_attention, or one of the two kinds for each layer"),
    NODE(hash_types, "mlp_layer_types", .doc = "hash_moe or moe for each layer"),
    REAL(ignored_dropout, "compress_rope_theta", .min = 0, .max = 1e12, .doc = "accepted"),
    MAQ_FIELD_END};

static const char csa[] = "compressed_sparse_attention", hca[] = "heavily_compressed_attention";

static void read_rate(int64_t *rate, struct maq_node *map, const char *kind, struct maq_model_reader *r)
{
    struct maq_node *node = map && map->kind == MAQ_NODE_MAP ? maq_node_get(map, kind) : NULL;
    if (node && (!maq_node_i64(rate, node, r->diag) || *rate < 1 || *rate > 1000000))
        r->bad = true;
}

static void settle_v4(struct maq_hf *hf, struct maq_model_reader *r)
{
    read_rate(&hf->rate_sparse, hf->rates, csa, r);
    read_rate(&hf->rate_heavy, hf->rates, hca, r);
    if (hf->rates)
        maq_node_use_all(hf->rates);
    hf->kv_heads = 1;
    hf->shared_count =
        hf->shared_count > 0 ? 1 : 0; /* the class has one, as wide as a routed one, whatever the number */
    hf->rotary_dim = hf->rope_dim > 0 ? hf->rope_dim : hf->head_dim / 8;
    hf->attention_bias = false;
    MAQ_READER_CHECK(r, hf->q_lora > 0 && hf->heads * hf->head_dim % hf->out_groups == 0, MAQ_CODE_MODEL_LATENT,
                     "q_lora_rank|o_groups", NULL,
                     "queries come from a rank, and the heads' features are shared evenly by o_groups");
}

/* Its attention when it pools `rate` tokens to a key. */
static struct maq_arch_attention pooling(const struct maq_architecture *arch, const struct maq_hf *hf, int64_t rate,
                                         bool chooses)
{
    struct maq_arch_attention a = arch->attention;
    a.stride = rate;
    a.pool_width = chooses ? 2 * hf->head_dim : hf->head_dim; /* windows that overlap by half */
    if (!chooses)
        return a;
    a.index = hf->index;
    a.index.query_rank = hf->q_lora;
    a.index.stride = rate;
    a.index.key_width = 2 * hf->index.dim;
    a.selected = hf->index.selected;
    return a;
}

static void set_v4_layer(struct maq_architecture *arch, const struct maq_hf *hf, int64_t i, struct maq_str word,
                         struct maq_model_reader *r)
{
    bool sparse = word.ptr ? maq_str_is(word, csa) : i > 1 && i % 2 == 1,
         heavy = word.ptr ? maq_str_is(word, hca) : !sparse;
    struct maq_arch_attention own = pooling(arch, hf, sparse ? hf->rate_sparse : hf->rate_heavy, sparse);
    MAQ_READER_CHECK(r, sparse || heavy || maq_str_is(word, "sliding_attention"), MAQ_CODE_MODEL_LAYER_LIST,
                     "layer_types", NULL, "layer type '%.*s' is not known", (int)word.len, word.ptr);
    arch->layers[i].window = hf->window;
    if (sparse || heavy)
        maq__hf_own_attention(arch, i, &own, r);
}

static void adapt_v4(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_node *list = hf->sparse_types, *c = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL,
                    *hash = hf->hash_types && hf->hash_types->kind == MAQ_NODE_SEQ ? hf->hash_types->first : NULL;
    struct maq_arch_attention *a = &arch->attention;
    struct maq_arch_moe *hashed = MAQ_ARENA_NEW(r->arena, struct maq_arch_moe, 1);
    if (!MAQ_READER_CHECK(r, hashed != NULL, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for a layer") ||
        !MAQ_READER_CHECK(r,
                          (!list || (int64_t)list->count == arch->num_layers) &&
                              (!hf->hash_types || (int64_t)hf->hash_types->count == arch->num_layers),
                          MAQ_CODE_MODEL_LAYER_LIST, "layer_types|mlp_layer_types", NULL,
                          "layer_types and mlp_layer_types have a word for each of %" PRId64 " layers",
                          arch->num_layers))
        return;
    a->q_rank = hf->q_lora;
    a->keys_are_values = true;
    a->index = (struct maq_arch_index){0};
    a->selected = 0;
    a->out_groups = hf->out_groups;
    a->out_rank = hf->out_rank;
    *hashed = arch->moe;
    hashed->router_bias = false;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        set_v4_layer(arch, hf, i, c ? c->text : (struct maq_str){NULL, 0}, r);
        if (hash ? maq_str_is(hash->text, "hash_moe") : i < hf->hash_layers)
            arch->layers[i].moe = hashed;
        for (int k = 0; k < 2; k++) {
            struct maq_node **n = k ? &hash : &c;
            if (*n) {
                (*n)->used = true;
                *n = (*n)->next;
            }
        }
    }
    arch->mtp_layer = arch->layers[arch->num_layers - 1];
    maq__hf_extra_norm(arch, "kv_layernorm", MAQ_PLACE_QUERIES, hf->head_dim, MAQ_SHARD_SEQUENCE, 0);
    maq__hf_streams(arch, hf, hf->streams * (2 + hf->streams), 3);
}

/* MiniMax M3: grouped queries; layers called minimax_m3_sparse see the best blocks of keys, chosen by an index without weights. */
static const struct maq_field m3_keys[] = {
    I64(index.heads, "index_n_heads", COUNT, .doc = "heads of the index that chooses blocks of keys"),
    I64(index.dim, "index_head_dim", .min = 1, .max = 65536, .doc = "width of one"),
    I64(index_block, "index_block_size", .min = 1, .max = 1e6, .doc = "keys of a block"),
    I64(index_blocks, "index_topk_blocks", .min = 1, .max = 1e6, .doc = "blocks that a query attends to"),
    I64(dense_ffn, "dense_intermediate_size", WIDTH, .doc = "width of the MLP of dense layers"),
    I64(shared_ffn, "shared_intermediate_size", OPTIONAL, .doc = "width of the shared expert"),
    I64(rotary_dim, "rotary_dim", .min = 0, .max = 65536, .doc = "rotated features of a head"),
    NODE(sparse_types, "layer_types", .doc = "minimax_m3_sparse or full_attention for each layer"),
    MAQ_FIELD_END};

static void adapt_m3(struct maq_architecture *arch, struct maq_hf *hf, struct maq_model_reader *r)
{
    struct maq_arch_attention sparse = arch->attention;
    struct maq_node *list = hf->sparse_types, *c = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL;
    sparse.selected = sparse.index.selected = hf->index_block * hf->index_blocks;
    arch->attention.index.heads = arch->attention.index.selected = arch->attention.selected = 0;
    MAQ_READER_CHECK(r, !list || (list->kind == MAQ_NODE_SEQ && (int64_t)list->count == arch->num_layers),
                     MAQ_CODE_MODEL_LAYER_LIST, "layer_types", "minimax_m3_sparse or full_attention for each layer",
                     "layer_types does not fit %" PRId64 " layers", arch->num_layers);
    for (int64_t i = 0; c && i < arch->num_layers; i++, c = c->next) {
        bool chooses = maq_str_is(c->text, "minimax_m3_sparse");
        c->used = true;
        MAQ_READER_CHECK(r, chooses || maq_str_is(c->text, "full_attention"), MAQ_CODE_MODEL_LAYER_LIST, "layer_types",
                         "minimax_m3_sparse or full_attention for each layer", "layer type '%.*s' is not known",
                         (int)c->text.len, c->text.ptr);
        if (chooses)
            maq__hf_own_attention(arch, i, &sparse, r);
    }
}

#define INDEX "index_weights: true, index_norm: layer, index_topk: 2048, index_head_dim: 128, "
#define LATENT                                                                                                         \
    "router_bias: true, n_shared_experts: 1, n_routed_experts: 256, num_experts_per_tok: 8, kv_lora_rank: 512, "
#define DSA_TABLES TABLES(LATENT_KEYS, maq__hf_layers, maq__hf_index)

const struct maq_family maq__hf_sparse_families[] = {
    {.type = "deepseek_v32",
     .read = maq__hf_read,
     .architectures = "DeepseekV32ForCausalLM",
     .tables = DSA_TABLES,
     .facts = LATENT INDEX "index_n_heads: 64, first_k_dense_replace: 3, q_lora_rank: 1536, qk_rope_head_dim: 64, "
                           "v_head_dim: 128, qk_nope_head_dim: 128, n_group: 8, topk_group: 4, "
                           "moe_intermediate_size: 2048",
     .settle = settle_dsa,
     .adapt = adapt_dsa},
    {.type = "glm_moe_dsa",
     .read = maq__hf_read,
     .architectures = "GlmMoeDsaForCausalLM",
     .tables = TABLES(LATENT_KEYS, maq__hf_layers, maq__hf_index, glm_dsa_keys),
     .facts = LATENT INDEX "index_n_heads: 32, first_k_dense_replace: 3, q_lora_rank: 2048, qk_rope_head_dim: 64, "
                           "v_head_dim: 256, qk_nope_head_dim: 192, index_skip_topk_offset: 2, "
                           "moe_intermediate_size: 2048",
     .settle = settle_dsa,
     .adapt = adapt_dsa},
    {.type = "axk2",
     .read = maq__hf_read,
     .architectures = "AXK2ForCausalLM",
     .tables = TABLES(LATENT_KEYS, maq__hf_layers, maq__hf_index, axk2_keys),
     .facts =
         INDEX "router_bias: true, n_shared_experts: 1, n_routed_experts: 128, num_experts_per_tok: 8, "
               "kv_lora_rank: 128, gate: with_queries, index_n_heads: 16, first_k_dense_replace: 1, q_lora_rank: 384, "
               "qk_rope_head_dim: 32, v_head_dim: 64, qk_nope_head_dim: 64, gated_norm_rank: 16, "
               "moe_intermediate_size: 512",
     .settle = settle_dsa,
     .adapt = adapt_axk2},
    {.type = "hy_v4",
     .read = maq__hf_read,
     .architectures = "HYV4ForCausalLM",
     .tables = TABLES(LATENT_KEYS, maq__hf_layers, maq__hf_index, glm_dsa_keys, streams_keys),
     .facts =
         LATENT INDEX "sinks: true, gate: full, index_n_heads: 16, first_k_dense_replace: 1, q_lora_rank: 1536, "
                      "qk_rope_head_dim: 64, v_head_dim: 256, qk_nope_head_dim: 192, hc_mult: 4, index_topk_freq: 4, "
                      "index_skip_topk_offset: 2, "
                      "moe_intermediate_size: 768",
     .settle = settle_dsa,
     .adapt = adapt_hy_v4},
    {.type = "dots3_note_text",
     .read = maq__hf_read,
     .architectures = "Dots3NoteForCausalLM",
     .tables = TABLES(LATENT_KEYS, maq__hf_layers, maq__hf_index, maq__hf_per_layer, dots3_keys),
     .facts = LATENT INDEX "gate: head, index_n_heads: 64, first_k_dense_replace: 1, q_lora_rank: 1024, "
                           "qk_rope_head_dim: 64, v_head_dim: 128, qk_nope_head_dim: 128, "
                           "moe_intermediate_size: 1536, shared_experts_intermediate_size: 1536, sliding_window: 512, "
                           "swa_num_attention_heads: 64, swa_q_lora_rank: 1024, swa_kv_lora_rank: 1024, "
                           "swa_head_dim: 256, swa_qk_nope_head_dim: 192, swa_v_head_dim: 128",
     .settle = settle_dots3,
     .adapt = adapt_dots3},
    {.type = "minimax_m3_vl_text",
     .read = maq__hf_read,
     .architectures = "MiniMaxM3VLForCausalLM",
     .tables = TABLES(maq__hf_dropout, maq__hf_moe, maq__hf_mlp_types, m3_keys),
     .facts = "norms_of_queries_and_keys: head, router_bias: true, clamped_experts: true, head_dim: 128, "
              "num_key_value_heads: 4, num_local_experts: 128, num_experts_per_tok: 4, shared_intermediate_size: 3072, "
              "dense_intermediate_size: 12288, rotary_dim: 64, index_n_heads: 4, index_head_dim: 128, "
              "index_block_size: 128, index_topk_blocks: 16, index_norms_queries: true",
     .adapt = adapt_m3},
    {.type = "deepseek_v4",
     .read = maq__hf_read,
     .architectures = "DeepseekV4ForCausalLM",
     .tables = TABLES(maq__hf_bias, maq__hf_dropout, maq__hf_moe, v4_keys),
     .facts =
         "sinks: true, router_bias: true, clamped_experts: true, index_weights: true, head_dim: 512, q_lora_rank: "
         "1024, "
         "num_experts_per_tok: 6, n_routed_experts: 256, n_shared_experts: 1, moe_intermediate_size: 2048, o_groups: "
         "8, "
         "o_lora_rank: 1024, sliding_window: 128, hc_mult: 4, index_n_heads: 64, index_head_dim: 128, index_topk: 512, "
         "compress_rate_csa: 4, compress_rate_hca: 128, num_hash_layers: 3",
     .settle = settle_v4,
     .adapt = adapt_v4},
    {.type = NULL},
};
