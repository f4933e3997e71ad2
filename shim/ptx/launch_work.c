/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_work.c - adds up what the threads of a launch do.
 *
 * Of a warp one thread is walked, its first: products are of a warp, and lanes read next to each other. How many of the 32 read something of their own
 * is looked at once, in one warp of one block: at each instruction the mean number of distinct addresses. Of a grid up to BLOCKS_MOST blocks are
 * walked, all warps of each, evenly apart along the longest dimension, so that what grows along it (causal attention) has its mean, and along the
 * others by multiples of 0.618 and 0.755, modulo 1: a line and a plane are filled evenly by those of 1 / g where g^2 = g + 1 and g^3 = g + 1.
 *
 * Bytes that several threads of a block ask for count once. What blocks ask for in common does as well: of each instruction it is known what part of
 * the blocks asks for something of its own (block_sharing.c), and
 *
 *     bytes = sum over instructions of bytes of a block * blocks * part
 */
#include "shim/ptx/instruction.h"

#include <stdlib.h>
#include <string.h>

#include "shim/record.h"

enum { BLOCKS_MOST = 16, ALIKE = 512 };

struct sum {
    const struct vg_ptx *code;
    const struct vg_ptx_launch *launch;
    struct vg_ptx_walk walk;
    double *lanes; /* [code->n] of a warp that ask for something of their own, at each instruction; < 0: not known */
    struct vg_ptx_seen seen; /* what the block asked for so far */
    double *bytes[2];        /* [code->n] of all blocks that are walked, by instruction: read, written */
    double *part;            /* [code->n] of the blocks that ask for something of their own */
    uint32_t block[BLOCKS_MOST][3], n_blocks;
};

/* --- lanes ------------------------------------------------------------------------------------------------------------------- */

static bool walk_thread(struct sum *s, uint32_t block, uint32_t thread)
{
    const uint32_t *b = s->launch->block;
    memcpy(s->walk.block, s->block[block], sizeof s->walk.block);
    s->walk.thread[0] = thread % b[0];
    s->walk.thread[1] = thread / b[0] % b[1];
    s->walk.thread[2] = thread / b[0] / b[1];
    return vg_ptx_walk(&s->walk, s->code, s->launch);
}

static uint32_t threads_of(const struct sum *s)
{
    return s->launch->block[0] * s->launch->block[1] * s->launch->block[2];
}

/* The same access of all lanes: distinct addresses, and those that are unknown. */
static uint32_t distinct(const uint64_t *address, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool new = address[i] != UINT64_MAX; /* that: the lane has no such access */
        for (uint32_t k = 0; k < i && new &&address[i] != 0; k++)
            new = address[k] != address[i];
        sum += new;
    }
    return sum;
}

/* The first ALIKE accesses of a warp's first thread beside those of the other lanes. */
static bool look_at_lanes(struct sum *s, uint64_t (*address)[VG_PTX_LANES], uint32_t *at)
{
    const uint32_t lanes = threads_of(s) < VG_PTX_LANES ? threads_of(s) : VG_PTX_LANES;
    uint32_t n = 0;
    s->walk.enough = ALIKE;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (!walk_thread(s, 0, lane))
            return false;
        n = lane == 0 ? s->walk.n : n;
        for (uint32_t i = 0, k = 0; i < n; i++) {
            at[i] = lane == 0 ? s->walk.access[i].at : at[i];
            const bool has = k < s->walk.n && s->walk.access[k].at == at[i];
            address[i][lane] = has ? s->walk.access[k++].address : UINT64_MAX;
        }
    }
    s->walk.enough = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) { /* the mean of all accesses of an instruction, at its first */
        double sum = 0, times = 0;
        for (uint32_t k = 0; k < n && s->lanes[at[i]] < 0; k++)
            if (at[k] == at[i]) {
                sum += distinct(address[k], lanes);
                times++;
            }
        s->lanes[at[i]] = times > 0 ? sum / times : s->lanes[at[i]];
    }
    return true;
}

static bool measure_lanes(struct sum *s)
{
    uint64_t(*address)[VG_PTX_LANES] = calloc(ALIKE, sizeof *address);
    uint32_t *at = calloc(ALIKE, sizeof *at);
    for (uint32_t i = 0; i < s->code->n; i++)
        s->lanes[i] = -1;
    const bool good = address != NULL && at != NULL && look_at_lanes(s, address, at);
    free(address);
    free(at);
    return good;
}

/* --- the launch --------------------------------------------------------------------------------------------------------------- */

static bool add_access(struct sum *s, const struct vg_ptx_access *a, double lanes)
{
    bool new = true;
    if (a->address != 0 && !vg_ptx_seen(&s->seen, a->address << 1 | a->writes, 1, &new))
        return false;
    if (new)
        s->bytes[a->writes][a->at] += a->copies ? a->bytes : a->bytes * lanes;
    return true;
}

#define LINE_STEP 0.6180339887
#define PLANE_STEP 0.7548776662

static double spread(uint32_t i, double step)
{
    const double x = 0.5 + i * step;
    return x - (double)(uint64_t)x;
}

