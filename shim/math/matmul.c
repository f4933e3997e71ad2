/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c - cublasLtMatmul and cublasLtMatrixTransform.
 *
 * D = epilogue(alpha op(A) op(B) + beta C). Sizes come from the layouts: m x n are those of D, k is what A has besides m.
 * A row-major layout is the transposed column-major one: all four in row order are the product B' A' of column order.
 * Epilogues cost what they move: a bias of m elements (or its gradient), and an auxiliary m x n of the type given, where a
 * ReLU's mask is one bit for each element ("cublasLtEpilogue_t").
 */
#include <stdio.h>
#include <string.h>

#include "shim/math/blas.h"
#include "shim/math/cublaslt.h"

static enum maq_rec_type fed_with(const struct lt_desc *d, int type)
{
    if (math_type(type) != MAQ_REC_F32)
        return math_type(type);
    switch (d->compute) {
    case ABI_COMPUTE_32F_FAST_TF32:
        return MAQ_REC_TF32;
    case ABI_COMPUTE_32F_FAST_16F:
        return MAQ_REC_F16;
    case ABI_COMPUTE_32F_FAST_16BF:
        return MAQ_REC_BF16;
    default:
        return MAQ_REC_F32;
    }
}

static bool beta_is_zero(const struct lt_desc *d, const void *beta, const void *c)
{
    const int mode = d->pointer_mode;
    if (mode == ABI_LT_ALPHA_DEVICE_BETA_ZERO || c == NULL)
        return true;
    const bool on_device = mode != ABI_POINTERS_OF_HOST && mode != ABI_LT_ALPHA_DEVICE_BETA_HOST;
    return blas_is_zero(beta, math_type_bits(d->scale_type) / 8, on_device);
}

