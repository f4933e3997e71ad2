/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithms.c - NCCL's algorithms as latency and volume / bandwidth (LogGP without the small terms).
 *
 * n ranks, p in each of D = n / p scale-up domains; S bytes as nccl-tests counts them. B = near bandwidth of a rank,
 * N = network bandwidth of a domain's members together, both times the curve's share; a = near hop, f = network hop.
 *
 *   t = start + join(L, M)   L = all hops one after the other, M = volume over the slowest link
 *   join = sqrt(L^2 + M^2 + 2 (1 - o) L M)          0 <= o <= 1, the overlap of the curve
 *        = L + M - o sqrt(L M)                      o < 0
 *
 * Two extremes of the first are L + M (o = 0: nothing overlaps) and the hypotenuse (o = 1: a long transfer hides its
 * hops, as chunks of many channels pass one another); the second describes rates that come up over decades of size.
 *
 *   ring       steps: n - 1 for all-gather and reduce-scatter, twice that for all-reduce; D - 1 of them (twice) cross
 *              the network
 *              L = a (steps - far steps) + f (far steps);   M = steps S / (n min(B, N))
 *                  + own part S / n copied to its place in the output (not for all-reduce)
 *              N enters whole because NCCL runs one ring per NIC, each through all ranks. Where a ring crosses the
 *              network, every step posts one message there, so that `a` is at least the gap between two messages.
 *   tree       all-reduce: up and down a chain in the domain and a double binary tree between domains
 *              L = 2 ((p - 1) a + log2(D) f);   M = S / min(B / 2, N / (D = 2 ? 1 : 2) / (1 + gap (log2(D)^2 - 1)))
 *              Between two domains the tree degenerates into an exchange: every domain sends S once, not twice.
 *   NVLS       the switch reduces and multicasts: all-reduce moves S (1 + 1/p) over a rank's link. Between domains it
 *              is joined by a tree over the network (NVLS tree), or by a network that reduces (SHARP: S once).
 *   exchange   all-to-all: every rank sends (p - 1) S / n over its near link and, at the same time, (n - p) S / n
 *              over its share of the network; tiny parts take longer where the host reads them for the NIC (collective.h)
 *   send/recv  t = start + hop + S / link
 *   broadcast  pipelined ring: S / min(B, N)
 *   engines    all-reduce of serving engines inside a domain: one shot, everyone reads (n - 1) S; two shots, reduce and
 *              gather, 2 (n - 1) S / n
 *   experts    dispatch and combine: near and far at once, forwarded inside the far domain. Near: L = a (hops + gap rows), of a rank's
 *              own rows and those that it forwards; M = (copies + own rows `own` times) / B
 *
 * The time is the minimum over what NCCL would consider for the collective. It never falls with size, but for those tiny
 * parts, and never rises with bandwidth; NCCL's own choice sometimes does (docs/cost-model.md), of which one case is
 * here: LL is not considered above `ll_bytes` per rank.
 *
 * Structure and volumes are NCCL's (NVIDIA/nccl, src/graph/tuning.cc, Apache-2.0). The latencies there serve to choose,
 * not to predict; the coefficients here are fitted to published measurements (tools/fit-collectives).
 */
#include <math.h>

#include "cost/analytical/analytical.h"
#include "cost/collective/collective.h"

#define MOST_ROWS 1e15 /* of an exchange, and bytes of a row */

/* A link that is not in the way. */
#define UNLIMITED ((double)INFINITY)
#define IDEAL                                                                                                          \
    {                                                                                                                  \
        .share = 1.0                                                                                                   \
    }

const struct maq_coll_generation maq__coll_ideal_generation = {
    .near = {[MAQ_COLL_NEAR_RING_LL] = IDEAL,
             [MAQ_COLL_NEAR_RING_LL128] = IDEAL,
             [MAQ_COLL_NEAR_RING_SIMPLE] = IDEAL,
             [MAQ_COLL_NEAR_MULTICAST] = IDEAL,
             [MAQ_COLL_NEAR_PEER_FLAGGED] = {.share = UNLIMITED},
             [MAQ_COLL_NEAR_PEER_BULK] = IDEAL,
             [MAQ_COLL_NEAR_PAIR_BULK] = IDEAL,
             [MAQ_COLL_NEAR_COPY] = {.share = UNLIMITED},
             [MAQ_COLL_NEAR_EP_DISPATCH] = IDEAL,
             [MAQ_COLL_NEAR_EP_COMBINE] = IDEAL},
    .ll_bytes = UNLIMITED,
    .span = 1.0,
};
const struct maq_coll_transport maq__coll_ideal_transport = {
    .far = {IDEAL, IDEAL, IDEAL, IDEAL, IDEAL, IDEAL, IDEAL, IDEAL, IDEAL, IDEAL},
    .channel_bps = UNLIMITED,
    .shared_port = 1.0,
    .shared_tree = 1.0,
};

