/* SPDX-License-Identifier: Apache-2.0 */
/* content.c - hashes of blocks, chained from the beginning of a request as engines chain them; what two requests have in common. */
#include "serve/kv/content.h"

/* The finalizer of splitmix64: a bijection, so that words never collapse before they are chained. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t chain(uint64_t parent, uint64_t word)
{
    return mix(parent * 0xff51afd7ed558ccdu + mix(word));
}

uint64_t maq_content_hash(const struct maq_content *c, uint64_t parent, int64_t first, int32_t tokens)
{
    int64_t named = (int64_t)c->n_prefix * c->unit, unit = c->unit;
    if (parent == 0 && c->adapter != 0)
        parent = mix(c->adapter);
    uint64_t h = chain(parent, (uint64_t)tokens);
    if (unit > 0 && first + tokens <= named && first % unit + tokens <= unit) { /* inside of a run */
        h = chain(chain(h, c->prefix[first / unit]), (uint64_t)(first % unit));
    } else if (unit > 0 && first + tokens <= named && first % unit == 0 && tokens % unit == 0) { /* whole runs */
        for (int64_t i = first / unit; i < (first + tokens) / unit; i++)
            h = chain(chain(h, c->prefix[i]), 0);
    } else {
        h = chain(chain(h, c->own), ~(uint64_t)first);
    }
    return h ? h : 1;
}

/* ---- without a beginning before them ---- */

static int64_t named(const struct maq_content *c)
{
    return (int64_t)c->n_prefix * c->unit;
}

int64_t maq_content_common(const struct maq_content *a, const struct maq_content *b, int64_t most)
{
    if (a->own == b->own)
        return most;
    if (a->adapter != b->adapter)
        return 0;
    uint32_t n = a->n_prefix < b->n_prefix ? a->n_prefix : b->n_prefix, i = 0;
    if (a->prefix == b->prefix)
        i = n;
    while (i < n && a->prefix[i] == b->prefix[i] && (int64_t)i * a->unit < most)
        i++;
    return (int64_t)i * a->unit < most ? (int64_t)i * a->unit : most;
}

uint64_t maq_content_page(const struct maq_content *c, int64_t first, int32_t tokens)
{
    uint64_t h = mix((uint64_t)tokens + c->adapter * 0x9e3779b97f4a7c15u);
    int64_t at = first, end = first + tokens;
    while (at < end && at < named(c)) {
        int64_t run = (at / c->unit + 1) * c->unit, stop = run < end ? run : end;
        h = mix(h * 0xff51afd7ed558ccdu + mix(c->prefix[at / c->unit]) + (uint64_t)(at % c->unit));
        at = stop;
    }
    return at < end ? mix(h * 0xff51afd7ed558ccdu + mix(c->own) + ~(uint64_t)at) : h;
}
