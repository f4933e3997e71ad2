/* device_units.h - devices as whole units, packed. */
#ifndef MAQ_PLANNER_COMPOSE_DEVICE_UNITS_H
#define MAQ_PLANNER_COMPOSE_DEVICE_UNITS_H

#include "planner/compose/layer_ranges.h"

/* A table of what is left (cost_to_go.h) has a cell for each of these positions, atom and code: units are as coarse as that asks for. */
#define MAQ_LEFT_ROWS 8u
#define MAQ_LEFT_CELLS 9000000u /* 36 MB */

/* Devices as units: what divides the devices of all options of a kind. Packed uses a, b: (b | TOP) - a keeps TOP where b has as many of each. */
#define MAQ_UNITS_TOP 0x8080808080808080u
struct maq_units {
    uint64_t room;                    /* packed, a byte a kind: the top bit and what there is */
    uint64_t used[MAQ_STAGE_OPTIONS]; /* packed */
    uint16_t like[MAQ_STAGE_OPTIONS]; /* the first option that uses the same */
    /* Uses as numbers, so many units being one: what an option adds is rounded down. */
    uint32_t coarse, codes, radix[MAQ_STAGE_KINDS], stride[MAQ_STAGE_KINDS], code[MAQ_STAGE_OPTIONS];
};

/* Whether devices are few enough to tell apart, and no stages mixed. */
bool maq_countable(const struct maq_layer_ranges *layer_ranges);

/* false where there are too many to tell apart. */
bool maq_units_init(struct maq_units *units, const struct maq_layer_ranges *layer_ranges);

#endif
