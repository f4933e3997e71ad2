/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - which operators, collectives and messages the kernels of a profiler trace are.
 *
 * A kernel is known by its name and launch shape. Where the trace was recorded with shapes (record_shapes=True), the host's
 * operator that launched it says more, and a kernel that by its name does the work of a matrix product or of attention becomes one:
 *
 *   operator of the host                         tensors                                   becomes
 *   mm, addmm, bmm, baddbmm, linear, _scaled_mm  [.., m, k] x [.., k, n]                   GEMM; row-major, so cuBLAS' m is n
 *   *attention* of ATen                          q [b, h, s, d], k [b, h_kv, s_kv, d]      ATTENTION
 *   flash_attn forward                           q [b, s, h, d], k [b, s_kv, h_kv, d]      ATTENTION
 *   the same with "backward"                     after the gradient of the output          ATTENTION_BWD
 *   native_layer_norm, rms_norm                  [.., columns]                             NORM
 *
 * Whether attention is causal is not in a trace: it is left out of the operator.
 *
 * A kernel of NCCL's is a collective or a message of the process group that its arguments name (torch 2.2 and later write them).
 * Without them its name says what it is, and the group is the whole job; its size is then unknown (0).
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "capture/import/kineto/kineto.h"

/* --- types ------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name; /* as torch calls it, and as NCCL's kernels do */
    enum maq_rec_type type;
    uint32_t bytes;
} types[] = {
    {"BFloat16", MAQ_REC_BF16, 2},
    {"Half", MAQ_REC_F16, 2},
    {"Float", MAQ_REC_F32, 4},
    {"Double", MAQ_REC_F64, 8},
    {"Long", MAQ_REC_I64, 8},
    {"Int", MAQ_REC_I32, 4},
    {"Char", MAQ_REC_I8, 1},
    {"Byte", MAQ_REC_U8, 1},
    {"Bool", MAQ_REC_U8, 1},
    {"Float8_e4m3fn", MAQ_REC_F8E4M3, 1},
    {"Float8_e5m2", MAQ_REC_F8E5M2, 1},
    {"bf16", MAQ_REC_BF16, 2},
    {"f16", MAQ_REC_F16, 2},
    {"f32", MAQ_REC_F32, 4},
    {"float", MAQ_REC_F32, 4},
    {"double", MAQ_REC_F64, 8},
};

/* "c10::BFloat16", "BFloat16", "bf16". */
static enum maq_rec_type type_of(const char *name, uint32_t *bytes)
{
    *bytes = 0;
    if (name && strncmp(name, "c10::", 5) == 0)
        name += 5;
    for (size_t i = 0; name && i < MAQ_COUNT(types); i++)
        if (strcmp(name, types[i].name) == 0) {
            *bytes = types[i].bytes;
            return types[i].type;
        }
    return MAQ_REC_TYPE_OTHER;
}

/* --- operators -------------------------------------------------------------------------------------------------------- */

