/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate_cells.c - cells as people write them: every way of saying one thing is read as that thing, and what cannot be read is
 * said. None of these rows is in the public table.
 *
 * maq-test: long
 */
#include "maquette/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/check.h"
#include "validate_row.h"

static const char dense[] = "32,4096,32,8192,128,2,1,,64,8,H100,x,1";

static bool assumes(const struct one *o, const char *words)
{
    for (uint32_t i = 0; i < o->in.n_assumed; i++)
        if (strstr(o->in.assumed[i], words))
            return true;
    return false;
}

/* ---- numbers ---- */

static void test_cells_that_say_nothing(void **state)
{
    static const char *const words[] = {"-", "n/a",  "N/A",     "NaN",        "None",
                                        "?", "null", "unknown", "not stated", "\xE2\x80\x94"};
    static const char *const columns[] = {"vp", "cp", "ep", "mbs", "kv_heads", "head_dim", "vocab", "ffn", "experts"};
    struct one plain;
    interpret(&plain, dense, "", "");
    for (size_t c = 0; c < MAQ_COUNT(columns); c++)
        for (size_t i = 0; i < MAQ_COUNT(words); i++) {
            struct one o;
            interpret(&o, dense, columns[c], words[i]);
            if (strcmp(o.job, plain.job) != 0)
                fail_msg("%s '%s' is not an empty cell: %s", columns[c], words[i], o.job);
            close_table(&o.t);
        }
    close_table(&plain.t);
}

static void test_counts(void **state)
{
    static const struct {
        const char *row;
        int64_t devices, seq; /* 0: the row is left out */
    } cases[] = {
        {"32,4096,32,8192,2048,2,1,,\"1,024\",8,H100,x,1", 1024, 8192},
        {"32,4096,32,8k,2048,2,1,,1024,8,H100,x,1", 1024, 8192},
        {"32,4096,32,128K,2048,2,1,,1024.0,8,H100,x,1", 1024, 131072},
        {"32,4096,32,\"131,072\",2048,2,1,,1024,8,H100,x,1", 1024, 131072},
        {"32,4096,32,8192,2048,2,1,,\"1,02\",8,H100,x,1", 0, 0},
        {"32,4096,32,8192,2048,2,1,,\",024\",8,H100,x,1", 0, 0},
        {"32,4096,32,8192,2048,2,1,,\"10240,024\",8,H100,x,1", 0, 0},
        {"32,4096,32,k,2048,2,1,,1024,8,H100,x,1", 0, 0},
        {"32,4096,32,999999999k,2048,2,1,,1024,8,H100,x,1", 0, 0},
        {"32,4096,32,8192,2048,2,1,,8k,8,H100,x,1", 0, 0}, /* of sequences alone */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].row, "", "");
        if (cases[i].devices == 0) {
            assert_int_equal(o.in.skip, MAQ_VALIDATE_SKIP_UNREADABLE);
        } else {
            if (o.in.skip != MAQ_VALIDATE_SKIP_NONE)
                fail_msg("%s: %s", cases[i].row, o.in.why);
            assert_int_equal(o.in.devices, cases[i].devices);
            assert_int_equal(o.in.seq, cases[i].seq);
        }
        close_table(&o.t);
    }
}

