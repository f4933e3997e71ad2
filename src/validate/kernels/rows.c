/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - what a row of a kernel table measured, as an operator: one function per kind of table.
 *
 * The meaning of the columns is that of the programs that took the measurements (ai-dynamo/aiconfigurator, collector/,
 * Apache-2.0), as far as notes and numbers confirm it.
 */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "validate/kernels/table.h"

/* ---- types ---- */

struct type_word {
    const char *word;
    enum maq_dtype dtype;
    unsigned flags; /* enum maq_op_flag */
};

static const struct type_word type_words[] = {
    {"bfloat16", MAQ_BF16, 0},
    {"float16", MAQ_FP16, 0},
    {"fp8", MAQ_FP8, 0},
    {"fp8_static", MAQ_FP8, 0},
    {"fp8_block", MAQ_FP8, MAQ_OP_BLOCKS},
    {"nvfp4", MAQ_FP4, 0},
    {"sq", MAQ_INT8, 0},
    {"int8_wo", MAQ_BF16, MAQ_OP_WEIGHT8},
    {"int4_wo", MAQ_BF16, MAQ_OP_WEIGHT4},
    {"w4a16_mxfp4", MAQ_BF16, MAQ_OP_WEIGHT4},
    {"w4a8_mxfp4_mxfp8", MAQ_FP8, MAQ_OP_WEIGHT4},
    {"w4afp8", MAQ_FP8, MAQ_OP_WEIGHT4},
};

static bool set_type(struct maq_op *op, struct maq_str word)
{
    for (size_t i = 0; i < sizeof type_words / sizeof type_words[0]; i++)
        if (maq_str_is(word, type_words[i].word)) {
            op->dtype = (uint8_t)type_words[i].dtype;
            op->flags |= (uint8_t)type_words[i].flags;
            return true;
        }
    return false;
}

#define NUMBER(column) maq_kernel_int(row, MAQ_KERNEL_##column)
#define NUMBER_OR(column, missing) maq_kernel_int_or(row, MAQ_KERNEL_##column, missing)
#define TEXT(column) maq_kernel_text(row, MAQ_KERNEL_##column)

/* ---- products ---- */

static bool gemm_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_GEMM;
    op->d[0] = NUMBER(m);
    op->d[1] = NUMBER(n);
    op->d[2] = NUMBER(k);
    return set_type(op, TEXT(gemm_dtype));
}

/* The products that absorb a head's expansion of the latent: 128 x 512 before attention, 512 x 128 after it. */
static bool mla_bmm_row(struct maq_op *op, struct maq_kernel_line *row)
{
    bool after = maq_str_is(TEXT(op_name), "mla_gen_post");
    op->kind = MAQ_OP_GEMM;
    op->d[0] = NUMBER(num_tokens);
    op->d[1] = after ? 128 : 512;
    op->d[2] = after ? 512 : 128;
    op->d[3] = NUMBER(num_heads);
    return set_type(op, TEXT(bmm_dtype)) && (after || maq_str_is(TEXT(op_name), "mla_gen_pre"));
}

/* ---- attention ---- */

static void set_kv_type(struct maq_op *op, struct maq_kernel_line *row)
{
    if (maq_str_is(TEXT(kv_cache_dtype), "fp8") && op->dtype != MAQ_FP8)
        op->flags |= MAQ_OP_KV_FP8;
}

/* `queries` new tokens in each of `sequences`, after `past` older ones. */
static void set_prefill(struct maq_op *op, int64_t sequences, int64_t queries, int64_t past, int64_t window)
{
    op->flags |= window > 0 ? MAQ_OP_WINDOW : 0;
    op->d[0] = sequences * queries;
    if (window > 0 && past + queries > window) { /* query i sees min(past + i, window) keys */
        double ramp = fmax(0.0, fmin((double)queries, (double)(window - past)));
        double sum = ramp * ((double)past + (ramp + 1.0) / 2.0) + ((double)queries - ramp) * (double)window;
        op->queries = (uint32_t)queries;
        op->d[1] = (int64_t)fmax(1.0, round(sum / (double)queries));
        return;
    }
    op->flags |= MAQ_OP_CAUSAL;
    op->queries = queries > 1 ? (uint32_t)queries : 0; /* one query would mean decoding */
    op->d[1] = past + queries / 2 + 1;                 /* in the mean, rounded up */
}

