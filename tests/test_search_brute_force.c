/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search_brute_force.c - the homogeneous search finds what loops find that predict every plan with maq_train_predict(). maq-test: long
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

#include "base/count.h"
#include "effort.h"
#include "searched.h"

static const int tps[] = {1, 2, 4}, pps[] = {1, 2, 4}, vps[] = {1, 2, 3}, mbss[] = {1, 2, 4}, zeros[] = {0, 1, 2, 3};
static const char *const recomputes[] = {"none", "core_attn", "full"};

/* Of a plan that fits, as a search understands it; HUGE_VAL for one that does not. */
static double fitting_step_s(const struct maq_train_result *r)
{
    double needs = 0;
    for (uint32_t s = 0; s < r->n_stages; s++)
        needs = fmax(needs, r->stages[s].allocated_bytes + r->stages[s].bytes[MAQ_MEM_CONTEXT] +
                                r->stages[s].bytes[MAQ_MEM_NCCL] - r->stages[s].capacity_bytes);
    return needs <= 0 ? r->step_s : HUGE_VAL;
}

static double brute_force(const char *rest, const char *more, uint32_t *n)
{
    double best = INFINITY;
    for (size_t i = 0; i < MAQ_COUNT(tps) * MAQ_COUNT(pps) * MAQ_COUNT(vps) * MAQ_COUNT(mbss) * MAQ_COUNT(zeros) *
                               MAQ_COUNT(recomputes);
         i++) {
        char text[1024];
        size_t k = i;
#define DIGIT(list) list[k % MAQ_COUNT(list)]
#define NEXT(list) (k /= MAQ_COUNT(list))
        int tp = DIGIT(tps);
        NEXT(tps);
        int pp = DIGIT(pps);
        NEXT(pps);
        int vp = DIGIT(vps);
        NEXT(vps);
        int mbs = DIGIT(mbss);
        NEXT(mbss);
        int zero = DIGIT(zeros);
        NEXT(zeros);
        const char *how = DIGIT(recomputes);
        static const char *const shardings[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
        bool parts = strcmp(how, "core_attn") == 0;
        snprintf(text, sizeof text,
                 "{%s, plan: {tp: %d, pp: %d, vp: %d, mbs: %d, zero: %s, recompute: %s, layout: balanced%s}}", rest, tp,
                 pp, vp, mbs, shardings[zero], parts ? "selective" : how, more);
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        if (maq_job_parse(&box, "brute force", maq_str_of(text), NULL, 0, NULL) != MAQ_OK)
            continue;
        if (maq_train_predict(&r, maq_job_get(box), NULL) == MAQ_OK) {
            best = fmin(best, fitting_step_s(r));
            (*n)++;
            maq_train_result_free(r);
        }
        maq_job_free(box);
    }
    return best;
}

static void test_brute_force(void **unused)
{
    NOT_UNDER_A_SANITIZER();
    (void)unused;
    static const struct {
        const char *rest, *more;
    } cases[] = {
        {"model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16}",
         ""},
        {"model: {base: gpt2, num_hidden_layers: 12}, cluster: 'a100-80gb:4', workload: {seq: 1024, gbs: 32}", ""},
        {"model: {base: gpt2, num_hidden_layers: 12}, cluster: 'a100-80gb:4', workload: {seq: 1024, gbs: 32}",
         ", optimizer: muon"},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 10}, cluster: 'h100-sxm:2 x 2',"
         " workload: {seq: 8192, gbs: 8}",
         ""},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-5090:4', workload: {seq: 4096, gbs: 16}",
         ", precision: mxfp8, first_last_layers_bf16: true, num_layers_at_end_in_bf16: 2"},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-5090:4', workload: {seq: 4096, gbs: 16}",
         ", precision: fp8-current, fp8_param_gather: true"},
        {"model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16}",
         ", fine_grained_activation_offloading: true, offload_modules: [core_attn, attn_proj]"},
    };
    static const char *const lists[] = {"tp=1,2,4",        "cp=1",
                                        "pp=1,2,4",        "vp=1,2,3",
                                        "mbs=1,2,4",       "zero=0,1,2,3",
                                        "hsdp_replicas=1", "recompute=none,core_attn,full",
                                        "layout=E0L0",     "order=tp-cp-ep-dp-pp"};
    uint32_t n_overlapped = 0, n_graphs = 0;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[1024];
        uint32_t n = 0;
        double best = brute_force(cases[i].rest, cases[i].more, &n);
        const bool overlaps = strstr(cases[i].rest, "h100") != NULL;
        if (overlaps) {
            snprintf(text, sizeof text, "%s, tp_comm_overlap: true", cases[i].more);
            double overlapped = brute_force(cases[i].rest, text, &n);
            n_overlapped += overlapped < best;
            best = fmin(best, overlapped);
            for (int tp = 0; tp < 2; tp++) {
                snprintf(text, sizeof text, "%s, tp_comm_overlap: %s, enable_cuda_graph: true", cases[i].more,
                         tp ? "true" : "false");
                double graphs = brute_force(cases[i].rest, text, &n);
                n_graphs += graphs < best;
                best = fmin(best, graphs);
            }
        }
        snprintf(text, sizeof text, "{%s, plan: {%s}}", cases[i].rest, cases[i].more[0] ? cases[i].more + 2 : "");
        struct maq_search_opts opts = {.lists = lists, .n_lists = MAQ_COUNT(lists), .keep_switches = !overlaps};
        struct searched s = search(text, &opts);
        print_message("# %u plans predicted one by one\n", n);
        assert_true(n > 50 && s.result->n_plans > 0);
        if (s.result->plans[0].step_s != best)
            fail_msg("searched %.9f s, brute force %.9f s", s.result->plans[0].step_s, best);
        done(&s);
    }
    assert_true(n_overlapped > 0 && n_graphs > 0);
}

