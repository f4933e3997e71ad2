/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the module's door: opens the first GPU, prepares and releases cases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/cuda/cuda_backend.h"
#include "measure/cuda/kernels.h"

#define FLUSH_L2S 2 /* last-level caches overwritten between two launches */

/* --- a case ----------------------------------------------------------------------------------------------------- */

static void release(void *state)
{
    struct maq_cuda *s = state;
    (void)cudaDeviceSynchronize();
    maq_cuda_release_gemm(s);
    maq_cuda_release_attention(s);
    maq_cuda_release_coll(s);
    for (uint32_t i = 0; i < MAQ_PROFILE_BUFFERS; i++)
        (void)cudaFree(s->buffers[i]);
    (void)cudaFree(s->workspace);
    (void)cudaFreeHost(s->host);
    memset(s->buffers, 0, sizeof s->buffers);
    s->workspace = s->host = NULL;
    s->c = NULL;
    s->launch = NULL;
    (void)cudaGetLastError(); /* a refusal must not be the next case's failure */
}

/* Tensors with random bits of numbers in [-1, 1): power, and so the clock, depends on what is multiplied. */
static bool allocate(struct maq_cuda *s)
{
    const struct maq_profile_case *c = s->c;
    bool host = !c->is_coll && c->op.kind == MAQ_OP_HOST_COPY;
    uint32_t on_device = host ? 1 : c->is_coll ? 0 : c->n_buffers; /* collectives have theirs on every GPU */
    for (uint32_t i = 0; i < on_device; i++) {
        size_t bytes = (size_t)c->bytes[i] + 256; /* kernels work in pieces of 16 bytes */
        if (!maq_cuda_good(s, cudaMalloc(&s->buffers[i], bytes), "memory for a tensor"))
            return false;
        maq_cuda_fill(s->stream, s->buffers[i], bytes, (enum maq_dtype)c->op.dtype, i + 1);
    }
    bool attention = !c->is_coll && (c->op.kind == MAQ_OP_ATTENTION || c->op.kind == MAQ_OP_ATTENTION_BWD);
    if (!attention && c->workspace_bytes > 0 && /* cuDNN's is as large as its engine says */
        !maq_cuda_good(s, cudaMalloc(&s->workspace, (size_t)c->workspace_bytes), "memory for a workspace"))
        return false;
    if (host && !maq_cuda_good(s, cudaMallocHost(&s->host, (size_t)c->bytes[1]), "pinned memory of the host"))
        return false;
    return maq_cuda_good(s, cudaGetLastError(), "filling the tensors");
}

static bool prepare_any(struct maq_cuda *s, const char **kernel)
{
    if (s->c->is_coll)
        return maq_cuda_prepare_coll(s, kernel);
    switch (s->c->op.kind) {
    case MAQ_OP_GEMM:
    case MAQ_OP_GROUPED_GEMM:
        return maq_cuda_prepare_gemm(s, kernel);
    case MAQ_OP_ATTENTION:
    case MAQ_OP_ATTENTION_BWD:
        return maq_cuda_prepare_attention(s, kernel);
    default:
        return maq_cuda_prepare_pointwise(s, kernel);
    }
}

/*
 * The first launch is part of it: a kernel that cannot run is refused. An error that stays after everything was given
 * back (an illegal address, a GPU that is gone) has taken the context with it.
 */
static enum maq_profile_answer prepare(void *state, const struct maq_profile_case *c, const char **kernel,
                                       char why[MAQ_PROFILE_WHY])
{
    struct maq_cuda *s = state;
    s->c = c;
    s->why[0] = '\0';
    bool good = allocate(s) && prepare_any(s, kernel) && s->launch(s) &&
                maq_cuda_good(s, cudaStreamSynchronize(s->stream), "the first launch") &&
                maq_cuda_good(s, cudaGetLastError(), "the first launch");
    if (good)
        return MAQ_PROFILE_READY;
    memcpy(why, s->why, MAQ_PROFILE_WHY);
    release(s);
    return cudaDeviceSynchronize() == cudaSuccess ? MAQ_PROFILE_REFUSES : MAQ_PROFILE_BROKEN;
}

