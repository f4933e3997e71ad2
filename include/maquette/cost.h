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
 *        kind             text               d[0]      d[1]      d[2]      d[3]      d[4]      d[5]                                */
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
    X(QUANTIZE, "quantize")           /* rows       columns    copies (0 = 1; 2 = row- and column-wise): 16-bit in, dtype and scales out */ \
    X(CONV1D, "conv1d")               /* tokens     channels   taps                                                                 */ \
    X(CONV1D_BWD, "conv1d_bwd")       /* the same                                                                                   */ \
    X(SSM_SCAN, "ssm_scan")           /* tokens     heads      head_dim   groups     state      chunk (0 = 128)                     */ \
    X(SSM_SCAN_BWD, "ssm_scan_bwd")   /* the same                                                                                   */ \
    X(DELTA_RULE, "delta_rule")       /* tokens     heads      head_dim   key heads  key dim    chunk (0 = 64)                      */ \
    X(DELTA_RULE_BWD, "delta_rule_bwd") /* the same                                                                                 */ \
    X(OPTIMIZER, "optimizer")         /* parameters bytes per parameter read, written                                               */ \
    X(HOST_COPY, "host_copy")         /* bytes between device and host                                                              */ \
    X(GAP, "launch_gap")              /* nanoseconds in which the device waits for the host                                         */
/* clang-format on */

enum maq_op_kind {
#define MAQ_OP_ENUM(kind, text) MAQ_OP_##kind,
    MAQ_OP_LIST(MAQ_OP_ENUM)
#undef MAQ_OP_ENUM
        MAQ_OP_KIND_COUNT
};
MAQ_API const char *maq_op_kind_name(enum maq_op_kind kind);

enum maq_op_flag {
    MAQ_OP_ACCUMULATE = 1u << 0, /* GEMM: output is added into a 4-byte buffer (fused weight gradient) */
    MAQ_OP_OUT_FP32 = 1u << 1,   /* output in 4 bytes */
    MAQ_OP_UNFUSED = 1u << 2,    /* a pointwise operator made of several kernels */
    MAQ_OP_BIAS = 1u << 3,       /* GEMM: a bias in the epilogue; NORM: a bias besides the scale (LayerNorm) */
    MAQ_OP_GATED = 1u << 4,      /* ACTIVATION: a product of two halves */
    MAQ_OP_DROPOUT = 1u << 5,    /* one more byte per element for the mask */
    MAQ_OP_CAUSAL = 1u << 6,     /* ATTENTION: blocks on the diagonal are computed whole */
    /* GROUPED_GEMM, weight gradients: k varies by group: d[0] = m, d[2] = mean k, d[4] = k of the busiest */
    MAQ_OP_FLASH2 =
        1u << 0, /* ATTENTION: FlashAttention-2's kernels, which use nothing newer than Ampere's instructions */
    MAQ_OP_VARIABLE_K = 1u << 7
};

struct maq_op {
    uint16_t kind; /* enum maq_op_kind */
    uint8_t dtype; /* enum maq_dtype of the arithmetic and its inputs */
    uint8_t flags; /* enum maq_op_flag */
    union {
        uint32_t zero; /* padding, always 0, but for ATTENTION: */
        /* Queries per sequence. 0 = self-attention, as in training: as many keys and values as queries. 1 = decoding.
         * When not 0, each of the tokens / queries sequences has `keys` keys, plus (queries - 1) / 2 if causal. */
        uint32_t queries;
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
    MAQ_COLL_HYBRID = 1u << 2,      /* HybridEP: NVLink kernels with the permutation inside */
    MAQ_COLL_ONE_SIDED = 1u << 1    /* TensorRT-LLM's one-sided exchange */
};

/*
 * bytes: the full buffer, as nccl-tests counts it: all-reduce the tensor; all-gather the gathered output;
 * reduce-scatter the input; all-to-all what one rank holds before (and after); send/recv the message;
 * dispatch and combine what one rank sends in all, to every rank the same, itself included. `sharers`: groups
 * of the same kind, this one counted, that use the same node's NICs at the same time and divide them; 0 and 1
 * = alone.
 */
struct maq_coll {
    uint16_t kind; /* enum maq_coll_kind */
    uint16_t sharers;
    uint32_t flags; /* enum maq_coll_flag */
    double bytes;
    struct maq_placement at;
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

struct maq_measured; /* kernel times of the user's own device */

/* The chain of providers, and the conditions under which kernels run. All zero: every provider, a training step. */
struct maq_costs {
    const struct maq_measured *measured; /* asked first; borrowed; NULL = nothing was measured */
    enum maq_provider best;              /* the best provider that may answer; NONE = any */
    enum maq_library library;
    bool
        burst; /* kernels run alone in a short loop, at clocks that no power limit lowers and with a warm cache, as kernel tables are taken */
};

/* Cost of an operator on a device, of a collective on a cluster. costs: NULL = all zero. Never fail; results are finite and >= 0. */
MAQ_API struct maq_cost maq_cost_op(const struct maq_costs *costs, const struct maq_op *op,
                                    const struct maq_device *device);
MAQ_API struct maq_cost maq_cost_coll(const struct maq_costs *costs, const struct maq_coll *coll,
                                      const struct maq_cluster *cluster);

/*
 * How compute and communication that run on one device at the same time slow each other: factors >= 1 on the time of either, on the overlap
 * only. NCCL's blocks hold as many SMs as it has channels, and compute has the rest; the copies are resident first and keep their pace.
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
