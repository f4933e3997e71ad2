/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that a program calls: reports in both forms, results, faults with their hints, and that nothing is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after */
#include <cmocka.h>

#include "cli/call.h"
#include "cli/cli.h"

static const char *const train[] = {"train", "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--tp=2", "--gbs=64"};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum maq_status call(struct cli_called **out, const char *const *words, size_t n, const char *document,
                            struct maq_diag *diag)
{
    const struct cli_call_opts opts = {.document = document};
    return cli_call(out, words, n, &opts, diag);
}

static void a_report_has_both_forms(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(call(&called, train, COUNT(train), NULL, diag), MAQ_OK);
    maq_diag_free(diag); /* before what it was said of */
    assert_int_equal(called->status, MAQ_OK);
    assert_non_null(strstr(called->text, "llama-3.1-8b"));
    assert_non_null(strstr(called->json, "\"maquette.train/1\""));
    assert_int_equal(called->train->n_stages, 1);
    assert_int_equal(maq_job_get(called->job)->plan.tp, 2);
    assert_null(called->search);
    cli_called_free(called);
}

static void the_answer_may_be_no(void **state)
{
    static const char *const words[] = {"train", "--model=llama-3.1-70b", "--cluster=h100-sxm:8", "--gbs=8"};
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(call(&called, words, COUNT(words), NULL, diag), MAQ_NO);
    assert_false(called->train->fits);
    cli_called_free(called);
    maq_diag_free(diag);
}

static void a_document_stands_for_a_file(void **state)
{
    static const char *const words[] = {"train", "-", "--tp=4"};
    static const char text[] = "model: llama-3.1-8b\ncluster: h100-sxm:8\nworkload: {gbs: 64}\n";
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(call(&called, words, COUNT(words), text, diag), MAQ_OK);
    assert_int_equal(maq_job_get(called->job)->plan.tp, 4);
    cli_called_free(called);
    assert_int_equal(
        call(&called, words, COUNT(words), "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tpp: 2}\n", diag),
        MAQ_BAD_INPUT);
    assert_null(called);
    const struct maq_diag_item *item = maq_diag_at(diag, maq_diag_count(diag) - 1);
    assert_int_equal(maq_diag_place(diag, item->at).line, 3);
    maq_diag_free(diag);
}

/* Of a deployment, whose job is read twice. */
static void a_document_stands_for_a_deployment(void **state)
{
    static const char *const words[] = {"serve", "-", "--num-requests=20"};
    static const char text[] = "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2}\nserve: {rate: 4}\n";
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(call(&called, words, COUNT(words), text, diag), MAQ_OK);
    assert_int_equal(called->served->n_requests, 20);
    assert_int_equal(maq_job_get(called->job)->plan.tp, 2);
    cli_called_free(called);
    maq_diag_free(diag);
}

static void searches_and_requests_are_kept(void **state)
{
    static const char *const plan[] = {"plan", "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--gbs=64",
                                       "--seq=4096"};
    static const char *const serve[] = {"serve", "--model=llama-3.1-8b", "--cluster=h100-sxm:1", "--rate=4",
                                        "--num-requests=50"};
    static const char *const deploy[] = {"serve",
                                         "plan",
                                         "--model=llama-3.1-8b",
                                         "--cluster=h100-sxm:1",
                                         "--num-requests=30",
                                         "--isl=256",
                                         "--osl=16",
                                         "--no-front",
                                         "--no-pools"};
    static const char *const risk[] = {"risk",     "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--tp=2",
                                       "--gbs=64", "--no-sources"};
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(call(&called, plan, COUNT(plan), NULL, diag), MAQ_OK);
    assert_true(called->search->n_plans > 0);
    cli_called_free(called);
    assert_int_equal(call(&called, serve, COUNT(serve), NULL, diag), MAQ_OK);
    assert_int_equal(called->served->n_requests, 50);
    assert_int_equal(maq_requests_get(called->requests)->n, 50);
    cli_called_free(called);
    assert_int_equal(call(&called, deploy, COUNT(deploy), NULL, diag), MAQ_OK);
    assert_non_null(called->served);
    cli_called_free(called);
    assert_int_equal(call(&called, risk, COUNT(risk), NULL, diag), MAQ_OK);
    assert_non_null(strstr(called->json, "maquette.risk.step"));
    cli_called_free(called);
    maq_diag_free(diag);
}

/* What a terminal would show. */
static void note_line(void *user, const char *line)
{
    uint32_t *lines = user;
    *lines += line[0] != '\0';
}

static void a_page_and_progress_come_when_asked_for(void **state)
{
    static const char *const plan[] = {"plan", "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--gbs=64",
                                       "--seq=4096"};
    uint32_t lines = 0;
    const struct cli_call_opts opts = {.page = true, .progress = note_line, .user = &lines};
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(cli_call(&called, plan, COUNT(plan), &opts, diag), MAQ_OK);
    assert_non_null(strstr(called->page, "maquette.plan/1"));
    assert_true(lines > 0);
    cli_called_free(called);
    assert_int_equal(cli_call(&called, train, COUNT(train), &opts, diag), MAQ_OK);
    assert_non_null(strstr(called->page, "<main>"));
    cli_called_free(called);
    assert_int_equal(call(&called, train, COUNT(train), NULL, diag), MAQ_OK);
    assert_null(called->page);
    cli_called_free(called);
    maq_diag_free(diag);
}

