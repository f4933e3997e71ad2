/* SPDX-License-Identifier: Apache-2.0 */
/* ping_pong.c - the recurrence, layer by layer; sides that take no time let everybody through at once. */
#include "serve/pass/ping_pong.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

double maq_ping_pong_s(const struct maq_ping_pong *p)
{
    double free_s[MAQ_PING_SIDES] = {0}, end = 0;
    for (uint32_t i = 0; i < p->micro_batches; i++) {
        free_s[MAQ_PING_ATTENTION] += p->first_s[i];
        p->left_s[i] = free_s[MAQ_PING_ATTENTION];
    }
    for (uint32_t l = 0; l < p->n_layers; l++)
        for (uint32_t i = 0; i < p->micro_batches; i++) {
            const struct maq_ping_pong_layer *t = &p->layers[(size_t)i * p->n_kinds + p->kind_of[l]];
            double at = p->left_s[i];
            for (int side = 0; side < MAQ_PING_SIDES; side++) {
                if (!(t->s[side] > 0))
                    continue;
                at = later(at, free_s[side]) + t->s[side];
                free_s[side] = at;
            }
            p->left_s[i] = at;
        }
    for (uint32_t i = 0; i < p->micro_batches; i++)
        end = later(end, p->left_s[i]);
    return end;
}
