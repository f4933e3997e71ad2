/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_cpu.c - the CPU beside the devices: what stands there usually, what a document says over it, what a step makes of it. */
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
#include "maquette/job.h"
#include "maquette/train.h"

/* A job of a small model on one node that the host holds back; `cluster` is keys in YAML's flow style, or behind "= " one line. */
static struct maq_loaded_job *job_on(const char *cluster, const char *plan, struct maq_diag *diag)
{
    char text[1024];
    struct maq_loaded_job *box = NULL;
    bool line = strncmp(cluster, "= ", 2) == 0;
    snprintf(text, sizeof text,
             "{model: gpt2, framework: megatron-lm, cluster: %s%s%s, plan: {dp: 8, mbs: 1%s}, "
             "workload: {seq_length: 128, global_batch_size: 32}}",
             line ? "'" : "{", line ? cluster + 2 : cluster, line ? "'" : "}", plan);
    maq_job_parse(&box, "job", maq_str_of(text), NULL, 0, diag);
    return box;
}

static struct maq_device device_of(const char *cluster)
{
    struct maq_loaded_job *box = job_on(cluster, "", NULL);
    assert_non_null(box);
    struct maq_device d = maq_job_get(box)->cluster.groups[0].device;
    maq_job_free(box);
    d.name = d.title = d.source = d.fabric = NULL; /* the job's */
    return d;
}

static double step_of(const char *cluster, const char *plan)
{
    struct maq_train_result *r = NULL;
    struct maq_loaded_job *box = job_on(cluster, plan, NULL);
    assert_non_null(box);
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    double s = r->step_s;
    maq_train_result_free(r);
    maq_job_free(box);
    return s;
}

static void expect(const char *cluster, enum maq_host_cpu cpu, double clock_hz, double speed)
{
    struct maq_device d = device_of(cluster);
    assert_string_equal(maq_host_cpu_name((enum maq_host_cpu)d.host_cpu), maq_host_cpu_name(cpu));
    assert_true(fabs(d.host_clock_hz / clock_hz - 1) < 1e-12);
    assert_true(fabs(maq_device_host_speed(&d) / speed - 1) < 1e-12);
}

static void test_usual(void **state)
{
    (void)state;
    expect("device: a100-80gb", MAQ_HOST_CPU_ZEN2, 3.4e9, 1.0); /* the reference */
    expect("device: v100-16gb", MAQ_HOST_CPU_BROADWELL, 3.6e9, 0.92);
    expect("device: h100-sxm", MAQ_HOST_CPU_SAPPHIRE_RAPIDS, 3.8e9, 1.4);
    expect("device: gb200, devices_per_node: 8", MAQ_HOST_CPU_NEOVERSE_V2, 3.1e9, 1.1);
    expect("device: {base: gb200, host: 63 GB/s}, devices_per_node: 8", MAQ_HOST_CPU_SAPPHIRE_RAPIDS, 3.8e9, 1.4);
}

/* The nodes' over the device's; a clock belongs to its core. */
static void test_said(void **state)
{
    (void)state;
    expect("device: v100-16gb, host_clock: 2.7 GHz", MAQ_HOST_CPU_BROADWELL, 2.7e9, 0.92 * 0.75);
    expect("device: v100-16gb, host_cpu: broadwell, host_clock: 2.7 GHz", MAQ_HOST_CPU_BROADWELL, 2.7e9, 0.92 * 0.75);
    expect("device: a100-80gb, host_cpu: zen3", MAQ_HOST_CPU_ZEN3, 3.5e9, 1.22);
    expect("device: {base: a100-80gb, host_cpu: zen3, host_clock: 7 GHz}", MAQ_HOST_CPU_ZEN3, 7e9, 2.44);
    expect("device: {base: a100-80gb, host_cpu: zen3, host_clock: 7 GHz}, host_cpu: zen3", MAQ_HOST_CPU_ZEN3, 7e9,
           2.44);
    expect("device: {base: a100-80gb, host_cpu: zen3, host_clock: 7 GHz}, host_cpu: zen2", MAQ_HOST_CPU_ZEN2, 3.4e9,
           1.0);
    expect("device: a100-80gb, host_cpu: usual", MAQ_HOST_CPU_ZEN2, 3.4e9, 1.0);
}

