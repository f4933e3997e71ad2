/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - threads take the jobs of a batch one by one from a shared counter; a thread that cannot be started
 * leaves its jobs to the others. See threads.h.
 */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct batch {
    maq_parallel_work *work;
    void *user;
    uint32_t end;
    atomic_uint next;
    atomic_bool failed;
};

static void *worker(void *ptr)
{
    struct batch *b = ptr;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (uint32_t job; (job = atomic_fetch_add(&b->next, 1)) < b->end;) {
        struct maq_arena_mark mark = maq_arena_mark(&arena);
        if (!b->work(b->user, job, &arena))
            atomic_store(&b->failed, true);
        maq_arena_reset(&arena, mark);
    }
    maq_arena_fini(&arena);
    return NULL;
}

bool maq_parallel_run(maq_parallel_work *work, void *user, uint32_t from, uint32_t n, uint32_t threads)
{
    struct batch batch = {.work = work, .user = user, .end = from + n, .next = from};
    pthread_t ids[MAQ_PARALLEL_MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t started = 1;
    if (threads == 0)
        threads = cores > 0 ? (uint32_t)cores : 1;
    threads = threads < n ? threads : n;
    threads = threads < MAQ_PARALLEL_MOST ? threads : MAQ_PARALLEL_MOST;
    while (started < threads && pthread_create(&ids[started], NULL, worker, &batch) == 0)
        started++; /* fewer threads than wanted do the same work */
    worker(&batch);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    return !atomic_load(&batch.failed);
}
