/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_sharing.c - what blocks of a launch ask for in common: the weights of a norm, the tiles of a product's inputs.
 *
 * The first thread of many blocks is walked up to its first accesses, and of each instruction the first address is looked at: how many are there, of
 * so many blocks? In a grid of more blocks than are walked there are others yet; those who estimate how many species there are by how many were
 * seen once and twice have the same question (Chao, "Nonparametric estimation of the number of classes in a population", 1984):
 *
 *     distinct = seen + once^2 / (2 twice)        at most one for each block; and that, where none was seen twice
 */
#include "shim/ptx/instruction.h"

#include <stdlib.h>
#include <string.h>

#include "shim/record.h"

enum { BLOCKS_MOST = 1024, ACCESSES = 128 };

/* Block i of n: evenly apart, and not in step with any dimension of the grid. */
static void choose(uint32_t block[3], uint32_t i, uint32_t n, const uint32_t grid[3])
{
    const uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
    const uint64_t from = all * i / n, to = all * (i + 1) / n;
    const uint64_t at = from + maq_rec_mix(i, n) % (to - from);
    block[0] = (uint32_t)(at % grid[0]);
    block[1] = (uint32_t)(at / grid[0] % grid[1]);
    block[2] = (uint32_t)(at / grid[0] / grid[1]);
}

/* The first address of each instruction that has one. */
static bool look(struct vg_ptx_seen *seen, uint32_t *walked, const struct vg_ptx_walk *w)
{
    bool first;
    for (uint32_t k = 0; k < w->n; k++) {
        const struct vg_ptx_access *a = &w->access[k];
        bool again = a->address == 0;
        for (uint32_t j = 0; j < k && !again; j++)
            again = w->access[j].at == a->at;
        if (again)
            continue;
        if (!vg_ptx_seen(seen, a->address, a->at, &first))
            return false;
        walked[a->at]++;
    }
    return true;
}

static bool look_at_blocks(struct vg_ptx_seen *seen, uint32_t *walked, struct vg_ptx_walk *w, const struct vg_ptx *code,
                           const struct vg_ptx_launch *l)
{
    const double all = (double)l->grid[0] * l->grid[1] * l->grid[2];
    const uint32_t n = all < BLOCKS_MOST ? (uint32_t)all : BLOCKS_MOST;
    bool good = true;
    memset(w->thread, 0, sizeof w->thread);
    w->enough = ACCESSES;
    for (uint32_t i = 0; i < n && good; i++) {
        choose(w->block, i, n, l->grid);
        good = vg_ptx_walk(w, code, l) && look(seen, walked, w);
        if (w->steps > VG_PTX_STEPS_ALL / 4) /* long ones: what was seen has to do */
            break;
    }
    w->enough = UINT32_MAX;
    return good;
}

/* Of an instruction: how many addresses came, and how many of these once and twice. */
struct counts {
    uint32_t seen, times[2];
};

static double part_of(const struct counts *c, uint32_t walked, double blocks)
{
    const double seen = c->seen, once = c->times[0], twice = c->times[1];
    if (walked <= 1 || seen == 0)
        return 1;
    if (walked >= blocks)
        return seen / walked;
    const double distinct = once == 0 ? seen : twice > 0 ? seen + once * once / (2 * twice) : blocks;
    return distinct < blocks ? distinct / blocks : 1;
}

bool vg_ptx_sharing(double *part, struct vg_ptx_walk *w, const struct vg_ptx *code, const struct vg_ptx_launch *l)
{
    struct vg_ptx_seen seen = {.at = NULL};
    struct counts *counts = calloc(code->n, sizeof *counts);
    uint32_t *walked = calloc(code->n, sizeof *walked);
    const bool good = counts != NULL && walked != NULL && look_at_blocks(&seen, walked, w, code, l);
    for (uint32_t i = 0; good && i < seen.room; i++) {
        const struct vg_ptx_seen_number *a = &seen.at[i];
        if (a->key == 0)
            continue;
        counts[a->who].seen++;
        if (a->times <= 2)
            counts[a->who].times[a->times - 1]++;
    }
    for (uint32_t i = 0; good && i < code->n; i++)
        part[i] = part_of(&counts[i], walked[i], (double)l->grid[0] * l->grid[1] * l->grid[2]);
    free(counts);
    free(walked);
    vg_ptx_seen_free(&seen);
    return good;
}
