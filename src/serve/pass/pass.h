/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.h - how long a forward pass of a serving engine takes on one pipeline stage: prefill, decode, or both in one batch.
 *
 * The modules of a layer are those that training has, cut by the same rules (lower/local.h), and priced by the same chain. What differs
 * is which kernels an engine makes of them:
 *
 *   - the addition of the residual stream is part of the next norm; a gate and its product are one kernel; positions are rotated, and
 *     keys and values written into the cache, by a kernel each
 *   - attention has a query for each sequence that decodes, and a run of queries behind older tokens for each prompt
 *   - the experts of a rank are one operator; sums over a TP group are the engine's own all-reduce
 *   - latent attention is absorbed into queries and outputs where one token is decoded, expanded where a prompt is
 *   - only tokens that are sampled from pass the head; then logits are gathered and reduced to a token
 *
 *   - with attention data parallelism (`dp` of the options) each rank has a batch of its own; they meet in the experts of every layer, so a
 *     pass takes as long as the rank with most tokens, the longest attention, and the experts' work for the tokens of all of them
 *
 * All but attention and what goes with it depends on the number of tokens alone and is added up once for each number. Attention of those
 * that decode depends on how many they are and on how many keys each sees in the mean: it is priced at every MAQ_PASS_KEY_STEP keys, and
 * between them taken to grow evenly. Prices are kept for the next batch of that shape.
 */
#ifndef MAQ_SERVE_PASS_PASS_H
#define MAQ_SERVE_PASS_PASS_H

#include "base/arena.h"
#include "maquette/cost.h"
#include "maquette/job.h"
#include "maquette/serve.h"

#define MAQ_PASS_WINDOWS 4u

/* Numbers of an operator that depend on the type of the weights. */
struct maq_pass_type {
    int dtype;      /* enum maq_dtype of the arithmetic */
    unsigned flags; /* enum maq_op_flag */
    bool quantizes; /* inputs are quantized by a kernel in front */
    double bytes;   /* of a weight, with its scales */
};

struct maq_pass_parts {
    double ns[MAQ_SERVE_PART_COUNT];
    double matrix_ns,
        memory_ns;  /* that its products would take at the peak of their types, its traffic at that of the memory */
    double kernels; /* that are launched */
    double
        between; /* of them, those of recurrent layers that the host launches between the graphs of a pass in pieces, beyond an attention's */
};

/* A step of keys that was asked for, its two ends: the next pass of the same requests mostly lies in it, too. */
struct maq_pass_step {
    int64_t decodes, queries, padded, from, indexed; /* as in struct maq_pass_decode; from: its fewest keys */
    struct maq_pass_parts at[2];
    bool known[2];
};

/* A kind of layer, as often as a stage has it. */
struct maq_pass_layer {
    const struct maq_layer *layer;
    uint32_t count;
    uint32_t window; /* of its mixer, and whether that chooses among all keys: maq_pass_mixer_window() */
    bool chooses;
    struct maq_pass_step step;
};

struct maq_pass_stage {
    struct maq_pass_layer *layers;
    uint32_t n_layers; /* kinds of them */
    uint32_t depth;    /* layers, of all kinds */
    uint32_t routed;   /* of which have experts that are chosen */
    uint32_t
        compiled; /* kernels that the engine compiles anew for each number of tokens of a prefill that no CUDA graph holds */
    bool first, last; /* has the embedding; the head */
};

/* Adapters of LoRA: which linears have them, and times of batches with some. */
#define MAQ_PASS_LORA_SHAPES 4096u
struct maq_pass_lora_shape {
    int64_t tokens, adapters; /* tokens = 0: nothing is known */
    struct maq_pass_parts parts;
};
struct maq_pass_lora {
    int32_t rank;                       /* 0: there are none */
    bool experts;                       /* routed ones have them, too */
    struct maq_plan plan;               /* as the deployment's, with adapters */
    struct maq_pass_lora_shape *shapes; /* [stages * MAQ_PASS_LORA_SHAPES], of which the last one stays in its place */
};

/* How a token is taken from a row of logits: sampling.c has the kernels. */
enum maq_pass_filter { MAQ_FILTER_NONE, MAQ_FILTER_SORT, MAQ_FILTER_SELECT, MAQ_FILTER_TRITON, MAQ_FILTER_FLASHINFER };
struct maq_pass_sampling {
    bool random; /* else the likeliest */
    enum maq_pass_filter filter;
};

