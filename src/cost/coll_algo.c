/*
 * coll_algo.c - NCCL's algorithms as latency + volume / bandwidth (LogGP without the small terms).
 *
 * n ranks, p in each of D = n / p scale-up domains; S bytes as nccl-tests counts them. B = near bandwidth of a rank,
 * N = network bandwidth of a domain's members together, both times the protocol's share; a = near hop, f = network
 * hop, t0 = start of the protocol.
 *
 *   ring       steps: n - 1 for all-gather and reduce-scatter, twice that for all-reduce; D - 1 of them (twice) cross
 *              the network
 *              t = t0 + a (steps - far steps) + f (far steps) + steps S / (n min(B, N))
 *                  + own part S / n copied to its place in the output (not for all-reduce)
 *              N enters whole because NCCL runs one ring per NIC, each through all ranks. Where a ring crosses the
 *              network, every step posts one message there, so that `a` is at least the gap between two messages.
 *   tree       all-reduce: up and down a chain in the domain and a double binary tree between domains
 *              t = t0 + 2 ((p - 1) a + log2(D) f) + S / min(B / 2, N / (D = 2 ? 1 : 2))
 *              Between two domains the tree degenerates into an exchange: every domain sends S once, not twice.
 *   NVLS       the switch reduces and multicasts: all-reduce moves S (1 + 1/p) over a rank's link. Between domains it
 *              is joined by a tree over the network (NVLS tree), or by a network that reduces (SHARP: S once).
 *   exchange   all-to-all: every rank sends (p - 1) S / n over its near link and, at the same time, (n - p) S / n
 *              over its share of the network
 *   send/recv  t = t0 + hop + S / link
 *   broadcast  pipelined ring: S / min(B, N)
 *
 * The time is the minimum over the algorithms and protocols that NCCL would consider for the collective.
 *
 * Structure and volumes are NCCL's (NVIDIA/nccl, src/graph/tuning.cc, Apache-2.0). The latencies there serve to choose,
 * not to predict; the ones here were chosen against nccl-tests tables (docs/cost-model.md). The rule for two domains
 * and the NVLS volume reproduce published bus bandwidths of 4 to 8 GPUs, and of 2 to 64 nodes.
 */
#include <math.h>

#include "cost/coll.h"
#include "cost/model.h"

/* A link that is not in the way. */
#define UNLIMITED ((double)INFINITY)

const struct maq_coll_traits maq__coll_ideal = {
    .near_share = {1, 1, 1},
    .far_share = {1, 1, 1},
    .far_hops = {1, 1, 1},
    .tree_share = 1,
    .multicast_share = 1,
    .multicast_span = 1,
    .copy_share = UNLIMITED,
    .exchange_share = 1,
    .exchange_peer_bps = UNLIMITED,
    .exchange_copy_share = UNLIMITED,
    .ep_share = 1,
    .ep_far_share = 1,
};

#define US 1e-6
/* What the network does to a protocol does not depend on the accelerator's generation. */
#define FAR                                                                                                            \
    .far_share = {0.40, 0.90, 1.0}, /* LL: flags take half; the rest as measured */                                    \
        .far_hops = {1.0, 2.0,                                                                                         \
                     3.2}, /* NCCL counts 5.0, 8.5, 14 us for a tree over InfiniBand; measured tables ask for more */  \
        .far_gap = {0.4, 0.7, 1.5}, .tree_share = 0.98, .tree_dip = true, .exchange_peer_s = 2 * US,                   \
    .ep_far_share = 0.9

