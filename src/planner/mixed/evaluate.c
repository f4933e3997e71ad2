/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - maq_mixed_search_predict(): the step of a mixed plan that was written down, by the costs that the search uses for
 * the plans that it finds.
 *
 * The search space is narrowed to the plan's own degrees and techniques; its stages are looked up in the table of its wave, and the
 * composition is simulated pass by pass (planner/stages/simulated.c; with virtual stages train/mixed/placed_step.c, and the
 * composition is one of the chunked model). Plans that no stage table can express are refused: replicas of a stage that differ,
 * stages with different numbers of replicas, recomputation of the first layers of a stage, rounds of virtual stages that differ,
 * other schedules.
 */
#include <stdio.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/mixed/search_state.h"
#include "planner/mixed/space.h"
#include "planner/stages/codes.h"
#include "planner/stages/strategies.h"
#include "planner/stages/virtual_stages.h"
#include "train/mixed/placed.h"

static enum maq_status cannot(struct maq_diag *diag, const char *hint, const char *why)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_MIXED, (struct maq_span){0}, hint,
                         "the cost chain has no stages for this plan: %s", why);
}

/* ---- what the plan must be ---- */

static bool same_strategy(const struct maq_mixed_replica *a, const struct maq_mixed_replica *b)
{
    return a->n_members == 1 && b->n_members == 1 && a->tp == b->tp && a->cp == b->cp && a->ep == b->ep &&
           a->etp == b->etp && a->cp_comm == b->cp_comm && a->sequence_parallel == b->sequence_parallel &&
           a->microbatches == b->microbatches && maq_str_is(maq_str_of(a->members[0].device), b->members[0].device) &&
           (a->group == b->group || (a->group && b->group && maq_str_is(maq_str_of(a->group), b->group)));
}

/* Stages on devices of their own. */
static uint32_t own_stages(const struct maq_mixed_pipeline *line)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < line->n_stages; i++)
        n += line->stages[i].on_devices_of < 0;
    return n;
}

/* Rounds of virtual stages; 1: none. */
static uint32_t chunks_of(const struct maq_mixed_pipeline *line)
{
    uint32_t own = own_stages(line);
    return own > 0 ? line->n_stages / own : 1;
}

/* The layer range of the chunked model that a stage is, by its first round. */
static struct maq_chain_chunk virtual_range(const struct maq_mixed_stage *s)
{
    return (struct maq_chain_chunk){s->first_layer > 0 ? s->first_layer - 1 : 0, s->first_layer + s->layers - 1};
}

static bool same_techniques(const struct maq_mixed_stage *a, const struct maq_mixed_stage *b)
{
    return a->sharding == b->sharding && a->recompute == b->recompute && a->recompute_parts == b->recompute_parts &&
           a->optimizer_offload == b->optimizer_offload && a->optimizer_instances == b->optimizer_instances &&
           (a->offload_layers > 0) == (b->offload_layers > 0) && a->offload_modules == b->offload_modules;
}

/* Whether every round of virtual stages is like the first one, on the same devices. */
static bool rounds_are_alike(const struct maq_mixed_pipeline *line, struct maq_chain_atoms model)
{
    uint32_t own = own_stages(line), chunks = chunks_of(line);
    if (own == 0 || line->n_stages % own != 0 || maq_chain_chunked_atoms(model, chunks) < own)
        return false;
    for (uint32_t k = 0; k < line->n_stages; k++) {
        const struct maq_mixed_stage *s = &line->stages[k], *first = &line->stages[k % own];
        struct maq_chain_chunk at = virtual_range(first);
        at = maq_chain_chunk_of(model, chunks, k / own, at.first, at.end);
        if ((k < own) != (s->on_devices_of < 0) || s->first_layer != at.first || s->layers != at.end - at.first ||
            !same_techniques(s, first) || !same_strategy(&s->replicas[0], &first->replicas[0]))
            return false;
    }
    return true;
}

