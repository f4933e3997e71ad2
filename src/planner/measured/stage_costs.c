/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_costs.c - stage tables from a foreign profile: measured layers summed into options, links fitted by message
 * size, and ring all-reduces in DeepSpeed's buckets. stage_costs.h has the rule and its source.
 */
#include "planner/measured/stage_costs.h"

#include <math.h>

#include "base/check.h"
#include "plan/mixed/codes.h"

#define FLOAT_BYTES 4.0
#define STATE_BYTES 24.0   /* per parameter */
#define BUCKET_BYTES 5e8   /* DeepSpeed's all-reduce, MEMORY_BUCKET_DEEPSPEED_SIZE in Sailor's code */
#define ALONE_BYTES 2e9    /* of the framework, TP 1 */
#define PARALLEL_BYTES 3e9 /* TP > 1 */

static bool measured_anywhere(const struct maq_profile_costs *c, uint32_t micro_batch)
{
    for (uint32_t g = 0; g < c->n_pools; g++)
        for (uint32_t tp = 1; tp <= c->pools[g].per_node; tp++)
            if (maq_profile_dir_times(c->profile, c->model, c->pools[g].device, micro_batch, tp))
                return true;
    return false;
}

enum maq_status maq_profile_costs_init(struct maq_profile_costs *costs, struct maq_diag *diag)
{
    costs->n_micro_batches = 0;
    for (uint32_t b = 1; b <= costs->global_batch && b <= 4096; b++)
        if (costs->n_micro_batches < MAQ_COUNT(costs->micro_batches) && measured_anywhere(costs, b))
            costs->micro_batches[costs->n_micro_batches++] = b;
    if (costs->n_micro_batches == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, (struct maq_span){0}, NULL,
                             "model '%s' was not measured on any of these devices",
                             maq_profile_dir_model(costs->profile, costs->model)->name);
    return MAQ_OK;
}

/* ---- options ---- */

static double *sums(struct maq_arena *arena, uint32_t n)
{
    return MAQ_ARENA_NEW(arena, double, n + 1);
}

static bool fill_option(struct maq_stage_option *o, const struct maq_profile_costs *c, uint32_t pool, uint32_t tp,
                        uint32_t share, const struct maq_layer_time *times, const struct maq_layer_size *sizes,
                        struct maq_arena *arena)
{
    uint32_t n = maq_profile_dir_model(c->profile, c->model)->layers;
    const struct maq_layer_size *whole = maq_profile_dir_sizes(c->profile, c->model, 1);
    double *time = sums(arena, n), *fixed = sums(arena, n), *flight = sums(arena, n), *sync = sums(arena, n),
           *update = sums(arena, n);
    if (!time || !fixed || !flight || !sync || !update)
        return false;
    for (uint32_t l = 0; l < n; l++) {
        time[l + 1] = time[l] + (times[l].forward_s + times[l].backward_s);
        fixed[l + 1] = fixed[l] + sizes[l].parameters * STATE_BYTES;
        flight[l + 1] = flight[l] + sizes[l].activations * share * FLOAT_BYTES;
        sync[l + 1] = sync[l] + whole[l].parameters * FLOAT_BYTES / tp;
        update[l] = times[l].update_s;
    }
    *o = (struct maq_stage_option){.id = maq_profile_option_id(pool, tp, share),
                                   .kind = pool,
                                   .devices = tp,
                                   .samples = share,
                                   .context_bytes = tp > 1 ? PARALLEL_BYTES : ALONE_BYTES,
                                   .time_s = time,
                                   .fixed_bytes = fixed,
                                   .flight_bytes = flight,
                                   .sync_bytes = sync,
                                   .update_s = update};
    return true;
}

/* The strategies of a stage on one pool: every TP and every share of the micro batch that was measured. */
static bool add_options(struct maq_stage_table *table, struct maq_stage_option *options,
                        const struct maq_profile_costs *c, const struct maq_profile_wave *wave, uint32_t pool,
                        struct maq_arena *arena)
{
    for (uint32_t tp = 1; tp <= c->pools[pool].per_node; tp++)
        for (uint32_t split = 1; split <= wave->max_split && wave->micro_batch % split == 0; split *= 2) {
            uint32_t share = wave->micro_batch / split;
            const struct maq_layer_time *times =
                maq_profile_dir_times(c->profile, c->model, c->pools[pool].device, share, tp);
            const struct maq_layer_size *sizes = maq_profile_dir_sizes(c->profile, c->model, tp);
            uint64_t devices = (uint64_t)split * tp * (wave->chains || wave->max_parts > 1 ? 1 : wave->replicas);
            if (!times || !sizes || table->n_options == MAQ_STAGE_OPTIONS || devices > c->pools[pool].count)
                continue;
            if (!fill_option(&options[table->n_options], c, pool, tp, share, times, sizes, arena))
                return false;
            options[table->n_options].hop_class = table->n_options;
            table->n_options++;
        }
    return true;
}

