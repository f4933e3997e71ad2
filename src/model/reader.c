/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - looking keys up in the maps a model comes from, strongest last.
 */
#include "model/reader.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"

#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 128 };

/* Looks for one key in all maps, strongest first. */
static struct maq_node *find_key(struct maq_model_reader *r, struct maq_str key)
{
    char name[KEY_MAX];
    MAQ_ASSERT(key.len < sizeof(name));
    memcpy(name, key.ptr, key.len);
    name[key.len] = '\0';
    for (uint32_t i = r->n_maps; i-- > 0;) {
        struct maq_node *node = maq_node_get(r->maps[i], name);
        if (node)
            return node;
    }
    return NULL;
}

struct maq_node *maq__reader_find(struct maq_model_reader *r, const char *keys)
{
    struct maq_str rest = maq_str_of(keys);
    while (rest.ptr && rest.len) {
        struct maq_str key;
        rest = maq_str_split(rest, '|', &key);
        struct maq_node *node = find_key(r, key);
        if (node)
            return node;
    }
    return NULL;
}

struct maq_span maq__reader_at(struct maq_model_reader *r, const char *keys)
{
    struct maq_node *node = keys ? maq__reader_find(r, keys) : NULL;
    return node ? node->at : r->at;
}

void maq__reader_fields(struct maq_model_reader *r, void *target, const struct maq_field *fields)
{
    for (uint32_t i = 0; i < r->n_maps; i++)
        if (maq_fields_read(target, fields, r->maps[i], NULL, r->arena, r->diag) != MAQ_OK)
            r->bad = true;
}

void maq__reader_error(struct maq_model_reader *r, uint16_t code, const char *keys, const char *hint, const char *fmt,
                       ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    maq_diag_add(r->diag, MAQ_ERROR, code, maq__reader_at(r, keys), hint, "%s", text);
    r->bad = true;
}

bool maq__reader_needs(struct maq_model_reader *r, bool there, const char *key)
{
    if (there)
        return true;
    const char *hint = maq_arena_printf(r->arena, "give it beside the others, or --set model.%s=...", key);
    maq__reader_error(r, MAQ_CODE_MODEL_MISSING, NULL, hint, "the model has no %s", key);
    return false;
}

int64_t *maq__reader_i64_list(struct maq_model_reader *r, struct maq_node *node, uint32_t *n)
{
    *n = 0;
    if (node->kind != MAQ_NODE_SEQ) {
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_MODEL_LAYER_LIST, node->at, NULL, "'%.*s' must be a list of integers",
                     (int)node->key.len, node->key.ptr);
        r->bad = true;
        return NULL;
    }
    int64_t *list = MAQ_ARENA_NEW(r->arena, int64_t, node->count);
    if (!list) {
        maq__reader_error(r, MAQ_CODE_MODEL_NO_MEMORY, NULL, NULL, "no memory for a list");
        return NULL;
    }
    for (struct maq_node *c = node->first; c; c = c->next) {
        c->used = true;
        if (!maq_node_i64(&list[(*n)++], c, r->diag))
            r->bad = true;
    }
    return list;
}

void maq__reader_expert_groups(struct maq_model_reader *r, int64_t experts, int64_t topk, int64_t groups,
                               int64_t group_topk, const char *groups_keys, const char *topk_keys)
{
    if (groups <= 1 || group_topk <= 0 || experts <= 0)
        return;
    if (MAQ_READER_CHECK(r, experts % groups == 0, MAQ_CODE_MODEL_TOPK, groups_keys, NULL,
                         "%" PRId64 " experts cannot lie in %" PRId64 " equal groups", experts, groups) &&
        MAQ_READER_CHECK(r, group_topk <= groups, MAQ_CODE_MODEL_TOPK, topk_keys, NULL,
                         "a token's experts cannot lie in %" PRId64 " of %" PRId64 " groups", group_topk, groups))
        MAQ_READER_CHECK(r, topk <= experts / groups * group_topk, MAQ_CODE_MODEL_TOPK, topk_keys, NULL,
                         "a token cannot go to %" PRId64 " experts where only %" PRId64 " groups of %" PRId64
                         " are open to it",
                         topk, group_topk, experts / groups);
}
