/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search.c - the homogeneous search: bounds leave nothing out. maq-test: threads
 *
 * Three ways to the same answer: the search, the search that scores every plan of its space, and loops written here that
 * predict every plan with maq_train_predict(). maq-test: long
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
#include "effort.h"
#include "maquette/planner.h"

struct searched {
    struct maq_loaded_job *job;
    struct maq_search_result *result;
};

static struct searched search(const char *text, const struct maq_search_opts *opts)
{
    struct searched s = {0};
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse_open(&s.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_search(&s.result, s.job, opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return s;
}

static void done(struct searched *s)
{
    maq_search_result_free(s->result);
    maq_job_free(s->job);
}

/* Jobs where different things bind: memory, the bubble, experts, slow links, a schedule that the user chose. */
static const struct {
    const char *name, *text;
    bool full;
} jobs[] = {
    {"dense",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:4', workload: {seq: 4096, gbs: 16}}",
     false},
    {"tight",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 12}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16},"
     " search: {cp: 1, vp: [1, 2], order: tp-cp-ep-dp-pp}}",
     true},
    {"pipelines",
     "{model: {base: gpt2, num_hidden_layers: 8}, cluster: 'v100-sxm2-16gb:4', plan: {tp: 1, cp: 1}, workload: {seq: "
     "1024, gbs: 16},"
     " search: {offload_layers: 0, optimizer_offload_fraction: 0, mbs: [1, 2]}}",
     true},
    {"experts",
     "{model: {base: mixtral-8x7b, num_hidden_layers: 4}, cluster: 'a100-80gb:8', workload: {seq: 4096, gbs: 16},"
     " search: {cp: 1, vp: [1, 2], mbs: [1, 2]}}",
     false},
    {"how tokens travel",
     "{model: {base: deepseek-v2-lite, num_hidden_layers: 5}, cluster: 'h100-sxm:4 x 2, rail 200G', workload: {seq: "
     "4096, "
     "gbs: 32}, search: {cp: 1, vp: [1, 2], mbs: [1, 2], dispatcher: [alltoall, deepep, hybridep], tp_comm_overlap: "
     "[auto, true], recompute: [none, mla_up_proj]}}",
     false},
    {"exchanges under another microbatch", /* with virtual stages, or no stages, and where no exchange is recomputed */
     "{model: {base: deepseek-v2-lite, num_hidden_layers: 6}, cluster: 'h100-sxm:4 x 2, rail 100G', workload: {seq: "
     "4096, gbs: 32}, search: {cp: 1, vp: [1, 2, 3], mbs: 1, overlap_ep: [false, true], schedule: [1f1b, interleaved, "
     "zb-h1, "
     "dualpipe], recompute: [none, moe_act, moe, full, block]}}",
     false},
    {"layers in 16 bits",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'rtx-5090:4', plan: {precision: mxfp8, "
     "first_last_layers_bf16: true, num_layers_at_end_in_bf16: 2}, workload: {seq: 4096, gbs: 16}}",
     false},
    {"inputs on the host", /* there is no device to spare, and the link is slow: copies are waited for, less where more is recomputed */
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'rtx-4090:4', plan: {"
     "fine_grained_activation_offloading: true, offload_modules: [qkv_linear, core_attn, attn_proj]},"
     " workload: {seq: 4096, gbs: 16}, search: {cp: 1, vp: [1, 2]}}",
     true},
    {"inputs of experts on the host",
     "{model: {base: mixtral-8x7b, num_hidden_layers: 4}, cluster: 'a100-80gb:8', plan: {"
     "fine_grained_activation_offloading: true, offload_modules: [expert_fc1, moe_act]}, workload: {seq: 4096, gbs: "
     "16},"
     " search: {cp: 1, vp: [1, 2], mbs: [1, 2]}}",
     false},
    {"which inputs are on the host",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'rtx-4090:4', workload: {seq: 4096, gbs: 16}, "
     "search: {"
     "cp: 1, vp: [1, 2], mbs: [1, 4], zero: [no_shard, optim, optim_grads_params], "
     "offload_modules: [none, qkv_linear, core_attn+attn_proj, qkv_linear+core_attn+attn_proj]}}",
     true},
    {"recomputed and on the host", /* more layers recomputed take less time there: nothing is left to move */
     "{model: {model_type: megatron, hidden_size: 4096, num_layers: 8, num_attention_heads: 32, ffn_hidden_size: "
     "16384, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'v100-sxm2-16gb:8 x 2, rail 100G', workload: {seq: "
     "2048, gbs: 32}, search: {tp: 1, pp: 1, mbs: 1, cp: 1, offload_layers: [0, 1, 2, 4], zero: optim, "
     "hsdp_replicas: 1, recompute: [none, block], optimizer_offload_fraction: [0, 1]}}",
     false},
    {"copies that hide", /* in the host's wait in forward passes, beside the first gather */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 16, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'l40s:4 x 2, rail 100G', workload: {seq: 1024, gbs: "
     "16}, "
     "search: {tp: 1, pp: 1, mbs: 2, cp: 1, offload_layers: [0, 2, 8], zero: optim, hsdp_replicas: 2, recompute: "
     "none}}",
     false},
    {"exchanges that hide", /* in DualPipe, not in 1F1B */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 6, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "num_experts: 4, moe_router_topk: 2, moe_ffn_hidden_size: 2048, vocab_size: 32000, max_position_embeddings: "
     "65536}, cluster: 'l40s:4', framework: nemo, workload: {seq: 8192, gbs: 8}, search: {tp: 1, cp: 1, pp: 2, ep: 2, "
     "etp: 1, mbs: 1, zero: [no_shard, optim], hsdp_replicas: 1, recompute: none, schedule: [1f1b, dualpipe]}}",
     false},
    {"recomputed in a wait", /* beside an exchange, of a pass that waits for gathers */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 6, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "num_experts: 8, moe_router_topk: 2, moe_ffn_hidden_size: 2048, vocab_size: 32000, max_position_embeddings: "
     "65536}, cluster: 'h100-sxm:4 x 2, rail 200G', plan: {overlap_moe_expert_parallel_comm: true}, workload: {seq: "
     "2048, gbs: 8}, search: {tp: 1, cp: 2, ep: 4, etp: 1, pp: 1, mbs: 2, zero: 3, recompute: [none, "
     "core_attn+moe_act], hsdp_replicas: 1, cp_comm_type: all_gather}}",
     false},
    {"less to move", /* of four layers than of two, once experts are recomputed */
     "{model: {model_type: megatron, hidden_size: 2048, num_layers: 10, num_attention_heads: 16, ffn_hidden_size: "
     "8192, num_experts: 4, moe_router_topk: 2, moe_ffn_hidden_size: 4096, moe_shared_expert_intermediate_size: 2048, "
     "vocab_size: 32000, max_position_embeddings: 65536}, cluster: 'b200:4 x 2, rail 200G', framework: nemo, plan: "
     "{optimizer: muon, moe_expert_capacity_factor: 1.25}, workload: {seq: 2048, gbs: 16}, search: {tp: 1, cp: 1, pp: "
     "1, ep: 1, etp: 1, mbs: 2, offload_layers: [0, 2, 4], zero: optim, recompute: [none, layernorm, moe], "
     "hsdp_replicas: 2}}",
     false},
    {"ends keep what they keep", /* however much of the layers is recomputed: matters to fronts */
     "{model: {model_type: megatron, hidden_size: 1024, num_layers: 12, num_attention_heads: 8, ffn_hidden_size: 4096, "
     "vocab_size: 32000, max_position_embeddings: 8192}, cluster: 'v100-sxm2-16gb:8 x 2, rail 100G', workload: {seq: "
     "2048, gbs: 64}, search: {tp: [1, 2], pp: [1, 2], mbs: [1, 2], vp: [1, 2], cp: 1, offload_modules: [none, "
     "core_attn], recompute: [none, core_attn, mlp, full], hsdp_replicas: [1, 2], optimizer_offload_fraction: [0, 1]}}",
     false},
    {"reduced once a step", /* not in every pass, as where a step has one microbatch */
     "{model: {base: bloom-1b7, num_hidden_layers: 6}, cluster: 'h100-sxm:4 x 4, rail 400G', framework: "
     "nemo-automodel, plan: {precision: bf16}, workload: {seq: 1024, gbs: 128}, search: {tp: 2, cp: 1, pp: 1, mbs: [1, "
     "2], zero: optim_grads_params, recompute: none, hsdp_replicas: [1, 2]}}",
     false},
    {"chosen",
     "{model: {base: llama-3.1-8b, num_hidden_layers: 8}, cluster: 'a100-80gb:8', plan: {schedule: zb-v, pp: 4, vp: 2, "
     "recompute: full}, workload: {seq: 8192, gbs: 32}}",
     false},
};

static void expect_same(const struct maq_search_result *a, const struct maq_search_result *b, const char *name)
{
    if (a->n_plans != b->n_plans)
        fail_msg("%s: %u plans, exhaustively %u", name, a->n_plans, b->n_plans);
    for (uint32_t i = 0; i < a->n_plans; i++)
        if (a->plans[i].step_s != b->plans[i].step_s)
            fail_msg("%s: plan %u takes %.9f s, exhaustively %.9f s", name, i, a->plans[i].step_s, b->plans[i].step_s);
    assert_int_equal(a->counts.considered, b->counts.considered);
}

static uint64_t accounted(const struct maq_search_counts *c)
{
    return c->bounded + c->impossible + c->unfit + c->scored;
}

/* Jobs whose every plan is scored: under a sanitizer every sixth one. */
#define EVERY (SANITIZED ? 6 : 1)

/* A job with every plan scored, once for all tests. */
static const struct searched *exhaustive(size_t i)
{
    static struct searched all[MAQ_COUNT(jobs)];
    const struct maq_search_opts opts = {
        .top = 8, .threads = 1, .full = jobs[i].full, .pareto_memory = true, .exhaustive = true};
    if (!all[i].result)
        all[i] = search(jobs[i].text, &opts);
    return &all[i];
}

static void test_bounds_leave_nothing_out(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.top = 8, .threads = 1, .full = jobs[i].full};
        struct searched a = search(jobs[i].text, &opts), b = *exhaustive(i);
        expect_same(a.result, b.result, jobs[i].name);
        if (accounted(&a.result->counts) != a.result->counts.considered)
            fail_msg("%s: %llu plans of %llu are accounted for", jobs[i].name,
                     (unsigned long long)accounted(&a.result->counts), (unsigned long long)a.result->counts.considered);
        print_message("# %s: %llu plans, %llu scored; exhaustively %llu\n", jobs[i].name,
                      (unsigned long long)a.result->counts.considered, (unsigned long long)a.result->counts.scored,
                      (unsigned long long)b.result->counts.scored);
        assert_true(a.result->n_plans > 0 && a.result->complete);
        assert_true(a.result->counts.scored <= b.result->counts.scored);
        assert_true(a.result->bound_s == a.result->plans[0].step_s);
        done(&a);
    }
}

/*
 * A best plan of 24 GB that is full as predicted. Asked to fit in nine of ten runs, the best plan is another one, and the first is what the
 * memory buys that is left free.
 */
static void test_headroom(void **unused)
{
    struct maq_search_opts opts = MAQ_SEARCH_OPTS_INIT;
    struct maq_search_headroom h;
    struct maq_diag *diag = maq_diag_new();
    struct searched full = search(jobs[1].text, &opts);
    const struct maq_search_plan *most = &full.result->plans[0];
    (void)unused;
    double device = maq_job_get(full.job)->cluster.groups[0].device.mem_bytes;
    assert_int_equal(maq_search_find_headroom(&h, full.job, full.result, &opts, diag), MAQ_OK);
    assert_true(h.min_fit_probability == 0 && h.bytes == 0 && !h.searched);
    assert_true(h.fit_probability == maq_train_fit_probability(most->needed_bytes, device) && h.fit_probability < 0.9);

    opts.min_fit_probability = 0.9;
    struct searched roomy = search(jobs[1].text, &opts);
    const struct maq_search_plan *own = &roomy.result->plans[0];
    assert_true(own->step_s > most->step_s && maq_train_fit_probability(own->needed_bytes, device) >= 0.9 - 1e-12);
    assert_int_equal(maq_search_find_headroom(&h, roomy.job, roomy.result, &opts, diag), MAQ_OK);
    assert_true(h.searched && h.without.step_s == most->step_s && h.without.needed_bytes == most->needed_bytes);
    assert_true(h.fit_probability >= 0.9 - 1e-12 && h.without_probability < 0.9);
    assert_true(fabs((device - h.bytes) * maq_train_memory_quantile(0.9) / device - 1) < 1e-12);

    static const volatile sig_atomic_t now = 1; /* a search that is stopped says nothing */
    struct searched again = search(jobs[1].text, &opts);
    opts.stop = &now;
    assert_int_equal(maq_search_find_headroom(&h, again.job, again.result, &opts, diag), MAQ_OK);
    assert_true(h.fit_probability >= 0.9 - 1e-12 && !h.searched && h.without.step_s == 0);
    done(&again);
    done(&roomy);
    done(&full);
    maq_diag_free(diag);
}

/* The quantile and the probability undo each other, and no plan gains by being asked for more. */
static void test_fit_probability(void **unused)
{
    (void)unused;
    for (int i = 0; i <= 100; i++) {
        double p = i / 100.0, q = maq_train_memory_quantile(p);
        assert_true(fabs(maq_train_fit_probability(1e9, q * 1e9) - p) < 1e-9);
        assert_true(i == 0 || q > maq_train_memory_quantile((i - 1) / 100.0));
    }
    assert_true(maq_train_fit_probability(0, 1) == 1 && maq_train_fit_probability(1e9, 0) == 0);
}

/* The front is that of all plans. */
static void test_pareto(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.top = 8, .threads = 1, .full = jobs[i].full, .pareto_memory = true};
        struct searched a = search(jobs[i].text, &opts), b = *exhaustive(i);
        expect_same(a.result, b.result, jobs[i].name);
        if (a.result->n_pareto != b.result->n_pareto)
            fail_msg("%s: %u plans on the front, exhaustively %u", jobs[i].name, a.result->n_pareto,
                     b.result->n_pareto);
        assert_true(a.result->n_pareto > (i < 2 ? 2 : 0));
        for (uint32_t k = 0; k < a.result->n_pareto; k++) {
            const struct maq_search_plan *x = &a.result->pareto[k], *y = &b.result->pareto[k];
            assert_true(x->step_s == y->step_s && x->needed_bytes == y->needed_bytes);
            assert_true(k == 0 || (x->step_s > x[-1].step_s && x->needed_bytes < x[-1].needed_bytes));
        }
        assert_true(a.result->pareto[0].step_s == a.result->plans[0].step_s);
        done(&a);
    }
}

