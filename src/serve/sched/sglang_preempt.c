/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_preempt.c - who runs and gives way to one that waits and is before them by priority (schedule_policy.py, PrefillAdder.preempt_to_schedule).
 *
 * What is asked for is what the engine asks for: all that the one that waits has and may sample, less what was found of it when it was looked at last, against
 * what those that give way may yet sample; not what they hold. Of a set that gives way the engine's own order in which they come back is that of their
 * addresses; here it is the one in which they were chosen.
 */
#include "serve/sched/sglang.h"

/* The last by priority, and of equals the one that entered last, of those that run and stay. MAQ_NO_SLOT: nobody. */
static uint32_t hindmost(const struct maq_sglang *s, const struct maq_sglang_lane *lane)
{
    uint32_t last = MAQ_NO_SLOT;
    for (uint32_t i = 0; i < lane->n_running; i++) {
        const struct maq_sglang_request *r = &s->at[lane->running[i]], *b = last == MAQ_NO_SLOT ? NULL : &s->at[last];
        int64_t behind = b ? maq_sglang_urgency(s, r) - maq_sglang_urgency(s, b) : 1;
        if (!r->leaves && (behind > 0 || (behind == 0 && r->entered > b->entered)))
            last = lane->running[i];
    }
    return last;
}

/* In the order in which they run: each gives back what it has before the next does. */
static void give_way(struct maq_sglang *s, struct maq_sglang_lane *lane, double *given, struct maq_iteration *it)
{
    uint32_t kept = 0, n = lane->n_running, left = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = lane->running[i];
        if (!s->at[slot].leaves) {
            lane->running[kept++] = slot;
            continue;
        }
        *given += maq_sglang_expected(s, &s->at[slot]);
        maq_sglang_take_back(s, slot, n - ++left, it);
    }
    lane->n_running = kept;
}

bool maq_sglang_preempt(struct maq_sglang *s, struct maq_sglang_lane *lane, uint32_t slot, double lacks, double *given,
                        struct maq_iteration *it)
{
    int64_t own = maq_sglang_urgency(s, &s->at[slot]);
    uint32_t chosen = 0;
    do {
        uint32_t last = hindmost(s, lane);
        if (last == MAQ_NO_SLOT || maq_sglang_urgency(s, &s->at[last]) - own < s->knobs.preempts_by)
            break;
        s->at[last].leaves = true;
        lacks -= maq_sglang_expected(s, &s->at[last]);
        chosen++;
    } while (lacks > 0);
    bool enough = chosen > 0 && lacks <= 0;
    if (enough)
        give_way(s, lane, given, it);
    for (uint32_t i = 0; !enough && i < lane->n_running; i++)
        s->at[lane->running[i]].leaves = false;
    return enough;
}

void maq_sglang_requeue(struct maq_sglang *s, const struct maq_iteration *it, uint32_t first)
{
    for (uint32_t i = first; i < it->n_preempted; i++) {
        s->at[it->preempted[i]].leaves = false;
        (void)maq_sglang_wait(s, it->preempted[i]);
    }
}
