/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report.c - reports of a training step and of the catalogue: what is in the text, what is in the JSON, that both say the same,
 * and that docs/diagnostics.md lists every code.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/text.h"
#include "capture/codes.h"
#include "capture/import/codes.h"
#include "cli/codes.h"
#include "cluster/codes.h"
#include "cost/codes.h"
#include "effort.h"
#include "launch/codes.h"
#include "maquette/maquette.h"
#include "measure/codes.h"
#include "model/codes.h"
#include "plan/codes.h"
#include "plan/mixed/codes.h"
#include "planner/codes.h"
#include "planner/external/codes.h"
#include "planner/stages/codes.h"
#include "post_training/codes.h"
#include "report/codes.h"
#include "report/page.h"
#include "report/timeline/codes.h"
#include "risk/codes.h"
#include "serve/codes.h"
#if __has_include("validate/codes.h")
#include "validate/codes.h"
#endif

/* --- helpers ------------------------------------------------------------------------------------------------ */

/* A job from YAML, its result and what owns it. */
struct rig {
    struct maq_diag *diag;
    struct maq_loaded_job *box;
    struct maq_train_result *r;
};

static void rig_open(struct rig *rig, const char *yaml)
{
    *rig = (struct rig){.diag = maq_diag_new()};
    enum maq_status status = maq_job_parse(&rig->box, "job", maq_str_of(yaml), NULL, 0, rig->diag);
    if (status != MAQ_OK) {
        char *text = maq_diag_format(rig->diag, 0, false);
        fail_msg("%s\n%s", yaml, text);
    }
    assert_int_equal(maq_train_predict(&rig->r, maq_job_get(rig->box), rig->diag), MAQ_OK);
}

static void rig_close(struct rig *rig)
{
    maq_train_result_free(rig->r);
    maq_job_free(rig->box);
    maq_diag_free(rig->diag);
}

static char *text_of(const struct rig *rig, const struct maq_report_opts *opts)
{
    char *text = NULL;
    assert_int_equal(maq_report_train_text(&text, rig->r, opts, rig->diag), MAQ_OK);
    return text;
}

static json_t *json_of(const struct rig *rig, const struct maq_report_opts *opts)
{
    char *text = NULL;
    assert_int_equal(maq_report_train_json(&text, rig->r, opts, rig->diag), MAQ_OK);
    json_t *d = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(d);
    free(text);
    return d;
}

static double number(const json_t *map, const char *key)
{
    const json_t *v = json_object_get(map, key);
    if (!json_is_number(v))
        fail_msg("'%s' is no number", key);
    return json_number_value(v);
}

static void assert_close(double a, double b, double rtol)
{
    if (!(fabs(a - b) <= rtol * fmax(fabs(a), fabs(b)) + 1e-12))
        fail_msg("%.15g is not close to %.15g", a, b);
}

static const char *const jobs[] = {
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2, zero: optim}\n",
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {zero: optim_grads_params, recompute: full}\nworkload: {gbs: "
    "64}\n",
    "model: llama-3.1-70b\ncluster: h100-sxm:8 x 8, rail 400G\nplan: {tp: 4, pp: 4, vp: 5, cp: 2, recompute: "
    "selective, "
    "recompute_modules: [core_attn, mlp]}\nworkload: {gbs: 64}\n",
    "model: mixtral-8x7b\ncluster: a100-80gb:8 x 4\nplan: {tp: 2, pp: 4, ep: 4, layout: '8,8,8,8'}\nworkload: {gbs: "
    "32, seq: 4096}\n",
    "model: deepseek-v3\ncluster: h800:8 x 64\nplan: {pp: 16, ep: 32, layout: balanced, schedule: dualpipe, precision: "
    "fp8-blockwise, "
    "dispatcher: deepep}\nworkload: {gbs: 1024, seq: 4096}\n",
    "model: nemotron-h-8b\ncluster: h200:8\nplan: {tp: 8}\n",
    "model: gpt2\ncluster: v100-32gb:1\n",
    "model: llama-2-7b\ncluster: mi300x:8 + h100-sxm:8\nplan: {lora_rank: 16, mbs: 2}\nworkload: {length_mean: 700, "
    "packed: false}\n",
};

