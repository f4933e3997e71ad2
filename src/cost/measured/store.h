/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - measured kernels in a SQLite file: what `maquette profile` writes and the first provider of the cost chain
 * reads.
 *
 * docs/profile.md documents the tables; the form has a number (user_version) and the file says whose it is
 * (application_id), so that neither another program's file nor a later form is ever written into. Times are seconds.
 *
 * Several programs may write into one file at the same time: every measurement is a transaction of its own. One thread
 * per store.
 */
#ifndef MAQ_COST_MEASURED_STORE_H
#define MAQ_COST_MEASURED_STORE_H

#include "base/arena.h"
#include "maquette/cost.h"

/* One short measurement at the clocks of an idle device, or one that lasts until the power limit has settled. */
enum maq_kernel_mode { MAQ_KERNEL_BURST, MAQ_KERNEL_SUSTAINED, MAQ_KERNEL_MODE_COUNT };
const char *maq_kernel_mode_name(enum maq_kernel_mode mode);

/* Repetitions of one kernel, each timed by itself (burst), or means of launches in a row (sustained). */
struct maq_kernel_times {
    uint32_t n;
    double median_s, min_s, p90_s, stddev_s;
    const double *repetition; /* [n] in the order of time; NULL = not kept, or not read */
};

/* The device while it measured, as NVML saw it; 0 = not known. */
struct maq_kernel_state {
    double sm_hz, memory_hz, power_w, celsius;
};

/* Where the measurement was made. Strings; "" = not there. */
struct maq_kernel_machine {
    const char *device; /* catalogue name: what the chain looks up */
    const char *gpu;    /* as the driver calls it */
    const char *driver, *cuda, *cublas, *cudnn, *nccl;
};

struct maq_kernel_row {
    struct maq_kernel_machine at;
    bool is_coll;
    struct maq_op op;     /* canonical, op_key.h */
    struct maq_coll coll; /* likewise */
    uint8_t mode;         /* enum maq_kernel_mode */
    bool warm;            /* operands left in the last-level cache between repetitions */
    const char *kernel;   /* what ran: "cublasLt", "cudnn", "maquette" */
    struct maq_kernel_times times;
    struct maq_kernel_state state;
    const char *created; /* UTC, "2026-01-31T12:00:00Z" */
};

/* Whether the two are measurements of the same thing under the same conditions, on whatever machine. */
bool maq_kernel_same(const struct maq_kernel_row *a, const struct maq_kernel_row *b);
/* Why a row cannot be true, as a sentence fragment; NULL when nothing is wrong. */
const char *maq_kernel_fault(const struct maq_kernel_row *row);

struct maq_kernel_rows {
    uint32_t n;
    struct maq_kernel_row *at;
};

/* Every measurement of the file, sorted by device, key and age, the newest last; strings live in the arena. A file that
 * is not there is an error. */
enum maq_status maq_kernel_rows_read(struct maq_kernel_rows *out, const char *path, struct maq_arena *arena,
                                     struct maq_diag *diag);
/* The same with the repetitions of each where the file has them; they live in the arena too. */
enum maq_status maq_kernel_repetitions_read(struct maq_kernel_rows *out, const char *path, struct maq_arena *arena,
                                            struct maq_diag *diag);

struct maq_kernel_store;

/* Opens the file for writing and creates it when there is none. *out is owned (maq_kernel_store_close). */
enum maq_status maq_kernel_store_open(struct maq_kernel_store **out, const char *path, struct maq_diag *diag);
void maq_kernel_store_close(struct maq_kernel_store *store);
/* Writes a measurement; one of the same key, machine and conditions gives way. It is on the disk when it returns. */
enum maq_status maq_kernel_store_put(struct maq_kernel_store *store, const struct maq_kernel_row *row,
                                     struct maq_diag *diag);
/* Several in one transaction: all or none. */
enum maq_status maq_kernel_store_put_all(struct maq_kernel_store *store, const struct maq_kernel_row *rows, size_t n,
                                         struct maq_diag *diag);

#endif
