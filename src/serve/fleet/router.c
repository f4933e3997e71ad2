/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - policies of a router. */
#include "serve/fleet/router.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "serve/kv/content.h"

#define IMBALANCE_REQUESTS 64
#define IMBALANCE_RATIO 1.5
#define PREFIX_SHARE 0.3

const char *maq_router_name(enum maq_router router)
{
    static const char *const names[MAQ_ROUTER_COUNT] = {
#define NAME(id, name, what) [MAQ_ROUTER_##id] = name,
        MAQ_ROUTER_LIST(NAME)
#undef NAME
    };
    return (unsigned)router < MAQ_ROUTER_COUNT ? names[router] : "unknown";
}

const char *maq_kv_transfer_name(enum maq_kv_transfer transfer)
{
    static const char *const names[MAQ_KV_TRANSFER_COUNT] = {
#define NAME(id, name, what) [MAQ_KV_TRANSFER_##id] = name,
        MAQ_KV_TRANSFER_LIST(NAME)
#undef NAME
    };
    return (unsigned)transfer < MAQ_KV_TRANSFER_COUNT ? names[transfer] : "unknown";
}

/* ---- prefixes ---- */

/* Of the first `names` names of a request, from the key of one fewer. */
static uint64_t key_of(const struct maq_routing *r, const struct maq_request *q, uint64_t fewer, uint32_t names)
{
    const struct maq_content c = {q->prefix, q->n_prefix, r->requests->prefix_unit, 0, q->adapter};
    return maq_content_hash(&c, fewer, (int64_t)(names - 1) * c.unit, (int32_t)c.unit);
}

static uint32_t place_of(const struct maq_prefix_marks *p, uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 20) & (p->size - 1);
    while (p->key[i] != 0 && p->key[i] != key)
        i = (i + 1) & (p->size - 1);
    return i;
}

static bool marks_grow(struct maq_prefix_marks *p)
{
    struct maq_prefix_marks old = *p;
    if (p->n * 2 < p->size)
        return true;
    p->size = old.size ? old.size * 2 : 1024;
    p->key = maq__calloc(p->size * sizeof *p->key);
    p->marks = maq__calloc((size_t)p->size * p->words * sizeof *p->marks);
    if (!p->key || !p->marks) {
        free(p->key);
        free(p->marks);
        *p = old;
        return false;
    }
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.key[i] == 0)
            continue;
        uint32_t to = place_of(p, old.key[i]);
        p->key[to] = old.key[i];
        for (uint32_t w = 0; w < p->words; w++)
            p->marks[(size_t)to * p->words + w] = old.marks[(size_t)i * p->words + w];
    }
    free(old.key);
    free(old.marks);
    return true;
}

/* Names that some replica was sent in one piece, from the first on; both[] says which were sent that many. */
static uint32_t longest_match(struct maq_routing *r, const struct maq_request *q)
{
    struct maq_prefix_marks *p = &r->prefixes;
    uint64_t key = 0;
    for (uint32_t i = 0; i < q->n_prefix; i++) {
        key = key_of(r, q, key, i + 1);
        uint32_t at = p->size > 0 ? place_of(p, key) : 0;
        uint64_t any = 0;
        for (uint32_t w = 0; w < p->words && p->size > 0 && p->key[at] != 0; w++)
            any |= (i == 0 ? UINT64_MAX : p->both[w]) & p->marks[(size_t)at * p->words + w];
        if (any == 0)
            return i;
        for (uint32_t w = 0; w < p->words; w++)
            p->both[w] = (i == 0 ? UINT64_MAX : p->both[w]) & p->marks[(size_t)at * p->words + w];
    }
    return q->n_prefix;
}

static bool mark(struct maq_routing *r, const struct maq_request *q, uint32_t replica)
{
    struct maq_prefix_marks *p = &r->prefixes;
    uint64_t key = 0;
    for (uint32_t i = 0; i < q->n_prefix; i++) {
        if (!marks_grow(p))
            return false;
        key = key_of(r, q, key, i + 1);
        uint32_t at = place_of(p, key);
        p->n += p->key[at] == 0;
        p->key[at] = key;
        p->marks[(size_t)at * p->words + replica / 64] |= (uint64_t)1 << replica % 64;
    }
    return true;
}

/* ---- loads ---- */

static bool takes(const struct maq_routing *r, uint32_t replica)
{
    return !(r->away && r->away[replica]) &&
           (r->max_requests == 0 || r->engines[replica].outstanding < r->max_requests);
}

bool maq_routing_takes(const struct maq_routing *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (takes(r, i))
            return true;
    return false;
}

/* This one, or the next one behind it that takes requests. */
static uint32_t next_that_takes(const struct maq_routing *r, uint32_t replica)
{
    while (!takes(r, replica))
        replica = (replica + 1) % r->n;
    return replica;
}

