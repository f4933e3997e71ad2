/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.c - requests on their way through two engines. When which thing happens, by mode (serve_fleet.h):
 *
 *            decode hears of it     prefill begins        bytes go
 *   PULL     prompt computed        at once               decode has room
 *   PUSH     at once                at once               computed, and decode has room
 *   CHUNK    at once                decode has room       after each iteration, what it computed; the rest after the last
 *   LAYER    at once                at once               as the last iteration goes, a layer behind it, once decode has room
 */
#include "serve/fleet/pools.h"

#include <math.h>

#include "base/check.h"
#include "serve/fleet/encode_pool.h"

/* ---- transfers ---- */

static void begin(struct maq_fleet_run *r, uint32_t request, double now_s, double from_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[request];
    struct maq_handed *x = &p->handed[request];
    const struct maq_handover *o = &r->fleet->handover;
    const struct maq_way way =
        maq_way_between(&p->places[h->prefill], h->prefill_rank, &p->places[h->decode], h->decode_rank);
    const struct maq_cut *cut = &p->cuts[r->member_of[h->prefill] * r->fleet->n_members + r->member_of[h->decode]];
    if (r->engines[h->prefill].stopped ||
        r->engines[h->decode].stopped) /* nothing goes to or from one that has failed */
        return;
    h->bytes = maq_cut_prompt(cut, r->requests->at[request].prompt, h->found);
    h->size = fmax(h->bytes.out, h->bytes.in);
    double out = h->size > 0 ? h->bytes.out / h->size : 1, in = h->size > 0 ? h->bytes.in / h->size : 1;
    const struct maq_flow_begin b = {.port = {maq_pools_port(p, h->prefill, h->prefill_rank, true, way.distance),
                                              maq_pools_port(p, h->decode, h->decode_rank, false, way.distance)},
                                     .share = {out, in},
                                     .most_bps = o->bps > 0 ? o->bps : way.most_bps,
                                     .begins_s =
                                         from_s + (o->latency_s > 0 || isinf(o->bps) ? o->latency_s : way.latency_s),
                                     .user = request};
    h->flow = maq_network_begin(&p->network, now_s, &b);
    x->begins_s = from_s;
    x->bytes = h->bytes.sent;
    x->written_bytes = h->bytes.written;
    double alone = fmin(b.most_bps, fmin(p->network.ports[b.port[0]].bps / out, p->network.ports[b.port[1]].bps / in));
    p->bps += h->size > 0 ? alone / h->size * h->bytes.sent : 0;
    p->n_begun++;
}

/* All that has not gone, and no more will come. */
static void finish(struct maq_fleet_run *r, uint32_t request, double now_s)
{
    struct maq_network *n = &r->pools->network;
    const struct maq_handing *h = &r->pools->handing[request];
    if (h->flow == MAQ_NO_FLOW)
        return;
    maq_network_give(n, now_s, h->flow, h->size - maq_network_given(n, now_s, h->flow));
    maq_network_close(n, now_s, h->flow);
}

/* The prompt is computed and decode has room. */
static void begin_all(struct maq_fleet_run *r, uint32_t request, double now_s)
{
    begin(r, request, now_s, now_s);
    finish(r, request, now_s);
}

/* Layers come evenly while the last iteration goes, the first one after its own time. */
static void begin_layers(struct maq_fleet_run *r, uint32_t request, double now_s)
{
    struct maq_handing *h = &r->pools->handing[request];
    double layers = r->deployments[r->member_of[h->prefill]].job->model.num_layers, t = h->until_s - h->from_s,
           from_s = h->from_s + t / layers;
    begin(r, request, now_s, from_s > now_s ? from_s : now_s);
    if (h->flow != MAQ_NO_FLOW && t > 0)
        maq_network_grow(&r->pools->network, now_s, h->flow, h->size / t, from_s, h->until_s);
}

/* ---- what engines have done ---- */

static void send_to_decode(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    uint32_t decode = r->pools->handing[request].decode;
    r->pools->handing[request].decoding = true;
    r->clients.served[request].replica = decode;
    maq_engine_send_at(&r->engines[decode], request, at_s, at_s);
    maq_fleet_brought_forward(r, decode);
}

static void send_to_prefill(struct maq_fleet_run *r, uint32_t request, double ready_s)
{
    struct maq_handing *h = &r->pools->handing[request];
    uint32_t prefill = h->prefill;
    h->prefilling = true;
    maq_engine_send_at(&r->engines[prefill], request, h->sent_s, ready_s);
    maq_fleet_brought_forward(r, prefill);
}

static void choose_decode(struct maq_fleet_run *r, uint32_t request)
{
    r->pools->handing[request].decode = r->pools->n_prefill + maq_routing_choose(&r->routing, request);
}

