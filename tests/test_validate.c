/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate.c - tables of measurements: reading them, what their prose means, and what is said about the errors.
 *
 * tests/data/validate/small.csv is invented. The published table is read when MAQ_SHARED names the folder it lies in.
 * maq-test: threads maq-test: long
 */
#include "maquette/validate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "validate/codes.h"
#include "validate/phrase.h"
#include "validate/train/interpret.h"
#include "validate/train/run.h"
#include "validate_row.h"

#define ASSERT_NEAR(a, b, margin)                                                                                      \
    do {                                                                                                               \
        if (!(fabs((a) - (b)) <= (margin)))                                                                            \
            fail_msg("%s is %.17g, not %.17g", #a, (double)(a), (double)(b));                                          \
    } while (0)

/* ---- CSV ---- */

static void assert_cell(const struct table *t, uint32_t row, const char *column, const char *want)
{
    struct maq_str cell = maq_csv_get(&t->csv, row, maq_csv_column(&t->csv, column));
    if (!maq_str_is(cell, want))
        fail_msg("row %u, %s: '%.*s', not '%s'", row, column, (int)cell.len, cell.ptr, want);
}

static void test_csv(void **state)
{
    struct table t;
    open_table(&t, "\xEF\xBB\xBF"
                   "a,b,c\r\n1,\"x, y\",3\r\n\r\n\"say \"\"hi\"\"\",\"two\nlines\",\n,,");
    assert_int_equal(t.status, MAQ_OK);
    assert_int_equal(t.csv.n_columns, 3);
    assert_int_equal(t.csv.n_rows, 3);
    assert_cell(&t, 0, "a", "1");
    assert_cell(&t, 0, "b", "x, y");
    assert_cell(&t, 1, "a", "say \"hi\"");
    assert_cell(&t, 1, "b", "two\nlines");
    assert_cell(&t, 1, "c", "");
    assert_cell(&t, 2, "c", "");
    assert_int_equal(maq_csv_column(&t.csv, "d"), UINT32_MAX);
    assert_int_equal(maq_csv_get(&t.csv, 0, UINT32_MAX).len, 0);
    struct maq_place at = maq_diag_place(t.diag, maq_csv_span(&t.csv, 1, 2));
    assert_int_equal(at.line, 5);
    close_table(&t);
}

static void test_csv_faults(void **state)
{
    static const struct {
        const char *text;
        uint16_t code;
        uint32_t line;
    } cases[] = {
        {"", MAQ_CODE_CSV_HEADER, 1},
        {"\n\n", MAQ_CODE_CSV_HEADER, 1},
        {"a,b,a\n", MAQ_CODE_CSV_HEADER, 1},
        {"a,b\n1\n", MAQ_CODE_CSV_WIDTH, 2},
        {"a,b\n1,2\n1,2,3\n", MAQ_CODE_CSV_WIDTH, 3},
        {"a,b\n1,\"2\n", MAQ_CODE_CSV_QUOTE, 2},
        {"a,b\n\"1\"x,2\n", MAQ_CODE_CSV_QUOTE, 2},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct table t;
        open_table_as(&t, cases[i].text, i % 2 == 0); /* a table of nothing else is refused in any case */
        assert_int_equal(t.status, MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(t.diag, 0)->code, cases[i].code);
        assert_int_equal(maq_diag_place(t.diag, maq_diag_at(t.diag, 0)->at).line, cases[i].line);
        close_table(&t);
    }
}

/* What a launcher wrote between the rows, and a quote that is never closed, cost their own lines and no others. */
static void test_csv_dirt(void **state)
{
    static const char text[] = "a,b\n1,2\n[rank0]:[W] watchdog, timeout, 600\n3,\"4\n5,6\n\"7\"x,8\n9,10\n12,13\n11";
    struct table t;
    open_table(&t, text);
    assert_int_equal(t.status, MAQ_OK);
    assert_int_equal(t.csv.n_rows, 4);
    for (uint32_t i = 0; i < 4; i++) {
        static const char *const first[] = {"1", "5", "9", "12"};
        assert_true(maq_str_is(maq_csv_get(&t.csv, i, 0), first[i]));
    }
    assert_int_equal(maq_diag_count(t.diag), 1);
    assert_int_equal(maq_diag_at(t.diag, 0)->code, 1033);
    assert_non_null(
        strstr(maq_diag_at(t.diag, 0)->msg.ptr, "4 lines left out that are none of the table (the first at line 3)"));
    close_table(&t);
    open_table_as(&t, text, true);
    assert_int_equal(t.status, MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(t.diag, 0)->code, MAQ_CODE_CSV_WIDTH);
    close_table(&t);
}

/* ---- phrases ---- */

static void test_phrases(void **state)
{
    static const struct {
        const char *text, *pattern;
        bool found;
        double number;
    } cases[] = {
        {"FP8 (TE)", "te", true, 0},
        {"FP8 (float8 tensorwise)", "te", false, 0},
        {"FP8 (float8 tensorwise)", "fp8&*tensorwise", true, 0},
        {"FSDP2 (ZeRO-3), shard degree 8", "shard group #|shard degree #", true, 8},
        {"FSDP2", "fsdp#&!fsdp2", false, 0},
        {"FSDP128 x DP4", "fsdp#&!fsdp2", true, 128},
        {"CPU  activation offload of 40 layers", "offload of # layer*", true, 40},
        {"capacity factor 1.25; token drop", "capacity factor #", true, 1.25},
        {"none (DP=1)", "^none", true, 0},
        {"set to none", "^none", false, 0},
        {"DP64", "^dp#", true, 64},
        {"FSDP+DP64", "^dp#", false, 0},
        {"", "full", false, 0},
        {"full", "", false, 0},
        {"selective (core attention)", "selective&core attention", true, 0},
        {"megatron-bridge", "nemo&!automodel|megatron-bridge", true, 0},
        {"NeMo AutoModel", "nemo&!automodel|megatron-bridge", false, 0},
        {"99999999999999999999999999", "#", false, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_phrase_match m = {0};
        bool found = maq__phrase_in(maq_str_of(cases[i].text), cases[i].pattern, &m);
        if (found != cases[i].found ||
            (cases[i].number > 0 && (m.n != 1 || fabs(m.number[0] - cases[i].number) > 1e-12)))
            fail_msg("'%s' in '%s': %d, number %g", cases[i].pattern, cases[i].text, found, m.n ? m.number[0] : -1);
    }
    char name[16];
    assert_string_equal(maq__plain_name(name, sizeof name, maq_str_of("Llama-2-70B")), "llama270b");
    assert_string_equal(maq__plain_name(name, 4, maq_str_of("Llama-2-70B")), "lla");
}

/* ---- one row ---- */

static void test_network(void **state)
{
    static const struct {
        const char *note, *cluster;
    } cases[] = {
        {"8x 400 Gb/s NDR InfiniBand per node (spec; not in table)", "h100-sxm:8 x 2, nics 8 x 400G ib"},
        {"400 Gb/s per GPU InfiniBand", "h100-sxm:8 x 2, rail 400G ib"},
        {"400 Gb/s RDMA per GPU", "h100-sxm:8 x 2, rail 400G "},
        {"1600 Gbps node-node RoCE", "h100-sxm:8 x 2, nics 8 x 200G roce"},
        {"4x 100 Gb RoCE per node", "h100-sxm:8 x 2, nics 4 x 100G roce"},
        {"4x 100 Gb/s OmniPath links per node", "h100-sxm:8 x 2, nics 4 x 100G omnipath"},
        {"EFA 3200 Gb/s per node", "h100-sxm:8 x 2, nics 32 x 100G efa-v2"},
        {"GCP A3 VM network (GPUDirect-TCPX; bandwidth not stated)", "h100-sxm:8 x 2, gpudirect-tcpx"},
        {"input 800 (Gb/s per node)", "h100-sxm:8 x 2, nics 8 x 100G "},
        {"100 GB/s per node", "h100-sxm:8 x 2, nics 8 x 100G "},
        {"\"Storage: 2x 100Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s, Management: 10Gb/s\"",
         "h100-sxm:8 x 2, nics 8 x 400G ib"},
        {"1x 400G per node", "h100-sxm:8 x 2, nics 1 x 400G "},
        {"4x200Gb/s HDR", "h100-sxm:8 x 2, nics 4 x 200G ib"},
        {"\"1x Ethernet 100Gb/s, 8x InfiniBand 400Gb/s\"", "h100-sxm:8 x 2, nics 8 x 400G ib"},
        {"\"8x InfiniBand 400Gb/s, 1x Ethernet 100Gb/s\"", "h100-sxm:8 x 2, nics 8 x 400G ib"},
        {"\"2x 25G; 4x 200Gb/s RoCE\"", "h100-sxm:8 x 2, nics 4 x 200G roce"},
        {"\"NVLink 900 GB/s, 400 Gb/s NDR per GPU\"", "h100-sxm:8 x 2, rail 400G ib"},
        {"IB HDR 200Gb/s x 8", "h100-sxm:8 x 2, nics 8 x 200G ib"},
        {"Slingshot 11 4x200", "h100-sxm:8 x 2, nics 4 x 200G slingshot"},
        {"4x HDR InfiniBand", "h100-sxm:8 x 2, nics 4 x 200G ib"},
        {"InfiniBand HDR100", "h100-sxm:8 x 2, rail 100G ib"},
        {"rail-optimized NDR400", "h100-sxm:8 x 2, rail 400G ib"},
        {"Spectrum-X 400GbE", "h100-sxm:8 x 2, rail 400G roce"},
        {"100GbE InfiniBand", "h100-sxm:8 x 2"},
        {"", "h100-sxm:8 x 2"},
        {"InfiniBand; Data bandwidth for GPU-PCIe: 504 GB/s", "h100-sxm:8 x 2"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, "4,1024,16,2048,32,1,1,16,16,8,H100,x,1", "inter_node_bw_note", cases[i].note);
        assert_string_equal(o.in.cluster, cases[i].cluster);
        struct maq_loaded_job *box = NULL;
        if (maq_job_parse(&box, "row", maq_str_of(o.job), NULL, 0, o.t.diag) != MAQ_OK) {
            char *why = maq_diag_format(o.t.diag, 0, false);
            fail_msg("%s: %s", cases[i].note, why);
        }
        maq_job_free(box);
        close_table(&o.t);
    }
}

/* A number of model chunks that nobody states makes a prediction as wide as the numbers that recipes have. */
static void test_chunks(void **state)
{
    static const struct {
        const char *columns, *cells;
        uint32_t n;
        int64_t first, last;
    } cases[] = {
        {"framework", "NeMo 24.12", 4, 1, 8}, /* 8 layers per stage: one chunk, and chunks of 4, 2 and 1 layers */
        {"framework", "torchtitan", 0, 1, 1}, /* whose recipes do not interleave */
        {"framework,vp", "NeMo 24.12,2", 0, 2, 2},
        {"framework,notes", "NeMo 24.12,VPP 4", 0, 4, 4},
        {"framework,notes", "NeMo 24.12,header prints VP=8; yaml has virtual_pipeline_model_parallel_size 4", 2, 4, 8},
        {"framework,notes", "NeMo 24.12,plain 1F1B", 0, 1, 1},
        {"framework,notes", "NeMo 24.12,interleaved schedule", 3, 2, 8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, "32,4096,32,2048,256,1,4,16,64,8,H100,x,1", cases[i].columns, cases[i].cells);
        if (o.in.n_chunks != cases[i].n || o.in.vp != cases[i].first ||
            (cases[i].n > 0 && o.in.chunks[cases[i].n - 1] != cases[i].last))
            fail_msg("%s: %u, first %lld", cases[i].cells, o.in.n_chunks, (long long)o.in.vp);
        close_table(&o.t);
    }
    static const char table[] = NEEDED ",framework\n32,4096,32,2048,256,1,4,16,64,8,H100,x,1,NeMo 24.12\n";
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t", maq_str_of(table), NULL, NULL), MAQ_OK);
    const struct maq_validate_row *row = &r->rows[0];
    double wide = row->high[MAQ_VALIDATE_TIME] / row->low[MAQ_VALIDATE_TIME];
    static const char stated[] = NEEDED ",framework,vp\n32,4096,32,2048,256,1,4,16,64,8,H100,x,1,NeMo 24.12,2\n";
    struct maq_validate_result *s = NULL;
    assert_int_equal(maq_validate_train_text(&s, "t", maq_str_of(stated), NULL, NULL), MAQ_OK);
    assert_true(wide > 1.02 * s->rows[0].high[MAQ_VALIDATE_TIME] / s->rows[0].low[MAQ_VALIDATE_TIME]);
    assert_true(row->points[MAQ_VALIDATE_TIME].predicted < row->high[MAQ_VALIDATE_TIME] &&
                row->points[MAQ_VALIDATE_TIME].predicted > row->low[MAQ_VALIDATE_TIME]);
    maq_validate_free(r);
    maq_validate_free(s);
}

static double predicted(const char *table, double *width)
{
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t", maq_str_of(table), NULL, NULL), MAQ_OK);
    const struct maq_validate_row *row = &r->rows[0];
    double s = row->points[MAQ_VALIDATE_TIME].predicted;
    assert_true(row->simulated);
    *width = row->high[MAQ_VALIDATE_TIME] / row->low[MAQ_VALIDATE_TIME];
    maq_validate_free(r);
    return s;
}

/* A microbatch that nobody states: the middle one of those that divide the batch and fit, with an interval as wide as all. */
static void test_microbatches(void **state)
{
    static const struct {
        const char *cells;
        uint32_t n;
        int64_t last;
    } cases[] = {
        {"32,4096,32,2048,256,1,1,16,16,8,H100,x,1", 4, 8}, /* 16 sequences of a rank */
        {"32,4096,32,2048,96,1,1,16,16,8,H100,x,1", 2, 2},  /* 6 */
        {"32,4096,32,2048,16,1,1,16,16,8,H100,x,1", 0, 0},  /* one: nothing is open */
        {"32,4096,32,2048,256,1,8,2,16,8,H100,x,1", 4, 8},  /* 128 over 8 stages: 16 microbatches are left */
        {"32,4096,32,2048,32,1,8,2,16,8,H100,x,1", 2, 2},   /* 16 over 8 stages: no fewer microbatches than stages */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].cells, "mbs", "");
        if (o.in.n_batches != cases[i].n || o.in.mbs != 1 ||
            (cases[i].n > 0 && o.in.batches[cases[i].n - 1] != cases[i].last))
            fail_msg("%s: %u, first %lld", cases[i].cells, o.in.n_batches, (long long)o.in.mbs);
        close_table(&o.t);
    }
    double width[5], s[5];
    s[0] = predicted(NEEDED ",mbs\n16,1024,16,1024,64,1,1,8,8,8,H100,x,1,\n", &width[0]);
    s[1] = predicted(NEEDED ",mbs\n16,1024,16,1024,64,1,1,8,8,8,H100,x,1,1\n", &width[1]);
    s[2] = predicted(NEEDED ",mbs\n16,1024,16,1024,64,1,1,8,8,8,H100,x,1,2\n", &width[2]);
    s[3] = predicted(NEEDED ",mbs\n16,1024,16,1024,64,1,1,8,8,8,H100,x,1,4\n", &width[3]);
    s[4] = predicted(NEEDED ",mbs\n16,1024,16,1024,64,1,1,8,8,8,H100,x,1,8\n", &width[4]);
    assert_true(s[1] > s[2] && s[2] > s[3] && s[3] > s[4]);
    assert_true(s[0] == s[3] && width[0] > width[1] * 1.1 && width[0] > width[4] * 1.1);
}

