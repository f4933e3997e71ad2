/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.h - the distinct costed things of a job: operators and collectives, each held and costed once.
 *
 * A 405B training step has hundreds of thousands of nodes and a few dozen items. Adding an equal operator
 * returns the id it has; its cost is asked from the provider chain when it is first seen.
 */
#ifndef MAQ_GRAPH_ITEMS_H
#define MAQ_GRAPH_ITEMS_H

#include "base/arena.h"
#include "maquette/graph.h"

struct maq_item {
    bool is_coll;
    uint8_t stream;       /* enum maq_stream of a collective: equal ones of different groups are two items */
    uint16_t group;       /* node group whose device runs the operator; 0 for collectives, which name theirs */
    struct maq_op op;     /* when !is_coll */
    struct maq_coll coll; /* when is_coll */
    struct maq_cost cost;
    double dur_ns; /* cost rounded to whole nanoseconds */
};

struct maq_items_slot {
    uint32_t hash, id1; /* id + 1; 0 = free */
};

/* Some items last longer than the chain says: what a question about them asks. Set before the first of them is made. */
struct maq_slowdown {
    bool (*applies)(const struct maq_item *item, const void *to);
    const void *to;
    double factor;
};

struct maq_items {
    struct maq_item *at;
    uint32_t n, size;
    struct maq_items_slot *table; /* open addressing */
    uint32_t table_size;
    const struct maq_device *device; /* of the selected node group */
    uint16_t group;
    const struct maq_cluster *cluster;
    const struct maq_costs *costs;
    struct maq_arena *arena;
    const char *names[256]; /* of the modules that use them, for tags; static strings */
    uint16_t n_names;
    double *start, *finish; /* [n_times] scratch of the segment that is being written: one at a time */
    uint32_t n_times;
    uint32_t group_size; /* the last one asked for, and its maq_expected_maximum() */
    double group_maximum;
    const struct maq_slowdown *slowdown; /* borrowed; NULL = items last as the chain says */
    double pace; /* time of a matrix kernel on the slowest device of the cluster over that on a mean one */
    bool failed; /* out of memory: ids are 0 from then on; check once at the end */
};

/* Cluster and costs are borrowed for the life of the table; everything lives in the arena. Item 0 is the operator that
 * costs nothing. */
void maq_items_init(struct maq_items *items, const struct maq_cluster *cluster, const struct maq_costs *costs,
                    struct maq_arena *arena);
/* Operators added from now on run on this node group's device; 0 at first. */
void maq_items_select(struct maq_items *items, uint16_t group);
uint32_t maq_items_op(struct maq_items *items, const struct maq_op *op);
uint32_t maq_items_coll(struct maq_items *items, const struct maq_coll *coll, enum maq_stream stream);

/* Id of a name; UINT16_MAX when the table is full or name is NULL. */
uint16_t maq_items_name(struct maq_items *items, const char *name);

/* Does it take as long as on the slowest device (maq_items.pace)? Kernels of matrix units do. */
bool maq_item_is_paced(const struct maq_item *it);

/* What an item is, as text ("gemm 8192x14336x4096 bf16"). */
const char *maq_item_describe(char buf[96], const struct maq_item *it);

#endif