static void test_threads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts one = {.threads = 1, .full = jobs[i].full}, four = {.threads = 4, .full = jobs[i].full};
        struct searched a = search(jobs[i].text, &one), b = search(jobs[i].text, &four);
        expect_same(a.result, b.result, jobs[i].name);
        assert_memory_equal(&a.result->counts, &b.result->counts, sizeof a.result->counts);
        for (uint32_t k = 0; k < a.result->n_plans; k++)
            assert_true(a.result->plans[k].needed_bytes == b.result->plans[k].needed_bytes);
        done(&a);
        done(&b);
    }
}

/* ---- brute force, written down again ---- */

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

/* A plan that is set free leaves nothing behind. */
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

static void test_set_free(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:4', workload: {seq: 4096, gbs: 16},"
        " plan: {tp: 2, pp: 2, dp: 1, decoder_first_pipeline_num_layers: 2, recompute: full, zero: no_shard}}";
    struct maq_search_opts open = {0}, set_free = {.free = true};
    struct searched a = search(jobs[0].text, &open), b = search(text, &set_free), c = search(text, &open);
    expect_same(a.result, b.result, "set free");
    assert_int_equal(c.result->n_plans, 1); /* degrees are what they are */
    assert_true(c.result->plans[0].step_s > a.result->plans[0].step_s);
    done(&a);
    done(&b);
    done(&c);
}

