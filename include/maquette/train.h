/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.h - one training iteration of a job: how long, how much memory, where the time goes.
 *
 * maq_train_predict() is the fast path: each distinct layer is evaluated once, chunks and stages are sums,
 * the pipeline is one pass over a schedule skeleton. maq_train_graph() writes the whole step out as an
 * execution graph, operator by operator, for timelines, traces and every engine; both give the same step time
 * (a test holds them within 0.1 %; they agree to the nanosecond where nothing crosses a layer's border).
 *
 * MFU counts model FLOP, no recompute, causal attention as causal (the lower triangle), against the device's
 * dense peak in the recipe's matrix type; HFU adds the recomputed FLOP.
 */
#ifndef MAQUETTE_TRAIN_H
#define MAQUETTE_TRAIN_H

#include "maquette/graph.h"
#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_mem_kind {
    MAQ_MEM_WEIGHTS,
    MAQ_MEM_GRADIENTS,
    MAQ_MEM_OPTIMIZER,
    MAQ_MEM_ACTIVATIONS, /* kept from forward to backward */
    /* working set of the operator at the peak: logits, recomputed layer, gradients in flight, gathered parameters */
    MAQ_MEM_TRANSIENT,
    MAQ_MEM_FRAGMENTATION, /* held by PyTorch's caching allocator, not in use */
    MAQ_MEM_CONTEXT,       /* driver context, library workspaces */
    MAQ_MEM_NCCL,          /* communicator buffers */
    MAQ_MEM_GRAPHS,        /* what CUDA graphs take besides: struct maq_stage_graphs */
    MAQ_MEM_COUNT
};
MAQ_API const char *maq_mem_name(enum maq_mem_kind kind);

/* Memory of CUDA graphs (train/memory/cuda_graphs.c); all zero without them. */
struct maq_stage_graphs {
    double nodes;        /* kernels, copies and collectives that they hold */
    double driver_bytes; /* the driver's, for the nodes */
    double buffer_bytes; /* inputs and outputs at fixed addresses */
    double pool_bytes;   /* free in the pool of the graphs or in the other one, and not to be lent between them */
};

/* What one rank keeps elsewhere from step to step (train/memory/offloaded_states.c); zero where it does not. */
struct maq_offloaded {
    double weights, gradients, optimizer; /* bytes */
};

struct maq_stage_result {
    double bytes[MAQ_MEM_COUNT];
    struct maq_offloaded host, nvme; /* in host memory, on NVMe */
    struct maq_stage_graphs graphs;
    double allocated_bytes; /* what the framework's allocator has handed out at the peak */
    double reserved_bytes;  /* allocated + fragmentation */
    double total_bytes;     /* what nvidia-smi shows: reserved, context, communicators, CUDA graphs */
    double needed_bytes;    /* total without cached blocks and ends of blocks: what decides whether it fits */
    double capacity_bytes;
    /* Moments in managed memory (paged_optimizer), which PyTorch does not count: all of them, and what of them lies on the device, as far
     * as there is room. They are among total_bytes, but not among needed_bytes; the rest is in `host`. */
    double managed_bytes, resident_bytes;
    bool returns_cache;                /* the allocator has to give cached blocks back to the driver */
    double busy_s;                     /* compute stream */
    double bucket_s[MAQ_BUCKET_COUNT]; /* adds up to step_s */
    double params;                     /* held by one rank of the stage */
    uint32_t peak_microbatches;        /* activations of this many (microbatch, chunk) pairs are alive at the peak */
};

struct maq_train_op {  /* one row of the costliest operators */
    char text[96];     /* "gemm 8192x14336x4096 bf16" */
    const char *where; /* name of the module that uses it most often */
    uint8_t provider;  /* enum maq_provider */
    bool collective;   /* else it computes: */
    double flop,
        bytes; /* of one call: operations, and the memory traffic that it cannot do without; 0 of collectives */
    double count, seconds, share; /* per step on the critical stage; share of its busy time */
};

#define MAQ_TRAIN_TOP_OPS 12

/* How much of the step the job's file of measured kernels covers. All zero without one. */
struct maq_train_measured {
    bool asked;            /* the job names a file and lets measured costs answer */
    uint32_t held, others; /* operators and collectives that it has for the job's devices, and for other ones */
    uint32_t items, hits;  /* distinct operators and collectives of the step; how many of them it answered for */
};
/* Regimes that decide the width of the interval of a step time: shares, 0 to 1. */
/* clang-format off: one row, one line */
/*    id       name                              what                                                                           */
#define MAQ_TRAIN_REGIME_LIST(X)                                                                                       \
    X(CHAIN, "cost_chain", "standard error of the cost chain over all kernels and collectives")                        \
    X(HOST, "host_bound", "of the step: waiting for kernel launches")                                                  \
    X(NEAR, "communication_inside_domains", "of the step: exposed communication inside scale-up domains")              \
    X(FAR, "communication_across_domains", "of the step: exposed communication of groups that span several")           \
    X(BUBBLE, "bubble", "of the step: waiting for another stage")                                                      \
    X(MEMORY, "memory_bound", "of costed time: kernels without matrix products")                                       \
    X(EXPERTS, "experts", "of costed time: grouped matrix products")
