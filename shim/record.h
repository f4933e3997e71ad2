/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the trace of one rank: what a program asked of its device and of its peers, in the order it asked.
 *
 * Written by the shared objects of shim/ inside the program, read by src/capture. A file is a head of 64 bytes and
 * then records of 32 bytes; a record that says so is followed by `bytes` bytes of payload, padded with zeros to a
 * multiple of 32. Files are only appended to, so what a killed program leaves is readable up to its last whole record.
 * Little-endian. A reader trusts nothing: not sizes, not ids, not text.
 *
 *     head | DEF_OP payload | LAUNCH | LAUNCH | DEF_COMM payload | COLL | BOOT payload | ... | END
 *
 * Ids are dense and count from 0 in the order of first use, in each kind of thing: operators, streams, events,
 * communicators, allocations, texts. So two ranks that do the same write the same records, whatever addresses they got.
 *
 * Two clocks: `host_ns` is how long the host needed since the record before (its own work and the call), on the thread
 * that drives the device; `ns` is how long the device takes. Neither contains waiting: waiting is what a replay finds.
 */
#ifndef MAQ_SHIM_RECORD_H
#define MAQ_SHIM_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define MAQ_REC_MAGIC "maqrank\n"
#define MAQ_REC_VERSION 1
#define MAQ_REC_NONE UINT32_MAX
#define MAQ_REC_HOST_STREAM UINT16_MAX

struct maq_rec_head {
    char magic[8]; /* MAQ_REC_MAGIC, no end */
    uint32_t version, head_bytes;
    uint32_t world, rank;
    uint32_t per_node; /* ranks on a node */
    uint32_t zero;
    uint64_t program; /* hash of the command line, so that slices of different programs are not mixed */
    uint64_t reserved[3];
};

/*
 *   kind         stream   id                  arg                bytes             ns          payload
 */
/* clang-format off */
#define MAQ_REC_LIST(X)                                                                                                 \
    X(END, "end")                   /*        exit status     1 = by a signal    peak of memory              -       */ \
    X(DEF_OP, "operator")           /*        operator        -                  of the payload              struct maq_rec_op, name      */ \
    X(DEF_COMM, "communicator")     /*        communicator    -                  of the payload              struct maq_rec_comm, members */ \
    X(DEF_TEXT, "text")             /*        text            -                  of the payload              its bytes                    */ \
    X(HOST, "host")                 /*        -               -                  -                  -        a gap that host_ns cannot hold: ns is host time */ \
    X(LAUNCH, "launch")             /* stream operator        -                  memory touched     device   -       */ \
    X(COPY, "copy")                 /* stream enum maq_rec_copy -                copied             device   -       */ \
    X(SET, "memset")                /* stream -               -                  written            device   -       */ \
    X(COLL, "collective")           /* stream MAQ_REC_COLL()  root or NONE       of one rank, below device   -       */ \
    X(SEND, "send")                 /* stream MAQ_REC_COLL()  peer               sent               device   -       */ \
    X(RECV, "recv")                 /* stream MAQ_REC_COLL()  peer               received           device   -       */ \
    X(EVENT_RECORD, "record event") /* stream event           -                  -                  -        -       */ \
    X(STREAM_WAIT, "wait event")    /* stream event           -                  -                  -        -       */ \
    X(EVENT_SYNC, "sync event")     /*        event           -                  -                  -        the host waits */ \
    X(STREAM_SYNC, "sync stream")   /* stream -               -                  -                  -        the host waits */ \
    X(DEVICE_SYNC, "sync device")   /*        -               -                  -                  -        the host waits */ \
    X(HOST_CALL, "host function")   /* stream -               -                  -                  device   a function of the program runs in stream order */ \
    X(ALLOC, "alloc")               /* stream allocation      enum maq_rec_mem   asked for          -        -       */ \
    X(FREE, "free")                 /* stream allocation      enum maq_rec_mem   -                  -        -       */ \
    X(READ, "read")                 /* stream allocation      offset             of the payload     -        what the host read back */ \
    X(BOOT, "exchange")             /*        number of its channel, from 0  rank in it  of the payload  channel  own contribution */ \
    X(MARK, "mark")                 /*        text            enum maq_rec_mark  -                  -        -       */