/* In proportion to what it is meant to take. */
static double load_with_one_more(const struct maq_serve_engine *e, bool by_tokens)
{
    return (double)((by_tokens ? e->outstanding_tokens : e->outstanding) + 1) / e->weight;
}

/* `among`: a bit for each replica that may be taken; NULL: all may. */
static uint32_t emptiest(const struct maq_routing *r, const uint64_t *among, bool by_tokens)
{
    uint32_t best = UINT32_MAX;
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < r->n && least > r->least; i++) {
        double load = load_with_one_more(&r->engines[i], by_tokens);
        if (takes(r, i) && (!among || among[i / 64] >> i % 64 & 1) && load < least) {
            least = load;
            best = i;
        }
    }
    return best;
}

static bool is_unbalanced(const struct maq_routing *r)
{
    uint32_t most = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t load = r->engines[i].outstanding;
        if (!takes(r, i))
            continue;
        most = load > most ? load : most;
        least = load < least ? load : least;
    }
    return most - least > IMBALANCE_REQUESTS && most > IMBALANCE_RATIO * least;
}

static uint32_t by_prefix(struct maq_routing *r, const struct maq_request *q)
{
    uint32_t matched = longest_match(r, q), to;
    bool enough = (double)matched * r->requests->prefix_unit > PREFIX_SHARE * (double)q->prompt;
    to = emptiest(r, enough && !is_unbalanced(r) ? r->prefixes.both : NULL, false);
    if (to == UINT32_MAX) /* those that were sent it are away */
        to = emptiest(r, NULL, false);
    if (!mark(r, q, to))
        r->failed = true;
    return to;
}

static uint32_t any(struct maq_routing *r)
{
    uint32_t present = 0;
    for (uint32_t i = 0; i < r->n; i++)
        present += takes(r, i);
    uint32_t left = (uint32_t)(maq_rng_next(&r->rng) * present), i = 0;
    for (left = left < present ? left : present - 1; i < r->n && (!takes(r, i) || left > 0); i++)
        left -= takes(r, i);
    return i;
}

static uint32_t by_session(struct maq_routing *r, const struct maq_request *q)
{
    uint32_t own = (uint32_t)(maq_hash_words(&q->session, sizeof q->session) % r->n);
    return q->session ? next_that_takes(r, own) : any(r);
}

static uint32_t of_two(struct maq_routing *r)
{
    uint32_t a = any(r), b = any(r);
    return load_with_one_more(&r->engines[b], false) < load_with_one_more(&r->engines[a], false) ? b : a;
}

uint32_t maq_routing_choose(struct maq_routing *r, uint32_t request)
{
    const struct maq_request *q = &r->requests->at[request];
    switch (r->policy) {
    case MAQ_ROUTER_RANDOM:
        return any(r);
    case MAQ_ROUTER_LEAST_REQUESTS:
        return emptiest(r, NULL, false);
    case MAQ_ROUTER_LEAST_TOKENS:
        return emptiest(r, NULL, true);
    case MAQ_ROUTER_POWER_OF_TWO:
        return of_two(r);
    case MAQ_ROUTER_PREFIX:
        return by_prefix(r, q);
    case MAQ_ROUTER_SESSION:
        return by_session(r, q);
    case MAQ_ROUTER_ROUND_ROBIN:
    case MAQ_ROUTER_COUNT:
        break;
    }
    uint32_t to = next_that_takes(r, r->next % r->n);
    r->next = to + 1;
    return to;
}

void maq_routing_forget(struct maq_routing *r, uint32_t replica)
{
    const struct maq_prefix_marks *p = &r->prefixes;
    for (uint32_t i = 0; i < p->size; i++)
        p->marks[(size_t)i * p->words + replica / 64] &= ~((uint64_t)1 << replica % 64);
}

/* ---- begin and end ---- */

bool maq_routing_init(struct maq_routing *r, enum maq_router policy, struct maq_rng rng,
                      const struct maq_serve_engine *engines, uint32_t n, const struct maq_requests *requests)
{
    *r = (struct maq_routing){.policy = policy,
                              .engines = engines,
                              .n = n,
                              .requests = requests,
                              .rng = rng,
                              .prefixes.words = (n + 63) / 64};
    r->least = (double)INFINITY;
    for (uint32_t i = 0; i < n; i++)
        r->least = fmin(r->least, 1 / engines[i].weight);
    r->prefixes.both = maq__calloc(r->prefixes.words * sizeof *r->prefixes.both);
    return r->prefixes.both != NULL;
}

void maq_routing_fini(struct maq_routing *r)
{
    free(r->prefixes.key);
    free(r->prefixes.marks);
    free(r->prefixes.both);
}
