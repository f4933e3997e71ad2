/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_merged_pass.c - a forward and a backward pass merged layer by layer: closed forms, bounds, and what a late gradient of weights saves.
 * Durations are whole numbers, so every comparison is exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "random_draws.h"
#include "train/step/merged_pass.h"

#define MOST 6

static double max2(double a, double b)
{
    return a > b ? a : b;
}

static double some(uint64_t *state)
{
    return draw(state, 0, 100);
}

static struct maq_merged_layer any_layer(uint64_t *state, bool late)
{
    struct maq_merged_layer l = {0};
    for (int k = 0; k < MAQ_LAYER_NODES; k++) {
        l.forward[k] = some(state);
        l.backward[k] = some(state);
    }
    for (int k = MAQ_LAYER_DISPATCH; k <= MAQ_LAYER_COMBINE; k += MAQ_LAYER_COMBINE - MAQ_LAYER_DISPATCH) {
        l.forward[k] += 1;
        l.backward[k] += 1;
    }
    if (late) {
        l.late[MAQ_LAYER_ATTENTION] = some(state);
        l.late[MAQ_LAYER_EXPERTS] = some(state);
    }
    return l;
}

/* A whole backward pass: nothing is late. */
static struct maq_merged_layer in_time(struct maq_merged_layer l)
{
    for (int k = 0; k < MAQ_LAYER_NODES; k++) {
        l.backward[k] += l.late[k];
        l.late[k] = 0;
    }
    return l;
}

static double of_alike(const struct maq_merged_layer *l, uint32_t n)
{
    struct maq_merged_layer layers[MOST];
    for (uint32_t i = 0; i < n; i++)
        layers[i] = *l;
    return maq_merged_layers_ns(layers, n);
}

/* The two forms of the header. */
static double late_form(const struct maq_merged_layer *l)
{
    const double *f = l->forward, *b = l->backward, *w = l->late;
    double a = f[MAQ_LAYER_ATTENTION], ad = b[MAQ_LAYER_ATTENTION], aw = w[MAQ_LAYER_ATTENTION],
           m = f[MAQ_LAYER_EXPERTS], md = b[MAQ_LAYER_EXPERTS], mw = w[MAQ_LAYER_EXPERTS], D = f[MAQ_LAYER_DISPATCH],
           C = f[MAQ_LAYER_COMBINE], D_back = b[MAQ_LAYER_DISPATCH], C_back = b[MAQ_LAYER_COMBINE];
    return max2(max2(ad, C) + C_back, max2(ad + aw, C) + a) + max2(max2(md, D) + D_back, max2(md + mw, D) + m);
}

static double whole_form(const struct maq_merged_layer *l)
{
    const double *f = l->forward, *b = l->backward;
    return max2(b[MAQ_LAYER_ATTENTION], f[MAQ_LAYER_COMBINE]) + max2(b[MAQ_LAYER_COMBINE], f[MAQ_LAYER_ATTENTION]) +
           max2(b[MAQ_LAYER_EXPERTS], f[MAQ_LAYER_DISPATCH]) + max2(b[MAQ_LAYER_DISPATCH], f[MAQ_LAYER_EXPERTS]);
}

static void test_forms(void **unused)
{
    uint64_t state = 7;
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        struct maq_merged_layer late = any_layer(&state, true), whole = in_time(late);
        for (uint32_t n = 1; n <= MOST; n++)
            assert_true(of_alike(&whole, n) == n * whole_form(&whole));
        for (uint32_t n = 1; n < MOST; n++)
            assert_true(of_alike(&late, n + 1) - of_alike(&late, n) == late_form(&late));
        assert_true(late_form(&whole) == whole_form(&whole));
        assert_true(late_form(&late) <= whole_form(&whole));
    }
}

/*
 * Layers of all kinds, without experts too: no shorter than the compute, the exchanges, or either pass by itself, and no longer than one
 * after the other.
 */
static void test_bounds(void **unused)
{
    uint64_t state = 11;
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        struct maq_merged_layer layers[MOST], whole[MOST];
        uint32_t n = 1 + draw(&state, 0, MOST - 1);
        double compute = 0, exchanged = 0, forward = 0, backward = 0;
        for (uint32_t k = 0; k < n; k++) {
            layers[k] = any_layer(&state, true);
            if (draw(&state, 0, 2) == 0)
                layers[k].forward[MAQ_LAYER_DISPATCH] = layers[k].forward[MAQ_LAYER_COMBINE] =
                    layers[k].backward[MAQ_LAYER_DISPATCH] = layers[k].backward[MAQ_LAYER_COMBINE] = 0;
            whole[k] = in_time(layers[k]);
            for (int node = 0; node < MAQ_LAYER_NODES; node++) {
                bool moves = node == MAQ_LAYER_DISPATCH || node == MAQ_LAYER_COMBINE;
                forward += layers[k].forward[node];
                backward += layers[k].backward[node];
                *(moves ? &exchanged : &compute) += whole[k].forward[node] + whole[k].backward[node];
            }
        }
        double late = maq_merged_layers_ns(layers, n), in = maq_merged_layers_ns(whole, n);
        assert_true(late >= max2(compute, exchanged) && late >= max2(forward, backward));
        assert_true(late <= in && in <= compute + exchanged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
