/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - one deployment of one model under one serving engine: from requests to latencies, throughput and memory.
 *
 *   job (model, cluster, degrees)  +  options (engine, its limits)  +  requests   --maq_serve_run()-->   result
 *
 * Time goes on in iterations. Before each the engine's scheduler decides which tokens of which requests it computes; the iteration
 * lasts as long as the passes through the model's layers that this takes, and as the host needs to prepare it. Where scheduling is
 * asynchronous the host prepares an iteration while the one before it runs.
 *
 * Latencies are those of vLLM's benchmark client, in seconds: TTFT from a request's arrival to its first token, E2EL to its last, TPOT
 * (E2EL - TTFT) / (tokens - 1) of a request with more than one, ITL every gap between tokens of all requests.
 */
#ifndef MAQUETTE_SERVE_H
#define MAQUETTE_SERVE_H

#include <signal.h>

#include "maquette/job.h"
#include "maquette/serve_afd.h"
#include "maquette/serve_draft.h"
#include "maquette/serve_images.h"
#include "maquette/serve_kv_tiers.h"
#include "maquette/serve_lora.h"
#include "maquette/slo.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_engine { MAQ_ENGINE_VLLM, MAQ_ENGINE_SGLANG, MAQ_ENGINE_TRTLLM, MAQ_ENGINE_COUNT };
MAQ_API const char *maq_engine_name(enum maq_engine engine);

/* What weights are in memory, and the arithmetic that goes with it: identifier, name, in words. */
/* clang-format off */
#define MAQ_WEIGHTS_LIST(X)                                                                                            \
    X(BF16,      "bf16",      "16 bits")                                                                               \
    X(FP8,       "fp8",       "8 bits, a scale for a tensor or a row")                                                 \
    X(FP8_BLOCK, "fp8-block", "8 bits, a scale for 128 x 128 weights and for 128 inputs (DeepSeek-V3, Qwen3 FP8)")     \
    X(INT8,      "int8",      "8 bits, weights alone; arithmetic in 16 bits")                                          \
    X(INT4,      "int4",      "4 bits, weights alone, groups of 128 (AWQ, GPTQ); arithmetic in 16 bits")               \
    X(MXFP4,     "mxfp4",     "4 bits, weights alone, groups of 32 (gpt-oss); arithmetic in 16 bits, 8 on Blackwell")  \
    X(NVFP4,     "nvfp4",     "4 bits, groups of 16; arithmetic in 4 bits")
/* clang-format on */
enum maq_weights {
#define MAQ_WEIGHTS_ENUM(id, name, what) MAQ_WEIGHTS_##id,
    MAQ_WEIGHTS_LIST(MAQ_WEIGHTS_ENUM)
#undef MAQ_WEIGHTS_ENUM
        MAQ_WEIGHTS_COUNT
};
MAQ_API const char *maq_weights_name(enum maq_weights weights);

/* Where the time of an iteration goes: identifier, name, what is in it. */
/* clang-format off */
#define MAQ_SERVE_PART_LIST(X)                                                                                         \
    X(GEMM,      "gemm",          "dense products")                                                                    \
    X(ATTENTION, "attention",     "with writing the cache; scans of recurrent layers")                                 \
    X(EXPERTS,   "experts",       "router, routed experts")                                                            \
    X(POINTWISE, "pointwise",     "norms, activations, quantization, embedding")                                       \
    X(COMM,      "communication", "collectives")                                                                       \
    X(SAMPLING,  "sampling",      "a token of its logits; inputs")                                                     \
    X(LAUNCH,    "launch",        "the device waits for launches where no CUDA graph holds them")                      \
    X(HOST,      "host",          "the device waits for the scheduler, and for inputs to be prepared")                 \
    X(DRAFT,     "draft",         "passes of what drafts, with its own launches; none without speculative decoding")   \
    X(LORA,      "lora",          "kernels of adapters, and iterations that wait for a copy of one; none without them")\
    X(ENCODER,   "encoder",       "the vision tower, in front of iterations whose prompts have images")                \
    X(AFD,       "afd",           "attention waits for FFN on GPUs of its own, and for what goes there and back")      \
    X(COMPILE,   "compile",       "a prefill waits for a kernel that is compiled for its number of tokens")
