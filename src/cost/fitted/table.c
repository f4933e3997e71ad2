/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - tables of fitted kernels: finding one, and its surface between knots.
 *
 * Interpolation is multilinear: the value in a cell is the mean of its 2^axes corners, each weighted by the product of
 * its nearness along the axes. An axis of one knot is none.
 */
#include "cost/fitted/table.h"

#include <math.h>
#include <string.h>

static const char *const family_names[] = {
#define FAMILY_NAME(family, name, a, b, c, d) [MAQ_FIT_##family] = (name),
    MAQ_FIT_FAMILY_LIST(FAMILY_NAME)
#undef FAMILY_NAME
};

const char *maq__fit_family_name(enum maq_fit_family family)
{
    return (unsigned)family < MAQ_FIT_FAMILY_COUNT ? family_names[family] : "unknown";
}

static int compare_keys(const struct maq_fit_key *a, const struct maq_fit_key *b)
{
    int d = (int)a->family - (int)b->family;
    d = d ? d : (int)a->dtype - (int)b->dtype;
    for (int i = 0; i < 3 && d == 0; i++)
        d = (int)a->variant[i] - (int)b->variant[i];
    return d;
}

static int compare(const struct maq_fit_table *t, const char *device, enum maq_library library,
                   const struct maq_fit_key *key)
{
    int d = strcmp(t->device, device);
    d = d ? d : (int)t->library - (int)library;
    return d ? d : compare_keys(&t->key, key);
}

/* The tables of a key: the first of them, and how many. */
static const struct maq_fit_table *of_key(size_t *n, const char *device, enum maq_library library,
                                          const struct maq_fit_key *key)
{
    size_t from = 0, to = maq__fit_tables_count;
    while (from < to) { /* the first that is not less */
        size_t mid = from + (to - from) / 2;
        if (compare(&maq__fit_tables[mid], device, library, key) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    *n = 0;
    while (from + *n < maq__fit_tables_count && compare(&maq__fit_tables[from + *n], device, library, key) == 0)
        ++*n;
    return &maq__fit_tables[from];
}

const struct maq_fit_table *maq__fit_find(const char *device, enum maq_library library, const struct maq_fit_key *key,
                                          const char *kernel)
{
    size_t n;
    const struct maq_fit_table *tables = of_key(&n, device, library, key);
    for (size_t i = 0; i < n && kernel; i++)
        if (strcmp(tables[i].kernel, kernel) == 0)
            return &tables[i];
    return n > 0 ? tables : NULL;
}

const struct maq_fit_table *maq__fit_find_named(const char *device, enum maq_library library,
                                                const struct maq_fit_key *key, const char *part)
{
    size_t n;
    const struct maq_fit_table *tables = of_key(&n, device, library, key);
    for (size_t i = 0; i < n; i++)
        if (strstr(tables[i].kernel, part))
            return &tables[i];
    return NULL;
}

/* Index of the cell and the place in it, 0 to 1; 0 and 0 on an axis of one knot. */
static unsigned cell_of(double *place, const float *knots, unsigned n, double x, double *outside)
{
    double lo = (double)knots[0], hi = (double)knots[n - 1];
    if (x < lo || x > hi) {
        *outside = fmax(*outside, x < lo ? lo - x : x - hi);
        x = x < lo ? lo : hi;
    }
    unsigned i = 0;
    while (i + 2 < n && x >= (double)knots[i + 1])
        i++;
    double width = n > 1 ? (double)knots[i + 1] - (double)knots[i] : 1.0;
    *place = n > 1 ? (x - (double)knots[i]) / width : 0.0;
    return i;
}

double maq__fit_surface(const struct maq_fit_table *table, const double x[MAQ_FIT_AXES], double *outside)
{
    double place[MAQ_FIT_AXES], sum = 0.0;
    unsigned at[MAQ_FIT_AXES];
    const float *knots = table->knots;

    *outside = 0.0;
    for (unsigned a = 0; a < MAQ_FIT_AXES; a++) {
        at[a] = cell_of(&place[a], knots, table->n[a], x[a], outside);
        knots += table->n[a];
    }
    for (unsigned corner = 0; corner < 1u << MAQ_FIT_AXES; corner++) {
        double weight = 1.0;
        size_t index = 0;
        for (unsigned a = 0; a < MAQ_FIT_AXES; a++) {
            bool upper = (corner >> a & 1u) != 0;
            weight *= upper ? place[a] : 1.0 - place[a];
            index = index * table->n[a] + at[a] + (upper && table->n[a] > 1 ? 1u : 0u);
        }
        if (weight > 0.0)
            sum += weight * ((double)table->values[index] - 128.0);
    }
    return (double)table->center + sum * (double)table->step;
}
