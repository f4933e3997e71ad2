/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cu - see kernels.h. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "measure/cuda/kernels.h"

namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;
constexpr int kVecBytes = 16;
constexpr int kMaxVecs = 4; /* pieces of 16 bytes of a row that one thread keeps in registers */
constexpr int kHead = 128;  /* width of a rotated head */
constexpr int kBlock = 128; /* values that share a scale */

/* 16 bytes of T. */
template <typename T> struct Vec {
    static constexpr int kN = kVecBytes / sizeof(T);
    union {
        uint4 raw;
        T at[kN];
    };
};

template <typename T> __device__ float wide(T x);
template <> __device__ float wide(float x) { return x; }
template <> __device__ float wide(__half x) { return __half2float(x); }
template <> __device__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T> __device__ T narrow(float x);
template <> __device__ float narrow(float x) { return x; }
template <> __device__ __half narrow(float x) { return __float2half(x); }
template <> __device__ __nv_bfloat16 narrow(float x) { return __float2bfloat16(x); }

template <typename T> __device__ Vec<T> load(const T *p)
{
    Vec<T> v;
    v.raw = *reinterpret_cast<const uint4 *>(p);
    return v;
}

template <typename T> __device__ void store(T *p, const Vec<T> &v)
{
    *reinterpret_cast<uint4 *>(p) = v.raw;
}

/* Sum, or maximum, over the block; every thread gets it. */
template <bool kMax> __device__ float reduce(float x)
{
    __shared__ float parts[kMaxThreads / kWarp];
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
    for (int step = kWarp / 2; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, x, step);
        x = kMax ? fmaxf(x, other) : x + other;
    }
    __syncthreads();
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < warps; i++)
        x = kMax ? fmaxf(x, parts[i]) : x + parts[i];
    return x;
}

/* splitmix64's finaliser: well-mixed bits of a counter. */
__device__ uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__global__ void spin(unsigned long long ns)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

__device__ float uniform(uint64_t bits) /* [-1, 1) */
{
    return static_cast<float>(static_cast<int32_t>(bits >> 32)) * (1.0f / 2147483648.0f);
}

template <typename T> __global__ void fill(T *out, size_t n, uint32_t seed)
{
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = narrow<T>(uniform(mix(i + (static_cast<uint64_t>(seed) << 40))));
}

/* Bytes: any pattern is an 8-bit integer; as an 8-bit float those with all exponent bits set are not numbers. */
__global__ void fill_bytes(uint8_t *out, size_t n, uint32_t seed)
{
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = static_cast<uint8_t>(mix(i + (static_cast<uint64_t>(seed) << 40))) & 0xbfu;
}

/* i times a large prime, modulo the limit: scattered, and no value twice below the limit. */
template <typename I> __global__ void fill_indices(I *out, size_t n, size_t limit)
{
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = static_cast<I>(i * 2654435761ull % limit);
}

/* --- rows in registers ------------------------------------------------------------------------------------------ */

/* A thread's part of a row. Loops over it have constant bounds, so that it stays in registers. */
template <typename T> struct Row {
    Vec<T> v[kMaxVecs];

    __device__ static int64_t at(int i) { return (static_cast<int64_t>(i) * blockDim.x + threadIdx.x) * Vec<T>::kN; }
    __device__ void read(const T *row, int64_t columns)
    {
#pragma unroll
        for (int i = 0; i < kMaxVecs; i++)
            if (at(i) < columns)
                v[i] = load(row + at(i));
    }
};
/* For every piece of the thread that lies in the row, and every value of a piece. */
#define EACH_VEC(i)                                                                                                    \
    _Pragma("unroll") for (int i = 0; i < kMaxVecs; i++) if (Row<T>::at(i) < columns)
#define EACH(j) _Pragma("unroll") for (int j = 0; j < Vec<T>::kN; j++)

