/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c - what a request could load, what it offers, and what becomes of it when a transfer is over. */
#include "serve/kv/offload.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"

/* ---- begin and end ---- */

enum maq_status maq_offload_init(struct maq_offload *o, const struct maq_offload_options *options, uint32_t blocks,
                                 int32_t block_size, bool caching)
{
    *o = (struct maq_offload){.options = *options, .caching = caching, .step = 1, .brings_for = MAQ_OFFLOAD_NOBODY};
    o->options.chunk_blocks = options->chunk_blocks > 0 ? options->chunk_blocks : 1;
    o->chunk = o->options.chunk_blocks * block_size;
    o->fence_of = maq__calloc(blocks * sizeof *o->fence_of);
    o->taken_at = maq__calloc(blocks * sizeof *o->taken_at);
    enum maq_status host = maq_tier_init(&o->host, options->chunks[MAQ_TIER_HOST], options->policy),
                    ssd = maq_tier_init(&o->ssd, options->chunks[MAQ_TIER_SSD], MAQ_TIER_LRU);
    return !o->fence_of || !o->taken_at || host != MAQ_OK || ssd != MAQ_OK ? MAQ_NO_MEMORY : MAQ_OK;
}

void maq_offload_fini(struct maq_offload *o)
{
    for (uint32_t i = 0; i < o->n_users; i++) {
        free(o->users[i].keys);
        free(o->users[i].marks);
        free(o->users[i].blocks);
    }
    for (uint32_t i = 0; i < o->n_jobs; i++) {
        free(o->jobs[i].keys);
        free(o->jobs[i].blocks);
    }
    maq_tier_fini(&o->host);
    maq_tier_fini(&o->ssd);
    free(o->users);
    free(o->free_users);
    free(o->jobs);
    free(o->free_jobs);
    free(o->ended);
    free(o->begun);
    free(o->flush);
    free(o->which);
    free(o->taken);
    free(o->fence_of);
    free(o->taken_at);
    free(o->fences);
    *o = (struct maq_offload){0};
}

static void push(struct maq_offload *o, uint32_t **list, uint32_t *n, uint32_t *size, uint32_t value)
{
    if (maq__grow((void **)list, size, *n, sizeof **list))
        (*list)[(*n)++] = value;
    else
        o->failed = true;
}

/* Room for so many in a buffer; what it held stays. */
static bool reserve(struct maq_offload *o, void **at, uint32_t *size, uint32_t n, size_t each)
{
    if (n <= *size)
        return true;
    uint32_t more = n + n / 2 + 16;
    void *p = maq__realloc(*at, more * each);
    if (!p) {
        o->failed = true;
        return false;
    }
    *at = p;
    *size = more;
    return true;
}

static struct maq_tier *tier_of(struct maq_offload *o, int kind)
{
    if (kind == MAQ_TIER_REMOTE)
        return o->options.remote;
    return o->options.chunks[MAQ_TIER_SSD] > 0 ? &o->ssd : NULL;
}

/* ---- chunks that come and go ---- */

/*
 * Of a request alone all chunks are in host memory after three times that some are brought, or never: each time as many of its own go as
 * come, if it has as many there that can, and after the second it has. Several that wait disturb each other, and what two tiers bring does
 * not come together: so many times for each request and tier are sure to be enough.
 */
#define MOST_ROUNDS 16u

static void goes_on(struct maq_offload *o)
{
    o->rounds = 0;
    o->in_vain = false;
}

static void count_round(struct maq_offload *o)
{
    uint32_t tiers = (tier_of(o, MAQ_TIER_SSD) != NULL) + (tier_of(o, MAQ_TIER_REMOTE) != NULL);
    if (o->brings_for == MAQ_OFFLOAD_NOBODY)
        return;
    o->in_vain = ++o->rounds / MOST_ROUNDS > o->present * tiers;
    o->in_vain_user = o->brings_for;
    o->brings_for = MAQ_OFFLOAD_NOBODY;
}

/* ---- users ---- */

uint32_t maq_offload_begin(struct maq_offload *o, uint64_t id, uint32_t owner)
{
    uint32_t u = o->n_free_users > 0 ? o->free_users[o->n_free_users - 1] : o->n_users;
    if (o->n_free_users > 0) {
        o->n_free_users--;
    } else {
        if (!maq__grow((void **)&o->users, &o->users_size, o->n_users, sizeof *o->users)) {
            o->failed = true;
            return MAQ_OFFLOAD_NOBODY;
        }
        o->users[o->n_users++] = (struct maq_offload_user){0};
    }
    const struct maq_offload_user was = o->users[u];
    o->users[u] = (struct maq_offload_user){.host = {.id = id},
                                            .keys = was.keys,
                                            .marks = was.marks,
                                            .size = was.size,
                                            .blocks = was.blocks,
                                            .blocks_size = was.blocks_size,
                                            .owner = owner,
                                            .used = true};
    o->present++;
    goes_on(o);
    return u;
}

