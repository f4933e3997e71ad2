/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployment.h - a deployment before any request comes: its options completed, its memory, its KV cache, the times of its passes.
 */
#ifndef MAQ_SERVE_ENGINE_DEPLOYMENT_H
#define MAQ_SERVE_ENGINE_DEPLOYMENT_H

#include "serve/draft/drafter.h"
#include "serve/engine_release.h"
#include "serve/kv/kv_cache.h"
#include "serve/pass/afd.h"
#include "serve/pass/pass.h"
#include "serve/sched/image_tokens.h"

/* What the host of an engine does for an iteration, in seconds on the reference host (framework.h). */
struct maq_host_profile {
    double iteration_s; /* scheduling, preparing inputs, taking results: whatever the batch */
    double request_s;   /* and for each request of it */
    double graph_s;     /* to launch a pass that is a CUDA graph; launches.c has the modes */
    double pass_s;      /* to launch any other, whatever is in it */
    double piece_s;     /* and for each layer that is a graph and an attention */
    double compiled_s;  /* or for each kernel of what torch.compile wrote */
    double eager_s;     /* or for each kernel of a model's Python */
    /* and for each layer of experts, which no compiler has looked into: kernel by kernel, or one call behind the same classes of Python */
    double experts_s, library_experts_s;
    double compile_s; /* for a kernel that is compiled for a number of tokens (compiled_lengths.h) */
    /* The API server: a loop that does one thing after another, and a thread that makes tokens of text. */
    double respond_s; /* from the end of an iteration until its tokens are written */
    double stream_s;  /* and for each request that has some, all of which the clients have then */
    /* of a request and a token of its prompt, until it is with the loop, whoever else is on the way */
    double arrive_s, arrive_token_s;
    double enter_s;                   /* that the loop has to do for a request before it reaches the scheduler */
    double enter_token_s, tokenize_s; /* for a token of its prompt: the loop, the thread */
    bool async;                       /* the next iteration is prepared while one runs */
    bool async_pipeline; /* with several stages, too; else what is in flight is waited for before its requests go on */
};

/* Tiers behind the blocks of a rank (TP group and its stages). kv_tier_sizes.c */
struct maq_deployment_tiers {
    bool any;
    bool
        copies; /* of a tree of prefixes (SGLang), whose chunks are pages; else stores and loads of an OffloadingConnector (vLLM) */
    int64_t chunks[MAQ_TIER_COUNT];
    bool swaps; /* blocks that move there and back before an iteration (TensorRT-LLM) */
    int32_t chunk_tokens;
    double chunk_bytes;  /* of a chunk in host memory: of all GPUs, what several of them hold once */
    double link_bytes;   /* over the link of the GPU that has the most of it */
    double loaded_bytes; /* over the links of all */
    double link_bps, ssd_most_bps, network_bps, pool_latency_s;
    double nodes; /* that it stands on */
    uint32_t devices_per_node;
};

/* Adapters of LoRA, where there are any. memory.c */
struct maq_deployment_adapters {
    double slot_bytes, file_bytes; /* on the fullest rank; of all of an adapter */
    double copy_s, read_s;         /* of one to the GPUs; from where the host has it not */
};

struct maq_draft_batch; /* batch.h */

/* A vision tower on some GPUs. */
struct maq_tower {
    struct maq_job job;
    struct maq_passes passes;
    bool projects; /* its model's output is what makes tokens of its features (vision.h); else that is not known */
};

struct maq_iteration_time;

struct maq_deployment {
    const struct maq_job *job;
    const struct maq_device *device;
    struct maq_serve_options options; /* completed */
    struct maq_host_profile host;
    struct maq_passes passes;
    double around_ns;                            /* of the small kernels around a pass */
    struct maq_afd *afd;                         /* the two sides of its passes; NULL: each GPU has both */
    struct maq_afd_times afd_times;              /* of the last pass, with them */
    double ffn_memory[MAQ_SERVE_MEM_COUNT];      /* of a GPU of FFN */
    double ffn_capacity_bytes, ffn_usable_bytes; /* usable: for the engine */
    struct maq_drafter drafter;                  /* of speculative decoding; not of NONE and NGRAM */
    struct maq_passes draft;
    struct maq_pass_batch *draft_batches; /* [dp], room for one pass of it */
    struct maq_draft_batch *drafts;       /* [dp], room for what is drafted behind an iteration; NULL: nothing is */
    struct maq_tower tower;               /* where there is one; vision_tower.c */
    struct maq_kv_group groups[MAQ_KV_MOST_GROUPS];
    uint32_t n_groups;
    double memory[MAQ_SERVE_MEM_COUNT], capacity_bytes;
    double kv_bytes_per_token, block_bytes; /* on the fullest rank; of a block in one group */
    int64_t blocks, kv_tokens;
    struct maq_deployment_tiers tiers;
    struct maq_deployment_adapters adapters;
    bool fits;
    struct maq_iteration_time
        *iteration_times;       /* [n_stages] [n_iteration_times] of before; once it serves. iteration_times.c */
    uint32_t n_iteration_times; /* a power of two; 0: none are kept */
    struct maq_arena arena;
};

/* To be ended (maq_deployment_fini()) even on failure. */
enum maq_status maq_deployment_init(struct maq_deployment *d, const struct maq_job *job,
                                    const struct maq_serve_options *options, struct maq_diag *diag);
void maq_deployment_fini(struct maq_deployment *d);

