/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variation_write.c - writes the variation learnt from records as a document for `--variation`.
 *
 *   step_cv, spike_*   of the first table of steps: CV of the body around its modes, rate of spikes, their mean over the median; of
 *                      the spikes' spread nothing is said, so it is that of `default`. Not of a trace: its steps vary by its
 *                      kernels
 *   slow_mode_*        where the body has two modes and the upper one is the rarer
 *   kernels            of the records: those that a variation has a name for; where several files have one, the one with the most
 *                      runs
 *
 * Lasting differences between GPUs, and congestion, are in no record of one run: they stay those of `default`.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "maquette/risk.h"
#include "risk/step/signature.h"

#define MOST 2.0 /* what a variation takes as a coefficient of variation */

/* A string as YAML takes it: as JSON writes it. */
static void add_text(struct maq_buf *out, const char *key, const char *text)
{
    json_t *value = json_stringn_nocheck(text, strlen(text));
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    maq_buf_addf(out, "%s: %s\n", key, quoted ? quoted : "\"?\"");
    free(quoted);
    json_decref(value);
}

static void add_series(struct maq_buf *out, const struct maq_risk_series *s)
{
    double median = s->figure[MAQ_RISK_P50].predicted;
    maq_buf_addf(out, "# Steps: %u, without %u of warm-up and %u spikes.\n", s->fitted, s->warm_up, s->spikes);
    maq_buf_addf(out, "step_cv: %.6g\n", fmin(s->mode_cv, MOST));
    if (s->slow_share > 0 && s->slow_share <= 0.5)
        maq_buf_addf(out, "slow_mode_share: %.6g\nslow_mode_ratio: %.6g\n", s->slow_share,
                     fmin(fmax(s->slow_ratio, 1), 1000));
    else if (s->slow_share > 0.5)
        maq_buf_addf(
            out, "# %.1f %% of the steps are %.4g times as fast as the others, which a variation has no word for.\n",
            100 * (1 - s->slow_share), s->slow_ratio);
    maq_buf_addf(out, "spike_share: %.6g\n", fmin(s->spike_rate, 0.5));
    if (s->spikes > 0)
        maq_buf_addf(out, "spike_ratio: %.6g\n", fmin(fmax(s->spike_mean_s / median, 1), 1000));
}

/* The record of an operation with the most runs. */
static const struct maq_risk_kernel *best_of(const struct maq_risk_fit *fit, const char *name, uint32_t *record)
{
    const struct maq_risk_kernel *best = NULL;
    for (uint32_t r = 0; r < fit->n_records; r++)
        for (uint32_t i = 0; i < fit->record[r].n_kernels; i++) {
            const struct maq_risk_kernel *k = &fit->record[r].kernel[i];
            if (k->measured && strcmp(k->name, name) == 0 && (!best || k->runs > best->runs)) {
                best = k;
                *record = r;
            }
        }
    return best;
}

/*
 * Its cv where a lognormal law is the nearest, or nothing else is known; equally likely values of its law, or of the runs,
 * otherwise.
 */
static void add_law(struct maq_buf *out, const struct maq_risk_kernel *k)
{
    bool plain = k->n_quantiles == 0 || strcmp(k->law, "lognormal") == 0 || !(k->quantile[0] > 0) ||
                 k->quantile[k->n_quantiles - 1] > 1000;
    if (plain)
        maq_buf_addf(out, ", cv: %.6g", fmin(k->cv, MOST));
    for (uint32_t i = 0; !plain && i < k->n_quantiles; i++)
        maq_buf_addf(out, "%s%.5g", i == 0 ? ", quantiles: [" : ", ", k->quantile[i]);
    if (!plain)
        maq_buf_addf(out, "]");
}

static uint32_t add_kernels(struct maq_buf *out, const struct maq_risk_fit *fit)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < fit->n_records; r++)
        for (uint32_t i = 0; i < fit->record[r].n_kernels; i++) {
            const struct maq_risk_kernel *k = &fit->record[r].kernel[i];
            uint32_t of = UINT32_MAX;
            if (!maq_signature_known(k->name) || best_of(fit, k->name, &of) != k || n == MAQ_VARIATION_KERNELS)
                continue;
            maq_buf_addf(out, "%s  - {name: %s", n++ == 0 ? "kernels:\n" : "", k->name);
            add_law(out, k);
            if (k->slow_share > 0)
                maq_buf_addf(out, ", slow_share: %.6g, slow_ratio: %.6g", fmin(k->slow_share, 0.5),
                             fmin(k->slow_ratio, 1000));
            maq_buf_addf(out, "} # %llu runs\n", (unsigned long long)k->runs);
        }
    return n;
}

enum maq_status maq_risk_fit_variation(char **out, const struct maq_risk_fit *fit, struct maq_diag *diag)
{
    struct maq_buf text;
    maq_buf_init(&text, (size_t)1 << 20);
    maq_buf_addf(
        &text,
        "# What was learnt by maquette risk fit; what is not here is as in `default` (maquette risk --variation).\n");
    add_text(&text, "title", "learnt from records");
    add_text(&text, "source", fit->n_records > 0 ? fit->record[0].name : fit->n > 0 ? fit->series[0].name : "");
    for (uint32_t i = 0; i < fit->n; i++)
        if (!fit->series[i].traced) {
            add_series(&text, &fit->series[i]);
            break;
        }
    (void)add_kernels(&text, fit);
    *out = maq_buf_take(&text);
    return *out ? MAQ_OK : maq_no_memory(diag, NULL);
}
