/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_list.c - appending modules to a layer, with overflow-checked counts.
 *
 * Parameters:  linear  in x out (+ out with a bias)
 *              norm    RMS: width; LayerNorm: 2 width; LayerNorm without bias: width; plain: none
 * Active parameters of a layer: routed experts count topk / experts, everything else counts whole.
 */
#include "model/layer/module_list.h"

#include "base/check.h"

#include <string.h>

int64_t maq__block_mul(struct maq_block_writer *b, int64_t x, int64_t y)
{
    int64_t product;
    if (!__builtin_mul_overflow(x, y, &product))
        return product;
    b->overflow = true;
    return INT64_MAX;
}

int64_t maq__block_add(struct maq_block_writer *b, int64_t x, int64_t y)
{
    int64_t sum;
    if (!__builtin_add_overflow(x, y, &sum))
        return sum;
    b->overflow = true;
    return INT64_MAX;
}

struct maq_module *maq__block_put(struct maq_block_writer *b, struct maq_module module)
{
    MAQ_ASSERT(b->n < MAQ_BLOCK_MODULES);
    b->modules[b->n] = module;
    return &b->modules[b->n++];
}

struct maq_module *maq__block_plain(struct maq_block_writer *b, enum maq_module_kind kind, const char *name,
                                    enum maq_part part, enum maq_shard shard, int64_t in, int64_t out, uint32_t flags)
{
    return maq__block_put(
        b, (struct maq_module){
               .kind = kind, .shard = shard, .part = part, .flags = flags, .name = name, .in = in, .out = out});
}

struct maq_module *maq__block_linear(struct maq_block_writer *b, const char *name, enum maq_part part,
                                     enum maq_shard shard, int64_t in, int64_t out, uint32_t flags)
{
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_LINEAR, name, part, shard, in, out, flags);
    if (!(flags & MAQ_MODULE_TIED))
        m->params = maq__block_mul(b, in, out);
    if (flags & MAQ_MODULE_BIAS)
        m->params = maq__block_add(b, m->params, out);
    return m;
}

struct maq_module *maq__block_norm(struct maq_block_writer *b, const char *name, enum maq_part part,
                                   enum maq_shard shard, enum maq_norm norm, int64_t in, int64_t width)
{
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_NORM, name, part, shard, in, in, 0);
    m->params = maq__block_mul(b, width, norm == MAQ_NORM_LAYER ? 2 : norm == MAQ_NORM_PLAIN ? 0 : 1);
    if (norm == MAQ_NORM_LAYER || norm == MAQ_NORM_LAYER_NO_BIAS)
        m->flags |= MAQ_MODULE_LAYERNORM;
    if (norm == MAQ_NORM_LAYER)
        m->flags |= MAQ_MODULE_BIAS;
    return m;
}

static enum maq_part part_of(enum maq_layer_place place)
{
    static const enum maq_part parts[] = {
        [MAQ_PLACE_EMBEDDING] = MAQ_PART_EMBEDDING, [MAQ_PLACE_MIXER_IN] = MAQ_PART_ATTENTION,
        [MAQ_PLACE_QUERIES] = MAQ_PART_ATTENTION,   [MAQ_PLACE_CORE] = MAQ_PART_ATTENTION,
        [MAQ_PLACE_MIXER_OUT] = MAQ_PART_ATTENTION, [MAQ_PLACE_FFN_MID] = MAQ_PART_MLP,
        [MAQ_PLACE_FFN_OUT] = MAQ_PART_NORM,        [MAQ_PLACE_LAYER_OUT] = MAQ_PART_RESIDUAL,
        [MAQ_PLACE_FINAL] = MAQ_PART_OUTPUT,        [MAQ_PLACE_HEAD] = MAQ_PART_OUTPUT,
    };
    return parts[place];
}

void maq__block_extras(struct maq_block_writer *b, const struct maq_architecture *arch, enum maq_layer_place place,
                       const struct maq_arch_layer *layer)
{
    for (uint32_t i = 0; i < arch->n_extras; i++) {
        const struct maq_arch_extra *x = &arch->extras[i];
        if (x->place != place || (x->mark && !(layer && layer->marks & x->mark)))
            continue;
        b->own |= 1ull << b->n;
        if (x->kind == MAQ_MODULE_LINEAR)
            maq__block_linear(b, x->name, part_of(place), x->shard, x->in, x->out, x->flags);
        else
            maq__block_plain(b, x->kind, x->name, part_of(place), x->shard, x->in, x->out, x->flags)->params =
                x->params;
    }
}

void maq__block_reuse(struct maq_block_writer *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->own & 1ull << i)
            continue;
        b->modules[i].params = 0;
        b->modules[i].flags |= MAQ_MODULE_TIED;
    }
}

/* The share of a module's parameters that one token meets. The count is a multiple of `experts`. */
static int64_t active_of(const struct maq_module *m)
{
    if (m->kind != MAQ_MODULE_EXPERT_LINEAR)
        return m->params;
    return m->params / m->u.moe.experts * m->u.moe.topk;
}

bool maq__block_finish(struct maq_layer *out, struct maq_block_writer *b, const char *mixer, struct maq_arena *arena)
{
    struct maq_module *modules = MAQ_ARENA_NEW(arena, struct maq_module, b->n);
    if (!modules)
        return false;
    memcpy(modules, b->modules, b->n * sizeof(*modules));
    *out = (struct maq_layer){.modules = modules, .n_modules = b->n, .moe = b->moe, .mixer = mixer};
    for (uint32_t i = 0; i < b->n; i++) {
        out->params = maq__block_add(b, out->params, modules[i].params);
        out->active_params = maq__block_add(b, out->active_params, active_of(&modules[i]));
    }
    return true;
}
