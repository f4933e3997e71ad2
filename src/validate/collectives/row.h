/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - a row of a table of nccl-tests results.
 */
#ifndef MAQ_VALIDATE_COLLECTIVES_ROW_H
#define MAQ_VALIDATE_COLLECTIVES_ROW_H

#include "validate/collectives/point.h"
#include "validate/csv.h"

/*    column, needed */
#define MAQ_COLL_COLUMN_LIST(X)                                                                                        \
    X(source, false)                                                                                                   \
    X(gpu, true)                                                                                                       \
    X(num_gpus, true)                                                                                                  \
    X(gpus_per_node, false)                                                                                            \
    X(interconnect, false)                                                                                             \
    X(collective, true)                                                                                                \
    X(size_bytes, true)                                                                                                \
    X(time_us, false)                                                                                                  \
    X(algbw_GBs, false)                                                                                                \
    X(busbw_GBs, false)                                                                                                \
    X(notes, false)

enum maq_coll_column {
#define MAQ_COLL_COLUMN_ENUM(name, needed) MAQ_COLL_COLUMN_##name,
    MAQ_COLL_COLUMN_LIST(MAQ_COLL_COLUMN_ENUM)
#undef MAQ_COLL_COLUMN_ENUM
        MAQ_COLL_COLUMN_COUNT
};

struct maq_coll_table {
    struct maq_csv csv;
    uint32_t at[MAQ_COLL_COLUMN_COUNT];
};

/* Finds the columns; each one that is needed and missing is an error. */
enum maq_status maq__coll_table_bind(struct maq_coll_table *table, struct maq_diag *diag);
struct maq_str maq__coll_cell(const struct maq_coll_table *table, uint32_t row, enum maq_coll_column column);

/* The point of a row; NULL, or why there is none (static text). */
const char *maq__coll_row(struct maq_coll_point *out, const struct maq_coll_table *table, uint32_t row,
                          struct maq_coll_clusters *clusters, struct maq_diag *diag);

#endif