/* clang-format on */
enum maq_serve_part {
#define MAQ_SERVE_PART_ENUM(id, name, what) MAQ_SERVE_##id,
    MAQ_SERVE_PART_LIST(MAQ_SERVE_PART_ENUM)
#undef MAQ_SERVE_PART_ENUM
        MAQ_SERVE_PART_COUNT
};
MAQ_API const char *maq_serve_part_name(enum maq_serve_part part);

enum maq_serve_memory {
    MAQ_SERVE_MEM_WEIGHTS,
    MAQ_SERVE_MEM_LORA,        /* slots for adapters */
    MAQ_SERVE_MEM_ACTIVATIONS, /* the peak of the largest iteration */
    MAQ_SERVE_MEM_GRAPHS,      /* CUDA graphs */
    MAQ_SERVE_MEM_CONTEXT,     /* driver, libraries, communicators */
    MAQ_SERVE_MEM_KV,
    MAQ_SERVE_MEM_COUNT
};
MAQ_API const char *maq_serve_memory_name(enum maq_serve_memory kind);

/* An iteration, when it is launched: what it computes, who is there, and when it runs on each stage of the pipeline. */
struct maq_serve_iteration {
    uint64_t number;   /* from 0 */
    uint32_t requests; /* in it */
    uint32_t
        prompts; /* of them, those that compute more than one token: of their prompt, or again what was preempted */
    int64_t tokens;
    uint32_t running, waiting; /* requests, once it is decided */
    double used_blocks;        /* of the KV cache */
    double decided_s;
    uint32_t n_stages;
    const double *starts_s, *ends_s; /* [n_stages], for the call */
};
typedef void maq_serve_watch(const struct maq_serve_iteration *iteration, void *user);

/* How tokens of ranks that have requests of their own reach experts that are spread over all of them: identifier, name, what it is. */
/* clang-format off */
#define MAQ_SERVE_EXCHANGE_LIST(X)                                                                                     \
    X(AUTO,               "auto",               "as the engine does by default")                                       \
    X(GATHER,             "allgather",          "all ranks gather all tokens, and sum by reduce-scatter")              \
    X(DEEPEP,             "deepep",             "DeepEP: its low-latency kernels where all tokens are decoded")        \
    X(DEEPEP_NORMAL,      "deepep-normal",      "DeepEP's kernels for throughput alone")                               \
    X(DEEPEP_LOW_LATENCY, "deepep-low-latency", "DeepEP's low-latency kernels alone")                                  \
    X(ONE_SIDED,          "one-sided",          "TensorRT-LLM's one-sided exchange over NVLink")
/* clang-format on */
enum maq_serve_exchange {
#define MAQ_SERVE_EXCHANGE_ENUM(id, name, what) MAQ_EXCHANGE_##id,
    MAQ_SERVE_EXCHANGE_LIST(MAQ_SERVE_EXCHANGE_ENUM)
#undef MAQ_SERVE_EXCHANGE_ENUM
        MAQ_EXCHANGE_COUNT
};
MAQ_API const char *maq_serve_exchange_name(enum maq_serve_exchange exchange);

/* Whose kernels compute routed experts, by vLLM's names (--moe-backend): identifier, name, what it is. */
/* clang-format off */
#define MAQ_MOE_BACKEND_LIST(X)                                                                                        \
    X(AUTO,                "auto",                   "as the release does by default")                                 \
    X(TRITON,              "triton",                 "Triton's: fused_moe, and for MXFP4 those of triton_kernels")     \
    X(DEEP_GEMM,           "deep_gemm",              "DeepGEMM's grouped products")                                    \
    X(CUTLASS,             "cutlass",                "the engine's own, by CUTLASS")                                   \
    X(FLASHINFER_CUTLASS,  "flashinfer_cutlass",     "FlashInfer's, by CUTLASS")                                       \
    X(FLASHINFER_TRTLLM,   "flashinfer_trtllm",      "FlashInfer's of TensorRT-LLM")                                   \
    X(FLASHINFER_AFP8,     "flashinfer_trtllm_afp8", "the same, with inputs in MXFP8")                                 \
    X(MARLIN,              "marlin",                 "Marlin's: weights in 4 bits, products in 16")
