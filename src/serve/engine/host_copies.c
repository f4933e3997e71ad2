/* SPDX-License-Identifier: Apache-2.0 */
/* host_copies.c - copies begin in their order, are over, and prolong the iterations that wait for them. */
#include "serve/engine/host_copies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/engine/engine.h"
#include "serve/kv/radix_host.h"

void maq_rank_copies_fini(struct maq_rank_copies *c)
{
    free(c->writes.done_s);
    free(c->loads.done_s);
    *c = (struct maq_rank_copies){0};
}

/* Of an engine with copies: NULL where its scheduler has none. */
static struct maq_radix_tree *tree_of(const struct maq_engine_rank *rank)
{
    return rank->sched->ops->copies ? rank->sched->ops->copies(rank->sched) : NULL;
}

/* ---- what is over ---- */

static bool hear(struct maq_copy_line *line, struct maq_radix_tree *tree, double now_s,
                 void (*over)(struct maq_radix_tree *))
{
    uint32_t n = 0;
    for (; n < line->n && line->done_s[n] <= now_s; n++)
        over(tree);
    if (n == 0)
        return false;
    line->n -= n;
    memmove(line->done_s, line->done_s + n, line->n * sizeof *line->done_s);
    return true;
}

bool maq_copies_hear(struct maq_serve_engine *e)
{
    bool any = false;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_engine_rank *rank = &e->ranks[r];
        struct maq_radix_tree *tree = tree_of(rank);
        any |= tree && hear(&rank->copies.writes, tree, e->now_s, maq_radix_host_written);
        any |= tree && hear(&rank->copies.loads, tree, e->now_s, maq_radix_host_loaded);
    }
    return any;
}

/* ---- what begins ---- */

static double tokens_s(const struct maq_serve_engine *e, int64_t tokens)
{
    const struct maq_deployment_tiers *t = &e->d->tiers;
    return (double)tokens * t->link_bytes / t->chunk_tokens / t->link_bps;
}

static double tokens_bytes(const struct maq_serve_engine *e, int64_t tokens)
{
    return (double)tokens * e->d->tiers.loaded_bytes / e->d->tiers.chunk_tokens;
}

static double busy_until(const struct maq_serve_engine *e)
{
    double free_s = e->stage_free_s[e->d->passes.n_stages - 1];
    return free_s > e->now_s ? free_s : e->now_s;
}

/* Copies that the tree has begun and the line has not; when the first of them moves, the last is over. */
static bool begin(struct maq_serve_engine *e, struct maq_copy_line *line, const struct maq_radix_copies *copies,
                  double *bytes, struct maq_layer_load *span)
{
    double busy_s = busy_until(e);
    bool any = false;
    for (uint32_t i = line->n; i < copies->n_together; i++) {
        double from_s = busy_s > line->free_s ? busy_s : line->free_s;
        if (!maq__grow((void **)&line->done_s, &line->size, line->n, sizeof *line->done_s)) {
            e->failed = true;
            return any;
        }
        line->free_s = from_s + tokens_s(e, copies->together[i].tokens);
        line->done_s[line->n++] = line->free_s;
        *bytes += tokens_bytes(e, copies->together[i].tokens);
        span->from_s = any ? span->from_s : from_s;
        span->until_s = line->free_s;
        any = true;
    }
    return any;
}

/* Tokens that were evicted as they were copied: one after another, each waited for before the next. When that was. */
static double write_back(struct maq_serve_engine *e, struct maq_engine_rank *rank, const struct maq_radix_tree *tree)
{
    struct maq_copy_line *line = &rank->copies.writes;
    int64_t tokens = tree->host->written_back - rank->copies.written_back;
    if (tokens == 0)
        return e->now_s;
    double busy_s = busy_until(e);
    line->free_s = (busy_s > line->free_s ? busy_s : line->free_s) + tokens_s(e, tokens);
    rank->copies.written_back += tokens;
    e->tiers_seen.written_bytes[MAQ_TIER_HOST] += tokens_bytes(e, tokens);
    return line->free_s;
}

void maq_copies_begun(struct maq_serve_engine *e)
{
    struct maq_tiers_seen *seen = &e->tiers_seen;
    double until_s = e->now_s, busy_s = busy_until(e);
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_radix_tree *tree = tree_of(&e->ranks[r]);
        double waits_s = tree ? write_back(e, &e->ranks[r], tree) : 0;
        until_s = waits_s > until_s ? waits_s : until_s;
    }
    if (until_s > e->now_s) {
        seen->stalled_s += until_s - busy_s;
        e->now_s = until_s;
    }
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_rank_copies *c = &e->ranks[r].copies;
        const struct maq_radix_tree *tree = tree_of(&e->ranks[r]);
        struct maq_layer_load write = {0}, load = {0};
        if (!tree)
            continue;
        (void)begin(e, &c->writes, &tree->host->writes, &seen->written_bytes[MAQ_TIER_HOST], &write);
        if (begin(e, &c->loads, &tree->host->loads, &seen->read_bytes[MAQ_TIER_HOST], &load) &&
            load.until_s > e->load.until_s)
            e->load = load; /* ranks go on together: the last one decides */
    }
}

double maq_copies_next_s(const struct maq_serve_engine *e)
{
    double next = (double)INFINITY;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_rank_copies *c = &e->ranks[r].copies;
        next = c->writes.n > 0 ? fmin(next, c->writes.done_s[0]) : next;
        next = c->loads.n > 0 ? fmin(next, c->loads.done_s[0]) : next;
    }
    return next;
}

double maq_copies_layers_s(struct maq_serve_engine *e, uint32_t stage, double start_s, double runs_s)
{
    struct maq_layer_load *load = &e->load;
    const struct maq_pass_stage *s = &e->d->passes.stages[stage];
    double layers = 0, done_s = start_s + runs_s;
    if (!(load->until_s > load->from_s))
        return done_s;
    for (uint32_t i = 0; i < s->n_layers; i++)
        layers += s->layers[i].count;
    layers = layers > 1 ? layers : 1;
    double alone_s = done_s;
    done_s = fmax(done_s, load->from_s + (load->until_s - load->from_s) / layers + runs_s);
    done_s = fmax(done_s, load->until_s + runs_s / layers);
    load->waited_s = fmax(load->waited_s, done_s - alone_s);
    return done_s;
}