/* Every combination of the switches of a layer with experts, in every plan of a small space. */
static void test_brute_force_switches(void **unused)
{
    NOT_UNDER_A_SANITIZER();
    (void)unused;
    static const char rest[] =
        "model: {base: deepseek-v2-lite, num_hidden_layers: 4}, cluster: 'h100-sxm:4', workload: "
        "{seq: 2048, gbs: 16}",
                      *const dispatchers[] = {"alltoall", "deepep"}, *const onoff[] = {"false", "true"},
                      *const graphs[] = {"none", "attn, mlp, moe_router, moe_preprocess"},
                      *const some_recomputes[] = {"none", "selective, recompute_modules: [moe_act]", "full"};
    static const int eps[] = {1, 2, 4}, some_vps[] = {1, 2}, some_pps[] = {1, 2}, some_tps[] = {1, 2};
    double best = INFINITY, without = INFINITY;
    for (size_t i = 0; i < (size_t)3 * 2 * 2 * 2 * 3 * 2 * 2 * 2 * 2; i++) {
        char text[1024], scope[96] = "";
        size_t k = i;
        const int ep = DIGIT(eps), vp = (NEXT(eps), DIGIT(some_vps)), pp = (NEXT(some_vps), DIGIT(some_pps)),
                  tp = (NEXT(some_pps), DIGIT(some_tps));
        const char *redo = (NEXT(some_tps), DIGIT(some_recomputes)),
                   *dispatcher = (NEXT(some_recomputes), DIGIT(dispatchers)),
                   *shared = (NEXT(dispatchers), DIGIT(onoff)), *overlap = (NEXT(onoff), DIGIT(onoff)),
                   *parts = (NEXT(onoff), DIGIT(graphs));
        if (parts != graphs[0])
            snprintf(scope, sizeof scope, ", cuda_graph_scope: [%s]", parts);
        /* Megatron Core until 2026 overlaps shared experts with its all-to-all alone (planner/uniform/branches.c) */
        if (strcmp(shared, "true") == 0 && dispatcher != dispatchers[0])
            continue;
        snprintf(text, sizeof text,
                 "{%s, plan: {tp: %d, pp: %d, vp: %d, ep: %d, etp: 1, cp: 1, mbs: 1, zero: optim, recompute: %s, "
                 "layout: balanced, "
                 "moe_token_dispatcher_type: %s, moe_shared_expert_overlap: %s, overlap_ep: %s%s}}",
                 rest, tp, pp, vp, ep, redo, dispatcher, shared, overlap, scope);
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        if (maq_job_parse(&box, "brute force", maq_str_of(text), NULL, 0, NULL) != MAQ_OK)
            continue;
        if (maq_train_predict(&r, maq_job_get(box), NULL) == MAQ_OK) {
            double step = fitting_step_s(r);
            bool bare = strcmp(shared, "false") == 0 && !scope[0];
            best = fmin(best, step);
            without = bare ? fmin(without, step) : without;
            maq_train_result_free(r);
        }
        maq_job_free(box);
    }
    static const char *const lists[] = {"tp=1,2",
                                        "cp=1",
                                        "pp=1,2",
                                        "vp=1,2",
                                        "mbs=1",
                                        "zero=optim",
                                        "hsdp_replicas=1",
                                        "recompute=none,moe_act,full",
                                        "layout=E0L0",
                                        "order=tp-cp-ep-dp-pp",
                                        "ep=1,2,4",
                                        "etp=1",
                                        "tp_comm_overlap=auto"};
    struct maq_search_opts opts = {.lists = lists, .n_lists = MAQ_COUNT(lists)};
    char text[256];
    snprintf(text, sizeof text, "{%s}", rest);
    struct searched s = search(text, &opts);
    assert_true(s.result->n_plans > 0 && best < without);
    if (s.result->plans[0].step_s != best)
        fail_msg("searched %.9f s, brute force %.9f s", s.result->plans[0].step_s, best);
    done(&s);
}