static void set_decode(struct maq_op *op, int64_t sequences, int64_t past, int64_t window)
{
    op->flags |= window > 0 ? MAQ_OP_WINDOW : 0;
    op->queries = 1;
    op->d[0] = sequences;
    op->d[1] = window > 0 && past + 1 > window ? window : past + 1;
}

static bool attention_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_ATTENTION;
    op->d[2] = NUMBER(num_heads);
    op->d[3] = NUMBER(num_key_value_heads);
    op->d[4] = op->d[5] = NUMBER(head_dim);
    return set_type(op, TEXT(attn_dtype)) && op->d[3] > 0 && op->d[2] >= op->d[3];
}

static bool context_attention_row(struct maq_op *op, struct maq_kernel_line *row)
{
    bool ok = attention_row(op, row);
    set_prefill(op, NUMBER(batch_size), NUMBER(isl), NUMBER_OR(step, 0), NUMBER_OR(window_size, 0));
    set_kv_type(op, row);
    return ok;
}

static bool generation_attention_row(struct maq_op *op, struct maq_kernel_line *row)
{
    bool ok = attention_row(op, row);
    set_decode(op, NUMBER(batch_size), NUMBER(step), NUMBER_OR(window_size, 0));
    set_kv_type(op, row);
    return ok;
}

/* Prefill of latent attention: keys of 128 + 64, values of 128, every head its own. */
static bool context_mla_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_ATTENTION;
    op->d[2] = op->d[3] = NUMBER(num_heads);
    op->d[4] = 192;
    op->d[5] = 128;
    bool ok = set_type(op, TEXT(mla_dtype));
    set_prefill(op, NUMBER(batch_size), NUMBER(isl), NUMBER_OR(step, 0), 0);
    set_kv_type(op, row);
    return ok;
}

/* Decoding on the latent: one key of 512 + 64 for all heads, its first 512 are the value. */
static bool generation_mla_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_ATTENTION;
    op->d[2] = NUMBER(num_heads);
    op->d[3] = 1;
    op->d[4] = 576;
    op->d[5] = 512;
    bool ok = set_type(op, TEXT(mla_dtype));
    set_decode(op, NUMBER(batch_size), NUMBER(step), 0);
    set_kv_type(op, row);
    return ok;
}

/* The models of the module tables have DeepSeek-V3's latent, or are left out. */
static bool mla_module(struct maq_op *op, struct maq_kernel_line *row)
{
    struct maq_str model = TEXT(model);
    op->kind = MAQ_OP_MLA_BLOCK;
    op->d[2] = NUMBER(num_heads);
    op->d[3] = 7168;
    op->d[4] = 1536;
    op->d[5] = 512;
    return set_type(op, TEXT(gemm_type)) &&
           (maq_str_starts(model, "deepseek-ai/DeepSeek-V3") || maq_str_starts(model, "deepseek-ai/DeepSeek-R1") ||
            maq_str_starts(model, "nvidia/DeepSeek-V3"));
}

static bool mla_context_module_row(struct maq_op *op, struct maq_kernel_line *row)
{
    bool ok = mla_module(op, row);
    set_prefill(op, NUMBER(batch_size), NUMBER(isl), NUMBER_OR(step, 0), 0);
    if (maq_str_is(TEXT(kv_cache_dtype), "fp8"))
        op->flags |= MAQ_OP_KV_FP8;
    op->flags &= (uint8_t)~MAQ_OP_CAUSAL; /* always is */
    return ok;
}

static bool mla_generation_module_row(struct maq_op *op, struct maq_kernel_line *row)
{
    bool ok = mla_module(op, row);
    /* the large-scale tables call the past `isl` */
    int64_t past = NUMBER_OR(isl, 1) > 1 ? NUMBER_OR(isl, 1) : NUMBER(step);
    set_decode(op, NUMBER(batch_size), past, 0);
    if (maq_str_is(TEXT(kv_cache_dtype), "fp8"))
        op->flags |= MAQ_OP_KV_FP8;
    return ok;
}

