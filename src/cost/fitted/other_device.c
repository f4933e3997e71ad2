/* SPDX-License-Identifier: Apache-2.0 */
/*
 * other_device.c - what a table of one device says of another, which has none.
 *
 * A kernel's time on the device of the table is cut into three parts, and each goes over by what it hangs on:
 *
 *   t = bound + fixed
 *   bound   up to LOST_MOST of (math^4 + memory^4)^(1/4): what arithmetic and memory would take at the rates that large
 *           kernels hold there; tiles, waves and half-filled pipes lose a share of it, on one device as on the other
 *   fixed   the rest: launch, fill and drain of kernels, in cycles: by the clock; where kernels are launched one by one
 *           while the device waits (vLLM's products in blocks, no CUDA graph): by the speed of the host's threads
 *
 *   math    exact FLOP / peak / (rate under the power limit over the peak): a datasheet's peak says little of Ada's; of the attention of prompts
 *           FLOP / rate of its inner loop, which stays under the limit: FlashAttention 2 does 397 FLOP a clock on each SM of an L40S, 400 on one of an
 *           RTX PRO 6000
 *   memory  bytes through the cache or from memory, as the loop that measured it found them (warm_cache.c), at the rate that ECC bits leave; of all
 *           but products the part from the cache counts at that rate as well, which it is not slowed by
 *
 * Which device: its own generation before others, then the nearest balance of FLOP and bytes. Training jobs ask their own
 * generation only: beyond it the analytical provider knows their kernels (FlashAttention-2 on Turing). AMD's devices run
 * other libraries.
 *
 * Three round figures are chosen, on products of the public tables with their device left out: the 90th percentile is
 * 28.2 %; with LOST_MOST from 1.2 to 1.6 up to 28.9 (without a limit 50), with FULL_ALL from 0.5 to 0.9 or FULL_NONE from 1.1
 * to 1.5 up to 28.5.
 */
#include <math.h>
#include <string.h>

#include "cost/analytical/analytical.h"
#include "cost/fitted/other_device.h"
#include "cost/fitted/warm_cache.h"

#define LOST_MOST 1.4

static double balance_of(const struct maq_device *device)
{
    double held = maq__matrix_peak(device, MAQ_BF16) * maq__held_share(device, MAQ_BF16);
    return maq__over(held, device->mem_bps);
}

double maq__other_device_distance(const struct maq_device *a, const struct maq_device *b)
{
    if (a->arch > MAQ_ARCH_BLACKWELL || b->arch > MAQ_ARCH_BLACKWELL || strcmp(a->name, b->name) == 0)
        return (double)INFINITY;
    double far = a->arch != b->arch ? MAQ_CARRY_FAR : 0.0;
    return far + fabs(log(maq__max(balance_of(a), 1e-9) / maq__max(balance_of(b), 1e-9)));
}

static bool in_blocks(const struct maq_op *op)
{
    return op->kind == MAQ_OP_GEMM && (op->flags & MAQ_OP_BLOCKS);
}

static bool launched_singly(const struct maq_op *op, enum maq_library library)
{
    return library == MAQ_LIBRARY_VLLM && in_blocks(op);
}

static double bound_s(const struct maq_fit_point *p, const struct maq_op *op, const struct maq_device *device,
                      enum maq_library library)
{
    double math = p->key.family == MAQ_FIT_PREFILL
                      ? maq__over(maq_op_work(op).matrix_flop, maq__attention_rate(op, device))
                      : maq__over(p->math_s, maq__held_share(device, MAQ_BF16));
    double memory =
        p->key.family == MAQ_FIT_GEMM ? maq__warm_memory_s(op, device, library) : p->memory_s / maq__data_share(device);
    return maq__overlap_s(math, memory);
}

double maq__other_device_s(double t, const struct maq_op *op, enum maq_library library,
                           const struct maq_other_device *there, const struct maq_other_device *here)
{
    const struct maq_device *from = there->device, *to = here->device;
    double most = bound_s(there->point, op, from, library), bound = maq__min(t, LOST_MOST * most);
    double scaled = most > 0.0 ? bound / most * bound_s(here->point, op, to, library) : 0.0;
    double clock = from->clock_hz > 0.0 && to->clock_hz > 0.0 ? from->clock_hz / to->clock_hz : 1.0;
    double host = maq_device_host_speed(from) / maq_device_host_speed(to);
    if (there->point->key.family == MAQ_FIT_PREFILL)
        scaled *= maq__exponentials_share(op, to) / maq__exponentials_share(op, from);
    return scaled + (t - bound) * (launched_singly(op, library) ? host : clock);
}
