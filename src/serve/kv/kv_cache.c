/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache.c - finding prefixes over all groups, giving blocks to requests and taking them back.
 *
 * A request that is taken in holds the blocks of the prefix that was found, then new ones. Free blocks among those that were found
 * leave the queue as new ones do, so they count when it is asked whether there are enough.
 */
#include "serve/kv/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/gcd.h"

/* ---- construction ---- */

static bool same_rules(const struct maq_kv_group *a, const struct maq_kv_group *b)
{
    return a->kind == b->kind && a->block_size == b->block_size && a->window == b->window && a->spare == b->spare;
}

/* Groups of equal rules are searched together, under the number of the first of them; those of kind FULL before others. */
static void order_groups(struct maq_kv_cache *c)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        uint32_t first = 0;
        while (!same_rules(&c->group[first], &c->group[g]))
            first++;
        c->alike[g] = (uint8_t)first;
    }
    for (int full = 1; full >= 0; full--)
        for (uint32_t g = 0; g < c->n_groups; g++)
            if (c->alike[g] == g && (c->group[g].kind == MAQ_KV_FULL) == (full != 0))
                c->order[c->n_kinds++] = (uint8_t)g;
}

enum maq_status maq_kv_init(struct maq_kv_cache *c, const struct maq_kv_options *o)
{
    MAQ_ASSERT(o->n_groups >= 1 && o->n_groups <= MAQ_KV_MOST_GROUPS);
    *c = (struct maq_kv_cache){.n_groups = o->n_groups,
                               .caching = o->caching,
                               .drops_last = o->drops_last,
                               .hash_ahead = o->hash_ahead,
                               .hash_all = o->hash_all,
                               .max_len = o->max_len,
                               .watermark = (uint32_t)(o->watermark * o->blocks)};
    for (uint32_t g = 0; g < o->n_groups; g++) {
        c->group[g] = o->groups[g];
        c->forgets |= o->groups[g].kind != MAQ_KV_FULL;
        c->cap[g] = maq_kv_cap(&o->groups[g], o->in_flight, o->max_len);
        int32_t block = o->groups[g].block_size;
        c->hash_block = g == 0 ? block : (int32_t)maq_gcd(c->hash_block, block);
        c->step = g == 0 ? block : c->step / (int32_t)maq_gcd(c->step, block) * block;
    }
    order_groups(c);
    c->counted = o->counts && c->n_groups == 1 && !c->forgets && !c->hash_all;
    return maq_block_pool_init(&c->pool, o->blocks, o->caching);
}

void maq_kv_fini(struct maq_kv_cache *c)
{
    for (uint32_t g = 0; g < c->n_groups; g++)
        free(c->hit[g].block);
    free(c->scratch);
    maq_block_pool_fini(&c->pool);
    *c = (struct maq_kv_cache){0};
}

/* ---- blocks without numbers ---- */

static bool grow(struct maq_kv_cache *c, struct maq_kv_table *t, int64_t n)
{
    if (n <= t->size || c->counted)
        return true;
    uint32_t size = (uint32_t)(n + n / 2 + 8), *p = maq__realloc(t->block, size * sizeof *p);
    if (!p) {
        c->failed = true;
        return false;
    }
    t->block = p;
    t->size = size;
    return true;
}

/* Blocks until a table has n. */
static void take(struct maq_kv_cache *c, struct maq_kv_table *t, int64_t n)
{
    if (c->counted && t->n < n) {
        MAQ_ASSERT(n - t->n <= c->pool.n_free);
        c->pool.n_free -= (uint32_t)(n - t->n);
        t->n = (uint32_t)n;
    }
    while (t->n < n)
        t->block[t->n++] = maq_block_pool_take(&c->pool);
}

static void number_request(struct maq_kv_cache *c, struct maq_kv_request *r)
{
    struct maq_kv_table *t = r->table;
    uint32_t n = t ? t->n : 0;
    if (n == 0)
        return;
    t->n = 0;
    if (!grow(c, t, n))
        return;
    take(c, t, n);
    for (int32_t i = 0; i < t->cached; i++)
        maq_block_pool_mark_own(&c->pool, t->block[i]);
}

/* From now on blocks have numbers. Which ones makes no difference: nobody has looked for any, and those that are free are alike. */
static void number(struct maq_kv_cache *c)
{
    c->counted = false;
    c->pool.n_free = c->pool.n - 1;
    c->each(c->user, number_request);
}

int64_t maq_kv_held(const struct maq_kv_cache *c, const struct maq_kv_request *r)
{
    int64_t blocks = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_kv_table *t = &r->table[g];
        for (uint32_t i = 0; i < t->n; i++)
            blocks += c->counted || t->block[i] != MAQ_KV_NO_BLOCK;
    }
    return blocks;
}

