/* SPDX-License-Identifier: Apache-2.0 */
/*
 * islands.c - measured nodes from a document, and the cluster that their islands make.
 *
 *   nodes:
 *     - {name: a1, device: a100-80gb, devices: 4, compute: 247 TFLOP/s, memory: 79.1 GiB, bandwidth: 230 GB/s}
 *     - {name: t1, device: t4, devices: 4, compute: 41 TFLOP/s, memory: 14.7 GiB, bandwidth: 5.9 GB/s}
 *   links:
 *     - {between: [a1, t1], bandwidth: 9.2 Gb/s}
 *   network: 24 Gb/s                      # of pairs that no link names
 *   fabric: ethernet-100                  # whose latency and transport it has
 *   tolerance: {compute: 0.1, memory: 0.05, bandwidth: 0.2, network: 0.15}
 *
 * A node that is there twice, a link whose bandwidth is none or that joins a node to itself are left out and counted
 * (base/mended.h). A link that nothing is known of, where the document has no `network`, is as slow as the slowest of its two nodes.
 *
 * In the cluster that is written an island is a node group with one port per node, at the rate of the slowest link
 * inside it; what a link to another island lacks to that stands under `links`.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/mended.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"
#include "cluster/islands_find.h"
#include "spec/doc_internal.h"
#include "spec/field.h"

#define MAX_BPS 1e15

struct document {
    struct maq_node *nodes, *links, *tolerance;
    struct maq_str fabric;
    double network_bps;
};

struct node_row {
    struct maq_measured_node node;
    struct maq_str name, device;
};

struct link_row {
    struct maq_node *between;
    double bps;
};

static const struct maq_field document_fields[] = {
    MAQ_FIELD_NODE(struct document, nodes, "nodes", .required = true, .doc = "list of measured nodes"),
    MAQ_FIELD_NODE(struct document, links, "links", .doc = "list of measured links between two nodes"),
    MAQ_FIELD_QTY(struct document, network_bps, "network", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS, .max = MAX_BPS,
                  .doc = "between nodes that no link names"),
    MAQ_FIELD_STR(struct document, fabric, "fabric", .def = "ethernet-100", .doc = "whose latency the network has"),
    MAQ_FIELD_NODE(struct document, tolerance, "tolerance", .doc = "how much nodes of an island may differ"),
    MAQ_FIELD_END};

static const struct maq_field node_fields[] = {
    MAQ_FIELD_STR(struct node_row, name, "name", .required = true, .doc = "of the node"),
    MAQ_FIELD_STR(struct node_row, device, "device", .required = true, .doc = "catalogue name"),
    MAQ_FIELD_I32(struct node_row, node.devices, "devices", .required = true, .min = 1, .max = MAQ_MAX_PER_NODE,
                  .doc = "devices of the node"),
    MAQ_FIELD_QTY(struct node_row, node.flops, "compute", MAQ_DIM_FLOPS, .required = true, .min = 1e9, .max = 1e18,
                  .doc = "of a device"),
    MAQ_FIELD_QTY(struct node_row, node.mem_bytes, "memory", MAQ_DIM_BYTES, .required = true, .min = 1e9, .max = 1e13,
                  .doc = "of a device"),
    MAQ_FIELD_QTY(struct node_row, node.bps, "bandwidth", MAQ_DIM_RATE, .required = true, .min = MAQ_MIN_LINK_BPS,
                  .max = MAX_BPS, .doc = "from a device to another one of the node"),
    MAQ_FIELD_END};

static const struct maq_field link_fields[] = {
    MAQ_FIELD_NODE(struct link_row, between, "between", .required = true, .doc = "two nodes"),
    MAQ_FIELD_QTY(struct link_row, bps, "bandwidth", MAQ_DIM_RATE, .required = true, .min = MAQ_MIN_LINK_BPS,
                  .max = MAX_BPS, .doc = "per direction"),
    MAQ_FIELD_END};

static const struct maq_field tolerance_fields[] = {
    MAQ_FIELD_DOUBLE(struct maq_island_tolerance, compute, "compute", .def = "0.1", .min = 0, .max = 10,
                     .doc = "of compute, as a share"),
    MAQ_FIELD_DOUBLE(struct maq_island_tolerance, memory, "memory", .def = "0.05", .min = 0, .max = 10,
                     .doc = "of memory"),
    MAQ_FIELD_DOUBLE(struct maq_island_tolerance, bandwidth, "bandwidth", .def = "0.2", .min = 0, .max = 10,
                     .doc = "of bandwidth inside a node"),
    MAQ_FIELD_DOUBLE(struct maq_island_tolerance, network, "network", .def = "0.15", .min = 0, .max = 10,
                     .doc = "of bandwidth between nodes"),
    MAQ_FIELD_END};

struct reader {
    struct maq_islands *out;
    struct maq_measured_node *nodes;
    double *link_bps; /* [n * n] */
    struct document document;
    struct maq_arena *arena;
    struct maq_diag *diag;
    struct maq_mending mended;
};

