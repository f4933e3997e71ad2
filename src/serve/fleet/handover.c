/* SPDX-License-Identifier: Apache-2.0 */
/* handover.c - bytes and ways between two replicas. */
#include "serve/fleet/handover.h"

#include <math.h>
#include <string.h>

/* ---- bytes ---- */

/* Different copies of a layer's keys and values that `tp` ranks hold together. */
static double copies(const struct maq_layer *layer, double tp)
{
    double heads = tp;
    if (strcmp(layer->mixer, "mla") == 0)
        return 1;
    for (uint32_t i = 0; i < layer->n_modules; i++)
        if (layer->modules[i].kind == MAQ_MODULE_ATTENTION)
            heads = layer->modules[i].u.attention.kv_heads;
    return heads < tp ? heads : tp;
}

static void add(struct maq_cut_bytes *sum, const struct maq_cut_bytes *more)
{
    sum->out += more->out;
    sum->in += more->in;
    sum->sent += more->sent;
    sum->written += more->written;
}

static struct maq_cut_kind *kind_of(struct maq_cut *cut, const struct maq_kv_group *g)
{
    uint32_t i = 0;
    while (i < cut->n_kinds && (cut->kinds[i].group.kind != g->kind || cut->kinds[i].group.window != g->window))
        i++;
    if (i == MAQ_KV_MOST_GROUPS)
        return &cut->kinds[i - 1];
    if (i == cut->n_kinds)
        cut->kinds[cut->n_kinds++] = (struct maq_cut_kind){.group = *g};
    return &cut->kinds[i];
}

/* Layers of a stage, as often as it has them; `of_prefill`: of prefill's stages, else decode's. What does not belong to that side is zero. */
static void add_stage(struct maq_cut *cut, const struct maq_deployment *p, const struct maq_deployment *d,
                      const struct maq_pass_stage *stage, bool of_prefill)
{
    double tp = p->job->plan.tp, to = d->job->plan.tp, fan = to > tp ? to / tp : 1;
    for (uint32_t k = 0; k < stage->n_layers; k++) {
        const struct maq_layer *layer = stage->layers[k].layer;
        struct maq_kv_group g;
        double times = stage->layers[k].count, state, state_to,
               bytes = maq_deployment_layer_kv(p, layer, &g, &state) * times,
               bytes_to = maq_deployment_layer_kv(d, layer, &g, &state_to) * times;
        double out = to >= tp ? fan * bytes_to : bytes, state_out = (to >= tp ? fan * state_to : state) * times;
        const struct maq_cut_bytes token = {of_prefill ? out : 0, of_prefill ? 0 : bytes_to,
                                            of_prefill ? 0 : to * bytes_to, of_prefill ? copies(layer, tp) * bytes : 0},
                                   states = {of_prefill ? state_out : 0, of_prefill ? 0 : state_to * times,
                                             of_prefill ? 0 : to * state_to * times,
                                             of_prefill ? tp * state * times : 0};
        if (bytes > 0)
            add(&kind_of(cut, &g)->token, &token);
        add(&cut->states, &states);
    }
}

static double weight(const struct maq_cut *cut, bool of_prefill)
{
    double sum = 0;
    for (uint32_t i = 0; i < cut->n_kinds; i++)
        sum += of_prefill ? cut->kinds[i].token.out : cut->kinds[i].token.in;
    return sum + (of_prefill ? cut->states.out : cut->states.in);
}

/* One side: through the ports of its fullest stage, and over all stages. */
static void add_side(struct maq_cut *cut, const struct maq_deployment *p, const struct maq_deployment *d,
                     bool of_prefill)
{
    const struct maq_passes *side = of_prefill ? &p->passes : &d->passes;
    struct maq_cut fullest = {0}, all = {0};
    for (uint32_t s = 0; s < side->n_stages; s++) {
        struct maq_cut one = {0};
        add_stage(&one, p, d, &side->stages[s], of_prefill);
        add_stage(&all, p, d, &side->stages[s], of_prefill);
        if (s == 0 || weight(&one, of_prefill) > weight(&fullest, of_prefill))
            fullest = one;
    }
    for (uint32_t i = 0; i < all.n_kinds; i++) {
        struct maq_cut_kind *to = kind_of(cut, &all.kinds[i].group);
        const struct maq_cut_kind *busy = kind_of(&fullest, &all.kinds[i].group);
        const struct maq_cut_bytes token = {busy->token.out, busy->token.in, all.kinds[i].token.sent,
                                            all.kinds[i].token.written};
        add(&to->token, &token);
    }
    const struct maq_cut_bytes states = {fullest.states.out, fullest.states.in, all.states.sent, all.states.written};
    add(&cut->states, &states);
}

struct maq_cut maq_cut_between(const struct maq_deployment *prefill, const struct maq_deployment *decode)
{
    struct maq_cut cut = {0};
    add_side(&cut, prefill, decode, true);
    add_side(&cut, prefill, decode, false);
    return cut;
}