static bool has(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static bool multiplies(const char *kernel)
{
    static const char *const words[] = {"gemm", "cutlass", "nvjet", "xmma", "wgmma", "cublas", "matmul"};
    return has(kernel, words, MAQ_COUNT(words));
}

static bool attends(const char *kernel)
{
    static const char *const words[] = {"flash", "fmha", "attention", "attn", "sdpa"};
    return has(kernel, words, MAQ_COUNT(words));
}

/* The i-th tensor from the end of its dimensions: dim(s, 1, 1) is the last of the second tensor. 0 where there is none. */
static int64_t dim(const struct maq_kineto_shape *s, uint32_t tensor, uint32_t from_end)
{
    uint32_t n = s->n_dims[tensor];
    return from_end > n || from_end == 0 ? 0 : s->dim[tensor][n - from_end];
}

/* Product of the dimensions in front of the last `but`. */
static int64_t rows(const struct maq_kineto_shape *s, uint32_t tensor, uint32_t but)
{
    int64_t product = 1;
    for (uint32_t i = 0; i + but < s->n_dims[tensor]; i++) {
        int64_t d = s->dim[tensor][i];
        if (d <= 0 || product > (INT64_C(1) << 46) / d)
            return 0;
        product *= d;
    }
    return product;
}

static bool as_gemm(struct maq_rec_op *op, const char *host, const struct maq_kineto_shape *s)
{
    static const struct {
        const char *name;
        uint32_t first; /* tensor that is the left factor */
        bool bias, transposed;
    } known[] = {{"aten::mm", 0, false, false},      {"aten::addmm", 1, true, false},
                 {"aten::bmm", 0, false, false},     {"aten::baddbmm", 1, true, false},
                 {"aten::linear", 0, false, true},   {"aten::_scaled_mm", 0, false, false},
                 {"aten::_int_mm", 0, false, false}, {"aten::_addmm_activation", 1, true, false}};
    for (size_t i = 0; i < MAQ_COUNT(known); i++) {
        if (strcmp(host, known[i].name) != 0)
            continue;
        uint32_t a = known[i].first, b = a + 1;
        bool batched = s->n_dims[b] == 3;
        int64_t m = batched ? dim(s, a, 2) : rows(s, a, 1), k = dim(s, a, 1);
        int64_t n = known[i].transposed ? dim(s, b, 2) : dim(s, b, 1), inner = dim(s, b, known[i].transposed ? 1 : 2);
        if (m <= 0 || n <= 0 || k <= 0 || inner != k)
            return false;
        op->kind = MAQ_REC_GEMM;
        op->flags = known[i].bias ? MAQ_REC_BIAS : 0;
        op->d[0] = n;
        op->d[1] = m;
        op->d[2] = k;
        op->d[3] = batched ? dim(s, a, 3) : 1;
        return true;
    }
    return false;
}

static bool as_attention(struct maq_rec_op *op, const char *host, const struct maq_kineto_shape *s)
{
    bool back = strstr(host, "backward") != NULL, flash = strncmp(host, "flash_attn::", 12) == 0;
    flash |= strncmp(host, "aten::_flash_attention", 22) == 0 || strncmp(host, "aten::_efficient_attention", 26) == 0;
    if (!flash && strncmp(host, "aten::_scaled_dot_product", 25) != 0)
        return false;
    uint32_t q = back ? 1 : 0, k = q + 1;
    if (s->n_dims[q] != 4 || s->n_dims[k] != 4)
        return false;
    uint32_t heads = flash ? 2 : 3, length = flash ? 3 : 2; /* places from the end */
    int64_t d[6] = {dim(s, q, 4),      dim(s, q, heads),  dim(s, k, heads),
                    dim(s, q, length), dim(s, k, length), dim(s, q, 1)};
    for (int i = 0; i < 6; i++)
        if (d[i] <= 0)
            return false;
    op->kind = back ? MAQ_REC_ATTENTION_BWD : MAQ_REC_ATTENTION;
    memcpy(op->d, d, sizeof d);
    return true;
}

static bool as_norm(struct maq_rec_op *op, const char *host, const struct maq_kineto_shape *s)
{
    bool back = strstr(host, "backward") != NULL;
    if (!strstr(host, "layer_norm") && !strstr(host, "rms_norm"))
        return false;
    if (rows(s, 0, 1) <= 0 || dim(s, 0, 1) <= 0)
        return false;
    op->kind = back ? MAQ_REC_NORM_BWD : MAQ_REC_NORM;
    op->d[0] = rows(s, 0, 1);
    op->d[1] = dim(s, 0, 1);
    return true;
}

uint32_t maq_kineto_op(struct maq_import_job *job, const struct maq_kineto_event *kernel,
                       const struct maq_kineto_event *above)
{
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL, .type = MAQ_REC_TYPE_OTHER, .out = MAQ_REC_TYPE_OTHER};
    const struct maq_kineto_shape *s = above ? above->u.shape : NULL;
    memcpy(op.grid, kernel->u.kernel.grid, sizeof op.grid);
    memcpy(op.block, kernel->u.kernel.block, sizeof op.block);
    op.shared = kernel->u.kernel.shared;
    bool known = s && multiplies(kernel->name) && as_gemm(&op, above->name, s);
    known = known || (s && attends(kernel->name) && as_attention(&op, above->name, s));
    known = known || (s && strcasestr(kernel->name, "norm") && as_norm(&op, above->name, s));
    if (known) {
        uint32_t bytes;
        op.type = op.out = (uint8_t)type_of(s->type, &bytes);
    }
    return maq_import_op(job, &op, maq_str_of(kernel->name));
}

/* --- collectives ------------------------------------------------------------------------------------------------------ */

bool maq_kineto_is_nccl(const struct maq_kineto_event *kernel)
{
    return strncmp(kernel->name, "nccl", 4) == 0 || kernel->u.kernel.coll != NULL;
}

enum amount { OF_INPUT, OF_OUTPUT, OF_INPUT_SHARE };

