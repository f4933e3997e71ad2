/*
 * test_mixed_search.c - plans over several node groups: nothing is left out, more devices never hurt, threads change nothing. threads
 *
 * Oracles: every composition of a tiny job costed by the table's own formulas (maq_composition_cost); a homogeneous plan written down as
 * a composition of one pool, and what maq_train_predict() says of it.
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
#include "compose/mixed_search.h"
#include "maquette/report.h"

#define TINY                                                                                                           \
    "{model: {base: gpt2, num_hidden_layers: 3}, workload: {seq: 1024, gbs: 8},"                                       \
    " cluster: {groups: [{device: v100-16gb, nodes: 1, devices_per_node: 2},"                                          \
    " {device: t4, nodes: 1, devices_per_node: 2}]}, plan: {mbs: 2, precision: fp16}}"

struct searched {
    struct maq_job_box *job;
    struct maq_mixed_search_result *result;
};

static struct searched search(const char *text, uint32_t threads, uint32_t top)
{
    struct searched s = {0};
    struct maq_diag *diag = maq_diag_new();
    struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
    opts.threads = threads;
    opts.top = top;
    if (maq_job_parse_open(&s.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_mixed_search(&s.result, s.job, &opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return s;
}

static void done(struct searched *s)
{
    maq_mixed_search_free(s->result);
    maq_job_free(s->job);
}

/* ---- brute force ---- */

struct brute {
    const struct maq_stage_table *table;
    struct maq_composition at;
    double best_s;
    uint64_t n;
};

static void extend(struct brute *b)
{
    struct maq_composition *c = &b->at;
    uint32_t from = c->n_stages > 0 ? c->stages[c->n_stages - 1].end : 0;
    if (from == b->table->n_atoms) {
        struct maq_composition copy = *c;
        b->n++;
        if (maq_composition_cost(&copy, b->table) && copy.step_s < b->best_s)
            b->best_s = copy.step_s;
        return;
    }
    for (uint32_t end = from + 1; end <= b->table->n_atoms; end++)
        for (uint32_t o = 0; o < b->table->n_options && c->n_stages < 4; o++) {
            uint32_t replicas = b->table->wave_samples / b->table->options[o].samples;
            c->stages[c->n_stages++] =
                (struct maq_stage){.first = from, .end = end, .n_parts = 1, .parts = {{o, replicas}}};
            extend(b);
            c->n_stages--;
        }
}

/* Four devices: no more than four stages. */
static void test_brute_force(void **state)
{
    struct searched s = search(TINY, 1, 1);
    const struct maq_mixed_run *run = s.result->owner;
    struct brute b = {.best_s = HUGE_VAL};
    assert_true(s.result->n_plans == 1 && s.result->exact);
    for (uint32_t w = 0; w < run->n_waves; w++) {
        struct maq_arena arena;
        struct maq_stage_table table;
        maq_arena_init(&arena, 0);
        assert_true(maq_mixed_run_table(&table, run, w, &arena));
        b.table = &table;
        extend(&b);
        maq_arena_fini(&arena);
    }
    assert_true(b.n > 1000);
    assert_true(fabs(s.result->plans[0].step_s / b.best_s - 1) < 1e-12);
    assert_true(s.result->bound_s <= b.best_s * (1 + 1e-12));
    done(&s);
}

/* ---- one pool ---- */

#define ALONE                                                                                                          \
    "{model: {base: gpt3-5b, num_layers: 6}, workload: {seq: 2048, gbs: 32},"                                          \
    " cluster: {groups: [{device: v100-16gb, nodes: 2, devices_per_node: 4}]},"                                        \
    " plan: {mbs: 1, tp: 2, precision: fp16, recompute_granularity: full, "                                            \
    "data_parallel_sharding_strategy: no_shard}}"

/* Two stages of tp 2 x dp 2, three layers each: as the plan of a job, and as a composition. */
static double composed(const struct maq_mixed_search_result *r)
{
    const struct maq_mixed_run *run = r->owner;
    struct maq_arena arena;
    struct maq_stage_table table;
    struct maq_composition c = {.n_stages = 2};
    uint32_t w = 0;
    while (w < run->n_waves && run->waves[w].replicas != 2)
        w++;
    assert_true(w < run->n_waves);
    maq_arena_init(&arena, 0);
    assert_true(maq_mixed_run_table(&table, run, w, &arena));
    assert_int_equal(table.n_options, 1);
    assert_int_equal(table.n_atoms, 8);
    c.stages[0] = (struct maq_stage){.first = 0, .end = 4, .n_parts = 1, .parts = {{0, 2}}};
    c.stages[1] = (struct maq_stage){.first = 4, .end = 8, .n_parts = 1, .parts = {{0, 2}}};
    assert_true(maq_composition_cost(&c, &table));
    maq_arena_fini(&arena);
    return c.step_s;
}

/* The same techniques, and nothing overlapped. A step is not shorter than the work of its slowest stage without the gaps that the
 * composition leaves out, and what it leaves out is small beside its closed form. */
