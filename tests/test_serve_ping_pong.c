/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_ping_pong.c - micro-batches between two sides: the recurrence against its closed form where all are alike, and against a schedule that is
 * played out event by event where they are not.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_draws.h"
#include "serve/pass/ping_pong.h"

enum { MOST_LAYERS = 40, MOST_MICRO = 8, KINDS = 3 };

struct scene {
    uint32_t kind_of[MOST_LAYERS];
    double first_s[MOST_MICRO], left_s[MOST_MICRO];
    struct maq_ping_pong_layer layers[MOST_MICRO * KINDS];
    struct maq_ping_pong p;
};

static struct maq_ping_pong *scene_of(struct scene *s, uint32_t layers, uint32_t micro)
{
    memset(s, 0, sizeof *s);
    s->p = (struct maq_ping_pong){.kind_of = s->kind_of,
                                  .n_layers = layers,
                                  .n_kinds = KINDS,
                                  .micro_batches = micro,
                                  .first_s = s->first_s,
                                  .layers = s->layers,
                                  .left_s = s->left_s};
    return &s->p;
}

static void expect(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 1e-12 * (fabs(want) + 1e-9)))
        fail_msg("%s: got %.15g, want %.15g", what, got, want);
}

static double closed_form(const struct maq_ping_pong_layer *t, double layers, double m)
{
    double around = 0, longest = 0;
    for (int side = 0; side < MAQ_PING_SIDES; side++) {
        around += t->s[side];
        longest = fmax(longest, t->s[side]);
    }
    return around + (layers - 1) * fmax(m * longest, around) + (m - 1) * longest;
}

static void test_alike(void **state)
{
    (void)state;
    uint64_t draws = 3;
    struct scene s;
    for (int i = 0; i < 5000; i++) {
        struct maq_ping_pong_layer t;
        uint32_t layers = draw(&draws, 1, MOST_LAYERS), m = draw(&draws, 1, MOST_MICRO);
        struct maq_ping_pong *p = scene_of(&s, layers, m);
        for (int side = 0; side < MAQ_PING_SIDES; side++)
            t.s[side] = draw(&draws, 0, 5) ? uniform(&draws, 0, 2) : 0;
        for (uint32_t k = 0; k < m; k++)
            s.layers[k * KINDS] = t;
        expect(maq_ping_pong_s(p), closed_form(&t, layers, m), "layers and micro-batches that are alike");
    }
}

/* One: nothing overlaps. Free ways and many: the slower side, once for each of them, and the faster one where it begins or ends. */
static void test_ends(void **state)
{
    (void)state;
    struct scene s;
    struct maq_ping_pong *p = scene_of(&s, 30, 1);
    s.layers[0] = (struct maq_ping_pong_layer){{1, 0.25, 2, 0.5}};
    expect(maq_ping_pong_s(p), 30 * 3.75, "one micro-batch");
    p = scene_of(&s, 30, 6);
    for (int k = 0; k < 6; k++)
        s.layers[k * KINDS] = (struct maq_ping_pong_layer){{1, 0, 2, 0}};
    expect(maq_ping_pong_s(p), 1 + 30 * 6 * 2, "free ways");
    /* MegaScale-Infer's bound: a = f = 1 and s = r = 0.25 want 2 (1 + 0.25) = 2.5 of them; with 2 the sides wait, with 3 they do not */
    for (uint32_t m = 2; m <= 3; m++) {
        p = scene_of(&s, 40, m);
        for (uint32_t k = 0; k < m; k++)
            s.layers[k * KINDS] = (struct maq_ping_pong_layer){{1, 0.25, 1, 0.25}};
        expect(maq_ping_pong_s(p), m == 2 ? 40 * 2.5 + 1 : 2.5 + 119, "as many as it takes");
    }
}

/* Layers without FFN stay on one side; what is in front of the first layer is attention's. */
static void test_no_ffn(void **state)
{
    (void)state;
    struct scene s;
    struct maq_ping_pong *p = scene_of(&s, 4, 2);
    for (int k = 0; k < 2; k++) {
        s.first_s[k] = 0.5;
        s.layers[k * KINDS] = (struct maq_ping_pong_layer){{1, 0, 0, 0}};
    }
    expect(maq_ping_pong_s(p), 2 * 0.5 + 4 * 2 * 1.0, "attention alone");
}

/* Tasks that begin as soon as those that they wait for are done, found by going through all of them until nothing changes. */
static double played_out(const struct maq_ping_pong *p)
{
    static double end[MOST_LAYERS][MOST_MICRO][MAQ_PING_SIDES];
    double last = 0;
    memset(end, 0, sizeof end);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t l = 0; l < p->n_layers; l++)
            for (uint32_t i = 0; i < p->micro_batches; i++)
                for (int side = 0; side < MAQ_PING_SIDES; side++) {
                    double own = p->layers[i * KINDS + p->kind_of[l]].s[side], from = 0, front = 0;
                    if (side > 0)
                        from = end[l][i][side - 1];
                    else if (l > 0)
                        from = end[l - 1][i][MAQ_PING_SIDES - 1];
                    else
                        for (uint32_t k = 0; k <= i; k++)
                            from += p->first_s[k];
                    if (side == 0 && l == 0)
                        for (uint32_t k = 0; k < p->micro_batches; k++) /* attention has all of them first */
                            front += p->first_s[k];
                    if (i > 0)
                        front = fmax(front, end[l][i - 1][side]);
                    else if (l > 0)
                        front = fmax(front, end[l - 1][p->micro_batches - 1][side]);
                    double at = fmax(from, front) + own;
                    changed = changed || at > end[l][i][side];
                    end[l][i][side] = at;
                    last = fmax(last, at);
                }
    }
    return last;
}

static void test_unlike(void **state)
{
    (void)state;
    uint64_t draws = 11;
    struct scene s;
    for (int i = 0; i < 500; i++) {
        struct maq_ping_pong *p = scene_of(&s, draw(&draws, 1, MOST_LAYERS), draw(&draws, 1, MOST_MICRO));
        for (uint32_t l = 0; l < p->n_layers; l++)
            s.kind_of[l] = draw(&draws, 0, KINDS - 1);
        for (uint32_t k = 0; k < p->micro_batches; k++) {
            s.first_s[k] = uniform(&draws, 0, 1);
            for (uint32_t kind = 0; kind < KINDS; kind++)
                for (int side = 0; side < MAQ_PING_SIDES; side++)
                    s.layers[k * KINDS + kind].s[side] = uniform(&draws, 0.01, 2);
        }
        expect(maq_ping_pong_s(p), played_out(p), "layers and micro-batches of different length");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alike), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_no_ffn), cmocka_unit_test(test_unlike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