static double join(double latency, double move, double overlap)
{
    if (overlap < 0.0)
        return latency + move - overlap * sqrt(latency * move);
    return sqrt(latency * latency + move * move + 2.0 * (1.0 - overlap) * latency * move);
}

/* Seconds of bytes over a link of which the curve has its share. */
static double move_s(double bytes, double bps, const struct maq_coll_curve *curve)
{
    return maq__over(bytes, bps * curve->share);
}

/* The same over the network: devices that share a port reach it through one another's PCIe switch. */
static double far_move_s(double bytes, double bps, const struct maq_coll_curve *curve, const struct maq_coll_links *l)
{
    return move_s(bytes, l->shared_port ? bps * l->transport->shared_port : bps, curve);
}

static const struct maq_coll_curve *near_of(const struct maq_coll_links *l, enum maq_coll_near i)
{
    return &l->generation->near[i];
}

static const struct maq_coll_curve *far_of(const struct maq_coll_links *l, enum maq_coll_far i)
{
    return &l->transport->far[i];
}

/* Own part of the output, beside what is sent. */
static double copy_s(double bytes, const struct maq_coll_links *l)
{
    return l->near_bps > 0.0 ? move_s(bytes, l->near_bps, near_of(l, MAQ_COLL_NEAR_COPY)) : 0.0;
}

static bool crosses(const struct maq_coll_links *l)
{
    return l->domains > 1.0;
}

/* A part takes its longer link's time; copies of one's own part count as near. */
static struct maq_coll_parts parts_of(const char *how, double start, double hops, double near, double far,
                                      double overlap)
{
    return (struct maq_coll_parts){how, start, hops, near, far, start + join(hops, maq__max(near, far), overlap)};
}

static struct maq_coll_parts faster(struct maq_coll_parts a, struct maq_coll_parts b)
{
    return b.total_s < a.total_s ? b : a;
}

const char *maq__coll_largest(const struct maq_coll_parts *p)
{
    double most = maq__max(maq__max(p->start_s, p->hops_s), maq__max(p->near_s, p->far_s));
    return p->far_s >= most ? "network" : p->near_s >= most ? "scale-up link" : p->hops_s >= most ? "hops" : "start";
}

static const char *const ring_names[MAQ_PROTO_COUNT] = {"ring LL", "ring LL128", "ring Simple"};

/* What a collective is for a ring of n ranks, whatever the protocol. */
struct ring_work {
    double steps;  /* n - 1, twice for an all-reduce */
    double volume; /* bytes that a rank sends */
    double copy_s; /* bytes that it moves to their place in its own output */
};

static double ring_steps(enum maq_coll_kind kind, double n)
{
    return kind == MAQ_COLL_ALL_REDUCE ? 2.0 * (n - 1.0) : n - 1.0;
}

static struct ring_work ring_work(enum maq_coll_kind kind, double bytes, double n, const struct maq_coll_links *l)
{
    double steps = ring_steps(kind, n), part = bytes / n;
    bool copies = kind == MAQ_COLL_ALL_GATHER || kind == MAQ_COLL_REDUCE_SCATTER;
    return (struct ring_work){steps, kind == MAQ_COLL_BROADCAST ? bytes : steps / n * bytes,
                              copies ? copy_s(part, l) : 0.0};
}

/* Over the members of one domain. */
static struct maq_coll_parts ring_inside(const struct ring_work *w, const struct maq_coll_links *l,
                                         enum maq_coll_proto proto)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_RING_LL + (unsigned)proto);
    return parts_of(ring_names[proto], near->start_s, near->hops * l->near_s * w->steps,
                    move_s(w->volume, l->near_bps, near) + w->copy_s, 0.0, near->overlap);
}

