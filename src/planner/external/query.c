/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - jobs on the workers of a parallelizer, one thread for each state, and the report of their first fault.
 *
 * The job of the least number that failed is the one reported, on any number of threads. Also which parts of an
 * island and which positions are asked for. See enumeration.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "planner/external/codes.h"
#include "planner/external/enumeration.h"

/* ---- faults ---- */

void maq_slices_fail(struct maq_slices_fault *fault, const struct maq_enumeration *e, void *state,
                     enum maq_status status, const char *why)
{
    uint16_t code = e->source.code_of ? e->source.code_of(state) : 0;
    char text[MAQ_PARALLELIZER_WHY];
    size_t n = strnlen(why, sizeof text - 1);
    memcpy(text, why, n);
    text[n] = '\0';
    fault->status = status;
    fault->code = code != 0 ? code : MAQ_CODE_PARALLELIZER_FAILED;
    maq__snprintf(fault->why, sizeof fault->why, "%s", text[0] ? text : "it does not say why");
}

enum maq_status maq_slices_report(const struct maq_enumeration *e, const struct maq_slices_fault *fault,
                                  struct maq_diag *diag)
{
    if (fault->code == MAQ_CODE_SLICES_STOPPED) /* for the caller to judge: it may have a plan already */
        return fault->status;
    return maq_diag_fail(fault->status, diag, fault->code, (struct maq_span){0},
                         "docs/parallelizer.md has what is asked and how to answer", "parallelizer %.80s: %s",
                         e->source.functions.name, fault->why);
}

/* ---- workers ---- */

struct pool {
    struct maq_enumeration *e;
    maq_slices_work *work;
    void *user;
    uint32_t n;
    atomic_uint next, stop_at; /* jobs from there on are not begun */
    struct maq_slices_fault faults[MAQ_SLICES_WORKERS];
};

struct worker {
    struct pool *pool;
    uint32_t index;
};

static bool is_stopped(const struct maq_enumeration *e)
{
    return e->opts->stop && *e->opts->stop;
}

/* The calling thread is one of the workers. */
static void tell(const struct worker *w, uint32_t job)
{
    const struct maq_slices_opts *o = w->pool->e->opts;
    const struct maq_slices_progress at = {job + 1, w->pool->n, w->pool->e->best_s};
    if (w->index == 0 && o->progress)
        o->progress(o->context, &at);
}

static void *work(void *ptr)
{
    struct worker *w = ptr;
    struct pool *p = w->pool;
    struct maq_slices_fault *fault = &p->faults[w->index];
    fault->job = UINT32_MAX;
    for (uint32_t job; (job = atomic_fetch_add(&p->next, 1)) < p->n && job < atomic_load(&p->stop_at);) {
        if (is_stopped(p->e))
            *fault = (struct maq_slices_fault){.job = job, .status = MAQ_LIMIT, .code = MAQ_CODE_SLICES_STOPPED};
        else if (p->work(p->e, p->user, job, w->index, fault)) {
            tell(w, job);
            continue;
        }
        fault->job = job;
        /* jobs of lower numbers are still done, so that the fault reported is always the same */
        for (uint32_t at = atomic_load(&p->stop_at); at > job && !atomic_compare_exchange_weak(&p->stop_at, &at, job);)
            continue;
        break; /* its state may be unusable */
    }
    return NULL;
}

enum maq_status maq_slices_run(struct maq_enumeration *e, maq_slices_work *job, void *user, uint32_t n,
                               struct maq_diag *diag)
{
    struct pool pool = {.e = e, .work = job, .user = user, .n = n, .next = 0, .stop_at = UINT32_MAX};
    struct worker workers[MAQ_SLICES_WORKERS];
    pthread_t ids[MAQ_SLICES_WORKERS];
    uint32_t started = 1, first = 0;
    MAQ_ASSERT(e->n_states > 0);
    workers[0] = (struct worker){&pool, 0};
    for (uint32_t i = 0; i < e->n_states; i++) {
        workers[i] = (struct worker){&pool, i};
        pool.faults[i].job = UINT32_MAX;
    }
    while (started < e->n_states && started < n && pthread_create(&ids[started], NULL, work, &workers[started]) == 0)
        started++; /* fewer threads than states do the same work */
    work(&workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    for (uint32_t i = 1; i < e->n_states; i++)
        first = pool.faults[i].job < pool.faults[first].job ? i : first;
    return pool.faults[first].job == UINT32_MAX ? MAQ_OK : maq_slices_report(e, &pool.faults[first], diag);
}

/* ---- what is asked ---- */

bool maq_slices_island_part(struct maq_parallelizer_island *out, const struct maq_enumeration *e, uint32_t island,
                            uint32_t i)
{
    *out = e->chain->islands[island];
    if (e->source.functions.flags & MAQ_PARALLELIZER_FRONT)
        return i == 0;
    uint32_t inside = 0; /* powers of two below a node's devices */
    while (1u << inside < out->devices_per_node)
        inside++;
    if (i < inside) {
        out->nodes = 1;
        out->devices_per_node = 1u << i;
        return true;
    }
    uint32_t nodes = out->nodes, at = i - inside, k = 1; /* powers of two of nodes, and all */
    for (; at > 0 && k < nodes; at--)
        k = 2 * k < nodes ? 2 * k : nodes;
    out->nodes = k;
    return at == 0;
}

uint32_t maq_slices_positions(const struct maq_enumeration *e, uint32_t wave)
{
    uint32_t devices = 0, n = e->n_atoms;
    for (uint32_t g = 0; g < e->chain->n_islands; g++)
        devices += e->chain->islands[g].nodes * e->chain->islands[g].devices_per_node;
    n = n < devices ? n : devices;
    return n < e->waves[wave].waves ? n : e->waves[wave].waves;
}

bool maq_slices_is_unfit(const struct maq_enumeration *e, uint32_t class_id, const struct maq_parallelizer_island *part)
{
    double has = part->memory_bytes * part->nodes * part->devices_per_node;
    return e->profiles[(size_t)class_id * e->chain->n_islands + part->index].min_bytes > has;
}
