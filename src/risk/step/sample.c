/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - maq_step_sample(): Monte Carlo draws of replicas of a step's pipeline.
 *
 * For each replica, stage factors are drawn once: the slowest node of the stage's lockstep group times the slowest of its
 * GPUs, as far as that is slower than the base has it already. Each pass then lasts base x stage x slowest pass of the
 * group x work of its microbatch; each transfer base x its own factor x congestion. What is drawn for passes comes from a
 * table of 16,384 equally likely values of the law of the slowest (its quantiles at midpoints), which one Philox block
 * serves for eight replicas: lane k takes 14 bits of the k-th half word.
 *
 * The lasting factors are drawn once for all passes and decide most of what a replica varies by. They are quasi-random
 * (base/stat/sobol.h): draw i is point i / 10 of the scrambling with number i % 10, so the differences between the ten are the
 * sampling error (what that is worth: docs/risk.md). Independent draws are of plain random numbers, and no GPU is drawn slower than
 * it is.
 *
 * Eight replicas are evaluated together, in lanes. Numbers are keyed by replica group, task and purpose: results do not depend on
 * threads.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"
#include "base/stat/maximum.h"
#include "base/stat/rng.h"
#include "base/stat/sobol.h"
#include "base/stat/special_functions.h"
#include "risk/step/model.h"

#define LANES 8
#define TABLE MAQ_STEP_TABLE
#define TILT 0.3
#define MAX_THREADS 64

struct sampler {
    const struct maq_step_model *m;
    const struct maq_variation *v;
    const struct maq_step_slow *slow;
    const struct maq_step_run *run;
    const struct maq_sobol *quasi; /* [MAQ_STEP_SCRAMBLINGS]; NULL: independent draws */
    uint32_t dimensions;           /* of it */
    const double *rest_density;    /* [TABLE] of a tilted draw of a reduction's own law; NULL: none has one */
    const double *pass, *transfer, *rest, *work, *slowest_gpu; /* [TABLE]; NULL: always 1 */
    struct maq_law gpu, gpu_part[2];
    double gpu_weight[2];
    double *out, *weight;
    _Atomic uint32_t next;
    atomic_bool failed;
};

/*
 * The slowest GPU of a node: a table of quantiles at k / TABLE, with lines between; in its last 64 cells, where lines would be too
 * coarse for the slowest of thousands of nodes, the quantile itself.
 */
static bool make_gpu_table(struct sampler *s, double n, struct maq_arena *arena)
{
    if (s->v->gpu_cv <= 0 && s->v->gpu_outlier_share <= 0)
        return true;
    double *table = MAQ_ARENA_NEW(arena, double, TABLE);
    for (uint32_t i = 0; table && i < TABLE; i++)
        table[i] = maq_max_quantile(&s->gpu, n, i > 0 ? (double)i / TABLE : 0.5 / TABLE);
    s->slowest_gpu = table;
    return table != NULL;
}

static double slowest_gpu(const struct sampler *s, double n, double u)
{
    double at = u * TABLE;
    uint32_t cell = (uint32_t)at;
    if (cell + 64 >= TABLE)
        return maq_max_quantile(&s->gpu, n, u);
    return s->slowest_gpu[cell] + (at - cell) * (s->slowest_gpu[cell + 1] - s->slowest_gpu[cell]);
}

/* Quantiles of the slowest of n factors that are lognormal with median 1. */
static bool make_table(const double **out, double cv, double n, struct maq_arena *arena)
{
    double *table = cv > 0 ? MAQ_ARENA_NEW(arena, double, TABLE) : NULL;
    struct maq_law law = maq_law_lognormal(1, maq_lognormal_sigma(cv));
    *out = table;
    for (uint32_t i = 0; table && i < TABLE; i++)
        table[i] = maq_max_quantile(&law, n, (i + 0.5) / TABLE);
    return table || cv <= 0;
}

