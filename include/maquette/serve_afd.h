/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_afd.h - attention and FFN on GPUs of their own ("attention-FFN disaggregation", "disaggregated expert parallelism").
 *
 *   attention GPUs (tp x dp)    embedding, norms, attention with the KV cache, residual stream, head     a
 *        |  ^                   hidden states of a micro-batch, in each layer, there and back            s, r
 *        v  |
 *   FFN GPUs                    experts; with p2p router, dense FFN and shared experts besides           f
 *
 * An iteration is cut into micro-batches that take turns: while one is in the FFN of a layer, another is in attention (src/serve/pass/ping_pong.h
 * has the equation).
 *
 * Sources: MegaScale-Infer (arXiv 2504.02263), Step-3 (arXiv 2507.19427), vLLM's plugin for it (vllm-project/afd-plugin 2e4378f).
 */
#ifndef MAQUETTE_SERVE_AFD_H
#define MAQUETTE_SERVE_AFD_H

#include <stdbool.h>
#include <stdint.h>

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How hidden states get to the experts: identifier, name, what it is. */
/* clang-format off */
#define MAQ_AFD_EXCHANGE_LIST(X)                                                                                       \
    X(P2P, "p2p", "each once to one FFN GPU, which gather all of them and sum by reduce-scatter; all FFN is theirs")   \
    X(M2N, "m2n", "to each GPU that has an expert of theirs, and parts of the sum back; routed experts alone are theirs")
/* clang-format on */
enum maq_afd_exchange {
#define MAQ_AFD_EXCHANGE_ENUM(id, name, what) MAQ_AFD_##id,
    MAQ_AFD_EXCHANGE_LIST(MAQ_AFD_EXCHANGE_ENUM)
#undef MAQ_AFD_EXCHANGE_ENUM
        MAQ_AFD_EXCHANGE_COUNT
};
MAQ_API const char *maq_afd_exchange_name(enum maq_afd_exchange exchange);

/* Zero where nothing is said. */
struct maq_afd_options {
    int32_t ffn_ranks;     /* GPUs of FFN, beside those of attention; 0 = each GPU has both */
    int32_t micro_batches; /* that an iteration is cut into; 0 = 2 */
    uint8_t exchange;      /* enum maq_afd_exchange */
    double bps; /* of each GPU, each way, in place of what its ports have; infinity: transfers take no time */
};

/* What the two sides do, in seconds: of all layers and micro-batches. They overlap, so that they add up to more than the time. */
struct maq_afd_times {
    double attention_s, ffn_s;     /* a GPU of either side computes */
    double to_ffn_s, to_attn_s;    /* a transfer is under way, of either direction */
    double sent_bytes, back_bytes; /* through all ports of a side */
};

/* Of a deployment, and what became of it in a run. */
struct maq_afd_result {
    bool known; /* false: each GPU has both, and the rest is zero */
    uint32_t attention_devices, ffn_devices;
    const char *ffn_device;                                             /* name of the GPU; borrowed */
    double ffn_weights_bytes, ffn_activations_bytes, ffn_context_bytes; /* on a GPU of FFN */
    double ffn_capacity_bytes, ffn_usable_bytes;                        /* usable: for the engine */
    bool ffn_fits;
    struct maq_afd_times times;  /* of all iterations */
    double hiding_micro_batches; /* maq_afd_hiding() of them */
};

/* With so many micro-batches the busiest of the four never waits: (a + s + f + r) / max(a, s, f, r) of the mean layer; 0: they did nothing. */
MAQ_API double maq_afd_hiding(const struct maq_afd_times *times);

#ifdef __cplusplus
}
#endif
#endif
