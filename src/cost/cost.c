/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c - the cost of an operator from the first source that has it, with the source's relative error.
 *
 * Measured costs come first (cost/measured/measured.c), then fitted ones (cost/fitted/fitted.c), then the analytical ones. The
 * analytical `error` is the standard deviation of the relative error that docs/cost-model.md reports for the kind of operator,
 * rounded up; it is larger for kinds of which there is no public measurement.
 */
#include <math.h>

#include "cost/analytical/analytical.h"
#include "cost/analytical/composite.h"
#include "cost/fitted/table.h"
#include "cost/measured/measured.h"

static double op_s(const struct maq_op *op, const struct maq_device *device, float *error);

static double parts_s(const struct maq_op *op, const struct maq_device *device)
{
    struct maq_op_list parts;
    double sum = 0.0;
    float error;
    maq__op_parts(&parts, op);
    for (uint32_t i = 0; i < parts.n; i++)
        sum += op_s(&parts.at[i], device, &error);
    return sum;
}

/* Bytes from NVMe are read into buffers of host memory while others go up from there. */
static double copy_bps(const struct maq_op *op, const struct maq_device *device)
{
    double link = device->host_copy_bps > 0.0 ? device->host_copy_bps : device->host_bps;
    bool reads = op->d[1] == MAQ_COPY_NVME && device->nvme_read_bps > 0;
    return reads ? fmin(link, device->nvme_read_bps) : link;
}

static double op_s(const struct maq_op *op, const struct maq_device *device, float *error)
{
    switch ((enum maq_op_kind)op->kind) {
    case MAQ_OP_GEMM:
        *error = 0.15f;
        return maq__gemm_s(op, device);
    case MAQ_OP_GROUPED_GEMM:
        *error = 0.30f;
        return maq__gemm_s(op, device);
    case MAQ_OP_ATTENTION:
        *error = 0.18f;
        return maq__attention_s(op, device);
    case MAQ_OP_ATTENTION_BWD:
        *error = 0.25f;
        return maq__attention_s(op, device);
    case MAQ_OP_SSM_SCAN:
    case MAQ_OP_SSM_SCAN_BWD:
    case MAQ_OP_DELTA_RULE:
    case MAQ_OP_DELTA_RULE_BWD:
        *error = 0.50f;
        return maq__scan_s(op, device);
    case MAQ_OP_HOST_COPY:
        *error = 0.15f;
        return maq__over(maq__count(op, 0), copy_bps(op, device));
    case MAQ_OP_GAP:
        *error = 0.0f;
        return maq__count(op, 0) * 1e-9;
    case MAQ_OP_SOFTMAX:
    case MAQ_OP_SOFTMAX_BWD:
    case MAQ_OP_NORM:
    case MAQ_OP_NORM_BWD:
    case MAQ_OP_ACTIVATION:
    case MAQ_OP_ACTIVATION_BWD:
    case MAQ_OP_ELEMENTWISE:
    case MAQ_OP_ROPE:
    case MAQ_OP_EMBEDDING:
    case MAQ_OP_EMBEDDING_BWD:
    case MAQ_OP_CROSS_ENTROPY:
    case MAQ_OP_CROSS_ENTROPY_BWD:
    case MAQ_OP_ROUTER:
    case MAQ_OP_PERMUTE:
    case MAQ_OP_QUANTIZE:
    case MAQ_OP_CONV1D:
    case MAQ_OP_CONV1D_BWD:
    case MAQ_OP_SELECTIVE_SCAN:
    case MAQ_OP_SELECTIVE_SCAN_BWD:
    case MAQ_OP_OPTIMIZER:
        *error = 0.30f;
        return maq__pointwise_s(op, device);
    case MAQ_OP_EXPERTS:
    case MAQ_OP_MLA_BLOCK:
        *error = 0.35f;
        return parts_s(op, device);
    case MAQ_OP_NONE:
    case MAQ_OP_KIND_COUNT:
        break;
    }
    *error = 0.0f;
    return 0.0;
}

struct maq_cost maq_cost_op(const struct maq_costs *costs, const struct maq_op *op, const struct maq_device *device)
{
    static const struct maq_costs all;
    struct maq_cost cost;
    costs = costs ? costs : &all;
    if (op->kind == MAQ_OP_QUANTIZE && op->d[3] > 1) { /* the same work in more kernels */
        struct maq_op one = *op;
        one.d[3] = 0;
        cost = maq_cost_op(costs, &one, device);
        cost.seconds += (maq__count(op, 3) - 1.0) * maq__kernel_traits(device)->kernel_s;
        return cost;
    }
    if (maq_measured_op(&cost, costs, op, device) || maq__fitted_op(&cost, costs, op, device))
        return cost;
    cost = (struct maq_cost){.provider = MAQ_PROVIDER_ANALYTICAL};
    bool attention = op->kind == MAQ_OP_ATTENTION || op->kind == MAQ_OP_ATTENTION_BWD;
    struct maq_device loop = costs->burst || attention ? maq__device_in_bursts(device)
                             : costs->short_run        ? maq__device_in_short_run(device)
                                                       : *device;
    double s = op_s(op, &loop, &cost.error);
    if (attention && !costs->burst)
        s = maq__under_load_s(s, op, device, costs);
    cost.seconds = s >= 0.0 ? maq__min(s, MAQ_FOREVER_S) : s < 0.0 ? 0.0 : MAQ_FOREVER_S; /* the last for a NaN */
    return cost;
}