/* Whose kernels compute the experts: experts.c. */
enum maq_expert_kernels {
    MAQ_EXPERTS_LIBRARY,   /* one call: FlashInfer's, TensorRT-LLM's */
    MAQ_EXPERTS_MARLIN,    /* one call: Marlin's */
    MAQ_EXPERTS_TRITON,    /* Triton's, which Python launches one by one */
    MAQ_EXPERTS_CONTIGUOUS /* DeepGEMM's, on rows that are padded to blocks; launched by Python, too */
};

/*
 * Which modules of a layer a rank passes: all that are no mixer; with dp > 1 what its own tokens pass, and what those of all ranks do; and where
 * attention and FFN are on GPUs of their own (afd.h), those of either side.
 */
enum maq_pass_scope {
    MAQ_PASS_NOTHING,
    MAQ_PASS_WHOLE,
    MAQ_PASS_OWN,
    MAQ_PASS_EXPERTS,
    MAQ_PASS_ATTENTION,
    MAQ_PASS_FFN
};

struct maq_passes {
    const struct maq_job *job; /* its plan has the engine's degrees */
    struct maq_job own;        /* a copy that says how experts are cut */
    const struct maq_device *device;
    struct maq_costs costs;
    struct maq_pass_type linear, experts;
    enum maq_expert_kernels expert_kernels;
    bool pads_for_marlin;       /* vLLM: weights in MXFP4 are padded to the tiles of Marlin's kernels */
    bool experts_by_python;     /* which launches their kernels one by one; else it makes one call */
    int64_t contiguous_from;    /* tokens; passes with fewer take Triton's instead of the contiguous ones */
    struct maq_pass_type plain; /* of what is in 16 bits whatever the weights are: attention, norms, head, router */
    enum maq_engine engine;
    int32_t release; /* of it: engine_release.h */
    bool compiled;   /* torch.compile has fused what stands between its products (vLLM) */
    bool kv_fp8;
    enum maq_pass_scope own_scope, all_scope; /* of a rank's tokens; of those of all */
    bool experts_alone;                       /* where FFN is on GPUs of its own: these have routed experts alone */
    struct maq_pass_sampling sampling;
    bool
        encodes; /* of an encoder: no keys and values are kept, and a chunk's queries see all of it, or of their window */
    bool fuses_norm; /* the sum over the TP group, the residual stream and its norm are one kernel (TensorRT-LLM) */
    int32_t ep, moe_tp;
    double expert_skew;
    int32_t dp;                       /* batches that meet in the experts */
    struct maq_placement wide;        /* the dp * tp ranks that the experts are cut over */
    enum maq_serve_exchange exchange; /* how tokens get to them, with dp > 1; never AUTO */
    double exchange_bytes;            /* of an element on its way there */
    struct maq_pass_stage *stages;
    uint32_t n_stages;
    int64_t windows[MAQ_PASS_WINDOWS]; /* distinct ones of attention layers; [0] = 0: none */
    uint32_t n_windows;
    struct maq_pass_parts **by_tokens; /* [stages] [tokens]: kernels 0: not yet computed */
    struct maq_pass_parts *
        *by_all; /* of all ranks' experts, dp > 1: [stages] [2 * (tokens of a rank + 1) + whether all decode] */
    struct maq_pass_parts *by_rows; /* of the head, [most_tokens + 1] */
    struct maq_pass_decode *
        *decodes; /* [stages] [MAQ_PASS_DECODES]: a place for each shape, of which the last one stays */
    struct maq_pass_lora lora;
    int64_t most_tokens;
    struct maq_arena *arena;
};

/* The mixer of one kind of layer for those that decode. */
#define MAQ_PASS_DECODES 4096u
#define MAQ_PASS_KEY_STEP 16 /* tokens of a block of the cache */
struct maq_pass_decode {
    int64_t decodes, queries; /* decodes = 0: nothing is known */
    int64_t padded;           /* of a batch in which all decode; -1: what the tokens of all cost is not in it */
    int64_t layer, keys;
    int64_t indexed; /* keys that the layer chooses among, to the next step; 0: it chooses none */
    struct maq_pass_parts parts;
};

/* Queries of one prompt in a pass, behind `context` tokens that are in the cache. */
struct maq_pass_chunk {
    int64_t queries, context;
};