/* clang-format on */

enum maq_rec_kind {
#define MAQ_REC_ENUM(kind, text) MAQ_REC_##kind,
    MAQ_REC_LIST(MAQ_REC_ENUM)
#undef MAQ_REC_ENUM
        MAQ_REC_KIND_COUNT
};

enum maq_rec_flag {
    MAQ_REC_MORE = 1u << 0,   /* COLL, SEND, RECV: the next record belongs to the same group (one kernel) */
    MAQ_REC_WAITS = 1u << 1,  /* COPY, SET, FREE: the host waits for it (and for all before it on the stream) */
    MAQ_REC_SYNTH = 1u << 2,  /* READ: invented, for want of a kernel that ran */
    MAQ_REC_FAILED = 1u << 3, /* ALLOC: out of memory. COLL, SEND, RECV: a peer failed */
    MAQ_REC_GRAPH = 1u << 4,  /* launched as a node of a CUDA graph, not by a call of its own */
    MAQ_REC_POLLED = 1u << 5 /* EVENT_SYNC, STREAM_SYNC: the host waited by asking again and again whether it is done */
};

struct maq_rec {
    uint8_t kind;  /* enum maq_rec_kind */
    uint8_t flags; /* enum maq_rec_flag */
    uint16_t stream;
    uint32_t id;
    uint32_t host_ns;
    uint32_t arg;
    uint64_t bytes;
    uint64_t ns;
};
static_assert(sizeof(struct maq_rec_head) == 64 && sizeof(struct maq_rec) == 32, "layout of the trace");

/* Bytes that a payload takes in the file. */
static inline uint64_t maq_rec_padded(uint64_t bytes)
{
    return (bytes + 31) & ~(uint64_t)31;
}

enum maq_rec_copy { MAQ_REC_H2H, MAQ_REC_H2D, MAQ_REC_D2H, MAQ_REC_D2D, MAQ_REC_P2P };
enum maq_rec_mem { MAQ_REC_DEVICE, MAQ_REC_MANAGED, MAQ_REC_PINNED, MAQ_REC_POOL };

/* Whether it counts as memory of the device: pinned and managed memory is the host's. */
static inline bool maq_rec_on_device(uint32_t kind)
{
    return kind == MAQ_REC_DEVICE || kind == MAQ_REC_POOL;
}

enum maq_rec_mark { MAQ_REC_POINT, MAQ_REC_PUSH, MAQ_REC_POP, MAQ_REC_STEP };

/* Element types, as the trace has them. */
enum maq_rec_type {
    MAQ_REC_I8,
    MAQ_REC_U8,
    MAQ_REC_I32,
    MAQ_REC_U32,
    MAQ_REC_I64,
    MAQ_REC_U64,
    MAQ_REC_F16,
    MAQ_REC_F32,
    MAQ_REC_F64,
    MAQ_REC_BF16,
    MAQ_REC_F8E4M3,
    MAQ_REC_F8E5M2,
    MAQ_REC_TF32,
    MAQ_REC_F4,
    MAQ_REC_BIT,
    MAQ_REC_TYPE_OTHER,
    MAQ_REC_TYPE_COUNT
};

