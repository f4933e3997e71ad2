/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_ranges.c - works out layer_ranges.h for a table: the deepest position of each range by comparing prefix sums
 * with the memory, the least reduction by size (remembered, since layers are alike), the nearest neighbours' hops,
 * and bounds from the work alone.
 */
#include "planner/compose/layer_ranges.h"

#include <math.h>
#include <string.h>

double maq_forward_weight(const struct maq_stage_table *t, uint32_t behind, bool first)
{
    if (behind == 0)
        return 0;
    if (!first)
        return 1;
    return behind + 1 <= t->hops.short_depth ? t->hops.first_short : t->hops.first_deep;
}

double maq_backward_weight(const struct maq_stage_table *t, uint32_t behind, bool first)
{
    if (first)
        return 0;
    return behind == 0 ? t->hops.last : 1;
}

/* Whether a layer range fits with so many waves in flight: the comparison of maq_composition_cost(), rounding included. */
static bool fits_with(double still, double wave, double capacity, uint32_t waves)
{
    return (still + wave * waves) / capacity <= 1;
}

/* Waves in flight with which a layer range still fits, at most `most`. A longer range fits with no more of them. */
static uint32_t deepest(const struct maq_stage_table *t, const struct maq_stage_option *o, uint32_t first, uint32_t end,
                        uint32_t most)
{
    double still = o->context_bytes + (o->fixed_bytes[end] - o->fixed_bytes[first]);
    double wave = o->flight_bytes[end] - o->flight_bytes[first], capacity = t->capacity_bytes[o->kind];
    double guess = wave > 0 ? (capacity - still) / wave : most;
    uint32_t n = guess <= 0 ? 0 : guess >= most ? most : (uint32_t)guess; /* off by a rounding at the most */
    while (n < most && fits_with(still, wave, capacity, n + 1))
        n++;
    while (n > 0 && !fits_with(still, wave, capacity, n))
        n--;
    return n;
}

/* The last position from the end at which a stage holds no more waves than that, which are fewer than max_in_flight. */
static uint32_t position_of(const struct maq_stage_table *t, uint32_t waves)
{
    uint32_t each = 1 + t->steeper_in_flight;
    return waves <= t->more_in_flight ? 0 : (waves - t->more_in_flight - 1) / each + 1;
}

/* Remembers all-reduces by size: layers are alike, so few sizes differ. */
#define MEMO 512u

struct memo {
    double bytes[MEMO], seconds[MEMO];
};

static double sync_of(struct memo *memo, const struct maq_stage_table *t, const struct maq_stage_part *part,
                      double bytes)
{
    uint64_t bits;
    memcpy(&bits, &bytes, sizeof bits);
    uint32_t slot = (uint32_t)((bits * 0x9e3779b97f4a7c15u) >> 55);
    if (memo->bytes[slot] != bytes) {
        memo->bytes[slot] = bytes;
        memo->seconds[slot] = t->sync_s(t, part, 1, bytes, part->replicas);
    }
    return memo->seconds[slot];
}

static void fill_option(struct maq_layer_ranges *a, uint32_t option, uint32_t most_samples, struct memo *memo)
{
    const struct maq_stage_table *t = a->table;
    const struct maq_stage_option *o = &t->options[option];
    uint32_t largest = a->mixes ? most_samples : o->samples;
    struct maq_stage_part part = {option, (t->wave_samples + largest - 1) / largest};
    for (uint32_t i = 0; i < MEMO; i++)
        memo->bytes[i] = -1;
    for (uint32_t first = 0; first < t->n_atoms; first++) {
        a->update_s = o->update_s[first] < a->update_s ? o->update_s[first] : a->update_s;
        const uint32_t most = maq_waves_held(t, MAQ_STAGE_DEPTH);
        uint32_t fits = most;
        for (uint32_t end = first + 1; end <= t->n_atoms; end++) {
            size_t layer_range = maq_layer_range_index(t, option, first, end);
            fits = fits > 0 ? deepest(t, o, first, end, fits) : 0;
            uint32_t position = fits == most ? MAQ_STAGE_DEPTH : position_of(t, fits);
            if (position == 0) /* longer ranges do not fit either; the array is zeroed */
                break;
            a->deepest[layer_range] = (uint16_t)position;
            a->sync_s[layer_range] = sync_of(memo, t, &part, o->sync_bytes[end] - o->sync_bytes[first]);
        }
    }
    double replicas = a->mixes ? (double)t->wave_samples / o->samples : maq_replicas(t, option);
    a->devices[option] = o->devices * replicas;
}

