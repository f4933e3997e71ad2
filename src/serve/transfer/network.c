/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - rates that are max-min fair, and what happens next. */
#include "serve/transfer/network.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

/* ---- one transfer ---- */

static double given(const struct maq_flow *f, double now_s)
{
    double until = now_s < f->grow_until_s ? now_s : f->grow_until_s;
    return f->given + (until > f->grow_from_s ? f->grow_bps * (until - f->grow_from_s) : 0);
}

static bool grows(const struct maq_flow *f, double now_s)
{
    return f->grow_bps > 0 && f->grow_from_s <= now_s && now_s < f->grow_until_s;
}

/* What it could use of an idle network. */
static double wants(const struct maq_flow *f, double now_s)
{
    if (now_s < f->begins_s)
        return 0;
    if (given(f, now_s) > f->sent)
        return f->most_bps;
    return grows(f, now_s) ? fmin(f->grow_bps, f->most_bps) : 0;
}

/* What has grown to its end is given. */
static void fold(struct maq_flow *f, double now_s)
{
    if (f->grow_bps <= 0 || now_s < f->grow_until_s)
        return;
    f->given += f->grow_bps * (f->grow_until_s - f->grow_from_s);
    f->grow_bps = 0;
}

/* When its rate or what it has changes, at its rate of now, and whether that is because it has sent all that there is. */
static void look_ahead(struct maq_flow *f, double now_s)
{
    double backlog = given(f, now_s) - f->sent, faster = grows(f, now_s) ? f->bps - f->grow_bps : f->bps,
           empty_s = backlog > 0 && faster > 0 ? now_s + backlog / faster : (double)INFINITY;
    f->empties = false;
    if (now_s < f->begins_s) {
        f->next_s = f->begins_s;
        return;
    }
    f->next_s = f->grow_bps <= 0 ? (double)INFINITY : now_s < f->grow_from_s ? f->grow_from_s : f->grow_until_s;
    if (f->closed && backlog <= 0 && f->grow_bps <= 0)
        f->next_s = now_s;
    if (empty_s <= f->next_s) {
        f->next_s = empty_s;
        f->empties = !isinf(empty_s);
    }
}

/* ---- all ---- */

/* The least that a port has for each of those that want more through it, or that one of them wants at the most. */
static double level_of(const struct maq_network *n)
{
    double level = (double)INFINITY;
    for (uint32_t i = 0; i < n->n; i++) {
        const struct maq_flow *f = &n->at[n->order[i]];
        if (f->fixed)
            continue;
        level = fmin(level, f->bps);
        for (int p = 0; p < 2; p++)
            level = fmin(level, n->ports[f->port[p]].left / n->ports[f->port[p]].wanted);
    }
    return level;
}

static bool is_stuck(const struct maq_network *n, const struct maq_flow *f, double level)
{
    for (int p = 0; p < 2; p++)
        if (n->ports[f->port[p]].left / n->ports[f->port[p]].wanted <= level)
            return true;
    return f->bps <= level;
}

/* What a transfer takes at a level is no longer there for others. */
static void fix(struct maq_network *n, struct maq_flow *f, double level)
{
    f->fixed = true;
    f->bps = level;
    for (int p = 0; p < 2; p++) {
        struct maq_port *port = &n->ports[f->port[p]];
        double left = port->left - level * f->share[p];
        port->wanted -= f->share[p];
        port->left = left > 0 ? left : 0;
    }
}

/* Ports are whole again; bps is what each wants. How many want something. */
static uint32_t begin_division(struct maq_network *n)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        struct maq_flow *f = &n->at[n->order[i]];
        f->bps = wants(f, n->now_s);
        f->fixed = f->bps <= 0;
        open += !f->fixed;
        for (int p = 0; p < 2; p++) {
            n->ports[f->port[p]].left = n->ports[f->port[p]].bps;
            n->ports[f->port[p]].wanted = 0;
        }
    }
    for (uint32_t i = 0; i < n->n; i++) {
        const struct maq_flow *f = &n->at[n->order[i]];
        for (int p = 0; p < 2 && !f->fixed; p++)
            n->ports[f->port[p]].wanted += f->share[p];
    }
    return open;
}

/* Those that are stuck at a level are found before any of them is fixed. */
static void divide(struct maq_network *n)
{
    for (uint32_t open = begin_division(n); open > 0;) {
        double level = level_of(n);
        for (uint32_t i = 0; i < n->n; i++) {
            struct maq_flow *f = &n->at[n->order[i]];
            f->stuck = !f->fixed && is_stuck(n, f, level);
        }
        for (uint32_t i = 0; i < n->n; i++) {
            struct maq_flow *f = &n->at[n->order[i]];
            if (!f->stuck)
                continue;
            fix(n, f, level);
            open--;
        }
    }
}

