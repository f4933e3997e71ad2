/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_to_go.c - the dynamic program over the front of a pipeline with devices counted.
 *
 *   left[k][l][u] = least sum of t_i over stages that cover the first l atoms, with k stages behind them, on at most u units of
 *   devices
 *
 * Every stage is inside the box and fits into the memory of its position; hops are those to the nearest neighbours.
 * Where the units are too many for a table, several count as one and what stages use is rounded down; that asks for
 * fewer devices than there must be, so the stages also pay for their devices at the box's prices (priced_bound.c). A
 * stage over [first, l) with an option that uses the units c relaxes a whole row,
 *
 *   left[k][l][u] = min(left[k][l][u], t + left[k + 1][first][u - c])          for all u >= c at once,
 *
 * which is a sum and a minimum over a row. Positions from MAQ_LEFT_ROWS on count as that one. Costs are floats,
 * rounded down in the end by more than their sums can be off.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize(                                                                                                  \
    "O3") /* at -O2 gcc 12 leaves the rows scalar; nothing here but sums and minima, so no value can change */
#endif

#include "planner/compose/cost_to_go.h"

#include <math.h>
#include <string.h>

#define SHORT 4u            /* a kind of this stride or less has short runs of allowed codes */
#define ROUNDED (1 - 1e-5f) /* 128 additions of floats are off by 128 x 6e-8 at most */

struct maq_cost_to_go {
    const struct maq_layer_ranges *layer_ranges;
    const struct maq_units *units;
    uint32_t rows;
    float *cost;   /* [rows + 1][atoms + 1][codes] */
    float *barred; /* [option][codes]: HUGE_VALF where the option uses more than u */
};

bool maq_cost_to_go_new(struct maq_cost_to_go **out, const struct maq_layer_ranges *layer_ranges,
                        const struct maq_units *units, struct maq_arena *arena)
{
    const struct maq_stage_table *t = layer_ranges->table;
    uint32_t rows = layer_ranges->rows < MAQ_LEFT_ROWS ? layer_ranges->rows : MAQ_LEFT_ROWS;
    size_t cells = (size_t)(rows + 1) * (t->n_atoms + 1) * units->codes;
    struct maq_cost_to_go *left = MAQ_ARENA_NEW(arena, struct maq_cost_to_go, 1);
    if (!left)
        return false;
    *left = (struct maq_cost_to_go){.layer_ranges = layer_ranges,
                                    .units = units,
                                    .rows = rows,
                                    .cost = MAQ_ARENA_NEW(arena, float, cells),
                                    .barred = MAQ_ARENA_NEW(arena, float, (size_t)t->n_options * units->codes)};
    if (!left->cost || !left->barred)
        return false;
    for (uint32_t o = 0; o < t->n_options; o++) {
        uint32_t kind = t->options[o].kind, used = units->code[o] / units->stride[kind];
        for (uint32_t u = 0; u < units->codes; u++)
            if (u / units->stride[kind] % units->radix[kind] < used)
                left->barred[(size_t)o * units->codes + u] = HUGE_VALF;
    }
    *out = left;
    return true;
}

/* Relaxes a row by one stage; codes with too few devices add HUGE_VALF. */
static void relax_all(float *restrict into, const float *restrict from, const float *restrict barred, float cost,
                      uint32_t code, uint32_t codes)
{
    for (uint32_t u = code; u < codes; u++) {
        float c = cost + barred[u] + from[u - code];
        into[u] = c < into[u] ? c : into[u];
    }
}

static void relax_run(float *restrict into, const float *restrict from, float cost, uint32_t n)
{
    for (uint32_t u = 0; u < n; u++) {
        float c = cost + from[u];
        into[u] = c < into[u] ? c : into[u];
    }
}

/*
 * Relaxes a row by one stage. The codes with enough devices come in runs; where runs are short, all codes are gone
 * through.
 */
static void relax(const struct maq_cost_to_go *left, float *into, const float *from, uint32_t option, float cost)
{
    const struct maq_units *units = left->units;
    uint32_t kind = left->layer_ranges->table->options[option].kind, code = units->code[option], codes = units->codes;
    uint32_t whole = units->stride[kind] * units->radix[kind];
    if (units->stride[kind] < SHORT) {
        relax_all(into, from, left->barred + (size_t)option * codes, cost, code, codes);
        return;
    }
    for (uint32_t u = 0; u < codes && code < whole; u += whole)
        relax_run(into + u + code, from + u, cost, whole - code);
}

