/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builtin.c - maquette's own parallelizer: a slice as one stage, with costs of the cost chain (planner/stages/stage_costs.h).
 *
 * Its atoms are the embedding, the layers, multi-token prediction and the output. The plans of a slice for a wave are all
 * options of a stage table of that wave (TP, CP, EP, what is recomputed, ZeRO, the optimizer on the host), for each micro
 * batch that makes up the wave with some number of replicas, less those that another plan beats in devices, times and memory:
 * a Pareto front, so that one answer serves all positions. An atom costs what the first atom of its kind costs, so that equal
 * slices cost the same to the last bit, wherever they are in the model.
 *
 *   samples_per_s   max over options   N samples / (t devices)            t: of a replica's micro batch
 *   min_bytes       min over options   replicas x devices (context + fixed + flight)
 *
 * over the options of a single replica: more replicas add communication and shard states, and the sum of the sharded states
 * is the same. Experts are spread over replicas, which changes what a device computes: with experts, options of any number of
 * replicas count.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/external/problem.h"

#define TABLES 64 /* tables kept, one for each wave; when there would be more, all are made anew */

struct table {
    struct maq_chain_wave wave;
    struct maq_stage_table t;
};

struct state {
    struct maq_slices_chain *chain;
    struct maq_arena arena, answers;
    uint32_t *first_of; /* [atoms]: the first atom of the kind */
    uint32_t n_tables;
    struct table tables[TABLES];
};

static enum maq_status no_memory(char *why)
{
    maq__snprintf(why, MAQ_PARALLELIZER_WHY, "out of memory");
    return MAQ_NO_MEMORY;
}

/* ---- life ---- */

/* The table of a wave; NULL when out of memory. When all slots are taken, all tables are made anew. */
static const struct maq_stage_table *table_of(struct state *s, const struct maq_chain_wave *wave)
{
    for (uint32_t i = 0; i < s->n_tables; i++)
        if (s->tables[i].wave.mbs == wave->mbs && s->tables[i].wave.replicas == wave->replicas)
            return &s->tables[i].t;
    if (s->n_tables == TABLES)
        s->n_tables = 0;
    struct table *table = &s->tables[s->n_tables];
    table->wave = *wave;
    if (!maq_chain_costs_table(&table->t, &s->chain->costs, wave, &s->arena))
        return NULL;
    s->n_tables++;
    return &table->t;
}

#define ALIKE 1e-9

static bool is_alike(const double *sums, uint32_t a, uint32_t b)
{
    double x = sums[a + 1] - sums[a], y = sums[b + 1] - sums[b];
    return fabs(x - y) <= ALIKE * fabs(x);
}

/*
 * Finds the layers that cost the same under every option of a single replica. The first layers of a kind may differ, since the host
 * issues their kernels ahead.
 */
static bool find_kinds(struct state *s)
{
    const struct maq_parallelizer_model *m = &s->chain->model;
    for (uint32_t i = 0; i < m->n_layers; i++)
        for (s->first_of[i] = 0; s->first_of[i] < i; s->first_of[i]++) {
            bool same = strcmp(m->layers[s->first_of[i]].kind, m->layers[i].kind) == 0;
            for (uint32_t b = 0; same && b < s->chain->space.n_mbs; b++) {
                const struct maq_chain_wave wave = {.mbs = b, .replicas = 1};
                const struct maq_stage_table *t = table_of(s, &wave);
                if (!t)
                    return false;
                for (uint32_t o = 0; same && o < t->n_options; o++)
                    same = is_alike(t->options[o].time_s, s->first_of[i], i) &&
                           is_alike(t->options[o].fixed_bytes, s->first_of[i], i) &&
                           is_alike(t->options[o].flight_bytes, s->first_of[i], i) &&
                           is_alike(t->options[o].sync_bytes, s->first_of[i], i);
            }
            if (same)
                break;
        }
    return true;
}

static void close_state(void *state)
{
    struct state *s = state;
    maq_arena_fini(&s->answers);
    maq_arena_fini(&s->arena);
}

