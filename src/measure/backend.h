/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - what measures: the border between the planner and a module that drives one kind of GPU.
 *
 * The border is plain C without a function of the library behind it, so that a module is built, found and loaded by
 * itself: `libmaquette-cuda.so` exports MAQ_PROFILE_ENTRY. A test puts a backend of its own in its place.
 *
 * One thread. Calls come in the order  prepare, (run | run_on | sense)*, release  per case.
 */
#ifndef MAQ_MEASURE_BACKEND_H
#define MAQ_MEASURE_BACKEND_H

#include "maquette/cost.h"

#define MAQ_PROFILE_ABI 2u
#define MAQ_PROFILE_WHY 256
#define MAQ_PROFILE_BUFFERS 10
#define MAQ_PROFILE_PARTS 512 /* of the sum over rows that is a norm's weight gradient: blocks, at most */

/* One operator or collective to be run, with the sizes of its tensors in the order that buffers.c gives. */
struct maq_profile_case {
    bool is_coll;
    struct maq_op op;
    struct maq_coll coll;
    int64_t batch, seq; /* attention: that many sequences of this length */
    uint32_t n_buffers;
    double bytes[MAQ_PROFILE_BUFFERS];
    double workspace_bytes;
};

/* Strings are "" where something is not there. */
struct maq_profile_gpu {
    char name[96]; /* "NVIDIA H100 80GB HBM3" */
    char driver[32], cuda[32], cublas[32], cudnn[32], nccl[32];
    uint32_t count; /* such GPUs in this machine */
    double memory_bytes, l2_bytes;
};

/* 0 = not known. */
struct maq_profile_sense {
    double sm_hz, memory_hz, power_w, celsius;
};

enum maq_profile_answer {
    MAQ_PROFILE_READY,
    MAQ_PROFILE_REFUSES, /* this case cannot be run; the next one may well */
    MAQ_PROFILE_BROKEN   /* the device is of no use any more */
};

struct maq_profile_backend {
    uint32_t abi;
    void *state;
    struct maq_profile_gpu gpu;
    /* *kernel: what will run it, "cublasLt". Unless it is ready, why says what for and there is nothing to release. */
    enum maq_profile_answer (*prepare)(void *state, const struct maq_profile_case *c, const char **kernel,
                                       char why[MAQ_PROFILE_WHY]);
    /* false: the device failed, which ends the run. */
    /* n launches, each timed by itself; cold: the last-level cache is emptied before each. */
    bool (*run)(void *state, bool cold, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY]);
    /* n launches in a row as a training step has them, no pause between; *seconds: of all together. */
    bool (*run_on)(void *state, uint32_t n, double *seconds, char why[MAQ_PROFILE_WHY]);
    void (*sense)(void *state, struct maq_profile_sense *out);
    void (*release)(void *state);
    void (*close)(void *state);
};

#define MAQ_PROFILE_ENTRY "maq_profile_open_backend"
/* Fills *out; false when there is no such GPU, and why says what is missing. */
typedef bool maq_profile_open_fn(struct maq_profile_backend *out, char why[MAQ_PROFILE_WHY]);

#endif