/* --- text --------------------------------------------------------------------------------------------------- */

static void assert_tidy(const char *text, uint32_t columns)
{
    struct maq_str rest = maq_str_of(text), line;
    assert_true(rest.len > 0 && text[rest.len - 1] == '\n');
    rest.len--;
    while (rest.ptr) {
        rest = maq_str_split(rest, '\n', &line);
        if (maq_text_cells(line) > columns)
            fail_msg("%zu columns: %.*s", maq_text_cells(line), (int)line.len, line.ptr);
        if (line.len > 0 && line.ptr[line.len - 1] == ' ')
            fail_msg("blank at the end: '%.*s'", (int)line.len, line.ptr);
        for (size_t i = 0; i < line.len; i++)
            assert_true((unsigned char)line.ptr[i] >= 0x20 && line.ptr[i] != 0x7f);
    }
}

static void test_text_is_tidy(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct rig rig;
        struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
        rig_open(&rig, jobs[i]);
        char *plain = text_of(&rig, NULL);
        opts.unicode = true;
        opts.explain = maq_job_explain(rig.box);
        char *fancy = text_of(&rig, &opts);
        assert_tidy(plain, 100);
        assert_tidy(fancy, 100);
        for (const char *c = plain; *c; c++)
            assert_true((unsigned char)*c < 0x80);
        assert_non_null(strstr(plain, "\nstep  "));
        assert_non_null(strstr(plain, "tokens/s, "));
        assert_non_null(strstr(plain, "MFU "));
        assert_non_null(strstr(plain, "\nWhere the step goes"));
        assert_non_null(strstr(plain, "\nMemory per GPU"));
        assert_non_null(strstr(plain, "\nCostliest operators"));
        assert_non_null(strstr(plain, "analytical"));
        assert_non_null(strstr(fancy, "\nSettings\n"));
        assert_non_null(strstr(fancy, "plan.tensor_model_parallel_size"));
        free(plain);
        free(fancy);
        free((void *)(uintptr_t)opts.explain);
        rig_close(&rig);
    }
}

static void test_colors_shift_nothing(void **state)
{
    struct rig rig;
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    rig_open(&rig, jobs[2]);
    char *plain = text_of(&rig, NULL);
    opts.color = true;
    char *colored = text_of(&rig, &opts), *to = colored;
    for (const char *c = colored; *c; c++) { /* without the escapes it is the same text */
        if (*c == '\x1b')
            c = strchr(c, 'm');
        else
            *to++ = *c;
    }
    *to = '\0';
    assert_string_equal(plain, colored);
    free(plain);
    free(colored);
    rig_close(&rig);
}

/* Three columns on a page of forty cells: `on` and `kept` give way. */
static char *narrow_table(bool wraps)
{
    static const struct maq_table_column columns[] = {
        {"on", false, true}, {"kept", false, true}, {"share", true, false}};
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    struct maq_page page;
    struct maq_table table;
    char *text = NULL;
    opts.columns = 40;
    maq_page_init(&page, &opts);
    maq_table_init(&table, columns, MAQ_COUNT(columns));
    table.wraps = wraps;
    maq_table_row(&table, MAQ_INK_PLAIN);
    maq_table_cell(&table, "a100-80gb tp4");
    maq_table_cell(&table, "layernorm+core_attn+mlp, bubble 12 %%, a_word_of_twenty_one_c");
    maq_table_cell(&table, "7 %%");
    maq_table_row(&table, MAQ_INK_PLAIN);
    maq_table_cell(&table, "t4");
    maq_table_cell(&table, "-");
    maq_table_cell(&table, "93 %%");
    maq_table_row(&table, MAQ_INK_PLAIN);
    maq_table_cell(&table, "l4"); /* and no more */
    maq_table_print(&page, &table, 2);
    maq_table_fini(&table);
    assert_int_equal(maq_page_finish(&text, &page, NULL), MAQ_OK);
    return text;
}

