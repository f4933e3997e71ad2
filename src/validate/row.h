/*
 * row.h - one row of a table of measurements, by name: which columns there are, which are needed, and their values as numbers.
 */
#ifndef MAQ_VALIDATE_ROW_H
#define MAQ_VALIDATE_ROW_H

#include "validate/csv.h"

/*    column, needed */
#define MAQ_COLUMN_LIST(X)                                                                                             \
    X(id, false)                                                                                                       \
    X(source, false)                                                                                                   \
    X(year, false)                                                                                                     \
    X(framework, false)                                                                                                \
    X(model, true)                                                                                                     \
    X(num_layers, false)                                                                                               \
    X(hidden, false)                                                                                                   \
    X(ffn, false)                                                                                                      \
    X(heads, false)                                                                                                    \
    X(kv_heads, false)                                                                                                 \
    X(head_dim, false)                                                                                                 \
    X(vocab, false)                                                                                                    \
    X(experts, false)                                                                                                  \
    X(topk, false)                                                                                                     \
    X(moe_ffn, false)                                                                                                  \
    X(seq_len, true)                                                                                                   \
    X(gpu, true)                                                                                                       \
    X(num_gpus, true)                                                                                                  \
    X(gpus_per_node, false)                                                                                            \
    X(intra_node_bw_note, false)                                                                                       \
    X(inter_node_bw_note, false)                                                                                       \
    X(tp, true)                                                                                                        \
    X(pp, true)                                                                                                        \
    X(vp, false)                                                                                                       \
    X(cp, false)                                                                                                       \
    X(ep, false)                                                                                                       \
    X(dp, false)                                                                                                       \
    X(sp, false)                                                                                                       \
    X(zero_or_fsdp, false)                                                                                             \
    X(mbs, false)                                                                                                      \
    X(gbs, true)                                                                                                       \
    X(precision, false)                                                                                                \
    X(recompute, false)                                                                                                \
    X(overlap_notes, false)                                                                                            \
    X(iter_time_s, false)                                                                                              \
    X(tokens_per_s_per_gpu, false)                                                                                     \
    X(tflops_per_gpu, false)                                                                                           \
    X(peak_mem_gb, false)                                                                                              \
    X(notes, false)                                                                                                    \
    X(flops_kind, false)                                                                                               \
    X(derived_tokens_per_s_per_gpu, false)                                                                             \
    X(derived_iter_time_s, false)                                                                                      \
    X(completeness, false)                                                                                             \
    X(qa_flag, false)

enum maq_column {
#define MAQ_COLUMN_ENUM(name, needed) MAQ_COLUMN_##name,
    MAQ_COLUMN_LIST(MAQ_COLUMN_ENUM)
#undef MAQ_COLUMN_ENUM
        MAQ_COLUMN_COUNT
};

struct maq_table {
    struct maq_csv csv;
    uint32_t at[MAQ_COLUMN_COUNT]; /* column of the file; UINT32_MAX = absent */
};

/* A row, and where to say that a number in it cannot be read. */
struct maq_table_row {
    const struct maq_table *table;
    uint32_t row;
    int bad; /* enum maq_column of the first unreadable number; -1 = none */
};

/* Finds the columns; each one that is needed and missing is an error, and so is a table with no column of a measurement. */
enum maq_status maq_table_bind(struct maq_table *table, struct maq_diag *diag);

const char *maq_column_name(enum maq_column column);
struct maq_str maq_row_text(const struct maq_table_row *row, enum maq_column column);

/* An empty cell, a dash, "n/a", "unknown" and the like. "none" is a word of its own: in prose it says that there is none. */
bool maq_row_says_nothing(struct maq_str text);

/*
 * The number in a column; `empty` when the cell says nothing (or, of a count, "none"). Counts may be written 16,384, sequences 8k. One that
 * cannot be read, or is out of its range, sets row->bad and gives `empty`.
 */
int64_t maq_row_int(struct maq_table_row *row, enum maq_column column, int64_t empty);
double maq_row_double(struct maq_table_row *row, enum maq_column column, double empty);

#endif
