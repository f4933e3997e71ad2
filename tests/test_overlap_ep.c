/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_overlap_ep.c - exchanges of experts under another microbatch: which plans have them, what is left where there is none, and that mixed
 * plans take what training steps take.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "effort.h"
#include "maquette/planner_mixed.h"
#include "predict.h"

#define MODEL "model: {base: deepseek-v2-lite, num_hidden_layers: 8, first_k_dense_replace: 0}\n"
#define CLUSTER "cluster: 'h100-sxm:4 x 2, rail 100G'\n"
#define OVERLAP "overlap_moe_expert_parallel_comm: true"

static double step_of(const char *plan, int gbs)
{
    char text[1024];
    snprintf(text, sizeof text, MODEL CLUSTER "plan: {mbs: 1, ep: 4, etp: 1%s}\nworkload: {seq: 4096, gbs: %d}\n", plan,
             gbs);
    struct prediction p = predict_text(text);
    double step = p.result->step_s;
    drop(&p);
    return step;
}

/* Megatron Core's transformer_config.py refuses the same. */
static void test_refused(void **unused)
{
    static const struct {
        const char *plan, *says;
    } cases[] = {
        {"pp: 2", "schedule 1f1b has no passes side by side"},
        {"pp: 2, schedule: gpipe", "schedule gpipe has no passes side by side"},
        {"pp: 2, schedule: zb-h1", "schedule zb-h1 has no passes side by side"},
        {"pp: 2, vp: 2, recompute: full", "cannot be recomputed as a whole"},
        {"recompute: full", "cannot be recomputed as a whole"},
        {"schedule: gpipe, recompute: full", "cannot be recomputed as a whole"},
        {"recompute: selective, recompute_modules: [moe]", "no pass that they could run under"},
        {"moe_shared_expert_overlap: true", "run under the exchange already"},
        {"dispatcher: allgather", "no exchange that could run apart"},
        {"delay_wgrad_compute: true, overlap_ep: false", "of a merged pass, and there is none"},
        {"pp: 2, schedule: dualpipe, delay_wgrad_compute: true", "of a merged pass, and there is none"},
    };
    char text[512];
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        snprintf(text, sizeof text, MODEL CLUSTER "plan: {ep: 4, etp: 1, %s%s}\nworkload: {gbs: 64}\n",
                 strstr(cases[i].plan, "overlap_ep") ? "" : OVERLAP ", ", cases[i].plan);
        expect_refused(text, cases[i].says);
    }
}

/* A profile's own setting is left out where passes have no partner. */
static void test_of_a_profile(void **unused)
{
    static const struct {
        const char *plan;
        int overlaps;
    } cases[] = {{"pp: 1", MAQ_ON}, {"pp: 2, vp: 2", MAQ_ON}, {"pp: 2", MAQ_OFF}};
    char text[512];
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        snprintf(text, sizeof text,
                 MODEL "cluster: 'b200:4 x 2'\nframework: megatron-bridge-26.06\nplan: {precision: mxfp8, ep: 4, %s}\n"
                       "workload: {seq: 4096, gbs: 64}\n",
                 cases[i].plan);
        struct prediction p = predict_text(text);
        assert_int_equal(maq_job_get(p.job)->plan.overlap_ep, cases[i].overlaps);
        drop(&p);
    }
}

/* The only microbatch hides nothing, and of many all but as many as fill the pipeline. */
static void test_partners(void **unused)
{
    static const char *const plans[] = {"", ", pp: 2, vp: 2", ", pp: 2, vp: 4"};
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
        char with[128];
        snprintf(with, sizeof with, "%s, " OVERLAP, plans[i]);
        int replicas = i == 0 ? 8 : 4, fill = i == 0 ? 1 : 2;
        double few = step_of(plans[i], replicas * fill), few_with = step_of(with, replicas * fill);
        double many = step_of(plans[i], replicas * 64), many_with = step_of(with, replicas * 64);
        print_message("%s: %+.2f %% of %d, %+.1f %% of 64 microbatches\n", plans[i], 100 * (few_with / few - 1), fill,
                      100 * (many_with / many - 1));
        assert_true(fabs(few_with / few - 1) < 0.025);
        assert_true(many_with < 0.95 * many);
        /* what a microbatch more saves is the same for all behind those */
        double more = step_of(plans[i], replicas * 128), more_with = step_of(with, replicas * 128);
        assert_true(fabs((more - more_with) - (many - many_with) * 128.0 / 64) < 0.05 * (more - more_with) * fill);
    }
}

