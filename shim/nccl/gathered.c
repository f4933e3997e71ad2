/* SPDX-License-Identifier: Apache-2.0 */
/* gathered.c - guesses for members of a gather; gathered.h has the rules. */
#include "shim/nccl/gathered.h"
#include "shim/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

bool vg_gathered_open(struct vg_gathered *g, uint32_t n, uint64_t bytes, unsigned type)
{
    *g = (struct vg_gathered){.n = n, .bytes = bytes, .type = type};
    g->said = calloc(n, sizeof *g->said);
    g->object = malloc(bytes + 1);
    return g->said && g->object;
}

void vg_gathered_settle(struct vg_gathered *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->n_said += g->said[i] != NULL;
    if (g->type == MAQ_REC_U8 && g->n_said < g->n)
        g->law = vg_pickle_law(&(struct vg_pickles){g->n, g->bytes, g->said, vg_card()->per_node});
}

void vg_gathered_close(struct vg_gathered *g)
{
    vg_pickle_law_free(g->law);
    free(g->object);
    free(g->said);
}

static const unsigned char *larger(const unsigned char *a, const unsigned char *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return y > x ? b : a;
}

const unsigned char *vg_gathered_of(const struct vg_gathered *g, uint32_t place)
{
    enum { FOR_NEIGHBOURS = 3 };
    if (g->said[place])
        return g->said[place];
    if (g->law && vg_pickle_law_say(g->law, place, g->object, g->bytes))
        return g->object;
    uint32_t before = place, behind = place;
    while (before > 0 && !g->said[before])
        before--;
    while (behind + 1 < g->n && !g->said[behind])
        behind++;
    const unsigned char *last = g->said[before], *next = g->said[behind];
    const bool number = g->bytes == sizeof(int64_t) && (g->type == MAQ_REC_I64 || g->type == MAQ_REC_U64);
    if (last && next && number && g->n_said >= FOR_NEIGHBOURS)
        return larger(last, next);
    return last ? last : next;
}
