/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_graph.c - what a graph of cuDNN's operations is, as an operator of the trace.
 *
 *   attention         an operation of that name, or products with an exponential between them: two of them forward, five
 *                     backward (the scores again, and the gradients of V, of the scores, of Q and of K)
 *   convolution       any of the three: flop = 2 * elements(output) * elements(filter) / output channels
 *   norm              rows = elements(X) / elements(scale)
 *   product           one matmul: C[M,N] = A[M,K] B[K,N] is column-major m = N, n = M
 *   anything else     its bytes
 *
 * Causal is: rows >= columns, as a comparison or as that of a band mask. Sizes of attention are those of the
 * first product of two tensors that lie in memory: Q[b,h,s,d] by K'[b,h,d,s].
 *
 * Bytes are those of the tensors that lie in memory, each once.
 */
#include <stdio.h>

#include "shim/math/dnn.h"

/* Of cudnnDataType_t; the value is the index. */
static const struct {
    uint8_t type, bits;
} types[] = {
    [ABI_CUDNN_FLOAT] = {MAQ_REC_F32, 32},        [ABI_CUDNN_DOUBLE] = {MAQ_REC_F64, 64},
    [ABI_CUDNN_HALF] = {MAQ_REC_F16, 16},         [ABI_CUDNN_INT8] = {MAQ_REC_I8, 8},
    [ABI_CUDNN_INT32] = {MAQ_REC_I32, 32},        [ABI_CUDNN_UINT8] = {MAQ_REC_U8, 8},
    [ABI_CUDNN_BFLOAT16] = {MAQ_REC_BF16, 16},    [ABI_CUDNN_INT64] = {MAQ_REC_I64, 64},
    [ABI_CUDNN_BOOLEAN] = {MAQ_REC_BIT, 1},       [ABI_CUDNN_FP8_E4M3] = {MAQ_REC_F8E4M3, 8},
    [ABI_CUDNN_FP8_E5M2] = {MAQ_REC_F8E5M2, 8},   [ABI_CUDNN_FP8_E8M0] = {MAQ_REC_TYPE_OTHER, 8},
    [ABI_CUDNN_FP4_E2M1] = {MAQ_REC_F4, 4},       [ABI_CUDNN_INT4] = {MAQ_REC_TYPE_OTHER, 4},
    [ABI_CUDNN_UINT4] = {MAQ_REC_TYPE_OTHER, 4},  [ABI_CUDNN_UINT32] = {MAQ_REC_U32, 32},
    [ABI_CUDNN_COMPLEX_FP32] = {MAQ_REC_F32, 64}, [ABI_CUDNN_COMPLEX_FP64] = {MAQ_REC_F64, 128},
};

static bool is_known(int t)
{
    return t >= 0 && (size_t)t < sizeof types / sizeof *types && types[t].bits != 0;
}

enum maq_rec_type dnn_type(int data_type)
{
    return is_known(data_type) ? (enum maq_rec_type)types[data_type].type : MAQ_REC_TYPE_OTHER;
}

unsigned dnn_type_bits(int data_type)
{
    return is_known(data_type) ? types[data_type].bits : 32;
}

/* --- tensors ------------------------------------------------------------------------------------------------------------- */

static int64_t rank_of(const struct dnn_descriptor *tensor)
{
    const struct dnn_attribute *a = dnn_find(tensor, ABI_CUDNN_TENSOR_DIMENSIONS);
    return a != NULL && a->type == ABI_CUDNN_TYPE_INT64 ? a->n : 0;
}

/* Dimension i, counted from the end where i < 0; 1 where the tensor has none there. */
static int64_t dim(const struct dnn_descriptor *tensor, int64_t i)
{
    const int64_t rank = rank_of(tensor);
    const int64_t at = i < 0 ? rank + i : i;
    return at >= 0 && at < rank ? ((const int64_t *)dnn_find(tensor, ABI_CUDNN_TENSOR_DIMENSIONS)->value)[at] : 1;
}

static int64_t elements(const struct dnn_descriptor *tensor)
{
    int64_t n = 1;
    for (int64_t i = 0; i < rank_of(tensor); i++)
        n *= dim(tensor, i);
    return n;
}

