/*
 * fabric.c - an inter-node network from the catalogue or from a map, and what catalogues have in common.
 *
 * A fabric's name is its kind and a generation: "ib-ndr", "roce-400". A kind and a line rate ("roce", 400 Gb/s)
 * therefore find an entry: the one of that rate, or the nearest one run at the rate asked for (its latency and
 * efficiency stay).
 */
#include "cluster/cluster_internal.h"

#include <math.h>

#include "base/text.h"
#include "spec/catalogue.h"
#include "spec/field.h"

#define MAX_BASE_DEPTH 8
#define NAMES_MAX_BYTES 8192

struct fabric_reader {
    struct maq_fabric f;
    struct maq_str name, title, source;
    struct maq_node *base, *aliases;
};

#define ROW(kind_, member_, key_, ...) kind_(struct fabric_reader, member_, key_, __VA_ARGS__)

static const struct maq_field fabric_fields[] = {
    ROW(MAQ_FIELD_NODE, base, "base", .doc = "catalogue name of the fabric to start from"),
    ROW(MAQ_FIELD_STR, name, "name", .doc = "name in reports"),
    ROW(MAQ_FIELD_NODE, aliases, "aliases", .doc = "other names in the catalogue"),
    ROW(MAQ_FIELD_STR, title, "title", .doc = "full name"),
    ROW(MAQ_FIELD_STR, source, "source", .doc = "where the figures come from"),
    MAQ_FIELD_QTY(struct fabric_reader, f.nic_bps, "rate", MAQ_DIM_RATE, .min = MAQ_MIN_LINK_BPS,
                  .max = MAQ_MAX_LINK_BPS, .doc = "line rate of one port, per direction"),
    MAQ_FIELD_QTY(struct fabric_reader, f.latency_s, "latency", MAQ_DIM_TIME, .min = 1e-8, .max = 1,
                  .doc = "one message between two nodes, software included"),
    ROW(MAQ_FIELD_DOUBLE, f.efficiency, "efficiency", .min = 0.01, .max = 1,
        .doc = "achievable share of the line rate for large messages"),
    ROW(MAQ_FIELD_BOOL, f.in_network_reduction, "in_network_reduction", .doc = "switches can reduce (SHARP)"),
    ROW(MAQ_FIELD_DOUBLE, f.nics_per_device, "nics_per_device", .min = 0.01, .max = 64,
        .doc = "usual ports per device"),
    MAQ_FIELD_END};

static enum maq_status load_any(struct maq_fabric *out, struct maq_node *node, int depth, struct maq_arena *arena,
                                struct maq_diag *diag);

static enum maq_status keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag)
{
    if (s.len == 0)
        return MAQ_OK;
    const char *copy = maq_arena_strdup(arena, s);
    if (!copy)
        return maq__cluster_no_memory(diag);
    *out = copy;
    return MAQ_OK;
}

static enum maq_status read_map(struct maq_fabric *out, struct maq_node *map, int depth, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct fabric_reader r = {.f = *out};
    struct maq_node *base = maq_node_get(map, "base");
    if (base)
        MAQ_TRY(load_any(&r.f, base, depth + 1, arena, diag));
    enum maq_status status = maq_fields_read(&r, fabric_fields, map, NULL, arena, diag);
    enum maq_status keys = maq_fields_check_keys(fabric_fields, NULL, map, "fabric", diag);
    if (r.aliases)
        maq_node_use_all(r.aliases);
    MAQ_TRY(status);
    MAQ_TRY(keys);
    MAQ_TRY(keep(&r.f.name, r.name, arena, diag));
    MAQ_TRY(keep(&r.f.title, r.title, arena, diag));
    MAQ_TRY(keep(&r.f.source, r.source, arena, diag));
    *out = r.f;
    return MAQ_OK;
}

static enum maq_status read_document(struct maq_fabric *out, struct maq_doc *doc, struct maq_span at, int depth,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, doc->root ? doc->root->at : at, NULL,
                             "a fabric file must hold a map");
    return read_map(out, doc->root, depth, arena, diag);
}

static enum maq_status load_entry(struct maq_fabric *out, const struct maq_catalogue_entry *entry, int depth,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_fabric f = {.name = entry->name};
    struct maq_doc doc;
    enum maq_status status =
        maq_doc_parse(&doc, entry->name, (struct maq_str){entry->text, entry->len}, MAQ_ORIGIN_CATALOGUE, diag);
    if (status == MAQ_OK)
        status = read_document(&f, &doc, (struct maq_span){0}, depth, arena, diag);
    maq_doc_fini(&doc);
    MAQ_TRY(status);
    f.name = entry->name; /* not that of a base */
    *out = f;
    return MAQ_OK;
}

