/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - requests that wait: first come first served, or by priority (smaller first), then arrival.
 *
 * By arrival, who is put at the front goes before all others; by priority there is no front, and who returns stands where the order says.
 */
#ifndef MAQ_SERVE_SCHED_QUEUE_H
#define MAQ_SERVE_SCHED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct maq_waiting {
    int32_t priority;
    uint32_t slot;
    double arrival;
    uint64_t order; /* decides between equals */
};

struct maq_queue {
    bool by_priority;
    struct maq_waiting *at; /* a ring from `head` on, or a binary heap from 0 on */
    uint32_t head, n, size; /* size: a power of two, or 0 */
};

void maq_queue_fini(struct maq_queue *q);
/* False when out of memory. */
bool maq_queue_push(struct maq_queue *q, struct maq_waiting w);
bool maq_queue_push_front(struct maq_queue *q, struct maq_waiting w);
/* The next one; the queue is not empty. */
struct maq_waiting maq_queue_peek(const struct maq_queue *q);
struct maq_waiting maq_queue_pop(struct maq_queue *q);
/* Takes the request of a slot out, if it is there. */
void maq_queue_remove(struct maq_queue *q, uint32_t slot);
/* Whether a goes before b by priority, arrival and order. */
bool maq_waiting_before(const struct maq_waiting *a, const struct maq_waiting *b);

#endif
