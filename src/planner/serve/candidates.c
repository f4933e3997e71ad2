/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.c - candidates: a value of each axis. Jobs of a replica are completed once for each node group, tensor and pipeline parallelism.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "plan/job_build.h"
#include "planner/serve/space.h"
#include "serve/engine/deployment.h"

struct list {
    struct maq_serve_search_result *out;
    const struct maq_loaded_job *open;
    const struct maq_serve_search_opts *opts;
    struct maq_serve_space space;
    struct maq_arena *arena;
    uint32_t size;
    uint32_t group;
};

uint32_t maq_serve_group_devices(const struct maq_serve_candidate *c)
{
    return c->job->cluster.devices;
}

/* The job of a replica on one node group alone. *why: what does not go together; NULL: nothing. Owned by the arena. */
static enum maq_status complete(const struct maq_job **out, const char **why, struct list *l, int32_t tp, int32_t pp)
{
    const struct maq_job_places at = maq_job_written(l->open);
    struct maq_job *job = MAQ_ARENA_NEW(l->arena, struct maq_job, 1);
    struct maq_node_group *group = MAQ_ARENA_NEW(l->arena, struct maq_node_group, 1);
    struct maq_diag *diag = maq_diag_new();
    if (!job || !group || !diag) {
        maq_diag_free(diag);
        return MAQ_NO_MEMORY;
    }
    *job = *maq_job_get(l->open);
    *group = job->cluster.groups[l->group];
    group->first_rank = 0;
    job->cluster.groups = group;
    job->cluster.n_groups = 1;
    job->cluster.n_links = 0;
    job->cluster.devices = (uint32_t)(group->nodes * group->devices_per_node);
    job->plan.tp = tp;
    job->plan.pp = pp;
    job->plan.mbs = 1;
    job->plan.sequence_parallel = MAQ_OFF; /* of training: its sequences are none that an engine cuts */
    job->workload.gbs = (int32_t)job->cluster.devices;
    enum maq_status status = maq_job_resolve(job, &at, diag);
    if (status == MAQ_OK)
        status = maq_job_split_layers(job, &at, l->arena, diag);
    if (status == MAQ_OK)
        status = maq_job_place_groups(job, &at, l->arena, diag);
    *out = job;
    *why = NULL;
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT) {
        *why = maq_diag_count(diag) > 0 ? maq_arena_strdup(l->arena, maq_diag_at(diag, 0)->msg) : "impossible";
        *out = NULL;
        status = *why ? MAQ_OK : MAQ_NO_MEMORY;
    }
    maq_diag_free(diag);
    return status;
}

static struct maq_serve_candidate *add(struct list *l, const int32_t at[MAQ_SERVE_AXIS_COUNT])
{
    if (!maq__grow((void **)&l->out->candidates, &l->size, l->out->n, sizeof *l->out->candidates))
        return NULL;
    struct maq_serve_candidate *c = &l->out->candidates[l->out->n++];
    *c = (struct maq_serve_candidate){.group = l->group};
    memcpy(c->at, at, sizeof c->at);
    return c;
}

/* Those that share the experts: of FFN where it has GPUs of its own. */
static int64_t ranks_of_experts(const int32_t at[MAQ_SERVE_AXIS_COUNT])
{
    return at[MAQ_SERVE_AXIS_AFD] > 0 ? at[MAQ_SERVE_AXIS_AFD] : (int64_t)at[MAQ_SERVE_AXIS_TP] * at[MAQ_SERVE_AXIS_DP];
}