/* clang-format on */
enum maq_moe_backend {
#define MAQ_MOE_BACKEND_ENUM(id, name, what) MAQ_MOE_BACKEND_##id,
    MAQ_MOE_BACKEND_LIST(MAQ_MOE_BACKEND_ENUM)
#undef MAQ_MOE_BACKEND_ENUM
        MAQ_MOE_BACKEND_COUNT
};
MAQ_API const char *maq_moe_backend_name(enum maq_moe_backend backend);

/* Through what requests come to an engine, and their tokens to the clients. */
enum maq_front_end {
    MAQ_FRONT_END_OWN, /* the engine's own API server; nothing of an engine that is called in its process (`offline`) */
    MAQ_FRONT_END_DYNAMO, /* Dynamo's, in compiled code */
    MAQ_FRONT_END_NONE    /* times are those of the engine: from its queue to a token that it has sampled */
};
MAQ_API const char *maq_front_end_name(enum maq_front_end front_end);

/* In which order SGLang tries those that wait. */
enum maq_sglang_policy {
    MAQ_SGLANG_FCFS,
    MAQ_SGLANG_LPM,        /* the longest cached prefix first */
    MAQ_SGLANG_DFS_WEIGHT, /* depth first through the tree of prefixes, where most wait */
    MAQ_SGLANG_LOF,        /* the longest output first */
    MAQ_SGLANG_RANDOM,
    MAQ_SGLANG_POLICIES
};

/* What its prefix cache forgets first: src/serve/kv/radix_tree.h. */
enum maq_radix_eviction {
    MAQ_RADIX_LRU,
    MAQ_RADIX_LFU,
    MAQ_RADIX_FIFO,
    MAQ_RADIX_MRU,
    MAQ_RADIX_FILO,
    MAQ_RADIX_SLRU,
    MAQ_RADIX_PRIORITY,
    MAQ_RADIX_EVICTIONS
};

/* What SGLang alone is told; zero: its default. */
struct maq_sglang_options {
    uint8_t policy, eviction;     /* enum maq_sglang_policy, enum maq_radix_eviction */
    bool mixed_chunk;             /* decodes go along with a prefill */
    int32_t max_prefill_tokens;   /* of a prefill batch */
    int32_t prefill_max_requests; /* of a prefill batch */
    bool requests_by_default;     /* max_num_seqs was not said, and the engine's default has been put in */
    int32_t graph_max_requests;   /* of a CUDA graph */
    int32_t
        recv_interval; /* scheduler_recv_interval: iterations of decodes until new requests are received again; 0 = 1 */
    int32_t
        prefill_graph_tokens; /* up to so many, prefills are CUDA graphs between their attentions; negative: never */
    double conservativeness;  /* scales what those that run are expected to sample yet */
    int32_t reserved_decode_tokens; /* of a server that decodes alone, for each request that is there */
    /* by_priority: the highest goes first, not the lowest; nobody that runs gives way; to one that is so much before it, 0 = 11 */
    bool high_first, no_preemption;
    int32_t preempts_by;
};

/* attention_dp_config of TensorRT-LLM: ranks of attention wait for each other before prompts begin. */
struct maq_attention_dp_balance {
    bool enabled;
    int32_t timeout_iterations;  /* for so many at most until all of them have a prompt; 0 = 50 */
    int32_t batching_iterations; /* and for so many more, for further prompts; 0 = 10, negative: none */
};