static void leave(struct maq_offload *o, uint32_t user)
{
    struct maq_offload_user *u = &o->users[user];
    if (!u->closed || u->jobs > 0)
        return;
    u->used = false;
    push(o, &o->free_users, &o->n_free_users, &o->free_users_size, user);
}

/* Keys of all chunks that are full and known: the hash of the last block of each. */
static bool learn_keys(struct maq_offload *o, struct maq_offload_user *u, const struct maq_offload_view *v)
{
    uint32_t each = (uint32_t)o->options.chunk_blocks, n = v->n_hashes / each;
    if (n > u->size) {
        uint32_t size = n + n / 2 + 16;
        uint64_t *keys = maq__realloc(u->keys, size * sizeof *keys);
        u->keys = keys ? keys : u->keys;
        uint8_t *marks = keys ? maq__realloc(u->marks, size) : NULL;
        u->marks = marks ? marks : u->marks;
        if (!marks) {
            o->failed = true;
            return false;
        }
        u->size = size;
    }
    for (; u->n_keys < n; u->n_keys++) {
        u->keys[u->n_keys] = v->hashes[(u->n_keys + 1) * each - 1];
        u->marks[u->n_keys] = 0;
    }
    u->host.keys = u->keys;
    u->host.marks = u->marks;
    return true;
}

/* ---- jobs ---- */

static struct maq_offload_job *begin_job(struct maq_offload *o, enum maq_move move, int tier, uint32_t user)
{
    uint32_t j = o->n_free_jobs > 0 ? o->free_jobs[o->n_free_jobs - 1] : o->n_jobs;
    if (o->n_free_jobs > 0) {
        o->n_free_jobs--;
    } else {
        if (!maq__grow((void **)&o->jobs, &o->jobs_size, o->n_jobs, sizeof *o->jobs)) {
            o->failed = true;
            return NULL;
        }
        o->jobs[o->n_jobs++] = (struct maq_offload_job){0};
    }
    struct maq_offload_job *job = &o->jobs[j];
    job->n = job->n_blocks = 0;
    job->move = (uint8_t)move;
    job->tier = (uint8_t)tier;
    job->user = user;
    job->live = true;
    job->fenced = false;
    job->awaited = 0;
    memset(job->tokens, 0, sizeof job->tokens);
    o->under_way++;
    push(o, &o->begun, &o->n_begun, &o->begun_size, j);
    return job;
}

static void add_key(struct maq_offload *o, struct maq_offload_job *job, uint64_t key)
{
    if (reserve(o, (void **)&job->keys, &job->size, job->n + 1, sizeof *job->keys))
        job->keys[job->n++] = key;
}

static void must_end(struct maq_offload *o, uint32_t job)
{
    if (o->jobs[job].awaited == o->step)
        return;
    o->jobs[job].awaited = o->step;
    push(o, &o->flush, &o->n_flush, &o->flush_size, job);
}

/* ---- fences ---- */

static void fence(struct maq_offload *o, uint32_t job)
{
    struct maq_offload_job *j = &o->jobs[job];
    if (j->fenced)
        return;
    j->fenced = true;
    o->fenced++;
    for (uint32_t i = 0; i < j->n_blocks; i++) {
        uint32_t f = o->free_fence;
        if (f != 0)
            o->free_fence = o->fences[f].next;
        else if (maq__grow((void **)&o->fences, &o->fences_size, o->n_fences + 1, sizeof *o->fences))
            f = ++o->n_fences; /* 0 is none */
        if (f == 0) {
            o->failed = true;
            return;
        }
        o->fences[f] = (struct maq_offload_fence){job, o->fence_of[j->blocks[i]]};
        o->fence_of[j->blocks[i]] = f;
    }
}

static void unfence(struct maq_offload *o, uint32_t job)
{
    const struct maq_offload_job *j = &o->jobs[job];
    o->fenced -= j->fenced;
    for (uint32_t i = 0; j->fenced && i < j->n_blocks; i++) {
        uint32_t *at = &o->fence_of[j->blocks[i]];
        while (*at != 0 && o->fences[*at].job != job)
            at = &o->fences[*at].next;
        uint32_t f = *at;
        if (f == 0)
            continue;
        *at = o->fences[f].next;
        o->fences[f].next = o->free_fence;
        o->free_fence = f;
    }
}

