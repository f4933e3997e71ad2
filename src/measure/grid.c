/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - what is measured without a job: operators over the sizes that training programs have.
 *
 * standard  products over tokens x widths of published models, attention over lengths, kernels bounded by memory over
 *           widths, collectives from 64 KiB to 1 GiB over all GPUs: a night with --sustained, minutes without
 * quick     the corners of the same: a minute, to see that everything works and where the device stands
 *
 * Sizes are powers of two and widths of Llama 3 and Qwen 2.5 (4096, 5120, 8192, 14336, 28672), so that many
 * measurements hit the operators of real jobs as they are.
 */
#include "base/check.h"
#include "measure/plan.h"

struct sizes {
    const int64_t *at;
    size_t n;
};
#define SIZES(...)                                                                                                     \
    (struct sizes)                                                                                                     \
    {                                                                                                                  \
        (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)                       \
    }

struct grid {
    struct sizes tokens, widths, depths; /* gemm: m, n, k */
    struct sizes lengths, batches;       /* attention */
    struct sizes rows, columns;          /* kernels bounded by memory */
    struct sizes parameters;             /* of an optimizer step */
    struct sizes bytes;                  /* of collectives */
    struct sizes ranks;
};

static const enum maq_dtype product_types[] = {MAQ_BF16, MAQ_FP16, MAQ_TF32, MAQ_FP8, MAQ_INT8};

static struct maq_op make(enum maq_op_kind kind, enum maq_dtype dtype, unsigned flags, int64_t a, int64_t b, int64_t c,
                          int64_t d)
{
    return (struct maq_op){
        .kind = (uint16_t)kind, .dtype = (uint8_t)dtype, .flags = (uint8_t)flags, .d = {a, b, c, d, 0, 0}};
}

static void add(struct maq_profile *p, enum maq_op_kind kind, enum maq_dtype dtype, unsigned flags, int64_t a,
                int64_t b, int64_t c, int64_t d)
{
    const struct maq_op op = make(kind, dtype, flags, a, b, c, d);
    maq_profile_add_op(p, &op, 0);
}

/* Types that the device has no units for are left out. */
static void add_products(struct maq_profile *p, const struct grid *g)
{
    const double *peak = p->cluster.groups[p->group].device.peak_flops;
    for (size_t t = 0; t < MAQ_COUNT(product_types); t++)
        for (size_t m = 0; m < g->tokens.n && peak[product_types[t]] > 0; m++)
            for (size_t n = 0; n < g->widths.n; n++)
                for (size_t k = 0; k < g->depths.n; k++)
                    add(p, MAQ_OP_GEMM, product_types[t], 0, g->tokens.at[m], g->widths.at[n], g->depths.at[k], 0);
    for (size_t m = 0; m < g->tokens.n; m++)
        for (size_t n = 0; n < g->widths.n; n++) {
            add(p, MAQ_OP_GEMM, MAQ_BF16, MAQ_OP_ACCUMULATE, g->widths.at[n], g->depths.at[0], g->tokens.at[m], 0);
            add(p, MAQ_OP_GROUPED_GEMM, MAQ_BF16, 0, g->tokens.at[m] / 8 > 0 ? g->tokens.at[m] / 8 : 1, g->widths.at[n],
                g->depths.at[0], 8);
        }
}

static void add_attention(struct maq_profile *p, const struct grid *g)
{
    static const struct {
        int64_t heads, kv_heads, width;
    } shapes[] = {{32, 8, 128}, {32, 32, 128}, {32, 32, 64}};
    for (size_t h = 0; h < MAQ_COUNT(shapes); h++)
        for (size_t s = 0; s < g->lengths.n; s++)
            for (size_t b = 0; b < g->batches.n; b++)
                for (int back = 0; back < 2; back++) {
                    int64_t length = g->lengths.at[s];
                    struct maq_op op =
                        make(back ? MAQ_OP_ATTENTION_BWD : MAQ_OP_ATTENTION, MAQ_BF16, MAQ_OP_CAUSAL,
                             length * g->batches.at[b], (length + 2) / 2, shapes[h].heads, shapes[h].kv_heads);
                    op.d[4] = op.d[5] = shapes[h].width;
                    maq_profile_add_op(p, &op, 0);
                }
}

