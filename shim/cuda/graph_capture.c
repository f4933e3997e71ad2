/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_capture.c - the runtime's calls that capture a stream into a CUDA graph, and those that look into a capture.
 */
#include "shim/cuda/cuda.h"

enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALID }; /* enum cudaStreamCaptureStatus */

VG_EXPORT int cudaStreamBeginCapture(void *stream, int mode)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    if (s->legacy)
        return vg_result(VG_CAPTURE_UNSUPPORTED);
    vg_lock();
    bool begun = vg_capture_begin(s, mode);
    vg_unlock();
    return vg_result(begun ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaStreamEndCapture(void *stream, void **graph)
{
    vg_call();
    struct vg_stream *s = vg_stream_of(stream);
    *graph = NULL;
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    if (s->capture == NULL || s->capture->origin != s)
        return vg_result(s->capture == NULL ? VG_INVALID_VALUE : VG_CAPTURE_UNMATCHED);
    vg_lock();
    bool spoiled = s->capture->spoiled;
    *graph = vg_capture_end(s);
    vg_unlock();
    return vg_result(*graph != NULL ? VG_OK : spoiled ? VG_CAPTURE_INVALIDATED : VG_CAPTURE_UNJOINED);
}

static int capture_status(const struct vg_stream *s)
{
    return s->capture == NULL ? CAPTURE_NONE : s->capture->spoiled ? CAPTURE_INVALID : CAPTURE_ACTIVE;
}

VG_EXPORT int cudaStreamIsCapturing(void *stream, int *status)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    *status = capture_status(s);
    return VG_OK;
}

/* Handles of the nodes that the next operation would depend on; good until the next call from this thread. */
static void **tips_of(const struct vg_stream *s, size_t *n)
{
    static _Thread_local void *tips[256];
    *n = s->n_tips < 256 ? s->n_tips : 256;
    for (size_t i = 0; i < *n; i++)
        tips[i] = s->capture->graph->nodes[s->tips[i]];
    return tips;
}

static int capture_info(void *stream, int *status, unsigned long long *id, void **graph, void ***tips, size_t *n)
{
    size_t count = 0;
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    *status = capture_status(s);
    if (n != NULL)
        *n = 0;
    if (s->capture == NULL)
        return VG_OK;
    if (id != NULL)
        *id = s->capture->id;
    if (graph != NULL)
        *graph = s->capture->graph;
    if (tips != NULL)
        *tips = tips_of(s, &count);
    if (n != NULL)
        *n = s->n_tips < 256 ? s->n_tips : 256;
    return VG_OK;
}

/* CUDA 13: with edge data before the count. CUDA 12: (stream, status, id), and further calls of that name. */
VG_EXPORT int cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                       const void **edges, size_t *n)
{
    if (vg_cuda_major < 13)
        return vg_result(capture_info(stream, status, id, NULL, NULL, NULL));
    if (edges != NULL)
        *edges = NULL;
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                          size_t *n)
{
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                          const void **edges, size_t *n)
{
    if (edges != NULL)
        *edges = NULL;
    return vg_result(capture_info(stream, status, id, graph, tips, n));
}

VG_EXPORT int cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph, void ***tips,
                                        size_t *n)
{
    return capture_info(stream, status, id, graph, tips, n);
}

VG_EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
    return cudaStreamIsCapturing(stream, status);
}

static int set_tips(void *stream, void **nodes, size_t n, bool replace)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL || s->capture == NULL)
        return VG_INVALID_VALUE;
    if (replace)
        s->n_tips = 0;
    for (size_t i = 0; i < n; i++) {
        struct vg_node *node = vg_node_of(nodes[i]);
        if (node == NULL || node->graph != s->capture->graph || !vg_capture_tip(s, node->index))
            return VG_INVALID_VALUE;
    }
    return VG_OK;
}

/* flags: 0 add, 1 set. CUDA 12's first form has no edge data. */
VG_EXPORT int cudaStreamUpdateCaptureDependencies(void *stream, void **nodes, const void *edges, size_t n,
                                                  unsigned flags)
{
    if (vg_cuda_major < 13) /* (stream, nodes, n, flags) */
        return vg_result(set_tips(stream, nodes, (size_t)(uintptr_t)edges, n == 1));
    return vg_result(set_tips(stream, nodes, n, flags == 1));
}

VG_EXPORT int cudaStreamUpdateCaptureDependencies_v2(void *stream, void **nodes, const void *edges, size_t n,
                                                     unsigned flags)
{
    (void)edges;
    return vg_result(set_tips(stream, nodes, n, flags == 1));
}

VG_EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    int before = current;
    current = *mode;
    *mode = before;
    return VG_OK;
}

VG_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    return cudaThreadExchangeStreamCaptureMode(mode);
}
