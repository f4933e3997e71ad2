/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.c - a program that multiplies: linked to the toolkit's cuBLAS, cuBLASLt and cudart as any is, so that it asks for their
 * symbols in their versions. tests/test_shim_math_victim.py runs it on the zero-GPU device and reads the trace.
 *
 * One step of a linear layer: forward with a bias and GELU, the gradient of the input, the gradient of the weights, which
 * is added to what is there; and a batch of small products.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        const int status_ = (int)(call);                                                                               \
        if (status_ != 0) {                                                                                            \
            fprintf(stderr, "%s: %d\n", #call, status_);                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { TOKENS = 2048, IN = 1024, OUT = 4096, HEADS = 16, WIDTH = 64 };

static void forward(cublasHandle_t handle, cudaStream_t stream, const void *weight, const void *x, const void *bias,
                    void *y)
{
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, in, out;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    const cublasOperation_t trans = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
    const float one = 1, zero = 0;
    int n = 0;
    CHECK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &trans, sizeof trans));
    CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    CHECK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    CHECK(cublasLtMatrixLayoutCreate(&w, CUDA_R_16BF, IN, OUT, IN));
    CHECK(cublasLtMatrixLayoutCreate(&in, CUDA_R_16BF, IN, TOKENS, IN));
    CHECK(cublasLtMatrixLayoutCreate(&out, CUDA_R_16BF, OUT, TOKENS, OUT));
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)handle, desc, w, in, out, out, preference, 1, &found, &n));
    CHECK(n == 1 ? 0 : 1);
    CHECK(cublasLtMatmul((cublasLtHandle_t)handle, desc, &one, weight, w, x, in, &zero, y, out, y, out, &found.algo,
                         NULL, 0, stream));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    CHECK(cublasLtMatrixLayoutDestroy(w));
    CHECK(cublasLtMatrixLayoutDestroy(in));
    CHECK(cublasLtMatrixLayoutDestroy(out));
    CHECK(cublasLtMatmulDescDestroy(desc));
}

int main(void)
{
    cublasHandle_t handle;
    cudaStream_t stream;
    const float one = 1, zero = 0;
    void *weight, *x, *y, *bias;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&weight, 2ul * IN * OUT));
    CHECK(cudaMalloc(&x, 2ul * IN * TOKENS));
    CHECK(cudaMalloc(&y, 2ul * OUT * TOKENS));
    CHECK(cudaMalloc(&bias, 2ul * OUT));
    CHECK(cublasCreate(&handle));
    CHECK(cublasSetStream(handle, stream));
    forward(handle, stream, weight, x, bias, y);
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, IN, TOKENS, OUT, &one, weight, CUDA_R_16BF, IN, y, CUDA_R_16BF,
                       OUT, &zero, x, CUDA_R_16BF, IN, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, IN, OUT, TOKENS, &one, x, CUDA_R_16BF, IN, y, CUDA_R_16BF, OUT,
                       &one, weight, CUDA_R_16BF, IN, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    CHECK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
    CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, 128, 128, WIDTH, &one, (float *)x, WIDTH,
                                    128 * WIDTH, (float *)x, WIDTH, 128 * WIDTH, &zero, (float *)y, 128, 128 * 128,
                                    HEADS));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cublasDestroy(handle));
    CHECK(cudaFree(weight));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree(bias));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
