/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variation.c - what varies: recorded jobs replayed (O6), and the second halves of recorded step times
 * predicted from the first (O9).
 *
 * Every trace and every series in the folder is a row or several, so a folder with others is judged alike. Bands: the
 * step mean within 3 %, slowdown and shares within 0.03 of what was published with the trace; the 95th percentile
 * within 3 %, the 99th within 15 %, the mean within 1 %.
 */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/risk.h"
#include "validate/risk/table.h"

#define TRACES "stragglers/ops-*.csv.gz"
#define SERIES "step_times/*.csv"

static const char study[] = "ByteDance, what-if study (OSDI'25)";

/* "ops-ST.csv.gz" of a trace is "ST". */
static char *name_of_trace(struct maq_arena *arena, const char *path)
{
    const char *begin = strrchr(path, '/');
    begin = (begin ? begin + 1 : path) + strlen("ops-");
    return maq_arena_strdup(arena, (struct maq_str){begin, strcspn(begin, ".")});
}

/* A number of a published answer; NaN where there is none. */
static double answer(struct maq_risk_table *t, const char *file, const char *name, const char *key)
{
    const char *path = maq_risk_file(t, maq_arena_printf(t->arena, "stragglers/%s-%s.json", file, name));
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL, *value = json_object_get(root, key);
    double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
    json_decref(root);
    return number;
}

static void add(struct maq_risk_table *t, const char *name, const char *what, double observed, double band,
                double predicted)
{
    const char *words = maq_arena_printf(t->arena, "trace %s: %s", name, what);
    maq_risk_add(t, (struct maq_validate_risk_row){.id = "O6",
                                                   .what = words ? words : what,
                                                   .unit = "",
                                                   .source = study,
                                                   .observed = observed,
                                                   .low = observed - band,
                                                   .high = observed + band,
                                                   .predicted = predicted,
                                                   .why = isnan(observed) ? "nothing was published with it" : NULL});
}

static enum maq_status add_trace(struct maq_risk_table *t, const char *path)
{
    struct maq_risk_replayed *r;
    char *name = name_of_trace(t->arena, path);
    const char *meta = name ? maq_risk_file(t, maq_arena_printf(t->arena, "stragglers/meta-%s.yaml", name)) : NULL;
    if (!meta)
        return MAQ_OK; /* a record without its shape is no job */
    MAQ_TRY(maq_risk_replay(&r, path, meta, t->diag));
    add(t, name, "step mean, s", r->recorded_s, 0.03 * r->recorded_s, r->step_mean_s);
    add(t, name, "slowdown", answer(t, "ms", name, "tori") / answer(t, "ms", name, "tideal"), 0.03, r->slowdown);
    add(t, name, "share of it that the last stage explains", answer(t, "ms", name, "Ms"), 0.03, r->last_stage_share);
    add(t, name, "share of it that the slowest workers explain", answer(t, "mw", name, "Mw"), 0.03, r->worker_share);
    maq_risk_replayed_free(r);
    return MAQ_OK;
}

static enum maq_status add_series(struct maq_risk_table *t, const char *path)
{
    static const double bands[MAQ_RISK_FIGURE_COUNT] = {
        [MAQ_RISK_P95] = 0.03, [MAQ_RISK_P99] = 0.15, [MAQ_RISK_MEAN] = 0.01};
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    struct maq_risk_fit *fit;
    const char *file = strrchr(path, '/');
    opts.holdout = 0.5;
    MAQ_TRY(maq_risk_fit(&fit, &path, 1, &opts, t->diag));
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++) {
        const struct maq_risk_estimate *e = &fit->series[0].figure[f];
        if (bands[f] == 0)
            continue;
        const char *words = maq_arena_printf(t->arena, "second half of %.40s: %s, s", file ? file + 1 : path,
                                             maq_risk_figure_name((enum maq_risk_figure)f));
        maq_risk_compare(t,
                         &(const struct maq_risk_published){"O9", words ? words : "", "",
                                                            "Megatron-LM, records of its tests on H100", e->observed,
                                                            e->observed * (1 - bands[f]), e->observed * (1 + bands[f])},
                         e->predicted);
    }
    maq_risk_fit_free(fit);
    return MAQ_OK;
}

/* Every file of a pattern, by name. */
static enum maq_status each(struct maq_risk_table *t, const char *pattern,
                            enum maq_status (*add_file)(struct maq_risk_table *t, const char *path))
{
    glob_t found;
    enum maq_status status = MAQ_OK;
    const char *path = maq_arena_printf(t->arena, "%s/%s", t->folder, pattern);
    if (!path || glob(path, 0, NULL, &found) != 0)
        return path ? MAQ_OK : MAQ_NO_MEMORY;
    for (size_t i = 0; i < found.gl_pathc && status == MAQ_OK; i++)
        status = add_file(t, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

enum maq_status maq_risk_rows_variation(struct maq_risk_table *t)
{
    MAQ_TRY(each(t, TRACES, add_trace));
    return each(t, SERIES, add_series);
}
