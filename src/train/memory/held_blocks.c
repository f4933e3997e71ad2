/* SPDX-License-Identifier: Apache-2.0 */
/* held_blocks.c - keeps blocks in an array that doubles, and gives them back in the order in which they were taken. */
#include "train/memory/held_blocks.h"

#include <stdlib.h>

bool maq_hold_block(struct maq_held_blocks *h, uint32_t block)
{
    if (block == 0)
        return true;
    if (h->n == h->room) {
        uint32_t room = h->room ? 2 * h->room : 64;
        uint32_t *more = realloc(h->blocks, room * sizeof *more);
        if (!more)
            return false;
        h->blocks = more;
        h->room = room;
    }
    h->blocks[h->n++] = block;
    return true;
}

bool maq_hold(struct maq_held_blocks *h, struct maq_allocator *a, uint32_t stream, double bytes)
{
    if (bytes <= 0)
        return true;
    uint32_t block = maq_allocator_alloc(a, stream, bytes);
    return block != 0 && maq_hold_block(h, block);
}

void maq_let_go(struct maq_held_blocks *h, struct maq_allocator *a)
{
    for (uint32_t i = 0; i < h->n; i++)
        maq_allocator_release(a, h->blocks[i]);
    free(h->blocks);
    *h = (struct maq_held_blocks){0};
}