/*
 * Gradients of weights that nothing waits for: no step is longer for them, and where exchanges are longer than what they run under each
 * microbatch saves. Without exchanges to wait for there is nothing to save, nor where exchanges alone take all the time.
 */
static void test_late_weights(void **unused)
{
    static const char *const clusters[] = {"h100-sxm:8", "h100-sxm:1 x 4, rail 50G", "h100-sxm:1 x 4, rail 400G"};
    double saved[MAQ_COUNT(clusters)];
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(clusters); i++) {
        double step[2][2];
        for (int late = 0; late < 2; late++)
            for (int more = 0; more < 2; more++) {
                char text[512];
                snprintf(text, sizeof text,
                         MODEL "cluster: '%s'\nplan: {mbs: 1, ep: 4, etp: 1, " OVERLAP
                               ", delay_wgrad_compute: %s}\nworkload: {seq: 4096, gbs: %d}\n",
                         clusters[i], late ? "true" : "false", 64 << more);
                struct prediction p = predict_text(text);
                step[late][more] = p.result->step_s;
                drop(&p);
            }
        saved[i] = (step[0][1] - step[0][0]) - (step[1][1] - step[1][0]); /* of the same microbatches more */
        print_message("%s: %+.3f %%, 64 sequences more save %.3f ms\n", clusters[i],
                      100 * (step[1][1] / step[0][1] - 1), saved[i] * 1e3);
        assert_true(step[1][0] <= step[0][0] && step[1][1] <= step[0][1] && saved[i] >= 0);
    }
    assert_true(saved[0] == 0 && saved[1] == 0 && saved[2] > 0);
}

#define STAGE(first, n, more)                                                                                          \
    "{first_layer: " #first ", layers: " #n ", zero: optim" more                                                       \
    ", replicas: [{device: h100-sxm, ep: 4, etp: 1, count: 4}]}"

