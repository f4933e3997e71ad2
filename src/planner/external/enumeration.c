/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enumeration.c - profiles every pair of slice class and island, asks the parallelizer for the pairs that a limit
 * leaves, and checks and copies its plans.
 *
 * A plan that repeats an earlier one of its pair is kept once. A position is asked for only where a plan of the
 * answer before no longer fits. See enumeration.h.
 */
#include "planner/external/enumeration.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "planner/external/codes.h"

/* ---- profiles ---- */

static bool profile_pair(struct maq_enumeration *e, void *user, uint32_t job, uint32_t worker,
                         struct maq_slices_fault *fault)
{
    uint32_t island = job % e->chain->n_islands;
    char why[MAQ_PARALLELIZER_WHY] = "";
    struct maq_parallelizer_profile p = {0, 0};
    (void)user;
    enum maq_status status = e->source.functions.profile(&p, e->states[worker], &e->classes[job / e->chain->n_islands],
                                                         &e->chain->islands[island], why);
    if (status == MAQ_OK && !(p.samples_per_s >= 0 && p.min_bytes >= 0)) {
        maq__snprintf(why, sizeof why, "its profile of a slice says %g samples/s and %g bytes", p.samples_per_s,
                      p.min_bytes);
        maq_slices_fail(fault, e, e->states[worker], MAQ_BAD_INPUT, why);
        fault->code = MAQ_CODE_PARALLELIZER_VALUE;
        return false;
    }
    if (status != MAQ_OK)
        maq_slices_fail(fault, e, e->states[worker], status, why);
    e->profiles[job] = p;
    return status == MAQ_OK;
}

static enum maq_status profile_all(struct maq_enumeration *e, struct maq_diag *diag)
{
    uint32_t islands = e->chain->n_islands, n = e->n_classes * islands;
    double *seconds = MAQ_ARENA_NEW(e->arena, double, n);
    e->profiles = MAQ_ARENA_NEW(e->arena, struct maq_parallelizer_profile, n);
    if (!seconds || !e->profiles)
        return maq_no_memory(diag, "the search");
    MAQ_TRY(maq_slices_run(e, profile_pair, NULL, n, diag));
    e->calls.profiles = n;
    for (uint32_t i = 0; i < n; i++) {
        double rate = e->profiles[i].samples_per_s;
        bool unfit = !e->opts->ask_infeasible && maq_slices_is_unfit(e, i / islands, &e->chain->islands[i % islands]);
        seconds[i] = unfit ? HUGE_VAL : rate > 0 && isfinite(rate) ? 1 / rate : 0;
    }
    const struct maq_pair_profile profile = {e->n_atoms, e->n_classes, islands, e->class_of, seconds};
    return maq_pair_bounds_init(&e->bounds, &profile, e->arena) ? MAQ_OK : maq_no_memory(diag, "the search");
}

/* ---- life ---- */

enum maq_status maq_enumeration_init(struct maq_enumeration *e, const struct maq_slices_chain *chain,
                                     const struct maq_slices_source *source, const struct maq_slices_opts *opts,
                                     const struct maq_slices_wave *waves, uint32_t n_waves, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    uint32_t wanted = source->functions.flags & MAQ_PARALLELIZER_THREADS && opts->workers > 1 ? opts->workers : 1;
    *e = (struct maq_enumeration){
        .chain = chain, .opts = opts, .source = *source, .arena = arena, .n_waves = n_waves, .waves = waves};
    wanted = wanted < MAQ_SLICES_WORKERS ? wanted : MAQ_SLICES_WORKERS;
    while (e->n_states < wanted) {
        char why[MAQ_PARALLELIZER_WHY] = "";
        void *state = NULL;
        enum maq_status status = source->functions.open(&state, source->functions.context, &chain->model, why);
        if (status != MAQ_OK) {
            struct maq_slices_fault fault = {.job = 0};
            maq_slices_fail(&fault, e, NULL, status, why);
            return maq_slices_report(e, &fault, diag);
        }
        maq_arena_init(&e->arenas[e->n_states], 0);
        e->states[e->n_states++] = state;
    }
    MAQ_TRY(maq_enumeration_classes(e, diag));
    MAQ_TRY(profile_all(e, diag));
    e->answers = MAQ_ARENA_NEW(arena, struct maq_slices_answer, (size_t)n_waves * e->n_classes * chain->n_islands);
    return e->answers ? MAQ_OK : maq_no_memory(diag, "the search");
}

