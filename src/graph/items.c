/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.c - interns operators and collectives by the bytes of their values (zero-padded, see cost.h) and prices new
 * ones; also the expected slowest of n devices, which lengthens matrix kernels. See items.h.
 */
#include "graph/items.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/stat/maximum.h"

_Static_assert(sizeof(struct maq_op) % 8 == 0, "hashed by words");
_Static_assert(sizeof(struct maq_coll) % 8 == 0, "hashed by words");

/*
 * Devices of one kind differ by 1.12 % (coefficient of variation), from a BERT training on 136 V100 (hal-uw/blox-pal, the data of
 * "Not All GPUs Are Created Equal", SC22): the medians of its iterations differ by 0.79 %, but by 0.08 % inside a node, whose four
 * devices ran one synchronous job. So 0.79 % is the deviation of the slowest of four, 0.701 of that of one. (Bare matrix products,
 * each device by itself: 1.99 % over 392.) Every step of a synchronous job waits for its slowest device, so matrix kernels, which
 * the clock bounds, take as long as on the slowest of N:
 *
 *   pace = 1 + spread E[N],  E[N] = quantile((N - 0.375) / (N + 0.25)) of the normal distribution (Blom 1958)
 */
#define DEVICE_SPREAD 0.0112

bool maq_item_is_paced(const struct maq_item *it)
{
    return !it->is_coll && (it->op.kind == MAQ_OP_GEMM || it->op.kind == MAQ_OP_GROUPED_GEMM ||
                            it->op.kind == MAQ_OP_ATTENTION || it->op.kind == MAQ_OP_ATTENTION_BWD);
}

static uint64_t hash_item(const struct maq_item *it)
{
    return it->is_coll ? ~maq_hash_words(&it->coll, sizeof it->coll) + it->stream * 0x9e3779b97f4a7c15u
                       : maq_hash_words(&it->op, sizeof it->op) + it->group * 0x9e3779b97f4a7c15u;
}

static bool same(const struct maq_item *a, const struct maq_item *b)
{
    if (a->is_coll != b->is_coll || a->group != b->group || a->stream != b->stream)
        return false;
    return a->is_coll ? memcmp(&a->coll, &b->coll, sizeof a->coll) == 0 : memcmp(&a->op, &b->op, sizeof a->op) == 0;
}

/* The slot that holds the item, or the free one where it belongs. Hashes are compared first: items are cold memory. */
static struct maq_items_slot *slot_of(const struct maq_items *items, const struct maq_item *it, uint32_t hash)
{
    uint32_t mask = items->table_size - 1, i = hash & mask;
    for (; items->table[i].id1 != 0; i = (i + 1) & mask)
        if (items->table[i].hash == hash && same(&items->at[items->table[i].id1 - 1], it))
            break;
    return &items->table[i];
}

static bool grow(struct maq_items *items)
{
    uint32_t size = items->size ? items->size * 2 : 64, old_size = items->table_size;
    struct maq_item *at = MAQ_ARENA_NEW(items->arena, struct maq_item, size);
    struct maq_items_slot *old = items->table,
                          *table = MAQ_ARENA_NEW(items->arena, struct maq_items_slot, (size_t)size * 2);
    if (!at || !table) {
        items->failed = true;
        return false;
    }
    if (items->n > 0)
        memcpy(at, items->at, items->n * sizeof *at);
    items->at = at;
    items->size = size;
    items->table = table;
    items->table_size = size * 2;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].id1 != 0)
            *slot_of(items, &at[old[i].id1 - 1], old[i].hash) = old[i];
    return true;
}

static uint32_t intern(struct maq_items *items, struct maq_item *it)
{
    if (items->failed || (items->n == items->size && !grow(items)))
        return 0;
    uint32_t hash = (uint32_t)hash_item(it);
    struct maq_items_slot *slot = slot_of(items, it, hash);
    if (slot->id1 == 0) {
        it->cost = it->is_coll ? maq_cost_coll(items->costs, &it->coll, items->cluster)
                               : maq_cost_op(items->costs, &it->op, items->device);
        MAQ_ASSERT(it->cost.seconds >= 0 && it->cost.seconds < 1e9);
        const struct maq_slowdown *slowdown = items->slowdown;
        double longer = slowdown && slowdown->applies(it, slowdown->to) ? slowdown->factor : 1.0;
        it->dur_ns = nearbyint(it->cost.seconds * (maq_item_is_paced(it) ? items->pace : 1.0) * longer * 1e9);
        items->at[items->n++] = *it;
        *slot = (struct maq_items_slot){hash, items->n};
    }
    return slot->id1 - 1;
}

void maq_items_init(struct maq_items *items, const struct maq_cluster *cluster, const struct maq_costs *costs,
                    struct maq_arena *arena)
{
    *items = (struct maq_items){.cluster = cluster, .costs = costs, .arena = arena};
    items->pace = 1 + DEVICE_SPREAD * maq_expected_maximum(cluster->devices);
    maq_items_select(items, 0);
    struct maq_op none = {.kind = MAQ_OP_NONE};
    maq_items_op(items, &none);
}

void maq_items_select(struct maq_items *items, uint16_t group)
{
    items->group = group;
    items->device = &items->cluster->groups[group].device;
}

uint32_t maq_items_op(struct maq_items *items, const struct maq_op *op)
{
    struct maq_item it;
    memset(&it, 0, sizeof it);
    it.op = *op;
    it.group = op->kind == MAQ_OP_NONE ? 0 : items->group;
    return intern(items, &it);
}

uint32_t maq_items_coll(struct maq_items *items, const struct maq_coll *coll, enum maq_stream stream)
{
    if (coll->at.size <= 1 || coll->bytes <= 0)
        return 0;
    struct maq_item it;
    memset(&it, 0, sizeof it);
    it.is_coll = true;
    it.stream = (uint8_t)stream;
    it.coll.kind = coll->kind;
    it.coll.sharers = coll->sharers;
    it.coll.flags = coll->flags;
    it.coll.bytes = coll->bytes;
    it.coll.far_bytes = coll->far_bytes;
    it.coll.rows = coll->rows;
    it.coll.row_bytes = coll->row_bytes;
    it.coll.at.size = coll->at.size; /* member by member: padding stays zero */
    it.coll.at.per_domain = coll->at.per_domain;
    it.coll.at.domains = coll->at.domains;
    it.coll.at.per_node = coll->at.per_node;
    it.coll.at.crosses_switch = coll->at.crosses_switch;
    it.coll.at.group = coll->at.group;
    return intern(items, &it);
}

uint16_t maq_items_name(struct maq_items *items, const char *name)
{
    for (uint16_t i = 0; name && i < items->n_names; i++) /* nearly always the same literal */
        if (items->names[i] == name)
            return i;
    for (uint16_t i = 0; name && i < items->n_names; i++)
        if (strcmp(items->names[i], name) == 0)
            return i;
    if (!name || items->n_names == sizeof items->names / sizeof items->names[0])
        return UINT16_MAX;
    items->names[items->n_names] = name;
    return items->n_names++;
}
