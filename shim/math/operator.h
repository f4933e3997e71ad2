/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator.h - how a call of a mathematical library becomes an operator of the trace.
 *
 * A product D[m,n] = op(A)[m,k] op(B)[k,n] (+ C) is recorded as MAQ_REC_GEMM with column-major sizes, whatever library and
 * call it came from. Its bytes are what must move at least: A, B, D, and C where it is added.
 */
#ifndef MAQ_SHIM_MATH_OPERATOR_H
#define MAQ_SHIM_MATH_OPERATOR_H

#include "shim/vgpu.h"

/* Declares an exported function and begins its definition. */
#define MATH_API(type, name, ...)                                                                                      \
    VG_EXPORT type name(__VA_ARGS__);                                                                                  \
    VG_EXPORT type name(__VA_ARGS__)

/* Of cudaDataType. */
enum maq_rec_type math_type(int data_type);
unsigned math_type_bits(int data_type);
bool math_type_is_complex(int data_type);

/* Memory that an operator writes: what the host knew of it is known no more. */
struct math_out {
    const void *at;
    uint64_t bytes;
};
#define MATH_ANYWHERE ((struct math_out){NULL, UINT64_MAX}) /* through pointers that lie on the device */

struct math_product {
    int64_t m, n, k, batch;
    bool trans_a, trans_b, accumulates;
    int a, b, c, d;         /* cudaDataType */
    enum maq_rec_type type; /* what the arithmetic is fed with; MAQ_REC_TYPE_COUNT = A's */
    uint32_t flags;         /* enum maq_rec_op_flag, besides MAQ_REC_ACCUMULATES */
    uint64_t extra_bytes;   /* a bias, a second output */
    const char *call;       /* name of the function */
    const char *detail;     /* "", or " gelu bias" */
    struct math_out out;
};

/* Enqueues it on the stream with this handle; false where there is no such stream. Nothing happens for an empty product. */
bool math_multiply(void *stream, const struct math_product *p);

/* Enqueues an operator, and lets the host spend what a launch costs. */
bool math_launch(void *stream, const struct maq_rec_op *op, const char *name, struct math_out out);

/* One that is only so many bytes to read and write. */
bool math_library(void *stream, const char *name, enum maq_rec_type type, uint64_t bytes, struct math_out out);

/* The host waits for a stream, as a call does that returns a value to the host. false: no such stream, or peers failed. */
bool math_wait(void *stream);

#endif