/* Of a lockstep group. */
static double gpus_per_node(const struct maq_step_model *m)
{
    return m->lockstep < m->devices_per_node ? m->lockstep : m->devices_per_node;
}

/* Dimensions of the lasting factors: whether and where a cell is tilted, the GPUs of each cell, the node of each. */
enum { IS_TILTED, WHICH_TILTED, FIRST_CELL };

/* Number `dimension` of a replica. */
static double lasting(const struct sampler *s, uint32_t replica, uint32_t dimension)
{
    if (dimension < s->dimensions)
        return maq_sobol_at(&s->quasi[replica % MAQ_STEP_SCRAMBLINGS], replica / MAQ_STEP_SCRAMBLINGS, dimension);
    return maq_rng_at(s->run->seed, MAQ_RNG_STATIC, replica, dimension);
}

/*
 * The lasting factors of a replica's stages, and the weight of the draw. Slow GPUs decide about the slowest of thousands of
 * replicas, so in every other draw one of the cells (a node of a stage), any of them, has the share y of slower cells not uniform
 * but with density TILT y^(TILT - 1). A draw then stands for 1 / (1/2 + 1/2 mean over cells of that density) even ones: at most two
 * (importance sampling with a defensive mixture: Hesterberg, "Weighted average importance sampling and defensive mixture
 * distributions", 1995).
 */
static double draw_static(double *factor, const struct sampler *s, uint32_t replica)
{
    const struct maq_step_model *m = s->m;
    uint32_t cells = m->stages * m->nodes, tilted = MAQ_RISK_NO_TASK;
    double per_node = gpus_per_node(m), sigma = maq_lognormal_sigma(s->v->node_cv), density = 0;
    bool tilts = s->slowest_gpu && !s->run->independent;
    if (tilts && lasting(s, replica, IS_TILTED) < 0.5)
        tilted = (uint32_t)(lasting(s, replica, WHICH_TILTED) * cells);
    for (uint32_t cell = 0; cell < cells; cell++) {
        double y = lasting(s, replica, FIRST_CELL + cell), f = 1;
        if (s->slowest_gpu) {
            y = cell == tilted ? fmax(exp(log(y) / TILT), 1e-15) : y;
            density += TILT * exp((TILT - 1) * log(y)) / cells;
            f = slowest_gpu(s, per_node, 1 - y);
        }
        if (sigma > 0)
            f *= exp(sigma * maq_normal_quantile(lasting(s, replica, FIRST_CELL + cells + cell)));
        double *out = &factor[cell / m->nodes * LANES];
        f = maq_step_lasting(m, cell / m->nodes, f);
        *out = cell % m->nodes == 0 || f > *out ? f : *out;
    }
    return tilts ? 1 / (0.5 + 0.5 * density) : 1;
}

/* What a purpose draws for the lanes, multiplied into x; the purposes of a task are apart from each other. */
static inline void scale(double *x, const double *table, const struct sampler *s, uint32_t group, uint64_t task,
                         int purpose)
{
    uint32_t w[4];
    if (!table)
        return;
    maq_rng_block(w, s->run->seed, MAQ_RNG_STEP, group, task * 8 + (uint64_t)purpose);
    for (int k = 0; k < LANES; k++)
        x[k] *= table[(k % 2 ? w[k / 2] >> 16 : w[k / 2] & 0xffff) >> 2];
}

enum purpose { PASS, WORK, ARRIVES_0, ARRIVES_1, REST, OWN };

/* Communication of a regime: what of it varies, and what does not. */
struct communication {
    double varies, stays; /* factors on its time */
};

static struct communication communication_of(const struct sampler *s, double kept)
{
    return (struct communication){kept * (s->run->congestion * s->slow->communication),
                                  (1 - kept) * s->slow->communication};
}