/* tp and pp that are left open: what the other numbers leave, or 1 where the row says that nothing cuts the model. */
static void test_open_degrees(void **state)
{
    static const struct {
        const char *degrees, *columns, *cells; /* tp, pp, dp of 64 devices */
        int64_t tp, pp, dp;                    /* 0: left out */
    } cases[] = {
        {",,64", "", "", 1, 1, 64},
        {"8,,8", "", "", 8, 1, 8},
        {"8,,4", "", "", 8, 2, 4},
        {",4,4", "", "", 4, 4, 4},
        {",,8", "", "", 0, 0, 0}, /* 8 of what? */
        {",,", "", "", 0, 0, 0},
        {",,", "zero_or_fsdp", "FSDP2", 1, 1, 64},
        {",,", "zero_or_fsdp", "ZeRO-3", 1, 1, 64},
        {",,", "framework", "PyTorch DDP", 1, 1, 64},
        {",,", "zero_or_fsdp", "distributed optimizer", 0, 0, 0},
        {"8,,", "", "", 8, 1, 8},
        {",2,", "", "", 1, 2, 32},
        {",,32", "cp", "2", 1, 1, 32},
        {"8,,3", "", "", 0, 0, 0},
        {"999999999,,999999999", "cp", "999999999", 0, 0, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char row[128];
        snprintf(row, sizeof row, "32,4096,32,8192,128,%s,64,8,H100,x,1", cases[i].degrees);
        interpret(&o, row, cases[i].columns, cases[i].cells);
        if (cases[i].tp == 0) {
            if (o.in.skip != MAQ_VALIDATE_SKIP_NO_MAPPING)
                fail_msg("%s: read as tp %lld, pp %lld", cases[i].degrees, (long long)o.in.tp, (long long)o.in.pp);
        } else {
            if (o.in.skip != MAQ_VALIDATE_SKIP_NONE)
                fail_msg("%s %s: %s", cases[i].degrees, cases[i].cells, o.in.why);
            assert_int_equal(o.in.tp, cases[i].tp);
            assert_int_equal(o.in.pp, cases[i].pp);
            assert_int_equal(o.in.dp, cases[i].dp);
            assert_true(assumes(&o, "not stated"));
        }
        close_table(&o.t);
    }
}

static void test_sequence_parallel(void **state)
{
    static const struct {
        const char *cell, *want; /* NULL: not stated */
    } cases[] = {{"1", "true"},   {"1.0", "true"},   {"True", "true"}, {"yes", "true"},
                 {"on", "true"},  {"8", "true"},     {"0", "false"},   {"0.0", "false"},
                 {"no", "false"}, {"None", "false"}, {"off", "false"}, {"False", "false"},
                 {"n/a", NULL},   {"-", NULL},       {"", NULL},       {"perhaps", NULL}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, dense, "sp", cases[i].cell);
        const char *got = maq__setting(&o.in.plan, "sequence_parallel");
        if (cases[i].want ? !got || strcmp(got, cases[i].want) != 0 : got != NULL)
            fail_msg("sp '%s' is read as %s", cases[i].cell, got ? got : "nothing");
        assert_true(got || assumes(&o, "sp is not stated"));
        close_table(&o.t);
    }
}

/* ---- words ---- */

struct reading {
    const char *cell, *want; /* value of the key, NULL = not set; with '=' the key stands in front */
};

static void assert_readings(const char *column, const char *key, const struct reading *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct one o;
        char quoted[128];
        snprintf(quoted, sizeof quoted, "\"%s\"", cases[i].cell);
        interpret(&o, dense, column, quoted);
        const char *got = maq__setting(&o.in.plan, key);
        if (cases[i].want ? !got || strcmp(got, cases[i].want) != 0 : got != NULL)
            fail_msg("%s '%s': %s is %s, not %s", column, cases[i].cell, key, got ? got : "not set",
                     cases[i].want ? cases[i].want : "left open");
        close_table(&o.t);
    }
}

static void test_precision(void **state)
{
    static const struct reading cases[] = {
        {"bf16-mixed", "bf16"},
        {"16-mixed", "auto"},
        {"AMP", "auto"},
        {"float8 rowwise", "fp8-rowwise"},
        {"Float8 tensorwise", "fp8-current"},
        {"float8 (torchao)", "fp8-current"},
        {"fp8-hybrid", "fp8-delayed"},
        {"FP8 E4M3", "fp8-delayed"},
        {"e4m3", "fp8-delayed"},
        {"FP8-SC", "fp8-blockwise"},
        {"fp8 sub-channel", "fp8-blockwise"},
        {"DeepSeek FP8", "fp8-blockwise"},
        {"FP8-DS", "fp8-delayed"},
        {"FP8-MX", "mxfp8"},
        {"mx fp8", "mxfp8"},
        {"FP4", "nvfp4"},
        {"MXFP4", "nvfp4"},
        {"half", "fp16"},
        {"FP32", "fp32"},
    };
    assert_readings("precision", "precision", cases, MAQ_COUNT(cases));
    struct one o;
    interpret(&o, dense, "precision", "TF32"); /* neither 32 nor 16 bits: there is no such recipe */
    assert_int_equal(o.in.skip, MAQ_VALIDATE_SKIP_REFUSED);
    close_table(&o.t);
}