static enum maq_status open_state(void **state, void *context, const struct maq_parallelizer_model *model, char *why)
{
    struct maq_slices_chain *chain = context;
    struct state *s = MAQ_ARENA_NEW(chain->arena, struct state, 1);
    if (!s)
        return no_memory(why);
    s->chain = chain;
    maq_arena_init(&s->arena, 0);
    maq_arena_init(&s->answers, 0);
    s->first_of = MAQ_ARENA_NEW(&s->arena, uint32_t, model->n_layers);
    *state = s;
    if (s->first_of && find_kinds(s))
        return MAQ_OK;
    close_state(s);
    return no_memory(why);
}

static enum maq_status slice_model(const struct maq_parallelizer_atom **out, uint32_t *n, void *state, char *why)
{
    struct state *s = state;
    const struct maq_parallelizer_model *m = &s->chain->model;
    struct maq_parallelizer_atom *atoms = MAQ_ARENA_NEW(&s->arena, struct maq_parallelizer_atom, m->n_layers);
    if (!atoms)
        return no_memory(why);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        atoms[i].layers = 1;
        maq__snprintf(atoms[i].signature, sizeof atoms[i].signature, "%.40s as %u", m->layers[i].kind, s->first_of[i]);
    }
    *out = atoms;
    *n = m->n_layers;
    return MAQ_OK;
}

/* ---- costs ---- */

/* Sum over the atoms of a slice, one by one: a difference of prefix sums would carry the rounding of the atoms before. */
static double sum(const struct state *s, const double *sums, const struct maq_parallelizer_slice *slice)
{
    double total = 0;
    for (uint32_t i = slice->first_atom; i < slice->first_atom + slice->atoms; i++)
        total += sums[s->first_of[i] + 1] - sums[s->first_of[i]];
    return total;
}

/* Seconds of a slice, with the time that the option adds to each transfer: a slice in the middle sends to both sides. */
static double time_of(const struct state *s, const struct maq_stage_table *t, uint32_t option,
                      const struct maq_parallelizer_slice *slice)
{
    double borders = (slice->first_atom > 0) + (slice->first_atom + slice->atoms < t->n_atoms);
    return sum(s, t->options[option].time_s, slice) + borders * maq_chain_costs_sends(t, option).extra_s;
}

/* Raises the rate and lowers the bytes to what the options of one table allow. */
static bool profile_wave(struct maq_parallelizer_profile *out, struct state *s, const struct maq_chain_wave *wave,
                         const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *island)
{
    const struct maq_stage_table *t = table_of(s, wave);
    double devices = (double)island->nodes * island->devices_per_node;
    for (uint32_t i = 0; t && i < t->n_options; i++) {
        const struct maq_stage_option *o = &t->options[i];
        if (o->kind != island->index)
            continue;
        double rate = devices * o->samples / (time_of(s, t, i, slice) * o->devices),
               bytes = o->context_bytes + sum(s, o->fixed_bytes, slice) + sum(s, o->flight_bytes, slice);
        out->samples_per_s = fmax(out->samples_per_s, rate);
        out->min_bytes = fmin(out->min_bytes, bytes * o->devices * wave->replicas);
    }
    return t != NULL;
}

static enum maq_status profile(struct maq_parallelizer_profile *out, void *state,
                               const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *island,
                               char *why)
{
    struct state *s = state;
    bool experts = maq_model_find_module(&s->chain->space.job.model, MAQ_MODULE_EXPERT_LINEAR, MAQ_PART_COUNT) != NULL;
    uint32_t most = experts ? s->chain->costs.most_replicas : 1;
    *out = (struct maq_parallelizer_profile){0, HUGE_VAL};
    for (uint32_t b = 0; b < s->chain->space.n_mbs; b++)
        for (uint32_t replicas = 1; replicas <= most; replicas++) {
            const struct maq_chain_wave wave = {.mbs = b, .replicas = replicas};
            if (!profile_wave(out, s, &wave, slice, island))
                return no_memory(why);
        }
    return MAQ_OK;
}

/* ---- plans ---- */

struct answer {
    struct maq_parallelizer_plan *plans;
    struct maq_parallelizer_stage *stages;
    struct maq_stage_strategy *strategies; /* of the stages */
    uint32_t n;
};

