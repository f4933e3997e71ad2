/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_kept.c - what engines keep of what was asked before is what asking again says, to the bit: times of decodes, bins of latencies. */
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
#include "serve/engine/batch.h"
#include "serve/engine/latency.h"
#include "serve_jobs.h"

struct scene {
    const char *model, *cluster, *plan;
    int devices;
};

static const struct scene scenes[] = {{"llama-3.1-8b", "h100-sxm:1", "", 1},
                                      {"llama-3.1-70b", "h100-sxm:8", ", tp: 4, pp: 2", 8},
                                      {"gpt-oss-20b", "h100-sxm:1", "", 1}};

static double both(struct maq_deployment *d, uint32_t stage, uint32_t decodes, int64_t keys)
{
    struct maq_pass_batch b = maq_batch_decodes(d, decodes);
    struct maq_pass_parts kept, asked;
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        b.decode_keys[w] = decodes * maq_pass_keys(&d->passes, w, keys);
    enum maq_launch_mode mode = maq_batch_launch_mode(d, &b);
    double s = maq_decode_times_stage_s(d, stage, &b, mode, &kept);
    expect_close(s, maq_batch_stage_s(d, stage, &b, mode, &asked), 0, "seconds");
    assert_memory_equal(&kept, &asked, sizeof kept);
    return s;
}

static void test_times_of_decodes(void **state)
{
    (void)state;
    uint64_t draws = 9;
    for (size_t i = 0; i < MAQ_COUNT(scenes); i++) {
        struct maq_loaded_job *job = load(scenes[i].model, scenes[i].cluster, scenes[i].plan, scenes[i].devices);
        const struct maq_serve_options o = {0};
        struct maq_deployment d;
        double least = (double)INFINITY, most = 0;
        assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
        assert_true(maq_decode_times_init(&d, 100) &&
                    d.n_decode_times == 128); /* few, so that they take each other's place */
        for (uint32_t k = 0; k < 4000; k++) {
            double s = both(&d, draw(&draws, 0, d.passes.n_stages - 1), draw(&draws, 0, 3) ? 1 : draw(&draws, 2, 40),
                            draw(&draws, 1, draw(&draws, 0, 1) ? 300 : 30000));
            least = fmin(least, s);
            most = fmax(most, s);
        }
        assert_true(most > least * 1.1); /* keys matter */
        maq_deployment_fini(&d);
        maq_job_free(job);
    }
}

static void test_bins_of_latencies(void **state)
{
    (void)state;
    uint64_t draws = 4;
    struct maq_latency l;
    static uint64_t bins[MAQ_LATENCY_BINS];
    assert_true(maq_latency_init(&l));
    for (uint32_t k = 0; k < 300000; k++) {
        double around = exp2(uniform(&draws, -27, 12)), s = draw(&draws, 0, 20) ? around : 0;
        for (uint32_t i = 0; i < 4; i++, s *= 1 + uniform(&draws, -0.003, 0.003)) {
            double at = s > 1e-7 ? log(s / 1e-7) / 0.002 : 0;
            maq_latency_add(&l, s);
            bins[at < MAQ_LATENCY_BINS - 1 ? (uint32_t)at : MAQ_LATENCY_BINS - 1]++;
        }
    }
    assert_memory_equal(l.bins, bins, sizeof bins);
    maq_latency_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times_of_decodes),
                                       cmocka_unit_test(test_bins_of_latencies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
