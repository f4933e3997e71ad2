/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_groups.c - rank layout: the placement of a plan's process groups on the cluster.
 *
 * Megatron-LM numbers ranks by an order string, fastest dimension first (megatron/core/parallel_state.py,
 * RankGenerator). The dense groups use (tp, cp, dp, pp), the expert groups of the same world (etp, ep, edp,
 * pp), where etp stands at tp's place, ep at ep's, edp at dp's, and cp is 1. A dimension's groups then have a
 * fixed stride: the product of the sizes of the faster ones. A group over two dimensions (DP x CP) is one
 * range of a single stride when they are neighbours in the order, and a product of two ranges otherwise.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/codes.h"
#include "plan/job_build.h"

enum { DIM_TP, DIM_CP, DIM_EP, DIM_DP, DIM_PP, DIM_COUNT };
static const char *const dim_names[DIM_COUNT] = {"tp", "cp", "ep", "dp", "pp"};

struct range {
    uint32_t size, stride;
};

/* The ranks of one pipeline stage: `first`, then every rank whose pipeline coordinate is the same. */
struct stage_ranks {
    uint32_t first, stride, pp;
    uint32_t span; /* from the first one on: where groups like its own begin */
};

/* Parses "tp-cp-ep-dp-pp" into a permutation; false when it is not one. */
static bool parse_order(int order[DIM_COUNT], struct maq_str text)
{
    unsigned seen = 0;
    for (int i = 0; i < DIM_COUNT; i++) {
        struct maq_str word;
        text = maq_str_split(text, '-', &word);
        int dim = 0;
        while (dim < DIM_COUNT && !maq_str_is(word, dim_names[dim]))
            dim++;
        if (dim == DIM_COUNT || (seen & (1u << dim)))
            return false;
        seen |= 1u << dim;
        order[i] = dim;
    }
    return text.ptr == NULL;
}

static void ranges_of(struct range out[DIM_COUNT], const int order[DIM_COUNT], const uint32_t size[DIM_COUNT])
{
    uint32_t stride = 1;
    for (int i = 0; i < DIM_COUNT; i++) {
        out[order[i]] = (struct range){size[order[i]], stride};
        stride *= size[order[i]];
    }
}

/* Fewer members per domain means more traffic on the network: the group that a collective waits for. */
static bool is_worse(struct maq_placement a, struct maq_placement b)
{
    if (a.domains != b.domains)
        return a.domains > b.domains;
    return a.per_domain < b.per_domain;
}

/* Of two groups alike in that, the one on the slower links. */
static bool is_slower(const struct maq_cluster *cluster, struct maq_placement a, struct maq_placement b)
{
    if (is_worse(a, b) || is_worse(b, a))
        return is_worse(a, b);
    struct maq_links x = maq_cluster_links(cluster, &a, 1), y = maq_cluster_links(cluster, &b, 1);
    if (x.far.bps > 0 || y.far.bps > 0)
        return x.far.bps < y.far.bps;
    return a.domains > 1 ? x.host.bps < y.host.bps : x.near.bps < y.near.bps;
}

/* The first rank of a stage that is not before `from`. */
static uint32_t next_of_stage(struct stage_ranks st, uint32_t from)
{
    uint32_t t = from > st.first ? from : st.first, mine = st.first / st.stride % st.pp, here = t / st.stride % st.pp;
    return here == mine ? t : (t / st.stride + (mine + st.pp - here) % st.pp) * st.stride;
}

/*
 * A stage on nodes of several kinds has groups on each of them, and all wait for the slowest. For every kind of node, the
 * group of its first rank and the next group are tried: the former may lie across the border, the latter does not.
 */
static struct maq_placement place_mixed(const struct maq_cluster *c, struct stage_ranks st, struct range r)
{
    struct maq_placement worst = maq_cluster_place(c, st.first, r.size, r.stride);
    uint32_t extent = r.size * r.stride;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        uint32_t end = g + 1 < c->n_groups ? c->groups[g + 1].first_rank : c->devices;
        uint32_t t = next_of_stage(st, c->groups[g].first_rank);
        for (int i = 0; i < 2 && t < end; i++, t = next_of_stage(st, (t / extent + 1) * extent)) {
            struct maq_placement p = maq_cluster_place(c, t - t / r.stride % r.size * r.stride, r.size, r.stride);
            if (is_slower(c, p, worst))
                worst = p;
        }
    }
    return worst;
}

/*
 * Placement of a range of one stage. Where its extent divides the domains evenly all groups look like the first; otherwise
 * (TP 3 on nodes of 8, or TP 2 from the second device of a node on) the starts of the extents are tried and the worst is taken.
 */
