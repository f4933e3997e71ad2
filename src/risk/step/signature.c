/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.c - finds the signatures of a step, counts their runs, and predicts the step once more for each with its
 * items longer, for the shares of passes and exposed reductions. See signature.h.
 */
#include "risk/step/signature.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "train/predict.h"
#include "train/step/job_step.h"

#define LEAST_STRETCH 0.1
#define MOST_SIGNATURES 64u

/* A kind of operator, or a kind of collective on a stream. */
struct kind {
    bool is_coll;
    uint8_t stream;
    uint16_t kind;
};

static bool is_of(const struct maq_item *it, const void *to)
{
    const struct kind *k = to;
    return it->is_coll == k->is_coll && (it->is_coll ? it->coll.kind : it->op.kind) == k->kind &&
           (!it->is_coll || it->stream == k->stream);
}

static void write_name(char out[MAQ_SIGNATURE_NAME], const struct kind *k)
{
    if (k->is_coll)
        snprintf(out, MAQ_SIGNATURE_NAME, "%s %s", maq_coll_kind_name((enum maq_coll_kind)k->kind),
                 maq_stream_name((enum maq_stream)k->stream));
    else
        snprintf(out, MAQ_SIGNATURE_NAME, "%s", maq_op_kind_name((enum maq_op_kind)k->kind));
}

/* Durations that others make are no kernel's. */
static bool is_kernel(uint16_t kind)
{
    return kind != MAQ_OP_NONE && kind != MAQ_OP_GAP;
}

static bool is_group(uint8_t stream)
{
    return stream != MAQ_STREAM_COMPUTE && stream != MAQ_STREAM_COPY;
}

bool maq_signature_known(const char *name)
{
    char one[MAQ_SIGNATURE_NAME];
    for (int i = 0; i < MAQ_OP_KIND_COUNT; i++) {
        write_name(one, &(struct kind){.kind = (uint16_t)i});
        if (is_kernel((uint16_t)i) && strcmp(one, name) == 0)
            return true;
    }
    for (int i = 0; i < MAQ_COLL_KIND_COUNT; i++) {
        if (strcmp(maq_coll_kind_name((enum maq_coll_kind)i), name) == 0)
            return true;
        for (int s = 0; s < MAQ_STREAM_COUNT; s++) {
            write_name(one, &(struct kind){true, (uint8_t)s, (uint16_t)i});
            if (is_group((uint8_t)s) && strcmp(one, name) == 0)
                return true;
        }
    }
    return false;
}

const char *maq_dimension_text(enum maq_dimension dimension)
{
    static const char *const texts[MAQ_DIMENSION_COUNT] = {"compute",          "TP communication", "CP communication",
                                                           "EP communication", "PP communication", "DP communication"};
    return (unsigned)dimension < MAQ_DIMENSION_COUNT ? texts[dimension] : "?";
}

static enum maq_dimension dimension_of(const struct kind *k)
{
    if (!k->is_coll)
        return MAQ_DIMENSION_COMPUTE;
    switch ((enum maq_stream)k->stream) {
    case MAQ_STREAM_TP:
        return MAQ_DIMENSION_TP;
    case MAQ_STREAM_CP:
        return MAQ_DIMENSION_CP;
    case MAQ_STREAM_EP:
        return MAQ_DIMENSION_EP;
    case MAQ_STREAM_PP:
        return MAQ_DIMENSION_PP;
    case MAQ_STREAM_DP:
        return MAQ_DIMENSION_DP;
    case MAQ_STREAM_COMPUTE:
    case MAQ_STREAM_HOST:
    case MAQ_STREAM_COPY:
    case MAQ_STREAM_COUNT:
        break;
    }
    return MAQ_DIMENSION_COMPUTE;
}

struct finder {
    const struct maq_step_model *m;
    struct maq_arena *arena;
    struct kind kind[MOST_SIGNATURES];
    double *runs[MOST_SIGNATURES]; /* [stages] in a step, as equal ones */
    uint32_t n;
    uint16_t hop, norm; /* number in `kind`; MOST_SIGNATURES: none */
    double *meetings;   /* [stages] collectives inside layers in a step */
};

static uint32_t kind_of(struct finder *f, const struct maq_item *it)
{
    struct kind k = {it->is_coll, it->is_coll ? it->stream : 0, it->is_coll ? it->coll.kind : it->op.kind};
    for (uint32_t i = 0; i < f->n; i++)
        if (is_of(it, &f->kind[i]))
            return i;
    if (f->n == MOST_SIGNATURES || (!it->is_coll && !is_kernel(k.kind)))
        return MOST_SIGNATURES;
    f->kind[f->n] = k;
    f->runs[f->n] = MAQ_ARENA_NEW(f->arena, double, f->m->stages);
    return f->runs[f->n] ? f->n++ : MOST_SIGNATURES;
}