static void test_one_pool(void **state)
{
    struct searched s = search(ALONE, 1, 1);
    struct maq_diag *diag = maq_diag_new();
    struct maq_job_box *job = NULL;
    struct maq_train_result *train = NULL;
    static const struct maq_override stages[] = {{"--pp", "plan.pp", "2"},
                                                 {"--set", "plan.overlap_grad_reduce", "false"}};
    double step = composed(s.result);
    assert_true(s.result->n_plans == 1 && s.result->exact);
    assert_true(s.result->plans[0].step_s <= step * (1 + 1e-12));
    if (maq_job_parse(&job, "test", MAQ_STR(ALONE), stages, MAQ_COUNT(stages), diag) != MAQ_OK ||
        maq_train_predict(&train, maq_job_get(job), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    print_message("composed %.6f s, predicted %.6f s\n", step, train->step_s);
    assert_true(fabs(step / train->step_s - 1) < 0.10);
    maq_train_result_free(train);
    maq_job_free(job);
    maq_diag_free(diag);
    done(&s);
}

/* ---- properties ---- */

#define NODES(v100, t4)                                                                                                \
    "{model: {base: gpt2-medium, num_hidden_layers: 12}, workload: {seq: 1024, gbs: 16},"                              \
    " cluster: {groups: [{device: v100-16gb, nodes: " #v100 ", devices_per_node: 2},"                                  \
    " {device: t4, nodes: " #t4 ", devices_per_node: 2}]}, plan: {mbs: 1, tp: 1, precision: fp16}}"

/* Not quite never: a step waits for the slowest of all devices, 0.8 % x the expected maximum of a few more normal ones. */
static void test_more_devices(void **state)
{
    struct searched few = search(NODES(1, 1), 1, 1), more = search(NODES(2, 1), 1, 1), most = search(NODES(2, 2), 1, 1);
    assert_true(few.result->exact && more.result->exact && most.result->exact);
    assert_true(more.result->plans[0].step_s <= few.result->plans[0].step_s * 1.005);
    assert_true(most.result->plans[0].step_s <= more.result->plans[0].step_s * 1.005);
    for (uint32_t g = 0; g < 2; g++)
        if (few.result->islands[g].alone_s > 0)
            assert_true(few.result->plans[0].step_s <= few.result->islands[g].alone_s);
    done(&few);
    done(&more);
    done(&most);
}

static void test_threads(void **state)
{
    char *text[2];
    struct maq_diag *diag = maq_diag_new();
    for (uint32_t i = 0; i < 2; i++) {
        struct searched s = search(NODES(2, 2), i == 0 ? 1 : 4, 3);
        const struct maq_report_mixed plan = {s.job, s.result};
        assert_int_equal(maq_report_mixed_json(&text[i], &plan, NULL, diag), MAQ_OK);
        done(&s);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    maq_diag_free(diag);
}

/* The written plan covers all layers, and its devices are those that the islands are said to give. */
static void test_mixed_plan(void **state)
{
    struct searched s = search(NODES(1, 1), 1, 1);
    struct maq_diag *diag = maq_diag_new();
    struct maq_mixed_box *box, *again;
    char *text;
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 0, diag), MAQ_OK);
    assert_int_equal(maq_mixed_plan_write(&text, maq_mixed_plan_get(box), diag), MAQ_OK);
    if (maq_mixed_plan_parse(&again, "written", maq_str_of(text), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    const struct maq_mixed_plan *p = maq_mixed_plan_get(again);
    uint32_t devices = 0, used = 0;
    for (uint32_t i = 0; i < p->pipelines[0].n_stages; i++)
        for (uint32_t k = 0; k < p->pipelines[0].stages[i].n_replicas; k++)
            devices += p->pipelines[0].stages[i].replicas[k].tp;
    for (uint32_t g = 0; g < s.result->n_islands; g++)
        used += s.result->islands[g].used;
    assert_int_equal(p->layers, s.result->n_layers);
    assert_int_equal(devices, used);
    assert_int_equal(maq_mixed_search_mixed_plan(&box, s.result, 1, diag), MAQ_USAGE);
    free(text);
    maq_mixed_plan_free(again);
    maq_mixed_plan_free(box);
    maq_diag_free(diag);
    done(&s);
}

static void test_refused(void **state)
{
    static const char *const plans[] = {"cp: 2",
                                        "pp: 2",
                                        "dp: 2",
                                        "virtual_pipeline_model_parallel_size: 2",
                                        "pipeline_schedule: gpipe",
                                        "lora_rank: 8",
                                        "data_parallel_sharding_strategy: optim_grads"};
    for (size_t i = 0; i < MAQ_COUNT(plans); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_job_box *job;
        struct maq_mixed_search_result *r;
        struct maq_mixed_search_opts opts = MAQ_MIXED_SEARCH_OPTS_INIT;
        char text[512];
        snprintf(text, sizeof text,
                 "{model: gpt2, workload: {seq: 1024, gbs: 8}, cluster: 'v100-16gb:2 + t4:2', plan: {%s}}", plans[i]);
        if (maq_job_parse_open(&job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
        assert_int_equal(maq_mixed_search(&r, job, &opts, diag), MAQ_BAD_INPUT);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force), cmocka_unit_test(test_one_pool),   cmocka_unit_test(test_more_devices),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_mixed_plan), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