void maq_enumeration_fini(struct maq_enumeration *e)
{
    for (uint32_t i = 0; i < e->n_states; i++) {
        e->source.functions.close(e->states[i]);
        maq_arena_fini(&e->arenas[i]);
    }
    e->n_states = 0;
}

/* ---- answers ---- */

static bool is_number(double x)
{
    return isfinite(x) && x >= 0;
}

/* Why a plan of the parallelizer is refused; NULL: it is valid. */
static const char *fault_of(const struct maq_parallelizer_plan *plan, const struct maq_parallelizer_slice *slice,
                            const struct maq_parallelizer_island *part)
{
    uint64_t atoms = 0, devices = 0, has = (uint64_t)part->nodes * part->devices_per_node;
    if (plan->n_stages == 0 || !plan->stages || plan->n_stages > slice->atoms)
        return "a plan has one stage for an atom at most, and one at least";
    for (uint32_t i = 0; i < plan->n_stages; i++) {
        const struct maq_parallelizer_stage *s = &plan->stages[i];
        atoms += s->atoms;
        devices += s->devices;
        if (s->atoms == 0 || s->devices == 0)
            return "a stage has an atom and a device at least";
        if (s->replicas > 0 && s->devices % s->replicas != 0)
            return "a stage's replicas divide its devices";
        if (!is_number(s->time_s) || !is_number(s->static_bytes) || !is_number(s->flight_bytes) ||
            !is_number(s->sync_s) || !is_number(s->once_s) || !is_number(s->boundary_bytes))
            return "times and bytes are finite and not negative";
        if (s->recompute < -1 || s->recompute > MAQ_RECOMPUTE_FULL || s->sharding < -1 ||
            s->sharding > MAQ_SHARDING_PARAMS)
            return "recompute or sharding is none of the kinds of plan.h";
    }
    if (atoms != slice->atoms)
        return "the atoms of a plan's stages are those of the slice";
    return devices <= has ? NULL : "the devices of a plan's stages are no more than the island's";
}

static bool is_same_plan(const struct maq_parallelizer_plan *a, const struct maq_parallelizer_plan *b)
{
    if (a->n_stages != b->n_stages || strcmp(a->text, b->text ? b->text : "") != 0)
        return false;
    for (uint32_t i = 0; i < a->n_stages; i++) {
        const struct maq_parallelizer_stage *s = &a->stages[i], *t = &b->stages[i];
        if (s->atoms != t->atoms || s->devices != t->devices || s->replicas != t->replicas || s->time_s != t->time_s ||
            s->static_bytes != t->static_bytes || s->flight_bytes != t->flight_bytes || s->sync_s != t->sync_s ||
            s->once_s != t->once_s || s->boundary_bytes != t->boundary_bytes)
            return false;
    }
    return true;
}

static bool keep_plan(struct maq_slices_answer *a, const struct maq_parallelizer_plan *plan, struct maq_arena *arena)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (is_same_plan(a->plans[i], plan))
            return true;
    struct maq_parallelizer_plan *copy = MAQ_ARENA_NEW(arena, struct maq_parallelizer_plan, 1);
    struct maq_parallelizer_stage *stages = MAQ_ARENA_NEW(arena, struct maq_parallelizer_stage, plan->n_stages);
    const char *given = plan->text ? plan->text : "",
               *text = maq_arena_strdup(arena, (struct maq_str){given, strlen(given)});
    if (a->n == a->size) {
        uint32_t size = a->size > 0 ? 2 * a->size : 4;
        const struct maq_parallelizer_plan **plans = MAQ_ARENA_NEW(arena, const struct maq_parallelizer_plan *, size);
        if (!plans)
            return false;
        if (a->n > 0)
            memcpy(plans, a->plans, a->n * sizeof(struct maq_parallelizer_plan *));
        a->plans = plans;
        a->size = size;
    }
    if (!copy || !stages || !text)
        return false;
    memcpy(stages, plan->stages, plan->n_stages * sizeof *stages);
    *copy = (struct maq_parallelizer_plan){plan->n_stages, stages, text};
    a->plans[a->n++] = copy;
    return true;
}

