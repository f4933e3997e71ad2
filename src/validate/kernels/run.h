/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - what running over kernel tables and summing up share: a file with the errors of its rows, and the owner of
 * a result.
 */
#ifndef MAQ_VALIDATE_KERNELS_RUN_H
#define MAQ_VALIDATE_KERNELS_RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "maquette/validate.h"
#include "validate/kernels/table.h"

/* One table of one device and library, after its rows were predicted. */
struct maq_kernel_file {
    const char *path;
    struct maq_kernel_group group;
    float *errors; /* [rows] signed; owned */
    uint64_t n_rows, skipped[MAQ_KERNEL_SKIP_COUNT];
    uint64_t inside, fitted;
    uint32_t n_worst, n_points;
    struct maq_kernel_worst *worst;  /* owned until merged */
    struct maq_kernel_point *points; /* owned until merged */
    enum maq_status status;
    struct maq_diag *diag;  /* what is wrong with it; owned */
    uint32_t comment_lines; /* before the table: its diagnostics do not count them */
};

/* A result and all it points to; `result` comes first: a pointer to it is one to the owner. */
struct maq_kernel_owner {
    struct maq_validate_kernels result;
    struct maq_arena arena; /* all that the result points to */
    pthread_mutex_t lock;   /* of the arena and the diagnostics */
    struct maq_validate_kernels_opts opts;
    struct maq_diag *diag;
    struct maq_kernel_file *files;
    uint32_t n_files, size;
    atomic_uint next;
};

/* Groups, worst rows and points of the plot, from the files. groups.c */
enum maq_status maq__kernel_summarize(struct maq_kernel_owner *o);

#endif
