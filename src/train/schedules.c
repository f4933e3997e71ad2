/* SPDX-License-Identifier: Apache-2.0 */
/* schedules.c - a list of skeletons under a lock, each with its own memory and the number of those who hold it. */
#include "train/schedules.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

#define MOST_BYTES ((size_t)128 << 20) /* of skeletons that nobody holds */

enum state { BEING_BUILT, BUILT, REFUSED };

struct skeleton {
    struct maq_shared_schedule made; /* what the caller sees of it: first, see skeleton_of() */
    struct maq_arena arena;
    struct skeleton *next;
    uint32_t holders;
    enum state state;
};

struct maq_schedules {
    pthread_mutex_t lock;
    pthread_cond_t built;
    struct skeleton *first; /* the latest first: plans come in families */
    size_t idle_bytes;      /* of those without a holder */
    uint32_t references;
};

struct maq_schedules *maq_schedules_new(void)
{
    struct maq_schedules *store = maq__malloc(sizeof *store);
    if (!store)
        return NULL;
    *store = (struct maq_schedules){.references = 1};
    if (pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return NULL;
    }
    if (pthread_cond_init(&store->built, NULL) != 0) {
        pthread_mutex_destroy(&store->lock);
        free(store);
        return NULL;
    }
    return store;
}

struct maq_schedules *maq_schedules_share(struct maq_schedules *store)
{
    pthread_mutex_lock(&store->lock);
    store->references++;
    pthread_mutex_unlock(&store->lock);
    return store;
}

static void end(struct skeleton *s)
{
    maq_arena_fini(&s->arena);
    free(s);
}

void maq_schedules_free(struct maq_schedules *store)
{
    if (!store)
        return;
    pthread_mutex_lock(&store->lock);
    bool last = --store->references == 0;
    pthread_mutex_unlock(&store->lock);
    if (!last)
        return;
    while (store->first) {
        struct skeleton *s = store->first;
        store->first = s->next;
        end(s);
    }
    pthread_cond_destroy(&store->built);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* ---- making one ---- */

static enum maq_status make(struct skeleton *s, struct maq_diag *diag)
{
    return maq_schedule_make(&s->made.schedule, &s->made.spec, &s->arena, diag);
}

/* ---- under the lock ---- */

static struct skeleton *find(const struct maq_schedules *store, const struct maq_schedule_spec *spec)
{
    struct skeleton *s = store->first;
    while (s && memcmp(&s->made.spec, spec, sizeof *spec) != 0)
        s = s->next;
    return s;
}

static struct skeleton *add(struct maq_schedules *store, const struct maq_schedule_spec *spec)
{
    struct skeleton *s = maq__malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct skeleton){.made.spec = *spec, .next = store->first};
    maq_arena_init(&s->arena, 0);
    return store->first = s;
}

static void drop(struct maq_schedules *store, struct skeleton *s)
{
    struct skeleton **link = &store->first;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    end(s);
}

static void hold(struct maq_schedules *store, struct skeleton *s)
{
    if (s->holders++ == 0 && s->state == BUILT)
        store->idle_bytes -= s->arena.used;
}

/* One that was refused is kept for nobody: who asks again gets the error and its words again. */
static void let_go(struct maq_schedules *store, struct skeleton *s)
{
    if (--s->holders > 0)
        return;
    if (s->state != BUILT || store->idle_bytes + s->arena.used > MOST_BYTES)
        drop(store, s);
    else
        store->idle_bytes += s->arena.used;
}

enum maq_status maq_schedules_take(const struct maq_shared_schedule **out, struct maq_schedules *store,
                                   const struct maq_schedule_spec *spec, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    pthread_mutex_lock(&store->lock);
    struct skeleton *s = find(store, spec);
    bool mine = !s;
    if (mine && !(s = add(store, spec))) {
        pthread_mutex_unlock(&store->lock);
        return MAQ_NO_MEMORY;
    }
    hold(store, s);
    if (mine) {
        pthread_mutex_unlock(&store->lock);
        status = make(s, diag);
        pthread_mutex_lock(&store->lock);
        s->state = status == MAQ_OK ? BUILT : REFUSED;
        pthread_cond_broadcast(&store->built);
    }
    while (s->state == BEING_BUILT)
        pthread_cond_wait(&store->built, &store->lock);
    bool refused = s->state == REFUSED;
    if (refused)
        let_go(store, s);
    pthread_mutex_unlock(&store->lock);
    if (refused && !mine)
        return maq_schedules_take(out, store, spec, diag);
    *out = refused ? NULL : &s->made;
    return status;
}

static struct skeleton *skeleton_of(const struct maq_shared_schedule *schedule)
{
    _Static_assert(offsetof(struct skeleton, made) == 0, "a skeleton begins with what is seen of it");
    return (struct skeleton *)(uintptr_t)schedule;
}

void maq_schedules_give(struct maq_schedules *store, const struct maq_shared_schedule *schedule)
{
    pthread_mutex_lock(&store->lock);
    let_go(store, skeleton_of(schedule));
    pthread_mutex_unlock(&store->lock);
}
