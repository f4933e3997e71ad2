/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_links.c - the `links` of a cluster file: the network between two node groups where it is slower than the ports of either,
 * as between data halls, or in a cloud that limits it.
 *
 *   links:
 *     - {between: [v100-16gb, t4], bandwidth: 9.2 Gb/s, flow_bandwidth: 5.5 Gb/s, latency: 60 us}
 *
 *   bandwidth        what the devices of one node send to the other group together, per direction
 *   flow_bandwidth   what one of them sends at most
 *   latency          of one message
 *
 * A link takes away from what the ports give, it never adds to it: bandwidth is the least of all, latency the most. A process group
 * that touches several groups with links between them uses the one with the least bandwidth. Groups go by `group_name`, or by their
 * device where only one group has it.
 */
#include <string.h>

#include "cluster/cluster_internal.h"
#include "spec/field.h"

struct link_reader {
    struct maq_group_link link;
    struct maq_node *between;
};

static const struct maq_field link_fields[] = {
    MAQ_FIELD_NODE(struct link_reader, between, "between", .required = true, .doc = "two node groups"),
    MAQ_FIELD_QTY(struct link_reader, link.bps, "bandwidth", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS,
                  .max = MAQ_MAX_LINK_BPS, .doc = "what the devices of a node send together"),
    MAQ_FIELD_QTY(struct link_reader, link.flow_bps, "flow_bandwidth", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS / 100,
                  .max = MAQ_MAX_LINK_BPS, .doc = "what one device sends at most"),
    MAQ_FIELD_QTY(struct link_reader, link.latency_s, "latency", MAQ_DIM_TIME, .min = 1e-9, .max = 10,
                  .doc = "of one message"),
    MAQ_FIELD_END};

static const char *name_of(const struct maq_node_group *g)
{
    return g->name ? g->name : g->device.name;
}

static enum maq_status find_group(uint16_t *out, const struct maq_cluster *c, struct maq_node *node,
                                  struct maq_diag *diag)
{
    uint32_t found = 0;
    node->used = true;
    for (uint32_t g = 0; g < c->n_groups && node->kind == MAQ_NODE_SCALAR; g++)
        if (maq_str_is(node->text, name_of(&c->groups[g]))) {
            *out = (uint16_t)g;
            found++;
        }
    if (found == 1)
        return MAQ_OK;
    if (found > 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, node->at, "give each of them a `group_name`",
                             "%u node groups are called '%.*s'", found, (int)node->text.len, node->text.ptr);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, node->at,
                         "write the `group_name` of a group, or its device", "there is no node group '%.*s'",
                         node->kind == MAQ_NODE_SCALAR ? (int)node->text.len : 0, node->text.ptr ? node->text.ptr : "");
}

static enum maq_status read_between(struct maq_group_link *out, const struct maq_cluster *c, struct maq_node *node,
                                    struct maq_diag *diag)
{
    if (node->kind != MAQ_NODE_SEQ || node->count != 2)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, node->at,
                             "for example `between: [v100-16gb, t4]`", "`between` must be a list of two node groups");
    node->used = true;
    enum maq_status first = find_group(&out->a, c, node->first, diag),
                    second = find_group(&out->b, c, node->first->next, diag);
    MAQ_TRY(first);
    MAQ_TRY(second);
    if (out->a == out->b)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, node->at,
                             "the network inside a group is its `fabric`", "a link joins two different node groups");
    return MAQ_OK;
}

static enum maq_status read_link(struct maq_group_link *out, const struct maq_cluster *c, struct maq_node *map,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct link_reader r = {.between = NULL};
    map->used = true;
    if (map->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, map->at, NULL, "a link must be a map");
    enum maq_status status = maq_fields_read(&r, link_fields, map, NULL, arena, diag),
                    keys = maq_fields_check_keys(link_fields, NULL, map, "link", diag);
    if (r.between && status == MAQ_OK)
        status = read_between(&r.link, c, r.between, diag);
    MAQ_TRY(status);
    MAQ_TRY(keys);
    if (r.link.bps == 0 && r.link.flow_bps == 0 && r.link.latency_s == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, map->at,
                             "give its bandwidth, flow_bandwidth or latency", "a link that says nothing");
    for (uint32_t i = 0; i < c->n_links; i++)
        if ((c->links[i].a == r.link.a && c->links[i].b == r.link.b) ||
            (c->links[i].a == r.link.b && c->links[i].b == r.link.a))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_LINK, map->at, NULL,
                                 "a second link between the same node groups");
    *out = r.link;
    return MAQ_OK;
}

enum maq_status maq__cluster_links_read(struct maq_cluster *c, struct maq_node *list, struct maq_arena *arena,
                                        struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    if (list->kind != MAQ_NODE_SEQ || list->count > MAQ_MAX_GROUP_LINKS)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, list->at,
                             "for example `links: [{between: [v100-16gb, t4], bandwidth: 9.2 Gb/s}]`",
                             "`links` must be a list of at most %d links", MAQ_MAX_GROUP_LINKS);
    struct maq_group_link *links = MAQ_ARENA_NEW(arena, struct maq_group_link, list->count);
    if (!links)
        return maq_no_memory(diag, NULL);
    list->used = true;
    c->links = links;
    for (struct maq_node *map = list->first; map; map = map->next) {
        enum maq_status one = read_link(&links[c->n_links], c, map, arena, diag);
        c->n_links += one == MAQ_OK;
        status = one == MAQ_OK ? status : one;
    }
    return status;
}

const char *maq_node_group_name(const struct maq_node_group *group)
{
    return name_of(group);
}