/* ---- requests ---- */

bool maq_kv_request_begin(struct maq_kv_cache *c, struct maq_kv_request *r, const struct maq_content *content)
{
    if (!r->table)
        r->table = maq__calloc(c->n_groups * sizeof *r->table);
    if (!r->table)
        return false;
    r->content = *content;
    r->n_hashes = 0;
    r->n_shared = (uint32_t)((uint64_t)content->n_prefix * content->unit / (uint32_t)c->hash_block);
    /* what it gave back on its way may still be there when it is preempted */
    r->comes_back = c->forgets || c->hash_all;
    if (c->counted && r->n_shared > 0)
        number(c);
    for (uint32_t g = 0; g < c->n_groups; g++) {
        r->table[g].n = 0;
        r->table[g].cached = -1;
    }
    return true;
}

void maq_kv_request_fini(const struct maq_kv_cache *c, struct maq_kv_request *r)
{
    for (uint32_t g = 0; r->table && g < c->n_groups; g++)
        free(r->table[g].block);
    free(r->table);
    free(r->hashes);
    *r = (struct maq_kv_request){0};
}

/* ---- prefixes ---- */

static uint64_t hash_of(const struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t i)
{
    int64_t first = (int64_t)i * c->hash_block;
    uint64_t h = maq_content_hash(&r->content, i > 0 ? r->hashes[i - 1] : 0, first, c->hash_block);
    if (c->hash_ahead > 0)
        h = (h ^ maq_content_page(&r->content, first + c->hash_block, c->hash_ahead)) * 0x9e3779b97f4a7c15u;
    return h ? h : 1;
}

/* Full blocks of the first `tokens` tokens that have as many behind them as hashes cover. */
static uint32_t hashable(const struct maq_kv_cache *c, int64_t tokens)
{
    return tokens > c->hash_ahead ? (uint32_t)((tokens - c->hash_ahead) / c->hash_block) : 0;
}

/* Their hashes, of those that somebody could look for. */
static bool hash_up_to(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t tokens)
{
    uint32_t n = hashable(c, tokens);
    n = r->comes_back || n < r->n_shared ? n : r->n_shared;
    if (n > r->hash_size) {
        uint32_t size = n + n / 2 + 16;
        uint64_t *p = maq__realloc(r->hashes, size * sizeof *p);
        if (!p) {
            c->failed = true;
            return false;
        }
        r->hashes = p;
        r->hash_size = size;
    }
    for (; r->n_hashes < n; r->n_hashes++)
        r->hashes[r->n_hashes] = hash_of(c, r, r->n_hashes);
    return true;
}

bool maq_kv_hash_up_to(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t tokens)
{
    return hash_up_to(c, r, tokens);
}

/*
 * Each kind of group accepts the length that the others left or shortens it, until none does. A group that drops its last block looks
 * one block further to do so, and only once at a length.
 */
static int64_t agree(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t most)
{
    bool simple = c->n_kinds == 2 && c->group[c->order[0]].kind == MAQ_KV_FULL, seen_full[MAQ_KV_MOST_GROUPS] = {false};
    bool dropped[MAQ_KV_MOST_GROUPS] = {false};
    int64_t length = most, full[MAQ_KV_MOST_GROUPS] = {0};
    for (;;) {
        int64_t now = length;
        for (uint32_t k = 0; k < c->n_kinds; k++) {
            uint32_t g = c->order[k];
            const struct maq_kv_group *group = &c->group[g];
            if (group->kind == MAQ_KV_FULL && seen_full[k]) { /* of a prefix that is found all shorter ones are */
                now = full[k] < now ? full[k] : now;
                continue;
            }
            bool drop = c->drops_last && !dropped[k];
            int64_t reach = now, known = (int64_t)r->n_hashes * c->hash_block;
            if (drop && group->kind != MAQ_KV_STATE)
                reach = now + group->block_size < known ? now + group->block_size : known;
            int64_t found = maq_kv_find_alike(c, r, g, reach, drop);
            if (drop)
                dropped[k] = true;
            else if (found < now)
                memset(dropped, 0, sizeof dropped);
            now = found;
            seen_full[k] = true;
            full[k] = found;
        }
        if (now >= length)
            return length;
        length = now;
        if (simple)
            return length;
    }
}

