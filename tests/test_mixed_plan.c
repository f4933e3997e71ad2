/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_mixed_plan.c - mixed plans: the example of the documentation, defaults, faults with their places, writing and reading back,
 * and the form of Sailor's executed plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "maquette/mixed_plan.h"
#include "plan/mixed/codes.h"

static struct maq_str str(const char *s)
{
    return (struct maq_str){s, strlen(s)};
}

static struct maq_loaded_mixed_plan *parse(const char *text)
{
    struct maq_loaded_mixed_plan *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_mixed_plan_parse(&box, "plan", str(text), diag) != MAQ_OK)
        fail_msg("%s", maq_diag_at(diag, 0)->msg.ptr);
    assert_int_equal(maq_diag_count(diag), 0);
    maq_diag_free(diag);
    return box;
}

/* The text between ```json and ``` of docs/plan-form.md. */
static char *example(void)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char path[4096];
    static char text[1 << 16];
    snprintf(path, sizeof path, "%s/docs/plan-form.md", root ? root : ".");
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *from = strstr(text, "```json\n");
    assert_non_null(from);
    char *end = strstr(from += 8, "```");
    assert_non_null(end);
    *end = '\0';
    return from;
}

static void test_documented_example(void **state)
{
    (void)state;
    struct maq_loaded_mixed_plan *box = parse(example());
    const struct maq_mixed_plan *p = maq_mixed_plan_get(box);
    assert_string_equal(p->model, "OPT-350");
    assert_int_equal(p->layers, 26);
    assert_int_equal(p->schedule, MAQ_SCHEDULE_1F1B);
    assert_int_equal(maq_mixed_microbatches(p), 16);
    assert_int_equal(p->n_pipelines, 2);
    const struct maq_mixed_stage *s = p->pipelines[0].stages;
    assert_int_equal(s[0].n_replicas, 3);
    assert_int_equal(maq_mixed_replica_microbatches(p, 0, 0, 1), 3);
    assert_int_equal(maq_mixed_replica_microbatches(p, 0, 0, 2), 6);
    assert_int_equal(maq_mixed_replica_microbatches(p, 0, 1, 0), 6);
    assert_string_equal(s[0].replicas[2].group, "new island");
    assert_int_equal(s[1].sharding, MAQ_SHARDING_OPTIM);
    assert_true(s[1].replicas[0].sequence_parallel);
    assert_int_equal(s[1].replicas[1].members[0].devices, 4);
    assert_int_equal(s[2].recompute, MAQ_RECOMPUTE_FULL);
    assert_int_equal(s[2].recompute_layers, 3);
    const struct maq_mixed_replica *wide = &p->pipelines[1].stages[0].replicas[0];
    assert_int_equal(wide->n_members, 2);
    assert_null(wide->members[0].zone);
    assert_string_equal(wide->members[1].zone, "us-central1-b");
    maq_mixed_plan_free(box);
}

/* What is written reads back and is written as the same bytes. */
static void assert_round_trip(const struct maq_mixed_plan *plan)
{
    char *once, *twice;
    assert_int_equal(maq_mixed_plan_write(&once, plan, NULL), MAQ_OK);
    struct maq_loaded_mixed_plan *box = parse(once);
    assert_int_equal(maq_mixed_plan_write(&twice, maq_mixed_plan_get(box), NULL), MAQ_OK);
    assert_string_equal(once, twice);
    assert_int_equal(maq_mixed_plan_get(box)->layers, plan->layers);
    assert_int_equal(maq_mixed_plan_get(box)->n_pipelines, plan->n_pipelines);
    maq_mixed_plan_free(box);
    free(once);
    free(twice);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct maq_loaded_mixed_plan *box = parse(example());
    assert_round_trip(maq_mixed_plan_get(box));
    maq_mixed_plan_free(box);
    box = parse(
        "mbs: 3\ngbs: 7\nschedule: gpipe\nmeasured: {step_time_s: 1.25, memory_bytes: 7976517632}\n"
        "pipelines: [{stages: [{first_layer: 0, layers: 2, replicas: [{device: a, count: 2}, {device: b, count: 2}]},"
        "{first_layer: 2, layers: 1, on_devices_of: 0, replicas: [{device: a, ep: 2, count: 4}]}]}]");
    const struct maq_mixed_plan *p = maq_mixed_plan_get(box);
    assert_int_equal(maq_mixed_microbatches(p), 3);
    assert_int_equal(p->pipelines[0].stages[1].on_devices_of, 0);
    assert_true(p->measured.memory_bytes == 7976517632.0);
    assert_round_trip(p);
    maq_mixed_plan_free(box);
}

