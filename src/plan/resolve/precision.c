/* SPDX-License-Identifier: Apache-2.0 */
/* precision.c - the types that a plan computes and stores in, and the kernels of attention: what the devices have of them. */
#include "plan/resolve/resolve.h"

static const struct precision_row {
    uint8_t math, store;
} precision_rows[MAQ_PRECISION_COUNT] = {
    [MAQ_PRECISION_FP32] = {MAQ_FP32, MAQ_FP32},         [MAQ_PRECISION_FP16] = {MAQ_FP16, MAQ_FP16},
    [MAQ_PRECISION_BF16] = {MAQ_BF16, MAQ_BF16},         [MAQ_PRECISION_FP8_DELAYED] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_FP8_CURRENT] = {MAQ_FP8, MAQ_BF16},   [MAQ_PRECISION_FP8_ROWWISE] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_FP8_BLOCKWISE] = {MAQ_FP8, MAQ_BF16}, [MAQ_PRECISION_MXFP8] = {MAQ_FP8, MAQ_BF16},
    [MAQ_PRECISION_NVFP4] = {MAQ_FP4, MAQ_BF16},
};

/* Tensor cores that take a scale with every 32 numbers (MX) or 16 (NVFP4): all that multiply 4-bit numbers. */
static bool scales_blocks(const struct maq_device *d)
{
    return d->arch == MAQ_ARCH_BLACKWELL || d->arch == MAQ_ARCH_CDNA4 || d->arch == MAQ_ARCH_OTHER ||
           d->peak_flops[MAQ_FP4] > 0;
}

void maq__resolve_precision(struct maq_resolver *r)
{
    struct maq_plan *p = &r->job->plan;
    const struct maq_cluster *c = &r->job->cluster;
    bool bf16 = true;
    for (uint32_t g = 0; g < c->n_groups; g++)
        bf16 &= c->groups[g].device.peak_flops[MAQ_BF16] > 0;
    if (p->precision == MAQ_PRECISION_AUTO)
        p->precision = bf16 ? MAQ_PRECISION_BF16 : MAQ_PRECISION_FP16;
    r->job->math_dtype = precision_rows[p->precision].math;
    r->job->store_dtype = precision_rows[p->precision].store;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_device *d = &c->groups[g].device;
        bool vector_fp32 = r->job->math_dtype == MAQ_FP32 && d->vector_flops > 0;
        if (d->peak_flops[r->job->math_dtype] <= 0 && !vector_fp32)
            MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "choose a precision that the device computes in",
                       "%s has no %s arithmetic (precision %s)", d->name,
                       maq_dtype_name((enum maq_dtype)r->job->math_dtype),
                       maq_precision_name((enum maq_precision)p->precision));
        else if (r->job->store_dtype == MAQ_BF16 && d->peak_flops[MAQ_BF16] <= 0)
            MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "use fp16", "%s has no bf16 arithmetic", d->name);
        else if (p->precision == MAQ_PRECISION_MXFP8 && !scales_blocks(d))
            MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "precision", "fp8-current, fp8-delayed and fp8-blockwise need none",
                       "%s has no arithmetic with a scale for every block of numbers (precision mxfp8)", d->name);
    }
    if (p->wide_ends && p->precision == MAQ_PRECISION_FP8_DELAYED)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "first_last_layers_bf16",
                   "fp8-current, fp8-blockwise, mxfp8 and nvfp4 can",
                   "with delayed scaling all layers share one history of scales (precision fp8-delayed)");
    if (p->fp8_output && p->precision != MAQ_PRECISION_MXFP8)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, "fp8_output_proj", "leave it out, or use precision mxfp8",
                   "the output layer is computed in 8 bits with mxfp8 alone (precision %s)",
                   maq_precision_name((enum maq_precision)p->precision));
    if (p->pure_low_precision)
        p->grad_dtype = p->optimizer_dtype = r->job->store_dtype;
    if (p->pure_low_precision && p->sharding != MAQ_SHARDING_PARAMS) /* FSDP has a type of its own for the wire */
        p->grad_reduce_dtype = r->job->store_dtype;
    if (p->grad_reduce_dtype ==
        MAQ_DTYPE_COUNT) /* FSDP's reduce_dtype is param_dtype; DDP's buckets are as the gradients */
        p->grad_reduce_dtype = p->sharding == MAQ_SHARDING_PARAMS ? r->job->store_dtype : p->grad_dtype;
}

const char *maq_precision_name(enum maq_precision precision)
{
    static const char *const names[MAQ_PRECISION_COUNT] = {
        "auto", "fp32", "fp16", "bf16", "fp8-delayed", "fp8-current", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"};
    return (unsigned)precision < MAQ_PRECISION_COUNT ? names[precision] : "?";
}

int maq_attention_on(const struct maq_plan *plan, const struct maq_device *device)
{
    bool old = device->arch == MAQ_ARCH_VOLTA || device->arch == MAQ_ARCH_TURING; /* FlashAttention-2 needs Ampere */
    if (plan->attention_backend != MAQ_ATTENTION_AUTO)
        return plan->attention_backend;
    return old ? MAQ_ATTENTION_UNFUSED : MAQ_ATTENTION_FLASH;
}

/* One for the whole plan where the devices agree; else each stage has what its own device has. */
void maq__resolve_attention(struct maq_resolver *r)
{
    const struct maq_cluster *c = &r->job->cluster;
    struct maq_plan *p = &r->job->plan;
    int first = maq_attention_on(p, &c->groups[0].device);
    for (uint32_t g = 1; g < c->n_groups; g++)
        if (maq_attention_on(p, &c->groups[g].device) != first)
            return;
    p->attention_backend = first;
}

/*
 * cuDNN's attention in 8 bits, the only one that Transformer Engine trains with (pytorch/attention/dot_product_attention/utils.py):
 * scales of tensors and of 32 numbers, the latter and current scaling from Blackwell on; under NVFP4 it has scales of tensors.
 */
void maq__resolve_fp8_attention(struct maq_resolver *r)
{
    const struct maq_cluster *c = &r->job->cluster;
    const struct maq_plan *p = &r->job->plan;
    const char *key = "fp8_dot_product_attention";
    bool delayed = p->precision == MAQ_PRECISION_FP8_DELAYED;
    if (!p->fp8_attention)
        return;
    if (!delayed && p->precision != MAQ_PRECISION_FP8_CURRENT && p->precision != MAQ_PRECISION_MXFP8 &&
        p->precision != MAQ_PRECISION_NVFP4)
        MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave it out, or use fp8-delayed, fp8-current, mxfp8 or nvfp4",
                   "no attention in 8 bits goes with precision %s",
                   maq_precision_name((enum maq_precision)p->precision));
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_device *d = &c->groups[g].device;
        if (d->arch != MAQ_ARCH_BLACKWELL && !(delayed && d->arch == MAQ_ARCH_HOPPER))
            MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave it out",
                       "no attention in 8 bits is known for %s (precision %s)", d->name,
                       maq_precision_name((enum maq_precision)p->precision));
        else if (maq_attention_on(p, d) != MAQ_ATTENTION_FLASH)
            MAQ_REFUSE(r, MAQ_CODE_PLAN_PRECISION, key, "leave attention_backend out",
                       "only cuDNN's attention has kernels in 8 bits");
    }
}
