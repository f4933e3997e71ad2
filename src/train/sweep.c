/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - maq_train_sweep_eval(): step time and memory of many plans of one job.
 *
 * Plans are completed like a document's, without diagnostics; those that share a schedule skeleton are evaluated together, up
 * to LANES at a time. Plans are evaluated in windows, and the cache is emptied now and then, so that memory stays bounded;
 * results do not depend on either.
 */
#include "train/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "train/atoms.h"
#include "train/cache.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"

#define LANES 8
#define WINDOW 32 /* their blueprints stay in the second-level cache */
/* What plans share and is made again beyond that: a search of a large space asks for blocks of a million kinds, most of them once
 * (docs/plan-measured.md has how much of one). */
#define CACHE_BYTES ((size_t)128 << 20)

static enum maq_status new_sweep(struct maq_train_sweep **out, const struct maq_job *job,
                                 const struct maq_cache *beside, struct maq_diag *diag)
{
    struct maq_train_sweep *s = calloc(1, sizeof *s);
    if (!s || !(s->window = calloc(WINDOW, sizeof *s->window))) {
        free(s);
        return MAQ_NO_MEMORY;
    }
    s->job = *job;
    maq_arena_init(&s->scratch, 0);
    enum maq_status status =
        beside ? maq_cache_init_beside(&s->cache, &s->job, beside, diag) : maq_cache_init(&s->cache, &s->job, diag);
    if (status != MAQ_OK) {
        maq_train_sweep_free(s);
        return status;
    }
    *out = s;
    return MAQ_OK;
}

enum maq_status maq_train_sweep_new(struct maq_train_sweep **out, const struct maq_job *job, struct maq_diag *diag)
{
    return new_sweep(out, job, NULL, diag);
}

enum maq_status maq_train_sweep_beside(struct maq_train_sweep **out, const struct maq_train_sweep *other,
                                       struct maq_diag *diag)
{
    return new_sweep(out, &other->job, &other->cache, diag);
}

void maq_train_sweep_free(struct maq_train_sweep *sweep)
{
    if (!sweep)
        return;
    maq_cache_fini(&sweep->cache);
    maq_arena_fini(&sweep->scratch);
    free(sweep->window);
    free(sweep);
}

/* To be called while no candidate is in use. */
static void bound_memory(struct maq_train_sweep *s)
{
    if (s->cache.arena.used > CACHE_BYTES)
        maq_cache_forget(&s->cache);
}

/*
 * Completes a plan; MAQ_BAD_INPUT when it is impossible. gbs > 0 replaces the workload's global batch, where only layers
 * are costed.
 */
static enum maq_status complete(struct maq_train_sweep *s, struct maq_candidate *c, const struct maq_plan *plan,
                                uint32_t index, int32_t gbs, const struct maq_loaded_job *written,
                                struct maq_diag *diag)
{
    struct maq_job_places at = maq_job_written(written);
    c->job = s->job;
    c->job.plan = *plan;
    at.layers_only = gbs > 0;
    if (gbs > 0)
        c->job.workload.gbs = gbs;
    c->index = index;
    c->done = false;
    MAQ_TRY(maq_job_resolve(&c->job, &at, diag));
    MAQ_TRY(maq_job_split_layers(&c->job, &at, &s->scratch, diag));
    return maq_job_place_groups(&c->job, &at, &s->scratch, diag);
}

/* Completes a plan and builds its blueprint. */
static enum maq_status prepare(struct maq_train_sweep *s, struct maq_candidate *c, const struct maq_plan *plan,
                               uint32_t index, const struct maq_loaded_job *written, struct maq_diag *diag)
{
    MAQ_TRY(complete(s, c, plan, index, 0, written, diag));
    return maq_blueprint_build(&c->bp, &c->job, &s->cache, &s->scratch, diag);
}

