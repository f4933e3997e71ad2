/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_load.c - a cluster from a document.
 *
 *   name: research
 *   nodes_per_switch: 32            # leaf or rail group
 *   oversubscription: 2
 *   groups:
 *     - {device: h100-sxm, nodes: 64, fabric: ib-ndr, rail_optimized: true}
 *     - {device: {base: a100-80gb, memory: 39.5 GiB}, nodes: 4, nics_per_node: 4, nic_rate: 100 Gb/s, fabric: roce}
 *
 * With one group its keys may stand at the top, without `groups`. A scalar is the synthetic form or the name of
 * a file that holds either form.
 */
#include <sys/stat.h>

#include "base/check.h"
#include "cluster/cluster_internal.h"
#include "cluster/host_cpu.h"
#include "cluster/topology.h"
#include "spec/catalogue.h"
#include "spec/field.h"
#include "spec/foreign_file.h"

struct group_reader {
    struct maq__group_spec spec;
    struct maq_node *device, *fabric, *multicast, *domain, *nic_rate;
    struct maq_str name, topology;
};

#define ROW(kind_, member_, key_, ...) kind_(struct group_reader, member_, key_, __VA_ARGS__)

static const struct maq_field group_fields[] = {
    ROW(MAQ_FIELD_STR, name, "group_name", .doc = "what links call it; its device"),
    ROW(MAQ_FIELD_NODE, device, "device", .required = true, .doc = "catalogue name, file, or a map of figures"),
    ROW(MAQ_FIELD_I32, spec.nodes, "nodes", .aliases = "num_nodes", .def = "1", .min = 1, .max = MAQ_MAX_NODES,
        .doc = "nodes in this group"),
    ROW(MAQ_FIELD_I32, spec.per_node, "devices_per_node", .aliases = "gpus_per_node", .min = 1, .max = MAQ_MAX_PER_NODE,
        .doc = "devices in a node; usual for the device"),
    ROW(MAQ_FIELD_I32, spec.domain, "domain_devices", .min = 1, .max = MAQ_MAX_DOMAIN,
        .doc = "devices in a scale-up domain; the device's own"),
    MAQ_FIELD_QTY(struct group_reader, spec.domain_bps, "domain_bandwidth", MAQ_DIM_RATE, .min = 1e6, .max = 1e15,
                  .doc = "scale-up bandwidth per device and direction; the device's own"),
    MAQ_FIELD_QTY(struct group_reader, spec.domain_latency_s, "domain_latency", MAQ_DIM_TIME, .min = 1e-9, .max = 1,
                  .doc = "one message over the scale-up link; the device's own"),
    MAQ_FIELD_DOUBLE(struct group_reader, spec.contention, "domain_contention", .min = 0, .max = MAQ_MAX_CONTENTION,
                     .doc = "PCIe: the rate of each of n devices that send falls with n/2 to this power"),
    ROW(MAQ_FIELD_NODE, multicast, "domain_multicast", .doc = "the scale-up switch reduces and multicasts"),
    ROW(MAQ_FIELD_I32, spec.nics, "nics_per_node", .min = 1, .max = MAQ_MAX_NICS,
        .doc = "network ports of a node; usual for the fabric"),
    MAQ_FIELD_QTY(struct group_reader, spec.nic_bps, "nic_rate", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS,
                  .max = MAQ_MAX_LINK_BPS, .doc = "line rate of one port; the fabric's own"),
    ROW(MAQ_FIELD_NODE, fabric, "fabric", .doc = "catalogue name, a kind beside nic_rate, file, or a map"),
    MAQ_FIELD_ENUM(struct group_reader, spec.host_cpu, "host_cpu", maq__host_cpu_names,
                   .doc = "core of the nodes' CPUs; usual for the device"),
    MAQ_FIELD_QTY(struct group_reader, spec.host_clock_hz, "host_clock", MAQ_DIM_FREQ, .min = MAQ_MIN_CLOCK_HZ,
                  .max = MAQ_MAX_CLOCK_HZ, .doc = "clock that their busy cores reach; usual for the core"),
    MAQ_FIELD_QTY(struct group_reader, spec.host_mem_bps, "host_memory_bandwidth", MAQ_DIM_RATE, .min = 1e9,
                  .max = 1e15, .doc = "peak of the memory of a node's host; usual for the device"),
    MAQ_FIELD_QTY(struct group_reader, spec.host_mem_bytes, "host_memory", MAQ_DIM_BYTES, .min = 1e6, .max = 1e18,
                  .doc = "memory of a node's host"),
    MAQ_FIELD_QTY(struct group_reader, spec.nvme_read_bps, "nvme_read_bandwidth", MAQ_DIM_RATE, .min = 1e7, .max = 1e13,
                  .doc = "what all NVMe devices of a node read together"),
    MAQ_FIELD_QTY(struct group_reader, spec.nvme_write_bps, "nvme_write_bandwidth", MAQ_DIM_RATE, .min = 1e7,
                  .max = 1e13, .doc = "and write"),
    ROW(MAQ_FIELD_STR, topology, "topology", .doc = "file of nvidia-smi topo -m, or of NCCL_TOPO_DUMP_FILE, of a node"),
    ROW(MAQ_FIELD_BOOL, spec.rail, "rail_optimized", .doc = "device i of every node is cabled to rail i"),
    MAQ_FIELD_END};

