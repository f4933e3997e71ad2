/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_family.c - which model a row means.
 *
 *   1. The catalogue, by name, when the dimensions agree: the entry, with the row's number of layers, vocabulary and key/value heads laid
 *      over it. "(...)" and trailing words such as "SFT" are not part of a name, nor is what stands between its letters and digits.
 *   2. Otherwise a family by its dimensions: a GPT (GELU, LayerNorm, learned positions, biases, tied embeddings) where the MLP is
 *      4 x hidden and every head has its own keys and values; a Llama (SwiGLU, RMSNorm, RoPE, no biases, untied) where not.
 *
 * A row without layers, hidden and heads has those of the entry. The entry is loaded to compare: hidden, heads, MLP width, experts.
 */
#include "validate/train/interpret.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "model/load.h"
#include "spec/catalogue.h"
#include "validate/phrase.h"

#define DEFAULT_GPT_VOCAB 51200 /* GPT-2's 50257, padded to 128 x 8, as Megatron-LM does */
#define DEFAULT_LLAMA_VOCAB 32000

/* What a catalogue entry has, where a row can have something else. */
struct shape {
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, experts, topk, max_seq;
    uint32_t mtp;
    bool learned_positions;
    double flop_with_mtp, flop_without; /* per token */
    double params;
};

static void shape_of(struct shape *s, const struct maq_model *m, int64_t seq)
{
    const struct maq_module *attention = maq_model_find_module(m, MAQ_MODULE_ATTENTION, MAQ_PART_COUNT);
    const struct maq_module *act = maq_model_find_module(m, MAQ_MODULE_ACTIVATION, MAQ_PART_MLP);
    const struct maq_module *router = maq_model_find_module(m, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    *s = (struct shape){.layers = m->num_layers,
                        .hidden = m->hidden,
                        .vocab = m->vocab,
                        .max_seq = m->max_seq,
                        .mtp = m->mtp_layers,
                        .params = (double)m->params};
    if (attention) {
        s->heads = attention->u.attention.heads;
        s->kv_heads = attention->u.attention.kv_heads;
    }
    if (act)
        s->ffn = act->out;
    if (router) {
        s->experts = router->u.moe.experts;
        s->topk = router->u.moe.topk;
    }
    s->learned_positions = m->embedding.n_modules > 1;
    struct maq_model without = *m;
    without.mtp_layers = 0;
    s->flop_with_mtp = maq_model_flop_per_token(m, seq, true);
    s->flop_without = maq_model_flop_per_token(&without, seq, true);
}

static bool load_shape(struct shape *s, const char *name, int64_t seq)
{
    struct maq_arena arena;
    struct maq_doc doc;
    struct maq_model model;
    struct maq_diag *diag = maq_diag_new();
    if (!diag)
        return false;
    maq_arena_init(&arena, 0);
    bool ok = maq_doc_parse(&doc, "model", maq_str_of(name), MAQ_ORIGIN_DOCUMENT, diag) == MAQ_OK && doc.root &&
              maq_model_load(&model, doc.root, &arena, diag) == MAQ_OK;
    if (ok)
        shape_of(s, &model, seq);
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return ok;
}

/* Stated dimensions are the entry's. Layers, vocabulary and key/value heads may differ: proxies and recipes change those. */
static bool agrees(const struct maq_interpretation *in, const struct shape *s)
{
    bool ok = in->hidden == s->hidden && in->heads == s->heads;
    ok &= in->experts == 0 || s->experts == 0 || (in->experts == s->experts && (in->topk == 0 || in->topk == s->topk));
    ok &= (in->experts > 0) == (s->experts > 0);
    return ok && (in->ffn == 0 || s->ffn == 0 || s->experts > 0 || in->ffn == s->ffn);
}

/*
 * Names are alike when their letters, digits and points are, whatever stands between them: "DeepSeekV3", "Qwen-2.5 7B". Between two
 * digits something must stand in both or in neither: "GPT3 5B" is no "GPT 35B".
 */
static bool alike(struct maq_str a, struct maq_str b)
{
    size_t i = 0, j = 0;
    char before = '\0';
    for (;; i++, j++) {
        size_t from_a = i, from_b = j;
        while (i < a.len && strchr(" -_", a.ptr[i]))
            i++;
        while (j < b.len && strchr(" -_", b.ptr[j]))
            j++;
        if (i >= a.len || j >= b.len)
            return i >= a.len && j >= b.len && a.len > 0;
        char c = a.ptr[i];
        bool digits = before >= '0' && before <= '9' && c >= '0' && c <= '9';
        if (c == '\0' || maq_char_lower(c) != maq_char_lower(b.ptr[j]) || (digits && (i > from_a) != (j > from_b)))
            return false;
        before = c;
    }
}

static const struct maq_catalogue_entry *find_alike(struct maq_str name)
{
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at("models", i)) != NULL; i++) {
        struct maq_str rest = maq_str_of(e->aliases), alias;
        if (alike(name, maq_str_of(e->name)))
            return e;
        while (rest.ptr) {
            rest = maq_str_split(rest, '|', &alias);
            if (alias.len > 0 && alike(name, alias))
                return e;
        }
    }
    return NULL;
}