/* What the engine of a candidate is told. */
static struct maq_serve_options told(const struct list *l, const int32_t at[MAQ_SERVE_AXIS_COUNT])
{
    struct maq_serve_options o = *l->opts->options;
    o.engine = (enum maq_engine)at[MAQ_SERVE_AXIS_ENGINE];
    if (o.weights != (enum maq_weights)at[MAQ_SERVE_AXIS_WEIGHTS])
        o.weights = o.expert_weights = (enum maq_weights)at[MAQ_SERVE_AXIS_WEIGHTS];
    o.kv_fp8 = at[MAQ_SERVE_AXIS_KV] != 0;
    o.dp = at[MAQ_SERVE_AXIS_DP];
    o.afd.ffn_ranks = at[MAQ_SERVE_AXIS_AFD];
    o.afd.micro_batches = o.afd.ffn_ranks > 0 ? at[MAQ_SERVE_AXIS_MICRO] : 0;
    o.ep = at[MAQ_SERVE_AXIS_EP] == MAQ_SERVE_EP_ALL ? (int32_t)ranks_of_experts(at) : at[MAQ_SERVE_AXIS_EP];
    o.max_num_seqs = at[MAQ_SERVE_AXIS_SEQS];
    o.max_num_batched_tokens = at[MAQ_SERVE_AXIS_TOKENS];
    return o;
}

/* A limit that is the engine's own default already, or, of requests, above it, is no other candidate. */
static bool is_again(const struct maq_serve_options *own, const int32_t at[MAQ_SERVE_AXIS_COUNT])
{
    int32_t seqs = at[MAQ_SERVE_AXIS_SEQS], tokens = at[MAQ_SERVE_AXIS_TOKENS];
    return (seqs > 0 && seqs >= own->max_num_seqs) || (tokens > 0 && tokens == own->max_num_batched_tokens);
}

/* *why: what the engine does not load, NULL: nothing. False: no memory. */
static bool says_why(const char **why, struct list *l, const struct maq_job *job, const struct maq_serve_options *o)
{
    struct maq_diag *diag = maq_diag_new();
    *why = NULL;
    if (!diag)
        return false;
    bool refused = maq_blocks_check(job, o, diag) != MAQ_OK;
    if (refused)
        *why = maq_diag_count(diag) > 0 ? maq_arena_strdup(l->arena, maq_diag_at(diag, 0)->msg) : "impossible";
    maq_diag_free(diag);
    return !refused || *why;
}

static bool add_impossible(struct list *l, const int32_t at[MAQ_SERVE_AXIS_COUNT], const struct maq_job *job,
                           const struct maq_serve_options *o, const char *why)
{
    struct maq_serve_candidate *c = add(l, at);
    if (!c)
        return false;
    c->verdict = MAQ_SERVE_VERDICT_IMPOSSIBLE;
    c->why = why;
    c->options = *o;
    c->gpus = (uint32_t)(job->plan.tp * job->plan.pp * o->dp + o->afd.ffn_ranks);
    return true;
}

/* All limits under the other values. */
static bool add_limits(struct list *l, int32_t at[MAQ_SERVE_AXIS_COUNT], const struct maq_job *job)
{
    const struct maq_serve_values *seqs = &l->space.axis[MAQ_SERVE_AXIS_SEQS],
                                  *tokens = &l->space.axis[MAQ_SERVE_AXIS_TOKENS];
    struct maq_serve_options own;
    at[MAQ_SERVE_AXIS_SEQS] = at[MAQ_SERVE_AXIS_TOKENS] = 0;
    struct maq_serve_options plain = told(l, at);
    const char *why;
    if (!says_why(&why, l, job, &plain))
        return false;
    if (why)
        return add_impossible(l, at, job, &plain, why);
    maq_serve_complete(&own, &plain, job);
    for (uint32_t t = 0; t < tokens->n; t++)
        for (uint32_t s = 0; s < seqs->n; s++) {
            at[MAQ_SERVE_AXIS_TOKENS] = tokens->at[t];
            at[MAQ_SERVE_AXIS_SEQS] = seqs->at[s];
            if (is_again(&own, at))
                continue;
            struct maq_serve_candidate *c = add(l, at);
            if (!c)
                return false;
            c->own_seqs = s == 0;
            c->own_tokens = t == 0;
            c->own_limits = c->own_seqs && c->own_tokens;
            c->job = job;
            c->options = told(l, at);
            c->gpus = (uint32_t)(job->plan.tp * job->plan.pp * c->options.dp + c->options.afd.ffn_ranks);
        }
    return true;
}

