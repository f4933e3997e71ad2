/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - one row of a table of measurements, by name: which columns there are, which are needed, and their values as numbers.
 */
#ifndef MAQ_VALIDATE_TRAIN_ROW_H
#define MAQ_VALIDATE_TRAIN_ROW_H

#include "validate/csv.h"

/*    column, needed, and what else it may be called: in Megatron-LM's words, or in those of config.json */
#define MAQ_COLUMN_LIST(X)                                                                                             \
    X(id, false, NULL)                                                                                                 \
    X(source, false, NULL)                                                                                             \
    X(year, false, NULL)                                                                                               \
    X(framework, false, NULL)                                                                                          \
    X(model, true, NULL)                                                                                               \
    X(num_layers, false, "num_hidden_layers")                                                                          \
    X(hidden, false, "hidden_size")                                                                                    \
    X(ffn, false, "ffn_hidden_size|intermediate_size")                                                                 \
    X(heads, false, "num_attention_heads")                                                                             \
    X(kv_heads, false, "num_query_groups|num_key_value_heads")                                                         \
    X(head_dim, false, NULL)                                                                                           \
    X(vocab, false, "vocab_size")                                                                                      \
    X(experts, false, "num_experts")                                                                                   \
    X(topk, false, "moe_router_topk|num_experts_per_tok")                                                              \
    X(moe_ffn, false, "moe_ffn_hidden_size|moe_intermediate_size")                                                     \
    X(seq_len, true, "seq_length|sequence_length|max_seq_len")                                                         \
    X(gpu, true, NULL)                                                                                                 \
    X(num_gpus, true, "gpus|n_gpus|world_size")                                                                        \
    X(gpus_per_node, false, NULL)                                                                                      \
    X(intra_node_bw_note, false, NULL)                                                                                 \
    X(inter_node_bw_note, false, NULL)                                                                                 \
    X(tp, true, "tensor_model_parallel_size")                                                                          \
    X(pp, true, "pipeline_model_parallel_size")                                                                        \
    X(vp, false, "vpp|virtual_pipeline_model_parallel_size")                                                           \
    X(cp, false, "context_parallel_size")                                                                              \
    X(ep, false, "expert_model_parallel_size")                                                                         \
    X(dp, false, "data_parallel_size")                                                                                 \
    X(sp, false, "sequence_parallel")                                                                                  \
    X(zero_or_fsdp, false, "data_parallel_sharding_strategy|sharding")                                                 \
    X(mbs, false, "micro_batch_size|micro_batch")                                                                      \
    X(gbs, true, "global_batch_size|global_batch")                                                                     \
    X(precision, false, NULL)                                                                                          \
    X(recompute, false, "recompute_granularity")                                                                       \
    X(overlap_notes, false, NULL)                                                                                      \
    X(iter_time_s, false, "step_time_s")                                                                               \
    X(tokens_per_s_per_gpu, false, NULL)                                                                               \
    X(tflops_per_gpu, false, NULL)                                                                                     \
    X(peak_mem_gb, false, NULL)                                                                                        \
    X(notes, false, NULL)                                                                                              \
    X(flops_kind, false, NULL)                                                                                         \
    X(derived_tokens_per_s_per_gpu, false, NULL)                                                                       \
    X(derived_iter_time_s, false, NULL)                                                                                \
    X(completeness, false, NULL)                                                                                       \
    X(qa_flag, false, NULL)

enum maq_column {
#define MAQ_COLUMN_ENUM(name, needed, also) MAQ_COLUMN_##name,
    MAQ_COLUMN_LIST(MAQ_COLUMN_ENUM)
#undef MAQ_COLUMN_ENUM
        MAQ_COLUMN_COUNT
};

struct maq_row_table {
    struct maq_csv csv;
    uint32_t at[MAQ_COLUMN_COUNT]; /* column of the file; UINT32_MAX = absent */
};

/* A row, and where to say that a number in it cannot be read. */
struct maq_table_row {
    const struct maq_row_table *table;
    uint32_t row;
    int bad; /* enum maq_column of the first unreadable number; -1 = none */
};

/*
 * Finds the columns; each one that is needed and missing is an error, and so is a table with no column of a measurement. A note names those
 * that are not read.
 */
enum maq_status maq_row_table_bind(struct maq_row_table *table, struct maq_diag *diag);

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