/* ---- experts ---- */

/* Share of the busiest of n experts when popularity falls as rank^-alpha. */
static double busiest_share(struct maq_str distribution, int64_t n)
{
    double alpha = 0.0, sum = 0.0;
    struct maq_str head, rest = maq_str_split(distribution, '_', &head);
    rest = maq_str_split(rest, '_', &head);
    (void)maq_str_split(rest, '_', &head);
    if (!maq_str_starts(distribution, "power_law_") || !maq_str_to_double(&alpha, head))
        return 0.0;
    for (int64_t i = 1; i <= n && i <= 4096; i++)
        sum += pow((double)i, -alpha);
    return sum > 0.0 ? 1.0 / sum : 0.0;
}

static bool experts_of(struct maq_op *op, struct maq_kernel_line *row, int64_t rows, int64_t experts)
{
    int64_t ep = NUMBER(moe_ep_size), tp = NUMBER(moe_tp_size);
    struct maq_str kernel = TEXT(kernel_source), distribution = TEXT(distribution);
    bool gated = true;
    for (size_t i = 0; i + 8 <= kernel.len; i++)
        gated &= !maq_str_starts((struct maq_str){kernel.ptr + i, kernel.len - i}, "nongated");
    if (ep < 1 || tp < 1 || experts < 1)
        return false;
    op->kind = MAQ_OP_EXPERTS;
    op->d[0] = rows > 1 ? rows : 1;
    op->d[1] = NUMBER(hidden_size);
    op->d[2] = NUMBER(inter_size) / tp;
    op->d[3] = experts / ep > 1 ? experts / ep : 1;
    op->d[4] = (int64_t)ceil((double)op->d[0] * busiest_share(distribution, op->d[3]));
    op->d[5] = NUMBER(topk);
    op->flags |= gated ? MAQ_OP_GATED : 0;
    return set_type(op, TEXT(moe_dtype)) && op->d[2] > 0;
}

/*
 * Rows of several ranks in which the measured rank does not have its share, whatever their `distribution` says: a rank of 16 takes as long as one of 2.
 *
 *   DeepSeek-V3's experts, vLLM and SGLang    its router takes 4 of 8 groups of experts; even logits are ties, and the first groups win
 *   SGLang's Triton kernels, 2816 x 704       copies for other ranks' experts are computed by expert 0 (collector/sglang/collect_moe.py
 *                                             of aiconfigurator, 095f58a: topk_ids.clamp(min=0))
 *   SGLang on A100 (0.5.10)                   so with all shapes
 *   vLLM on L40S, 8 bits                      so with all shapes; why is not known
 */
static bool is_no_share(struct maq_kernel_line *row)
{
    const struct maq_kernel_table *t = row->table;
    struct maq_str type = TEXT(moe_dtype);
    int64_t hidden = NUMBER(hidden_size), ffn = NUMBER(inter_size);
    bool sglang = t->library == MAQ_LIBRARY_SGLANG, vllm = t->library == MAQ_LIBRARY_VLLM;
    if ((sglang || vllm) && hidden == 7168 && ffn == 2048 && NUMBER(num_experts) == 256)
        return true;
    if (sglang && (strcmp(t->device.name, "a100-80gb") == 0 || (hidden == 2816 && ffn == 704)))
        return true;
    return vllm && strcmp(t->device.name, "l40s") == 0 && maq_str_starts(type, "fp8");
}

/* num_tokens are those of all ranks; a rank gets its share of their copies. */
static bool moe_row(struct maq_op *op, struct maq_kernel_line *row)
{
    int64_t ep = NUMBER(moe_ep_size), copies = NUMBER(num_tokens) * NUMBER(topk);
    if (ep > 1 && is_no_share(row))
        return false;
    return ep > 0 && experts_of(op, row, (copies + ep - 1) / ep, NUMBER(num_experts));
}

