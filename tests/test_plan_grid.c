/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a scan: the same as documents with those values give, in order, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after */
#include <cmocka.h>

#include "maquette/train.h"

#define HEAD "model: llama-3.1-8b\ncluster: h100-sxm:8 x 4, rail 400G\nworkload: {gbs: 256, seq: 4096}\n"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct maq_loaded_job *load_open(const char *text, struct maq_diag *diag)
{
    struct maq_loaded_job *job;
    assert_int_equal(maq_job_parse_open(&job, "test", (struct maq_str){text, strlen(text)}, NULL, 0, diag), MAQ_OK);
    return job;
}

static double predicted(const char *text)
{
    struct maq_loaded_job *job;
    struct maq_train_result *result;
    if (maq_job_parse(&job, "test", (struct maq_str){text, strlen(text)}, NULL, 0, NULL) != MAQ_OK)
        return 0;
    assert_int_equal(maq_train_predict(&result, maq_job_get(job), NULL), MAQ_OK);
    double step = result->step_s;
    maq_train_result_free(result);
    maq_job_free(job);
    return step;
}

static const char *const degrees[] = {"1", "2", "8"}, *const recompute[] = {"none", "selective", "full"},
                         *const modules[] = {"[core_attn]", "mlp, layernorm"},
                         *const zero[] = {"1", "optim_grads_params"}, *const layouts[] = {"balanced", "null"};

static void a_grid_is_what_documents_say(void **state)
{
    const struct maq_plan_axis axes[] = {{"tp", degrees, 3},
                                         {"pipeline_model_parallel_size", degrees, 2},
                                         {"recompute", recompute, 3},
                                         {"zero", zero, 2},
                                         {"layout", layouts, 2}};
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD "plan: {mbs: 1}\n", diag);
    struct maq_plan plans[72];
    struct maq_train_quick quick[72];
    struct maq_train_sweep *sweep;
    size_t n, possible = 0;
    assert_int_equal(maq_plan_grid(NULL, &n, open, axes, COUNT(axes), diag), MAQ_OK);
    assert_int_equal(n, 72);
    assert_int_equal(maq_plan_grid(plans, NULL, open, axes, COUNT(axes), diag), MAQ_OK);
    assert_int_equal(maq_train_sweep_new(&sweep, maq_job_get(open), diag), MAQ_OK);
    assert_int_equal(maq_train_sweep_eval(sweep, quick, plans, n), MAQ_OK);
    for (size_t i = 0; i < n; i++) {
        char text[1024];
        size_t rest = i, at[COUNT(axes)];
        for (size_t a = COUNT(axes); a-- > 0; rest /= axes[a].n)
            at[a] = rest % axes[a].n;
        (void)snprintf(text, sizeof text, HEAD "plan: {mbs: 1, tp: %s, pp: %s, recompute: %s, zero: %s, layout: %s}\n",
                       degrees[at[0]], degrees[at[1]], recompute[at[2]], zero[at[3]], layouts[at[4]]);
        double step = predicted(text);
        possible += quick[i].possible;
        assert_true(quick[i].possible == (step > 0));
        assert_true(quick[i].step_s == step);
    }
    assert_true(possible > 50);
    maq_train_sweep_free(sweep);
    maq_job_free(open);
    maq_diag_free(diag);
}

static void without_axes_it_is_the_plan_itself(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD "plan: {tp: 4}\n", diag);
    struct maq_plan plan;
    size_t n;
    assert_int_equal(maq_plan_grid(&plan, &n, open, NULL, 0, diag), MAQ_OK);
    assert_int_equal(n, 1);
    assert_int_equal(plan.tp, 4);
    maq_job_free(open);
    maq_diag_free(diag);
}

static void lists_are_read_as_documents_have_them(void **state)
{
    const struct maq_plan_axis axis = {"recompute_modules", modules, 2};
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD "plan: {recompute: selective, recompute_modules: [moe]}\n", diag);
    struct maq_plan plans[2];
    assert_int_equal(maq_plan_grid(plans, NULL, open, &axis, 1, diag), MAQ_OK);
    assert_int_equal(plans[0].recompute_parts, 1u << MAQ_PART_CORE_ATTENTION);
    assert_int_equal(plans[1].recompute_parts, 1u << MAQ_PART_MLP | 1u << MAQ_PART_NORM);
    maq_job_free(open);
    maq_diag_free(diag);
}

static void graphs_of_a_whole_iteration(void **state)
{
    static const char *const scopes[] = {"full_iteration", "attn", "[]"};
    const struct maq_plan_axis axis = {"cuda_graph_scope", scopes, 3};
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD, diag);
    struct maq_plan plans[3];
    assert_int_equal(maq_plan_grid(plans, NULL, open, &axis, 1, diag), MAQ_OK);
    assert_true(plans[0].cuda_graphs && plans[0].graph_scope == 0);
    assert_true(!plans[1].cuda_graphs && plans[1].graph_scope == 1u << MAQ_GRAPH_ATTN);
    assert_true(!plans[2].cuda_graphs && plans[2].graph_scope == 0);
    maq_job_free(open);
    maq_diag_free(diag);
}

static void faults_are_all_said(void **state)
{
    static const char *const words[] = {"sometimes", "none", "0"};
    const struct maq_plan_axis axes[] = {
        {"recompute", words, 1}, {"tpp", degrees, 1}, {"gbs", degrees, 1}, {"tp", words + 2, 1}};
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD, diag);
    struct maq_plan plans[1];
    assert_int_equal(maq_plan_grid(plans, NULL, open, axes, COUNT(axes), diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(maq_diag_at(diag, i)->msg.len > 0);
    assert_string_equal(maq_diag_place(diag, maq_diag_at(diag, 0)->at).name, "recompute");
    maq_job_free(open);
    maq_diag_free(diag);
}

static void a_grid_beyond_counting_is_refused(void **state)
{
    const struct maq_plan_axis axes[] = {{"tp", degrees, SIZE_MAX / 2}, {"pp", degrees, 3}};
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *open = load_open(HEAD, diag);
    size_t n;
    assert_int_equal(maq_plan_grid(NULL, &n, open, axes, 2, diag), MAQ_LIMIT);
    maq_job_free(open);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_is_what_documents_say),
        cmocka_unit_test(without_axes_it_is_the_plan_itself),
        cmocka_unit_test(lists_are_read_as_documents_have_them),
        cmocka_unit_test(graphs_of_a_whole_iteration),
        cmocka_unit_test(faults_are_all_said),
        cmocka_unit_test(a_grid_beyond_counting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