/* Flags, words and bytes of the epilogue. */
static void finish(struct math_product *p, const struct lt_desc *d, char detail[64])
{
    static const struct {
        uint32_t bits, flag;
        const char *word;
    } words[] = {
        {ABI_LT_RELU, MAQ_REC_ACTIVATION, " relu"},
        {ABI_LT_GELU, MAQ_REC_ACTIVATION, " gelu"},
        {ABI_LT_DRELU, MAQ_REC_ACTIVATION, " drelu"},
        {ABI_LT_DGELU, MAQ_REC_ACTIVATION, " dgelu"},
        {ABI_LT_USES_AUX, 0, " aux"},
        {ABI_LT_ADDS_BIAS, MAQ_REC_BIAS, " bias"},
        {ABI_LT_BGRAD, MAQ_REC_BIAS, " bgrad"},
        {ABI_LT_BGRAD_A, MAQ_REC_BIAS, " bgrada"},
        {ABI_LT_BGRAD_B, MAQ_REC_BIAS, " bgradb"},
    };
    const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, batch = (uint64_t)p->batch;
    size_t used = 0;
    detail[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((d->epilogue & words[i].bits) != 0) {
            p->flags |= words[i].flag;
            used += (size_t)snprintf(detail + used, 64 - used, "%s", words[i].word);
        }
    const unsigned bias_bits = math_type_bits(d->bias_type >= 0 ? d->bias_type : p->d);
    if ((d->epilogue & (ABI_LT_ADDS_BIAS | ABI_LT_BGRAD | ABI_LT_BGRAD_A)) != 0)
        p->extra_bytes += m * bias_bits / 8;
    if ((d->epilogue & ABI_LT_BGRAD_B) != 0)
        p->extra_bytes += n * bias_bits / 8;
    if ((d->epilogue & ABI_LT_USES_AUX) != 0) {
        const bool mask = (d->epilogue & (ABI_LT_RELU | ABI_LT_DRELU)) != 0;
        const unsigned bits = mask ? 1 : math_type_bits(d->aux_type >= 0 ? d->aux_type : p->d);
        p->extra_bytes += m * n * batch * bits / 8;
    }
    p->detail = detail;
}

MATH_API(int, cublasLtMatmul, void *handle, const struct lt_desc *desc, const void *alpha, const void *a,
         const struct lt_layout *la, const void *b, const struct lt_layout *lb, const void *beta, const void *c,
         const struct lt_layout *lc, void *d, const struct lt_layout *ld, const struct abi_lt_algo *algo,
         void *workspace, size_t workspace_bytes, void *stream)
{
    char detail[64];
    (void)handle, (void)alpha, (void)algo, (void)workspace, (void)workspace_bytes;
    if (desc == NULL || la == NULL || lb == NULL || ld == NULL || a == NULL || b == NULL || d == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    const bool row_a = la->order == ABI_LT_ORDER_ROW, row_b = lb->order == ABI_LT_ORDER_ROW;
    struct math_product p = {
        .m = (int64_t)ld->rows,
        .n = (int64_t)ld->cols,
        .k = (int64_t)(desc->trans_a != 0 ? la->rows : la->cols),
        .batch = ld->batch,
        .trans_a = (desc->trans_a != 0) != row_a,
        .trans_b = (desc->trans_b != 0) != row_b,
        .accumulates = !beta_is_zero(desc, beta, c),
        .a = la->type,
        .b = lb->type,
        .c = lc != NULL ? lc->type : ld->type,
        .d = ld->type,
        .type = fed_with(desc, la->type),
        .call = "cublasLtMatmul",
        .out = {d, ((uint64_t)(ld->batch - 1) * (uint64_t)ld->stride +
                    (uint64_t)ld->ld * (ld->order == ABI_LT_ORDER_ROW ? ld->rows : ld->cols)) *
                       math_type_bits(ld->type) / 8},
    };
    if ((desc->trans_a != 0 ? la->cols : la->rows) != ld->rows ||
        (desc->trans_b != 0 ? lb->rows : lb->cols) != ld->cols ||
        (int64_t)(desc->trans_b != 0 ? lb->cols : lb->rows) != p.k || p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0)
        return ABI_CUBLAS_INVALID_VALUE;
    finish(&p, desc, detail);
    if (ld->order == ABI_LT_ORDER_ROW) { /* D' = op(B)' op(A)' in column order */
        const bool trans = p.trans_a;
        const int64_t m = p.m;
        const int type = p.a;
        p.trans_a = !p.trans_b;
        p.trans_b = !trans;
        p.m = p.n;
        p.n = m;
        p.a = p.b;
        p.b = type;
    }
    vg_lock();
    if ((desc->epilogue & ABI_LT_USES_AUX) != 0 && (desc->epilogue & (ABI_LT_DRELU | ABI_LT_DGELU)) == 0)
        vg_mem_written((const void *)(uintptr_t)desc->aux, ld->rows * ld->cols * (uint64_t)ld->batch * 8);
    if ((desc->epilogue & (ABI_LT_BGRAD | ABI_LT_BGRAD_A | ABI_LT_BGRAD_B)) != 0)
        vg_mem_written((const void *)(uintptr_t)desc->bias, (ld->rows + ld->cols) * 8);
    const bool ok = math_multiply(stream, &p);
    vg_unlock();
    return ok ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_EXECUTION_FAILED;
}

MATH_API(int, cublasLtMatrixTransform, void *handle, const struct lt_transform *desc, const void *alpha, const void *a,
         const struct lt_layout *la, const void *beta, const void *b, const struct lt_layout *lb, void *c,
         const struct lt_layout *lc, void *stream)
{
    (void)handle, (void)alpha, (void)a, (void)beta;
    if (desc == NULL || lc == NULL)
        return ABI_CUBLAS_INVALID_VALUE;
    const struct lt_layout *all[] = {a != NULL ? la : NULL, b != NULL ? lb : NULL, lc};
    uint64_t bytes = 0;
    for (unsigned i = 0; i < 3; i++)
        if (all[i] != NULL)
            bytes += all[i]->rows * all[i]->cols * (uint64_t)all[i]->batch * math_type_bits(all[i]->type) / 8;
    const struct math_out out = {c, lc->rows * lc->cols * (uint64_t)lc->batch * math_type_bits(lc->type) / 8};
    vg_lock();
    const bool ok = math_library(stream, "cublasLtMatrixTransform", math_type(lc->type), bytes, out);
    vg_unlock();
    return ok ? ABI_CUBLAS_SUCCESS : ABI_CUBLAS_EXECUTION_FAILED;
}
