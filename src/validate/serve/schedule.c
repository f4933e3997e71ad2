/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - `validate schedule`: a recorded engine's requests before maquette's scheduler of that engine, and every decision compared.
 *
 * With async scheduling the outcome of a step is known one step later, in the replay as in the recording.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/validate_serve.h"
#include "validate/codes.h"
#include "validate/serve/recording.h"

struct owner {
    struct maq_arena arena;
};

struct replay {
    struct maq_recording recording;
    struct maq_scheduler *sched;
    struct maq_iteration at[2]; /* this step's, and the one before it that has not ended */
    int32_t *sampled;
    uint32_t sampled_size;
    uint32_t *owner_of; /* [slots] index of the request that has a slot, also when it has just ended */
    uint32_t owners;
    uint32_t next;                        /* request to come */
    uint32_t *moves, n_moves, moves_size; /* transfers in the order in which they began: where the tiers have them */
    uint32_t moves_seen;                  /* of them, before this step */
    char what[160];
    struct maq_diag *diag;
};

/* ---- comparing ---- */

static bool differs(struct replay *p, const char *what, int64_t recorded, int64_t ours)
{
    if (recorded == ours)
        return false;
    if (p->what[0] == '\0' && recorded < 0)
        maq__snprintf(p->what, sizeof p->what, "%s: none recorded, %lld here", what, (long long)ours);
    else if (p->what[0] == '\0')
        maq__snprintf(p->what, sizeof p->what, "%s: %lld recorded, %lld here", what, (long long)recorded,
                      (long long)ours);
    return true;
}

static const char *id_of(const struct replay *p, uint32_t slot)
{
    return p->recording.requests[p->owner_of[slot]].id;
}

/* The number that a recorded map has for a request; -1 where it has none. */
static int64_t recorded(const json_t *map, const char *id)
{
    const json_t *value = json_object_get(map, id);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static bool is_listed(const json_t *list, const char *id)
{
    size_t i;
    const json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i,
                       item) if (json_is_string(item) && strcmp(json_string_value(item), id) == 0) return true;
    return false;
}

static bool lists_differ(struct replay *p, const char *what, const json_t *list, const uint32_t *slots, uint32_t n)
{
    bool differ = differs(p, what, (int64_t)json_array_size(list), n);
    for (uint32_t i = 0; i < n && !differ; i++)
        if (!is_listed(list, id_of(p, slots[i])))
            differ = differs(p, what, 0, 1);
    return differ;
}

/* Requests that got room for what another engine computes. */
static bool loads_differ(struct replay *p, const json_t *loads, const struct maq_iteration *now)
{
    bool differ = differs(p, "requests that get room", (int64_t)json_object_size(loads), now->n_loads);
    for (uint32_t i = 0; i < now->n_loads; i++)
        differ |= differs(p, "tokens found of one whose prompt comes", recorded(loads, id_of(p, now->loads[i].slot)),
                          now->loads[i].found);
    return differ;
}

/* Host memory of HiCache: compared when a step has ended. */
static bool host_differs(struct replay *p, const json_t *line)
{
    const struct maq_sglang *s = (const struct maq_sglang *)p->sched;
    return p->recording.is_sglang && s->tree.host &&
           differs(p, "free tokens in host memory", json_integer_value(json_object_get(line, "host_free")),
                   s->tree.host->available);
}

/* Transfers that began with a step, what it waits for, and how full host memory is when it has ended. */
static bool tiers_differ(struct replay *p, const json_t *line)
{
    struct maq_offload *o = p->sched->ops->offload ? p->sched->ops->offload(p->sched) : NULL;
    const json_t *moves = json_object_get(line, "moves"), *flush = json_object_get(line, "flush");
    if (!o)
        return false;
    bool differ = differs(p, "transfers that begin", (int64_t)json_array_size(moves), p->n_moves - p->moves_seen);
    for (uint32_t i = p->moves_seen; !differ && i < p->n_moves; i++) {
        const struct maq_offload_job *job = &o->jobs[p->moves[i]];
        const json_t *move = json_array_get(moves, i - p->moves_seen);
        bool load = json_integer_value(json_array_get(move, 1)) != 0;
        differ |= differs(p, "whether it is a load", load, job->move == MAQ_MOVE_LOAD);
        differ |= differs(p, "chunks of it", json_integer_value(json_array_get(move, 2)), job->n);
    }
    return differ | differs(p, "transfers that a step waits for", (int64_t)json_array_size(flush), o->n_flush);
}