/* Switches that hide communication are searched where framework and devices have them, and kept where the job sets them. */
static void test_switches(void **unused)
{
    (void)unused;
#define PARTS "none, attn+moe_router+moe_preprocess"
#define MOE(cluster, rest)                                                                                             \
    "{model: {base: qwen3-30b-a3b, num_hidden_layers: 2}, workload: {seq: 1024, gbs: 32}, search: {cp: 1, mbs: 1, "    \
    "vp: 1}, cluster: '" cluster "'" rest "}"
    static const struct {
        const char *text, *dispatchers, *overlaps, *graphs, *shared;
    } cases[] = {
        {MOE("h100-sxm:4 x 2", ""), "alltoall, deepep", "auto, true", PARTS, "false"},
        {MOE("gb200-nvl72:4 x 2", ""), "alltoall, hybridep", "auto, true", PARTS, "false"},
        {MOE("a100-80gb:4 x 2", ""), "alltoall", "auto, true", PARTS, "false"},
        {MOE("rtx-4090:4 x 2", ""), "alltoall", "auto", PARTS, "false"},
        {MOE("mi300x:4 x 2", ""), "alltoall", "auto", "none", "false"},
        {MOE("h100-sxm:4 x 2", ", framework: torchtitan"), "alltoall", "auto", "none", "false"},
        {MOE("h100-sxm:4 x 2",
             ", plan: {moe_token_dispatcher_type: alltoall, tp_comm_overlap: false, enable_cuda_graph: "
             "false}"),
         "alltoall", "false", "none", "false"},
        {MOE("h100-sxm:4 x 2", ", framework: megatron-bridge"), "deepep", "true", PARTS, "false"},
        {MOE("h100-sxm:4 x 2", ", plan: {moe_expert_capacity_factor: 1}"), "alltoall, deepep", "auto, true",
         "none, full_iteration", "false"},
        {"{model: {base: deepseek-v2-lite, num_hidden_layers: 2}, workload: {seq: 1024, gbs: 32}, cluster: "
         "'h100-sxm:4'}",
         "alltoall, deepep", "auto, true", "none, attn+mlp+moe_router+moe_preprocess", "false, true"},
        {"{model: {base: gpt2, num_hidden_layers: 2}, workload: {seq: 1024, gbs: 32}, cluster: 'h100-sxm:4'}",
         "alltoall", "auto, true", "none, full_iteration", "false"},
        {"{model: {base: gpt2, num_hidden_layers: 2}, workload: {seq: 1024, gbs: 32}, cluster: 'h100-sxm:4', plan: "
         "{cuda_graph_scope: [attn]}}",
         "alltoall", "auto, true", "attn", "false"},
    };
#undef PARTS
#undef MOE
    for (size_t i = 0; i < MAQ_COUNT(cases); i += SANITIZED ? 5 : 1) {
        struct maq_search_opts opts = {.top = 1};
        struct searched s = search(cases[i].text, &opts);
        const struct maq_search_result *r = s.result;
        for (uint32_t a = 0; a < r->n_axes; a++) {
            if (strcmp(r->axes[a].key, "moe_token_dispatcher_type") == 0)
                assert_string_equal(r->axes[a].values, cases[i].dispatchers);
            if (strcmp(r->axes[a].key, "tp_comm_overlap") == 0)
                assert_string_equal(r->axes[a].values, cases[i].overlaps);
            if (strcmp(r->axes[a].key, "cuda_graph_scope") == 0)
                assert_string_equal(r->axes[a].values, cases[i].graphs);
            if (strcmp(r->axes[a].key, "moe_shared_expert_overlap") == 0)
                assert_string_equal(r->axes[a].values, cases[i].shared);
        }
        opts.keep_switches = true;
        struct searched kept = search(cases[i].text, &opts);
        assert_true(kept.result->plans[0].step_s >= r->plans[0].step_s);
        done(&kept);
        done(&s);
    }
}

