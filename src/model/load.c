/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - from what a job has under `model:` to a model.
 *
 * Gathers the maps a model is described by, weakest first, chooses the family, and lets it read. Documents opened on
 * the way (catalogue entries, a config.json) live until the model is built; nothing of the model points into them.
 */
#include "model/load.h"

#include "base/check.h"
#include "base/str.h"
#include "model/codes.h"
#include "model/hf/config.h"
#include "model/hf/vision.h"
#include "spec/cannot_read.h"
#include "spec/catalogue.h"
#include "spec/unverified.h"

#include <sys/stat.h>

enum { DOCS = 8 };

struct load {
    struct maq_model_reader r;
    struct maq_doc docs[DOCS];
    uint32_t n_docs;
    const char *name, *source, *unverified;
    int depth;                        /* of `base` */
    struct maq_node *vision, *around; /* the strongest vision_config, and the map that it is in */
    bool vision_lenient;
};

#define BAD(l, code, at, hint, ...) maq_diag_fail(MAQ_BAD_INPUT, (l)->r.diag, code, at, hint, __VA_ARGS__)

static bool is_type(const char *types, struct maq_str type)
{
    struct maq_str rest = maq_str_of(types);
    while (rest.ptr && rest.len) {
        struct maq_str head;
        rest = maq_str_split(rest, '|', &head);
        if (maq_str_eq(head, type))
            return true;
    }
    return false;
}

static enum maq_status add_map(struct load *l, struct maq_node *map, bool lenient);

/* Adds what a catalogue entry describes. */
static enum maq_status add_catalogue(struct load *l, const struct maq_catalogue_entry *entry, struct maq_span at)
{
    if (l->n_docs == DOCS)
        return BAD(l, MAQ_CODE_MODEL_BASE, at, NULL, "too many bases, the last one '%s'", entry->name);
    const char *name = maq_arena_printf(l->r.arena, "catalogue:models/%s.yaml", entry->name);
    if (!name)
        return maq_diag_fail(MAQ_NO_MEMORY, l->r.diag, MAQ_CODE_MODEL_NO_MEMORY, at, NULL, "no memory for a model");
    struct maq_doc *doc = &l->docs[l->n_docs++];
    MAQ_TRY(maq_doc_parse(doc, name, (struct maq_str){entry->text, entry->len}, MAQ_ORIGIN_CATALOGUE, l->r.diag));
    l->name = entry->name;
    return add_map(l, doc->root, false);
}

