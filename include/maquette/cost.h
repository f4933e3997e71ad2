/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - operators, and what they cost.
 *
 * An operator is a value: a kind, an element type and a few integers, zero-padded, so that equal operators
 * compare equal byte for byte and a table of them holds each once. A collective is a value too: a kind, a
 * payload and a placement.
 *
 * A cost provider answers for one device; providers form a chain (measured > fitted > analytical) and each
 * answer says who gave it.
 */
#ifndef MAQUETTE_COST_H
#define MAQUETTE_COST_H

#include "maquette/cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Kinds. d[] not named is 0. Elements are maq_dtype_bytes(dtype) wide unless said otherwise; products of 8-
 * and 4-bit types are written in 16 bits. The exact counts are at the head of src/cost/op.c.
 *
 * New kinds come last: tools/fit draws the rows that a fit leaves out by their numbers.
 *
 *        kind             text               d[0]      d[1]      d[2]      d[3]      d[4]      d[5]
 */
/* clang-format off */
#define MAQ_OP_LIST(X)                                                                                                               \
    X(NONE, "none")                   /* nothing; costs nothing                                                                     */ \
    X(GEMM, "gemm")                   /* m          n          k          batch (0 = 1): D[m,n] = A[m,k] B[k,n]                     */ \
    X(GROUPED_GEMM, "grouped_gemm")   /* rows/group n          k          groups     rows of the busiest group (0 = the mean)       */ \
    X(ATTENTION, "attention")         /* tokens     keys       heads      kv_heads   qk_dim     v_dim; see `queries`                */ \
    X(ATTENTION_BWD, "attention_bwd") /* the same; tokens = queries of all sequences, keys = mean keys per query                    */ \
    X(SOFTMAX, "softmax")             /* rows       columns    dropout(0/1): scores of unfused attention, scale and mask included   */ \
    X(SOFTMAX_BWD, "softmax_bwd")     /* the same                                                                                   */ \
    X(NORM, "norm")                   /* rows       columns                                                                         */ \
    X(NORM_BWD, "norm_bwd")           /* the same                                                                                   */ \
    X(ACTIVATION, "activation")       /* rows       columns in columns out: SwiGLU has in = 2 out                                   */ \
    X(ACTIVATION_BWD, "activation_bwd") /* the same widths as the forward                                                           */ \
    X(ELEMENTWISE, "elementwise")     /* elements   bytes read, bytes written: both per element, dtype is not used                  */ \
    X(ROPE, "rope")                   /* rows       columns: rotated in place                                                       */ \
    X(EMBEDDING, "embedding")         /* tokens     columns    table rows                                                           */ \
    X(EMBEDDING_BWD, "embedding_bwd") /* the same: scatter-add into a table gradient                                                */ \
    X(CROSS_ENTROPY, "cross_entropy") /* rows       columns (of this rank)                                                          */ \
    X(CROSS_ENTROPY_BWD, "cross_entropy_bwd") /* the same                                                                           */ \
    X(ROUTER, "router")               /* tokens     experts    topk: softmax and top-k in FP32, not its GEMM                        */ \
    X(PERMUTE, "permute")             /* rows       columns: gather or scatter of rows                                              */ \
    X(QUANTIZE, "quantize")           /* rows       columns    copies      kernels: 16-bit in, dtype and scales out \
                                         (copies 0 = 1, 2 = row- and column-wise; kernels 0 = 1, over parts of the rows) */ \
    X(CONV1D, "conv1d")               /* tokens     channels   taps                                                                 */ \
    X(CONV1D_BWD, "conv1d_bwd")       /* the same                                                                                   */ \
    X(SSM_SCAN, "ssm_scan")           /* tokens     heads      head_dim   groups     state      chunk (0 = 128)                     */ \
    X(SSM_SCAN_BWD, "ssm_scan_bwd")   /* the same                                                                                   */ \
    X(DELTA_RULE, "delta_rule")       /* tokens     heads      head_dim   key heads  key dim    chunk (0 = 64)                      */ \
    X(DELTA_RULE_BWD, "delta_rule_bwd") /* the same                                                                                 */ \
    X(OPTIMIZER, "optimizer")         /* parameters bytes per parameter read, written                                               */ \
    X(EXPERTS, "experts")             /* rows       hidden     ffn        groups     rows of the busiest group   topk: a rank's experts */ \
    X(MLA_BLOCK, "mla_block")         /* tokens     keys       heads      hidden     q_lora     kv_lora; see `queries`               */ \
    X(HOST_COPY, "host_copy")         /* bytes between device and host, and from where to there (enum maq_copy_source)              */ \
    X(GAP, "pause")                   /* nanoseconds in which the compute stream stands still, why (enum maq_gap)                   */ \
    X(SELECTIVE_SCAN, "selective_scan") /* tokens   channels   state: Mamba-1, a state for each channel                             */ \
    X(SELECTIVE_SCAN_BWD, "selective_scan_bwd") /* the same                                                                         */
