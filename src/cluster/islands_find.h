/* SPDX-License-Identifier: Apache-2.0 */
/* islands_find.h - the clustering behind maquette/islands.h. */
#ifndef MAQ_CLUSTER_ISLANDS_FIND_H
#define MAQ_CLUSTER_ISLANDS_FIND_H

#include "base/arena.h"
#include "maquette/islands.h"

#define MAQ_MEASURED_NODES 1024u

/* Which island each node is in, numbered by their first nodes: island_of[n]; returns their number, 0 when out of memory.
 * link_bps is [n * n], symmetric. */
uint32_t maq_islands_find(uint32_t *island_of, const struct maq_measured_node *nodes, uint32_t n,
                          const double *link_bps, const struct maq_island_tolerance *tolerance,
                          struct maq_arena *scratch);

#endif