static enum maq_status add_file(struct load *l, const char *path)
{
    struct stat st;
    if (l->n_docs == DOCS)
        return BAD(l, MAQ_CODE_MODEL_BASE, l->r.at, NULL, "too many bases, the last one '%s'", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        path = maq_arena_printf(l->r.arena, "%s/config.json", path);
    if (!path)
        return maq_diag_fail(MAQ_NO_MEMORY, l->r.diag, MAQ_CODE_MODEL_NO_MEMORY, l->r.at, NULL,
                             "no memory for a model");
    MAQ_TRY(maq_file_expected(path, "a model: its config.json or the folder with it, or YAML as in docs/models.md",
                              l->r.diag));
    struct maq_doc *doc = &l->docs[l->n_docs++];
    MAQ_TRY(maq_doc_load(doc, path, MAQ_ORIGIN_DOCUMENT, l->r.diag));
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return BAD(l, MAQ_CODE_MODEL_NOT_A_MAP, l->r.at, NULL, "'%s' does not hold a map", path);
    l->r.at = (struct maq_span){doc->root->at.file, doc->root->at.off, 1}; /* what it lacks, it lacks there */
    size_t n = maq_str_of(path).len;
    bool lenient = n >= 5 && maq_str_is((struct maq_str){path + n - 5, 5}, ".json");
    l->name = path;
    return add_map(l, doc->root, lenient);
}

/* A name of the catalogue, or a path. */
static enum maq_status add_named(struct load *l, struct maq_node *node)
{
    struct maq_str text = maq_str_trim(node->text);
    struct stat st;
    node->used = true;
    const struct maq_catalogue_entry *entry = maq_model_entry(text);
    const char *path = maq_arena_strdup(l->r.arena, text);
    if (!path)
        return maq_diag_fail(MAQ_NO_MEMORY, l->r.diag, MAQ_CODE_MODEL_NO_MEMORY, node->at, NULL,
                             "no memory for a model");
    bool is_path = text.len > 0 && stat(path, &st) == 0;
    if (entry && !(is_path && strchr(path, '/')))
        return add_catalogue(l, entry, node->at);
    if (is_path)
        return add_file(l, path);
    const char *slash = strrchr(path, '/'),
               *near = maq_catalogue_nearest("models", maq_str_of(slash ? slash + 1 : path));
    const char *hint = near ? maq_arena_printf(l->r.arena, "did you mean '%s'?", near)
                            : "give a catalogue name, a path to a config.json, or a map";
    return BAD(l, MAQ_CODE_MODEL_UNKNOWN_NAME, node->at, hint, "no model and no file is named '%.*s'", (int)text.len,
               text.ptr);
}

static const char *text_of(struct load *l, struct maq_node *map, const char *key, const char *otherwise)
{
    struct maq_node *node = maq_node_get(map, key);
    if (!node || node->kind != MAQ_NODE_SCALAR || node->text.len == 0)
        return otherwise;
    const char *copy = maq_arena_strdup(l->r.arena, node->text);
    return copy ? copy : otherwise;
}

static enum maq_status push(struct load *l, struct maq_node *map, bool lenient)
{
    if (l->r.n_maps == MAQ_READER_MAPS)
        return BAD(l, MAQ_CODE_MODEL_BASE, map->at, NULL, "too many bases");
    l->r.lenient[l->r.n_maps] = lenient;
    l->r.maps[l->r.n_maps++] = map;
    return MAQ_OK;
}

/* A vision tower is read when the text model is there; other encoders are not. */
static void note_encoders(struct load *l, struct maq_node *map, bool lenient)
{
    struct maq_node *inner = maq_node_get(map, "vision_config"), *audio = maq_node_peek(map, "audio_config");
    if (inner && inner->kind == MAQ_NODE_MAP) {
        l->vision = inner;
        l->around = map;
        l->vision_lenient = lenient;
    }
    if (audio)
        maq_diag_add(l->r.diag, MAQ_WARNING, MAQ_CODE_MODEL_TEXT_ONLY, audio->key_at, NULL,
                     "only the text model is modelled, not the audio encoder");
}

/* A map: a catalogue file (its `config` counts), or keys; below it its base, above it its text_config. */
static enum maq_status add_map(struct load *l, struct maq_node *map, bool lenient)
{
    static const char *const nested[] = {"text_config", "language_config", "llm_config", NULL};
    struct maq_node *inner, *entry = NULL;
    if (!map || map->kind != MAQ_NODE_MAP)
        return BAD(l, MAQ_CODE_MODEL_NOT_A_MAP, map ? map->at : l->r.at, NULL,
                   "a model must be a name, a path or a map");
    inner = maq_node_get(map, "config");
    if (inner && inner->kind == MAQ_NODE_MAP) {
        l->source = text_of(l, map, "source", l->source);
        for (struct maq_node *c = map->first; c; c = c->next)
            c->used = true;
        entry = map;
        map = inner;
    }
    struct maq_node *base = maq_node_get(map, "base");
    if (base) {
        if (++l->depth > 4)
            return BAD(l, MAQ_CODE_MODEL_BASE, base->at, NULL, "bases are nested too deeply");
        MAQ_TRY(base->kind == MAQ_NODE_SCALAR ? add_named(l, base) : add_map(l, base, false));
    }
    MAQ_TRY(maq_unverified_read(&l->unverified, entry, map, "model", l->r.arena, l->r.diag));
    MAQ_TRY(push(l, map, lenient));
    l->name = text_of(l, map, "_name_or_path", l->name);
    l->name = text_of(l, map, "name", l->name);
    for (size_t i = 0; nested[i]; i++) {
        inner = maq_node_get(map, nested[i]);
        if (inner && inner->kind == MAQ_NODE_MAP)
            MAQ_TRY(push(l, inner, lenient));
    }
    note_encoders(l, map, lenient);
    return MAQ_OK;
}

static const struct maq_family *family_of_type(struct maq_str type)
{
    if (is_type(maq__megatron_family.type, type))
        return &maq__megatron_family;
    if (is_type(maq__pyramid_family.type, type))
        return &maq__pyramid_family;
    const struct maq_family *f;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++)
        if (is_type(f->type, type))
            return f;
    return NULL;
}