struct owner {
    struct maq_islands islands;
    struct maq_arena arena;
    char *document;
};

/* ---- reading ---- */

#define WRONG(r, at, hint, ...) maq_diag_fail(MAQ_BAD_INPUT, (r)->diag, MAQ_CODE_ISLANDS, at, hint, __VA_ARGS__)

static enum maq_status read_map(void *target, const struct maq_field *fields, struct maq_node *map, const char *what,
                                struct reader *r)
{
    map->used = true;
    if (map->kind != MAQ_NODE_MAP)
        return WRONG(r, map->at, NULL, "a %s must be a map", what);
    return maq_fields_read_map(target, fields, map, what, r->arena, r->diag);
}

/* Left out, in the words of the fault that it would be. */
#define LEAVE_OUT(r, kind, where, ...)                                                                                 \
    maq_mend_at(&(r)->mended, kind, maq_diag_place((r)->diag, where).line, MAQ_CODE_ISLANDS, where, __VA_ARGS__)

static uint32_t node_named(const struct reader *r, struct maq_str name)
{
    uint32_t i = 0;
    while (i < r->out->n_nodes && !maq_str_is(name, r->nodes[i].name))
        i++;
    return i;
}

static enum maq_status read_node(struct reader *r, struct maq_node *map)
{
    struct node_row row = {.name = {NULL, 0}};
    struct maq_device device;
    struct maq_node name = {.kind = MAQ_NODE_SCALAR, .at = map->at};
    MAQ_TRY(read_map(&row, node_fields, map, "node", r));
    if (node_named(r, row.name) < r->out->n_nodes)
        return LEAVE_OUT(r, MAQ_MEND_REPEATED, map->at, "a second node '%.*s'", (int)row.name.len, row.name.ptr);
    name.text = row.device;
    MAQ_TRY(maq_device_load(&device, &name, r->arena, r->diag)); /* the name is known */
    row.node.name = maq_arena_strdup(r->arena, row.name);
    row.node.device = maq_arena_strdup(r->arena, row.device);
    if (!row.node.name || !row.node.device)
        return maq_no_memory(r->diag, NULL);
    r->nodes[r->out->n_nodes++] = row.node;
    return MAQ_OK;
}

static enum maq_status read_nodes(struct reader *r)
{
    struct maq_node *list = r->document.nodes;
    enum maq_status status = MAQ_OK;
    list->used = true;
    if (list->kind != MAQ_NODE_SEQ || list->count == 0 || list->count > MAQ_MEASURED_NODES)
        return WRONG(r, list->at, "for example nodes: [{name: a1, device: a100-80gb, devices: 4, ...}]",
                     "nodes must be a list of up to 1,024 nodes");
    r->nodes = MAQ_ARENA_NEW(r->arena, struct maq_measured_node, list->count);
    r->link_bps = MAQ_ARENA_NEW(r->arena, double, (size_t)list->count * list->count);
    if (!r->nodes || !r->link_bps)
        return maq_no_memory(r->diag, NULL);
    for (struct maq_node *map = list->first; map; map = map->next) {
        enum maq_status one = read_node(r, map);
        status = one == MAQ_OK ? status : one;
    }
    r->out->nodes = r->nodes;
    return status;
}

/* Whether the bandwidth of a link is none: zero, below zero, beyond what links have. */
static bool has_no_bandwidth(struct maq_node *map, struct reader *r)
{
    struct link_row row = {.between = NULL};
    struct maq_diag *quiet = maq_diag_new();
    bool none =
        quiet && read_map(&row, link_fields, map, "link", &(struct reader){.arena = r->arena, .diag = quiet}) != MAQ_OK;
    for (size_t i = 0; none && i < maq_diag_count(quiet); i++)
        none = maq_diag_at(quiet, i)->code == MAQ_CODE_OUT_OF_RANGE ||
               maq_diag_at(quiet, i)->code == MAQ_CODE_BAD_QUANTITY;
    maq_diag_free(quiet);
    return none;
}