static void test_sharding(void **state)
{
    static const struct reading cases[] = {
        {"0", "no_shard"},
        {"no", "no_shard"},
        {"no ZeRO", "no_shard"},
        {"not used", "no_shard"},
        {"without ZeRO", "no_shard"},
        {"DP", "no_shard"},
        {"NO_SHARD", "no_shard"},
        {"1", "optim"},
        {"stage1", "optim"},
        {"zero_1", "optim"},
        {"dist-opt", "optim"},
        {"use_distributed_optimizer", "optim"},
        {"distributed_fused_adam", "optim"},
        {"optimizer sharding", "optim"},
        {"2", "optim_grads"},
        {"zero_2", "optim_grads"},
        {"ZeRO-Offload", "optim_grads"},
        {"3", "optim_grads_params"},
        {"zero_3", "optim_grads_params"},
        {"fully_shard", "optim_grads_params"},
        {"FSDP1", "optim_grads_params"},
        {"ZeRO++", "optim_grads_params"},
        {"HSDP", "optim_grads_params"},
        {"dp_shard=8 dp_replicate=4", "optim_grads_params"},
    };
    static const struct reading copies[] = {
        {"FSDP1", NULL},
        {"FSDP2", NULL},
        {"HSDP", "8"},
        {"_HYBRID_SHARD_ZERO2", "8"}, /* nodes of 8, TP 2: 4 of 32 ranks each */
        {"dp_shard=8 dp_replicate=4", "4"},
        {"hsdp shard=16", "2"},
    };
    static const struct reading offload[] = {
        {"ZeRO-3 offload", "1"}, {"ZeRO-Infinity", "1"}, {"ZeRO-3", NULL}, {"ZeRO-3, no offload", NULL}};
    assert_readings("zero_or_fsdp", "data_parallel_sharding_strategy", cases, MAQ_COUNT(cases));
    assert_readings("zero_or_fsdp", "num_distributed_optimizer_instances", copies, MAQ_COUNT(copies));
    assert_readings("zero_or_fsdp", "optimizer_offload_fraction", offload, MAQ_COUNT(offload));
}

static void test_recomputation(void **state)
{
    static const struct reading granularity[] = {
        {"0", "none"},
        {"n", "none"},
        {"without", "none"},
        {"not used", "none"},
        {"0 layers", "none"},
        {"1", "full"},
        {"AC", "full"},
        {"enabled", "full"},
        {"every layer", "full"},
        {"each transformer block", "full"},
        {"block", "full"},
        {"gradient_checkpointing=True", "full"},
        {"attention only", "selective"},
        {"sac=op", "selective"},
    };
    static const struct reading layers[] = {
        {"block 4", "4"},
        {"full recompute, block, 2 layers", "2"},
        {"8 layers", "8"},
        {"50%", "16"},
        {"half of the layers", "16"},
        {"AC every 2 layers", "16"},
        {"every 4 layers", "8"},
        {"10/32", "10"},
        {"SAC", "16"},
        {"sac=op", "0"},
        {"full", NULL},
    };
    assert_readings("recompute", "recompute_granularity", granularity, MAQ_COUNT(granularity));
    assert_readings("recompute", "recompute_num_layers", layers, MAQ_COUNT(layers));
}