struct cluster_reader {
    struct maq_cluster c;
    struct maq_str name;
    struct maq_node *groups, *links;
};

static const char *const nccl_algo_names[] = {"auto", "ring", NULL};
_Static_assert(MAQ_COUNT(nccl_algo_names) == MAQ_NCCL_ALGO_COUNT + 1, "a name per algorithm");

const char *maq_nccl_algo_name(enum maq_nccl_algo algo)
{
    return (unsigned)algo < MAQ_NCCL_ALGO_COUNT ? nccl_algo_names[algo] : "unknown";
}

static const struct maq_field cluster_fields[] = {
    MAQ_FIELD_STR(struct cluster_reader, name, "name", .doc = "name in reports"),
    MAQ_FIELD_NODE(struct cluster_reader, groups, "groups", .doc = "list of node groups"),
    MAQ_FIELD_NODE(struct cluster_reader, links, "links", .doc = "bandwidth and latency between node groups"),
    MAQ_FIELD_I32(struct cluster_reader, c.nodes_per_switch, "nodes_per_switch", .min = 0, .max = MAQ_MAX_NODES,
                  .doc = "nodes in one leaf or rail group; 0 = one non-blocking network"),
    MAQ_FIELD_DOUBLE(struct cluster_reader, c.oversubscription, "oversubscription", .def = "1", .min = 1,
                     .max = MAQ_MAX_OVERSUBSCRIPTION, .doc = "downlink rate over uplink rate of a leaf"),
    MAQ_FIELD_ENUM(struct cluster_reader, c.nccl_algo, "nccl_algo", nccl_algo_names, .def = "auto",
                   .doc = "what NCCL may use for an all-reduce (NCCL_ALGO): auto, or rings alone"),
    MAQ_FIELD_END};

/* Keys and aliases of a table as a NULL-terminated list, for a map that two tables share. */
#define MAX_KEYS 32
struct key_list {
    const char *keys[MAX_KEYS + 1];
};

static struct key_list keys_of(const struct maq_field *fields)
{
    struct key_list list = {{NULL}};
    size_t n = 0;
    for (size_t i = 0; i < maq_fields_count(fields); i++) {
        MAQ_ASSERT(n + 2 <= MAX_KEYS);
        list.keys[n++] = fields[i].key;
        if (fields[i].aliases) /* one alias at most in these tables */
            list.keys[n++] = fields[i].aliases;
    }
    return list;
}

/* A fabric's name is left for the rules of node_group.c; anything longer is read here. */
static enum maq_status read_fabric(struct group_reader *r, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_node *node = r->fabric;
    if (!node)
        return MAQ_OK;
    r->spec.fabric_at = node->at;
    if (node->kind == MAQ_NODE_SCALAR && !maq__is_document_path(node->text)) {
        node->used = true;
        r->spec.fabric_name = node->text;
        return MAQ_OK;
    }
    struct maq_fabric *fabric = MAQ_ARENA_NEW(arena, struct maq_fabric, 1);
    if (!fabric)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(maq_fabric_load(fabric, node, arena, diag));
    r->spec.fabric = fabric;
    return MAQ_OK;
}

