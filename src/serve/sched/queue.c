/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - a ring for arrivals and a binary heap for priorities, in one buffer that doubles. */
#include "serve/sched/queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

void maq_queue_fini(struct maq_queue *q)
{
    free(q->at);
    *q = (struct maq_queue){.by_priority = q->by_priority};
}

bool maq_waiting_before(const struct maq_waiting *a, const struct maq_waiting *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->arrival < b->arrival || b->arrival < a->arrival)
        return a->arrival < b->arrival;
    return a->order < b->order;
}

static bool grow(struct maq_queue *q)
{
    if (q->n < q->size)
        return true;
    uint32_t size = q->size ? q->size * 2 : 64;
    struct maq_waiting *at = maq__malloc(size * sizeof *at);
    if (!at)
        return false;
    for (uint32_t i = 0; i < q->n; i++)
        at[i] = q->at[(q->head + i) & (q->size - 1)];
    free(q->at);
    q->at = at;
    q->head = 0;
    q->size = size;
    return true;
}

static void swap(struct maq_waiting *a, struct maq_waiting *b)
{
    struct maq_waiting t = *a;
    *a = *b;
    *b = t;
}

static void rise(struct maq_queue *q, uint32_t i)
{
    for (; i > 0 && maq_waiting_before(&q->at[i], &q->at[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&q->at[i], &q->at[(i - 1) / 2]);
}

static void sink(struct maq_queue *q, uint32_t i)
{
    for (;;) {
        uint32_t least = i;
        for (uint32_t c = 2 * i + 1; c <= 2 * i + 2 && c < q->n; c++)
            if (maq_waiting_before(&q->at[c], &q->at[least]))
                least = c;
        if (least == i)
            return;
        swap(&q->at[i], &q->at[least]);
        i = least;
    }
}

bool maq_queue_push(struct maq_queue *q, struct maq_waiting w)
{
    if (!grow(q))
        return false;
    q->at[(q->head + q->n++) & (q->size - 1)] = w;
    if (q->by_priority)
        rise(q, q->n - 1);
    return true;
}

bool maq_queue_push_front(struct maq_queue *q, struct maq_waiting w)
{
    if (q->by_priority)
        return maq_queue_push(q, w);
    if (!grow(q))
        return false;
    q->head = (q->head - 1) & (q->size - 1);
    q->at[q->head] = w;
    q->n++;
    return true;
}

struct maq_waiting maq_queue_peek(const struct maq_queue *q)
{
    MAQ_ASSERT(q->n > 0);
    return q->at[q->head];
}

struct maq_waiting maq_queue_pop(struct maq_queue *q)
{
    struct maq_waiting first = maq_queue_peek(q);
    q->n--;
    if (!q->by_priority) {
        q->head = (q->head + 1) & (q->size - 1);
        return first;
    }
    q->at[0] = q->at[q->n];
    sink(q, 0);
    return first;
}

void maq_queue_remove(struct maq_queue *q, uint32_t slot)
{
    uint32_t i = 0;
    while (i < q->n && q->at[(q->head + i) & (q->size - 1)].slot != slot)
        i++;
    if (i == q->n)
        return;
    q->n--;
    if (q->by_priority) {
        q->at[i] = q->at[q->n];
        if (i < q->n) {
            sink(q, i);
            rise(q, i);
        }
        return;
    }
    for (; i < q->n; i++)
        q->at[(q->head + i) & (q->size - 1)] = q->at[(q->head + i + 1) & (q->size - 1)];
}