/* What a recipe leaves in 16 bits, and what it takes besides. */
static void test_narrow(void **state)
{
    static const struct {
        const char *column, *cell, *key, *value; /* value NULL: not set */
    } cases[] = {
        {"precision", "NVFP4 (last 4 layers in BF16)", "first_last_layers_bf16", "true"},
        {"precision", "NVFP4 (last 4 layers in BF16)", "num_layers_at_end_in_bf16", "4"},
        {"precision", "NVFP4 (last 4 layers in BF16)", "num_layers_at_start_in_bf16", "0"},
        {"precision", "NVFP4 (last 4 layers in BF16)", "precision", "nvfp4"},
        {"precision", "MXFP8; first 2 layers BF16 and last 3 layers BF16", "num_layers_at_start_in_bf16", "2"},
        {"precision", "MXFP8; first 2 layers BF16 and last 3 layers BF16", "num_layers_at_end_in_bf16", "3"},
        {"precision", "FP8-CS, first/last layers in BF16", "first_last_layers_bf16", "true"},
        {"precision", "FP8-CS, first/last layers in BF16", "num_layers_at_end_in_bf16", NULL},
        {"precision", "FP8-CS, first/last layers in BF16", "precision", "fp8-current"},
        {"notes", "first_last_layers_bf16=False", "first_last_layers_bf16", NULL},
        {"notes", "num_layers_at_end_in_bf16=14", "num_layers_at_end_in_bf16", "14"},
        {"overlap_notes", "FP8 DPA on; full_iteration graphs", "fp8_dot_product_attention", "true"},
        {"precision", "MXFP8 + FP8 attention", "fp8_dot_product_attention", "true"},
        {"precision", "MXFP8", "fp8_dot_product_attention", NULL},
        {"notes", "fp8_output_proj", "fp8_output_proj", "true"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct reading one = {cases[i].cell, cases[i].value};
        assert_readings(cases[i].column, cases[i].key, &one, 1);
    }
}

/* A phrase that no rule knows is never taken for "off" in silence. */
static void test_unread_cells_are_remarked(void **state)
{
    static const struct {
        const char *column, *cell;
        bool remark;
    } cases[] = {
        {"recompute", "partial", true}, {"recompute", "quux", true},  {"recompute", "full", false},
        {"recompute", "-", false},      {"recompute", "", false},     {"precision", "int8", true},
        {"precision", "bf16", false},   {"zero_or_fsdp", "3D", true}, {"zero_or_fsdp", "3-D parallel", true},
        {"zero_or_fsdp", "n/a", false},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, dense, cases[i].column, cases[i].cell);
        if (assumes(&o, "means nothing") != cases[i].remark)
            fail_msg("%s '%s'", cases[i].column, cases[i].cell);
        close_table(&o.t);
    }
}

