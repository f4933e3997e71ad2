/* SPDX-License-Identifier: Apache-2.0 */
/* op_key.c - operators and collectives by their words. */
#include "cost/measured/op_key.h"

#include <string.h>

#include "base/check.h"

static const char *const flag_words[8] = {"accumulate", "out_fp32", "unfused", "bias",
                                          "gated",      "dropout",  "causal",  "variable_k"};

/* Some kinds have other words for some bits (cost.h). */
static const char *flag_word(enum maq_op_kind kind, unsigned bit)
{
    static const char *const attention[8] = {[0] = "flash2", [1] = "kv_fp8", [3] = "window"};
    static const char *const product[8] = {
        [2] = "blocks", [4] = "fine_scales", [5] = "weight8", [6] = "weight4", [7] = "promoted"};
    static const char *const experts[8] = {[2] = "blocks", [5] = "weight8", [6] = "weight4"};
    const char *const *own = kind == MAQ_OP_GEMM      ? product
                             : kind == MAQ_OP_EXPERTS ? experts
                             : kind == MAQ_OP_ATTENTION || kind == MAQ_OP_ATTENTION_BWD || kind == MAQ_OP_MLA_BLOCK
                                 ? attention
                                 : NULL;
    return own && own[bit] ? own[bit] : flag_words[bit];
}

const char *maq_op_flags_text(char buf[MAQ_OP_FLAGS_SIZE], const struct maq_op *op)
{
    size_t n = 0;
    for (unsigned bit = 0; bit < 8; bit++) {
        if (!(op->flags & (1u << bit)))
            continue;
        const char *word = flag_word((enum maq_op_kind)op->kind, bit);
        size_t len = strlen(word);
        MAQ_ASSERT(n + len + 2 <= MAQ_OP_FLAGS_SIZE);
        if (n > 0)
            buf[n++] = '+';
        memcpy(buf + n, word, len);
        n += len;
    }
    buf[n] = '\0';
    return buf;
}

bool maq_op_flags_parse(uint8_t *out, enum maq_op_kind kind, struct maq_str text)
{
    *out = 0;
    if (text.len == 0)
        return true;
    while (text.ptr) { /* "a+" has an empty second word, which is unknown */
        struct maq_str word;
        unsigned bit = 0;
        text = maq_str_split(text, '+', &word);
        while (bit < 8 && !maq_str_is(word, flag_word(kind, bit)))
            bit++;
        if (bit == 8)
            return false;
        *out = (uint8_t)(*out | 1u << bit);
    }
    return true;
}

bool maq_op_kind_find(enum maq_op_kind *out, struct maq_str name)
{
    for (int k = 0; k < MAQ_OP_KIND_COUNT; k++)
        if (maq_str_is(name, maq_op_kind_name((enum maq_op_kind)k))) {
            *out = (enum maq_op_kind)k;
            return true;
        }
    return false;
}

bool maq_coll_kind_find(enum maq_coll_kind *out, struct maq_str name)
{
    for (int k = 0; k < MAQ_COLL_KIND_COUNT; k++)
        if (maq_str_is(name, maq_coll_kind_name((enum maq_coll_kind)k))) {
            *out = (enum maq_coll_kind)k;
            return true;
        }
    return false;
}

bool maq_dtype_find(enum maq_dtype *out, struct maq_str name)
{
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        if (maq_str_is(name, maq_dtype_name((enum maq_dtype)t))) {
            *out = (enum maq_dtype)t;
            return true;
        }
    return false;
}

struct maq_op maq_op_canonical(const struct maq_op *op)
{
    struct maq_op c;
    memset(&c, 0, sizeof c);
    c.kind = op->kind;
    c.dtype = op->dtype;
    c.flags = op->flags;
    c.queries = op->queries;
    memcpy(c.d, op->d, sizeof c.d);
    if (c.kind == MAQ_OP_GEMM && c.d[3] == 1)
        c.d[3] = 0;
    int64_t mean = c.flags & MAQ_OP_VARIABLE_K ? c.d[2] : c.d[0];
    if (c.kind == MAQ_OP_GROUPED_GEMM && c.d[4] == mean)
        c.d[4] = 0;
    if (c.kind == MAQ_OP_QUANTIZE && c.d[2] == 1)
        c.d[2] = 0;
    if (c.kind == MAQ_OP_QUANTIZE && c.d[3] == 1)
        c.d[3] = 0;
    if ((c.kind == MAQ_OP_SSM_SCAN || c.kind == MAQ_OP_SSM_SCAN_BWD) && c.d[5] == 128)
        c.d[5] = 0;
    if ((c.kind == MAQ_OP_DELTA_RULE || c.kind == MAQ_OP_DELTA_RULE_BWD) && c.d[5] == 64)
        c.d[5] = 0;
    return c;
}

bool maq_coll_is_local(const struct maq_coll *coll)
{
    return coll->at.domains <= 1 && coll->at.per_domain == coll->at.size;
}

struct maq_coll maq_coll_canonical(const struct maq_coll *coll)
{
    struct maq_coll c;
    memset(&c, 0, sizeof c);
    c.kind = coll->kind;
    c.bytes = coll->bytes;
    c.at.size = coll->at.size;
    c.at.per_domain = coll->at.size;
    c.at.domains = 1;
    c.at.per_node = coll->at.per_node;
    return c;
}