/* Alone, behind a router, in pools, while a rate is looked for: it ends at once, and says so. */
static void a_deployment_is_stopped(void **state)
{
    static const char *const more[][3] = {{"--rate=4", "", ""},
                                          {"--rate=4", "--replicas=2", ""},
                                          {"--rate=4", "--prefill-replicas=1", ""},
                                          {"--find-rate", "--slo=ttft_p95<500ms", ""}};
    const volatile sig_atomic_t stop = 1;
    const struct cli_call_opts opts = {.stop = &stop, .page = true};
    for (size_t i = 0; i < COUNT(more); i++) {
        const char *words[16] = {"serve", "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--num-requests=2000"};
        size_t n = 4;
        for (size_t k = 0; k < COUNT(more[i]) && *more[i][k]; k++)
            words[n++] = more[i][k];
        struct maq_diag *diag = maq_diag_new();
        struct cli_called *called;
        assert_int_equal(cli_call(&called, words, n, &opts, diag), MAQ_NO);
        assert_null(called);
        assert_int_equal(maq_diag_at(diag, maq_diag_count(diag) - 1)->code, 1593);
        maq_diag_free(diag);
    }
}

static void only_the_job_is_read_when_only_that_is_asked(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct cli_called *called;
    assert_int_equal(cli_call_open(&called, train, COUNT(train), NULL, diag), MAQ_OK);
    assert_null(called->json);
    assert_int_equal(maq_job_get(called->job)->plan.tp, 2);
    assert_int_equal(maq_job_get(called->job)->plan.dp, 0);
    cli_called_free(called);
    maq_diag_free(diag);
}

static void faults_are_those_of_the_command_line(void **state)
{
    static const struct {
        const char *words[4];
        size_t n;
        const char *hint;
    } wrong[] = {
        {{"train", "--cluster=h100-sxm:8", "--tpp=2"}, 3, "--tp"},
        {{"train", "--model=llama-3.1-8b", "--cluster=h100-sxm:8", "--json"}, 4, "JSON"},
        {{"trian"}, 1, "train"},
        {{"run", "--", "true"}, 3, ""},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct cli_called *called;
        assert_int_equal(call(&called, wrong[i].words, wrong[i].n, NULL, diag), MAQ_USAGE);
        assert_null(called);
        assert_int_equal(maq_diag_errors(diag), 1);
        const struct maq_str hint = maq_diag_at(diag, 0)->hint;
        char copy[256] = "";
        memcpy(copy, hint.ptr ? hint.ptr : "", hint.len < 255 ? hint.len : 255);
        assert_non_null(strstr(copy, wrong[i].hint));
        maq_diag_free(diag);
    }
}

static void options_are_those_of_help(void **state)
{
    struct cli_call_option option;
    bool model = false, tp = false;
    for (size_t i = 0; cli_call_option(&option, "train", i); i++) {
        model |= strcmp(option.name, "model") == 0;
        tp |= strcmp(option.aliases, "tp") == 0 && strcmp(option.otherwise, "1") == 0;
        assert_string_not_equal(option.name, "json");
        assert_non_null(option.doc);
    }
    assert_true(model && tp);
    assert_true(cli_call_option(&option, "serve plan", 0));
    assert_false(cli_call_option(&option, "run", 0));
    assert_false(cli_call_option(&option, "trian", 0));
}

/* What is left, when the rest takes as long as what is done; nothing before that means something. */
static void time_left(void **state)
{
    static const struct {
        double elapsed, done, all;
        const char *says;
    } cases[] = {{0.5, 50, 100, ""},
                 {10, 1, 100, ""},
                 {10, 100, 100, ""},
                 {10, 0, 0, ""},
                 {10, 50, 100, ", about 10 s left"},
                 {30, 10, 100, ", about 4 min left"},
                 {3600, 20, 100, ", about 4 h left"},
                 {1e9, 20, 100, ", about 999 h left"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char left[32];
        cli_time_left(left, cases[i].elapsed, cases[i].done, cases[i].all);
        assert_string_equal(left, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_has_both_forms),
        cmocka_unit_test(the_answer_may_be_no),
        cmocka_unit_test(a_document_stands_for_a_file),
        cmocka_unit_test(a_document_stands_for_a_deployment),
        cmocka_unit_test(searches_and_requests_are_kept),
        cmocka_unit_test(a_page_and_progress_come_when_asked_for),
        cmocka_unit_test(a_deployment_is_stopped),
        cmocka_unit_test(only_the_job_is_read_when_only_that_is_asked),
        cmocka_unit_test(faults_are_those_of_the_command_line),
        cmocka_unit_test(options_are_those_of_help),
        cmocka_unit_test(time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
