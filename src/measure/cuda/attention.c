/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - fused attention through cuDNN's backend interface, forward and backward.
 *
 * One operation descriptor stands for the whole of softmax(scale Q K') V (cuDNN 9.13, its backward 9.17). A causal
 * mask is a graph of its own inside that operation, one band mask on the scores (cuDNN 9.21): a score stays where
 * query + shift >= key, with a shift of 0. An older cuDNN is told so and refused; so is a shape without an engine.
 *
 * Tensors are (batch, heads, sequence, width) as cuDNN counts them and (batch, sequence, heads, width) in memory, as
 * projections leave them. The first engine of its heuristics that can be built is taken.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure/cuda/cuda_backend.h"

#if defined(MAQ_HAVE_CUDNN) && CUDNN_VERSION >= 91700
#define HAVE_ATTENTION 1
#else
#define HAVE_ATTENTION 0
#endif
#if HAVE_ATTENTION && CUDNN_VERSION >= 92100
#define HAVE_CAUSAL 1
#else
#define HAVE_CAUSAL 0
#endif

#if HAVE_ATTENTION

/* Names of tensors inside the graph. Those up to DV are the buffers of the operator, in their order. */
enum uid { Q = 1, K, V, O, STATS, D_O, DQ, DK, DV, SCALE, SHIFT, OUTSIDE, SCORES, MASKED };
#define BUFFERS_FORWARD 5
#define BUFFERS_BACKWARD 9

static bool good(struct maq_cuda *s, cudnnStatus_t status, const char *what)
{
    return status == CUDNN_STATUS_SUCCESS || maq_cuda_fail(s, what, cudnnGetErrorString(status));
}

/* A descriptor that is destroyed with the case. */
static bool create(struct maq_cuda *s, cudnnBackendDescriptor_t *out, cudnnBackendDescriptorType_t type)
{
    struct maq_cuda_attention *a = &s->attention;
    if (a->n == MAQ_CUDNN_DESCRIPTORS)
        return maq_cuda_fail(s, "cuDNN", "too many descriptors");
    if (!good(s, cudnnBackendCreateDescriptor(type, out), "cuDNN, a descriptor"))
        return false;
    a->all[a->n++] = *out;
    return true;
}

static bool set(struct maq_cuda *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    return good(s, cudnnBackendSetAttribute(d, name, type, n, value), "cuDNN, an attribute");
}

static bool link(struct maq_cuda *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                 cudnnBackendDescriptor_t value)
{
    return set(s, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static bool finalize(struct maq_cuda *s, cudnnBackendDescriptor_t d, const char *what)
{
    return good(s, cudnnBackendFinalize(d), what);
}

enum place { IN_MEMORY, BY_VALUE, INSIDE }; /* INSIDE: between two operations of a graph, never in memory */

static bool make_tensor(struct maq_cuda *s, cudnnBackendDescriptor_t *out, int64_t uid, cudnnDataType_t type,
                        const int64_t size[4], const int64_t stride[4], enum place place)
{
    const int64_t alignment = place == BY_VALUE ? 4 : 16;
    const bool yes = true;
    bool fine = create(s, out, CUDNN_BACKEND_TENSOR_DESCRIPTOR) &&
                set(s, *out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid) &&
                set(s, *out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type) &&
                set(s, *out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment) &&
                set(s, *out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size) &&
                set(s, *out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    if (fine && place == BY_VALUE)
        fine = set(s, *out, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (fine && place == INSIDE)
        fine = set(s, *out, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    return fine && finalize(s, *out, "cuDNN, a tensor");
}

static bool make_rows(struct maq_cuda *s, cudnnBackendDescriptor_t *out, int64_t uid, int64_t heads, int64_t width)
{
    const struct maq_profile_case *c = s->c;
    const int64_t size[4] = {c->batch, heads, c->seq, width};
    const int64_t stride[4] = {c->seq * heads * width, width, heads * width, 1};
    return make_tensor(s, out, uid, c->op.dtype == MAQ_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16, size, stride,
                       IN_MEMORY);
}

static bool make_scalar(struct maq_cuda *s, cudnnBackendDescriptor_t *out, int64_t uid, cudnnDataType_t type)
{
    static const int64_t one[4] = {1, 1, 1, 1};
    return make_tensor(s, out, uid, type, one, one, BY_VALUE);
}

/* --- the operation ------------------------------------------------------------------------------------------------ */

#if HAVE_CAUSAL
static bool make_scores(struct maq_cuda *s, cudnnBackendDescriptor_t *out, int64_t uid)
{
    const struct maq_profile_case *c = s->c;
    const int64_t h = c->op.d[2], n = c->seq, size[4] = {c->batch, h, n, n}, stride[4] = {h * n * n, n * n, n, 1};
    return make_tensor(s, out, uid, CUDNN_DATA_FLOAT, size, stride, INSIDE);
}

/* The mask's graph, laid into the operation. */
static bool add_mask(struct maq_cuda *s, cudnnBackendDescriptor_t op, bool backward)
{
    cudnnBackendDescriptor_t in = NULL, out = NULL, shift = NULL, outside = NULL, mask = NULL, graph = NULL;
    const cudnnPointwiseMode_t keep = CUDNN_POINTWISE_CMP_GE;
    const int64_t in_uid = SCORES, out_uid = MASKED;
    bool fine =
        make_scores(s, &in, SCORES) && make_scores(s, &out, MASKED) &&
        make_scalar(s, &shift, SHIFT, CUDNN_DATA_INT32) && make_scalar(s, &outside, OUTSIDE, CUDNN_DATA_FLOAT) &&
        create(s, &mask, CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR) &&
        link(s, mask, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, in) &&
        link(s, mask, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, out) &&
        link(s, mask, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC, shift) &&
        link(s, mask, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, outside) &&
        set(s, mask, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &keep) &&
        finalize(s, mask, "cuDNN, the causal mask") && create(s, &graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) &&
        set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn) &&
        link(s, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, mask) && finalize(s, graph, "cuDNN, the causal mask");
    return fine &&
           link(s, op, backward ? CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH : CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH,
                graph) &&
           set(s, op,
               backward ? CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_INPUT_UID
                        : CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID,
               CUDNN_TYPE_INT64, 1, &in_uid) &&
           set(s, op,
               backward ? CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_OUTPUT_UID
                        : CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID,
               CUDNN_TYPE_INT64, 1, &out_uid);
}
#else
static bool add_mask(struct maq_cuda *s, cudnnBackendDescriptor_t op, bool backward)
{
    (void)op;
    (void)backward;
    return maq_cuda_fail(s, "a causal mask", "this module was built with a cuDNN before 9.21");
}
#endif

static bool make_operation(struct maq_cuda *s, cudnnBackendDescriptor_t *op, bool backward)
{
    static const cudnnBackendAttributeName_t forward_names[] = {
        CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC};
    static const cudnnBackendAttributeName_t backward_names[] = {
        CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC,     CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC,
        CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC,     CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC,
        CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC,
        CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC,    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
        CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC};
    const struct maq_op *o = &s->c->op;
    const int64_t h = o->d[2], kv = o->d[3], qk = o->d[4], v = o->d[5];
    const int64_t heads[] = {h, kv, kv, h, h, h, h, kv, kv}, widths[] = {qk, qk, v, v, 1, v, qk, qk, v};
    const int64_t stats_size[4] = {s->c->batch, h, s->c->seq, 1}, stats_stride[4] = {h * s->c->seq, s->c->seq, 1, 1};
    int count = backward ? BUFFERS_BACKWARD : BUFFERS_FORWARD;
    cudnnBackendDescriptor_t tensor = NULL, scale = NULL;
    bool fine = create(
        s, op, backward ? CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR : CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    for (int i = 0; i < count && fine; i++) {
        fine = i + 1 == STATS ? make_tensor(s, &tensor, STATS, CUDNN_DATA_FLOAT, stats_size, stats_stride, IN_MEMORY)
                              : make_rows(s, &tensor, i + 1, heads[i], widths[i]);
        fine = fine && link(s, *op, backward ? backward_names[i] : forward_names[i], tensor);
    }
    fine = fine && make_scalar(s, &scale, SCALE, CUDNN_DATA_FLOAT) &&
           link(s, *op, backward ? CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC : CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
                scale);
    if (fine && o->flags & MAQ_OP_CAUSAL)
        fine = add_mask(s, *op, backward);
    return fine && finalize(s, *op, "cuDNN, the operation");
}

/* --- a plan of execution ------------------------------------------------------------------------------------------ */

#define CONFIGS 8

/* The first configuration of an engine that can be built. */
static bool choose_plan(struct maq_cuda *s, cudnnBackendDescriptor_t graph)
{
    struct maq_cuda_attention *a = &s->attention;
    cudnnBackendDescriptor_t heuristics = NULL, configs[CONFIGS] = {NULL}, plan = NULL;
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t n = 0;
    bool fine = create(s, &heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) &&
                link(s, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph) &&
                set(s, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) &&
                finalize(s, heuristics, "cuDNN has no engine for this attention");
    for (int i = 0; i < CONFIGS && fine; i++)
        fine = create(s, &configs[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    fine = fine && good(s,
                        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &n, configs),
                        "cuDNN has no engine for this attention");
    for (int64_t i = 0; i < n && i < CONFIGS && fine && !a->plan; i++) {
        fine = create(s, &plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) &&
               set(s, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn) &&
               link(s, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[i]);
        if (fine && cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS)
            a->plan = plan;
    }
    return fine && (a->plan || maq_cuda_fail(s, "cuDNN", "none of its engines takes this attention"));
}

static bool make_pack(struct maq_cuda *s, bool backward)
{
    struct maq_cuda_attention *a = &s->attention;
    int64_t uids[BUFFERS_BACKWARD + 3], n = backward ? BUFFERS_BACKWARD : BUFFERS_FORWARD, bytes = 0, one = 0;
    void *pointers[BUFFERS_BACKWARD + 3];
    for (int64_t i = 0; i < n; i++) {
        uids[i] = i + 1;
        pointers[i] = s->buffers[i];
    }
    uids[n] = SCALE;
    pointers[n++] = &a->scale;
    if (s->c->op.flags & MAQ_OP_CAUSAL) {
        uids[n] = SHIFT;
        pointers[n++] = &a->shift;
        uids[n] = OUTSIDE;
        pointers[n++] = &a->outside;
    }
    if (!good(s,
              cudnnBackendGetAttribute(a->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                       &bytes),
              "cuDNN, a workspace") ||
        (bytes > 0 && !maq_cuda_good(s, cudaMalloc(&a->workspace, (size_t)bytes), "memory for cuDNN's workspace")))
        return false;
    return create(s, &a->pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) &&
           set(s, a->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uids) &&
           set(s, a->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers) &&
           set(s, a->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &a->workspace) &&
           finalize(s, a->pack, "cuDNN, the tensors");
}

static bool launch(struct maq_cuda *s)
{
    return good(s, cudnnBackendExecute(s->dnn, s->attention.plan, s->attention.pack), "cuDNN");
}

bool maq_cuda_prepare_attention(struct maq_cuda *s, const char **kernel)
{
    struct maq_cuda_attention *a = &s->attention;
    cudnnBackendDescriptor_t op = NULL, graph = NULL;
    bool backward = s->c->op.kind == MAQ_OP_ATTENTION_BWD;
    if (!s->dnn && (!good(s, cudnnCreate(&s->dnn), "cuDNN does not start") ||
                    !good(s, cudnnSetStream(s->dnn, s->stream), "cuDNN, a stream")))
        return false;
    if (cudnnGetVersion() < 91700 || (s->c->op.flags & MAQ_OP_CAUSAL && cudnnGetVersion() < 92100))
        return maq_cuda_fail(s, "cuDNN", "attention needs version 9.17, with a causal mask 9.21");
    a->scale = 1.0f / sqrtf((float)s->c->op.d[4]);
    a->outside = -INFINITY;
    s->launch = launch;
    *kernel = "cudnn";
    return make_operation(s, &op, backward) && create(s, &graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) &&
           set(s, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn) &&
           link(s, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, op) && finalize(s, graph, "cuDNN, the graph") &&
           choose_plan(s, graph) && make_pack(s, backward);
}

void maq_cuda_release_attention(struct maq_cuda *s)
{
    struct maq_cuda_attention *a = &s->attention;
    while (a->n > 0)
        (void)cudnnBackendDestroyDescriptor(a->all[--a->n]);
    (void)cudaFree(a->workspace);
    memset(a, 0, sizeof *a);
}

#else

bool maq_cuda_prepare_attention(struct maq_cuda *s, const char **kernel)
{
    (void)kernel;
    return maq_cuda_fail(s, "attention", "this module was built without cuDNN 9.17 or later");
}

void maq_cuda_release_attention(struct maq_cuda *s)
{
    (void)s;
}

#endif
