/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_costs.c - costs layer ranges with a blueprint of two stages on as many devices as that takes, whose first
 * stage holds one range after another. See range_costs.h.
 */
#include "train/mixed/range_costs.h"

#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "train/atoms.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"
#include "train/step/dp_interference.h"
#include "train/step/optimizer.h"
#include "train/sweep.h"

/* The job around the stage, of which only the process groups and the number of micro batches are used. */
static enum maq_status complete(struct maq_job *job, struct maq_train_sweep *sweep, const struct maq_range_stage *at,
                                struct maq_diag *diag)
{
    const struct maq_job_places nowhere = {.layers_only = true};
    struct maq_plan *p = &job->plan;
    struct maq_node_group *group = MAQ_ARENA_NEW(&sweep->scratch, struct maq_node_group, 1);
    if (!group)
        return MAQ_NO_MEMORY;
    p->pp = at->alone ? 1 : 2;
    p->vp = 1;
    p->dp = 0;
    p->schedule = MAQ_SCHEDULE_1F1B;
    p->layout = MAQ_STR("balanced");
    *group = job->cluster.groups[0];
    job->cluster.n_groups = 1;
    job->cluster.groups = group;
    job->cluster.devices = (uint32_t)(p->tp * p->cp * p->pp) * at->replicas;
    group->nodes = ((int32_t)job->cluster.devices + group->devices_per_node - 1) / group->devices_per_node;
    job->workload.gbs = (int32_t)(at->replicas * at->microbatches) * p->mbs;
    MAQ_TRY(maq_job_resolve(job, &nowhere, diag));
    MAQ_TRY(maq_job_split_layers(job, &nowhere, &sweep->scratch, diag));
    int32_t block = group->domain_devices > group->devices_per_node ? group->domain_devices : group->devices_per_node;
    return maq_job_place_stage(job, at->first_device % (uint32_t)block, &sweep->scratch);
}

static double tied_bytes(const struct maq_job *job)
{
    const struct maq_model *m = &job->model;
    double bytes =
        (double)m->vocab * (double)m->hidden / job->plan.tp * maq_dtype_bytes((enum maq_dtype)job->plan.grad_dtype);
    return m->output_apart.n_modules > 0 && job->plan.lora_rank == 0 ? bytes : 0;
}

/* Layer ranges may end behind any layer: in a pyramid the largest transfer counts for all. */
static double largest_hop(const struct maq_blueprint *bp)
{
    const struct maq_model *m = &bp->job->model;
    double most = maq_blueprint_hop_bytes(bp, 0);
    for (uint32_t l = 1; m->pyramid && l < m->num_layers; l++)
        most = fmax(most, maq_blueprint_hop_bytes(bp, l));
    return most;
}

enum maq_status maq_range_costs_begin(struct maq_range_costs *out, struct maq_train_sweep *sweep,
                                      const struct maq_plan *plan, const struct maq_range_stage *at,
                                      struct maq_diag *diag)
{
    struct maq_candidate *c = &sweep->window[0];
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    c->job = sweep->job;
    c->job.plan = *plan;
    enum maq_status status = complete(&c->job, sweep, at, diag);
    if (status == MAQ_OK)
        status = maq_blueprint_build(&c->bp, &c->job, &sweep->cache, &sweep->scratch, diag);
    if (status != MAQ_OK) {
        maq_arena_reset(&sweep->scratch, mark);
        return status;
    }
    maq_blueprint_select(&c->bp, 0);
    *out = (struct maq_range_costs){.sweep = sweep,
                                    .n_atoms = maq_atoms_of_model(&sweep->job.model),
                                    .context_bytes = maq_fixed_bytes(&c->job),
                                    .hop_bytes = largest_hop(&c->bp),
                                    .grad_bytes = maq_dtype_bytes((enum maq_dtype)c->job.plan.grad_reduce_dtype),
                                    .tied_bytes = tied_bytes(&c->job),
                                    .unpaired = maq_schedule_unpaired((uint32_t)c->job.plan.pp, at->microbatches),
                                    .stalls = c->bp.stalls,
                                    .reduces_beside = c->job.plan.overlap_grad_reduce == MAQ_ON,
                                    .mark = mark};
    return MAQ_OK;
}

void maq_range_costs_end(struct maq_range_costs *s)
{
    maq_arena_reset(&s->sweep->scratch, s->mark);
}

/* Atoms [first, end) as a virtual stage. */
static struct maq_virtual_stage stage_of(const struct maq_model *model, uint32_t n, uint32_t first, uint32_t end)
{
    uint32_t layers = model->num_layers, from = first > 0 ? first - 1 : 0, to = end - 1 < layers ? end - 1 : layers;
    from = from < layers ? from : layers;
    return (struct maq_virtual_stage){.first_layer = (int32_t)from,
                                      .n_layers = (int32_t)(to > from ? to - from : 0),
                                      .embedding = first == 0,
                                      .output = end == n,
                                      .mtp = model->mtp_layers > 0 && first <= layers + 1 && end >= layers + 2};
}

