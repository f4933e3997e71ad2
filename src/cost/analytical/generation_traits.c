/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation_traits.c - what share of its datasheet each generation of accelerators reaches.
 *
 * These figures belong to a generation and its kernel libraries, never to one device, model or publication:
 *
 *   sustained_share  "maximum achievable" matmul rate over peak, mean of 100 runs of the best of many shapes
 *                    (stas00/ml-engineering, MAMF finder, CC-BY-SA-4.0): A100 271/312, H100 794/989, B200 1745/2250,
 *                    GB200 1822/2500, MI300X 668/1307, MI325X 785/1307, MI355X 1565/2300. Ada has no such figure: what
 *                    an L40S keeps up over large products in the kernel tables. The others are assumptions.
 *   full_rate        the least of the boards with all of their die's rate, whose peaks are stated at other clocks than the
 *                    highest: V100, T4, A40, L40S, H100 NVL, B300. GeForce's have half of it, an H20 a quarter.
 *   typical_share    an ordinary large product (m, n, k >= 4096) over the best of the same kernel table: medians over
 *                    three frameworks A100 0.93, H100 0.88, B200 and GB200 0.83; the others are assumptions.
 *   promoted_share   Hopper's matrix units add up 8-bit products with few bits. Kernels that carry their sums over into full
 *                    precision every 128 elements take 1 / 0.84 (H100) and 1 / 0.81 (H200) of the time: DeepGEMM's rows (SGLang's
 *                    fp8_block) and cuBLASLt's with fast accumulation (TensorRT-LLM's fp8 less its quantization), medians over
 *                    1,741 and 1,830 products with m >= 1,024 and n, k >= 4,096 of the same tables.
 *   flash2           FlashAttention-2 uses mma.sync: 35 % of an H100's peak forward ("FlashAttention-3", arXiv 2407.08608,
 *                    section 1), less on Blackwell, whose tensor cores it reaches only through the compatible path.
 *                    Where it is missing, FlashAttention-2 is the best there is.
 *   attention in 8 bits, exponentials
 *                    cuDNN's own times (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training/results, MIT; cuDNN 9.19 on an
 *                    H200, 9.22 on GB200 and GB300), as ratios: 8 over 16 bits on the same device, GB300 (32 exponentials of an SM
 *                    a clock) over GB200 (16). Head sizes of 64 and 256, and on Hopper all but 128, by the shares in 16 bits.
 *                    docs/cost-model.md compares.
 *   the rest         chosen against public kernel tables (ai-dynamo/aiconfigurator, microsoft/vidur,
 *                    NetX-lab/Frontier); docs/cost-model.md has the errors that remain. Volta, Turing and CDNA have no
 *                    such tables: plausible assumptions.
 */
#include <math.h>

#include "cost/analytical/analytical.h"

/* clang-format off */
/* FLOP per SM and cycle of the whole die; shares of the matrix rate held and of an ordinary product, of the bandwidth; seconds. */
#define RATES(full, sustained, typical, mem, kernel, gemm)                                                             \
    .full_rate = (full), .sustained_share = (sustained), .typical_share = (typical), .mem_share = (mem),               \
    .kernel_s = (kernel), .gemm_s = (gemm)

/* Shares for head sizes of 64, 128 and 256: forward, backward, forward in 8 bits; seconds, keys and queries of a block. */
#define ATTENTION(f64, f128, f256, b64, b128, b256, q64, q128, q256, start_s, fill, rows)                              \
    .attention_fwd = {(f64), (f128), (f256)}, .attention_bwd = {(b64), (b128), (b256)},                                \
    .attention_fp8 = {(q64), (q128), (q256)}, .attention_s = (start_s), .attention_fill = (fill),                      \
    .attention_rows = (rows)

/* Tiles: the larger, the fewer bytes each SM fetches per FLOP, and the fuller its matrix pipe. */
#define VOLTA_TILES .tiles = {{256, 128, 1.0f}, {128, 128, 0.95f}, {128, 64, 0.82f}, {64, 64, 0.6f}}
#define CDNA_TILES .tiles = {{256, 256, 1.0f}, {256, 128, 0.95f}, {128, 128, 0.85f}, {64, 64, 0.5f}}
#define AMPERE_TILES(square, narrow, least)                                                                            \
    .tiles = {{256, 128, 1.0f}, {128, 256, 1.0f}, {128, 128, square}, {128, 64, narrow}, {64, 128, narrow}, {64, 64, least}}