void maq_offload_taken(struct maq_offload *o, uint32_t block)
{
    o->taken_at[block] = o->step;
    for (uint32_t f = o->fence_of[block]; f != 0; f = o->fences[f].next)
        must_end(o, o->fences[f].job);
}

/* ---- looking up ---- */

/*
 * A chunk that host memory does not have comes there from a tier behind it, if it has room for it, or would if that were not in vain;
 * false: nobody has it, or there is no room.
 */
static bool promote(struct maq_offload *o, uint32_t user, uint32_t which, uint32_t first_job)
{
    struct maq_offload_user *u = &o->users[user];
    for (int kind = MAQ_TIER_SSD; kind <= MAQ_TIER_REMOTE; kind++) {
        struct maq_tier *t = tier_of(o, kind);
        uint32_t c = t ? maq_tier_find(t, u->keys[which]) : MAQ_TIER_NONE, taken, n;
        if (c == MAQ_TIER_NONE || !maq_tier_is_ready(t, c))
            continue;
        if (o->in_vain)
            return true;
        if (!maq_tier_offer(&o->host, &u->host, &which, 1, &taken, &n) || n == 0)
            return false;
        o->brings_for = o->brings_for == MAQ_OFFLOAD_NOBODY ? user : o->brings_for;
        uint32_t brought = maq_tier_find(&o->host, u->keys[which]);
        o->host.at[brought].origin = (uint8_t)kind;
        o->host.at[brought].user = u->host.id;
        maq_tier_pin(t, u->keys[which]);
        maq_tier_use(t, u->keys[which]);
        struct maq_offload_job *job = NULL; /* of one look up there is one for each tier */
        for (uint32_t i = first_job; i < o->n_begun; i++)
            if (o->jobs[o->begun[i]].tier == kind)
                job = &o->jobs[o->begun[i]];
        if (!job)
            job = begin_job(o, MAQ_MOVE_PROMOTE, kind, user);
        if (job)
            add_key(o, job, u->keys[which]);
        return job != NULL;
    }
    return false;
}

/* Chunks from `first` on that host memory has, ready or not; *later: it has to be asked again for some of them. */
static uint32_t count_hits(struct maq_offload *o, uint32_t user, uint32_t first, uint32_t end, bool *later)
{
    uint32_t w = first, first_job = o->n_begun;
    for (; w < end && !o->failed; w++) {
        uint32_t c = maq_tier_find(&o->host, o->users[user].keys[w]);
        if (c == MAQ_TIER_NONE) {
            if (!promote(o, user, w, first_job))
                break;
            *later = true;
        } else if (!maq_tier_is_ready(&o->host, c)) {
            *later = true;
        }
    }
    return w - first;
}

int64_t maq_offload_look(struct maq_offload *o, uint32_t user, const struct maq_offload_view *v, int64_t local,
                         int64_t tokens)
{
    struct maq_offload_user *u = &o->users[user];
    u->stored = 0; /* it begins anew: everything is offered again */
    if (u->jobs > 0)
        return MAQ_OFFLOAD_LATER;
    if (!learn_keys(o, u, v))
        return 0;
    u->local = local;
    int64_t chunk = o->chunk, most = (int64_t)u->n_keys * chunk;
    most = tokens < most ? tokens : most;
    if (most - local < chunk)
        return 0;
    uint32_t first = (uint32_t)(local / chunk), end = (uint32_t)((most + chunk - 1) / chunk);
    bool later = false;
    uint32_t hits = count_hits(o, user, first, end < u->n_keys ? end : u->n_keys, &later);
    u = &o->users[user];
    if (hits == 0)
        return 0;
    if (later)
        return MAQ_OFFLOAD_LATER;
    int64_t reach = chunk * (first + hits), found = (reach < most ? reach : most) - local;
    if (found < chunk)
        return 0;
    for (uint32_t w = first; o->caching && w < first + hits; w++)
        if (o->host.at[maq_tier_find(&o->host, u->keys[w])].loading)
            return MAQ_OFFLOAD_LATER; /* it will be in the GPU's own cache */
    return found;
}

