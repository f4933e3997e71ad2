/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_post_training_trace.c - the timeline of a job of post-training, read back as Chrome JSON with jansson: parts follow each other and are the step's,
 * passes lie inside of training, engines are busy until they have ended.
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

struct drawn {
    double parts_us, trained_us; /* of the trainer's outer slices; of those that train */
    double passes_us;
    uint32_t trains, passes, engines;
    double last_engine_us; /* the latest end */
};

static double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* What a trace has, its order and its nesting looked at. */
static struct drawn read_trace(const char *path)
{
    struct drawn d = {0};
    double outer_end = 0;
    json_t *root = json_load_file(path, 0, NULL), *event;
    size_t i;
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        const double at = number(event, "ts"), length = number(event, "dur");
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
            continue;
        if (json_integer_value(json_object_get(event, "pid")) == 2) {
            d.engines++;
            d.last_engine_us = fmax(d.last_engine_us, at + length);
        } else if (at >= outer_end - 1e-3) {
            assert_true(fabs(at - outer_end) < 2e-3); /* no gap */
            outer_end = at + length;
            d.parts_us += length;
            if (strcmp(json_string_value(json_object_get(event, "name")), "train") == 0) {
                d.trained_us += length;
                d.trains++;
            }
        } else {
            assert_true(at + length <= outer_end + 2e-3);
            d.passes_us += length;
            d.passes++;
        }
    }
    json_decref(root);
    return d;
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *bytes = malloc(1 << 20);
    assert_true(f && bytes);
    *n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static void test_cycle(void **unused)
{
    (void)unused;
    static const struct {
        const char *plan, *rl;
        double steps; /* of a cycle */
        uint32_t trains, passes, engines;
    } cases[] = {
        /* forward and backward of 4 microbatches, and an update; 4 x 2 of pairs */
        {"zero: 0", "method: dpo", 1, 1, 4 * 2 + 1, 0},
        {"zero: 0", "method: grpo, osl: 64, length_spread: 1", 1, 1, 4 * 2 + 1, 8},
        {"zero: 0", "method: grpo, osl: 64, num_iterations: 3", 3, 3, 3 * (4 * 2 + 1), 8},
        {"zero: 0", "method: grpo, osl: 64, steps_per_generation: 2", 0.5, 1, 0, 8},
        {"zero: 0", "method: ppo, reward_model: gpt2, num_ppo_epochs: 2", 2, 2, 2 * 2 * (4 * 2 + 1), 8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512], path[64];
        struct maq_loaded_job *box;
        struct maq_post_training_result *r;
        size_t n[2];
        char *bytes[2];
        snprintf(path, sizeof path, "/tmp/maq-rl-trace-%ld.json", (long)getpid());
        snprintf(text, sizeof text,
                 "model: gpt2\ncluster: h100-sxm:8\nframework: huggingface\nplan: {mbs: 2, %s}\n"
                 "workload: {seq: 1024, gbs: 64}\nrl: {%s}\n",
                 cases[i].plan, cases[i].rl);
        assert_int_equal(maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(maq_post_training_predict(&r, box, NULL), MAQ_OK);
        assert_int_equal(maq_trace_post_training(path, r, NULL), MAQ_OK);
        const struct drawn d = read_trace(path);
        const double us = 1e6 * cases[i].steps;
        assert_true(fabs(d.parts_us - us * r->step_s) < 1e-6 * d.parts_us);
        assert_true(fabs(d.trained_us - us * r->train_s) < 1e-6 * d.parts_us);
        assert_int_equal(d.trains, cases[i].trains);
        assert_int_equal(d.passes, cases[i].passes);
        assert_int_equal(d.engines, cases[i].engines);
        assert_true(d.passes_us <= d.trained_us);
        if (d.engines > 0)
            assert_true(fabs(d.last_engine_us - 1e6 * (r->rollout.seconds + r->sync_s * cases[i].steps)) < 1);
        bytes[0] = slurp(path, &n[0]);
        assert_int_equal(maq_trace_post_training(path, r, NULL), MAQ_OK);
        bytes[1] = slurp(path, &n[1]);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(bytes[0], bytes[1], n[0]);
        assert_int_equal(maq_trace_post_training("/nowhere/at/all.json", r, NULL), MAQ_IO);
        free(bytes[0]);
        free(bytes[1]);
        unlink(path);
        maq_post_training_free(r);
        maq_job_free(box);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cycle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