/* Whether no option of the kind takes as little time on fewer devices. */
static bool is_worth(const struct maq_cost_to_go *left, const double *least, uint32_t option)
{
    const struct maq_stage_table *t = left->layer_ranges->table;
    const uint32_t *code = left->units->code;
    for (uint32_t o = 0; o < t->n_options; o++)
        if (t->options[o].kind == t->options[option].kind && o != option && code[o] <= code[option] &&
            least[o] <= least[option] && (code[o] < code[option] || least[o] < least[option] || o < option))
            return false;
    return true;
}

/* All stages over [first, end); of options that use the same devices, the cheapest. */
static bool relax_range(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, uint32_t behind,
                        uint32_t first, uint32_t end, const double *priced, float *into)
{
    const struct maq_layer_ranges *a = left->layer_ranges;
    const struct maq_stage_table *t = a->table;
    uint32_t codes = left->units->codes, next = behind < left->rows ? behind + 1 : left->rows;
    const float *from = left->cost + ((size_t)next * (t->n_atoms + 1) + first) * codes;
    double forward = maq_forward_weight(t, behind, first == 0), backward = maq_backward_weight(t, behind, first == 0);
    double least[MAQ_STAGE_OPTIONS];
    bool any = false, reached = from[codes - 1] < HUGE_VALF; /* with all devices available */
    for (uint32_t o = 0; o < t->n_options; o++)
        least[o] = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        size_t layer_range = maq_layer_range_index(t, o, first, end);
        double s = maq_layer_range_compute(t, o, first, end);
        any = any || s <= box->bottleneck_hi;
        double hops =
                   forward * a->forward_s[o * t->n_atoms + end - 1] + backward * a->backward_s[o * t->n_atoms + first],
               pace = maq_stage_pace(t, s, hops);
        s += hops;
        if (a->deepest[layer_range] > behind && pace <= box->bottleneck_hi && a->sync_s[layer_range] <= box->sync_hi)
            least[left->units->like[o]] = fmin(least[left->units->like[o]], s + priced[o]);
    }
    for (uint32_t o = 0; o < t->n_options && reached; o++)
        if (least[o] < HUGE_VAL && left->units->code[o] < codes && is_worth(left, least, o))
            relax(left, into, from, o, (float)least[o]);
    return any;
}

/* Atoms of the longest stage that any option can run inside the box. */
static uint32_t longest_stage(const struct maq_layer_ranges *a, const struct maq_bottleneck_box *box)
{
    const struct maq_stage_table *t = a->table;
    uint32_t longest = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        for (uint32_t first = 0, end = 0; first < t->n_atoms; first++) {
            while (end < t->n_atoms && maq_layer_range_compute(t, o, first, end + 1) <= box->bottleneck_hi)
                end++;
            longest = end > first && end - first > longest ? end - first : longest;
            end = end > first ? end : first + 1;
        }
    return longest;
}

void maq_cost_to_go_fill(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, const double *priced)
{
    const struct maq_layer_ranges *a = left->layer_ranges;
    uint32_t n = a->table->n_atoms, codes = left->units->codes, longest = longest_stage(a, box);
    for (uint32_t k = left->rows + 1; k-- > 0;) {
        /* the k stages behind cover at most so many atoms; the last row stands for more stages */
        uint32_t least = k < left->rows && n > k * longest ? n - k * longest : 0, most = n > k ? n - k : 0;
        for (uint32_t l = 0; l <= n; l++) {
            float *into = left->cost + ((size_t)k * (n + 1) + l) * codes;
            for (uint32_t u = 0; u < codes; u++)
                into[u] = l > 0 ? HUGE_VALF : 0;
            for (uint32_t first = l; first-- > 0 && l >= least && l <= most;)
                if (!relax_range(left, box, k, first, l, priced, into))
                    break;
        }
    }
}

double maq_cost_to_go_of(const struct maq_cost_to_go *left, uint32_t behind, uint32_t atom, uint32_t code)
{
    uint32_t row = behind < left->rows ? behind : left->rows;
    size_t cell = ((size_t)row * (left->layer_ranges->table->n_atoms + 1) + atom) * left->units->codes + code;
    return (double)(left->cost[cell] * ROUNDED);
}