static const struct maq_coll_traits ampere = {
    FAR,
    .start_s = {7.5 * US, 13 * US, 30 * US},
    .near_share = {0.20, 0.42, 0.74},
    .copy_share = 1.8,
    .multicast_share = 0.6,
    .multicast_start_s = 50 * US,
    .multicast_span = 0.78,
    .exchange_share = 0.75,
    .exchange_start_s = {11 * US, 21 * US},
    .exchange_peer_bps = 5e9,
    .exchange_ramp = 0.6,
    .exchange_ramp_bytes = 14e6,
    .exchange_copy_share = 1.8,
    .ep_share = 0.75,
    .ep_start_s = 40 * US,
};
static const struct maq_coll_traits hopper = {
    FAR,
    .start_s = {4.5 * US, 8.5 * US, 23 * US},
    .near_share = {0.20, 0.60, 0.79},
    .copy_share = 1.8,
    .multicast_share = 0.67,
    .multicast_start_s = 50 * US,
    .multicast_span = 0.78,
    .exchange_share = 0.78,
    .exchange_start_s = {6 * US, 12.5 * US},
    .exchange_peer_bps = 7e9,
    .exchange_ramp = 0.6,
    .exchange_ramp_bytes = 14e6,
    .exchange_copy_share = 3.6,
    .ep_share = 0.75,
    .ep_start_s = 40 * US,
};
static const struct maq_coll_traits blackwell = {
    FAR,
    .start_s = {7.5 * US, 9 * US, 35 * US},
    .near_share = {0.20, 0.40, 0.755},
    .copy_share = 1.3,
    .multicast_share = 0.603,
    .multicast_start_s = 150 * US,
    .multicast_span = 0.78,
    .exchange_share = 0.72,
    .exchange_start_s = {9 * US, 14 * US},
    .exchange_peer_bps = 7e9,
    .exchange_ramp = 0.6,
    .exchange_ramp_bytes = 25e6,
    .exchange_copy_share = 0.85,
    .ep_share = 0.78,
    .ep_start_s = 40 * US,
};
static const struct maq_coll_traits other = {
    FAR,
    .start_s = {8 * US, 13 * US, 25 * US},
    .near_share = {0.25, 0.60, 0.78},
    .copy_share = 1.8,
    .multicast_share = 0.6,
    .multicast_start_s = 50 * US,
    .multicast_span = 0.78,
    .exchange_share = 0.72,
    .exchange_start_s = {9 * US, 16 * US},
    .exchange_peer_bps = 5e9,
    .exchange_ramp = 0.6,
    .exchange_ramp_bytes = 14e6,
    .exchange_copy_share = 1.8,
    .ep_share = 0.7,
    .ep_start_s = 50 * US,
};

const struct maq_coll_traits *maq__coll_traits(int arch)
{
    switch (arch) {
    case MAQ_ARCH_AMPERE:
        return &ampere;
    case MAQ_ARCH_HOPPER:
        return &hopper;
    case MAQ_ARCH_BLACKWELL:
        return &blackwell;
    default:
        return &other;
    }
}

/* Bytes that a rank moves into its own output, beside what it sends. */
static double copy_s(double bytes, double share, const struct maq_coll_links *l)
{
    return l->near_bps > 0.0 ? maq__over(bytes, l->near_bps * share) : 0.0;
}

static bool crosses(const struct maq_coll_links *l)
{
    return l->domains > 1.0;
}

/* Bandwidth of a ring through all ranks: the slower of a rank's near link and its domain's network. */
static double ring_bps(const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    double near = l->per_domain > 1.0 ? l->near_bps * l->traits->near_share[proto] : UNLIMITED;
    double far = crosses(l) ? l->domain_bps * l->traits->far_share[proto] : UNLIMITED;
    return maq__min(near, far);
}

double maq__ring_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    const struct maq_coll_traits *t = l->traits;
    double turns = kind == MAQ_COLL_ALL_REDUCE ? 2.0 : 1.0;
    double steps = turns * (l->ranks - 1.0), far = turns * (l->domains - 1.0);
    double volume = kind == MAQ_COLL_BROADCAST ? bytes : steps / l->ranks * bytes;
    double copy = kind == MAQ_COLL_ALL_GATHER || kind == MAQ_COLL_REDUCE_SCATTER ? bytes / l->ranks : 0.0;
    double near_step = crosses(l) ? maq__max(l->near_s, l->far_s * t->far_gap[proto]) : l->near_s;
    double latency = t->start_s[proto] + near_step * (steps - far) + l->far_s * t->far_hops[proto] * far;

    return latency + maq__over(volume, ring_bps(l, proto)) + copy_s(copy, t->copy_share, l);
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

/*
 * Trees between nodes reach less of their bandwidth at medium sizes: NCCL's own correction of its model (tuning.cc,
 * treeCorrectionFactor, Simple;
 * 64 B and powers of two), here interpolated so that a larger message is never faster.
 */
static double tree_dip(double bytes, const struct maq_coll_links *l)
{
    static const double factor[] = {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5,
                                    0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9, 1.0};
    const int last = (int)(sizeof factor / sizeof factor[0]) - 1;
    if (!l->traits->tree_dip || !crosses(l))
        return 1.0;
    int exponent;
    double mantissa = frexp(bytes / 64.0, &exponent); /* bytes / 64 = mantissa 2^exponent, mantissa in [1/2, 1) */
    int i = exponent - 1;
    if (i < 0)
        return factor[0];
    if (i >= last)
        return factor[last];
    return factor[i] + (factor[i + 1] - factor[i]) * (2.0 * mantissa - 1.0);
}

