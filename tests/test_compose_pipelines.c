/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compose_pipelines.c - several pipelines of different make-up on Sailor's published profiles, beside the best plan of one make-up.
 *
 * Sizes at which a search of that class takes seconds; docs/plan-measured.md has those of Sailor's cases. The profiles are read when
 * MAQ_SHARED names the folder they lie in. maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "effort.h"
#include "sailor_profiles.h"

static void too_slow(void)
{
    print_message(
        "seconds of search take too long under a sanitizer; half a minute of it runs where MAQ_LONG is set\n");
    skip();
}

/* Seconds of the best plan of one make-up. */
static double best_of_one(uint32_t gbs, uint32_t a100, uint32_t v100)
{
    struct maq_compose_result *r = compose("OPT-350", gbs, a100, v100, MAQ_COMPOSE_UNIFORM);
    double step_s = r->plans[0].step_s;
    assert_true(r->exact);
    maq_compose_result_free(r);
    return step_s;
}

/* Several pipelines: better than any one; every device is used once, every sample is done. */
static void several_pipelines(void **ignored)
{
    if (SANITIZED)
        too_slow();
    need_profiles();
    struct maq_compose_result *r = compose("OPT-350", 512, 8, 8, MAQ_COMPOSE_PIPELINES);
    const struct maq_compose_plan *plan = &r->plans[0];
    uint32_t used[2] = {0}, samples = 0;
    for (uint32_t k = 0; k < plan->n_pipelines; k++) {
        const struct maq_compose_pipeline *p = &plan->pipelines[k];
        samples += p->count * p->microbatches * plan->micro_batch;
        for (uint32_t i = 0; i < p->n_stages; i++)
            for (uint32_t j = 0; j < p->stages[i].n_parts; j++)
                used[p->stages[i].parts[j].pool] += p->stages[i].parts[j].tp * p->stages[i].parts[j].replicas;
    }
    assert_true(used[0] <= 8 && used[1] <= 8 && samples >= 512);
    assert_true(plan->n_pipelines > 1 && plan->step_s < 0.99 * best_of_one(512, 8, 8));
    assert_true(judged(r).fits);
    maq_compose_result_free(r);
}

/* Pipelines that split their micro batches in the front, one that does not: better than any plan of one make-up. */
static void pipelines_beat_the_best_one(void **ignored)
{
    if (!long_run() || SANITIZED)
        too_slow();
    need_profiles();
    struct maq_compose_result *r = compose("OPT-350", 1024, 8, 24, MAQ_COMPOSE_PIPELINES);
    struct maq_loaded_mixed_plan *box;
    assert_true(r->plans[0].step_s < 0.98 * best_of_one(1024, 8, 24));
    assert_int_equal(maq_compose_mixed_plan(&box, r, 0, NULL), MAQ_NO); /* it splits micro batches */
    maq_compose_result_free(r);
}

/* Which plan is found and what it took to find it does not depend on threads. */
static void threads_change_nothing(void **ignored)
{
    need_profiles();
    const struct maq_compose_pool pools[] = {{.device = "A100-40", .count = EFFORT(1, 2, 4)},
                                             {.device = "V100-16", .count = EFFORT(3, 4, 8)}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r[2];
    problem.folder = folder;
    problem.model = "OPT-350";
    problem.pools = pools;
    problem.n_pools = 2;
    problem.of = MAQ_COMPOSE_PIPELINES;
    for (uint32_t i = 0; i < 2; i++) {
        problem.threads = i == 0 ? 1 : 3;
        assert_int_equal(maq_compose(&r[i], &problem, NULL), MAQ_OK);
    }
    assert_true(r[0]->plans[0].step_s == r[1]->plans[0].step_s && r[0]->bound_s == r[1]->bound_s);
    assert_memory_equal(&r[0]->counts, &r[1]->counts, sizeof r[0]->counts);
    maq_compose_result_free(r[0]);
    maq_compose_result_free(r[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_pipelines),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(pipelines_beat_the_best_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