/* Latest of y and what a predecessor hands over. */
static inline void wait_for(double *y, const double *finish, const struct sampler *s, uint32_t group, uint32_t id,
                            uint32_t pred, double hop, struct communication comm, int purpose)
{
    double move[LANES];
    for (int k = 0; k < LANES; k++)
        move[k] = hop * comm.varies;
    if (hop > 0)
        scale(move, s->transfer, s, group, id, purpose);
    for (int k = 0; k < LANES; k++)
        move[k] += hop * comm.stays;
    const double *from = &finish[(size_t)pred * LANES];
    for (int k = 0; k < LANES; k++) {
        double at = from[k] + move[k];
        y[k] = at > y[k] ? at : y[k];
    }
}

/* A pass's duration in all lanes. */
static inline void set_duration(double *d, const struct maq_step_task *t, const double *stage_factor,
                                const struct sampler *s, uint32_t group, uint32_t id)
{
    for (int k = 0; k < LANES; k++)
        d[k] = t->dur_ns * stage_factor[t->stage * LANES + k];
    scale(d, s->pass, s, group, id, PASS);
    scale(d, s->work, s, group, t->microbatch, WORK); /* the same for all passes of a microbatch */
}

/* The same where not all of it varies, or not all of it with the pass: model.h. */
static inline void set_part_duration(double *d, const struct maq_step_task *t, const double *stage_factor,
                                     const struct sampler *s, uint32_t group, uint32_t id)
{
    const struct maq_step_focus *f = s->run->focus;
    double a = f->with_pass[t->pass], b = f->own[t->pass], with[LANES], own[LANES];
    double base = t->dur_ns * (s->slow->stage ? s->slow->stage[t->stage] : 1), fixed = 1 - a - b;
    for (int k = 0; k < LANES; k++) {
        d[k] = stage_factor[t->stage * LANES + k];
        with[k] = a;
        own[k] = b > 0 ? 1 : 0;
    }
    scale(with, s->pass, s, group, id, PASS);
    if (b > 0)
        scale(own, f->own_table[t->pass], s, group, id, OWN);
    scale(d, s->work, s, group, t->microbatch, WORK);
    for (int k = 0; k < LANES; k++)
        d[k] = base * (fixed + d[k] * (with[k] + own[k]));
}

static void run_tasks(double *finish, const double *stage_factor, const struct sampler *s, uint32_t group)
{
    const struct maq_step_model *m = s->m;
    struct communication comm = communication_of(s, s->run->focus ? s->run->focus->transfer : 1);
    for (uint32_t id = 0; id < m->n_tasks; id++) {
        const struct maq_step_task *t = &m->tasks[id];
        double y[LANES] = {0}, d[LANES];
        if (t->previous != MAQ_RISK_NO_TASK) {
            double stall = t->stall ? m->stall_ns[t->stall] * (comm.varies + comm.stays) : 0;
            for (int k = 0; k < LANES; k++)
                y[k] = finish[(size_t)t->previous * LANES + k] + stall;
        }
        for (int i = 0; i < 2; i++)
            if (t->pred[i] != MAQ_RISK_NO_TASK)
                wait_for(y, finish, s, group, id, t->pred[i], t->hop[i] ? m->hop_ns[t->hop[i]] : 0, comm,
                         i ? ARRIVES_1 : ARRIVES_0);
        if (s->run->focus)
            set_part_duration(d, t, stage_factor, s, group, id);
        else
            set_duration(d, t, stage_factor, s, group, id);
        for (int k = 0; k < LANES; k++) {
            y[k] += d[k];
            finish[(size_t)id * LANES + k] = y[k] > t->ready_ns ? y[k] : t->ready_ns;
        }
    }
}

/*
 * Of a reduction with a law of its own there is one draw per stage, and rare slow ones decide about the slowest replica: as with
 * GPUs, in every other draw one of the stages has its share y of slower values from the density TILT y^(TILT - 1). `density`
 * gathers what the weight is made of.
 */
