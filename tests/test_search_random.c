/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search_random.c - the homogeneous search against scoring its whole space, on random jobs.
 *
 * Small models on few devices, with what saves memory on the lists, and with experts, whose exchanges are hidden in some schedules: there
 * passes wait for their host, for offloading, for experts and for data parallelism, where the rules that leave plans out are at their
 * limits. A change of the search is held against thousands of them (JOBS).
 *
 * maq-test: long
 */
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
#include "effort.h"
#include "maquette/planner.h"

#define JOBS EFFORT(3, 15, 40)
#define TEXT 2048

struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (uint32_t)(d->state >> 33) % sides;
}

#define PICK(d, list) (list)[roll(d, MAQ_COUNT(list))]

static const char *const devices[] = {"a100-80gb",      "rtx-4090",  "h100-sxm",  "t4", "l40s",
                                      "v100-sxm2-16gb", "a100-40gb", "h100-pcie", "a40"};
static const char *const offloads[] = {"0, 1, 2, 4", "0, 2, 8", "1, 3", "0"};
static const char *const shardings[] = {"no_shard, optim_grads_params", "no_shard, optim",
                                        "no_shard, optim, optim_grads, optim_grads_params", "optim_grads_params"};
static const char *const recomputes[] = {"none, core_attn, block", "none, core_attn, mlp, full", "none, full",
                                         "none, block"};
/* Inputs of modules on the host. */
static const char *const inputs[] = {"none, qkv_linear+core_attn+attn_proj", "none, core_attn", "none, qkv_linear",
                                     "none, core_attn+attn_proj, qkv_linear+core_attn"};

/* CUDA graphs: of a plan that recomputes whole layers or offloads some, only those of whole iterations can be. */
static const char *const dense_graphs[] = {"none", "none, full_iteration", "none, attn+mlp",
                                           "mlp, full_iteration, none"};
static const char *const expert_graphs[] = {"none", "none, attn+moe_router+moe_preprocess", "attn, none",
                                            "none, full_iteration"};

static void random_dense(char out[TEXT], uint32_t seed)
{
    struct dice d = {seed * 7919ull + 1};
    for (int i = 0; i < 5; i++)
        roll(&d, 2);
    uint32_t layers = 4 + 4 * roll(&d, 4), hidden = 1024u << roll(&d, 3), seq = 1024u << roll(&d, 3),
             per_node = 4u << roll(&d, 2), nodes = 1 + roll(&d, 2);
    const char *device = PICK(&d, devices);
    uint32_t gbs = per_node * nodes * (2u << roll(&d, 3));
    const char *offload = PICK(&d, offloads), *sharding = PICK(&d, shardings), *recompute = PICK(&d, recomputes);
    char moved[96] = "", searched[96] = "";
    if (roll(&d, 3) == 0) { /* with "none" on the list only where offloaded layers ask for it, or by chance */
        const char *all = PICK(&d, inputs);
        bool may_be_none = roll(&d, 2) == 0 || offload[0] != '0';
        snprintf(moved, sizeof moved, "offload_modules: [%s],", may_be_none ? all : all + strlen("none, "));
    }
    bool kept = roll(&d, 4) == 0; /* the job recomputes, the search does not choose */
    const char *graphs = PICK(&d, dense_graphs),
               *plan = kept ? "recompute_granularity: selective, recompute_modules: [core_attn]" : "";
    if (!kept)
        snprintf(searched, sizeof searched, "recompute_granularity: [%s],", recompute);
    snprintf(
        out, TEXT,
        "{model: {model_type: megatron, hidden_size: %u, num_layers: %u, num_attention_heads: %u, ffn_hidden_size: %u,"
        " vocab_size: 32000, max_position_embeddings: 8192}, cluster: '%s:%u x %u, rail 100G', plan: {%s},"
        " workload: {seq: %u, gbs: %u}, search: {tp: [1, 2], pp: [1, 2], mbs: [1, 2], vp: [1, 2],"
        " cpu_offloading_num_layers: [%s], data_parallel_sharding_strategy: [%s], %s %s"
        " num_distributed_optimizer_instances: [1, 2], optimizer_offload_fraction: [0, 1], cp: 1, ep: 1,"
        " cp_comm_type: p2p, sequence_parallel: true, cuda_graph_scope: [%s], rank_order: [tp-cp-ep-dp-pp, "
        "tp-cp-ep-pp-dp],"
        " pipeline_schedule: [1f1b, interleaved], pipeline_model_parallel_layout: [E0L0, E0L1, E1L0, E1L1]}}",
        hidden, layers, hidden / 128, 4 * hidden, device, per_node, nodes, plan, seq, gbs, offload, sharding, searched,
        moved, graphs);
}

