/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools_failures.c - a replica of a pool fails: what was in it, and on its way to it or from it, is lost.
 *
 *   fails      transfers to it and from it end where they are; others have their ports
 *   its router knows
 *     prefill  requests that it had and whose keys and values are not all with decode begin anew; decode gives them up, with the blocks that it took for them
 *     decode   requests that it had begin anew; prefill gives up those that it has not computed, and keeps the others for a while:
 *
 * How long prefill keeps a computed prompt that nobody reads is its engine's:
 *
 *   vLLM          a lease of 30 s from the end of the prompt; decode's heartbeats (every 5 s) extend it by 20 s, and the last one comes as decode fails
 *                 (0.33.0, kv_connector/v1/nixl/base_scheduler.py and base_worker.py, kv_lease_duration)
 *   SGLang        not at all: the transfer has failed (0.5.23, disaggregation/prefill.py, handle_inflight_transfer_failure)
 *   TensorRT-LLM  60 s from the end of the prompt (llmapi/llm_args.py, CacheTransceiverConfig.kv_transfer_timeout_ms)
 *
 * vLLM's decode could compute such a prompt by itself (kv_load_failure_policy `recompute`); by default it fails the request, which is tried again.
 */
#include <math.h>

#include "base/alloc.h"
#include "serve/fleet/pools.h"

#define VLLM_LEASE_S 30.0
#define VLLM_HEARTBEAT_LEASE_S 20.0
#define TRTLLM_KEEPS_S 60.0

/* ---- prompts that nobody will read ---- */

static void find_next_lease(struct maq_fleet_pools *p)
{
    p->next_lease_s = (double)INFINITY;
    for (uint32_t i = 0; i < p->n_leases; i++)
        p->next_lease_s = fmin(p->next_lease_s, p->leases[i].until_s);
}

static double kept_until_s(const struct maq_fleet_run *r, uint32_t request, double at_s)
{
    const struct maq_handing *h = &r->pools->handing[request];
    double computed_s = r->pools->handed[request].computed_s;
    switch (r->engines[h->prefill].d->options.engine) {
    case MAQ_ENGINE_VLLM:
        return fmax(at_s, fmax(computed_s + VLLM_LEASE_S, r->pools->failed_s[h->decode] + VLLM_HEARTBEAT_LEASE_S));
    case MAQ_ENGINE_TRTLLM:
        return fmax(at_s, computed_s + TRTLLM_KEEPS_S);
    case MAQ_ENGINE_SGLANG:
    case MAQ_ENGINE_COUNT:
        break;
    }
    return at_s;
}

static bool keep(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    const struct maq_handing *h = &p->handing[request];
    if (!maq__grow((void **)&p->leases, &p->leases_size, p->n_leases, sizeof *p->leases))
        return false;
    p->kept[h->prefill]++;
    p->leases[p->n_leases++] =
        (struct maq_lease){kept_until_s(r, request, at_s), h->prefill, h->prefill_rank, h->prefill_slot};
    find_next_lease(p);
    return true;
}

/* Of a replica that is empty now. */
static void forget_leases(struct maq_fleet_pools *p, uint32_t prefill)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_leases; i++)
        if (p->leases[i].prefill != prefill)
            p->leases[kept++] = p->leases[i];
        else
            p->kept[prefill]--;
    p->n_leases = kept;
    find_next_lease(p);
}

void maq_pools_end_lease(struct maq_fleet_run *r)
{
    struct maq_fleet_pools *p = r->pools;
    uint32_t first = 0;
    while (p->leases[first].until_s > p->next_lease_s)
        first++;
    const struct maq_lease l = p->leases[first];
    for (uint32_t i = first + 1; i < p->n_leases; i++)
        p->leases[i - 1] = p->leases[i];
    p->n_leases--;
    p->kept[l.prefill]--;
    find_next_lease(p);
    maq_engine_notice(&r->engines[l.prefill], l.until_s, l.rank, l.slot);
    maq_fleet_brought_forward(r, l.prefill);
}

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
        return keep(r, request, at_s);
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

/* Those that begin anew go to their router again when all have been given up: it sees nothing of them where they were. */
bool maq_pools_lost(struct maq_fleet_run *r, uint32_t k, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_clients *c = &r->clients;
    bool prefill = k < p->n_prefill, ok = true;
    if (prefill)
        forget_leases(p, k);
    for (uint32_t i = 0; i < c->sent && ok; i++) {
        struct maq_handing *h = &p->handing[i];
        if (r->ended[i])
            continue;
        if (!loses(h, k, prefill)) {
            h->decode = !prefill && h->decode == k ? 0 : h->decode; /* another one, when its prompt is computed */
            continue;
        }
        ok = give_up(r, i, prefill, at_s);
        r->seen.retried += c->served[i].retries == 0;
        maq_clients_retry(c, i, at_s);
        if (h->assigned) {
            p->uncomputed[h->prefill] -= !h->computed;
            p->kept[h->prefill] -= !h->over;
        }
        *h = (struct maq_handing){.flow = MAQ_NO_FLOW};
        p->handed[i] = (struct maq_handed){.local = false};
        if (!waits(r, i))
            maq_fleet_hold(r, i, at_s);
    }
    return ok;
}
