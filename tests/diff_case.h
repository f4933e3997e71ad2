/* SPDX-License-Identifier: Apache-2.0 */
/* diff_case.h - a comparison of two documents that a test has as text, and what is in it by its name. */
#ifndef MAQ_TESTS_DIFF_CASE_H
#define MAQ_TESTS_DIFF_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "report/diff/diff.h"

static inline struct maq_diff *diff_of(const char *before, const char *after)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_diff *d = NULL;
    if (maq_diff_parse(&d, "a", maq_str_of(before), "b", maq_str_of(after), diag) != MAQ_OK) {
        char *text = maq_diag_format(diag, 0, false);
        fail_msg("%s", text);
    }
    maq_diag_free(diag);
    return d;
}

static inline const struct maq_diff_figure *figure(const struct maq_diff *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_figures; i++)
        if (strcmp(d->figures[i].key, key) == 0)
            return &d->figures[i];
    fail_msg("no figure %s", key);
    return NULL;
}

static inline const struct maq_diff_table *table(const struct maq_diff *d, const char *key)
{
    for (uint32_t i = 0; i < d->n_tables; i++)
        if (strcmp(d->tables[i].key, key) == 0)
            return &d->tables[i];
    return NULL;
}

static inline struct maq_diff_pair row(const struct maq_diff *d, const char *of, const char *key)
{
    const struct maq_diff_table *t = table(d, of);
    for (uint32_t i = 0; t && i < t->n; i++)
        if (strcmp(t->rows[i].key, key) == 0)
            return t->rows[i].value;
    fail_msg("no row %s in %s", key, of);
    return (struct maq_diff_pair){{0}, {false}};
}

static inline void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b)) + 1e-300))
        fail_msg("%.15g is not %.15g", a, b);
}

#endif
