/* SPDX-License-Identifier: Apache-2.0 */
/* iteration_text.h - what a scheduler has decided, as a text. */
#ifndef MAQ_TESTS_ITERATION_TEXT_H
#define MAQ_TESTS_ITERATION_TEXT_H

#include <stdio.h>

#include "serve/sched/scheduler.h"

/* "0:4+ 1:2 !3": tokens by slot; "+" where one is sampled, "!" before those that were preempted. Until the next call. */
static inline const char *iteration_text(const struct maq_iteration *it)
{
    static char text[256];
    int n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < it->n; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%u:%d%s", n > 0 ? " " : "", it->scheduled[i].slot,
                      it->scheduled[i].tokens, it->scheduled[i].samples ? "+" : "");
    for (uint32_t i = 0; i < it->n_preempted; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " !%u", it->preempted[i]);
    return text;
}

#endif
