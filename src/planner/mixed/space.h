/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - the search space of compositions over node groups, from an open job.
 *
 * Axes are those of the homogeneous search (planner/space/space.h), by the same keys: TP, CP and its kind, EP,
 * expert-TP, micro batch, what is recomputed, ZeRO, the copies of its shards, optimizer and activations on device or
 * host, virtual stages. Their values come from the document, a flag or the user's list where these set them. What
 * stages of different make-up cannot do is an error where the document asks for it, and is not searched otherwise:
 * schedules other than 1F1B and interleaved, layouts, a fixed number of stages or replicas, offloading or recomputing
 * the first N layers of a stage, LoRA.
 */
#ifndef MAQ_PLANNER_MIXED_SPACE_H
#define MAQ_PLANNER_MIXED_SPACE_H

#include "maquette/planner_mixed.h"
#include "planner/stages/stage_costs.h"

struct maq_mixed_space_lists {
    const char *const *lists; /* "tp=1,2,4" */
    size_t n;
    int planner; /* enum maq_mixed_planner: whose techniques */
    double more_bytes;
    uint32_t more_nodes, more_nodes_of;
    double min_fit_probability; /* as struct maq_search_opts */
    bool as_predicted;
};

static inline struct maq_mixed_space_lists maq_mixed_lists(const struct maq_mixed_search_opts *opts)
{
    return (struct maq_mixed_space_lists){.lists = opts->lists,
                                          .n = opts->n_lists,
                                          .planner = opts->planner,
                                          .more_bytes = opts->more_bytes,
                                          .more_nodes = opts->more_nodes,
                                          .more_nodes_of = opts->more_nodes_of,
                                          .min_fit_probability = opts->min_fit_probability,
                                          .as_predicted = opts->as_predicted};
}

/* Faults of the user's lists are reported. Lives in the arena. */
enum maq_status maq_mixed_space_init(struct maq_chain_space *out, const struct maq_loaded_job *open,
                                     const struct maq_mixed_space_lists *lists, struct maq_arena *arena,
                                     struct maq_diag *diag);

/*
 * Makes all node groups alike, each with the least of every figure over all groups, as a planner sees them that knows
 * one kind of device. false when out of memory.
 */
bool maq_mixed_space_blind(struct maq_chain_space *space, struct maq_arena *arena);

#endif