/* clang-format on */

enum maq_op_kind {
#define MAQ_OP_ENUM(kind, text) MAQ_OP_##kind,
    MAQ_OP_LIST(MAQ_OP_ENUM)
#undef MAQ_OP_ENUM
        MAQ_OP_KIND_COUNT
};
MAQ_API const char *maq_op_kind_name(enum maq_op_kind kind);

/* d[1] of a copy. */
enum maq_copy_source {
    MAQ_COPY_HOST, /* host memory, either way */
    MAQ_COPY_NVME  /* read from NVMe through host memory, piece by piece: as fast as the slower of the two ways */
};

/* d[1] of a gap. */
enum maq_gap {
    MAQ_GAP_HOST,       /* waiting for the host */
    MAQ_GAP_EXCHANGE,   /* an exchange of experts that no other microbatch hides */
    MAQ_GAP_CONTENTION, /* time that kernels lose to communication beside them */
    MAQ_GAP_BEGIN       /* a stage whose step before ends later than that of the first */
};

enum maq_op_flag {
    MAQ_OP_ACCUMULATE = 1u << 0, /* GEMM: output is added into a 4-byte buffer (fused weight gradient) */
    MAQ_OP_OUT_FP32 = 1u << 1,   /* output in 4 bytes */
    MAQ_OP_UNFUSED = 1u << 2,    /* a pointwise operator made of several kernels */
    MAQ_OP_BIAS = 1u << 3,       /* GEMM: a bias in the epilogue; NORM: a bias besides the scale (LayerNorm) */
    MAQ_OP_GATED = 1u << 4,      /* ACTIVATION: a product of two halves */
    MAQ_OP_DROPOUT = 1u << 5,    /* one more byte per element for the mask */
    MAQ_OP_CAUSAL = 1u << 6,     /* ATTENTION: blocks on the diagonal are computed whole */
    /* GROUPED_GEMM, weight gradients: k varies by group: d[0] = m, d[2] = mean k, d[4] = k of the busiest */
    MAQ_OP_VARIABLE_K = 1u << 7,
    /* the same bits, for other kinds: ATTENTION and MLA_BLOCK */
    MAQ_OP_FLASH2 = 1u << 0, /* FlashAttention-2's kernels, which use nothing newer than Ampere's instructions */
    MAQ_OP_FLASH1 = 1u << 1, /* the first FlashAttention; with MAQ_OP_FLASH2 */
    MAQ_OP_TRITON = 1u << 2, /* that algorithm written in Triton; with MAQ_OP_FLASH2 */
    MAQ_OP_WINDOW = 1u << 3, /* queries see the last keys only; `keys` is what they see in the mean */
    MAQ_OP_KV_FP8 = 1u << 4, /* keys and values lie in memory in 8 bits */
    MAQ_OP_MX = 1u << 7,     /* ATTENTION in 8 bits: a scale for every 32 numbers, not for a tensor */
    /* EXPERTS: Triton's kernels; Marlin's, where tables have others as well */
    MAQ_OP_TRITON_EXPERTS = 1u << 0,
    MAQ_OP_MARLIN_EXPERTS = 1u << 1,
    /* GEMM and EXPERTS */
    MAQ_OP_BLOCKS = 1u << 2, /* 8 bits: a scale for every 128 or 128 x 128 elements, not for a tensor or row */
    /* GEMM, 8 bits: a scale for every row (fp8-rowwise) or for every 32 elements (MX), so not the kernels with one for a tensor */
    MAQ_OP_FINE_SCALES = 1u << 4,
    /* GEMM, 8 bits: sums leave the matrix unit's short accumulators on the way, where it has such (Hopper) */
    MAQ_OP_PROMOTED = 1u << 7,
    /* GEMM, 16 bits and more: k is a number of rows, as in weight gradients. Set where that matters: where k is no multiple of 8 */
    MAQ_OP_SUMS_ROWS = 1u << 7,
    MAQ_OP_WEIGHT8 = 1u << 5, /* weights lie in memory in 8 bits; dtype is that of the arithmetic */
    MAQ_OP_WEIGHT4 = 1u << 6  /* the same in 4 bits */
};