/* What a search over the cost chain chooses beside degrees. */
static void test_techniques(void **state)
{
    (void)state;
    struct maq_loaded_mixed_plan *box =
        parse("mbs: 1\ngbs: 8\npipelines: [{stages: [{first_layer: 0, layers: 2, recompute: selective,"
              " recompute_modules: [moe_act, core_attn], optimizer_offload_fraction: 0.25,"
              " zero: optim, hsdp_replicas: 2, offload_layers: 2,"
              " replicas: [{device: a, tp: 4, cp: 2, ep: 4, etp: 2, cp_comm_type: a2a+p2p, count: 2}]},"
              " {first_layer: 2, layers: 1, recompute: selective, offload_modules: [attn_proj, core_attn],"
              " replicas: [{device: a, tp: 2, etp: 2, count: 2}]}]}]");
    const struct maq_mixed_stage *s = maq_mixed_plan_get(box)->pipelines[0].stages;
    assert_int_equal(s[0].recompute_parts, 1u << MAQ_PART_CORE_ATTENTION | 1u << MAQ_PART_MOE_ACT);
    assert_true(s[0].optimizer_offload == 0.25);
    assert_int_equal(s[0].optimizer_instances, 2);
    assert_int_equal(s[0].offload_layers, 2);
    assert_int_equal(s[1].offload_modules, 1u << MAQ_OFFLOAD_CORE_ATTN | 1u << MAQ_OFFLOAD_ATTN_PROJ);
    assert_int_equal(s[0].replicas[1].etp, 2);
    assert_int_equal(s[0].replicas[1].cp_comm, MAQ_CP_A2A_P2P);
    assert_int_equal(s[1].recompute_parts, 1u << MAQ_PART_CORE_ATTENTION); /* as Megatron-LM takes it */
    assert_int_equal(s[1].replicas[0].etp, 0);                             /* as TP */
    assert_round_trip(maq_mixed_plan_get(box));
    char *text;
    assert_int_equal(maq_mixed_plan_write(&text, maq_mixed_plan_get(box), NULL), MAQ_OK);
    struct maq_loaded_mixed_plan *again = parse(text);
    const struct maq_mixed_stage *t = maq_mixed_plan_get(again)->pipelines[0].stages;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t[i].recompute_parts, s[i].recompute_parts);
        assert_true(t[i].optimizer_offload == s[i].optimizer_offload);
        assert_int_equal(t[i].optimizer_instances, s[i].optimizer_instances);
        assert_int_equal(t[i].offload_layers, s[i].offload_layers);
        assert_int_equal(t[i].offload_modules, s[i].offload_modules);
        assert_int_equal(t[i].replicas[0].etp, s[i].replicas[0].etp);
        assert_int_equal(t[i].replicas[0].cp_comm, s[i].replicas[0].cp_comm);
    }
    free(text);
    maq_mixed_plan_free(again);
    maq_mixed_plan_free(box);
}

static void expect(const char *text, unsigned code, uint32_t line, const char *words)
{
    struct maq_loaded_mixed_plan *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_not_equal(maq_mixed_plan_parse(&box, "plan", str(text), diag), MAQ_OK);
    assert_null(box);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (!strstr(item->msg.ptr, words) || item->code != code || maq_diag_place(diag, item->at).line != line)
        fail_msg("%u at line %u: %s", item->code, maq_diag_place(diag, item->at).line, item->msg.ptr);
    maq_diag_free(diag);
}

