/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.cu - kernels launched in every way that a program has: <<<>>>, by pointer, cooperative, with a configuration, by
 * structures that hold pointers; on the legacy stream, a stream of its own and one that does not block.
 */
#include "check.h"

struct tensors {
    float *out;
    const float *in[2];
    int n;
};

__global__ void fill(float *x, float value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = value;
}

__global__ void add(tensors t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t.n)
        t.out[i] = t.in[0][i] + t.in[1][i];
}

template <typename T> __global__ void scale(T *x, T by)
{
    extern __shared__ float unused[];
    x[threadIdx.x] *= by;
}

__device__ float bias[4];

int main()
{
    const int n = 1 << 20;
    float *a, *b, *c;
    cudaStream_t s, apart;
    OK(cudaMalloc(&a, n * sizeof *a));
    OK(cudaMalloc(&b, n * sizeof *b));
    OK(cudaMalloc(&c, n * sizeof *c));
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));

    fill<<<n / 256, 256>>>(a, 1.0f, n);
    fill<<<n / 256, 256, 0, s>>>(b + 16, 2.0f, n);
    add<<<dim3(n / 512, 2), dim3(128, 2), 0, s>>>(tensors{c, {a, b}, n});
    OK(cudaGetLastError());

    float one = 1.5f;
    void *args[] = {&c, &one};
    OK(cudaLaunchKernel((const void *)scale<float>, dim3(1), dim3(32), args, 64, apart));
    OK(cudaLaunchCooperativeKernel((const void *)scale<float>, dim3(1), dim3(32), args, 64, apart));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(64);
    config.stream = apart;
    OK(cudaLaunchKernelExC(&config, (const void *)scale<float>, args));

    int blocks;
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, fill));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
    if (attributes.maxThreadsPerBlock != 1024 || attributes.numRegs <= 0 || blocks != 8)
        return 2;
    fill<<<1, 2048>>>(a, 1.0f, n); /* too many threads */
    if (cudaGetLastError() != cudaErrorInvalidConfiguration)
        return 3;
    float host[4] = {1, 2, 3, 4}, back[4] = {};
    OK(cudaMemcpyToSymbol(bias, host, sizeof host));
    OK(cudaMemcpyFromSymbol(back, bias, sizeof back));
    if (back[3] != 4)
        return 4;
    OK(cudaDeviceSynchronize());
    return 0;
}
