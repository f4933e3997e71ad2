/* SPDX-License-Identifier: Apache-2.0 */
/* pools_fill.c - what came of two pools. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/engine/latency.h"
#include "serve/fleet/pools.h"

void maq_pools_count(const struct maq_fleet_run *r, struct maq_served_replica *list, double *prompts)
{
    for (uint32_t i = 0; i < r->requests->n; i++) {
        const struct maq_handed *x = &r->pools->handed[i];
        const struct maq_served *s = &r->clients.served[i];
        if (x->local)
            continue;
        list[x->replica].requests++;
        list[x->replica].prefix_hit_rate += (double)s->cached; /* it is prefill that found them */
        list[s->replica].prefix_hit_rate -= (double)s->cached;
        prompts[x->replica] += (double)r->requests->at[i].prompt;
        prompts[s->replica] -= (double)r->requests->at[i].prompt;
    }
}

/* The time to the first token of a request, by part. */
static void add_parts(double sum[MAQ_HANDOVER_PART_COUNT], const struct maq_handed *x, const struct maq_served *s,
                      enum maq_kv_transfer mode)
{
    double sent_s = mode == MAQ_KV_TRANSFER_CHUNK ? x->reserved_s : s->arrival_s,
           begun_s = fmax(x->computed_s, x->begins_s);
    sum[MAQ_HANDOVER_RESERVE] += sent_s - s->arrival_s;
    sum[MAQ_HANDOVER_QUEUE] += s->scheduled_s - sent_s;
    sum[MAQ_HANDOVER_PREFILL] += x->computed_s - s->scheduled_s;
    sum[MAQ_HANDOVER_ROOM] += begun_s - x->computed_s;
    sum[MAQ_HANDOVER_TRANSFER] += x->ends_s - begun_s;
    sum[MAQ_HANDOVER_RESUME] += s->first_s - x->ends_s;
}

/* Requests that decode could not take in when the last one came wait as much as those whose prompts have not begun. */
static void count_waiting(struct maq_serve_result *out, const struct maq_handed *handed)
{
    double last_s = -(double)INFINITY;
    for (uint32_t i = 0; i < out->n_requests; i++)
        last_s = fmax(last_s, out->served[i].arrival_s);
    for (uint32_t i = 0; i < out->n_requests; i++) {
        const struct maq_served *s = &out->served[i];
        out->waiting +=
            s->arrival_s < last_s && s->scheduled_s <= last_s && !handed[i].local && handed[i].reserved_s > last_s;
    }
}

static enum maq_status fill_transfers(struct maq_fleet_run *r, struct maq_serve_result *out, struct maq_serve_pools *p)
{
    struct maq_latency times;
    double held_s = 0;
    if (!maq_latency_init(&times))
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < r->requests->n; i++) {
        const struct maq_handed *x = &p->handed[i];
        if (x->local) {
            p->local++;
            continue;
        }
        p->n++;
        p->bytes += x->bytes;
        p->written_bytes += x->written_bytes;
        maq_latency_add(&times, x->ends_s - x->begins_s);
        add_parts(p->part_s, x, &out->served[i], r->pools->mode);
        held_s += (x->ends_s - x->computed_s) * (double)r->requests->at[i].prompt;
    }
    for (int k = 0; k < MAQ_HANDOVER_PART_COUNT && p->n > 0; k++)
        p->part_s[k] /= p->n;
    double tokens = 0;
    for (uint32_t k = 0; k < r->pools->n_prefill; k++)
        tokens += (double)r->engines[k].d->kv_tokens * r->engines[k].n_ranks;
    p->held_share = out->duration_s > 0 && tokens > 0 ? held_s / out->duration_s / tokens : 0;
    p->bps = r->pools->n_begun > 0 ? r->pools->bps / r->pools->n_begun : 0;
    p->cut = r->pools->n_cut;
    p->given_up = r->pools->n_given_up;
    p->cut_bytes = r->pools->cut_bytes;
    p->transfer_s = maq_latency_quantiles(&times);
    maq_latency_fini(&times);
    return MAQ_OK;
}

/* Images of prompts, and of those that decode computed by itself or again. */
static void add_encoded(struct maq_encoded *to, const struct maq_encoded *prefill)
{
    to->images += prefill->images;
    to->tokens += prefill->tokens;
    to->patches += prefill->patches;
    to->encode_s += prefill->encode_s;
}

enum maq_status maq_pools_fill(struct maq_fleet_run *r, struct maq_serve_result *out)
{
    uint32_t n = r->pools->n_prefill;
    struct maq_serve_pools *p = maq__calloc(sizeof *p);
    out->pools = p;
    if (!p || !(p->prefill = maq__calloc(sizeof *p->prefill)))
        return MAQ_NO_MEMORY;
    p->handed = r->pools->handed;
    r->pools->handed = NULL;
    p->transfer = maq_kv_transfer_name(r->pools->mode);
    p->prefill_router = maq_router_name(r->fleet->prefill_router);
    p->prefill_replicas = n;
    p->decode_replicas = r->n - n;
    maq_deployment_fill(p->prefill, r->engines[0].d);
    maq_engine_fill(r->engines, n, p->prefill);
    maq_engine_fill(r->engines + n, r->n - n, out);
    add_encoded(&out->encoded, &p->prefill->encoded);
    p->prefill->n_replicas = n;
    p->prefill->n_devices = 0;
    for (uint32_t k = 0; k < n; k++)
        p->prefill->n_devices += maq_deployment_devices(r->engines[k].d);
    count_waiting(out, p->handed);
    out->overloaded = maq_clients_overloaded(out);
    return fill_transfers(r, out, p);
}