static void test_narrow_tables(void **state)
{
    char *cut = narrow_table(false), *wrapped = narrow_table(true);
    assert_tidy(cut, 40);
    assert_tidy(wrapped, 40);
    assert_string_equal(cut, "  on             kept              share\n"
                             "  a100-80gb tp4  layernorm+cor...    7 %\n"
                             "  t4             -                  93 %\n"
                             "  l4\n");
    assert_string_equal(wrapped, "  on             kept              share\n"
                                 "  a100-80gb tp4  layernorm+          7 %\n"
                                 "                 core_attn+mlp,\n"
                                 "                 bubble 12 %,\n"
                                 "                 a_word_of_twenty\n"
                                 "                 _one_c\n"
                                 "  t4             -                  93 %\n"
                                 "  l4\n");
    free(cut);
    free(wrapped);
}

static void test_equal_stages_share_a_row(void **state)
{
    struct rig rig;
    rig_open(&rig, jobs[2]);
    for (uint32_t s = 1; s < rig.r->n_stages; s++)
        rig.r->stages[s] = rig.r->stages[1];
    char *text = text_of(&rig, NULL);
    assert_non_null(strstr(text, "\n  0 "));
    assert_non_null(strstr(text, "\n  1-3 "));
    free(text);
    rig_close(&rig);
}

static void test_many_stages_leave_out_the_middle(void **state)
{
    struct rig rig;
    rig_open(&rig, jobs[2]);
    struct maq_stage_result stages[64];
    for (uint32_t s = 0; s < 64; s++) {
        stages[s] = rig.r->stages[0];
        stages[s].bytes[MAQ_MEM_ACTIVATIONS] += s * 1e8;
    }
    struct maq_train_result r = *rig.r;
    r.n_stages = 64;
    r.stages = stages;
    r.worst_stage = 33;
    char *text = NULL;
    assert_int_equal(maq_report_train_text(&text, &r, NULL, NULL), MAQ_OK);
    assert_non_null(strstr(text, "\n  11 "));
    assert_null(strstr(text, "\n  32 "));
    assert_non_null(strstr(text, "\n  33 "));
    assert_non_null(strstr(text, "\n  63 "));
    assert_non_null(strstr(text, "rows between are not shown"));
    free(text);
    rig_close(&rig);
}

static void test_too_large(void **state)
{
    struct rig rig;
    rig_open(&rig, "model: llama-3.1-70b\ncluster: h100-sxm:8\nplan: {tp: 8, zero: no_shard}\n");
    assert_false(rig.r->fits);
    char advice[MAQ_ADVICE_BYTES];
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    opts.advice = maq_search_advice(advice, rig.box, rig.r);
    char *text = text_of(&rig, &opts);
    assert_non_null(strstr(text, "\ndoes not fit: stage 0 needs "));
    assert_non_null(strstr(text, "h100-sxm has 79.2 GiB"));
    assert_non_null(strstr(text, "\nlargest: optimizer "));
    assert_non_null(strstr(text, "no usual plan fits: maquette plan says what would\n"));
    free(text);
    json_t *d = json_of(&rig, &opts);
    assert_true(json_is_false(json_object_get(d, "fits")));
    assert_string_equal(json_string_value(json_object_get(d, "advice")), advice);
    json_decref(d);
    rig_close(&rig);
}

static void test_hostile_name(void **state)
{
    struct rig rig;
    rig_open(&rig, "name: \"a\\e[31mred\\u202e\\nline\"\nmodel: gpt2\ncluster: h100-sxm:1\n");
    char *text = text_of(&rig, NULL);
    assert_memory_equal(text, "a?[31mred?", 10);
    assert_tidy(text, 100);
    free(text);
    rig_close(&rig);
}

/* --- JSON --------------------------------------------------------------------------------------------------- */

