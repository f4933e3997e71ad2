/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unusual_nodes.c - warnings of machines that nobody sells: nodes that a number was probably not meant for, as "h100 x 64" (64 nodes)
 * and "h100:64" (one node) are.
 */
#include "cluster/cluster_internal.h"

/* More devices than any node that is sold has: 16 (HGX-2, HGX A100 of two boards), but for one scale-up domain of a rack. */
#define MOST_PER_NODE 16

void maq__warn_of_unusual_nodes(const struct maq_node_group *g, const struct maq__group_spec *spec,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    const char *name = g->device.name;
    int per = (int)g->devices_per_node, nodes = (int)g->nodes, usual = (int)g->device.devices_per_node;
    if ((int64_t)per * nodes > MAQ_MAX_DEVICES)
        return;
    if (spec->per_node == 0 && spec->domain == 0 && nodes > 1 && per > 1) {
        const char *meant = nodes % per == 0 ? maq_arena_printf(arena, "%s:%d x %d", name, per, nodes / per)
                            : nodes < per    ? maq_arena_printf(arena, "%s:%d", name, nodes)
                                             : NULL;
        const char *hint = meant ? maq_arena_printf(arena, "%d GPUs are '%s'; '%s:%d x %d' says that it is nodes",
                                                    nodes, meant, name, per, nodes)
                                 : maq_arena_printf(arena, "'%s:%d x %d' says that it is nodes", name, per, nodes);
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_UNUSUAL_NODES, spec->at, hint, "%d nodes of %d are %lld x %s", nodes,
                     per, (long long)nodes * per, name);
    }
    if (per > MOST_PER_NODE && g->domain_devices < per) {
        const char *hint =
            usual > 0 && per % usual == 0
                ? maq_arena_printf(arena, "%lld GPUs in nodes of %d are '%s:%d x %lld'", (long long)per * nodes, usual,
                                   name, usual, (long long)per / usual * nodes)
                : NULL;
        maq_diag_add(
            diag, MAQ_WARNING, MAQ_CODE_UNUSUAL_NODES, spec->at, hint,
            "a node of %d x %s: no machine that is sold has so many, and its %d scale-up domains are joined by PCIe",
            per, name, per / (int)g->domain_devices);
    }
}
