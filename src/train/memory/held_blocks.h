/* SPDX-License-Identifier: Apache-2.0 */
/* held_blocks.h - blocks of a caching allocator that are given back together. */
#ifndef MAQ_TRAIN_MEMORY_HELD_BLOCKS_H
#define MAQ_TRAIN_MEMORY_HELD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/allocator.h"

struct maq_held_blocks {
    uint32_t *blocks;
    uint32_t n, room;
};

/* Takes a block on a stream and adds it; with no bytes, nothing. False when out of memory. */
bool maq_hold(struct maq_held_blocks *held, struct maq_allocator *a, uint32_t stream, double bytes);
/* Adds a block that was taken before; 0 is none. */
bool maq_hold_block(struct maq_held_blocks *held, uint32_t block);
/* Gives all of them back, first to last, and frees the list. */
void maq_let_go(struct maq_held_blocks *held, struct maq_allocator *a);

#endif
