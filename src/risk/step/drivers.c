/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drivers.c - answers the questions about every operation, parallel dimension or stage with a tenth of the draws, and
 * lists the parts by their effect on the 95th percentile. See drivers.h.
 */
#include "risk/step/drivers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

#define FEWER 10u /* draws: a tenth, there are three questions for each part */
#define LEAST_SHARE                                                                                                    \
    0.0005 /* of the step: operations below are left out, but for communication between stages and replicas */

const char *maq_risk_parts_name(enum maq_risk_parts parts)
{
    static const char *const names[MAQ_RISK_PARTS] = {"kernels", "dimensions", "stages"};
    return (unsigned)parts < MAQ_RISK_PARTS ? names[parts] : "?";
}

struct asker {
    struct maq_step_question w;
    const struct maq_variation *v;
    struct maq_variation not_shared; /* v without what all GPUs share */
    enum maq_risk_parts parts;
    double *signature, *stage; /* the spread of the question */
    struct maq_step_answer none, whole;
};

static bool between_passes(const struct maq_signature *s, const struct maq_step_model *m)
{
    double rest = 0;
    for (uint32_t i = 0; i < m->stages; i++)
        rest += s->of_rest[i] * m->rest_ns[i];
    return s->transfers || s->joins || rest > 0;
}

/* Whether a signature is of a part. */
static bool is_of(const struct asker *a, uint32_t signature, uint32_t part)
{
    const struct maq_signature *s = &a->w.signatures->at[signature];
    return a->parts == MAQ_RISK_KERNELS ? signature == part : a->parts != MAQ_RISK_DIMENSIONS || s->dimension == part;
}

/* The part keeps `own` of its variation, everything else `others`. */
static enum maq_status ask(struct maq_step_answer *out, struct asker *a, uint32_t part, double own, double others)
{
    bool stages = a->parts == MAQ_RISK_STAGES;
    for (uint32_t i = 0; i < a->w.signatures->n; i++)
        a->signature[i] = stages ? 1 : is_of(a, i, part) ? own : others;
    for (uint32_t i = 0; i < a->w.m->stages; i++)
        a->stage[i] = !stages ? 1 : i == part ? own : others;
    for (uint32_t i = 0; stages && others <= 0 && i < a->w.signatures->n; i++) /* transfers are of no stage */
        if (a->w.signatures->at[i].transfers || a->w.signatures->at[i].joins)
            a->signature[i] = 0;
    return maq_step_question(out, &a->w, others > 0 ? a->v : &a->not_shared);
}

static enum maq_status fill(struct maq_risk_driver *d, struct asker *a, uint32_t part)
{
    struct maq_step_answer alone, halved, removed;
    MAQ_TRY(ask(&alone, a, part, 1, 0));
    MAQ_TRY(ask(&halved, a, part, 0.5, 1));
    MAQ_TRY(ask(&removed, a, part, 0, 1));
    d->alone = maq_step_answer_over(&alone, &a->none);
    d->halved = maq_step_answer_over(&a->whole, &halved);
    d->removed = maq_step_answer_over(&a->whole, &removed);
    return MAQ_OK;
}

/* Of a stage: the time of its passes. */
static double share_of_stage(const struct maq_step_model *m, uint32_t stage)
{
    double sum = 0;
    for (uint32_t id = 0; id < m->n_tasks; id++)
        sum += m->tasks[id].stage == stage ? m->tasks[id].dur_ns : 0;
    return m->base_ns > 0 ? sum / m->base_ns : 0;
}

/* What part `part` is called, and its share; false: there is none, or too little of it. */
static bool describe(struct maq_risk_driver *d, const struct asker *a, uint32_t part)
{
    const struct maq_signatures *all = a->w.signatures;
    bool found = false, outside = false;
    if (a->parts == MAQ_RISK_STAGES) {
        snprintf(d->name, sizeof d->name, "stage %u", part);
        d->share = share_of_stage(a->w.m, part);
        return true;
    }
    for (uint32_t i = 0; i < all->n; i++) {
        const struct maq_signature *s = &all->at[i];
        if (!is_of(a, i, part))
            continue;
        bool moves = between_passes(s, a->w.m);
        outside = outside || moves;
        found = found || moves || s->share >= LEAST_SHARE;
        d->share += s->share;
    }
    snprintf(d->name, sizeof d->name, "%s",
             a->parts == MAQ_RISK_KERNELS ? all->at[part].name : maq_dimension_text((enum maq_dimension)part));
    if (outside && d->share < LEAST_SHARE)
        d->share = (double)NAN;
    return found;
}

static int by_effect(const void *pa, const void *pb)
{
    const struct maq_risk_driver *a = pa, *b = pb;
    if (a->alone.value_s < b->alone.value_s || b->alone.value_s < a->alone.value_s)
        return a->alone.value_s > b->alone.value_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum maq_status ask_each(struct maq_risk_driver *out, uint32_t *n, uint32_t count, struct asker *a)
{
    MAQ_TRY(ask(&a->none, a, count, 0, 0));
    MAQ_TRY(ask(&a->whole, a, count, 1, 1));
    for (uint32_t i = 0; i < count; i++) {
        struct maq_risk_driver d = {0};
        if (!describe(&d, a, i))
            continue;
        MAQ_TRY(fill(&d, a, i));
        out[(*n)++] = d;
    }
    if (a->parts != MAQ_RISK_STAGES)
        qsort(out, *n, sizeof *out, by_effect);
    return MAQ_OK;
}

enum maq_status maq_step_drivers_find(struct maq_risk_driver **out, uint32_t *n, enum maq_risk_parts parts,
                                      const struct maq_step_question *w, const struct maq_variation *v)
{
    uint32_t count = parts == MAQ_RISK_KERNELS      ? w->signatures->n
                     : parts == MAQ_RISK_DIMENSIONS ? MAQ_DIMENSION_COUNT
                                                    : w->m->stages;
    struct asker *a = MAQ_ARENA_NEW(w->arena, struct asker, 1);
    if (!a)
        return MAQ_NO_MEMORY;
    *a = (struct asker){.w = *w, .v = v, .parts = parts};
    a->signature = MAQ_ARENA_NEW(w->arena, double, w->signatures->n);
    a->stage = MAQ_ARENA_NEW(w->arena, double, w->m->stages);
    *n = 0;
    *out = maq__calloc(count * sizeof **out);
    struct maq_spread spread = {a->signature, a->stage};
    if (!a->signature || !a->stage || !*out)
        return MAQ_NO_MEMORY;
    a->not_shared = *v;
    a->not_shared.step_cv = a->not_shared.spike_share = a->not_shared.slow_mode_share = 0;
    a->not_shared.diurnal_swing = a->not_shared.episodes_per_gpu_day = 0;
    a->w.spread = &spread;
    a->w.draws = w->draws / FEWER > MAQ_STEP_ASK_LEAST_DRAWS ? w->draws / FEWER : MAQ_STEP_ASK_LEAST_DRAWS;
    return ask_each(*out, n, count, a);
}