static const struct maq_kernel_traits traits[MAQ_ARCH_COUNT] = {
    /*         full rate  held  ordinary  memory  kernel  product
                forward            backward           8 bits                start  fill  rows */
    [MAQ_ARCH_VOLTA] = {
        RATES(    1010,   0.78,   0.93,   0.86,  3.0e-6,  5.0e-6), VOLTA_TILES,
        ATTENTION(0.30, 0.35, 0.25,  0.22, 0.26, 0.18,  0.30, 0.35, 0.25,   6e-6,   50,  128)},
    [MAQ_ARCH_TURING] = {
        RATES(    1010,   0.70,   0.93,   0.85,  3.0e-6,  5.0e-6), VOLTA_TILES,
        ATTENTION(0.30, 0.35, 0.25,  0.22, 0.26, 0.18,  0.30, 0.35, 0.25,   6e-6,   50,  128)},
    [MAQ_ARCH_AMPERE] = {
        RATES(    1010,   0.87,   0.93,   0.88,  2.5e-6,  4.5e-6), AMPERE_TILES(0.95f, 0.82f, 0.6f),
        ATTENTION(0.58, 0.655, 0.58, 0.46, 0.53, 0.42,  0.58, 0.67, 0.58,   6e-6,   50,  128)},
    [MAQ_ARCH_ADA] = {
        RATES(    1010,   0.62,   0.93,   0.88,  2.0e-6,  3.5e-6), AMPERE_TILES(0.97f, 0.85f, 0.65f),
        ATTENTION(0.53, 0.63, 0.55,  0.42, 0.50, 0.40,  0.30, 0.40, 0.30,   6e-6,   50,  128)},
    [MAQ_ARCH_HOPPER] = {
        RATES(    3540,   0.80,   0.88,   0.90,  2.2e-6,  4.5e-6), .promoted_share = 0.8285,
        .tiles = {{128, 256, 1.0f}, {256, 128, 1.0f}, {128, 192, 0.97f}, {192, 128, 0.97f}, {128, 128, 0.92f}, {128, 64, 0.75f},
                  {64, 128, 0.75f}, {64, 64, 0.5f}},
        ATTENTION(0.54, 0.67, 0.78,  0.42, 0.55, 0.55,  0.40, 0.50, 0.60,   7e-6,  280,  128),
        .attention_bwd_fp8 = {0.24, 0.30, 0.30}, .attention_fill_bwd_fp8 = 280, .attention_bwd_fp8_masked = 0.5,
        .flash2_fwd = {0.30, 0.36, 0.33}, .flash2_bwd = {0.24, 0.30, 0.24}},
    [MAQ_ARCH_BLACKWELL] = {
        RATES(    7480,   0.77,   0.83,   0.90,  2.2e-6,  3.3e-6),
        .tiles = {{256, 128, 1.0f}, {128, 256, 1.0f}, {128, 192, 0.97f}, {192, 128, 0.97f}, {128, 128, 0.92f}, {128, 64, 0.75f},
                  {64, 128, 0.75f}},
        ATTENTION(0.36, 0.62, 0.68,  0.28, 0.45, 0.45,  0.20, 0.40, 0.60,   8e-6,  340,  256),
        .attention_bwd_fp8 = {0.195, 0.30, 0.60}, .attention_fill_bwd_fp8 = 900,
        .attention_exp = {0.30, 0.16}, .attention_fp8_exp = {0.56, 0.30},
        .flash2_fwd = {0.13, 0.16, 0.15}, .flash2_bwd = {0.11, 0.14, 0.11}},
    [MAQ_ARCH_CDNA2] = {
        RATES(       0,   0.65,   0.90,   0.80,  5e-6,    8e-6), CDNA_TILES,
        ATTENTION(0.30, 0.35, 0.25,  0.20, 0.25, 0.18,  0.30, 0.35, 0.25,   1e-5,  150,  128)},
    [MAQ_ARCH_CDNA3] = {
        RATES(       0,   0.53,   0.90,   0.80,  4e-6,    8e-6), CDNA_TILES,
        ATTENTION(0.30, 0.40, 0.30,  0.20, 0.28, 0.20,  0.20, 0.25, 0.20,   1e-5,  150,  128)},
    [MAQ_ARCH_CDNA4] = {
        RATES(       0,   0.68,   0.88,   0.80,  4e-6,    8e-6), CDNA_TILES,
        ATTENTION(0.35, 0.45, 0.35,  0.24, 0.32, 0.24,  0.22, 0.28, 0.22,   1e-5,  150,  128)},
    [MAQ_ARCH_OTHER] = {
        RATES(       0,   0.75,   0.90,   0.85,  3e-6,    6e-6),
        .tiles = {{256, 128, 1.0f}, {128, 128, 0.9f}, {128, 64, 0.7f}, {64, 64, 0.5f}},
        ATTENTION(0.40, 0.50, 0.40,  0.30, 0.40, 0.30,  0.30, 0.40, 0.30,   8e-6,  150,  128)},
};
/* clang-format on */

const struct maq_kernel_traits *maq__kernel_traits(const struct maq_device *device)
{
    unsigned arch = (unsigned)device->arch;
    return &traits[arch < MAQ_ARCH_COUNT ? arch : MAQ_ARCH_OTHER];
}