static const struct maq_family *family_of_class(struct maq_str name)
{
    const struct maq_family *f;
    for (size_t i = 0; (f = maq__hf_family(i)) != NULL; i++)
        if (is_type(f->architectures, name))
            return f;
    return NULL;
}

#define KEYS_OF_A_FAMILY 4 /* fewer say nothing */

/* The type whose keys the model has: a family that reads other keys makes another model of it. */
static const char *type_meant(struct load *l, struct maq_str given)
{
    uint32_t read, all;
    struct maq_str type;
    const struct maq_family *near = maq__reader_nearest_family(&l->r, given, &read, &all);
    if (!near || read < KEYS_OF_A_FAMILY)
        return "see docs/models.md for the list, or give sizes under model_type: megatron";
    maq_str_split(maq_str_of(near->type), '|', &type);
    const char *hint =
        maq_arena_printf(l->r.arena,
                         "its keys are those of '%.*s', which reads %u of the %u: --set model.model_type=%.*s, if "
                         "its layers are the same",
                         (int)type.len, type.ptr, read, all, (int)type.len, type.ptr);
    return hint ? hint : "";
}

/* The family of a map around the others whose type decides; NULL: none, the strongest map's does. */
static struct maq_node *wrapping_type(struct load *l)
{
    for (uint32_t i = 0; i < l->r.n_maps; i++) {
        struct maq_node *node = maq_node_peek(l->r.maps[i], "model_type");
        const struct maq_family *f = node && node->kind == MAQ_NODE_SCALAR ? family_of_type(node->text) : NULL;
        if (f && f->wraps)
            return node;
    }
    return NULL;
}

/* By model_type, the strongest one; else by the first of `architectures`. */
static enum maq_status choose_family(const struct maq_family **out, struct maq_str *type, struct load *l)
{
    struct maq_node *node = maq__reader_find(&l->r, "model_type");
    struct maq_node *classes = maq__reader_find(&l->r, "architectures");
    struct maq_node *first = classes && classes->kind == MAQ_NODE_SEQ ? classes->first : NULL;
    struct maq_node *around = wrapping_type(l);
    node = around ? around : node;
    if (node && node->kind == MAQ_NODE_SCALAR) {
        *type = node->text;
        *out = family_of_type(node->text);
    } else if (first && first->kind == MAQ_NODE_SCALAR) {
        node = first;
        *out = family_of_class(first->text);
        if (*out)
            maq_str_split(maq_str_of((*out)->type), '|', type);
    } else {
        return BAD(l, MAQ_CODE_MODEL_MISSING, l->r.at, "for instance model_type: llama, or model_type: megatron",
                   "the model has no model_type");
    }
    if (*out)
        return MAQ_OK;
    const char *why = maq__hf_refusal(node->text);
    if (why)
        return BAD(l, MAQ_CODE_MODEL_REFUSED, node->at, NULL, "model_type '%.*s' is not modelled: %s",
                   (int)node->text.len, node->text.ptr, why);
    return BAD(l, MAQ_CODE_MODEL_UNKNOWN_TYPE, node->at, type_meant(l, node->text), "model_type '%.*s' is not known",
               (int)node->text.len, node->text.ptr);
}

