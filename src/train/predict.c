/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - the fast path from a job to a result. */
#include "train/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "train/memory/eager_replay.h"
#include "train/memory/paged_optimizer.h"
#include "train/memory/stage_memory.h"
#include "train/step/job_step.h"

#define MOST_REPLAYED 8 /* stages */

static void fill_rates(struct maq_train_result *r, const struct maq_blueprint *bp, const struct maq_step_times *t)
{
    const struct maq_job *job = bp->job;
    double devices = job->cluster.devices;
    double tokens = (double)job->workload.gbs * (double)job->workload.seq;
    if (!job->workload.packed && job->workload.length_mean > 0)
        tokens = (double)job->workload.gbs * job->workload.length_mean;
    r->step_s = t->step * 1e-9;
    r->tokens_per_s = tokens / r->step_s;
    r->tokens_per_s_per_device = r->tokens_per_s / devices;
    maq_step_flop(&r->model_flop, &r->hardware_flop, bp);
    r->model_flops_per_device = r->model_flop / r->step_s / devices;
    for (uint32_t s = 0; s < r->n_stages; s++) /* stages have equally many devices */
        r->peak_flops += job->stages[s].peak_flops / r->n_stages;
    r->mfu = r->model_flops_per_device / r->peak_flops;
    r->hfu = r->hardware_flop / r->step_s / devices / r->peak_flops;
    r->optimizer_s = t->optimizer * 1e-9;
}

/* The allocator returns unused blocks to the driver before an allocation fails, so it never holds more than the device has. */
static void add_fragmentation(struct maq_stage_result *st, double bytes)
{
    double room = st->capacity_bytes - st->needed_bytes;
    st->returns_cache = bytes > room;
    if (st->returns_cache)
        bytes = room > 0 ? room : 0;
    st->bytes[MAQ_MEM_FRAGMENTATION] = bytes;
    st->reserved_bytes = st->allocated_bytes + bytes;
    st->total_bytes =
        st->reserved_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL] + st->bytes[MAQ_MEM_GRAPHS];
    maq_settle_managed(st);
}

/*
 * What is reserved beyond what is allocated: where the replay has all that a program allocates, its peak less the stage's; else what
 * stands empty at the replay's own peak.
 */
static double cached_bytes(const struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage,
                           const struct maq_replayed *r)
{
    double ahead = maq_stage_ahead_bytes(bp, stage), gathers = r->gather_pool + maq_stage_gradient_pool(st, bp, stage),
           pools = r->streams ? 0 : gathers;
    double empty = r->reserved - r->allocated + pools - ahead, whole = r->reserved + pools - st->allocated_bytes;
    return r->whole ? fmax(whole, 0) : empty;
}

/*
 * Ends of blocks count as allocated, as PyTorch counts them; where every request of the program is known, all is as it comes out there,
 * and the device has to hold that. A plan whose replay is of a pass alone is held against the device without those ends.
 */
static void count_requests(struct maq_stage_result *st, const struct maq_replayed *r)
{
    if (!r->whole)
        return;
    double more = r->streams ? r->allocated - st->allocated_bytes : r->waste;
    double least = st->bytes[MAQ_MEM_TRANSIENT] + more;
    st->bytes[MAQ_MEM_TRANSIENT] = fmax(least, 0);
    st->bytes[MAQ_MEM_ACTIVATIONS] += fmin(least, 0);
    st->allocated_bytes += more;
    st->needed_bytes += r->streams ? more : 0;
}

bool maq_stage_count_requests(struct maq_stage_result *st, const struct maq_blueprint *bp, uint32_t stage)
{
    struct maq_replayed replayed;
    bool known;
    if (!maq_eager_replay(&replayed, &known, bp, stage))
        return false;
    if (known)
        count_requests(st, &replayed);
    return true;
}

/* *whole: every request of the program is known. */
static enum maq_status replay_stage(struct maq_train_result *r, const struct maq_blueprint *bp, uint32_t stage,
                                    bool *whole)
{
    struct maq_stage_result *st = &r->stages[stage];
    double buckets = maq_stage_bucket_bytes(bp, stage);
    struct maq_held_states held = {st->bytes[MAQ_MEM_WEIGHTS] + st->bytes[MAQ_MEM_GRADIENTS] - buckets,
                                   st->bytes[MAQ_MEM_OPTIMIZER] - st->resident_bytes, buckets};
    struct maq_replayed replayed;
    if (!maq_replay_stage(&replayed, bp, stage, &held))
        return MAQ_NO_MEMORY;
    count_requests(st, &replayed);
    add_fragmentation(st, cached_bytes(st, bp, stage, &replayed));
    *whole = replayed.whole;
    return MAQ_OK;
}