/* More virtual stages than layers: embedding and output have their own. */
static void test_ends_of_their_own(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:8', workload: {seq: 4096, "
        "gbs: 64}, plan: {tp: 1, cp: 1, pp: 4, vp: 2}}";
    struct maq_search_opts opts = {0};
    struct searched s = search(text, &opts);
    assert_true(s.result->n_plans == 1 && s.result->plans[0].plan.layout.len > 0);
    assert_true(s.result->plans[0].plan.layout.ptr[0] == '0');
    done(&s);
}

/* ---- what else the search says ---- */

/* What would help a job of which nothing fits. */
static struct searched search_remedies(struct maq_search_remedies *r, const char *text,
                                       const struct maq_search_opts *opts)
{
    struct searched s = search(text, opts);
    assert_int_equal(s.result->n_plans, 0);
    assert_int_equal(maq_search_find_remedies(r, s.job, opts, NULL), MAQ_OK);
    assert_true(r->memory_bytes > 0);
    return s;
}

/* Of what can be left on the host, inputs of experts are more than layers and the optimizer alone. */
static void test_remedy_of_the_host(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: qwen3-30b-a3b, cluster: {device: {base: a100-40gb, host_devices: 1}}, workload: {seq: 8192, gbs: 64},"
        " plan: {recompute: none, mbs: 1, overlap_ep: false}, search: {vp: 1, order: tp-cp-ep-dp-pp, layout: E0L0}}";
    const char *lists[] = {"cpu_offloading_num_layers=0,4,16,64", "optimizer_offload_fraction=0,1"};
    struct maq_search_opts opts = {.threads = 1}, coarse = {.threads = 1, .lists = lists, .n_lists = MAQ_COUNT(lists)};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts), c = search(text, &coarse);
    assert_true(r.offload && r.with_offload.offload_modules != 0);
    assert_true(c.result->n_plans > 0 && r.with_offload_s < 0.98 * c.result->plans[0].step_s);
    maq_search_remedies_free(&r);
    done(&s);
    done(&c);
}