double maq__tree_s(double bytes, const struct maq_coll_links *l, enum maq_coll_proto proto)
{
    const struct maq_coll_traits *t = l->traits;
    double near = l->per_domain > 1.0 ? l->near_bps * t->near_share[proto] * t->tree_share / 2.0 : UNLIMITED;
    double far = crosses(l) ? l->domain_bps * t->far_share[proto] * t->tree_share / tree_far_volume(l) : UNLIMITED;
    double latency =
        t->start_s[proto] + 2.0 * ((l->per_domain - 1.0) * l->near_s + levels(l) * l->far_s * t->far_hops[proto]);

    return latency + maq__over(bytes, maq__min(near, far) * tree_dip(bytes, l));
}

double maq__multicast_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_traits *t = l->traits;
    double bps = l->near_bps * t->multicast_share * (l->spans_nodes ? t->multicast_span : 1.0);
    double volume = kind == MAQ_COLL_ALL_REDUCE ? 1.0 + 1.0 / l->per_domain : 1.0;
    double near = bps / volume, far = UNLIMITED, latency = t->multicast_start_s + 2.0 * l->near_s;

    if (crosses(l)) {
        far = l->domain_bps * t->far_share[MAQ_PROTO_SIMPLE] * t->tree_share / tree_far_volume(l);
        latency += 2.0 * (l->in_network_reduction ? 1.0 : levels(l)) * l->far_s * t->far_hops[MAQ_PROTO_SIMPLE];
    }
    return latency + maq__over(bytes, maq__min(near, far) * tree_dip(bytes, l));
}

/* Bytes over the near link in bulk, with few channels at work on small amounts. */
static double bulk_s(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_traits *t = l->traits;
    return maq__over(bytes, l->near_bps * t->exchange_share) +
           maq__over(t->exchange_ramp * maq__min(bytes, t->exchange_ramp_bytes), l->near_bps);
}

double maq__exchange_s(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_traits *t = l->traits;
    double part = bytes / l->ranks, near = part * (l->per_domain - 1.0), far = part * (l->ranks - l->per_domain);
    double bulk = t->exchange_start_s[1] + bulk_s(near, l) + copy_s(part, t->exchange_copy_share, l);

    if (!crosses(l)) /* small parts travel with their flags, to all peers at once */
        return l->near_s + maq__min(bulk, t->exchange_start_s[0] + maq__over(part, t->exchange_peer_bps) +
                                              maq__over(near, l->near_bps));
    double far_s = t->exchange_start_s[1] + l->far_s + t->exchange_peer_s * (l->ranks - l->per_domain) +
                   maq__over(far, l->rank_bps * t->far_share[MAQ_PROTO_SIMPLE]);
    return maq__max(l->near_s + bulk, far_s);
}

static double sendrecv_s(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_traits *t = l->traits;
    if (crosses(l))
        return t->exchange_start_s[1] + l->far_s + maq__over(bytes, l->rank_bps * t->far_share[MAQ_PROTO_SIMPLE]);
    double flagged = t->exchange_start_s[0] + maq__over(bytes, maq__min(t->exchange_peer_bps, l->near_bps));
    return l->near_s + maq__min(flagged, t->exchange_start_s[1] + bulk_s(bytes, l));
}

/* Kernels that send tokens to the ranks of their experts: near and far at once, forwarded inside the far domain. */
static double expert_exchange_s(double bytes, const struct maq_coll_links *l)
{
    const struct maq_coll_traits *t = l->traits;
    double out = bytes * (l->ranks - l->per_domain) / l->ranks;
    double near = bytes * (l->per_domain - 1.0) / l->ranks + out * (l->per_domain - 1.0) / l->per_domain;
    double near_s = maq__over(near, l->near_bps * t->ep_share), far_s = maq__over(out, l->rank_bps * t->ep_far_share);
    return t->ep_start_s + l->near_s + (crosses(l) ? 2.0 * l->far_s : 0.0) + maq__max(near_s, far_s);
}

static double fastest_ring_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    double best = maq__ring_s(kind, bytes, l, MAQ_PROTO_SIMPLE);
    best = maq__min(best, maq__ring_s(kind, bytes, l, MAQ_PROTO_LL128));
    return maq__min(best, maq__ring_s(kind, bytes, l, MAQ_PROTO_LL));
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
        best = maq__min(best, maq__multicast_s(MAQ_COLL_ALL_REDUCE, bytes, l));
    return best;
}

double maq__coll_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *l)
{
    switch (kind) {
    case MAQ_COLL_ALL_REDUCE:
        return all_reduce_s(bytes, l);
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
        return expert_exchange_s(bytes, l);
    case MAQ_COLL_KIND_COUNT:
        break;
    }
    return 0.0;
}
