/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_planner_external.c - plans composed of what a parallelizer answers: the one that is built in finds what
 * maq_mixed_search() finds, and no rule that saves calls changes the plan.
 *
 * maq-test: threads, maq-test: long
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

#include "effort.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "maquette/planner_mixed.h"
#include "maquette/report.h"
#include "planner/external/codes.h"
#include "planner/external/search.h"

#define SIMPLE_FOR_A_TEST
#include "parallelizer/simple.c"

#define JOB(layers, gbs, nodes0, nodes1, plan)                                                                         \
    "{model: {base: gpt2-medium, num_hidden_layers: " #layers "}, workload: {seq: 1024, gbs: " #gbs "},"               \
    " cluster: {groups: [{device: v100-16gb, nodes: " #nodes0 ", devices_per_node: 2},"                                \
    " {device: t4, nodes: " #nodes1 ", devices_per_node: 2}]}, plan: {" plan ", cp: 1, ep: 1, precision: fp16}}"

static struct maq_loaded_job *load(const char *text)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *job = NULL;
    if (maq_job_parse_open(&job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return job;
}

static struct maq_slices_result *search(const struct maq_loaded_job *job, const struct maq_slices_opts *opts)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_slices_result *r = NULL;
    if (maq_slices_search(&r, job, opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static struct maq_mixed_search_result *search_mixed(const struct maq_loaded_job *job)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    struct maq_mixed_search_result *r = NULL;
    opts.together_only = opts.one_pipeline = true; /* slices are stages of one 1F1B pipeline */
    opts.lists = (const char *const[]){"vp=1"};
    opts.n_lists = 1;
    if (maq_mixed_search(&r, job, &opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

/* ---- the same space, the same plan ---- */

static void equals_mixed_search(void **state)
{
    static const char *const jobs[] = {
        JOB(12, 16, 1, 1, "mbs: 1"), JOB(12, 16, 2, 1, "mbs: 2"), JOB(10, 12, 2, 2, "mbs: 1"),
        JOB(5, 8, 1, 1, "mbs: 4"),   JOB(24, 32, 1, 2, "mbs: 2"),
    };
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += SANITIZED ? 2 : 1) {
        struct maq_loaded_job *job = load(jobs[i]);
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        struct maq_slices_result *r = search(job, &opts);
        struct maq_mixed_search_result *m = search_mixed(job);
        assert_true(r->exact && m->exact && r->n_plans == 1 && m->n_plans == 1);
        print_message("%zu: %.9f s by slices, %.9f s by stages; %llu of %llu calls\n", i, r->plans[0].step_s,
                      m->composed_s, (unsigned long long)r->calls.made, (unsigned long long)r->calls.all);
        assert_true(fabs(r->plans[0].step_s / m->composed_s - 1) < 1e-9);
        assert_true(fabs(r->bound_s / r->plans[0].step_s - 1) < 1e-9);
        maq_slices_free(r);
        maq_mixed_search_free(m);
        maq_job_free(job);
    }
}

/* Stages may split a wave differently where the job leaves micro batches open: a wider space, never a slower plan. */
static void more_micro_batches_are_never_slower(void **state)
{
    static const char *const jobs[] = {JOB(12, 16, 1, 1, "tp: 1"), JOB(6, 12, 2, 1, "tp: 2")};
    for (size_t i = SANITIZED; i < MAQ_COUNT(jobs); i++) {
        struct maq_loaded_job *job = load(jobs[i]);
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        struct maq_slices_result *r = search(job, &opts);
        struct maq_mixed_search_result *m = search_mixed(job);
        assert_true(r->exact && r->n_plans == 1 && m->n_plans == 1);
        assert_true(r->plans[0].step_s <= m->composed_s * (1 + 1e-9));
        maq_slices_free(r);
        maq_mixed_search_free(m);
        maq_job_free(job);
    }
}

/* ---- rules that save calls ---- */

#define TIGHT                                                                                                          \
    "{model: {base: gpt3-5b, num_layers: 12}, workload: {seq: 2048, gbs: 32}, cluster: 'v100-16gb:4 x 2 + t4:4', "

/* Memory that binds, on unlike islands; atoms that are alike. */
static const char *const rule_jobs[] = {
    JOB(12, 16, 2, 1, "mbs: 1"),
    TIGHT "plan: {mbs: 1, cp: 1, ep: 1, precision: fp16}}",
};

static const struct maq_parallelizer *const parallelizers[] = {NULL, &simple_functions};

static void assert_same_plan(const struct maq_slices_plan *a, const struct maq_slices_plan *b)
{
    assert_true(a->step_s == b->step_s && a->waves == b->waves && a->n_stages == b->n_stages &&
                a->n_pieces == b->n_pieces);
    for (uint32_t i = 0; i < a->n_stages; i++) {
        const struct maq_slices_stage *s = &a->stages[i], *t = &b->stages[i];
        assert_true(s->first_layer == t->first_layer && s->layers == t->layers && s->island == t->island &&
                    s->devices == t->devices && s->compute_s == t->compute_s && s->memory_bytes == t->memory_bytes);
    }
    for (uint32_t i = 0; i < a->n_pieces; i++)
        assert_string_equal(a->pieces[i].text, b->pieces[i].text);
}

static void assert_adds_up(const struct maq_slices_calls *c)
{
    assert_true(c->all == c->made + c->redundancy + c->infeasibility + c->imbalance + c->reuse);
}

static void no_rule_changes_the_plan(void **state)
{
    struct maq_slices_calls saved = {0};
    for (size_t k = 0; k < MAQ_COUNT(rule_jobs) * MAQ_COUNT(parallelizers); k += SANITIZED ? 3 : 1) {
        struct maq_loaded_job *job = load(rule_jobs[k / 2]);
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        opts.functions = parallelizers[k % 2];
        struct maq_slices_result *with = search(job, &opts);
        assert_true(with->exact && with->n_plans == 1);
        assert_adds_up(&with->calls);
        print_message(
            "%s: %.6f s; made %llu of %llu, redundancy %llu, infeasibility %llu, imbalance %llu, reuse %llu\n",
            with->parallelizer, with->plans[0].step_s, (unsigned long long)with->calls.made,
            (unsigned long long)with->calls.all, (unsigned long long)with->calls.redundancy,
            (unsigned long long)with->calls.infeasibility, (unsigned long long)with->calls.imbalance,
            (unsigned long long)with->calls.reuse);
        saved.redundancy += with->calls.redundancy;
        saved.infeasibility += with->calls.infeasibility;
        saved.imbalance += with->calls.imbalance;
        saved.reuse += with->calls.reuse;
        for (uint32_t rule = 0; rule < 5; rule += SANITIZED ? 4 : 1) { /* 4: none of the rules */
            struct maq_slices_opts without = opts;
            without.ask_again = rule == 0 || rule == 4;
            without.ask_infeasible = rule == 1 || rule == 4;
            without.ask_unbalanced = rule == 2 || rule == 4;
            without.ask_everywhere = rule == 3 || rule == 4;
            struct maq_slices_result *r = search(job, &without);
            const struct maq_slices_calls *c = &r->calls;
            assert_true(r->exact && r->n_plans == 1);
            assert_same_plan(&r->plans[0], &with->plans[0]);
            assert_adds_up(c);
            const uint64_t of_rule[] = {c->redundancy, c->infeasibility, c->imbalance, c->reuse,
                                        c->redundancy + c->infeasibility + c->imbalance + c->reuse};
            assert_int_equal(of_rule[rule], 0);
            assert_true(c->all == with->calls.all && c->made >= with->calls.made);
            maq_slices_free(r);
        }
        maq_slices_free(with);
        maq_job_free(job);
    }
    assert_true(saved.redundancy > 0 && saved.infeasibility > 0 && saved.imbalance > 0 && saved.reuse > 0);
}

/* ---- workers ---- */

static void workers_change_nothing(void **state)
{
    struct maq_loaded_job *job = load(rule_jobs[1]);
    struct maq_diag *diag = maq_diag_new();
    char *text[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        opts.functions = &simple_functions;
        opts.workers = i == 0 ? 1 : 5;
        opts.top = 2;
        struct maq_slices_result *r = search(job, &opts);
        const struct maq_report_slices plan = {job, r};
        assert_int_equal(r->n_plans, 2);
        assert_true(r->plans[0].step_s < r->plans[1].step_s);
        assert_int_equal(maq_report_slices_json(&text[i], &plan, NULL, diag), MAQ_OK);
        maq_slices_free(r);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    maq_diag_free(diag);
    maq_job_free(job);
}

/* ---- results ---- */

/* Stages fit, follow each other, and are paid for by the formula of planner_external.h. */
static void plans_add_up(void **state)
{
    for (size_t k = 0; k < MAQ_COUNT(rule_jobs) * MAQ_COUNT(parallelizers); k += SANITIZED ? 3 : 1) {
        struct maq_loaded_job *job = load(rule_jobs[k / 2]);
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        opts.functions = parallelizers[k % 2];
        struct maq_slices_result *r = search(job, &opts);
        const struct maq_slices_plan *p = &r->plans[0];
        uint32_t layers = 0, used[2] = {0};
        double slowest = 0, fill = 0, sync = 0;
        for (uint32_t i = 0; i < p->n_stages; i++) {
            const struct maq_slices_stage *s = &p->stages[i];
            assert_true(s->first_layer == layers && s->memory_bytes <= s->capacity_bytes);
            assert_int_equal(s->in_flight, p->n_stages - i < p->waves ? p->n_stages - i : p->waves);
            layers += s->layers;
            used[s->island] += s->devices;
            slowest = fmax(slowest, s->compute_s + s->hop_s);
            fill += s->compute_s + s->hop_s + s->once_s;
            sync = fmax(sync, s->sync_s);
        }
        assert_int_equal(layers, r->n_layers);
        for (uint32_t g = 0; g < r->n_islands; g++)
            assert_true(used[g] == r->islands[g].used &&
                        used[g] <= r->islands[g].nodes * r->islands[g].devices_per_node);
        assert_true(fabs(((p->waves - 1) * slowest + fill + sync) / p->step_s - 1) < 1e-9);
        maq_slices_free(r);
        maq_job_free(job);
    }
}

/* What the built-in one finds can be written down and read back; what does not say its degrees cannot. */
static void plans_are_written_down(void **state)
{
    struct maq_loaded_job *job = load(rule_jobs[1]);
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_mixed_plan *box, *again;
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    struct maq_slices_result *r = search(job, &opts);
    char *text;
    assert_int_equal(maq_slices_mixed_plan(&box, r, 0, diag), MAQ_OK);
    assert_int_equal(maq_mixed_plan_write(&text, maq_mixed_plan_get(box), diag), MAQ_OK);
    if (maq_mixed_plan_parse(&again, "written", maq_str_of(text), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    const struct maq_mixed_pipeline *p = &maq_mixed_plan_get(again)->pipelines[0];
    assert_int_equal(p->n_stages, r->plans[0].n_stages);
    for (uint32_t i = 0; i < p->n_stages; i++)
        assert_true(p->stages[i].n_replicas == r->plans[0].stages[i].replicas &&
                    p->stages[i].replicas[0].tp == r->plans[0].stages[i].tp &&
                    p->stages[i].recompute == r->plans[0].stages[i].recompute &&
                    p->stages[i].sharding == r->plans[0].stages[i].sharding);
    assert_int_equal(maq_slices_mixed_plan(&box, r, 1, diag), MAQ_USAGE);
    free(text);
    maq_mixed_plan_free(box);
    maq_mixed_plan_free(again);
    maq_slices_free(r);
    opts.functions = &simple_functions;
    r = search(job, &opts);
    assert_int_equal(maq_slices_mixed_plan(&box, r, 0, diag), MAQ_NO);
    maq_slices_free(r);
    maq_diag_free(diag);
    maq_job_free(job);
}

/* A model that fits nowhere is a result without plans. */
static void nothing_fits(void **state)
{
    struct maq_loaded_job *job =
        load("{model: {base: gpt3-5b, num_layers: 32}, workload: {seq: 2048, gbs: 8}, cluster: 't4:1 + v100-16gb:1', "
             "plan: {mbs: 1, cp: 1, ep: 1, precision: fp16}}");
    for (size_t k = 0; k < MAQ_COUNT(parallelizers); k++) {
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        opts.functions = parallelizers[k];
        struct maq_slices_result *r = search(job, &opts);
        assert_true(r->n_plans == 0 && r->n_layers == 34 && r->calls.all > 0);
        maq_slices_free(r);
    }
    maq_job_free(job);
}

/* The same plan as a composition of stages, costed by the formulas of planner/compose/stage_table.c: one step, and the memory of each stage. */
static void plans_cost_what_stages_cost(void **state)
{
    static const char *const files[] = {"c3.yaml", "c1-4xv100-12xt4.yaml"};
    const char *root = getenv("MAQ_SOURCE_ROOT");
    assert_non_null(root);
    for (size_t k = SANITIZED; k < MAQ_COUNT(files); k++) {
        char path[2048];
        struct maq_diag *diag = maq_diag_new();
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        struct maq_loaded_job *job;
        struct maq_arena arena;
        struct maq_stage_table t;
        snprintf(path, sizeof path, "%s/examples/tangram/%s", root, files[k]);
        if (maq_job_load_open(&job, path, NULL, 0, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        struct maq_slices_result *r = search(job, &opts);
        const struct maq_slices_run *run = r->owner;
        const struct maq_slices_plan *p = &r->plans[0];
        struct maq_composition *c;
        maq_arena_init(&arena, 0);
        c = MAQ_ARENA_NEW(&arena, struct maq_composition, 1);
        const struct maq_chain_wave wave = {.replicas = p->stages[0].replicas};
        assert_true(maq_chain_costs_table(&t, &run->chain.costs, &wave, &arena));
        assert_true(t.waves == p->waves && t.wave_samples == p->wave_samples);
        for (uint32_t i = 0; i < p->n_stages; i++) {
            const struct maq_slices_stage *s = &p->stages[i];
            uint32_t o = 0;
            for (; o < t.n_options; o++) {
                struct maq_stage_strategy is = maq_stage_strategy_of(&run->chain.costs, t.options[o].id);
                const struct maq_stage_option *at = &t.options[o];
                double held =
                    at->context_bytes + at->fixed_bytes[s->first_layer + s->layers] - at->fixed_bytes[s->first_layer] +
                    s->in_flight * (at->flight_bytes[s->first_layer + s->layers] - at->flight_bytes[s->first_layer]);
                if (is.pool == s->island && at->devices * s->replicas == s->devices && is.sharding == s->sharding &&
                    run->chain.space.redo[is.redo].recompute == s->recompute && fabs(held / s->memory_bytes - 1) < 1e-9)
                    break; /* ways with the same memory to the byte are the same but for what recomputes nothing */
            }
            assert_true(o < t.n_options);
            c->stages[c->n_stages++] = (struct maq_stage){
                .first = s->first_layer, .end = s->first_layer + s->layers, .n_parts = 1, .parts = {{o, s->replicas}}};
        }
        assert_true(maq_composition_cost(c, &t));
        assert_true(fabs(c->step_s / p->step_s - 1) < 1e-9);
        for (uint32_t i = 0; i < p->n_stages; i++)
            assert_true(
                fabs(c->stages[i].memory_share / (p->stages[i].memory_bytes / p->stages[i].capacity_bytes) - 1) < 1e-9);
        maq_arena_fini(&arena);
        maq_slices_free(r);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

/* ---- an end on request ---- */

static volatile sig_atomic_t stop;
static uint32_t calls_left;

static enum maq_status stopping(const struct maq_parallelizer_plan **out, uint32_t *n, void *state,
                                const struct maq_parallelizer_slice *slice,
                                const struct maq_parallelizer_island *island,
                                const struct maq_parallelizer_position *position, char *why)
{
    stop = calls_left == 0;
    calls_left -= calls_left > 0;
    return simple_parallelize(out, n, state, slice, island, position, why);
}

/* After any number of calls: no plan and MAQ_LIMIT, or one with a bound that the optimum keeps. */
static void stopped_searches_are_honest(void **state)
{
    struct maq_parallelizer functions = simple_functions;
    struct maq_loaded_job *job = load(rule_jobs[1]);
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    uint32_t without = 0, with = 0;
    opts.functions = &functions;
    struct maq_slices_result *whole = search(job, &opts);
    functions.parallelize = stopping;
    opts.stop = &stop;
    for (uint32_t calls = 0; calls < whole->calls.made; calls += 7) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_slices_result *r = NULL;
        calls_left = calls;
        stop = 0;
        enum maq_status status = maq_slices_search(&r, job, &opts, diag);
        if (status == MAQ_LIMIT) {
            assert_true(maq_diag_errors(diag) == 1 && maq_diag_at(diag, 0)->code == MAQ_CODE_SLICES_STOPPED);
            without++;
        } else {
            assert_int_equal(status, MAQ_OK);
            assert_true(r->n_plans == 1 && !r->exact && r->plans[0].step_s >= whole->plans[0].step_s * (1 - 1e-9));
            assert_true(r->bound_s > 0 && r->bound_s <= whole->plans[0].step_s * (1 + 1e-9));
            maq_slices_free(r);
            with++;
        }
        maq_diag_free(diag);
    }
    print_message("%u without a plan, %u with one\n", without, with);
    assert_true(without > 0 && with > 0);
    maq_slices_free(whole);
    maq_job_free(job);
}

/* ---- no memory ---- */

static uint64_t allocations, fails_at;

static bool gate(size_t bytes)
{
    return ++allocations != fails_at;
}

/* Every allocation through the library's door fails once: an error, or what came out would have come out anyway. */
static void memory_may_run_out(void **state)
{
    struct maq_loaded_job *job = load(JOB(4, 8, 1, 1, "mbs: 1")); /* small: searches times allocations */
    uint32_t failed = 0;
    for (size_t k = 0; k < MAQ_COUNT(parallelizers); k++) {
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        opts.functions = parallelizers[k];
        struct maq_slices_result *whole = search(job, &opts);
        bool done = false;
        for (fails_at = 1; !done; fails_at += SANITIZED ? 5 : 1) {
            struct maq_diag *diag = maq_diag_new();
            struct maq_slices_result *r = NULL;
            allocations = 0;
            maq__set_alloc_gate(gate);
            enum maq_status status = maq_slices_search(&r, job, &opts, diag);
            maq__set_alloc_gate(NULL);
            done = allocations < fails_at;
            assert_true(status == MAQ_OK || (status == MAQ_NO_MEMORY && !done));
            failed += status != MAQ_OK;
            if (status == MAQ_OK)
                assert_same_plan(&r->plans[0], &whole->plans[0]);
            maq_slices_free(r);
            maq_diag_free(diag);
        }
        maq_slices_free(whole);
    }
    print_message("%u failures\n", failed);
    assert_true(failed > 20);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_mixed_search),
        cmocka_unit_test(more_micro_batches_are_never_slower),
        cmocka_unit_test(no_rule_changes_the_plan),
        cmocka_unit_test(workers_change_nothing),
        cmocka_unit_test(plans_add_up),
        cmocka_unit_test(plans_are_written_down),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(plans_cost_what_stages_cost),
        cmocka_unit_test(stopped_searches_are_honest),
        cmocka_unit_test(memory_may_run_out),
    };
    ONLY_UNDER_TSAN("*change_nothing");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