static bool no_worse(const struct maq_parallelizer_stage *a, const struct maq_parallelizer_stage *b)
{
    return a->devices <= b->devices && a->time_s <= b->time_s && a->static_bytes <= b->static_bytes &&
           a->flight_bytes <= b->flight_bytes && a->sync_s <= b->sync_s && a->once_s <= b->once_s &&
           a->boundary_bytes == b->boundary_bytes && a->devices / a->replicas == b->devices / b->replicas;
}

/* Keeps the plans that no other beats, in order of arrival. `strategy`: what the option is, for the text of the plan. */
static void add(struct answer *a, const struct maq_parallelizer_stage *stage, const struct maq_stage_strategy *strategy)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        if (no_worse(&a->stages[i], stage))
            return;
    for (uint32_t i = 0; i < a->n; i++)
        if (!no_worse(stage, &a->stages[i])) {
            a->stages[n] = a->stages[i];
            a->strategies[n++] = a->strategies[i];
        }
    a->stages[n] = *stage;
    a->strategies[n] = *strategy;
    a->n = n + 1;
}

static struct maq_parallelizer_stage stage_of(const struct state *s, const struct maq_stage_table *t, uint32_t option,
                                              const struct maq_chain_wave *wave,
                                              const struct maq_parallelizer_slice *slice)
{
    const struct maq_stage_option *o = &t->options[option];
    struct maq_stage_strategy is = maq_stage_strategy_of(&s->chain->costs, o->id);
    const struct maq_stage_part part = {option, wave->replicas};
    const struct maq_chain_sends sends = maq_chain_costs_sends(t, option);
    const struct maq_chain_redo *redo = &s->chain->space.redo[is.redo];
    /* a parallelizer's stage has no word for experts that are cut otherwise than the rest, for HSDP, for what is on the host */
    const struct maq_chain_offload *away = &s->chain->space.offload[is.offload];
    bool is_said =
        is.host <= 0 && !away->layers && away->modules == 0 && is.copies <= 1 && (is.ep <= 1 || is.etp == is.tp);
    return (struct maq_parallelizer_stage){
        .atoms = slice->atoms,
        .devices = o->devices * wave->replicas,
        .replicas = wave->replicas,
        .time_s = time_of(s, t, option, slice),
        .static_bytes = o->context_bytes + sum(s, o->fixed_bytes, slice),
        .flight_bytes = sum(s, o->flight_bytes, slice),
        .sync_s = t->sync_s(t, &part, 1, sum(s, o->sync_bytes, slice), wave->replicas),
        .once_s = maq_stage_update_s(o, slice->first_atom, slice->first_atom + slice->atoms, t->n_atoms),
        .boundary_bytes = sends.bytes,
        .tensor_parallel_size = is_said ? is.tp : 0,
        .context_parallel_size = is.cp,
        .expert_parallel_size = is.ep,
        .micro_batch_size = o->samples,
        .recompute = redo->recompute,
        .sharding = is.sharding};
}

/* Every option of one micro batch that fits. */
static bool add_wave(struct answer *a, struct state *s, const struct maq_chain_wave *wave,
                     const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *island,
                     const struct maq_parallelizer_position *position)
{
    const struct maq_stage_table *t = table_of(s, wave);
    uint32_t behind = position->stages_behind, flight = behind + 1 < position->waves ? behind + 1 : position->waves;
    for (uint32_t i = 0; t && i < t->n_options; i++) {
        if (t->options[i].kind != island->index)
            continue;
        struct maq_parallelizer_stage stage = stage_of(s, t, i, wave, slice);
        struct maq_stage_strategy strategy = maq_stage_strategy_of(&s->chain->costs, t->options[i].id);
        if (stage.static_bytes + stage.flight_bytes * flight <= island->memory_bytes)
            add(a, &stage, &strategy);
    }
    return t != NULL;
}

/* " cp=2", or nothing where it says nothing; NULL when out of memory. */
static const char *word(struct state *s, bool says, const char *key, uint32_t value)
{
    return says ? maq_arena_printf(&s->answers, " %s=%u", key, value) : "";
}

/*
 * "tp=2 dp=4 micro_batch=1 recompute=selective zero=optim modules=16", in the words of docs/plan-form.md; modules by
 * the bits of enum maq_part, offload_modules by those of enum maq_offload_module.
 */
