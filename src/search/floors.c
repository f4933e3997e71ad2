/*
 * floors.c - lower bounds of time and memory, see floors.h.
 *
 * Activations: right before its first backward pass a stage s of p holds
 *
 *   1f1b         min(p - s, m) microbatches
 *   gpipe        m
 *   interleaved  its first 2 (p - s - 1) + (v - 1) g + 1 passes, g of each chunk in turn (Megatron-LM's warm-up)
 *
 * and one microbatch of its first chunk in any other schedule.
 */
#include "search/floors.h"

#include <math.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule.h"
#include "train/predict.h"

/* ---- what a position holds ---- */

/* Atoms of a position: [first, last). */
static void atoms_of(const struct maq_cell_floors *f, const struct maq_pipeline *p, uint32_t position, uint32_t *first,
                     uint32_t *last)
{
    uint32_t at = 1, n_atoms = f->whole.n > 0 ? f->whole.n : f->split.n;
    for (uint32_t i = 0; i < position; i++)
        at += (uint32_t)p->layers[i];
    *first = position == 0 ? 0 : at;
    *last = position + 1 == p->n_virtual ? n_atoms : at + (uint32_t)p->layers[position];
}

struct sums {
    double forward, backward, dense, expert, act;
};

static struct sums sum_of(const struct maq_cell_floors *f, const struct maq_atoms *atoms, const struct maq_pipeline *p,
                          uint32_t position)
{
    uint32_t first, last;
    struct sums s = {0};
    atoms_of(f, p, position, &first, &last);
    for (uint32_t i = first; i < last; i++) {
        s.forward += atoms->at[i].forward_ns;
        s.backward += atoms->at[i].backward_ns;
        s.dense += atoms->at[i].dense_params;
        s.expert += atoms->at[i].expert_params;
        s.act += f->least_act_bytes[i];
    }
    return s;
}

/* Positions of a stage, as maq_blueprint_positions(). */
static uint32_t positions_of(const struct maq_pipeline *p, uint32_t stages, uint32_t stage, uint32_t *at)
{
    uint32_t n = 0;
    if (p->schedule == MAQ_SCHEDULE_DUALPIPE) {
        at[n++] = stage;
        at[n++] = stages - 1 - stage;
    } else if (p->schedule == MAQ_SCHEDULE_ZB_V || p->schedule == MAQ_SCHEDULE_DUALPIPE_V) {
        at[n++] = stage;
        at[n++] = 2 * stages - 1 - stage;
    } else {
        for (uint32_t v = stage; v < p->n_virtual; v += stages)
            at[n++] = v;
    }
    return n;
}

/* ---- time ---- */

static double total_ns(const struct maq_atoms *atoms)
{
    double sum = 0;
    for (uint32_t i = 0; i < atoms->n; i++)
        sum += atoms->at[i].forward_ns + atoms->at[i].backward_ns;
    return sum;
}

double maq_pipeline_floor_s(const struct maq_cell_floors *f, const struct maq_pipeline *p)
{
    bool splits = maq_schedule_splits(p->schedule);
    const struct maq_atoms *atoms = splits ? &f->split : &f->whole;
    uint32_t stages = (uint32_t)f->resolved.plan.pp, at[MAQ_MAX_STAGES];
    double m = f->microbatches, floor = m * total_ns(atoms) / stages, before = 0;
    if (p->as_written || p->schedule == MAQ_SCHEDULE_DUALPIPE)
        return floor * 1e-9;
    struct sums *sums = f->sums;
    for (uint32_t v = 0; v < p->n_virtual; v++)
        sums[v] = sum_of(f, atoms, p, v);
    for (uint32_t s = 0; s < stages; s++) {
        double work = 0;
        uint32_t n = positions_of(p, stages, s, at);
        for (uint32_t i = 0; i < n; i++)
            work += sums[at[i]].forward + sums[at[i]].backward;
        double hops = s * atoms->hop_ns * (splits ? 1 : 2);
        floor = fmax(floor, m * work + before + hops);
        before += sums[s].forward + (splits ? 0 : sums[s].backward);
    }
    return floor * 1e-9;
}

/* ---- memory ---- */

