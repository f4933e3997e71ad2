/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compose_published.c - what docs/plan-measured.md says of Sailor's own sizes. The larger one takes half a minute of search and runs
 * where MAQ_LONG is set. The profiles are read when MAQ_SHARED names the folder they lie in. maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "maquette/planner_measured.h"
#include "sanitized.h"

static char folder[4096];

static void need_profiles(void)
{
    const char *shared = getenv("MAQ_SHARED");
    if (!shared) {
        print_message("no published profile: set MAQ_SHARED to the folder that has data/planners/sailor\n");
        skip();
    }
    snprintf(folder, sizeof folder, "%s/data/planners/sailor", shared);
}

static struct maq_compose_result *compose(uint32_t gbs, uint32_t a100, uint32_t v100, enum maq_compose_class of)
{
    const struct maq_compose_pool pools[] = {{.device = "A100-40", .count = a100},
                                             {.device = "V100-16", .count = v100}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r = NULL;
    problem.folder = folder;
    problem.model = "OPT-350";
    problem.pools = pools;
    problem.n_pools = 2;
    problem.global_batch = gbs;
    problem.of = of;
    assert_int_equal(maq_compose(&r, &problem, NULL), MAQ_OK);
    assert_true(r->n_plans > 0);
    assert_true(r->bound_s <= r->plans[0].step_s * (1 + 1e-12));
    return r;
}

static void published(uint32_t a100, uint32_t v100, double most_s)
{
    if (SANITIZED)
        skip(); /* seconds of search take too long there */
    need_profiles();
    struct maq_compose_result *r = compose(1024, a100, v100, MAQ_COMPOSE_PIPELINES);
    assert_true(r->plans[0].step_s <= most_s);
    maq_compose_result_free(r);
}

static void sixteen_and_sixteen(void **ignored)
{
    published(16, 16, 11.874);
}

static void a_hundred_and_twenty_eight(void **ignored)
{
    if (!getenv("MAQ_LONG")) {
        print_message("half a minute of search: set MAQ_LONG\n");
        skip();
    }
    published(32, 96, 4.8985);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_and_sixteen),
        cmocka_unit_test(a_hundred_and_twenty_eight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