static void sense(void *state, struct maq_profile_sense *out)
{
    struct maq_cuda *s = state;
    maq_nvml_sense(&s->nvml, out);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static void close_device(void *state)
{
    struct maq_cuda *s = state;
    maq_cuda_close_coll(s);
    for (uint32_t i = 0; i < MAQ_CUDA_LAUNCHES; i++) {
        if (s->begin[i])
            (void)cudaEventDestroy(s->begin[i]);
        if (s->end[i])
            (void)cudaEventDestroy(s->end[i]);
    }
#ifdef MAQ_HAVE_CUDNN
    if (s->dnn)
        (void)cudnnDestroy(s->dnn);
#endif
    if (s->lt)
        (void)cublasLtDestroy(s->lt);
    (void)cudaFree(s->flush);
    (void)cudaFree(s->one);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    maq_nvml_close(&s->nvml);
    free(s);
}

static void put_version(char out[32], int major, int minor)
{
    snprintf(out, 32, "%d.%d", major, minor);
}

static bool describe(struct maq_cuda *s, struct maq_profile_gpu *gpu, int count)
{
    struct cudaDeviceProp prop;
    char bus_id[32];
    int runtime = 0;
    if (!maq_cuda_good(s, cudaGetDeviceProperties(&prop, 0), "the GPU's properties") ||
        !maq_cuda_good(s, cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0), "the GPU's place") ||
        !maq_cuda_good(s, cudaRuntimeGetVersion(&runtime), "CUDA's version"))
        return false;
    maq_nvml_open(&s->nvml, bus_id, gpu->driver);
    snprintf(gpu->name, sizeof gpu->name, "%.95s", prop.name);
    put_version(gpu->cuda, runtime / 1000, runtime % 1000 / 10);
    snprintf(gpu->cublas, sizeof gpu->cublas, "%zu", cublasLtGetVersion());
#ifdef MAQ_HAVE_CUDNN
    snprintf(gpu->cudnn, sizeof gpu->cudnn, "%zu", cudnnGetVersion());
#endif
#ifdef MAQ_HAVE_NCCL
    int nccl = 0;
    if (ncclGetVersion(&nccl) == ncclSuccess)
        snprintf(gpu->nccl, sizeof gpu->nccl, "%d", nccl);
#endif
    for (int i = 0; i < count && i < MAQ_CUDA_GPUS; i++) { /* others of its kind */
        struct cudaDeviceProp other;
        gpu->count += cudaGetDeviceProperties(&other, i) == cudaSuccess && strcmp(other.name, prop.name) == 0;
    }
    gpu->memory_bytes = (double)prop.totalGlobalMem;
    gpu->l2_bytes = (double)prop.l2CacheSize;
    s->sms = prop.multiProcessorCount;
    s->flush_bytes = FLUSH_L2S * (size_t)prop.l2CacheSize;
    return true;
}

static bool open_device(struct maq_cuda *s, struct maq_profile_gpu *gpu)
{
    int count = 0;
    const float one = 1;
    if (!maq_cuda_good(s, cudaGetDeviceCount(&count), "CUDA finds no GPU"))
        return false;
    if (count == 0)
        return maq_cuda_fail(s, "CUDA finds no GPU", "there is none in this machine");
    bool good = maq_cuda_good(s, cudaSetDevice(0), "the first GPU") && describe(s, gpu, count) &&
                maq_cuda_good(s, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "a stream") &&
                maq_cuda_good(s, cudaMalloc(&s->flush, s->flush_bytes), "memory to empty the cache with") &&
                maq_cuda_good(s, cudaMalloc((void **)&s->one, sizeof one), "memory for a scale") &&
                maq_cuda_good(s, cudaMemcpy(s->one, &one, sizeof one, cudaMemcpyHostToDevice), "a scale");
    for (uint32_t i = 0; i < MAQ_CUDA_LAUNCHES && good; i++)
        good = maq_cuda_good(s, cudaEventCreate(&s->begin[i]), "an event") &&
               maq_cuda_good(s, cudaEventCreate(&s->end[i]), "an event");
    if (good && cublasLtCreate(&s->lt) != CUBLAS_STATUS_SUCCESS)
        good = maq_cuda_fail(s, "cuBLASLt", "it does not start");
    return good;
}

/* The one symbol that the library looks for, MAQ_PROFILE_ENTRY. */
__attribute__((visibility("default"))) bool maq_profile_open_backend(struct maq_profile_backend *out,
                                                                     char why[MAQ_PROFILE_WHY]);

bool maq_profile_open_backend(struct maq_profile_backend *out, char why[MAQ_PROFILE_WHY])
{
    struct maq_cuda *s = calloc(1, sizeof *s);
    memset(out, 0, sizeof *out);
    out->abi = MAQ_PROFILE_ABI;
    if (!s) {
        snprintf(why, MAQ_PROFILE_WHY, "out of memory");
        return false;
    }
    if (!open_device(s, &out->gpu)) {
        memcpy(why, s->why, MAQ_PROFILE_WHY);
        close_device(s);
        return false;
    }
    out->state = s;
    out->prepare = prepare;
    out->run = maq_cuda_run;
    out->run_on = maq_cuda_run_on;
    out->sense = sense;
    out->release = release;
    out->close = close_device;
    return true;
}
