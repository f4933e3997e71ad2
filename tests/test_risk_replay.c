/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_replay.c - recorded jobs replayed: a pipeline whose times are known by hand, broken records, and the two published
 * traces with their published answers (MAQ_SHARED).
 *
 * maq-test: long
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
#include <zlib.h>

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
        {HEAD "1,0,0,forward-compute,0,0,-1\n", shape, ":2: a duration of -1 us"},
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
        maq_diag_set_strict(diag, true);
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

#define STEPS 12

/* A job of two stages over STEPS steps whose times are never the same, with one row as `dirt` makes it; NULL: as it is. */
static char *recorded_job(const char *(*dirt)(char *row, int i))
{
    char *text = malloc(1 << 20), *at = text + sprintf(text, HEAD), row[256], *one = NULL;
    int n = 0;
    for (int step = 0; step < STEPS; step++) {
        one = pipeline(4, 100 + step % 3, 1.2);
        for (char *line = strtok(strchr(one, '\n') + 1, "\n"); line; line = strtok(NULL, "\n"), n++) {
            snprintf(row, sizeof row, "%d%s\n", step, line + 1);
            at += sprintf(at, "%s", dirt ? dirt(row, n) : row);
        }
        free(one);
    }
    return text;
}

#define OF_SIXTH(i) ((i) == 6 * 32 + 11)

static const char *negative(char *row, int i)
{
    if (OF_SIXTH(i))
        sprintf(strrchr(row, ','), ",-26.94\n");
    return row;
}
static const char *zero(char *row, int i)
{
    if (OF_SIXTH(i))
        sprintf(strrchr(row, ','), ",0\n");
    return row;
}
static const char *missing(char *row, int i)
{
    return OF_SIXTH(i) ? "" : row;
}
static const char *twice(char *row, int i)
{
    char copy[128];
    if (OF_SIXTH(i)) {
        snprintf(copy, sizeof copy, "%s", row);
        strcat(row, copy);
    }
    return row;
}
static const char *talked_into(char *row, int i)
{
    return OF_SIXTH(i)
               ? strcat(
                     row,
                     "NCCL version 2.21.5+cuda12.4, retrying\nstep,dp_rank,pp_stage,op,model_chunk,start_us,dur_us\n")
               : row;
}
/* The clock of stage 0 was an hour ahead for one row. */
static const char *clock_set(char *row, int i)
{
    char *dur = strrchr(row, ','), end[32];
    if (!OF_SIXTH(i))
        return row;
    snprintf(end, sizeof end, "%s", dur);
    *dur = '\0';
    char *start = strrchr(row, ',') + 1;
    double us = strtod(start, NULL);
    sprintf(start, "%.1f%s", us + 3600e6, end);
    return row;
}

/* Each kind of dirt is counted, at its line, and moves no step by more than the times of the mended operation; strict findings refuse it. */
static void test_dirt(void **state)
{
    static const char shape[] = "{dp_size: 1, pp_size: 2}";
    static const struct {
        const char *(*dirt)(char *row, int i);
        const char *says, *refused;
    } kinds[] = {
        {negative, "384 rows: 1 duration below zero (line 205)", ":205: a duration of -26.94 us"},
        {zero, "384 rows: 1 duration missing (line 205)", ":205: no duration"},
        {missing, "384 rows: 1 operation missing", "less than in other steps"},
        {twice, "384 rows: 1 repetition left out (line 206)", ":206: the row before once more"},
        {talked_into,
         "1 line left out that is none of the table (line 206), 1 row left out with a value that cannot be (line 207)",
         ":206: 2 values"},
        {clock_set, "384 rows: 1 start that the clock had wrong (line 205)", "far from all others"},
    };
    struct maq_risk_replayed *clean = NULL, *r = NULL;
    char *text = recorded_job(NULL);
    assert_int_equal(replay(&clean, text, shape, NULL), MAQ_OK);
    free(text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct maq_diag *diag = maq_diag_new();
        text = recorded_job(kinds[i].dirt);
        assert_int_equal(replay(&r, text, shape, diag), MAQ_OK);
        if (maq_diag_count(diag) != 1)
            fail_msg("%zu: %zu findings", i, maq_diag_count(diag));
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        assert_int_equal(item->severity, MAQ_WARNING);
        if (!memmem(item->msg.ptr, item->msg.len, kinds[i].says, strlen(kinds[i].says)))
            fail_msg("%zu: %.*s", i, (int)item->msg.len, item->msg.ptr);
        assert_int_equal(r->n_steps, STEPS);
        for (uint32_t s = 0; s < STEPS; s++) {
            double off = fabs(r->step_s[s] - clean->step_s[s]);
            if (off > (s == 6 ? 5e-6 : 1e-12)) /* durations of a kind differ by up to 5 us */
                fail_msg("%zu: step %u moves by %g s", i, s, off);
        }
        maq_risk_replayed_free(r);
        maq_diag_free(diag);
        diag = maq_diag_new();
        maq_diag_set_strict(diag, true);
        assert_int_equal(replay(&r, text, shape, diag), MAQ_BAD_INPUT);
        item = maq_diag_at(diag, 0);
        if (!memmem(item->msg.ptr, item->msg.len, kinds[i].refused, strlen(kinds[i].refused)))
            fail_msg("%zu: %.*s", i, (int)item->msg.len, item->msg.ptr);
        maq_diag_free(diag);
        free(text);
    }
    maq_risk_replayed_free(clean);
}