/* More than join(latency, move, overlap), without a root: the mean is at least the root of the product. */
static double join_at_most(double latency, double move, double overlap)
{
    return (latency + move) * (overlap < 0.0 ? 1.0 - 0.5 * overlap : 1.0);
}

/* Across domains; never faster than over the members of one, which is rarely in doubt. */
static struct maq_coll_parts ring_across(enum maq_coll_kind kind, double bytes, const struct ring_work *w,
                                         const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_RING_LL + (unsigned)proto),
                                *far = far_of(l, MAQ_COLL_FAR_RING_LL + (unsigned)proto);
    double far_steps = ring_steps(kind, l->domains), gap = maq__max(near->hops * l->near_s, far->gap * l->far_s);
    double near_move = l->per_domain > 1.0 ? move_s(w->volume, l->near_bps, near) : 0.0;
    struct maq_coll_parts across =
        parts_of(ring_names[proto], near->start_s + far->start_s,
                 gap * (w->steps - far_steps) + far->hops * l->far_s * far_steps, near_move + w->copy_s,
                 far_move_s(w->volume, l->domain_bps, far, l) + w->copy_s, far->overlap);
    double hops_inside = near->hops * l->near_s * ring_steps(kind, l->per_domain);
    double most_inside = near->start_s + join_at_most(hops_inside, near_move + w->copy_s * l->domains, near->overlap);
    if (l->per_domain <= 1.0 || across.total_s >= most_inside)
        return across;
    struct ring_work one = ring_work(kind, bytes, l->per_domain, l);
    struct maq_coll_parts inside = ring_inside(&one, l, proto);
    return inside.total_s > across.total_s ? inside : across;
}

static struct maq_coll_parts ring_of(enum maq_coll_kind kind, double bytes, const struct ring_work *w,
                                     const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    return crosses(l) ? ring_across(kind, bytes, w, l, proto) : ring_inside(w, l, proto);
}

struct maq_coll_parts maq__ring(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l,
                                enum maq_coll_proto proto)
{
    struct ring_work w = ring_work(kind, bytes, l->ranks, l);
    return ring_of(kind, bytes, &w, l, proto);
}

/* Levels of a binary tree over the domains. */
static double levels(const struct maq_coll_links *l)
{
    return ceil(log2(maq__max(l->domains, 1.0)));
}

/* Bytes that a domain sends into the network for an all-reduce of one byte by a tree. */
static double tree_far_volume(const struct maq_coll_links *l)
{
    return l->in_network_reduction || l->domains <= 2.0 ? 1.0 : 2.0;
}

static double tree_far_s(double bytes, const struct maq_coll_curve *far, const struct maq_coll_links *l)
{
    double height = levels(l), bps = l->shared_port ? l->domain_bps * l->transport->shared_tree : l->domain_bps;
    return move_s(tree_far_volume(l) * bytes, bps, far) * (1.0 + far->gap * (height * height - 1.0));
}

struct maq_coll_parts maq__tree(double bytes, const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    static const char *const names[MAQ_PROTO_COUNT] = {"tree LL", "tree LL128", "tree Simple"};
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_RING_LL + (unsigned)proto),
                                *far = far_of(l, MAQ_COLL_FAR_TREE_LL + (unsigned)proto);
    double latency = 2.0 * ((l->per_domain - 1.0) * near->hops * l->near_s + levels(l) * far->hops * l->far_s);
    double near_move = l->per_domain > 1.0 ? move_s(2.0 * bytes, l->near_bps, near) : 0.0;
    return parts_of(names[proto], near->start_s + far->start_s, latency, near_move,
                    crosses(l) ? tree_far_s(bytes, far, l) : 0.0, far->overlap);
}

struct maq_coll_parts maq__multicast(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_MULTICAST);
    double span = l->spans_nodes ? l->generation->span : 1.0;
    double near_move = move_s((1.0 + 1.0 / l->per_domain) * bytes, l->near_bps * span, near);
    double latency = near->hops * l->near_s;

    if (!crosses(l))
        return parts_of("NVLS", near->start_s, latency, near_move, 0.0, near->overlap);
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_MULTICAST);
    latency += 2.0 * (l->in_network_reduction ? 1.0 : levels(l)) * far->hops * l->far_s;
    return parts_of("NVLS tree", near->start_s + far->start_s, latency, near_move, tree_far_s(bytes, far, l),
                    far->overlap);
}

