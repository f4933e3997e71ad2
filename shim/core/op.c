/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - operators: equal launches are one operator, recorded and priced once.
 *
 * In a CUDA program: a kernel with its launch shape, or an operator of a library with its sizes; and whose program it is, where code of an
 * engine that serves is loaded.
 */
#include "shim/core/core.h"

#include <stdlib.h>
#include <string.h>

#include "shim/grow.h"

struct op {
    struct maq_rec_op what;
    char *name;
    int64_t ns;
    uint64_t hash;
};
static struct op *ops;
static uint32_t n_ops, ops_room;
static uint32_t *slots; /* 1 + id; open addressing, a power of two of them */
static uint32_t n_slots;

/* Eight bytes at a time: an operator is hashed at every launch. */
static uint64_t hash_of(const struct maq_rec_op *what, const char *name)
{
    uint64_t hash = 0, word;
    const unsigned char *at = (const unsigned char *)what;
    for (size_t i = 0; i < sizeof *what; i += 8) {
        memcpy(&word, at + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    size_t n = what->name_bytes, i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, name + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (; i < n; i++)
        hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
    return maq_rec_mix(hash, n);
}

static bool room(void)
{
    struct op *longer = vg_grown(ops, n_ops, &ops_room, 128, sizeof *ops);
    if (longer == NULL)
        return false;
    ops = longer;
    if (n_ops * 2 < n_slots)
        return true;
    uint32_t more = n_slots == 0 ? 256 : n_slots * 2;
    uint32_t *bigger = calloc(more, sizeof *bigger);
    if (bigger == NULL)
        return false;
    for (uint32_t id = 0; id < n_ops; id++) {
        uint32_t at = (uint32_t)ops[id].hash & (more - 1);
        while (bigger[at] != 0)
            at = (at + 1) & (more - 1);
        bigger[at] = id + 1;
    }
    free(slots);
    slots = bigger;
    n_slots = more;
    return true;
}

static bool same(const struct op *op, const struct maq_rec_op *what, const char *name, uint64_t hash)
{
    return op->hash == hash && memcmp(&op->what, what, sizeof *what) == 0 &&
           memcmp(op->name, name, what->name_bytes) == 0;
}

/* The payload of DEF_OP: the operator and its name in one piece. */
static void define(uint32_t id)
{
    const struct op *op = &ops[id];
    size_t bytes = sizeof op->what + op->what.name_bytes;
    unsigned char *payload = malloc(bytes);
    if (payload == NULL)
        return;
    memcpy(payload, &op->what, sizeof op->what);
    memcpy(payload + sizeof op->what, op->name, op->what.name_bytes);
    vg_record((struct maq_rec){.kind = MAQ_REC_DEF_OP, .stream = MAQ_REC_HOST_STREAM, .id = id, .bytes = bytes},
              payload);
    free(payload);
}

static enum maq_rec_engine engine;

void vg_engine_is(enum maq_rec_engine e)
{
    if (engine == MAQ_REC_NO_ENGINE)
        engine = e;
}

uint32_t vg_op(const struct maq_rec_op *given, const char *name)
{
    struct maq_rec_op what = *given;
    what.name_bytes = (uint32_t)strnlen(name, 4096);
    what.flags |= (uint32_t)engine << MAQ_REC_ENGINE_SHIFT;
    uint64_t hash = hash_of(&what, name);
    vg_lock();
    uint32_t id = 0; /* out of host memory: the first operator stands for it */
    if (room()) {
        uint32_t at = (uint32_t)hash & (n_slots - 1);
        while (slots[at] != 0 && !same(&ops[slots[at] - 1], &what, name, hash))
            at = (at + 1) & (n_slots - 1);
        if (slots[at] == 0 && (ops[n_ops].name = strndup(name, what.name_bytes)) != NULL) {
            struct op *op = &ops[n_ops];
            *op =
                (struct op){.what = what, .name = op->name, .ns = vg_duration_query_op(&what, op->name), .hash = hash};
            slots[at] = ++n_ops;
            define(n_ops - 1);
        }
        id = slots[at] != 0 ? slots[at] - 1 : 0;
    }
    vg_unlock();
    return id;
}

int64_t vg_op_ns(uint32_t op)
{
    vg_lock();
    int64_t ns = op < n_ops ? ops[op].ns : 0;
    vg_unlock();
    return ns;
}