static bool has_prefill(const struct maq_fleet_run *r)
{
    return r->n_prefill_away < r->pools->n_prefill;
}

static bool has_decode(const struct maq_fleet_run *r)
{
    return r->n_away - r->n_prefill_away < r->n - r->pools->n_prefill;
}

/* PULL: its prompt is computed, and waits there while nobody decodes. */
static void go_on_to_decode(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    struct maq_handing *h = &r->pools->handing[request];
    if (r->away && r->away[h->decode]) /* it has left, and was told of nothing */
        h->decode = 0;
    if (h->decode == 0 && !has_decode(r)) {
        maq_fleet_hold(r, request, at_s);
        return;
    }
    if (h->decode == 0)
        choose_decode(r, request);
    send_to_decode(r, request, at_s + r->engines[h->prefill].respond_s);
}

static void on_reserved(struct maq_fleet_run *r, const struct maq_engine_note *n)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[n->request];
    h->reserved = true;
    h->decode_rank = n->rank;
    h->decode_slot = n->slot;
    h->found = n->tokens;
    p->handed[n->request].reserved_s = n->at_s;
    if (h->computed)
        maq_pools_expect_no_more(p, n->request);
    if (p->mode == MAQ_KV_TRANSFER_CHUNK)
        send_to_prefill(r, n->request, n->at_s);
    else if (h->computed)
        begin_all(r, n->request, n->at_s);
    else if (p->mode == MAQ_KV_TRANSFER_LAYER && h->launched)
        begin_layers(r, n->request, n->at_s);
}

static void on_computed(struct maq_fleet_run *r, const struct maq_engine_note *n)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[n->request];
    h->computed = true;
    p->uncomputed[h->prefill]--;
    p->handed[n->request].computed_s = n->at_s;
    if (p->mode == MAQ_KV_TRANSFER_PULL) {
        go_on_to_decode(r, n->request, n->at_s);
    } else if (h->flow != MAQ_NO_FLOW) {
        finish(r, n->request, n->at_s);
    } else if (h->reserved) {
        begin_all(r, n->request, n->at_s);
    } else if (!maq_pools_expect(r, n->request, n->at_s)) {
        p->network.failed = true;
    }
}

static void on_note(struct maq_fleet_run *r, const struct maq_engine_note *n, double now_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[n->request];
    if (n->kind == MAQ_NOTE_RESERVED) {
        on_reserved(r, n);
        return;
    }
    h->prefill_rank = n->rank;
    h->prefill_slot = n->slot;
    if (n->kind == MAQ_NOTE_COMPUTED) {
        on_computed(r, n);
    } else if (n->kind == MAQ_NOTE_LAST && p->mode == MAQ_KV_TRANSFER_LAYER && !h->launched) {
        h->launched = true;
        h->from_s = n->from_s;
        h->until_s = n->at_s;
        if (h->reserved)
            begin_layers(r, n->request, now_s);
    } else if (n->kind == MAQ_NOTE_CHUNK && p->mode == MAQ_KV_TRANSFER_CHUNK) {
        if (h->flow == MAQ_NO_FLOW)
            begin(r, n->request, n->at_s, n->at_s);
        const struct maq_cut *cut = &p->cuts[r->member_of[h->prefill] * r->fleet->n_members + r->member_of[h->decode]];
        double ready = h->size * maq_cut_share(cut, r->requests->at[n->request].prompt, h->found, n->tokens);
        if (h->flow != MAQ_NO_FLOW)
            maq_network_give(&p->network, n->at_s, h->flow, ready - maq_network_given(&p->network, n->at_s, h->flow));
    }
}

static void take_notes(struct maq_fleet_run *r, struct maq_serve_engine *e, double now_s)
{
    for (uint32_t i = 0; i < e->n_notes; i++)
        on_note(r, &e->notes[i], now_s);
    e->n_notes = 0;
}

/* ---- the loop ---- */

static void on_arrived(struct maq_fleet_run *r, uint32_t request)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[request];
    double at_s = p->network.now_s;
    p->handed[request].ends_s = at_s;
    h->flow = MAQ_NO_FLOW;
    h->over = true;
    p->kept[h->prefill]--;
    maq_engine_notice(&r->engines[h->prefill], at_s, h->prefill_rank, h->prefill_slot);
    maq_engine_notice(&r->engines[h->decode], at_s, h->decode_rank, h->decode_slot);
    maq_fleet_brought_forward(r, h->prefill);
    maq_fleet_brought_forward(r, h->decode);
}