template <typename T>
__global__ void norm(const T *x, const T *w, T *y, float *stats, int64_t columns, bool centred)
{
    Row<T> row;
    const int64_t r = blockIdx.x;
    float sum = 0, square = 0;
    row.read(x + r * columns, columns);
    EACH_VEC(i)
        EACH(j) {
            const float value = wide(row.v[i].at[j]);
            sum += value;
            square += value * value;
        }
    const float n = static_cast<float>(columns), mean = centred ? reduce<false>(sum) / n : 0.0f;
    const float scale = rsqrtf(reduce<false>(square) / n - mean * mean + 1e-5f);
    EACH_VEC(i) {
        const Vec<T> weight = load(w + Row<T>::at(i));
        const Vec<T> bias = centred ? load(w + columns + Row<T>::at(i)) : Vec<T>{};
        Vec<T> out;
        EACH(j) {
            const float value = (wide(row.v[i].at[j]) - mean) * scale * wide(weight.at[j]);
            out.at[j] = narrow<T>(centred ? value + wide(bias.at[j]) : value);
        }
        store(y + r * columns + Row<T>::at(i), out);
    }
    if (threadIdx.x == 0)
        stats[r] = scale;
}

/* A block takes several rows and leaves its part of the weight gradient. */
template <typename T>
__global__ void norm_bwd(const T *dy, const T *x, const T *w, T *dx, float *parts, const float *stats, int64_t rows,
                         int64_t columns, bool centred)
{
    Row<T> a, b;
    Vec<T> weight[kMaxVecs];
    float sum[kMaxVecs][Vec<T>::kN] = {};
    const float n = static_cast<float>(columns);
    EACH_VEC(i)
        weight[i] = load(w + Row<T>::at(i));
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float scale = stats[r];
        float dot = 0, total = 0, mean = 0;
        a.read(dy + r * columns, columns);
        b.read(x + r * columns, columns);
        if (centred) {
            EACH_VEC(i)
                EACH(j)
                    mean += wide(b.v[i].at[j]);
            mean = reduce<false>(mean) / n;
        }
        EACH_VEC(i)
            EACH(j) {
                const float g = wide(a.v[i].at[j]), value = (wide(b.v[i].at[j]) - mean) * scale;
                dot += g * wide(weight[i].at[j]) * value;
                total += g * wide(weight[i].at[j]);
                sum[i][j] += g * value;
            }
        const float c1 = reduce<false>(dot) / n, c2 = centred ? reduce<false>(total) / n : 0.0f;
        EACH_VEC(i) {
            Vec<T> out;
            EACH(j)
                out.at[j] = narrow<T>((wide(a.v[i].at[j]) * wide(weight[i].at[j]) - c2 -
                                       (wide(b.v[i].at[j]) - mean) * scale * c1) * scale);
            store(dx + r * columns + Row<T>::at(i), out);
        }
    }
    EACH_VEC(i)
        EACH(j)
            parts[blockIdx.x * columns + Row<T>::at(i) + j] = sum[i][j];
}

/* The sum of the parts: a warp takes 32 columns of every 32nd part. */
__global__ void norm_weights(const float *parts, float *dw, int n, int64_t columns)
{
    __shared__ float sums[kWarp][kWarp + 1];
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
    float sum = 0;
    for (int i = threadIdx.y; i < n && column < columns; i += kWarp)
        sum += parts[i * columns + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns)
        return;
    for (int i = 1; i < kWarp; i++)
        sum += sums[i][threadIdx.x];
    dw[column] = sum;
}

template <typename T> __global__ void softmax(const T *x, T *y, int64_t columns)
{
    Row<T> row;
    const int64_t r = blockIdx.x;
    float most = -3.4e38f, sum = 0;
    row.read(x + r * columns, columns);
    EACH_VEC(i)
        EACH(j)
            most = fmaxf(most, wide(row.v[i].at[j]));
    most = reduce<true>(most);
    EACH_VEC(i)
        EACH(j)
            sum += __expf(wide(row.v[i].at[j]) - most);
    const float scale = 1.0f / reduce<false>(sum);
    EACH_VEC(i) {
        Vec<T> out;
        EACH(j)
            out.at[j] = narrow<T>(__expf(wide(row.v[i].at[j]) - most) * scale);
        store(y + r * columns + Row<T>::at(i), out);
    }
}

