/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compose_published.c - what docs/plan-measured.md says of Sailor's own sizes. They take half a minute of search each and run
 * where MAQ_LONG is set. The profiles are read when MAQ_SHARED names the folder they lie in.
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

static void published(uint32_t a100, uint32_t v100, double most_s)
{
    if (SANITIZED || !long_run()) {
        print_message("half a minute of search: set MAQ_LONG\n");
        skip();
    }
    need_profiles();
    struct maq_compose_result *r = compose("OPT-350", 1024, a100, v100, MAQ_COMPOSE_PIPELINES);
    assert_true(r->plans[0].step_s <= most_s);
    maq_compose_result_free(r);
}

static void sixteen_and_sixteen(void **ignored)
{
    published(16, 16, 11.874);
}

static void a_hundred_and_twenty_eight(void **ignored)
{
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
