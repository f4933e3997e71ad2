/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_kv_tiers.h - keys and values beyond the GPU: host memory, an SSD behind it, a pool that the replicas of a fleet share.
 *
 *   GPU blocks  ==PCIe==  host memory  ==SSD==     local drive
 *                                      ==network== remote pool
 *
 * What a request computes is stored as it is computed, a chunk of one or several blocks at a time; a request whose prefix is there loads it
 * instead of computing it. Whatever goes to or comes from an SSD or the pool goes through host memory. A size of zero: there is no such tier, and
 * without host memory none of them.
 *
 * Sizes are those of one TP group with its pipeline stages (with dp > 1 each rank of attention has its own), the pool's of all replicas.
 *
 * An engine does this in its own way: vLLM as said above; SGLang (HiCache) copies nodes of its tree of prefixes to host memory and back, and has
 * words of its own for how much that is.
 */
#ifndef MAQUETTE_SERVE_KV_TIERS_H
#define MAQUETTE_SERVE_KV_TIERS_H

#include <stdbool.h>
#include <stdint.h>

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where keys and values are: identifier, name, what it is. */
/* clang-format off */
#define MAQ_TIER_LIST(X)                                                                                               \
    X(GPU,    "gpu",    "blocks of the engine's cache")                                                                \
    X(HOST,   "host",   "memory of the host")                                                                          \
    X(SSD,    "ssd",    "a drive of the node")                                                                         \
    X(REMOTE, "remote", "a pool that all replicas share")
/* clang-format on */
enum maq_tier_kind {
#define MAQ_TIER_ENUM(id, name, what) MAQ_TIER_##id,
    MAQ_TIER_LIST(MAQ_TIER_ENUM)
#undef MAQ_TIER_ENUM
        MAQ_TIER_COUNT
};
MAQ_API const char *maq_tier_name(enum maq_tier_kind tier);

/* What host memory forgets first (src/serve/kv/tier.h). */
enum maq_tier_policy { MAQ_TIER_LRU, MAQ_TIER_ARC, MAQ_TIER_POLICIES };
MAQ_API const char *maq_tier_policy_name(enum maq_tier_policy policy);

/* When SGLang copies what it has to host memory (src/serve/kv/radix_host.h). */
enum maq_hicache_policy {
    MAQ_HICACHE_WRITE_THROUGH,
    MAQ_HICACHE_WRITE_THROUGH_SELECTIVE,
    MAQ_HICACHE_WRITE_BACK,
    MAQ_HICACHE_POLICIES
};
MAQ_API const char *maq_hicache_policy_name(enum maq_hicache_policy policy);

/* Zero where nothing is said. */
struct maq_tier_options {
    double bytes[MAQ_TIER_COUNT]; /* of GPU nothing is looked at; infinity: all that comes */
    /* of host memory, in the words of SGLang and TensorRT-LLM, where `bytes` says nothing; the first that is said: for each GPU; for a token in the GPU's
     * cache; as many for a token as its default, where this share of the node's memory has them */
    double host_rank_bytes, host_ratio, host_share;
    uint8_t write_policy;               /* enum maq_hicache_policy: SGLang's */
    double ssd_read_bps, ssd_write_bps; /* of the drives of a node; 0 = as fast as PCIe lets them be asked */
    double remote_bps;       /* of the pool, each direction; 0 = as fast as the networks of the replicas are */
    double remote_latency_s; /* of a transfer, beside it; 0 = of the fabric */
    double host_bps;         /* of a GPU to its host, each direction, all GPUs at work; 0 = of the device */
    enum maq_tier_policy policy;
    int32_t chunk_blocks;    /* blocks of a chunk; 0 = 1 */
    int32_t store_threshold; /* a chunk is stored when it is offered for the n-th time; 0 and 1: at once */
    bool prompt_only;        /* what is generated is not stored */
};

/* Whether there is to be host memory, in whichever words. */
MAQ_API bool maq_tier_options_any(const struct maq_tier_options *options);

/* What became of tokens and bytes, in a run. */
struct maq_tier_count {
    int64_t tokens; /* of prompts that were found there and not in a nearer tier */
    double read_bytes, written_bytes;
    double read_busy_s;            /* in which something was read, on the mean replica */
    double peak_bytes, mean_bytes; /* that it held */
    uint64_t evicted;              /* chunks */
};
struct maq_tier_result {
    bool known; /* false: there were none, and the rest is zero */
    struct maq_tier_count of[MAQ_TIER_COUNT];
    double chunk_bytes; /* of all GPUs of a TP group and its stages */
    double capacity_bytes[MAQ_TIER_COUNT];
    int64_t prompt_tokens; /* of all prompts */
    uint32_t loaded;       /* requests that loaded something */
    double
        wait_s; /* of such a request, in the mean: from when it could have been taken in to when all was there; SGLang: layers of its iteration for theirs */
    double stalled_s; /* iterations waited for stores whose blocks they were given, all of them together */
    uint64_t refused; /* stores that found no room */
};

#ifdef __cplusplus
}
#endif
#endif
