/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantization.c - `quantization_config`: in what numbers a checkpoint has its weights.
 *
 * Each tool that writes one has words of its own; those that engines read are
 *
 *   quant_method          what is read of it
 *   fp8                   weight_block_size: blocks of weights, else a scale for a tensor or a row
 *   fbgemm_fp8            8 bits, a scale for a row
 *   compressed-tensors    config_groups: of the first group weights' num_bits, type, strategy and group_size
 *   modelopt              quant_algo: FP8, FP8_PB_WO (blocks), NVFP4, W4A16_AWQ
 *   awq, gptq             bits (w_bit), of whole numbers, and group_size; auto-round writes either
 *   mxfp4                 4 bits with an exponent in groups of 32, of routed experts (gpt-oss)
 *
 * Other methods are kept by their name, with 0 bits. A list of what is left out (ignore, modules_to_not_convert, exclude_modules) that has all
 * self-attention in it leaves the routed experts, where there are some.
 *
 * Sources: vllm 0.33.0, model_executor/layers/quantization (fp8.py, compressed_tensors, modelopt.py, awq.py, gptq.py, mxfp4.py).
 */
#include <string.h>

#include "base/str.h"
#include "model/hf/config.h"

/* Numbers that share a scale: OCP Microscaling Formats 1.0; NVIDIA's NVFP4. */
#define MX_GROUP 32
#define NV_GROUP 16

static struct maq_str text_of(const struct maq_node *map, const char *key)
{
    const struct maq_node *node = map && map->kind == MAQ_NODE_MAP ? maq_node_peek(map, key) : NULL;
    return node && node->kind == MAQ_NODE_SCALAR ? node->text : (struct maq_str){"", 0};
}

static int32_t number_of(const struct maq_node *map, const char *key)
{
    struct maq_node *node = map && map->kind == MAQ_NODE_MAP ? maq_node_peek(map, key) : NULL;
    int64_t n = 0;
    if (!node || node->kind != MAQ_NODE_SCALAR || !maq_node_i64(&n, node, NULL) || n < 0 || n > INT32_MAX)
        return 0;
    return (int32_t)n;
}

static void read_fp8(struct maq_quantization *q, const struct maq_node *map)
{
    const struct maq_node *block = maq_node_peek(map, "weight_block_size");
    q->bits = 8;
    q->floating = true;
    q->blocks = block && block->kind == MAQ_NODE_SEQ;
}

static void read_compressed(struct maq_quantization *q, const struct maq_node *map)
{
    const struct maq_node *groups = maq_node_peek(map, "config_groups"),
                          *first = groups && groups->kind == MAQ_NODE_MAP ? groups->first : NULL,
                          *weights = first && first->kind == MAQ_NODE_MAP ? maq_node_peek(first, "weights") : NULL;
    q->bits = number_of(weights, "num_bits");
    q->floating = maq_str_is(text_of(weights, "type"), "float");
    q->group = number_of(weights, "group_size");
    q->blocks = maq_str_is(text_of(weights, "strategy"), "block");
}

static void read_modelopt(struct maq_quantization *q, const struct maq_node *map)
{
    static const struct {
        const char *algorithm;
        struct maq_quantization is;
    } known[] = {
        {"FP8", {.bits = 8, .floating = true}},
        {"FP8_PB_WO", {.bits = 8, .floating = true, .blocks = true}},
        {"NVFP4", {.bits = 4, .floating = true, .group = NV_GROUP}},
        {"W4A16_AWQ", {.bits = 4}},
    };
    const struct maq_node *inner = maq_node_peek(map, "quantization");
    struct maq_str said = text_of(inner ? inner : map, "quant_algo");
    const char *method = q->method;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (maq_str_ieq(said, known[i].algorithm))
            *q = known[i].is;
    q->method = method;
}

static void read_whole_numbers(struct maq_quantization *q, const struct maq_node *map)
{
    q->bits = number_of(map, "bits");
    if (q->bits == 0)
        q->bits = number_of(map, "w_bit");
    q->group = number_of(map, "group_size");
}

/* Whether what is left out has all self-attention among it: "re:.*self_attn.*", "model.layers.*.self_attn". */
static bool leaves_attention(const struct maq_node *map)
{
    static const char *const lists[] = {"ignore", "modules_to_not_convert", "exclude_modules"};
    static const char name[] = "self_attn";
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct maq_node *list = maq_node_peek(map, lists[i]);
        for (const struct maq_node *c = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL; c; c = c->next)
            for (size_t at = 0; c->kind == MAQ_NODE_SCALAR && at + sizeof name - 1 <= c->text.len; at++)
                if (memcmp(c->text.ptr + at, name, sizeof name - 1) == 0)
                    return true;
    }
    return false;
}

void maq__hf_read_quantization(struct maq_quantization *out, struct maq_model_reader *r)
{
    const struct maq_node *map = maq__reader_find(r, "quantization_config|compression_config");
    *out = (struct maq_quantization){.method = NULL};
    if (!map || map->kind != MAQ_NODE_MAP)
        return;
    struct maq_str method = text_of(map, "quant_method");
    out->method = maq_arena_strdup(r->arena, method.len > 0 ? method : maq_str_of("unnamed"));
    if (maq_str_is(method, "fp8") || maq_str_is(method, "fbgemm_fp8"))
        read_fp8(out, map);
    else if (maq_str_is(method, "compressed-tensors"))
        read_compressed(out, map);
    else if (maq_str_starts(method, "modelopt"))
        read_modelopt(out, map);
    else if (maq_str_starts(method, "awq") || maq_str_starts(method, "gptq") || maq_str_is(method, "auto-round"))
        read_whole_numbers(out, map);
    else if (maq_str_is(method, "mxfp4"))
        *out = (struct maq_quantization){
            .method = out->method, .bits = 4, .group = MX_GROUP, .floating = true, .experts_alone = true};
    out->experts_alone |= leaves_attention(map);
}