static void check_json(const struct rig *rig)
{
    const struct maq_train_result *r = rig->r;
    json_t *d = json_of(rig, NULL), *stage, *value;
    const char *key;
    size_t i;
    assert_string_equal(json_string_value(json_object_get(d, "schema")), "maquette.train/1");
    assert_close(number(d, "step_time_s"), r->step_s, 1e-11);
    assert_close(number(d, "tokens_per_s"), r->tokens_per_s, 1e-11);
    assert_close(number(d, "mfu"), r->mfu, 1e-11);
    assert_int_equal(json_array_size(json_object_get(d, "stages")), r->n_stages);
    assert_int_equal(json_array_size(json_object_get(d, "operators")), r->n_ops);
    json_array_foreach(json_object_get(d, "stages"), i, stage)
    {
        double time = 0, bytes = 0;
        json_t *memory = json_object_get(stage, "memory");
        json_object_foreach(json_object_get(stage, "breakdown"), key, value) time += json_number_value(value);
        assert_close(time, r->step_s, 1e-9);
        for (int k = 0; k < MAQ_MEM_COUNT; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s_bytes", maq_mem_name((enum maq_mem_kind)k));
            bytes += number(memory, name);
        }
        assert_close(bytes, number(memory, "total_bytes"), 1e-8);
    }
    json_t *p = json_object_get(d, "provenance");
    assert_close(number(p, "measured_share") + number(p, "fitted_share") + number(p, "analytical_share"), 1, 1e-9);
    json_decref(d);
}

static void test_json_says_the_same(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct rig rig;
        rig_open(&rig, jobs[i]);
        check_json(&rig);
        rig_close(&rig);
    }
}

/* The plan and workload of a document, given back with the same model and cluster, are the same job. */
static void test_resolved_plan_is_a_job(void **state)
{
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct rig rig, again;
        rig_open(&rig, jobs[i]);
        json_t *d = json_of(&rig, NULL), *job = json_object_get(d, "job");
        struct maq_str rest = maq_str_of(jobs[i]), model, cluster;
        rest = maq_str_split(rest, '\n', &model);
        (void)maq_str_split(rest, '\n', &cluster);
        char *plan = json_dumps(json_object_get(job, "plan"), 0),
             *workload = json_dumps(json_object_get(job, "workload"), 0), *yaml;
        assert_true(asprintf(&yaml, "%.*s\n%.*s\nplan: %s\nworkload: %s\n", (int)model.len, model.ptr, (int)cluster.len,
                             cluster.ptr, plan, workload) > 0);
        rig_open(&again, yaml);
        assert_close(again.r->step_s, rig.r->step_s, 1e-15);
        for (uint32_t s = 0; s < rig.r->n_stages; s++)
            assert_close(again.r->stages[s].total_bytes, rig.r->stages[s].total_bytes, 1e-15);
        free(plan);
        free(workload);
        free(yaml);
        json_decref(d);
        rig_close(&rig);
        rig_close(&again);
    }
}

static void test_json_is_the_same_twice(void **state)
{
    struct rig a, b;
    char *one = NULL, *two = NULL;
    rig_open(&a, jobs[4]);
    rig_open(&b, jobs[4]);
    assert_int_equal(maq_report_train_json(&one, a.r, NULL, NULL), MAQ_OK);
    assert_int_equal(maq_report_train_json(&two, b.r, NULL, NULL), MAQ_OK);
    assert_string_equal(one, two);
    free(one);
    free(two);
    rig_close(&a);
    rig_close(&b);
}

static void test_json_extras(void **state)
{
    struct rig rig;
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    const struct maq_report_engine engine = {"static", 1.5, 10, 20};
    rig_open(&rig, jobs[0]);
    opts.engine = &engine;
    char *explain = maq_job_explain(rig.box);
    opts.explain = explain;
    json_t *d = json_of(&rig, &opts), *origins = json_object_get(d, "origins");
    assert_close(number(json_object_get(d, "engine"), "step_time_s"), 1.5, 1e-12);
    assert_string_equal(json_string_value(json_object_get(origins, "plan.tensor_model_parallel_size")), "document");
    assert_string_equal(json_string_value(json_object_get(origins, "plan.context_parallel_size")), "default");
    json_decref(d);
    rig.r->mfu = NAN;
    rig.r->bucket_s[0] = INFINITY;
    d = json_of(&rig, NULL);
    assert_true(json_is_null(json_object_get(d, "mfu")));
    json_decref(d);
    free(text_of(&rig, &opts));
    free(explain);
    rig_close(&rig);
}

/* --- without memory ------------------------------------------------------------------------------------------ */