/* GPUs of a replica. */
static inline uint32_t maq_deployment_devices(const struct maq_deployment *d)
{
    return (uint32_t)(d->job->plan.tp * d->job->plan.pp * d->options.dp + d->options.afd.ffn_ranks);
}

/* What is known of it before any request comes, in *out. */
void maq_deployment_fill(struct maq_serve_result *out, const struct maq_deployment *d);
/* Requests that it could never serve, or its part of them, are faults. check_requests.c */
enum maq_status maq_deployment_check(const struct maq_deployment *d, const struct maq_requests *requests,
                                     enum maq_role role, struct maq_diag *diag);

/* ---- parts ---- */

/* Bytes that an iteration of the most tokens has alive at its fullest moment; of a token in the widest module: activations.c. */
double maq_deployment_activations(const struct maq_deployment *d);
double maq_deployment_widest(const struct maq_passes *p);

/* What the engine takes off for its CUDA graphs before it counts blocks; `widest`: bytes a token of the widest module. cuda_graph_memory.c */
double maq_deployment_graphs_bytes(const struct maq_deployment *d, double widest);
/* Refuses degrees that cut through a block of weights with a scale, as the engine does: block_scales.c. */
enum maq_status maq_blocks_check(const struct maq_job *job, const struct maq_serve_options *options,
                                 struct maq_diag *diag);

/* Whether times are known of the kernels that `options` ask for experts. moe_backend_check.c */
enum maq_status maq_moe_backend_check(const struct maq_job *job, const struct maq_device *device,
                                      const struct maq_serve_options *options, struct maq_diag *diag);
/* Whether a completed deployment's attention and FFN can be on GPUs of their own as they are asked for. afd_check.c */
enum maq_status maq_afd_check(const struct maq_job *job, const struct maq_serve_options *options,
                              struct maq_diag *diag);

/* The engine's defaults for what is not said. defaults.c */
void maq_serve_complete(struct maq_serve_options *out, const struct maq_serve_options *given,
                        const struct maq_job *job);
/* The same of one that is a replica of a fleet. afd_check.c */
enum maq_status maq_afd_check_replica(const struct maq_deployment *d, enum maq_role role, struct maq_diag *diag);
/*
 * CUDA graphs: the size that a batch of so many tokens is padded to, all of which decode, `queries` of each request; 0: none holds it.
 * graph_sizes.c
 */
int64_t maq_serve_graph_size(const struct maq_serve_options *options, int64_t tokens, int64_t queries);
/* The same of a batch with prompts, whose graphs end at every attention. graph_sizes.c */
int64_t maq_serve_prefill_graph_size(const struct maq_serve_options *options, int64_t tokens);
/* Passes of what drafts; checks what is asked of it. draft_passes.c */
enum maq_status maq_deployment_draft(struct maq_deployment *d, struct maq_diag *diag);
/* Passes of the vision tower; the images of a request; whether the i-th one's can be served. vision_tower.c */
enum maq_status maq_deployment_encoder(struct maq_deployment *d, struct maq_diag *diag);
struct maq_image_run maq_deployment_images(const struct maq_deployment *d, const struct maq_requests *q,
                                           const struct maq_request *r);
enum maq_status maq_deployment_check_images(const struct maq_deployment *d, const struct maq_requests *q, uint32_t i,
                                            struct maq_diag *diag);
/* Its weights on a rank. memory.c */
double maq_deployment_tower_bytes(const struct maq_deployment *d);
double maq_tower_bytes(const struct maq_tower *t);
/* Whether it encodes images itself. */
static inline bool maq_deployment_encodes(const struct maq_deployment *d)
{
    return maq_encoder_there(&d->options.encoder) && !d->options.encoder.elsewhere;
}
bool maq_deployment_has_drafter(const struct maq_deployment *d);
/* What the host of an engine costs. host.c */
struct maq_host_profile maq_host_profile_of(const struct maq_serve_options *options);
/* Bytes of a token in a layer on one rank, and its rule in *group; 0 where it keeps a state, of *state bytes for a request. memory.c */
double maq_deployment_layer_kv(const struct maq_deployment *d, const struct maq_layer *layer,
                               struct maq_kv_group *group, double *state);
/* Whether it has layers that keep a state of a request. state_pool.c */
bool maq_serve_keeps_states(const struct maq_model *m);
/* Bytes of all states, of which a request has one; SGLang then lets no more requests run than there are states for. state_pool.c */
double maq_deployment_states(struct maq_deployment *d, double state_bytes, double rest_bytes);
/* Groups of layers, blocks, memory. memory.c */
void maq_deployment_memory(struct maq_deployment *d);
/* Bytes of a token on the fullest stage's rank, over all ranks of all stages, and in one copy of each. memory.c */
struct maq_token_bytes {
    double rank, all, once;
};
struct maq_token_bytes maq_deployment_token_bytes(const struct maq_deployment *d);
/* All weights of the model, each once, in the types that they are served in. memory.c */
double maq_deployment_checkpoint_bytes(const struct maq_deployment *d);
/* Tiers behind the cache; what they cannot be is a fault. kv_tier_sizes.c */
enum maq_status maq_deployment_plan_tiers(struct maq_deployment *d, struct maq_diag *diag);
/* More in host memory than a node has, where the cluster says how much that is, with so many replicas. kv_tier_sizes.c */
enum maq_status maq_deployment_check_host(const struct maq_deployment *d, uint32_t replicas, struct maq_diag *diag);

#endif
