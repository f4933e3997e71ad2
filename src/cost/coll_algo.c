/*
 * coll_algo.c - NCCL's algorithms as latency and volume / bandwidth (LogGP without the small terms).
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
 *              over its share of the network
 *   send/recv  t = start + hop + S / link
 *   broadcast  pipelined ring: S / min(B, N)
 *   engines    all-reduce of serving engines inside a domain: one shot, everyone reads (n - 1) S; two shots, reduce and
 *              gather, 2 (n - 1) S / n
 *   experts    dispatch and combine: near and far at once, forwarded inside the far domain
 *
 * The time is the minimum over what NCCL would consider for the collective. It never falls with size and never rises
 * with bandwidth; NCCL's own choice sometimes does (docs/accuracy-collectives.md), of which one case is here: LL is not
 * considered above `ll_bytes` per rank.
 *
 * Structure and volumes are NCCL's (NVIDIA/nccl, src/graph/tuning.cc, Apache-2.0). The latencies there serve to choose,
 * not to predict; the coefficients here are fitted to published measurements (tools/fit-collectives.c).
 */
#include <math.h>

#include "cost/coll.h"
#include "cost/model.h"

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

double maq__ring_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_RING_LL + (unsigned)proto);
    double turns = kind == MAQ_COLL_ALL_REDUCE ? 2.0 : 1.0;
    double steps = turns * (l->ranks - 1.0), volume = kind == MAQ_COLL_BROADCAST ? bytes : steps / l->ranks * bytes;
    double copy = kind == MAQ_COLL_ALL_GATHER || kind == MAQ_COLL_REDUCE_SCATTER ? copy_s(bytes / l->ranks, l) : 0.0;
    double hop = near->hops * l->near_s;

    if (!crosses(l))
        return near->start_s + join(hop * steps, move_s(volume, l->near_bps, near) + copy, near->overlap);
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_RING_LL + (unsigned)proto);
    double far_steps = turns * (l->domains - 1.0);
    double latency = maq__max(hop, far->gap * l->far_s) * (steps - far_steps) + far->hops * l->far_s * far_steps;
    double near_move = l->per_domain > 1.0 ? move_s(volume, l->near_bps, near) : 0.0;
    double move = maq__max(near_move, far_move_s(volume, l->domain_bps, far, l)) + copy;
    return near->start_s + far->start_s + join(latency, move, far->overlap);
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

double maq__tree_s(double bytes, const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_RING_LL + (unsigned)proto),
                                *far = far_of(l, MAQ_COLL_FAR_TREE_LL + (unsigned)proto);
    double latency = 2.0 * ((l->per_domain - 1.0) * near->hops * l->near_s + levels(l) * far->hops * l->far_s);
    double near_move = l->per_domain > 1.0 ? move_s(2.0 * bytes, l->near_bps, near) : 0.0;
    double far_move = crosses(l) ? tree_far_s(bytes, far, l) : 0.0;
    return near->start_s + far->start_s + join(latency, maq__max(near_move, far_move), far->overlap);
}

double maq__multicast_s(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_curve *near = near_of(l, MAQ_COLL_NEAR_MULTICAST);
    double span = l->spans_nodes ? l->generation->span : 1.0;
    double near_move = move_s((1.0 + 1.0 / l->per_domain) * bytes, l->near_bps * span, near);
    double latency = near->hops * l->near_s;

    if (!crosses(l))
        return near->start_s + join(latency, near_move, near->overlap);
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_MULTICAST);
    latency += 2.0 * (l->in_network_reduction ? 1.0 : levels(l)) * far->hops * l->far_s;
    double far_move = tree_far_s(bytes, far, l);
    return near->start_s + far->start_s + join(latency, maq__max(near_move, far_move), far->overlap);
}

/* Small parts travel with their flags, to all peers at once; large ones in bulk. */
static double near_exchange_s(double part, double peers, enum maq_coll_near bulk_kind, const struct maq_coll_links *l)
{
    const struct maq_coll_curve *flagged = near_of(l, MAQ_COLL_NEAR_PEER_FLAGGED), *bulk = near_of(l, bulk_kind);
    double small = flagged->start_s + l->near_s * flagged->hops + move_s(part, l->near_bps, flagged) +
                   maq__over(part * peers, l->near_bps);
    double large = bulk->start_s + join(bulk->hops * l->near_s, move_s(part * peers, l->near_bps, bulk), bulk->overlap);
    return maq__min(small, large);
}

double maq__exchange_s(double bytes, const struct maq_coll_links *l)
{
    double part = bytes / l->ranks, copy = copy_s(part, l);
    double near = near_exchange_s(part, l->per_domain - 1.0, MAQ_COLL_NEAR_PEER_BULK, l) + copy;
    if (!crosses(l))
        return near;
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_PEERS);
    double peers = l->ranks - l->per_domain;
    double latency = (far->hops + far->gap * peers) * l->far_s;
    return maq__max(near, far->start_s + join(latency, far_move_s(part * peers, l->rank_bps, far, l), far->overlap));
}

static double sendrecv_s(double bytes, const struct maq_coll_links *l)
{
    if (!crosses(l))
        return near_exchange_s(bytes, 1.0, MAQ_COLL_NEAR_PAIR_BULK, l);
    const struct maq_coll_curve *far = far_of(l, MAQ_COLL_FAR_PAIR);
    double bps = l->domains > MAQ_COLL_FEW ? maq__min(l->rank_bps, l->transport->channel_bps) : l->rank_bps;
    return far->start_s + join(far->hops * l->far_s, far_move_s(bytes, bps, far, l), far->overlap);
}