struct maq_pass_batch {
    int64_t tokens;  /* of all requests */
    int64_t padded;  /* that the kernels but attention compute: `tokens`, or the size of the CUDA graph */
    int64_t sampled; /* requests that sample */
    int64_t decodes; /* requests with one query, or with one and its drafts */
    int64_t queries; /* of them, each: 1, or more with drafts */
    int64_t decode_keys[MAQ_PASS_WINDOWS]; /* that they see together, at each window */
    const struct maq_pass_chunk *chunks;
    uint32_t n_chunks;
    bool
        mixed; /* has both those that decode and prompts: maq_pass_mixer() sets it, which looks at one of them at a time */
    int64_t adapted, adapters; /* tokens of requests with an adapter of LoRA; different ones */
};

/* What a layer's queries see: so many keys, 0: all. A chunk counts as a window (docs/serving.md), and chosen keys as the last ones. */
static inline int64_t maq_pass_window(const struct maq_attention_geometry *g)
{
    return g->window > 0 ? g->window : g->chunk > 0 ? g->chunk : g->selected;
}

/* Of `keys` that there are, those at window `w` of the list. */
static inline int64_t maq_pass_keys(const struct maq_passes *p, uint32_t w, int64_t keys)
{
    return p->windows[w] > 0 && keys > p->windows[w] ? p->windows[w] : keys;
}

/* Keys that one of those that decode sees in the mean, at window `w`. */
static inline double maq_pass_mean_keys(const struct maq_pass_batch *b, uint32_t w)
{
    double mean = (double)b->decode_keys[w] / (double)b->decodes;
    return mean < 1 ? 1 : mean;
}

/* Everything is in the arena. most_tokens: of a pass. */
enum maq_status maq_passes_init(struct maq_passes *p, const struct maq_job *job,
                                const struct maq_serve_options *options, int64_t most_tokens, struct maq_arena *arena);
/*
 * Passes of one side, MAQ_PASS_ATTENTION or MAQ_PASS_FFN, of a deployment whose attention and FFN are on GPUs of their own: a stage for each kind of
 * layers, once, in the order of the model's; attention has two more, MAQ_PASS_EMBEDDING and MAQ_PASS_HEAD behind them. `job` has the side's degrees
 * and places; most_tokens: of a rank of attention. Everything is in the arena.
 */
enum { MAQ_PASS_EMBEDDING, MAQ_PASS_HEAD, MAQ_PASS_ENDS };
enum maq_status maq_passes_init_side(struct maq_passes *p, const struct maq_job *job, const struct maq_device *device,
                                     const struct maq_serve_options *options, enum maq_pass_scope side,
                                     int64_t most_tokens, struct maq_arena *arena);

/* Adds the time of a pass through stage `stage`, by part: of the batches of all ranks, batches[dp]. */
void maq_pass_add(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches,
                  struct maq_pass_parts *out);

/* No less than what maq_pass_add() adds for such batches, however many keys they see, in seconds. */
double maq_pass_least_s(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batches);

/* ---- layers.c: what depends on the number of tokens alone ---- */

/* Whether a module is of passes, a mixer or not. */
bool maq_pass_has(const struct maq_passes *p, const struct maq_module *module);
/* `decodes`: all tokens are decoded, which decides between kernels of an exchange. */
void maq_pass_layers(const struct maq_passes *p, const struct maq_pass_stage *stage, enum maq_pass_scope scope,
                     int64_t tokens, bool decodes, struct maq_pass_parts *out);
/* What is behind the layers of a vision tower, for so many patches that pass them. */
void maq_pass_projector(const struct maq_passes *p, int64_t patches, struct maq_pass_parts *out);
/* The head, for tokens that are sampled from. */
void maq_pass_head(const struct maq_passes *p, int64_t rows, struct maq_pass_parts *out);

/* ---- experts.c: whose kernels compute the experts ---- */
/* Sets expert_kernels, experts_by_python and the type of their products; after `exchange`, `ep` and `moe_tp` are known. */
void maq_pass_choose_experts(struct maq_passes *p, const struct maq_serve_options *options);
/* The busiest rank's experts; `up` is the first of the layer's expert linears, `tokens` those of all ranks that share experts. */
void maq_pass_experts(const struct maq_passes *p, const struct maq_layer *layer, const struct maq_module *up,
                      int64_t tokens, double times, struct maq_pass_parts *out);