static const char *const wide[] = {"a100-80gb", "h100-sxm", "l40s", "h200", "b200", "h100-pcie"};
static const char *const precisions[] = {"bf16", "bf16", "fp8-delayed",
                                         "fp8-current"}; /* behind the first two not on Ampere */
static const char *const schedules[] = {
    "1f1b, interleaved",       "1f1b, zb-h1",    "1f1b, interleaved, zb-v, v-min, v-half",
    "gpipe, 1f1b, dualpipe-v", "1f1b, dualpipe", "1f1b, zb-h2, interleaved-zb",
    "1f1b, zb-1p, zb-2p"};
static const char *const expert_recomputes[] = {"none, moe", "none, core_attn, moe_act, full",
                                                "none, core_attn+moe_act, block", "none, layernorm, moe",
                                                "none, moe_act+layernorm"};
static const char *const comms[] = {"p2p", "a2a", "all_gather", "p2p, a2a"};
static const char *const updates[] = {"adam", "adam", "sgd", "muon"}; /* Muon works on whole matrices, on the device */
static const char *const frameworks[] = {"megatron-lm", "megatron-lm, launches_block: true", "nemo", "pytorch-fsdp",
                                         "nemo-automodel"};
static const char *const late[] = {"false", "false", "false, true"};
static const char *const beside[] = {"", ", overlap_moe_expert_parallel_comm: true",
                                     ", moe_expert_capacity_factor: 1.25"};
static const char *const parts[] = {"", " mtp_num_layers: 1,", " moe_shared_expert_intermediate_size: 2048,"};

static void random_experts(char out[TEXT], uint32_t seed)
{
    struct dice d = {seed * 104729ull + 7};
    for (int i = 0; i < 5; i++)
        roll(&d, 2);
    uint32_t layers = 4 + 2 * roll(&d, 4), hidden = 1024u << roll(&d, 2), seq = 1024u << roll(&d, 4),
             per_node = 4u << roll(&d, 2), nodes = 1 + roll(&d, 2), experts = 4u << roll(&d, 2),
             gbs = per_node * nodes * (1u << roll(&d, 4));
    const char *device = PICK(&d, wide), *update = PICK(&d, updates),
               *precision = precisions[roll(&d, device == wide[0] ? 2 : MAQ_COUNT(precisions))];
    bool whole = update == updates[MAQ_COUNT(updates) - 1];
    const char *sharding = whole ? "no_shard, optim" : PICK(&d, shardings);
    const char *part = PICK(&d, parts), *framework = PICK(&d, frameworks), *also = PICK(&d, beside),
               *offload = roll(&d, 3) ? "0" : "0, 2, 4", *recompute = PICK(&d, expert_recomputes),
               *comm = PICK(&d, comms), *schedule = PICK(&d, schedules), *host = whole ? "0" : "0, 1",
               *graphs = PICK(&d, expert_graphs), *shared = roll(&d, 2) ? "false" : "false, true",
               *waits = PICK(&d, late);
    snprintf(
        out, TEXT,
        "{model: {model_type: megatron, hidden_size: %u, num_layers: %u, num_attention_heads: %u, ffn_hidden_size: %u,"
        " num_experts: %u, moe_router_topk: 2, moe_ffn_hidden_size: %u,%s vocab_size: 32000, max_position_embeddings: "
        "65536},"
        " cluster: '%s:%u x %u, rail 200G', framework: {base: %s}, plan: {precision: %s, optimizer: %s%s}, workload: "
        "{seq: %u,"
        " gbs: %u}, search: {tp: [1, 2], cp: [1, 2], pp: [1, 2], ep: [1, 2, 4], etp: [1, tp], mbs: [1, 2], vp: [1, 2],"
        " cpu_offloading_num_layers: [%s], data_parallel_sharding_strategy: [%s], recompute_granularity: [%s],"
        " num_distributed_optimizer_instances: [1, 2], optimizer_offload_fraction: [%s], cp_comm_type: [%s],"
        " sequence_parallel: true, rank_order: tp-cp-ep-dp-pp, pipeline_schedule: [%s], cuda_graph_scope: [%s],"
        " moe_shared_expert_overlap: [%s], delay_wgrad_compute: [%s],"
        " pipeline_model_parallel_layout: [E0L0, E1L1]}}",
        hidden, layers, hidden / 128, 4 * hidden, experts, 2 * hidden, part, device, per_node, nodes, framework,
        precision, update, also, seq, gbs, offload, sharding, recompute, host, comm, schedule, graphs, shared, waits);
}