/* Least bytes of activations on a stage at once. */
static double held_activations(const struct maq_cell_floors *f, const struct maq_pipeline *p, uint32_t stage,
                               const uint32_t *at, uint32_t n)
{
    uint32_t stages = (uint32_t)f->resolved.plan.pp, m = f->microbatches;
    const struct sums *sums = f->sums;
    if (p->schedule == MAQ_SCHEDULE_1F1B)
        return fmin(stages - stage, m) * sums[at[0]].act;
    if (p->schedule == MAQ_SCHEDULE_GPIPE)
        return m * sums[at[0]].act;
    if (p->schedule != MAQ_SCHEDULE_INTERLEAVED)
        return sums[at[0]].act;
    uint32_t group = f->resolved.plan.microbatch_group > 0 ? (uint32_t)f->resolved.plan.microbatch_group : stages;
    uint64_t passes = 2ull * (stages - stage - 1) + (uint64_t)(n - 1) * group + 1, round = (uint64_t)group * n;
    if (m % group != 0 || passes > (uint64_t)m * n) /* a last group of another size: no closed form */
        return sums[at[0]].act;
    double bytes = 0;
    for (uint32_t c = 0; c < n; c++) {
        uint64_t rest = passes % round, of_rest = rest > (uint64_t)c * group ? rest - (uint64_t)c * group : 0;
        bytes += (double)(passes / round * group + (of_rest < group ? of_rest : group)) * sums[at[c]].act;
    }
    return bytes;
}

double maq_memory_floor(const struct maq_cell_floors *f, const struct maq_pipeline *p, const struct maq_plan *plan)
{
    const struct maq_atoms *atoms = maq_schedule_splits(p->schedule) ? &f->split : &f->whole;
    struct maq_job job = f->resolved;
    uint32_t stages = (uint32_t)plan->pp, at[MAQ_MAX_STAGES];
    double shards = (double)job.dp * plan->cp / plan->num_optimizer_instances, worst = 0;
    if (p->as_written || plan->lora_rank > 0 || plan->vocab_parallel_pipeline)
        return 0;
    job.plan.sharding = plan->sharding;
    job.plan.optimizer_offload = f->most_host_optim;
    for (uint32_t v = 0; v < p->n_virtual; v++)
        f->sums[v] = sum_of(f, atoms, p, v);
    for (uint32_t s = 0; s < stages; s++) {
        uint32_t n = positions_of(p, stages, s, at);
        double dense = 0, expert = 0;
        for (uint32_t i = 0; i < n; i++) {
            dense += f->sums[at[i]].dense;
            expert += f->sums[at[i]].expert;
        }
        double bytes = maq_state_bytes(&job, dense, shards) + maq_state_bytes(&job, expert, job.edp) +
                       held_activations(f, p, s, at, n);
        worst = fmax(worst, bytes);
    }
    return worst;
}

/* ---- preparing ---- */

/* Lowers `least` to what the plan's recomputation keeps. */
static enum maq_status keep_least(double *least, struct maq_train_sweep *sweep, const struct maq_plan *plan,
                                  int32_t group, struct maq_arena *arena)
{
    struct maq_atoms atoms;
    MAQ_TRY(maq_train_sweep_atoms(&atoms, sweep, plan, arena));
    for (uint32_t i = 0; i < atoms.n; i++)
        least[i] = fmin(least[i], fmin(atoms.at[i].act_bytes, atoms.at[i].redone_act_bytes) / group);
    return MAQ_OK;
}