static enum maq_coll_near expert_curve(const struct maq_coll *coll, enum maq_library library)
{
    bool combine = coll->kind == MAQ_COLL_COMBINE;
    if (coll->flags & MAQ_COLL_LOW_LATENCY)
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_FAST : MAQ_COLL_NEAR_EP_DISPATCH_FAST;
    if (coll->flags & MAQ_COLL_ONE_SIDED)
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_ONESIDED : MAQ_COLL_NEAR_EP_DISPATCH_ONESIDED;
    if (library == MAQ_LIBRARY_TRTLLM)
        return combine ? MAQ_COLL_NEAR_EP_COMBINE_TRTLLM : MAQ_COLL_NEAR_EP_DISPATCH_TRTLLM;
    return combine ? MAQ_COLL_NEAR_EP_COMBINE : MAQ_COLL_NEAR_EP_DISPATCH;
}

/* Kernels that send tokens to the ranks of their experts: near and far at once, forwarded inside the far domain. */
static double expert_exchange_s(const struct maq_coll *coll, double bytes, const struct maq_coll_links *l,
                                enum maq_library library)
{
    const struct maq_coll_curve *curve = near_of(l, expert_curve(coll, library)), *far = far_of(l, MAQ_COLL_FAR_EP);
    double out = bytes * (l->ranks - l->per_domain) / l->ranks;
    double near = bytes * (l->per_domain - 1.0) / l->ranks + out * (l->per_domain - 1.0) / l->per_domain;
    double move = move_s(near, l->near_bps, curve), latency = curve->hops * l->near_s;

    if (crosses(l)) {
        latency += far->hops * l->far_s;
        move = maq__max(move, far_move_s(out, l->rank_bps, far, l));
    }
    return curve->start_s + (crosses(l) ? far->start_s : 0.0) + join(latency, move, curve->overlap);
}

static double fastest_ring_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    double best = maq__ring_s(kind, bytes, l, MAQ_PROTO_SIMPLE);
    best = maq__min(best, maq__ring_s(kind, bytes, l, MAQ_PROTO_LL128));
    if (bytes <= l->generation->ll_bytes * l->ranks)
        best = maq__min(best, maq__ring_s(kind, bytes, l, MAQ_PROTO_LL));
    return best;
}

static double all_reduce_s(double bytes, const struct maq_coll_links *l)
{
    double best = fastest_ring_s(MAQ_COLL_ALL_REDUCE, bytes, l);
    if (crosses(l)) {
        best = maq__min(best, maq__tree_s(bytes, l, MAQ_PROTO_SIMPLE));
        best = maq__min(best, maq__tree_s(bytes, l, MAQ_PROTO_LL128));
        best = maq__min(best, maq__tree_s(bytes, l, MAQ_PROTO_LL));
    }
    if (l->multicast && l->per_domain > 2.0)
        best = maq__min(best, maq__multicast_s(bytes, l));
    return best;
}

/* The engine's own kernels, or NCCL where that is faster. */
static double engine_all_reduce_s(double bytes, const struct maq_coll_links *l, enum maq_library library)
{
    unsigned engine = (unsigned)library - MAQ_LIBRARY_TRTLLM;
    const struct maq_coll_curve *one = near_of(l, MAQ_COLL_NEAR_ONE_SHOT_TRTLLM + engine),
                                *two = near_of(l, MAQ_COLL_NEAR_TWO_SHOT_TRTLLM + engine);
    double n = l->ranks, flags = (n - 1.0) * l->near_s;
    double one_s = one->start_s + join(one->hops * flags, move_s((n - 1.0) * bytes, l->near_bps, one), one->overlap);
    double two_s =
        two->start_s + join(two->hops * flags, move_s(2.0 * (n - 1.0) / n * bytes, l->near_bps, two), two->overlap);
    return maq__min(all_reduce_s(bytes, l), maq__min(one_s, two_s));
}

double maq__coll_s(const struct maq_coll *coll, const struct maq_coll_links *l, enum maq_library library)
{
    enum maq_coll_kind kind = (enum maq_coll_kind)coll->kind;
    double bytes = maq__min(coll->bytes, 1e30);

    switch (kind) {
    case MAQ_COLL_ALL_REDUCE:
        return library == MAQ_LIBRARY_TRAINING || crosses(l) ? all_reduce_s(bytes, l)
                                                             : engine_all_reduce_s(bytes, l, library);
    case MAQ_COLL_ALL_GATHER:
    case MAQ_COLL_REDUCE_SCATTER:
    case MAQ_COLL_BROADCAST:
        return fastest_ring_s(kind, bytes, l);
    case MAQ_COLL_ALL_TO_ALL:
        return maq__exchange_s(bytes, l);
    case MAQ_COLL_SEND_RECV:
        return sendrecv_s(bytes, l);
    case MAQ_COLL_DISPATCH:
    case MAQ_COLL_COMBINE:
        return expert_exchange_s(coll, bytes, l, library);
    case MAQ_COLL_KIND_COUNT:
        break;
    }
    return 0.0;
}
