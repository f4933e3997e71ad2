/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm_cache.c - what the loop that measured a kernel found in the last-level cache, and a pass through a model does not.
 *
 * Tables are measured in loops (NVIDIA ai-dynamo/aiconfigurator, collector/, one collect_*.py per library and operator, 095f58a) over copies of a
 * product's weights, and over one layer's experts, one cache of keys and values, one pool of states. Small ones come from the cache and large
 * ones do not; what comes oldest gives way first, so that either nearly all of it stays or nearly nothing. That point is another on every
 * device. Copies:
 *
 *   products    TensorRT-LLM  as many as fill the cache, five at most
 *               vLLM          six; one in blocks and in 4 bits
 *               SGLang        six, each with its own activations and output
 *   all others  one
 *
 * Kernels of 8- and 4-bit products read their activations in 16 bits and write them narrow first.
 *
 * A pass through a model reads all other layers between two reads of a weight, which is many times what a cache holds; activations come from the
 * kernel in front. So what a loop found in the cache of weights, keys, values and states comes from memory, and
 *
 *   t = t_loop + bound(math, memory + kept (1 / memory's bandwidth - 1 / the cache's) bytes) - bound(math, memory)
 *
 * with kept the share of the loop that stayed. (A token of gpt-oss on eight H200: 0.16 ms of 2.9.)
 */

#include "cost/fitted/warm_cache.h"
#include <math.h>

#include "cost/analytical/analytical.h"

#define FULL_ALL 0.75                   /* share of the cache that a loop fills up to which all of it stays, */
#define FULL_NONE 1.25                  /* and from which on nothing does; both: other_device.c */
#define INLINE_ECC_LEAVES (15.0 / 16.0) /* of the rate as of the capacity: docs/devices.md, inline_ecc */
#define LOOP_COPIES 6.0                 /* of vLLM and SGLang */
#define LOOP_COPIES_TRTLLM 5.0          /* at most */

double maq__data_share(const struct maq_device *device)
{
    return device->inline_ecc ? INLINE_ECC_LEAVES : 1.0;
}

static double memory_bps(const struct maq_device *device)
{
    return device->mem_bps * maq__data_share(device);
}

/* Bytes that a product's loop goes through before it comes back to the first. */
static double loop_bytes(const struct maq_op *op, double bytes, double cache, enum maq_library library)
{
    double weights = maq__count(op, 1) * maq__count(op, 2) * maq__weight_bytes(op), copies = LOOP_COPIES;
    if (op->kind != MAQ_OP_GEMM)
        return bytes;
    if (library == MAQ_LIBRARY_SGLANG)
        return copies * bytes;
    if (library == MAQ_LIBRARY_TRTLLM)
        copies = maq__max(1.0, maq__min(LOOP_COPIES_TRTLLM, weights > 0.0 ? ceil(cache / weights) : 1.0));
    else if ((op->flags & MAQ_OP_BLOCKS) || op->dtype == MAQ_FP4)
        copies = 1.0;
    return bytes + (copies - 1.0) * weights;
}

static double all_bytes(const struct maq_op *op)
{
    double bytes = maq_op_work(op).bytes;
    if (op->kind == MAQ_OP_GEMM && maq_dtype_bytes((enum maq_dtype)op->dtype) < 2.0)
        bytes += 3.0 * maq__count(op, 0) * maq__count(op, 2);
    return bytes;
}

/* Share of its bytes that the loop found in the cache. */
static double kept_share(const struct maq_op *op, const struct maq_device *device, enum maq_library library)
{
    double cache = maq__max(device->l2_bytes, 0.0), kept = 0.0;
    if (cache > 0.0)
        kept = (FULL_NONE - loop_bytes(op, all_bytes(op), cache, library) / cache) / (FULL_NONE - FULL_ALL);
    return maq__max(0.0, maq__min(1.0, kept));
}

double maq__warm_memory_s(const struct maq_op *op, const struct maq_device *device, enum maq_library library)
{
    double bytes = all_bytes(op), kept = kept_share(op, device, library);
    return maq__over(kept * bytes, maq__fit_cache_bps(device)) + maq__over((1.0 - kept) * bytes, memory_bps(device));
}

/* Weights, keys and values, states: what nobody wrote or read since the pass before. */
static double stored_bytes(const struct maq_op *op)
{
    double work = maq_op_work(op).bytes;
    switch ((int)op->kind) {
    case MAQ_OP_GEMM:
        return maq__count(op, 3) > 1.0 ? 0.0 : maq__count(op, 1) * maq__count(op, 2) * maq__weight_bytes(op);
    case MAQ_OP_EXPERTS:
        return maq__count(op, 3) * maq__count(op, 1) * maq__count(op, 2) * (op->flags & MAQ_OP_GATED ? 3.0 : 2.0) *
               maq__weight_bytes(op);
    case MAQ_OP_ATTENTION:
    case MAQ_OP_DELTA_RULE:
        return op->queries == 1 ? work : 0.0; /* of a token little else */
    default:
        return 0.0;
    }
}

double maq__cold_s(const struct maq_op *op, const struct maq_fit_point *point, const struct maq_device *device,
                   enum maq_library library)
{
    double stored = kept_share(op, device, library) * maq__min(stored_bytes(op), maq_op_work(op).bytes);
    double warm = maq__warm_memory_s(op, device, library),
           more = maq__over(stored, memory_bps(device)) - maq__over(stored, maq__fit_cache_bps(device));
    return maq__overlap_s(point->math_s, warm + maq__max(more, 0.0)) - maq__overlap_s(point->math_s, warm);
}