/* What an operator is. Sizes in d[], 0 where not named. */
enum maq_rec_op_kind {
    MAQ_REC_KERNEL, /* a kernel of the program's own: grid, block, shared; bytes: of the memory its pointers can reach, at most */
    MAQ_REC_GEMM,         /* d: m n k batch; column-major D[m,n], as cuBLAS counts */
    MAQ_REC_GROUPED_GEMM, /* d: rows (mean) n k groups, busiest */
    MAQ_REC_ATTENTION,    /* d: batch heads kv_heads queries keys head_dim (v the same) */
    MAQ_REC_ATTENTION_BWD,
    MAQ_REC_NORM, /* d: rows columns */
    MAQ_REC_NORM_BWD,
    MAQ_REC_CONV,    /* d: flop (2 per multiply-add) */
    MAQ_REC_LIBRARY, /* another operator of a library: bytes read and written */
    /* Kernels of the program's own that a rule knows (shim/cuda/operator_rules.h). */
    MAQ_REC_SEQUENCES, /* attention over sequences of unlike lengths. Of those with several queries: d0 queries, d1 keys that one of them sees
                          in the mean, d2 queries of the sequence that a query is in, in the mean. Of those with one: d3 how many, d4 keys
                          of each in the mean. d5: MAQ_REC_HEADS() */
    MAQ_REC_SEQUENCES_BWD,
    MAQ_REC_ELEMENTWISE,      /* d: elements, bytes read, bytes written of each */
    MAQ_REC_GATED_ACTIVATION, /* d: rows columns; reads twice as many columns, and multiplies two halves */
    MAQ_REC_ROPE,             /* d: rows columns, rotated in place */
    MAQ_REC_EMBEDDING,        /* rows of a table. d: rows columns, rows of the table */
    MAQ_REC_SOFTMAX,          /* d: rows columns */
    MAQ_REC_PART,             /* of the operator that a kernel beside it stands for: it takes nothing of its own */
    MAQ_REC_QUANTIZE,         /* from 16 bits to the type, with their scales. d: rows columns */
    MAQ_REC_WORK, /* a kernel of which is known what it does (shim/cuda/jit_kernel.h, operator_rules.h). d: flop of products, bytes read, bytes
                     written; of products their depth, and the features of a head where they are attention's, else 0 */
    MAQ_REC_OP_KIND_COUNT
};
enum maq_rec_op_flag {
    MAQ_REC_CAUSAL = 1u << 0,      /* attention */
    MAQ_REC_BIAS = 1u << 1,        /* GEMM: a bias in the epilogue */
    MAQ_REC_ACCUMULATES = 1u << 2, /* GEMM: beta is not 0 */
    MAQ_REC_ACTIVATION = 1u << 3,  /* GEMM: GELU or ReLU in the epilogue */
    MAQ_REC_FLASH2 = 1u << 4,      /* attention by FlashAttention-2's kernels */
    MAQ_REC_WINDOW = 1u << 5,      /* attention: some queries do not see all keys before them */
    MAQ_REC_FLASH1 = 1u << 7,      /* with MAQ_REC_FLASH2: by kernels as fast as the first FlashAttention */
    MAQ_REC_BLOCKS = 1u << 6       /* GEMM in 8 bits: a scale for 128 inputs, and for blocks of 128 by 128 weights */
};

/* d5 of MAQ_REC_SEQUENCES: heads, heads of keys and values, numbers of a head of the keys, of the values; 16 bits each. */
#define MAQ_REC_HEADS(heads, kv_heads, qk, v)                                                                          \
    ((int64_t)((uint64_t)(v) << 48 | (uint64_t)(qk) << 32 | (uint64_t)(kv_heads) << 16 | (uint64_t)(heads)))
#define MAQ_REC_HEADS_MOST UINT16_MAX
static inline int64_t maq_rec_heads_part(int64_t packed, unsigned part)
{
    return (int64_t)((uint64_t)packed >> 16 * part & UINT16_MAX);
}

/* Whose program it is: an engine that serves brings kernels, and conditions under which they run, of its own. */
enum maq_rec_engine { MAQ_REC_NO_ENGINE, MAQ_REC_VLLM, MAQ_REC_SGLANG, MAQ_REC_TRTLLM, MAQ_REC_ENGINE_COUNT };
/* In the flags of an operator. */
#define MAQ_REC_ENGINE_SHIFT 8
#define MAQ_REC_ENGINE(flags) ((flags) >> MAQ_REC_ENGINE_SHIFT & 15)

