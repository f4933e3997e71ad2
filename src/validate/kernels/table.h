/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - tables of measured kernels, as NVIDIA's aiconfigurator lays them out:
 *
 *   <system>/<op>__<table>__<framework>__<version>.csv[.gz]
 *
 * The first line may be a comment, `# source=PATH key=value;key=value`: columns that are the same in every row. Then a CSV
 * with a header; `latency` is in milliseconds. What the other columns mean is in rows.c, one function per table.
 */
#ifndef MAQ_VALIDATE_KERNELS_TABLE_H
#define MAQ_VALIDATE_KERNELS_TABLE_H

#include "maquette/cost.h"
#include "validate/csv.h"

/*    column                                  */
#define MAQ_KERNEL_COLUMN_LIST(X)                                                                                      \
    X(latency)                                                                                                         \
    X(kernel_source)                                                                                                   \
    X(op_name)                                                                                                         \
    X(gemm_dtype)                                                                                                      \
    X(m)                                                                                                               \
    X(n)                                                                                                               \
    X(k)                                                                                                               \
    X(batch_size)                                                                                                      \
    X(isl)                                                                                                             \
    X(step)                                                                                                            \
    X(num_heads)                                                                                                       \
    X(num_key_value_heads)                                                                                             \
    X(head_dim)                                                                                                        \
    X(window_size)                                                                                                     \
    X(attn_dtype)                                                                                                      \
    X(kv_cache_dtype)                                                                                                  \
    X(mla_dtype)                                                                                                       \
    X(gemm_type)                                                                                                       \
    X(model)                                                                                                           \
    X(bmm_dtype)                                                                                                       \
    X(num_tokens)                                                                                                      \
    X(rank0_num_tokens)                                                                                                \
    X(moe_dtype)                                                                                                       \
    X(hidden_size)                                                                                                     \
    X(inter_size)                                                                                                      \
    X(topk)                                                                                                            \
    X(num_experts)                                                                                                     \
    X(num_slots)                                                                                                       \
    X(moe_tp_size)                                                                                                     \
    X(moe_ep_size)                                                                                                     \
    X(distribution)                                                                                                    \
    X(phase)                                                                                                           \
    X(seq_len)                                                                                                         \
    X(d_conv)                                                                                                          \
    X(d_state)                                                                                                         \
    X(nheads)                                                                                                          \
    X(n_groups)                                                                                                        \
    X(num_k_heads)                                                                                                     \
    X(head_k_dim)                                                                                                      \
    X(num_v_heads)                                                                                                     \
    X(head_v_dim)                                                                                                      \
    X(quant_dtype)

enum maq_kernel_column {
#define MAQ_KERNEL_ENUM(name) MAQ_KERNEL_##name,
    MAQ_KERNEL_COLUMN_LIST(MAQ_KERNEL_ENUM)
#undef MAQ_KERNEL_ENUM
        MAQ_KERNEL_COLUMN_COUNT
};

/*                 name       text                                                                        */
#define MAQ_KERNEL_SKIP_LIST(X)                                                                                        \
    X(NONE, "used")                                                                                                    \
    X(UNREADABLE, "a number that is missing or cannot be read")                                                        \
    X(UNKNOWN, "a type or kernel that has no operator here")                                                           \
    X(IMPOSSIBLE, "faster than the datasheet allows")

enum maq_kernel_skip {
#define MAQ_KERNEL_SKIP_ENUM(name, text) MAQ_KERNEL_SKIP_##name,
    MAQ_KERNEL_SKIP_LIST(MAQ_KERNEL_SKIP_ENUM)
#undef MAQ_KERNEL_SKIP_ENUM
        MAQ_KERNEL_SKIP_COUNT
};

/* An operator, or a collective when `cluster` is set. */
struct maq_kernel_sample {
    struct maq_op op;
    struct maq_coll coll;
    const struct maq_cluster *cluster;
    const char *kernel; /* in the table's arena, each text once; "" when the table does not say */
    double measured_s;
    uint32_t row; /* of the table, from 0 */
};

struct maq_kernel_table {
    const char *path;
    const char *group;   /* operator kind for reports: "gemm", "attention", "mla", "moe", ... */
    const char *name;    /* <table> */
    const char *version; /* of the framework */
    enum maq_library library;
    struct maq_device device;
    uint32_t n_rows, n;
    uint32_t first_line;               /* of the file, where row 0 stands */
    struct maq_kernel_sample *samples; /* [n] */
    uint32_t skipped[MAQ_KERNEL_SKIP_COUNT];
    struct maq_csv csv;
    uint32_t at[MAQ_KERNEL_COLUMN_COUNT];              /* column of the file; UINT32_MAX = absent */
    struct maq_str constants[MAQ_KERNEL_COLUMN_COUNT]; /* where it is absent */
};

/*
 * What a file name promises, nothing read: false when it is no name of a table, or one of a table that has no reader. The
 * members path, group, name, version, library are set; texts live in `arena`. The system is the name of the folder.
 */
bool maq_kernel_table_name(struct maq_kernel_table *out, struct maq_str *system, const char *path,
                           struct maq_arena *arena);

/* Reads a file, plain or compressed; everything lives in `arena`. */
enum maq_status maq_kernel_table_read(struct maq_kernel_table *out, const char *path, struct maq_arena *arena,
                                      struct maq_diag *diag);

/* --- rows.c --- */

/* One row of a table; cells by column. */
struct maq_kernel_line {
    const struct maq_kernel_table *table;
    uint32_t row;
    bool bad; /* a number could not be read */
};
struct maq_str maq_kernel_text(const struct maq_kernel_line *row, enum maq_kernel_column column);
int64_t maq_kernel_int(struct maq_kernel_line *row, enum maq_kernel_column column);
/* The same where a table may lack the column. */
int64_t maq_kernel_int_or(struct maq_kernel_line *row, enum maq_kernel_column column, int64_t missing);

/* Makes an operator of a row; false when there is none for it. */
typedef bool maq_kernel_row_fn(struct maq_op *op, struct maq_kernel_line *row);

struct maq_kernel_reader {
    const char *op, *table; /* of the file name; table NULL = every one */
    const char *group;
    maq_kernel_row_fn *row;
};
/* NULL when there is none: also for tables of collectives, which communication.c reads. */
const struct maq_kernel_reader *maq_kernel_reader(struct maq_str op, struct maq_str table);

#endif
