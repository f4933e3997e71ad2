/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission.c - requests that wait at the router, because nobody is there or because those that are have as many as they may.
 *
 * The router decides when somebody takes the first one that waits, and not before: what it knows then is what counts. So does Dynamo's with
 * --router-queue-threshold (docs of its router's options); SGLang's gateway has one limit for all (--max-concurrent-requests), a queue behind it (--queue-size, 100) and
 * answers 429 to what finds that full (sgl-model-gateway/src/middleware.rs at 0317c97).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/fleet/pools.h"

enum maq_status maq_fleet_begin_queue(struct maq_fleet_run *r)
{
    const struct maq_fleet *f = r->fleet;
    uint32_t n = r->requests->n ? r->requests->n : 1;
    r->routing.max_requests = f->admission.max_requests;
    if (f->admission.max_requests == 0 && f->n_events == 0 && !f->scaling && !f->prefill_scaling &&
        f->encode_replicas == 0)
        return MAQ_OK;
    r->held_size = 2 * n; /* so that they are moved to the front seldom */
    r->held = maq__calloc((size_t)r->held_size * sizeof *r->held);
    r->has_waited = maq__calloc(n * sizeof *r->has_waited);
    return r->held && r->has_waited ? MAQ_OK : MAQ_NO_MEMORY;
}

void maq_fleet_hold(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    const struct maq_admission *a = &r->fleet->admission;
    if (a->bounded && r->n_held >= a->max_waiting) {
        r->admission.refused++;
        maq_clients_refuse(&r->clients, request);
        return;
    }
    if (r->held_first + r->n_held == r->held_size) {
        memmove(r->held, r->held + r->held_first, r->n_held * sizeof *r->held);
        r->held_first = 0;
    }
    r->held[r->held_first + r->n_held++] = (struct maq_held){request, at_s};
    r->admission.waited += !r->has_waited[request];
    r->has_waited[request] = true;
    r->admission.most_waiting = r->n_held > r->admission.most_waiting ? r->n_held : r->admission.most_waiting;
}

struct maq_held maq_fleet_take_held(struct maq_fleet_run *r)
{
    r->n_held--;
    return r->held[r->held_first++];
}

bool maq_fleet_admit(struct maq_fleet_run *r, double at_s)
{
    while (r->n_held > 0 && maq_routing_takes(&r->routing)) {
        const struct maq_held h = maq_fleet_take_held(r);
        r->admission.wait_s += at_s - h.since_s;
        if (!maq_fleet_send(r, h.request, at_s))
            return false;
    }
    return true;
}

void maq_fleet_fill_admission(const struct maq_fleet_run *r, struct maq_serve_result *out)
{
    if (r->routing.max_requests == 0)
        return;
    out->admission = r->admission;
    out->admission.max_requests = r->routing.max_requests;
    out->admission.wait_s /= r->admission.waited > 0 ? r->admission.waited : 1;
}
