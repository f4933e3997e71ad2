/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.c - makes the result of a replay: ends and time shares by rank and class, ends of steps, and, where a rank
 * failed, the first collective that times out. See result.h.
 */
#include "replay/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define TIMEOUT_NS INT64_C(600000000000) /* torch.distributed.constants.default_pg_nccl_timeout: ten minutes */

struct replay_owner {
    struct maq_replay replay;
    struct maq_arena arena;
};

void maq_replay_free(struct maq_replay *replay)
{
    if (!replay)
        return;
    struct replay_owner *owner = replay->owner;
    maq_arena_fini(&owner->arena);
    free(owner);
}

/* The effect of a failed rank: the job ends when the first waiting rank's collective times out. */
static void judge_failure(const struct maq_engine *e, struct maq_replay *out)
{
    int64_t timeout = e->opts->timeout_ns > 0 ? e->opts->timeout_ns : TIMEOUT_NS;
    out->failed_ns = out->reported_ns = INT64_MAX;
    out->reporting_rank = MAQ_NOBODY;
    for (uint32_t i = 0; i < e->world; i++) {
        const struct maq_rank_state *r = &e->rank[i];
        if (!r->program || r->live || r->ended)
            continue;
        if (r->failed) {
            out->failed = true;
            if (r->host < out->failed_ns) {
                out->failed_ns = r->host;
                out->failed_rank = i;
            }
        } else {
            out->n_waiting++;
            if (r->posted_at + timeout < out->reported_ns) {
                out->reported_ns = r->posted_at + timeout;
                out->reporting_rank = i;
            }
        }
    }
    if (out->reporting_rank == MAQ_NOBODY)
        out->reported_ns = out->failed_ns;
}

static void add_share(struct maq_replay_share *sum, const struct maq_replay_share *s)
{
    sum->compute_ns += s->compute_ns;
    sum->communication_ns += s->communication_ns;
    sum->peers_ns += s->peers_ns;
    sum->host_ns += s->host_ns;
}

static void describe_class(const struct maq_engine *e, const struct maq_rank_class *c, struct maq_replay_class *out)
{
    struct maq_replay_share sum = {0};
    *out = (struct maq_replay_class){.name = c->name,
                                     .n_ranks = c->n_ranks,
                                     .peak_bytes = c->peak_bytes,
                                     .records = c->n_records,
                                     .first_end_ns = INT64_MAX,
                                     .last_end_ns = -1};
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        const struct maq_rank_state *r = &e->rank[c->rank[i]];
        if (r->live)
            continue;
        add_share(&sum, &r->share);
        out->first_end_ns = r->host < out->first_end_ns ? r->host : out->first_end_ns;
        if (r->host > out->last_end_ns) {
            out->last_end_ns = r->host;
            out->last_rank = r->rank;
        }
    }
    int64_t n = c->n_ranks > 0 ? c->n_ranks : 1;
    out->mean =
        (struct maq_replay_share){sum.compute_ns / n, sum.communication_ns / n, sum.peers_ns / n, sum.host_ns / n};
}

static bool describe(struct maq_engine *e, struct maq_replay *out, struct maq_arena *arena)
{
    const struct maq_capture *c = e->capture;
    struct maq_replay_class *classes = MAQ_ARENA_NEW(arena, struct maq_replay_class, c->n_classes);
    int64_t *end = MAQ_ARENA_NEW(arena, int64_t, e->world), *steps = MAQ_ARENA_NEW(arena, int64_t, e->n_steps);
    struct maq_replay_share *share = MAQ_ARENA_NEW(arena, struct maq_replay_share, e->world);
    if (!classes || !end || !share || !steps)
        return false;
    for (uint32_t i = 0; i < e->world; i++) {
        if (!e->rank[i].program || e->rank[i].live)
            continue;
        out->n_known++;
        end[i] = e->rank[i].host;
        share[i] = e->rank[i].share;
        out->makespan_ns = end[i] > out->makespan_ns ? end[i] : out->makespan_ns;
    }
    for (uint32_t k = 0; k < c->n_classes; k++)
        describe_class(e, &c->class_of_ranks[k], &classes[k]);
    if (e->n_steps > 0)
        memcpy(steps, e->step_end, e->n_steps * sizeof *steps);
    out->world = e->world;
    while (out->n_steps < e->n_steps && e->step_ended[out->n_steps] > 0 &&
           (e->n_ended == e->n_ranks || e->step_ended[out->n_steps] == out->n_known))
        out->n_steps++; /* where a rank failed: only steps that all ranks ended */
    out->step_end_ns = steps;
    out->n_classes = c->n_classes;
    out->class_of_ranks = classes;
    out->end_ns = end;
    out->share = share;
    out->records = e->records;
    out->meetings = e->meetings;
    return true;
}

static enum maq_status conclude(struct maq_engine *e, struct maq_replay *out, struct maq_arena *arena)
{
    if (e->out_of_memory || !describe(e, out, arena))
        return maq_no_memory(e->diag, "the replay");
    if (e->n_ended == e->n_ranks)
        return MAQ_OK;
    judge_failure(e, out);
    if (!out->failed)
        return maq_engine_stuck(e);
    if (out->reported_ns > out->makespan_ns)
        out->makespan_ns = out->reported_ns;
    return MAQ_OK;
}

enum maq_status maq_replay_result_of(struct maq_replay **out, struct maq_engine *e, const struct maq_setup *setup)
{
    struct replay_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return maq_no_memory(e->diag, NULL);
    maq_arena_init(&owner->arena, 0);
    owner->replay.owner = owner;
    owner->replay.steps_marked = setup->marked;
    owner->replay.memory_bytes = e->arena->used + e->n_channels * sizeof *e->channel;
    enum maq_status status = conclude(e, &owner->replay, &owner->arena);
    if (status == MAQ_OK)
        *out = &owner->replay;
    else
        maq_replay_free(&owner->replay);
    return status;
}