int64_t maq_kv_find(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t tokens, int64_t most)
{
    for (uint32_t g = 0; g < c->n_groups; g++)
        c->hit[g].n = 0;
    if (!c->caching || !hash_up_to(c, r, tokens))
        return 0;
    if (c->n_groups == 1)
        return maq_kv_find_alike(c, r, 0, most, c->drops_last);
    int64_t length = agree(c, r, most);
    for (uint32_t g = 0; g < c->n_groups; g++) {
        int64_t blocks = (length + c->group[g].block_size - 1) / c->group[g].block_size;
        if (c->group[g].kind == MAQ_KV_FULL && c->hit[g].n > blocks)
            c->hit[g].n = (uint32_t)blocks;
    }
    return length;
}

static void mark(struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t g, int64_t block, int64_t per_hash)
{
    int64_t hash = (block + 1) * per_hash - 1;
    if (hash < r->n_hashes)
        maq_block_pool_mark(&c->pool, r->table[g].block[block], maq_kv_key(r->hashes[hash], g));
    else
        maq_block_pool_mark_own(&c->pool, r->table[g].block[block]);
}

/* Of one group, which is most of what is asked: no block has become full. */
static bool nothing_new(const struct maq_kv_cache *c, const struct maq_kv_request *r, int64_t computed)
{
    return c->n_groups == 1 && computed < ((int64_t)r->table[0].cached + 1) * c->group[0].block_size;
}

void maq_kv_keep(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t computed, int64_t tokens)
{
    if (!c->caching || nothing_new(c, r, computed) || !hash_up_to(c, r, tokens))
        return;
    int64_t hashed = (int64_t)hashable(c, tokens) * c->hash_block;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_kv_group *group = &c->group[g];
        struct maq_kv_table *t = &r->table[g];
        int64_t keep = computed, per_hash = group->block_size / c->hash_block;
        if (c->n_groups > 1) {
            keep = computed / c->step * c->step;
            if (c->drops_last && keep > 0) /* one block more is looked at and dropped again */
                keep = keep + group->block_size < computed ? keep + group->block_size : computed;
        }
        int64_t full = (keep < hashed ? keep : hashed) / group->block_size, i = t->cached > 0 ? t->cached : 0;
        if (i >= full)
            continue;
        for (; !c->counted && i < full; i++) {
            maq_kv_expect(c, r, g, i, per_hash);
            if (t->block[i] != MAQ_KV_NO_BLOCK && maq_kv_reachable(c, group, i))
                mark(c, r, g, i, per_hash);
        }
        t->cached = (int32_t)full;
    }
}

/* ---- giving and taking blocks ---- */

static uint32_t *scratch(struct maq_kv_cache *c, uint32_t n)
{
    if (n > c->scratch_size) {
        uint32_t *p = maq__realloc(c->scratch, ((size_t)n + 256) * sizeof *p);
        if (!p) {
            c->failed = true;
            return NULL;
        }
        c->scratch = p;
        c->scratch_size = n + 256;
    }
    return c->scratch;
}

/* Gives back what a request no longer looks at, from the last such block to the first that still is one. */
static void give_back_skipped(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t computed)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        struct maq_kv_table *t = &r->table[g];
        int64_t blocks = maq_kv_skipped(&c->group[g], computed) / c->group[g].block_size;
        uint32_t n = 0, *back;
        blocks = blocks < t->n ? blocks : t->n;
        if (blocks == 0 || t->block[blocks - 1] == MAQ_KV_NO_BLOCK || !(back = scratch(c, (uint32_t)blocks)))
            continue;
        for (int64_t i = blocks - 1; i >= 0 && t->block[i] != MAQ_KV_NO_BLOCK; i--) {
            back[n++] = t->block[i];
            t->block[i] = MAQ_KV_NO_BLOCK;
        }
        maq_block_pool_release(&c->pool, back, n);
    }
}

/* Slots of a group that a request of `tokens` tokens needs: recurrent states have some to spare. */
static int64_t blocks_for(const struct maq_kv_group *g, int64_t tokens)
{
    return (tokens + g->block_size - 1) / g->block_size + (g->kind == MAQ_KV_STATE ? g->spare : 0);
}

/* Blocks that leave the queue when the request gets slots for `slots` tokens, `computed` of them computed. */
static int64_t blocks_needed(const struct maq_kv_cache *c, const struct maq_kv_request *r, int64_t slots,
                             int64_t computed, bool hits, bool capped)
{
    int64_t sum = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_kv_table *t = &r->table[g];
        int64_t all = blocks_for(&c->group[g], slots), held = t->n, n = hits ? c->hit[g].n : 0;
        if (capped && c->cap[g] > 0 && all > c->cap[g])
            all = c->cap[g];
        if (t->cached >= 0) {
            sum += all > held ? all - held : 0;
            continue;
        }
        int64_t skipped = maq_kv_skipped(&c->group[g], computed) / c->group[g].block_size;
        int64_t have = held + n > skipped ? held + n : skipped;
        sum += all > have ? all - have : 0;
        for (int64_t i = skipped > held ? skipped - held : 0; i < n; i++) {
            uint32_t block = c->hit[g].block[i];
            sum += block != MAQ_KV_NO_BLOCK && c->pool.at[block].refs == 0;
        }
    }
    return sum;
}