/* Memory that is asked for is enough, and a gibibyte less is not; the same for nodes. */
static void test_remedies(void **unused)
{
    (void)unused;
    const char text[] = "{model: llama-3.1-8b, cluster: 'v100-16gb:4', workload: {seq: 4096, gbs: 8},"
                        " search: {cp: 1, vp: 1, mbs: 1, order: tp-cp-ep-dp-pp, layout: E0L0}}";
    struct maq_search_opts opts = {.threads = 1};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts);
    assert_true(r.nodes >= 2);
    const double gib = 1024.0 * 1024 * 1024;
    for (int less = 0; less < 2; less++) {
        struct maq_search_opts with = {.threads = 1, .memory_bytes = r.memory_bytes - less * gib};
        struct searched t = search(text, &with);
        assert_int_equal(t.result->n_plans > 0, !less);
        assert_true(less || t.result->plans[0].step_s == r.with_memory_s);
        done(&t);
        with = (struct maq_search_opts){.threads = 1, .more_nodes = r.nodes / (uint32_t)(1 + less)};
        t = search(text, &with);
        assert_int_equal(t.result->n_plans > 0, !less);
        done(&t);
    }
    maq_search_remedies_free(&r);
    done(&s);
}

/* A job that keeps its number of replicas goes together with no other number of nodes: more memory helps it, nodes do not. */
static void test_remedies_of_kept_replicas(void **unused)
{
    (void)unused;
    const char text[] = "{model: llama-3.1-8b, cluster: 'v100-16gb:4', workload: {seq: 4096, gbs: 8},"
                        " plan: {tp: 1, pp: 1, dp: 4, order: tp-cp-ep-dp-pp}, search: {cp: 1, vp: 1, mbs: 1}}";
    struct maq_search_opts opts = {.threads = 1};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts);
    assert_int_equal(r.nodes, 0);
    maq_search_remedies_free(&r);
    done(&s);
}

