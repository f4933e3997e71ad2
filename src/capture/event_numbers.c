/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_numbers.c - renumbers the events of a rank by their use, independently of the handles that the program used.
 *
 * Frameworks take events from pools, which one of their threads refills as work is seen to end. So the handle that a record uses
 * depends on real time, and with it the signature of a rank's program: two equal ranks would be in two classes. Only which record
 * a wait waits for matters. Each record gets the least number that no earlier record holds, and holds it until the last wait for
 * it. So there are as many numbers as events alive at a time, and equal steps have equal numbers. Events that are waited for
 * before they were recorded share a number that no record gets.
 */
#include <string.h>

#include "capture/build.h"

struct events {
    struct maq_rec *record;
    uint32_t n, n_events;
    uint32_t *last_use;    /* [n] of a record of an event: 1 + the last record that waits for it; 0 = nobody does */
    uint32_t *at, *number; /* [n_events] 1 + its last record; what that is called; 0 and NONE = none yet */
    uint32_t *held_until;  /* [n_numbers] index of a record */
    uint32_t n_numbers;
};

static bool waits(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_STREAM_WAIT || r->kind == MAQ_REC_EVENT_SYNC;
}

static void find_last_uses(struct events *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct maq_rec *r = &e->record[i];
        if (r->kind == MAQ_REC_EVENT_RECORD)
            e->at[r->id] = i + 1;
        else if (waits(r) && e->at[r->id] > 0)
            e->last_use[e->at[r->id] - 1] = i + 1;
    }
}

/* The least number that is free at record i, held until `until`. */
static uint32_t take_number(struct events *e, uint32_t i, uint32_t until)
{
    uint32_t k = 0;
    while (k < e->n_numbers && e->held_until[k] > i)
        k++;
    e->n_numbers += k == e->n_numbers;
    e->held_until[k] = until;
    return k;
}

static void rename_all(struct events *e)
{
    uint32_t never = MAQ_REC_NONE; /* the number of those that nobody records: held for ever */
    for (uint32_t i = 0; i < e->n; i++) {
        struct maq_rec *r = &e->record[i];
        if (r->kind == MAQ_REC_EVENT_RECORD) {
            r->id = e->number[r->id] = take_number(e, i, e->last_use[i]);
        } else if (waits(r)) {
            if (e->number[r->id] == MAQ_REC_NONE && never == MAQ_REC_NONE)
                never = take_number(e, i, MAQ_REC_NONE);
            r->id = e->number[r->id] == MAQ_REC_NONE ? never : e->number[r->id];
        }
    }
}

bool maq_capture_rename_events(struct maq_rec *record, uint32_t n, struct maq_arena *scratch)
{
    struct events e = {.record = record, .n = n};
    uint32_t records = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_record = record[i].kind == MAQ_REC_EVENT_RECORD;
        records += is_record;
        if ((is_record || waits(&record[i])) && record[i].id >= e.n_events)
            e.n_events = record[i].id + 1;
    }
    struct maq_arena_mark mark = maq_arena_mark(scratch);
    e.last_use = MAQ_ARENA_NEW(scratch, uint32_t, n);
    e.at = MAQ_ARENA_NEW(scratch, uint32_t, e.n_events);
    e.number = MAQ_ARENA_NEW(scratch, uint32_t, e.n_events);
    e.held_until = MAQ_ARENA_NEW(scratch, uint32_t, (size_t)records + 1);
    const bool fine = e.last_use && e.at && e.number && e.held_until;
    if (fine) {
        memset(e.number, 0xff, e.n_events * sizeof *e.number);
        find_last_uses(&e);
        rename_all(&e);
    }
    maq_arena_reset(scratch, mark);
    return fine;
}