/* Tokens of the blocks that a kind of layers sends. */
static double tokens_sent(const struct maq_kv_group *g, int64_t prompt, int64_t found)
{
    int64_t block = g->block_size, first = found / block, skipped = maq_kv_skipped(g, prompt) / block,
            all = (prompt + block - 1) / block;
    first = skipped > first ? skipped : first;
    return (double)((all > first ? all - first : 0) * block);
}

struct maq_cut_bytes maq_cut_prompt(const struct maq_cut *cut, int64_t prompt, int64_t found)
{
    struct maq_cut_bytes sum = cut->states;
    for (uint32_t i = 0; i < cut->n_kinds; i++) {
        const struct maq_cut_bytes *t = &cut->kinds[i].token;
        double tokens = tokens_sent(&cut->kinds[i].group, prompt, found);
        const struct maq_cut_bytes more = {t->out * tokens, t->in * tokens, t->sent * tokens, t->written * tokens};
        add(&sum, &more);
    }
    return sum;
}

double maq_cut_share(const struct maq_cut *cut, int64_t prompt, int64_t found, int64_t tokens)
{
    double all = maq_cut_prompt(cut, prompt, found).sent, ready = 0;
    for (uint32_t i = 0; i < cut->n_kinds; i++) {
        const struct maq_kv_group *g = &cut->kinds[i].group;
        int64_t whole = tokens / g->block_size * g->block_size;
        if (g->kind == MAQ_KV_FULL && whole > found)
            ready += cut->kinds[i].token.sent * tokens_sent(g, whole, found);
    }
    return all > 0 ? ready / all : 0;
}

/* ---- ways ---- */

static void widen(struct maq_way *way, enum maq_distance distance, double bps, double latency_s)
{
    if (distance > way->distance) {
        way->distance = distance;
        way->most_bps = bps;
    }
    way->most_bps = distance == way->distance && bps < way->most_bps ? bps : way->most_bps;
    way->latency_s = latency_s > way->latency_s ? latency_s : way->latency_s;
}

static void look_at_pair(struct maq_way *way, const struct maq_replica_placement *p, uint32_t from,
                         const struct maq_replica_placement *d, uint32_t to)
{
    if (p->cluster_id != d->cluster_id) {
        const struct maq_fabric *a = &maq_cluster_group_of(p->cluster, from)->fabric,
                                *b = &maq_cluster_group_of(d->cluster, to)->fabric;
        widen(way, MAQ_OTHER_NODE, (double)INFINITY, fmax(a->latency_s, b->latency_s));
        return;
    }
    uint32_t first = from < to ? from : to, second = from < to ? to : from;
    const struct maq_placement at = maq_cluster_place(p->cluster, first, 2, second - first);
    const struct maq_links l =
        maq_cluster_links(p->cluster, &at, (uint32_t)p->cluster->groups[at.group].devices_per_node);
    if (at.domains == 1)
        widen(way, MAQ_SAME_DOMAIN, l.near.bps, l.near.latency_s);
    else if (at.per_node == 2)
        widen(way, MAQ_SAME_NODE, l.host.bps, l.host.latency_s);
    else
        widen(way, MAQ_OTHER_NODE, l.far.bps, l.far.latency_s);
}

struct maq_way maq_way_between(const struct maq_replica_placement *p, uint32_t prefill_rank,
                               const struct maq_replica_placement *d, uint32_t decode_rank)
{
    struct maq_way way = {.most_bps = (double)INFINITY};
    int32_t fan_in = p->tp > d->tp ? p->tp / d->tp : 1;
    for (int32_t sp = 0; sp < p->pp; sp++)
        for (int32_t sd = 0; sd < d->pp; sd++)
            for (int32_t j = 0; j < d->tp && (p->pp != d->pp || sp == sd); j++)
                for (int32_t i = 0; i < fan_in; i++) {
                    int32_t rank = fan_in > 1 ? j * fan_in + i : j * p->tp / d->tp;
                    uint32_t from = p->first + ((prefill_rank * (uint32_t)p->pp + (uint32_t)sp) * (uint32_t)p->tp) +
                                    (uint32_t)rank,
                             to = d->first + ((decode_rank * (uint32_t)d->pp + (uint32_t)sd) * (uint32_t)d->tp) +
                                  (uint32_t)j;
                    look_at_pair(&way, p, from, d, to);
                }
    return way;
}

double maq_port_bps(const struct maq_replica_placement *place, enum maq_distance distance)
{
    const struct maq_node_group *g = maq_cluster_group_of(place->cluster, place->first);
    return distance == MAQ_SAME_DOMAIN ? g->domain_bps
           : distance == MAQ_SAME_NODE ? g->device.host_bps
                                       : maq_node_group_network_bps(g);
}
