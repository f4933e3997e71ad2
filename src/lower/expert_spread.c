/* SPDX-License-Identifier: Apache-2.0 */
/* expert_spread.c - the mean number of places of a token's experts, by the sums of expert_spread.h. */
#include "lower/expert_spread.h"

#include <math.h>

/* Binomial coefficient: k of n. */
static double choices(int32_t n, int32_t k)
{
    double c = k < 0 || k > n ? 0 : 1;
    for (int32_t i = 0; i < k && c > 0; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

/* Probability that none of a token's experts is in m given groups, of which j are among the t drawn of g. */
static double whole_groups_missed(int32_t m, const struct maq_moe_geometry *moe)
{
    int32_t g = moe->groups, t = moe->group_topk;
    double missed = 0;
    for (int32_t j = 0; j <= m && j <= t; j++)
        missed += choices(m, j) * choices(g - m, t - j) / choices(g, t) * pow(1 - (double)j / t, moe->topk);
    return missed;
}

double maq_experts_spread(double n, const struct maq_moe_geometry *moe)
{
    double k = moe->topk, g = moe->groups, t = moe->group_topk;
    if (moe->groups == 0)
        return n * (1 - pow(1 - 1 / n, k));
    if (n >= g)
        return n * t / g * (1 - pow(1 - g / (t * n), k));
    return n * (1 - whole_groups_missed((int32_t)(g / n), moe));
}
