/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - small numbers for repeated strings, within a fixed budget.
 *
 * Numbers start at 1 and are given in the order of first use. When the budget (entries, or bytes of text) is spent, new strings
 * get 0 and are written out in full: memory stays bounded for a trace whose every name is different.
 */
#ifndef MAQ_REPORT_TIMELINE_INTERN_H
#define MAQ_REPORT_TIMELINE_INTERN_H

#include "base/arena.h"

struct maq_trace_intern {
    struct maq_arena text;
    struct maq_trace_intern_slot *slots; /* open addressing, size a power of two */
    uint32_t size, count;
};

void maq_trace_intern_init(struct maq_trace_intern *t);
void maq_trace_intern_fini(struct maq_trace_intern *t);

/* Number of s; *fresh tells that it is new. 0: not interned. */
uint32_t maq_trace_intern_get(struct maq_trace_intern *t, struct maq_str s, bool *fresh);

#endif
