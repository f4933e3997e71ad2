/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - how many bytes go from one replica to another, through which ports.
 *
 * Of a layer with K heads of keys and values a rank of tp holds max(K / tp, 1) of them, and of latent attention (MLA) all. Rank j of tp' that decodes gets
 * what it holds from
 *
 *   tp' >= tp   rank floor(j tp / tp'), which sends to tp' / tp ranks
 *   tp' < tp    tp / tp' ranks, or the first of those that hold the same
 *
 * so that all ranks of decode are sent what they hold, heads that several of them hold and latents several times
 * (vLLM 0.33.0, kv_connector/v1/nixl/tp_mapping.py; SGLang 0.5.23, disaggregation/common/conn.py). Bytes are those of whole blocks, from the first that decode does
 * not have to the last of the prompt; of layers with a window those in it; states whole. With pipeline stages the one that holds
 * the most is looked at: all send side by side.
 */
#ifndef MAQ_SERVE_FLEET_HANDOVER_H
#define MAQ_SERVE_FLEET_HANDOVER_H

#include "serve/engine/deployment.h"
#include "serve/fleet/placement.h"

/* Bytes of something, through the busiest port that sends and that receives, over all, and of one copy. */
struct maq_cut_bytes {
    double out, in, sent, written;
};

/* Layers that keep the same tokens: bytes of a token. */
struct maq_cut_kind {
    struct maq_kv_group group;
    struct maq_cut_bytes token;
};

/* What goes between two deployments. */
struct maq_cut {
    struct maq_cut_kind kinds[MAQ_KV_MOST_GROUPS];
    uint32_t n_kinds;
    struct maq_cut_bytes states; /* of a request */
};

struct maq_cut maq_cut_between(const struct maq_deployment *prefill, const struct maq_deployment *decode);
/* A prompt behind `found` tokens that decode has. */
struct maq_cut_bytes maq_cut_prompt(const struct maq_cut *cut, int64_t prompt, int64_t found);
/* Of it, what can go when `tokens` of it are computed: whole blocks of layers that keep all tokens. */
double maq_cut_share(const struct maq_cut *cut, int64_t prompt, int64_t found, int64_t tokens);

enum maq_distance { MAQ_SAME_DOMAIN, MAQ_SAME_NODE, MAQ_OTHER_NODE, MAQ_DISTANCES };
/* The farthest that one of a rank's (TP group's) GPUs has to send, and the least that is there between two of them. */
struct maq_way {
    enum maq_distance distance;
    double most_bps, latency_s; /* of a GPU; of a message */
};
struct maq_way maq_way_between(const struct maq_replica_placement *prefill, uint32_t prefill_rank,
                               const struct maq_replica_placement *decode, uint32_t decode_rank);
/* What the port of a GPU of a replica carries at a distance. */
double maq_port_bps(const struct maq_replica_placement *place, enum maq_distance distance);

#endif
