/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_table.c - the step of a composition, by the formulas of stage_table.h as they are written there.
 *
 * Nothing is shared with the searches, whose compositions are costed here once more: the searches are held to this.
 */
#include "planner/compose/stage_table.h"

#include "base/check.h"

static double between(const double *sums, const struct maq_stage *s)
{
    return sums[s->end] - sums[s->first];
}

/* The slowest pair of replicas of two stages. */
static double hop(const struct maq_stage_table *t, const double *seconds, const struct maq_stage *from,
                  const struct maq_stage *to, uint32_t atom)
{
    double slowest = 0;
    for (uint32_t i = 0; i < from->n_parts; i++)
        for (uint32_t j = 0; j < to->n_parts; j++) {
            double s = maq_hop_row(t, seconds, from->parts[i].option, to->parts[j].option)[atom];
            slowest = s > slowest ? s : slowest;
        }
    return slowest;
}

static double hops(const struct maq_stage_table *t, const struct maq_composition *c, uint32_t i)
{
    const struct maq_stage *s = &c->stages[i];
    const struct maq_hop_rule *rule = &t->hops;
    double first = c->n_stages <= rule->short_depth ? rule->first_short : rule->first_deep;
    bool is_last = i + 1 == c->n_stages;
    double seconds = 0;
    if (!is_last)
        seconds += (i == 0 ? first : 1) * hop(t, t->forward_s, s, s + 1, s->end - 1);
    if (i > 0)
        seconds += (is_last ? rule->last : 1) * hop(t, t->backward_s, s, s - 1, s->first);
    return seconds;
}

/* Seconds for which stage i sends to the stage in front of it. */
static double sent(const struct maq_stage_table *t, const struct maq_composition *c, uint32_t i)
{
    const struct maq_stage *s = &c->stages[i];
    return (i + 1 == c->n_stages ? t->hops.last : 1) * hop(t, t->backward_s, s, s - 1, s->first);
}

static double waits(const struct maq_stage_table *t, const struct maq_composition *c)
{
    const struct maq_stage *last = &c->stages[c->n_stages - 1];
    uint32_t option = last->parts[0].option;
    struct maq_tail tail = maq_tail_of(t, option, last->compute_s);
    for (uint32_t i = c->n_stages - 1; i-- > 0;)
        tail = maq_tail_grow(t, tail, c->n_stages - 1 - i, c->stages[i].compute_s, sent(t, c, i + 1));
    double back = t->rounds > 0 ? maq_back_s(t, option, c->stages[0].parts[0].option) : 0;
    return maq_waits(t, c->fill_s + back, tail.slowest_s, c->bottleneck_s, c->n_stages == 1);
}

/* Costs of one stage; false when its parts do not make up the wave or do not fit into memory. */
static bool cost_stage(struct maq_stage *s, const struct maq_stage_table *t)
{
    uint32_t samples = 0, ranks = 0;
    double bytes = 0;
    s->compute_s = s->update_s = s->memory_share = 0;
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct maq_stage_option *o = &t->options[s->parts[i].option];
        double held = o->context_bytes + between(o->fixed_bytes, s) + between(o->flight_bytes, s) * s->in_flight;
        double share = held / t->capacity_bytes[o->kind];
        samples += o->samples * s->parts[i].replicas;
        ranks += s->parts[i].replicas;
        s->memory_share = share > s->memory_share ? share : s->memory_share;
        double compute = between(o->time_s, s) + o->each_s;
        s->compute_s = compute > s->compute_s ? compute : s->compute_s;
        double update = maq_stage_update_s(o, s->first, s->end, t->n_atoms);
        s->update_s = update > s->update_s ? update : s->update_s;
        bytes = between(o->sync_bytes, s) > bytes ? between(o->sync_bytes, s) : bytes;
    }
    s->sync_s = t->sync_s(t, s->parts, s->n_parts, bytes, ranks);
    return samples >= t->wave_samples && s->memory_share <= 1;
}

static bool is_shape(const struct maq_composition *c, const struct maq_stage_table *t)
{
    if (c->n_stages == 0 || c->n_stages > MAQ_STAGE_DEPTH || (t->max_stages > 0 && c->n_stages > t->max_stages))
        return false;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct maq_stage *s = &c->stages[i];
        if (s->first != (i > 0 ? c->stages[i - 1].end : 0) || s->end <= s->first || s->n_parts == 0 ||
            s->n_parts > t->max_parts)
            return false;
        for (uint32_t j = 0; j < s->n_parts; j++)
            if (s->parts[j].option >= t->n_options || s->parts[j].replicas == 0)
                return false;
    }
    return c->stages[c->n_stages - 1].end == t->n_atoms;
}

bool maq_composition_time(struct maq_composition *c, const struct maq_stage_table *table)
{
    if (!is_shape(c, table))
        return false;
    c->bottleneck_s = c->fill_s = c->sync_s = c->update_s = 0;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        struct maq_stage *s = &c->stages[i];
        s->in_flight = maq_waves_held(table, c->n_stages - i);
        if (!cost_stage(s, table))
            return false;
        s->hop_s = hops(table, c, i);
        double pace = maq_stage_pace(table, s->compute_s, maq_end_sends_s(table, s->hop_s, c->n_stages == 2));
        c->fill_s += s->compute_s + s->hop_s;
        c->bottleneck_s = pace > c->bottleneck_s ? pace : c->bottleneck_s;
        c->sync_s = s->sync_s > c->sync_s ? s->sync_s : c->sync_s;
        c->update_s = s->update_s > c->update_s ? s->update_s : c->update_s;
    }
    c->wait_s = maq_may_wait(table) ? waits(table, c) : 0;
    c->step_s = (table->waves - 1) * c->bottleneck_s + c->fill_s + c->wait_s + c->sync_s + c->update_s;
    return true;
}

bool maq_composition_cost(struct maq_composition *c, const struct maq_stage_table *table)
{
    uint32_t used[MAQ_STAGE_KINDS] = {0};
    if (!is_shape(c, table))
        return false;
    for (uint32_t i = 0; i < c->n_stages; i++)
        for (uint32_t j = 0; j < c->stages[i].n_parts; j++) {
            const struct maq_stage_option *o = &table->options[c->stages[i].parts[j].option];
            used[o->kind] += o->devices * c->stages[i].parts[j].replicas;
            if (used[o->kind] > table->available[o->kind])
                return false;
        }
    return maq_composition_time(c, table);
}
