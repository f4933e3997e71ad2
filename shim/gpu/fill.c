/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.c - the rules of fill.h, without a GPU.
 */
#include "shim/gpu/fill.h"

#define SUM 0u /* ncclSum */

float vg_fill_factor(enum maq_rec_type type, uint32_t size)
{
    /* FP16 holds 65504: eight bits are left to a value. The exponent of BF16 is FP32's, 8 bits of fraction are what a sum of more
     * equal terms would not change any more (n x + x = n x from n = 256 on). */
    uint32_t most = type == MAQ_REC_F16 || type == MAQ_REC_BF16 ? 256 : UINT32_MAX;
    return (float)(size < most ? size : most);
}

static struct vg_fill reduced(enum maq_rec_type type, unsigned op, uint32_t size, uint64_t from, uint64_t bytes,
                              bool in_place)
{
    struct vg_fill fill = {.from = from, .bytes = bytes, .factor = 1};
    if (op == SUM && size > 1) {
        fill.kind = VG_FILL_SCALE;
        fill.factor = vg_fill_factor(type, size);
    } else {
        fill.kind = in_place ? VG_FILL_NOTHING : VG_FILL_COPY;
    }
    return fill;
}

bool vg_fill_step(struct vg_fill *out, uint32_t i, enum maq_rec_coll kind, enum maq_rec_type type, unsigned op,
                  uint32_t size, uint32_t rank, uint64_t bytes, bool in_place)
{
    bool spread = (kind == MAQ_REC_ALL_GATHER || kind == MAQ_REC_GATHER) && !in_place;
    if (i >= (spread ? size : 1))
        return false;
    *out = (struct vg_fill){.bytes = bytes, .factor = 1};
    switch (kind) {
    case MAQ_REC_ALL_REDUCE:
    case MAQ_REC_REDUCE:
        *out = reduced(type, op, size, 0, bytes, in_place);
        break;
    case MAQ_REC_REDUCE_SCATTER:
        *out = reduced(type, op, size, (uint64_t)rank * bytes, bytes, in_place);
        break;
    case MAQ_REC_ALL_GATHER:
    case MAQ_REC_GATHER:
        out->kind = in_place ? VG_FILL_NOTHING : VG_FILL_COPY;
        out->at = (uint64_t)i * bytes;
        break;
    case MAQ_REC_BROADCAST:
        out->kind = in_place ? VG_FILL_NOTHING : VG_FILL_COPY;
        break;
    case MAQ_REC_ALL_TO_ALL:
        out->kind = in_place ? VG_FILL_NOTHING : VG_FILL_COPY;
        out->bytes = bytes * size;
        break;
    case MAQ_REC_P2P_PAIR:
        out->kind = VG_FILL_NOISE;
        break;
    default: /* scatter from a virtual root: what was there */
        out->kind = VG_FILL_NOTHING;
        break;
    }
    return true;
}