/* As drivers, clouds and people write them. */
static void test_device_names(void **state)
{
    static const struct {
        const char *gpu, *device;
    } cases[] = {
        {"NVIDIA H100 80GB HBM3", "h100-sxm"},
        {"A100 80GB PCIe", "a100-80gb-pcie"},
        {"Tesla V100-SXM3-32GB", "v100-32gb"},
        {"AMD Instinct MI300X", "mi300x"},
        {"GB200 NVL72", "gb200"},
        {"RTX A6000", "a6000"},
        {"H100 SXM5 (p5.48xlarge)", "h100-sxm"},
        {"DGX B200", "b200"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char row[128];
        snprintf(row, sizeof row, "4,1024,16,2048,32,1,1,16,16,8,%s,x,1", cases[i].gpu);
        interpret(&o, row, "mbs", "1");
        assert_int_equal(o.in.skip, MAQ_VALIDATE_SKIP_NONE);
        assert_memory_equal(o.in.cluster, cases[i].device, strlen(cases[i].device));
        assert_true(o.in.cluster[strlen(cases[i].device)] == ':');
        close_table(&o.t);
    }
}

static void test_nodes(void **state)
{
    struct one o;
    interpret(&o, "4,1024,16,2048,32,1,1,4,4,8,A100,x,1", "mbs", "1");
    assert_string_equal(o.in.cluster, "a100-80gb:4 x 1");
    close_table(&o.t);
    interpret(&o, "4,1024,16,2048,12,1,1,12,12,8,A100,x,1", "mbs", "1");
    assert_string_equal(o.in.cluster, "a100-80gb:6 x 2");
    close_table(&o.t);
    interpret(&o, "4,1024,16,2048,32,1,1,8,8,4,GB200,x,1", "intra_node_bw_note", "\"NVLink5, NVL72 (spec)\"");
    assert_string_equal(o.in.cluster, "gb200:4 x 2, domain 72");
    close_table(&o.t);
    interpret(&o, "4,1024,16,2048,128,1,1,128,128,4,GB200,x,1", "intra_node_bw_note", "\"NVLink5, NVL72 (spec)\"");
    assert_string_equal(o.in.cluster, "gb200:4 x 32, domain 64");
    close_table(&o.t);
    interpret(&o, "4,1024,16,2048,144,1,1,144,144,4,GB200,x,1", "intra_node_bw_note", "\"NVLink5, NVL72 (spec)\"");
    assert_string_equal(o.in.cluster, "gb200:4 x 36, domain 72");
    close_table(&o.t);
}

/* What a phrase of a column turns into: a piece of the job's text. */
static void test_plan_phrases(void **state)
{
    static const char dense[] = "8,1024,16,2048,256,2,1,8,16,8,H100,x,1",
                      moe[] = "61,7168,128,4096,2048,1,4,64,256,4,GB200,DeepSeek-V3,1";
    static const struct {
        const char *row, *columns, *cells, *want;
    } cases[] = {
        {dense, "recompute", "full activation checkpointing", "\"recompute_granularity\": \"full\""},
        {dense, "recompute", "none (launcher yaml: null / 0 layers)", "\"recompute_granularity\": \"none\""},
        {dense, "recompute", "selective (core attention)", "\"recompute_granularity\": \"selective\""},
        {dense, "recompute", "block/full recompute of 5 layer(s) per (virtual) stage", "\"recompute_num_layers\": 5"},
        {dense, "recompute", "selective layer", "\"recompute_num_layers\": 4"},
        {moe, "recompute,experts,topk", "\"selective modules: mla_up_proj,mlp\",256,8",
         "\"recompute_modules\": [\"mla_up_proj\", \"mlp\"]"},
        {dense, "recompute", "recompute 2 of 8 layers", "\"recompute_num_layers\": 2"},
        {dense, "recompute", "block 3 layers", "\"recompute_num_layers\": 3"},
        {dense, "recompute", "every second layer", "\"recompute_num_layers\": 4"},
        {dense, "recompute", "gradient checkpointing", "\"recompute_granularity\": \"full\""},
        {dense, "recompute", "activation recomputation", "\"recompute_granularity\": \"full\""},
        {dense, "recompute", "no", "\"recompute_granularity\": \"none\""},
        {dense, "recompute", "mlp only", "\"recompute_modules\": [\"mlp\"]"},
        {dense, "recompute", "\"selective: core attention, RMSNorm\"",
         "\"recompute_modules\": [\"core_attn\", \"layernorm\"]"},
        {moe, "recompute,experts,topk", "\"RMSNorm, MLA up-projections and SwiGLU\",256,8",
         "\"recompute_modules\": [\"layernorm\", \"mla_up_proj\", \"moe_act\"]"},
        {dense, "zero_or_fsdp", "DeepSpeed ZeRO stage 3",
         "\"data_parallel_sharding_strategy\": \"optim_grads_params\""},
        {dense, "zero_or_fsdp", "zero2", "\"data_parallel_sharding_strategy\": \"optim_grads\""},
        {dense, "zero_or_fsdp", "DDP", "\"data_parallel_sharding_strategy\": \"no_shard\""},
        {dense, "zero_or_fsdp", "hybrid shard", "\"data_parallel_sharding_strategy\": \"optim_grads_params\""},
        {dense, "zero_or_fsdp", "FSDP FULL_SHARD (ZeRO-3)",
         "\"data_parallel_sharding_strategy\": \"optim_grads_params\""},
        {dense, "zero_or_fsdp", "FSDP SHARD_GRAD_OP (ZeRO-2)", "\"reshard_after_forward\": false"},
        {dense, "zero_or_fsdp", "FSDP HYBRID_SHARD", "\"data_parallel_sharding_strategy\": \"optim_grads_params\""},
        {dense, "zero_or_fsdp", "\"ZeRO-1, shard group 4\"", "\"num_distributed_optimizer_instances\": 2"},
        {dense, "zero_or_fsdp", "none (plain DP)", "\"data_parallel_sharding_strategy\": \"no_shard\""},
        {dense, "zero_or_fsdp", "distributed optimizer (ZeRO-2 per paper)",
         "\"data_parallel_sharding_strategy\": \"optim\""},
        {dense, "precision", "\"FP8 (delayed scaling, TE hybrid)\"", "\"precision\": \"fp8-delayed\""},
        {dense, "precision", "FP8 (float8 rowwise)", "\"precision\": \"fp8-rowwise\""},
        {dense, "precision", "\"FP8 (per-tensor current scaling, FP8-CS)\"", "\"precision\": \"fp8-current\""},
        {dense, "precision", "FP8 alternate granularity", "\"precision\": \"fp8-blockwise\""},
        {moe, "precision,experts,topk", "FP8 alternate granularity,256,8", "\"precision\": \"mxfp8\""},
        {dense, "precision", "BF16 (amp)", "\"precision\": \"bf16\""},
        {dense, "precision,framework", ",MLPerf Training v5.1", "\"framework\": \"mlperf-nvidia\""},
        {dense, "precision,framework", ",Megatron-LM", "\"precision\": \"auto\""},
        {dense, "overlap_notes", "\"ub_tp_comm_overlap True, overlap_p2p_comm True\"", "\"tp_comm_overlap\": true"},
        {dense, "overlap_notes", "ub_tp_comm_overlap True for Xylem-1B/X", "\"tp_comm_overlap\": true"},
        {dense, "overlap_notes", "ub_tp_comm_overlap True for Llama-2-70B/Llama-3-70B", "\"tp_comm_overlap\": false"},
        {dense, "overlap_notes", "no TP overlap; DP=1", "\"tp_comm_overlap\": false"},
        {dense, "overlap_notes", "no overlap_grad_reduce/param_gather", "\"overlap_grad_reduce\": false"},
        {dense, "overlap_notes", "overlap_grad_sync/overlap_param_sync True", "\"overlap_param_gather\": true"},
        {dense, "overlap_notes", "BF16 grad reduce", "\"grad_reduce_dtype\": \"bf16\""},
        {dense, "overlap_notes", "CUDA graphs local scope=full_iteration", "\"enable_cuda_graph\": true"},
        {dense, "overlap_notes", "CUDA graphs none scope=full_iteration", "\"enable_cuda_graph\": false"},
        {dense, "overlap_notes", "CPU activation offload of 3 layers", "\"cpu_offloading_num_layers\": 3"},
        {dense, "overlap_notes", "vocabulary parallelism variant 2", "\"vocab_parallel_pipeline\": true"},
        {dense, "framework,year", "Megatron-LM,2021", "\"framework\": \"megatron-lm-2022\""},
        {dense, "framework,year", "Megatron-LM,2021", "\"recompute_granularity\": \"selective\""},
        {dense, "framework,year", "Megatron-LM,2024", "\"framework\": \"megatron-lm\""},
        {dense, "framework,year", "Megatron-LM,2021", "\"attention_dropout\": 0.1"},
        {dense, "framework,year", "Megatron-LM,2024", "\"attention_dropout\": 0.0"},
        {dense, "framework,year", "torchtitan (FSDP2),2024", "\"framework\": \"torchtitan\""},
        {dense, "framework", "Megatron-DeepSpeed (Jean-Zay)", "\"framework\": \"megatron-deepspeed\""},
        {dense, "framework", "NeMo AutoModel (PyTorch FSDP2)", "\"framework\": \"nemo-automodel\""},
        {moe, "framework,completeness,experts,topk", "Megatron-Bridge,full,256,8",
         "\"moe_token_dispatcher_type\": \"alltoall\""},
        {moe, "overlap_notes,experts,topk", "MoE dispatcher hybridep; EP all-to-all/1F1B overlap on,256,8",
         "\"moe_token_dispatcher_type\": \"hybridep\""},
        {moe, "overlap_notes,vp,experts,topk", "EP all-to-all/1F1B overlap on,4,256,8",
         "\"overlap_moe_expert_parallel_comm\": true"},
        {moe, "overlap_notes,experts,topk", "EP all-to-all/1F1B overlap on,256,8",
         "\"virtual_pipeline_model_parallel_size\": 4"}, /* of 4 layers, as recipes have them */
        {moe, "framework,notes", "Megatron-LM,1F1B-I with VPP 8", "\"pipeline_schedule\": \"interleaved\""},
        {moe, "framework,notes", "Megatron-LM,1F1B-I with VPP 8", "\"virtual_pipeline_model_parallel_size\": 8"},
        {moe, "framework", "DualPipe (DeepSeek)", "\"pipeline_schedule\": \"dualpipe\""},
        {moe, "notes", "ZB-1p of zero-bubble-pipeline-parallelism", "\"pipeline_schedule\": \"zb-1p\""},
        {moe, "notes", "ZB-2p", "\"pipeline_schedule\": \"zb-2p\""},
        {moe, "notes", "zero bubble schedule", "\"pipeline_schedule\": \"zb-1p\""},
        {moe, "notes", "schedule ZB-V", "\"pipeline_schedule\": \"zb-v\""},
        {moe, "notes,experts,topk", "\"token drop, capacity factor 1.5\",256,8", "\"moe_expert_capacity_factor\": 1.5"},
        {moe, "notes,experts,topk", "token drop,256,8", "\"moe_token_dispatcher_type\": \"alltoall\""},
        {moe, "overlap_notes,notes,experts,topk", "MoE dispatcher deepep,token drop,256,8",
         "\"moe_token_dispatcher_type\": \"deepep\""},
        {moe, "framework,precision", "Megatron-Bridge (NeMo container 26.08),MXFP8",
         "\"framework\": \"megatron-bridge-26.06\""},
        {dense, "framework", "Megatron-Bridge (NeMo container 26.04)", "\"framework\": \"megatron-bridge\""},
        {dense, "framework", "Pax/JAX (older release)", "\"framework\": \"paxml-2023\""},
        {dense, "framework", "Pax/JAX (newer release)", "\"framework\": \"paxml\""},
        {"12,768,12,2048,256,1,1,64,64,8,H100,GPT3-126M,4", "framework,precision", "Pax/JAX (newer release),BF16 (TE)",
         "\"framework\": {\"softmax_rereads_scores\": false, \"base\": \"paxml\"}"},
        {moe, "overlap_notes,vp,experts,topk", "pp_layout Et*4|(t*4|)*14tmL,4,256,8",
         "\"pipeline_model_parallel_layout\": \"Et*4|(t*4|)*14tmL\""},
        {moe, "vp,experts,topk", "4,256,8", "\"pipeline_model_parallel_layout\": \"balanced\""},
        {moe, "vp,experts,topk,tflops_per_gpu,derived_tokens_per_s_per_gpu", "4,256,8,996,4000",
         "\"num_nextn_predict_layers\": 0"},
        {"126,16384,128,8192,256,4,8,4,128,8,H100,Llama3.1-405B,1", "vp", "8",
         "\"account_for_loss_in_pipeline_split\": true"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].row, cases[i].columns, cases[i].cells);
        if (!strstr(o.job, cases[i].want))
            fail_msg("%s = %s: no %s in %s", cases[i].columns, cases[i].cells, cases[i].want, o.job);
        json_t *document = json_loads(o.job, 0, NULL);
        if (!document)
            fail_msg("%s = %s: no JSON: %s", cases[i].columns, cases[i].cells, o.job);
        json_decref(document);
        close_table(&o.t);
    }
}

