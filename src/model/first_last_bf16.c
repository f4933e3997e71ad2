/* SPDX-License-Identifier: Apache-2.0 */
/* first_last_bf16.c - copies the kinds of the layers at both ends and marks the copies `wide`. See first_last_bf16.h. */
#include "model/first_last_bf16.h"

#include <string.h>

/* The wide twin of a kind, made when first asked for; twin[k] = 0 while it has none. */
static uint16_t widened(struct maq_layer *kinds, uint32_t *n_kinds, uint16_t *twin, uint16_t kind)
{
    if (twin[kind] == 0) {
        kinds[*n_kinds] = kinds[kind];
        kinds[*n_kinds].wide = true;
        twin[kind] = (uint16_t)(*n_kinds)++;
    }
    return twin[kind];
}

enum maq_status maq_model_widen_ends(struct maq_model *model, int32_t at_start, int32_t at_end, struct maq_arena *arena)
{
    uint32_t n = model->num_layers, n_kinds = model->n_kinds;
    uint32_t start = at_start > 0 ? (uint32_t)at_start : 0, end = at_end > 0 ? (uint32_t)at_end : 0;
    if (n == 0 || (start == 0 && end == 0))
        return MAQ_OK;
    if (2 * (size_t)n_kinds > UINT16_MAX)
        return MAQ_LIMIT;
    struct maq_layer *kinds = MAQ_ARENA_NEW(arena, struct maq_layer, 2 * (size_t)n_kinds);
    uint16_t *kind_of = MAQ_ARENA_NEW(arena, uint16_t, n), *twin = MAQ_ARENA_NEW(arena, uint16_t, n_kinds);
    if (!kinds || !kind_of || !twin)
        return MAQ_NO_MEMORY;
    memcpy(kinds, model->kinds, n_kinds * sizeof *kinds);
    for (uint32_t i = 0; i < n; i++)
        kind_of[i] = i < start || i + end >= n ? widened(kinds, &n_kinds, twin, model->kind_of[i]) : model->kind_of[i];
    model->kinds = kinds;
    model->kind_of = kind_of;
    model->n_kinds = n_kinds;
    return MAQ_OK;
}
