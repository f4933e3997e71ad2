/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.h - collectives as NCCL runs them: what the algorithms see of a cluster, and how long each takes.
 *
 * The split keeps the physics testable: algorithms.c knows links and coefficients only, collective.c turns a placement on
 * a cluster into links, coll_fitted.c (generated from data/fitted/collectives.yaml) holds the coefficients.
 */
#ifndef MAQ_COST_COLLECTIVE_COLLECTIVE_H
#define MAQ_COST_COLLECTIVE_COLLECTIVE_H

#include "maquette/cost.h"

/* NCCL's wire protocols: a flag with every 4 bytes (half the bandwidth), 8 in 128 bytes, bulk with flags apart. */
enum maq_coll_proto { MAQ_PROTO_LL, MAQ_PROTO_LL128, MAQ_PROTO_SIMPLE, MAQ_PROTO_COUNT };

/*
 * One way of moving data over one kind of link:
 *
 *   start_s   before the first hop
 *   hops      time of a hop, in latencies of the link
 *   gap       ring: least time between two steps where it crosses the link, in latencies of the link;
 *             tree: how much slower per square of its height, as partners wait for one another;
 *             all-to-all: time of one more peer, in latencies of the link;
 *             exchange of experts: time of one more row, in latencies of the link: warps work on rows, however short
 *   own       exchange of experts: how often a rank's own rows count beside their copies: they are read, or added up
 *   share     of the link's rate
 *   overlap   how hops and transfer go together: 1 = the longer hides the shorter (as sides of a right angle add), 0 =
 *             one after the other, below 0 = besides, the rate comes up slowly with size
 */
struct maq_coll_curve {
    double start_s, hops, gap, share, overlap, own;
};

/* What a generation of devices does over its scale-up link. */
#define MAQ_COLL_NEAR_LIST(X)                                                                                          \
    X(RING_LL, "ring_ll")                                                                                              \
    X(RING_LL128, "ring_ll128")                                                                                        \
    X(RING_SIMPLE, "ring_simple")                                                                                      \
    X(MULTICAST, "multicast")             /* NVLS all-reduce */                                                        \
    X(PEER_FLAGGED, "peer_flagged")       /* all-to-all and send/recv, small; share = to one peer */                   \
    X(PEER_BULK, "peer_bulk")             /* all-to-all */                                                             \
    X(PAIR_BULK, "pair_bulk")             /* send/recv: one peer */                                                    \
    X(COPY, "copy")                       /* own part to its place in the output */                                    \
    X(ONE_SHOT_TRTLLM, "one_shot_trtllm") /* serving engines' all-reduce: everyone reads everything */                 \
    X(ONE_SHOT_VLLM, "one_shot_vllm")                                                                                  \
    X(ONE_SHOT_SGLANG, "one_shot_sglang")                                                                              \
    X(TWO_SHOT_TRTLLM, "two_shot_trtllm") /* the same in two halves */                                                 \
    X(TWO_SHOT_VLLM, "two_shot_vllm")                                                                                  \
    X(TWO_SHOT_SGLANG, "two_shot_sglang")                                                                              \
    X(EP_DISPATCH, "ep_dispatch") /* DeepEP, normal kernels */                                                         \
    X(EP_COMBINE, "ep_combine")                                                                                        \
    X(EP_DISPATCH_FAST, "ep_dispatch_fast") /* DeepEP, low-latency kernels */                                          \
    X(EP_COMBINE_FAST, "ep_combine_fast")                                                                              \
    X(EP_DISPATCH_TRTLLM, "ep_dispatch_trtllm") /* TensorRT-LLM, two-sided */                                          \
    X(EP_COMBINE_TRTLLM, "ep_combine_trtllm")                                                                          \
    X(EP_DISPATCH_ONESIDED, "ep_dispatch_onesided") /* TensorRT-LLM, one-sided */                                      \
    X(EP_COMBINE_ONESIDED, "ep_combine_onesided")

/* What a transport does over the network, on top of the above. */
#define MAQ_COLL_FAR_LIST(X)                                                                                           \
    X(RING_LL, "ring_ll")                                                                                              \
    X(RING_LL128, "ring_ll128")                                                                                        \
    X(RING_SIMPLE, "ring_simple")                                                                                      \
    X(TREE_LL, "tree_ll")                                                                                              \
    X(TREE_LL128, "tree_ll128")                                                                                        \
    X(TREE_SIMPLE, "tree_simple")                                                                                      \
    X(MULTICAST, "multicast") /* NVLS inside the domains, a tree between them */                                       \
    X(PEERS, "peers")         /* all-to-all; gap = one more peer */                                                    \
    X(PAIR, "pair")           /* send/recv */                                                                          \
    X(EP, "ep")

enum maq_coll_near {
#define MAQ_COLL_NEAR_ENUM(name, text) MAQ_COLL_NEAR_##name,
    MAQ_COLL_NEAR_LIST(MAQ_COLL_NEAR_ENUM)
#undef MAQ_COLL_NEAR_ENUM
        MAQ_COLL_NEAR_COUNT
};