/* Every list of recomputed layers of four stages of two layers: none is faster than the one of the least numbers that fit. */
static void test_stages_recompute_by_themselves(void **unused)
{
    (void)unused;
#define JOB(mbs, seq)                                                                                                  \
    "{model: {base: llama-2-7b, num_hidden_layers: 8}, cluster: 'rtx-4090:4', plan: {tp: 1, pp: 4, vp: 1, cp: 1, "     \
    "mbs: " mbs "}, workload: {seq: " seq ", gbs: 32}, search: {recompute: [none, block, stages], schedule: 1f1b, "    \
    "layout: E0L0, offload_layers: 0, optimizer_offload_fraction: 0}}"
    static const char *const texts[] = {JOB("1", "8192"), JOB("2", "8192"), JOB("1", "16384"), JOB("2", "16384")};
    uint32_t differ = 0;
    for (size_t i = 0; i < MAQ_COUNT(texts); i++) {
        const char *text = texts[i];
        struct maq_search_opts opts = {.top = 1, .threads = 1, .full = true};
        struct searched s = search(text, &opts);
        double least = s.result->n_plans > 0 ? s.result->plans[0].step_s : HUGE_VAL, best = HUGE_VAL;
        differ += s.result->n_plans > 0 && s.result->plans[0].plan.recompute_stages.len > 0;
        for (int list = 0; list < 81; list++) {
            struct maq_plan plan = s.result->n_plans > 0 ? s.result->plans[0].plan : s.result->frugal.plan;
            char counts[16];
            snprintf(counts, sizeof counts, "%d,%d,%d,%d", list / 27, list / 9 % 3, list / 3 % 3, list % 3);
            plan.recompute = MAQ_RECOMPUTE_FULL;
            plan.recompute_method = MAQ_RECOMPUTE_BLOCK;
            plan.recompute_num_layers = 0;
            plan.recompute_stages = maq_str_of(counts);
            struct maq_loaded_job *closed;
            struct maq_train_result *r;
            struct maq_diag *diag = maq_diag_new();
            assert_int_equal(maq_job_complete(&closed, s.job, &plan, diag), MAQ_OK);
            assert_int_equal(maq_train_predict(&r, maq_job_get(closed), diag), MAQ_OK);
            best = fmin(best, fitting_step_s(r));
            maq_train_result_free(r);
            maq_job_free(closed);
            maq_diag_free(diag);
        }
        if (fabs(least - best) > 1e-12)
            fail_msg("%s: the search %.9f s, all lists %.9f s", text, least, best);
        done(&s);
    }
    assert_int_equal(differ, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_brute_force_switches),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_stages_recompute_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