/* What a setting takes is what predicting the winner's document with it says. */
static void check_settings(const struct searched *s, const char *document, const struct maq_search_opts *opts)
{
    struct maq_search_alternatives a;
    assert_int_equal(maq_search_settings(&a, s->job, s->result, opts, NULL), MAQ_OK);
    for (uint32_t k = 0; k < a.n; k++) {
        char path[128];
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        snprintf(path, sizeof path, "plan.%s", a.at[k].key);
        const struct maq_override with = {"--set", path, a.at[k].to};
        enum maq_status status = maq_job_parse(&box, "set", maq_str_of(document), &with, 1, NULL);
        assert_int_equal(status == MAQ_OK, a.at[k].possible);
        if (status != MAQ_OK)
            continue;
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        if (fabs(r->step_s / a.at[k].step_s - 1) > 1e-12)
            fail_msg("%s %s: %.9f s, predicted %.9f s", a.at[k].key, a.at[k].to, a.at[k].step_s, r->step_s);
        maq_train_result_free(r);
        maq_job_free(box);
    }
    maq_search_alternatives_free(&a);
}

/* The winner's document reads back as the winner, and its neighbours are what predicting them says. */
static void test_document(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.full = jobs[i].full};
        struct searched s = search(jobs[i].text, &opts);
        char *document = maq_job_write(s.job, &s.result->plans[0].plan);
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        struct maq_diag *diag = maq_diag_new();
        if (maq_job_parse(&box, "written", maq_str_of(document), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", document, maq_diag_format(diag, 0, false));
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        if (r->step_s != s.result->plans[0].step_s)
            fail_msg("%s: written %.9f s, found %.9f s\n%s", jobs[i].name, r->step_s, s.result->plans[0].step_s,
                     document);
        char *arguments = maq_job_megatron_arguments(maq_job_get(box));
        assert_non_null(strstr(arguments, "--tensor-model-parallel-size"));
        struct maq_search_alternatives a;
        assert_int_equal(maq_search_alternatives(&a, s.job, s.result, &opts, NULL), MAQ_OK);
        for (uint32_t k = 0; k < a.n; k++) {
            if (a.at[k].fits && a.at[k].step_s < s.result->plans[0].step_s)
                fail_msg("%s: %s %s takes %.9f s", jobs[i].name, a.at[k].key, a.at[k].to, a.at[k].step_s);
            if (strcmp(a.at[k].name, "vp") == 0)
                assert_true(s.result->plans[0].plan.pp > 1);
            if (strcmp(a.at[k].name, "overlap_ep") == 0)
                assert_int_equal(strcmp(a.at[k].from, "true") == 0, s.result->plans[0].plan.overlap_ep == MAQ_ON);
        }
        maq_search_alternatives_free(&a);
        check_settings(&s, document, &opts);
        free(arguments);
        free(document);
        maq_train_result_free(r);
        maq_job_free(box);
        maq_diag_free(diag);
        done(&s);
    }
}