static void draw_rest(double *rest, double *density, const struct sampler *s, uint32_t group, uint32_t stage)
{
    uint32_t w[4];
    maq_rng_block(w, s->run->seed, MAQ_RNG_STEP, group, ((uint64_t)s->m->n_tasks + stage) * 8 + REST);
    for (uint32_t k = 0; k < LANES; k++) {
        uint32_t i = (k % 2 ? w[k / 2] >> 16 : w[k / 2] & 0xffff) >> 2, replica = group * LANES + k;
        uint64_t seed = s->run->seed;
        if (maq_rng_at(seed, MAQ_RNG_SPIKE, replica, 0) < 0.5 &&
            (uint32_t)(maq_rng_at(seed, MAQ_RNG_SPIKE, replica, 1) * s->m->stages) == stage)
            i = TABLE - 1 - (uint32_t)(exp(log(maq_rng_at(seed, MAQ_RNG_SPIKE, replica, 2)) / TILT) * TABLE);
        rest[k] *= s->rest[i];
        density[k] += s->rest_density[i];
    }
}

static bool make_rest_density(struct sampler *s, struct maq_arena *arena)
{
    double *density = MAQ_ARENA_NEW(arena, double, TABLE), before = 0;
    for (uint32_t j = 0; density && j < TABLE; j++) { /* from the slow end */
        double now = exp(TILT * log((j + 1.0) / TABLE));
        density[TABLE - 1 - j] = (now - before) * TABLE;
        before = now;
    }
    s->rest_density = density;
    return density != NULL;
}

/* The end of the slowest stage with what of its reduction nothing hides. */
static void finish_group(double *out, double *weight, const double *finish, const struct sampler *s, uint32_t group)
{
    const struct maq_step_model *m = s->m;
    const struct maq_step_focus *f = s->run->focus;
    struct communication tied_comm = communication_of(s, f ? f->norm : 1);
    double end[LANES] = {0}, ends[2][LANES] = {{0}}, density[LANES] = {0};
    for (uint32_t st = 0; st < m->stages; st++) {
        struct communication comm = communication_of(s, f ? f->rest[st] : 1);
        double rest[LANES];
        for (int k = 0; k < LANES; k++)
            rest[k] = m->rest_ns[st] * comm.varies;
        if (s->rest_density && m->rest_ns[st] > 0)
            draw_rest(rest, density, s, group, st);
        else if (s->rest_density)
            for (int k = 0; k < LANES; k++)
                density[k] += 1; /* a tilt of nothing */
        else if (m->rest_ns[st] > 0)
            scale(rest, s->rest, s, group, (uint64_t)m->n_tasks + st, REST);
        for (int k = 0; k < LANES; k++) {
            double at = finish[(size_t)m->stage_last[st] * LANES + k] + (rest[k] + m->rest_ns[st] * comm.stays);
            end[k] = at > end[k] ? at : end[k];
            if (st == 0)
                ends[0][k] = at;
            if (st + 1 == m->stages)
                ends[1][k] = at;
        }
    }
    for (int k = 0; k < LANES; k++) {
        double tied =
            (ends[0][k] > ends[1][k] ? ends[0][k] : ends[1][k]) + m->tied_ns * (tied_comm.varies + tied_comm.stays);
        out[k] = m->tied_ns > 0 && tied > end[k] ? tied : end[k];
        weight[k] *= s->rest_density ? 1 / (0.5 + 0.5 * density[k] / m->stages) : 1;
    }
}

