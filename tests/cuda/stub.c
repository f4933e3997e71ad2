/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub.c - stands in for CUDA's runtime, cuBLASLt, cuDNN, NCCL and our own kernels, so that the module's host side
 * runs on a machine without a GPU: every tensor that a call names must have been allocated, and be as large as the
 * call needs.
 *
 * It knows nothing of time and computes nothing.
 */
#include "stub.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/cuda/cuda_backend.h"
#include "measure/cuda/kernels.h"

struct stub stub;

static void fault(const char *fmt, ...) MAQ_PRINTF(1, 2);
static void fault(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (stub.faults++ == 0)
        vsnprintf(stub.fault, sizeof stub.fault, fmt, args);
    va_end(args);
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

#define SLOTS 256
static struct {
    char *at;
    size_t bytes;
} memory[SLOTS];

/* The call `what` reads or writes `bytes` at p. */
static void touch(const char *what, const void *p, size_t bytes)
{
    for (int i = 0; i < SLOTS; i++)
        if (memory[i].at && (const char *)p >= memory[i].at && (const char *)p <= memory[i].at + memory[i].bytes) {
            if ((size_t)(memory[i].at + memory[i].bytes - (const char *)p) < bytes)
                fault("%s: a tensor of %zu bytes is used as %zu", what, memory[i].bytes, bytes);
            return;
        }
    fault("%s: a tensor that was never allocated", what);
}

static cudaError_t keep(void **out, size_t bytes)
{
    if (stub.exhausted)
        return cudaErrorMemoryAllocation;
    for (int i = 0; i < SLOTS; i++)
        if (!memory[i].at) {
            *out = memory[i].at = calloc(1, bytes > 0 ? bytes : 1);
            memory[i].bytes = bytes;
            stub.allocations++;
            return *out ? cudaSuccess : cudaErrorMemoryAllocation;
        }
    return cudaErrorMemoryAllocation;
}

static cudaError_t drop(void *p)
{
    for (int i = 0; p && i < SLOTS; i++)
        if (memory[i].at == p) {
            free(p);
            memory[i].at = NULL;
            stub.allocations--;
            return cudaSuccess;
        }
    if (p)
        fault("memory is freed that was not allocated");
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return keep(out, bytes);
}
cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return keep(out, bytes);
}
cudaError_t cudaFree(void *p)
{
    return drop(p);
}
cudaError_t cudaFreeHost(void *p)
{
    return drop(p);
}
cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    (void)value;
    touch("memset", p, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    stub.flushes++;
    return cudaMemset(p, value, bytes);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    touch("memcpy", kind == cudaMemcpyHostToDevice ? to : from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    touch("memcpy", from, bytes);
    touch("memcpy", to, bytes);
    stub.launches++;
    return cudaSuccess;
}

/* --- device, streams, events -------------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = stub.gpus;
    return stub.gpus > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device)
{
    if (device >= stub.gpus)
        return cudaErrorInvalidDevice;
    stub.device = device;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "NVIDIA H100 80GB HBM3");
    prop->totalGlobalMem = (size_t)80 << 30;
    prop->l2CacheSize = 1 << 20;
    prop->multiProcessorCount = 132;
    return device < stub.gpus ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device)
{
    snprintf(out, (size_t)size, "0000:%02x:00.0", (unsigned)device);
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void)
{
    return stub.sticky ? cudaErrorIllegalAddress : cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaDeviceSynchronize();
}
cudaError_t cudaGetLastError(void)
{
    return cudaDeviceSynchronize();
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    *out = (cudaStream_t)calloc(1, 1);
    stub.streams++;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    stub.streams--;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = (cudaEvent_t)calloc(1, 1);
    stub.events++;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    stub.events--;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = 0.25f;
    return begin && end ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

/* --- cuBLASLt ----------------------------------------------------------------------------------------------------- */

struct layout {
    double element;
    uint64_t rows, columns;
    int32_t batch;
};
struct product {
    bool first, second; /* transposed */
};

static double width_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 1;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = (cublasLtHandle_t)calloc(1, 1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion(void)
{
    return 130000;
}
const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "fine" : "not supported";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale)
{
    (void)compute;
    (void)scale;
    *out = calloc(1, sizeof(struct product));
    stub.products++;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    stub.products--;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size)
{
    struct product *p = (struct product *)desc;
    cublasOperation_t op;
    void *pointer;
    if (name == CUBLASLT_MATMUL_DESC_TRANSA || name == CUBLASLT_MATMUL_DESC_TRANSB) {
        memcpy(&op, value, sizeof op);
        *(name == CUBLASLT_MATMUL_DESC_TRANSA ? &p->first : &p->second) = op == CUBLAS_OP_T;
    }
    if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER || name == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ||
        name == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER) {
        if (size != sizeof pointer)
            fault("cuBLASLt: a pointer of %zu bytes", size);
        memcpy(&pointer, value, sizeof pointer);
        touch("cuBLASLt's pointer", pointer, 4);
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    struct layout *l = calloc(1, sizeof *l);
    *l = (struct layout){width_of(type), rows, columns, 1};
    if (ld < (int64_t)rows)
        fault("cuBLASLt: a leading dimension of %lld for %llu rows", (long long)ld, (unsigned long long)rows);
    *out = (cublasLtMatrixLayout_t)l;
    stub.layouts++;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    stub.layouts--;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t size)
{
    if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        memcpy(&((struct layout *)layout)->batch, value, size);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = (cublasLtMatmulPreference_t)calloc(1, 1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                                    size_t size)
{
    (void)preference;
    (void)name;
    (void)value;
    (void)size;
    return CUBLAS_STATUS_SUCCESS;
}

/* op(A) is rows of D by depth, op(B) depth by columns of D. */
static void check_product(const struct product *p, const struct layout *a, const struct layout *b,
                          const struct layout *d)
{
    uint64_t a_rows = p->first ? a->columns : a->rows, a_depth = p->first ? a->rows : a->columns;
    uint64_t b_depth = p->second ? b->columns : b->rows, b_columns = p->second ? b->rows : b->columns;
    if (a_rows != d->rows || b_columns != d->columns || a_depth != b_depth)
        fault("cuBLASLt: %llu x %llu times %llu x %llu is not %llu x %llu", (unsigned long long)a_rows,
              (unsigned long long)a_depth, (unsigned long long)b_depth, (unsigned long long)b_columns,
              (unsigned long long)d->rows, (unsigned long long)d->columns);
    if (a->batch != d->batch || b->batch != d->batch)
        fault("cuBLASLt: batches of %d, %d and %d", a->batch, b->batch, d->batch);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    (void)handle;
    (void)c;
    (void)preference;
    check_product((struct product *)desc, (struct layout *)a, (struct layout *)b, (struct layout *)d);
    memset(results, 0, sizeof *results);
    results->workspaceSize = 1 << 20;
    *found = asked > 0;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t bytes_of(cublasLtMatrixLayout_t layout)
{
    const struct layout *l = (const struct layout *)layout;
    return (size_t)(l->element * (double)l->rows * (double)l->columns * l->batch);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
                              const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream)
{
    (void)handle;
    (void)desc;
    (void)alpha;
    (void)beta;
    (void)algo;
    (void)stream;
    touch("cuBLASLt's A", A, bytes_of(a));
    touch("cuBLASLt's B", B, bytes_of(b));
    touch("cuBLASLt's C", C, bytes_of(c));
    touch("cuBLASLt's D", D, bytes_of(d));
    touch("cuBLASLt's workspace", workspace, workspace_bytes);
    stub.launches++;
    return CUBLAS_STATUS_SUCCESS;
}

/* --- cuDNN -------------------------------------------------------------------------------------------------------- */

#ifdef MAQ_HAVE_CUDNN
struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
};

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    *out = (cudnnHandle_t)calloc(1, 1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    (void)handle;
    (void)stream;
    return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}
const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "fine" : "not supported";
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    struct descriptor *d = calloc(1, sizeof *d);
    d->type = type;
    *out = d;
    stub.descriptors++;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    free(descriptor);
    stub.descriptors--;
    return CUDNN_STATUS_SUCCESS;
}
/* Descriptors that are linked into others must have been finalized. */
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    const struct descriptor *d = descriptor;
    if (d->final)
        fault("cuDNN: attribute %d of a finalized descriptor", (int)name);
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++) {
        struct descriptor *linked;
        memcpy(&linked, (const char *)value + (size_t)i * sizeof linked, sizeof linked);
        if (!linked->final && linked->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
            fault("cuDNN: attribute %d is a descriptor that was not finalized", (int)name);
    }
    if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
        for (int64_t i = 0; i < n; i++) {
            void *p;
            memcpy(&p, (const char *)value + (size_t)i * sizeof p, sizeof p);
            if (!p)
                fault("cuDNN: tensor %lld has no memory", (long long)i);
        }
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked, int64_t *n, void *value)
{
    const int64_t workspace = 4096;
    (void)descriptor;
    (void)type;
    *n = asked > 0;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        memcpy(value, &workspace, sizeof workspace);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    ((struct descriptor *)descriptor)->final = true;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    (void)handle;
    if (!((struct descriptor *)plan)->final || !((struct descriptor *)pack)->final)
        fault("cuDNN: a plan or its tensors were not finalized");
    stub.launches++;
    return CUDNN_STATUS_SUCCESS;
}
#endif