/* Small parts travel with their flags, to all peers at once; large ones in bulk. */
static struct maq_coll_parts near_exchange(double part, double peers, double copy, enum maq_coll_near bulk_kind,
                                           const struct maq_coll_links *l)
{
    const struct maq_coll_curve *flagged = near_of(l, MAQ_COLL_NEAR_PEER_FLAGGED), *bulk = near_of(l, bulk_kind);
    struct maq_coll_parts small =
        parts_of("peers LL", flagged->start_s, flagged->hops * l->near_s,
                 move_s(part, l->near_bps, flagged) + maq__over(part * peers, l->near_bps), 0.0, 0.0);
    struct maq_coll_parts large = parts_of("peers Simple", bulk->start_s, bulk->hops * l->near_s,
                                           move_s(part * peers, l->near_bps, bulk), 0.0, bulk->overlap);
    struct maq_coll_parts best = faster(small, large);
    best.near_s += copy;
    best.total_s += copy;
    return best;
}

struct maq_coll_parts maq__exchange(double bytes, const struct maq_coll_links *l)
{
    double part = bytes / l->ranks;
    struct maq_coll_parts near = near_exchange(part, l->per_domain - 1.0, copy_s(part, l), MAQ_COLL_NEAR_PEER_BULK, l);
    if (!crosses(l))
        return near;
    const struct maq_coll_curve *curve = far_of(l, MAQ_COLL_FAR_PEERS);
    double peers = l->ranks - l->per_domain, latency = (curve->hops + curve->gap * peers) * l->far_s;
    if (part <= MAQ_COLL_TINY)
        latency += peers * l->transport->tiny_s;
    struct maq_coll_parts far = parts_of("peers over the network", curve->start_s, latency, 0.0,
                                         far_move_s(part * peers, l->rank_bps, curve, l), curve->overlap);
    return far.total_s >= near.total_s ? far : near;
}

static struct maq_coll_parts send_receive(double bytes, const struct maq_coll_links *l)
{
    if (!crosses(l))
        return near_exchange(bytes, 1.0, 0.0, MAQ_COLL_NEAR_PAIR_BULK, l);
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_PAIR);
    double bps = l->domains > MAQ_COLL_FEW ? maq__min(l->rank_bps, l->transport->channel_bps) : l->rank_bps;
    return parts_of("one peer over the network", far->start_s, far->hops * l->far_s, 0.0,
                    far_move_s(bytes, bps, far, l), far->overlap);
}

/*
 * HybridEP writes into its peers' memory, as TensorRT-LLM's one-sided exchange does, which is the nearest that was measured; DeepEP V2's
 * figures on Blackwell are 7 and 11 % above it.
 */
static enum maq_coll_near expert_curve(const struct maq_coll *coll, enum maq_library library)
{
    bool combine = coll->kind == MAQ_COLL_COMBINE;
    if (coll->flags & MAQ_COLL_LOW_LATENCY)
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_FAST : MAQ_COLL_NEAR_EP_DISPATCH_FAST;
    if (coll->flags & (MAQ_COLL_ONE_SIDED | MAQ_COLL_HYBRID))
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_ONESIDED : MAQ_COLL_NEAR_EP_DISPATCH_ONESIDED;
    if (library == MAQ_LIBRARY_TRTLLM)
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_TRTLLM : MAQ_COLL_NEAR_EP_DISPATCH_TRTLLM;
    return combine ? MAQ_COLL_NEAR_EP_COMBINE : MAQ_COLL_NEAR_EP_DISPATCH;
}

/*
 * Kernels that send tokens to the ranks of their experts: near and far at once. A row crosses the network once for a domain, to the rank
 * there that has the sender's place, and is copied on from it to the others that want it: that rank's warps have it as one more row.
 */
