/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_cuda_graphs.c - what CUDA graphs hold on the device, against closed forms: nodes, buffers, and blocks that two pools cannot
 * lend each other; which parts of a layer can be graphs beside what; and the arguments that make them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "base/units.h"
#include "maquette/framework_words.h"
#include "predict.h"

#define GPT                                                                                                            \
    "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, num_attention_heads: 16, "        \
    "vocab_size: 51200, max_position_embeddings: 2048, hidden_dropout: 0.0, attention_dropout: 0.0}"
#define MOE                                                                                                            \
    "{model_type: megatron, num_layers: 8, hidden_size: 2048, ffn_hidden_size: 8192, num_attention_heads: 16, "        \
    "vocab_size: 51200, max_position_embeddings: 2048, num_experts: 16, moe_ffn_hidden_size: 1024, moe_router_topk: "  \
    "2, moe_shared_expert_intermediate_size: 1024}"
#define NODE_BYTES (36.0 * 1024)
#define WORKSPACES (2 * 32.0 * 1024 * 1024) /* of cuBLAS, for the stream that captures */
#define SEQ 2048
#define HIDDEN_BYTES (SEQ * 2048 * 2.0) /* of a microbatch of one sequence */

static struct maq_stage_result stage_of(const char *model, const char *cluster, const char *plan, int gbs,
                                        uint32_t stage)
{
    struct prediction p = predict_batch(model, cluster, plan, gbs, SEQ);
    struct maq_stage_result s = p.result->stages[stage];
    drop(&p);
    return s;
}

static void near(double a, double b, const char *what)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b)))
        fail_msg("%s: %.17g, not %.17g", what, a, b);
}

static void adds_up(const struct maq_stage_result *s)
{
    near(s->bytes[MAQ_MEM_GRAPHS], s->graphs.driver_bytes + s->graphs.buffer_bytes + s->graphs.pool_bytes, "parts");
    near(s->graphs.driver_bytes, s->graphs.nodes * NODE_BYTES, "the driver's");
    near(s->needed_bytes,
         s->allocated_bytes + s->bytes[MAQ_MEM_CONTEXT] + s->bytes[MAQ_MEM_NCCL] + s->bytes[MAQ_MEM_GRAPHS], "needed");
    assert_true(s->graphs.nodes > 0 && s->graphs.pool_bytes >= 0);
}

/* All passes of a step are unrolled; the optimizer is outside and has a pool of its own. */
static void test_whole_iterations(void **unused)
{
    (void)unused;
    const char *graphs = "cuda_graph_scope: full_iteration, zero: no_shard";
    struct maq_stage_result none = stage_of(GPT, "h100-sxm:1", "zero: no_shard", 4, 0),
                            few = stage_of(GPT, "h100-sxm:1", graphs, 4, 0),
                            many = stage_of(GPT, "h100-sxm:1", graphs, 16, 0);
    adds_up(&few);
    adds_up(&many);
    assert_true(none.bytes[MAQ_MEM_GRAPHS] == 0 && none.graphs.nodes == 0);
    near(many.graphs.nodes, 4 * few.graphs.nodes, "nodes of four times the microbatches");
    near(few.graphs.buffer_bytes, 4 * SEQ * 28.0 + WORKSPACES, "batch");
    assert_true(few.graphs.pool_bytes == 0); /* Megatron-LM's update has 4-byte gradients already, and needs nothing */
    near(few.needed_bytes, none.needed_bytes + few.bytes[MAQ_MEM_GRAPHS], "the rest is as without");

    /* Gradients of 16 bits become 4-byte ones at the update, where activations are gone without graphs and lie still with them. */
    const char *narrow = "zero: no_shard, main_grads_dtype: bf16, cuda_graph_scope: full_iteration";
    struct maq_stage_result update = stage_of(GPT, "h100-sxm:1", narrow, 4, 0);
    double passes = few.bytes[MAQ_MEM_ACTIVATIONS] + few.bytes[MAQ_MEM_TRANSIENT] - WORKSPACES;
    adds_up(&update);
    near(update.graphs.pool_bytes, fmin(passes, 4 * update.params), "passes and update, less the larger");
}

/* A graph for each layer, microbatch and direction; without a pipeline one microbatch's graphs serve all. */
static void test_parts_of_layers(void **unused)
{
    (void)unused;
#define PARTS(scope) "pp: 2, zero: no_shard, recompute: none, cuda_graph_scope: [" scope "]"
    const char *alone = "zero: no_shard, cuda_graph_scope: [attn, mlp]";
    struct maq_stage_result one = stage_of(GPT, "h100-sxm:1", alone, 4, 0),
                            more = stage_of(GPT, "h100-sxm:1", alone, 16, 0),
                            few = stage_of(GPT, "h100-sxm:2", PARTS("attn, mlp"), 4, 0),
                            many = stage_of(GPT, "h100-sxm:2", PARTS("attn, mlp"), 16, 0),
                            half = stage_of(GPT, "h100-sxm:2", PARTS("attn"), 16, 0),
                            other = stage_of(GPT, "h100-sxm:2", PARTS("mlp"), 16, 0);
    adds_up(&one);
    adds_up(&few);
    adds_up(&many);
    near(more.graphs.nodes, one.graphs.nodes, "nodes without a pipeline");
    near(few.graphs.nodes, one.graphs.nodes / 2 * 4, "half of the layers, four microbatches");
    near(many.graphs.nodes, 4 * few.graphs.nodes, "nodes of four times the microbatches");
    near(half.graphs.nodes + other.graphs.nodes, many.graphs.nodes, "nodes of the two halves");
    /* 8 layers of one microbatch, 4 of the two in flight; a gradient of an output and of an input */
    near(one.graphs.buffer_bytes, (8 + 2) * HIDDEN_BYTES + WORKSPACES, "buffers of a microbatch");
    near(few.graphs.buffer_bytes, (4 * 2 + 2) * HIDDEN_BYTES + WORKSPACES, "buffers of two in flight");
    near(half.graphs.buffer_bytes, (2 * 4 * 2 + 2) * HIDDEN_BYTES + WORKSPACES,
         "the residual is left for the other half");
#undef PARTS
    /* The loss works while the graphs' working set lies idle. */
    assert_true(one.graphs.pool_bytes > 0 && one.graphs.pool_bytes < one.bytes[MAQ_MEM_TRANSIENT]);
}