/* All axes have lists, so that `full` widens nothing: it only has a small part searched first. */
static struct maq_search_result *search(const struct maq_loaded_job *job, bool full, bool pareto, bool exhaustive,
                                        const char *text)
{
    struct maq_search_opts opts = {
        .top = 4, .threads = 1, .full = full, .pareto_memory = pareto, .exhaustive = exhaustive};
    struct maq_search_result *result;
    struct maq_diag *diag = maq_diag_new();
    if (maq_search(&result, job, &opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return result;
}

static void expect_same(const struct maq_search_plan *a, uint32_t n_a, const struct maq_search_plan *b, uint32_t n_b,
                        uint32_t seed, const char *text)
{
    if (n_a != n_b)
        fail_msg("job %u: %u plans, exhaustively %u\n%s", seed, n_a, n_b, text);
    for (uint32_t i = 0; i < n_a; i++)
        if (a[i].step_s != b[i].step_s)
            fail_msg("job %u: plan %u takes %.9f s, exhaustively %.9f s\n%s", seed, i, a[i].step_s, b[i].step_s, text);
}

static void hold_against_all(void (*random)(char out[TEXT], uint32_t seed))
{
    uint64_t scored = 0, all = 0;
    for (uint32_t seed = 0; seed < JOBS; seed++) {
        char text[TEXT];
        struct maq_loaded_job *job;
        struct maq_diag *diag = maq_diag_new();
        random(text, seed);
        if (maq_job_parse_open(&job, "random", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        bool pareto = seed % 6 == 2;
        struct maq_search_result *a = search(job, seed % 2, pareto, false, text),
                                 *b = search(job, false, pareto, true, text);
        assert_int_equal(a->counts.considered, b->counts.considered);
        expect_same(a->plans, a->n_plans, b->plans, b->n_plans, seed, text);
        expect_same(a->pareto, a->n_pareto, b->pareto, b->n_pareto, seed, text);
        scored += a->counts.scored;
        all += b->counts.scored;
        maq_search_result_free(a);
        maq_search_result_free(b);
        maq_job_free(job);
        maq_diag_free(diag);
    }
    print_message("# %d jobs: %llu plans timed of %llu that fit\n", JOBS, (unsigned long long)scored,
                  (unsigned long long)all);
    assert_true(scored < all / 4);
}

static void test_dense(void **unused)
{
    (void)unused;
    hold_against_all(random_dense);
}

static void test_experts(void **unused)
{
    (void)unused;
    hold_against_all(random_experts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dense), cmocka_unit_test(test_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
