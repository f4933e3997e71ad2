/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_profile_read.c - the files of a profile folder become the tables of layer_profile.h.
 *
 * The files are read with the library's document reader, so that a fault has its file, line and column, and keys given twice are
 * faults. Every file is read to its end before the first fault stops anything. Keys that this layout does not have are left alone:
 * the files belong to somebody else, who may write more into them than a planner needs.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "plan/mixed/codes.h"
#include "spec/doc.h"
#include "train/profiled/layer_profile_tables.h"

#define MAX_CONFIGS 256

struct reader {
    struct maq_profile_dir *p;
    struct maq_diag *diag;
    const char *folder;
    bool bad;               /* a fault of the input was reported */
    enum maq_status status; /* of what is no fault of the input */
};

#define FAULT(r, code, node, hint, ...)                                                                                \
    (maq_diag_add((r)->diag, MAQ_ERROR, (code), (node)->at, (hint), __VA_ARGS__), (r)->bad = true)

static void no_memory(struct reader *r)
{
    if (r->status == MAQ_OK)
        r->status = maq_no_memory(r->diag, "the profile");
}

/* ---- nodes ---- */

static bool is_map(struct reader *r, const struct maq_node *node, const char *form)
{
    if (node->kind == MAQ_NODE_MAP)
        return true;
    FAULT(r, MAQ_CODE_PROFILE_FORM, node, form, "a map is expected here");
    return false;
}

static bool is_list(struct reader *r, const struct maq_node *node, uint32_t n, const char *form)
{
    if (node->kind == MAQ_NODE_SEQ && node->count == n)
        return true;
    FAULT(r, MAQ_CODE_PROFILE_FORM, node, form, "a list of %u values is expected here", n);
    return false;
}

/* A finite number from `min` on. */
static bool number(struct reader *r, double *out, struct maq_node *node, double min, const char *what)
{
    if (!maq_node_double(out, node, r->diag)) {
        r->bad = true;
        return false;
    }
    if (isfinite(*out) && *out >= min)
        return true;
    char buf[32];
    FAULT(r, MAQ_CODE_PROFILE_VALUE, node, NULL, "%s cannot be %s", what, maq_format_double(buf, *out));
    return false;
}

/* The key of a member as a number from `min` to MAQ_PROFILE_DIR_KEY_MAX. */
static bool number_key(struct reader *r, uint32_t *out, const struct maq_node *member, int64_t min, const char *what)
{
    char show[MAQ_SHOW_SIZE];
    int64_t value;
    if (maq_str_to_i64(&value, member->key) && value >= min && value <= MAQ_PROFILE_DIR_KEY_MAX) {
        *out = (uint32_t)value;
        return true;
    }
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PROFILE_FORM, member->key_at, NULL,
                 "the key here is %s, a whole number from %d to %d, not '%s'", what, (int)min, MAQ_PROFILE_DIR_KEY_MAX,
                 maq_str_show(show, member->key));
    r->bad = true;
    return false;
}

/* Id of a name; MAQ_PROFILE_DIR_NONE after a fault. */
static uint32_t intern(struct reader *r, struct maq_profile_dir_names *names, struct maq_str name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (maq_str_is(name, names->at[i]))
            return i;
    if (names->n == MAQ_PROFILE_DIR_MAX_NAMES) {
        if (r->status == MAQ_OK)
            r->status = maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_PROFILE_FORM, (struct maq_span){0}, NULL,
                                      "a profile may have at most %u models, devices and zones each",
                                      MAQ_PROFILE_DIR_MAX_NAMES);
        return MAQ_PROFILE_DIR_NONE;
    }
    const char *copy = maq_arena_strdup(&r->p->arena, name);
    if (!copy) {
        no_memory(r);
        return MAQ_PROFILE_DIR_NONE;
    }
    names->at[names->n] = copy;
    return names->n++;
}

static uint32_t intern_model(struct reader *r, struct maq_str name)
{
    uint32_t id = intern(r, &r->p->model_names, name);
    if (id != MAQ_PROFILE_DIR_NONE)
        r->p->models[id].name = r->p->model_names.at[id];
    return id;
}