/* How an engine is started; zero where nothing is said: the engine's default, or what the model's config.json has. */
struct maq_serve_options {
    enum maq_engine engine;
    const char *version; /* "0.19.0"; NULL = the newest that is known */
    enum maq_weights weights, expert_weights;
    bool kv_fp8;
    int32_t dp; /* ranks (TP groups) of attention, each with requests and a cache of its own, that share the experts */
    int32_t ep; /* ranks over which experts are spread, of all dp * tp; the others cut them */
    enum maq_serve_exchange exchange; /* with dp > 1 */
    enum maq_moe_backend moe_backend;
    struct maq_afd_options afd; /* attention and FFN on GPUs of their own: `ep` is of those of FFN */
    double expert_skew; /* of how often an expert is chosen, the deviation over the mean; 0 = all alike, by chance */
    bool
        as_it_ran; /* what ran is not held against what the engine refuses: blocks of scales that a degree cuts through */
    bool offline;         /* requests come through the library and not over HTTP: other defaults */
    bool warm;            /* the engine has served for long: what it compiles for a number of tokens is there */
    int32_t graph_tokens; /* vLLM: of the largest CUDA graph; negative: there are none */
    int32_t max_num_seqs, max_num_batched_tokens;
    int64_t max_model_len;
    int32_t block_size;
    double gpu_memory_utilization;
    /* or, in the words of other engines, of which gpu_memory_utilization follows: weights and cache have this share of what is free at the
     * start (SGLang's mem_fraction_static); the cache has this share of what all else leaves (TensorRT-LLM's free_gpu_memory_fraction) */
    double static_memory_share, free_memory_share;
    int64_t blocks; /* of the KV cache; 0 = as many as fit */
    int32_t long_prefill_token_threshold;
    bool no_prefix_caching, no_chunked_prefill, by_priority, enforce_eager;
    bool chunked_prefill; /* where the engine's default is whole prompts: TensorRT-LLM */
    bool max_utilization; /* TensorRT-LLM: its capacity scheduler MAX_UTILIZATION, not GUARANTEED_NO_EVICT */
    /* TensorRT-LLM: prompts wait beside decodes for at most so many iterations (batch_wait_timeout_iters), while the batch has less than this share of
     * max_num_batched_tokens (batch_wait_max_tokens_ratio); 0 of either: they do not */
    int32_t batch_wait_iterations;
    double batch_wait_share;
    struct maq_attention_dp_balance attention_dp_balance; /* TensorRT-LLM, with dp > 1 */
    int async_scheduling;                                 /* enum maq_auto_bool */
    uint8_t front_end;                                    /* enum maq_front_end */
    /* How all requests are sampled: at a temperature (0: greedily), from the likeliest tokens that together have top_p of the probability (0 or 1: all),
     * of the top_k likeliest (0: all) */
    double temperature, top_p;
    int32_t top_k;
    struct maq_sglang_options sglang;
    struct maq_speculation speculation;
    struct maq_tier_options tiers; /* behind the GPU's blocks */
    struct maq_lora_options lora;
    struct maq_encoder_options encoder;
    bool one_by_one;        /* no iterations are done at once, for tests: the outcome is the same */
    maq_serve_watch *watch; /* is called for each iteration, in their order; NULL = nobody looks */
    void *watch_user;
    const volatile sig_atomic_t
        *stop; /* set by who wants no answer any more: MAQ_NO, and said; of a fleet its first member's; NULL = never */
};

/* A request. Its prompt begins with n_prefix runs of tokens that have names: equal names behind equal beginnings are equal tokens. */
struct maq_request {
    double arrival_s;
    int64_t prompt, output; /* tokens */
    int64_t
        max_tokens; /* that it may sample; more than `output`: it stops by itself. 0 = output, and its engine knows */
    int32_t priority;
    uint32_t n_prefix;
    uint64_t session; /* equal ones belong together; 0 = to none */
    uint64_t adapter; /* of LoRA, a name; 0 = none */
    const uint64_t *prefix;
    uint32_t images;      /* in its prompt, behind the named runs (serve_images.h) */
    int64_t image_tokens; /* of each, among those of the prompt; 0 = as the deployment's encoder says */
};

struct maq_requests {
    const struct maq_request *at; /* [n], by arrival */
    uint32_t n;
    uint32_t prefix_unit; /* tokens of a named run */
    uint32_t concurrency; /* 0: by arrival_s; else so many are under way at all times, and arrival_s is not looked at */
    uint32_t
        warmup; /* with a concurrency: so many all end before any further is sent, of which then all come at once */
    /* A run ends once it can no longer hold these: result->finished is less than n then, and latencies are those of the finished.
     * NULL: it goes to its end */
    const struct maq_slo *give_up;
};