static bool step_differs(struct replay *p, const json_t *line, const struct maq_iteration *now,
                         const struct maq_iteration *ended)
{
    const json_t *scheduled = json_object_get(line, "scheduled"), *hits = json_object_get(line, "hits");
    bool differ = differs(p, "requests scheduled", (int64_t)json_object_size(scheduled), now->n);
    uint32_t shown = 0;
    for (uint32_t i = 0; i < now->n; i++) {
        const struct maq_scheduled *w = &now->scheduled[i];
        struct maq_recorded_request *q = &p->recording.requests[p->owner_of[w->slot]];
        differ |= differs(p, "tokens of a request", recorded(scheduled, q->id), w->tokens);
        if (w->hit >= 0 && !q->shown && q->request.part != MAQ_PART_DECODE) {
            differ |= differs(p, "tokens found in the prefix cache", recorded(hits, q->id), w->hit);
            q->shown = true;
            shown++;
        }
    }
    differ |= differs(p, "requests taken in", (int64_t)json_object_size(hits), shown);
    differ |= loads_differ(p, json_object_get(line, "loads"), now);
    const struct maq_offload *o = p->sched->ops->offload ? p->sched->ops->offload(p->sched) : NULL;
    if (o)
        differ |= differs(p, "chunks in host memory", json_integer_value(json_object_get(line, "host")), o->host.n);
    differ |=
        lists_differ(p, "requests preempted", json_object_get(line, "preempted"), now->preempted, now->n_preempted);
    if (ended)
        differ |=
            lists_differ(p, "requests finished", json_object_get(line, "finished"), ended->finished, ended->n_finished);
    const struct maq_scheduler_load load = p->sched->ops->load(p->sched);
    const char *free_of = p->recording.is_sglang ? "free tokens" : "free blocks";
    differ |= differs(p, free_of, json_integer_value(json_object_get(line, "free")), load.all - load.used);
    if (load.kept >= 0 && json_object_get(line, "cached"))
        differ |= differs(p, "tokens kept", json_integer_value(json_object_get(line, "cached")), load.kept);
    differ |= host_differs(p, line);
    differ |= differs(p, "requests running", json_integer_value(json_object_get(line, "running")), load.running);
    differ |= differs(p, "requests waiting", json_integer_value(json_object_get(line, "waiting")), load.waiting);
    return differ;
}

/* ---- replaying ---- */

static enum maq_status arrive(struct replay *p, uint32_t index)
{
    struct maq_recorded_request *q = &p->recording.requests[index];
    q->slot = p->sched->ops->add(p->sched, &q->request);
    if (q->slot == MAQ_NO_SLOT)
        return MAQ_NO_MEMORY;
    if (q->slot >= p->owners) {
        uint32_t owners = q->slot + 64, *more = realloc(p->owner_of, owners * sizeof *more);
        if (!more)
            return MAQ_NO_MEMORY;
        p->owner_of = more;
        p->owners = owners;
    }
    p->owner_of[q->slot] = index;
    return MAQ_OK;
}

static void give_up(struct replay *p, const json_t *ids)
{
    size_t i;
    const json_t *id;
    json_array_foreach((json_t *)(uintptr_t)ids, i, id)
    {
        int64_t index = json_is_string(id) ? recorded(p->recording.by_id, json_string_value(id)) : -1;
        struct maq_recorded_request *q = index >= 0 ? &p->recording.requests[index] : NULL;
        if (!q || q->slot == MAQ_NO_SLOT)
            continue;
        p->sched->ops->abort(p->sched, q->slot);
        q->slot = MAQ_NO_SLOT;
    }
}

/* Keys and values are there, or have been read, of those that are listed; one that does not wait for it is passed over, and differs elsewhere. */
static void hear(struct replay *p, const json_t *ids, enum maq_vllm_status status)
{
    size_t i;
    const json_t *id;
    json_array_foreach((json_t *)(uintptr_t)ids, i, id)
    {
        int64_t index = json_is_string(id) ? recorded(p->recording.by_id, json_string_value(id)) : -1;
        struct maq_recorded_request *q = index >= 0 ? &p->recording.requests[index] : NULL;
        struct maq_vllm *s = (struct maq_vllm *)p->sched;
        if (p->recording.is_sglang || !q || q->slot == MAQ_NO_SLOT || s->at[q->slot].status != status)
            continue;
        if (status == MAQ_VLLM_LOADING) {
            maq_vllm_arrived(s, q->slot);
        } else {
            maq_vllm_release(s, q->slot);
            q->slot = MAQ_NO_SLOT;
        }
    }
}