static void stop_once_bounded(void *stop, const struct maq_search_progress *at)
{
    if (at->bound_s > 0)
        *(volatile sig_atomic_t *)stop = 1;
}

/* A search that is stopped says what it can be off by, once it knows; before, it ends at once and proves nothing. */
static void test_stop(void **unused)
{
    (void)unused;
    volatile sig_atomic_t stop = 0;
    struct maq_search_opts opts = {.stop = &stop, .progress = stop_once_bounded, .context = (void *)(uintptr_t)&stop};
    struct searched s = search(jobs[4].text, &opts);
    assert_false(s.result->complete);
    struct searched none = search(jobs[4].text, &opts);
    assert_false(none.result->complete);
    assert_true(none.result->n_plans == 0 && none.result->bound_s == 0 && none.result->counts.scored == 0);
    opts.stop = NULL;
    struct searched whole = search(jobs[4].text, &opts);
    assert_true(s.result->counts.scored < whole.result->counts.scored);
    assert_true(s.result->bound_s > 0 && s.result->bound_s <= whole.result->plans[0].step_s);
    done(&whole);
    done(&none);
    done(&s);
}

/* A value that is listed twice is looked at once. */
static void test_listed_twice(void **unused)
{
    (void)unused;
    const char text[] = "{model: gpt2, cluster: 'h100-sxm:8', workload: {seq: 1024, gbs: 64}}";
    static const char *const once[] = {"tp=1,2", "mbs=4"}, *const twice[] = {"tp=1,2,1,2", "mbs=4,4"};
    struct maq_search_opts opts = {.lists = once, .n_lists = 2}, again = {.lists = twice, .n_lists = 2};
    struct searched s = search(text, &opts), t = search(text, &again);
    assert_true(s.result->counts.considered == t.result->counts.considered);
    for (uint32_t i = 0; i < s.result->n_axes; i++)
        assert_string_equal(s.result->axes[i].values, t.result->axes[i].values);
    done(&s);
    done(&t);
}

/* With --full a stop finds the small part's best at hand, or nothing, and proves nothing of a whole that was not bounded. */
static void test_stop_full(void **unused)
{
    (void)unused;
    static const volatile sig_atomic_t now = 1;
    struct maq_search_opts opts = {.stop = &now, .full = true};
    struct searched s = search(jobs[0].text, &opts);
    assert_false(s.result->complete);
    assert_true(s.result->bound_s == 0);
    done(&s);
}