/* Payload of DEF_OP; the name, name_bytes long and without an end, follows. Equal payloads are one operator. */
struct maq_rec_op {
    uint16_t kind;  /* enum maq_rec_op_kind */
    uint8_t type;   /* enum maq_rec_type of the inputs */
    uint8_t out;    /* of the output */
    uint32_t flags; /* enum maq_rec_op_flag */
    uint32_t grid[3], block[3];
    uint32_t shared; /* dynamic shared memory, bytes */
    uint32_t name_bytes;
    int64_t d[6];
    uint64_t bytes;
};
static_assert(sizeof(struct maq_rec_op) == 96, "layout of the trace");

/* Collectives as NCCL has them; `bytes` of the record is what NCCL's `count` is of, times the element: all-reduce,
 * broadcast, reduce: the buffer; all-gather, gather: what one rank sends; reduce-scatter, scatter: what one rank
 * receives; all-to-all: what one rank sends to one other. */
enum maq_rec_coll {
    MAQ_REC_ALL_REDUCE,
    MAQ_REC_ALL_GATHER,
    MAQ_REC_REDUCE_SCATTER,
    MAQ_REC_BROADCAST,
    MAQ_REC_REDUCE,
    MAQ_REC_ALL_TO_ALL,
    MAQ_REC_GATHER,
    MAQ_REC_SCATTER,
    MAQ_REC_P2P_PAIR,
    MAQ_REC_COLL_COUNT
};
/* id of COLL, SEND and RECV: communicator, operation of a reduction (NCCL's number), type and kind. */
#define MAQ_REC_COLL(comm, op, type, coll)                                                                             \
    ((uint32_t)(comm) << 16 | (uint32_t)(op) << 12 | (uint32_t)(type) << 6 | (uint32_t)(coll))
#define MAQ_REC_COLL_COMM(id) ((id) >> 16)
#define MAQ_REC_COLL_OP(id) ((id) >> 12 & 15)
#define MAQ_REC_COLL_TYPE(id) ((id) >> 6 & 63)
#define MAQ_REC_COLL_KIND(id) ((id)&63)

/* Payload of DEF_COMM; n_members global ranks (uint32_t) follow, in order of their rank in it, or none where the
 * program did not say who they are. */
struct maq_rec_comm {
    uint64_t lineage; /* the same on every member, and on no other communicator: see maq_rec_lineage() */
    uint32_t size, rank;
    uint32_t parent; /* communicator that it was split from; MAQ_REC_NONE */
    uint32_t color, key;
    uint32_t n_members; /* size, or 0 */
};
static_assert(sizeof(struct maq_rec_comm) == 32, "layout of the trace");

/* A 64-bit mix (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, variant 13). */
static inline uint64_t maq_rec_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t maq_rec_hash(const void *data, uint64_t bytes, uint64_t seed)
{
    const unsigned char *at = (const unsigned char *)data;
    for (uint64_t i = 0; i < bytes; i++)
        seed = (seed ^ at[i]) * 0x100000001b3u;
    return maq_rec_mix(seed, bytes);
}

/* Names a program, the same on every rank: its command line (words, each ended by a zero) without its numbers, in which a launcher may pass
 * ranks. */
static inline uint64_t maq_rec_program(const char *line, uint64_t bytes)
{
    uint64_t h = 0, kept = 0;
    for (uint64_t i = 0; i < bytes && i < 4096; i++) {
        if (line[i] >= '0' && line[i] <= '9')
            continue;
        h = (h ^ (unsigned char)line[i]) * 0x100000001b3u;
        kept++;
    }
    return maq_rec_mix(h, kept);
}

/*
 * The name of a communicator that every member computes alone: from the unique id that it was initialised with, or from
 * the parent's, how many splits the parent had before (counted on the parent, every member takes part) and the color.
 */
static inline uint64_t maq_rec_lineage(uint64_t from, uint64_t nth, uint64_t color)
{
    return maq_rec_mix(maq_rec_mix(from, nth), color);
}

#endif