static uint32_t intern_device(struct reader *r, struct maq_str name)
{
    uint32_t id = intern(r, &r->p->device_names, name);
    if (id != MAQ_PROFILE_DIR_NONE)
        r->p->devices[id].name = r->p->device_names.at[id];
    return id;
}

/* ---- tables ---- */

static void add(struct reader *r, struct maq_profile_dir_table *table, uint64_t key, const void *value,
                struct maq_span at)
{
    if (table->n == table->size) {
        uint32_t size = table->size ? 2 * table->size : 64;
        struct maq_profile_dir_entry *more = MAQ_ARENA_NEW(&r->p->arena, struct maq_profile_dir_entry, size);
        if (!more) {
            no_memory(r);
            return;
        }
        if (table->n > 0)
            memcpy(more, table->at, table->n * sizeof *more);
        table->at = more;
        table->size = size;
    }
    table->at[table->n++] = (struct maq_profile_dir_entry){key, value, at};
}

static int by_key_and_place(const void *pa, const void *pb)
{
    const struct maq_profile_dir_entry *a = pa, *b = pb;
    int c = (a->key > b->key) - (a->key < b->key);
    return c != 0 ? c : (a->span.off > b->span.off) - (a->span.off < b->span.off); /* one file per table */
}

/* "1" and "+1" are two keys of a document and one of a table. */
static void sort(struct reader *r, struct maq_profile_dir_table *table)
{
    if (table->n > 0)
        qsort(table->at, table->n, sizeof *table->at, by_key_and_place);
    for (uint32_t i = 1; i < table->n; i++)
        if (table->at[i].key == table->at[i - 1].key) {
            maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PROFILE_FORM, table->at[i].span, NULL,
                         "this measurement is given twice");
            r->bad = true;
        }
}

/* ---- layers ---- */

/* Members "0", "1", ... of a map, each once: fills the children in order; NULL after a fault. */
static struct maq_node **layers_of(struct reader *r, uint32_t model, struct maq_node *map, const char *form)
{
    struct maq_profile_dir_model *m = &r->p->models[model];
    if (!is_map(r, map, form))
        return NULL;
    if (m->layers == 0)
        m->layers = map->count;
    if (map->count != m->layers || map->count == 0 || map->count > MAQ_PROFILE_DIR_MAX_LAYERS) {
        FAULT(r, MAQ_CODE_PROFILE_LAYERS, map, form, "%s has %u layers here; %u are expected", m->name, map->count,
              m->layers ? m->layers : 1);
        return NULL;
    }
    struct maq_node **at = MAQ_ARENA_NEW(&r->p->arena, struct maq_node *, map->count);
    if (!at) {
        no_memory(r);
        return NULL;
    }
    bool ok = true;
    for (struct maq_node *n = map->first; n; n = n->next) {
        uint32_t layer;
        if (!number_key(r, &layer, n, 0, "a layer")) {
            ok = false;
        } else if (layer >= map->count || at[layer]) {
            FAULT(r, MAQ_CODE_PROFILE_LAYERS, n, "layers are numbered from 0 without gaps",
                  "layer %u of a map of %u layers%s", layer, map->count, layer < map->count ? ", given twice" : "");
            ok = false;
        } else {
            at[layer] = n;
        }
    }
    return ok ? at : NULL;
}

#define TIMES_FORM "the form is model -> device -> micro batch -> TP -> layer -> [forward s, backward s, update s]"

static void read_times_of(struct reader *r, uint64_t key, uint32_t model, struct maq_node *map)
{
    struct maq_node **layers = layers_of(r, model, map, TIMES_FORM);
    struct maq_layer_time *t = layers ? MAQ_ARENA_NEW(&r->p->arena, struct maq_layer_time, map->count) : NULL;
    if (layers && !t)
        no_memory(r);
    for (uint32_t i = 0; t && i < map->count; i++) {
        if (!is_list(r, layers[i], 3, TIMES_FORM))
            continue;
        struct maq_node *forward = layers[i]->first;
        number(r, &t[i].forward_s, forward, 0, "a time");
        number(r, &t[i].backward_s, forward->next, 0, "a time");
        number(r, &t[i].update_s, forward->next->next, 0, "a time");
    }
    if (t)
        add(r, &r->p->times, key, t, map->at);
}