static void add_pointwise(struct maq_profile *p, const struct grid *g)
{
    for (size_t r = 0; r < g->rows.n; r++)
        for (size_t c = 0; c < g->columns.n; c++) {
            int64_t rows = g->rows.at[r], columns = g->columns.at[c];
            add(p, MAQ_OP_NORM, MAQ_BF16, 0, rows, columns, 0, 0);
            add(p, MAQ_OP_NORM_BWD, MAQ_BF16, 0, rows, columns, 0, 0);
            add(p, MAQ_OP_ACTIVATION, MAQ_BF16, MAQ_OP_GATED, rows, 2 * columns, columns, 0);
            add(p, MAQ_OP_ACTIVATION_BWD, MAQ_BF16, MAQ_OP_GATED, rows, 2 * columns, columns, 0);
            add(p, MAQ_OP_ELEMENTWISE, MAQ_BF16, 0, rows * columns, 4, 2, 0);
            add(p, MAQ_OP_ROPE, MAQ_BF16, 0, rows, columns, 0, 0);
            add(p, MAQ_OP_PERMUTE, MAQ_BF16, 0, rows, columns, 0, 0);
            add(p, MAQ_OP_SOFTMAX, MAQ_BF16, 0, rows, columns, 0, 0);
            if (p->cluster.groups[p->group].device.peak_flops[MAQ_FP8] > 0)
                add(p, MAQ_OP_QUANTIZE, MAQ_FP8, 0, rows, columns, 0, 0);
        }
    for (size_t r = 0; r < g->rows.n; r++) {
        add(p, MAQ_OP_CROSS_ENTROPY, MAQ_BF16, 0, g->rows.at[r], 128256, 0, 0);
        add(p, MAQ_OP_EMBEDDING, MAQ_BF16, 0, g->rows.at[r], 4096, 128256, 0);
        add(p, MAQ_OP_EMBEDDING_BWD, MAQ_BF16, 0, g->rows.at[r], 4096, 128256, 0);
    }
    for (size_t n = 0; n < g->parameters.n;
         n++) { /* Adam: gradient, master, two moments in; master, moments, weight out */
        add(p, MAQ_OP_OPTIMIZER, MAQ_FP32, 0, g->parameters.at[n], 16, 14, 0);
        add(p, MAQ_OP_HOST_COPY, MAQ_FP32, 0, g->parameters.at[n], 0, 0, 0);
    }
}

static void add_collectives(struct maq_profile *p, const struct grid *g)
{
    static const enum maq_coll_kind kinds[] = {MAQ_COLL_ALL_REDUCE, MAQ_COLL_ALL_GATHER, MAQ_COLL_REDUCE_SCATTER,
                                               MAQ_COLL_ALL_TO_ALL, MAQ_COLL_BROADCAST,  MAQ_COLL_SEND_RECV};
    uint32_t most = (uint32_t)p->cluster.groups[p->group].devices_per_node;
    for (size_t k = 0; k < MAQ_COUNT(kinds); k++)
        for (size_t r = 0; r < g->ranks.n; r++)
            for (size_t b = 0; b < g->bytes.n; b++) {
                uint32_t ranks = kinds[k] == MAQ_COLL_SEND_RECV ? 2 : (uint32_t)g->ranks.at[r];
                struct maq_coll coll = {.kind = (uint16_t)kinds[k],
                                        .bytes = (double)g->bytes.at[b],
                                        .at = {ranks, ranks, 1, ranks, false, 0, p->group}};
                if (ranks <= most)
                    maq_profile_add_coll(p, &coll, 0);
            }
}

void maq_profile_add_grid(struct maq_profile *p, enum maq_profile_grid grid)
{
    const struct grid quick = {
        .tokens = SIZES(128, 4096),
        .widths = SIZES(4096),
        .depths = SIZES(4096),
        .lengths = SIZES(4096),
        .batches = SIZES(1),
        .rows = SIZES(4096),
        .columns = SIZES(4096),
        .parameters = SIZES(1 << 26),
        .bytes = SIZES(1 << 20, 1 << 28),
        .ranks = SIZES(2, 8),
    };
    const struct grid standard = {
        .tokens = SIZES(16, 64, 256, 1024, 2048, 4096, 8192, 16384),
        .widths = SIZES(1024, 4096, 5120, 8192, 14336, 28672),
        .depths = SIZES(1024, 4096, 8192, 14336),
        .lengths = SIZES(1024, 2048, 4096, 8192, 32768),
        .batches = SIZES(1, 4),
        .rows = SIZES(512, 2048, 8192, 32768),
        .columns = SIZES(1024, 4096, 5120, 8192, 16384),
        .parameters = SIZES(1 << 20, 1 << 24, 1 << 28, 1 << 30),
        .bytes = SIZES(1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30),
        .ranks = SIZES(2, 4, 8),
    };
    const struct grid *g = grid == MAQ_PROFILE_QUICK ? &quick : &standard;
    if (grid == MAQ_PROFILE_NO_GRID)
        return;
    add_products(p, g);
    add_attention(p, g);
    add_pointwise(p, g);
    add_collectives(p, g);
}
