/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - writes launches, products and waits of a library into the trace, with the bytes that a product moves. */
#include "shim/math/operator.h"

#include <stdio.h>

#include "shim/abi/cublas.h"

/* Element types of cudaDataType: as the trace has them, and how wide. The value is the index. */
static const struct {
    uint8_t type, bits, complex;
} types[] = {
    [ABI_R_32F] = {MAQ_REC_F32, 32, 0},
    [ABI_R_64F] = {MAQ_REC_F64, 64, 0},
    [ABI_R_16F] = {MAQ_REC_F16, 16, 0},
    [ABI_R_8I] = {MAQ_REC_I8, 8, 0},
    [ABI_C_32F] = {MAQ_REC_F32, 64, 1},
    [ABI_C_64F] = {MAQ_REC_F64, 128, 1},
    [ABI_C_16F] = {MAQ_REC_F16, 32, 1},
    [ABI_C_8I] = {MAQ_REC_I8, 16, 1},
    [ABI_R_8U] = {MAQ_REC_U8, 8, 0},
    [ABI_C_8U] = {MAQ_REC_U8, 16, 1},
    [ABI_R_32I] = {MAQ_REC_I32, 32, 0},
    [ABI_C_32I] = {MAQ_REC_I32, 64, 1},
    [ABI_R_32U] = {MAQ_REC_U32, 32, 0},
    [ABI_C_32U] = {MAQ_REC_U32, 64, 1},
    [ABI_R_16BF] = {MAQ_REC_BF16, 16, 0},
    [ABI_C_16BF] = {MAQ_REC_BF16, 32, 1},
    [ABI_R_4I] = {MAQ_REC_TYPE_OTHER, 4, 0},
    [ABI_R_4U] = {MAQ_REC_TYPE_OTHER, 4, 0},
    [ABI_R_16I] = {MAQ_REC_TYPE_OTHER, 16, 0},
    [ABI_R_16U] = {MAQ_REC_TYPE_OTHER, 16, 0},
    [ABI_R_64I] = {MAQ_REC_I64, 64, 0},
    [ABI_C_64I] = {MAQ_REC_I64, 128, 1},
    [ABI_R_64U] = {MAQ_REC_U64, 64, 0},
    [ABI_C_64U] = {MAQ_REC_U64, 128, 1},
    [ABI_R_8F_E4M3] = {MAQ_REC_F8E4M3, 8, 0},
    [ABI_R_8F_E5M2] = {MAQ_REC_F8E5M2, 8, 0},
    [ABI_R_8F_UE8M0] = {MAQ_REC_TYPE_OTHER, 8, 0},
    [ABI_R_6F_E2M3] = {MAQ_REC_TYPE_OTHER, 6, 0},
    [ABI_R_6F_E3M2] = {MAQ_REC_TYPE_OTHER, 6, 0},
    [ABI_R_4F_E2M1] = {MAQ_REC_F4, 4, 0},
};

static bool is_known(int t)
{
    return t >= 0 && (size_t)t < sizeof types / sizeof *types && types[t].bits != 0;
}

enum maq_rec_type math_type(int data_type)
{
    return is_known(data_type) ? (enum maq_rec_type)types[data_type].type : MAQ_REC_TYPE_OTHER;
}

unsigned math_type_bits(int data_type)
{
    return is_known(data_type) ? types[data_type].bits : 32;
}

bool math_type_is_complex(int data_type)
{
    return is_known(data_type) && types[data_type].complex;
}

bool math_launch(void *stream, const struct maq_rec_op *op, const char *name, struct math_out out)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return false;
    vg_drive();
    if (out.at != NULL)
        vg_mem_written(out.at, out.bytes);
    else if (out.bytes != 0)
        vg_mem_written_anywhere();
    vg_host(vg_card()->launch_ns);
    const uint32_t id = vg_op(op, name);
    vg_enqueue(s, (struct maq_rec){.kind = MAQ_REC_LAUNCH, .id = id, .bytes = op->bytes, .ns = (uint64_t)vg_op_ns(id)});
    return true;
}

bool math_library(void *stream, const char *name, enum maq_rec_type type, uint64_t bytes, struct math_out out)
{
    const struct maq_rec_op op = {.kind = MAQ_REC_LIBRARY, .type = (uint8_t)type, .out = (uint8_t)type, .bytes = bytes};
    return math_launch(stream, &op, name, out);
}

bool math_wait(void *stream)
{
    struct vg_stream *s = vg_stream_of(stream);
    int64_t end = 0;
    if (s == NULL)
        return false;
    vg_call();
    vg_record((struct maq_rec){.kind = MAQ_REC_STREAM_SYNC, .stream = vg_stream_ordinal(s)}, NULL);
    if (!vg_stream_end(s, &end))
        return false;
    vg_wait_until(end);
    return true;
}

static uint64_t matrix_bytes(int64_t rows, int64_t columns, int64_t batch, int type)
{
    return ((uint64_t)rows * (uint64_t)columns * (uint64_t)batch * math_type_bits(type) + 7) / 8;
}

bool math_multiply(void *stream, const struct math_product *p)
{
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return vg_stream_of(stream) != NULL;
    uint64_t bytes = matrix_bytes(p->m, p->n, p->batch, p->d) + p->extra_bytes;
    if (p->accumulates)
        bytes += matrix_bytes(p->m, p->n, p->batch, p->c);
    char name[128];
    snprintf(name, sizeof name, "%s %c%c%s", p->call, p->trans_a ? 't' : 'n', p->trans_b ? 't' : 'n', p->detail);
    if (p->k == 0) /* D = beta C: nothing is multiplied */
        return math_library(stream, name, math_type(p->d), bytes, p->out);
    bytes += matrix_bytes(p->m, p->k, p->batch, p->a) + matrix_bytes(p->k, p->n, p->batch, p->b);
    struct maq_rec_op op = {
        .kind = MAQ_REC_GEMM,
        .type = (uint8_t)(p->type == MAQ_REC_TYPE_COUNT ? math_type(p->a) : p->type),
        .out = (uint8_t)math_type(p->d),
        .flags = p->flags | (p->accumulates ? MAQ_REC_ACCUMULATES : 0u),
        .d = {p->m, p->n, p->k, p->batch},
        .bytes = bytes,
    };
    /* One complex multiply-add is four real ones. */
    if (math_type_is_complex(p->a))
        op.d[2] *= 4;
    return math_launch(stream, &op, name, p->out);
}