/* How much longer than its last backward pass the reduction takes. */
static double exposed_ns(const struct maq_blueprint *bp, const struct maq_program *pr)
{
    if (!maq_reduces_behind(bp))
        return 0;
    if (bp->job->plan.overlap_grad_reduce != MAQ_ON)
        return pr->reduce_ns;
    return fmax(maq_sync_reduced_ns(bp, pr, 0, 0) - pr->backward_ns, 0);
}

static void cost_program(struct maq_range_cost *out, const struct maq_blueprint *bp, const struct maq_program *pr)
{
    struct maq_program_bytes bytes;
    double stream;
    maq_program_memory(&bytes, bp, pr);
    *out = (struct maq_range_cost){.forward_s = pr->forward_ns * 1e-9,
                                   .backward_s = pr->backward_ns * 1e-9,
                                   .late_s = maq_sync_late_ns(bp, pr) * 1e-9,
                                   .exposed_s = exposed_ns(bp, pr) * 1e-9,
                                   .reduce_s = maq_reduces_behind(bp) ? pr->reduce_ns * 1e-9 : 0,
                                   .gather_s = maq_program_exposed_gather(bp, pr) * 1e-9,
                                   .exchange_s = maq_hidden_exchange_ns(bp, pr) * 1e-9,
                                   .params = pr->dense_params + pr->expert_params,
                                   .states_bytes = bytes.states,
                                   .act_bytes = pr->act_bytes,
                                   .working_bytes = bytes.working,
                                   .transfer_bytes = bytes.transfers,
                                   .border_bytes = bytes.border,
                                   .ending_bytes = bytes.update,
                                   .matrix_bytes = bytes.matrix};
    if (!bp->gather_first)
        return;
    out->ready_s = (maq_sync_ready_ns(pr, 0, &stream) + pr->forward_gap_ns + pr->forward_drag_ns) * 1e-9;
    out->gathering_s = stream * 1e-9;
}

static enum maq_status cost_update(double *update_s, struct maq_blueprint *bp,
                                   const struct maq_program *const *programs, uint32_t n)
{
    const struct maq_segment *end = maq_blueprint_optimizer(bp, programs, n, 0);
    if (!end || bp->lower.failed || bp->items->failed)
        return MAQ_NO_MEMORY;
    double ns = end->dur_ns;
    for (uint32_t i = 0; i < n; i++)
        ns += maq_dp_interference_program_ns(bp, programs[i]);
    *update_s = ns * 1e-9;
    return MAQ_OK;
}

static enum maq_status program_of(struct maq_program *out, const struct maq_range_costs *s, uint32_t first,
                                  uint32_t end)
{
    struct maq_virtual_stage v = stage_of(&s->sweep->job.model, s->n_atoms, first, end);
    MAQ_ASSERT(first < end && end <= s->n_atoms);
    return maq_blueprint_program(out, &s->sweep->window[0].bp, &v, v.embedding, v.output);
}

enum maq_status maq_range_costs_of(struct maq_range_cost *out, const struct maq_range_costs *s, uint32_t first,
                                   uint32_t end, bool updates)
{
    struct maq_train_sweep *sweep = s->sweep;
    struct maq_blueprint *bp = &sweep->window[0].bp;
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    struct maq_program program = {.entries = NULL};
    enum maq_status status = program_of(&program, s, first, end);
    if (status == MAQ_OK) {
        cost_program(out, bp, &program);
        status = updates ? cost_update(&out->update_s, bp, &(const struct maq_program *){&program}, 1) : MAQ_OK;
    }
    maq_arena_reset(&sweep->scratch, mark);
    return status;
}

enum maq_status maq_range_costs_update(double *update_s, const struct maq_range_costs *s,
                                       const struct maq_atom_range *ranges, uint32_t n)
{
    struct maq_train_sweep *sweep = s->sweep;
    struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
    struct maq_program *programs = MAQ_ARENA_NEW(&sweep->scratch, struct maq_program, n);
    const struct maq_program **held = MAQ_ARENA_NEW(&sweep->scratch, const struct maq_program *, n);
    enum maq_status status = programs && held ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n && status == MAQ_OK; i++) {
        held[i] = &programs[i];
        status = program_of(&programs[i], s, ranges[i].first, ranges[i].end);
    }
    if (status == MAQ_OK)
        status = cost_update(update_s, &sweep->window[0].bp, held, n);
    maq_arena_reset(&sweep->scratch, mark);
    return status;
}