/* Which blocks are walked: all of a small grid. */
static void choose_blocks(struct sum *s, uint32_t most)
{
    const uint32_t *g = s->launch->grid;
    const double all = (double)g[0] * g[1] * g[2];
    unsigned longest = g[1] > g[0] ? 1 : 0;
    longest = g[2] > g[longest] ? 2 : longest;
    s->n_blocks = 0;
    for (uint32_t i = 0; i < most; i++) {
        uint32_t *b = s->block[s->n_blocks];
        bool again = false;
        for (unsigned d = 0; d < 3 && all > most; d++)
            b[d] = (uint32_t)(g[d] * (d == longest ? (i + 0.5) / most
                                                   : spread(i, d == (longest + 1) % 3 ? LINE_STEP : PLANE_STEP)));
        if (all <= most) {
            b[0] = i % g[0];
            b[1] = i / g[0] % g[1];
            b[2] = i / g[0] / g[1];
            again = i >= (uint32_t)all;
        }
        for (uint32_t k = 0; k < s->n_blocks && !again; k++)
            again = memcmp(s->block[k], b, sizeof s->block[k]) == 0;
        s->n_blocks += !again;
    }
}

static bool add_warp(struct sum *s, struct vg_ptx_work *out, uint32_t block, uint32_t thread)
{
    const uint32_t left = threads_of(s) - thread, lanes = left < VG_PTX_LANES ? left : VG_PTX_LANES;
    if (!walk_thread(s, block, thread))
        return false;
    const struct vg_ptx_walk *w = &s->walk;
    out->flop += w->flop;
    out->flop_after += w->flop_after;
    out->exponentials += w->exponentials * lanes;
    out->type = w->flop > 0 ? w->type : out->type;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct vg_ptx_access *a = &w->access[i];
        const double seen = s->lanes[a->at], known = seen >= 0 ? seen : VG_PTX_LANES,
                     own = known < lanes ? known : lanes;
        if (!add_access(s, a, own))
            return false;
        if (a->writes && s->launch->stored != NULL)
            s->launch->stored(s->launch->user, a->address);
    }
    return true;
}

static void finish(const struct sum *s, struct vg_ptx_work *out)
{
    const uint32_t *g = s->launch->grid;
    const double times = (double)g[0] * g[1] * g[2] / s->n_blocks;
    out->flop *= times;
    out->flop_after *= times;
    out->exponentials *= times;
    for (uint32_t i = 0; i < s->code->n; i++) {
        out->read += s->bytes[0][i] * times * s->part[i];
        out->written += s->bytes[1][i] * times * s->part[i];
    }
    out->steered = s->walk.steered;
}

/* How many blocks there is time for, by the first warp of the middle one; a long kernel has few. */
static bool count_blocks(struct sum *s, uint32_t *most)
{
    const uint64_t before = s->walk.steps, warps = (threads_of(s) + VG_PTX_LANES - 1) / VG_PTX_LANES;
    choose_blocks(s, 1);
    if (!walk_thread(s, 0, 0))
        return false;
    const uint64_t each = (s->walk.steps - before) * warps + 1, n = (VG_PTX_STEPS_ALL - s->walk.steps) / each;
    *most = n < 1 ? 1 : n < BLOCKS_MOST ? (uint32_t)n : BLOCKS_MOST;
    return true;
}

static bool add_blocks(struct sum *s, struct vg_ptx_work *out)
{
    uint32_t most;
    if (!count_blocks(s, &most))
        return false;
    choose_blocks(s, most);
    if (!measure_lanes(s))
        return false;
    for (uint32_t block = 0; block < s->n_blocks; block++) {
        vg_ptx_seen_clear(&s->seen);
        for (uint32_t thread = 0; thread < threads_of(s); thread += VG_PTX_LANES)
            if (!add_warp(s, out, block, thread))
                return false;
    }
    return true;
}

bool vg_ptx_work(struct vg_ptx_work *out, const struct vg_ptx *code, const struct vg_ptx_launch *launch)
{
    struct sum s = {.code = code, .launch = launch};
    *out = (struct vg_ptx_work){.type = MAQ_REC_TYPE_OTHER};
    s.lanes = malloc(code->n * sizeof *s.lanes);
    s.part = malloc(code->n * sizeof *s.part);
    s.bytes[0] = calloc(code->n, sizeof *s.bytes[0]);
    s.bytes[1] = calloc(code->n, sizeof *s.bytes[1]);
    bool good = s.lanes != NULL && s.part != NULL && s.bytes[0] != NULL && s.bytes[1] != NULL &&
                vg_ptx_walk_begin(&s.walk, code);
    good = good && vg_ptx_sharing(s.part, &s.walk, code, launch) && add_blocks(&s, out);
    if (good)
        finish(&s, out);
    vg_ptx_walk_end(&s.walk);
    vg_ptx_seen_free(&s.seen);
    free(s.lanes);
    free(s.part);
    free(s.bytes[0]);
    free(s.bytes[1]);
    return good;
}