static void read_device_times(struct reader *r, uint32_t model, uint32_t device, struct maq_node *batches)
{
    uint32_t micro_batch, tp;
    if (!is_map(r, batches, TIMES_FORM))
        return;
    for (struct maq_node *batch = batches->first; batch; batch = batch->next) {
        if (!number_key(r, &micro_batch, batch, 1, "a micro batch") || !is_map(r, batch, TIMES_FORM))
            continue;
        for (struct maq_node *degree = batch->first; degree; degree = degree->next)
            if (number_key(r, &tp, degree, 1, "a TP degree"))
                read_times_of(r, maq__profile_dir_key(model, device, micro_batch, tp), model, degree);
    }
}

static void read_times(struct reader *r, struct maq_node *root)
{
    for (struct maq_node *m = root->first; m; m = m->next) {
        uint32_t model = intern_model(r, m->key);
        if (model == MAQ_PROFILE_DIR_NONE || !is_map(r, m, TIMES_FORM))
            continue;
        for (struct maq_node *d = m->first; d; d = d->next) {
            uint32_t device = intern_device(r, d->key);
            if (device != MAQ_PROFILE_DIR_NONE)
                read_device_times(r, model, device, d);
        }
    }
}

#define SIZES_FORM                                                                                                     \
    "the form is model -> TP -> layer -> {params_floats, act_mem_floats, act_output_floats, act_input_floats}"

static void read_size(struct reader *r, struct maq_layer_size *out, struct maq_node *layer)
{
    const struct {
        const char *key;
        double *to;
    } rows[] = {{"params_floats", &out->parameters},
                {"act_mem_floats", &out->activations},
                {"act_output_floats", &out->output},
                {"act_input_floats", &out->input}};
    if (!is_map(r, layer, SIZES_FORM))
        return;
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct maq_node *value = maq_node_get(layer, rows[i].key);
        if (value)
            number(r, rows[i].to, value, 0, rows[i].key);
        else
            FAULT(r, MAQ_CODE_PROFILE_FORM, layer, SIZES_FORM, "a layer without %s", rows[i].key);
    }
}

static void read_sizes(struct reader *r, struct maq_node *root)
{
    uint32_t tp;
    for (struct maq_node *m = root->first; m; m = m->next) {
        uint32_t model = intern_model(r, m->key);
        if (model == MAQ_PROFILE_DIR_NONE || !is_map(r, m, SIZES_FORM))
            continue;
        for (struct maq_node *degree = m->first; degree; degree = degree->next) {
            if (!number_key(r, &tp, degree, 1, "a TP degree"))
                continue;
            struct maq_node **layers = layers_of(r, model, degree, SIZES_FORM);
            struct maq_layer_size *s =
                layers ? MAQ_ARENA_NEW(&r->p->arena, struct maq_layer_size, degree->count) : NULL;
            if (layers && !s)
                no_memory(r);
            for (uint32_t i = 0; s && i < degree->count; i++)
                read_size(r, &s[i], layers[i]);
            if (s)
                add(r, &r->p->sizes, maq__profile_dir_key(0, 0, model, tp), s, degree->at);
        }
    }
}

/* ---- devices ---- */

#define CLUSTER_FORM "the form is device -> {gpus_per_node, mem_per_gpu in bytes}, and zone: a name"

static void read_device(struct reader *r, struct maq_profile_dir_device *out, struct maq_node *map)
{
    struct maq_node *per_node = maq_node_get(map, "gpus_per_node"), *capacity = maq_node_get(map, "mem_per_gpu");
    int64_t n = 0;
    if (!per_node || !capacity) {
        FAULT(r, MAQ_CODE_PROFILE_FORM, map, CLUSTER_FORM, "a device without %s",
              per_node ? "mem_per_gpu" : "gpus_per_node");
        return;
    }
    if (!maq_node_i64(&n, per_node, r->diag))
        r->bad = true;
    else if (n < 1 || n > MAQ_PROFILE_DIR_KEY_MAX)
        FAULT(r, MAQ_CODE_PROFILE_VALUE, per_node, NULL, "gpus_per_node is from 1 to %d", MAQ_PROFILE_DIR_KEY_MAX);
    else
        out->per_node = (uint32_t)n;
    number(r, &out->capacity_bytes, capacity, 1, "mem_per_gpu");
}