static enum maq_status read_link(struct reader *r, struct maq_node *map)
{
    struct link_row row = {.between = NULL};
    uint32_t end[2] = {0}, n = r->out->n_nodes, k = 0;
    if (!maq_diag_strict(r->diag) && has_no_bandwidth(map, r))
        return LEAVE_OUT(r, MAQ_MEND_VALUE, map->at, "the bandwidth of a link is none");
    MAQ_TRY(read_map(&row, link_fields, map, "link", r));
    row.between->used = true;
    if (row.between->kind != MAQ_NODE_SEQ || row.between->count != 2)
        return WRONG(r, row.between->at, "for example between: [a1, t1]", "between must be a list of two nodes");
    for (struct maq_node *name = row.between->first; name; name = name->next) {
        name->used = true;
        end[k] = node_named(r, name->kind == MAQ_NODE_SCALAR ? name->text : maq_str_of(""));
        if (end[k++] == n)
            return WRONG(r, name->at, "it goes by the `name` of a node", "there is no node '%.*s'",
                         name->kind == MAQ_NODE_SCALAR ? (int)name->text.len : 0, name->text.ptr ? name->text.ptr : "");
    }
    if (end[0] == end[1])
        return LEAVE_OUT(r, MAQ_MEND_VALUE, row.between->at, "a link joins two different nodes");
    r->link_bps[(size_t)end[0] * n + end[1]] = r->link_bps[(size_t)end[1] * n + end[0]] = row.bps;
    return MAQ_OK;
}

/* The slowest measured link of each node; infinite where it has none. */
static double *slowest_links(const struct reader *r)
{
    uint32_t n = r->out->n_nodes;
    double *slowest = MAQ_ARENA_NEW(r->arena, double, n);
    for (uint32_t i = 0; slowest && i < n; i++) {
        slowest[i] = HUGE_VAL;
        for (uint32_t k = 0; k < n; k++)
            if (r->link_bps[(size_t)i * n + k] > 0)
                slowest[i] = fmin(slowest[i], r->link_bps[(size_t)i * n + k]);
    }
    return slowest;
}

/* A link that nothing is known of. */
static enum maq_status fill_link(double *bps, struct reader *r, const double *slowest, uint32_t i, uint32_t k)
{
    *bps = r->document.network_bps > 0 ? r->document.network_bps : fmin(slowest[i], slowest[k]);
    if (r->document.network_bps > 0)
        return MAQ_OK;
    if (!isfinite(*bps) || maq_diag_strict(r->diag))
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_ISLANDS, r->document.nodes->at,
                             "add a link, or `network: 24 Gb/s` for all that have none",
                             "nothing is known of the link between %s and %s", r->nodes[k].name, r->nodes[i].name);
    return maq_mend(&r->mended, MAQ_MEND_LINK, 0, MAQ_CODE_ISLANDS, "nothing is known of the link between %s and %s",
                    r->nodes[k].name, r->nodes[i].name);
}

/* Links that are measured, then the network for the rest. */
static enum maq_status read_links(struct reader *r)
{
    struct maq_node *list = r->document.links;
    uint32_t n = r->out->n_nodes;
    enum maq_status status = MAQ_OK;
    if (list && list->kind != MAQ_NODE_SEQ)
        return WRONG(r, list->at, NULL, "links must be a list");
    if (list)
        list->used = true;
    for (struct maq_node *map = list ? list->first : NULL; map; map = map->next) {
        enum maq_status one = read_link(r, map);
        status = one == MAQ_OK ? status : one;
    }
    const double *slowest = slowest_links(r);
    if (!slowest)
        return maq_no_memory(r->diag, NULL);
    for (uint32_t i = 0; i < n && status == MAQ_OK; i++)
        for (uint32_t k = 0; k < i; k++) {
            double *bps = &r->link_bps[(size_t)i * n + k];
            if (*bps == 0)
                MAQ_TRY(fill_link(bps, r, slowest, i, k));
            r->link_bps[(size_t)k * n + i] = *bps;
        }
    return status;
}

/* ---- islands ---- */

static void measure(struct maq_island *island, uint32_t *nodes, const struct reader *r, const uint32_t *island_of,
                    uint32_t name)
{
    uint32_t n = r->out->n_nodes;
    double inside = HUGE_VAL, leaving = 0;
    island->flops = island->mem_bytes = island->bps = HUGE_VAL;
    for (uint32_t i = 0; i < n; i++) {
        if (island_of[i] != name)
            continue;
        nodes[island->n++] = i;
        island->flops = fmin(island->flops, r->nodes[i].flops);
        island->mem_bytes = fmin(island->mem_bytes, r->nodes[i].mem_bytes);
        island->bps = fmin(island->bps, r->nodes[i].bps);
        for (uint32_t k = 0; k < n; k++) {
            double bps = r->link_bps[(size_t)i * n + k];
            if (island_of[k] != name)
                leaving = fmax(leaving, bps);
            else if (i != k)
                inside = fmin(inside, bps);
        }
    }
    island->link_bps = island->n > 1 ? inside : leaving;
}

