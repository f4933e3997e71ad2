/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_placement.c - placement of positions (virtual stages): the stage and chunk of each, and the positions of a
 * stage, by kind of schedule.
 */
#include "plan/schedule/schedule.h"

bool maq_schedule_is_v(int kind)
{
    return kind == MAQ_SCHEDULE_ZB_V || kind == MAQ_SCHEDULE_DUALPIPE_V || kind == MAQ_SCHEDULE_V_MIN ||
           kind == MAQ_SCHEDULE_V_HALF;
}

void maq_schedule_locate(uint16_t *stage, uint16_t *chunk, int kind, uint32_t stages, uint32_t position,
                         uint32_t direction)
{
    uint32_t s = position % stages, c = position / stages;
    if (kind == MAQ_SCHEDULE_DUALPIPE) {
        c = direction;
        s = direction ? stages - 1 - position : position;
    } else if (maq_schedule_is_v(kind) && position >= stages) {
        c = 1;
        s = 2 * stages - 1 - position;
    }
    *stage = (uint16_t)s;
    *chunk = (uint16_t)c;
}

uint32_t maq_positions_of(uint16_t *positions, int kind, uint32_t stages, uint32_t n_positions, uint32_t stage)
{
    uint32_t n = 0;
    positions[n++] = (uint16_t)stage;
    if (kind == MAQ_SCHEDULE_DUALPIPE)
        positions[n++] = (uint16_t)(stages - 1 - stage);
    else if (maq_schedule_is_v(kind))
        positions[n++] = (uint16_t)(2 * stages - 1 - stage);
    else
        for (uint32_t p = stage + stages; p < n_positions; p += stages)
            positions[n++] = (uint16_t)p;
    return n;
}

uint32_t maq_schedule_positions(const struct maq_schedule *s, uint32_t stage, uint16_t *positions)
{
    return maq_positions_of(positions, s->kind, s->stages, s->n_positions, stage);
}
