/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.cu - kernels that get a list of tensors by value, as optimizers and concatenations do: more than 4 KiB of
 * parameters, and places in the list that nobody filled. tests/test_shim_lists.py runs it and reads the trace.
 */
#include <cstdio>
#include <cstring>

struct list {
    void *tensor[700];
    int n;
};

__global__ void update(list tensors, float *out, int n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n > 0)
        out[i] = static_cast<float *>(tensors.tensor[n - 1])[i];
}

int main()
{
    list tensors;
    char *memory = nullptr;
    float *out = nullptr;
    if (cudaMalloc(&memory, 64 << 20) != cudaSuccess || cudaMalloc(&out, 4 << 20) != cudaSuccess)
        return 1;
    for (int call = 0; call < 3; call++) {
        std::memset(&tensors, 0, sizeof tensors);
        for (int i = 0; i < 4; i++)
            tensors.tensor[i] = memory + (i << 20);
        for (int i = 4; i < 4 + 100 * call; i++) /* what was on the stack */
            tensors.tensor[i] = memory + (i << 12);
        update<<<8, 256>>>(tensors, out, 4);
    }
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 1;
    return cudaFree(memory) != cudaSuccess || cudaFree(out) != cudaSuccess;
}
