/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - how much a number changed, and whether predictions can tell: the equations of diff.h. */
#include <math.h>
#include <string.h>

#include "report/diff/diff.h"

double maq_diff_change(struct maq_diff_pair value)
{
    return value.of[MAQ_DIFF_AFTER] - value.of[MAQ_DIFF_BEFORE];
}

bool maq_diff_relative(double *out, struct maq_diff_pair value)
{
    double before = value.of[MAQ_DIFF_BEFORE];
    if (!value.has[MAQ_DIFF_BEFORE] || !value.has[MAQ_DIFF_AFTER] || !(before > 0))
        return false;
    *out = value.of[MAQ_DIFF_AFTER] / before - 1;
    return isfinite(*out);
}

bool maq_diff_change_interval(double *low, double *high, const struct maq_diff_figure *f)
{
    const double *v = f->value.of;
    if (!(f->confidence > 0) || !(f->low.of[MAQ_DIFF_BEFORE] > 0) || !(f->low.of[MAQ_DIFF_AFTER] > 0))
        return false;
    double before_up = log(f->high.of[MAQ_DIFF_BEFORE] / v[MAQ_DIFF_BEFORE]);
    double before_down = log(v[MAQ_DIFF_BEFORE] / f->low.of[MAQ_DIFF_BEFORE]);
    double after_up = log(f->high.of[MAQ_DIFF_AFTER] / v[MAQ_DIFF_AFTER]);
    double after_down = log(v[MAQ_DIFF_AFTER] / f->low.of[MAQ_DIFF_AFTER]);
    double r = log(v[MAQ_DIFF_AFTER] / v[MAQ_DIFF_BEFORE]);
    *low = expm1(r - hypot(after_down, before_up));
    *high = expm1(r + hypot(after_up, before_down));
    return isfinite(*low) && isfinite(*high);
}

static bool is_same(struct maq_diff_pair value)
{
    return value.has[0] == value.has[1] && value.of[0] == value.of[1];
}

bool maq_diff_is_same(const struct maq_diff *d)
{
    bool same = d->n_settings == 0 && (d->verdict[0] != NULL) == (d->verdict[1] != NULL);
    for (uint32_t i = 0; i < d->n_figures; i++)
        same &= is_same(d->figures[i].value) && is_same(d->figures[i].low) && is_same(d->figures[i].high);
    for (uint32_t t = 0; t < d->n_tables; t++)
        for (uint32_t i = 0; i < d->tables[t].n; i++)
            same &= is_same(d->tables[t].rows[i].value);
    return same;
}
