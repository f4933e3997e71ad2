/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_units.c - numbers devices for the programs that count them (counted_bound.c, cost_to_go.c).
 *
 * A unit is the greatest common divisor of the devices of all options of a kind. What a state has used is packed into
 * a word, one field for each kind, so that adding and comparing take one operation for all kinds. It is also a number
 * in a mixed radix, one digit for each kind, which indexes the table of the cost to go.
 */
#include "planner/compose/device_units.h"

#define FIELD 8u /* bits of a kind in a packed use */

static uint32_t divisor(uint32_t a, uint32_t b)
{
    while (b > 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Units of devices; false when there are too many to count. */
static bool number_units(struct maq_units *u, uint32_t *units, uint32_t *of, const struct maq_stage_table *t)
{
    u->room = MAQ_UNITS_TOP;
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        uint32_t unit = 0;
        for (uint32_t o = 0; o < t->n_options; o++)
            if (t->options[o].kind == g)
                unit = divisor(unit, t->options[o].devices * maq_replicas(t, o));
        units[g] = unit > 0 ? t->available[g] / unit : 0;
        if (units[g] >= 1u << (FIELD - 1))
            return false;
        u->room |= (uint64_t)units[g] << FIELD * g;
        for (uint32_t o = 0; o < t->n_options; o++)
            if (t->options[o].kind == g && unit > 0) {
                of[o] = t->options[o].devices * maq_replicas(t, o) / unit;
                /* more than there are: such an option is never used */
                of[o] = of[o] <= units[g] ? of[o] : units[g] + 1;
                u->used[o] = (uint64_t)of[o] << FIELD * g;
            }
    }
    for (uint32_t o = 0; o < t->n_options; o++)
        while (u->used[u->like[o]] != u->used[o])
            u->like[o]++;
    return true;
}

/* Numbers the uses, as coarsely as the size of the cost-to-go table asks for. */
static void number_uses(struct maq_units *u, const uint32_t *units, const uint32_t *of,
                        const struct maq_layer_ranges *a)
{
    const struct maq_stage_table *t = a->table;
    uint64_t rows = (a->rows < MAQ_LEFT_ROWS ? a->rows : MAQ_LEFT_ROWS) + 1, codes;
    u->coarse = 0;
    do {
        u->coarse += 1 + (u->coarse > 1 ? u->coarse - 1 : 0);
        codes = 1;
        for (uint32_t g = 0; g < t->n_kinds; g++) {
            u->radix[g] = units[g] / u->coarse + 1;
            u->stride[g] = (uint32_t)codes;
            codes *= u->radix[g];
            codes = codes < MAQ_LEFT_CELLS ? codes : MAQ_LEFT_CELLS;
        }
    } while (codes * rows * (t->n_atoms + 1) > MAQ_LEFT_CELLS || codes * t->n_options > MAQ_LEFT_CELLS);
    u->codes = (uint32_t)codes;
    for (uint32_t o = 0; o < t->n_options; o++)
        u->code[o] = of[o] / u->coarse * u->stride[t->options[o].kind];
}

bool maq_units_init(struct maq_units *u, const struct maq_layer_ranges *layer_ranges)
{
    uint32_t units[MAQ_STAGE_KINDS] = {0}, of[MAQ_STAGE_OPTIONS] = {0};
    *u = (struct maq_units){.room = 0};
    if (layer_ranges->mixes || !number_units(u, units, of, layer_ranges->table))
        return false;
    number_uses(u, units, of, layer_ranges);
    return true;
}

bool maq_countable(const struct maq_layer_ranges *layer_ranges)
{
    uint32_t units[MAQ_STAGE_KINDS] = {0}, of[MAQ_STAGE_OPTIONS] = {0};
    struct maq_units u = {.room = 0};
    return !layer_ranges->mixes && number_units(&u, units, of, layer_ranges->table);
}