enum maq_status maq_train_sweep_check(struct maq_train_sweep *sweep, const struct maq_plan *plan,
                                      const struct maq_loaded_job *written, struct maq_diag *diag)
{
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    enum maq_status status = prepare(sweep, &sweep->window[0], plan, 0, written, diag);
    maq_arena_reset(&sweep->scratch, mark);
    return status;
}

static enum maq_status fill_memory(struct maq_train_quick *out, const struct maq_blueprint *bp)
{
    *out = (struct maq_train_quick){.possible = true, .fits = true};
    for (uint32_t st = 0; st < bp->schedule->stages; st++) {
        struct maq_stage_result stage;
        maq_stage_memory(&stage, bp, st);
        if (!maq_stage_count_requests(&stage, bp, st))
            return MAQ_NO_MEMORY;
        out->needed_bytes = fmax(out->needed_bytes, stage.needed_bytes);
        out->fits = out->fits && maq_stage_fits(&stage);
    }
    for (uint32_t st = 0; st < bp->schedule->stages; st++) {
        uint16_t at[MAQ_MAX_STAGES];
        double wait_ns = 0;
        for (uint32_t c = maq_schedule_positions(bp->schedule, st, at); c-- > 0;)
            wait_ns += bp->programs[at[c]]->wait_ns;
        out->wait_s = fmax(out->wait_s, wait_ns * 1e-9);
    }
    return MAQ_OK;
}

/* Evaluates the first undone candidate together with others of its schedule. */
static enum maq_status eval_family(struct maq_train_sweep *s, struct maq_train_quick *out, uint32_t first, uint32_t n)
{
    const struct maq_blueprint *bps[LANES];
    uint32_t at[LANES], K = 0;
    for (uint32_t i = first; i < n && K < LANES; i++) {
        if (s->window[i].done || s->window[i].bp.schedule != s->window[first].bp.schedule)
            continue;
        bps[K] = &s->window[i].bp;
        at[K++] = i;
    }
    struct maq_step_times times[LANES];
    struct maq_arena_mark mark = maq_arena_mark(&s->scratch);
    MAQ_TRY(maq_step_times(times, bps, K, &s->scratch));
    for (uint32_t k = 0; k < K; k++) {
        out[s->window[at[k]].index].step_s = times[k].step * 1e-9;
        out[s->window[at[k]].index].tail_s = times[k].tail * 1e-9;
        s->window[at[k]].done = true;
    }
    maq_arena_reset(&s->scratch, mark);
    return MAQ_OK;
}

/* Which results of a plan are asked for. */
enum wanted { WANT_MEMORY, WANT_TIME_IF_IT_FITS, WANT_ALL };

static enum maq_status eval(struct maq_train_sweep *sweep, struct maq_train_quick *out, const struct maq_plan *plans,
                            size_t n, enum wanted wanted)
{
    for (size_t from = 0; from < n; from += WINDOW) {
        struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
        uint32_t held = 0;
        bound_memory(sweep);
        for (size_t i = from; i < n && i < from + WINDOW; i++) {
            struct maq_candidate *c = &sweep->window[held];
            enum maq_status status = prepare(sweep, c, &plans[i], (uint32_t)i, NULL, NULL);
            out[i] = (struct maq_train_quick){0};
            if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
                continue;
            MAQ_TRY(status);
            MAQ_TRY(fill_memory(&out[i], &c->bp));
            held += wanted == WANT_ALL || (wanted == WANT_TIME_IF_IT_FITS && out[i].fits);
        }
        for (uint32_t i = 0; i < held; i++)
            if (!sweep->window[i].done)
                MAQ_TRY(eval_family(sweep, out, i, held));
        maq_arena_reset(&sweep->scratch, mark);
    }
    return MAQ_OK;
}

enum maq_status maq_train_sweep_eval(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                     const struct maq_plan *plans, size_t n)
{
    return eval(sweep, out, plans, n, WANT_ALL);
}