static enum maq_status find(struct reader *r)
{
    uint32_t n = r->out->n_nodes, *island_of = MAQ_ARENA_NEW(r->arena, uint32_t, n), *nodes;
    if (!island_of)
        return maq_no_memory(r->diag, NULL);
    r->out->n = maq_islands_find(island_of, r->nodes, n, r->link_bps, &r->out->tolerance, r->arena);
    struct maq_island *at = MAQ_ARENA_NEW(r->arena, struct maq_island, r->out->n);
    double *between = MAQ_ARENA_NEW(r->arena, double, (size_t)r->out->n * r->out->n);
    if (r->out->n == 0 || !at || !between)
        return maq_no_memory(r->diag, NULL);
    for (uint32_t i = 0; i < r->out->n; i++) {
        at[i].nodes = nodes = MAQ_ARENA_NEW(r->arena, uint32_t, n);
        if (!nodes)
            return maq_no_memory(r->diag, NULL);
        measure(&at[i], nodes, r, island_of, i);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            double *bps = &between[island_of[i] * r->out->n + island_of[k]], own = r->link_bps[(size_t)i * n + k];
            if (island_of[i] != island_of[k] && (*bps == 0 || own < *bps))
                *bps = own;
        }
    r->out->at = at;
    r->out->between_bps = between;
    return MAQ_OK;
}

/* ---- the cluster ---- */

static void put_group(struct maq_buf *out, const struct maq_islands *s, uint32_t i, struct maq_str fabric)
{
    const struct maq_island *island = &s->at[i];
    const struct maq_measured_node *node = &s->nodes[island->nodes[0]];
    maq_buf_addf(out,
                 "  - {group_name: %s-%u, device: %s, nodes: %u, devices_per_node: %d, domain_bandwidth: %.6g GB/s",
                 node->device, i + 1, node->device, island->n, node->devices, island->bps * 1e-9);
    if (island->link_bps > 0)
        maq_buf_addf(out, ", nics_per_node: 1, fabric: {base: %.*s, rate: %.6g Gb/s, efficiency: 1}", (int)fabric.len,
                     fabric.ptr, island->link_bps * 8e-9);
    maq_buf_addf(out, "} #");
    for (uint32_t k = 0; k < island->n; k++)
        maq_buf_addf(out, " %s", s->nodes[island->nodes[k]].name);
    maq_buf_addf(out, "\n");
}

static char *write_cluster(const struct maq_islands *s, struct maq_str fabric)
{
    struct maq_buf out;
    bool any = false;
    maq_buf_init(&out, 1 << 22);
    maq_buf_addf(&out, "groups:\n");
    for (uint32_t i = 0; i < s->n; i++)
        put_group(&out, s, i, fabric);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            double bps = s->between_bps[i * s->n + k];
            if (bps >= fmin(s->at[i].link_bps, s->at[k].link_bps))
                continue; /* the ports say as much */
            maq_buf_addf(&out, "%s  - {between: [%s-%u, %s-%u], bandwidth: %.6g Gb/s}\n", any ? "" : "links:\n",
                         s->nodes[s->at[k].nodes[0]].device, k + 1, s->nodes[s->at[i].nodes[0]].device, i + 1,
                         bps * 8e-9);
            any = true;
        }
    if (!out.failed)
        return out.ptr;
    maq_buf_fini(&out);
    return NULL;
}

static enum maq_status read(struct owner *o, const char *name, struct maq_doc *doc, struct maq_diag *diag)
{
    struct reader r = {.out = &o->islands, .arena = &o->arena, .diag = diag};
    struct maq_node *root = doc->root, none = {.kind = MAQ_NODE_MAP};
    if (!root)
        return WRONG(&r, (struct maq_span){.file = doc->file}, NULL, "there are no nodes");
    MAQ_TRY(read_map(&r.document, document_fields, root, "document of measured nodes", &r));
    MAQ_TRY(read_map(&o->islands.tolerance, tolerance_fields, r.document.tolerance ? r.document.tolerance : &none,
                     "tolerance", &r));
    maq_mending_begin(&r.mended, name, "line", "nodes", diag);
    MAQ_TRY(read_nodes(&r));
    MAQ_TRY(read_links(&r));
    MAQ_TRY(maq_mending_end(&r.mended, r.out->n_nodes));
    MAQ_TRY(find(&r));
    o->document = write_cluster(&o->islands, r.document.fabric);
    o->islands.document = o->document;
    return o->document ? MAQ_OK : maq_no_memory(diag, NULL);
}

enum maq_status maq_islands_load(struct maq_islands **out, const char *path, struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    struct maq_doc doc;
    if (!o)
        return MAQ_NO_MEMORY;
    maq_arena_init(&o->arena, 0);
    o->islands.owner = o;
    enum maq_status status = maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = read(o, maq__doc_name(path), &doc, diag);
    maq_doc_fini(&doc);
    if (status == MAQ_OK)
        *out = &o->islands;
    else
        maq_islands_free(&o->islands);
    return status;
}

void maq_islands_free(struct maq_islands *islands)
{
    if (!islands)
        return;
    struct owner *o = islands->owner;
    free(o->document);
    maq_arena_fini(&o->arena);
    free(o);
}
