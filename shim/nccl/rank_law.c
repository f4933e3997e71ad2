/* SPDX-License-Identifier: Apache-2.0 */
/* rank_law.c - tries one (a, b) after another. See rank_law.h for what they are. */
#include "shim/nccl/rank_law.h"

#define STEP_MOST (INT64_C(1) << 46) /* groups have up to 65,536 members */

int64_t vg_rank_law_at(const struct vg_rank_law *law, uint32_t place)
{
    return law->first + law->step * (int64_t)(place / law->a % law->b);
}

/* first and step from two that differ in (i / a) mod b; then all others must agree. */
static bool fits(struct vg_rank_law *law, const uint32_t *place, const int64_t *x, uint32_t n_known)
{
    const int64_t digit = place[0] / law->a % law->b;
    law->step = 0;
    for (uint32_t k = 1; k < n_known && law->step == 0; k++) {
        const int64_t more = place[k] / law->a % law->b - digit;
        if (more != 0 && (x[k] - x[0]) % more != 0)
            return false;
        law->step = more != 0 ? (x[k] - x[0]) / more : 0;
    }
    if (law->step > STEP_MOST || law->step < -STEP_MOST)
        return false;
    law->first = x[0] - law->step * digit;
    for (uint32_t k = 0; k < n_known; k++)
        if (vg_rank_law_at(law, place[k]) != x[k])
            return false;
    return true;
}

bool vg_rank_law(struct vg_rank_law *law, uint32_t n, uint32_t node, const uint32_t *place, const int64_t *x,
                 uint32_t n_known)
{
    const struct vg_rank_law usual[] = {{1, 1, 0, 0}, {1, n, 0, 0}, {1, node, 0, 0}, {node, n, 0, 0}};
    for (unsigned i = 0; i < sizeof usual / sizeof *usual; i++) {
        *law = usual[i];
        if (law->a > 0 && law->b > 0 && fits(law, place, x, n_known))
            return true;
    }
    for (uint32_t a = 1; a <= n; a++)
        for (uint32_t b = 2; n % a == 0 && b <= n / a; b++)
            if (n / a % b == 0) {
                *law = (struct vg_rank_law){.a = a, .b = b};
                if (fits(law, place, x, n_known))
                    return true;
            }
    return false;
}