/* The request holds what was found; of a window, what still lies in it. */
static bool take_hits(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t computed)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        struct maq_kv_table *t = &r->table[g];
        uint32_t n = c->hit[g].n;
        int64_t skipped = maq_kv_skipped(&c->group[g], computed) / c->group[g].block_size;
        int64_t all = skipped > n ? skipped : n;
        if (!grow(c, t, all))
            return false;
        for (int64_t i = 0; i < all; i++) {
            t->block[i] = i < skipped ? MAQ_KV_NO_BLOCK : c->hit[g].block[i];
            maq_block_pool_hold(&c->pool, t->block[i]);
        }
        t->n = (uint32_t)all;
        t->cached = (int32_t)all;
    }
    return true;
}

/* Of one group, which is most of what is asked: a request that runs, and that its last block has room for. */
static bool has_room_already(const struct maq_kv_cache *c, const struct maq_kv_request *r,
                             const struct maq_kv_need *need, int64_t slots)
{
    return c->n_groups == 1 && !c->forgets && r->table[0].cached >= 0 && need->found == 0 && !need->whole_fits &&
           !need->keeps_free && need->spared == 0 && !need->filled_later &&
           slots <= (int64_t)r->table[0].n * c->group[0].block_size;
}

bool maq_kv_allocate(struct maq_kv_cache *c, struct maq_kv_request *r, const struct maq_kv_need *need)
{
    int64_t computed = need->computed + need->found, headroom = need->keeps_free ? c->watermark : 0;
    int64_t total = computed < c->max_len ? computed : c->max_len;
    bool hits = need->found > 0;
    int64_t slots = total + need->added + need->ahead;
    slots = slots < c->max_len ? slots : c->max_len;
    if (has_room_already(c, r, need, slots)) {
        maq_kv_keep(c, r, total + need->added < need->tokens ? total + need->added : need->tokens, need->tokens);
        return true;
    }
    /* what others compute is not asked for where nobody will look at it */
    int64_t behind = need->filled_later ? slots : computed;
    if (need->whole_fits) {
        int64_t whole = need->tokens < c->max_len ? need->tokens : c->max_len;
        if (blocks_needed(c, r, whole, need->filled_later ? behind : total, hits, true) + headroom > c->pool.n_free)
            return false;
    }
    if (c->forgets)
        give_back_skipped(c, r, total - need->in_flight);
    if (blocks_needed(c, r, slots, behind, hits, false) + headroom + need->spared > c->pool.n_free)
        return false;
    if ((hits || need->filled_later) && !take_hits(c, r, behind))
        return false;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        struct maq_kv_table *t = &r->table[g];
        int64_t all = blocks_for(&c->group[g], slots);
        if (!grow(c, t, all))
            return false;
        take(c, t, all);
    }
    int64_t done = total + need->added;
    if (need->filled_later)
        return true;
    maq_kv_keep(c, r, done < need->tokens ? done : need->tokens, need->tokens);
    return true;
}

void maq_kv_trim(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t computed)
{
    give_back_skipped(c, r, computed);
}

bool maq_kv_extend(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t n)
{
    struct maq_kv_table *t = &r->table[0];
    if (!grow(c, t, n))
        return false;
    take(c, t, n);
    return true;
}

void maq_kv_release(struct maq_kv_cache *c, struct maq_kv_request *r)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        struct maq_kv_table *t = &r->table[g];
        uint32_t n = 0, *back = c->counted ? NULL : scratch(c, t->n);
        c->pool.n_free += c->counted ? t->n : 0;
        for (uint32_t i = t->n; back && i-- > 0;)
            back[n++] = t->block[i];
        if (back)
            maq_block_pool_release(&c->pool, back, n);
        t->n = 0;
        t->cached = -1;
    }
}

void maq_kv_preempt(struct maq_kv_cache *c, struct maq_kv_request *r, int64_t tokens)
{
    bool own = c->caching && !r->comes_back;
    if (c->counted && c->caching)
        number(c);
    r->comes_back = true;
    if (own && hash_up_to(c, r, tokens))
        for (uint32_t g = 0; g < c->n_groups; g++)
            for (int64_t i = 0; i < r->table[g].cached; i++)
                if (c->pool.at[r->table[g].block[i]].key == MAQ_KV_OWN)
                    mark(c, r, g, i, c->group[g].block_size / c->hash_block);
    maq_kv_release(c, r);
}
