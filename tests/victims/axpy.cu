/* SPDX-License-Identifier: Apache-2.0 */
/* axpy.cu - the kernel that driver.c loads. */
extern "C" __global__ void axpy(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}