static const char *fault_of(const struct maq_mixed_plan *p, const struct maq_job *job, struct maq_chain_atoms model)
{
    const struct maq_mixed_pipeline *line = &p->pipelines[0];
    bool virtual = own_stages(line) < line->n_stages;
    if (p->schedule != MAQ_SCHEDULE_AUTO && p->schedule != (virtual ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B))
        return virtual ? "its schedule is not interleaved" : "its schedule is not 1f1b";
    if (p->layers != model.n)
        return "it has other layers than the job's model";
    if (p->global_batch != (uint32_t)job->workload.gbs)
        return "its global batch is not the job's";
    if (line->n_stages > MAQ_STAGE_DEPTH)
        return "it has too many stages";
    for (uint32_t i = 0; i < line->n_stages; i++) {
        const struct maq_mixed_stage *s = &line->stages[i];
        if (s->n_replicas != line->stages[0].n_replicas)
            return "its stages have different numbers of replicas";
        if (s->recompute_layers > 0 && s->recompute_layers < s->layers)
            return "a stage recomputes some of its layers";
        if (s->offload_layers > 0 && s->offload_layers < s->layers)
            return "a stage offloads some of its layers";
        for (uint32_t j = 0; j < s->n_replicas; j++)
            if (!same_strategy(&s->replicas[j], &s->replicas[0]))
                return "replicas of a stage differ, or span nodes of several kinds";
        if (s->replicas[0].tp > 1 && s->replicas[0].sequence_parallel != (job->plan.sequence_parallel != MAQ_OFF))
            return "its sequence parallelism is not the job's";
    }
    if (virtual && !rounds_are_alike(line, model))
        return "its rounds of virtual stages differ";
    return NULL;
}

/* ---- its space ---- */

static void add_number(uint32_t *list, uint32_t *n, uint32_t value)
{
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] == value)
            return;
    if (*n < MAQ_CHAIN_VALUES)
        list[(*n)++] = value;
}

static void add_word(int *list, uint32_t *n, int value)
{
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] == value)
            return;
    list[(*n)++] = value; /* the array has an element for every word */
}

static uint32_t redo_of(struct maq_chain_space *space, const struct maq_mixed_stage *s)
{
    uint32_t parts = s->recompute == MAQ_RECOMPUTE_SELECTIVE ? s->recompute_parts : 0;
    for (uint32_t i = 0; i < space->n_redo; i++)
        if (space->redo[i].recompute == s->recompute && space->redo[i].parts == parts)
            return i;
    if (space->n_redo < MAQ_CHAIN_VALUES)
        space->redo[space->n_redo++] = (struct maq_chain_redo){s->recompute, parts};
    return space->n_redo - 1;
}

static uint32_t offload_of(struct maq_chain_space *space, const struct maq_mixed_stage *s)
{
    return maq_strategies_offload(space, (struct maq_chain_offload){s->offload_layers > 0, s->offload_modules});
}

static bool add_host(struct maq_chain_space *space, double share)
{
    for (uint32_t i = 0; i < space->n_host; i++)
        if (space->host[i] == share)
            return true;
    if (space->n_host == MAQ_COUNT(space->host))
        return false;
    space->host[space->n_host++] = share;
    return true;
}

static uint32_t copies_of(const struct maq_mixed_stage *s)
{
    return s->optimizer_instances > 1 ? s->optimizer_instances : 1;
}

/* Narrows the space to the values of the plan. */
static enum maq_status narrow(struct maq_chain_space *space, const struct maq_mixed_plan *p, struct maq_diag *diag)
{
    const struct maq_mixed_pipeline *line = &p->pipelines[0];
    space->n_tp = space->n_cp = space->n_cp_comm = space->n_ep = space->n_etp = space->n_redo = space->n_zero =
        space->n_host = space->n_copies = space->n_offload = 0;
    space->n_mbs = 1;
    space->mbs[0] = p->micro_batch;
    if (p->overlap_ep != MAQ_AUTO)
        space->job.plan.overlap_ep = p->overlap_ep;
    for (uint32_t i = 0; i < line->n_stages; i++) {
        const struct maq_mixed_stage *s = &line->stages[i];
        const struct maq_mixed_replica *r = &s->replicas[0];
        add_number(space->tp, &space->n_tp, r->tp);
        add_number(space->cp, &space->n_cp, r->cp);
        add_number(space->ep, &space->n_ep, r->ep);
        add_number(space->etp, &space->n_etp, r->etp);
        add_word(space->cp_comm, &space->n_cp_comm, r->cp_comm);
        add_word(space->zero, &space->n_zero, s->sharding);
        add_number(space->copies, &space->n_copies, copies_of(s));
        redo_of(space, s);
        offload_of(space, s);
        if (!add_host(space, s->optimizer_offload))
            return cannot(diag, NULL, "too many shares of the optimizer on the host");
    }
    return MAQ_OK;
}