static struct maq_placement place_range(const struct maq_cluster *cluster, struct stage_ranks st, struct range r)
{
    if (cluster->n_groups > 1 && r.size > 1)
        return place_mixed(cluster, st, r);
    struct maq_placement worst = maq_cluster_place(cluster, st.first, r.size, r.stride);
    uint32_t extent = r.size * r.stride;
    uint32_t domain = (uint32_t)cluster->groups[0].domain_devices;
    bool alike = extent % domain == 0 || (domain % extent == 0 && st.first % extent == 0);
    if (r.size == 1 || alike)
        return worst;
    uint32_t tries = st.span / extent;
    if (tries > domain)
        tries = domain; /* alignments repeat after `domain` extents */
    for (uint32_t i = 1; i < tries; i++) {
        struct maq_placement p = maq_cluster_place(cluster, st.first + i * extent, r.size, r.stride);
        if (is_worse(p, worst))
            worst = p;
    }
    return worst;
}

/* A group over two dimensions, `inner` numbered faster. */
static struct maq_placement place_product(const struct maq_cluster *cluster, struct stage_ranks st, struct range inner,
                                          struct range outer)
{
    if (inner.stride > outer.stride) {
        struct range swap = inner;
        inner = outer;
        outer = swap;
    }
    if (outer.size == 1)
        return place_range(cluster, st, inner);
    if (inner.size == 1)
        return place_range(cluster, st, outer);
    if (outer.stride == inner.stride * inner.size)
        return place_range(cluster, st, (struct range){inner.size * outer.size, inner.stride});

    struct maq_placement a = place_range(cluster, st, inner), b = place_range(cluster, st, outer);
    struct maq_placement p = b;
    p.size = a.size * b.size;
    p.per_domain = a.per_domain * b.per_domain;
    p.per_node = a.per_node * b.per_node;
    uint32_t domain = (uint32_t)cluster->groups[b.group].domain_devices;
    if (p.per_domain > domain)
        p.per_domain = domain;
    p.domains = (p.size + p.per_domain - 1) / p.per_domain;
    p.crosses_switch = a.crosses_switch || b.crosses_switch;
    return p;
}

/* The first `size` members of a range, and the range over such parts. */
static struct range head_of(struct range r, uint32_t size)
{
    return (struct range){size, r.stride};
}
static struct range tail_of(struct range r, uint32_t size)
{
    return (struct range){r.size / size, r.stride * size};
}

/* Placements of the groups of a stage. */
static void place_stage(struct maq_placement *g, const struct maq_job *job, const struct maq_cluster *c,
                        const struct range *dense, const struct range *expert, struct stage_ranks st)
{
    uint32_t inner = (uint32_t)job->plan.cp_a2a, cp = (uint32_t)job->plan.cp, dp = (uint32_t)job->dp;
    g[MAQ_GROUP_TP] = place_range(c, st, dense[DIM_TP]);
    g[MAQ_GROUP_CP] = place_range(c, st, dense[DIM_CP]);
    g[MAQ_GROUP_CP_INNER] = place_range(c, st, head_of(dense[DIM_CP], inner));
    g[MAQ_GROUP_CP_OUTER] = place_range(c, st, tail_of(dense[DIM_CP], inner));
    g[MAQ_GROUP_DP_CP] = place_product(c, st, dense[DIM_CP], dense[DIM_DP]);
    g[MAQ_GROUP_TP_CP] = place_product(c, st, dense[DIM_TP], dense[DIM_CP]);
    g[MAQ_GROUP_PP] = c->n_groups > 1 ? maq_cluster_place(c, 0, dense[DIM_PP].size, dense[DIM_PP].stride)
                                      : place_range(c, st, dense[DIM_PP]);
    g[MAQ_GROUP_EP] = place_range(c, st, expert[DIM_EP]);
    g[MAQ_GROUP_ETP] = place_range(c, st, expert[DIM_TP]);
    g[MAQ_GROUP_EDP] = place_range(c, st, expert[DIM_DP]);

    /* HSDP: the sharded state is spread over the nearest ranks of DP x CP, its copies over the rest */
    uint32_t replicas = (uint32_t)job->plan.num_optimizer_instances, shards = dp * cp / replicas;
    if (replicas == 1) {
        g[MAQ_GROUP_SHARD] = g[MAQ_GROUP_DP_CP];
        g[MAQ_GROUP_REPLICA] = maq_cluster_place(c, st.first, 1, 1);
    } else if (shards >= cp) { /* whole CP groups inside a shard group */
        g[MAQ_GROUP_SHARD] = place_product(c, st, dense[DIM_CP], head_of(dense[DIM_DP], shards / cp));
        g[MAQ_GROUP_REPLICA] = place_range(c, st, tail_of(dense[DIM_DP], shards / cp));
    } else {
        g[MAQ_GROUP_SHARD] = place_range(c, st, head_of(dense[DIM_CP], shards));
        g[MAQ_GROUP_REPLICA] = place_product(c, st, tail_of(dense[DIM_CP], shards), dense[DIM_DP]);
    }
    uint32_t second =
        (uint32_t)job->plan.hpz; /* neighbours, as HSDP's shards; what does not divide is refused elsewhere */
    bool divides = dp * cp % second == 0 && (second % cp == 0 || cp % second == 0);
    g[MAQ_GROUP_SECOND] = !divides || second == 1 ? maq_cluster_place(c, st.first, 1, 1)
                          : second >= cp ? place_product(c, st, dense[DIM_CP], head_of(dense[DIM_DP], second / cp))
                                         : place_range(c, st, head_of(dense[DIM_CP], second));
}

