/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_trace.c - the trace of a training step, read back as Chrome JSON with jansson, against the graph it was drawn
 * from; and the memory timeline against the predicted peak.
 */
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

#include "base/check.h"
#include "base/str.h"
#include "maquette/maquette.h"

/* --- helpers ------------------------------------------------------------------------------------------------ */

struct rig {
    struct maq_loaded_job *box;
    struct maq_train_graph graph;
    struct maq_train_memory memory;
    double *finish, makespan;
    json_t *trace;
};

static const char *const jobs[] = {
    "model: gpt2\ncluster: h100-sxm:1\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {tp: 2, pp: 4, schedule: "
    "gpipe}\nworkload: {gbs: 8}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {pp: 4, recompute: full}\nworkload: "
    "{gbs: 16}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8 x 2\nplan: {tp: 4, pp: 4, vp: 2, cp: "
    "1}\nworkload: {gbs: 8}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {pp: 4, schedule: zb-h1}\nworkload: "
    "{gbs: 16}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {pp: 4, schedule: zb-v}\nworkload: "
    "{gbs: 16}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {pp: 4, schedule: "
    "dualpipe}\nworkload: {gbs: 16}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {pp: 4, schedule: "
    "dualpipe-v}\nworkload: {gbs: 16}\n",
    "model: {base: llama-3.1-8b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {zero: "
    "optim_grads_params}\nworkload: {gbs: 16}\n",
    "model: {base: mixtral-8x7b, num_hidden_layers: 8}\ncluster: h100-sxm:8\nplan: {tp: 2, pp: 2, ep: 2}\nworkload: "
    "{gbs: 8, seq: 4096}\n",
};

static void scratch_name(char buf[64], const char *end)
{
    snprintf(buf, 64, "/tmp/maq-train-trace-%ld%s", (long)getpid(), end);
}