static enum maq_status read_group(struct maq_node_group *out, struct maq_node *map, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    struct group_reader r = {.spec = {.multicast = -1, .contention = -1.0}};
    enum maq_status status = maq_fields_read(&r, group_fields, map, NULL, arena, diag), one;
    struct maq_span at = r.device ? r.device->at : map->at;
    const struct maq_node *domain = maq_node_peek(map, "domain_devices"), *rate = maq_node_peek(map, "nic_rate");
    r.spec.at = at;
    r.spec.domain_at = domain ? domain->at : at;
    r.spec.rate_at = rate ? rate->at : at;
    if (r.device && (one = maq_device_load(&r.spec.device, r.device, arena, diag)) != MAQ_OK)
        status = one;
    if ((one = read_fabric(&r, arena, diag)) != MAQ_OK)
        status = one;
    if (r.multicast) {
        bool multicast;
        if (maq_node_bool(&multicast, r.multicast, diag))
            r.spec.multicast = multicast;
        else
            status = MAQ_BAD_INPUT;
    }
    MAQ_TRY(status);
    if (r.topology.len > 0) {
        const struct maq_node *node = maq_node_peek(map, "topology");
        MAQ_TRY(maq__group_topology(&r.spec, r.topology, node ? node->at : at, arena, diag));
    }
    MAQ_TRY(maq__group_finish(out, &r.spec, arena, diag));
    if (r.name.len > 0 && !(out->name = maq_arena_strdup(arena, r.name)))
        return maq_no_memory(diag, NULL);
    return MAQ_OK;
}

static enum maq_status read_groups(struct maq_cluster *c, struct maq_node *list, struct maq_arena *arena,
                                   struct maq_diag *diag)
{
    if (list->kind != MAQ_NODE_SEQ || list->count == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, list->at,
                             "for example `groups: [{device: h100-sxm, nodes: 4}]`",
                             "`groups` must be a list with at least one node group");
    if (list->count > MAQ_MAX_GROUPS)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_SIZE, list->at, NULL,
                             "a cluster may have at most %d groups", MAQ_MAX_GROUPS);
    c->groups = MAQ_ARENA_NEW(arena, struct maq_node_group, list->count);
    if (!c->groups)
        return maq_no_memory(diag, NULL);
    list->used = true;
    enum maq_status status = MAQ_OK;
    for (struct maq_node *map = list->first; map; map = map->next) {
        enum maq_status one;
        map->used = true;
        if (map->kind != MAQ_NODE_MAP) {
            one =
                maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, map->at, NULL, "a node group must be a map");
        } else {
            one = read_group(&c->groups[c->n_groups++], map, arena, diag);
            enum maq_status keys = maq_fields_check_keys(group_fields, NULL, map, "node group", diag);
            if (one == MAQ_OK)
                one = keys;
        }
        if (one != MAQ_OK)
            status = one;
    }
    return status;
}

/* Keys of a node group beside `groups`: whose would they be? */
static enum maq_status check_key_places(struct maq_node *map, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    for (struct maq_node *n = map->first; n; n = n->next) {
        if (!maq_fields_find(group_fields, n->key))
            continue;
        maq_node_use_all(n);
        status =
            maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_GROUP_KEY_PLACE, n->key_at, "move it into each group it is for",
                          "'%.*s' belongs to a node group and stands beside `groups`", (int)n->key.len, n->key.ptr);
    }
    return status;
}

static enum maq_status read_map(struct maq_cluster *out, struct maq_node *map, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct cluster_reader r = {0};
    struct key_list also = keys_of(group_fields);
    enum maq_status status = maq_fields_read(&r, cluster_fields, map, NULL, arena, diag), one;
    if ((one = maq_fields_check_keys(cluster_fields, also.keys, map, "cluster", diag)) != MAQ_OK)
        status = one;
    if (r.groups) {
        if ((one = check_key_places(map, diag)) != MAQ_OK)
            status = one;
        one = read_groups(&r.c, r.groups, arena, diag);
    } else {
        r.c.n_groups = 1;
        r.c.groups = MAQ_ARENA_NEW(arena, struct maq_node_group, 1);
        one = r.c.groups ? read_group(r.c.groups, map, arena, diag) : maq_no_memory(diag, NULL);
    }
    MAQ_TRY(one);
    MAQ_TRY(status);
    if (r.name.len > 0 && !(r.c.name = maq_arena_strdup(arena, r.name)))
        return maq_no_memory(diag, NULL);
    if (r.links)
        MAQ_TRY(maq__cluster_links_read(&r.c, r.links, arena, diag));
    MAQ_TRY(maq__cluster_finish(&r.c, map->at, arena, diag));
    *out = r.c;
    return MAQ_OK;
}