/* Requests out of thin air. Zero where nothing is said. */
struct maq_request_spec {
    double rate;          /* requests a second; 0 = all at once */
    double burstiness;    /* shape of the gamma distribution of the gaps: 0 and 1 = Poisson, large = even */
    uint32_t concurrency; /* instead of a rate: so many are under way at all times */
    uint32_t n;           /* requests; 0 = rate times duration */
    uint32_t warmup;      /* of them, with a concurrency (struct maq_requests) */
    double duration_s;
    int64_t prompt, output; /* tokens; with `spread` drawn evenly from (1 - spread) to (1 + spread) times as many */
    double spread;
    uint32_t distinct; /* prompts, with their lengths, of which each request has one drawn; 0 = each has its own */
    int64_t
        shared_prefix; /* tokens of each prompt, the first ones, that all have in common; neither these nor images with `distinct` */
    uint32_t adapters;    /* of LoRA, named 1 and on, of which each request has one; 0 = none has */
    double adapter_zipf;  /* adapter k is asked for in proportion to k^-this; 0 = all alike */
    double adapter_none;  /* share of the requests without one */
    uint32_t images;      /* of each request, behind the shared prefix, */
    int64_t image_tokens; /* of so many tokens each, beside those of `prompt` */
    uint64_t seed;
};

/* Requests and what they point to. */
struct maq_request_set;
MAQ_API enum maq_status maq_requests_generate(struct maq_request_set **out, const struct maq_request_spec *spec,
                                              struct maq_diag *diag);
/* What is taken of a recording, and when it comes. Zero: all, as it was recorded. */
struct maq_request_reading {
    double from_s;     /* the first that is taken comes at least so long behind the file's first */
    double speed;      /* arrivals are divided by it; 0 = 1 */
    double duration_s; /* what comes later than so long from the first that is taken is left; 0 = nothing is */
    uint32_t most;     /* requests; 0 = all */
    double rate; /* requests a second: when they come is drawn, as of struct maq_request_spec, and not the file's */
    double burstiness;    /* of that */
    uint32_t concurrency; /* instead: so many are under way at all times */
    uint64_t seed;
};

/*
 * Reads a file (plain or .gz; "-": standard input): a table with a line of column names, or JSON, an object a line. Known names:
 *
 *     arrival     arrival_s, timestamp (ms), TIMESTAMP (date), arrival_time (s), arrival_time_ns
 *     prompt      prompt, input_length, ContextTokens, input_toks, prompt_len, prompt_tokens, isl
 *     output      output, output_length, GeneratedTokens, output_toks, output_len, completion_tokens, osl
 *     most        max_tokens: that it may sample at most (struct maq_request)
 *     priority    priority
 *     session     session, session_id, conversation_id, chat_id: a number, or text
 *     adapter     adapter, lora, lora_name: a number, or text; 0 and empty: none
 *     images      images, NumImages: in the prompt (serve_images.h)
 *     their size  image_tokens: tokens of all images of the request, among those of the prompt; without `images` it has one
 *     prefix      hash_ids: a name for each 512 tokens of the prompt (Mooncake)
 *
 * Arrivals count from the first that is taken. Where the file has none, all come at once, unless `how` says how.
 */
MAQ_API enum maq_status maq_requests_read(struct maq_request_set **out, const char *path,
                                          const struct maq_request_reading *how, struct maq_diag *diag);
MAQ_API const struct maq_requests *maq_requests_get(const struct maq_request_set *set); /* borrowed */
MAQ_API void maq_requests_free(struct maq_request_set *set);