/* --- NCCL --------------------------------------------------------------------------------------------------------- */

#ifdef MAQ_HAVE_NCCL
static size_t elements_of(size_t n, ncclDataType_t type)
{
    return type == ncclBfloat16 ? 2 * n : n;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22800;
    return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t status)
{
    return status == ncclSuccess ? "fine" : "invalid usage";
}
/* What a communicator is made of: its number of ranks. */
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
    for (int i = 0; i < n; i++) {
        size_t *comm = calloc(1, sizeof *comm);
        *comm = (size_t)n;
        comms[i] = (ncclComm_t)comm;
        stub.comms++;
        if (devices[i] != i)
            fault("NCCL: rank %d is on GPU %d", i, devices[i]);
    }
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    stub.comms--;
    return ncclSuccess;
}
ncclResult_t ncclGroupStart(void); /* its header says nothing of arguments */
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclGroupStart(void)
{
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void)
{
    stub.launches++;
    return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)op;
    (void)comm;
    (void)stream;
    touch("NCCL", in, elements_of(n, type));
    touch("NCCL", out, elements_of(n, type));
    return ncclSuccess;
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)stream;
    touch("NCCL", in, elements_of(n, type));
    touch("NCCL", out, elements_of(n, type) * *(size_t *)comm);
    return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    (void)op;
    (void)stream;
    touch("NCCL", in, elements_of(n, type) * *(size_t *)comm);
    touch("NCCL", out, elements_of(n, type));
    return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    (void)root;
    (void)comm;
    (void)stream;
    touch("NCCL", in, elements_of(n, type));
    touch("NCCL", out, elements_of(n, type));
    return ncclSuccess;
}
ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    (void)stream;
    touch("NCCL", in, elements_of(n, type));
    if (peer < 0 || (size_t)peer >= *(size_t *)comm)
        fault("NCCL: there is no rank %d", peer);
    return ncclSuccess;
}
ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return ncclSend(out, n, type, peer, comm, stream);
}
#endif

