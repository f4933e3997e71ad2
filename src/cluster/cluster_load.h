/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_load.h - from a document or a one-line string to a cluster.
 *
 * `node` is what a job has under `cluster:`; it may be
 *   - a scalar: the synthetic form  DEVICE[:PER_NODE] [x NODES] [, property...]  e.g.
 *        "h100-sxm:8 x 2048, rail 400G"       8 per node, 2,048 nodes, one 400 Gb/s NIC per device, rail-optimised
 *        "gb200:4 x 18, domain 72, rail 400G" one NVL72
 *        "a100-80gb:8 x 4, nics 4 x 100G roce" four 100 Gb/s RoCE ports shared by 8 devices
 *        "h100-sxm:8 x 64, efa-v2"            a fabric preset by name
 *        "h100-sxm:8 x 512, rail 400G, leaf 32, oversubscription 2"
 *        several groups joined by " + ":  "a100-80gb:8 x 2, rail 200G + v100-32gb:8 x 4, rail 100G"
 *     (the whole grammar: head of synthetic.c), or a path that ends in .yaml, .yml or .json;
 *   - a map: name, groups: [{device: NAME-or-map, nodes, devices_per_node, domain_devices, ..., fabric: NAME-or-map}],
 *     nodes_per_switch, oversubscription. A group's keys may stand at the top when there is just one.
 *
 * Defaults (rules: head of node_group.c): PER_NODE 8 (or 4 for GB200/GB300/GH200), one node, the device's own domain, and
 * the fabric and ports that the device is usually sold with. *out lives in `arena`; it is written only on success.
 */
#ifndef MAQ_CLUSTER_CLUSTER_LOAD_H
#define MAQ_CLUSTER_CLUSTER_LOAD_H

#include "maquette/cluster.h"
#include "spec/doc.h"

enum maq_status maq_cluster_load(struct maq_cluster *out, struct maq_node *node, struct maq_arena *arena,
                                 struct maq_diag *diag);

/* A device or fabric from a catalogue name or a path (scalar), or an inline map with `base:`. A device that starts from
 * another keeps its name unless the map gives one. */
enum maq_status maq_device_load(struct maq_device *out, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag);
enum maq_status maq_fabric_load(struct maq_fabric *out, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag);

#endif
