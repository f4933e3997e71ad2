/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.cu - the timed wait and the data rules, as kernels.
 *
 * A wait holds what NCCL's kernel would hold: as many blocks of as many threads, until its end. Block 0 finds the end and publishes
 * it; the others, which may start late when the device is full, read it. No block waits for a later one, so that none can hang.
 *
 * Waits of a communicator run one after another and have different numbers of blocks, so that no block can count them by itself: the
 * number of the wait is one for all, and moves on when the last block leaves, by when every block has read it.
 */
#include "shim/gpu/fill.h"
#include "shim/gpu/wait.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ __forceinline__ int64_t device_clock()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return (int64_t)ns;
}

static __device__ void wait_until(int64_t end)
{
    for (int64_t left = end - device_clock(); left > 0; left = end - device_clock())
        if (left > 1000)
            __nanosleep(left > 100000 ? 20000 : (unsigned)(left / 4));
}

extern "C" __global__ void vg_timed_wait(struct vg_wait_state *s)
{
    if (threadIdx.x == 0) {
        int64_t end = device_clock();
        uint32_t turn = *(volatile uint32_t *)&s->turn;
        volatile uint32_t *told = &s->told;
        volatile int64_t *ends = &s->end_ns;
        if (s->n && blockIdx.x == 0) {
            end = vg_wait_begin(s, turn, end);
            *ends = end;
            __threadfence();
            *told = turn + 1;
        } else if (s->n) {
            while (*told != turn + 1)
                __nanosleep(200);
            __threadfence();
            end = *ends;
        }
        wait_until(end);
        if (atomicAdd(&s->left, 1u) == gridDim.x - 1) {
            s->left = 0;
            s->turn = turn + 1;
        }
    }
    __syncthreads(); /* the other threads hold their places until the wait is over */
}

/* A value that is the same on every run: a bell around 0 with the deviation `scale` (sum of four uniform numbers). */
static __device__ __forceinline__ float noise(uint64_t seed, uint64_t i, float scale)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    float sum = 0;
    for (int k = 0; k < 4; k++)
        sum += (float)(z >> 16 * k & 0xffff) * (1.0f / 65536.0f);
    return (sum - 2.0f) * 1.7320508f * scale; /* the sum's deviation is sqrt(4 / 12) */
}

#define EACH(i, n)                                                                                                     \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (n); i += (uint64_t)gridDim.x * blockDim.x)

template <typename T> static __device__ void scale_by(T *out, const T *in, uint64_t n, float factor)
{
    EACH(i, n)
    out[i] = (T)((float)in[i] * factor);
}

template <typename T> static __device__ void scale_whole(T *out, const T *in, uint64_t n, T factor)
{
    EACH(i, n)
    out[i] = in[i] * factor;
}

extern "C" __global__ void vg_fill_scaled(void *out, const void *in, uint64_t n, int type, float factor)
{
    switch (type) {
    case MAQ_REC_F32:
    case MAQ_REC_TF32:
        scale_by((float *)out, (const float *)in, n, factor);
        break;
    case MAQ_REC_F64:
        scale_whole((double *)out, (const double *)in, n, (double)factor);
        break;
    case MAQ_REC_F16:
        scale_by((__half *)out, (const __half *)in, n, factor);
        break;
    case MAQ_REC_BF16:
        scale_by((__nv_bfloat16 *)out, (const __nv_bfloat16 *)in, n, factor);
        break;
    case MAQ_REC_I32:
    case MAQ_REC_U32:
        scale_whole((uint32_t *)out, (const uint32_t *)in, n, (uint32_t)factor);
        break;
    case MAQ_REC_I64:
    case MAQ_REC_U64:
        scale_whole((uint64_t *)out, (const uint64_t *)in, n, (uint64_t)factor);
        break;
    default: /* 8 bits and what has no arithmetic */
        scale_whole((uint8_t *)out, (const uint8_t *)in, n, (uint8_t)1);
    }
}

extern "C" __global__ void vg_fill_noise(void *out, uint64_t n, int type, float deviation, uint64_t seed)
{
    EACH(i, n)
    {
        float v = noise(seed, i, deviation);
        switch (type) {
        case MAQ_REC_F32:
        case MAQ_REC_TF32:
            ((float *)out)[i] = v;
            break;
        case MAQ_REC_F64:
            ((double *)out)[i] = v;
            break;
        case MAQ_REC_F16:
            ((__half *)out)[i] = __float2half(v);
            break;
        case MAQ_REC_BF16:
            ((__nv_bfloat16 *)out)[i] = __float2bfloat16(v);
            break;
        default: /* whole numbers come from recorded slices, or stay what they are */
            break;
        }
    }
}