/* The next position at which one of the plans of an answer no longer fits. */
static uint32_t next_position(const struct maq_parallelizer_plan *plans, uint32_t n, uint32_t at, uint32_t positions,
                              double capacity)
{
    uint32_t next = positions;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = 0; s < plans[i].n_stages; s++) {
            const struct maq_parallelizer_stage *stage = &plans[i].stages[s];
            uint32_t inside = plans[i].n_stages - 1 - s, k = at + 1;
            while (k < next && stage->static_bytes + stage->flight_bytes * (k + inside + 1) <= capacity)
                k++;
            next = k < next ? k : next;
        }
    return next;
}

/* ---- asking ---- */

struct questions {
    uint32_t wave;
    const uint32_t *pairs;
    uint64_t *made; /* [worker] */
};

/* Checks and copies the plans of an answer. */
static bool take_plans(struct maq_enumeration *e, struct maq_slices_answer *answer,
                       const struct maq_parallelizer_plan *plans, uint32_t n,
                       const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *part,
                       uint32_t worker, struct maq_slices_fault *fault)
{
    char why[MAQ_PARALLELIZER_WHY];
    for (uint32_t i = 0; i < n; i++) {
        const char *wrong = fault_of(&plans[i], slice, part);
        if (wrong) {
            maq__snprintf(why, sizeof why, "plan %u of layers %u to %u on %u x %u %.40s: %s", i, slice->first_layer,
                          slice->first_layer + slice->layers - 1, part->nodes, part->devices_per_node, part->device,
                          wrong);
            maq_slices_fail(fault, e, e->states[worker], MAQ_BAD_INPUT, why);
            fault->code = MAQ_CODE_PARALLELIZER_VALUE;
            return false;
        }
        if (!keep_plan(answer, &plans[i], &e->arenas[worker])) {
            maq_slices_fail(fault, e, e->states[worker], MAQ_NO_MEMORY, "out of memory for its plans");
            return false;
        }
    }
    return true;
}

/* All positions of one part of an island. */
static bool ask_part(struct maq_enumeration *e, const struct questions *q, uint32_t pair, uint32_t worker,
                     const struct maq_parallelizer_island *part, struct maq_slices_fault *fault)
{
    const struct maq_parallelizer_slice *slice = &e->classes[pair / e->chain->n_islands];
    const struct maq_slices_wave *wave = &e->waves[q->wave];
    struct maq_slices_answer *answer = &e->answers[(size_t)q->wave * e->n_classes * e->chain->n_islands + pair];
    uint32_t positions = maq_slices_positions(e, q->wave);
    for (uint32_t k = 0; k < positions;) {
        const struct maq_parallelizer_position position = {k, wave->waves, wave->wave_samples, wave->micro_batch};
        const struct maq_parallelizer_plan *plans = NULL;
        char why[MAQ_PARALLELIZER_WHY] = "";
        uint32_t n = 0;
        enum maq_status status =
            e->source.functions.parallelize(&plans, &n, e->states[worker], slice, part, &position, why);
        q->made[worker]++;
        n = plans ? n : 0;
        if (status != MAQ_OK) {
            maq_slices_fail(fault, e, e->states[worker], status, why);
            return false;
        }
        if (!take_plans(e, answer, plans, n, slice, part, worker, fault))
            return false;
        if (e->opts->ask_everywhere)
            k++;
        else if (e->source.functions.flags & MAQ_PARALLELIZER_FRONT || n == 0)
            break;
        else
            k = next_position(plans, n, k, positions, part->memory_bytes);
    }
    return true;
}