static void fill_through(struct maq_layer_ranges *a, uint32_t option)
{
    const struct maq_stage_table *t = a->table;
    const double *forward = a->forward_s + (size_t)option * t->n_atoms,
                 *backward = a->backward_s + (size_t)option * t->n_atoms;
    double least = HUGE_VAL;
    for (uint32_t first = 0; first < t->n_atoms; first++) {
        uint32_t end = first + 1;
        size_t layer_range = maq_layer_range_index(t, option, first, end);
        for (; end <= t->n_atoms && a->deepest[layer_range] > 0; end++, layer_range += t->n_options) {
            double s = maq_layer_range_compute(t, option, first, end) + forward[end - 1] + backward[first];
            a->through_s[layer_range] = s;
            least = s < least ? s : least;
        }
        /* where a range does not fit, longer ones do not either */
        for (; end <= t->n_atoms; end++, layer_range += t->n_options)
            a->through_s[layer_range] = HUGE_VAL;
    }
    a->least_s[option] = least;
}

/* Seconds of a hop to the nearest neighbour, by atom. */
static void cheapest(double *out, const struct maq_stage_table *t, const double *seconds, uint32_t from)
{
    const double *row = &seconds[(size_t)t->options[from].hop_class * t->n_hop_classes * t->n_atoms];
    memcpy(out, row, t->n_atoms * sizeof *out);
    for (uint32_t to = 1; to < t->n_hop_classes; to++)
        maq_lower(out, row + (size_t)to * t->n_atoms, t->n_atoms);
}

static void fill_back(struct maq_layer_ranges *a, uint32_t option)
{
    const struct maq_stage_table *t = a->table;
    if (t->rounds == 0)
        return; /* zeroed: not read */
    a->back_s[option] = HUGE_VAL;
    for (uint32_t first = 0; first < t->n_options; first++) {
        double s = maq_back_s(t, option, first);
        a->back_s[option] = fmin(a->back_s[option], s);
        a->back_most_s[option] = fmax(a->back_most_s[option], s);
    }
}

/* The most stages: each takes at least the devices of the smallest option. */
static uint32_t most_stages(const struct maq_layer_ranges *a)
{
    const struct maq_stage_table *t = a->table;
    double stages = 0;
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        double least = 0;
        for (uint32_t o = 0; o < t->n_options; o++)
            if (t->options[o].kind == g && (least == 0 || a->devices[o] < least))
                least = a->devices[o];
        if (least > 0)
            stages += t->available[g] / least;
    }
    uint32_t most = t->n_atoms < MAQ_STAGE_DEPTH ? t->n_atoms : MAQ_STAGE_DEPTH;
    most = t->max_stages > 0 && t->max_stages < most ? t->max_stages : most;
    return stages < most ? (uint32_t)(stages + 1e-9) : most;
}

