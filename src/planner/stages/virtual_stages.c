/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_stages.c - columns of virtual stages: sums of a column over the atoms of all chunks, as a mean or as the
 * heaviest chunk. virtual_stages.h has the model and its simplifications.
 */
#include "planner/stages/virtual_stages.h"

#include <math.h>

#include "base/check.h"

struct chunked {
    struct maq_chain_atoms model;
    uint32_t atoms, chunks; /* chunked atoms */
    const double *sums;     /* [model.n + 1] */
};

struct maq_chain_chunk maq_chain_chunk_of(struct maq_chain_atoms model, uint32_t chunks, uint32_t chunk, uint32_t first,
                                          uint32_t end)
{
    uint32_t each = maq_chain_chunked_atoms(model, chunks), from = 1 + chunk * each;
    bool begins = chunk == 0 && first == 0, ends = chunk + 1 == chunks && end == each;
    return (struct maq_chain_chunk){begins ? 0 : from + first, ends ? model.n : from + end};
}

/* Figure of a layer of the model; 0 for the layer that the last chunk lacks. */
static double layer(const struct chunked *f, uint32_t atom, uint32_t chunk)
{
    uint32_t i = atom + chunk * f->atoms;
    return i < maq_chain_layers(f->model) ? f->sums[i + 2] - f->sums[i + 1] : 0;
}

static double embedding(const struct chunked *f)
{
    return f->sums[1] - f->sums[0];
}

static double output(const struct chunked *f)
{
    return f->sums[f->model.n] - f->sums[f->model.n - f->model.behind];
}

/* By how much the last chunk exceeds another one: the output, less the layer that it lacks. */
static double excess(const struct chunked *f)
{
    bool whole = f->atoms * f->chunks == maq_chain_layers(f->model);
    return fmax(output(f) - (whole ? 0 : layer(f, f->atoms - 1, 0)), 0);
}

/* Sums over chunked atoms of all chunks. */
static double *fold_sum(const struct chunked *f, struct maq_arena *arena)
{
    double *sums = MAQ_ARENA_NEW(arena, double, (size_t)f->atoms + 1);
    for (uint32_t i = 0; sums && i < f->atoms; i++) {
        double all = i == 0 ? embedding(f) : 0;
        for (uint32_t c = 0; c < f->chunks; c++)
            all += layer(f, i, c);
        sums[i + 1] = sums[i] + (i + 1 < f->atoms ? all : all + output(f));
    }
    return sums;
}

/*
 * Seconds: the mean of the chunks. The time of a stage in the middle beyond P(end) - P(first), twice `extra_s`
 * (column.h), is each_s in every chunk; the first chunk of the first stage has no such excess, so it is taken off the
 * embedding.
 */
static double *fold_time(const struct chunked *f, double extra_s, struct maq_arena *arena)
{
    double *sums = MAQ_ARENA_NEW(arena, double, (size_t)f->atoms + 1);
    for (uint32_t i = 0; sums && i < f->atoms; i++) {
        double all = i == 0 ? embedding(f) - extra_s : 0;
        for (uint32_t c = 0; c < f->chunks; c++)
            all += layer(f, i, c);
        all += i + 1 < f->atoms ? 0 : output(f);
        sums[i + 1] = sums[i] + fmax(all, 0) / f->chunks;
    }
    return sums;
}

/* The heaviest chunk of each, with the output or without it. */
static double *fold_most(const struct chunked *f, bool whole, struct maq_arena *arena)
{
    double *sums = MAQ_ARENA_NEW(arena, double, (size_t)f->atoms + 1);
    for (uint32_t i = 0; sums && i < f->atoms; i++) {
        double most = 0;
        for (uint32_t c = 0; c < f->chunks; c++)
            most = fmax(most, layer(f, i, c));
        sums[i + 1] = sums[i] + most + (i == 0 ? embedding(f) : 0) + (whole && i + 1 == f->atoms ? excess(f) : 0);
    }
    return sums;
}

const struct maq_chain_column *maq_chain_column_chunks(const struct maq_chain_column *column,
                                                       struct maq_chain_atoms model,
                                                       const struct maq_chain_chunking *how, struct maq_arena *arena)
{
    const struct maq_stage_option *of = &column->option;
    struct chunked f = {.model = model, .atoms = maq_chain_chunked_atoms(model, how->chunks), .chunks = how->chunks};
    const double extra_s = how->hops_beside ? column->extra_s : 0;
    MAQ_ASSERT(f.atoms > 0);
    struct maq_chain_column *out = MAQ_ARENA_NEW(arena, struct maq_chain_column, 1);
    double *update = MAQ_ARENA_NEW(arena, double, f.atoms);
    if (!out || !update)
        return NULL;
    *out = *column;
    f.sums = of->time_s;
    out->extra_s -= extra_s;
    out->option.each_s = 2 * extra_s;
    out->option.seldom_s = how->heaviest ? 0 : excess(&f) - excess(&f) / how->chunks;
    out->option.time_s = how->heaviest ? fold_most(&f, true, arena) : fold_time(&f, extra_s, arena);
    f.sums = of->fixed_bytes;
    double *fixed = fold_sum(&f, arena);
    f.sums = of->sync_bytes;
    out->option.sync_bytes = fold_sum(&f, arena);
    f.sums = of->flight_bytes;
    out->option.flight_bytes = fold_most(&f, false, arena);
    if (!fixed || !out->option.time_s || !out->option.sync_bytes || !out->option.flight_bytes)
        return NULL;
    fixed[f.atoms] += output(&f);
    out->option.fixed_bytes = fixed;
    out->option.update_s = update; /* 0, as the column's */
    return out;
}

void maq_chain_chunk_waves(struct maq_stage_table *t, uint32_t chunks, uint32_t group)
{
    t->seldom_waves = t->waves > group ? t->waves - group : 0;
    t->rounds = chunks - 1;
    t->between = group;
    t->waves *= chunks;
    t->max_in_flight = t->waves;
    t->max_stages = group;
    t->more_in_flight = (chunks - 1) * group;
    t->steeper_in_flight = 1;
}
