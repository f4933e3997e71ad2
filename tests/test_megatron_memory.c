/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_megatron_memory.c - memory of Megatron-LM's jobs that its own script showed on the zero-GPU device (tests/memory-truth): the second
 * table of a pipeline, what recomputing norms and core attention leaves, workspaces of Transformer Engine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/units.h"
#include "predict.h"

#define VOCAB 51200.0
#define HIDDEN 2048.0
#define LAYERS 8
#define SEQ 2048.0
#define MODEL(more)                                                                                                    \
    "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, num_attention_heads: 16, "        \
    "vocab_size: 51200, max_position_embeddings: 2048, hidden_dropout: 0.0, attention_dropout: 0.0, " more "}"
#define UNTIED "untie_embeddings_and_output_weights: true"
#define ROPE UNTIED ", position_embedding_type: rope, group_query_attention: true, num_query_groups: 4"
#define MOE ROPE ", num_experts: 8, moe_ffn_hidden_size: 1024, moe_router_topk: 2"
#define ENGINE ", framework: megatron-lm"

/* One sequence in a microbatch; of an H100 unless the job says something else. */
static struct maq_stage_result stage_of(const char *model, const char *framework, const char *plan, int devices,
                                        uint32_t stage)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{model: %s, cluster: \"h100-sxm:%d\"%s, plan: {%s}, workload: {global_batch_size: 32, seq_length: 2048}}",
             model, devices, framework, plan);
    struct prediction p = predict_text(text);
    struct maq_stage_result s = p.result->stages[stage];
    drop(&p);
    return s;
}

static void near(double a, double b, const char *what)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b)))
        fail_msg("%s: %.17g, not %.17g", what, a, b);
}

/* Of a tied table the last stage has a copy, with gradients and states of its own; where both ends are one device there is one. */
static void test_second_table(void **state)
{
    (void)state;
    const char *tied = MODEL(""), *untied = MODEL(UNTIED);
    double table = VOCAB * HIDDEN, whole = stage_of(tied, "", "", 1, 0).params;
    near(stage_of(untied, "", "", 1, 0).params - whole, table, "one device has one table where they are tied");
    double first = stage_of(tied, "", "pp: 2", 2, 0).params, last = stage_of(tied, "", "pp: 2", 2, 1).params;
    near(first + last, whole + table, "two stages have two");
    near(last, stage_of(untied, "", "pp: 2", 2, 1).params, "the last one as if they were not tied");
    struct maq_stage_result end = stage_of(tied, "", "pp: 2", 2, 1);
    near(end.bytes[MAQ_MEM_WEIGHTS], 2 * last, "weights");
    near(end.bytes[MAQ_MEM_GRADIENTS], 4 * last, "gradients");
    near(end.bytes[MAQ_MEM_OPTIMIZER], 12 * last, "optimizer");
    near(stage_of(tied, "", "pp: 2, tp: 2", 4, 1).params, stage_of(untied, "", "pp: 2, tp: 2", 4, 1).params,
         "cut by TP");
    const char *v = "pp: 2, pipeline_schedule: zb-v";
    near(stage_of(tied, "", v, 2, 0).params + stage_of(tied, "", v, 2, 1).params, whole,
         "a V has both ends on one device");
    near(stage_of(untied, "", v, 2, 0).params - stage_of(tied, "", v, 2, 0).params, table, "the first one");
}

/* Multi-token prediction reads the table on the last stage, be it tied or not. */
static void test_table_of_prediction(void **state)
{
    (void)state;
    double table = VOCAB * HIDDEN;
    const char *plan = "pp: 2";
    double without = stage_of(MODEL(UNTIED), "", plan, 2, 1).params,
           with = stage_of(MODEL(UNTIED ", mtp_num_layers: 1"), "", plan, 2, 1).params,
           tied = stage_of(MODEL("mtp_num_layers: 1"), "", plan, 2, 1).params;
    double depth = stage_of(MODEL(UNTIED ", mtp_num_layers: 1"), "", "", 1, 0).params -
                   stage_of(MODEL(UNTIED), "", "", 1, 0).params;
    near(with, without + depth + table, "a depth and a table");
    near(tied, without + depth, "one table for both");
}

static double kept(const char *model, const char *framework, const char *plan)
{
    return stage_of(model, framework, plan, 1, 0).bytes[MAQ_MEM_ACTIVATIONS];
}

/* A norm that is one module with the product behind it is not recomputed; in front of a router it is a module of its own. */
static void test_joined_norms(void **state)
{
    (void)state;
    const char *redo = "recompute_granularity: selective, recompute_modules: [layernorm]";
    double norm = SEQ * HIDDEN * 2;
    near(kept(MODEL(ROPE), ENGINE, redo), kept(MODEL(ROPE), ENGINE, ""), "dense: nothing is saved");
    near(kept(MODEL(MOE), ENGINE, "") - kept(MODEL(MOE), ENGINE, redo), LAYERS * norm, "experts: one of two norms");
    near(kept(MODEL(ROPE), ", framework: megatron-lm-2022", "") -
             kept(MODEL(ROPE), ", framework: megatron-lm-2022", redo),
         2 * LAYERS * norm, "without the engine: both");
}

/* Fused core attention that is recomputed drops its log-sum-exp, and the values' view keeps all that linear_qkv returned. */
static void test_viewed_values(void **state)
{
    (void)state;
    const char *redo = "recompute_granularity: selective, recompute_modules: [core_attn]";
    double sums = SEQ * 16 * 4, viewed = SEQ * (HIDDEN + HIDDEN / 4) * 2; /* queries and keys of 4 of 16 heads */
    near(kept(MODEL(ROPE), ENGINE, redo) - kept(MODEL(ROPE), ENGINE, ""), LAYERS * (viewed - sums),
         "rotated copies beside the view");
    near(kept(MODEL(UNTIED), ENGINE, "") - kept(MODEL(UNTIED), ENGINE, redo), LAYERS * sums,
         "not rotated: all are views");
}

static double transient(const char *model, const char *framework)
{
    return stage_of(model, framework, "", 1, 0).bytes[MAQ_MEM_TRANSIENT];
}

/*
 * Of PyTorch two, of the engine one, and four more for products of groups; PyTorch 2.15 keeps none. With the engine nothing but the logits is
 * alive where the peak is, in the loss, beside the norm's mean and root of each row: without it the norm's gradients would be counted there.
 */
static void test_workspaces(void **state)
{
    (void)state;
    const char *own = ", framework: {base: megatron-lm, transformer_engine: false}",
               *bare = ", framework: {base: megatron-lm, keeps_workspaces: false, transformer_engine: false}",
               *late = ", framework: {base: megatron-lm, keeps_workspaces: false}";
    const double each = 32 * (1024.0 * 1024), stream = SEQ * HIDDEN * 2, rows = 2 * SEQ * 4;
    near(transient(MODEL(ROPE), own), transient(MODEL(ROPE), bare) + 2 * each, "PyTorch's");
    near(transient(MODEL(ROPE), ENGINE), transient(MODEL(ROPE), late) + 2 * each, "PyTorch's beside the engine's");
    near(transient(MODEL(ROPE), late), transient(MODEL(ROPE), bare) + each - stream + rows, "the engine's");
    near(transient(MODEL(MOE), ENGINE), transient(MODEL(ROPE), ENGINE) + 4 * each, "those of groups");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_table), cmocka_unit_test(test_table_of_prediction),
        cmocka_unit_test(test_joined_norms), cmocka_unit_test(test_viewed_values),
        cmocka_unit_test(test_workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
