/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_group.c - from what was written about a node group to the node group.
 *
 * Rules for what was left out:
 *   devices per node   the device's usual
 *   domain             the device's own. One that is sold to span nodes (larger than the usual node: NVL72) becomes
 *                      the largest multiple of this group's node in it; any other becomes the largest divisor of the
 *                      node in it. So `a100-80gb:4` has domains of 4, `h100-pcie:8` of 2, `gb200:4` of 72
 *   host CPU           the device's; its clock and the bandwidth of its memory are lost where the core is another one
 *   fabric             the device's usual; with a rate, that kind of fabric at that rate: ib-ndr at 200G is ib-hdr
 *   ports              one per device on rails; else, per device, as many as the device usually has on its own
 *                      fabric, or as the fabric usually has; at least one
 */
#include <math.h>

#include "base/text.h"
#include "cluster/cluster_internal.h"
#include "cluster/host_cpu.h"
#include "spec/catalogue.h"

static int32_t largest_divisor(int32_t n, int32_t at_most)
{
    int32_t d = at_most < n ? at_most : n;
    while (n % d != 0)
        d--;
    return d;
}

static int32_t smallest_divisor(int32_t n, int32_t at_least)
{
    int32_t d = at_least;
    while (n % d != 0)
        d++;
    return d;
}

static int32_t usual_domain(const struct maq_device *device, int32_t per_node)
{
    bool spans_nodes = device->domain_devices > device->devices_per_node;
    if (spans_nodes && device->domain_devices >= per_node)
        return device->domain_devices / per_node * per_node;
    return largest_divisor(per_node, device->domain_devices);
}

static enum maq_status check_domain(int32_t domain, int32_t per_node, struct maq_span at, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    if (domain <= per_node ? per_node % domain == 0 : domain % per_node == 0)
        return MAQ_OK;
    int32_t below = domain < per_node ? largest_divisor(per_node, domain) : domain / per_node * per_node;
    int32_t above = domain < per_node ? smallest_divisor(per_node, domain) : below + per_node;
    const char *hint = maq_arena_printf(arena, "the nearest that fit are %d and %d", (int)below, (int)above);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_DOMAIN_SHAPE, at, hint,
                         "a domain of %d devices does not fit nodes of %d: it must divide a node or be whole nodes",
                         (int)domain, (int)per_node);
}

/* The kind of a fabric: its name up to the first '-'. */
static struct maq_str kind_of(const char *name)
{
    struct maq_str head;
    maq_str_split(maq_str_of(name), '-', &head);
    return head;
}

/* The line rate that was asked for, which a reader of the name should know about. */
static enum maq_status set_rate(struct maq_fabric *f, double bps, struct maq_arena *arena, struct maq_diag *diag)
{
    if (bps <= 0 || fabs(bps / f->nic_bps - 1) < 1e-9)
        return MAQ_OK;
    f->name = maq_arena_printf(arena, "%s at %g Gb/s", f->name, bps * 8e-9);
    if (!f->name)
        return maq_no_memory(diag, NULL);
    f->nic_bps = bps;
    return MAQ_OK;
}

static enum maq_status choose_fabric(struct maq_fabric *out, const struct maq__group_spec *spec,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_str name = spec->fabric_name;
    if (spec->fabric) {
        *out = *spec->fabric;
    } else if (name.len > 0 && spec->nic_bps > 0 && maq__fabric_is_kind(name)) {
        MAQ_TRY(maq__fabric_of_kind(out, name, spec->nic_bps, arena, diag));
    } else if (name.len > 0 && !maq_catalogue_find("fabrics", name) && maq__fabric_is_kind(name)) {
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_RATE, spec->fabric_at,
                             "for example `rail 400G roce`, or a fabric by its full name, `roce-400`",
                             "'%.*s' is a kind of fabric and needs a rate", (int)name.len, name.ptr);
    } else if (name.len > 0) {
        MAQ_TRY(maq__fabric_by_name(out, name, spec->fabric_at, arena, diag));
    } else if (spec->device.fabric && spec->nic_bps > 0 && maq__fabric_is_kind(kind_of(spec->device.fabric))) {
        MAQ_TRY(maq__fabric_of_kind(out, kind_of(spec->device.fabric), spec->nic_bps, arena, diag));
    } else if (spec->device.fabric) {
        MAQ_TRY(maq__fabric_by_name(out, maq_str_of(spec->device.fabric), spec->at, arena, diag));
    } else if (spec->nodes > 1) {
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_NO_FABRIC, spec->at, "name one, for example `ib-ndr`",
                             "device '%s' has no usual network, and %d nodes need one", spec->device.name,
                             (int)spec->nodes);
    } else {
        *out = (struct maq_fabric){.name = "none", .title = "no network", .source = ""};
        return MAQ_OK;
    }
    return set_rate(out, spec->nic_bps, arena, diag);
}