/* Transfers that began, in their order. */
static enum maq_status note_moves(struct replay *p)
{
    struct maq_offload *o = p->sched->ops->offload ? p->sched->ops->offload(p->sched) : NULL;
    p->moves_seen = p->n_moves;
    for (uint32_t i = 0; o && i < o->n_begun; i++)
        if (!maq_slots_push(&p->moves, &p->n_moves, &p->moves_size, o->begun[i]))
            return MAQ_NO_MEMORY;
    if (o)
        o->n_begun = 0;
    return MAQ_OK;
}

/* Transfers that are over, by their numbers; one that is not under way is passed over, and differs elsewhere. */
static void end_moves(struct replay *p, const json_t *numbers)
{
    struct maq_offload *o = p->sched->ops->offload ? p->sched->ops->offload(p->sched) : NULL;
    size_t i;
    const json_t *number;
    json_array_foreach((json_t *)(uintptr_t)numbers, i, number)
    {
        json_int_t n = json_integer_value(number);
        if (o && n >= 0 && n < (json_int_t)p->n_moves && p->moves[n] < o->n_jobs && o->jobs[p->moves[n]].live)
            p->sched->ops->moved(p->sched, p->moves[n]);
    }
}

/* Copies of HiCache that are over as a step begins: of each way those that began together first, or none. */
static void end_copies(struct replay *p, const json_t *copied)
{
    struct maq_sglang *s = (struct maq_sglang *)p->sched;
    if (!p->recording.is_sglang || !copied)
        return;
    if (json_integer_value(json_array_get(copied, 0)) > 0)
        maq_radix_host_written(&s->tree);
    if (json_integer_value(json_array_get(copied, 1)) > 0)
        maq_radix_host_loaded(&s->tree);
}

/* A step ends with what the recording says was sampled, or with a token for each request whose end was reached. */
static enum maq_status end_step(struct replay *p, struct maq_iteration *it, const json_t *line)
{
    const json_t *sampled = json_object_get(line, "sampled");
    if (it->n > p->sampled_size) {
        int32_t *more = realloc(p->sampled, it->n * 2 * sizeof *more);
        if (!more)
            return MAQ_NO_MEMORY;
        p->sampled = more;
        p->sampled_size = it->n * 2;
    }
    for (uint32_t i = 0; sampled && i < it->n; i++) {
        int64_t n = recorded(sampled, p->recording.requests[it->scheduled[i].order].id);
        p->sampled[i] = n > 0 ? (int32_t)n : 0;
    }
    p->sched->ops->end(p->sched, it, sampled ? p->sampled : NULL);
    for (uint32_t i = 0; i < it->n_finished; i++) {
        struct maq_recorded_request *q = &p->recording.requests[p->owner_of[it->finished[i]]];
        q->slot = q->request.part == MAQ_PART_PREFILL && !p->recording.is_sglang ? q->slot : MAQ_NO_SLOT;
    }
    hear(p, json_object_get(line, "arrived"), MAQ_VLLM_LOADING);
    hear(p, json_object_get(line, "sent"), MAQ_VLLM_HELD);
    end_moves(p, json_object_get(line, "moved"));
    const char *id;
    const json_t *n;
    json_object_foreach(json_object_get(line, "drafts"), id, n)
    {
        int64_t index = recorded(p->recording.by_id, id);
        const struct maq_recorded_request *q = index >= 0 ? &p->recording.requests[index] : NULL;
        if (q && q->slot != MAQ_NO_SLOT && !p->recording.is_sglang)
            maq_vllm_propose((struct maq_vllm *)p->sched, q->slot, (int32_t)json_integer_value(n));
    }
    return MAQ_OK;
}