static enum maq_status load_catalogue(struct maq_fabric *out, struct maq_str name, struct maq_span at, int depth,
                                      struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_catalogue_entry *entry = maq_catalogue_find("fabrics", name);
    if (entry)
        return load_entry(out, entry, depth, arena, diag);
    char show[MAQ_SHOW_SIZE];
    const char *hint = maq__catalogue_hint("fabrics", name, arena);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_UNKNOWN_FABRIC, at, hint, "unknown fabric '%s'",
                         maq_str_show(show, name));
}

static enum maq_status load_file(struct maq_fabric *out, struct maq_str path, struct maq_span at, int depth,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    const char *cpath = maq_arena_strdup(arena, path);
    if (!cpath)
        return maq__cluster_no_memory(diag);
    struct maq_fabric f = {.name = cpath};
    struct maq_doc doc;
    enum maq_status status = maq_doc_load(&doc, cpath, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = read_document(&f, &doc, at, depth, arena, diag);
    maq_doc_fini(&doc);
    MAQ_TRY(status);
    *out = f;
    return MAQ_OK;
}

static enum maq_status load_any(struct maq_fabric *out, struct maq_node *node, int depth, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    node->used = true;
    if (depth > MAX_BASE_DEPTH)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_BASE_DEPTH, node->at, "`base` may not lead back to itself",
                             "more than %d fabrics in a chain of `base`", MAX_BASE_DEPTH);
    if (node->kind == MAQ_NODE_SEQ)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, node->at, NULL,
                             "a fabric is a catalogue name, a file, or a map, not a list");
    if (node->kind == MAQ_NODE_MAP)
        return read_map(out, node, depth, arena, diag);
    if (maq__is_document_path(node->text))
        return load_file(out, node->text, node->at, depth, arena, diag);
    return load_catalogue(out, node->text, node->at, depth, arena, diag);
}

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
    MAQ_TRY(load_any(&f, node, 0, arena, diag));
    MAQ_TRY(check(&f, node->at, diag));
    *out = f;
    return MAQ_OK;
}

enum maq_status maq__fabric_by_name(struct maq_fabric *out, struct maq_str name, struct maq_span at,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_fabric f = {0};
    MAQ_TRY(load_catalogue(&f, name, at, 0, arena, diag));
    MAQ_TRY(check(&f, at, diag));
    *out = f;
    return MAQ_OK;
}

/* Whether entry `name` is "<kind>-something". */
static bool of_kind(const char *name, struct maq_str kind)
{
    struct maq_str n = maq_str_of(name);
    if (kind.len == 0 || n.len <= kind.len + 1 || n.ptr[kind.len] != '-')
        return false;
    for (size_t i = 0; i < kind.len; i++) {
        char c = kind.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != n.ptr[i])
            return false;
    }
    return true;
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
        MAQ_TRY(load_entry(&f, e, 0, arena, diag));
        MAQ_TRY(check(&f, (struct maq_span){0}, diag));
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

const char *maq__catalogue_names(const char *section, struct maq_arena *arena)
{
    struct maq_buf b;
    maq_buf_init(&b, NAMES_MAX_BYTES);
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at(section, i)) != NULL; i++)
        maq_buf_addf(&b, "%s%s", i > 0 ? ", " : "", e->name);
    const char *names = b.ptr && !b.failed ? maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len}) : NULL;
    maq_buf_fini(&b);
    return names ? names : "";
}

const char *maq__catalogue_hint(const char *section, struct maq_str name, struct maq_arena *arena)
{
    const char *near = maq_catalogue_nearest(section, name);
    return near ? maq_arena_printf(arena, "did you mean '%s'?", near)
                : maq_arena_printf(arena, "known %s: %s", section, maq__catalogue_names(section, arena));
}

static bool ends_with(struct maq_str s, const char *tail)
{
    struct maq_str t = maq_str_of(tail);
    return s.len > t.len && maq_str_ieq((struct maq_str){s.ptr + s.len - t.len, t.len}, tail);
}

bool maq__is_document_path(struct maq_str text)
{
    return ends_with(text, ".yaml") || ends_with(text, ".yml") || ends_with(text, ".json");
}