struct maq_served {
    double arrival_s, scheduled_s, first_s, last_s;
    int64_t cached; /* tokens of the prompt that were in the prefix cache, or in a tier behind it */
    uint32_t preemptions;
    uint32_t replica; /* that served it; of two pools the one that decoded it */
    uint32_t refused; /* 1: its router has refused it, and all other times are its arrival's or negative */
    uint32_t
        retries; /* replicas that failed before with it under way. Times are those of the last try but for arrival_s */
    int64_t loaded; /* of them, from a tier */
    double load_s;  /* that it waited for those, from when its turn had come */
};

/* What a replica does of a request. */
enum maq_role { MAQ_ROLE_BOTH, MAQ_ROLE_PREFILL, MAQ_ROLE_DECODE, MAQ_ROLE_COUNT };
MAQ_API const char *maq_role_name(enum maq_role role);

/* How a request got from one pool to the other; times as those of struct maq_served. */
struct maq_handed {
    bool local;                  /* it did not: decode computed its prompt. The rest is zero then */
    uint32_t replica;            /* that computed its prompt */
    double reserved_s;           /* decode has room for it */
    double computed_s;           /* its prompt is */
    double begins_s, ends_s;     /* of the transfer: its first byte could go; its last one has come */
    double bytes, written_bytes; /* over all links; what prefill wrote of the tokens that were sent */
};

struct maq_serve_quantiles {
    double mean, p50, p90, p95, p99;
    double low,
        high; /* 80 % interval of the mean: four of five published runs were that far off (maq_serve_interval) */
};

/* Where the time to the first token goes with two pools, in the order in which it goes there: identifier, name, what it is. */
/* clang-format off */
#define MAQ_HANDOVER_PART_LIST(X)                                                                                      \
    X(RESERVE,  "reserve",  "until decode has room for the request, where prefill waits for that")                     \
    X(QUEUE,    "queue",    "until its first iteration")                                                               \
    X(PREFILL,  "prefill",  "until its prompt is computed")                                                            \
    X(ROOM,     "room",     "until the transfer begins, where decode has to have room by then")                        \
    X(TRANSFER, "transfer", "until all of it has come, as far as it goes on behind the prompt")                        \
    X(RESUME,   "resume",   "until its first token: decode takes it in, and computes the last token of the prompt where that is the rule")
/* clang-format on */
enum maq_handover_part {
#define MAQ_HANDOVER_PART_ENUM(id, name, what) MAQ_HANDOVER_##id,
    MAQ_HANDOVER_PART_LIST(MAQ_HANDOVER_PART_ENUM)
#undef MAQ_HANDOVER_PART_ENUM
        MAQ_HANDOVER_PART_COUNT
};
MAQ_API const char *maq_handover_part_name(enum maq_handover_part part);

/* What measured over predicted has a distribution of its own for. */
enum maq_serve_latency { MAQ_SERVE_TTFT, MAQ_SERVE_TPOT };
/* The 80 % interval of a latency as factors on the prediction, the same for every deployment (src/serve/engine/uncertainty.c). */
MAQ_API void maq_serve_interval(double *low, double *high, enum maq_serve_latency of);

/* One of several engines that serve the same stream (serve_fleet.h). */
struct maq_served_replica {
    uint32_t member;                  /* of the fleet: what it is a replica of */
    enum maq_role role;               /* those that compute prompts come first */
    uint32_t requests;                /* that it was sent */
    double output_tokens, busy_share; /* busy_share: of the time until its last token, an iteration ran; 1 = always */
    double kv_peak, kv_mean, prefix_hit_rate;
};

/* What replicas of a fleet are (serve_fleet.h). */
struct maq_served_member {
    const struct maq_job *job;        /* borrowed */
    struct maq_serve_options options; /* as they were completed */
    uint32_t replicas, devices;       /* devices: of one replica */
    int64_t kv_tokens;                /* of a cache of one */
};