static bool in_memory(const struct dnn_descriptor *tensor)
{
    return tensor != NULL && tensor->kind == ABI_CUDNN_TENSOR &&
           dnn_number(tensor, ABI_CUDNN_TENSOR_IS_VIRTUAL, 0) == 0 &&
           dnn_number(tensor, ABI_CUDNN_TENSOR_IS_BY_VALUE, 0) == 0;
}

static int type_of(const struct dnn_descriptor *tensor)
{
    return (int)dnn_number(tensor, ABI_CUDNN_TENSOR_TYPE, ABI_CUDNN_FLOAT);
}

/* Bytes from its first element to the end of its last; those of its elements where no strides are given. */
static uint64_t reach(const struct dnn_descriptor *tensor)
{
    const struct dnn_attribute *strides = dnn_find(tensor, ABI_CUDNN_TENSOR_STRIDES);
    const bool given = strides != NULL && strides->type == ABI_CUDNN_TYPE_INT64 && strides->n == rank_of(tensor);
    uint64_t last = given ? 0 : (uint64_t)elements(tensor) - 1;
    for (int64_t i = 0; given && i < strides->n; i++)
        last += (uint64_t)(dim(tensor, i) - 1) * (uint64_t)((const int64_t *)strides->value)[i];
    return ((last + 1) * dnn_type_bits(type_of(tensor)) + 7) / 8;
}

/* --- a walk over the operations ------------------------------------------------------------------------------------------- */

enum { MAX_TENSORS = 256 };
struct view {
    unsigned products, convolutions, norms_fwd, norms_bwd, pointwise, exponentials, all;
    bool causal, bias, activation;
    const struct dnn_descriptor *attention, *product, *first_product, *convolution, *norm; /* the operation */
    const struct dnn_descriptor *tensor[MAX_TENSORS];                                      /* in memory, each once */
    unsigned n_tensors;
};

static void see_tensor(struct view *v, const struct dnn_descriptor *t)
{
    const int64_t uid = dnn_number(t, ABI_CUDNN_TENSOR_UID, -1);
    for (unsigned i = 0; i < v->n_tensors; i++)
        if (dnn_number(v->tensor[i], ABI_CUDNN_TENSOR_UID, -2) == uid)
            return;
    if (in_memory(t) && v->n_tensors < MAX_TENSORS)
        v->tensor[v->n_tensors++] = t;
}

static void see_pointwise(struct view *v, const struct dnn_descriptor *operation)
{
    const struct dnn_descriptor *b = dnn_child(operation, ABI_CUDNN_OP_POINTWISE_B, 0);
    v->pointwise++;
    switch (dnn_number(dnn_child(operation, ABI_CUDNN_OP_POINTWISE_DESC, 0), ABI_CUDNN_POINTWISE_MODE, -1)) {
    case ABI_CUDNN_POINTWISE_EXP:
        v->exponentials++;
        break;
    case ABI_CUDNN_POINTWISE_CMP_GE:
        v->causal = true;
        break;
    case ABI_CUDNN_POINTWISE_ADD:
        v->bias = v->bias || (in_memory(b) && dim(b, -2) == 1);
        break;
    case ABI_CUDNN_POINTWISE_RELU:
    case ABI_CUDNN_POINTWISE_GELU:
    case ABI_CUDNN_POINTWISE_SWISH:
    case ABI_CUDNN_POINTWISE_GELU_TANH:
        v->activation = true;
        break;
    default:
        break;
    }
}

static void see_graph(struct view *v, const struct dnn_descriptor *graph, int depth);

