/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_bound.h - lower bounds of the front of a pipeline of pieces, for any number of devices left: Lagrangian relaxation of the
 * devices.
 *
 * In front of atom a, with k stages behind, on devices n_i of the islands of a set S, for any prices l >= 0:
 *
 *   devices    none fits    if  D_l(a, k) > sum l_i n_i      D: the cheapest row of pieces that covers [0, a), a device of i at l_i
 *   fill       sum t        >=  F_l(a, k) - sum l_i n_i      F: the cheapest row, a second at 1, a device at l_i
 *   bottleneck max t        >=  C_l(a, k) / sum l_i n_i      C: the cheapest row, a device-second at l_i: the stages of an island
 *                                                            take no more of them for a wave than max t x its devices
 *   sync       max          >=  the most, over atoms, of the least of any piece that holds the atom
 *
 * Pieces that do not fit with k stages behind are left out, and pieces with a stage that alone reaches the cutoff. Hops to
 * neighbours count at their cheapest. Prices are raised where a row takes more than an island has (or than its share); every vector
 * of prices that was tried gives a bound, and several of each kind are kept.
 */
#ifndef MAQ_PLANNER_EXTERNAL_PIECE_BOUND_H
#define MAQ_PLANNER_EXTERNAL_PIECE_BOUND_H

#include "planner/external/piece_table.h"

#define MAQ_PIECE_PRICES 8u /* of each kind */

struct maq_piece_relaxed; /* of one set of islands: piece_bound.c */

/* A kind: slices with the same pieces, all of them inside the model or all at the same end of it. */
struct maq_piece_kind {
    uint32_t first, end; /* one of them */
    uint32_t n;
    const struct maq_piece **pieces; /* those without a slow stage (maq_piece_is_slow()) */
};

struct maq_piece_bounds {
    const struct maq_piece_table *table;
    struct maq_arena *arena;
    double slowest_s;           /* pieces with a stage that takes longer are left out */
    uint32_t most_behind;       /* positions that are distinguished */
    uint32_t n_kinds, *kind_of; /* [first * n_atoms + end - 1] */
    struct maq_piece_kind *kinds;
    const struct maq_piece_relaxed **sets; /* [1 << n_islands]: made when they are asked for */
    double *sync_s;                        /* [n_atoms + 1]: of the atoms before */
    bool failed;                           /* out of memory */
};

/*
 * Bounds for pipelines whose stages take at most slowest_s (HUGE_VAL: any). Everything lives in the arena; the table is
 * borrowed. false when out of memory.
 */
bool maq_piece_bounds_init(struct maq_piece_bounds *b, const struct maq_piece_table *table, double slowest_s,
                           struct maq_arena *arena);

/* Whether a stage of the piece takes longer than slowest_s. */
bool maq_piece_is_slow(const struct maq_piece_bounds *b, const struct maq_piece *piece);

struct maq_piece_bound {
    double bottleneck_s, fill_s;
};

/*
 * Bounds of the front, atoms [0, a), with k stages behind it, on the devices left[] of each island. Infinite where
 * nothing fits. b->failed is set when out of memory.
 */
struct maq_piece_bound maq_piece_bounds_front(struct maq_piece_bounds *b, uint32_t a, uint32_t k, const uint32_t *left);

#endif