/* Two pools and what went between them. */
struct maq_serve_pools {
    const char *transfer, *prefill_router; /* their names */
    uint32_t prefill_replicas, decode_replicas;
    struct maq_serve_result
        *prefill;              /* the pool: deployment, memory, iterations; n_devices of the pool, no latencies */
    struct maq_handed *handed; /* [n_requests] */
    uint32_t n, local;         /* requests that were handed over; that decode computed by itself */
    double bytes, written_bytes;
    double bps;                             /* of a transfer that has its ports for itself, the mean */
    struct maq_serve_quantiles transfer_s;  /* begins_s to ends_s */
    double part_s[MAQ_HANDOVER_PART_COUNT]; /* means over those that were handed over; they add up to their TTFT */
    double held_share;                      /* of the prefill pool's cache, by prompts that are computed: the mean */
    uint32_t cut;                           /* transfers that a failure ended */
    double cut_bytes;                       /* that these had sent, over all links */
    uint32_t given_up; /* computed prompts that decode had no room for in time: their requests began anew */
};
struct maq_serve_power;

/* So many replicas are to be there from then on: the first ones. */
#define MAQ_ALL_REPLICAS UINT32_MAX
struct maq_replica_count {
    double at_s;
    uint32_t replicas;         /* that do both or, of pools, that decode */
    uint32_t prefill_replicas; /* of pools, that compute prompts for others */
};

/* Of a fleet whose replicas come, leave and fail; over the time from the first arrival to the last token. */
struct maq_serve_availability {
    bool known;              /* false: they do not, and the rest is zero */
    uint32_t failures;       /* of replicas that were there */
    uint32_t retried;        /* requests, each once */
    double replicas;         /* that take requests, the mean over time */
    double prefill_replicas; /* of them, those that compute prompts for others */
    double gpus; /* of those that are meant to be there, and of those that still end requests, the mean over time */
    double usd_per_hour;              /* of these GPUs; 0: a member has no price */
    double nobody_s;                  /* in which none takes requests, of a pool where there are two */
    struct maq_replica_count *counts; /* [n_counts] where a rule says how many are to be there; owned by the result */
    struct maq_replica_count *
        prefill_counts; /* [n_prefill_counts] likewise, in `replicas`, where a rule says how many compute prompts for others */
    uint32_t n_counts, n_prefill_counts;
};

/* Of a fleet whose router lets so many requests into a replica (maq_admission). */
struct maq_serve_admission {
    uint32_t max_requests;    /* 0: there is no limit, and the rest is zero */
    uint32_t refused, waited; /* requests; a request that waited twice, once */
    uint32_t most_waiting;    /* at a time */
    double wait_s;            /* of those that waited, the mean */
};

/* The share of requests within the bounds on a request's figures, over several draws of what fails. */
#define MAQ_ATTAINMENT_DRAWS 64u
struct maq_attainment {
    double first, low,
        high; /* of the first draw; the least and the most, which hold that of a further draw with a probability of */
    double confidence;     /* (n_draws - 1) / (n_draws + 1); 0 where there is one */
    uint32_t n_draws, met; /* met: draws in which all bounds hold */
    /* of each bound the least and the most of its figure over the draws, which hold that of a further one likewise; draws in which it holds */
    struct maq_slo slo;
    double bound_low_s[MAQ_SLO_MOST], bound_high_s[MAQ_SLO_MOST];
    uint32_t bound_met[MAQ_SLO_MOST];
    double of_draw[MAQ_ATTAINMENT_DRAWS]; /* [n_draws] the share of each */
};

/* The same draws with something else: what it is, and what it keeps; differences are its shares less those of the same draws. */
struct maq_what_if {
    const char *what; /* as it was asked for; borrowed */
    struct maq_attainment attainment;
    double mean, low, high; /* of the differences; low and high hold that of a further draw as above */
};

