/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - small kernels of our own, for operators that no library has and that memory bounds.
 *
 * Each is written the way training frameworks write theirs: 16 bytes per load, a row in registers where it fits, sums
 * in 32 bits. They stand for such kernels, not for a particular one. Types are bfloat16, half and float.
 */
#ifndef MAQ_MEASURE_CUDA_KERNELS_H
#define MAQ_MEASURE_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps the stream busy for so long. */
void maq_cuda_spin(cudaStream_t stream, unsigned long long ns);
/* Numbers in [-1, 1) of the type; the same for the same seed. bytes: a multiple of 16 is filled. */
void maq_cuda_fill(cudaStream_t stream, void *out, size_t bytes, enum maq_dtype dtype, uint32_t seed);
/* n indices below limit, scattered, each once when limit >= n. wide: of 8 bytes, otherwise 4. */
void maq_cuda_fill_indices(cudaStream_t stream, void *out, size_t n, size_t limit, bool wide);

/* Whether the type is one of the three. */
bool maq_cuda_has_type(enum maq_dtype dtype);
/* Columns that a row kernel takes: a multiple of 16 bytes, and a row that fits the registers of a block. */
bool maq_cuda_has_columns(enum maq_dtype dtype, int64_t columns);

struct maq_cuda_rows {
    cudaStream_t stream;
    enum maq_dtype dtype;
    int64_t rows, columns;
    int sms;
};

/* y = x / rms(x) w, or with `centred` (x - mean) / deviation w + b; w holds the weights, then the biases. */
void maq_cuda_norm(const struct maq_cuda_rows *r, const void *x, const void *w, void *y, float *stats, bool centred);
/* dx from dy and x; dw: sums over rows in 32 bits, of the weights. parts: MAQ_PROFILE_PARTS rows of such sums. */
void maq_cuda_norm_bwd(const struct maq_cuda_rows *r, const void *dy, const void *x, const void *w, void *dx, float *dw,
                       const float *stats, float *parts, bool centred);
void maq_cuda_softmax(const struct maq_cuda_rows *r, const void *x, void *y);
void maq_cuda_softmax_bwd(const struct maq_cuda_rows *r, const void *dy, const void *y, void *dx);
/* Loss of each row, and its gradient in place of the logits; a row is read twice. */
void maq_cuda_cross_entropy(const struct maq_cuda_rows *r, void *logits, const int64_t *labels, float *losses);
/* Halves of heads of 128, rotated in place by rows of (cosine, sine). */
void maq_cuda_rope(const struct maq_cuda_rows *r, void *x, const float *table);
/* out[i] = in[rows[i]]: gathers rows; index: of 8 bytes (an embedding) or 4 (a permutation). */
void maq_cuda_gather(const struct maq_cuda_rows *r, const void *in, const void *index, void *out, bool wide);
/* table[index[i]] += in[i]; the table is cleared before. */
void maq_cuda_scatter(const struct maq_cuda_rows *r, const void *in, const int64_t *index, void *table,
                      size_t table_bytes);
/* 8-bit values and a scale per 128 of them from 16-bit ones. */
void maq_cuda_quantize(const struct maq_cuda_rows *r, const void *in, void *out, float *scales);

/* out = f(in); gated: in has twice the columns, out = silu(left) right. columns: of out. */
void maq_cuda_activation(const struct maq_cuda_rows *r, const void *in, void *out, bool gated);
void maq_cuda_activation_bwd(const struct maq_cuda_rows *r, const void *dout, const void *in, void *din, bool gated);

/* Reads and writes so many bytes: any pointwise operator, whatever it computes. `in` may be `out`. */
void maq_cuda_stream(cudaStream_t stream, int sms, const void *in, size_t read, void *out, size_t written);

#ifdef __cplusplus
}
#endif

#endif
