/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compose_sailor.c - plans for Sailor's cases on Sailor's published profiles, by Sailor's published rule.
 *
 * What other planners find there (seconds per step, by the same rule with every stage's compute counted): docs/plan-measured.md. The
 * profiles are read when MAQ_SHARED names the folder they lie in. Several pipelines: test_compose_pipelines.c.
 *
 * maq-test: long
 */
#include <math.h>
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

/* One kind of device per stage, one number of replicas: exact, and the judge agrees to the last digits. `known`: a class optimum that was
 * found before (by a prototype; rounded to 1 ms); where this search has found less, the better one. */
static void uniform_case(const char *model, uint32_t gbs, uint32_t a100, uint32_t v100, double known)
{
    struct maq_compose_result *r = compose(model, gbs, a100, v100, MAQ_COMPOSE_UNIFORM);
    struct maq_mixed_cost cost = judged(r);
    assert_true(r->exact && r->gap <= 1e-9);
    if (fabs(r->plans[0].step_s - known) > 0.0006 * (known > 10 ? 10 : 1))
        fail_msg("%s %u + %u: %.6f s, not %.3f", model, (unsigned)a100, (unsigned)v100, r->plans[0].step_s, known);
    assert_true(cost.fits);
    if (fabs(cost.step_s - r->plans[0].step_s) > 1e-9 * cost.step_s)
        fail_msg("%.12f s, the judge says %.12f", r->plans[0].step_s, cost.step_s);
    maq_compose_result_free(r);
}

static void class_optima(void **ignored)
{
    NOT_UNDER_A_SANITIZER();
    need_profiles();
    uniform_case("OPT-350", 1024, 32, 0, 7.710);
    uniform_case("OPT-350", 1024, 16, 16, 12.062);
    uniform_case("OPT-350", 1024, 32, 32, 6.643);
    uniform_case("OPT-350", 1024, 32, 96, 4.963);
    uniform_case("OPT-350", 1024, 80, 240, 2.429); /* the prototype stopped at 2.480 */
    uniform_case("GPT-Neo-2.7", 2048, 32, 96, 30.91);
}

/* Mixing kinds inside a stage cannot hurt, and the judge never says more: it pairs replicas one by one. */
static void mixed_is_no_worse(void **ignored)
{
    need_profiles();
    struct maq_compose_result *u = compose("OPT-350", 1024, 16, 16, MAQ_COMPOSE_UNIFORM);
    struct maq_compose_result *m = compose("OPT-350", 1024, 16, 16, MAQ_COMPOSE_MIXED);
    assert_true(m->exact && m->plans[0].step_s <= u->plans[0].step_s * (1 + 1e-12));
    struct maq_mixed_cost cost = judged(m);
    assert_true(cost.fits && cost.step_s <= m->plans[0].step_s * (1 + 1e-9));
    maq_compose_result_free(u);
    maq_compose_result_free(m);
}

static void different_degrees(void **ignored)
{
    need_profiles();
    struct maq_compose_result *r = compose("GPT-Neo-2.7", 2048, 32, 96, MAQ_COMPOSE_DEGREES);
    bool split = false;
    for (uint32_t i = 0; i < r->plans[0].pipelines[0].n_stages; i++)
        split = split || r->plans[0].pipelines[0].stages[i].parts[0].micro_batch < r->plans[0].micro_batch;
    assert_true(r->exact && split);
    assert_true(r->plans[0].step_s <= 30.5);
    maq_compose_result_free(r);
}

static void says_what_is_wrong(void **ignored)
{
    need_profiles();
    const struct maq_compose_pool pools[] = {{.device = "H100", .count = 4}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r;
    struct maq_diag *diag = maq_diag_new();
    problem.folder = folder;
    problem.model = "OPT-350";
    problem.pools = pools;
    problem.n_pools = 1;
    assert_int_equal(maq_compose(&r, &problem, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 1);
    maq_diag_free(diag);
    const struct maq_compose_pool small[] = {{.device = "V100-16", .count = 1}};
    problem.model = "GPT-Neo-2.7"; /* 2.7e9 parameters x 24 bytes on one V100 */
    problem.pools = small;
    assert_int_equal(maq_compose(&r, &problem, NULL), MAQ_OK);
    assert_int_equal(r->n_plans, 0);
    assert_true(r->exact);
    maq_compose_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class_optima),
        cmocka_unit_test(mixed_is_no_worse),
        cmocka_unit_test(different_degrees),
        cmocka_unit_test(says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