/* ---- sampling.c: from logits to tokens ---- */
struct maq_pass_sampling maq_pass_sampling_of(const struct maq_serve_options *options);
/* What the small kernels around a pass take, which prepare its inputs and take its results. */
double maq_pass_around_ns(const struct maq_passes *p);
void maq_pass_sample(const struct maq_passes *p, int64_t rows, struct maq_pass_parts *out);
/* ---- recurrent.c: layers with a state ---- */
#define MAQ_PASS_PRODUCTS 4u
struct maq_pass_product {
    int64_t out; /* on this rank */
    bool gates;  /* of b and a, which are no multiple of a block of scales */
    bool beside; /* on a second stream, under the product in front of it */
};
/* The products that the engine makes of a linear, where they are not just one: how many, else 0. */
unsigned maq_pass_products(const struct maq_passes *p, const struct maq_layer *layer, const struct maq_module *m,
                           int64_t tokens, struct maq_pass_product out[MAQ_PASS_PRODUCTS]);
/* Whether a norm is in the kernel of the gate beside it. */
bool maq_pass_is_in_gate(const struct maq_layer *layer, const struct maq_module *m);
/* A stage's `compiled`. */
uint32_t maq_pass_compiled_kernels(const struct maq_passes *p, const struct maq_pass_stage *stage);
/* Whether a module is a convolution, a scan or a delta rule. */
bool maq_pass_is_scan(const struct maq_module *m);
/* Those of a layer, with all that is launched around them. `prompt_tokens` of all prompts of the batch, in sequences of `prompt_queries`. */
void maq_pass_scans(const struct maq_passes *p, const struct maq_layer *layer, double times,
                    const struct maq_pass_batch *batch, int64_t prompt_tokens, int64_t prompt_queries,
                    struct maq_pass_parts *out);

/* ---- mixers.c: attention ---- */
/* Of a batch: what those that decode cost, what its prompts do, what all of its tokens do. */
enum maq_mixer_share { MAQ_MIXER_DECODES = 1, MAQ_MIXER_PROMPTS = 2, MAQ_MIXER_TOKENS = 4, MAQ_MIXER_WHOLE = 7 };
void maq_pass_mixer(const struct maq_passes *p, const struct maq_layer *layer, double times,
                    const struct maq_pass_batch *batch, unsigned shares, struct maq_pass_parts *out);
/* The window of what mixes in a layer, in the list; 0 where nothing has one. *chooses: among all keys, for that window. */
uint32_t maq_pass_mixer_window(bool *chooses, const struct maq_passes *p, const struct maq_layer *layer);
/* Whether a module is left to maq_pass_mixer(). */
bool maq_pass_is_mixer(const struct maq_layer *layer, const struct maq_module *module);

/* ---- lora.c: LoRA adapters; nothing without them ---- */
enum maq_status maq_pass_lora_init(struct maq_passes *p, const struct maq_serve_options *options);
/* Bytes of a slot on a rank of a stage. */
double maq_pass_adapter_bytes(const struct maq_passes *p, const struct maq_pass_stage *stage);
/* Of all of an adapter, of this rank, in 16 bits. */
double maq_pass_adapter_file_bytes(const struct maq_passes *p);
/* Adds the kernels of a rank's batch. */
void maq_pass_lora(struct maq_passes *p, uint32_t stage, const struct maq_pass_batch *batch,
                   struct maq_pass_parts *out);

/* ---- moe_router.c ---- */
/* Whether the router's weights are kept, and its product computed, in 32 bits. */
bool maq_pass_router_is_wide(const struct maq_passes *p);
void maq_pass_router(const struct maq_passes *p, const struct maq_module *m, int64_t tokens, double times,
                     struct maq_pass_parts *out);

/* ---- shared ---- */
struct maq_op maq_pass_op(enum maq_op_kind kind, const struct maq_pass_type *type, unsigned flags, int64_t d0,
                          int64_t d1, int64_t d2, int64_t d3);
void maq_pass_sum(struct maq_pass_parts *to, const struct maq_pass_parts *more);
double maq_pass_seconds(const struct maq_passes *p, const struct maq_op *op);
void maq_pass_cost(const struct maq_passes *p, const struct maq_op *op, double times, enum maq_serve_part part,
                   struct maq_pass_parts *out);
/* Over the TP group of a rank. */
void maq_pass_coll(const struct maq_passes *p, enum maq_coll_kind kind, double bytes, double times,
                   struct maq_pass_parts *out);
/* To and from the experts of all ranks: `coll` but for who takes part. */
void maq_pass_exchange(const struct maq_passes *p, struct maq_coll coll, double times, struct maq_pass_parts *out);

#endif