static void test_frameworks(void **state)
{
    static const struct {
        const char *framework, *year, *profile;
    } cases[] = {
        {"Megatron Core", "2025", "megatron-lm"},
        {"megatron_core", "2024", "megatron-lm"},
        {"MegatronLM", "2021", "megatron-lm-2022"},
        {"Primus (AMD)", "2025", "megatron-lm"},
        {"Pai-Megatron-Patch", "2025", "megatron-lm"},
        {"Megatron-LM + DeepSpeed", "2022", "megatron-deepspeed"},
        {"GPT-NeoX", "2022", "megatron-deepspeed"},
        {"Megatron Bridge", "2025", "megatron-bridge"},
        {"Megatron-Bridge (NeMo container 25.09)", "2025", "megatron-bridge-25.09"},
        {"NeMo 2.0", "2025", "nemo"},
        {"LLM Foundry", "2023", "llm-foundry"},
        {"LitGPT", "2024", "lit-gpt"},
        {"levanter", "2024", "jax"},
        {"Hugging Face Trainer", "2024", "pytorch-fsdp"},
        {"HF accelerate", "2024", "pytorch-fsdp"},
        {"HF accelerate", "2026", "huggingface"},
        {"axolotl", "2024", "pytorch-fsdp"},
        {"DeepSpeed", "2023", "pytorch-fsdp"},
        {"PyTorch DDP", "2023", "pytorch-fsdp"},
        {"SimpleFSDP", "2024", "pytorch-fsdp"},
        {"Megatron-FSDP", "2025", "megatron-lm"},
        {"MaxText", "2024", "maxtext"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char cells[96];
        snprintf(cells, sizeof cells, "%s,%s", cases[i].framework, cases[i].year);
        interpret(&o, dense, "framework,year", cells);
        if (!o.in.profile || strcmp(o.in.profile, cases[i].profile) != 0)
            fail_msg("%s is read as %s", cases[i].framework, o.in.profile ? o.in.profile : "nothing");
        close_table(&o.t);
    }
}

/* An unknown framework is the likeliest for what the row does; so is a program without a pipeline that is said to have one. */
static void test_unknown_frameworks(void **state)
{
    static const struct {
        const char *framework, *year, *shared, *degrees, *experts, *profile, *says;
    } cases[] = {
        {"", "", "", "1,1", "", "megatron-lm", "framework is not stated"},
        {"n/a", "", "", "1,1", "", "megatron-lm", "framework is not stated"},
        {"Acme", "2025", "", "1,1", "", "megatron-lm", "there is none of its framework"},
        {"Acme", "2021", "", "2,1", "", "megatron-lm-2022", "there is none of its framework"},
        {"Acme trainer", "2025", "", "1,1", "", "megatron-lm", "there is none of its framework"},
        {"Acme", "2025", "FSDP FULL_SHARD", "1,1", "", "pytorch-fsdp", "there is none of its framework"},
        {"", "2025", "FSDP2", "1,1", "", "pytorch-fsdp", "framework is not stated"},
        {"Acme", "2025", "Megatron-FSDP", "1,1", "", "megatron-lm", "there is none of its framework"},
        {"Acme", "2025", "FSDP", "4,1", "", "megatron-lm", "there is none of its framework"},
        {"Acme", "2025", "FSDP", "1,2", "", "megatron-lm", "there is none of its framework"},
        {"Acme", "2025", "FSDP", "1,1", "8", "megatron-lm", "there is none of its framework"},
        {"PyTorch", "2025", "", "1,4", "", "megatron-lm", "its framework has no pipeline"},
        {"PyTorch", "2025", "FSDP", "1,4", "", "pytorch-fsdp", NULL},
        {"PyTorch", "2025", "", "2,1", "", "pytorch-fsdp", NULL},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char cells[96], needed[96];
        snprintf(needed, sizeof needed, "32,4096,32,8192,128,%s,,64,8,H100,x,1", cases[i].degrees);
        snprintf(cells, sizeof cells, "%s,%s,%s,%s,%s", cases[i].framework, cases[i].year, cases[i].shared,
                 cases[i].experts, *cases[i].experts ? "2" : "");
        interpret(&o, needed, "framework,year,zero_or_fsdp,experts,topk", cells);
        char assumed[128];
        snprintf(assumed, sizeof assumed, "what the row leaves open is as in the profile %s%s%s", cases[i].profile,
                 cases[i].says ? ": " : "", cases[i].says ? cases[i].says : "");
        if (!o.in.profile || strcmp(o.in.profile, cases[i].profile) != 0)
            fail_msg("%s: read as %s", cells, o.in.profile ? o.in.profile : "nothing");
        if (!assumes(&o, assumed))
            fail_msg("%s: does not say '%s'", cells, assumed);
        close_table(&o.t);
    }
}

/* Megatron-DeepSpeed without a word has unfused attention; a word is enough. */
static void test_flash_attention(void **state)
{
    static const struct {
        const char *framework, *year, *notes, *backend;
    } cases[] = {
        {"Megatron-DeepSpeed", "2024", "FlashAttention-2", "flash2"},
        {"Megatron-DeepSpeed", "2022", "flash-attn", "flash1"},
        {"Megatron-DeepSpeed", "2022", "", NULL},
        {"Megatron-DeepSpeed", "2023", "no flash attention", "unfused"},
        {"Megatron-LM", "2024", "FlashAttention", NULL}, /* it is the default there */
        {"llm-foundry", "2023", "FlashAttention", NULL}, /* its profile knows which */
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char cells[96];
        snprintf(cells, sizeof cells, "%s,%s,%s", cases[i].framework, cases[i].year, cases[i].notes);
        interpret(&o, dense, "framework,year,notes", cells);
        const char *got = maq__setting(&o.in.plan, "attention_backend");
        if (cases[i].backend ? !got || strcmp(got, cases[i].backend) != 0 : got != NULL)
            fail_msg("%s: %s", cells, got ? got : "nothing");
        close_table(&o.t);
    }
}

/* A word in the notes is enough, where whole matrices are left; graphs of parts of layers are none of the recipes that fuse operators. */
static void test_update_and_graphs(void **state)
{
    static const struct {
        const char *framework, *notes, *shared, *overlap, *key, *value;
    } cases[] = {
        {"Megatron-LM", "dist_muon", "", "", "optimizer", "muon"},
        {"Megatron-LM", "optimizer: Muon", "ZeRO-1", "", "optimizer", "muon"},
        {"torchtitan", "Muon", "FSDP", "", "optimizer", NULL},
        {"Megatron-LM", "", "", "", "optimizer", NULL},
        {"Megatron-Bridge (26.06)", "", "", "CUDA graphs moe_router", "use_transformer_engine_op_fuser", "false"},
        {"Megatron-Bridge (26.06)", "", "", "CUDA graphs full_iteration", "use_transformer_engine_op_fuser", NULL},
        {"Megatron-Bridge (26.06)", "", "", "CUDA graphs moe_router", "cuda_graph_scope",
         "[moe_router, moe_preprocess]"},
        {"Megatron-Bridge (26.06)", "", "", "CUDA graphs full_iteration", "cuda_graph_scope", NULL},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char cells[128];
        snprintf(cells, sizeof cells, "%s,%s,%s,%s", cases[i].framework, cases[i].notes, cases[i].shared,
                 cases[i].overlap);
        interpret(&o, dense, "framework,notes,zero_or_fsdp,overlap_notes", cells);
        const char *got = maq__setting(&o.in.plan, cases[i].key);
        if (cases[i].value ? !got || strcmp(got, cases[i].value) != 0 : got != NULL)
            fail_msg("%s: %s", cells, got ? got : "nothing");
        close_table(&o.t);
    }
}

/* ---- GPUs, nodes, networks ---- */

static void test_gpus(void **state)
{
    static const struct {
        const char *gpu, *device; /* NULL: none */
        bool remark;
    } cases[] = {
        {"8xH100", "h100-sxm", false},
        {"H100x8", "h100-sxm", false},
        {"8 x H100 SXM", "h100-sxm", false},
        {"DGX-H100", "h100-sxm", false},
        {"H100(80GB)", "h100-sxm", false},
        {"A100(40GB)", "a100-40gb", false},
        {"H100-80GB-SXM5", "h100-sxm", false},
        {"RTX4090", "rtx-4090", false},
        {"4x GH200", "gh200-96gb", false},
        {"B200-SXM-192GB", "b200", false},
        {"MI300X OAM", "mi300x", false},
        {"MI250X (GCD)", "mi250x", false},
        {"A100-64GB custom", "a100-80gb", true},
        {"H200 NVL", "h200-nvl", false},
        {"B200 NVL", "b200", true},
        {"H20-PCIe", "h20", true},
        {"A10G 24GB", "a10g", false},
        {"8x A10G (g5.48xlarge)", "a10g", false},
        {"NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti", false},
        {"AMD Instinct MI250", "mi250", false},
        {"H800-PCIe", "h800-pcie", false},
        {"H100 NVL", "h100-nvl", false},
        {"L40S-48GB", "l40s", false},
        {"TPU v5p", NULL, false},
        {"Gaudi 3", NULL, false},
        {"x", NULL, false},
        {"8x", NULL, false},
        {"()", NULL, false},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char row[128], want[32];
        snprintf(row, sizeof row, "32,4096,32,8192,128,2,1,,64,8,%s,x,1", cases[i].gpu);
        interpret(&o, row, "", "");
        snprintf(want, sizeof want, "%s:", cases[i].device ? cases[i].device : "");
        if (!cases[i].device)
            assert_int_equal(o.in.skip, MAQ_VALIDATE_SKIP_NO_DEVICE);
        else if (o.in.skip != MAQ_VALIDATE_SKIP_NONE || strncmp(o.in.cluster, want, strlen(want)) != 0)
            fail_msg("'%s' is %s", cases[i].gpu, o.in.cluster ? o.in.cluster : o.in.why);
        else if (assumes(&o, "as the catalogue's") != cases[i].remark)
            fail_msg("'%s': remark", cases[i].gpu);
        close_table(&o.t);
    }
}

static void test_usual_nodes(void **state)
{
    static const struct {
        const char *row, *cluster;
    } cases[] = {
        {"32,4096,32,8192,128,2,1,,64,,GB200,x,1", "gb200:4 x 16"},
        {"32,4096,32,8192,128,2,1,,64,,GH200,x,1", "gh200-96gb:"},
        {"32,4096,32,8192,128,2,1,,64,n/a,H100,x,1", "h100-sxm:8 x 8"},
        {"32,4096,32,8192,128,2,1,,2,,H100,x,1", "h100-sxm:2 x 1"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, cases[i].row, "", "");
        assert_int_equal(o.in.skip, MAQ_VALIDATE_SKIP_NONE);
        if (strncmp(o.in.cluster, cases[i].cluster, strlen(cases[i].cluster)) != 0)
            fail_msg("%s, not %s", o.in.cluster, cases[i].cluster);
        assert_true(assumes(&o, "gpus_per_node is not stated"));
        close_table(&o.t);
    }
}

static void test_networks(void **state)
{
    static const struct {
        const char *note, *network;
    } cases[] = {
        {"3.2 Tbps", "nics 8 x 400G "},
        {"3200 Gbps", "nics 8 x 400G "}, /* no port is as fast: a node's */
        {"1.6Tb/s RoCE", "nics 8 x 200G roce"},
        {"800 Gbps", "rail 800G "},
        {"3200 Gb/s per GPU", "rail 3200G "},
        {"100 Gbit/s", "rail 100G "},
        {"200 Gigabit Ethernet", "rail 200G "},
        {"8\xC3\x97"
         "400 Gb/s",
         "nics 8 x 400G "},
        {"8*200G", "nics 8 x 200G "},
        {"200 Gb/s \xC3\x97 4", "nics 4 x 200G "},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        interpret(&o, dense, "inter_node_bw_note", cases[i].note);
        const char *got = o.in.cluster + strlen("h100-sxm:8 x 8, ");
        if (strcmp(got, cases[i].network) != 0)
            fail_msg("'%s': %s", cases[i].note, o.in.cluster);
        close_table(&o.t);
    }
}

/* ---- models by name alone ---- */

static void test_model_names(void **state)
{
    static const struct {
        const char *name, *base; /* NULL: none */
    } cases[] = {
        {"DeepSeekV3", "deepseek-v3"},
        {"DeepSeek V3 671B", "deepseek-v3"},
        {"DeepSeek V2 Lite 16B", "deepseek-v2-lite"},
        {"Qwen-2.5 7B", "qwen2.5-7b"},
        {"Qwen 2.5 32B (SFT)", "qwen2.5-32b"},
        {"NemotronH-56B", "nemotron-h-56b"},
        {"phi3-medium", "phi-3-medium"},
        {"GPT-2 XL", "gpt2-xl"},
        {"Llama 3 8B SFT", "llama-3-8b"},
        {"Llama3 8B LoRA", "llama-3-8b"},
        {"LLaMA 13B", "llama-13b"},
        {"GPT-175B", "gpt3-175b"},
        {"GPT3 5B", "gpt3-5b"},
        {"GPT 35B", NULL}, /* is no GPT3-5B */
        {"GPT3 13B", "gpt3-13b"},
        {"GPT3 11B", NULL},
        {"GPT-2 1.5B", "gpt2-xl"}, /* was the smallest one: a size is in no name of theirs */
        {"GPT-2 124M", "gpt2"},
        {"GPT2-Small", "gpt2"},
        {"GPT-2 8B", NULL},
        {"StarCoder 15.5B", "starcoder"},
        {"StarCoder 3B", "starcoder-3b"},
        {"DeepSeek V3 16B", NULL},
        {"Falcon H1 7B", "falcon-h1-7b"},
        {"Qwen 1.5 7B", "qwen1.5-7b"},
        {"BLOOM 12B", NULL},
        {"Qwen2 57B", NULL},
        {"Falcon-11B", NULL},
        {"-", NULL},
        {" ( ", NULL},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char row[128];
        snprintf(row, sizeof row, ",,,2048,64,1,1,,64,8,H100,%s,1", cases[i].name);
        interpret(&o, row, "", "");
        const char *got = maq__setting(&o.in.model, "base");
        if (cases[i].base ? !got || strcmp(got, cases[i].base) != 0 : o.in.skip != MAQ_VALIDATE_SKIP_NO_MODEL)
            fail_msg("'%s' is %s", cases[i].name, got ? got : o.in.why);
        close_table(&o.t);
    }
}

/* 50,257 tokens are 50,304 rows to Megatron-LM, and 50,257 to others. */
static void test_padded_vocabulary(void **state)
{
    static const struct {
        const char *framework, *tp, *vocab;
    } cases[] = {{"Megatron-LM", "1", "50304"}, {"NeMo", "8", "51200"}, {"PyTorch FSDP", "1", NULL}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct one o;
        char row[128];
        snprintf(row, sizeof row, ",,,1024,64,%s,1,,8,8,H100,gpt2,1", cases[i].tp);
        interpret(&o, row, "framework", cases[i].framework);
        const char *got = maq__setting(&o.in.model, "vocab_size");
        if (cases[i].vocab ? !got || strcmp(got, cases[i].vocab) != 0 : got != NULL)
            fail_msg("%s: %s", cases[i].framework, got ? got : "as it is");
        close_table(&o.t);
    }
}

/* ---- the header ---- */

static enum maq_status bind(struct table *t, struct maq_row_table *table, const char *text)
{
    open_table(t, text);
    assert_int_equal(t->status, MAQ_OK);
    table->csv = t->csv;
    return maq_row_table_bind(table, t->diag);
}

static void test_header(void **state)
{
    static const struct {
        const char *text, *hint; /* NULL: fine */
    } cases[] = {
        {"Model, Seq_Len ,GPU,num_gpus,TP,PP,gbs,iter_time_s\n", NULL},
        {"model;seq_len;gpu;num_gpus;tp;pp;gbs;iter_time_s\n", "semicolons"},
        {"model\tseq_len\tgpu\n", "tabs"},
        {"\x1F\x8B\x08\n", "gzip"},
        {"name,value\n", "docs/validate.md"},
        {"model,seq-len,gpu,gpus\n", "docs/validate.md"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct table t;
        struct maq_row_table table;
        assert_int_equal(bind(&t, &table, cases[i].text), cases[i].hint ? MAQ_BAD_INPUT : MAQ_OK);
        if (cases[i].hint)
            assert_non_null(strstr(maq_diag_at(t.diag, 0)->hint.ptr, cases[i].hint));
        close_table(&t);
    }
}

/* In Megatron-LM's words, or in those of config.json; what is not read is named. */
static void test_header_words(void **state)
{
    static const struct {
        const char *text, *note; /* NULL: none */
    } cases[] = {
        {"model,sequence_length,gpu,world_size,tensor_model_parallel_size,pipeline_model_parallel_size,global_batch_"
         "size,"
         "micro_batch_size,hidden_size,step_time_s,url,mfu\n",
         NULL},
        {"model,seq_len,gpu,num_gpus,tp,pp,gbs,iter_time_s,microbatch,mbs2\n", "not read: microbatch, mbs2"},
        {"model,seq_len,gpu,num_gpus,gpus,tp,pp,gbs,iter_time_s\n", "not read: gpus"}, /* the first name counts */
        {"model,seq_len,gpu,num_gpus,tp,pp,gbs,iter_time_s,,a,b,c,d,e,f,g,h,i,j\n",
         "not read: a, b, c, d, e, f, g, h and 2 more"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct table t;
        struct maq_row_table table;
        assert_int_equal(bind(&t, &table, cases[i].text), MAQ_OK);
        assert_int_equal(maq_diag_count(t.diag), cases[i].note != NULL);
        if (cases[i].note)
            assert_string_equal(maq_diag_at(t.diag, 0)->msg.ptr, cases[i].note);
        assert_true(table.at[MAQ_COLUMN_num_gpus] == 3);
        assert_true(i > 0 || (table.at[MAQ_COLUMN_mbs] == 7 && table.at[MAQ_COLUMN_iter_time_s] == 9));
        close_table(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_words),
        cmocka_unit_test(test_cells_that_say_nothing),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_open_degrees),
        cmocka_unit_test(test_sequence_parallel),
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_sharding),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_unread_cells_are_remarked),
        cmocka_unit_test(test_frameworks),
        cmocka_unit_test(test_unknown_frameworks),
        cmocka_unit_test(test_flash_attention),
        cmocka_unit_test(test_update_and_graphs),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_usual_nodes),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_model_names),
        cmocka_unit_test(test_padded_vocabulary),
        cmocka_unit_test(test_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
