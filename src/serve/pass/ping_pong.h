/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping_pong.h - how long micro-batches take that go to and fro between two sides, layer by layer.
 *
 *   side        1 attention    2 the way there    3 FFN    4 the way back        each has one micro-batch at a time, in their order
 *   seconds     a              s                  f        r                     of one micro-batch in one layer
 *
 * A micro-batch i of m begins a layer on a side when it has left the side before (of layer 1: at once; of others: when it is back from the layer
 * before), and when the micro-batch in front has left this one, of the first the last one of the layer before:
 *
 *   end(side, l, i) = max(end(side before, l, i), end(side, l, i - 1)) + seconds(side, l, i),    end(side, l, 0) = end(side, l - 1, m)
 *
 * which is computed as it stands, with layers and micro-batches of different length. Where all L layers and all micro-batches are alike, with the way
 * around R = a + s + f + r and the longest of the four b,
 *
 *   T = R + (L - 1) max(m b, R) + (m - 1) b    [s]
 *
 * One micro-batch has T = L R: nothing overlaps. As many as m >= R / b keep the longest side busy to the end, T = R + (m L - 1) b; with a = f and
 * s = r that is the m >= 2 (1 + s / f) of MegaScale-Infer (arXiv 2504.02263). More of them do not help. tests/test_serve_ping_pong.c holds the one against the
 * other.
 */
#ifndef MAQ_SERVE_PASS_PING_PONG_H
#define MAQ_SERVE_PASS_PING_PONG_H

#include <stdbool.h>
#include <stdint.h>

enum maq_ping_pong_side { MAQ_PING_ATTENTION, MAQ_PING_TO_FFN, MAQ_PING_FFN, MAQ_PING_TO_ATTENTION, MAQ_PING_SIDES };

/* Of one micro-batch in one kind of layers; a layer without FFN has attention alone. */
struct maq_ping_pong_layer {
    double s[MAQ_PING_SIDES];
};

struct maq_ping_pong {
    const uint32_t *kind_of; /* [n_layers] */
    uint32_t n_layers, n_kinds, micro_batches;
    const double *first_s;                    /* [micro_batches] attention has in front of the first layer */
    const struct maq_ping_pong_layer *layers; /* [micro_batches] [n_kinds] */
    double *left_s;                           /* [micro_batches] room */
};

/* Seconds until the last of them has left the last layer; at least one. */
double maq_ping_pong_s(const struct maq_ping_pong *p);

#endif
