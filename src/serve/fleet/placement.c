/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - replicas in the order of members. */
#include "serve/fleet/placement.h"

#include <stdlib.h>

#include "base/alloc.h"

const char *maq_fleet_placement_name(enum maq_fleet_placement placement)
{
#define MAQ_FLEET_PLACEMENT_NAME(id, name, what) name,
    static const char *const names[] = {MAQ_FLEET_PLACEMENT_LIST(MAQ_FLEET_PLACEMENT_NAME)};
#undef MAQ_FLEET_PLACEMENT_NAME
    return (unsigned)placement < MAQ_FLEET_PLACEMENT_COUNT ? names[placement] : "";
}

bool maq_fleet_has_roles(const struct maq_fleet *f)
{
    for (uint32_t m = 0; m < f->n_members; m++)
        if (f->members[m].role != MAQ_ROLE_BOTH)
            return true;
    return false;
}

/* Where the next replica of either kind is among the engines: those that compute prompts are in front. */
struct engine_order {
    uint32_t prefill, behind;
};

static struct engine_order order_of(const struct maq_fleet *f)
{
    struct engine_order o = {0};
    for (uint32_t m = 0; m < f->n_members; m++)
        o.behind += f->members[m].role == MAQ_ROLE_PREFILL ? f->members[m].replicas : 0;
    return o;
}

static uint32_t next_engine(struct engine_order *o, const struct maq_fleet_member *member)
{
    return member->role == MAQ_ROLE_PREFILL ? o->prefill++ : o->behind++;
}

/* GPUs of a cluster that replicas have, as they are given out. */
struct taking {
    enum maq_fleet_placement placement;
    bool roles;
    uint32_t node;  /* GPUs of one */
    uint32_t nodes; /* that the cluster has */
    uint64_t next;  /* behind all that is taken */
    uint32_t *of;   /* [nodes] taken, where replicas are spread */
};

/* The node with fewest GPUs taken that has room, or `nodes`. */
static uint32_t emptiest(const struct taking *t, uint32_t size)
{
    uint32_t best = t->nodes;
    for (uint32_t i = 0; t->of && i < t->nodes; i++)
        if (t->of[i] + size <= t->node && (best == t->nodes || t->of[i] < t->of[best]))
            best = i;
    return best;
}

static uint64_t spread(struct taking *t, uint32_t size)
{
    uint32_t at = size <= t->node ? emptiest(t, size) : t->nodes, more = (size + t->node - 1) / t->node;
    uint64_t first;
    if (at < t->nodes) {
        first = (uint64_t)at * t->node + t->of[at];
        t->of[at] += size;
    } else { /* whole nodes behind all others: too many, where a small one has found none */
        first = (t->next + t->node - 1) / t->node * t->node;
        for (uint32_t i = 0; t->of && i < more && first / t->node + i < t->nodes; i++)
            t->of[first / t->node + i] = t->node;
    }
    return first;
}

static uint64_t take(struct taking *t, uint32_t size)
{
    uint64_t first = t->next, in = first % t->node;
    if (t->placement == MAQ_PLACEMENT_SPREAD)
        first = spread(t, size);
    else if (t->roles && size <= t->node && in + size > t->node)
        first += t->node - in;
    t->next = first + size > t->next ? first + size : t->next;
    return first;
}

static bool begin_cluster(struct taking *t, const struct maq_cluster *c)
{
    t->next = 0;
    t->node = c->groups[0].devices_per_node > 0 ? (uint32_t)c->groups[0].devices_per_node : 1;
    t->nodes = c->devices / t->node;
    free(t->of);
    t->of = t->placement == MAQ_PLACEMENT_SPREAD ? maq__calloc((t->nodes + 1u) * sizeof *t->of) : NULL;
    return t->of || t->placement != MAQ_PLACEMENT_SPREAD;
}

/* Members of one cluster have equal ones, in jobs of their own. */
enum maq_status maq_fleet_place(const struct maq_fleet *f, struct maq_replica_placement *places,
                                const struct maq_cluster **small, uint64_t *needed)
{
    struct taking t = {.placement = f->placement, .roles = maq_fleet_has_roles(f)};
    uint32_t id = 0, small_id = 0;
    struct engine_order order = order_of(f);
    *small = NULL;
    for (uint32_t m = 0; m < f->n_members; m++) {
        const struct maq_fleet_member *member = &f->members[m];
        const struct maq_job *job = member->job;
        int32_t dp = member->options->dp > 1 ? member->options->dp : 1;
        uint32_t size = (uint32_t)(job->plan.tp * job->plan.pp * dp + member->options->afd.ffn_ranks);
        bool own = m > 0 && (t.roles ? member->own_cluster : !member->shares_cluster);
        id += own;
        if ((m == 0 || own) && !begin_cluster(&t, &job->cluster))
            return MAQ_NO_MEMORY;
        for (uint32_t i = 0; i < member->replicas; i++) {
            uint64_t first = take(&t, size);
            places[next_engine(&order, member)] =
                (struct maq_replica_placement){&job->cluster, id, (uint32_t)first, size, job->plan.tp, job->plan.pp};
            if (t.next > job->cluster.devices && (!*small || small_id == id)) {
                *small = &job->cluster;
                small_id = id;
                *needed = t.next;
            }
        }
    }
    free(t.of);
    return MAQ_OK;
}

void maq_fleet_members_of(const struct maq_fleet *f, uint32_t *member)
{
    struct engine_order order = order_of(f);
    for (uint32_t m = 0; m < f->n_members; m++)
        for (uint32_t i = 0; i < f->members[m].replicas; i++)
            member[next_engine(&order, &f->members[m])] = m;
}

void maq_fleet_load_times(const struct maq_fleet *f, double *load_s)
{
    struct engine_order order = order_of(f);
    for (uint32_t m = 0; m < f->n_members; m++)
        for (uint32_t i = 0; i < f->members[m].replicas; i++)
            load_s[next_engine(&order, &f->members[m])] = f->members[m].load_s;
}