template <typename T> __global__ void softmax_bwd(const T *dy, const T *y, T *dx, int64_t columns)
{
    Row<T> a, b;
    const int64_t r = blockIdx.x;
    float dot = 0;
    a.read(dy + r * columns, columns);
    b.read(y + r * columns, columns);
    EACH_VEC(i)
        EACH(j)
            dot += wide(a.v[i].at[j]) * wide(b.v[i].at[j]);
    dot = reduce<false>(dot);
    EACH_VEC(i) {
        Vec<T> out;
        EACH(j)
            out.at[j] = narrow<T>((wide(a.v[i].at[j]) - dot) * wide(b.v[i].at[j]));
        store(dx + r * columns + Row<T>::at(i), out);
    }
}

/* --- long rows --------------------------------------------------------------------------------------------------- */

/* Maximum and sum in one reading, exponentials in a second one. */
template <typename T> __global__ void cross_entropy(T *logits, const int64_t *labels, float *losses, int64_t columns)
{
    T *row = logits + static_cast<int64_t>(blockIdx.x) * columns;
    const int64_t step = static_cast<int64_t>(blockDim.x) * Vec<T>::kN;
    float most = -3.4e38f, sum = 0;
    for (int64_t at = static_cast<int64_t>(threadIdx.x) * Vec<T>::kN; at < columns; at += step) {
        const Vec<T> v = load(row + at);
        float here = most;
        for (int j = 0; j < Vec<T>::kN; j++)
            here = fmaxf(here, wide(v.at[j]));
        sum *= __expf(most - here);
        for (int j = 0; j < Vec<T>::kN; j++)
            sum += __expf(wide(v.at[j]) - here);
        most = here;
    }
    const float top = reduce<true>(most), total = reduce<false>(sum * __expf(most - top));
    const int64_t label = labels[blockIdx.x] % columns;
    const float hit = wide(row[label]);
    __syncthreads(); /* before the label's logit is overwritten */
    if (threadIdx.x == 0)
        losses[blockIdx.x] = __logf(total) + top - hit;
    for (int64_t at = static_cast<int64_t>(threadIdx.x) * Vec<T>::kN; at < columns; at += step) {
        Vec<T> v = load(row + at);
        for (int j = 0; j < Vec<T>::kN; j++)
            v.at[j] = narrow<T>(__expf(wide(v.at[j]) - top) / total - (at + j == label ? 1.0f : 0.0f));
        store(row + at, v);
    }
}

/* --- pieces of 16 bytes, independent of each other ---------------------------------------------------------------- */

template <typename T> __global__ void rope(T *x, const float *table, int64_t rows, int64_t columns)
{
    constexpr int kHalf = kHead / 2;
    const int64_t per_row = columns / 2 / Vec<T>::kN, n = rows * per_row;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t row = i / per_row, pair = i % per_row * Vec<T>::kN;
        T *left = x + row * columns + pair / kHalf * kHead + pair % kHalf;
        const float *angle = table + (row * kHalf + pair % kHalf) * 2;
        Vec<T> a = load(left), b = load(left + kHalf);
        for (int j = 0; j < Vec<T>::kN; j++) {
            const float p = wide(a.at[j]), q = wide(b.at[j]), c = angle[2 * j], s = angle[2 * j + 1];
            a.at[j] = narrow<T>(p * c - q * s);
            b.at[j] = narrow<T>(q * c + p * s);
        }
        store(left, a);
        store(left + kHalf, b);
    }
}

template <typename I>
__global__ void gather(const uint4 *in, const I *index, uint4 *out, int64_t rows, int64_t per_row)
{
    const int64_t n = rows * per_row, stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = in[static_cast<int64_t>(index[i / per_row]) * per_row + i % per_row];
}

/* Rows that occur once need no atomic addition; the traffic is the same. */
template <typename T>
__global__ void scatter(const T *in, const int64_t *index, T *table, int64_t rows, int64_t columns)
{
    const int64_t per_row = columns / Vec<T>::kN, n = rows * per_row;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        T *to = table + index[i / per_row] * columns + i % per_row * Vec<T>::kN;
        const Vec<T> v = load(in + i * Vec<T>::kN);
        Vec<T> sum = load(to);
        for (int j = 0; j < Vec<T>::kN; j++)
            sum.at[j] = narrow<T>(wide(sum.at[j]) + wide(v.at[j]));
        store(to, sum);
    }
}

