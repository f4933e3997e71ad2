/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_fleet.h - replicas of deployments behind a router, and the most traffic that they carry.
 *
 *   requests --> router --> replica 0: a serving engine with its own scheduler and cache
 *                  |------> replica 1: ...
 *
 * A router decides for each request when it is sent, by what it knows then of each replica: requests that it has sent there and that
 * have not ended, and tokens of prompts that it has sent there before. It does not look into engines. Replicas may be unlike each other.
 *
 * Replicas may have roles (disaggregation): those of one pool compute prompts, those of the other go on from their keys and values.
 *
 *   requests --> router --> prefill replica  ==KV transfer==>  decode replica --> tokens
 *                  |            its blocks stay until all is over      ^  its blocks are there before the first byte
 *                  +------- prompts of at most max_local_prefill ------+
 *
 * Who computes the first token is the engine's: with vLLM decode computes the last token of the prompt again and samples from it; with SGLang and
 * TensorRT-LLM prefill samples it, and it reaches the client through decode when the transfer is over. docs/disaggregation.md has the rules.
 */
#ifndef MAQUETTE_SERVE_FLEET_H
#define MAQUETTE_SERVE_FLEET_H

#include "maquette/serve.h"
#include "maquette/serve_autoscaling.h"

#ifdef __cplusplus
extern "C" {
#endif

/* To whom a request goes: identifier, name, what it is. Ties go to the first replica. */
/* clang-format off */
#define MAQ_ROUTER_LIST(X)                                                                                             \
    X(ROUND_ROBIN,    "round-robin",    "each in turn")                                                                \
    X(RANDOM,         "random",         "any")                                                                         \
    X(LEAST_REQUESTS, "least-requests", "fewest requests that have not ended")                                         \
    X(LEAST_TOKENS,   "least-tokens",   "fewest tokens of such requests, in and out")                                  \
    X(POWER_OF_TWO,   "power-of-two",   "of two at random the one with fewer requests")                                \
    X(PREFIX,         "prefix",         "the longest prefix that was sent there, unless its load is out of balance")   \
    X(SESSION,        "session",        "all of a session to one; without a session any")
/* clang-format on */
enum maq_router {
#define MAQ_ROUTER_ENUM(id, name, what) MAQ_ROUTER_##id,
    MAQ_ROUTER_LIST(MAQ_ROUTER_ENUM)
#undef MAQ_ROUTER_ENUM
        MAQ_ROUTER_COUNT
};
MAQ_API const char *maq_router_name(enum maq_router router);

/*
 * When keys and values go from prefill to decode, and who starts it: identifier, name, what it is. PULL: decode hears of a request, and takes blocks for it,
 * when its prompt is computed. With the others it hears of it at once; with CHUNK prefill waits until decode has the blocks.
 */
/* clang-format off */
#define MAQ_KV_TRANSFER_LIST(X)                                                                                        \
    X(AUTO,  "auto",  "as the engine does by default")                                                                 \
    X(PULL,  "pull",  "decode reads them when the prompt is computed: vLLM's NixlConnector, TensorRT-LLM")             \
    X(PUSH,  "push",  "prefill writes them when the prompt is computed: vLLM's MooncakeConnector, NixlPushConnector")  \
    X(CHUNK, "chunk", "prefill writes what each of its iterations computed when it ends: SGLang")                      \
    X(LAYER, "layer", "prefill writes each layer as the last iteration of the prompt goes: vLLM's MoRIIOConnector")
/* clang-format on */
enum maq_kv_transfer {
#define MAQ_KV_TRANSFER_ENUM(id, name, what) MAQ_KV_TRANSFER_##id,
    MAQ_KV_TRANSFER_LIST(MAQ_KV_TRANSFER_ENUM)
#undef MAQ_KV_TRANSFER_ENUM
        MAQ_KV_TRANSFER_COUNT
};
MAQ_API const char *maq_kv_transfer_name(enum maq_kv_transfer transfer);

/* How pools hand requests over; zero where nothing is said. */
struct maq_handover {
    enum maq_kv_transfer transfer;
    double bps; /* of the port of each GPU, each direction, bytes/s, where the clusters do not say it; infinity: free */
    double latency_s; /* of one transfer, beside it; 0 = of the link */
    /* prompts with at most so many tokens that decode has not cached are computed by decode itself (Dynamo's and TensorRT-LLM's
     * max_local_prefill_length); 0 = none */
    int64_t max_local_prefill;
};

/*
 * Replicas that are alike. Roles are BOTH for all members of a fleet, or PREFILL for some and DECODE for the others, at least one each. Those of
 * two pools have one model, engine and type of cache, and degrees that divide each other.
 */
struct maq_fleet_member {
    const struct maq_job *job;
    const struct maq_serve_options *options;
    uint32_t replicas; /* at least 1 */
    double weight;     /* of each, for routers that count requests or tokens: they divide by it; 0 = 1 */
    enum maq_role role;
    /* With roles, members stand on one cluster, one behind another, and job->cluster is the same for all; this one begins a
     * cluster of its own, on which those behind it stand, too. Between clusters are their networks and nothing else. */
    bool own_cluster;
    /* Without roles each has a cluster of its own; this one stands on that of the member before, behind it, and job->cluster is the same. */
    bool shares_cluster;
    double
        load_s; /* until the weights of one that starts are in its GPUs, on top of what starting takes besides (maq_serve_load_s()) */
};

/*
 * What happens to a replica while the fleet serves: identifier, name, what it is. It takes requests while it is meant to be there and has not
 * failed; the first event that makes it take requests again finds it empty, unless it is still ending some. While nobody takes requests
 * they wait at the router, in their order.
 *
 * With roles one that computes prompts has ended what it has when all keys and values of it have been read, one that decodes when its requests have ended. What one that
 * fails held is lost with it, and so are keys and values on their way to it
 * or from it, whose transfers end as it fails. When its router knows, requests begin anew that were there or whose prompts it had computed and not handed over;
 * the other replica gives them up. Where decode is lost, prefill keeps a computed prompt as long as its engine does (docs/disaggregation.md). While one of
 * the pools has nobody, requests that need it wait at the router.
 */
/* clang-format off */
#define MAQ_FLEET_EVENT_LIST(X)                                                                                        \
    X(COMES,  "comes",  "it is meant to be there, and has started")                                                    \
    X(LEAVES, "leaves", "it is not meant to be there: it takes no more requests, and ends those that it has")          \
    X(FAILS,  "fails",  "nothing goes on in it, and its router does not know yet")                                     \
    X(LOST,   "lost",   "its router knows: what was sent there and has not ended is sent again, from the beginning")   \
    X(BACK,   "back",   "what failed has started again")
/* clang-format on */
enum maq_fleet_event_kind {
#define MAQ_FLEET_EVENT_ENUM(id, name, what) MAQ_FLEET_##id,
    MAQ_FLEET_EVENT_LIST(MAQ_FLEET_EVENT_ENUM)
#undef MAQ_FLEET_EVENT_ENUM
        MAQ_FLEET_EVENT_COUNT
};
struct maq_fleet_event {
    double at_s;
    uint32_t replica; /* of all, in the order of the members; with roles those that compute prompts come first */
    enum maq_fleet_event_kind kind;
};

/*
 * Requests that a router lets into replicas; zero: all. The others wait at the router, in their order, until a request of a replica that takes some has ended. A request
 * that comes, or comes again, while as many wait as may is refused: it is over, and within no bound.
 */
struct maq_admission {
    uint32_t max_requests; /* of a replica, that have not ended */
    bool bounded;          /* no more than max_waiting wait; those that come over a time alone (concurrency 0) */
    uint32_t max_waiting;
};

/* Where replicas stand on the nodes of their cluster: identifier, name, what it is. One over several nodes has whole ones, whatever is said. */
/* clang-format off */
#define MAQ_FLEET_PLACEMENT_LIST(X)                                                                                    \
    X(PACK,   "pack",   "one behind another: a node is full before the next one has any")                              \
    X(SPREAD, "spread", "each on the node that has fewest GPUs taken, the first of these")
/* clang-format on */
enum maq_fleet_placement {
#define MAQ_FLEET_PLACEMENT_ENUM(id, name, what) MAQ_PLACEMENT_##id,
    MAQ_FLEET_PLACEMENT_LIST(MAQ_FLEET_PLACEMENT_ENUM)
#undef MAQ_FLEET_PLACEMENT_ENUM
        MAQ_FLEET_PLACEMENT_COUNT
};
MAQ_API const char *maq_fleet_placement_name(enum maq_fleet_placement placement);

struct maq_fleet {
    const struct maq_fleet_member *members; /* [n_members], at least one */
    uint32_t n_members;
    enum maq_router router; /* of the decode pool, where there are roles */
    uint64_t seed;          /* of what a router draws */
    enum maq_router prefill_router;
    struct maq_handover handover; /* where there are roles */
    /* [n_events] in the order of time; 0 = all replicas are there all the time. Those at or before the first arrival are how things stand then. */
    const struct maq_fleet_event *events;
    uint32_t n_events;
    /* How many are meant to be there by their load, beside what fails; NULL: all. Events do not say COMES and LEAVES of them then. */
    const struct maq_autoscaling_rule *scaling;         /* with roles: of those that decode */
    const struct maq_autoscaling_rule *prefill_scaling; /* of those that compute prompts for others */
    struct maq_admission admission;                     /* not with roles */
    /* GPUs that encode images in front of all routers, a tower each, on the first member's cluster; its members' options say `elsewhere`. 0: members encode */
    uint32_t encode_replicas;
    enum maq_fleet_placement placement;
};

/*
 * Serves requests. Latencies and throughput of *out are those of the whole fleet, memory and options those of the first member;
 * out->replicas has each replica, out->members what each is one of. With roles memory and options are those of the first member that decodes, and out->pools has more
 * (serve.h). *out is owned by the caller (maq_serve_free). A member that does not fit is a result, as with
 * maq_serve_run(): nothing is served then, and out->fits is false. One replica: the result of maq_serve_run(), to the bit.
 */
MAQ_API enum maq_status maq_fleet_run(struct maq_serve_result **out, const struct maq_fleet *fleet,
                                      const struct maq_requests *requests, struct maq_diag *diag);

/* How long it takes until the weights of a replica are in its GPUs, of what starting one takes. */
enum maq_weights_source {
    MAQ_WEIGHTS_FROM_DISK, /* of each of its nodes */
    MAQ_WEIGHTS_FROM_PEER  /* GPU for GPU from a replica that is there, on other nodes */
};
/* bps: of the drives of a node, or of the port of a GPU; 0 = what the cluster says, which is a fault where it does not. */
MAQ_API enum maq_status maq_serve_load_s(double *out, const struct maq_job *job,
                                         const struct maq_serve_options *options, enum maq_weights_source from,
                                         double bps, struct maq_diag *diag);

/* The most traffic under which a fleet holds its bounds. */
#define MAQ_CAPACITY_DRAWS 64u
struct maq_capacity {
    double rate; /* requests a second: the median of the draws; 0: the bounds are missed however slowly they come */
    double low,
        high; /* the least and the most of them, which hold the median of all draws there are with a probability of */
    double confidence; /* 1 - 2^(1 - n_draws), whatever their law is; 0 where there is one */
    double of_draw[MAQ_CAPACITY_DRAWS];
    uint32_t n_draws, runs;
    double e2el_s; /* mean of one draw at its rate */
    bool fits;
};

/*
 * Finds it for each of `n_draws` streams of requests by bisection: the times between their arrivals are scaled, all else stays as it is.
 * A rate is that between the first and the last arrival. A rate that overloads the fleet is over its capacity even if all bounds
 * hold. To `tolerance`, relative (0 = 0.001). Streams have arrival times (concurrency 0), at least two each.
 */
MAQ_API enum maq_status maq_fleet_capacity(struct maq_capacity *out, const struct maq_fleet *fleet,
                                           const struct maq_requests *const *draws, uint32_t n_draws,
                                           const struct maq_slo *slo, double tolerance, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
