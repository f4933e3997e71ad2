/* SPDX-License-Identifier: Apache-2.0 */
/* train_words.c - words about a training step. See train_words.h. */
#include "report/train/train_words.h"

#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/page.h"

const char *maq_words_step(char buf[32], double seconds)
{
    static const struct {
        double at;
        const char *name;
    } units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
    size_t u = 0;
    if (!(seconds < 120))
        return maq_format_time(buf, seconds);
    while (u + 1 < MAQ_COUNT(units) && seconds >= units[u + 1].at * (1 - 0.00005))
        u++;
    double x = seconds / units[u].at;
    maq__snprintf(buf, 32, "%.*f %s", x < 9.9995 ? 3 : x < 99.995 ? 2 : x < 999.95 ? 1 : 0, x, units[u].name);
    return buf;
}

const char *maq_words_rate(char buf[32], double per_s)
{
    return maq_format_count(buf, per_s >= 1000 && per_s < 1e6 ? round(per_s) : per_s);
}

/* The device of a stage: that with its capacity. */
static const char *device_of(const struct maq_cluster *cluster, const struct maq_stage_result *st)
{
    for (uint32_t g = 0; g < cluster->n_groups; g++)
        if (cluster->groups[g].device.mem_bytes == st->capacity_bytes)
            return cluster->groups[g].device.name;
    return cluster->groups[0].device.name;
}

bool maq_train_odds_matter(const struct maq_train_result *r)
{
    return r->fit_probability > 0.01 && r->fit_probability < 0.95;
}

void maq_words_train_fit(struct maq_buf *b, const struct maq_train_result *r)
{
    char need[32], have[32], over[32];
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    maq_format_bytes(have, st->capacity_bytes);
    maq_format_bytes(need, st->needed_bytes);
    if (!r->fits)
        maq_buf_addf(b, "does not fit: stage %u needs %s without cached blocks, %s has %s: %s too much", r->worst_stage,
                     need, device_of(&r->job->cluster, st), have,
                     maq_format_bytes(over, st->needed_bytes - st->capacity_bytes));
    else if (st->returns_cache)
        maq_buf_addf(b, "fits, but only just: stage %u needs %s of %s; the allocator has to give cached blocks back",
                     r->worst_stage, need, have);
}

void maq_words_odds(struct maq_buf *b, const struct maq_train_result *r)
{
    if (maq_train_odds_matter(r))
        maq_buf_addf(b, "as far off as published peaks were from predicted ones, it fits in %.0f of 100 runs",
                     100 * r->fit_probability);
}

void maq_words_provenance(struct maq_buf *b, const struct maq_train_result *r)
{
    const double *share = r->provider_share;
    maq_buf_addf(b,
                 "Costs by time: %.0f %% measured, %.0f %% fitted, %.0f %% analytical. The interval holds four of five "
                 "published runs of this composition that its fit had not seen (standard error %.0f %%).",
                 100 * share[MAQ_PROVIDER_MEASURED], 100 * share[MAQ_PROVIDER_FITTED],
                 100 * share[MAQ_PROVIDER_ANALYTICAL], 100 * r->error);
}

void maq_words_measured(struct maq_buf *b, const struct maq_train_result *r)
{
    const struct maq_train_measured *m = &r->measured;
    const struct maq_job *job = r->job;
    const char *device = job->cluster.n_groups > 1 ? "this cluster's devices" : job->cluster.groups[0].device.name;
    struct maq_arena arena;
    if (!job->measured)
        return;
    maq_arena_init(&arena, 0);
    const char *file = maq_text_clean(&arena, job->measured);
    if (!m->asked)
        maq_buf_addf(b, "Measured kernels: %.200s was not asked; cost.provider is %s.", file,
                     maq_provider_name((enum maq_provider)job->cost_provider));
    else if (m->held == 0)
        maq_buf_addf(b, "Measured kernels: %.200s has none for %.100s (%u for other devices).", file, device,
                     m->others);
    else
        maq_buf_addf(b,
                     "Measured kernels: %.200s has %u for %.100s; they answer for %u of the step's %u operators and "
                     "collectives.",
                     file, m->held, device, m->hits, m->items);
    maq_arena_fini(&arena);
}