enum maq_status maq_train_sweep_eval_fitting(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                             const struct maq_plan *plans, size_t n)
{
    return eval(sweep, out, plans, n, WANT_TIME_IF_IT_FITS);
}

enum maq_status maq_train_sweep_memory(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                       const struct maq_plan *plans, size_t n)
{
    return eval(sweep, out, plans, n, WANT_MEMORY);
}

enum maq_status maq_train_sweep_stages_fit(bool *fits, uint32_t n, struct maq_train_sweep *sweep,
                                           const struct maq_plan *plan)
{
    struct maq_candidate *c = &sweep->window[0];
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    memset(fits, 0, n * sizeof *fits);
    enum maq_status status = prepare(sweep, c, plan, 0, NULL, NULL);
    for (uint32_t st = 0; status == MAQ_OK && st < n && st < c->bp.schedule->stages; st++) {
        struct maq_stage_result stage;
        maq_stage_memory(&stage, &c->bp, st);
        fits[st] = maq_stage_fits(&stage);
    }
    maq_arena_reset(&sweep->scratch, mark);
    return status == MAQ_BAD_INPUT || status == MAQ_LIMIT ? MAQ_OK : status; /* an impossible plan does not fit */
}

static struct maq_atom atom_of(const struct maq_block *b)
{
    double weight = b->weight ? b->weight->dur_ns : 0;
    return (struct maq_atom){
        .forward_ns = b->forward[0]->dur_ns,
        .redone_forward_ns = b->forward[1]->dur_ns,
        .backward_ns = b->backward[0]->dur_ns + weight,
        .redone_backward_ns = b->backward[1]->dur_ns + weight,
        .dense_params = b->dense_params,
        .expert_params = b->expert_params,
        .narrow_params = b->dense_narrow + b->expert_narrow,
        .act_bytes = b->act_bytes[0],
        .redone_act_bytes = b->act_bytes[1],
        .most_act_bytes = fmax(b->act_bytes[0], b->act_bytes[1]),
        .transient_bytes = fmax(b->forward_transient, b->backward_transient[0]),
        .redone_transient_bytes = fmax(b->forward_transient, b->backward_transient[1]),
    };
}

/* Each depth predicts with the shared head: its time and its activations, not its parameters. */
static struct maq_atom mtp_of(const struct maq_blueprint *bp, const struct maq_block_set *set)
{
    struct maq_atom a = atom_of(bp->blocks[set->mtp]), head = atom_of(bp->blocks[set->output]);
    double depths = bp->job->model.mtp_layers;
    a.forward_ns = depths * (a.forward_ns + head.forward_ns);
    a.redone_forward_ns = depths * (a.redone_forward_ns + head.redone_forward_ns);
    a.backward_ns = depths * (a.backward_ns + head.backward_ns);
    a.redone_backward_ns = depths * (a.redone_backward_ns + head.redone_backward_ns);
    a.dense_params *= depths;
    a.expert_params *= depths;
    a.narrow_params *= depths;
    a.act_bytes = depths * (a.act_bytes + head.act_bytes);
    a.redone_act_bytes = depths * (a.redone_act_bytes + head.redone_act_bytes);
    a.most_act_bytes = depths * (a.most_act_bytes + head.most_act_bytes);
    /* of the last depth: while its layer works, what its head keeps is not there (train/memory/stage_memory.c) */
    double behind = bp->blocks[set->mtp]->weight ? 0 : head.most_act_bytes;
    a.transient_bytes = fmax(a.transient_bytes - behind, head.transient_bytes);
    a.redone_transient_bytes = fmax(a.redone_transient_bytes - behind, head.redone_transient_bytes);
    return a;
}