#define PLAN(stages) "mbs: 1\ngbs: 4\npipelines:\n- stages:\n" stages
#define FIRST "  - {first_layer: 0, layers: 3, replicas: [{device: a, count: 2}]}\n"

static void test_faults(void **state)
{
    (void)state;
    expect("[1]", MAQ_CODE_MIXED_FORM, 1, "a plan is a map");
    expect("gbs: 4\npipelines: []", 1022, 1, "micro_batch_size");
    expect("mbs: 1\ngbs: 4\npipelines: []", MAQ_CODE_MIXED_FORM, 3, "at least one entry");
    expect("mbs: 1\ngbs: 4\nlayer: 3\npipelines:\n- stages:\n" FIRST, 1021, 3, "layer");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, tq: 2}]}"), 1021, 5, "tq");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{tp: 2}]}"), MAQ_CODE_MIXED_FORM, 5, "without a device");
    expect(PLAN(FIRST "  - {first_layer: 4, layers: 1, replicas: [{device: a}]}"), MAQ_CODE_MIXED_COVER, 6,
           "stage 1 begins at layer 4; layer 3 comes next");
    expect(PLAN(FIRST "- stages:\n  - {first_layer: 0, layers: 2, replicas: [{device: a}]}"), MAQ_CODE_MIXED_COVER, 4,
           "pipeline 0 has 3 layers, pipeline 1 has 2");
    expect(
        PLAN("  - {first_layer: 0, layers: 3, replicas: [{tp: 4, members: [{device: a, devices: 2}, {device: b}]}]}"),
        MAQ_CODE_MIXED_PLACE, 5, "3 devices for tp 4 x cp 1");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, sp: true}]}"), MAQ_CODE_MIXED_PLACE, 5,
           "without tensor parallelism");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, ep: 4, count: 2}]}"), MAQ_CODE_MIXED_PLACE, 5,
           "expert parallelism of 4 x 1 over 2 ranks");
    expect(PLAN(FIRST "  - {first_layer: 3, layers: 1, on_devices_of: 1, replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_PLACE, 6, "cannot share the devices");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, microbatches: 3}, {device: b}]}"),
           MAQ_CODE_MIXED_SHARE, 4, "microbatches of 1 of 2 replicas");
    expect(
        PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, microbatches: 3}, {device: b, microbatches: 2}]}"),
        MAQ_CODE_MIXED_SHARE, 4, "5 micro batches together; there are 4");
    expect(PLAN("  - {first_layer: 0, layers: 3, recompute_num_layers: 1, replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "without full recomputation");
    expect(PLAN("  - {first_layer: 0, layers: 3, recompute: full, recompute_num_layers: 4, replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "4 layers recomputed in a stage of 3");
    expect(PLAN("  - {first_layer: 0, layers: 3, recompute_modules: [mlp], replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "without selective recomputation");
    expect(
        PLAN(
            "  - {first_layer: 0, layers: 3, recompute: selective, recompute_modules: [mpl], replicas: [{device: a}]}"),
        MAQ_CODE_MIXED_TECHNIQUE, 5, "not a module");
    expect(PLAN("  - {first_layer: 0, layers: 3, hsdp_replicas: 2, replicas: [{device: a, count: 2}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "nothing is sharded");
    expect(PLAN("  - {first_layer: 0, layers: 3, offload_layers: 4, replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "4 layers offloaded in a stage of 3");
    expect(PLAN("  - {first_layer: 0, layers: 3, offload_modules: [attn], replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "'attn' is not a module");
    expect(PLAN("  - {first_layer: 0, layers: 3, offload_modules: core_attn, replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_FORM, 5, "is a list");
    expect(PLAN("  - {first_layer: 0, layers: 3, offload_modules: [attn_proj], replicas: [{device: a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "core attention's output");
    expect(PLAN("  - {first_layer: 0, layers: 3, recompute: full, offload_modules: [core_attn], replicas: [{device: "
                "a}]}"),
           MAQ_CODE_MIXED_TECHNIQUE, 5, "keep nothing");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, cp_comm_type: a2a}]}"), MAQ_CODE_MIXED_PLACE, 5,
           "without a degree");
    expect(PLAN("  - {first_layer: 0, layers: 3, replicas: [{device: a, ep: 2, etp: 2, count: 2}]}"),
           MAQ_CODE_MIXED_PLACE, 5, "expert parallelism of 2 x 2 over 2 ranks");
    expect(PLAN("  - {first_layer: 0, layers: 3, zero: all, replicas: [{device: a}]}"), 1026, 5, "all");
}

#define EXECUTED(layers, places)                                                                                       \
    "{\"zone\": \"z\", \"mbs\": 2, \"gbs\": 8, \"real\": 1.5, \"red_grads\": 0.5, \"max_mem\": 1048576, \"N\": 2,\n"   \
    "\"pipeline_list\": [{\"num_stages\": 2, \"layers_per_stage\": " layers ", \"dp\": [1, 2],\n"                      \
    "\"tmp_per_stage\": " places "}]}"

static void test_executed_plans(void **state)
{
    (void)state;
    struct maq_loaded_mixed_plan *box = parse(EXECUTED(
        "[[0, 1], [2]]", "[[[[[\"a\", 8, \"z\"]], 4]], [[[[\"a\", 8, \"z\"]], 1], [[[\"a\", 1, \"z\"], [\"b\", 2, "
                         "\"y\"]], 3]]]"));
    const struct maq_mixed_plan *p = maq_mixed_plan_get(box);
    const struct maq_mixed_stage *s = p->pipelines[0].stages;
    assert_int_equal(p->layers, 3);
    assert_true(p->measured.step_s == 1.5 && p->measured.reduce_s == 0.5 && p->measured.memory_bytes == 1048576);
    assert_int_equal(s[0].replicas[0].tp, 4);
    assert_int_equal(s[0].replicas[0].members[0].devices, 4);
    assert_int_equal(s[1].n_replicas, 2);
    assert_int_equal(s[1].replicas[1].n_members, 2);
    assert_string_equal(s[1].replicas[1].members[1].zone, "y");
    assert_round_trip(p);
    maq_mixed_plan_free(box);
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_mixed_plan_parse(&box, "plan",
                                          str(EXECUTED("[[0, 7, 2], [3]]", "[[[[[\"a\", 8, \"z\"]], 4]], [[[[\"a\", 8, "
                                                                           "\"z\"]], 1], [[[\"a\", 8, \"z\"]], 1]]]")),
                                          diag),
                     MAQ_OK);
    assert_int_equal(maq_diag_errors(diag), 0);
    assert_int_equal(maq_diag_count(diag), 1); /* layer 7 is taken for 1 */
    assert_int_equal(maq_mixed_plan_get(box)->layers, 4);
    maq_mixed_plan_free(box);
    maq_diag_free(diag);
    expect(EXECUTED("[[0, 2], [3]]", "[]"), MAQ_CODE_MIXED_FORM, 3, "a list of 2 entries");
    expect(EXECUTED("[[0, 1], [3]]", "[[[[[\"a\", 8, \"z\"]], 4]], []]"), MAQ_CODE_MIXED_COVER, 2,
           "layer 3 stands where 2 comes next");
    expect(EXECUTED("[[0], [1]]", "[[[[[\"a\", 2, \"z\"]], 4]], []]"), MAQ_CODE_MIXED_PLACE, 3, "2 devices for TP 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_example), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_techniques),         cmocka_unit_test(test_faults),
        cmocka_unit_test(test_executed_plans),
    };
    return cmocka_run_group_tests_name("mixed plans", tests, NULL, NULL);
}