enum maq_coll_far {
#define MAQ_COLL_FAR_ENUM(name, text) MAQ_COLL_FAR_##name,
    MAQ_COLL_FAR_LIST(MAQ_COLL_FAR_ENUM)
#undef MAQ_COLL_FAR_ENUM
        MAQ_COLL_FAR_COUNT
};

struct maq_coll_generation {
    struct maq_coll_curve near[MAQ_COLL_NEAR_COUNT];
    bool fitted;     /* to devices of this generation; false: another generation stands in */
    double ll_bytes; /* per rank: NCCL's tuner gives LL up for larger messages, though nothing better follows at once */
    double span;     /* share of NVLS's rate that is left where the scale-up domain spans several nodes */
};

struct maq_coll_transport {
    struct maq_coll_curve far[MAQ_COLL_FAR_COUNT];
    double channel_bps; /* send/recv between more than MAQ_COLL_FEW domains: one channel to a peer */
    double shared_port; /* share of a port's rate where a node has fewer ports than devices */
    double shared_tree; /* the same for trees */
    double tiny_s;      /* all-to-all: besides, of a message that travels inside its descriptor */
};

/*
 * NCCL gives a peer on the network two channels, and one where 2 ranks > 4 channels of the rank (src/graph/paths.cc,
 * ncclTopoComputeP2pChannelsPerPeer); a rank has about two channels per member of its domain.
 */
#define MAQ_COLL_FEW 4.0

/*
 * Slingshot's NIC takes up to 192 bytes of a message inside its descriptor (libfabric, prov/cxi: CXIP_INJECT_SIZE is
 * C_MAX_IDC_PAYLOAD_UNR): the host fetches them from the device's memory, one message after another. More goes by DMA.
 */
#define MAQ_COLL_TINY 192.0

struct maq_coll_links {
    double ranks, per_domain, domains; /* a domain: what the near link joins; a node, where that has several of PCIe */
    double near_bps, near_s;           /* scale-up link of one rank */
    double rank_bps;                   /* network of one rank */
    double domain_bps;                 /* network of all members in one domain together */
    double far_s;
    bool multicast;   /* the scale-up switch reduces and multicasts */
    bool spans_nodes; /* the scale-up domain is more than one node */
    bool in_network_reduction;
    bool shared_port; /* a node has fewer ports than devices */
    bool rings_only;  /* NCCL_ALGO leaves out trees and NVLS */
    const struct maq_coll_generation *generation;
    const struct maq_coll_transport *transport;
};

/* Every share 1 and every latency 0: the algorithms' closed forms. */
extern const struct maq_coll_generation maq__coll_ideal_generation;
extern const struct maq_coll_transport maq__coll_ideal_transport;

/* Where errors differ, and how large a message is: up to 64 KiB, up to 16 MiB, larger. */
enum maq_coll_regime {
    MAQ_COLL_REGIME_NEAR,
    MAQ_COLL_REGIME_PCIE, /* no scale-up link */
    MAQ_COLL_REGIME_FAR,
    MAQ_COLL_REGIME_EXPERTS,
    MAQ_COLL_REGIME_COUNT
};
enum maq_coll_band { MAQ_COLL_SMALL, MAQ_COLL_MIDDLE, MAQ_COLL_LARGE, MAQ_COLL_BAND_COUNT };
enum maq_coll_regime maq__coll_regime(const struct maq_coll *coll, const struct maq_cluster *cluster);
enum maq_coll_band maq__coll_band(double bytes);

/* coll_fitted.c. Errors: one standard deviation of what was held back from the fit. */
extern const float maq__coll_errors[MAQ_COLL_REGIME_COUNT][MAQ_COLL_BAND_COUNT];
extern const struct maq_coll_generation maq__coll_generations[MAQ_ARCH_COUNT];
extern const struct maq_coll_transport maq__coll_transports[MAQ_TRANSPORT_COUNT];

/* Placement on a cluster into links. collective.c */
struct maq_coll_links maq__coll_links(const struct maq_coll *coll, const struct maq_cluster *cluster);

/* Where the time of a collective goes. hops, near and far overlap: they need not add up to the total. */
struct maq_coll_parts {
    const char *how;                       /* algorithm and protocol: "ring LL128" */
    double start_s, hops_s, near_s, far_s; /* before the first byte, hops, moving over either link */
    double total_s;
};
/* "start", "hops", "scale-up link" or "network": the largest part. */
const char *maq__coll_largest(const struct maq_coll_parts *parts);

/* The fastest algorithm and protocol; ranks >= 2. */
struct maq_coll_parts maq__coll_parts(const struct maq_coll *coll, const struct maq_coll_links *links,
                                      enum maq_library library);

/* One algorithm each, for tests. */
struct maq_coll_parts maq__ring(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *links,
                                enum maq_coll_proto proto);
struct maq_coll_parts maq__tree(double bytes, const struct maq_coll_links *links, enum maq_coll_proto proto);
struct maq_coll_parts maq__multicast(double bytes, const struct maq_coll_links *links);
struct maq_coll_parts maq__exchange(double bytes, const struct maq_coll_links *links);

#endif
