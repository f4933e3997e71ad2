/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_internal.h - what the two spellings of a cluster (synthetic line and document) share.
 *
 * Either reader fills one struct maq__group_spec per node group: what was written, with its places, and zero where nothing
 * was. maq__group_finish() turns it into a node group: it chooses the fabric, fills in what is usual for the device, and
 * checks that the numbers fit together. So a default and a message exist once, whatever the spelling.
 */
#ifndef MAQ_CLUSTER_CLUSTER_INTERNAL_H
#define MAQ_CLUSTER_CLUSTER_INTERNAL_H

#include "base/check.h"
#include "base/str.h"
#include "cluster/cluster_load.h"
#include "cluster/codes.h"

/* Limits on what a user may ask for: far above any machine, low enough that products of them stay exact. */
#define MAQ_MAX_PER_NODE 1024
#define MAQ_MAX_NODES 1000000
#define MAQ_MAX_DEVICES 16000000
#define MAQ_MAX_GROUPS 256
#define MAQ_MAX_GROUP_LINKS 255 /* numbered in a byte of a placement */
#define MAQ_MAX_NICS 1024
#define MAQ_MAX_DOMAIN 65536
#define MAQ_MIN_LINK_BPS 1.25e8  /* 1 Gb/s */
#define MAQ_MAX_LINK_BPS 1.25e13 /* 100 Tb/s */
#define MAQ_MAX_OVERSUBSCRIPTION 1000
#define MAQ_MAX_CONTENTION 4.0
#define MAQ_MAX_NVLINKS 256

struct maq__group_spec {
    struct maq_device device;
    int32_t nodes;                        /* 0 = one */
    int32_t per_node;                     /* 0 = usual for the device */
    int32_t domain;                       /* 0 = the device's own */
    int32_t nics;                         /* 0 = usual for the fabric */
    double nic_bps;                       /* 0 = the fabric's */
    double domain_bps, domain_latency_s;  /* 0 = the device's */
    double contention;                    /* < 0 = the device's, or 0 with a domain_bps for all devices of a node */
    int multicast;                        /* -1 = the device's */
    int host_cpu;                         /* enum maq_host_cpu; USUAL = the device's */
    double host_clock_hz;                 /* 0 = the device's, or of another core its usual */
    double host_mem_bytes;                /* 0 = not known */
    double host_mem_bps;                  /* 0 = the device's, or of another core its usual */
    double nvme_read_bps, nvme_write_bps; /* of a node; 0 = not known */
    bool rail;
    struct maq_str fabric_name;      /* catalogue name, or a kind ("roce") with nic_bps; empty = usual for the device */
    const struct maq_fabric *fabric; /* spelled out in the document; NULL = by name */
    struct maq_span at, domain_at, fabric_at, rate_at;
};

/* Checks and completes one group; first_rank and the check of the whole are maq__cluster_finish()'s. */
enum maq_status maq__group_finish(struct maq_node_group *out, const struct maq__group_spec *spec,
                                  struct maq_arena *arena, struct maq_diag *diag);

/* The links between the groups that are read already. group_links.c */
enum maq_status maq__cluster_links_read(struct maq_cluster *out, struct maq_node *list, struct maq_arena *arena,
                                        struct maq_diag *diag);

/* Numbers the ranks, checks the totals, gives the cluster a name when it has none. `at` is the place of the whole. */
enum maq_status maq__cluster_finish(struct maq_cluster *out, struct maq_span at, struct maq_arena *arena,
                                    struct maq_diag *diag);

/* The synthetic form. `node` is a scalar. */
enum maq_status maq__cluster_synthetic(struct maq_cluster *out, const struct maq_node *node, struct maq_arena *arena,
                                       struct maq_diag *diag);

/* Device and fabric by catalogue name; `at` is where the name stands. */
enum maq_status maq__device_by_name(struct maq_device *out, struct maq_str name, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag);
/* The first of the catalogue that has the PCI ID; without a name where none has it. */
enum maq_status maq__device_by_pci_id(struct maq_device *out, uint32_t id, struct maq_span at, struct maq_arena *arena,
                                      struct maq_diag *diag);
enum maq_status maq__fabric_by_name(struct maq_fabric *out, struct maq_str name, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag);

/* Whether `name` is a kind of fabric: the catalogue has "<name>-something". */
bool maq__fabric_is_kind(struct maq_str name);
/* The fabric of a kind whose line rate is `bps`, or else the nearest one run at that rate. */
enum maq_status maq__fabric_of_kind(struct maq_fabric *out, struct maq_str kind, double bps, struct maq_arena *arena,
                                    struct maq_diag *diag);

/* Names of a catalogue section as "a, b, c"; "" when out of memory. Lives in `arena`. */
const char *maq__catalogue_names(const char *section, struct maq_arena *arena);
/* Hint for an unknown name: "did you mean 'x'?", or all names when nothing is near. Lives in `arena`. */
const char *maq__catalogue_hint(const char *section, struct maq_str name, struct maq_arena *arena);

/*
 * Hint for a cluster in one line that does not follow the grammar and says which device and how many all the same: "did you mean
 * 'h100-sxm:8 x 8, rail 400G'?" for "64 h100, rail 400G". NULL: it does not. Lives in `arena`. cluster_hint.c
 */
const char *maq__cluster_hint(struct maq_str text, struct maq_arena *arena);
/* Warns of a group that follows it and was hardly meant: nodes for devices, or a node that nobody sells. unusual_nodes.c */
void maq__warn_of_unusual_nodes(const struct maq_node_group *g, const struct maq__group_spec *spec,
                                struct maq_arena *arena, struct maq_diag *diag);

/* A path rather than a name: ends in .yaml, .yml or .json. */
bool maq__is_document_path(struct maq_str text);

/* "WHAT must be LO to HI, not TEXT". Returns MAQ_BAD_INPUT. */
enum maq_status maq__cluster_range_error(struct maq_span at, const char *what, int lo, int hi, struct maq_str text,
                                         struct maq_diag *diag);

#endif