/* Which there are, and how often a rank of each stage runs them in a step: (sum of n d)^2 / sum of n d^2 over the items. */
static enum maq_status count(struct finder *f, const struct maq_blueprint *bp, struct maq_arena *own)
{
    const struct maq_items *items = bp->items;
    double *times = MAQ_ARENA_NEW(own, double, items->n), *sum = MAQ_ARENA_NEW(own, double, MOST_SIGNATURES),
           *square = MAQ_ARENA_NEW(own, double, MOST_SIGNATURES);
    f->meetings = MAQ_ARENA_NEW(f->arena, double, f->m->stages);
    if (!times || !sum || !square || !f->meetings)
        return MAQ_NO_MEMORY;
    f->hop = f->norm = MOST_SIGNATURES;
    for (uint32_t s = 0; s < f->m->stages; s++) {
        memset(times, 0, items->n * sizeof *times);
        memset(sum, 0, MOST_SIGNATURES * sizeof *sum);
        memset(square, 0, MOST_SIGNATURES * sizeof *square);
        maq_stage_count_items(times, NULL, bp, s);
        for (uint32_t i = 1; i < items->n; i++) {
            const struct maq_item *it = &items->at[i];
            uint32_t k = times[i] > 0 ? kind_of(f, it) : MOST_SIGNATURES;
            if (k == MOST_SIGNATURES)
                continue;
            sum[k] += times[i] * it->dur_ns;
            square[k] += times[i] * it->dur_ns * it->dur_ns;
            bool inside = it->is_coll && it->stream != MAQ_STREAM_PP &&
                          (it->stream != MAQ_STREAM_DP || bp->gather_every_pass); /* ZeRO-3 meets for parameters */
            f->meetings[s] += inside ? times[i] : 0;
        }
        for (uint32_t k = 0; k < f->n; k++)
            f->runs[k][s] = square[k] > 0 ? sum[k] * sum[k] / square[k] : 0;
    }
    for (uint32_t v = 1; v < f->m->n_positions && bp->hop_ns; v++)
        f->hop = (uint16_t)kind_of(f, &items->at[bp->hop_item[v]]);
    if (bp->norm_item)
        f->norm = (uint16_t)kind_of(f, &items->at[bp->norm_item]);
    return MAQ_OK;
}

static enum maq_status find_kinds(struct finder *f, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_job_step step;
    enum maq_status status = maq_job_step_open(&step, job, NULL, diag);
    if (status == MAQ_OK)
        status = count(f, &step.bp, &step.arena);
    maq_job_step_close(&step);
    return status;
}

/* By the whole name, or by the kind of collective whatever the group. */
static int law_of(const struct maq_variation *v, const char *name)
{
    size_t kind = strcspn(name, " ");
    int whole = -1, any = -1;
    for (uint32_t i = 0; i < v->n_kernels; i++) {
        const char *k = v->kernel[i].name;
        whole = strcmp(k, name) == 0 ? (int)i : whole;
        any = strncmp(k, name, kind) == 0 && k[kind] == '\0' ? (int)i : any;
    }
    return whole >= 0 ? whole : any;
}

/* Shares of passes and rests that the slowed step shows. */
static enum maq_status respond(struct maq_signature *out, double *of_pass, double *of_rest, const struct finder *f,
                               uint32_t k, const struct maq_kernel_law *law, const struct maq_job *job,
                               struct maq_diag *diag)
{
    const struct maq_step_model *m = f->m;
    double h = law ? fmax(LEAST_STRETCH, maq_kernel_law_sd(law)) : LEAST_STRETCH;
    struct maq_slowdown slowdown = {is_of, &f->kind[k], 1 + h};
    struct maq_step_model longer;
    struct maq_arena own;
    maq_arena_init(&own, 0);
    enum maq_status status = maq_step_model_build_slowed(&longer, job, &slowdown, &own, diag);
    if (status == MAQ_OK)
        MAQ_ASSERT(longer.n_tasks == m->n_tasks && longer.n_passes == m->n_passes);
    for (uint32_t p = 0; status == MAQ_OK && p < m->n_passes; p++)
        of_pass[p] = m->pass_ns[p] > 0 ? fmax((longer.pass_ns[p] - m->pass_ns[p]) / (h * m->pass_ns[p]), 0) : 0;
    for (uint32_t s = 0; status == MAQ_OK && s < m->stages && out->dimension == MAQ_DIMENSION_DP; s++)
        of_rest[s] = m->rest_ns[s] > 0 ? fmax((longer.rest_ns[s] - m->rest_ns[s]) / (h * m->rest_ns[s]), 0) : 0;
    maq_arena_fini(&own);
    return status;
}

