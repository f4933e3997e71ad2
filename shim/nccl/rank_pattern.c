/* SPDX-License-Identifier: Apache-2.0 */
/* rank_pattern.c - tries one (a, b) after another. See rank_pattern.h for what they are. */
#include "shim/nccl/rank_pattern.h"

#define STEP_MOST (INT64_C(1) << 46) /* of 65,536 members none is beyond 64 bits */

int64_t vg_rank_pattern_at(const struct vg_rank_pattern *pattern, uint32_t place)
{
    return pattern->first + pattern->step * (int64_t)(place / pattern->a % pattern->b);
}

/* first and step from two that differ in (i / a) mod b; then all others must agree. */
static bool fits(struct vg_rank_pattern *pattern, const uint32_t *place, const int64_t *x, uint32_t n_known)
{
    const int64_t digit = place[0] / pattern->a % pattern->b;
    pattern->step = 0;
    for (uint32_t k = 1; k < n_known && pattern->step == 0; k++) {
        const int64_t more = place[k] / pattern->a % pattern->b - digit;
        if (more != 0 && (x[k] - x[0]) % more != 0)
            return false;
        pattern->step = more != 0 ? (x[k] - x[0]) / more : 0;
    }
    if (pattern->step > STEP_MOST || pattern->step < -STEP_MOST)
        return false;
    pattern->first = x[0] - pattern->step * digit;
    for (uint32_t k = 0; k < n_known; k++)
        if (vg_rank_pattern_at(pattern, place[k]) != x[k])
            return false;
    return true;
}

bool vg_rank_pattern(struct vg_rank_pattern *pattern, uint32_t n, uint32_t node, const uint32_t *place,
                     const int64_t *x, uint32_t n_known)
{
    const struct vg_rank_pattern usual[] = {{1, 1, 0, 0}, {1, n, 0, 0}, {1, node, 0, 0}, {node, n, 0, 0}};
    for (unsigned i = 0; i < sizeof usual / sizeof *usual; i++) {
        *pattern = usual[i];
        if (pattern->a > 0 && pattern->b > 0 && fits(pattern, place, x, n_known))
            return true;
    }
    for (uint32_t a = 1; a <= n; a++)
        for (uint32_t b = 2; n % a == 0 && b <= n / a; b++)
            if (n / a % b == 0) {
                *pattern = (struct vg_rank_pattern){.a = a, .b = b};
                if (fits(pattern, place, x, n_known))
                    return true;
            }
    return false;
}
