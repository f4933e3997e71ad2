/* SPDX-License-Identifier: Apache-2.0 */
/* choice_report.c - the result of `validate choice` as text and as JSON. */
#include "base/str.h"
#include "maquette/validate_serve.h"
#include "validate/error_table.h"

#define REPORT_MAX ((size_t)16 << 20)

static double regret_of(const struct maq_validate_choice_group *g)
{
    uint32_t held = g->cases - g->none - g->violates;
    return held > 0 ? g->regret_sum / held : 0;
}

char *maq_validate_choice_text(const struct maq_validate_choice *r)
{
    struct maq_buf b;
    maq_buf_init(&b, REPORT_MAX);
    maq_buf_adds(&b, "runs  deployments  cases  none  violates  regret  of\n");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const struct maq_validate_choice_group *g = &r->groups[i];
        maq_buf_addf(&b, "%4u %12u %6u %5u %9u %5.1f %%  %s, %s, %s %s, %.0f in, %.0f out\n", g->runs, g->deployments,
                     g->cases, g->none, g->violates, 100 * regret_of(g), g->model, g->device, g->framework,
                     g->precision, g->isl, g->osl);
    }
    if (r->n_groups == 0)
        maq_buf_adds(&b, "no two deployments of one model, GPU, engine, precision and lengths were measured\n");
    if (r->cases > 0)
        maq_buf_addf(&b,
                     "%u cases: nothing found in %.1f %%, the nearest taken in %.1f %%, the target broken by more than "
                     "5 %% in %.1f %%, else %.1f %% of "
                     "the throughput given away in the mean\n",
                     r->cases, 100.0 * r->none / r->cases, 100.0 * r->nearest / r->cases,
                     100.0 * r->violates / r->cases, 100 * r->regret_mean);
    if (r->pairs > 0)
        maq_buf_addf(&b, "ranked by throughput per GPU: tau %.3f over %llu pairs of different deployments\n", r->tau,
                     (unsigned long long)r->pairs);
    return maq_buf_take(&b);
}

char *maq_validate_choice_json(const struct maq_validate_choice *r)
{
    struct maq_json_document d;
    maq_json_begin(&d, "maquette.validate.choice/1");
    MAQ_JSON_INTS(d.root, {"cases", r->cases}, {"none", r->none}, {"nearest", r->nearest}, {"violates", r->violates});
    maq_json_real(d.root, "regret_mean", r->regret_mean);
    MAQ_JSON_INTS(d.root, {"pairs", (int64_t)r->pairs}, {"discordant", (int64_t)r->discordant});
    maq_json_real(d.root, "tau", r->tau);
    struct maq_json groups = maq_json_list(d.root, "groups");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const struct maq_validate_choice_group *g = &r->groups[i];
        struct maq_json item = maq_json_item(groups);
        maq_json_text(item, "model", g->model);
        maq_json_text(item, "device", g->device);
        maq_json_text(item, "framework", g->framework);
        maq_json_text(item, "precision", g->precision);
        MAQ_JSON_REALS(item, {"isl", g->isl}, {"osl", g->osl});
        MAQ_JSON_INTS(item, {"runs", g->runs}, {"deployments", g->deployments}, {"cases", g->cases}, {"none", g->none},
                      {"nearest", g->nearest}, {"violates", g->violates});
        maq_json_real(item, "regret_mean", regret_of(g));
        MAQ_JSON_INTS(item, {"pairs", (int64_t)g->pairs}, {"discordant", (int64_t)g->discordant});
    }
    return maq_json_take(&d);
}