/* ---- its stages ---- */

/* A replica's group is a node group's name or its number; where it has none, the first of the device. */
static bool find_pool(uint32_t *out, const struct maq_chain_costs *c, const struct maq_mixed_replica *r)
{
    for (uint32_t g = 0; g < c->n_pools; g++) {
        const struct maq_node_group *group = &c->space->job.cluster.groups[g];
        char number[16];
        snprintf(number, sizeof number, "%u", g);
        if (!maq_str_is(maq_str_of(group->device.name), r->members[0].device) ||
            (r->group && !maq_str_is(maq_str_of(r->group), number) &&
             !(group->name && maq_str_is(maq_str_of(r->group), group->name))))
            continue;
        *out = g;
        return true;
    }
    return false;
}

/* The option of a table that runs a stage as the plan says; n_options where there is none. */
static uint32_t option_of(struct maq_chain_costs *c, struct maq_chain_space *space, const struct maq_stage_table *t,
                          const struct maq_mixed_stage *s, uint32_t pool)
{
    const struct maq_mixed_replica *r = &s->replicas[0];
    bool experts = maq_model_find_module(&space->job.model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
    uint32_t redo = redo_of(space, s), offload = offload_of(space, s), o = 0;
    for (; o < t->n_options; o++) {
        struct maq_stage_strategy is = maq_stage_strategy_of(c, t->options[o].id);
        bool sharded = is.sharding == s->sharding || s->n_replicas * r->cp == 1; /* nothing to share with */
        if (is.pool == pool && is.tp == r->tp && is.cp == r->cp && is.ep == r->ep && is.redo == redo && sharded &&
            is.host == s->optimizer_offload && is.offload == offload &&
            (is.copies == copies_of(s) || is.sharding == MAQ_SHARDING_NONE) &&
            (r->cp == 1 || is.cp_comm == r->cp_comm) && (!experts || is.etp == (r->etp > 0 ? r->etp : r->tp)))
            break;
    }
    return o;
}

static enum maq_status take_stages(struct maq_composition *out, struct maq_chain_costs *c,
                                   struct maq_chain_space *space, const struct maq_stage_table *t,
                                   const struct maq_mixed_plan *p, struct maq_diag *diag)
{
    const struct maq_mixed_pipeline *line = &p->pipelines[0];
    uint32_t used[MAQ_STAGE_KINDS] = {0};
    bool virtual = own_stages(line) < line->n_stages;
    out->n_stages = own_stages(line);
    for (uint32_t i = 0; i < out->n_stages; i++) {
        const struct maq_mixed_stage *s = &line->stages[i];
        struct maq_chain_chunk at = {s->first_layer, s->first_layer + s->layers};
        uint32_t pool = 0;
        at = virtual ? virtual_range(s) : at;
        if (!find_pool(&pool, c, &s->replicas[0]))
            return cannot(diag, "devices and groups go by the job's names", "the cluster has no such node group");
        uint32_t option = option_of(c, space, t, s, pool);
        if (option == t->n_options)
            return cannot(diag, NULL, "a stage cannot be run so on its node group");
        used[pool] += s->n_replicas * t->options[option].devices;
        if (used[pool] > t->available[pool])
            return cannot(diag, NULL, "it takes more devices than the node group has");
        out->stages[i] = (struct maq_stage){.first = at.first,
                                            .end = at.end,
                                            .n_parts = 1,
                                            .parts = {{option, s->n_replicas}},
                                            .in_flight = maq_waves_held(t, out->n_stages - i)};
    }
    return MAQ_OK;
}

/* Pass by pass. */
static enum maq_status simulate(struct maq_chain_simulated *out, const struct maq_chain_costs *c,
                                const struct maq_chain_wave *wave, const struct maq_composition *composition,
                                const struct maq_stage_table *table, const struct maq_mixed_plan *p,
                                struct maq_diag *diag)
{
    struct maq_mixed_placed *placed;
    if (wave->chunks == 0)
        return maq_chain_costs_simulate(out, c, wave, composition, table);
    MAQ_TRY(maq__mixed_place_on(&placed, p, &c->space->job, diag));
    *out = (struct maq_chain_simulated){placed->step_s, placed->fits};
    maq_mixed_placed_free(placed);
    return MAQ_OK;
}

static struct maq_chain_wave wave_of(const struct maq_mixed_plan *p)
{
    const struct maq_mixed_pipeline *line = &p->pipelines[0];
    struct maq_chain_wave wave = {.mbs = 0, .replicas = line->stages[0].n_replicas};
    if (own_stages(line) == line->n_stages)
        return wave;
    wave.chunks = chunks_of(line);
    wave.group = p->microbatch_group > 0 ? p->microbatch_group : own_stages(line);
    return wave;
}

static enum maq_status predict(struct maq_mixed_search_predicted *out, struct maq_chain_costs *c,
                               struct maq_chain_space *space, const struct maq_mixed_plan *p, struct maq_arena *arena,
                               struct maq_diag *diag)
{
    const struct maq_chain_wave wave = wave_of(p);
    struct maq_composition *composition = MAQ_ARENA_NEW(arena, struct maq_composition, 1);
    struct maq_stage_table table;
    struct maq_chain_simulated simulated;
    const char *wrong = fault_of(p, &space->job, c->atoms);
    if (wrong)
        return cannot(diag, "docs/planning.md says what stages of a job may be", wrong);
    if (wave.replicas > c->most_replicas)
        return cannot(diag, NULL, "it has more replicas than a node group has devices");
    c->keep_useless = true;
    if (!composition || !maq_chain_costs_table(&table, c, &wave, arena))
        return maq_no_memory(diag, "the plan");
    MAQ_TRY(maq_chain_costs_check(c, diag));
    MAQ_TRY(take_stages(composition, c, space, &table, p, diag));
    MAQ_TRY(simulate(&simulated, c, &wave, composition, &table, p, diag));
    *out = (struct maq_mixed_search_predicted){.step_s = simulated.step_s, .fits = simulated.fits};
    if (maq_composition_cost(composition, &table))
        out->composed_s = composition->step_s;
    return MAQ_OK;
}

/* Several pipelines have no composition: they are placed as they are. */
static enum maq_status predict_shares(struct maq_mixed_search_predicted *out, const struct maq_mixed_plan *p,
                                      const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_mixed_placed *placed;
    MAQ_TRY(maq__mixed_place_on(&placed, p, job, diag));
    *out = (struct maq_mixed_search_predicted){.step_s = placed->step_s, .fits = placed->fits};
    maq_mixed_placed_free(placed);
    return MAQ_OK;
}

enum maq_status maq_mixed_search_predict(struct maq_mixed_search_predicted *out, const struct maq_mixed_plan *plan,
                                         const struct maq_loaded_job *open, struct maq_diag *diag)
{
    const struct maq_mixed_space_lists lists = {.as_predicted = true};
    struct maq_chain_space *space;
    struct maq_chain_costs costs;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    space = MAQ_ARENA_NEW(&arena, struct maq_chain_space, 1);
    enum maq_status status = space ? maq_mixed_space_init(space, open, &lists, &arena, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_OK && plan->n_pipelines > 1) {
        status = predict_shares(out, plan, &space->job, diag);
        maq_arena_fini(&arena);
        return status;
    }
    if (status == MAQ_OK)
        status = narrow(space, plan, diag);
    if (status == MAQ_OK)
        status = maq_chain_costs_init(&costs, space, diag);
    if (status == MAQ_OK) {
        status = predict(out, &costs, space, plan, &arena, diag);
        maq_chain_costs_fini(&costs);
    }
    maq_arena_fini(&arena);
    return status;
}
