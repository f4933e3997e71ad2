/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_rules.c - what distinguishes the kinds of groups: which tokens they let go, how a prefix is found in them, and which of their
 * blocks are worth keeping for one.
 *
 * A window of w tokens behind c computed ones needs the last w - 1 of them for the next token, so the prefix of a WINDOW group is
 * found from its end: the rightmost run of ceil((w - 1) / block) cached blocks, or a shorter one at the very beginning. Of a STATE group
 * one block is enough. Between full blocks of all groups only every `step` tokens can be the end of a prefix.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/kv/kv_cache.h"

static int64_t blocks_of(int64_t tokens, int64_t block)
{
    return (tokens + block - 1) / block;
}

uint64_t maq_kv_key(uint64_t hash, uint32_t group)
{
    uint64_t key = hash ^ (uint64_t)group * 0x9e3779b97f4a7c15u;
    return key > MAQ_KV_OWN ? key : key + MAQ_KV_OWN + 1;
}

#define AHEAD 8 /* blocks */

void maq_kv_expect(const struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t group, int64_t i,
                   int64_t per_hash)
{
    int64_t soon = (i + 1 + AHEAD) * per_hash - 1, sooner = (i + 1 + AHEAD / 2) * per_hash - 1;
    if (soon < r->n_hashes)
        maq_block_pool_expect(&c->pool, maq_kv_key(r->hashes[soon], group), maq_kv_key(r->hashes[sooner], group));
}

int64_t maq_kv_skipped(const struct maq_kv_group *g, int64_t computed)
{
    int64_t skipped = 0;
    switch ((enum maq_kv_kind)g->kind) {
    case MAQ_KV_FULL:
        break;
    case MAQ_KV_WINDOW:
        skipped = computed - g->window + 1;
        break;
    case MAQ_KV_CHUNK:
        skipped = computed / g->window * g->window;
        break;
    case MAQ_KV_STATE:
        skipped = computed - 1;
        break;
    }
    return skipped > 0 ? skipped : 0;
}

int64_t maq_kv_cap(const struct maq_kv_group *g, int64_t in_flight, int64_t max_len)
{
    if (g->kind != MAQ_KV_WINDOW && g->kind != MAQ_KV_CHUNK)
        return 0;
    int64_t held = g->window + in_flight - (g->kind == MAQ_KV_WINDOW ? 1 : 0);
    return blocks_of(held < max_len ? held : max_len, g->block_size) + (g->kind == MAQ_KV_WINDOW ? 1 : 0);
}

/* ---- finding a prefix ---- */

struct search {
    struct maq_kv_cache *cache;
    const struct maq_kv_request *request;
    uint32_t first; /* group */
    int32_t block, per_hash;
    int64_t n_blocks; /* that the request's hashes cover */
    bool unaligned;   /* a block can end where no prefix can */
};

/* Looks for block i in all groups that are searched together and puts it at place `to` of their hits. */
static bool take_cached(const struct search *s, int64_t i, int64_t to)
{
    struct maq_kv_cache *c = s->cache;
    uint64_t hash = s->request->hashes[(i + 1) * s->per_hash - 1];
    maq_kv_expect(c, s->request, s->first, i, s->per_hash);
    uint32_t found[MAQ_KV_MOST_GROUPS];
    for (uint32_t g = s->first; g < c->n_groups; g++)
        if (c->alike[g] == s->first) {
            found[g] = maq_block_pool_find(&c->pool, maq_kv_key(hash, g));
            if (found[g] == MAQ_KV_NO_BLOCK)
                return false;
        }
    for (uint32_t g = s->first; g < c->n_groups; g++)
        if (c->alike[g] == s->first)
            c->hit[g].block[to] = found[g];
    return true;
}

static void clear(const struct search *s, int64_t from, int64_t to)
{
    for (uint32_t g = s->first; g < s->cache->n_groups; g++)
        if (s->cache->alike[g] == s->first)
            for (int64_t i = from; i < to; i++)
                s->cache->hit[g].block[i] = MAQ_KV_NO_BLOCK;
}

static int64_t end_at(const struct search *s, int64_t blocks)
{
    for (uint32_t g = s->first; g < s->cache->n_groups; g++)
        if (s->cache->alike[g] == s->first)
            s->cache->hit[g].n = (uint32_t)blocks;
    return blocks * s->block;
}