static long allocations_left;

static bool gate(size_t bytes)
{
    return allocations_left-- > 0;
}

/* The n-th allocation fails, n = 0, 1, ... until the report comes out: a status, no crash, no leak. */
static void test_out_of_memory(void **state)
{
    struct rig rig;
    enum maq_status status = MAQ_NO_MEMORY;
    rig_open(&rig, jobs[2]);
    for (long n = 0; status != MAQ_OK; n++) {
        char *text = NULL;
        allocations_left = n;
        maq__set_alloc_gate(gate);
        status = maq_report_train_text(&text, rig.r, NULL, NULL);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || (status == MAQ_NO_MEMORY && !text));
        assert_true(n < 1000);
        free(text);
    }
    status = MAQ_NO_MEMORY;
    for (long n = 0; status != MAQ_OK; n++) {
        char *text = NULL;
        allocations_left = n;
        maq__set_alloc_gate(gate);
        status = maq_catalogue_show_text(&text, "deepseek-v3", NULL, NULL);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || !text);
        assert_true(n < 1000);
        free(text);
    }
    rig_close(&rig);
}

/* --- catalogue ---------------------------------------------------------------------------------------------- */

static void show_both(const char *what, const char *schema)
{
    char *text = NULL, *json = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_catalogue_show_text(&text, what, NULL, diag), MAQ_OK);
    assert_int_equal(maq_catalogue_show_json(&json, what, NULL, diag), MAQ_OK);
    assert_tidy(text, 100);
    json_t *d = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(d);
    assert_string_equal(json_string_value(json_object_get(d, "schema")), schema);
    assert_int_equal(maq_diag_errors(diag), 0);
    json_decref(d);
    free(text);
    free(json);
    maq_diag_free(diag);
}

static void test_show_everything(void **state)
{
    static const char *const one[] = {"maquette.model/1",     "maquette.gpu/1",     "maquette.fabric/1",
                                      "maquette.framework/1", "maquette.failure/1", "maquette.schedule/1"};
    static const char *const all[] = {"maquette.models/1",     "maquette.gpus/1",     "maquette.fabrics/1",
                                      "maquette.frameworks/1", "maquette.failures/1", "maquette.schedules/1"};
    for (int kind = 0; kind < MAQ_CATALOGUE_KIND_COUNT; kind++) {
        const char *name;
        size_t n = 0;
        show_both(maq_catalogue_kind_name((enum maq_catalogue_kind)kind), all[kind]);
        for (; (name = maq_catalogue_name((enum maq_catalogue_kind)kind, n)) != NULL; n += SANITIZED ? 4 : 1)
            show_both(name, one[kind]);
        assert_true(n >= 7);
    }
    show_both("H100", "maquette.gpu/1"); /* an alias, in capitals */
    show_both("1F1B", "maquette.schedule/1");
}

static void test_show_unknown(void **state)
{
    char *text = NULL, *path;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_catalogue_show_text(&text, "h100-sxmm", NULL, diag), MAQ_USAGE);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SHOW_UNKNOWN);
    assert_true(maq_str_is(maq_diag_at(diag, 0)->hint, "did you mean 'h100-sxm'?"));
    assert_int_equal(maq_catalogue_show_json(&text, "", NULL, diag), MAQ_USAGE);
    assert_int_equal(maq_catalogue_show_json(&text, "qqqqqqqqqqqqqqqqqqqqqqq", NULL, diag), MAQ_USAGE);
    assert_int_equal(maq_catalogue_show_json(&text, "/dev/null", NULL, diag), MAQ_BAD_INPUT); /* a file, but no model */
    assert_null(text);
    maq_diag_free(diag);
    assert_true(asprintf(&path, "%s/tests/data/hf/llama-3.1-8b",
                         getenv("MAQ_SOURCE_ROOT") ? getenv("MAQ_SOURCE_ROOT") : ".") > 0);
    show_both(path, "maquette.model/1");
    free(path);
}