struct maq_op {
    uint16_t kind; /* enum maq_op_kind */
    uint8_t dtype; /* enum maq_dtype of the arithmetic and its inputs */
    uint8_t flags; /* enum maq_op_flag */
    union {
        uint32_t zero; /* always 0, but for ATTENTION, MLA_BLOCK, DELTA_RULE, CONV1D and EXPERTS: */
        /* Queries per sequence. 0 = self-attention, as in training: as many keys and values as queries. 1 = decoding.
         * When not 0, tokens / queries sequences; each holds the `keys` that a query sees in the mean and, if causal,
         * (queries - 1) / 2 more, which its last query sees. */
        uint32_t queries;
        uint32_t resident; /* EXPERTS: of the rank, with a row or without; 0 = as many as d[3], of which each has one */
    };
    int64_t d[6];
};

/* What an operator does, independent of where: exact counts. */
struct maq_work {
    double matrix_flop; /* on the matrix units, 2 per multiply-add */
    double vector_flop;
    double bytes; /* compulsory traffic to memory */
};
MAQ_API struct maq_work maq_op_work(const struct maq_op *op);

enum maq_coll_kind {
    MAQ_COLL_ALL_REDUCE,
    MAQ_COLL_ALL_GATHER,
    MAQ_COLL_REDUCE_SCATTER,
    MAQ_COLL_ALL_TO_ALL,
    MAQ_COLL_BROADCAST,
    MAQ_COLL_SEND_RECV,
    MAQ_COLL_DISPATCH, /* expert-parallel exchange by a fused kernel (DeepEP-like) */
    MAQ_COLL_COMBINE,
    MAQ_COLL_KIND_COUNT
};
MAQ_API const char *maq_coll_kind_name(enum maq_coll_kind kind);

/* Which kernels of an expert-parallel exchange. */
enum maq_coll_flag {
    MAQ_COLL_LOW_LATENCY = 1u << 0, /* DeepEP's low-latency kernels: every copy goes straight to its expert's rank */
    MAQ_COLL_ONE_SIDED = 1u << 1,   /* TensorRT-LLM's one-sided exchange */
    MAQ_COLL_HYBRID = 1u << 2       /* HybridEP: one-sided as well, by training frameworks */
};
/* BROADCAST: the bytes come from n members in turn, a part from each. In the upper 16 bits of the flags. */
#define MAQ_COLL_TURNS(n) ((uint32_t)(n) << 16)

/*
 * bytes: the full buffer, as nccl-tests counts it: all-reduce the tensor; all-gather the gathered output;
 * reduce-scatter the input; all-to-all what one rank holds before (and after); send/recv the message;
 * dispatch and combine what one rank sends in all, to every rank the same, itself included, and of it `far_bytes`
 * through its own port into the network, where a row goes once to a domain and is copied on inside it (0 = every copy
 * crosses by itself); they are copies of so many `rows` of `row_bytes` (0 = what a row itself costs is left out).
 * `sharers`: groups of the same kind, this one counted, that use the same node's NICs at the same
 * time and divide them; 0 and 1 = alone.
 */