/*
 * Whether decode computes a prompt by itself: where it has to compute no more than so much of it; with TensorRT-LLM where it has some of
 * it, too. Where prompts are computed whole an iteration has to have room for all of it: what is cached may be gone when its turn comes.
 */
static bool is_local(struct maq_fleet_run *r, uint32_t request)
{
    int64_t most = r->fleet->handover.max_local_prefill, prompt = r->requests->at[request].prompt;
    struct maq_serve_engine *e = &r->engines[r->pools->handing[request].decode];
    const struct maq_serve_options *o = &e->d->options;
    if (most <= 0 || (o->no_chunked_prefill && prompt > o->max_num_batched_tokens))
        return false;
    int64_t found = maq_engine_cached(e, request);
    return prompt - found <= most && (found > 0 || o->engine != MAQ_ENGINE_TRTLLM);
}

bool maq_pools_route(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    struct maq_fleet_pools *p = r->pools;
    struct maq_handing *h = &p->handing[request];
    bool early = p->mode != MAQ_KV_TRANSFER_PULL, asks = early || r->fleet->handover.max_local_prefill > 0;
    if (h->computed) {
        go_on_to_decode(r, request, at_s);
        return !r->routing.failed && !p->prefill.failed;
    }
    h->flow = MAQ_NO_FLOW;
    h->sent_s = at_s;
    if (asks && has_decode(r)) {
        choose_decode(r, request);
        p->handed[request].local = is_local(r, request);
    }
    if (p->handed[request].local) {
        send_to_decode(r, request, at_s);
        return true;
    }
    if (!has_prefill(r) || (asks && h->decode == 0)) {
        h->decode = 0;
        maq_fleet_hold(r, request, at_s);
        return true;
    }
    h->prefill = maq_routing_choose(&p->prefill, request);
    h->assigned = true;
    p->uncomputed[h->prefill]++;
    p->kept[h->prefill]++;
    p->handed[request].replica = h->prefill;
    if (early)
        send_to_decode(r, request, at_s);
    if (p->mode != MAQ_KV_TRANSFER_CHUNK)
        send_to_prefill(r, request, at_s);
    return true;
}

static void send(struct maq_fleet_run *r)
{
    uint32_t request = maq_clients_send(&r->clients);
    double at_s = r->clients.served[request].arrival_s;
    if (!maq_encode_send(r, request, at_s))
        (void)maq_pools_route(r, request, at_s);
}

/*
 * How far an engine may go: to the next event of anybody. One that is quiet only to that of those who are not: nobody looks at it before they do something, and
 * then all have done what comes before.
 */
static double horizon_s(const struct maq_fleet_run *r, uint32_t engine, double send_s)
{
    bool alone = r->requests->concurrency == 0 && maq_engine_is_quiet(&r->engines[engine]);
    double s = fmin(fmin(send_s, maq_fleet_next_event_s(r)), r->pools->network.next_s);
    for (uint32_t i = 0; i < r->n; i++)
        if (i != engine && r->next_s[i] < s && !(alone && maq_engine_is_quiet(&r->engines[i])))
            s = r->next_s[i];
    return s;
}

static bool has_failed(const struct maq_fleet_run *r, const struct maq_serve_engine *e)
{
    return r->clients.failed || r->routing.failed || r->pools->prefill.failed || r->pools->network.failed ||
           (r->encode && r->encode->failed) || maq_engine_failed(e);
}

enum maq_status maq_pools_loop(struct maq_fleet_run *r)
{
    struct maq_network *net = &r->pools->network;
    while (maq_clients_go_on(&r->clients)) {
        double send_s = maq_clients_next_s(&r->clients), event_s = maq_fleet_next_event_s(r);
        uint32_t first = r->heap[0], request;
        struct maq_serve_engine *e = &r->engines[first];
        if (event_s < (double)INFINITY && event_s <= fmin(fmin(net->next_s, send_s), r->next_s[first])) {
            MAQ_TRY(maq_fleet_event(r));
        } else if (!isinf(net->next_s) && net->next_s <= send_s && net->next_s <= r->next_s[first]) {
            if (maq_network_step(net, &request))
                on_arrived(r, request);
        } else if (r->next_s[first] < send_s) {
            double until_s = horizon_s(r, first, send_s), now_s = r->next_s[first];
            if (until_s <= now_s) /* two at the same time: one after the other */
                until_s = nextafter(now_s, (double)INFINITY);
            maq_engine_step(e, until_s);
            r->next_s[first] = maq_engine_next_s(e);
            maq_fleet_settle(r);
            take_notes(r, e, now_s);
        } else if (send_s < (double)INFINITY) {
            send(r);
        } else {
            return MAQ_LIMIT; /* those that wait never fit */
        }
        if (has_failed(r, e))
            return MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}