static void read_cluster(struct reader *r, struct maq_node *root)
{
    for (struct maq_node *n = root->first; n; n = n->next) {
        if (n->kind == MAQ_NODE_SCALAR && maq_str_is(n->key, "zone")) {
            r->p->default_zone = intern(r, &r->p->zone_names, n->text);
        } else if (is_map(r, n, CLUSTER_FORM)) {
            uint32_t device = intern_device(r, n->key);
            if (device != MAQ_PROFILE_DIR_NONE)
                read_device(r, &r->p->devices[device], n);
        }
    }
}

/* ---- links ---- */

#define LINK_FORM "a link is [[a, b, c], saturated bytes/s], the fit in GB/s over log2(bytes / 10^6)"

static void read_link(struct reader *r, struct maq_profile_dir_table *table, uint64_t key, struct maq_node *node)
{
    if (!is_list(r, node, 2, LINK_FORM) || !is_list(r, node->first, 3, LINK_FORM))
        return;
    struct maq_link_fit *link = MAQ_ARENA_NEW(&r->p->arena, struct maq_link_fit, 1);
    if (!link) {
        no_memory(r);
        return;
    }
    struct maq_node *a = node->first->first;
    if (number(r, &link->a, a, -HUGE_VAL, "a coefficient") &&
        number(r, &link->b, a->next, -HUGE_VAL, "a coefficient") &&
        number(r, &link->c, a->next->next, -HUGE_VAL, "a coefficient") &&
        number(r, &link->saturated_bps, node->first->next, 1, "a rate"))
        add(r, table, key, link, node->at);
}

#define NODE_LINK_FORM "the form is device -> number of devices -> [[a, b, c], saturated bytes/s]"

static void read_node_links(struct reader *r, struct maq_node *root)
{
    uint32_t n;
    for (struct maq_node *d = root->first; d; d = d->next) {
        uint32_t device = intern_device(r, d->key);
        if (device == MAQ_PROFILE_DIR_NONE || !is_map(r, d, NODE_LINK_FORM))
            continue;
        for (struct maq_node *count = d->first; count; count = count->next)
            if (number_key(r, &n, count, 1, "a number of devices"))
                read_link(r, &r->p->node_links, maq__profile_dir_key(0, 0, device, n), count);
    }
}

#define ZONE_LINK_FORM                                                                                                 \
    "the form is zone -> device -> number -> zone -> device -> number -> [[a, b, c], saturated bytes/s]"
enum { ZONE, DEVICE, NUMBER, LEVELS = 6 }; /* the first three twice */

static void read_zone_links(struct reader *r, struct maq_node *map, uint32_t level, uint64_t key)
{
    if (!is_map(r, map, ZONE_LINK_FORM))
        return;
    for (struct maq_node *n = map->first; n; n = n->next) {
        uint32_t part = MAQ_PROFILE_DIR_NONE;
        if (level % 3 == ZONE)
            part = intern(r, &r->p->zone_names, n->key);
        else if (level % 3 == DEVICE)
            part = intern_device(r, n->key);
        else if (!number_key(r, &part, n, 1, "a number of devices"))
            continue;
        if (part == MAQ_PROFILE_DIR_NONE)
            continue;
        uint64_t longer = key << (level % 3 == NUMBER ? 16 : 8) | part;
        if (level + 1 == LEVELS)
            read_link(r, &r->p->links, longer, n);
        else
            read_zone_links(r, n, level + 1, longer);
    }
}

static void read_links(struct reader *r, struct maq_node *root)
{
    read_zone_links(r, root, 0, 0);
}

/* ---- what was trained ---- */