struct maq_coll {
    uint16_t kind; /* enum maq_coll_kind */
    uint16_t sharers;
    uint32_t flags; /* enum maq_coll_flag, MAQ_COLL_TURNS */
    double bytes, far_bytes, rows, row_bytes;
    struct maq_placement at;
    uint32_t zero; /* always 0, and no padding: collectives compare and hash byte for byte */
};

enum maq_provider {
    MAQ_PROVIDER_NONE,
    MAQ_PROVIDER_ANALYTICAL,
    MAQ_PROVIDER_FITTED,
    MAQ_PROVIDER_MEASURED,
    MAQ_PROVIDER_COUNT
};
MAQ_API const char *maq_provider_name(enum maq_provider provider);

struct maq_cost {
    double seconds;
    float error;      /* relative, one standard deviation, of this provider on such operators */
    uint8_t provider; /* enum maq_provider */
};

/* Whose kernels run. Serving engines bring their own; training frameworks call cuBLAS, cuDNN, FlashAttention and NCCL. */
enum maq_library { MAQ_LIBRARY_TRAINING, MAQ_LIBRARY_TRTLLM, MAQ_LIBRARY_VLLM, MAQ_LIBRARY_SGLANG, MAQ_LIBRARY_COUNT };
MAQ_API const char *maq_library_name(enum maq_library library);

/*
 * Kernel times of the user's own device: a file that `maquette profile` wrote, read into a table that any thread may
 * ask. *out is owned by the caller (maq_measured_close), and outlives every chain that names it.
 */
struct maq_measured;
MAQ_API enum maq_status maq_measured_open(struct maq_measured **out, const char *path, struct maq_diag *diag);
MAQ_API void maq_measured_close(struct maq_measured *measured);
/* Operators and collectives that it has an answer for on a device of that name; on any device when it is NULL. */
MAQ_API uint32_t maq_measured_count(const struct maq_measured *measured, const char *device);

/* The chain of providers, and the conditions under which kernels run. All zero: every provider, a training step. */
struct maq_costs {
    const struct maq_measured *measured; /* asked first; borrowed; NULL = nothing was measured */
    enum maq_provider best;              /* the best provider that may answer; NONE = any */
    enum maq_library library;
    const char *kernel;    /* the implementation, where a library has several; NULL = its usual one */
    bool leave_device_out; /* fitted tables of the device itself do not answer, only those of its generation */
    bool burst;            /* kernels run in a short loop, as tables are taken: no power limit, a warm cache */
    bool whole_rows; /* a product in 8 or 4 bits with the conversion of its input, as tables have it; else alone */
    bool
        short_run; /* minutes: under the power limit, at a device's sustained rate: without what weeks of training take off it */
};

/*
 * Cost of an operator on a device, of a collective on a cluster. costs: NULL = all zero. Never fail; results are finite and >=
 * 0.
 */
MAQ_API struct maq_cost maq_cost_op(const struct maq_costs *costs, const struct maq_op *op,
                                    const struct maq_device *device);
MAQ_API struct maq_cost maq_cost_coll(const struct maq_costs *costs, const struct maq_coll *coll,
                                      const struct maq_cluster *cluster);

/*
 * How compute and communication that run on one device at the same time slow each other: factors >= 1 on the time of either, on the
 * overlap only. NCCL's blocks hold as many SMs as it has channels, and compute has the rest; the copies are resident first and keep
 * their pace.
 */
struct maq_interference {
    double compute; /* factor on the time of compute while communication runs */
    double comm;    /* factor on the time of communication while compute runs */
};
MAQ_API struct maq_interference maq_cost_interference(const struct maq_device *device);

#ifdef __cplusplus
}
#endif
#endif
