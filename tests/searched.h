/* SPDX-License-Identifier: Apache-2.0 */
/* searched.h - a job given as text, searched; a test that cannot search its job fails with the diagnosis. */
#ifndef MAQ_TESTS_SEARCHED_H
#define MAQ_TESTS_SEARCHED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/planner.h"

struct searched {
    struct maq_loaded_job *job;
    struct maq_search_result *result;
};

static inline struct searched search(const char *text, const struct maq_search_opts *opts)
{
    struct searched s = {0};
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse_open(&s.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_search(&s.result, s.job, opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return s;
}

static inline void done(struct searched *s)
{
    maq_search_result_free(s->result);
    maq_job_free(s->job);
}

static inline void expect_same(const struct maq_search_result *a, const struct maq_search_result *b, const char *name)
{
    if (a->n_plans != b->n_plans)
        fail_msg("%s: %u plans, exhaustively %u", name, a->n_plans, b->n_plans);
    for (uint32_t i = 0; i < a->n_plans; i++)
        if (a->plans[i].step_s != b->plans[i].step_s)
            fail_msg("%s: plan %u takes %.9f s, exhaustively %.9f s", name, i, a->plans[i].step_s, b->plans[i].step_s);
    assert_int_equal(a->counts.considered, b->counts.considered);
}

#endif