static bool ask_pair(struct maq_enumeration *e, void *user, uint32_t job, uint32_t worker,
                     struct maq_slices_fault *fault)
{
    const struct questions *q = user;
    uint32_t pair = q->pairs[job], island = pair % e->chain->n_islands;
    struct maq_parallelizer_island part;
    for (uint32_t i = 0; maq_slices_island_part(&part, e, island, i); i++)
        if ((e->opts->ask_infeasible || !maq_slices_is_unfit(e, pair / e->chain->n_islands, &part)) &&
            !ask_part(e, q, pair, worker, &part, fault))
            return false;
    e->answers[(size_t)q->wave * e->n_classes * e->chain->n_islands + pair].asked = true;
    return true;
}

static double scale(const struct maq_slices_wave *w, double bottleneck, double fill)
{
    return w->wave_samples * ((w->waves - 1) * bottleneck + fill);
}

double maq_enumeration_root_s(const struct maq_enumeration *e, uint32_t wave)
{
    return scale(&e->waves[wave], e->bounds.root_bottleneck, e->bounds.root_fill);
}

/*
 * Whether a pair may be part of a pipeline within the limit. The sums of bounds and of steps are taken in another
 * order, hence the tolerance.
 */
static bool is_within(const struct maq_enumeration *e, uint32_t wave, uint32_t pair, double limit_s)
{
    return e->opts->ask_unbalanced ||
           scale(&e->waves[wave], e->bounds.bottleneck[pair], e->bounds.fill[pair]) <= limit_s * (1 + 1e-9);
}

enum maq_status maq_enumeration_query(struct maq_enumeration *e, uint32_t wave, double limit_s, struct maq_diag *diag)
{
    uint32_t n_pairs = e->n_classes * e->chain->n_islands, n = 0;
    uint64_t made[MAQ_SLICES_WORKERS] = {0};
    struct maq_arena_mark mark = maq_arena_mark(e->arena);
    uint32_t *pairs = MAQ_ARENA_NEW(e->arena, uint32_t, n_pairs);
    const struct maq_slices_answer *answers = &e->answers[(size_t)wave * n_pairs];
    if (!pairs)
        return maq_no_memory(diag, "the search");
    for (uint32_t i = 0; i < n_pairs; i++) {
        bool unfit = !e->opts->ask_infeasible &&
                     maq_slices_is_unfit(e, i / e->chain->n_islands, &e->chain->islands[i % e->chain->n_islands]);
        if (!answers[i].asked && !unfit && is_within(e, wave, i, limit_s))
            pairs[n++] = i;
    }
    struct questions q = {wave, pairs, made};
    enum maq_status status = maq_slices_run(e, ask_pair, &q, n, diag);
    for (uint32_t i = 0; i < e->n_states; i++)
        e->calls.made += made[i];
    for (uint32_t i = 0; i < n; i++)
        e->calls.plans += answers[pairs[i]].n;
    maq_arena_reset(e->arena, mark);
    return status;
}

/* ---- calls ---- */

struct maq_slices_calls maq_enumeration_count(const struct maq_enumeration *e)
{
    struct maq_slices_calls c = e->calls;
    uint32_t islands = e->chain->n_islands, slices = e->n_atoms * (e->n_atoms + 1) / 2;
    struct maq_parallelizer_island part;
    for (uint32_t w = 0; w < e->n_waves; w++) {
        uint64_t positions = maq_slices_positions(e, w);
        for (uint32_t i = 0; i < e->n_classes * islands; i++) {
            bool asked = e->answers[(size_t)w * e->n_classes * islands + i].asked;
            for (uint32_t k = 0; maq_slices_island_part(&part, e, i % islands, k); k++) {
                bool unfit = !e->opts->ask_infeasible && maq_slices_is_unfit(e, i / islands, &part);
                c.infeasibility += unfit ? positions : 0;
                c.imbalance += !unfit && !asked ? positions : 0;
                c.reuse += !unfit && asked ? positions : 0;
                c.all += i < islands ? positions * slices : 0; /* the parts of each island once */
            }
        }
    }
    c.reuse -= c.made;
    c.redundancy = c.all - c.infeasibility - c.imbalance - c.reuse - c.made;
    return c;
}
