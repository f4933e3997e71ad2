/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - replicas in the order of members. */
#include "serve/fleet/placement.h"

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

/* Members of one cluster have equal ones, in jobs of their own. */
const struct maq_cluster *maq_fleet_place(const struct maq_fleet *f, struct maq_replica_placement *places,
                                          uint64_t *needed)
{
    const struct maq_cluster *small = NULL;
    bool roles = maq_fleet_has_roles(f);
    uint64_t next = 0;
    uint32_t id = 0, small_id = 0;
    struct engine_order order = order_of(f);
    for (uint32_t m = 0; m < f->n_members; m++) {
        const struct maq_fleet_member *member = &f->members[m];
        const struct maq_job *job = member->job;
        int32_t dp = member->options->dp > 1 ? member->options->dp : 1;
        uint32_t size = (uint32_t)(job->plan.tp * job->plan.pp * dp + member->options->afd.ffn_ranks),
                 node = (uint32_t)job->cluster.groups[0].devices_per_node;
        if (m > 0 && (roles ? member->own_cluster : !member->shares_cluster)) {
            next = 0;
            id++;
        }
        for (uint32_t i = 0; i < member->replicas; i++) {
            if (roles && size <= node && next % node + size > node)
                next += node - next % node;
            places[next_engine(&order, member)] =
                (struct maq_replica_placement){&job->cluster, id, (uint32_t)next, size, job->plan.tp, job->plan.pp};
            next += size;
            if (next > job->cluster.devices && (!small || small_id == id)) {
                small = &job->cluster;
                small_id = id;
                *needed = next;
            }
        }
    }
    return small;
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