static void test_models(void **state)
{
    static const struct {
        const char *row, *columns, *cells, *want;
    } cases[] = {
        {"32,4096,32,8192,8,1,1,8,8,8,H100,Llama3-8B,1", "ffn,kv_heads,vocab", "14336,8,128256",
         "{\"base\": \"llama-3-8b\"}"},
        {",,,8192,8,1,1,8,8,8,H100,Llama3-8B,1", "", "", "{\"base\": \"llama-3-8b\"}"}, /* by its name */
        {",,,4096,8,1,1,8,8,8,H100,Mixtral 8x7B,1", "", "", "{\"base\": \"mixtral-8x7b\"}"},
        {"12,8192,64,4096,8,1,1,8,8,8,H100,\"Llama3-70B (reduced, 12 layers)\",1", "ffn", "28672",
         "{\"base\": \"llama-3-70b\", \"num_hidden_layers\": 12}"},
        {"126,16384,128,8192,8,1,1,8,8,8,H100,Llama3.1-405B,1", "kv_heads,vocab", "16,128256",
         "{\"base\": \"llama-3.1-405b\", \"num_key_value_heads\": 16}"},
        {"32,4096,32,2048,8,1,1,8,8,8,H100,MPT-7b,1", "ffn,kv_heads,vocab", "16384,32,50368", "\"base\": \"mpt-7b\""},
        {"32,4096,32,8192,8,1,1,8,8,8,H100,Llama3-8B,1", "ffn,kv_heads,vocab", "14400,8,128256",
         "\"swiglu\": true"}, /* another MLP */
        {"24,2048,16,2048,8,1,1,8,8,8,H100,Nobody-1B,1", "ffn,kv_heads", "8192,16",
         "\"max_position_embeddings\": 2048"},
        {"24,2048,16,2048,8,1,1,8,8,8,H100,Nobody-1B,1", "ffn,kv_heads", "8192,4", "\"num_query_groups\": 4"},
        {"24,2048,16,2048,8,1,1,8,8,8,H100,Nobody-1B,1", "", "", "\"ffn_hidden_size\": 8192"},
        {"24,2048,16,2048,8,1,1,8,8,8,H100,Nobody-1B,1", "experts,topk,moe_ffn,ffn", "8,2,4096,4096",
         "\"num_experts\": 8"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].row, cases[i].columns, cases[i].cells);
        if (!strstr(o.job, cases[i].want))
            fail_msg("%s: no %s in %s", cases[i].row, cases[i].want, o.job);
        struct maq_loaded_job *box = NULL;
        assert_int_equal(maq_job_parse(&box, "row", maq_str_of(o.job), NULL, 0, o.t.diag), MAQ_OK);
        maq_job_free(box);
        close_table(&o.t);
    }
}