void maq_offload_load(struct maq_offload *o, uint32_t user, int64_t tokens)
{
    struct maq_offload_user *u = &o->users[user];
    int64_t chunk = o->chunk, end = u->local + tokens;
    uint32_t first = (uint32_t)(u->local / chunk), n = (uint32_t)((end + chunk - 1) / chunk);
    struct maq_offload_job *job = begin_job(o, MAQ_MOVE_LOAD, MAQ_TIER_HOST, user);
    if (!job)
        return;
    for (uint32_t w = first; w < n; w++) {
        int64_t from = w * chunk > u->local ? w * chunk : u->local, to = (w + 1) * chunk < end ? (w + 1) * chunk : end;
        maq_tier_pin_for(&o->host, &u->host, w);
        struct maq_tier_chunk *c = &o->host.at[maq_tier_find(&o->host, u->keys[w])];
        c->loading = true;
        job->tokens[c->user == u->host.id ? c->origin : MAQ_TIER_HOST] += to - from;
        add_key(o, job, u->keys[w]);
    }
    u->stored = n;
    u->jobs++;
    goes_on(o);
}

/* ---- storing ---- */

/* Offers chunks from the first that was not, up to `end`; what is taken is a job. */
static void offer(struct maq_offload *o, uint32_t user, const uint32_t *blocks, uint32_t end)
{
    struct maq_offload_user *u = &o->users[user];
    uint32_t n = 0, n_taken, each = (uint32_t)o->options.chunk_blocks, size = o->which_size;
    if (end <= u->stored)
        return;
    if (!reserve(o, (void **)&o->taken, &size, end - u->stored, sizeof *o->taken) ||
        !reserve(o, (void **)&o->which, &o->which_size, end - u->stored, sizeof *o->which))
        return;
    for (uint32_t w = u->stored; w < end; w++)
        o->which[n++] = w;
    if (!maq_tier_offer(&o->host, &u->host, o->which, n, o->taken, &n_taken)) {
        o->refused++;
        return; /* it will be offered again */
    }
    u->stored = end;
    if (n_taken == 0)
        return;
    struct maq_offload_job *job = begin_job(o, MAQ_MOVE_STORE, MAQ_TIER_HOST, user);
    if (!job || !reserve(o, (void **)&job->blocks, &job->blocks_size, n_taken * each, sizeof *job->blocks))
        return;
    for (uint32_t i = 0; i < n_taken; i++) {
        add_key(o, job, u->keys[o->taken[i]]);
        memcpy(job->blocks + job->n_blocks, blocks + o->taken[i] * each, each * sizeof *blocks);
        job->n_blocks += each;
    }
    u->jobs++;
}

static uint32_t storable(const struct maq_offload *o, const struct maq_offload_user *u, int64_t computed,
                         uint32_t n_blocks)
{
    int64_t n = computed / o->chunk, held = n_blocks / (uint32_t)o->options.chunk_blocks;
    n = n < held ? n : held;
    return n < u->n_keys ? (uint32_t)n : u->n_keys;
}

void maq_offload_store(struct maq_offload *o, uint32_t user, const struct maq_offload_view *v, int64_t computed)
{
    struct maq_offload_user *u = &o->users[user];
    if (learn_keys(o, u, v))
        offer(o, user, v->blocks, storable(o, u, computed, v->n_blocks));
}

int64_t maq_offload_next_tokens(const struct maq_offload *o, uint32_t user, int64_t prompt)
{
    int64_t next = ((int64_t)o->users[user].stored + 1) * o->chunk;
    return o->options.prompt_only && next > prompt ? MAQ_OFFLOAD_NEVER : next;
}

void maq_offload_preempt(struct maq_offload *o, uint32_t user)
{
    for (uint32_t j = 0; j < o->n_jobs && o->users[user].jobs > 0; j++)
        if (o->jobs[j].live && o->jobs[j].user == user && o->jobs[j].move <= MAQ_MOVE_LOAD)
            must_end(o, j);
}

void maq_offload_finish(struct maq_offload *o, uint32_t user, const struct maq_offload_view *v, int64_t computed)
{
    struct maq_offload_user *u = &o->users[user];
    if (!learn_keys(o, u, v) || !reserve(o, (void **)&u->blocks, &u->blocks_size, v->n_blocks, sizeof *u->blocks))
        return;
    if (v->n_blocks > 0)
        memcpy(u->blocks, v->blocks, v->n_blocks * sizeof *u->blocks);
    u->n_blocks = v->n_blocks;
    u->kept = computed;
    u->ended = true;
    o->present--;
    goes_on(o);
    push(o, &o->ended, &o->n_ended, &o->ended_size, user);
    for (uint32_t j = 0; j < o->n_jobs && u->jobs > 0; j++)
        if (o->jobs[j].live && o->jobs[j].user == user && o->jobs[j].move == MAQ_MOVE_STORE)
            fence(o, j);
}

void maq_offload_open(struct maq_offload *o)
{
    o->step++;
    o->n_flush = 0;
}

