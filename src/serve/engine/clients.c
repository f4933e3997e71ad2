/* SPDX-License-Identifier: Apache-2.0 */
/* clients.c - when requests are sent, and the latencies of those that have ended. */
#include "serve/engine/clients.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/engine/uncertainty.h"

/* ---- when ---- */

static void due(struct maq_clients *c, double at_s)
{
    if (!maq__grow((void **)&c->due_s, &c->due_size, c->n_due, sizeof *c->due_s)) {
        c->failed = true;
        return;
    }
    uint32_t i = c->n_due++;
    for (; i > 0 && c->due_s[(i - 1) / 2] > at_s; i = (i - 1) / 2)
        c->due_s[i] = c->due_s[(i - 1) / 2];
    c->due_s[i] = at_s;
}

static double take_due(struct maq_clients *c)
{
    double first = c->due_s[0], last = c->due_s[--c->n_due];
    uint32_t i = 0, child;
    for (; (child = 2 * i + 1) < c->n_due; i = child) {
        if (child + 1 < c->n_due && c->due_s[child + 1] < c->due_s[child])
            child++;
        if (last <= c->due_s[child])
            break;
        c->due_s[i] = c->due_s[child];
    }
    c->due_s[i] = last;
    return first;
}

/* The server is being warmed up, and all that is sent for that is under way. */
static bool warms_up(const struct maq_clients *c)
{
    return c->sent == c->requests->warmup && c->finished + c->refused < c->requests->warmup;
}

double maq_clients_next_s(const struct maq_clients *c)
{
    if (c->sent == c->requests->n || warms_up(c))
        return (double)INFINITY;
    if (c->requests->concurrency == 0)
        return c->requests->at[c->sent].arrival_s;
    return c->n_due > 0 ? c->due_s[0] : (double)INFINITY;
}

uint32_t maq_clients_send(struct maq_clients *c)
{
    double at_s = c->requests->concurrency > 0 ? take_due(c) : c->requests->at[c->sent].arrival_s;
    c->served[c->sent] = (struct maq_served){.arrival_s = at_s, .scheduled_s = at_s, .first_s = -1, .last_s = -1};
    return c->sent++;
}

void maq_clients_retry(struct maq_clients *c, uint32_t request, double at_s)
{
    struct maq_served *s = &c->served[request];
    *s = (struct maq_served){.arrival_s = s->arrival_s,
                             .scheduled_s = at_s,
                             .first_s = -1,
                             .last_s = -1,
                             .preemptions = s->preemptions,
                             .retries = s->retries + 1};
}

void maq_clients_refuse(struct maq_clients *c, uint32_t request)
{
    struct maq_served *s = &c->served[request];
    *s = (struct maq_served){.arrival_s = s->arrival_s,
                             .scheduled_s = s->arrival_s,
                             .first_s = -1,
                             .last_s = -1,
                             .preemptions = s->preemptions,
                             .refused = 1,
                             .retries = s->retries};
    c->refused++;
    if (c->ended)
        c->ended[request] = true;
}

/* ---- what they have seen ---- */

void maq_clients_finish(struct maq_clients *c, uint32_t request)
{
    const struct maq_served *s = &c->served[request];
    int64_t tokens = c->requests->at[request].output;
    maq_latency_add(&c->ttft, s->first_s - s->arrival_s);
    maq_latency_add(&c->e2el, s->last_s - s->arrival_s);
    maq_latency_add(&c->queue, s->scheduled_s - s->arrival_s);
    if (tokens > 1)
        maq_latency_add(&c->tpot, (s->last_s - s->first_s) / (double)(tokens - 1));
    c->finished++;
    if (c->ended)
        c->ended[request] = true;
    maq_slo_hope_add(&c->hope, s, tokens);
    c->cached += (uint64_t)s->cached;
    if (c->requests->concurrency > 0 && c->sent + c->n_due < c->requests->n)
        due(c, s->last_s);
    c->last_s = s->last_s > c->last_s ? s->last_s : c->last_s;
    for (uint32_t i = 0; i < c->n_due && c->finished + c->refused == c->requests->warmup; i++)
        c->due_s[i] = c->last_s; /* all at once */
}

/* With one server, requests that come a tenth faster than they are served leave a tenth of them waiting when the last one arrives. */
#define OVERLOADED_SHARE 0.1
#define OVERLOADED_LEAST 16

/* What waits when the last request arrives; where all arrive at once that is no sign of anything. */
static void count_waiting(struct maq_serve_result *out)
{
    double first_s = (double)INFINITY, last_s = -(double)INFINITY;
    for (uint32_t i = 0; i < out->n_requests; i++) {
        first_s = fmin(first_s, out->served[i].arrival_s);
        last_s = fmax(last_s, out->served[i].arrival_s);
    }
    for (uint32_t i = 0; i < out->n_requests; i++)
        out->waiting += out->served[i].arrival_s < last_s && out->served[i].scheduled_s > last_s;
    out->overloaded = first_s < last_s && maq_clients_overloaded(out);
}

bool maq_clients_overloaded(const struct maq_serve_result *r)
{
    return r->waiting >= OVERLOADED_LEAST && r->waiting > OVERLOADED_SHARE * r->n_requests;
}

void maq_clients_fill(const struct maq_clients *c, struct maq_serve_result *out)
{
    double in = 0, output = 0;
    for (uint32_t i = 0; i < c->requests->n; i++) {
        if (c->served[i].refused)
            continue;
        in += (double)c->requests->at[i].prompt;
        output += (double)c->requests->at[i].output;
    }
    out->n_requests = c->requests->n;
    out->finished = c->finished;
    count_waiting(out);
    out->duration_s = c->last_s - c->first_s;
    double t = out->duration_s > 0 ? out->duration_s : 1;
    out->requests_per_s = out->finished / t;
    out->input_tokens_per_s = in / t;
    out->output_tokens_per_s = output / t;
    out->total_tokens_per_s = (in + output) / t;
    out->ttft_s = maq_latency_quantiles(&c->ttft);
    out->tpot_s = maq_latency_quantiles(&c->tpot);
    out->itl_s = maq_latency_quantiles(&c->itl);
    out->e2el_s = maq_latency_quantiles(&c->e2el);
    out->queue_s = maq_latency_quantiles(&c->queue);
    maq_serve_intervals(out);
    out->prefix_hit_rate = in > 0 ? (double)c->cached / in : 0;
}

/* ---- begin and end ---- */

bool maq_clients_init(struct maq_clients *c, const struct maq_requests *requests, struct maq_served *served)
{
    *c = (struct maq_clients){
        .requests = requests, .served = served, .hope = {.slo = requests->give_up, .n = requests->n}};
    c->first_s = requests->n > 0 && requests->concurrency == 0 ? requests->at[0].arrival_s : 0;
    for (uint32_t i = 0; i < requests->concurrency && i < requests->n; i++)
        due(c, 0);
    return !c->failed && maq_latency_init(&c->itl) && maq_latency_init(&c->ttft) && maq_latency_init(&c->tpot) &&
           maq_latency_init(&c->e2el) && maq_latency_init(&c->queue);
}

void maq_clients_fini(struct maq_clients *c)
{
    maq_latency_fini(&c->itl);
    maq_latency_fini(&c->ttft);
    maq_latency_fini(&c->tpot);
    maq_latency_fini(&c->e2el);
    maq_latency_fini(&c->queue);
    free(c->due_s);
}
