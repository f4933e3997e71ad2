/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_profile.c - lookups in the tables of a foreign profile (binary search by packed keys), and the rate of a link
 * by its quadratic fit. layer_profile.h has the layout and the formulas.
 */
#include "train/profiled/layer_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "plan/mixed/codes.h"
#include "train/profiled/layer_profile_tables.h"

void maq_profile_dir_free(struct maq_profile_dir *profile)
{
    if (!profile)
        return;
    maq_arena_fini(&profile->arena);
    free(profile);
}

/* ---- names ---- */

uint32_t maq_profile_dir_n_models(const struct maq_profile_dir *p)
{
    return p->model_names.n;
}

uint32_t maq_profile_dir_n_devices(const struct maq_profile_dir *p)
{
    return p->device_names.n;
}

uint32_t maq_profile_dir_n_zones(const struct maq_profile_dir *p)
{
    return p->zone_names.n;
}

const struct maq_profile_dir_model *maq_profile_dir_model(const struct maq_profile_dir *p, uint32_t model)
{
    MAQ_ASSERT(model < p->model_names.n);
    return &p->models[model];
}

const struct maq_profile_dir_training *maq_profile_dir_training(const struct maq_profile_dir *p, uint32_t model)
{
    MAQ_ASSERT(model < p->model_names.n);
    return &p->trainings[model];
}

const struct maq_profile_dir_device *maq_profile_dir_device(const struct maq_profile_dir *p, uint32_t device)
{
    MAQ_ASSERT(device < p->device_names.n);
    return &p->devices[device];
}

const char *maq_profile_dir_zone(const struct maq_profile_dir *p, uint32_t zone)
{
    MAQ_ASSERT(zone < p->zone_names.n);
    return p->zone_names.at[zone];
}

uint32_t maq_profile_dir_default_zone(const struct maq_profile_dir *p)
{
    return p->default_zone;
}

static uint32_t find_name(const struct maq_profile_dir_names *names, struct maq_str name)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (maq_str_is(name, names->at[i]))
            return i;
    return MAQ_PROFILE_DIR_NONE;
}

uint32_t maq_profile_dir_find_model(const struct maq_profile_dir *p, struct maq_str name)
{
    return find_name(&p->model_names, name);
}

uint32_t maq_profile_dir_find_device(const struct maq_profile_dir *p, struct maq_str name)
{
    return find_name(&p->device_names, name);
}

uint32_t maq_profile_dir_find_zone(const struct maq_profile_dir *p, struct maq_str name)
{
    return find_name(&p->zone_names, name);
}

static enum maq_status want(uint32_t *out, const struct maq_profile_dir_names *names, const char *what,
                            struct maq_str name, struct maq_span at, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    struct maq_buf known;
    uint32_t found = find_name(names, name);
    if (found != MAQ_PROFILE_DIR_NONE) {
        *out = found;
        return MAQ_OK;
    }
    maq_buf_init(&known, 16384);
    maq_buf_adds(&known, "it has: ");
    for (uint32_t i = 0; i < names->n; i++)
        maq_buf_addf(&known, "%s%s", i > 0 ? ", " : "", names->at[i]);
    enum maq_status status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, at, known.ptr,
                                           "the profile has no %s '%s'", what, maq_str_show(show, name));
    maq_buf_fini(&known);
    return status;
}

enum maq_status maq_profile_dir_want_model(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                           struct maq_span at, struct maq_diag *diag)
{
    return want(out, &p->model_names, "model", name, at, diag);
}

enum maq_status maq_profile_dir_want_device(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                            struct maq_span at, struct maq_diag *diag)
{
    return want(out, &p->device_names, "device", name, at, diag);
}

enum maq_status maq_profile_dir_want_zone(uint32_t *out, const struct maq_profile_dir *p, struct maq_str name,
                                          struct maq_span at, struct maq_diag *diag)
{
    return want(out, &p->zone_names, "zone", name, at, diag);
}

/* ---- tables ---- */

static int by_key(const void *pa, const void *pb)
{
    const struct maq_profile_dir_entry *a = pa, *b = pb;
    return (a->key > b->key) - (a->key < b->key);
}

static const void *look(const struct maq_profile_dir_table *table, uint64_t key)
{
    const struct maq_profile_dir_entry wanted = {.key = key};
    const struct maq_profile_dir_entry *e =
        table->n > 0 ? bsearch(&wanted, table->at, table->n, sizeof *table->at, by_key) : NULL;
    return e ? e->value : NULL;
}

static bool fits(uint32_t part)
{
    return part <= MAQ_PROFILE_DIR_KEY_MAX;
}

const struct maq_layer_time *maq_profile_dir_times(const struct maq_profile_dir *p, uint32_t model, uint32_t device,
                                                   uint32_t micro_batch, uint32_t tp)
{
    if (!fits(model) || !fits(device) || !fits(micro_batch) || !fits(tp))
        return NULL;
    return look(&p->times, maq__profile_dir_key(model, device, micro_batch, tp));
}

const struct maq_layer_size *maq_profile_dir_sizes(const struct maq_profile_dir *p, uint32_t model, uint32_t tp)
{
    return fits(model) && fits(tp) ? look(&p->sizes, maq__profile_dir_key(0, 0, model, tp)) : NULL;
}

bool maq_profile_dir_measured(struct maq_profile_dir_cell *out, const struct maq_profile_dir *p, uint32_t i)
{
    if (i >= p->times.n)
        return false;
    const struct maq_profile_dir_entry *e = &p->times.at[i];
    *out = (struct maq_profile_dir_cell){.model = (uint32_t)(e->key >> 48),
                                         .device = (uint32_t)(e->key >> 32 & MAQ_PROFILE_DIR_KEY_MAX),
                                         .micro_batch = (uint32_t)(e->key >> 16 & MAQ_PROFILE_DIR_KEY_MAX),
                                         .tp = (uint32_t)(e->key & MAQ_PROFILE_DIR_KEY_MAX),
                                         .times = e->value};
    return true;
}

/* ---- links ---- */

static uint64_t end_key(struct maq_link_end end)
{
    return ((uint64_t)end.zone << 8 | end.device) << 16 | end.n;
}

static bool is_end(struct maq_link_end end)
{
    return end.zone < MAQ_PROFILE_DIR_MAX_NAMES && end.device < MAQ_PROFILE_DIR_MAX_NAMES && fits(end.n);
}

const struct maq_link_fit *maq_profile_dir_link(const struct maq_profile_dir *p, struct maq_link_end from,
                                                struct maq_link_end to)
{
    return is_end(from) && is_end(to) ? look(&p->links, end_key(from) << 32 | end_key(to)) : NULL;
}

const struct maq_link_fit *maq_profile_dir_node_link(const struct maq_profile_dir *p, uint32_t device, uint32_t n)
{
    return fits(device) && fits(n) ? look(&p->node_links, maq__profile_dir_key(0, 0, device, n)) : NULL;
}

double maq_link_bytes_per_s(const struct maq_link_fit *link, double bytes)
{
    double x = log2(bytes / 1e6);
    return (link->a * x * x + link->b * x + link->c) * 1e9;
}

double maq_link_send_s(const struct maq_link_fit *link, double bytes)
{
    return bytes > 0 ? bytes / maq_link_bytes_per_s(link, bytes) : 0;
}

double maq_link_ring_s(const struct maq_link_fit *link, double bytes, uint32_t ranks)
{
    return ranks > 1 ? 2.0 * (ranks - 1) * maq_link_send_s(link, bytes / ranks) : 0;
}
