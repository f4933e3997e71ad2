/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools_leases.c - how long prefill keeps a computed prompt that nobody reads: it gives the blocks back then.
 *
 * Nobody will, as decode has failed:
 *
 *   vLLM          a lease of 30 s from the end of the prompt; decode's heartbeats (every 5 s) extend it by 20 s, and the last one comes
 *                 as decode fails (0.33.0, kv_connector/v1/nixl/base_scheduler.py and base_worker.py, kv_lease_duration)
 *   SGLang        not at all: the transfer has failed (0.5.23, disaggregation/prefill.py, handle_inflight_transfer_failure)
 *   TensorRT-LLM  60 s from the end of the prompt (llmapi/llm_args.py, CacheTransceiverConfig.kv_transfer_timeout_ms)
 *
 * Decode has no room for it yet:
 *
 *   pull   as long as decode lives: its heartbeats are of those that wait, too (nixl/base_scheduler.py, on_new_request)
 *   push   480 s from the end of the prompt (MooncakeConnector, VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT; NixlPushConnector has heartbeats
 *          here, too, and would wait for ever)
 *   layer  60 s (moriio/moriio_common.py, DEFAULT_DEFER_TIMEOUT)
 *   chunk  nothing is computed before decode has room
 *
 * The request has failed then on either side, and its router sends it again. In `push` and `layer` both sides hear of a request at once, and
 * where they take requests up in different orders (by priority) each may hold what the other waits for: this is what ends it. Decode is
 * taken to learn of it at once.
 */
#include <math.h>

#include "base/alloc.h"
#include "serve/fleet/pools.h"

#define VLLM_LEASE_S 30.0
#define VLLM_HEARTBEAT_LEASE_S 20.0
#define TRTLLM_KEEPS_S 60.0
#define MOONCAKE_KEEPS_S 480.0
#define MORIIO_KEEPS_S 60.0

/* ---- the list ---- */

static bool add(struct maq_fleet_run *r, uint32_t request, double until_s, bool expected)
{
    struct maq_fleet_pools *p = r->pools;
    const struct maq_handing *h = &p->handing[request];
    if (!maq__grow((void **)&p->leases, &p->leases_size, p->n_leases, sizeof *p->leases))
        return false;
    p->leases[p->n_leases++] = (struct maq_lease){.until_s = until_s,
                                                  .prefill = h->prefill,
                                                  .rank = h->prefill_rank,
                                                  .slot = h->prefill_slot,
                                                  .request = expected ? request : MAQ_NO_REQUEST};
    p->next_lease_s = fmin(p->next_lease_s, until_s);
    return true;
}

static void find_next(struct maq_fleet_pools *p)
{
    p->next_lease_s = (double)INFINITY;
    for (uint32_t i = 0; i < p->n_leases; i++)
        p->next_lease_s = fmin(p->next_lease_s, p->leases[i].until_s);
}

static struct maq_lease take(struct maq_fleet_pools *p, uint32_t at)
{
    const struct maq_lease l = p->leases[at];
    for (uint32_t i = at + 1; i < p->n_leases; i++)
        p->leases[i - 1] = p->leases[i];
    p->n_leases--;
    if (l.until_s <= p->next_lease_s)
        find_next(p);
    return l;
}

/* ---- decode has failed ---- */

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

bool maq_pools_keep(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    r->pools->kept[r->pools->handing[request].prefill]++;
    return add(r, request, kept_until_s(r, request, at_s), false);
}

void maq_pools_forget_leases(struct maq_fleet_pools *p, uint32_t prefill)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n_leases; i++)
        if (p->leases[i].prefill != prefill)
            p->leases[left++] = p->leases[i];
        else
            p->kept[prefill] -= p->leases[i].request == MAQ_NO_REQUEST; /* else it is counted with its request */
    p->n_leases = left;
    find_next(p);
}

/* ---- decode has no room yet ---- */

bool maq_pools_expect(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    bool push = r->pools->mode == MAQ_KV_TRANSFER_PUSH;
    return add(r, request, at_s + (push ? MOONCAKE_KEEPS_S : MORIIO_KEEPS_S), true);
}

void maq_pools_expect_no_more(struct maq_fleet_pools *p, uint32_t request)
{
    for (uint32_t i = 0; i < p->n_leases; i++)
        if (p->leases[i].request == request) {
            (void)take(p, i);
            return;
        }
}

/* Prefill of a replica that has failed, and whose router does not know, has lost all: that is found out with the replica. */
static bool fail_request(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    const struct maq_handing *h = &r->pools->handing[request];
    maq_engine_give_up(&r->engines[h->decode], request, at_s);
    maq_fleet_changed(r, h->decode);
    r->pools->n_given_up++;
    maq_pools_begin_anew(r, request, at_s);
    return maq_pools_route(r, request, at_s);
}

bool maq_pools_end_lease(struct maq_fleet_run *r)
{
    struct maq_fleet_pools *p = r->pools;
    uint32_t first = 0;
    while (p->leases[first].until_s > p->next_lease_s)
        first++;
    const struct maq_lease l = take(p, first);
    if (l.request != MAQ_NO_REQUEST && r->engines[l.prefill].stopped)
        return true;
    p->kept[l.prefill] -= l.request == MAQ_NO_REQUEST;
    maq_engine_notice(&r->engines[l.prefill], l.until_s, l.rank, l.slot);
    maq_fleet_brought_forward(r, l.prefill);
    return l.request == MAQ_NO_REQUEST || fail_request(r, l.request, l.until_s);
}