/* Runs of a stage's step, given to its passes in proportion to the time that they have of the signature. */
static void share_runs(double *runs, const struct maq_step_model *m, const double *of_pass, const double *in_step,
                       double *sum)
{
    memset(sum, 0, m->stages * sizeof *sum);
    for (uint32_t id = 0; id < m->n_tasks; id++)
        sum[m->tasks[id].stage] += of_pass[m->tasks[id].pass] * m->tasks[id].dur_ns;
    for (uint32_t id = 0; id < m->n_tasks; id++) {
        uint32_t p = m->tasks[id].pass, s = m->tasks[id].stage;
        runs[p] = sum[s] > 0 ? fmax(in_step[s] * of_pass[p] * m->pass_ns[p] / sum[s], 1) : 1;
    }
}

/* What is left of a part is the last signature's; where there is too much all are scaled. */
static void close_shares(double *const *of, uint32_t n, uint32_t parts)
{
    for (uint32_t p = 0; p < parts; p++) {
        double sum = 0;
        for (uint32_t k = 0; k < n; k++)
            sum += of[k][p];
        for (uint32_t k = 0; k < n && sum > 1; k++)
            of[k][p] /= sum;
        of[n][p] = sum < 1 ? 1 - sum : 0;
    }
}

static double share_of_step(const struct maq_step_model *m, const double *of_pass)
{
    double sum = 0;
    for (uint32_t id = 0; id < m->n_tasks; id++)
        sum += of_pass[m->tasks[id].pass] * m->tasks[id].dur_ns;
    return m->base_ns > 0 ? sum / m->base_ns / m->stages : 0;
}

/* Passes last alike in a stage where its groups meet evenly often. */
static double *meetings_of(const struct finder *f, double *sum)
{
    const struct maq_step_model *m = f->m;
    double *out = MAQ_ARENA_NEW(f->arena, double, m->n_passes), *whole = MAQ_ARENA_NEW(f->arena, double, m->n_passes);
    for (uint32_t p = 0; out && whole && p < m->n_passes; p++)
        whole[p] = 1;
    if (out && whole)
        share_runs(out, m, whole, f->meetings, sum);
    return whole ? out : NULL;
}

enum maq_status maq_signatures_find(struct maq_signatures *out, const struct maq_job *job,
                                    const struct maq_step_model *m, const struct maq_variation *v,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    struct finder *f = MAQ_ARENA_NEW(arena, struct finder, 1);
    if (!f)
        return MAQ_NO_MEMORY;
    f->m = m;
    f->arena = arena;
    MAQ_TRY(find_kinds(f, job, diag));
    double **of_pass = MAQ_ARENA_NEW(arena, double *, f->n + 1), **of_rest = MAQ_ARENA_NEW(arena, double *, f->n + 1),
           *sum = MAQ_ARENA_NEW(arena, double, m->stages);
    *out = (struct maq_signatures){.n = f->n + 1, .at = MAQ_ARENA_NEW(arena, struct maq_signature, f->n + 1)};
    if (!of_pass || !of_rest || !sum || !out->at)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k <= f->n; k++) {
        struct maq_signature *s = &out->at[k];
        of_pass[k] = MAQ_ARENA_NEW(arena, double, m->n_passes);
        of_rest[k] = MAQ_ARENA_NEW(arena, double, m->stages);
        double *runs = MAQ_ARENA_NEW(arena, double, m->n_passes);
        if (!of_pass[k] || !of_rest[k] || !runs)
            return MAQ_NO_MEMORY;
        *s = (struct maq_signature){.of_pass = of_pass[k], .of_rest = of_rest[k], .runs = runs, .law = -1};
        if (k == f->n) {
            snprintf(s->name, sizeof s->name, "rest");
            break;
        }
        write_name(s->name, &f->kind[k]);
        s->dimension = (uint8_t)dimension_of(&f->kind[k]);
        s->is_coll = f->kind[k].is_coll;
        s->law = law_of(v, s->name);
        s->transfers = k == f->hop;
        s->joins = k == f->norm;
        MAQ_TRY(respond(s, of_pass[k], of_rest[k], f, k, s->law < 0 ? NULL : &v->kernel[s->law], job, diag));
        share_runs(runs, m, of_pass[k], f->runs[k], sum);
    }
    close_shares(of_pass, f->n, m->n_passes);
    close_shares(of_rest, f->n, m->stages);
    for (uint32_t k = 0; k <= f->n; k++)
        out->at[k].share = share_of_step(m, of_pass[k]);
    out->meetings = meetings_of(f, sum);
    return out->meetings ? MAQ_OK : MAQ_NO_MEMORY;
}