/* clang-format on */

enum maq_train_regime {
#define MAQ_TRAIN_REGIME_ENUM(id, name, what) MAQ_TRAIN_REGIME_##id,
    MAQ_TRAIN_REGIME_LIST(MAQ_TRAIN_REGIME_ENUM)
#undef MAQ_TRAIN_REGIME_ENUM
        MAQ_TRAIN_REGIME_COUNT
};
MAQ_API const char *maq_train_regime_name(enum maq_train_regime regime);

struct maq_train_result {
    const struct maq_job *job; /* borrowed */
    double step_s;
    double error; /* one standard deviation of ln(measured / predicted), from residuals of published runs */
    double step_low_s, step_high_s; /* 80 % interval of the step time */
    double memory_low, memory_high; /* 80 % interval of allocated, reserved and total bytes, over the prediction */
    double regime[MAQ_TRAIN_REGIME_COUNT]; /* what `error` was computed from */
    double tokens_per_s, tokens_per_s_per_device;
    double model_flop, hardware_flop; /* per step, whole job */
    double model_flops_per_device;    /* FLOP/s */
    double peak_flops;                /* of one device in the recipe's matrix type; the mean over a mixed cluster */
    double mfu, hfu;
    double bucket_s[MAQ_BUCKET_COUNT]; /* of the critical stage */
    uint32_t critical_stage;           /* the one with the least bubble */
    double bubble_fraction;            /* of the critical stage */
    uint32_t n_stages;
    struct maq_stage_result *stages;           /* owned by the result */
    uint32_t worst_stage;                      /* by memory over capacity */
    bool fits;                                 /* what has to be there is no more than the capacity, as predicted */
    double fit_probability;                    /* that it fits indeed, by the measured / predicted of published peaks */
    double provider_share[MAQ_PROVIDER_COUNT]; /* of the critical stage's costed time */
    struct maq_train_measured measured;
    uint32_t n_ops;
    struct maq_train_op ops[MAQ_TRAIN_TOP_OPS];
    double kind_s[MAQ_OP_KIND_COUNT]; /* per step on the critical stage, of what computes: by kind of operator, alone */
    double grad_bytes, optimizer_s, grad_sync_s; /* of the critical stage */
};

/*
 * The 80 % interval of memory as factors on the prediction, the same for every job (memory_low, memory_high of a result;
 * src/train/uncertainty.c).
 */
MAQ_API void maq_train_memory_interval(double *low, double *high);
/*
 * Out of the same published peaks: measured over predicted memory that a share `p` of them (0 to 1) does not exceed, and its
 * inverse, the share of runs in which a device that predicts `needed_bytes` (without cached blocks) needs no more than
 * `capacity_bytes`.
 */
MAQ_API double maq_train_memory_quantile(double p);
MAQ_API double maq_train_fit_probability(double needed_bytes, double capacity_bytes);

/* *out is owned by the caller (maq_train_result_free). A plan that does not fit in memory is a result (fits =
 * false), not an error. */
MAQ_API enum maq_status maq_train_predict(struct maq_train_result **out, const struct maq_job *job,
                                          struct maq_diag *diag);
MAQ_API void maq_train_result_free(struct maq_train_result *result);

/*
 * Many plans of one model, cluster and workload, for planners and scans over settings. Only step time and memory are
 * computed; blocks, costs and schedules are shared between the plans. Plans are as a document would give them (zero =
 * default); an impossible one is marked, without a diagnostic. One thread per sweep.
 */
struct maq_train_quick {
    bool possible; /* the plan fits the model and the cluster's shape */
    bool fits;     /* and the memory */
    double step_s;
    double wait_s; /* of passes, for the host and data parallelism, that may shrink when compute grows; worst stage */
    double tail_s; /* behind the computing of the last pass: the last reduction, gradient norm, update */
    double needed_bytes; /* of the worst stage at its peak: allocated, context and communicators */
};
struct maq_train_sweep;
/* `job` gives model, cluster and workload, and is borrowed for the life of the sweep. */
MAQ_API enum maq_status maq_train_sweep_new(struct maq_train_sweep **out, const struct maq_job *job,
                                            struct maq_diag *diag);
