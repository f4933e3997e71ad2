/* SPDX-License-Identifier: Apache-2.0 */
/* transformer_engine_peaks.c - plays a layer's script, forward pass and then backward, and takes the most bytes that were held in each. */
#include "train/memory/transformer_engine_script.h"

#include <math.h>
#include <stdlib.h>

#include "lower/local.h"

/* Bytes that are held, by slot. */
struct live {
    const struct maq_eager_script *s;
    double *held; /* [n_slots] */
    double sum, most;
};

static void put(struct live *l, uint16_t slot, double bytes)
{
    l->sum += bytes - l->held[slot];
    l->held[slot] = bytes;
    l->most = fmax(l->most, l->sum);
}

static void play(struct live *l, const struct maq_moves *moves, uint16_t renamed)
{
    l->most = l->sum;
    for (uint32_t i = 0; i < moves->n; i++) {
        const uint16_t slot = moves->at[i].slot;
        if (moves->at[i].kind == MAQ_MOVE_TAKE) {
            put(l, slot, l->s->bytes[slot]);
        } else if (moves->at[i].kind != MAQ_MOVE_RENAME) {
            put(l, slot, 0);
        } else if (slot != renamed) {
            l->held[renamed] = l->held[slot];
            l->held[slot] = 0;
        }
    }
}

void maq_te_transients(double *forward, double *backward, struct maq_lower *lower, const struct maq_layer *layer,
                       double kept)
{
    struct maq_eager_script s;
    bool known = maq_te_script(&s, lower, layer);
    lower->failed |= s.failed;
    if (!known)
        return;
    struct live l = {.s = &s, .held = calloc(s.n_slots, sizeof *l.held)};
    lower->failed |= !l.held;
    if (l.held) {
        const double border = maq_lower_border_bytes(lower, layer->hidden);
        const enum maq_module_kind first = layer->modules[0].kind, last = layer->modules[layer->n_modules - 1].kind;
        put(&l, MAQ_SLOT_IN, first == MAQ_MODULE_EMBEDDING ? 0 : border);
        play(&l, &s.forward, MAQ_SLOT_OUT);
        *forward = fmax(l.most - kept, 0);
        put(&l, MAQ_SLOT_OUT, 0); /* it is the next one's */
        put(&l, MAQ_SLOT_GRADIENT, last == MAQ_MODULE_LOSS ? 0 : border);
        play(&l, &s.backward, MAQ_SLOT_GRADIENT);
        *backward = fmax(l.most - kept, 0);
    }
    free(l.held);
    maq_eager_script_free(&s);
}