void maq_offload_close(struct maq_offload *o, bool computes)
{
    if (computes)
        goes_on(o);
    count_round(o);
    for (uint32_t i = 0; i < o->n_ended; i++) {
        uint32_t first = o->n_begun;
        struct maq_offload_user *u = &o->users[o->ended[i]];
        offer(o, o->ended[i], u->blocks, storable(o, u, u->kept, u->n_blocks));
        if (o->n_begun == first)
            continue;
        uint32_t j = o->begun[first];
        fence(o, j);
        for (uint32_t b = 0; b < o->jobs[j].n_blocks; b++)
            if (o->taken_at[o->jobs[j].blocks[b]] == o->step)
                must_end(o, j);
    }
    for (uint32_t i = 0; i < o->n_ended; i++) {
        struct maq_offload_user *u = &o->users[o->ended[i]];
        maq_tier_user_ended(&o->host, &u->host, u->n_keys);
        u->closed = true;
        leave(o, o->ended[i]);
    }
    o->n_ended = 0;
    o->failed |= o->host.failed || o->ssd.failed || (o->options.remote && o->options.remote->failed);
}

/* ---- when a transfer is over ---- */

/* What has come to host memory goes on to all tiers behind it that do not have it. */
static void cascade(struct maq_offload *o, uint32_t stored)
{
    for (int kind = MAQ_TIER_SSD; kind <= MAQ_TIER_REMOTE; kind++) {
        struct maq_tier *t = tier_of(o, kind);
        struct maq_offload_job *job = NULL;
        for (uint32_t i = 0; t && i < o->jobs[stored].n; i++) {
            uint64_t key = o->jobs[stored].keys[i];
            if (maq_tier_find(t, key) != MAQ_TIER_NONE) {
                maq_tier_use(t, key);
                continue;
            }
            if (!maq_tier_put(t, key)) {
                o->refused++;
                continue;
            }
            job = job ? job : begin_job(o, MAQ_MOVE_CASCADE, kind, MAQ_OFFLOAD_NOBODY);
            if (!job)
                return;
            maq_tier_pin(&o->host, key);
            add_key(o, job, key);
        }
    }
}

static void end_keys(struct maq_offload *o, const struct maq_offload_job *job)
{
    struct maq_tier *far = job->move >= MAQ_MOVE_CASCADE ? tier_of(o, job->tier) : NULL;
    for (uint32_t i = 0; i < job->n; i++) {
        uint64_t key = job->keys[i];
        switch ((enum maq_move)job->move) {
        case MAQ_MOVE_STORE:
            maq_tier_written(&o->host, key);
            break;
        case MAQ_MOVE_LOAD:
            maq_tier_unpin(&o->host, key);
            o->host.at[maq_tier_find(&o->host, key)].loading = false;
            break;
        case MAQ_MOVE_CASCADE:
            maq_tier_unpin(&o->host, key);
            maq_tier_written(far, key);
            break;
        case MAQ_MOVE_PROMOTE:
            maq_tier_written(&o->host, key);
            maq_tier_unpin(far, key);
            break;
        }
    }
}

uint32_t maq_offload_done(struct maq_offload *o, uint32_t job)
{
    const uint8_t move = o->jobs[job].move;
    const uint32_t user = o->jobs[job].user, owner = user == MAQ_OFFLOAD_NOBODY ? user : o->users[user].owner;
    MAQ_ASSERT(o->jobs[job].live);
    end_keys(o, &o->jobs[job]);
    unfence(o, job);
    if (move == MAQ_MOVE_STORE)
        cascade(o, job);
    o->jobs[job].live = false;
    o->under_way--;
    if (move != MAQ_MOVE_PROMOTE)
        goes_on(o);
    push(o, &o->free_jobs, &o->n_free_jobs, &o->free_jobs_size, job);
    if (move > MAQ_MOVE_LOAD)
        return MAQ_OFFLOAD_NOBODY;
    o->users[user].jobs--;
    bool waits = move == MAQ_MOVE_LOAD && !o->users[user].ended;
    leave(o, user);
    return waits ? owner : MAQ_OFFLOAD_NOBODY;
}

void maq_offload_lost(struct maq_offload *o)
{
    for (uint32_t j = 0; j < o->n_jobs && o->options.remote; j++) {
        const struct maq_offload_job *job = &o->jobs[j];
        for (uint32_t i = 0; job->live && job->tier == MAQ_TIER_REMOTE && i < job->n; i++) {
            if (job->move == MAQ_MOVE_PROMOTE)
                maq_tier_unpin(o->options.remote, job->keys[i]);
            else
                maq_tier_forget(o->options.remote, job->keys[i]);
        }
    }
}
