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

/* A stage over some layer range: the cheapest of the options that use the same devices. */
struct stage_cost {
    double cost;
    uint32_t option;
};

struct maq_cost_to_go {
    const struct maq_layer_ranges *layer_ranges;
    const struct maq_units *units;
    uint32_t rows;
    float *cost;        /* [rows + 1][atoms + 1][codes] */
    float *barred;      /* [option][codes]: HUGE_VALF where the option uses more than u */
    uint32_t *farthest; /* [atoms + 1], in the box: maq_farthest_starts() */
    /* Of the range at hand, [option]: the least cost of the first option with these devices, and those that can run it. */
    double *least;
    struct stage_cost *list;
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
                                    .barred = MAQ_ARENA_NEW(arena, float, (size_t)t->n_options * units->codes),
                                    .farthest = MAQ_ARENA_NEW(arena, uint32_t, t->n_atoms + 1),
                                    .least = MAQ_ARENA_NEW(arena, double, t->n_options),
                                    .list = MAQ_ARENA_NEW(arena, struct stage_cost, t->n_options)};
    if (!left->cost || !left->barred || !left->farthest || !left->least || !left->list)
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

/* Relaxes n codes of a row by one stage; codes with too few devices add HUGE_VALF. All three begin where the stage's own code is used:
 * with one index the loop is loads of whole vectors. */
static void relax_all(float *restrict into, const float *restrict from, const float *restrict barred, float cost,
                      size_t n)
{
    for (size_t u = 0; u < n; u++) {
        float c = cost + barred[u] + from[u];
        into[u] = c < into[u] ? c : into[u];
    }
}

static void relax_run(float *restrict into, const float *restrict from, float cost, size_t n)
{
    for (size_t u = 0; u < n; u++) {
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
        if (code < codes)
            relax_all(into + code, from, left->barred + (size_t)option * codes + code, cost, codes - code);
        return;
    }
    for (uint32_t u = 0; u < codes && code < whole; u += whole)
        relax_run(into + u + code, from + u, cost, whole - code);
}

/* Whether no stage of the kind takes as little time on fewer devices. */
static bool is_worth(const struct maq_cost_to_go *left, uint32_t n, uint32_t at)
{
    const struct stage_cost *list = left->list;
    const struct maq_stage_option *options = left->layer_ranges->table->options;
    const uint32_t *code = left->units->code, mine = code[list[at].option];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t other = code[list[i].option];
        if (options[list[i].option].kind == options[list[at].option].kind && i != at && other <= mine &&
            list[i].cost <= list[at].cost && (other < mine || list[i].cost < list[at].cost || i < at))
            return false;
    }
    return true;
}

/* Lists the stages over [first, end) that fit into the box with so many behind them, by option. Returns their number. */
static uint32_t list_stages(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, uint32_t behind,
                            uint32_t first, uint32_t end, const double *priced)
{
    const struct maq_layer_ranges *a = left->layer_ranges;
    const struct maq_stage_table *t = a->table;
    const size_t layer_range = maq_layer_range_index(t, 0, first, end);
    double forward = maq_forward_weight(t, behind, first == 0), backward = maq_backward_weight(t, behind, first == 0);
    double *least = left->least;
    uint32_t n = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        least[o] = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (a->deepest[layer_range + o] <= behind || a->sync_s[layer_range + o] > box->sync_hi)
            continue;
        double s = maq_layer_range_compute(t, o, first, end), hops = forward * a->forward_s[o * t->n_atoms + end - 1] +
                                                                     backward * a->backward_s[o * t->n_atoms + first];
        if (maq_stage_pace(t, s, hops) <= box->bottleneck_hi)
            least[left->units->like[o]] = fmin(least[left->units->like[o]], s + hops + priced[o]);
    }
    for (uint32_t o = 0; o < t->n_options; o++)
        if (least[o] < HUGE_VAL && left->units->code[o] < left->units->codes)
            left->list[n++] = (struct stage_cost){least[o], o};
    return n;
}

/* All stages over [first, end); of options that use the same devices, the cheapest. */
static void relax_range(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, uint32_t behind,
                        uint32_t first, uint32_t end, const double *priced, float *into)
{
    uint32_t codes = left->units->codes, next = behind < left->rows ? behind + 1 : left->rows;
    const float *from = left->cost + ((size_t)next * (left->layer_ranges->table->n_atoms + 1) + first) * codes;
    if (from[codes - 1] == HUGE_VALF) /* not with all devices */
        return;
    uint32_t n = list_stages(left, box, behind, first, end, priced);
    for (uint32_t i = 0; i < n; i++)
        if (is_worth(left, n, i))
            relax(left, into, from, left->list[i].option, (float)left->list[i].cost);
}

void maq_cost_to_go_fill(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, const double *priced)
{
    const struct maq_layer_ranges *a = left->layer_ranges;
    uint32_t n = a->table->n_atoms, codes = left->units->codes, longest = 0;
    maq_farthest_starts(left->farthest, a->table, box->bottleneck_hi);
    for (uint32_t l = 0; l <= n; l++)
        longest = l - left->farthest[l] > longest ? l - left->farthest[l] : longest;
    for (uint32_t k = left->rows + 1; k-- > 0;) {
        /* the k stages behind cover at most so many atoms; the last row stands for more stages */
        uint32_t least = k < left->rows && n > k * longest ? n - k * longest : 0, most = n > k ? n - k : 0;
        for (uint32_t l = 0; l <= n; l++) {
            float *into = left->cost + ((size_t)k * (n + 1) + l) * codes;
            for (uint32_t u = 0; u < codes; u++)
                into[u] = l > 0 ? HUGE_VALF : 0;
            for (uint32_t first = l; l >= least && l <= most && first-- > left->farthest[l];)
                relax_range(left, box, k, first, l, priced, into);
        }
    }
}

double maq_cost_to_go_of(const struct maq_cost_to_go *left, uint32_t behind, uint32_t atom, uint32_t code)
{
    uint32_t row = behind < left->rows ? behind : left->rows;
    size_t cell = ((size_t)row * (left->layer_ranges->table->n_atoms + 1) + atom) * left->units->codes + code;
    return (double)(left->cost[cell] * ROUNDED);
}