struct maq_serve_result {
    const struct maq_job *job;        /* borrowed */
    struct maq_serve_options options; /* as they were completed */
    /* memory of the fullest rank, bytes */
    double memory[MAQ_SERVE_MEM_COUNT], capacity_bytes, weights_bytes;
    double kv_bytes_per_token; /* on one rank, where all layers keep a token */
    int64_t blocks, kv_tokens; /* of the cache; tokens that it holds */
    bool fits;
    /* time */
    uint32_t n_devices, n_requests, finished;
    uint32_t waiting; /* of them had not begun when the last one arrived */
    bool
        overloaded; /* they are so many that requests come faster than they are served: latencies grow with n_requests */
    double duration_s; /* from the first arrival to the last token */
    struct maq_serve_quantiles ttft_s, tpot_s, itl_s, e2el_s, queue_s;
    double requests_per_s, input_tokens_per_s, output_tokens_per_s, total_tokens_per_s;
    double part_s[MAQ_SERVE_PART_COUNT], busy_s; /* of all iterations */
    /* Of a GPU, over duration_s: what its products would take at the peak of their types, its traffic at that of its memory. */
    double matrix_share, memory_share;
    uint64_t iterations, preemptions;
    double mean_batch, mean_tokens; /* requests and tokens of an iteration */
    double kv_peak, kv_mean;        /* share of the blocks in use, the mean over time */
    struct maq_serve_availability availability;
    struct maq_serve_admission admission;
    const struct maq_attainment *attainment; /* borrowed; NULL: nothing was drawn */
    const struct maq_what_if *what_if;       /* [n_what_if], borrowed likewise */
    uint32_t n_what_if;
    double prefix_hit_rate; /* tokens found cached over tokens of prompts */
    struct maq_speculated speculated;
    struct maq_tier_result tiers;
    struct maq_lora_result lora;
    struct maq_afd_result afd;
    struct maq_encoded encoded;
    struct maq_served *served;  /* [n_requests], owned by the result */
    struct maq_slo_outcome slo; /* the caller's, by maq_slo_judge(): reports show it */
    uint32_t n_replicas;        /* engines that served them */
    const char *router;         /* NULL: there is only one */
    const struct maq_capacity
        *capacity; /* the caller's, of maq_fleet_capacity(): reports show it; NULL = nobody asked */
    const struct maq_serve_power *power; /* the caller's, of maq_serve_power(): reports show it; NULL = nobody asked */
    struct maq_served_replica *replicas; /* [n_replicas], owned by the result; NULL: there is only one */
    struct maq_served_member *members;   /* [n_members], likewise */
    uint32_t n_members;
    struct maq_serve_pools
        *pools; /* owned by the result; NULL: replicas have no roles. Then iterations, parts and cache are decode's */
};

/*
 * Electric power of a deployment's GPUs while it serves, in the mean over the run: a share of the board's power that grows with how busy its matrix units
 * and its memory are (src/serve/engine/power.c). Low and high: 80 % interval, as measured runs were off.
 */
struct maq_serve_power {
    double watts, low_watts, high_watts; /* of a GPU */
    double joules_per_output_token, joules_per_token;
    double matrix_share, memory_share; /* of the time, at the peak of its types and of its memory */
};
/* False: the power of the device is not known, or nothing was served. */
MAQ_API bool maq_serve_power(struct maq_serve_power *out, const struct maq_serve_result *result);

/* Whether a model has routed experts, which ranks can share. */
MAQ_API bool maq_model_has_experts(const struct maq_model *model);

/* What a deployment holds in memory; no request runs. *out is owned by the caller (maq_serve_free). */
MAQ_API enum maq_status maq_serve_plan(struct maq_serve_result **out, const struct maq_job *job,
                                       const struct maq_serve_options *options, struct maq_diag *diag);
/* Serves requests. A deployment that does not fit is a result (fits = false), not an error. */
MAQ_API enum maq_status maq_serve_run(struct maq_serve_result **out, const struct maq_job *job,
                                      const struct maq_serve_options *options, const struct maq_requests *requests,
                                      struct maq_diag *diag);
MAQ_API void maq_serve_free(struct maq_serve_result *result);

/* One batch of equal requests, all at once: the pass over their prompts, and the passes that follow, a token each. */
struct maq_serve_batch {
    double prefill_s, decode_s; /* of the whole prompt; of all tokens behind the first */
    double part_s[2][MAQ_SERVE_PART_COUNT];
    struct maq_afd_times afd[2]; /* zero where each GPU has attention and FFN */
};
MAQ_API enum maq_status maq_serve_static(struct maq_serve_batch *out, const struct maq_job *job,
                                         const struct maq_serve_options *options, int64_t batch, int64_t prompt,
                                         int64_t output, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
