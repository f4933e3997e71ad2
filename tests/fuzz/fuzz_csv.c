/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_csv.c - tables from any bytes: what parses is read by column, and what has the needed columns is made into jobs (not simulated).
 *
 * The header of a real table is long: input that starts with '+' gets one put in front, so that a mutation reaches the rows.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "validate/train/interpret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char header[] =
    "id,source,year,framework,model,num_layers,hidden,ffn,heads,kv_heads,vocab,experts,topk,seq_len,gpu,num_gpus,"
    "gpus_per_node,inter_node_bw_note,tp,pp,vp,cp,ep,dp,sp,zero_or_fsdp,mbs,gbs,precision,recompute,overlap_notes,"
    "notes,derived_iter_time_s\n";

static void interpret_rows(struct maq_row_table *table, struct maq_arena *arena)
{
    for (uint32_t i = 0; i < table->csv.n_rows && i < 50; i++) {
        struct maq_interpretation in = {.row = {table, i, -1}, .arena = arena};
        double unit;
        (void)maq_interpret_memory(&in.row, &unit);
        maq_interpret_row(&in);
        if (in.failed || in.skip != MAQ_VALIDATE_SKIP_NONE)
            continue;
        const char *job = maq_interpret_job(&in);
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *box = NULL;
        MAQ_ASSERT(unit > 0 && in.cluster && in.nodes * in.per_node == in.devices);
        if (diag && job && in.devices <= 4096 && in.layers <= 1000 &&
            maq_job_parse(&box, "row", maq_str_of(job), NULL, 0, diag) != MAQ_OK)
            MAQ_ASSERT(maq_diag_errors(diag) > 0);
        maq_job_free(box);
        maq_diag_free(diag);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_buf text;
    struct maq_row_table table;
    struct maq_arena arena;
    struct maq_diag *diag = maq_diag_new();
    bool with_header = size > 0 && data[0] == '+';
    maq_buf_init(&text, (size_t)1 << 20);
    if (with_header)
        maq_buf_adds(&text, header);
    maq_buf_add(&text, data + with_header, size - with_header);
    maq_arena_init(&arena, (size_t)64 << 20);
    if (diag && !text.failed &&
        maq_csv_parse(&table.csv, "t", (struct maq_str){text.ptr ? text.ptr : "", text.len}, &arena, diag) == MAQ_OK) {
        for (uint32_t i = 0; i < table.csv.n_rows; i++)
            for (uint32_t c = 0; c < table.csv.n_columns; c++)
                MAQ_ASSERT(maq_csv_span(&table.csv, i, c).off <= text.len);
        if (maq_row_table_bind(&table, diag) == MAQ_OK)
            interpret_rows(&table, &arena);
    }
    free(maq_diag_format(diag, 0, false));
    maq_arena_fini(&arena);
    maq_buf_fini(&text);
    maq_diag_free(diag);
    return 0;
}