/* What does not go with inputs of modules on the host is no plan; where nothing else is asked for, the reason is told. */
static void test_inputs_on_the_host(void **unused)
{
    (void)unused;
#define ON_HOST(model, modules, more)                                                                                  \
    "{model: " model ", cluster: 'h100-sxm:8', workload: {seq: 1024, gbs: 64}, plan: {"                                \
    "fine_grained_activation_offloading: true, offload_modules: [" modules "]" more "}, "                              \
    "search: {cp: 1, pp: 1, vp: 1, mbs: 1, hsdp_replicas: 1}}"
    static const struct {
        const char *job, *list, *says;
    } cases[] = {
        {ON_HOST("gpt2", "core_attn", ""), "recompute=full", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ""), "recompute=block", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ", recompute: full"), "tp=1", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_layers=2", "cpu_offloading_num_layers offloads whole layers"},
        {ON_HOST("gpt2", "core_attn", ", offload_layers: 2"), "tp=1", "offloads whole layers"},
        {ON_HOST("gpt2", "attn_proj", ""), "tp=1", "is core attention's output"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=attn_proj", "is core attention's output"},
        {ON_HOST("{base: mixtral-8x7b, num_hidden_layers: 4}", "moe_act", ""), "recompute=moe", "with moe recomputed"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=none,attn", "'attn' is no value of offload_modules"},
        {ON_HOST("{base: mixtral-8x7b, num_hidden_layers: 4}", "core_attn", ""), "recompute=moe", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "recompute=none,core_attn,full,block", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "offload_layers=0,2", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=none,core_attn+attn_proj,attn_proj", NULL},
    };
#undef ON_HOST
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_search_opts opts = {.lists = &cases[i].list, .n_lists = 1};
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *job;
        struct maq_search_result *r = NULL;
        assert_int_equal(maq_job_parse_open(&job, "test", maq_str_of(cases[i].job), NULL, 0, diag), MAQ_OK);
        enum maq_status status = maq_search(&r, job, &opts, diag);
        char *told = maq_diag_format(diag, 0, false);
        if (status != (cases[i].says ? MAQ_BAD_INPUT : MAQ_OK) || (cases[i].says && !strstr(told, cases[i].says)))
            fail_msg("%s with %s: %s", cases[i].job, cases[i].list, told);
        free(told);
        maq_search_result_free(r);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

static void test_vary(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: gpt2, cluster: {device: {base: a100-80gb, price: 2 USD/h}, devices_per_node: 8, nodes: 1},"
        " workload: {seq: 1024, gbs: 64}, search: {cp: 1, vary: {gpus: ['8..32:x2', 64]}}}";
    struct maq_search_variants v;
    struct maq_loaded_job *open;
    struct maq_diag *diag = maq_diag_new();
    struct maq_search_opts opts = {0};
    if (maq_job_parse_open(&open, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_search_vary(&v, open, &opts, NULL, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(v.n, 4);
    for (uint32_t i = 0; i < v.n; i++) {
        assert_int_equal(v.at[i].gpus, 8 << i);
        assert_int_equal(maq_job_get(v.at[i].job)->cluster.devices, v.at[i].gpus);
        assert_true(fabs(v.at[i].usd - 2 * v.at[i].gpu_hours) <= 1e-9 * v.at[i].usd);
        assert_true(fabs(v.at[i].days * 24 * v.at[i].gpus - v.at[i].gpu_hours) <= 1e-9 * v.at[i].gpu_hours);
        assert_true(i == 0 || v.at[i].train->step_s <= v.at[i - 1].train->step_s); /* more devices are not slower */
    }
    maq_search_variants_free(&v);
    maq_job_free(open);
    maq_diag_free(diag);
}

/* The document says global_batch_size, what is varied gbs. */
static void test_vary_workload(void **unused)
{
    (void)unused;
    const char text[] = "{model: gpt2, cluster: 'a100-80gb:8', plan: {tp: 1, pp: 1}, workload: {seq_length: 512, "
                        "global_batch_size: 8}, search: {cp: 1, vary: {gbs: [16, 32]}}}";
    const struct maq_override set[] = {{"--seq", "workload.seq", "1024"}};
    struct maq_search_variants v;
    struct maq_loaded_job *open;
    struct maq_diag *diag = maq_diag_new();
    struct maq_search_opts opts = {0};
    if (maq_job_parse_open(&open, "test", maq_str_of(text), set, 1, diag) != MAQ_OK ||
        maq_search_vary(&v, open, &opts, NULL, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(v.n, 2);
    for (uint32_t i = 0; i < v.n; i++) {
        assert_int_equal(maq_job_get(v.at[i].job)->workload.gbs, 16 << i);
        assert_int_equal(maq_job_get(v.at[i].job)->workload.seq, 1024);
    }
    maq_search_variants_free(&v);
    maq_job_free(open);
    maq_diag_free(diag);
}

/* Shards of one rank are no shards: a plan without replicas is searched once, and is the one without sharding. */
static void test_nobody_to_share_with(void **unused)
{
    (void)unused;
    struct maq_search_opts opts = {.threads = 1, .top = 4};
    struct searched s[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{model: llama-3.1-8b, cluster: 'rtx-4090:8', workload: {seq: 4096, gbs: 16}, search: {tp: [2, 4], "
                 "pp: [2, 4], "
                 "cp: 1, mbs: 1, vp: 1, recompute: full, hsdp_replicas: 1, zero: [%s]}}",
                 k == 0 ? "0" : "0, 1, 2, 3");
        s[k] = search(text, &opts);
        assert_true(s[k].result->n_plans > 0);
        for (uint32_t i = 0; i < s[k].result->n_plans; i++) {
            const struct maq_plan *p = &s[k].result->plans[i].plan;
            if (p->tp * p->pp == 8)
                assert_int_equal(p->sharding, MAQ_SHARDING_NONE);
        }
    }
    double plain = HUGE_VAL, shared = HUGE_VAL;
    for (uint32_t i = 0; i < s[0].result->n_plans; i++)
        if (s[0].result->plans[i].plan.tp == 2 && s[0].result->plans[i].plan.pp == 4)
            plain = s[0].result->plans[i].step_s;
    for (uint32_t i = 0; i < s[1].result->n_plans; i++)
        if (s[1].result->plans[i].plan.tp == 2 && s[1].result->plans[i].plan.pp == 4)
            shared = s[1].result->plans[i].step_s;
    assert_true(plain < HUGE_VAL && plain == shared);
    done(&s[0]);
    done(&s[1]);
    struct searched alone[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{model: llama-3.1-8b, cluster: 'rtx-4090:8', workload: {seq: 4096, gbs: 16}, search: {tp: 2, pp: 4, "
                 "cp: 1, mbs: "
                 "1, vp: 1, zero: [%s]}}",
                 k == 0 ? "0" : "0, 1, 2, 3");
        alone[k] = search(text, &opts);
    }
    assert_int_equal(alone[0].result->counts.considered, alone[1].result->counts.considered);
    done(&alone[0]);
    done(&alone[1]);
}

/* --- progress --- */

struct heard {
    uint32_t calls[MAQ_SEARCH_EXPLORES + 1], wrong;
};

static void hear(void *context, const struct maq_search_progress *at)
{
    struct heard *h = context;
    h->calls[at->phase]++;
    h->wrong += at->branches_done > at->counts.branches || at->first;
    h->wrong += at->phase != MAQ_SEARCH_EXPLORES && (at->best_s > 0 || at->bound_s > 0);
}

/* Every part of a search gives a sign of life: listing its branches, bounding them, going through them. */
static void test_progress(void **unused)
{
    (void)unused;
    struct heard h = {{0}, 0};
    struct maq_search_opts opts = {.progress = hear, .context = &h};
    struct searched s = search(jobs[0].text, &opts);
    for (int phase = 0; phase <= MAQ_SEARCH_EXPLORES; phase++)
        assert_true(h.calls[phase] > 0);
    assert_int_equal(h.calls[MAQ_SEARCH_LISTS], s.result->counts.branches);
    assert_int_equal(h.wrong, 0);
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_to_share_with),
        cmocka_unit_test(test_bounds_leave_nothing_out),
        cmocka_unit_test(test_pareto),
        cmocka_unit_test(test_headroom),
        cmocka_unit_test(test_fit_probability),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_brute_force_switches),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_remedy_of_the_host),
        cmocka_unit_test(test_remedies_of_kept_replicas),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_full),
        cmocka_unit_test(test_listed_twice),
        cmocka_unit_test(test_inputs_on_the_host),
        cmocka_unit_test(test_vary),
        cmocka_unit_test(test_vary_workload),
        cmocka_unit_test(test_stages_recompute_by_themselves),
        cmocka_unit_test(test_set_free),
        cmocka_unit_test(test_ends_of_their_own),
    };
    ONLY_UNDER_TSAN("test_threads");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
