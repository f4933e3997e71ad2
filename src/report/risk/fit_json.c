/* SPDX-License-Identifier: Apache-2.0 */
/* fit_json.c - the law of recorded step times, schema "maquette.risk.fit/1"; see docs/risk.md. */
#include <math.h>

#include "maquette/report.h"
#include "report/json_util.h"

static void put_law(struct maq_json map, const struct maq_risk_law *law)
{
    maq_json_text(map, "name", law->name);
    MAQ_JSON_REALS(map, {"shift_s", law->shift}, {"scale", law->scale}, {"shape", law->shape},
                   {"ks_distance", law->distance});
    maq_json_bool(map, "accepted", law->accepted);
}

static void put_figure(struct maq_json map, const struct maq_risk_estimate *e)
{
    MAQ_JSON_REALS(map, {"predicted", e->predicted}, {"low", e->low}, {"high", e->high}, {"next_low", e->next_low},
                   {"next_high", e->next_high}, {"observed", e->observed}, {"error", e->error});
}

static void put_series(struct maq_json item, const struct maq_risk_series *s)
{
    maq_json_text(item, "name", s->name);
    MAQ_JSON_INTS(item, {"steps", s->n}, {"fitted", s->fitted}, {"held_out", s->judged});
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        put_figure(maq_json_map(item, maq_risk_figure_name((enum maq_risk_figure)f)), &s->figure[f]);
    maq_json_real(item, "guarantee_s", s->guarantee_s);
    maq_json_int(item, "warm_up_steps", s->warm_up);
    MAQ_JSON_REALS(item, {"effective_steps", s->effective}, {"body_cv", s->cv},
                   {"neighbour_correlation", s->correlation}, {"drift", s->drift});
    maq_json_int(item, "stretch_steps", s->stretch);
    maq_json_int(item, "held_out_stretch_steps", s->held_stretch);
    struct maq_json spikes = maq_json_map(item, "spikes");
    maq_json_int(spikes, "steps", s->spikes);
    maq_json_int(spikes, "clumps", s->clumps);
    maq_json_real(spikes, "rate", s->spike_rate);
    maq_json_real(spikes, "mean_s", s->spike_mean_s);
    struct maq_json slow = maq_json_map(item, "slow_mode");
    MAQ_JSON_REALS(slow, {"share", s->slow_share}, {"ratio", s->slow_ratio}, {"cv", s->mode_cv});
    maq_json_text(item, "law", s->pooled ? "pool" : s->laws[0].name);
    maq_json_real(item, "ks_floor", s->floor);
    struct maq_json laws = maq_json_list(item, "laws");
    for (uint32_t i = 0; i < s->n_laws; i++)
        put_law(maq_json_item(laws), &s->laws[i]);
}

static void put_record(struct maq_json item, const struct maq_risk_record *r)
{
    maq_json_text(item, "name", r->name);
    maq_json_text(item, "kind", r->measured ? "profile" : "trace");
    maq_json_int(item, "steps", r->steps);
    maq_json_real(item, "step_median_s", r->step_median_s);
    struct maq_json list = maq_json_list(item, "kernels");
    for (uint32_t i = 0; i < r->n_kernels; i++) {
        const struct maq_risk_kernel *k = &r->kernel[i];
        struct maq_json map = maq_json_item(list);
        double known = k->measured ? 0 : (double)NAN;
        maq_json_text(map, "name", k->name);
        maq_json_count(map, "runs", (double)k->runs);
        maq_json_int(map, "pools", k->pools);
        MAQ_JSON_REALS(map, {"share", k->share}, {"cv", k->cv + known}, {"slow_share", k->slow_share + known},
                       {"slow_ratio", k->slow_ratio + known}, {"waiting_share", k->waiting_share});
        maq_json_text(map, "law", k->law);
        maq_json_real(map, "ks_distance", k->distance + known);
        maq_json_real(map, "ks_floor", k->floor + known);
    }
}

enum maq_status maq_report_risk_fit_json(char **out, const struct maq_risk_fit *fit, const struct maq_report_opts *opts,
                                         struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.risk.fit/1");
    struct maq_json list = maq_json_list(document.root, "series");
    for (uint32_t i = 0; i < fit->n; i++)
        put_series(maq_json_item(list), &fit->series[i]);
    struct maq_json records = maq_json_list(document.root, "records");
    for (uint32_t i = 0; i < fit->n_records; i++)
        put_record(maq_json_item(records), &fit->record[i]);
    return maq_json_finish(out, &document, diag);
}
