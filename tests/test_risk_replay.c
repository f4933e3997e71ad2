/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_replay.c - recorded jobs replayed: a pipeline whose times are known by hand, broken records, and the two published
 * traces with their published answers (MAQ_SHARED).
 */
#include "maquette/risk.h"
#include "temp.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void write_recorded(char path[64], const char *text)
{
    strcpy(path, "/tmp/maquette-test-replay-XXXXXX");
    temp_text(path, text);
}

static enum maq_status replay(struct maq_risk_replayed **out, const char *ops, const char *meta, struct maq_diag *diag)
{
    char a[64], b[64];
    write_recorded(a, ops);
    write_recorded(b, meta);
    enum maq_status status = maq_risk_replay(out, a, b, diag);
    unlink(a);
    unlink(b);
    return status;
}

#define HEAD "step,dp_rank,pp_stage,op,model_chunk,start_us,dur_us\n"

/* The text of a 1F1B pipeline of two stages and `m` microbatches: forward f, backward 2 f, transfers 1, stage 1 `slow` times as long;
 * everything begins when it can, found by hand below. */
static char *pipeline(int m, double f, double slow)
{
    char *text = malloc(1 << 16), *at = text;
    at += sprintf(at, HEAD);
    double sent[64], back[64], t0 = 0, t1 = 0, f1 = f * slow;
    double fw0[64], bw1[64];
    int n0 = 0;
    /* stage 0: F0 F1, then B F B F ..., B. Stage 1: F B F B ... */
    for (int i = 0; i < 2 && i < m; i++, n0++) {
        fw0[i] = t0;
        t0 += f;
        sent[i] = t0;
    }
    for (int i = 0; i < m; i++) {
        double arrived = sent[i] + 1, start = fmax(t1, arrived);
        at += sprintf(at, "7,0,1,forward-recv,-1,%g,1\n7,0,1,forward-compute,0,%g,%g\n", sent[i], start, f1);
        bw1[i] = start + f1;
        t1 = bw1[i] + 2 * f1;
        at += sprintf(at, "7,0,1,backward-compute,0,%g,%g\n7,0,1,backward-send,-1,%g,1\n", bw1[i], 2 * f1, t1);
        back[i] = fmax(t0, t1 + 1);
        t0 = back[i] + 2 * f;
        if (n0 < m) {
            fw0[n0] = t0;
            t0 += f;
            sent[n0++] = t0;
        }
    }
    for (int i = 0; i < m; i++) {
        at += sprintf(at, "7,0,0,forward-compute,0,%g,%g\n7,0,0,forward-send,-1,%g,1\n", fw0[i], f, sent[i]);
        at += sprintf(at, "7,0,0,backward-recv,-1,%g,1\n7,0,0,backward-compute,0,%g,%g\n", bw1[i] + 2 * f1, back[i],
                      2 * f);
    }
    return text;
}

/* Replaying what waited for nothing gives the record back; ideal times are the means, and the slow stage is found. */
static void test_by_hand(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_replayed *r = NULL;
    char *text = pipeline(6, 100, 1);
    assert_int_equal(replay(&r, text, "{dp_size: 1, pp_size: 2}", diag), MAQ_OK);
    assert_true(fabs(r->step_mean_s - r->recorded_s) < 1e-12 && fabs(r->no_launch_delay_s - r->recorded_s) < 1e-12);
    assert_true(fabs(r->slowdown - 1) < 1e-12); /* all of a kind last the same */
    maq_risk_replayed_free(r);
    free(text);
    text = pipeline(6, 100, 1.5);
    assert_int_equal(replay(&r, text, "{dp_size: 1, pp_size: 2}", diag), MAQ_OK);
    assert_true(fabs(r->no_launch_delay_s - r->recorded_s) < 1e-12);
    assert_true(r->slowdown > 1.1 && r->stage[0].stage == 1 && r->worker[0].stage == 1);
    assert_true(r->stage[0].slowdown >= r->slowdown); /* the fast stage would be slower if it were ideal */
    assert_true(r->last_stage_share > 1);
    for (uint32_t i = 0; i < 2; i++) /* one worker per stage: the same question */
        assert_true(r->worker[i].slowdown == r->stage[i].slowdown);
    maq_risk_replayed_free(r);
    free(text);
    maq_diag_free(diag);
}

/* Operations that take no time: nothing is slow, and no part makes it so. */
static void test_no_time(void **state)
{
    struct maq_risk_replayed *r = NULL;
    assert_int_equal(replay(&r, HEAD "0,0,0,forward-compute,0,0,0\n", "{dp_size: 1, pp_size: 1}", NULL), MAQ_OK);
    assert_true(r->slowdown == 1 && r->stage[0].slowdown == 1 && r->worker[0].slowdown == 1);
    maq_risk_replayed_free(r);
}

