/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - predicted against measured runs as a picture, a series per source. */
#include "maquette/validate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "validate/plot.h"

#define MAX_ABOUT 4096

/* "table.csv: 12 rows of 3 sources, ..." */
static void describe(struct maq_buf *b, const struct maq_validate_result *r, int metric)
{
    const struct maq_validate_stat *all = &r->total.stats[metric][MAQ_VALIDATE_ALL],
                                   *even = &r->weighted[metric][MAQ_VALIDATE_ALL];
    const char *slash = strrchr(r->table, '/');
    maq_buf_adds(b, slash ? slash + 1 : r->table);
    if (all->n > 0)
        maq_buf_addf(b, ": %u rows of %u sources, median error %.1f %%; every source alike %.1f %%", all->n,
                     even->sources, 100 * all->median, 100 * even->median);
}

char *maq_validate_svg(const struct maq_validate_result *r, enum maq_validate_metric metric)
{
    struct maq_plot_point *points = maq__calloc(((size_t)r->n_rows + 1) * sizeof *points);
    struct maq_buf about;
    char *svg = NULL;
    uint32_t n = 0;
    maq_buf_init(&about, MAX_ABOUT);
    describe(&about, r, (int)metric);
    for (uint32_t i = 0; points && i < r->n_rows; i++) {
        const struct maq_validate_point *p = &r->rows[i].points[metric];
        if (p->skip == MAQ_VALIDATE_SKIP_NONE)
            points[n++] =
                (struct maq_plot_point){r->rows[i].source, r->rows[i].id, p->measured, p->predicted, p->error};
    }
    if (points && !about.failed)
        svg = maq__plot_svg(&(struct maq_plot){.what = metric == MAQ_VALIDATE_TIME ? "time per step" : "peak memory",
                                               .about = about.ptr,
                                               .bytes = metric == MAQ_VALIDATE_MEMORY,
                                               .points = points,
                                               .n = n});
    maq_buf_fini(&about);
    free(points);
    return svg;
}
