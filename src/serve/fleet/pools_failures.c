/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools_failures.c - a replica of a pool fails: what was in it, and on its way to it or from it, is lost.
 *
 *   fails      transfers to it and from it end where they are; others have their ports
 *   its router knows
 *     prefill  requests that it had and whose keys and values are not all with decode begin anew; decode gives them up, with the blocks that it took for them
 *     decode   requests that it had begin anew; prefill gives up those that it has not computed, and keeps the others (pools_leases.c)
 *
 * vLLM's decode could compute such a prompt by itself (kv_load_failure_policy `recompute`); by default it fails the request, which is tried again.
 */
#include "serve/fleet/pools.h"

/* ---- it fails ---- */

void maq_pools_failed(struct maq_fleet_run *r, uint32_t k, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    p->failed_s[k] = at_s;
    for (uint32_t i = 0; i < r->clients.sent; i++) {
        struct maq_handing *h = &p->handing[i];
        if (!h->assigned || h->flow == MAQ_NO_FLOW || (h->prefill != k && h->decode != k))
            continue;
        double sent = maq_network_cancel(&p->network, at_s, h->flow);
        h->flow = MAQ_NO_FLOW;
        p->n_cut++;
        p->cut_bytes += h->size > 0 ? sent / h->size * h->bytes.sent : 0;
    }
}

/* ---- its router knows ---- */

/* What a request loses with a replica: all that it was sent there for is not with its client, or not with the other pool. */
static bool loses(const struct maq_handing *h, uint32_t k, bool prefill)
{
    if (prefill)
        return h->assigned && h->prefill == k && !h->over;
    return h->decoding && h->decode == k;
}

/* The other replica gives up what it has of it. */
static bool give_up(struct maq_fleet_run *r, uint32_t request, bool prefill, double at_s)
{
    const struct maq_handing *h = &r->pools->handing[request];
    if (prefill && h->decoding) {
        maq_engine_give_up(&r->engines[h->decode], request, at_s);
        maq_fleet_changed(r, h->decode);
    }
    if (prefill || !h->prefilling || h->over)
        return true;
    if (h->computed)
        return maq_pools_keep(r, request, at_s);
    maq_engine_give_up(&r->engines[h->prefill], request, at_s);
    maq_fleet_changed(r, h->prefill);
    return true;
}

static bool waits(const struct maq_fleet_run *r, uint32_t request)
{
    for (uint32_t i = 0; i < r->n_held; i++)
        if (maq_fleet_held(r, i) == request)
            return true;
    return false;
}

void maq_pools_begin_anew(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[request];
    r->seen.retried += r->clients.served[request].retries == 0;
    maq_clients_retry(&r->clients, request, at_s);
    if (h->assigned) {
        p->uncomputed[h->prefill] -= !h->computed;
        p->kept[h->prefill] -= !h->over;
    }
    *h = (struct maq_handing){.flow = MAQ_NO_FLOW};
    p->handed[request] = (struct maq_handed){.local = false};
}

/* Those that begin anew go to their router again when all have been given up: it sees nothing of them where they were. */
bool maq_pools_lost(struct maq_fleet_run *r, uint32_t k, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_clients *c = &r->clients;
    bool prefill = k < p->n_prefill, ok = true;
    if (prefill)
        maq_pools_forget_leases(p, k);
    for (uint32_t i = 0; i < c->sent && ok; i++) {
        struct maq_handing *h = &p->handing[i];
        if (r->ended[i])
            continue;
        if (!loses(h, k, prefill)) {
            h->decode = !prefill && h->decode == k ? 0 : h->decode; /* another one, when its prompt is computed */
            continue;
        }
        maq_pools_expect_no_more(p, i);
        ok = give_up(r, i, prefill, at_s);
        maq_pools_begin_anew(r, i, at_s);
        if (!waits(r, i))
            maq_fleet_hold(r, i, at_s);
    }
    return ok;
}