/*
 * The type in whose units a device without units for `dtype` computes: 8- and 4-bit data is widened, BF16 runs on
 * FP16 units (Volta, Turing), TF32 falls back to FP32.
 */
static enum maq_dtype computed_as(const struct maq_device *device, enum maq_dtype dtype)
{
    static const enum maq_dtype fallback[MAQ_DTYPE_COUNT] = {
        [MAQ_FP32] = MAQ_FP32, [MAQ_TF32] = MAQ_FP32, [MAQ_FP16] = MAQ_TF32, [MAQ_BF16] = MAQ_FP16,
        [MAQ_FP8] = MAQ_BF16,  [MAQ_FP6] = MAQ_FP8,   [MAQ_FP4] = MAQ_FP8,   [MAQ_INT8] = MAQ_BF16,
    };
    if ((unsigned)dtype >= MAQ_DTYPE_COUNT)
        dtype = MAQ_BF16;
    while (!(device->peak_flops[dtype] > 0.0) && dtype != MAQ_FP32)
        dtype = fallback[dtype];
    return dtype;
}

double maq__matrix_peak(const struct maq_device *device, enum maq_dtype dtype)
{
    double peak = device->peak_flops[computed_as(device, dtype)];
    return peak > 0.0 ? peak : maq__vector_rate(device);
}

double maq__matrix_part(const struct maq_device *device)
{
    double full = maq__kernel_traits(device)->full_rate * (double)device->sms * device->clock_hz;
    return full > 0.0 ? maq__min(maq__matrix_peak(device, MAQ_BF16) / full, 1.0) : 1.0;
}

double maq__share_of_part(const struct maq_device *device, double share)
{
    double part = maq__matrix_part(device);
    return part < 1.0 && share > 0.0 ? 1.0 / (1.0 + (1.0 / share - 1.0) * part) : share;
}

double maq__powered_rate(const struct maq_device *device, enum maq_dtype dtype)
{
    double peak = maq__matrix_peak(device, dtype), sustained = device->sustained_flops[computed_as(device, dtype)],
           whole = peak / maq__matrix_part(device);
    bool only_the_peak = sustained == peak && whole > peak; /* what power would hold beyond it is not known */
    return sustained > 0.0 && !only_the_peak ? sustained : whole * maq__kernel_traits(device)->sustained_share;
}

/* The best matrix rate that a device holds, for a second. */
static double held_rate(const struct maq_device *device, enum maq_dtype dtype)
{
    return maq__min(maq__powered_rate(device, dtype), maq__matrix_peak(device, dtype));
}

double maq__held_share(const struct maq_device *device, enum maq_dtype dtype)
{
    return maq__over(held_rate(device, dtype), maq__matrix_peak(device, dtype));
}

double maq__matrix_rate(const struct maq_device *device, enum maq_dtype dtype)
{
    double typical = maq__kernel_traits(device)->typical_share;
    /* a slower product draws less power and keeps a higher clock: rate u f with f = c s / u^(1/3), see cost/fitted/fitted.c */
    double powered = maq__powered_rate(device, dtype) * cbrt(typical * typical) * MAQ_CONTINUOUS_SHARE;
    return maq__min(powered, maq__matrix_peak(device, dtype) * maq__share_of_part(device, typical));
}

struct maq_device maq__device_in_short_run(const struct maq_device *device)
{
    struct maq_device d = *device;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        d.sustained_flops[t] = maq__powered_rate(device, (enum maq_dtype)t) / MAQ_CONTINUOUS_SHARE;
    return d;
}

struct maq_device maq__device_in_bursts(const struct maq_device *device)
{
    struct maq_device d = *device;
    double typical = maq__kernel_traits(device)->typical_share;
    /* so that maq__matrix_rate() is what an ordinary product reaches unhindered */
    double powered = maq__share_of_part(device, typical) / (cbrt(typical * typical) * MAQ_CONTINUOUS_SHARE);
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        d.sustained_flops[t] = held_rate(device, (enum maq_dtype)t) * powered;
    return d;
}

double maq__vector_rate(const struct maq_device *device)
{
    return device->vector_flops > 0.0 ? device->vector_flops : 0.0;
}

/*
 * The last-level cache keeps this share of its size across two kernels: the rest is lost to other data and to the
 * replacement policy.
 */
#define CACHE_KEPT 0.5

double maq__memory_s(const struct maq_device *device, double bytes, double share)
{
    double memory = device->mem_bps * share, cache = maq__max(device->l2_bps * share, memory);
    double kept = device->l2_bps > 0.0 ? maq__min(bytes, CACHE_KEPT * maq__max(device->l2_bytes, 0.0)) : 0.0;
    return maq__over(kept, cache) + maq__over(bytes - kept, memory);
}
