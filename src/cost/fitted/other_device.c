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
 *   math    exact FLOP / peak / (rate under the power limit over the peak): a datasheet's peak says little of Ada's
 *   memory  bytes through the cache or from memory, as the loop that measured it found them
 *
 * Tables of products are measured in loops over copies of the weights (NVIDIA ai-dynamo/aiconfigurator, collector/, one
 * collect_gemm.py per library), so that small ones come from the cache and large ones do not; what comes oldest gives
 * way first, so that either nearly all of it stays or nearly nothing. That point is another on every device:
 *
 *   TensorRT-LLM  as many copies as fill the cache, five at most
 *   vLLM          six; one for products in blocks and in 4 bits
 *   SGLang        six, each with its own activations and output
 *
 * Kernels of 8- and 4-bit products read their activations in 16 bits and write them narrow first.
 *
 * Which device: its own generation before others, then the nearest balance of FLOP and bytes. Training jobs ask their own
 * generation only: beyond it the analytical provider knows their kernels (FlashAttention-2 on Turing). AMD's devices run
 * other libraries.
 *
 * Three round figures are chosen, on products of the public tables with their device left out: the 90th percentile is
 * 28.1 %; with LOST_MOST from 1.2 to 1.6 up to 28.7 (without a limit 49), with FULL_ALL from 0.5 to 0.9 or FULL_NONE from 1.1
 * to 1.5 up to 28.4.
 */
#include <math.h>
#include <string.h>

#include "cost/analytical/analytical.h"
#include "cost/fitted/other_device.h"

#define LOST_MOST 1.4
#define FULL_ALL 0.75          /* share of the cache that a loop fills up to which all of it stays, */
#define FULL_NONE 1.25         /* and from which on nothing does */
#define LOOP_COPIES 6.0        /* of vLLM and SGLang */
#define LOOP_COPIES_TRTLLM 5.0 /* at most */

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

/* Bytes that a product's loop goes through before it comes back to the first. */
static double loop_bytes(const struct maq_op *op, double bytes, double cache, enum maq_library library)
{
    double weights = maq__count(op, 1) * maq__count(op, 2) * maq__weight_bytes(op), copies = LOOP_COPIES;
    if (library == MAQ_LIBRARY_SGLANG)
        return copies * bytes;
    if (library == MAQ_LIBRARY_TRTLLM)
        copies = maq__max(1.0, maq__min(LOOP_COPIES_TRTLLM, weights > 0.0 ? ceil(cache / weights) : 1.0));
    else if (in_blocks(op) || op->dtype == MAQ_FP4)
        copies = 1.0;
    return bytes + (copies - 1.0) * weights;
}

static double loop_s(const struct maq_op *op, const struct maq_device *device, enum maq_library library)
{
    double bytes = maq_op_work(op).bytes, cache = maq__max(device->l2_bytes, 0.0), kept = 0.0;
    if (maq_dtype_bytes((enum maq_dtype)op->dtype) < 2.0)
        bytes += 3.0 * maq__count(op, 0) * maq__count(op, 2);
    if (cache > 0.0)
        kept = (FULL_NONE - loop_bytes(op, bytes, cache, library) / cache) / (FULL_NONE - FULL_ALL);
    kept = maq__max(0.0, maq__min(1.0, kept));
    return maq__over(kept * bytes, maq__fit_cache_bps(device)) + maq__over((1.0 - kept) * bytes, device->mem_bps);
}

static double bound_s(const struct maq_fit_point *p, const struct maq_op *op, const struct maq_device *device,
                      enum maq_library library)
{
    double math = maq__over(p->math_s, maq__held_share(device, MAQ_BF16));
    double memory = p->key.family == MAQ_FIT_GEMM ? loop_s(op, device, library) : p->memory_s;
    double hi = maq__max(math, memory), r = hi > 0.0 ? maq__min(math, memory) / hi : 0.0;
    return hi * sqrt(sqrt(1.0 + r * r * r * r));
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