/* Values that are others again, or that this many devices or stages cannot be cut into. */
static bool is_of_no_use(const struct list *l, const int32_t at[MAQ_SERVE_AXIS_COUNT], const struct maq_job *job)
{
    int64_t attention = (int64_t)at[MAQ_SERVE_AXIS_TP] * at[MAQ_SERVE_AXIS_DP], ffn = at[MAQ_SERVE_AXIS_AFD],
            experts = ranks_of_experts(at);
    bool again = (at[MAQ_SERVE_AXIS_EP] == MAQ_SERVE_EP_ALL && experts == 1) ||
                 (ffn == 0 && at[MAQ_SERVE_AXIS_MICRO] != l->space.axis[MAQ_SERVE_AXIS_MICRO].at[0]);
    return again || attention * job->plan.pp + ffn > job->cluster.devices || experts % at[MAQ_SERVE_AXIS_EP] != 0 ||
           (ffn > 0 && job->plan.pp > 1);
}

/* Types and the spread of experts under tensor and pipeline parallelism that go together. */
static bool add_types(struct list *l, int32_t at[MAQ_SERVE_AXIS_COUNT], const struct maq_job *job)
{
    static const enum maq_serve_axis axes[] = {MAQ_SERVE_AXIS_DP,    MAQ_SERVE_AXIS_EP,     MAQ_SERVE_AXIS_AFD,
                                               MAQ_SERVE_AXIS_MICRO, MAQ_SERVE_AXIS_ENGINE, MAQ_SERVE_AXIS_WEIGHTS,
                                               MAQ_SERVE_AXIS_KV};
    uint32_t all = 1;
    for (size_t a = 0; a < MAQ_COUNT(axes); a++)
        all *= l->space.axis[axes[a]].n;
    for (uint32_t i = 0; i < all; i++) {
        uint32_t rest = i;
        for (size_t a = MAQ_COUNT(axes); a-- > 0; rest /= l->space.axis[axes[a]].n)
            at[axes[a]] = l->space.axis[axes[a]].at[rest % l->space.axis[axes[a]].n];
        if (is_of_no_use(l, at, job))
            continue;
        if (!add_limits(l, at, job))
            return false;
    }
    return true;
}

static enum maq_status add_degrees(struct list *l)
{
    const struct maq_serve_values *tp = &l->space.axis[MAQ_SERVE_AXIS_TP], *pp = &l->space.axis[MAQ_SERVE_AXIS_PP];
    const struct maq_node_group *g = &maq_job_get(l->open)->cluster.groups[l->group];
    for (uint32_t t = 0; t < tp->n; t++)
        for (uint32_t p = 0; p < pp->n; p++) {
            int32_t at[MAQ_SERVE_AXIS_COUNT] = {[MAQ_SERVE_AXIS_TP] = tp->at[t], [MAQ_SERVE_AXIS_PP] = pp->at[p]};
            const struct maq_job *job;
            const char *why;
            if ((int64_t)tp->at[t] * pp->at[p] > (int64_t)g->nodes * g->devices_per_node)
                continue;
            MAQ_TRY(complete(&job, &why, l, tp->at[t], pp->at[p]));
            if (!why && !add_types(l, at, job))
                return MAQ_NO_MEMORY;
            if (!why)
                continue;
            struct maq_serve_candidate *c = add(l, at);
            if (!c)
                return MAQ_NO_MEMORY;
            c->verdict = MAQ_SERVE_VERDICT_IMPOSSIBLE;
            c->why = why;
            c->gpus = (uint32_t)(tp->at[t] * pp->at[p]);
        }
    return MAQ_OK;
}

enum maq_status maq_serve_list(struct maq_serve_search_result *out, const struct maq_loaded_job *open,
                               const struct maq_serve_search_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    struct list l = {.out = out, .open = open, .opts = opts, .arena = arena};
    for (l.group = 0; l.group < maq_job_get(open)->cluster.n_groups; l.group++) {
        MAQ_TRY(maq_serve_space_init(&l.space, open, l.group, opts, l.group == 0 ? diag : NULL));
        if (add_degrees(&l) != MAQ_OK)
            return maq_no_memory(diag, "candidates");
    }
    return MAQ_OK;
}
