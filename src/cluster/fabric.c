/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric.c - an inter-node network from the catalogue or from a map.
 *
 * A fabric's name is its kind and a generation: "ib-ndr", "roce-400". A kind and a line rate ("roce", 400 Gb/s)
 * therefore find an entry: the one of that rate, or the nearest one run at the rate asked for (its latency and
 * efficiency stay).
 */
#include "cluster/catalogue_entry.h"
#include "spec/unverified.h"

#include <math.h>

#include "base/check.h"
#include "spec/catalogue.h"
#include "spec/field.h"

static const char *const transport_names[] = {"verbs", "efa", "cxi", "cxi_sw", "sockets", "ena", NULL};
_Static_assert(MAQ_COUNT(transport_names) == MAQ_TRANSPORT_COUNT + 1, "a name per transport");

const char *maq_transport_name(enum maq_transport transport)
{
    return (unsigned)transport < MAQ_TRANSPORT_COUNT ? transport_names[transport] : "unknown";
}

struct fabric_reader {
    struct maq_fabric f;
    struct maq__entry_head head;
};

#define ROW(kind_, member_, key_, ...) kind_(struct fabric_reader, member_, key_, __VA_ARGS__)

static const struct maq_field fabric_fields[] = {
    MAQ_ENTRY_HEAD(struct fabric_reader, head, "catalogue name of the fabric to start from", "full name",
                   "where the figures come from"),
    MAQ_FIELD_QTY(struct fabric_reader, f.nic_bps, "rate", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS,
                  .max = MAQ_MAX_LINK_BPS, .doc = "line rate of one port, per direction"),
    MAQ_FIELD_QTY(struct fabric_reader, f.latency_s, "latency", MAQ_DIM_TIME, .min = 1e-8, .max = 1,
                  .doc = "one message between two nodes, software included"),
    ROW(MAQ_FIELD_DOUBLE, f.efficiency, "efficiency", .min = 0.01, .max = 1,
        .doc = "achievable share of the line rate for large messages"),
    ROW(MAQ_FIELD_BOOL, f.in_network_reduction, "in_network_reduction", .doc = "switches can reduce (SHARP)"),
    ROW(MAQ_FIELD_DOUBLE, f.nics_per_device, "nics_per_device", .min = 0.01, .max = 64,
        .doc = "usual ports per device"),
    MAQ_FIELD_ENUM(struct fabric_reader, f.transport, "transport", transport_names,
                   .doc = "what NCCL reaches the network through"),
    MAQ_FIELD_END};

static enum maq_status lay(void *value, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_fabric *out = value;
    struct fabric_reader r = {.f = *out};
    MAQ_TRY(maq__entry_read(&r, &r.head, fabric_fields, "fabric", map, arena, diag));
    MAQ_TRY(maq_unverified_read(&r.f.unverified, map, NULL, "fabric", arena, diag));
    MAQ_TRY(maq__entry_keep_head(&r.f.name, &r.f.title, &r.f.source, &r.head, arena, diag));
    *out = r.f;
    return MAQ_OK;
}

static const struct maq__entry_kind fabric_kind = {
    .section = "fabrics", .noun = "fabric", .unknown_code = MAQ_CODE_UNKNOWN_FABRIC, .lay = lay};

static enum maq_status check(struct maq_fabric *f, struct maq_span at, struct maq_diag *diag)
{
    if (!f->name)
        f->name = "fabric";
    if (!f->title)
        f->title = f->name;
    if (!f->source)
        f->source = "";
    if (!(f->nics_per_device > 0))
        f->nics_per_device = 1;
    const char *lacks = !(f->nic_bps > 0)      ? "rate"
                        : !(f->latency_s > 0)  ? "latency"
                        : !(f->efficiency > 0) ? "efficiency"
                                               : NULL;
    if (!lacks)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_FABRIC_LACKS, at,
                         "rate, latency and efficiency are needed: give them, or start from a catalogue entry with "
                         "`base: NAME`",
                         "fabric '%s' lacks its %s", f->name, lacks);
}

enum maq_status maq_fabric_load(struct maq_fabric *out, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_fabric f = {0};
    MAQ_TRY(maq__entry_load((struct maq__entry){&fabric_kind, &f, &f.name}, node, arena, diag));
    MAQ_TRY(check(&f, node->at, diag));
    *out = f;
    return MAQ_OK;
}

enum maq_status maq__fabric_by_name(struct maq_fabric *out, struct maq_str name, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_fabric f = {0};
    MAQ_TRY(maq__entry_by_name((struct maq__entry){&fabric_kind, &f, &f.name}, name, at, arena, diag));
    MAQ_TRY(check(&f, at, diag));
    *out = f;
    return MAQ_OK;
}

/* Whether entry `name` is "<kind>-something". */
static bool of_kind(const char *name, struct maq_str kind)
{
    struct maq_str n = maq_str_of(name);
    return kind.len > 0 && n.len > kind.len + 1 && n.ptr[kind.len] == '-' &&
           maq_str_same(kind, (struct maq_str){n.ptr, kind.len});
}

bool maq__fabric_is_kind(struct maq_str name)
{
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at("fabrics", i)) != NULL; i++)
        if (of_kind(e->name, name))
            return true;
    return false;
}

enum maq_status maq__fabric_of_kind(struct maq_fabric *out, struct maq_str kind, double bps, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    struct maq_fabric best = {0};
    double best_distance = HUGE_VAL;
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at("fabrics", i)) != NULL; i++) {
        if (!of_kind(e->name, kind))
            continue;
        struct maq_fabric f = {0};
        MAQ_TRY(maq__fabric_by_name(&f, maq_str_of(e->name), (struct maq_span){0}, arena, diag));
        double distance = fabs(log(f.nic_bps / bps));
        if (distance < best_distance) {
            best = f;
            best_distance = distance;
        }
    }
    MAQ_ASSERT(best.name != NULL);
    *out = best;
    return MAQ_OK;
}
