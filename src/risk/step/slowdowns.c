/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowdowns.c - slow ranks, nodes, stages and links as factors of replicas: see slowdowns.h.
 *
 * A rank is slow in its replica's stage: its lockstep group waits for it. The rail of a slow link carries its share of every
 * transfer between nodes, which waits for it, so all of that communication takes the rail's time (one rail of several is not left
 * out).
 */
#include "risk/step/slowdowns.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"

#define MOST_REPLICAS 4096u

static const char forms[] = "node:17=1.2x, rank:4095=1.1x, stage:3=1.1x: times as long; link:rail3=0.5x: of its speed";

static enum maq_status refuse(const char *text, const char *why, struct maq_diag *diag)
{
    char shown[MAQ_SHOW_SIZE];
    return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_RISK_SLOW, (struct maq_span){0}, forms, "--slow %s: %s",
                         maq_str_show(shown, maq_str_of(text)), why);
}

struct slow_part {
    char what; /* n, r, s, l */
    uint32_t number;
    double factor;
};

static enum maq_status parse(struct slow_part *out, const char *text, struct maq_diag *diag)
{
    static const struct {
        const char *prefix;
        char what;
    } kinds[] = {{"node:", 'n'}, {"rank:", 'r'}, {"stage:", 's'}, {"link:rail", 'l'}};
    struct maq_str head, rest = maq_str_split(maq_str_of(text), '=', &head);
    int64_t number;
    for (size_t i = 0; i < MAQ_COUNT(kinds); i++) {
        size_t n = strlen(kinds[i].prefix);
        if (!maq_str_starts(head, kinds[i].prefix))
            continue;
        if (!maq_str_to_i64(&number, (struct maq_str){head.ptr + n, head.len - n}) || number < 0 || number > INT32_MAX)
            return refuse(text, "there is no such number", diag);
        if (rest.len < 2 || rest.ptr[rest.len - 1] != 'x')
            return refuse(text, "the factor ends with x", diag);
        rest.len--;
        if (!maq_str_to_double(&out->factor, rest) || !(out->factor >= 0.001 && out->factor <= 1000))
            return refuse(text, "the factor is 0.001 to 1000", diag);
        if ((kinds[i].what == 'n' || kinds[i].what == 'r') && out->factor < 1)
            return refuse(text, "the others would wait for it no less: the factor is 1 or more", diag);
        if (kinds[i].what == 'l' && out->factor > 1)
            return refuse(text, "the other links would be as slow: the factor is 1 or less", diag);
        out->what = kinds[i].what;
        out->number = (uint32_t)number;
        return MAQ_OK;
    }
    return refuse(text, "not a node, rank, stage or link", diag);
}

/* Ranks of one stage are `stride` of neighbours, then the next stage's: the degrees in front of pp in the rank order. */
static uint32_t stage_stride(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    uint32_t dense = (uint32_t)p->tp * (uint32_t)p->cp * (uint32_t)p->pp, stride = 1;
    uint32_t dp = dense > 0 ? (uint32_t)job->cluster.devices / dense : 1;
    struct maq_str rest = p->rank_order, word;
    while (rest.len > 0) {
        rest = maq_str_split(rest, '-', &word);
        if (maq_str_is(word, "pp"))
            return stride;
        stride *= maq_str_is(word, "tp")   ? (uint32_t)p->tp
                  : maq_str_is(word, "cp") ? (uint32_t)p->cp
                  : maq_str_is(word, "dp") ? dp
                                           : 1;
    }
    return stride;
}

/* A slow replica before equal ones are put together. */
struct touched {
    uint32_t replica;
    double *stage;
};

struct reader {
    const struct maq_job *job;
    const struct maq_step_model *m;
    struct maq_arena *arena;
    struct touched *touched; /* [MOST_REPLICAS] */
    uint32_t n;
};

static double *new_factors(const struct reader *r)
{
    double *f = MAQ_ARENA_NEW(r->arena, double, r->m->stages);
    for (uint32_t s = 0; f && s < r->m->stages; s++)
        f[s] = 1;
    return f;
}

static enum maq_status touch(struct reader *r, uint32_t rank, double factor, const char *text, struct maq_diag *diag)
{
    uint32_t stride = stage_stride(r->job), pp = r->m->stages, stage = rank / stride % pp;
    uint32_t within = rank % stride + rank / (stride * pp) * stride, replica = (uint32_t)(within / r->m->lockstep),
             i = 0;
    while (i < r->n && r->touched[i].replica != replica)
        i++;
    if (i == r->n) {
        if (i == MOST_REPLICAS)
            return refuse(text, "too many slow replicas", diag);
        r->touched[i] = (struct touched){replica, new_factors(r)};
        if (!r->touched[i].stage)
            return MAQ_NO_MEMORY;
        r->n++;
    }
    double *f = &r->touched[i].stage[stage];
    *f = factor > *f ? factor : *f;
    return MAQ_OK;
}

static enum maq_status apply(struct reader *r, struct maq_slow *out, double *everywhere, const char *text,
                             struct maq_diag *diag)
{
    struct slow_part part;
    MAQ_TRY(parse(&part, text, diag));
    uint32_t per_node = r->m->devices_per_node, devices = (uint32_t)r->job->cluster.devices;
    switch (part.what) {
    case 's':
        if (part.number >= r->m->stages)
            return refuse(text, "the job has not so many stages", diag);
        everywhere[part.number] *= part.factor;
        return MAQ_OK;
    case 'l':
        if (part.number >= per_node)
            return refuse(text, "a node has not so many rails", diag);
        out->communication = 1 / part.factor > out->communication ? 1 / part.factor : out->communication;
        return MAQ_OK;
    case 'r':
        if (part.number >= devices)
            return refuse(text, "the job has not so many ranks", diag);
        return touch(r, part.number, part.factor, text, diag);
    default:
        if (part.number >= devices / per_node)
            return refuse(text, "the job has not so many nodes", diag);
        for (uint32_t i = 0; i < per_node; i++)
            MAQ_TRY(touch(r, part.number * per_node + i, part.factor, text, diag));
        return MAQ_OK;
    }
}

/* Replicas with the same factors are one kind. */
static enum maq_status make_kinds(struct maq_slow *out, const struct reader *r, double *everywhere)
{
    size_t bytes = r->m->stages * sizeof(double);
    out->kind = MAQ_ARENA_NEW(r->arena, struct maq_slow_kind, r->n + 1);
    if (!out->kind)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < r->n; i++) {
        double *f = r->touched[i].stage;
        uint32_t k = 0;
        for (uint32_t s = 0; s < r->m->stages; s++)
            f[s] *= everywhere[s];
        while (k < out->n && memcmp(out->kind[k].stage, f, bytes) != 0)
            k++;
        if (k == out->n)
            out->kind[out->n++] = (struct maq_slow_kind){0, f};
        out->kind[k].count++;
    }
    out->kind[out->n++] = (struct maq_slow_kind){r->m->replicas - r->n, everywhere};
    return MAQ_OK;
}

enum maq_status maq_slow_read(struct maq_slow *out, const char *const *texts, uint32_t n, const struct maq_job *job,
                              const struct maq_step_model *m, struct maq_arena *arena, struct maq_diag *diag)
{
    struct reader r = {.job = job, .m = m, .arena = arena};
    *out = (struct maq_slow){.communication = 1};
    r.touched = MAQ_ARENA_NEW(arena, struct touched, MOST_REPLICAS);
    double *everywhere = new_factors(&r);
    if (!r.touched || !everywhere)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        MAQ_TRY(apply(&r, out, everywhere, texts[i], diag));
    return make_kinds(out, &r, everywhere);
}
