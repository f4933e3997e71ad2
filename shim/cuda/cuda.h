/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - what the files of shim/cuda share: kernels and where they come from, errors, launches.
 */
#ifndef MAQ_SHIM_CUDA_H
#define MAQ_SHIM_CUDA_H

#include "shim/abi/cuda.h"
#include "shim/core/await.h"
#include "shim/core/enqueue.h"
#include "shim/core/graph.h"
#include "shim/core/queue.h"
#include "shim/core/stream.h"
#include "shim/cuda/fatbin.h"

extern const int vg_cuda_major; /* 12 or 13: which library this is */

/* A fat binary, a cubin or a library that was loaded. */
struct vg_image {
    const void *data;
    uint64_t bytes;
    bool read;                  /* its kernels have their parameters */
    struct vg_kernel **kernels; /* that were registered, or found by name */
    uint32_t n, room;
    unsigned char *copy; /* owned, or NULL */
};

enum { VG_KERNEL_MAGIC = 0x6b65726e };
/* A kernel: cudaKernel_t, CUfunction, CUkernel. Never freed: a program may keep the handle. */
struct vg_kernel {
    uint32_t magic;
    int max_dynamic_shared, carveout, non_portable_cluster;
    char *name;
    struct vg_image *image;
    struct vg_code code; /* once the image is read */
    struct vg_jit *jit;  /* of code that was loaded while the program ran (jit_kernel.h); NULL */
};
struct vg_launch {
    const struct vg_kernel *kernel;
    struct vg_dim3 grid, block;
    uint64_t shared;
    void **args;
    void *packed; /* all arguments in one piece, instead of args */
    size_t packed_bytes;
    bool later;               /* a node of a graph: it runs when that is launched */
    struct vg_stream *stream; /* where it is launched; NULL: nowhere yet */
};

/* Keeps an error for cudaGetLastError() and returns it. */
int vg_result(int error);
int vg_last_error(bool clear);
const char *vg_error_name(int error);
const char *vg_error_text(int error);

struct vg_image *vg_image_new(const void *data, bool copied);
struct vg_kernel *vg_kernel_new(struct vg_image *image, const char *name);
struct vg_kernel *vg_kernel_named(struct vg_image *image, const char *name); /* NULL: there is none */
/* How many kernels its code names; the first of them, up to `most`, in kernels[]. 0: it cannot be read (PTX). */
unsigned vg_image_list(struct vg_image *image, void **kernels, unsigned most);
void vg_kernel_prepare(const struct vg_kernel *kernel);    /* reads its parameters */
struct vg_kernel *vg_kernel_of_host(const void *function); /* that a host function stands for */
struct vg_kernel *vg_kernel_of(void *handle);              /* a kernel, or a host function */
/* What cudaMalloc() gave a __device__ variable; NULL = unknown. */
void *vg_symbol(const void *host, size_t *bytes);

/* The record of a launch, and what the kernel may have written is no longer known. */
struct maq_rec vg_launch_record(const struct vg_launch *launch);
const char *vg_last_kernel(void); /* the name of the kernel that was launched last; "" before the first */
int vg_launch(struct vg_launch *launch, void *stream);

int vg_copy(void *to, const void *from, size_t bytes, int kind, void *stream, bool waits);
int vg_set(void *to, unsigned value, unsigned element, size_t n, void *stream, bool waits);
/* Their records, for the nodes of graphs. */
struct maq_rec vg_copy_record(enum maq_rec_copy direction, uint64_t bytes);
struct maq_rec vg_set_record(uint64_t bytes);
int vg_attribute(int *value, int attribute, int device);
/* The same for a device of a node whichever rank asks, another for any other. */
void vg_device_uuid(unsigned char uuid[16], int device);

#endif