static int32_t usual_nics(const struct maq_node_group *g, const struct maq__group_spec *spec)
{
    bool own_fabric = !spec->fabric && spec->fabric_name.len == 0;
    if (spec->rail)
        return g->devices_per_node;
    double per_device =
        own_fabric && g->device.nics_per_device > 0 ? g->device.nics_per_device : g->fabric.nics_per_device;
    double ports = floor(per_device * g->devices_per_node + 0.5);
    return ports > 1 ? (int32_t)ports : 1;
}

static void set_host(struct maq_device *device, const struct maq__group_spec *spec)
{
    if (spec->host_cpu != MAQ_HOST_CPU_USUAL && spec->host_cpu != device->host_cpu) {
        device->host_cpu = spec->host_cpu;
        device->host_clock_hz = 0;
        device->host_mem_bps = 0;
    }
    if (spec->host_mem_bps > 0)
        device->host_mem_bps = spec->host_mem_bps;
    if (spec->host_clock_hz > 0)
        device->host_clock_hz = spec->host_clock_hz;
    maq__host_cpu_complete(device);
}

/*
 * A bandwidth that is given for a domain of the whole node is what its devices reach together; one for pairs says nothing
 * of what leads from pair to pair.
 */
static double contention_of(const struct maq__group_spec *spec, const struct maq_node_group *g)
{
    if (spec->contention >= 0.0)
        return spec->contention;
    return spec->domain_bps > 0 && g->domain_devices >= g->devices_per_node ? 0.0 : spec->device.domain_contention;
}

enum maq_status maq__group_finish(struct maq_node_group *out, const struct maq__group_spec *spec,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_device *device = &spec->device;
    struct maq_node_group g = {.device = *device};
    g.nodes = spec->nodes > 0 ? spec->nodes : 1;
    g.devices_per_node = spec->per_node > 0 ? spec->per_node : device->devices_per_node;
    g.domain_devices = spec->domain > 0 ? spec->domain : usual_domain(device, g.devices_per_node);
    g.domain_bps = spec->domain_bps > 0 ? spec->domain_bps : device->domain_bps;
    g.domain_latency_s = spec->domain_latency_s > 0 ? spec->domain_latency_s : device->domain_latency_s;
    g.domain_contention = contention_of(spec, &g);
    g.domain_multicast = spec->multicast < 0 ? device->domain_multicast : spec->multicast != 0;
    g.rail_optimized = spec->rail;
    g.host_mem_bytes = spec->host_mem_bytes;
    set_host(&g.device, spec);
    maq__host_share(&g.device, g.devices_per_node);
    g.device.nvme_read_bps = spec->nvme_read_bps / g.devices_per_node;
    g.device.nvme_write_bps = spec->nvme_write_bps / g.devices_per_node;
    enum maq_status status = check_domain(g.domain_devices, g.devices_per_node, spec->domain_at, arena, diag);
    enum maq_status fabric = choose_fabric(&g.fabric, spec, arena, diag);
    if (status != MAQ_OK)
        return status;
    MAQ_TRY(fabric);
    g.nics_per_node = spec->nics > 0 ? spec->nics : usual_nics(&g, spec);
    *out = g;
    return MAQ_OK;
}

/* "h100-sxm:8 x 2048 + a100-80gb:8 x 4" */
static enum maq_status name_cluster(struct maq_cluster *c, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_buf b;
    maq_buf_init(&b, 64 * 1024);
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const struct maq_node_group *g = &c->groups[i];
        maq_buf_addf(&b, "%s%s:%d x %d", i > 0 ? " + " : "", g->device.name, (int)g->devices_per_node, (int)g->nodes);
    }
    c->name = b.ptr && !b.failed ? maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len}) : NULL;
    maq_buf_fini(&b);
    return c->name ? MAQ_OK : maq_no_memory(diag, NULL);
}

enum maq_status maq__cluster_finish(struct maq_cluster *c, struct maq_span at, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    uint64_t devices = 0;
    int64_t nodes = 0;
    for (uint32_t i = 0; i < c->n_groups; i++) {
        c->groups[i].first_rank = (uint32_t)devices;
        devices += (uint64_t)c->groups[i].nodes * (uint64_t)c->groups[i].devices_per_node;
        nodes += c->groups[i].nodes;
        if (devices > MAQ_MAX_DEVICES)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_SIZE, at, NULL,
                                 "the cluster has more than %d devices, the most that maquette counts",
                                 MAQ_MAX_DEVICES);
    }
    for (uint32_t i = 0; i < c->n_groups; i++)
        if (nodes > 1 && !(c->groups[i].fabric.nic_bps > 0))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_NO_FABRIC, at, "name one, for example `ib-ndr`",
                                 "device '%s' has no usual network, and %d nodes need one", c->groups[i].device.name,
                                 (int)nodes);
    c->devices = (uint32_t)devices;
    if (!(c->oversubscription >= 1))
        c->oversubscription = 1;
    return c->name ? MAQ_OK : name_cluster(c, arena, diag);
}

enum maq_status maq__cluster_range_error(struct maq_span at, const char *what, int lo, int hi, struct maq_str text,
                                         struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_RANGE, at, NULL, "%s must be %d to %d, not %s", what, lo,
                         hi, maq_str_show(show, text));
}