static void test_skips_of_one_row(void **state)
{
    static const struct {
        const char *row, *columns, *cells;
        enum maq_validate_skip skip;
    } cases[] = {
        {",1024,16,2048,32,1,1,16,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_MODEL},
        {",,,2048,32,1,1,16,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_MODEL},
        {",1024,,2048,32,1,1,16,16,8,H100,Llama3-8B,1", "", "", MAQ_VALIDATE_SKIP_NO_MODEL},
        {",,,2048,32,1,1,16,16,8,H100,Llama3-8B,1", "", "", MAQ_VALIDATE_SKIP_NONE},
        {"4,1024,16,2048,32,3,1,,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_MAPPING},
        {"4,1024,16,2048,32,2,1,,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NONE},
        {"4,1024,16,2048,32,1,,16,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NONE}, /* 16 devices leave one stage */
        {"4,1024,16,2048,32,,,4,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_MAPPING},
        {"4,1024,16,2048,32,,,,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_MAPPING},
        {"4,1024,16,,32,1,1,16,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_BATCH},
        {"4,1024,16,2048,32,1,1,16,16,8,Z80,x,1", "", "", MAQ_VALIDATE_SKIP_NO_DEVICE},
        {"4,1024,16,2048,32,1,1,16,99999999,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NO_DEVICE},
        {"4,1024,16,2048,32,1,1,1.5,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_UNREADABLE},
        {"4,1024,16,2048,32,1,1,-8,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_UNREADABLE},
        {"4,1024,16,2048,32,1,1,16,16,8,H100,x,1", "vp", "1e99", MAQ_VALIDATE_SKIP_UNREADABLE},
        {"4,1024,16,2048,999999999,1,64,1,64,8,H100,x,1", "vp", "8", MAQ_VALIDATE_SKIP_REFUSED},
        {"4,1024,16,2048,64,1,64,1,64,8,H100,x,1", "vp", "999999", MAQ_VALIDATE_SKIP_REFUSED},
        {"4,1024,16,2048,32,1,1,16,16,8,H100,x,1", "experts", "8", MAQ_VALIDATE_SKIP_NO_MODEL},
        {"4,1024,16,2048,32,1,1,16,16,8,H100,Llama GRPO,1", "", "", MAQ_VALIDATE_SKIP_NOT_TRAINING},
        {"4.0,1024,16,2048,32,1,1,16,16,8,H100,x,1", "", "", MAQ_VALIDATE_SKIP_NONE},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].row, cases[i].columns, cases[i].cells);
        if (o.in.skip != cases[i].skip)
            fail_msg("%s: %s, not %s", cases[i].row, maq_validate_skip_text(o.in.skip),
                     maq_validate_skip_text(cases[i].skip));
        close_table(&o.t);
    }
}

/* ---- a table ---- */

static char *small_path(void)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char *path;
    assert_true(asprintf(&path, "%s/tests/data/validate/small.csv", root ? root : ".") > 0);
    return path;
}

static struct maq_validate_result *run(const struct maq_validate_opts *opts)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    char *path = small_path();
    if (maq_validate_train(&r, path, opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    free(path);
    maq_diag_free(diag);
    return r;
}

static const struct maq_validate_row *row_of(const struct maq_validate_result *r, const char *id)
{
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (strcmp(r->rows[i].id, id) == 0)
            return &r->rows[i];
    fail_msg("no row %s", id);
    return NULL;
}

static void test_small_table(void **state)
{
    static const struct {
        const char *id;
        enum maq_validate_skip time, memory;
    } want[] = {
        {"a-1", MAQ_VALIDATE_SKIP_NONE, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"a-2", MAQ_VALIDATE_SKIP_NONE, MAQ_VALIDATE_SKIP_NONE},
        {"a-3", MAQ_VALIDATE_SKIP_NONE, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"b-1", MAQ_VALIDATE_SKIP_NONE, MAQ_VALIDATE_SKIP_NONE},
        {"c-1", MAQ_VALIDATE_SKIP_NONE, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-2", MAQ_VALIDATE_SKIP_PARTIAL, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-3", MAQ_VALIDATE_SKIP_NO_MAPPING, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-4", MAQ_VALIDATE_SKIP_NO_DEVICE, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-5", MAQ_VALIDATE_SKIP_FLAGGED, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-6", MAQ_VALIDATE_SKIP_REFUSED, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-7", MAQ_VALIDATE_SKIP_UNREADABLE, MAQ_VALIDATE_SKIP_NOT_MEASURED},
        {"c-8", MAQ_VALIDATE_SKIP_NOT_MEASURED, MAQ_VALIDATE_SKIP_NOT_MEASURED},
    };
    struct maq_validate_result *r = run(NULL);
    for (size_t i = 0; i < MAQ_COUNT(want); i++) {
        const struct maq_validate_row *row = row_of(r, want[i].id);
        if (row->points[0].skip != want[i].time || row->points[1].skip != want[i].memory)
            fail_msg("%s: %s (%s), %s", row->id, maq_validate_skip_text(row->points[0].skip), row->why,
                     maq_validate_skip_text(row->points[1].skip));
        for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
            if (row->points[m].skip == MAQ_VALIDATE_SKIP_NONE)
                assert_true(row->points[m].predicted > 0 && isfinite(row->points[m].error));
    }
    assert_int_equal(row_of(r, "a-2")->mem_kind, MAQ_VALIDATE_RESERVED);
    ASSERT_NEAR(row_of(r, "a-2")->points[MAQ_VALIDATE_MEMORY].measured, 40 * 1073741824.0, 1);
    assert_int_equal(row_of(r, "b-1")->mem_kind, MAQ_VALIDATE_TOTAL);
    ASSERT_NEAR(row_of(r, "b-1")->points[MAQ_VALIDATE_MEMORY].measured, 20e3 * 1048576.0, 1); /* thousands of MiB */
    assert_non_null(strstr(row_of(r, "c-6")->why, "multiple"));
    assert_int_equal(row_of(r, "b-1")->line, 6); /* a note above it has two lines */
    assert_int_equal(r->total.rows, r->n_rows);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_SOURCE].n, 3);
    maq_validate_free(r);
}

static void test_threads_do_not_matter(void **state)
{
    char *first = NULL;
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
        opts.threads = threads;
        struct maq_validate_result *r = run(&opts);
        char *json = maq_validate_json(r);
        assert_non_null(json);
        if (first)
            assert_string_equal(json, first);
        else
            first = strdup(json);
        free(json);
        maq_validate_free(r);
    }
    free(first);
}

/* A prediction depends on what a row says, not on what the row or its source is called. */
static void test_names_do_not_matter(void **state)
{
    static const char text[] = NEEDED
        ",id,source,framework,completeness,ffn,kv_heads,mbs\n"
        "24,2048,16,2048,64,2,1,8,16,8,A100,Acorn,1,r-1,first,Megatron-DeepSpeed,near,8192,16,1\n"
        "24,2048,16,2048,64,2,1,8,16,8,A100,Acorn,1,vtrain-single-0007,vtrain-single,Megatron-DeepSpeed,near,8192,16,"
        "1\n"
        "24,2048,16,2048,64,2,1,8,16,8,A100,Acorn,1,bloom-prequel-1,bloom-prequel,Megatron-DeepSpeed,near,8192,16,1\n";
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t", MAQ_STR(text), NULL, diag), MAQ_OK);
    for (uint32_t i = 1; i < r->n_rows; i++) {
        assert_string_equal(r->rows[i].job, r->rows[0].job);
        assert_true(r->rows[i].points[0].predicted > 0);
        assert_memory_equal(&r->rows[i].points[0].predicted, &r->rows[0].points[0].predicted, sizeof(double));
    }
    maq_validate_free(r);
    maq_diag_free(diag);
}

/* Seconds of a step are those stated; else what the rate of a GPU makes of them: 64 2048 / (16 2048) tokens/s = 4 s. */
static void test_measured_time(void **state)
{
    static const char text[] = NEEDED ",iter_time_s,tokens_per_s_per_gpu,derived_tokens_per_s_per_gpu\n"
                                      "24,2048,16,2048,64,2,1,8,16,8,A100,x,3,5,2048,1024\n"
                                      "24,2048,16,2048,64,2,1,8,16,8,A100,x,,5,2048,1024\n"
                                      "24,2048,16,2048,64,2,1,8,16,8,A100,x,,,2048,1024\n"
                                      "24,2048,16,2048,64,2,1,8,16,8,A100,x,,,,1024\n"
                                      "24,2048,16,2048,64,2,1,8,16,8,A100,x,,,,\n";
    static const double seconds[] = {3, 5, 4, 8};
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t", MAQ_STR(text), NULL, diag), MAQ_OK);
    assert_int_equal(r->n_rows, 5);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(r->rows[i].points[MAQ_VALIDATE_TIME].skip, MAQ_VALIDATE_SKIP_NONE);
        assert_true(r->rows[i].points[MAQ_VALIDATE_TIME].measured == seconds[i]);
    }
    assert_int_equal(r->rows[4].points[MAQ_VALIDATE_TIME].skip, MAQ_VALIDATE_SKIP_NOT_MEASURED);
    maq_validate_free(r);
    maq_diag_free(diag);
}

static void test_filters(void **state)
{
    const struct maq_validate_filter alpha[] = {{"source", "alpha"}, {"framework", "tor*"}},
                                     unknown[] = {{"colour", "red"}}, near[] = {{"sourc", "a"}},
                                     none[] = {{"id", "zzz"}};
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r;
    opts.where = alpha;
    opts.n_where = 2;
    r = run(&opts);
    assert_int_equal(r->total.rows, 1);
    assert_int_equal(r->total.stats[0][0].n, 1);
    assert_int_equal(row_of(r, "a-1")->points[0].skip, MAQ_VALIDATE_SKIP_FILTERED);
    char *text = maq_validate_text(r, 3);
    assert_non_null(strstr(text, "1 after the filters"));
    free(text);
    maq_validate_free(r);
    opts.where = none;
    opts.n_where = 1;
    r = run(&opts);
    assert_int_equal(r->total.rows, 0);
    text = maq_validate_svg(r, MAQ_VALIDATE_TIME);
    assert_non_null(strstr(text, "nothing to compare"));
    free(text);
    maq_validate_free(r);
    char *path = small_path();
    opts.where = unknown;
    assert_int_equal(maq_validate_train(&r, path, &opts, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, maq_diag_count(diag) - 1)->code, MAQ_CODE_CSV_FILTER);
    opts.where = near;
    assert_int_equal(maq_validate_train(&r, path, &opts, diag), MAQ_BAD_INPUT);
    const struct maq_diag_item *last = maq_diag_at(diag, maq_diag_count(diag) - 1);
    assert_true(maq_str_is(last->hint, "did you mean 'source'?"));
    free(path);
    maq_diag_free(diag);
}

/* Runs of one's own: nobody writes a source beside them, and a measurement may be written as nobody reads it. */
static void test_no_source(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    const char text[] = "model,seq_len,gpu,gpus,tp,pp,gbs,step_time_s\n"
                        "llama-3.1-8b,4096,H100,16,2,1,64,1.70\n"
                        "llama-3.1-8b,4096,H100,16,1,1,64,\"1,65\"\n"
                        "llama-3.1-8b,4096,H100,16,1,1,64,\n";
    assert_int_equal(maq_validate_train_text(&r, "t", maq_str_of(text), NULL, diag), MAQ_OK);
    assert_int_equal(r->weighted[MAQ_VALIDATE_TIME][0].n, 1);
    assert_int_equal(r->total.capped[MAQ_VALIDATE_TIME][0].n, 1);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_SOURCE].n, 1);
    assert_string_equal(r->rows[0].source, "unnamed");
    assert_int_equal(r->rows[1].points[MAQ_VALIDATE_TIME].skip, MAQ_VALIDATE_SKIP_UNREADABLE);
    assert_string_equal(r->rows[1].why, "iter_time_s '1,65'");
    assert_int_equal(r->rows[2].points[MAQ_VALIDATE_TIME].skip, MAQ_VALIDATE_SKIP_NOT_MEASURED);
    maq_validate_free(r);
    maq_diag_free(diag);
}

static void test_missing_columns(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t", MAQ_STR("id,model,hidden\n1,2,3\n"), NULL, diag), MAQ_BAD_INPUT);
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "no column 'seq_len'"));
    assert_non_null(strstr(text, "no column of a measurement"));
    assert_null(strstr(text, "no column 'mbs'"));
    free(text);
    assert_int_equal(maq_validate_train(&r, "/nonexistent/table.csv", NULL, diag), MAQ_IO);
    assert_int_equal(maq_validate_train(&r, "/", NULL, diag), MAQ_IO);
    text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "hint: that is a folder: give a table"));
    free(text);
    maq_diag_free(diag);
}

