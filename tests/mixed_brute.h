/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_brute.h - a job given as text, searched over its node groups, and every composition of a small one.
 *
 * A test whose job cannot be searched fails with the diagnosis.
 */
#ifndef MAQ_TESTS_MIXED_BRUTE_H
#define MAQ_TESTS_MIXED_BRUTE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "planner/compose/stage_table.h"
#include "planner/mixed/search_state.h"

struct searched {
    struct maq_loaded_job *job;
    struct maq_mixed_search_result *result;
};

static struct searched search_groups(const char *text, const struct maq_mixed_search_opts *opts)
{
    struct searched s = {0};
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse_open(&s.job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_mixed_search(&s.result, s.job, opts, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return s;
}

static void done(struct searched *s)
{
    maq_mixed_search_free(s->result);
    maq_job_free(s->job);
}

/* Every composition of a table's atoms in up to four stages, one option each: `look` gets them one by one, without their cost. */
struct compositions {
    const struct maq_stage_table *table;
    void (*look)(void *with, const struct maq_composition *c);
    void *with;
    struct maq_composition at; /* zero at the start */
};

static inline void look_at_all(struct compositions *all)
{
    struct maq_composition *c = &all->at;
    const struct maq_stage_table *table = all->table;
    uint32_t from = c->n_stages > 0 ? c->stages[c->n_stages - 1].end : 0;
    if (from == table->n_atoms) {
        all->look(all->with, c);
        return;
    }
    for (uint32_t end = from + 1; end <= table->n_atoms; end++)
        for (uint32_t o = 0; o < table->n_options && c->n_stages < 4; o++) {
            uint32_t replicas = table->wave_samples / table->options[o].samples;
            c->stages[c->n_stages++] =
                (struct maq_stage){.first = from, .end = end, .n_parts = 1, .parts = {{o, replicas}}};
            look_at_all(all);
            c->n_stages--;
        }
}

#endif