static void test_option_words(void **state)
{
    struct maq_option option;
    size_t words = 0, i = 0;
    for (; maq_job_option("plan", i, &option); i++) {
        const char *const *w = maq_option_words("plan", i);
        words += w != NULL;
        if (strcmp(option.key, "pipeline_schedule") == 0)
            assert_string_equal(w[0], "auto");
        if (strcmp(option.key, "tensor_model_parallel_size") == 0)
            assert_null(w);
        if (strcmp(option.key, "fused_kernels") == 0)
            assert_string_equal(w[1], "true");
    }
    assert_true(words > 10);
    assert_int_equal(maq_job_options("plan"), i);
    assert_false(maq_job_option("workload", maq_job_options("workload"), &option));
    assert_null(maq_option_words("plan", i));
    assert_null(maq_option_words("nothing", 0));
}

/* --- docs/diagnostics.md ------------------------------------------------------------------------------------ */

static const struct code_row {
    unsigned code;
    const char *text;
} code_rows[] = {
#define ROW(name, code, text) {code, text},
    MAQ_CODE_LIST_SPEC(ROW) MAQ_CODE_LIST_MODEL(ROW) MAQ_CODE_LIST_CLUSTER(ROW) MAQ_CODE_LIST_PLAN(ROW)
#ifdef MAQ_CODE_LIST_VALIDATE
        MAQ_CODE_LIST_VALIDATE(ROW)
#endif
            MAQ_CODE_LIST_COST(ROW) MAQ_CODE_LIST_PROFILE(ROW) MAQ_CODE_LIST_TRACE(ROW) MAQ_CODE_LIST_CLI(ROW)
                MAQ_CODE_LIST_REPORT(ROW) MAQ_CODE_LIST_POST_TRAINING(ROW) MAQ_CODE_LIST_SEARCH(ROW)
                    MAQ_CODE_LIST_MIXED(ROW) MAQ_CODE_LIST_STAGES(ROW) MAQ_CODE_LIST_RISK(ROW) MAQ_CODE_LIST_SLICES(ROW)
                        MAQ_CODE_LIST_CAPTURE(ROW) MAQ_CODE_LIST_IMPORT(ROW) MAQ_CODE_LIST_LAUNCH(ROW)
                            MAQ_CODE_LIST_SERVE(ROW)
#undef ROW
};

static char *read_doc(void)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    char *path, *text = calloc(1, 1 << 20);
    assert_true(asprintf(&path, "%s/docs/diagnostics.md", root ? root : ".") > 0);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    free(path);
    return text;
}

static void test_every_code_is_documented(void **state)
{
    char *doc = read_doc();
    size_t in_doc = 0, not_built = 0;
    for (size_t i = 0; i < MAQ_COUNT(code_rows); i++) {
        char *row;
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(code_rows[i].code, code_rows[j].code);
        assert_true(asprintf(&row, "\n| %u | %s | ", code_rows[i].code, code_rows[i].text) > 0);
        if (!strstr(doc, row))
            fail_msg("docs/diagnostics.md lacks the row%s", row);
        free(row);
    }
    for (const char *at = doc; (at = strstr(at, "\n| ")) != NULL; at++) {
        bool row = at[3] >= '1' && at[3] <= '9' && at[4] >= '0' && at[4] <= '9' && at[5] >= '0' && at[5] <= '9' &&
                   at[7] == ' ';
        in_doc += row;
#ifndef MAQ_CODE_LIST_VALIDATE
        not_built += row && strncmp(at + 3, "155", 3) == 0;
#endif
    }
    assert_int_equal(in_doc - not_built, MAQ_COUNT(code_rows));
    free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_tidy),
        cmocka_unit_test(test_colors_shift_nothing),
        cmocka_unit_test(test_narrow_tables),
        cmocka_unit_test(test_equal_stages_share_a_row),
        cmocka_unit_test(test_many_stages_leave_out_the_middle),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_hostile_name),
        cmocka_unit_test(test_json_says_the_same),
        cmocka_unit_test(test_resolved_plan_is_a_job),
        cmocka_unit_test(test_json_is_the_same_twice),
        cmocka_unit_test(test_json_extras),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_show_everything),
        cmocka_unit_test(test_show_unknown),
        cmocka_unit_test(test_option_words),
        cmocka_unit_test(test_every_code_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
