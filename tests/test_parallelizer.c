/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parallelizer.c - parallelizers from outside: a shared object, a program, and everything that a program can do wrong. A fault is told
 * with its own code, and nothing that was started is left running.
 *
 * maq-test: threads, maq-test: long
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "maquette/report.h"
#include "planner/external/codes.h"
#include "planner/external/search.h"

#define JOB                                                                                                            \
    "{model: {base: gpt2, num_hidden_layers: 4}, workload: {seq: 512, gbs: 8},"                                        \
    " cluster: 'v100-16gb:2 + t4:2', plan: {mbs: 1, cp: 1, ep: 1, precision: fp16}}"

static char program[2048], example[2048], object[2048];

static int find_files(void **state)
{
    const char *source = getenv("MAQ_SOURCE_ROOT"), *build = getenv("MAQ_BUILD_ROOT");
    if (!source || !build)
        return -1;
    snprintf(program, sizeof program, "%s/tests/parallelizer/faulty.py", source);
    snprintf(example, sizeof example, "%s/examples/parallelizer/roofline.py", source);
    snprintf(object, sizeof object, "%s/tests/libsimple-parallelizer.so", build);
    return 0;
}

static enum maq_status search(struct maq_slices_result **out, const struct maq_slices_opts *opts, struct maq_diag *diag,
                              struct maq_loaded_job **job)
{
    if (maq_job_parse_open(job, "test", MAQ_STR(JOB), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    return maq_slices_search(out, *job, opts, diag);
}

/* No child of this process is left, running or not waited for. */
static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- what works ---- */

static char *report(const struct maq_slices_opts *opts)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_slices_result *r = NULL;
    struct maq_loaded_job *job;
    char *text;
    if (search(&r, opts, diag, &job) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    const struct maq_report_slices plan = {job, r};
    assert_true(r->n_plans > 0 && r->exact && r->plans[0].step_s > 0);
    assert_int_equal(maq_report_slices_json(&text, &plan, NULL, diag), MAQ_OK);
    maq_slices_free(r);
    maq_job_free(job);
    maq_diag_free(diag);
    assert_no_children();
    return text;
}

/* The same bytes from one process and from several. */
static void a_program(void **state)
{
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    opts.parallelizer = example;
    char *one = report(&opts);
    opts.workers = 3;
    char *three = report(&opts);
    assert_string_equal(one, three);
    assert_non_null(strstr(one, "\"name\": \"roofline\""));
    assert_non_null(strstr(one, "\"text\": \"tp"));
    free(one);
    free(three);
}

static void a_shared_object(void **state)
{
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    opts.parallelizer = object;
    char *one = report(&opts);
    opts.workers = 4;
    char *four = report(&opts);
    assert_string_equal(one, four);
    assert_non_null(strstr(one, "\"name\": \"simple\""));
    free(one);
    free(four);
}

/* ---- what does not ---- */

static const struct {
    const char *fault;
    enum maq_status status;
    uint16_t code;
    const char *says; /* part of the message */
} faults[] = {
    {"dies at once", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_DIED,
     "status 1) before it answered request 1, 'open'; its last words: no licence"},
    {"version", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VERSION, "version 2"},
    {"no name", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "'name'"},
    {"two kinds", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_FAILED, "differently"},
    {"atoms", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VALUE, "layers of all atoms: 5, not 6"},
    {"profile", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VALUE, "-1 bytes"},
    {"dies", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_DIED, "cannot allocate GPU memory"},
    {"signal", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_DIED, "signal 9"},
    {"garbage", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "loading model ..."},
    {"list", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "not a JSON object"},
    {"wrong id", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "was asked"},
    {"no id", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "no 'id'"},
    {"says so", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_FAILED, "no such device"},
    {"missing", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "'sync_s' is missing"},
    {"unknown", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "not of the form"},
    {"text", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "'time_s' of an answer is not a number"},
    {"word", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "'recompute'"},
    {"negative", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VALUE, "not negative"},
    {"devices", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VALUE, "no more than the island's"},
    {"cover", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_VALUE, "those of the slice"},
    {"no plans", MAQ_BAD_INPUT, MAQ_CODE_PARALLELIZER_ANSWER, "'plans'"},
};

/* Each of them with one process and with two: the first fault is the one that is told. */
static void faults_are_told(void **state)
{
    for (size_t i = 0; i < 2 * MAQ_COUNT(faults); i += SANITIZED ? 3 : 1) { /* of one worker, of two */
        size_t f = i / 2;
        struct maq_diag *diag = maq_diag_new();
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        struct maq_slices_result *r = NULL;
        struct maq_loaded_job *job;
        opts.parallelizer = program;
        opts.workers = strcmp(faults[f].fault, "two kinds") == 0 ? 2 : 1 + (uint32_t)(i % 2);
        setenv("MAQ_FAULT", faults[f].fault, 1);
        enum maq_status status = search(&r, &opts, diag, &job);
        char *text = maq_diag_format(diag, 0, false);
        if (status != faults[f].status || maq_diag_errors(diag) != 1 || maq_diag_at(diag, 0)->code != faults[f].code ||
            !strstr(text, faults[f].says))
            fail_msg("%s: %d\n%s", faults[f].fault, status, text);
        assert_null(r);
        free(text);
        maq_job_free(job);
        maq_diag_free(diag);
        assert_no_children();
    }
    unsetenv("MAQ_FAULT");
}

static bool is_running(pid_t pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    const char *at = got ? strrchr(line, ')') : NULL;
    return at && at[2] != 'Z'; /* a zombie is for its new parent to wait for */
}

/* A program that hangs is ended with what it started. */
static void nothing_is_left_running(void **state)
{
    char folder[] = "/tmp/maq-test-XXXXXX", file[64];
    struct maq_diag *diag = maq_diag_new();
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    struct maq_slices_result *r = NULL;
    struct maq_loaded_job *job;
    int parent = 0, child = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/pids", folder);
    setenv("MAQ_FAULT", "hangs", 1);
    setenv("MAQ_FAULT_FILE", file, 1);
    opts.parallelizer = program;
    opts.timeout_s = 2;
    assert_int_equal(search(&r, &opts, diag, &job), MAQ_LIMIT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_PARALLELIZER_TIMEOUT);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d %d", &parent, &child), 2);
    fclose(f);
    assert_no_children();
    assert_true(parent > 1 && child > 1 && !is_running(parent));
    for (int i = 0; i < 100 && is_running(child); i++) { /* it was ended; that it is gone may take a moment */
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
    }
    assert_false(is_running(child));
    unlink(file);
    rmdir(folder);
    unsetenv("MAQ_FAULT");
    maq_job_free(job);
    maq_diag_free(diag);
}

/* Nor is one that answers well and does not end when its input does. */
static void the_end_is_the_end(void **state)
{
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    opts.parallelizer = program;
    setenv("MAQ_FAULT", "stays", 1);
    free(report(&opts));
    unsetenv("MAQ_FAULT");
}

static void asked_to_stop(void **state)
{
    volatile sig_atomic_t stop = 1;
    struct maq_diag *diag = maq_diag_new();
    struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
    struct maq_slices_result *r = NULL;
    struct maq_loaded_job *job;
    opts.parallelizer = example;
    opts.stop = &stop;
    assert_int_equal(search(&r, &opts, diag, &job), MAQ_LIMIT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SLICES_STOPPED);
    assert_no_children();
    maq_job_free(job);
    maq_diag_free(diag);
}

static void cannot_be_loaded(void **state)
{
    static const char *const names[] = {"./no-such-parallelizer", "./no-such.so", "/dev/null"};
    struct maq_parallelizer old = {.abi = MAQ_PARALLELIZER_ABI + 1, .size = sizeof old},
                            empty = {.abi = MAQ_PARALLELIZER_ABI, .size = sizeof empty, .name = "empty"};
    const struct maq_parallelizer *const functions[] = {&old, &empty};
    for (size_t i = 0; i < MAQ_COUNT(names) + MAQ_COUNT(functions); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_slices_opts opts = MAQ_SLICES_OPTS_INIT;
        struct maq_slices_result *r = NULL;
        struct maq_loaded_job *job;
        bool named = i < MAQ_COUNT(names);
        opts.parallelizer = named ? names[i] : NULL;
        opts.functions = named ? NULL : functions[i - MAQ_COUNT(names)];
        assert_int_equal(search(&r, &opts, diag, &job), named ? MAQ_IO : MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code,
                         named ? MAQ_CODE_PARALLELIZER_LOAD : MAQ_CODE_PARALLELIZER_VERSION);
        maq_job_free(job);
        maq_diag_free(diag);
    }
    assert_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program),          cmocka_unit_test(a_shared_object),
        cmocka_unit_test(faults_are_told),    cmocka_unit_test(nothing_is_left_running),
        cmocka_unit_test(the_end_is_the_end), cmocka_unit_test(asked_to_stop),
        cmocka_unit_test(cannot_be_loaded),
    };
    return cmocka_run_group_tests(tests, find_files, NULL);
}
