/* SPDX-License-Identifier: Apache-2.0 */
/* sailor_profiles.h - plans composed on Sailor's published profiles, which are read when MAQ_SHARED names the folder they lie in. */
#ifndef MAQ_TESTS_SAILOR_PROFILES_H
#define MAQ_TESTS_SAILOR_PROFILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/planner_measured.h"
#include "train/profiled/profiled.h"

static char folder[4096]; /* of the profiles */

/* Skips where the profiles are not there. */
static inline void need_profiles(void)
{
    const char *shared = getenv("MAQ_SHARED");
    if (!shared) {
        print_message("no published profile: set MAQ_SHARED to the folder that has data/planners/sailor\n");
        skip();
    }
    snprintf(folder, sizeof folder, "%s/data/planners/sailor", shared);
}

/* Plans on A100 of 40 GB and V100 of 16 GB; v100 may be 0. */
static inline struct maq_compose_result *compose(const char *model, uint32_t gbs, uint32_t a100, uint32_t v100,
                                                 enum maq_compose_class of)
{
    const struct maq_compose_pool pools[] = {{.device = "A100-40", .count = a100},
                                             {.device = "V100-16", .count = v100}};
    struct maq_compose_problem problem = MAQ_COMPOSE_PROBLEM_INIT;
    struct maq_compose_result *r = NULL;
    problem.folder = folder;
    problem.model = model;
    problem.pools = pools;
    problem.n_pools = v100 > 0 ? 2 : 1;
    problem.global_batch = gbs;
    problem.of = of;
    assert_int_equal(maq_compose(&r, &problem, NULL), MAQ_OK);
    assert_true(r->n_plans > 0);
    assert_true(r->bound_s <= r->plans[0].step_s * (1 + 1e-12));
    return r;
}

/* What the published rule says of a plan of the result, written and read back as JSON. */
static inline struct maq_mixed_cost judged(const struct maq_compose_result *r)
{
    struct maq_loaded_mixed_plan *box, *back;
    struct maq_profile_dir *profile;
    struct maq_mixed_cost cost;
    char *json;
    assert_int_equal(maq_compose_mixed_plan(&box, r, 0, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_plan_write(&json, maq_mixed_plan_get(box), NULL), MAQ_OK);
    assert_int_equal(maq_mixed_plan_parse(&back, "plan", maq_str_of(json), NULL), MAQ_OK);
    assert_int_equal(maq_profile_dir_load(&profile, folder, NULL), MAQ_OK);
    assert_int_equal(maq_mixed_judge_sailor(&cost, maq_mixed_plan_get(back), profile, NULL), MAQ_OK);
    maq_profile_dir_free(profile);
    maq_mixed_plan_free(back);
    maq_mixed_plan_free(box);
    free(json);
    return cost;
}

#endif
