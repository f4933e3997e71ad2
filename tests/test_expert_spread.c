/* SPDX-License-Identifier: Apache-2.0 */
/* test_expert_spread.c - ranks and domains that a token's experts lie on, against every draw. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lower/expert_spread.h"

enum { EXPERTS = 16 };

/* Places that the experts of one draw lie on. Draws are numbered: k digits in base of the number of open experts. */
static int places_of_draw(const int *open, int n_open, int draw, int k, int places)
{
    uint32_t hit = 0;
    int count = 0;
    for (int i = 0; i < k; i++, draw /= n_open)
        hit |= 1u << (open[draw % n_open] * places / EXPERTS);
    for (; hit; hit &= hit - 1)
        count++;
    return count;
}

/* The mean over every choice of groups and every draw of k experts out of them. */
static double counted(int places, int groups, int group_topk, int k)
{
    double sum = 0, draws = 0;
    for (uint32_t chosen = 0; chosen < 1u << groups; chosen++) {
        int open[EXPERTS], n_open = 0, n_groups = 0, all = 1;
        for (int g = 0; g < groups; g++)
            n_groups += (int)(chosen >> g & 1u);
        if (n_groups != group_topk)
            continue;
        for (int e = 0; e < EXPERTS; e++)
            if (chosen >> (e * groups / EXPERTS) & 1u)
                open[n_open++] = e;
        for (int i = 0; i < k; i++)
            all *= n_open;
        for (int draw = 0; draw < all; draw++)
            sum += places_of_draw(open, n_open, draw, k, places);
        draws += all;
    }
    return sum / draws;
}

static void test_every_draw(void **state)
{
    (void)state;
    static const int groups[][2] = {{1, 1}, {4, 1}, {4, 2}, {4, 3}, {8, 4}, {8, 7}};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        for (int places = 1; places <= EXPERTS; places *= 2)
            for (int k = 1; k <= 3; k++) {
                struct maq_moe_geometry moe = {
                    .experts = EXPERTS, .topk = k, .groups = groups[i][0], .group_topk = groups[i][1]};
                if (groups[i][0] == 1)
                    moe.groups = moe.group_topk = 0;
                double want = counted(places, groups[i][0], groups[i][1], k), got = maq_experts_spread(places, &moe);
                if (fabs(got - want) > 1e-12 * want)
                    print_message("%d places, %d of %d groups, %d experts: %.15g, not %.15g\n", places, groups[i][1],
                                  groups[i][0], k, got, want);
                assert_true(fabs(got - want) <= 1e-12 * want);
            }
}

/* DeepSeek-V3 on eight nodes: at most 4 of them, and fewer than without the limit; as many ranks, nearly. */
static void test_limit_keeps_tokens_near(void **state)
{
    (void)state;
    const struct maq_moe_geometry limited = {.experts = 256, .topk = 8, .groups = 8, .group_topk = 4},
                                  free = {.experts = 256, .topk = 8};
    assert_true(maq_experts_spread(8, &limited) < 4 && maq_experts_spread(8, &limited) > 3.5);
    assert_true(maq_experts_spread(8, &free) > 5);
    assert_true(maq_experts_spread(64, &limited) < maq_experts_spread(64, &free));
    assert_true(maq_experts_spread(64, &limited) > 0.9 * maq_experts_spread(64, &free));
    assert_true(maq_experts_spread(1, &limited) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_draw),
        cmocka_unit_test(test_limit_keeps_tokens_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
