/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_members.c - members of a fleet out of a job: what each is, and its job as the document's with its own settings over it. */
#include "plan/fleet_members.h"

#include "base/check.h"
#include "base/str.h"
#include "plan/codes.h"
#include "plan/keys.h"
#include "spec/field.h"

#define MOST_MEMBERS 256u

struct member_doc {
    int32_t replicas, role;
    double weight;
    struct maq_node *cluster, *plan, *serve;
};

static const char *const roles[] = {"both", "prefill", "decode", NULL};

#define ROW(kind_, member_, key_, ...) kind_(struct member_doc, member_, key_, __VA_ARGS__)
static const struct maq_field member_fields[] = {
    ROW(MAQ_FIELD_I32, replicas, "replicas", .def = "1", .min = 1, .max = 65536, .doc = "so many of it"),
    ROW(MAQ_FIELD_DOUBLE, weight, "weight", .min = 1e-6, .max = 1e6,
        .doc = "of each, for routers that count requests or tokens: they divide by it"),
    ROW(MAQ_FIELD_ENUM, role, "role", roles, .doc = "prefill, decode, or both"),
    ROW(MAQ_FIELD_NODE, cluster, "cluster", .doc = "of its own, in place of the document's"),
    ROW(MAQ_FIELD_NODE, plan, "plan", .doc = "degrees of one replica"),
    ROW(MAQ_FIELD_NODE, serve, "serve", .doc = "its engine and limits, as options of maquette serve"),
    MAQ_FIELD_END};

/* ---- what they are ---- */

enum maq_status maq_fleet_members_read(struct maq_job_member **out, uint32_t *n, struct maq_node *fleet,
                                       struct maq_arena *arena, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    fleet->used = true;
    if (fleet->kind != MAQ_NODE_SEQ || fleet->count == 0 || fleet->count > MOST_MEMBERS)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_JOB_FLEET, fleet->at,
                             "fleet: [{replicas: 2, cluster: h100-sxm:8}, {replicas: 3, cluster: a100-80gb:8}]",
                             "a fleet is a list of 1 to %u members", MOST_MEMBERS);
    *out = MAQ_ARENA_NEW(arena, struct maq_job_member, fleet->count);
    if (!*out)
        return maq_no_memory(diag, "a fleet");
    for (struct maq_node *item = fleet->first; item; item = item->next) {
        struct member_doc doc = {.role = 0};
        item->used = true;
        if (item->kind != MAQ_NODE_MAP) {
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_JOB_FLEET, item->at,
                                   "{replicas: 2, cluster: h100-sxm:8}", "a member of a fleet is a map");
            continue;
        }
        enum maq_status one = maq_fields_read_map(&doc, member_fields, item, "member of a fleet", arena, diag);
        status = one != MAQ_OK ? one : status;
        maq_node_use_all(item); /* what is laid over the document is read there */
        (*out)[(*n)++] = (struct maq_job_member){.replicas = (uint32_t)doc.replicas,
                                                 .weight = doc.weight,
                                                 .role = doc.role,
                                                 .own_cluster = doc.cluster != NULL,
                                                 .at = item->at,
                                                 .serve = doc.serve};
    }
    return status;
}

/* ---- their jobs ---- */

/* Two keys mean the same: an option with - or _, a setting of the plan by any of its names. */
static bool is_same_key(struct maq_str a, struct maq_str b, bool plan)
{
    const struct maq_field *f = plan ? maq_fields_find(maq_plan_fields, a) : NULL;
    if (f)
        return maq_fields_find(maq_plan_fields, b) == f;
    for (size_t i = 0; i < a.len && i < b.len; i++)
        if (a.ptr[i] != b.ptr[i] && !((a.ptr[i] == '-' || a.ptr[i] == '_') && (b.ptr[i] == '-' || b.ptr[i] == '_')))
            return false;
    return a.len == b.len;
}

static bool has(const struct maq_node *map, struct maq_str key, bool plan)
{
    for (const struct maq_node *n = map->first; n; n = n->next)
        if (is_same_key(n->key, key, plan))
            return true;
    return false;
}

/* A copy of a node, which may have other siblings; what is below it is shared. */
static struct maq_node *copy_of(struct maq_doc *doc, const struct maq_node *node)
{
    struct maq_node *copy = MAQ_ARENA_NEW(&doc->arena, struct maq_node, 1);
    if (copy)
        *copy = *node;
    return copy;
}

/* A section of the document becomes the member's, and behind it what the document says besides. */
static bool lay_section(struct maq_doc *doc, struct maq_node *to, const struct maq_node *own, bool plan)
{
    struct maq_node base = *to, *last = NULL;
    to->at = own->at;
    to->kind = own->kind;
    to->text = own->text;
    to->first = NULL;
    to->count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (const struct maq_node *n = pass == 0 ? own->first : base.first; n; n = n->next) {
            if (pass == 1 && (own->kind != MAQ_NODE_MAP || base.kind != MAQ_NODE_MAP || has(own, n->key, plan)))
                continue;
            struct maq_node *copy = copy_of(doc, n);
            if (!copy)
                return false;
            copy->next = NULL;
            *(last ? &last->next : &to->first) = copy;
            last = copy;
            to->count++;
        }
    return true;
}

static bool lay_key(struct maq_doc *doc, const struct maq_node *own, const char *key)
{
    const struct maq_node *value = maq_node_peek(own, key);
    struct maq_node *there = maq_node_peek(doc->root, key);
    bool plan = maq_str_is(maq_str_of(key), "plan"), whole = maq_str_is(maq_str_of(key), "cluster");
    if (!value)
        return true;
    if (there && !whole)
        return lay_section(doc, there, value, plan);
    struct maq_node *copy = copy_of(doc, value);
    if (!copy)
        return false;
    if (there) {
        copy->next = there->next;
        *there = *copy;
        return true;
    }
    copy->next = doc->root->first;
    doc->root->first = copy;
    doc->root->count++;
    return true;
}

enum maq_status maq_fleet_member_lay(struct maq_doc *doc, uint32_t member, struct maq_diag *diag)
{
    static const char *const keys[] = {"cluster", "plan", "serve"};
    const struct maq_node *fleet = doc->root ? maq_node_peek(doc->root, "fleet") : NULL,
                          *own = fleet && fleet->kind == MAQ_NODE_SEQ ? fleet->first : NULL;
    for (; own && member > 0; member--)
        own = own->next;
    if (!own || own->kind != MAQ_NODE_MAP)
        return MAQ_OK;
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (!lay_key(doc, own, keys[i]))
            return maq_no_memory(diag, "a fleet");
    return MAQ_OK;
}
