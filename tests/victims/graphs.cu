/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs.cu - a captured step with a side stream, launched, updated and launched again; a graph made by hand; a capture that fails.
 */
#include "check.h"

__global__ void forward(float *x)
{
    x[threadIdx.x] += 1;
}

__global__ void backward(float *x, float by)
{
    x[threadIdx.x] *= by;
}

static cudaGraph_t capture(cudaStream_t s, cudaStream_t side, float *x, int blocks)
{
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    forward<<<blocks, 128, 0, s>>>(x);
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(side, fork, 0));
    OK(cudaMemsetAsync(x, 0, 1024, side));
    backward<<<blocks, 128, 0, s>>>(x, 2.0f);
    OK(cudaEventRecord(join, side));
    OK(cudaStreamWaitEvent(s, join, 0));
    forward<<<1, 128, 0, s>>>(x);
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
    return graph;
}

int main()
{
    cudaStream_t s, side;
    float *x;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreate(&side));
    OK(cudaMalloc(&x, 8 << 20));

    cudaGraph_t graph = capture(s, side, x, 64);
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, NULL, &nodes));
    if (nodes != 4)
        return 2;
    size_t edges = 0; /* forward to memset and to backward, both to the second forward */
    OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
    if (edges != 4)
        return 5;
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaGraphLaunch(exec, s));
    cudaGraph_t larger = capture(s, side, x, 128);
    cudaGraphExecUpdateResultInfo result;
    OK(cudaGraphExecUpdate(exec, larger, &result));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));

    cudaGraph_t hand;
    cudaGraphNode_t first, second;
    OK(cudaGraphCreate(&hand, 0));
    void *args[] = {&x};
    cudaKernelNodeParams params = {};
    params.func = (void *)forward;
    params.gridDim = dim3(2);
    params.blockDim = dim3(32);
    params.kernelParams = args;
    OK(cudaGraphAddKernelNode(&first, hand, NULL, 0, &params));
    OK(cudaGraphAddKernelNode(&second, hand, &first, 1, &params));
    cudaGraphExec_t by_hand;
    OK(cudaGraphInstantiate(&by_hand, hand, 0));
    OK(cudaGraphLaunch(by_hand, s));

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    forward<<<1, 1, 0, s>>>(x);
    if (cudaStreamSynchronize(s) != cudaErrorStreamCaptureUnsupported)
        return 3;
    cudaGraph_t none;
    if (cudaStreamEndCapture(s, &none) != cudaErrorStreamCaptureInvalidated || none != NULL)
        return 4;
    cudaGetLastError();
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphExecDestroy(by_hand));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(larger));
    OK(cudaGraphDestroy(hand));
    OK(cudaDeviceSynchronize());
    return 0;
}
