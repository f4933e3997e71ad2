/* SPDX-License-Identifier: Apache-2.0 */
/* gather_guess.c - guesses for members of a gather; gather_guess.h has the rules. */
#include "shim/nccl/gather_guess.h"
#include "shim/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

bool vg_gather_guess_open(struct vg_gather_guess *g, uint32_t n, uint64_t bytes, unsigned type)
{
    *g = (struct vg_gather_guess){.n = n, .bytes = bytes, .type = type};
    g->said = calloc(n, sizeof *g->said);
    g->said_bytes = calloc(n, sizeof *g->said_bytes);
    g->before = calloc(2 * (size_t)n, sizeof *g->before);
    g->behind = g->before ? g->before + n : NULL;
    g->object = malloc(bytes + 1);
    for (uint32_t i = 0; i < n && g->said_bytes; i++)
        g->said_bytes[i] = bytes;
    return g->said && g->said_bytes && g->before && g->object;
}

/* Of a place, given that of the next one on that side. */
static uint32_t nearest(const struct vg_gather_guess *g, uint32_t place, uint32_t of_next)
{
    return g->said[place] || !g->said[of_next] ? place : of_next;
}

void vg_gather_guess_settle(struct vg_gather_guess *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->n_said += g->said[i] != NULL;
    for (uint32_t i = 0; i < g->n; i++)
        g->before[i] = nearest(g, i, i > 0 ? g->before[i - 1] : i);
    for (uint32_t i = g->n; i-- > 0;)
        g->behind[i] = nearest(g, i, i + 1 < g->n ? g->behind[i + 1] : i);
    if (g->type == MAQ_REC_U8 && g->n_said < g->n)
        g->pattern =
            vg_pickle_pattern(&(struct vg_pickles){g->n, g->bytes, g->said, g->said_bytes, vg_card()->per_node});
}

void vg_gather_guess_close(struct vg_gather_guess *g)
{
    vg_pickle_pattern_free(g->pattern);
    free(g->object);
    free(g->before);
    free(g->said_bytes);
    free(g->said);
    *g = (struct vg_gather_guess){0};
}

static bool is_number(const struct vg_gather_guess *g, uint32_t place)
{
    return g->said[place] && g->said_bytes[place] == sizeof(int64_t) && g->bytes == sizeof(int64_t) &&
           (g->type == MAQ_REC_I64 || g->type == MAQ_REC_U64);
}

/* The place whose words are taken for those of one who has said nothing. *by_rule: it is the larger of two numbers. */
static uint32_t taken_for(const struct vg_gather_guess *g, uint32_t place, bool *by_rule)
{
    enum { FOR_NEIGHBOURS = 3 };
    const uint32_t before = g->before[place], behind = g->behind[place];
    *by_rule = g->n_said >= FOR_NEIGHBOURS && is_number(g, before) && is_number(g, behind);
    if (!*by_rule)
        return g->said[before] ? before : behind;
    int64_t x, y;
    memcpy(&x, g->said[before], sizeof x);
    memcpy(&y, g->said[behind], sizeof y);
    return y > x ? behind : before;
}

const unsigned char *vg_gather_guess_of(const struct vg_gather_guess *g, uint32_t place)
{
    bool by_rule;
    if (g->said[place])
        return g->said[place];
    if (g->pattern && vg_pickle_pattern_say(g->pattern, place, g->object, g->bytes))
        return g->object;
    return g->said[taken_for(g, place, &by_rule)];
}

/* Of one channel, whose members are asked for one after the other. */
static bool look_up(struct vg_gather_guess *g, uint64_t channel, uint32_t n, uint64_t bytes)
{
    vg_gather_guess_close(g);
    if (!vg_gather_guess_open(g, n, bytes, bytes == sizeof(int64_t) ? MAQ_REC_I64 : MAQ_REC_U8)) {
        vg_gather_guess_close(g);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const void *said = vg_contribution_any(channel, 0, i, &g->said_bytes[i]);
        g->said[i] = said && g->said_bytes[i] > 0 && g->said_bytes[i] <= bytes ? said : NULL;
    }
    vg_gather_guess_settle(g);
    return true;
}

bool vg_gather_guess_by_pattern(void *out, uint64_t channel, uint32_t n, uint32_t place, uint64_t bytes)
{
    static struct vg_gather_guess g;
    static uint64_t of;
    bool by_rule = false;
    vg_lock();
    const bool same = g.said && of == channel && g.n == n && g.bytes == bytes;
    bool found = place < n && (same || look_up(&g, channel, n, bytes)) && !g.said[place];
    of = channel;
    if (found && !(g.pattern && vg_pickle_pattern_say(g.pattern, place, out, bytes))) {
        const uint32_t who = taken_for(&g, place, &by_rule);
        found = by_rule;
        if (found)
            memcpy(out, g.said[who], sizeof(int64_t));
    }
    vg_unlock();
    return found;
}

/* The first three members, the first of the second node, one beyond the half, the last: they tell ranks, local ranks, nodes and halves apart. */
bool vg_is_sample(uint32_t n, uint32_t place)
{
    enum { FIRST = 3, BEYOND_HALF = 3 };
    return vg_card()->stops == VG_STOPS_FOR_SAMPLES &&
           (place < FIRST || place == vg_card()->per_node || place == n / 2 + BEYOND_HALF || place == n - 1);
}
