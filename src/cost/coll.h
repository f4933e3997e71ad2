/*
 * coll.h - collectives as NCCL runs them: what the algorithms see of a cluster, and how long each takes.
 *
 * The split keeps the physics testable: coll_algo.c knows links and constants only, cost_coll.c turns a placement on
 * a cluster into links.
 */
#ifndef MAQ_COST_COLL_H
#define MAQ_COST_COLL_H

#include "maquette/cost.h"

/* NCCL's wire protocols: a flag with every 4 bytes (half the bandwidth), 8 in 128 bytes, bulk with flags apart. */
enum maq_coll_proto { MAQ_PROTO_LL, MAQ_PROTO_LL128, MAQ_PROTO_SIMPLE, MAQ_PROTO_COUNT };

/* What a generation's NCCL kernels reach. Shares are of a link's data-sheet rate. Chosen as docs/cost-model.md says. */
struct maq_coll_traits {
    double start_s[MAQ_PROTO_COUNT];    /* a kernel and its first flags, before any hop */
    double near_share[MAQ_PROTO_COUNT]; /* ring, scale-up link */
    double far_share[MAQ_PROTO_COUNT];  /* network, on top of the fabric's own efficiency */
    double far_hops[MAQ_PROTO_COUNT];   /* a network hop, in fabric latencies */
    double far_gap[MAQ_PROTO_COUNT];    /* time between two messages of a ring on the same NIC, in fabric latencies */
    double tree_share;                  /* of a ring's bandwidth */
    double multicast_share;             /* NVLS, of the scale-up link */
    double multicast_start_s;
    double multicast_span;      /* factor when the scale-up domain spans several nodes */
    double copy_share;          /* own part copied to its place in the output, of the scale-up link's rate */
    double exchange_share;      /* all-to-all and send/recv in bulk, scale-up link */
    double exchange_start_s[2]; /* with flags in the data (LL), in bulk */
    double exchange_peer_bps;   /* to one peer with flags in the data */
    double exchange_ramp; /* below ramp_bytes a byte takes this much longer, in seconds times link rate: few channels */
    double exchange_ramp_bytes;
    double exchange_copy_share;    /* own part copied, of the scale-up link's rate */
    double exchange_peer_s;        /* network: one more peer */
    double ep_share, ep_far_share; /* fused expert-parallel exchange */
    double ep_start_s;
    bool tree_dip; /* trees between nodes lose bandwidth at medium sizes */
};

struct maq_coll_links {
    double ranks, per_domain, domains;
    double near_bps, near_s; /* scale-up link of one rank */
    double rank_bps;         /* network of one rank */
    double domain_bps;       /* network of all members in one domain together */
    double far_s;
    bool multicast;   /* the scale-up switch reduces and multicasts */
    bool spans_nodes; /* the scale-up domain is more than one node */
    bool in_network_reduction;
    const struct maq_coll_traits *traits;
};

/* Traits with every share 1 and every latency 0: the algorithms' closed forms. */
extern const struct maq_coll_traits maq__coll_ideal;
const struct maq_coll_traits *maq__coll_traits(int arch);

/* Seconds of the fastest algorithm and protocol. bytes as in struct maq_coll; ranks >= 2. */
double maq__coll_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *links);

/* One algorithm each, for tests and for reports. */
double maq__ring_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *links,
                   enum maq_coll_proto proto);
double maq__tree_s(double bytes, const struct maq_coll_links *links, enum maq_coll_proto proto);
double maq__multicast_s(enum maq_coll_kind kind, double bytes, const struct maq_coll_links *links);
double maq__exchange_s(double bytes, const struct maq_coll_links *links);

#endif