/* Sixteen threads hold the 128 values of a scale. */
template <typename T> __global__ void quantize(const T *in, uint8_t *out, float *scales, int64_t n)
{
    constexpr int kThreads = kBlock / Vec<T>::kN;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n / Vec<T>::kN; i += stride) {
        const Vec<T> v = load(in + i * Vec<T>::kN);
        float most = 1e-12f;
        for (int j = 0; j < Vec<T>::kN; j++)
            most = fmaxf(most, fabsf(wide(v.at[j])));
        const unsigned together = __activemask();
        for (int step = kThreads / 2; step > 0; step /= 2)
            most = fmaxf(most, __shfl_xor_sync(together, most, step));
        const float scale = 448.0f / most; /* the largest E4M3 */
        for (int j = 0; j < Vec<T>::kN; j++)
            out[i * Vec<T>::kN + j] =
                static_cast<uint8_t>(__nv_cvt_float_to_fp8(wide(v.at[j]) * scale, __NV_SATFINITE, __NV_E4M3));
        if (i % kThreads == 0)
            scales[i / kThreads] = 1.0f / scale;
    }
}

__device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + __expf(-x));
}

template <typename T> __global__ void activation(const T *in, T *out, int64_t rows, int64_t columns, bool gated)
{
    const int64_t per_row = columns / Vec<T>::kN, n = rows * per_row, width = gated ? 2 * columns : columns;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const T *at = in + i / per_row * width + i % per_row * Vec<T>::kN;
        const Vec<T> a = load(at), b = gated ? load(at + columns) : a;
        Vec<T> v;
        for (int j = 0; j < Vec<T>::kN; j++) {
            const float x = wide(a.at[j]), y = x * sigmoid(x);
            v.at[j] = narrow<T>(gated ? y * wide(b.at[j]) : y);
        }
        store(out + i * Vec<T>::kN, v);
    }
}

template <typename T>
__global__ void activation_bwd(const T *dout, const T *in, T *din, int64_t rows, int64_t columns, bool gated)
{
    const int64_t per_row = columns / Vec<T>::kN, n = rows * per_row, width = gated ? 2 * columns : columns;
    const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t at = i / per_row * width + i % per_row * Vec<T>::kN;
        const Vec<T> g = load(dout + i * Vec<T>::kN), a = load(in + at), b = gated ? load(in + at + columns) : a;
        Vec<T> da, db;
        for (int j = 0; j < Vec<T>::kN; j++) {
            const float x = wide(a.at[j]), s = sigmoid(x), d = wide(g.at[j]), slope = s * (1 + x * (1 - s));
            da.at[j] = narrow<T>(d * slope * (gated ? wide(b.at[j]) : 1.0f));
            db.at[j] = narrow<T>(d * x * s);
        }
        store(din + at, da);
        if (gated)
            store(din + at + columns, db);
    }
}

/* What is read must reach what is written, or the compiler leaves it out. */
__global__ void stream_bytes(const uint4 *in, size_t read, uint4 *out, size_t written)
{
    const size_t n = read > written ? read : written, stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    uint4 seen = {1, 2, 3, 4};
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        if (i < read) {
            const uint4 v = in[i];
            seen.x ^= v.x, seen.y += v.y, seen.z ^= v.z, seen.w += v.w;
        }
        if (i < written)
            out[i] = seen;
    }
    if (written == 0 && seen.x == 0x9e3779b9u && seen.y == 0x7f4a7c15u) /* next to never */
        out[0] = seen;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

constexpr int kThreads = 256;

int blocks_for(size_t n, int sms)
{
    const size_t all = (n + kThreads - 1) / kThreads, most = static_cast<size_t>(sms > 0 ? sms : 108) * 16;
    return static_cast<int>(all < 1 ? 1 : all < most ? all : most);
}