static void expect_refused(const char *cluster, const char *says)
{
    struct maq_diag *diag = maq_diag_new();
    assert_null(job_on(cluster, "", diag));
    char *text = maq_diag_format(diag, 0, false);
    if (!strstr(text, says))
        fail_msg("%s: %s", cluster, text);
    free(text);
    maq_diag_free(diag);
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        const char *cluster, *says;
    } cases[] = {
        {"device: a100-80gb, host_cpu: zen22", "zen2"},
        {"device: a100-80gb, host_clock: 3.4", "host_clock"},
        {"device: a100-80gb, host_clock: 1 MHz", "host_clock"},
        {"device: {base: a100-80gb, host_clock: 0 GHz}", "host_clock"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        expect_refused(cases[i].cluster, cases[i].says);
}

/* The same in a line. */
static void test_in_a_line(void **state)
{
    (void)state;
    expect("= v100-16gb:8, cpu broadwell 2.7 GHz", MAQ_HOST_CPU_BROADWELL, 2.7e9, 0.92 * 0.75);
    expect("= a100-80gb:8 x 1, cpu Zen3, rail 200G", MAQ_HOST_CPU_ZEN3, 3.5e9, 1.22);
    expect("= h100-sxm:8, rail, cpu usual 1900MHz", MAQ_HOST_CPU_SAPPHIRE_RAPIDS, 1.9e9, 0.7);
    static const struct {
        const char *cluster, *says;
    } cases[] = {
        {"= a100-80gb:8, cpu", "expected the core of a CPU, for example zen3, not the end"},
        {"= a100-80gb:8, cpu xeon", "unknown core 'xeon'\n"},
        {"= a100-80gb:8, cpu xeon", "hint: one of: haswell, broadwell, "},
        {"= a100-80gb:8, cpu zen3 4", "'4' is not a clock of a CPU: no unit"},
        {"= a100-80gb:8, cpu zen3 4 MHz", "'4 MHz' is not a clock of a CPU\n"},
        {"= a100-80gb:8, cpu zen3, cpu zen4", "the CPU of a group is given twice"},
        {"= a100-80gb:8, cpu zen3 4 GHz fast", "expected ',' or '+', not 'fast'"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        expect_refused(cases[i].cluster, cases[i].says);
}

/* Every core can be written, and a later one of the same maker is not slower. */
static void test_cores(void **state)
{
    (void)state;
    double last = 0;
    for (int cpu = MAQ_HOST_CPU_HASWELL; cpu < MAQ_HOST_CPU_COUNT; cpu++) {
        char cluster[128];
        snprintf(cluster, sizeof cluster, "device: a100-80gb, host_cpu: %s", maq_host_cpu_name((enum maq_host_cpu)cpu));
        struct maq_device d = device_of(cluster);
        assert_int_equal(d.host_cpu, cpu);
        if (cpu == MAQ_HOST_CPU_ZEN || cpu == MAQ_HOST_CPU_NEOVERSE_V2)
            last = 0;
        assert_true(maq_device_host_speed(&d) >= last);
        last = maq_device_host_speed(&d);
    }
    assert_string_equal(maq_host_cpu_name(MAQ_HOST_CPU_COUNT), "unknown");
}

/* A step that waits for the host follows its clock but for what the device does meanwhile; one in graphs has nothing of it. */
static void test_step(void **state)
{
    (void)state;
    double slow = step_of("device: a100-80gb, host_clock: 1.7 GHz", ""), usual = step_of("device: a100-80gb", ""),
           fast = step_of("device: a100-80gb, host_clock: 6.8 GHz", "");
    assert_true(slow > 1.9 * usual && slow <= 2 * usual);
    assert_true(fast < usual && fast >= usual / 2);
    const char *graphs = ", cuda_graphs: true";
    double captured = step_of("device: a100-80gb", graphs);
    assert_true(captured < fast);
    assert_true(step_of("device: a100-80gb, host_clock: 1.7 GHz", graphs) >= captured);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_usual),   cmocka_unit_test(test_said),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_in_a_line),
                                       cmocka_unit_test(test_cores),   cmocka_unit_test(test_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