/* ---- links ---- */

static const struct maq_link_fit *link_of(const struct maq_profile_costs *c, uint32_t from, uint32_t from_n,
                                          uint32_t to, uint32_t to_n)
{
    return maq_profile_dir_link(c->profile, (struct maq_link_end){c->pools[from].zone, c->pools[from].device, from_n},
                                (struct maq_link_end){c->pools[to].zone, c->pools[to].device, to_n});
}

/* Seconds of a hop by size of message; where no link was measured nothing can be sent. */
static double send_s(const struct maq_link_fit *link, double bytes)
{
    return link ? maq_link_send_s(link, bytes) : HUGE_VAL;
}

static bool fill_hops(struct maq_stage_table *t, const struct maq_profile_costs *c, struct maq_arena *arena)
{
    const struct maq_layer_size *whole = maq_profile_dir_sizes(c->profile, c->model, 1);
    double *seconds = MAQ_ARENA_NEW(arena, double, (size_t)t->n_options * t->n_options * t->n_atoms);
    if (!seconds)
        return false;
    for (uint32_t i = 0; i < t->n_options; i++)
        for (uint32_t j = 0; j < t->n_options; j++) {
            const struct maq_stage_option *from = &t->options[i], *to = &t->options[j];
            const struct maq_link_fit *link = link_of(c, from->kind, from->devices, to->kind, to->devices);
            uint32_t samples = from->samples > to->samples ? from->samples : to->samples;
            double *row = &seconds[((size_t)i * t->n_options + j) * t->n_atoms];
            for (uint32_t l = 0; l < t->n_atoms; l++)
                row[l] = l > 0 && whole[l].output == whole[l - 1].output
                             ? row[l - 1]
                             : send_s(link, whole[l].output * FLOAT_BYTES * samples);
        }
    t->n_hop_classes = t->n_options;
    t->forward_s = t->backward_s = seconds; /* both are the size of the output of the atom at the border */
    return true;
}

static double ring_s(const struct maq_link_fit *link, double bytes, uint32_t ranks)
{
    double full = bytes > BUCKET_BYTES ? maq_link_ring_s(link, BUCKET_BYTES, ranks) : 0, seconds = 0;
    for (; bytes > BUCKET_BYTES; bytes -= BUCKET_BYTES)
        seconds += full;
    return seconds + maq_link_ring_s(link, bytes, ranks);
}

static double sync_s(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n_parts,
                     double bytes, uint32_t ranks)
{
    const struct maq_profile_costs *c = t->costs;
    double slowest = 0;
    if (ranks < 2 || !(bytes > 0))
        return 0;
    for (uint32_t i = 0; i < n_parts; i++)
        for (uint32_t j = 0; j < n_parts; j++) {
            const struct maq_link_fit *link =
                link_of(c, t->options[parts[i].option].kind, 1, t->options[parts[j].option].kind, 1);
            double s = link ? ring_s(link, bytes, ranks) : HUGE_VAL;
            slowest = s > slowest ? s : slowest;
        }
    return slowest;
}

bool maq_profile_costs_table(struct maq_stage_table *table, const struct maq_profile_costs *costs,
                             const struct maq_profile_wave *wave, struct maq_arena *arena)
{
    struct maq_stage_option *options = MAQ_ARENA_NEW(arena, struct maq_stage_option, MAQ_STAGE_OPTIONS);
    uint32_t samples = wave->micro_batch * wave->replicas;
    if (!options)
        return false;
    *table = (struct maq_stage_table){.n_atoms = maq_profile_dir_model(costs->profile, costs->model)->layers,
                                      .n_kinds = costs->n_pools,
                                      .waves = (costs->global_batch + samples - 1) / samples,
                                      .wave_samples = samples,
                                      .max_parts = wave->max_parts,
                                      .max_in_flight = UINT32_MAX, /* the rule knows no limit by the number of waves */
                                      .options = options,
                                      .hops = {.first_short = 1, .first_deep = 2, .last = 2, .short_depth = 3},
                                      .sync_s = sync_s,
                                      .costs = costs};
    for (uint32_t g = 0; g < costs->n_pools; g++) {
        table->available[g] = costs->pools[g].count;
        table->capacity_bytes[g] = costs->pools[g].capacity_bytes;
    }
    for (uint32_t g = 0; g < costs->n_pools; g++)
        if (!add_options(table, options, costs, wave, g, arena))
            return false;
    return fill_hops(table, costs, arena);
}