static enum maq_status one_step(struct replay *p, struct maq_validate_schedule_row *row, uint32_t n)
{
    const struct maq_recording *r = &p->recording;
    json_t *line = json_loadb(r->steps[n].ptr, r->steps[n].len, 0, NULL);
    struct maq_iteration *now = &p->at[n % 2], *before = &p->at[(n + 1) % 2];
    enum maq_status status = MAQ_OK;
    if (!line)
        return maq_diag_fail(MAQ_BAD_INPUT, p->diag, MAQ_CODE_RECORDING, (struct maq_span){0}, NULL,
                             "%s: step %u is not a JSON object", r->path, n);
    int64_t step = json_integer_value(json_object_get(line, "step"));
    while (status == MAQ_OK && p->next < r->n_requests && r->requests[p->next].arrive_step <= step)
        status = arrive(p, p->next++);
    give_up(p, json_object_get(line, "aborted"));
    end_copies(p, json_object_get(line, "copied"));
    p->sched->ops->decide(p->sched, now);
    status = status == MAQ_OK ? note_moves(p) : status;
    bool tiers_differ_here = tiers_differ(p, line);
    struct maq_iteration *ends = !r->late ? now : n > 0 ? before : NULL;
    if (status == MAQ_OK && ends)
        status = end_step(p, ends, line);
    if (step_differs(p, line, now, ends) | tiers_differ_here) {
        if (row->first_difference < 0)
            row->first_difference = step;
    } else {
        row->equal_steps++;
    }
    json_decref(line);
    return p->sched->failed ? MAQ_NO_MEMORY : status;
}

static enum maq_status replay(struct maq_validate_schedule_row *row, const char *path, struct maq_arena *arena,
                              struct maq_diag *diag)
{
    struct replay p = {.diag = diag};
    enum maq_status status = maq_recording_read(&p.recording, path, arena, diag);
    bool read = status == MAQ_OK;
    if (read)
        status = p.recording.is_sglang ? maq_sglang_new(&p.sched, &p.recording.sglang)
                                       : maq_vllm_new(&p.sched, &p.recording.knobs, &p.recording.kv);
    if (status == MAQ_OK && read && p.recording.tiers.chunks[MAQ_TIER_HOST] > 0)
        status = maq_vllm_set_tiers((struct maq_vllm *)p.sched, &p.recording.tiers);
    *row = (struct maq_validate_schedule_row){.file = maq_arena_strdup(arena, maq_str_of(path)),
                                              .engine = p.recording.engine,
                                              .version = p.recording.version,
                                              .requests = p.recording.n_requests,
                                              .steps = p.recording.n_steps,
                                              .first_difference = -1};
    if (read && !row->file)
        status = MAQ_NO_MEMORY;
    for (uint32_t i = 0; status == MAQ_OK && i < p.recording.n_steps; i++) {
        status = one_step(&p, row, i);
        if (p.what[0] != '\0' && !row->difference && !(row->difference = maq_arena_strdup(arena, maq_str_of(p.what))))
            status = MAQ_NO_MEMORY;
    }
    if (read && status == MAQ_NO_MEMORY)
        (void)maq_no_memory(diag, "a recording");
    maq_iteration_fini(&p.at[0]);
    maq_iteration_fini(&p.at[1]);
    free(p.sampled);
    free(p.owner_of);
    free(p.moves);
    if (p.sched)
        p.sched->ops->fini(p.sched);
    maq_recording_fini(&p.recording);
    return status;
}

enum maq_status maq_validate_schedule(struct maq_validate_schedule **out, const char *const *paths, size_t n,
                                      struct maq_diag *diag)
{
    struct owner *owner = calloc(1, sizeof *owner);
    struct maq_validate_schedule *result = calloc(1, sizeof *result);
    enum maq_status status = owner && result ? MAQ_OK : maq_no_memory(diag, "recordings");
    if (owner)
        maq_arena_init(&owner->arena, 0);
    if (status == MAQ_OK) {
        result->owner = owner;
        result->rows = MAQ_ARENA_NEW(&owner->arena, struct maq_validate_schedule_row, n);
        status = result->rows ? MAQ_OK : maq_no_memory(diag, "recordings");
    }
    for (size_t i = 0; status == MAQ_OK && i < n; i++) {
        status = replay(&result->rows[i], paths[i], &owner->arena, diag);
        result->n++;
        result->equal += result->rows[i].first_difference < 0;
    }
    if (status != MAQ_OK) {
        if (owner)
            maq_arena_fini(&owner->arena);
        free(owner);
        free(result);
        return status;
    }
    *out = result;
    return MAQ_OK;
}

void maq_validate_schedule_free(struct maq_validate_schedule *result)
{
    struct owner *owner = result ? result->owner : NULL;
    if (owner)
        maq_arena_fini(&owner->arena);
    free(owner);
    free(result);
}