/* One plan for each kind of recomputation: those of a kind keep no less than all of its modules together. */
static enum maq_status least_activations(struct maq_cell_floors *f, const struct maq_search_space *space,
                                         const struct maq_plan *plain, struct maq_train_sweep *sweep,
                                         struct maq_arena *arena)
{
    const struct maq_axis_values *recompute = &space->axis[MAQ_AXIS_RECOMPUTE], *offload = &space->axis[MAQ_AXIS_OFFLOAD];
    struct maq_plan plan = *plain;
    int32_t group = 1, parts = 0;
    bool full = false, written = false, offloads = false;
    for (uint32_t i = 0; i < recompute->n; i++) {
        int32_t v = recompute->at[i];
        if (v == MAQ_VALUE_AS_WRITTEN)
            written = true;
        else if (v != MAQ_RECOMPUTE_VALUE_BLOCK && (v & MAQ_RECOMPUTE_VALUE_PARTS))
            parts |= v;
        else if (v != MAQ_RECOMPUTE_VALUE_NONE)
            full = true;
        if (v > MAQ_RECOMPUTE_VALUE_UNIFORM && v < MAQ_RECOMPUTE_VALUE_PARTS && v - MAQ_RECOMPUTE_VALUE_UNIFORM > group)
            group = v - MAQ_RECOMPUTE_VALUE_UNIFORM;
    }
    for (uint32_t i = 0; i < offload->n; i++)
        offloads |= offload->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.offload_layers > 0 : offload->at[i] > 0;
    const struct maq_atoms *atoms = f->whole.n > 0 ? &f->whole : &f->split;
    for (uint32_t i = 0; i < atoms->n; i++)
        f->least_act_bytes[i] = offloads ? 0 : atoms->at[i].act_bytes;
    if (full) {
        maq_space_apply(&plan, space, MAQ_AXIS_RECOMPUTE, MAQ_RECOMPUTE_VALUE_UNIFORM + 1);
        MAQ_TRY(keep_least(f->least_act_bytes, sweep, &plan, group, arena));
    }
    if (parts) {
        maq_space_apply(&plan, space, MAQ_AXIS_RECOMPUTE, parts);
        MAQ_TRY(keep_least(f->least_act_bytes, sweep, &plan, 1, arena));
    }
    if (written) {
        plan.recompute = space->base.recompute;
        plan.recompute_method = space->base.recompute_method;
        plan.recompute_num_layers = space->base.recompute_num_layers;
        plan.recompute_parts = space->base.recompute_parts;
        int32_t layers = plan.recompute_num_layers > 1 ? plan.recompute_num_layers : 1;
        MAQ_TRY(keep_least(f->least_act_bytes, sweep, &plan, layers, arena));
    }
    return MAQ_OK;
}

static double most_host_optim(const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_HOST_OPTIM];
    double most = 0;
    for (uint32_t i = 0; i < axis->n; i++)
        most = fmax(most, axis->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.optimizer_offload : axis->at[i] / 1000.0);
    return most;
}

enum maq_status maq_cell_floors(struct maq_cell_floors *out, const struct maq_search_space *space,
                                const struct maq_job *job, const struct maq_plan *plain, struct maq_train_sweep *sweep,
                                struct maq_arena *arena)
{
    const struct maq_job_places nowhere = {0};
    const struct maq_axis_values *schedules = &space->axis[MAQ_AXIS_SCHEDULE];
    struct maq_plan plan = *plain;
    *out = (struct maq_cell_floors){.job = job, .resolved = *job, .most_host_optim = most_host_optim(space)};
    plan.schedule = MAQ_SCHEDULE_1F1B;
    plan.vp = 1;
    out->resolved.plan = plan;
    MAQ_TRY(maq_job_resolve(&out->resolved, &nowhere, NULL));
    out->resolved.plan.microbatch_group = plain->microbatch_group;
    out->microbatches = (uint32_t)out->resolved.microbatches;
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        out->capacity_bytes = fmax(out->capacity_bytes, job->cluster.groups[g].device.mem_bytes);
    for (uint32_t i = 0; i < schedules->n; i++) {
        int32_t v = schedules->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.schedule : schedules->at[i];
        bool split = maq_schedule_splits(v);
        struct maq_atoms *atoms = split ? &out->split : &out->whole;
        plan.schedule = split ? MAQ_SCHEDULE_ZB_H1 : MAQ_SCHEDULE_1F1B;
        if (atoms->n == 0)
            MAQ_TRY(maq_train_sweep_atoms(atoms, sweep, &plan, arena));
    }
    plan.schedule = MAQ_SCHEDULE_1F1B;
    out->least_act_bytes = MAQ_ARENA_NEW(arena, double, (size_t)job->model.num_layers + 3);
    out->sums = MAQ_ARENA_NEW(arena, struct sums, MAQ_MAX_STAGES);
    if (!out->least_act_bytes || !out->sums)
        return MAQ_NO_MEMORY;
    return least_activations(out, space, &plan, sweep, arena);
}