static int64_t aligned(const struct search *s, int64_t blocks)
{
    return blocks * s->block / s->cache->step * s->cache->step / s->block;
}

static int64_t find_full(const struct search *s, int64_t most, bool drop)
{
    int64_t n = 0;
    while (n < most && take_cached(s, n, n))
        n++;
    if (drop && n > 0)
        n--;
    return end_at(s, aligned(s, n));
}

static int64_t find_window(const struct search *s, int64_t most, bool drop)
{
    const struct maq_kv_group *g = &s->cache->group[s->first];
    int64_t run = 0, needed = blocks_of(g->window - 1, s->block) + (drop ? 1 : 0), n = -1;
    clear(s, 0, most);
    for (int64_t i = most - 1; i >= 0 && n < 0; i--) {
        int64_t ends = drop ? i : i + 1;
        if (!take_cached(s, i, i)) {
            run = 0;
            continue;
        }
        if (run == 0 && s->unaligned && ends * s->block % s->cache->step != 0) {
            clear(s, i, i + 1);
            continue;
        }
        if (++run >= needed)
            n = i + run;
    }
    if (n < 0) /* a shorter run at the very beginning is a prefix as well */
        n = aligned(s, run);
    if (drop && n > 0)
        n = aligned(s, n - 1);
    return end_at(s, n);
}

static int64_t find_chunk(const struct search *s, int64_t most, int64_t tokens)
{
    int64_t n = tokens / s->cache->group[s->first].window * s->cache->group[s->first].window / s->block;
    clear(s, 0, n);
    while (n < most && take_cached(s, n, n))
        n++;
    return end_at(s, n);
}

static int64_t find_state(const struct search *s, int64_t most)
{
    for (int64_t i = most - 1; i >= 0; i--)
        if ((!s->unaligned || (i + 1) * s->block % s->cache->step == 0) && take_cached(s, i, i)) {
            clear(s, 0, i);
            return end_at(s, i + 1);
        }
    return end_at(s, 0);
}

static bool room_for_hits(struct maq_kv_cache *c, uint32_t first, int64_t n)
{
    for (uint32_t g = first; g < c->n_groups; g++) {
        if (c->alike[g] != first || c->hit[g].size >= n)
            continue;
        uint32_t size = (uint32_t)n + 64, *p = maq__realloc(c->hit[g].block, size * sizeof *p);
        if (!p)
            return false;
        c->hit[g].block = p;
        c->hit[g].size = size;
    }
    return true;
}

int64_t maq_kv_find_alike(struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t first, int64_t most,
                          bool drop)
{
    const struct maq_kv_group *g = &c->group[first];
    struct search s = {.cache = c, .request = r, .first = first, .block = g->block_size};
    s.per_hash = g->block_size / c->hash_block;
    s.n_blocks = r->n_hashes / (uint32_t)s.per_hash;
    s.unaligned = g->block_size != c->step;
    int64_t blocks = most / s.block;
    if (blocks > s.n_blocks)
        blocks = s.n_blocks;
    if (!room_for_hits(c, first, most / s.block)) {
        c->failed = true;
        return end_at(&s, 0);
    }
    switch ((enum maq_kv_kind)g->kind) {
    case MAQ_KV_FULL:
        return find_full(&s, blocks, drop);
    case MAQ_KV_WINDOW:
        return find_window(&s, blocks, drop);
    case MAQ_KV_CHUNK:
        return find_chunk(&s, blocks, most);
    case MAQ_KV_STATE:
        return find_state(&s, blocks);
    }
    return 0;
}

/* ---- keeping ---- */

bool maq_kv_reachable(const struct maq_kv_cache *c, const struct maq_kv_group *g, int64_t i)
{
    if (g->kind != MAQ_KV_WINDOW)
        return true;
    int64_t needed = blocks_of(g->window - 1, g->block_size) + (c->drops_last ? 1 : 0),
            per_step = c->step / g->block_size;
    int64_t shift = c->drops_last ? 1 : 0;
    return needed >= per_step || (i >= shift && (i - shift) % per_step >= per_step - needed);
}
