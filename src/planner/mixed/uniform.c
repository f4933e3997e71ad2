/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uniform.c - enumerates the plans of one strategy for all stages over all node groups: every strategy of the largest
 * group and every number of stages, predicted in batches (train/sweep.h); the fastest that fits is kept. See uniform.h.
 */
#include "planner/mixed/uniform.h"

#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "planner/stages/codes.h"
#include "planner/stages/strategies.h"
#include "train/atoms.h"

#define MOST_MEMBERS 4096 /* plans that are predicted in one batch */

struct uniform {
    struct maq_mixed_run *run;
    struct maq_train_sweep *sweep;
    struct maq_plan *plans; /* [MOST_MEMBERS] */
    struct maq_train_quick *quick;
    uint32_t n;
    struct maq_plan best;
    double best_s, best_bytes; /* 0: none fits */
};

static enum maq_status judge(struct uniform *u)
{
    MAQ_TRY(maq_train_sweep_eval_fitting(u->sweep, u->quick, u->plans, u->n));
    for (uint32_t i = 0; i < u->n; i++) {
        u->run->result.counts.considered += u->quick[i].possible;
        if (!u->quick[i].fits)
            continue;
        u->run->result.counts.evaluated++;
        if (u->best_s == 0 || u->quick[i].step_s < u->best_s) {
            u->best = u->plans[i];
            u->best_s = u->quick[i].step_s;
            u->best_bytes = u->quick[i].needed_bytes;
        }
    }
    u->n = 0;
    return MAQ_OK;
}

/* Adds the plan in which a strategy of the largest pool is that of all stages. */
static enum maq_status add(struct uniform *u, const struct maq_stage_strategy *strategy, uint32_t pp)
{
    const struct maq_chain_space *space = &u->run->space;
    for (uint32_t b = 0; b < space->n_mbs; b++) {
        struct maq_plan p = maq_strategy_plan(space, strategy, space->mbs[b]);
        p.pp = (int32_t)pp;
        u->plans[u->n++] = p;
        if (u->n == MOST_MEMBERS)
            MAQ_TRY(judge(u));
    }
    return MAQ_OK;
}

static enum maq_status enumerate(struct uniform *u)
{
    const struct maq_job *job = &u->run->space.job;
    const struct maq_chain_costs *costs = &u->run->costs;
    uint32_t largest = 0;
    for (uint32_t g = 1; g < costs->n_pools; g++)
        largest = costs->pools[g].at->count > costs->pools[largest].at->count ? g : largest;
    for (uint32_t pp = 1; pp <= job->model.num_layers; pp++)
        for (uint32_t w = 0; w < costs->pools[largest].n_strategies; w++) {
            const struct maq_stage_strategy *strategy = &costs->pools[largest].strategies[w];
            if (job->cluster.devices % (pp * strategy->tp * strategy->cp) == 0)
                MAQ_TRY(add(u, strategy, pp));
        }
    return judge(u);
}

static bool take(struct uniform *u)
{
    struct maq_mixed_run *run = u->run;
    const struct maq_search_plan best = {.plan = u->best, .needed_bytes = u->best_bytes};
    struct maq_mixed_search_plan *plan = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_plan, 1);
    if (!plan || !maq_mixed_uniform_plan(plan, run, &run->space.job.cluster, &best))
        return false;
    plan->step_s = plan->composed_s = u->best_s;
    run->plans = plan;
    run->result.plans = plan;
    run->result.n_plans = 1;
    run->result.bound_s = run->result.composed_s = u->best_s;
    return true;
}

enum maq_status maq_mixed_uniform(struct maq_mixed_run *run, struct maq_diag *diag)
{
    struct uniform u = {.run = run,
                        .plans = MAQ_ARENA_NEW(&run->arena, struct maq_plan, MOST_MEMBERS),
                        .quick = MAQ_ARENA_NEW(&run->arena, struct maq_train_quick, MOST_MEMBERS)};
    enum maq_status status = u.plans && u.quick ? MAQ_OK : MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        status = maq_train_sweep_new(&u.sweep, &run->space.job, diag);
    if (status == MAQ_OK)
        status = enumerate(&u);
    if (status == MAQ_OK && u.best_s > 0 && !take(&u))
        status = MAQ_NO_MEMORY;
    maq_train_sweep_free(u.sweep);
    run->result.complete = true;
    return status == MAQ_NO_MEMORY ? maq_diag_fail(status, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                                                   "out of memory for the search")
                                   : status;
}