/* --- our own kernels --------------------------------------------------------------------------------------------- */

static size_t row_bytes(const struct maq_cuda_rows *r)
{
    return (size_t)(r->rows * r->columns) * (r->dtype == MAQ_FP32 ? 4 : 2);
}

static size_t columns_bytes(const struct maq_cuda_rows *r)
{
    return (size_t)r->columns * (r->dtype == MAQ_FP32 ? 4 : 2);
}

void maq_cuda_spin(cudaStream_t stream, unsigned long long ns)
{
    (void)stream;
    (void)ns;
    stub.spins++;
}
void maq_cuda_fill(cudaStream_t stream, void *out, size_t bytes, enum maq_dtype dtype, uint32_t seed)
{
    (void)stream;
    (void)dtype;
    (void)seed;
    touch("fill", out, bytes);
}
void maq_cuda_fill_indices(cudaStream_t stream, void *out, size_t n, size_t limit, bool wide)
{
    (void)stream;
    touch("indices", out, n * (wide ? 8 : 4));
    if (limit == 0)
        fault("indices below 0");
}
bool maq_cuda_has_type(enum maq_dtype dtype)
{
    return dtype == MAQ_BF16 || dtype == MAQ_FP16 || dtype == MAQ_FP32;
}
bool maq_cuda_has_columns(enum maq_dtype dtype, int64_t columns)
{
    return dtype != MAQ_FP8 && columns <= 16384;
}
void maq_cuda_norm(const struct maq_cuda_rows *r, const void *x, const void *w, void *y, float *stats, bool centred)
{
    touch("norm, x", x, row_bytes(r));
    touch("norm, weights", w, columns_bytes(r) * (centred ? 2 : 1));
    touch("norm, y", y, row_bytes(r));
    touch("norm, rows", stats, (size_t)r->rows * 4);
    stub.launches++;
}
void maq_cuda_norm_bwd(const struct maq_cuda_rows *r, const void *dy, const void *x, const void *w, void *dx, float *dw,
                       const float *stats, float *parts, bool centred)
{
    (void)centred;
    touch("norm_bwd, parts", parts, MAQ_PROFILE_PARTS * (size_t)r->columns * 4);
    touch("norm_bwd, dy", dy, row_bytes(r));
    touch("norm_bwd, x", x, row_bytes(r));
    touch("norm_bwd, weights", w, columns_bytes(r));
    touch("norm_bwd, dx", dx, row_bytes(r));
    touch("norm_bwd, dweights", dw, (size_t)r->columns * 4);
    touch("norm_bwd, rows", stats, (size_t)r->rows * 4);
    stub.launches++;
}
void maq_cuda_softmax(const struct maq_cuda_rows *r, const void *x, void *y)
{
    touch("softmax, x", x, row_bytes(r));
    touch("softmax, y", y, row_bytes(r));
    stub.launches++;
}
void maq_cuda_softmax_bwd(const struct maq_cuda_rows *r, const void *dy, const void *y, void *dx)
{
    touch("softmax_bwd, dy", dy, row_bytes(r));
    touch("softmax_bwd, y", y, row_bytes(r));
    touch("softmax_bwd, dx", dx, row_bytes(r));
    stub.launches++;
}
void maq_cuda_cross_entropy(const struct maq_cuda_rows *r, void *logits, const int64_t *labels, float *losses)
{
    touch("cross_entropy, logits", logits, row_bytes(r));
    touch("cross_entropy, labels", labels, (size_t)r->rows * 8);
    touch("cross_entropy, losses", losses, (size_t)r->rows * 4);
    stub.launches++;
}
void maq_cuda_rope(const struct maq_cuda_rows *r, void *x, const float *table)
{
    touch("rope, x", x, row_bytes(r));
    touch("rope, table", table, (size_t)r->rows * 64 * 2 * 4);
    stub.launches++;
}
void maq_cuda_gather(const struct maq_cuda_rows *r, const void *in, const void *index, void *out, bool wide)
{
    touch("gather, in", in, 0);
    touch("gather, index", index, (size_t)r->rows * (wide ? 8 : 4));
    touch("gather, out", out, row_bytes(r));
    stub.launches++;
}
void maq_cuda_scatter(const struct maq_cuda_rows *r, const void *in, const int64_t *index, void *table,
                      size_t table_bytes)
{
    touch("scatter, in", in, row_bytes(r));
    touch("scatter, index", index, (size_t)r->rows * 8);
    touch("scatter, table", table, table_bytes);
    stub.launches++;
}
void maq_cuda_quantize(const struct maq_cuda_rows *r, const void *in, void *out, float *scales)
{
    size_t n = (size_t)(r->rows * r->columns);
    touch("quantize, in", in, 2 * n);
    touch("quantize, out", out, n);
    touch("quantize, scales", scales, n / 128 * 4);
    stub.launches++;
}
void maq_cuda_activation(const struct maq_cuda_rows *r, const void *in, void *out, bool gated)
{
    touch("activation, in", in, row_bytes(r) * (gated ? 2 : 1));
    touch("activation, out", out, row_bytes(r));
    stub.launches++;
}
void maq_cuda_activation_bwd(const struct maq_cuda_rows *r, const void *dout, const void *in, void *din, bool gated)
{
    touch("activation_bwd, dout", dout, row_bytes(r));
    touch("activation_bwd, in", in, row_bytes(r) * (gated ? 2 : 1));
    touch("activation_bwd, din", din, row_bytes(r) * (gated ? 2 : 1));
    stub.launches++;
}
void maq_cuda_stream(cudaStream_t stream, int sms, const void *in, size_t read, void *out, size_t written)
{
    (void)stream;
    (void)sms;
    touch("stream, in", in, read);
    touch("stream, out", out, written);
    stub.launches++;
}
