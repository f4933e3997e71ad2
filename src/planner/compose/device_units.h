/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_units.h - devices counted in units, and what stages use of them packed into one word.
 *
 * A unit of a kind of device is the greatest common divisor of the devices of all its options. Programs that count
 * devices work with units, so that a state's use of all kinds is added and compared in one operation, and is also a
 * number that indexes a table.
 */
#ifndef MAQ_PLANNER_COMPOSE_DEVICE_UNITS_H
#define MAQ_PLANNER_COMPOSE_DEVICE_UNITS_H

#include "planner/compose/layer_ranges.h"

/*
 * The cost-to-go table (cost_to_go.h) has an entry for each of these positions, each atom and each code. Where that would be more
 * entries than MAQ_LEFT_CELLS, codes take several units as one.
 */
#define MAQ_LEFT_ROWS 8u
#define MAQ_LEFT_CELLS 9000000u /* 36 MB */

/*
 * A byte for each kind. Of packed uses a and b, (b | TOP) - a keeps the top bit of every byte exactly where b has at least as many
 * of every kind as a.
 */
#define MAQ_UNITS_TOP 0x8080808080808080u
struct maq_units {
    uint64_t room;                    /* packed: of each kind the top bit and the units available */
    uint64_t used[MAQ_STAGE_OPTIONS]; /* packed */
    uint16_t like[MAQ_STAGE_OPTIONS]; /* the first option with the same use */
    /*
     * Uses as numbers (codes), `coarse` units counted as one; what an option adds is rounded down, so that a table by
     * code stays a lower bound.
     */
    uint32_t coarse, codes, radix[MAQ_STAGE_KINDS], stride[MAQ_STAGE_KINDS], code[MAQ_STAGE_OPTIONS];
};

/* Whether devices are few enough to be counted, and no stage mixes options. */
bool maq_countable(const struct maq_layer_ranges *layer_ranges);

/* false where there are too many units to count. */
bool maq_units_init(struct maq_units *units, const struct maq_layer_ranges *layer_ranges);

#endif