static enum maq_status build(struct maq_model *out, struct load *l)
{
    struct maq_architecture arch = {.at = l->r.at};
    const struct maq_family *family = NULL;
    struct maq_str type = {0};
    MAQ_TRY(choose_family(&family, &type, l));
    char *type_text = maq_arena_strdup(l->r.arena, type);
    if (!type_text)
        return maq_diag_fail(MAQ_NO_MEMORY, l->r.diag, MAQ_CODE_MODEL_NO_MEMORY, l->r.at, NULL,
                             "no memory for a model");
    arch.name = l->name ? l->name : type_text;
    arch.source = l->source ? l->source : "";
    arch.unverified = l->unverified;
    family->read(&arch, &l->r, family);
    maq__reader_unknown_keys(&l->r, family, type_text);
    if (l->r.bad)
        return MAQ_BAD_INPUT;
    MAQ_TRY(maq_model_build(out, &arch, l->r.arena, l->r.diag));
    maq__hf_read_quantization(&out->quantization, &l->r);
    if (l->vision) {
        struct maq_node *whole = maq_node_peek(l->around, "model_type");
        maq__hf_vision_read(out, l->vision, l->vision_lenient, &l->r,
                            whole && whole->kind == MAQ_NODE_SCALAR ? whole->text : type);
    }
    return l->r.bad ? MAQ_BAD_INPUT : MAQ_OK;
}

enum maq_status maq_model_load(struct maq_model *out, struct maq_node *node, struct maq_arena *arena,
                               struct maq_diag *diag)
{
    struct load l = {.r = {.arena = arena, .diag = diag}};
    enum maq_status status;
    if (!node)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MODEL_NOT_A_MAP, (struct maq_span){0}, NULL,
                             "no model is given");
    node->used = true;
    if (node->kind == MAQ_NODE_SCALAR || node->origin != MAQ_ORIGIN_FLAG) /* a map that --set has made is no place */
        l.r.at = node->at;
    status = node->kind == MAQ_NODE_SCALAR ? add_named(&l, node) : add_map(&l, node, false);
    if (status == MAQ_OK)
        status = build(out, &l);
    for (uint32_t i = 0; i < l.n_docs; i++)
        maq_doc_fini(&l.docs[i]);
    return status;
}

const struct maq_module *maq_model_find_module(const struct maq_model *model, enum maq_module_kind kind,
                                               enum maq_part part)
{
    for (uint32_t k = 0; k < model->n_kinds; k++)
        for (uint32_t i = 0; i < model->kinds[k].n_modules; i++) {
            const struct maq_module *m = &model->kinds[k].modules[i];
            if (m->kind == kind && (part == MAQ_PART_COUNT || m->part == part))
                return m;
        }
    return NULL;
}

int64_t maq_model_vocabulary(struct maq_str name)
{
    struct maq_model model;
    struct maq_arena arena;
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = name};
    maq_arena_init(&arena, 0);
    int64_t rows = maq_model_load(&model, &node, &arena, NULL) == MAQ_OK ? model.vocab : 0;
    maq_arena_fini(&arena);
    return rows;
}

bool maq_model_shape(int64_t *hidden, int64_t *layers, struct maq_str name)
{
    struct maq_model model;
    struct maq_arena arena;
    struct maq_node node = {.kind = MAQ_NODE_SCALAR, .text = name};
    maq_arena_init(&arena, 0);
    bool read = maq_model_load(&model, &node, &arena, NULL) == MAQ_OK;
    *hidden = read ? model.hidden : 0;
    *layers = read ? model.num_layers : 0;
    maq_arena_fini(&arena);
    return read;
}