static void test_formats(void **state)
{
    struct maq_validate_result *r = run(NULL);
    char *json = maq_validate_json(r), *text = maq_validate_text(r, 2), *svg = maq_validate_svg(r, MAQ_VALIDATE_TIME);
    json_error_t error;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "maquette.validate.train/1");
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 2 * r->n_rows);
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "summary"), "sources")), 3);
    json_decref(root);
    assert_non_null(strstr(text, "every source alike"));
    assert_non_null(strstr(text, "assumed: "));
    assert_memory_equal(svg, "<svg ", 5);
    size_t marks = 0;
    for (const char *at = svg; (at = strstr(at, "<title>")) != NULL; at++)
        marks++;
    assert_int_equal(marks, r->total.stats[0][0].n);
    assert_null(strstr(svg, "nan"));
    free(json);
    free(text);
    free(svg);
    maq_validate_free(r);
}

/* Cells are shown, never obeyed: markup, control characters and bytes that are no text come out ignored. */
static void test_hostile_cells(void **state)
{
    static const char text[] =
        NEEDED ",id,source,notes\n"
               "24,2048,16,2048,64,2,1,8,16,8,A100,\"x\"\": {\",1,<b>&\x01,\"</svg>\xff\",\"base: ../../etc/passwd\"\n";
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    assert_int_equal(maq_validate_train_text(&r, "t<&\x80", MAQ_STR(text), NULL, diag), MAQ_OK);
    char *json = maq_validate_json(r), *svg = maq_validate_svg(r, MAQ_VALIDATE_TIME);
    json_t *root = json_loads(json, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    assert_null(strstr(svg, "<b>"));
    assert_string_equal(strstr(svg, "</svg>"), "</svg>\n");
    free(json);
    free(svg);
    maq_validate_free(r);
    maq_diag_free(diag);
}

/* ---- memory that runs out ---- */

static size_t allowed;

static bool gate(size_t bytes)
{
    (void)bytes;
    return allowed > 0 && allowed-- > 0;
}

static void test_no_memory(void **state)
{
    bool done = false;
    for (size_t n = 0; n < 4000 && !done; n += n < 60 ? 1 : 17) {
        struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
        struct maq_validate_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        static const char text[] = NEEDED ",mbs\n8,1024,16,2048,32,1,1,16,16,8,H100,x,1,1\n";
        opts.threads = 1;
        allowed = n;
        maq__set_alloc_gate(gate);
        enum maq_status status = maq_validate_train_text(&r, "t", MAQ_STR(text), &opts, diag);
        char *json = status == MAQ_OK ? maq_validate_json(r) : NULL;
        maq__set_alloc_gate(NULL);
        done = status == MAQ_OK && json && r->rows[0].points[0].skip == MAQ_VALIDATE_SKIP_NONE;
        free(json);
        if (status == MAQ_OK)
            maq_validate_free(r);
        maq_diag_free(diag);
    }
    assert_true(done);
}

/* ---- the published table ---- */

static void test_published(void **state)
{
    const char *shared = getenv("MAQ_SHARED");
    if (!shared)
        skip();
    char *path;
    assert_true(asprintf(&path, "%s/data/measured/training.csv", shared) > 0);
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_result *r = NULL;
    static const struct maq_validate_filter some = {"source", "ne*"};
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    opts.where = &some;
    opts.n_where = SANITIZED; /* or all */
    enum maq_status status = maq_validate_train(&r, path, &opts, diag);
    free(path);
    if (status == MAQ_IO) {
        maq_diag_free(diag);
        skip();
    }
    assert_int_equal(status, MAQ_OK);
    const struct maq_validate_group *t = &r->total;
    assert_int_equal(t->skipped[MAQ_VALIDATE_TIME][MAQ_VALIDATE_SKIP_FAILED], 0);
    assert_int_equal(t->skipped[MAQ_VALIDATE_TIME][MAQ_VALIDATE_SKIP_UNREADABLE], 0);
    assert_int_equal(t->skipped[MAQ_VALIDATE_TIME][MAQ_VALIDATE_SKIP_NO_DEVICE], 0);
    assert_true(t->skipped[MAQ_VALIDATE_TIME][MAQ_VALIDATE_SKIP_REFUSED] <= 5);
    assert_true(t->stats[MAQ_VALIDATE_TIME][MAQ_VALIDATE_ALL].n > (SANITIZED ? 70 : 1800));
    for (uint32_t i = 0; i < r->n_rows; i++)
        for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
            if (r->rows[i].points[m].skip == MAQ_VALIDATE_SKIP_NONE)
                assert_true(isfinite(r->rows[i].points[m].error));
    maq_validate_free(r);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_faults),
        cmocka_unit_test(test_csv_dirt),
        cmocka_unit_test(test_phrases),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_device_names),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_plan_phrases),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_microbatches),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_skips_of_one_row),
        cmocka_unit_test(test_small_table),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_names_do_not_matter),
        cmocka_unit_test(test_measured_time),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_missing_columns),
        cmocka_unit_test(test_no_source),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_hostile_cells),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_published),
    };
    ONLY_UNDER_TSAN("test_threads*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