static void test_faults(void **state)
{
    static const char shape[] = "{dp_size: 1, pp_size: 2}";
    static const struct {
        const char *ops, *meta, *says;
    } bad[] = {
        {HEAD, shape, "no operations"},
        {"step,op\n1,x\n", shape, "there is no column 'dp_rank'"},
        {HEAD "1,0,2,forward-compute,0,0,1\n", shape, ":2: pp_stage is '2'"},
        {HEAD "1,0,0,forward-compute,0,0,-1\n", shape, ":2: a start, a duration or a chunk that cannot be"},
        {HEAD "1,0,0,forward-compute,3,0,1\n", shape, ":2: a start, a duration or a chunk that cannot be"},
        {HEAD "1,0,0,,0,0,1\n", shape, "is no kind of operation"},
        {HEAD "1,0,0,forward-compute,0,0,1\n", "{pp_size: 2}", "dp_size is missing"},
        {HEAD "1,0,0,forward-compute,0,0,1\n", "{dp_size: 0, pp_size: 2}", "dp_size is 0"},
        {HEAD "1,0,0,forward-compute,0,0,1\n", "[1]", "not a map of sizes"},
        /* two norms in opposite orders with an update between: each waits for the other */
        {HEAD "1,0,0,forward-recv,-1,0,1\n1,0,0,forward-send,-1,1,1\n1,0,0,forward-compute,0,5,1\n"
              "1,0,1,forward-compute,0,0,1\n1,0,1,forward-send,-1,1,1\n1,0,1,forward-recv,-1,2,1\n",
         "{dp_size: 1, pp_size: 2, vpp_size: 2}", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_risk_replayed *r = NULL;
        enum maq_status status = replay(&r, bad[i].ops, bad[i].meta, diag);
        if (!bad[i].says) { /* either an order is found or the step is refused: no hang, no crash */
            assert_true(status == MAQ_OK || status == MAQ_BAD_INPUT);
            maq_risk_replayed_free(r);
        } else {
            assert_int_equal(status, MAQ_BAD_INPUT);
            const struct maq_diag_item *item = maq_diag_at(diag, 0);
            if (!memmem(item->msg.ptr, item->msg.len, bad[i].says, strlen(bad[i].says)))
                fail_msg("%zu: %.*s", i, (int)item->msg.len, item->msg.ptr);
        }
        maq_diag_free(diag);
    }
}

static json_t *load(const char *shared, const char *kind, const char *trace)
{
    char path[512];
    json_error_t fault;
    snprintf(path, sizeof path, "%s/data/variability/stragglers/%s-%s.json", shared, kind, trace);
    json_t *json = json_load_file(path, 0, &fault);
    assert_non_null(json);
    return json;
}

static double mean_of(json_t *map)
{
    double sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(map, key, value) sum += json_real_value(value);
    return sum / (double)json_object_size(map);
}

/* A part's published figure. */
static double published(json_t *map, uint32_t number)
{
    char key[16];
    snprintf(key, sizeof key, "%u", number);
    return json_real_value(json_object_get(map, key));
}

/* Step mean, slowdown, attributions and shares as published with the traces. */
static void check_trace(const char *shared, const char *trace)
{
    char ops[512], meta[512];
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_replayed *r = NULL;
    snprintf(ops, sizeof ops, "%s/data/variability/stragglers/ops-%s.csv.gz", shared, trace);
    snprintf(meta, sizeof meta, "%s/data/variability/stragglers/meta-%s.yaml", shared, trace);
    assert_int_equal(maq_risk_replay(&r, ops, meta, diag), MAQ_OK);
    json_t *result = load(shared, "result", trace), *worker = load(shared, "mw", trace),
           *last = load(shared, "ms", trace);
    double recorded = mean_of(json_object_get(result, "step_t_base")),
           plain = mean_of(json_object_get(result, "step_t_nodelay")),
           slowdown = json_real_value(json_object_get(result, "blocking_slowdown"));
    print_message("# %s: step %.5f of %.5f s, without launch delay %.5f of %.5f s, S %.5f of %.5f\n", trace,
                  r->step_mean_s, recorded, r->no_launch_delay_s, plain, r->slowdown, slowdown);
    assert_true(fabs(r->step_mean_s / recorded - 1) < 0.001);
    assert_true(fabs(r->no_launch_delay_s / plain - 1) < 0.001);
    assert_true(fabs(r->slowdown - slowdown) < 0.001);
    json_t *stages = json_object_get(result, "blocking_decompose_by_stage"),
           *ranks = json_object_get(result, "blocking_decompose_by_dp_rank"),
           *operations = json_object_get(result, "blocking_decompose_by_optype");
    for (uint32_t i = 0; i < r->pp; i++)
        assert_true(fabs(r->stage[i].slowdown - published(stages, r->stage[i].stage)) < 0.001);
    for (uint32_t i = 0; i < r->dp; i++)
        assert_true(fabs(r->dp_rank[i].slowdown - published(ranks, r->dp_rank[i].dp_rank)) < 0.001);
    assert_int_equal(r->n_operations, json_object_size(operations));
    for (uint32_t i = 0; i < r->n_operations; i++)
        assert_true(fabs(r->operation[i].slowdown -
                         json_number_value(json_object_get(operations, r->operation[i].name))) < 0.001);
    assert_true(fabs(r->worker_share - json_real_value(json_object_get(worker, "Mw"))) < 0.001);
    assert_true(fabs(r->last_stage_share - json_real_value(json_object_get(last, "Ms"))) < 0.001);
    json_decref(result);
    json_decref(worker);
    json_decref(last);
    maq_risk_replayed_free(r);
    maq_diag_free(diag);
}

static void test_published(void **state)
{
    const char *shared = getenv("MAQ_SHARED");
    if (!shared)
        skip();
    check_trace(shared, "ST");
    check_trace(shared, "AR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
