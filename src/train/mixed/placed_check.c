/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placed_check.c - which mixed plans can be placed on the node groups of a job. Refused, with the reason:
 *
 *   - stages of one pipeline with different numbers of replicas, or that deal a column different shares: a micro batch would change
 *     columns, and what is sent between them is not modelled
 *   - TP groups over several nodes or kinds of GPU
 *   - ZeRO and experts over replicas on different node groups: their collectives are priced inside one group only
 *   - schedules that split backward passes (ZB, DualPipe): layer ranges are costed with whole passes
 *   - virtual stages in another order than round the devices, stage k on those of stage k - n
 */
#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "plan/mixed/codes.h"
#include "train/mixed/placed.h"

enum maq_status maq__placed_cannot(struct maq_diag *diag, const char *hint, const char *why)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, (struct maq_span){0}, hint,
                         "this plan cannot be placed on the job's node groups: %s", why);
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && maq_str_is(maq_str_of(a), b));
}

static bool same_place(const struct maq_mixed_replica *a, const struct maq_mixed_replica *b)
{
    return same_name(a->members[0].device, b->members[0].device) && same_name(a->group, b->group);
}

static const char *fault_of_replica(const struct maq_mixed_stage *s, const struct maq_mixed_replica *r)
{
    bool shares = s->sharding != MAQ_SHARDING_NONE || s->optimizer_instances > 1 || r->ep > 1;
    if (r->n_members > 1)
        return "a tensor-parallel group spans nodes or kinds of GPU";
    if (shares && !same_place(r, &s->replicas[0]))
        return "replicas that share states or experts lie on different node groups";
    return NULL;
}

/* Stage k on the devices of stage k - n, and the first n on their own. */
static bool goes_round(const struct maq_mixed_pipeline *line, uint32_t n)
{
    if (n == 0)
        return false;
    for (uint32_t k = 0; k < line->n_stages; k++) {
        int32_t on = line->stages[k].on_devices_of;
        for (uint32_t hops = 0; on >= (int32_t)n && hops < line->n_stages; hops++)
            on = line->stages[on].on_devices_of;
        if (k < n ? on >= 0 : on != (int32_t)(k % n))
            return false;
    }
    return line->n_stages % n == 0;
}

static uint32_t own_devices(const struct maq_mixed_pipeline *line)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < line->n_stages; i++)
        n += line->stages[i].on_devices_of < 0;
    return n;
}

/* A check that the reader of plans cannot do: it depends on whether the job's experts are fused. */
static const char *fault_of_offload(const struct maq_mixed_stage *s, const struct maq_job *job)
{
    const char *remedy;
    const struct maq_plan plan = {.offload_modules = s->offload_modules, .op_fuser = job->plan.op_fuser};
    return maq_offload_fault(&plan, &remedy);
}

int maq__placed_overlap_ep(const struct maq_placing *p)
{
    return p->plan->overlap_ep != MAQ_AUTO ? p->plan->overlap_ep : p->job->plan.overlap_ep;
}

/* Gradients of weights that wait for passes that are merged, where exchanges of experts have none (plan/incompatible.c). */
static bool delays_for_nothing(const struct maq_placing *placing, const struct maq_mixed_stage *s)
{
    bool exchanges = false;
    for (uint32_t j = 0; j < s->n_replicas; j++)
        exchanges |= s->replicas[j].ep > 1;
    return placing->job->plan.delay_wgrad && exchanges && maq__placed_overlap_ep(placing) != MAQ_ON;
}

static const char *fault_of_pipeline(const struct maq_placing *placing, uint32_t p)
{
    const struct maq_mixed_plan *plan = placing->plan;
    const struct maq_mixed_pipeline *line = &plan->pipelines[p];
    uint32_t n = own_devices(line), first = line->stages[0].n_replicas;
    if (!goes_round(line, n))
        return "its virtual stages do not go round the devices";
    if (maq__placed_overlap_ep(placing) == MAQ_ON && n > 1 && n == line->n_stages)
        return "without virtual stages it has nothing that hides the exchange of experts "
               "(overlap_moe_expert_parallel_comm)";
    for (uint32_t i = 0; i < line->n_stages; i++) {
        const struct maq_mixed_stage *s = &line->stages[i], *own = &line->stages[i % n];
        if (s->n_replicas != first)
            return "its stages have different numbers of replicas";
        const char *away = fault_of_offload(s, placing->job);
        if (away)
            return away;
        if (delays_for_nothing(placing, s))
            return "its exchanges of experts have no pass beside them that delay_wgrad_compute could leave gradients "
                   "for "
                   "(overlap_moe_expert_parallel_comm)";
        for (uint32_t j = 0; j < s->n_replicas; j++) {
            const char *wrong = fault_of_replica(s, &s->replicas[j]);
            if (wrong)
                return wrong;
            if (maq_mixed_replica_microbatches(plan, p, i, j) != maq_mixed_replica_microbatches(plan, p, 0, j))
                return "its stages deal a replica different shares of the micro batches";
            if (s->replicas[j].tp != own->replicas[j].tp || s->replicas[j].cp != own->replicas[j].cp ||
                !same_place(&s->replicas[j], &own->replicas[j]))
                return "virtual stages that share devices differ in them";
        }
    }
    return NULL;
}

static const char *fault_of_schedule(const struct maq_mixed_plan *plan)
{
    bool round = false;
    for (uint32_t p = 0; p < plan->n_pipelines; p++)
        round = round || own_devices(&plan->pipelines[p]) < plan->pipelines[p].n_stages;
    switch (plan->schedule) {
    case MAQ_SCHEDULE_AUTO:
    case MAQ_SCHEDULE_INTERLEAVED:
        return NULL;
    case MAQ_SCHEDULE_1F1B:
    case MAQ_SCHEDULE_GPIPE:
        return round ? "virtual stages need the schedule interleaved" : NULL;
    default:
        return "its schedule splits backward passes";
    }
}

enum maq_status maq__placed_check(const struct maq_placing *p)
{
    const struct maq_mixed_plan *plan = p->plan;
    const char *wrong = fault_of_schedule(plan);
    if (plan->layers != p->n_atoms)
        wrong = "it has other layers than the job's model";
    else if (p->job->plan.post_validation)
        wrong = "its stages wait for each other before they update (enable_optimizer_post_validation)";
    else if (plan->global_batch != (uint32_t)p->job->workload.gbs)
        wrong = "its global batch is not the job's";
    for (uint32_t i = 0; i < plan->n_pipelines && !wrong; i++)
        wrong = fault_of_pipeline(p, i);
    return wrong ? maq__placed_cannot(p->diag, "docs/plan-form.md says what can be predicted", wrong) : MAQ_OK;
}