/* Few microbatches, for a small schedule: what an atom costs does not depend on their number, but on whether there are several. */
static enum maq_status prepare_atoms(struct maq_train_sweep *sweep, const struct maq_plan *plan)
{
    int64_t replicas = sweep->job.cluster.devices / ((int64_t)plan->tp * plan->cp * plan->pp),
            pass = replicas * plan->mbs, few = sweep->job.workload.gbs > pass && plan->pp == 1 ? 2 : plan->pp;
    struct maq_candidate *c = &sweep->window[0];
    bound_memory(sweep);
    MAQ_TRY(complete(sweep, c, plan, 0, (int32_t)(pass * few), NULL, NULL));
    return maq_blueprint_blocks(&c->bp, &c->job, &sweep->cache, &sweep->scratch, NULL);
}

/* MTP depths share the output's block with the output: counted there, at the most once. */
static void fill_syncs(struct maq_atom_sync *out, uint32_t n, struct maq_blueprint *bp, const struct maq_model *model)
{
    const struct maq_block_set *set = &bp->sets[bp->stage_set[0]];
    out[0] = maq_sync_of_pass(bp, bp->blocks[set->embedding]);
    for (uint32_t l = 0; l < model->num_layers; l++) {
        bool again = l > 0 && model->kind_of[l] == model->kind_of[l - 1];
        out[1 + l] = again ? out[l] : maq_sync_of_pass(bp, bp->blocks[set->layers + model->kind_of[l]]);
    }
    out[n - 1] = maq_sync_of_pass(bp, bp->blocks[set->output]);
}

enum maq_status maq_train_sweep_syncs(struct maq_atom_sync *out, uint32_t n, struct maq_train_sweep *sweep,
                                      const struct maq_plan *plan)
{
    struct maq_blueprint *bp = &sweep->window[0].bp;
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    memset(out, 0, n * sizeof *out);
    if (plan->vocab_parallel_pipeline || plan->sharding == MAQ_SHARDING_NONE || plan->sharding == MAQ_SHARDING_OPTIM)
        return MAQ_OK;
    enum maq_status status = prepare_atoms(sweep, plan);
    if (status == MAQ_OK)
        fill_syncs(out, n, bp, &sweep->job.model);
    maq_arena_reset(&sweep->scratch, mark);
    return status == MAQ_BAD_INPUT || status == MAQ_LIMIT ? MAQ_OK : status; /* an impossible plan has no bound */
}

enum maq_status maq_train_sweep_atoms(struct maq_atoms *out, struct maq_train_sweep *sweep, const struct maq_plan *plan,
                                      struct maq_arena *arena)
{
    struct maq_candidate *c = &sweep->window[0];
    const struct maq_model *model = &sweep->job.model;
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    *out = (struct maq_atoms){.at = MAQ_ARENA_NEW(arena, struct maq_atom, maq_atoms_of_model(model))};
    if (!out->at)
        return MAQ_NO_MEMORY;
    enum maq_status status = prepare_atoms(sweep, plan);
    if (status != MAQ_OK) {
        maq_arena_reset(&sweep->scratch, mark);
        return status;
    }
    const struct maq_block_set *set = &c->bp.sets[c->bp.stage_set[0]];
    for (uint32_t v = 1; c->bp.hop_ns && !model->pyramid && v < c->bp.schedule->n_positions; v++)
        out->hop_ns = v == 1 ? c->bp.hop_ns[v] : fmin(out->hop_ns, c->bp.hop_ns[v]);
    out->at[out->n++] = atom_of(c->bp.blocks[set->embedding]);
    uint32_t layers = plan->offload_layers > 0 ? set->offloaded : set->layers;
    for (uint32_t l = 0; l < model->num_layers; l++)
        out->at[out->n++] = atom_of(c->bp.blocks[layers + model->kind_of[l]]);
    if (model->mtp_layers > 0)
        out->at[out->n++] = mtp_of(&c->bp, set);
    out->at[out->n++] = atom_of(c->bp.blocks[set->output]);
    maq_arena_reset(&sweep->scratch, mark);
    return MAQ_OK;
}