bool maq_layer_ranges_init(struct maq_layer_ranges *layer_ranges, const struct maq_stage_table *table,
                           struct maq_arena *arena)
{
    const struct maq_stage_table *t = table;
    size_t ranges = (size_t)t->n_options * t->n_atoms * (t->n_atoms + 1), ends = (size_t)t->n_options * t->n_atoms;
    uint32_t most_samples = 1;
    *layer_ranges = (struct maq_layer_ranges){.table = t, .mixes = t->max_parts > 1, .update_s = HUGE_VAL};
    struct memo *memo = MAQ_ARENA_NEW(arena, struct memo, 1);
    layer_ranges->deepest = MAQ_ARENA_NEW(arena, uint16_t, ranges);
    layer_ranges->sync_s = MAQ_ARENA_RAW(arena, double, ranges); /* read where `deepest` is not 0 */
    layer_ranges->forward_s = MAQ_ARENA_RAW(arena, double, ends);
    layer_ranges->backward_s = MAQ_ARENA_RAW(arena, double, ends);
    layer_ranges->through_s = MAQ_ARENA_RAW(arena, double, ranges);
    layer_ranges->least_s = MAQ_ARENA_NEW(arena, double, t->n_options);
    layer_ranges->back_s = MAQ_ARENA_NEW(arena, double, t->n_options);
    layer_ranges->back_most_s = MAQ_ARENA_NEW(arena, double, t->n_options);
    layer_ranges->devices = MAQ_ARENA_NEW(arena, double, t->n_options);
    if (!memo || !layer_ranges->deepest || !layer_ranges->sync_s || !layer_ranges->through_s ||
        !layer_ranges->least_s || !layer_ranges->forward_s || !layer_ranges->backward_s || !layer_ranges->back_s ||
        !layer_ranges->back_most_s || !layer_ranges->devices)
        return false;
    for (uint32_t o = 0; o < t->n_options; o++)
        most_samples = t->options[o].samples > most_samples ? t->options[o].samples : most_samples;
    for (uint32_t o = 0; o < t->n_options; o++) {
        fill_option(layer_ranges, o, most_samples, memo);
        double *forward = &layer_ranges->forward_s[(size_t)o * t->n_atoms],
               *backward = &layer_ranges->backward_s[(size_t)o * t->n_atoms];
        cheapest(forward, t, t->forward_s, o);
        if (t->backward_s == t->forward_s)
            memcpy(backward, forward, t->n_atoms * sizeof *backward);
        else
            cheapest(backward, t, t->backward_s, o);
        fill_through(layer_ranges, o);
        fill_back(layer_ranges, o);
    }
    layer_ranges->depth = most_stages(layer_ranges);
    layer_ranges->rows = layer_ranges->depth < MAQ_REST_ROWS ? layer_ranges->depth : MAQ_REST_ROWS;
    return true;
}

void maq_farthest_starts(uint32_t *farthest, const struct maq_stage_table *table, double most_s)
{
    for (uint32_t end = 0; end <= table->n_atoms; end++)
        farthest[end] = end;
    for (uint32_t o = 0; o < table->n_options; o++)
        for (uint32_t first = 0, end = 1; end <= table->n_atoms; end++) {
            while (first < end && maq_layer_range_compute(table, o, first, end) > most_s)
                first++; /* for longer ranges too: no atom takes less than nothing */
            farthest[end] = first < farthest[end] ? first : farthest[end];
        }
}

/* Time of one atom under an option. A stage pays each_s once for all of its atoms, so a bound by atoms leaves it out. */
static double of_atom(const struct maq_stage_option *o, uint32_t atom)
{
    return o->time_s[atom + 1] - o->time_s[atom];
}

/*
 * Devices of kind g give n_g seconds per second. With a price p_g for each second, every atom costs at least its cheapest option,
 * so the bottleneck is at least sum_atoms min_options p devices time / sum_g p_g n_g, whatever p is. The price taken is the
 * reciprocal of the kind's cheapest whole model, which would be exact if kinds differed by a factor alone.
 */
double maq_wave_bound(const struct maq_stage_table *table)
{
    const struct maq_stage_table *t = table;
    double price[MAQ_STAGE_KINDS] = {0}, paid = 0, work = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        const struct maq_stage_option *option = &t->options[o];
        double all = option->time_s[t->n_atoms] * option->devices * t->wave_samples / option->samples;
        double p = all > 0 ? 1 / all : 0;
        price[option->kind] = p > price[option->kind] ? p : price[option->kind];
    }
    for (uint32_t g = 0; g < t->n_kinds; g++)
        paid += price[g] * t->available[g];
    for (uint32_t atom = 0; atom < t->n_atoms; atom++) {
        double cheapest_work = HUGE_VAL;
        for (uint32_t o = 0; o < t->n_options; o++) {
            const struct maq_stage_option *option = &t->options[o];
            double w =
                of_atom(option, atom) * price[option->kind] * option->devices * t->wave_samples / option->samples;
            cheapest_work = w < cheapest_work ? w : cheapest_work;
        }
        work += cheapest_work;
    }
    return paid > 0 ? work / paid : HUGE_VAL;
}

double maq_work_bound(const struct maq_stage_table *table)
{
    const struct maq_stage_table *t = table;
    double bottleneck = maq_wave_bound(t), fill = 0;
    for (uint32_t atom = 0; atom < t->n_atoms; atom++) {
        double fastest = HUGE_VAL;
        for (uint32_t o = 0; o < t->n_options; o++)
            fastest = fmin(fastest, of_atom(&t->options[o], atom));
        fill += fastest;
    }
    return (t->waves - 1) * bottleneck + (fill > bottleneck ? fill : bottleneck);
}