static void see(struct view *v, const struct dnn_descriptor *operation, int depth)
{
    v->all++;
    for (const struct dnn_attribute *a = operation->attributes; a != NULL; a = a->next)
        for (int64_t i = 0; a->type == ABI_CUDNN_TYPE_DESCRIPTOR && i < a->n; i++)
            see_tensor(v, ((struct dnn_descriptor **)a->value)[i]);
    switch (operation->kind) {
    case ABI_CUDNN_OP_SDPA_FWD:
    case ABI_CUDNN_OP_SDPA_BWD:
        v->attention = operation;
        see_graph(v, dnn_child(operation, ABI_CUDNN_SDPA_FWD_SUBGRAPH, 0), depth + 1);
        see_graph(v, dnn_child(operation, ABI_CUDNN_SDPA_BWD_SUBGRAPH, 0), depth + 1);
        break;
    case ABI_CUDNN_OP_BAND_MASK:
        v->causal =
            v->causal || dnn_number(operation, ABI_CUDNN_BAND_MASK_COMPARISON, -1) == ABI_CUDNN_POINTWISE_CMP_GE;
        break;
    case ABI_CUDNN_OP_MATMUL:
        v->products++;
        v->product = operation;
        if (v->first_product == NULL && in_memory(dnn_child(operation, ABI_CUDNN_MATMUL_A, 0)) &&
            in_memory(dnn_child(operation, ABI_CUDNN_MATMUL_B, 0)))
            v->first_product = operation;
        break;
    case ABI_CUDNN_OP_CONV_FWD:
    case ABI_CUDNN_OP_CONV_BWD_DATA:
    case ABI_CUDNN_OP_CONV_BWD_FILTER:
        v->convolutions++;
        v->convolution = operation;
        break;
    case ABI_CUDNN_OP_NORM_FWD:
        v->norms_fwd++;
        v->norm = operation;
        break;
    case ABI_CUDNN_OP_NORM_BWD:
        v->norms_bwd++;
        v->norm = operation;
        break;
    case ABI_CUDNN_OP_POINTWISE:
        see_pointwise(v, operation);
        break;
    default:
        break;
    }
}

static void see_graph(struct view *v, const struct dnn_descriptor *graph, int depth)
{
    const struct dnn_attribute *operations = dnn_find(graph, ABI_CUDNN_GRAPH_OPS);
    for (int64_t i = 0; operations != NULL && depth < 4 && i < operations->n; i++) {
        const struct dnn_descriptor *operation = dnn_child(graph, ABI_CUDNN_GRAPH_OPS, i);
        if (operation != NULL)
            see(v, operation, depth);
    }
}

/* --- what it is ----------------------------------------------------------------------------------------------------------- */

static void attention(const struct view *v, const struct dnn_descriptor *q, const struct dnn_descriptor *k,
                      bool k_is_transposed, bool backward, struct maq_rec_op *op, char name[64])
{
    op->kind = backward ? MAQ_REC_ATTENTION_BWD : MAQ_REC_ATTENTION;
    op->type = (uint8_t)dnn_type(type_of(q));
    op->out = op->type;
    op->flags = v->causal ? MAQ_REC_CAUSAL : 0;
    op->d[0] = dim(q, 0);
    op->d[1] = dim(q, 1);
    op->d[2] = dim(k, 1);
    op->d[3] = dim(q, 2);
    op->d[4] = dim(k, k_is_transposed ? 3 : 2);
    op->d[5] = dim(q, 3);
    snprintf(name, 64, "cudnn attention %s", backward ? "backward" : "forward");
}

static void convolution(const struct dnn_descriptor *operation, struct maq_rec_op *op, char name[64])
{
    static const struct {
        int kind, output, filter;
        const char *word;
    } of[] = {
        {ABI_CUDNN_OP_CONV_FWD, ABI_CUDNN_CONV_FWD_Y, ABI_CUDNN_CONV_FWD_W, "forward"},
        {ABI_CUDNN_OP_CONV_BWD_DATA, ABI_CUDNN_CONV_BWD_DATA_DY, ABI_CUDNN_CONV_BWD_DATA_W, "backward data"},
        {ABI_CUDNN_OP_CONV_BWD_FILTER, ABI_CUDNN_CONV_BWD_FILTER_DY, ABI_CUDNN_CONV_BWD_FILTER_DW, "backward filter"}};
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++) {
        if (operation->kind != of[i].kind)
            continue;
        const struct dnn_descriptor *y = dnn_child(operation, of[i].output, 0);
        const struct dnn_descriptor *w = dnn_child(operation, of[i].filter, 0);
        op->kind = MAQ_REC_CONV;
        op->type = (uint8_t)dnn_type(type_of(w));
        op->out = (uint8_t)dnn_type(type_of(y));
        op->d[0] = 2 * elements(y) * (elements(w) / (dim(w, 0) > 0 ? dim(w, 0) : 1));
        snprintf(name, 64, "cudnn convolution %s", of[i].word);
    }
}