static bool write_down(struct answer *a, struct state *s)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct maq_parallelizer_stage *stage = &a->stages[i];
        const struct maq_stage_strategy *strategy = &a->strategies[i];
        const struct maq_chain_redo *redo = &s->chain->space.redo[strategy->redo];
        const struct maq_chain_offload *away = &s->chain->space.offload[strategy->offload];
        const char *modules = word(s, redo->recompute == MAQ_RECOMPUTE_SELECTIVE, "modules", redo->parts),
                   *cp = word(s, strategy->cp > 1, "cp", strategy->cp),
                   *ep = word(s, strategy->ep > 1, "ep", strategy->ep),
                   *etp = word(s, strategy->ep > 1, "expert_tp", strategy->etp),
                   *copies = word(s, strategy->copies > 1, "hsdp_replicas", strategy->copies),
                   *offload = away->layers ? word(s, true, "offload_layers", stage->atoms)
                                           : word(s, away->modules != 0, "offload_modules", away->modules),
                   *host =
                       word(s, strategy->host > 0, "optimizer_on_host_percent", (uint32_t)lround(100 * strategy->host));
        a->plans[i] = (struct maq_parallelizer_plan){.n_stages = 1, .stages = stage};
        if (modules && cp && ep && etp && copies && offload && host)
            a->plans[i].text = maq_arena_printf(
                &s->answers, "tp=%u dp=%u micro_batch=%u recompute=%s zero=%s%s%s%s%s%s%s%s", strategy->tp,
                stage->replicas, stage->micro_batch_size, maq__mixed_recomputes[stage->recompute],
                maq__mixed_shardings[stage->sharding], modules, cp, ep, etp, copies, offload, host);
        if (!a->plans[i].text)
            return false;
    }
    return true;
}

static enum maq_status parallelize(const struct maq_parallelizer_plan **out, uint32_t *n, void *state,
                                   const struct maq_parallelizer_slice *slice,
                                   const struct maq_parallelizer_island *island,
                                   const struct maq_parallelizer_position *position, char *why)
{
    struct state *s = state;
    const struct maq_chain_space *space = &s->chain->space;
    struct answer a = {0};
    maq_arena_reset(&s->answers, (struct maq_arena_mark){0}); /* what the last answer took serves the next one */
    a.plans = MAQ_ARENA_RAW(&s->answers, struct maq_parallelizer_plan, (size_t)space->n_mbs * MAQ_STAGE_OPTIONS);
    a.stages = MAQ_ARENA_RAW(&s->answers, struct maq_parallelizer_stage, (size_t)space->n_mbs * MAQ_STAGE_OPTIONS);
    a.strategies = MAQ_ARENA_RAW(&s->answers, struct maq_stage_strategy, (size_t)space->n_mbs * MAQ_STAGE_OPTIONS);
    if (!a.plans || !a.stages || !a.strategies)
        return no_memory(why);
    for (uint32_t b = 0; b < space->n_mbs; b++) {
        uint32_t mbs = space->mbs[b];
        const struct maq_chain_wave wave = {.mbs = b, .replicas = position->wave_samples / mbs};
        if (position->wave_samples % mbs != 0 || wave.replicas > s->chain->costs.most_replicas ||
            (position->micro_batch_size > 0 && position->micro_batch_size != mbs))
            continue;
        if (!add_wave(&a, s, &wave, slice, island, position))
            return no_memory(why);
    }
    if (!write_down(&a, s))
        return no_memory(why);
    *out = a.plans;
    *n = a.n;
    return MAQ_OK;
}

struct maq_parallelizer maq_slices_builtin(struct maq_slices_chain *chain)
{
    return (struct maq_parallelizer){.abi = MAQ_PARALLELIZER_ABI,
                                     .size = sizeof(struct maq_parallelizer),
                                     .name = "builtin",
                                     .flags = MAQ_PARALLELIZER_FRONT,
                                     .context = chain,
                                     .open = open_state,
                                     .close = close_state,
                                     .slice_model = slice_model,
                                     .profile = profile,
                                     .parallelize = parallelize};
}