MAQ_API void maq_train_sweep_free(struct maq_train_sweep *sweep);
/* out[i] for plans[i]. The same numbers as maq_train_predict. */
MAQ_API enum maq_status maq_train_sweep_eval(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                             const struct maq_plan *plans, size_t n);
/* Why a plan is not possible: what a document with it is refused for, at the place of the key in `written` (borrowed; NULL: without
 * one). MAQ_OK where it is possible. */
MAQ_API enum maq_status maq_train_sweep_check(struct maq_train_sweep *sweep, const struct maq_plan *plan,
                                              const struct maq_loaded_job *written, struct maq_diag *diag);

/*
 * Live activations of every stage over the step: points[first[s]] .. points[first[s + 1]] of stage s in order of
 * time; from t_ns on one rank holds `bytes`. The highest is the stage's MAQ_MEM_ACTIVATIONS.
 */
struct maq_train_memory_point {
    int64_t t_ns;
    double bytes;
};
struct maq_train_memory {
    uint32_t n_stages;
    uint32_t *first; /* [n_stages + 1] */
    struct maq_train_memory_point *points;
};
/* *out is filled on success and owned by the caller (maq_train_memory_free). */
MAQ_API enum maq_status maq_train_memory(struct maq_train_memory *out, const struct maq_job *job,
                                         struct maq_diag *diag);
MAQ_API void maq_train_memory_free(struct maq_train_memory *memory);

/*
 * What every stage does in a step, as the fast path times it: spans[first[s]] .. spans[first[s + 1]] of stage s. Passes come first, in the
 * order in which they run, and do not overlap; then what it sends, gathers and reduces beside them, and the end of the step.
 */
enum maq_train_span_kind {
    MAQ_SPAN_FORWARD,
    MAQ_SPAN_BACKWARD, /* of the input alone where the schedule splits it */
    MAQ_SPAN_WEIGHT,
    MAQ_SPAN_PAIR,   /* a forward and a backward pass at once (DualPipe); its microbatch is the forward's */
    MAQ_SPAN_SEND,   /* of the result of a pass to another stage */
    MAQ_SPAN_GATHER, /* of parameters, outside of passes */
    MAQ_SPAN_REDUCE, /* of gradients, behind the last passes */
    MAQ_SPAN_NORM,   /* of the gradients, over all ranks */
    MAQ_SPAN_UPDATE,
    MAQ_SPAN_KIND_COUNT
};
struct maq_train_span {
    uint8_t kind; /* enum maq_train_span_kind */
    uint16_t chunk;
    uint32_t microbatch;
    int64_t start_ns, end_ns;
};
/* What a pass of a virtual stage computes and sends inside of it: its costliest operators and collectives, longest first. */
#define MAQ_TRAIN_PASS_OPS 5
struct maq_train_pass_op {
    char text[96], where[48]; /* "gemm 8192x14336x4096 bf16"; module that uses it first */
    double count, seconds;    /* in the pass, all together; collectives may run under others */
};
struct maq_train_pass {
    uint32_t n;
    struct maq_train_pass_op ops[MAQ_TRAIN_PASS_OPS];
};
struct maq_train_spans {
    uint32_t n_stages, n_chunks;
    uint32_t *first; /* [n_stages + 1] */
    struct maq_train_span *spans;
    uint32_t n_programs; /* virtual stages that hold the same layers share one */
    uint32_t *program;   /* [n_stages * n_chunks] of chunk c of stage s: [s * n_chunks + c] */
    struct maq_train_pass (*passes)[MAQ_SPAN_WEIGHT + 1]; /* [n_programs] by MAQ_SPAN_FORWARD, _BACKWARD, _WEIGHT */
};
MAQ_API const char *maq_train_span_name(enum maq_train_span_kind kind);
/* *out is filled on success and owned by the caller (maq_train_spans_free). */
MAQ_API enum maq_status maq_train_spans(struct maq_train_spans *out, const struct maq_job *job, struct maq_diag *diag);
MAQ_API void maq_train_spans_free(struct maq_train_spans *spans);

/* The whole step as a graph: one class per pipeline stage. */
struct maq_train_graph {
    struct maq_graph graph;
    const double *dur_ns;            /* [graph.n_items] */
    const double *alone_ns;          /* the same without contention, for an engine that models it */
    const char *const *module_names; /* for maq_node_tag.module */
    uint32_t n_module_names;
    void *owner; /* internal */
};
MAQ_API enum maq_status maq_train_graph(struct maq_train_graph *out, const struct maq_job *job, struct maq_diag *diag);
MAQ_API void maq_train_graph_free(struct maq_train_graph *graph);
/* What an item is, as text ("all_gather 64 MiB x 8"). */
MAQ_API const char *maq_train_item_text(char buf[96], const struct maq_train_graph *graph, uint32_t item);

#ifdef __cplusplus
}
#endif
#endif