static void read_training(struct reader *r, struct maq_node *root)
{
    struct maq_profile_dir_training t = {0};
    const struct {
        const char *key;
        uint32_t *to;
    } rows[] = {{"global_batch_size", &t.global_batch},
                {"sequence_length", &t.sequence},
                {"hidden_size", &t.hidden},
                {"heads", &t.heads},
                {"vocab_size", &t.vocabulary}};
    struct maq_node *name = maq_node_get(root, "model");
    if (!name || name->kind != MAQ_NODE_SCALAR) {
        FAULT(r, MAQ_CODE_PROFILE_FORM, root, NULL, "a training configuration names its model");
        return;
    }
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct maq_node *value = maq_node_get(root, rows[i].key);
        int64_t n;
        if (value && !maq_node_i64(&n, value, r->diag))
            r->bad = true;
        else if (value && (n < 1 || n > INT32_MAX))
            FAULT(r, MAQ_CODE_PROFILE_VALUE, value, NULL, "%s is from 1 to %d", rows[i].key, INT32_MAX);
        else if (value)
            *rows[i].to = (uint32_t)n;
    }
    uint32_t model = maq_profile_dir_find_model(r->p, name->text);
    if (model != MAQ_PROFILE_DIR_NONE) /* models without a profile may be configured as well */
        r->p->trainings[model] = t;
}

/* ---- files ---- */

static void read_file(struct reader *r, const char *name, void (*read)(struct reader *r, struct maq_node *root))
{
    struct maq_doc doc;
    const char *path = maq_arena_printf(&r->p->arena, "%s/%s", r->folder, name);
    if (!path) {
        no_memory(r);
        return;
    }
    enum maq_status status = maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, r->diag);
    if (status == MAQ_BAD_INPUT)
        r->bad = true;
    else if (status != MAQ_OK && r->status == MAQ_OK)
        r->status = status;
    if (status == MAQ_OK && !doc.root) {
        maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_PROFILE_FORM, (struct maq_span){0}, NULL, "%s: an empty file", path);
        r->bad = true;
    } else if (status == MAQ_OK && is_map(r, doc.root, NULL)) {
        read(r, doc.root);
    }
    maq_doc_fini(&doc);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* training_config_*.json in the order of their names; none is no fault. */
static void read_trainings(struct reader *r)
{
    const char *names[MAX_CONFIGS];
    size_t n = 0;
    DIR *folder = opendir(r->folder);
    if (!folder)
        return;
    for (struct dirent *e; (e = readdir(folder)) != NULL && n < MAX_CONFIGS;) {
        struct maq_str name = maq_str_of(e->d_name);
        if (!maq_str_starts(name, "training_config_") || name.len < 5 || strcmp(e->d_name + name.len - 5, ".json") != 0)
            continue;
        names[n] = maq_arena_strdup(&r->p->arena, name);
        if (names[n])
            n++;
        else
            no_memory(r);
    }
    closedir(folder);
    if (n > 0)
        qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++)
        read_file(r, names[i], read_training);
}

static void read_folder(struct reader *r)
{
    static const struct {
        const char *name;
        void (*read)(struct reader *r, struct maq_node *root);
    } files[] = {{"layer_profiles.json", read_times},
                 {"model_memory.json", read_sizes},
                 {"basic_cluster_config.json", read_cluster},
                 {"intra_node_bandwidths.json", read_node_links},
                 {"multizone_bandwidths_het.json", read_links}};
    for (size_t i = 0; i < MAQ_COUNT(files); i++)
        read_file(r, files[i].name, files[i].read);
    read_trainings(r);
    sort(r, &r->p->times);
    sort(r, &r->p->sizes);
    sort(r, &r->p->node_links);
    sort(r, &r->p->links);
}

enum maq_status maq_profile_dir_load(struct maq_profile_dir **out, const char *folder, struct maq_diag *diag)
{
    struct reader r = {.diag = diag, .folder = folder, .p = maq__calloc(sizeof *r.p)};
    if (!r.p)
        return maq_no_memory(diag, "the profile");
    maq_arena_init(&r.p->arena, 0);
    r.p->default_zone = MAQ_PROFILE_DIR_NONE;
    read_folder(&r);
    if (r.status == MAQ_OK && r.bad)
        r.status = MAQ_BAD_INPUT;
    if (r.status != MAQ_OK) {
        maq_profile_dir_free(r.p);
        return r.status;
    }
    *out = r.p;
    return MAQ_OK;
}