static void *work(void *ptr)
{
    struct sampler *s = ptr;
    const struct maq_step_model *m = s->m;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    double *finish = MAQ_ARENA_NEW(&arena, double, (size_t)m->n_tasks *LANES),
           *factor = MAQ_ARENA_NEW(&arena, double, (size_t)m->stages *LANES);
    if (!finish || !factor)
        atomic_store(&s->failed, true);
    uint32_t groups = (s->run->draws + LANES - 1) / LANES;
    for (uint32_t g; finish && factor && (g = atomic_fetch_add(&s->next, 1)) < groups;) {
        double end[LANES], weight[LANES];
        for (uint32_t k = 0; k < LANES; k++)
            weight[k] = draw_static(factor + k, s, g * LANES + k);
        for (uint32_t i = 0; s->slow->stage && !s->run->focus && i < m->stages * LANES; i++)
            factor[i] *= s->slow->stage[i / LANES];
        for (uint32_t k = 0; k < LANES && s->slow->somewhere > 0; k++) {
            uint32_t stage = (uint32_t)(maq_rng_at(s->run->seed, MAQ_RNG_REGIME, g * LANES + k, 0) * m->stages);
            factor[stage * LANES + k] *= s->slow->somewhere;
        }
        run_tasks(finish, factor, s, g);
        finish_group(end, weight, finish, s, g);
        for (uint32_t k = 0; k < LANES && g * LANES + k < s->run->draws; k++) {
            s->out[g * LANES + k] = end[k];
            s->weight[g * LANES + k] = weight[k];
        }
    }
    maq_arena_fini(&arena);
    return NULL;
}

static bool make_quasi(struct sampler *s, struct maq_arena *arena)
{
    uint32_t wanted = FIRST_CELL + 2 * s->m->stages * s->m->nodes;
    struct maq_sobol *q = MAQ_ARENA_NEW(arena, struct maq_sobol, MAQ_STEP_SCRAMBLINGS);
    s->quasi = q;
    s->dimensions = wanted < MAQ_QUASI_DIMENSIONS ? wanted : MAQ_QUASI_DIMENSIONS;
    for (uint32_t i = 0; q && i < MAQ_STEP_SCRAMBLINGS; i++)
        maq_sobol_init(&q[i], s->dimensions, s->run->seed, i);
    return q != NULL;
}

enum maq_status maq_step_sample(double *out_ns, double *weight, const struct maq_step_model *m,
                                const struct maq_variation *v, const struct maq_step_slow *slow,
                                const struct maq_step_run *run, struct maq_arena *arena)
{
    struct sampler *s = MAQ_ARENA_NEW(arena, struct sampler, 1);
    if (!s)
        return MAQ_NO_MEMORY;
    s->m = m;
    s->v = v;
    s->slow = slow;
    s->run = run;
    s->out = out_ns;
    s->weight = weight;
    /* a zero width keeps the law valid: 1e-12 changes no time of whole nanoseconds below 10 minutes */
    s->gpu_part[0] = maq_law_lognormal(1, fmax(maq_lognormal_sigma(v->gpu_cv), 1e-12));
    s->gpu_part[1] = maq_law_lognormal(v->gpu_outlier_ratio, fmax(maq_lognormal_sigma(v->gpu_outlier_cv), 1e-12));
    s->gpu_weight[0] = 1 - v->gpu_outlier_share;
    s->gpu_weight[1] = v->gpu_outlier_share;
    s->gpu = v->gpu_outlier_share > 0 ? maq_law_mixture(s->gpu_part, s->gpu_weight, 2) : s->gpu_part[0];
    if (!make_gpu_table(s, gpus_per_node(m), arena) || !make_table(&s->pass, v->pass_cv, m->lockstep, arena) ||
        !make_table(&s->transfer, v->communication_cv, 1, arena) || !make_table(&s->work, v->microbatch_cv, 1, arena))
        return MAQ_NO_MEMORY;
    s->rest = run->focus && run->focus->rest_table ? run->focus->rest_table : s->transfer;
    if (run->focus && run->focus->rest_table && !run->independent && !make_rest_density(s, arena))
        return MAQ_NO_MEMORY;
    if (!run->independent && !make_quasi(s, arena))
        return MAQ_NO_MEMORY;
    s->transfer = run->focus && run->focus->hop_table ? run->focus->hop_table : s->transfer;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = run->threads > 0 ? run->threads : cores > 0 ? (uint32_t)cores : 1, started = 1;
    pthread_t ids[MAX_THREADS];
    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    while (started < threads && pthread_create(&ids[started], NULL, work, s) == 0)
        started++;
    work(s);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    return atomic_load(&s->failed) ? MAQ_NO_MEMORY : MAQ_OK;
}
