/* SPDX-License-Identifier: Apache-2.0 */
/*
 * afd.h - a pass whose attention and FFN are on GPUs of their own (maquette/serve_afd.h).
 *
 * Both sides are passes of the same layers, each with the modules that it has (maq_passes_init_side()), at its own degrees and on its own device. What
 * they do in each kind of layers, and what goes between them, is the pipeline of ping_pong.h; embedding and head are attention's, in front of it and
 * behind all micro-batches. With T tokens of a micro-batch, of all ranks of attention, h wide, that go w ways:
 *
 *   transfer, each way   latency + T h 2 w / min(attention GPUs, FFN GPUs) / bytes/s of a port      [s]
 *
 * of the busiest port, on the longest way that there is between two GPUs of either side: that of keys and values between pools (handover.h), since
 * send/recv was measured of messages from 32 MB on, which are a hundred times as long. Both ways are there at once. What joins tokens and experts:
 *
 *   p2p   FFN GPUs have all of a layer's FFN, cut over all of them, and its router. w = 1; they gather T tokens and scatter their sums
 *         (P2pNcclAFDConnector of vllm-project/afd-plugin, its gate on FFN)
 *   m2n   they have routed experts alone; what all tokens pass, router, dense FFN and shared experts, stays with attention (MegaScale-Infer;
 *         compute_gate_on_attention of the plugin leaves router and dense FFN there, too). w = the GPUs that have an expert of a token;
 *         attention adds up w parts of each
 *
 * Of E experts a token has k, evenly, and e groups of GPUs have E / e each. A group has none of a token's with the chance that all k are
 * drawn from the others, so that a token needs in the mean
 *
 *   e (1 - prod_{j = 0 .. k - 1} (E - E/e - j) / (E - j))      groups, in each of them all the GPUs that cut its experts
 *
 * A TP group of attention has each of its tokens on all of its ranks: each sends its part, and gathers what comes back.
 *
 * Micro-batches have equal numbers of requests and tokens, one more for the first ones where it does not come out even: those that decode first, then
 * prompts, one of which may be cut in two, as vLLM cuts (v1/worker/ubatch_utils.py). Not modelled: kernels that slow down while transfers run
 * beside them, and small iterations that an engine leaves whole.
 */
#ifndef MAQ_SERVE_PASS_AFD_H
#define MAQ_SERVE_PASS_AFD_H

#include "serve/pass/pass.h"
#include "serve/pass/ping_pong.h"

/* What goes between the sides in one layer, of a micro-batch, and what that is for either of them. */
struct maq_afd_border {
    bool known;
    double s;     /* one way, either one */
    double bytes; /* through all ports of a side, one way */
    struct maq_pass_parts attention, ffn;
};

struct maq_afd {
    struct maq_job ffn_job; /* with FFN's degrees and places */
    struct maq_passes attention, ffn;
    uint32_t n_kinds, n_layers;
    const uint32_t *kind_of; /* [n_layers] */
    uint32_t *layers_of;     /* [n_kinds] */
    double *ways;            /* [n_kinds] that a token goes; 0: the kind has nothing there */
    int64_t *width;          /* [n_kinds] of what goes */
    int32_t micro_batches, attention_ranks, ffn_ranks;
    enum maq_afd_exchange exchange;
    double bps;                      /* in place of what ports have; 0: not said */
    struct maq_placement pair;       /* of two GPUs that are farthest from each other */
    uint16_t sharers;                /* that send from a node at a time */
    struct maq_afd_border **borders; /* [n_kinds] [tokens of a rank + 1] */
    struct maq_pass_batch *slices;   /* [dp] room, of a micro-batch */
    struct maq_pass_chunk *chunks;   /* [dp] [chunks_each] */
    uint32_t chunks_each;
    struct maq_ping_pong_layer *times; /* [micro_batches] [n_kinds] room */
    double *first_s, *left_s;          /* [micro_batches] room */
};

/* The first GPU of FFN: behind those of attention, or where the second kind of nodes begins. */
uint32_t maq_afd_first_ffn(const struct maq_cluster *cluster, uint32_t attention_ranks);

/* Of options that go together (serve/engine/afd_check.c). Everything is in the arena; most_tokens: of a rank of attention. */
enum maq_status maq_afd_init(struct maq_afd **out, const struct maq_job *job, const struct maq_serve_options *options,
                             int64_t most_tokens, struct maq_arena *arena);

struct maq_afd_pass {
    double s;
    uint32_t micro_batches;               /* fewer where there are not as many tokens */
    struct maq_pass_parts attention, ffn; /* of a GPU of either side; they add up to its work, not to the time */
    struct maq_afd_times times;
};
/* A pass of the batches of all ranks of attention, batches[dp]. */
void maq_afd_pass(struct maq_afd_pass *out, struct maq_afd *afd, const struct maq_pass_batch *batches);

/* No less than that, however many keys they see, in seconds; all of them decode. */
double maq_afd_least_s(struct maq_afd *afd, const struct maq_pass_batch *batches);

static inline void maq_afd_times_add(struct maq_afd_times *sum, const struct maq_afd_times *more)
{
    sum->attention_s += more->attention_s;
    sum->ffn_s += more->ffn_s;
    sum->to_ffn_s += more->to_ffn_s;
    sum->to_attn_s += more->to_attn_s;
    sum->sent_bytes += more->sent_bytes;
    sum->back_bytes += more->back_bytes;
}

/* ---- for tests ---- */

/* The i-th of n micro-batches of a rank's batch; its pieces of prompts are in `chunks`. */
struct maq_pass_batch maq_afd_slice(const struct maq_passes *p, const struct maq_pass_batch *batch, uint32_t i,
                                    uint32_t n, struct maq_pass_chunk *chunks);

#endif