static enum maq_status read_file(struct maq_cluster *out, const struct maq_node *node, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    const char *path = maq_arena_strdup(arena, node->text);
    if (!path)
        return maq_no_memory(diag, NULL);
    struct maq_doc doc;
    enum maq_status status = maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, diag);
    struct maq_node *root = status == MAQ_OK ? doc.root : NULL;
    if (status == MAQ_OK && (!root || root->kind == MAQ_NODE_SEQ))
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, root ? root->at : node->at, NULL,
                               "a cluster file must hold a map or one line of the synthetic form");
    else if (status == MAQ_OK && root->kind == MAQ_NODE_SCALAR)
        status = maq__cluster_synthetic(out, root, arena, diag);
    else if (status == MAQ_OK && (status = read_map(out, root, arena, diag)) == MAQ_OK)
        status = maq_doc_check_unused(&doc, diag);
    maq_doc_fini(&doc);
    return status;
}

/* One line that is no line but the name of a file: one of another tool, or without the ending that files here have. */
static enum maq_status refuse_path(const struct maq_node *node, struct maq_arena *arena, struct maq_diag *diag)
{
    struct stat st;
    const char *path = maq_arena_strdup(arena, node->text);
    if (!path)
        return maq_no_memory(diag, NULL);
    if (maq_catalogue_find("devices", node->text) || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return MAQ_OK;
    if (maq__topology_kind(path) != MAQ__TOPOLOGY_NONE)
        return MAQ_OK;
    MAQ_TRY(maq_foreign_refuse(maq_foreign_file(path), path, "a cluster", node->at, diag));
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, node->at,
                         "give a file that holds a cluster one of these endings",
                         "%.200s is a file, and files of clusters end in .yaml, .yml or .json", path);
}

/* One node, as its file says; the file has to say what kind of GPU it has. */
static enum maq_status read_topology(struct maq_cluster *out, const struct maq_node *node, const char *path,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq__topology topology;
    struct maq__group_spec spec = {
        .multicast = -1, .contention = -1.0, .nodes = 1, .at = node->at, .fabric_at = node->at};
    MAQ_TRY(maq__topology_read(&topology, path, node->at, diag));
    MAQ_TRY(maq__device_by_pci_id(&spec.device, topology.pci_device, node->at, arena, diag));
    if (!spec.device.name)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_TOPOLOGY, node->at,
                             maq_arena_printf(arena,
                                              "say which, and how many nodes: 'h100-sxm:%d x 4, topology %.200s'",
                                              (int)topology.gpus, path),
                             "%.200s does not say which GPUs its %d are", path, (int)topology.gpus);
    MAQ_TRY(maq__topology_apply(&spec, &topology, path, node->at, diag));
    out->n_groups = 1;
    out->groups = MAQ_ARENA_NEW(arena, struct maq_node_group, 1);
    if (!out->groups)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(maq__group_finish(out->groups, &spec, arena, diag));
    return maq__cluster_finish(out, node->at, arena, diag);
}

static enum maq_status read_line(struct maq_cluster *out, const struct maq_node *node, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    MAQ_TRY(refuse_path(node, arena, diag));
    const char *path = maq_arena_strdup(arena, node->text);
    if (!path)
        return maq_no_memory(diag, NULL);
    if (!maq_catalogue_find("devices", node->text) && maq__topology_kind(path) != MAQ__TOPOLOGY_NONE)
        return read_topology(out, node, path, arena, diag);
    return maq__cluster_synthetic(out, node, arena, diag);
}

enum maq_status maq_cluster_load(struct maq_cluster *out, struct maq_node *node, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    struct maq_cluster c = {0};
    enum maq_status status;
    node->used = true;
    switch (node->kind) {
    case MAQ_NODE_SCALAR:
        status =
            maq__is_document_path(node->text) ? read_file(&c, node, arena, diag) : read_line(&c, node, arena, diag);
        break;
    case MAQ_NODE_MAP:
        status = read_map(&c, node, arena, diag);
        break;
    case MAQ_NODE_SEQ:
    default:
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, node->at,
                               "write `cluster: h100-sxm:8 x 4`, or a map with `groups`",
                               "a cluster is one line, a file, or a map, not a list");
        break;
    }
    MAQ_TRY(status);
    *out = c;
    return MAQ_OK;
}