static void rig_open(struct rig *rig, const char *yaml)
{
    struct maq_diag *diag = maq_diag_new();
    char path[64];
    *rig = (struct rig){0};
    if (maq_job_parse(&rig->box, "job", maq_str_of(yaml), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", yaml, maq_diag_format(diag, 0, false));
    const struct maq_job *job = maq_job_get(rig->box);
    assert_int_equal(maq_train_graph(&rig->graph, job, diag), MAQ_OK);
    assert_int_equal(maq_train_memory(&rig->memory, job, diag), MAQ_OK);
    rig->finish = calloc(rig->graph.graph.n_nodes, sizeof *rig->finish);
    maq_engine_static(&rig->makespan, rig->finish, &rig->graph.graph, 1, rig->graph.dur_ns);
    scratch_name(path, ".json");
    assert_int_equal(maq_trace_train(path, &rig->graph, rig->finish, &rig->memory, diag), MAQ_OK);
    rig->trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(rig->trace);
    unlink(path);
    maq_diag_free(diag);
}

static void rig_close(struct rig *rig)
{
    json_decref(rig->trace);
    free(rig->finish);
    maq_train_memory_free(&rig->memory);
    maq_train_graph_free(&rig->graph);
    maq_job_free(rig->box);
}

static const json_t *events(const struct rig *rig)
{
    return json_object_get(rig->trace, "traceEvents");
}

static bool is_phase(const json_t *e, const char *phase)
{
    return strcmp(json_string_value(json_object_get(e, "ph")), phase) == 0;
}

static const char *name_of(const json_t *e)
{
    return json_string_value(json_object_get(e, "name"));
}

static double number(const json_t *map, const char *key)
{
    return json_number_value(json_object_get(map, key));
}

/* --- tests -------------------------------------------------------------------------------------------------- */

/* Each node that takes time is one slice, of its own length, and no slice ends after the step. */
static void check_slices(const struct rig *rig)
{
    const struct maq_graph *g = &rig->graph.graph;
    size_t drawn = 0, seen = 0, i;
    double length = 0, shown = 0, last = 0;
    json_t *e;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        if (rig->graph.dur_ns[g->item[v]] > 0) {
            drawn++;
            length += rig->finish[v] - maq_graph_start(g, rig->finish, v);
        }
    json_array_foreach(events(rig), i, e)
    {
        if (!is_phase(e, "X"))
            continue;
        last = fmax(last, number(e, "ts") + number(e, "dur"));
        if (!json_object_get(json_object_get(e, "args"), "operator"))
            continue;
        seen++;
        shown += number(e, "dur");
        assert_true(json_string_length(json_object_get(json_object_get(e, "args"), "operator")) > 3);
    }
    assert_int_equal(seen, drawn);
    assert_true(fabs(shown * 1e3 - length) <= 1e-6 * length);
    assert_true(fabs(last * 1e3 - rig->makespan) <= 1e-6 * rig->makespan);
}

/* Slices of one thread nest. */
static void check_nesting(const struct rig *rig)
{
    json_t *e, *f;
    size_t i, j;
    json_array_foreach(events(rig), i, e)
    {
        if (!is_phase(e, "X") || i % 41 != 0) /* a sample: it is quadratic */
            continue;
        json_array_foreach(events(rig), j, f)
        {
            if (!is_phase(f, "X") || number(e, "pid") != number(f, "pid") || number(e, "tid") != number(f, "tid"))
                continue;
            double a = number(e, "ts"), b = a + number(e, "dur"), c = number(f, "ts"), d = c + number(f, "dur");
            bool apart = b <= c + 1e-3 || d <= a + 1e-3,
                 inside = (a >= c - 1e-3 && b <= d + 1e-3) || (c >= a - 1e-3 && d <= b + 1e-3);
            assert_true(apart || inside);
        }
    }
}

/* An arrow for every transfer to another stage, and it does not go back in time. */
static void check_arrows(const struct rig *rig)
{
    const struct maq_graph *g = &rig->graph.graph;
    size_t transfers = 0, starts = 0, ends = 0, i;
    json_t *e;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        transfers += g->stream[v] % MAQ_STREAM_COUNT == MAQ_STREAM_PP && rig->graph.dur_ns[g->item[v]] > 0;
    json_array_foreach(events(rig), i, e)
    {
        starts += is_phase(e, "s");
        ends += is_phase(e, "f");
    }
    assert_int_equal(starts, transfers);
    assert_int_equal(ends, transfers);
}

static void check_names(const struct rig *rig)
{
    size_t processes = 0, forwards = 0, layers = 0, compute = 0, i;
    json_t *e;
    json_array_foreach(events(rig), i, e)
    {
        const char *name = name_of(e), *of = json_string_value(json_object_get(json_object_get(e, "args"), "name"));
        processes += strcmp(name, "process_name") == 0 && strncmp(of, "stage ", 6) == 0 && strstr(of, " rank") != NULL;
        compute += strcmp(name, "thread_name") == 0 && strcmp(of, "compute") == 0;
        forwards += strcmp(name, "forward 0") == 0;
        layers += strncmp(name, "layer ", 6) == 0;
    }
    assert_int_equal(processes, rig->graph.graph.n_classes);
    assert_int_equal(compute, rig->graph.graph.n_classes);
    assert_true(forwards >= rig->graph.graph.n_classes);
    assert_true(layers > 0);
}

static void test_every_schedule(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct rig rig;
        rig_open(&rig, jobs[i]);
        check_slices(&rig);
        check_arrows(&rig);
        check_names(&rig);
        if (json_array_size(events(&rig)) < 8000)
            check_nesting(&rig);
        rig_close(&rig);
    }
}

/* The highest point of the timeline is the peak of the prediction; a step begins and ends with nothing. */
static void test_memory_timeline(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct rig rig;
        struct maq_train_result *r;
        rig_open(&rig, jobs[i]);
        assert_int_equal(maq_train_predict(&r, maq_job_get(rig.box), NULL), MAQ_OK);
        assert_int_equal(rig.memory.n_stages, r->n_stages);
        for (uint32_t s = 0; s < r->n_stages; s++) {
            double peak = 0;
            int64_t t = 0;
            uint32_t first = rig.memory.first[s], end = rig.memory.first[s + 1];
            assert_true(end > first);
            for (uint32_t k = first; k < end; k++) {
                const struct maq_train_memory_point *p = &rig.memory.points[k];
                assert_true(p->t_ns >= t && (double)p->t_ns <= rig.makespan + 1);
                t = p->t_ns;
                peak = fmax(peak, p->bytes);
            }
            assert_true(rig.memory.points[end - 1].bytes <= 1e-9 * peak + 1);
            if (!(fabs(peak - r->stages[s].bytes[MAQ_MEM_ACTIVATIONS]) <= 1e-9 * peak))
                fail_msg("job %zu stage %u: peak %.10g, predicted %.10g", i, s, peak,
                         r->stages[s].bytes[MAQ_MEM_ACTIVATIONS]);
        }
        maq_train_result_free(r);
        rig_close(&rig);
    }
}

static void test_formats(void **state)
{
    static const char *const ends[] = {".pftrace", ".pftrace.gz", ".json.gz"};
    static const unsigned char magic[][2] = {{0x0a, 0}, {0x1f, 0x8b}, {0x1f, 0x8b}};
    struct rig rig;
    rig_open(&rig, jobs[2]);
    for (size_t i = 0; i < MAQ_COUNT(ends); i++) {
        char path[64];
        unsigned char first[2] = {0};
        scratch_name(path, ends[i]);
        assert_int_equal(maq_trace_train(path, &rig.graph, rig.finish, NULL, NULL), MAQ_OK);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fread(first, 1, 2, f), 2);
        fclose(f);
        unlink(path);
        assert_int_equal(first[0], magic[i][0]);
        if (magic[i][1])
            assert_int_equal(first[1], magic[i][1]);
    }
    rig_close(&rig);
}

static void test_cannot_write(void **state)
{
    struct rig rig;
    struct maq_diag *diag = maq_diag_new();
    rig_open(&rig, jobs[2]);
    assert_int_equal(maq_trace_train("/nonexistent/folder/x", &rig.graph, rig.finish, NULL, diag), MAQ_IO);
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(maq_trace_train("/dev/full", &rig.graph, rig.finish, &rig.memory, diag), MAQ_IO);
    assert_true(maq_diag_errors(diag) >= 1);
    maq_diag_free(diag);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_schedule),
        cmocka_unit_test(test_memory_timeline),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