static void norm(const struct view *v, struct maq_rec_op *op, char name[64])
{
    const bool backward = v->norm->kind == ABI_CUDNN_OP_NORM_BWD;
    const struct dnn_descriptor *x = dnn_child(v->norm, backward ? ABI_CUDNN_NORM_BWD_X : ABI_CUDNN_NORM_FWD_X, 0);
    const struct dnn_descriptor *scale =
        dnn_child(v->norm, backward ? ABI_CUDNN_NORM_BWD_SCALE : ABI_CUDNN_NORM_FWD_SCALE, 0);
    const int64_t columns = elements(scale) > 0 ? elements(scale) : 1;
    op->kind = backward ? MAQ_REC_NORM_BWD : MAQ_REC_NORM;
    op->type = (uint8_t)dnn_type(type_of(x));
    op->out = op->type;
    op->d[0] = elements(x) / columns;
    op->d[1] = columns;
    snprintf(name, 64, "cudnn norm %s", backward ? "backward" : "forward");
}

static void product(const struct view *v, struct maq_rec_op *op, char name[64])
{
    const struct dnn_descriptor *a = dnn_child(v->product, ABI_CUDNN_MATMUL_A, 0);
    const struct dnn_descriptor *c = dnn_child(v->product, ABI_CUDNN_MATMUL_C, 0);
    const int64_t one = dim(c, -1) * dim(c, -2);
    op->kind = MAQ_REC_GEMM;
    op->type = (uint8_t)dnn_type(type_of(a));
    op->out = (uint8_t)dnn_type(type_of(v->n_tensors > 0 ? c : a));
    op->flags = (v->bias ? MAQ_REC_BIAS : 0u) | (v->activation ? MAQ_REC_ACTIVATION : 0u);
    op->d[0] = dim(c, -1);
    op->d[1] = dim(c, -2);
    op->d[2] = dim(a, -1);
    op->d[3] = one > 0 ? elements(c) / one : 0;
    snprintf(name, 64, "cudnn matmul");
}

void dnn_recognize(const struct dnn_descriptor *graph, struct dnn_plan *plan)
{
    struct view v = {0};
    struct maq_rec_op *op = &plan->op;
    char *name = plan->name;
    see_graph(&v, graph, 0);
    for (plan->n_tensors = 0; plan->n_tensors < v.n_tensors && plan->n_tensors < DNN_REACHES; plan->n_tensors++) {
        const struct dnn_descriptor *t = v.tensor[plan->n_tensors];
        plan->tensor[plan->n_tensors] = (struct dnn_reach){dnn_number(t, ABI_CUDNN_TENSOR_UID, -1), reach(t)};
    }
    *op = (struct maq_rec_op){.kind = MAQ_REC_LIBRARY, .type = MAQ_REC_F32, .out = MAQ_REC_F32};
    for (unsigned i = 0; i < v.n_tensors; i++)
        op->bytes += ((uint64_t)elements(v.tensor[i]) * dnn_type_bits(type_of(v.tensor[i])) + 7) / 8;
    const bool softmax = v.exponentials > 0 && v.products >= 2 && v.first_product != NULL;
    if (v.attention != NULL) {
        const bool backward = v.attention->kind == ABI_CUDNN_OP_SDPA_BWD;
        attention(&v, dnn_child(v.attention, backward ? ABI_CUDNN_SDPA_BWD_Q : ABI_CUDNN_SDPA_FWD_Q, 0),
                  dnn_child(v.attention, backward ? ABI_CUDNN_SDPA_BWD_K : ABI_CUDNN_SDPA_FWD_K, 0), false, backward,
                  op, name);
    } else if (softmax) {
        attention(&v, dnn_child(v.first_product, ABI_CUDNN_MATMUL_A, 0),
                  dnn_child(v.first_product, ABI_CUDNN_MATMUL_B, 0), true, v.products >= 4, op, name);
    } else if (v.convolution != NULL) {
        convolution(v.convolution, op, name);
    } else if (v.norm != NULL) {
        norm(&v, op, name);
    } else if (v.products == 1) {
        product(&v, op, name);
    } else {
        if (v.n_tensors > 0)
            op->type = op->out = (uint8_t)dnn_type(type_of(v.tensor[0]));
        snprintf(name, 64, v.pointwise == v.all ? "cudnn pointwise, %u operations" : "cudnn graph, %u operations",
                 v.all);
    }
}