static bool wideep_moe_row(struct maq_op *op, struct maq_kernel_line *row)
{
    return experts_of(op, row, NUMBER(rank0_num_tokens), NUMBER(num_slots));
}

/* ---- linear attention, quantisation ---- */

static bool starts_with_conv(struct maq_str kernel)
{
    return maq_str_starts(kernel, "causal_conv1d");
}

static void set_linear(struct maq_op *op, struct maq_kernel_line *row, int64_t channels)
{
    bool decode = maq_str_is(TEXT(phase), "generation");
    op->dtype = MAQ_BF16;
    op->queries = decode ? 1 : (uint32_t)NUMBER(seq_len);
    op->d[0] = NUMBER(batch_size) * (decode ? 1 : NUMBER(seq_len));
    if (!decode && op->queries == 1)
        op->queries = 0;
    if (channels > 0) {
        op->kind = MAQ_OP_CONV1D;
        op->d[1] = channels;
        op->d[2] = NUMBER(d_conv);
    }
}

static bool gdn_row(struct maq_op *op, struct maq_kernel_line *row)
{
    int64_t k_heads = NUMBER(num_k_heads), k_dim = NUMBER(head_k_dim), v_heads = NUMBER(num_v_heads),
            v_dim = NUMBER(head_v_dim);
    bool conv = starts_with_conv(TEXT(kernel_source));
    set_linear(op, row, conv ? 2 * k_heads * k_dim + v_heads * v_dim : 0);
    if (!conv) {
        op->kind = MAQ_OP_DELTA_RULE;
        op->d[1] = v_heads;
        op->d[2] = v_dim;
        op->d[3] = k_heads;
        op->d[4] = k_dim;
    }
    return true;
}

static bool mamba2_row(struct maq_op *op, struct maq_kernel_line *row)
{
    if (!starts_with_conv(TEXT(kernel_source)))
        return false;
    set_linear(op, row, NUMBER(nheads) * NUMBER(head_dim) + 2 * NUMBER(n_groups) * NUMBER(d_state));
    return true;
}

static bool scale_matrix_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_QUANTIZE;
    op->d[0] = NUMBER(m);
    op->d[1] = NUMBER(k);
    return set_type(op, TEXT(quant_dtype));
}

/* The largest value of a tensor in 16 bits: read, nothing written. */
static bool computescale_row(struct maq_op *op, struct maq_kernel_line *row)
{
    op->kind = MAQ_OP_ELEMENTWISE;
    op->dtype = MAQ_BF16;
    op->d[0] = NUMBER(m) * NUMBER(k);
    op->d[1] = 2;
    return true;
}

/* ---- which table has which rows ---- */

static const struct maq_kernel_reader readers[] = {
    {"gemm", "gemm", "gemm", gemm_row},
    {"attention", "context_attention", "attention", context_attention_row},
    {"attention", "generation_attention", "attention", generation_attention_row},
    {"mla", "context_mla", "mla", context_mla_row},
    {"mla", "generation_mla", "mla", generation_mla_row},
    {"mla", "mla_context_module", "mla", mla_context_module_row},
    {"mla", "mla_generation_module", "mla", mla_generation_module_row},
    {"mla", "wideep_context_mla", "mla", mla_context_module_row},
    {"mla", "wideep_generation_mla", "mla", mla_generation_module_row},
    {"mla_bmm", "mla_bmm", "mla", mla_bmm_row},
    {"moe", "moe", "moe", moe_row},
    {"moe", "wideep_context_moe", "moe", moe_row},
    {"moe", "wideep_generation_moe", "moe", moe_row},
    {"moe", "wideep_moe", "moe", wideep_moe_row},
    {"linear_attention", "gdn", "linear_attention", gdn_row},
    {"linear_attention", "mamba2", "linear_attention", mamba2_row},
    {"quantize", "scale_matrix", "quantize", scale_matrix_row},
    {"quantize", "computescale", "quantize", computescale_row},
};

const struct maq_kernel_reader *maq_kernel_reader(struct maq_str op, struct maq_str table)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (maq_str_is(op, readers[i].op) && maq_str_is(table, readers[i].table))
            return &readers[i];
    return NULL;
}