static void settle(struct maq_network *n)
{
    divide(n);
    n->next_s = (double)INFINITY;
    for (uint32_t i = 0; i < n->n; i++) {
        struct maq_flow *f = &n->at[n->order[i]];
        look_ahead(f, n->now_s);
        n->next_s = fmin(n->next_s, f->next_s);
    }
}

/* Time goes on, no further than to the next event. Who has sent all by then has sent exactly all. */
static void advance(struct maq_network *n, double to_s)
{
    for (uint32_t i = 0; i < n->n; i++) {
        struct maq_flow *f = &n->at[n->order[i]];
        double all = given(f, to_s), sent = to_s > n->now_s ? f->sent + f->bps * (to_s - n->now_s) : f->sent;
        f->sent = (f->empties && f->next_s <= to_s) || sent > all ? all : sent;
        fold(f, to_s);
    }
    n->now_s = to_s > n->now_s ? to_s : n->now_s;
}

/* ---- what the caller does ---- */

uint32_t maq_network_begin(struct maq_network *n, double now_s, const struct maq_flow_begin *what)
{
    uint32_t slot = n->n_free > 0 ? n->free[n->n_free - 1] : n->n_slots;
    if (!maq__grow((void **)&n->at, &n->slots_size, slot, sizeof *n->at) ||
        !maq__grow((void **)&n->order, &n->order_size, n->n, sizeof *n->order)) {
        n->failed = true;
        return MAQ_NO_FLOW;
    }
    if (n->n_free > 0)
        n->n_free--;
    else
        n->n_slots++;
    advance(n, now_s);
    n->at[slot] = (struct maq_flow){.port = {what->port[0], what->port[1]},
                                    .share = {what->share[0], what->share[1]},
                                    .most_bps = what->most_bps,
                                    .begins_s = what->begins_s,
                                    .user = what->user};
    n->order[n->n++] = slot;
    return slot;
}

void maq_network_give(struct maq_network *n, double now_s, uint32_t flow, double bytes)
{
    advance(n, now_s);
    n->at[flow].given += bytes;
    settle(n);
}

void maq_network_grow(struct maq_network *n, double now_s, uint32_t flow, double bps, double from_s, double until_s)
{
    advance(n, now_s);
    n->at[flow].grow_bps = bps;
    n->at[flow].grow_from_s = from_s;
    n->at[flow].grow_until_s = until_s;
    fold(&n->at[flow], now_s);
    settle(n);
}

void maq_network_close(struct maq_network *n, double now_s, uint32_t flow)
{
    advance(n, now_s);
    n->at[flow].closed = true;
    settle(n);
}

double maq_network_given(const struct maq_network *n, double now_s, uint32_t flow)
{
    return given(&n->at[flow], now_s);
}

/* The transfer at a place of the order is no more. */
static void take_out(struct maq_network *n, uint32_t place)
{
    if (!maq__grow((void **)&n->free, &n->free_size, n->n_free, sizeof *n->free))
        n->failed = true;
    else
        n->free[n->n_free++] = n->order[place];
    for (uint32_t k = place + 1; k < n->n; k++)
        n->order[k - 1] = n->order[k];
    n->n--;
    settle(n);
}

double maq_network_cancel(struct maq_network *n, double now_s, uint32_t flow)
{
    uint32_t place = 0;
    advance(n, now_s);
    while (n->order[place] != flow)
        place++;
    double sent = n->at[flow].sent;
    take_out(n, place);
    return sent;
}

/* Has sent all, and nothing comes. */
static bool is_done(const struct maq_flow *f, double now_s)
{
    return f->closed && now_s >= f->begins_s && f->grow_bps <= 0 && f->sent >= f->given;
}

bool maq_network_step(struct maq_network *n, uint32_t *user)
{
    advance(n, n->next_s);
    for (uint32_t i = 0; i < n->n; i++) {
        struct maq_flow *f = &n->at[n->order[i]];
        if (!is_done(f, n->now_s))
            continue;
        *user = f->user;
        take_out(n, i);
        return true;
    }
    settle(n);
    return false;
}

/* ---- begin and end ---- */

bool maq_network_init(struct maq_network *n, uint32_t n_ports)
{
    *n = (struct maq_network){.n_ports = n_ports, .next_s = (double)INFINITY, .now_s = -(double)INFINITY};
    n->ports = maq__calloc((n_ports ? n_ports : 1u) * sizeof *n->ports);
    for (uint32_t i = 0; n->ports && i < n_ports; i++)
        n->ports[i].bps = (double)INFINITY;
    return n->ports != NULL;
}

void maq_network_fini(struct maq_network *n)
{
    free(n->ports);
    free(n->at);
    free(n->order);
    free(n->free);
}
