/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autoscaling_run.c - replicas that a rule asks for (autoscaling.h), by the load that it sees.
 *
 *                 requests                                            waiting                  kv
 *   both          sent there, not ended; and at the router            of them, not running     shares in use
 *   decode        likewise, once it has heard of them (pools.c)       likewise                 likewise
 *   prefill       sent there, prompts not computed; and at the router likewise                 likewise, with what decode has not read
 *
 * What waits at the router counts where it would be sent next. Rules of two pools do not know of each other.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/fleet/encode_pool.h"
#include "serve/fleet/pools.h"

/* ---- who is scaled ---- */

struct range {
    uint32_t from, to; /* engines */
};

static struct range range_of(const struct maq_fleet_run *r, enum maq_scaled which)
{
    uint32_t prefill = r->pools ? r->pools->n_prefill : 0;
    return which == MAQ_SCALED_PREFILL ? (struct range){0, prefill} : (struct range){prefill, r->n};
}

/* ---- its load ---- */

static uint32_t requests_of(const struct maq_fleet_run *r, uint32_t k)
{
    return r->pools && k < r->pools->n_prefill ? r->pools->uncomputed[k] : r->engines[k].outstanding;
}

static bool waits_for(const struct maq_fleet_run *r, uint32_t request, enum maq_scaled which)
{
    if (!r->pools)
        return true;
    bool computed = r->pools->handing[request].computed, early = r->pools->mode != MAQ_KV_TRANSFER_PULL;
    return which == MAQ_SCALED_PREFILL ? !computed : computed || early;
}

static double load_of(const struct maq_fleet_run *r, enum maq_scaled which)
{
    enum maq_autoscaling_metric metric = r->scaling[which].rule->metric;
    const struct range all = range_of(r, which);
    double sum = 0;
    for (uint32_t k = all.from; k < all.to; k++) {
        if (r->away[k])
            continue;
        struct maq_scheduler_load load = maq_engine_load(&r->engines[k]);
        uint32_t requests = requests_of(r, k);
        if (metric == MAQ_AUTOSCALING_KV)
            sum += load.all > 0 ? (double)load.used / (double)load.all : 0;
        else
            sum += requests - (metric == MAQ_AUTOSCALING_WAITING ? fmin(load.running, requests) : 0);
    }
    for (uint32_t i = 0; i < r->n_held && metric != MAQ_AUTOSCALING_KV; i++)
        sum += waits_for(r, maq_fleet_held(r, i), which);
    return sum;
}

/* ---- what happens ---- */

/* While nothing goes on nobody looks: what waits then waits for somebody to come, or for ever. */
static bool is_idle(const struct maq_fleet_run *r, double listed_s)
{
    double network_s = r->pools ? fmin(r->pools->network.next_s, r->pools->next_lease_s) : (double)INFINITY;
    network_s = fmin(network_s, r->encode ? r->encode->next_s : (double)INFINITY);
    return isinf(r->next_s[r->heap[0]]) && isinf(maq_clients_next_s(&r->clients)) && isinf(network_s) &&
           isinf(listed_s);
}

static double next_look_s(const struct maq_fleet_run *r)
{
    double next = (double)INFINITY;
    for (int i = 0; i < MAQ_SCALED_COUNT; i++)
        next = r->scaling[i].rule ? fmin(next, r->scaling[i].next_s) : next;
    return next;
}

double maq_fleet_next_scaling_s(const struct maq_fleet_run *r, double listed_s)
{
    return is_idle(r, listed_s) ? r->first_comes_s : fmin(r->first_comes_s, next_look_s(r));
}

static void find_first_to_come(struct maq_fleet_run *r)
{
    r->first_comes_s = (double)INFINITY;
    for (uint32_t k = 0; k < r->n; k++)
        r->first_comes_s = fmin(r->first_comes_s, r->comes_s[k]);
}

/* Those that have started take requests. */
static enum maq_status come(struct maq_fleet_run *r)
{
    double at_s = r->first_comes_s;
    for (uint32_t k = 0; k < r->n; k++)
        if (r->comes_s[k] <= at_s) {
            r->comes_s[k] = (double)INFINITY;
            MAQ_TRY(maq_fleet_apply(r, &(struct maq_fleet_event){at_s, k, MAQ_FLEET_COMES}));
        }
    find_first_to_come(r);
    return MAQ_OK;
}

/* The rule looks: replicas are asked for, or leave, the last ones first. */
static enum maq_status look(struct maq_fleet_run *r, enum maq_scaled which)
{
    struct maq_autoscaling *s = &r->scaling[which];
    double at_s = s->next_s;
    uint32_t from = range_of(r, which).from, before = s->wanted;
    MAQ_TRY(maq_autoscaling_look(s, load_of(r, which)));
    for (uint32_t k = from + before; k < from + s->wanted; k++)
        r->comes_s[k] = at_s + s->rule->start_s + r->fleet->members[r->member_of[k]].load_s;
    for (uint32_t k = from + s->wanted; k < from + before; k++) {
        if (isinf(r->comes_s[k]))
            MAQ_TRY(maq_fleet_apply(r, &(struct maq_fleet_event){at_s, k, MAQ_FLEET_LEAVES}));
        r->comes_s[k] = (double)INFINITY;
    }
    find_first_to_come(r);
    return MAQ_OK;
}

enum maq_status maq_fleet_scale(struct maq_fleet_run *r)
{
    double look_s = next_look_s(r);
    if (r->first_comes_s <= look_s)
        return come(r);
    for (int i = 0; i < MAQ_SCALED_COUNT; i++)
        if (r->scaling[i].rule && r->scaling[i].next_s <= look_s)
            return look(r, (enum maq_scaled)i);
    MAQ_ASSERT(false);
    return MAQ_OK;
}

/* ---- begin ---- */

static enum maq_status begin_rule(struct maq_fleet_run *r, enum maq_scaled which,
                                  const struct maq_autoscaling_rule *rule)
{
    const struct range all = range_of(r, which);
    if (!rule)
        return MAQ_OK;
    MAQ_TRY(maq_autoscaling_init(&r->scaling[which], rule, all.to - all.from, r->clients.first_s));
    for (uint32_t k = all.from; k < all.to; k++) {
        r->unwanted[k] = k - all.from >= r->scaling[which].wanted;
        maq_fleet_settle_state(r, k);
    }
    return MAQ_OK;
}

enum maq_status maq_fleet_begin_scaling(struct maq_fleet_run *r)
{
    r->comes_s = maq__calloc(r->n * sizeof *r->comes_s);
    if (!r->comes_s)
        return MAQ_NO_MEMORY;
    r->first_comes_s = (double)INFINITY;
    for (uint32_t k = 0; k < r->n; k++)
        r->comes_s[k] = (double)INFINITY;
    MAQ_TRY(begin_rule(r, MAQ_SCALED_DECODE, r->fleet->scaling));
    return begin_rule(r, MAQ_SCALED_PREFILL, r->fleet->prefill_scaling);
}
