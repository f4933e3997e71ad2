/* SPDX-License-Identifier: Apache-2.0 */
/*
 * islands.h - which measured nodes make up an island: a group of equal nodes that a planner may treat as one kind, near each other.
 *
 * An island (Tangram, arXiv 2606.16907, section 4.1) is a set of nodes such that
 *
 *   R1  all have the same number of devices, and devices of a node talk faster than nodes do
 *   R2  compute, memory and bandwidth inside a node differ by no more than a tolerance each
 *   R3  no link that leaves the island is faster than one inside, but for a tolerance; nor is one inside faster than another
 *
 * The input is a document with what was measured; the output, beside the islands, is a cluster as `maquette plan` and `train` read it, for
 * the user to look at and to change.
 */
#ifndef MAQUETTE_ISLANDS_H
#define MAQUETTE_ISLANDS_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_measured_node {
    const char *name, *device; /* device: a name of the catalogue */
    int32_t devices;
    double flops, mem_bytes, bps; /* of a device: FLOP/s, bytes, bytes/s to another one of its node */
};

struct maq_island {
    const uint32_t *nodes; /* [n] */
    uint32_t n;
    double flops, mem_bytes, bps; /* the least of its nodes */
    double link_bps; /* the slowest between two of its nodes; of a single node the fastest that leaves it */
};

/* As shares; 0 = none. The paper gives no figures: what a document leaves out is wide enough for the spread of GPUs of one type (PAL,
 * SC22: CV of 0.8 to 2.8 %) and of repeated bandwidth measurements, and narrower than the steps between types. */
struct maq_island_tolerance {
    double compute;   /* 0.1 */
    double memory;    /* 0.05 */
    double bandwidth; /* 0.2, inside a node */
    double network;   /* 0.15, between nodes */
};

struct maq_islands {
    const struct maq_measured_node *nodes;
    uint32_t n_nodes;
    const struct maq_island *at; /* [n], by the first of their nodes */
    uint32_t n;
    const double *between_bps; /* [n * n]: the slowest link between two islands; 0 on the diagonal */
    struct maq_island_tolerance tolerance;
    const char *document; /* the cluster, as YAML */
    void *owner;          /* internal */
};

/* Reads a document of measured nodes (docs/planning.md has its form). *out is owned by the caller (maq_islands_free). */
MAQ_API enum maq_status maq_islands_load(struct maq_islands **out, const char *path, struct maq_diag *diag);
MAQ_API void maq_islands_free(struct maq_islands *islands);

#ifdef __cplusplus
}
#endif
#endif