/* By torch's names, and by those of NCCL's kernels. */
static const struct {
    const char *word;
    enum maq_rec_kind kind;
    enum maq_rec_coll coll;
    enum amount amount;
} colls[] = {
    {"allreduce", MAQ_REC_COLL, MAQ_REC_ALL_REDUCE, OF_INPUT},
    {"reduce_scatter", MAQ_REC_COLL, MAQ_REC_REDUCE_SCATTER, OF_OUTPUT},
    {"reducescatter", MAQ_REC_COLL, MAQ_REC_REDUCE_SCATTER, OF_OUTPUT},
    {"allgather", MAQ_REC_COLL, MAQ_REC_ALL_GATHER, OF_INPUT},
    {"all_gather", MAQ_REC_COLL, MAQ_REC_ALL_GATHER, OF_INPUT},
    {"alltoall", MAQ_REC_COLL, MAQ_REC_ALL_TO_ALL, OF_INPUT_SHARE},
    {"all_to_all", MAQ_REC_COLL, MAQ_REC_ALL_TO_ALL, OF_INPUT_SHARE},
    {"broadcast", MAQ_REC_COLL, MAQ_REC_BROADCAST, OF_INPUT},
    {"barrier", MAQ_REC_COLL, MAQ_REC_ALL_REDUCE, OF_INPUT},
    {"gather", MAQ_REC_COLL, MAQ_REC_GATHER, OF_INPUT},
    {"scatter", MAQ_REC_COLL, MAQ_REC_SCATTER, OF_OUTPUT},
    {"reduce", MAQ_REC_COLL, MAQ_REC_REDUCE, OF_INPUT},
    {"send", MAQ_REC_SEND, MAQ_REC_P2P_PAIR, OF_INPUT},
    {"recv", MAQ_REC_RECV, MAQ_REC_P2P_PAIR, OF_OUTPUT},
};

static const struct maq_kineto_group *find_group(const struct maq_kineto *k, const char *name)
{
    for (uint32_t i = 0; name && i < k->n_groups; i++)
        if (k->group[i].name && strcmp(k->group[i].name, name) == 0)
            return &k->group[i];
    return NULL;
}

/* The communicator that a kernel runs on: of the group that it names, or of all ranks. */
static uint32_t comm_of(struct maq_import_job *job, struct maq_import_rank *rank, const struct maq_kineto *k,
                        const struct maq_kineto_coll *c)
{
    const struct maq_kineto_group *group = c ? find_group(k, c->group) : NULL;
    const char *name = c && c->group_desc && c->group_desc[0] ? c->group_desc : c ? c->group : NULL;
    uint32_t n = c && c->n_members > 0 ? c->n_members : group ? group->n_members : 0;
    const uint32_t *member = c && c->n_members > 0 ? c->member : group ? group->member : NULL;
    if (group && group->desc && group->desc[0])
        name = group->desc;
    uint32_t said = c && c->size > 0 && c->size <= MAQ_IMPORT_WORLD ? (uint32_t)c->size : 0;
    if (n > 0 && (said == 0 || said == n))
        return maq_import_comm(job, rank, maq_str_of(name), member, n);
    uint32_t world = job->world ? job->world : 1;
    if (said != 0 && said != world)
        return maq_import_comm(job, rank, maq_str_of(name), NULL, said);
    const uint32_t *all = maq_import_everyone(job, world);
    return all ? maq_import_comm(job, rank, maq_str_of(name), all, world) : 0;
}

/* Position of a global rank in a communicator; MAQ_REC_NONE. */
static uint32_t position_in(const struct maq_import_comm *c, int64_t rank)
{
    for (uint32_t i = 0; c->member && rank >= 0 && i < c->size; i++)
        if (c->member[i] == (uint64_t)rank)
            return i;
    return MAQ_REC_NONE;
}

static uint64_t bytes_of(const struct maq_kineto_coll *c, enum amount amount, uint32_t each, uint32_t size)
{
    int64_t n = amount == OF_OUTPUT ? c->out : c->in;
    if (n <= 0 || n > INT64_C(1) << 48)
        return 0;
    return (uint64_t)n * each / (amount == OF_INPUT_SHARE && size > 0 ? size : 1);
}

bool maq_kineto_occurrence(struct maq_kineto_occurrence *out, struct maq_import_job *job, struct maq_import_rank *rank,
                           const struct maq_kineto *k, const struct maq_kineto_event *kernel)
{
    const struct maq_kineto_coll *c = kernel->u.kernel.coll;
    const char *name = c && c->name ? c->name : kernel->name;
    size_t i = 0;
    while (i < MAQ_COUNT(colls) && !strcasestr(name, colls[i].word))
        i++;
    bool message = i < MAQ_COUNT(colls) && colls[i].kind != MAQ_REC_COLL;
    if (i == MAQ_COUNT(colls) || (message && (!c || !c->name)) || rank->n_comms >= UINT16_MAX)
        return false; /* "ncclDevKernel_SendRecv" alone does not say which */
    uint32_t each, ordinal = comm_of(job, rank, k, c);
    if (job->failed)
        return false;
    struct maq_import_comm *comm = &rank->comm[ordinal];
    *out = (struct maq_kineto_occurrence){
        .kind = colls[i].kind, .coll = colls[i].coll, .comm = ordinal, .arg = MAQ_REC_NONE};
    out->type = type_of(c ? c->type : NULL, &each);
    out->bytes = c ? bytes_of(c, colls[i].amount, each, comm->size) : 0;
    if (message) {
        out->arg = position_in(comm, colls[i].kind == MAQ_REC_SEND ? c->dst : c->src);
        if (out->arg == MAQ_REC_NONE || comm->position == UINT32_MAX)
            return false;
        comm->messages = true;
    }
    return true;
}
