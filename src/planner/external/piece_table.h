/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_table.h - what a pipeline over islands is composed of: for every slice of a model its pieces, which are the plans that a
 * parallelizer returned.
 *
 * A piece covers atoms [first, end) with one or several stages on one island. A pipeline is a row of pieces whose slices cover the
 * atoms; with M waves
 *
 *   T        = (M - 1) max t_i + sum (t_i + once_i) + max sync_i          over all stages i
 *   t_i      = time_i + hop(i, i + 1) + hop(i, i - 1)                     forward to the next stage, backward to the one before
 *   memory_i = static_i + flight_i * min(k_i + 1, M)  <=  capacity        k_i: stages behind it
 *   sum of devices of the stages on an island  <=  those that it has
 *
 * A hop depends on the hop classes of its two stages (island, devices that send, bytes of each): maq_slices_hop_s() prices it.
 */
#ifndef MAQ_PLANNER_EXTERNAL_PIECE_TABLE_H
#define MAQ_PLANNER_EXTERNAL_PIECE_TABLE_H

#include "base/arena.h"
#include "maquette/parallelizer.h"

#define MAQ_PIECE_ISLANDS 8u
#define MAQ_PIECE_ATOMS 256u
#define MAQ_PIECE_DEPTH 512u /* stages of a pipeline */
#define MAQ_PIECE_HOPS 512u  /* distinct hop classes */

struct maq_piece {
    const struct maq_parallelizer_plan *plan;
    uint32_t island, devices;
    uint32_t
        most_behind; /* stages that may follow while all of its stages fit; a plan that fits at no position is no piece */
    /* Its stages with the hops between them, not with those to other pieces. */
    double first_s, last_s, slowest_s, sum_s; /* slowest: of the stages between first and last; 0: none */
    double sync_s;
    double work_s; /* device-seconds: sum of time x devices */
    uint32_t first_devices, last_devices;
    uint32_t first_hop, last_hop; /* hop classes of its ends */
};

struct maq_piece_list {
    const struct maq_piece *at;
    uint32_t n;
};

struct maq_piece_table {
    uint32_t n_atoms, n_islands, waves;
    uint32_t available[MAQ_PIECE_ISLANDS];
    const struct maq_piece_list *slices; /* [first * n_atoms + end - 1] */
    uint32_t n_hops;
    const double *hop_s;     /* [n_hops][n_hops], symmetric */
    const double *least_hop; /* [n_hops]: to the cheapest neighbour */
    /* [n_hops][n_hops]: by how much a hop to the first class is longer than one to the second, at most */
    const double *hop_over;
};

static inline const struct maq_piece_list *maq_piece_list_of(const struct maq_piece_table *t, uint32_t first,
                                                             uint32_t end)
{
    return &t->slices[(size_t)first * t->n_atoms + end - 1];
}

/* Fills in a piece from the stages of its plan, whose hop classes are `hops`; false when it fits at no position. */
bool maq_piece_fill(struct maq_piece *piece, const struct maq_parallelizer_plan *plan, uint32_t island,
                    const uint32_t *hops, const struct maq_piece_table *table, double capacity_bytes);

/* least_hop and hop_over from hop_s; false when out of memory. */
bool maq_piece_table_hops(struct maq_piece_table *table, struct maq_arena *arena);

/* A pipeline: pieces front first. */
struct maq_piece_line {
    double step_s, bottleneck_s, fill_s, sync_s;
    uint32_t n;
    uint32_t first[MAQ_PIECE_ATOMS]; /* atom that a piece begins with */
    const struct maq_piece *pieces[MAQ_PIECE_ATOMS];
};

/* Costs of the pipeline, straight from the formulas above; the search is held to this. false when the row is no pipeline: gaps,
 * too little memory, too many devices. */
bool maq_piece_line_cost(struct maq_piece_line *p, const struct maq_piece_table *table);

#endif
