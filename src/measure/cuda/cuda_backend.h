/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_backend.h - what the files of the CUDA module share: the device's state, how a case is launched, failures.
 *
 * A case is prepared by the file that knows its library (gemm.c, attention.c, collective.c, pointwise.c), which fills
 * in `launch`; timing.c launches and times. Everything that can fail returns false and leaves the reason in
 * state->why.
 */
#ifndef MAQ_MEASURE_CUDA_CUDA_BACKEND_H
#define MAQ_MEASURE_CUDA_CUDA_BACKEND_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef MAQ_HAVE_CUDNN
#include <cudnn.h>
#endif
#ifdef MAQ_HAVE_NCCL
#include <nccl.h>
#endif

#include "measure/backend.h"
#include "measure/cuda/nvml.h"

#define MAQ_CUDA_GPUS 16
#define MAQ_CUDA_LAUNCHES 32 /* timed one by one before the host waits */

struct maq_cuda;

/* One more time; asynchronous, on state->stream. */
typedef bool maq_cuda_launch(struct maq_cuda *s);

struct maq_cuda_gemm {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
    bool integer; /* scales are of the accumulator's type */
    float beta;
};

#ifdef MAQ_HAVE_CUDNN
#define MAQ_CUDNN_DESCRIPTORS 48
struct maq_cuda_attention {
    cudnnBackendDescriptor_t all[MAQ_CUDNN_DESCRIPTORS]; /* in order of creation */
    uint32_t n;
    cudnnBackendDescriptor_t plan, pack;
    void *workspace;
    float scale, outside; /* what masked scores are set to */
    int32_t shift;
};
#endif

#ifdef MAQ_HAVE_NCCL
struct maq_cuda_coll {
    uint32_t ranks; /* of the communicators, which stay for the next case of as many */
    ncclComm_t comms[MAQ_CUDA_GPUS];
    cudaStream_t streams[MAQ_CUDA_GPUS];                /* [0] is the state's */
    void *send[MAQ_CUDA_GPUS], *receive[MAQ_CUDA_GPUS]; /* the case's */
};
#endif

struct maq_cuda {
    char why[MAQ_PROFILE_WHY];
    cudaStream_t stream;
    cudaEvent_t begin[MAQ_CUDA_LAUNCHES], end[MAQ_CUDA_LAUNCHES];
    cublasLtHandle_t lt;
    struct maq_nvml nvml;
    int sms;
    void *flush; /* overwritten to empty the last-level cache */
    float *one;  /* 1.0 on the device: the scale of 8-bit operands */
    size_t flush_bytes;
    /* the case */
    const struct maq_profile_case *c;
    void *buffers[MAQ_PROFILE_BUFFERS], *workspace, *host; /* host: pinned */
    maq_cuda_launch *launch;
    struct maq_cuda_gemm gemm;
#ifdef MAQ_HAVE_CUDNN
    cudnnHandle_t dnn;
    struct maq_cuda_attention attention;
#endif
#ifdef MAQ_HAVE_NCCL
    struct maq_cuda_coll coll;
#endif
};

/* fault.c: keeps the reason of a failure; false. */
bool maq_cuda_fail(struct maq_cuda *s, const char *what, const char *reason);
/* Whether a CUDA call went well; keeps the reason when not. */
bool maq_cuda_good(struct maq_cuda *s, cudaError_t status, const char *what);

/* Each prepares state->c and fills in state->launch; *kernel says what runs it. */
bool maq_cuda_prepare_gemm(struct maq_cuda *s, const char **kernel);
bool maq_cuda_prepare_pointwise(struct maq_cuda *s, const char **kernel);
bool maq_cuda_prepare_attention(struct maq_cuda *s, const char **kernel);
bool maq_cuda_prepare_coll(struct maq_cuda *s, const char **kernel);
/* Gives back what the above made; fine when they made nothing. */
void maq_cuda_release_gemm(struct maq_cuda *s);
void maq_cuda_release_attention(struct maq_cuda *s);
void maq_cuda_release_coll(struct maq_cuda *s);
/* Ends the communicators. */
void maq_cuda_close_coll(struct maq_cuda *s);

/* timing.c */
bool maq_cuda_run(void *state, bool cold, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY]);
bool maq_cuda_run_on(void *state, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY]);

#endif
