/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - what a machine says of itself: the matrix of `nvidia-smi topo -m`, and the file that NCCL writes where
 * NCCL_TOPO_DUMP_FILE names one.
 *
 * Both say which GPUs NVLink joins, with how many links, and how many network ports there are. NCCL's file says the ports' rates and,
 * by its PCI ID, what kind of GPU it is; the matrix says neither. Neither says how nodes are cabled to one another.
 */
#ifndef MAQ_CLUSTER_TOPOLOGY_H
#define MAQ_CLUSTER_TOPOLOGY_H

#include "cluster/cluster_internal.h"

#define MAQ_TOPOLOGY_MOST 64 /* GPUs of a node; NCCL's own limit is of this size */

struct maq__topology {
    int32_t gpus;
    uint32_t pci_device;                                 /* of the GPUs; 0 = not said */
    int32_t links[MAQ_TOPOLOGY_MOST][MAQ_TOPOLOGY_MOST]; /* NVLinks between two GPUs that are joined directly */
    int32_t to_switch[MAQ_TOPOLOGY_MOST];                /* NVLinks to switches, each of which joins all GPUs on it */
    bool switches_as_pairs;                              /* links to switches stand in `links`, whole for each pair */
    int32_t nics;                                        /* ports of the rate that is highest */
    double nic_bps;                                      /* 0 = not said */
};

enum maq__topology_kind { MAQ__TOPOLOGY_NONE, MAQ__TOPOLOGY_SMI, MAQ__TOPOLOGY_NCCL };

/* By what the file begins with. NONE: it is neither, or cannot be read. */
enum maq__topology_kind maq__topology_kind(const char *path);

/* Reads a file of either kind; `at` is where its name stands. MAQ_IO, MAQ_BAD_INPUT with the reason. */
enum maq_status maq__topology_read(struct maq__topology *out, const char *path, struct maq_span at,
                                   struct maq_diag *diag);

/* The two forms. Text is not kept. MAQ_BAD_INPUT with a reason that names `path`. */
enum maq_status maq__topology_smi(struct maq__topology *out, struct maq_str text, const char *path, struct maq_span at,
                                  struct maq_diag *diag);
enum maq_status maq__topology_nccl(struct maq__topology *out, struct maq_str text, const char *path, struct maq_span at,
                                   struct maq_diag *diag);

/*
 * Writes into a group's spec what it leaves open: devices of a node, domain and its rate, ports and their rate. What the spec has wins;
 * devices per node that are not the file's are an error. Links of `t` that go to switches are moved there.
 */
enum maq_status maq__topology_apply(struct maq__group_spec *spec, struct maq__topology *t, const char *path,
                                    struct maq_span at, struct maq_diag *diag);

/* Reads a group's file and applies it: the way of both spellings of a cluster. */
enum maq_status maq__group_topology(struct maq__group_spec *spec, struct maq_str file, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag);

#endif