/* Shared experts that run under the exchange are not in the router's graph: the sources say so, and the host issues them. */
static void test_shared_experts_outside(void **unused)
{
    (void)unused;
#define ROUTER                                                                                                         \
    "ep: 8, zero: no_shard, cuda_graph_scope: [attn, moe_router, moe_preprocess], moe_shared_expert_overlap: "
    struct maq_stage_result in = stage_of(MOE, "h100-sxm:8", ROUTER "false", 64, 0),
                            out = stage_of(MOE, "h100-sxm:8", ROUTER "true", 64, 0);
#undef ROUTER
    assert_true(out.graphs.nodes < in.graphs.nodes);
}

static void test_refused(void **unused)
{
    (void)unused;
    static const char
        *const plans[] = {"cuda_graph_scope: [attn], recompute: full",
                          "cuda_graph_scope: [attn], cpu_offloading_num_layers: 1",
                          "cuda_graph_scope: [moe_router], recompute: selective, recompute_modules: [moe]",
                          "cuda_graph_scope: [moe_router, moe]",
                          "cuda_graph_scope: [moe_preprocess]",
                          "cuda_graph_scope: [moe]"},
               *const taken[] = {"cuda_graph_scope: full_iteration, recompute: full",
                                 "cuda_graph_scope: full_iteration, cpu_offloading_num_layers: 1",
                                 ("cuda_graph_scope: [attn, moe_router, moe_preprocess], recompute: selective, "
                                  "recompute_modules: [moe_act]"),
                                 "cuda_graph_scope: [attn, moe], moe_expert_capacity_factor: 1.25"};
    for (size_t i = 0; i < MAQ_COUNT(plans) + MAQ_COUNT(taken); i++) {
        const char *plan = i < MAQ_COUNT(plans) ? plans[i] : taken[i - MAQ_COUNT(plans)];
        char text[1024];
        struct maq_loaded_job *job;
        snprintf(text, sizeof text,
                 "{model: %s, cluster: 'h100-sxm:8', plan: {ep: 8, %s}, workload: {seq: %d, gbs: 64}}", MOE, plan, SEQ);
        struct maq_diag *diag = maq_diag_new();
        enum maq_status status = maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, diag);
        if ((status == MAQ_OK) != (i >= MAQ_COUNT(plans)))
            fail_msg("%s: %s", plan, status == MAQ_OK ? "taken" : maq_diag_format(diag, 0, false));
        char *said = maq_diag_format(diag, 0, false);
        if (status == MAQ_OK)
            maq_job_free(job);
        else
            assert_non_null(strstr(said, "MAQ1308"));
        free(said);
        maq_diag_free(diag);
    }
}

/* The arguments that are printed make the same graphs when they are read. */
static void test_arguments(void **unused)
{
    (void)unused;
    static const struct {
        const char *plan, *argument;
    } cases[] = {
        {"cuda_graph_scope: full_iteration", "--cuda-graph-impl local\n--cuda-graph-scope full_iteration\n"},
        {"enable_cuda_graph: true", "--cuda-graph-impl local\n--cuda-graph-scope full_iteration\n"},
        {"cuda_graph_scope: [attn, moe_router, moe_preprocess]",
         "--cuda-graph-impl transformer_engine\n--cuda-graph-scope attn moe_router moe_preprocess\n"},
        {"moe_shared_expert_overlap: true", "--moe-shared-expert-overlap\n"},
        {"overlap_moe_expert_parallel_comm: true, delay_wgrad_compute: true",
         "--overlap-moe-expert-parallel-comm\n--delay-wgrad-compute\n"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[1024];
        struct maq_loaded_job *job;
        struct maq_framework_words *words = NULL;
        struct maq_diag *diag = maq_diag_new();
        snprintf(
            text, sizeof text,
            "{model: %s, cluster: 'h100-sxm:8', framework: megatron-lm, plan: {ep: 8, %s}, workload: {seq: %d, gbs: "
            "64}}",
            MOE, cases[i].plan, SEQ);
        if (maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
            maq_framework_words(&words, job, maq_job_get(job), diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        if (!strstr(words->text, cases[i].argument))
            fail_msg("%s: no %s in\n%s", cases[i].plan, cases[i].argument, words->text);
        if (words->n_unsaid > 0 || !words->back)
            fail_msg("%s: %s", cases[i].plan, words->back ? words->unsaid[0].key : words->refused);
        maq_framework_words_free(words);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_iterations),
        cmocka_unit_test(test_parts_of_layers),
        cmocka_unit_test(test_shared_experts_outside),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