/*
 * The allocator is replayed for the stages at the ends and the fullest one; those between are like the fullest, or, where every request
 * is known and there are not too many, replayed too: how many microbatches wait makes the holes.
 */
static enum maq_status replay_allocator(struct maq_train_result *r, const struct maq_blueprint *bp)
{
    uint32_t last = r->n_stages - 1, replayed[3] = {r->worst_stage, 0, last};
    bool whole = false;
    for (int i = 0; i < 3; i++)
        if (i == 0 || (replayed[i] != replayed[0] && replayed[i] != replayed[i - 1]))
            MAQ_TRY(replay_stage(r, bp, replayed[i], &whole));
    for (uint32_t s = 1; s < last; s++)
        if (s != r->worst_stage && whole && r->n_stages <= MOST_REPLAYED)
            MAQ_TRY(replay_stage(r, bp, s, &whole));
        else if (s != r->worst_stage)
            add_fragmentation(&r->stages[s], r->stages[r->worst_stage].bytes[MAQ_MEM_FRAGMENTATION]);
    return MAQ_OK;
}

static enum maq_status fill_memory(struct maq_train_result *r, const struct maq_blueprint *bp)
{
    double worst = -1e300;
    for (uint32_t s = 0; s < r->n_stages; s++) {
        struct maq_stage_result *st = &r->stages[s];
        maq_stage_memory(st, bp, s);
        double over = st->total_bytes - st->capacity_bytes;
        if (over > worst) {
            worst = over;
            r->worst_stage = s;
        }
    }
    MAQ_TRY(replay_allocator(r, bp));
    r->fits = true;
    for (uint32_t s = 0; s < r->n_stages; s++) /* what the requests of a program come to is known now */
        r->fits = r->fits && maq_stage_fits(&r->stages[s]);
    return MAQ_OK;
}

/* A kind of device counts once, however many node groups have it. */
static void fill_measured(struct maq_train_measured *out, const struct maq_cache *cache, const struct maq_job *job)
{
    const struct maq_cluster *c = &job->cluster;
    if (!cache->measured)
        return;
    out->asked = true;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        bool seen = false;
        for (uint32_t h = 0; h < g; h++)
            seen |= strcmp(c->groups[h].device.name, c->groups[g].device.name) == 0;
        out->held += seen ? 0 : maq_measured_count(cache->measured, c->groups[g].device.name);
    }
    out->others = maq_measured_count(cache->measured, NULL) - out->held;
    for (uint32_t i = 1; i < cache->items.n; i++) {
        const struct maq_item *it = &cache->items.at[i];
        if (!it->is_coll && it->op.kind == MAQ_OP_GAP)
            continue;
        out->items++;
        out->hits += it->cost.provider == MAQ_PROVIDER_MEASURED;
    }
}

enum maq_status maq_train_predict(struct maq_train_result **out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_job_step step;
    struct maq_train_result *r = NULL;
    enum maq_status status = maq_job_step_open_timed(&step, job, NULL, diag);
    if (status == MAQ_OK) {
        r = calloc(1, sizeof *r);
        status = r ? MAQ_OK : MAQ_NO_MEMORY;
    }
    if (status == MAQ_OK) {
        r->job = job;
        r->n_stages = (uint32_t)job->plan.pp;
        r->stages = calloc(r->n_stages, sizeof *r->stages);
        status = r->stages ? MAQ_OK : MAQ_NO_MEMORY;
    }
    if (status == MAQ_OK) {
        fill_rates(r, &step.bp, &step.times);
        fill_measured(&r->measured, &step.cache, job);
        status = fill_memory(r, &step.bp);
        if (status == MAQ_OK)
            status = maq_stage_breakdown(r, &step.bp, &step.times, &step.arena);
    }
    maq_job_step_close(&step);
    if (status != MAQ_OK) {
        maq_train_result_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

void maq_train_result_free(struct maq_train_result *result)
{
    if (result)
        free(result->stages);
    free(result);
}