static struct maq_coll_parts experts(const struct maq_coll *coll, double bytes, const struct maq_coll_links *l,
                                     enum maq_library library)
{
    const struct maq_coll_curve *curve = near_of(l, expert_curve(coll, library)), *far = far_of(l, MAQ_COLL_FAR_EP);
    double beyond = bytes * (l->ranks - l->per_domain) / l->ranks;
    double inside = bytes * (l->per_domain - 1.0) / l->ranks + beyond * (l->per_domain - 1.0) / l->per_domain;
    double out = coll->far_bytes > 0.0 ? maq__min(coll->far_bytes, beyond) : beyond;
    double rows = maq__min(coll->rows, MOST_ROWS), row_bytes = maq__min(coll->row_bytes, MOST_ROWS);
    double passed_on = row_bytes > 0.0 && crosses(l) ? out / row_bytes : 0.0;
    double latency = (curve->hops + curve->gap * (rows + passed_on)) * l->near_s;
    struct maq_coll_parts near =
        parts_of("expert exchange", curve->start_s, latency,
                 move_s(inside + rows * row_bytes * curve->own, l->near_bps, curve), 0.0, curve->overlap);
    if (!crosses(l))
        return near;
    struct maq_coll_parts across =
        parts_of("expert exchange", curve->start_s + far->start_s, curve->hops * l->near_s + far->hops * l->far_s, 0.0,
                 far_move_s(out, l->rank_bps, far, l), far->overlap);
    return across.total_s >= near.total_s ? across : near;
}

static struct maq_coll_parts fastest_ring(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    struct ring_work w = ring_work(kind, bytes, l->ranks, l);
    struct maq_coll_parts best =
        faster(ring_of(kind, bytes, &w, l, MAQ_PROTO_SIMPLE), ring_of(kind, bytes, &w, l, MAQ_PROTO_LL128));
    if (bytes <= l->generation->ll_bytes * l->ranks)
        best = faster(best, ring_of(kind, bytes, &w, l, MAQ_PROTO_LL));
    return best;
}

static struct maq_coll_parts all_reduce(double bytes, const struct maq_coll_links *l)
{
    struct maq_coll_parts best = fastest_ring(MAQ_COLL_ALL_REDUCE, bytes, l);
    if (l->rings_only)
        return best;
    if (crosses(l)) {
        best = faster(best, maq__tree(bytes, l, MAQ_PROTO_SIMPLE));
        best = faster(best, maq__tree(bytes, l, MAQ_PROTO_LL128));
        best = faster(best, maq__tree(bytes, l, MAQ_PROTO_LL));
    }
    return l->multicast && l->per_domain > 2.0 ? faster(best, maq__multicast(bytes, l)) : best;
}

/* The engine's own kernels, or NCCL where that is faster. */
static struct maq_coll_parts engine_all_reduce(double bytes, const struct maq_coll_links *l, enum maq_library library)
{
    unsigned engine = (unsigned)library - MAQ_LIBRARY_TRTLLM;
    const struct maq_coll_curve *one = near_of(l, MAQ_COLL_NEAR_ONE_SHOT_TRTLLM + engine),
                                *two = near_of(l, MAQ_COLL_NEAR_TWO_SHOT_TRTLLM + engine);
    double n = l->ranks, flags = (n - 1.0) * l->near_s;
    struct maq_coll_parts best = all_reduce(bytes, l);

    best = faster(best, parts_of("one shot", one->start_s, one->hops * flags,
                                 move_s((n - 1.0) * bytes, l->near_bps, one), 0.0, one->overlap));
    return faster(best, parts_of("two shots", two->start_s, two->hops * flags,
                                 move_s(2.0 * (n - 1.0) / n * bytes, l->near_bps, two), 0.0, two->overlap));
}

struct maq_coll_parts maq__coll_parts(const struct maq_coll *coll, const struct maq_coll_links *l,
                                      enum maq_library library)
{
    enum maq_coll_kind kind = (enum maq_coll_kind)coll->kind;
    double bytes = maq__min(coll->bytes, 1e30);
    bool engine = library > MAQ_LIBRARY_TRAINING && library < MAQ_LIBRARY_COUNT && !crosses(l);

    switch (kind) {
    case MAQ_COLL_ALL_REDUCE:
        return engine ? engine_all_reduce(bytes, l, library) : all_reduce(bytes, l);
    case MAQ_COLL_ALL_GATHER:
    case MAQ_COLL_REDUCE_SCATTER:
    case MAQ_COLL_BROADCAST:
        return fastest_ring(kind, bytes, l);
    case MAQ_COLL_ALL_TO_ALL:
        return maq__exchange(bytes, l);
    case MAQ_COLL_SEND_RECV:
        return send_receive(bytes, l);
    case MAQ_COLL_DISPATCH:
    case MAQ_COLL_COMBINE:
        return experts(coll, bytes, l, library);
    case MAQ_COLL_KIND_COUNT:
        break;
    }
    return (struct maq_coll_parts){"nothing", 0, 0, 0, 0, 0};
}
