/* SPDX-License-Identifier: Apache-2.0 */
/* autoscaling.c - what a rule asks for, settles on, and may have: equations in maquette/serve_autoscaling.h. */
#include "serve/fleet/autoscaling.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static enum maq_status want(struct maq_autoscaling *s, uint32_t wanted, double at_s)
{
    if (!maq__grow((void **)&s->changes, &s->changes_size, s->n_changes, sizeof *s->changes))
        return MAQ_NO_MEMORY;
    s->changes[s->n_changes++] = (struct maq_replica_count){.at_s = at_s, .replicas = wanted};
    s->wanted = wanted;
    return MAQ_OK;
}

static uint32_t within(uint32_t n, uint32_t least, uint32_t most)
{
    return n > most ? most : n < least ? least : n;
}

enum maq_status maq_autoscaling_init(struct maq_autoscaling *s, const struct maq_autoscaling_rule *rule, uint32_t all,
                                     double at_s)
{
    *s = (struct maq_autoscaling){.rule = rule, .all = all, .next_s = at_s + rule->every_s};
    return want(s, within(rule->first > 0 ? rule->first : rule->least, 1, all), at_s);
}

void maq_autoscaling_fini(struct maq_autoscaling *s)
{
    free(s->looks);
    free(s->changes);
}

static uint32_t asked(const struct maq_autoscaling *s, double load)
{
    const struct maq_autoscaling_rule *rule = s->rule;
    double ratio = load / (rule->target * s->wanted);
    if (fabs(ratio - 1) <= rule->tolerance)
        return s->wanted;
    return (uint32_t)fmin(ceil(load / rule->target), UINT32_MAX);
}

/* Fewer only if no more was asked for within the window. */
static uint32_t settled(const struct maq_autoscaling *s, uint32_t n)
{
    if (n >= s->wanted)
        return n;
    for (uint32_t i = s->from; i < s->n; i++)
        if (s->looks[i].at_s > s->next_s - s->rule->down_after_s && s->looks[i].asked > n)
            n = s->looks[i].asked;
    return n;
}

/* More only at the rate that the rule allows. */
static uint32_t limited(const struct maq_autoscaling *s, uint32_t n)
{
    const struct maq_autoscaling_rule *rule = s->rule;
    uint32_t added = 0;
    for (uint32_t i = s->from; i < s->n; i++)
        added += s->looks[i].at_s > s->next_s - rule->up_period_s ? s->looks[i].added : 0;
    double before = s->wanted > added ? s->wanted - added : 0,
           most = fmax(before + rule->up_count, ceil(before * rule->up_factor));
    if (n <= s->wanted || n <= most)
        return n;
    return most > s->wanted ? (uint32_t)most : s->wanted;
}

enum maq_status maq_autoscaling_look(struct maq_autoscaling *s, double load)
{
    double window = fmax(s->rule->down_after_s, s->rule->up_period_s);
    uint32_t raw = asked(s, load), least = s->rule->least < s->all ? s->rule->least : s->all,
             n = within(limited(s, settled(s, raw)), least, s->all);
    while (s->from < s->n && s->looks[s->from].at_s <= s->next_s - window)
        s->from++;
    if (!maq__grow((void **)&s->looks, &s->size, s->n, sizeof *s->looks))
        return MAQ_NO_MEMORY;
    s->looks[s->n++] = (struct maq_autoscaling_look){s->next_s, raw, n > s->wanted ? n - s->wanted : 0};
    enum maq_status status = n == s->wanted ? MAQ_OK : want(s, n, s->next_s);
    s->next_s += s->rule->every_s;
    return status;
}