/* Threads of a block that holds a row in its registers. */
template <typename T> int row_threads(int64_t columns)
{
    int64_t vecs = columns / Vec<T>::kN, threads = kWarp;
    while (threads < kMaxThreads && threads * 4 < vecs)
        threads *= 2;
    while (threads < kMaxThreads && threads * kMaxVecs < vecs)
        threads *= 2;
    return static_cast<int>(threads);
}

} // namespace

/* Runs the statement with T as the C++ type of r->dtype. */
#define WITH_TYPE(dtype, ...)                                                                                          \
    switch (dtype) {                                                                                                   \
    case MAQ_BF16: {                                                                                                   \
        using T = __nv_bfloat16;                                                                                       \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    case MAQ_FP16: {                                                                                                   \
        using T = __half;                                                                                              \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    default: {                                                                                                         \
        using T = float;                                                                                               \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }                                                                                                                  \
    }
#define IN(p) static_cast<const T *>(p)
#define OUT(p) static_cast<T *>(p)

extern "C" {

void maq_cuda_spin(cudaStream_t stream, unsigned long long ns)
{
    spin<<<1, 1, 0, stream>>>(ns);
}

void maq_cuda_fill(cudaStream_t stream, void *out, size_t bytes, enum maq_dtype dtype, uint32_t seed)
{
    bytes = bytes / kVecBytes * kVecBytes;
    if (dtype == MAQ_FP8 || dtype == MAQ_INT8 || dtype == MAQ_FP4 || dtype == MAQ_FP6)
        fill_bytes<<<blocks_for(bytes, 0), kThreads, 0, stream>>>(static_cast<uint8_t *>(out), bytes, seed);
    else
        WITH_TYPE(dtype, const size_t n = bytes / sizeof(T);
                  fill<T><<<blocks_for(n, 0), kThreads, 0, stream>>>(OUT(out), n, seed))
}

void maq_cuda_fill_indices(cudaStream_t stream, void *out, size_t n, size_t limit, bool wide_index)
{
    if (wide_index)
        fill_indices<<<blocks_for(n, 0), kThreads, 0, stream>>>(static_cast<int64_t *>(out), n, limit);
    else
        fill_indices<<<blocks_for(n, 0), kThreads, 0, stream>>>(static_cast<int32_t *>(out), n, limit);
}

bool maq_cuda_has_type(enum maq_dtype dtype)
{
    return dtype == MAQ_BF16 || dtype == MAQ_FP16 || dtype == MAQ_FP32;
}

bool maq_cuda_has_columns(enum maq_dtype dtype, int64_t columns)
{
    const int64_t per_vec = dtype == MAQ_FP32 ? 4 : 8;
    return columns > 0 && columns % per_vec == 0 && columns <= per_vec * kMaxVecs * kMaxThreads;
}

void maq_cuda_norm(const struct maq_cuda_rows *r, const void *x, const void *w, void *y, float *stats, bool centred)
{
    WITH_TYPE(r->dtype, norm<T><<<static_cast<unsigned>(r->rows), row_threads<T>(r->columns), 0, r->stream>>>(
                            IN(x), IN(w), OUT(y), stats, r->columns, centred))
}

void maq_cuda_norm_bwd(const struct maq_cuda_rows *r, const void *dy, const void *x, const void *w, void *dx, float *dw,
                       const float *stats, float *parts, bool centred)
{
    const int64_t most = r->sms < MAQ_PROFILE_PARTS / 4 ? 4 * r->sms : MAQ_PROFILE_PARTS;
    const int blocks = static_cast<int>(r->rows < most ? r->rows : most);
    WITH_TYPE(r->dtype, norm_bwd<T><<<blocks, row_threads<T>(r->columns), 0, r->stream>>>(
                            IN(dy), IN(x), IN(w), OUT(dx), parts, stats, r->rows, r->columns, centred))
    norm_weights<<<static_cast<unsigned>((r->columns + kWarp - 1) / kWarp), dim3(kWarp, kWarp), 0, r->stream>>>(
        parts, dw, blocks, r->columns);
}

void maq_cuda_softmax(const struct maq_cuda_rows *r, const void *x, void *y)
{
    WITH_TYPE(r->dtype, softmax<T><<<static_cast<unsigned>(r->rows), row_threads<T>(r->columns), 0, r->stream>>>(
                            IN(x), OUT(y), r->columns))
}

void maq_cuda_softmax_bwd(const struct maq_cuda_rows *r, const void *dy, const void *y, void *dx)
{
    WITH_TYPE(r->dtype, softmax_bwd<T><<<static_cast<unsigned>(r->rows), row_threads<T>(r->columns), 0, r->stream>>>(
                            IN(dy), IN(y), OUT(dx), r->columns))
}

void maq_cuda_cross_entropy(const struct maq_cuda_rows *r, void *logits, const int64_t *labels, float *losses)
{
    WITH_TYPE(r->dtype, cross_entropy<T><<<static_cast<unsigned>(r->rows), kMaxThreads, 0, r->stream>>>(
                            OUT(logits), labels, losses, r->columns))
}

void maq_cuda_rope(const struct maq_cuda_rows *r, void *x, const float *table)
{
    const size_t n = static_cast<size_t>(r->rows * r->columns) / 8;
    WITH_TYPE(r->dtype,
              rope<T><<<blocks_for(n, r->sms), kThreads, 0, r->stream>>>(OUT(x), table, r->rows, r->columns))
}

void maq_cuda_gather(const struct maq_cuda_rows *r, const void *in, const void *index, void *out, bool wide_index)
{
    const int64_t per_row = r->columns * (r->dtype == MAQ_FP32 ? 4 : 2) / kVecBytes;
    const int blocks = blocks_for(static_cast<size_t>(r->rows * per_row), r->sms);
    if (wide_index)
        gather<<<blocks, kThreads, 0, r->stream>>>(static_cast<const uint4 *>(in), static_cast<const int64_t *>(index),
                                                   static_cast<uint4 *>(out), r->rows, per_row);
    else
        gather<<<blocks, kThreads, 0, r->stream>>>(static_cast<const uint4 *>(in), static_cast<const int32_t *>(index),
                                                   static_cast<uint4 *>(out), r->rows, per_row);
}

void maq_cuda_scatter(const struct maq_cuda_rows *r, const void *in, const int64_t *index, void *table,
                      size_t table_bytes)
{
    const size_t n = static_cast<size_t>(r->rows * r->columns) / 8;
    (void)cudaMemsetAsync(table, 0, table_bytes, r->stream);
    WITH_TYPE(r->dtype, scatter<T><<<blocks_for(n, r->sms), kThreads, 0, r->stream>>>(IN(in), index, OUT(table),
                                                                                      r->rows, r->columns))
}

void maq_cuda_quantize(const struct maq_cuda_rows *r, const void *in, void *out, float *scales)
{
    const size_t n = static_cast<size_t>(r->rows * r->columns);
    quantize<<<blocks_for(n / 8, r->sms), kThreads, 0, r->stream>>>(
        static_cast<const __nv_bfloat16 *>(in), static_cast<uint8_t *>(out), scales, static_cast<int64_t>(n));
}

void maq_cuda_activation(const struct maq_cuda_rows *r, const void *in, void *out, bool gated)
{
    const size_t n = static_cast<size_t>(r->rows * r->columns) / 8;
    WITH_TYPE(r->dtype, activation<T><<<blocks_for(n, r->sms), kThreads, 0, r->stream>>>(IN(in), OUT(out), r->rows,
                                                                                         r->columns, gated))
}

void maq_cuda_activation_bwd(const struct maq_cuda_rows *r, const void *dout, const void *in, void *din, bool gated)
{
    const size_t n = static_cast<size_t>(r->rows * r->columns) / 8;
    WITH_TYPE(r->dtype, activation_bwd<T><<<blocks_for(n, r->sms), kThreads, 0, r->stream>>>(
                            IN(dout), IN(in), OUT(din), r->rows, r->columns, gated))
}

void maq_cuda_stream(cudaStream_t stream, int sms, const void *in, size_t read, void *out, size_t written)
{
    read /= kVecBytes;
    written /= kVecBytes;
    stream_bytes<<<blocks_for(read > written ? read : written, sms), kThreads, 0, stream>>>(
        static_cast<const uint4 *>(in), read, static_cast<uint4 *>(out), written);
}

} /* extern "C" */