/* A rank of which nothing was recorded is said; of rows that cannot be used in great number the first is. */
static void test_beyond_mending(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_replayed *r = NULL;
    assert_int_equal(replay(&r, HEAD "0,0,0,forward-compute,0,0,5\n", "{dp_size: 2, pp_size: 1}", diag), MAQ_OK);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    assert_non_null(memmem(item->msg.ptr, item->msg.len, "1 rank without a record", 23));
    maq_risk_replayed_free(r);
    assert_int_equal(replay(&r, HEAD "0,0,0,forward-compute,0,0,5\n0,3,0,x,0,0,5\n0,4,0,x,0,0,5\n",
                            "{dp_size: 1, pp_size: 1}", diag),
                     MAQ_BAD_INPUT);
    item = maq_diag_at(diag, 1);
    assert_non_null(memmem(item->msg.ptr, item->msg.len, ":3: dp_rank is '3'", 18));
    maq_diag_free(diag);
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

/* --- dirt in the published traces --- */

/* One row with dirt of a kind at it; `back`: of a clock that was set back. */
static char *dirty_row(char *at, char *row, uint32_t kind, bool back)
{
    char *dur = strrchr(row, ',');
    switch (kind) {
    case 0:
        return at + sprintf(at, "%.*s,-26.94\n", (int)(dur - row), row);
    case 1:
        return at + sprintf(at, "%.*s,0\n", (int)(dur - row), row);
    case 2:
        return at + sprintf(at, "%s%s", row, row);
    case 3:
        return at + sprintf(at, "[rank3]:[W socket.cpp:697] [c10d] The client socket has failed\n%s", row);
    case 4: /* no row */
        return at;
    default: {
        *dur = '\0';
        char *start = strrchr(row, ',');
        return at + sprintf(at, "%.*s,%.1f,%s", (int)(start - row), row,
                            strtod(start + 1, NULL) + (back ? -3600e6 : 3600e6), dur + 1);
    }
    }
}

#define KINDS 6u

/* The rows of a trace: row `only` with dirt of kind `seed`, or, where that is 0, one of `every` with one kind after the other. */
static char *soil(const char *packed, uint32_t only, uint32_t every, uint32_t seed)
{
    gzFile in = gzopen(packed, "rb");
    char *text = malloc(16 << 20), *at = text, row[512];
    assert_true(in && text);
    for (uint32_t i = 0, kind = seed; gzgets(in, row, sizeof row); i++) {
        uint32_t h = (i + 1) * 2654435761u + seed * 40503u;
        h ^= h >> 15;
        bool picked = only > 0 ? i == only : i > 0 && (h * 2246822519u >> 8) % every == 0;
        at = picked ? dirty_row(at, row, kind++ % KINDS, (only > 0 ? only : seed + 1) % 2 == 1)
                    : at + sprintf(at, "%s", row);
    }
    gzclose_r(in);
    return text;
}

static struct maq_risk_replayed *replay_soiled(const char *text, const char *meta, struct maq_diag *diag)
{
    struct maq_risk_replayed *r = NULL;
    char path[64];
    write_recorded(path, text);
    assert_int_equal(maq_risk_replay(&r, path, meta, diag), MAQ_OK);
    unlink(path);
    return r;
}

/* Dirt in one of ten thousand rows moves no figure of the job by more than one part in ten thousand. */
static void test_soiled(void **state)
{
    const char *shared = getenv("MAQ_SHARED");
    char ops[512], meta[512];
    if (!shared)
        skip();
    snprintf(ops, sizeof ops, "%s/data/variability/stragglers/ops-AR.csv.gz", shared);
    snprintf(meta, sizeof meta, "%s/data/variability/stragglers/meta-AR.yaml", shared);
    struct maq_risk_replayed *clean = NULL, *r = NULL;
    assert_int_equal(maq_risk_replay(&clean, ops, meta, NULL), MAQ_OK);
    for (uint32_t seed = 1; seed <= 3; seed++) {
        struct maq_diag *diag = maq_diag_new();
        char *text = soil(ops, 0, 10000, seed);
        r = replay_soiled(text, meta, diag);
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        print_message("# %.*s\n", (int)item->msg.len, item->msg.ptr);
        const double figures[][2] = {
            {r->step_mean_s, clean->step_mean_s},   {r->no_launch_delay_s, clean->no_launch_delay_s},
            {r->ideal_s, clean->ideal_s},           {r->slowdown, clean->slowdown},
            {r->worker_share, clean->worker_share}, {r->last_stage_share, clean->last_stage_share}};
        assert_int_equal(r->n_steps, clean->n_steps);
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
            if (!(fabs(figures[i][0] / figures[i][1] - 1) < 1e-4))
                fail_msg("seed %u, figure %zu: %g for %g", seed, i, figures[i][0], figures[i][1]);
        maq_risk_replayed_free(r);
        maq_diag_free(diag);
        free(text);
    }
    maq_risk_replayed_free(clean);
}

/* Seconds of a step, of which the shares are small differences. */
static void times_of(double out[5], const struct maq_risk_replayed *r)
{
    double loss = r->no_launch_delay_s - r->ideal_s;
    out[0] = r->step_mean_s;
    out[1] = r->no_launch_delay_s;
    out[2] = r->ideal_s;
    out[3] = r->no_launch_delay_s - r->worker_share * loss;
    out[4] = r->no_launch_delay_s - r->last_stage_share * loss;
}

#define ST_ROWS 6784u
#define SOILED 90u

/* The smaller trace has fewer than ten thousand rows: one of them, of any kind of dirt, moves no time by more than its share of the rows. */
static void test_soiled_once(void **state)
{
    const char *shared = getenv("MAQ_SHARED");
    char ops[512], meta[512];
    if (!shared)
        skip();
    snprintf(ops, sizeof ops, "%s/data/variability/stragglers/ops-ST.csv.gz", shared);
    snprintf(meta, sizeof meta, "%s/data/variability/stragglers/meta-ST.yaml", shared);
    struct maq_risk_replayed *clean = NULL;
    assert_int_equal(maq_risk_replay(&clean, ops, meta, NULL), MAQ_OK);
    double was[5], is[5], most = 0;
    times_of(was, clean);
    for (uint32_t i = 0, row = 17; i < SOILED; i++, row = (row + 2971) % ST_ROWS + 1) {
        struct maq_diag *diag = maq_diag_new();
        char *text = soil(ops, row, 0, i);
        struct maq_risk_replayed *r = replay_soiled(text, meta, diag);
        assert_int_equal(r->n_steps, clean->n_steps);
        times_of(is, r);
        for (size_t k = 0; k < 5; k++) {
            double moved = fabs(is[k] / was[k] - 1);
            most = fmax(most, moved);
            if (!(moved < 1.0 / ST_ROWS))
                fail_msg("row %u, kind %u, time %zu: %g for %g", row, i % KINDS, k, is[k], was[k]);
        }
        maq_risk_replayed_free(r);
        maq_diag_free(diag);
        free(text);
    }
    print_message("# one of %u rows moves times by %.1e at most\n", ST_ROWS, most);
    maq_risk_replayed_free(clean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_no_time),        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_dirt),        cmocka_unit_test(test_beyond_mending), cmocka_unit_test(test_published),
        cmocka_unit_test(test_soiled_once), cmocka_unit_test(test_soiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