/* Of one way for all stages, placed on the node groups of a job, and as trained. */
static void test_as_trained(void **unused)
{
    static const char job_text[] =
        MODEL CLUSTER "plan: {mbs: 1, ep: 4, etp: 1, zero: optim, " OVERLAP "}\nworkload: {seq: 4096, gbs: 64}\n";
    static const char plan_text[] =
        "mbs: 1\ngbs: 64\nschedule: interleaved\npipelines: [{stages: [" STAGE(0, 3, "") "," STAGE(3, 2, "") "," STAGE(
            5, 2, ", on_devices_of: 0") "," STAGE(7, 3, ", on_devices_of: 1") "]}]\n";
    struct maq_loaded_job *job;
    struct maq_loaded_mixed_plan *plan = NULL;
    struct maq_mixed_placed *placed = NULL;
    struct maq_diag *diag = maq_diag_new();
    (void)unused;
    if (maq_job_parse_open(&job, "job", maq_str_of(job_text), NULL, 0, diag) != MAQ_OK ||
        maq_mixed_plan_parse(&plan, "plan", maq_str_of(plan_text), diag) != MAQ_OK ||
        maq_mixed_place(&placed, maq_mixed_plan_get(plan), job, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    double trained = step_of(", pp: 2, vp: 2, zero: optim, " OVERLAP, 64);
    print_message("placed %.6f s, trained %.6f s, %+.3f %%\n", placed->step_s, trained,
                  100 * (placed->step_s / trained - 1));
    assert_true(fabs(placed->step_s / trained - 1) < 0.015);
    maq_mixed_placed_free(placed);
    maq_mixed_plan_free(plan);
    maq_job_free(job);
    maq_diag_free(diag);
}

/* The same with gradients of weights left for later: as trained, and never slower; refused where no pass is merged. */
static void test_late_weights_placed(void **unused)
{
    static const char plan_text[] =
        "mbs: 1\ngbs: 64\nschedule: interleaved\npipelines: [{stages: [" STAGE(0, 3, "") "," STAGE(3, 2, "") "," STAGE(
            5, 2, ", on_devices_of: 0") "," STAGE(7, 3, ", on_devices_of: 1") "]}]\n";
    static const char *const more[] = {OVERLAP, OVERLAP ", delay_wgrad_compute: true",
                                       "overlap_ep: false, delay_wgrad_compute: true"};
    double step[2];
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(more); i++) {
        struct maq_loaded_job *job;
        struct maq_loaded_mixed_plan *plan;
        struct maq_mixed_placed *placed = NULL;
        struct maq_diag *diag = maq_diag_new();
        char text[512];
        snprintf(text, sizeof text, MODEL CLUSTER "plan: {mbs: 1, zero: optim, %s}\nworkload: {seq: 4096, gbs: 64}\n",
                 more[i]);
        assert_int_equal(maq_job_parse_open(&job, "job", maq_str_of(text), NULL, 0, diag), MAQ_OK);
        assert_int_equal(maq_mixed_plan_parse(&plan, "plan", maq_str_of(plan_text), diag), MAQ_OK);
        enum maq_status status = maq_mixed_place(&placed, maq_mixed_plan_get(plan), job, diag);
        assert_int_equal(status == MAQ_OK, i < 2);
        if (i < 2) {
            step[i] = placed->step_s;
            snprintf(text, sizeof text, ", pp: 2, vp: 2, zero: optim, %s", more[i]);
            assert_true(fabs(step[i] / step_of(text, 64) - 1) < 0.015);
            maq_mixed_placed_free(placed);
        } else {
            assert_non_null(strstr(maq_diag_at(diag, 0)->msg.ptr, "no pass beside them"));
        }
        maq_mixed_plan_free(plan);
        maq_job_free(job);
        maq_diag_free(diag);
    }
    print_message("placed %.6f s, with late gradients %.6f s\n", step[0], step[1]);
    assert_true(step[1] <= step[0]);
}

static struct maq_mixed_search_result *search(struct maq_loaded_job *job, const char *list)
{
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    struct maq_mixed_search_result *r;
    opts.lists = &list;
    opts.n_lists = list ? 1 : 0;
    opts.top = 2;
    assert_int_equal(maq_mixed_search(&r, job, &opts, NULL), MAQ_OK);
    assert_true(r->n_plans > 0);
    return r;
}

/* Over several node groups both are searched where the job does not decide; a plan says which it is, and is simulated so whatever
 * the job says. */
static void test_found(void **unused)
{
    static const char text[] = "model: {base: qwen3-30b-a3b, num_hidden_layers: 12}\nworkload: {seq: 4096, gbs: 64}\n"
                               "cluster: 'a100-80gb:4 + h100-nvl:4'\nplan: {mbs: 1}\n";
    struct maq_loaded_job *job;
    struct maq_loaded_mixed_plan *plan;
    struct maq_mixed_placed *placed;
    (void)unused;
    assert_int_equal(maq_job_parse_open(&job, "job", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    struct maq_mixed_search_result *both = search(job, NULL),
                                   *waits = search(job, "overlap_moe_expert_parallel_comm=false"),
                                   *hides = search(job, "overlap_moe_expert_parallel_comm=true");
    print_message("waits %.4f s, hides %.4f s, both %.4f s\n", waits->plans[0].step_s, hides->plans[0].step_s,
                  both->plans[0].step_s);
    assert_true(hides->plans[0].step_s < waits->plans[0].step_s);
    assert_true(both->plans[0].step_s <= hides->plans[0].step_s && both->plans[0].overlap_ep == MAQ_ON);
    assert_true(both->bound_s <= waits->bound_s && both->bound_s <= hides->bound_s);
    assert_int_equal(maq_mixed_search_mixed_plan(&plan, both, 0, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_plan_get(plan)->overlap_ep, MAQ_ON);
    assert_int_equal(maq_mixed_place(&placed, maq_mixed_plan_get(plan), job, NULL), MAQ_OK);
    assert_true(placed->step_s == both->plans[0].step_s && placed->fits);
    maq_mixed_placed_free(placed);
    maq_mixed_plan_free(plan);
    maq_mixed_search_free(both);
    maq_mixed_search_free(waits);
    maq_mixed_search_free(hides);
    maq_job_free(job);
}

/* Late gradients of weights are the job's: what is found with them is what is placed with them, and no slower than without. */
static void test_late_weights_found(void **unused)
{
    static const char *const more[] = {"", ", delay_wgrad_compute: true"};
    double step[2];
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(more); i++) {
        struct maq_loaded_job *job;
        struct maq_loaded_mixed_plan *plan;
        struct maq_mixed_placed *placed;
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: qwen3-30b-a3b, num_hidden_layers: 12}\nworkload: {seq: 4096, gbs: 64}\n"
                 "cluster: 'a100-80gb:4 + h100-nvl:4'\nplan: {mbs: 1%s}\n",
                 more[i]);
        assert_int_equal(maq_job_parse_open(&job, "job", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        struct maq_mixed_search_result *found = search(job, "overlap_moe_expert_parallel_comm=true");
        step[i] = found->plans[0].step_s;
        assert_true(found->bound_s <= found->plans[0].composed_s);
        if (!found->plans[0].uniform) {
            assert_int_equal(maq_mixed_search_mixed_plan(&plan, found, 0, NULL), MAQ_OK);
            assert_int_equal(maq_mixed_place(&placed, maq_mixed_plan_get(plan), job, NULL), MAQ_OK);
            assert_true(placed->step_s == step[i] && placed->fits);
            maq_mixed_placed_free(placed);
            maq_mixed_plan_free(plan);
        }
        maq_mixed_search_free(found);
        maq_job_free(job);
    }
    print_message("found %.4f s, with late gradients %.4f s\n", step[0], step[1]);
    assert_true(step[1] <= step[0]);
}

/* So are uniform plans: without a pipeline they can have it, and are what `maquette train` says. */
static void test_uniform(void **unused)
{
    NOT_UNDER_A_SANITIZER();
    static const char text[] = "model: {base: qwen3-30b-a3b, num_hidden_layers: 16}\nworkload: {seq: 4096, gbs: 64}\n"
                               "cluster: 'h100-sxm:4 + h200:4'\n";
    struct maq_loaded_job *job, *found;
    struct maq_train_result *trained;
    (void)unused;
    assert_int_equal(maq_job_parse_open(&job, "job", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    struct maq_mixed_search_result *both = search(job, NULL),
                                   *waits = search(job, "overlap_moe_expert_parallel_comm=false");
    const struct maq_mixed_search_plan *best = &both->plans[0];
    print_message("waits %.4f s, both %.4f s\n", waits->plans[0].step_s, best->step_s);
    assert_true(best->step_s < waits->plans[0].step_s && best->uniform);
    assert_true(best->overlap_ep == MAQ_ON && best->uniform->overlap_ep == MAQ_ON && best->uniform->pp == 1);
    assert_int_equal(maq_job_complete(&found, job, best->uniform, NULL), MAQ_OK);
    assert_int_equal(maq_train_predict(&trained, maq_job_get(found), NULL), MAQ_OK);
    assert_true(trained->fits && fabs(trained->step_s / best->step_s - 1) < 1e-12);
    maq_train_result_free(trained);
    maq_job_free(found);
    maq_mixed_search_free(both);
    maq_mixed_search_free(waits);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_of_a_profile),
        cmocka_unit_test(test_partners),
        cmocka_unit_test(test_late_weights),
        cmocka_unit_test(test_late_weights_placed),
        cmocka_unit_test(test_late_weights_found),
        cmocka_unit_test(test_as_trained),
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