/* "13B", "560m", "30b-a3b": the number of parameters that is in it; 0 where there is none. */
static double size_in(struct maq_str name)
{
    struct maq_phrase_match m;
    if (!maq__phrase_in(name, "#b|#m|#t", &m))
        return 0;
    char unit = maq_char_lower(m.at.ptr[m.at.len - 1]);
    return m.number[0] * (unit == 't' ? 1e12 : unit == 'b' ? 1e9 : 1e6);
}

/* What people round a number of parameters to, embeddings counted or not. */
#define SIZE_MOST 1.3

/* Whether a size that was left out of a name is the entry's. */
static bool is_size_of(const struct maq_catalogue_entry *e, double size)
{
    struct shape s;
    return load_shape(&s, e->name, 1) && s.params < SIZE_MOST * size && s.params > size / SIZE_MOST;
}

/*
 * The entry of a name: as it is, without "(...)", without its last words. A size is only left out where the entry's name has none, and
 * where it is the entry's: "DeepSeek V3 671B" is deepseek-v3, "GPT3 11B" is not what "GPT3" alone means, and "GPT-2 8B" no GPT-2.
 */
static const struct maq_catalogue_entry *find_entry(struct maq_str name)
{
    const struct maq_catalogue_entry *e = maq_model_entry(name);
    struct maq_str head;
    double size = 0;
    if (e || name.len == 0)
        return e;
    maq_str_split(name, '(', &head);
    for (head = maq_str_trim(head); head.len > 0; head = maq_str_trim(head)) {
        e = maq_model_entry(head);
        e = e ? e : find_alike(head);
        if (e)
            return size > 0 && (size_in(maq_str_of(e->name)) > 0 || !is_size_of(e, size)) ? NULL : e;
        size_t end = head.len;
        while (head.len > 0 && head.ptr[head.len - 1] != ' ')
            head.len--;
        double word = size_in((struct maq_str){head.ptr + head.len, end - head.len});
        size = word > 0 ? word : size;
    }
    return NULL;
}

static bool entry_has(const struct maq_catalogue_entry *e, const char *phrase)
{
    return maq__phrase_in((struct maq_str){e->text, e->len}, phrase, NULL);
}

/* Multi-token prediction trains or not: the row's own FLOP per token (TFLOP/s over tokens/s) says which. */
static void choose_mtp(struct maq_interpretation *in, const struct shape *s)
{
    double tflops = maq_row_double(&in->row, MAQ_COLUMN_tflops_per_gpu, 0);
    double tokens = maq_row_double(&in->row, MAQ_COLUMN_derived_tokens_per_s_per_gpu, 0);
    if (s->mtp == 0)
        return;
    if (!(tflops > 0 && tokens > 0)) {
        maq__assume(in, "multi-token prediction is trained: not stated");
        return;
    }
    double stated = tflops * 1e12 / tokens;
    if (fabs(stated - s->flop_without) < fabs(stated - s->flop_with_mtp))
        maq__set(in, &in->model, "num_nextn_predict_layers", "0");
}

/* Megatron's programs pad the table of tokens to make_vocab_size_divisible_by (128) x TP. */
static bool pads_vocabulary(const struct maq_interpretation *in)
{
    return maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), "megatron*|nemo", NULL);
}

static void from_catalogue(struct maq_interpretation *in, const struct maq_catalogue_entry *e, const struct shape *s)
{
    bool mpt = entry_has(e, "n_layers:"), megatron = entry_has(e, "model_type: megatron");
    maq__set(in, &in->model, "base", "%s", e->name);
    if (in->layers != s->layers)
        maq__set(in, &in->model, mpt ? "n_layers" : "num_hidden_layers", "%lld", (long long)in->layers);
    int64_t vocab = in->vocab > 0 ? in->vocab : s->vocab;
    if (vocab % 8 != 0 && pads_vocabulary(in)) {
        vocab = (vocab + 128 * in->tp - 1) / (128 * in->tp) * (128 * in->tp);
        maq__assume(in, "vocabulary padded to %lld: make_vocab_size_divisible_by is 128 by default", (long long)vocab);
    }
    if (vocab != s->vocab)
        maq__set(in, &in->model, "vocab_size", "%lld", (long long)vocab);
    if (in->kv_heads > 0 && in->kv_heads != s->kv_heads && !mpt)
        maq__set(in, &in->model, "num_key_value_heads", "%lld", (long long)in->kv_heads);
    if (s->learned_positions && in->seq != s->max_seq)
        maq__set(in, &in->model, mpt ? "max_seq_len" : "max_position_embeddings", "%lld", (long long)in->seq);
    if (megatron && !(in->framework.dropout > 0)) {
        maq__set(in, &in->model, "hidden_dropout", "0.0");
        maq__set(in, &in->model, "attention_dropout", "0.0");
    }
    if (entry_has(e, "num_nextn_predict_layers: *"))
        choose_mtp(in, s);
}

/* ---- families by dimensions ---- */