static double peak_of(const struct maq_job *job, const struct maq_device *d)
{
    double peak = d->peak_flops[job->math_dtype];
    return peak > 0 ? peak : d->vector_flops;
}

/* Device and memory of a stage: over all its ranks when the cluster is mixed. */
static void find_devices(struct maq_stage_place *st, const struct maq_job *job, struct stage_ranks ranks)
{
    const struct maq_cluster *c = &job->cluster;
    uint32_t blocks = c->n_groups > 1 ? c->devices / (ranks.stride * ranks.pp) : 1;
    uint32_t run = c->n_groups > 1 ? ranks.stride : 1;
    double slowest = 0, sum = 0;
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; i < run; i++) {
            const struct maq_node_group *g = maq_cluster_group_of(c, ranks.first + b * ranks.stride * ranks.pp + i);
            double peak = peak_of(job, &g->device);
            sum += peak;
            if (slowest == 0 || peak < slowest) {
                slowest = peak;
                st->group = (uint16_t)(g - c->groups);
            }
            if (st->capacity_bytes == 0 || g->device.mem_bytes < st->capacity_bytes)
                st->capacity_bytes = g->device.mem_bytes;
        }
    st->peak_flops = sum / ((double)blocks * run);
}

/* A cluster of one kind of node with so many devices more in front of those of the job, which is as many nodes as that takes. */
static struct maq_cluster with_devices_in_front(const struct maq_cluster *c, uint32_t first,
                                                struct maq_node_group *group)
{
    struct maq_cluster longer = *c;
    if (first == 0 || c->n_groups > 1)
        return longer;
    *group = c->groups[0];
    longer.devices += first;
    longer.groups = group;
    group->nodes =
        (int32_t)((longer.devices + (uint32_t)group->devices_per_node - 1) / (uint32_t)group->devices_per_node);
    return longer;
}

/* `alone`: no groups but those of the first stage count. */
static enum maq_status place_groups(struct maq_job *job, uint32_t first, bool alone, const struct maq_job_places *at,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_plan *plan = &job->plan;
    int order[DIM_COUNT];
    if (!parse_order(order, plan->rank_order))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_RANK_ORDER, maq_place_of_plan(at, "rank_order"),
                             "write each of tp, cp, ep, dp, pp once, fastest first: tp-cp-ep-dp-pp",
                             "rank_order '%.*s' is not an order of the five dimensions", (int)plan->rank_order.len,
                             plan->rank_order.ptr);
    struct range dense[DIM_COUNT], expert[DIM_COUNT];
    uint32_t pp = (uint32_t)plan->pp;
    ranges_of(dense, order, (uint32_t[DIM_COUNT]){(uint32_t)plan->tp, (uint32_t)plan->cp, 1, (uint32_t)job->dp, pp});
    ranges_of(expert, order, (uint32_t[DIM_COUNT]){(uint32_t)plan->etp, 1, (uint32_t)plan->ep, (uint32_t)job->edp, pp});

    struct maq_stage_place *stages = MAQ_ARENA_NEW(arena, struct maq_stage_place, pp);
    if (!stages)
        return MAQ_NO_MEMORY;
    bool mixed = job->cluster.n_groups > 1;
    struct maq_node_group group;
    const struct maq_cluster cluster = with_devices_in_front(&job->cluster, first, &group);
    const uint32_t each = dense[DIM_PP].stride;
    first = mixed ? 0 : first;
    place_stage(job->groups, job, &cluster, dense, expert,
                (struct stage_ranks){first, each, pp, alone ? each : cluster.devices});
    for (uint32_t s = 0; s < pp; s++) {
        struct stage_ranks ranks = {first + s * each, each, pp, cluster.devices};
        if (!mixed && s > 0) { /* all stages are alike */
            stages[s] = stages[0];
            stages[s].first_rank = ranks.first;
            continue;
        }
        find_devices(&stages[s], job, (struct stage_ranks){s * each, each, pp, cluster.devices});
        struct maq_placement *own = mixed ? MAQ_ARENA_NEW(arena, struct maq_placement, MAQ_GROUP_COUNT) : job->groups;
        if (!own)
            return MAQ_NO_MEMORY;
        if (mixed)
            place_stage(own, job, &cluster, dense, expert, ranks);
        stages[s].groups = own;
        stages[s].first_rank = ranks.first;
    }
    job->stages = stages;
    return MAQ_OK;
}

enum maq_status maq_job_place_groups(struct maq_job *job, const struct maq_job_places *at, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    return place_groups(job, 0, false, at, arena, diag);
}

enum maq_status maq_job_place_stage(struct maq_job *job, uint32_t first, struct maq_arena *arena)
{
    const struct maq_job_places nowhere = {0};
    return place_groups(job, first, true, &nowhere, arena, NULL);
}
