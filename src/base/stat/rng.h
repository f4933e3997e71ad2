/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - random numbers that have an address.
 *
 * A number is a pure function of (seed, stream, entity, draw): Philox4x32-10 with the seed as its key and the rest as its
 * counter (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11; library Random123). So a new
 * entity or another number of threads shifts nobody else's numbers, and two runs that differ in one thing share all the others.
 *
 *   seed     of the whole run
 *   stream   what the number is for; each user of random numbers has its own (enum maq_rng_stream)
 *   entity   whom it belongs to: a node, a stage, a replica, a sampled step
 *   draw     counts the numbers of one entity from 0
 */
#ifndef MAQ_BASE_STAT_RNG_H
#define MAQ_BASE_STAT_RNG_H

#include <stdint.h>

/* Philox is plain C; without these the library brings the compiler's headers of all vector instructions, 1.4 MB for each file. */
#define R123_USE_X86INTRIN_H 0
#define R123_USE_SSE 0
#include <Random123/philox.h>

/* Stable: the same seed gives the same bytes in every version. */
enum maq_rng_stream {
    MAQ_RNG_TEST,
    MAQ_RNG_STATIC,     /* differences between devices and nodes, drawn once per run */
    MAQ_RNG_REGIME,     /* which regime a step is in */
    MAQ_RNG_STEP,       /* noise of single passes and collectives */
    MAQ_RNG_SPIKE,      /* rare long steps */
    MAQ_RNG_SCRAMBLE,   /* random shifts of quasi-random points */
    MAQ_RNG_FAILURE,    /* when, where and of what something fails */
    MAQ_RNG_REPAIR,     /* how long detection, restart and repair take */
    MAQ_RNG_CHECKPOINT, /* how long saving takes */
    MAQ_RNG_REQUEST,    /* when requests come, and how long they are */
    MAQ_RNG_ROUTER,     /* to which of several replicas they go */
    MAQ_RNG_DRAFT,      /* which drafts of speculative decoding are accepted */
};

/* Four words of 32 bits: block `block` of an entity. Draws 2 b and 2 b + 1 come from block b. */
static inline void maq_rng_block(uint32_t out[4], uint64_t seed, uint32_t stream, uint32_t entity, uint64_t block)
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t at = {{(uint32_t)block, (uint32_t)(block >> 32), entity, stream}};
    philox4x32_ctr_t r = philox4x32_R(10, at, key);
    for (int i = 0; i < 4; i++)
        out[i] = r.v[i];
}

/* 52 of 64 bits and a half: a multiple of 2^-53 in (0, 1), never 0 or 1, with mean 1/2. */
static inline double maq_rng_unit(uint32_t low, uint32_t high)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

/* One number by its address, uniform in (0, 1). */
static inline double maq_rng_at(uint64_t seed, uint32_t stream, uint32_t entity, uint64_t draw)
{
    uint32_t w[4];
    maq_rng_block(w, seed, stream, entity, draw / 2);
    return draw % 2 ? maq_rng_unit(w[2], w[3]) : maq_rng_unit(w[0], w[1]);
}

/* The numbers of one entity one after another. */
struct maq_rng {
    uint64_t seed, draw;
    uint32_t stream, entity;
    double second; /* of the block that the last even draw was in */
};

static inline struct maq_rng maq_rng_of(uint64_t seed, uint32_t stream, uint32_t entity)
{
    return (struct maq_rng){.seed = seed, .stream = stream, .entity = entity};
}

/* The next number, uniform in (0, 1): maq_rng_at() of draws 0, 1, 2, ... */
static inline double maq_rng_next(struct maq_rng *r)
{
    uint64_t draw = r->draw++;
    if (draw % 2)
        return r->second;
    uint32_t w[4];
    maq_rng_block(w, r->seed, r->stream, r->entity, draw / 2);
    r->second = maq_rng_unit(w[2], w[3]);
    return maq_rng_unit(w[0], w[1]);
}

#endif