static void common_dimensions(struct maq_interpretation *in)
{
    maq__set(in, &in->model, "model_type", "megatron");
    maq__set(in, &in->model, "num_layers", "%lld", (long long)in->layers);
    maq__set(in, &in->model, "hidden_size", "%lld", (long long)in->hidden);
    maq__set(in, &in->model, "ffn_hidden_size", "%lld", (long long)in->ffn);
    maq__set(in, &in->model, "num_attention_heads", "%lld", (long long)in->heads);
    if (in->kv_heads != in->heads)
        maq__set(in, &in->model, "num_query_groups", "%lld", (long long)in->kv_heads);
    if (in->head_dim > 0 && in->head_dim * in->heads != in->hidden)
        maq__set(in, &in->model, "kv_channels", "%lld", (long long)in->head_dim);
    maq__set(in, &in->model, "vocab_size", "%lld", (long long)in->vocab);
    if (pads_vocabulary(in))
        maq__set(in, &in->model, "make_vocab_size_divisible_by", "%lld", 128 * (long long)in->tp);
}

static void as_gpt(struct maq_interpretation *in)
{
    if (in->vocab == 0) {
        in->vocab = DEFAULT_GPT_VOCAB;
        maq__assume(in, "vocabulary of %d: not stated", DEFAULT_GPT_VOCAB);
    }
    common_dimensions(in);
    /* sail-sg/VocabularyParallelism, pretrain_gpt.sh: --untie-embeddings-and-output-weights */
    if (maq__phrase_in(maq_row_text(&in->row, MAQ_COLUMN_framework), "megatron-lm fork&method", NULL))
        maq__set(in, &in->model, "untie_embeddings_and_output_weights", "true");
    char dropout[32];
    maq__snprintf(dropout, sizeof dropout, "%.1f", in->framework.dropout);
    maq__set(in, &in->model, "max_position_embeddings", "%lld", (long long)in->seq);
    maq__set(in, &in->model, "hidden_dropout", "%s", dropout);
    maq__set(in, &in->model, "attention_dropout", "%s", dropout);
    maq__assume(in, "a GPT by its dimensions: GELU, LayerNorm, learned positions, biases, tied embeddings, dropout %s",
                dropout);
}

static void as_llama(struct maq_interpretation *in)
{
    if (in->vocab == 0) {
        in->vocab = DEFAULT_LLAMA_VOCAB;
        maq__assume(in, "vocabulary of %d: not stated", DEFAULT_LLAMA_VOCAB);
    }
    common_dimensions(in);
    maq__set(in, &in->model, "swiglu", "true");
    maq__set(in, &in->model, "normalization", "RMSNorm");
    maq__set(in, &in->model, "position_embedding_type", "rope");
    maq__set(in, &in->model, "add_bias_linear", "false");
    maq__set(in, &in->model, "untie_embeddings_and_output_weights", "true");
    maq__set(in, &in->model, "hidden_dropout", "0.0");
    maq__set(in, &in->model, "attention_dropout", "0.0");
    if (in->experts > 0) {
        maq__set(in, &in->model, "num_experts", "%lld", (long long)in->experts);
        maq__set(in, &in->model, "moe_router_topk", "%lld", (long long)in->topk);
        maq__set(in, &in->model, "moe_ffn_hidden_size", "%lld", (long long)(in->moe_ffn > 0 ? in->moe_ffn : in->ffn));
    }
    maq__assume(in, "a Llama by its dimensions: SwiGLU, RMSNorm, RoPE, no biases, a head of its own");
}

static void from_dimensions(struct maq_interpretation *in)
{
    if (in->ffn == 0 && in->moe_ffn == 0) {
        in->ffn = 4 * in->hidden;
        maq__assume(in, "MLP of 4 x hidden: ffn is not stated");
    } else if (in->ffn == 0) {
        in->ffn = in->moe_ffn;
    }
    if (in->kv_heads == 0)
        in->kv_heads = in->heads;
    if (in->experts > 0 && in->topk == 0)
        maq__give_up(in, MAQ_VALIDATE_SKIP_NO_MODEL, "topk is needed beside experts");
    else if (in->experts == 0 && in->ffn == 4 * in->hidden && in->kv_heads == in->heads)
        as_gpt(in);
    else
        as_llama(in);
}

void maq__interpret_model_name(struct maq_interpretation *in)
{
    const struct maq_catalogue_entry *e = find_entry(maq_row_text(&in->row, MAQ_COLUMN_model));
    struct shape s;
    if (in->layers != 0 || in->hidden != 0 || in->heads != 0 || !e || in->seq < 1 || !load_shape(&s, e->name, in->seq))
        return;
    in->layers = s.layers;
    in->hidden = s.hidden;
    in->heads = s.heads;
    in->experts = s.experts;
    in->topk = s.topk;
    maq__assume(in, "dimensions of the catalogue's %s: not stated", e->name);
}

void maq__interpret_model(struct maq_interpretation *in)
{
    const struct maq_catalogue_entry *e = find_entry(maq_row_text(&in->row, MAQ_COLUMN_model));
    struct shape s;
    if (e && load_shape(&s, e->name, in->seq) && agrees(in, &s))
        from_catalogue(in, e, &s);
    else
        from_dimensions(in);
}
