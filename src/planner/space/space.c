/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - the values that a search may choose from, and the user's lists of them.
 *
 * A value comes from, strongest first: a `key=...` list of the caller, the `search:` section, a key that the document or a
 * flag sets, the defaults of default_values.c.
 */
#include "planner/space/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/units.h"
#include "maquette/framework_words.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "planner/codes.h"
#include "planner/space/decided_axes.h"
#include "planner/space/default_values.h"
#include "planner/space/layer_layouts.h"
#include "spec/doc_internal.h"

/* ---- the user's lists ---- */

/* Bits of the names of "core_attn+mlp"; false: one is none. */
static bool read_bits(uint32_t *bits, enum maq_plan_list list, struct maq_str rest)
{
    struct maq_str name;
    *bits = 0;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '+', &name);
        int bit = maq_plan_word_bit(list, name);
        if (bit < 0)
            return false;
        *bits |= 1u << bit;
    }
    return *bits != 0;
}

static bool read_recompute(int32_t *out, struct maq_str word)
{
    int64_t layers;
    static const struct {
        const char *name;
        int32_t value;
    } names[] = {{"none", MAQ_RECOMPUTE_VALUE_NONE},
                 {"full", MAQ_RECOMPUTE_VALUE_UNIFORM + 1},
                 {"block", MAQ_RECOMPUTE_VALUE_BLOCK},
                 {"stages", MAQ_RECOMPUTE_VALUE_STAGES}};
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if (maq_str_is(word, names[i].name)) {
            *out = names[i].value;
            return true;
        }
    if (maq_str_starts(word, "full:")) {
        bool ok = maq_str_to_i64(&layers, (struct maq_str){word.ptr + 5, word.len - 5}) && layers >= 1 && layers < 4096;
        *out = MAQ_RECOMPUTE_VALUE_UNIFORM + (ok ? (int32_t)layers : 1);
        return ok;
    }
    uint32_t parts;
    bool ok = read_bits(&parts, MAQ_PLAN_RECOMPUTE_MODULES, word);
    *out = (int32_t)(MAQ_RECOMPUTE_VALUE_PARTS | parts);
    return ok;
}

static bool read_inputs(int32_t *out, struct maq_str word)
{
    uint32_t modules = 0;
    bool ok = maq_str_is(word, "none") || read_bits(&modules, MAQ_PLAN_OFFLOAD_MODULES, word);
    *out = (int32_t)modules;
    return ok;
}

static bool read_graphs(int32_t *out, struct maq_str word)
{
    uint32_t parts = 0;
    *out = MAQ_GRAPHS_VALUE_ITERATION;
    if (maq_str_is(word, "full_iteration"))
        return true;
    bool ok = maq_str_is(word, "none") || read_bits(&parts, MAQ_PLAN_GRAPH_SCOPE, word);
    *out = (int32_t)parts;
    return ok;
}

/* "E1L2", "work" */
static bool read_layout(int32_t *out, struct maq_str word)
{
    struct maq_str first, last;
    int64_t e, l;
    *out = MAQ_LAYOUT_BY_WORK;
    if (maq_str_is(word, "work"))
        return true;
    if (word.len < 4 || word.ptr[0] != 'E')
        return false;
    last = maq_str_split((struct maq_str){word.ptr + 1, word.len - 1}, 'L', &first);
    if (!maq_str_to_i64(&e, first) || !maq_str_to_i64(&l, last) || e < 0 || l < 0 || e >= MAQ_LAYOUT_END ||
        l >= MAQ_LAYOUT_END)
        return false;
    *out = (int32_t)(e * MAQ_LAYOUT_END + l);
    return true;
}

static bool read_order(int32_t *out, struct maq_search_space *space, struct maq_str word, struct maq_arena *arena)
{
    struct maq_str *grown = MAQ_ARENA_NEW(arena, struct maq_str, (size_t)space->n_orders + 1);
    if (!grown)
        return false;
    if (space->n_orders > 0)
        memcpy(grown, space->orders, space->n_orders * sizeof *grown);
    grown[space->n_orders] = maq_str_of(maq_arena_strdup(arena, word));
    space->orders = grown;
    *out = (int32_t)space->n_orders++;
    return true;
}

static bool read_number(int32_t *out, enum maq_axis axis, const struct maq_field *field, struct maq_str word)
{
    double x;
    if (axis == MAQ_AXIS_ETP && maq_str_is(word, "tp")) {
        *out = MAQ_VALUE_LIKE_TP;
        return true;
    }
    if (axis == MAQ_AXIS_REPLICAS && maq_str_is(word, "domain")) {
        *out = MAQ_VALUE_PER_DOMAIN;
        return true;
    }
    bool ok = maq_str_to_double(&x, word) && x >= field->min && (field->max <= field->min || x <= field->max);
    *out = ok ? (int32_t)(axis == MAQ_AXIS_HOST_OPTIM ? x * 1000 + 0.5 : x) : 0;
    return ok && (axis == MAQ_AXIS_HOST_OPTIM || *out == x);
}

static bool read_value(int32_t *out, struct maq_search_space *space, enum maq_axis axis, struct maq_str word,
                       struct maq_arena *arena)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(maq_axis_key(axis)));
    if (axis == MAQ_AXIS_RECOMPUTE)
        return read_recompute(out, word);
    if (axis == MAQ_AXIS_INPUTS)
        return read_inputs(out, word);
    if (axis == MAQ_AXIS_GRAPHS)
        return read_graphs(out, word);
    if (axis == MAQ_AXIS_LAYOUT)
        return read_layout(out, word);
    if (field->type == MAQ_TYPE_BOOL) {
        *out = maq_str_is(word, "true");
        return *out || maq_str_is(word, "false");
    }
    if (axis == MAQ_AXIS_ORDER)
        return word.len > 0 && read_order(out, space, word, arena);
    if (field->type != MAQ_TYPE_ENUM)
        return read_number(out, axis, field, word);
    *out = maq_field_name(field, word);
    return *out >= 0;
}

static enum maq_axis axis_of(struct maq_str key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, key);
    for (int a = 0; field && a < MAQ_AXIS_COUNT; a++)
        if (strcmp(maq_axis_key((enum maq_axis)a), field->key) == 0)
            return (enum maq_axis)a;
    return MAQ_AXIS_COUNT;
}

struct list_reader {
    struct maq_search_space *space;
    struct maq_arena *arena;
    struct maq_diag *diag;
};

static void try_names(struct maq_nearest *near, const char *key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(key));
    struct maq_str rest = maq_str_of(field ? field->aliases : NULL), alias;
    maq__nearest_try(near, maq_str_of(key));
    while (rest.ptr) {
        rest = maq_str_split(rest, '|', &alias);
        maq__nearest_try(near, alias);
    }
}

static enum maq_status refuse_key(struct list_reader *r, struct maq_str key, struct maq_span at)
{
    struct maq_buf known;
    struct maq_nearest near;
    maq_buf_init(&known, 4096);
    maq__nearest_init(&near, key);
    for (int a = 0; a < MAQ_AXIS_COUNT; a++)
        try_names(&near, maq_axis_key((enum maq_axis)a));
    if (near.best)
        maq_buf_addf(&known, "did you mean '%.*s'? ", (int)near.best_len, near.best);
    for (int a = 0; a < MAQ_AXIS_COUNT; a++)
        maq_buf_addf(&known, "%s%s", a > 0 ? ", " : "known: ", maq_axis_key((enum maq_axis)a));
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_SEARCH_AXIS, at, known.failed ? NULL : known.ptr,
                 "'%.*s' is no key of the plan that is searched", (int)key.len, key.ptr);
    maq_buf_fini(&known);
    return MAQ_BAD_INPUT;
}

static enum maq_status refuse_value(struct list_reader *r, enum maq_axis axis, struct maq_str word, struct maq_span at)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(maq_axis_key(axis)));
    const struct {
        enum maq_axis axis;
        const char *words;
        enum maq_plan_list list;
    } lists[] = {{MAQ_AXIS_INPUTS, "none", MAQ_PLAN_OFFLOAD_MODULES},
                 {MAQ_AXIS_GRAPHS, "none, full_iteration", MAQ_PLAN_GRAPH_SCOPE},
                 {MAQ_AXIS_RECOMPUTE, "none, full, full:N, block, stages", MAQ_PLAN_RECOMPUTE_MODULES}};
    struct maq_buf known;
    size_t l = 0;
    maq_buf_init(&known, 4096);
    while (l < MAQ_COUNT(lists) && lists[l].axis != axis)
        l++;
    if (l < MAQ_COUNT(lists)) {
        maq_buf_addf(&known, "%s, or joined by +: ", lists[l].words);
        maq_plan_add_bits(&known, lists[l].list, UINT32_MAX, ", ");
    } else if (field && field->type == MAQ_TYPE_BOOL) {
        maq_buf_adds(&known, "true, false");
    } else if (field && field->type == MAQ_TYPE_ENUM) {
        struct maq_str meant = maq_field_slip(field->slips, word);
        if (meant.len > 0)
            maq_buf_addf(&known, "did you mean '%.*s'? ", (int)meant.len, meant.ptr);
        for (int i = 0; field->names[i]; i++)
            maq_buf_addf(&known, "%s%s", i > 0 ? ", " : "one of: ", field->names[i]);
    } else {
        maq_buf_adds(&known, axis == MAQ_AXIS_LAYOUT
                                 ? "layers that embedding and output count for, E0L2, or work"
                                 : "its values stand apart by commas: tp=2,4,8; maquette plan --help shows them");
    }
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_SEARCH_VALUE, at, known.failed ? NULL : known.ptr,
                 "'%.*s' is no value of %s", (int)word.len, word.ptr, maq_axis_key(axis));
    maq_buf_fini(&known);
    return MAQ_BAD_INPUT;
}

/* "a,b,c" into the axis. */
static enum maq_status read_list(struct list_reader *r, enum maq_axis axis, struct maq_str text, struct maq_span at)
{
    struct maq_axis_values *values = &r->space->axis[axis];
    struct maq_str rest = text, word;
    values->at = MAQ_ARENA_NEW(r->arena, int32_t, text.len + 1);
    values->n = 0;
    values->fixed = true;
    values->written = at;
    if (!values->at)
        return MAQ_NO_MEMORY;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, ',', &word);
        word = maq_str_trim(word);
        if (!read_value(&values->at[values->n], r->space, axis, word, r->arena))
            return refuse_value(r, axis, word, at);
        bool again = false; /* "tp=2,2" has one value */
        for (uint32_t i = 0; i < values->n; i++)
            again = again || values->at[i] == values->at[values->n];
        values->n += !again;
    }
    return values->n > 0 ? MAQ_OK
                         : maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_SEARCH_VALUE, at, NULL,
                                         "there are no values for %s", maq_axis_key(axis));
}

/* A flag sets the axis: that holds against the document's list. A list by a flag beside it says two things at once. */
static enum maq_status held_by_flag(bool *out, const struct maq_loaded_job *loaded, const struct maq_node *list,
                                    enum maq_axis axis, struct maq_diag *diag)
{
    *out = maq_job_flag_sets(loaded, maq_axis_key(axis));
    if (!*out || list->origin != MAQ_ORIGIN_FLAG)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_AXIS, list->key_at,
                         "leave one out: a list of one value fixes it too", "a flag sets %s, and --space searches it",
                         maq_axis_key(axis));
}

/* `search: {tp: [1, 2], recompute: none}` */
static enum maq_status read_section(struct list_reader *r, const struct maq_loaded_job *loaded)
{
    struct maq_node *section = maq_job_search_node(loaded);
    if (!section)
        return MAQ_OK;
    section->used = true;
    if (section->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_SEARCH_AXIS, section->at,
                             "search: {tp: [1, 2, 4], recompute: [none, full]}", "search: is a map of keys to lists");
    for (struct maq_node *n = section->first; n; n = n->next) {
        struct maq_buf text;
        enum maq_axis axis = axis_of(n->key);
        if (maq_str_is(n->key, "reserve") || maq_str_is(n->key, "min_fit_probability") ||
            maq_str_is(n->key, "vary")) { /* maq_search_memory(), planner/uniform/vary.c */
            maq_node_use_all(n);
            continue;
        }
        if (axis == MAQ_AXIS_COUNT)
            return refuse_key(r, n->key, n->key_at);
        maq_node_use_all(n);
        bool held;
        MAQ_TRY(held_by_flag(&held, loaded, n, axis, r->diag));
        if (held)
            continue;
        maq_buf_init(&text, 1 << 16);
        if (n->kind == MAQ_NODE_SCALAR)
            maq_buf_add(&text, n->text.ptr, n->text.len);
        for (struct maq_node *v = n->kind == MAQ_NODE_SEQ ? n->first : NULL; v; v = v->next)
            maq_buf_addf(&text, "%.*s,", (int)v->text.len, v->text.ptr);
        enum maq_status status = text.failed ? MAQ_NO_MEMORY : MAQ_OK;
        if (status == MAQ_OK)
            status = read_list(r, axis, (struct maq_str){text.ptr, text.len}, n->at);
        maq_buf_fini(&text);
        MAQ_TRY(status);
    }
    return MAQ_OK;
}

static enum maq_status read_options(struct list_reader *r, const struct maq_search_opts *opts)
{
    for (size_t i = 0; i < opts->n_lists; i++) {
        struct maq_str key, values = maq_str_split(maq_str_of(opts->lists[i]), '=', &key);
        struct maq_span at = {maq_diag_add_source(r->diag, "--space", opts->lists[i], strlen(opts->lists[i])), 0,
                              (uint32_t)strlen(opts->lists[i])};
        enum maq_axis axis = axis_of(maq_str_trim(key));
        if (axis == MAQ_AXIS_COUNT)
            return refuse_key(r, key, at);
        MAQ_TRY(read_list(r, axis, values, at));
    }
    return MAQ_OK;
}

/* ---- the space ---- */

static int by_value(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void sort(struct maq_axis_values *values)
{
    qsort(values->at, values->n, sizeof *values->at, by_value);
}

/* A quantity of the section; *out stays where there is none. */
static enum maq_status read_quantity(double *out, const struct maq_loaded_job *open, const char *key, enum maq_dim dim,
                                     const char *hint, const char *what, struct maq_diag *diag)
{
    struct maq_node *section = maq_job_search_node(open);
    bool map = section && section->kind == MAQ_NODE_MAP;
    struct maq_node *node = map ? maq_node_get(section, key) : NULL;
    const char *why = "not a number";
    if (!node)
        return MAQ_OK;
    if (node->kind != MAQ_NODE_SCALAR || !maq_quantity_parse(out, node->text, dim, &why))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VALUE, node->at, hint, "%s: %s", what, why);
    if (dim == MAQ_DIM_NONE && (*out < 0 || *out > 1))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VALUE, node->at, hint, "%s: not from 0 to 1", what);
    return MAQ_OK;
}

enum maq_status maq_search_memory(struct maq_search_memory *out, const struct maq_loaded_job *open,
                                  const struct maq_search_opts *opts, struct maq_diag *diag)
{
    *out = (struct maq_search_memory){.min_fit_probability = opts->min_fit_probability};
    MAQ_TRY(read_quantity(&out->reserve_bytes, open, "reserve", MAQ_DIM_BYTES, "write it with its unit: 2 GiB",
                          "the reserve is no size of memory", diag));
    out->reserve_bytes = out->reserve_bytes > opts->reserve_bytes ? out->reserve_bytes : opts->reserve_bytes;
    MAQ_TRY(read_quantity(&out->min_fit_probability, open, "min_fit_probability", MAQ_DIM_NONE,
                          "0.9 for a plan that runs out of memory in one run of ten at most",
                          "min_fit_probability is no probability", diag));
    out->min_fit_probability = opts->as_predicted ? 0 : out->min_fit_probability;
    return MAQ_OK;
}

/* A peak over its prediction that has to fit. */
static double peak_of(const struct maq_search_memory *memory)
{
    double peak = memory->min_fit_probability > 0 ? maq_train_memory_quantile(memory->min_fit_probability) : 1;
    return peak > 1 ? peak : 1;
}

double maq_search_usable(const struct maq_search_memory *memory, double device_bytes)
{
    return (device_bytes - memory->reserve_bytes) / peak_of(memory);
}

double maq_search_device_bytes(const struct maq_search_memory *memory, double usable_bytes)
{
    return usable_bytes * peak_of(memory) + memory->reserve_bytes;
}

enum maq_status maq_search_job(struct maq_job *out, const struct maq_loaded_job *open,
                               const struct maq_search_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_search_memory memory;
    MAQ_TRY(maq_search_memory(&memory, open, opts, diag));
    *out = *maq_job_get(open);
    struct maq_cluster *c = &out->cluster;
    struct maq_node_group *groups = MAQ_ARENA_NEW(arena, struct maq_node_group, c->n_groups);
    if (!groups)
        return MAQ_NO_MEMORY;
    memcpy(groups, c->groups, c->n_groups * sizeof *groups);
    if (opts->only_group > 0 && opts->only_group <= c->n_groups) {
        groups[0] = groups[opts->only_group - 1];
        c->n_groups = 1;
        c->n_links = 0;
    }
    c->groups = groups;
    c->devices = 0;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        groups[g].nodes *= g == 0 && opts->more_nodes > 1 ? (int32_t)opts->more_nodes : 1;
        groups[g].first_rank = c->devices;
        c->devices += (uint32_t)(groups[g].nodes * groups[g].devices_per_node);
        double has = opts->memory_bytes > 0 ? opts->memory_bytes : groups[g].device.mem_bytes;
        groups[g].device.mem_bytes = maq_search_usable(&memory, has);
    }
    return MAQ_OK;
}

void maq_search_join(struct maq_job *job)
{
    struct maq_cluster *c = &job->cluster;
    if (c->n_groups < 2 || !maq_cluster_one_kind(c))
        return;
    c->groups[0].nodes = (int32_t)c->devices / c->groups[0].devices_per_node;
    c->n_groups = 1;
}

/* The plan with a value of an axis, as far as that says what it is. */
static struct maq_plan with_value(const struct maq_search_space *space, enum maq_axis axis, int32_t value)
{
    struct maq_plan plan = space->base;
    plan.tp = axis == MAQ_AXIS_ETP ? 2 : plan.tp; /* where "like TP" and 1 are two things */
    if (axis == MAQ_AXIS_RECOMPUTE && (value == MAQ_RECOMPUTE_VALUE_BLOCK || value == MAQ_RECOMPUTE_VALUE_STAGES)) {
        plan.recompute = MAQ_RECOMPUTE_FULL;
        plan.recompute_method = MAQ_RECOMPUTE_BLOCK;
        plan.recompute_stages = value == MAQ_RECOMPUTE_VALUE_STAGES ? MAQ_STR("1") : (struct maq_str){0};
    } else {
        maq_space_apply(&plan, space, axis, value);
    }
    return plan;
}

/* Leaves out what the job's framework does not run (docs/frameworks.md); of an axis with nothing else the first value stays. */
static void keep_what_runs(struct maq_search_space *space, enum maq_axis axis, int vocabulary)
{
    struct maq_axis_values *values = &space->axis[axis];
    uint32_t n = 0;
    for (uint32_t i = 0; i < values->n; i++) {
        const struct maq_plan plan = with_value(space, axis, values->at[i]);
        if (maq_framework_runs(vocabulary, &plan, maq_axis_key(axis)))
            values->at[n++] = values->at[i];
    }
    values->n = n > 0 ? n : 1;
}

enum maq_status maq_space_init(struct maq_search_space *out, const struct maq_loaded_job *open,
                               const struct maq_job *job, const struct maq_search_opts *opts, struct maq_arena *arena,
                               struct maq_diag *diag)
{
    *out = (struct maq_search_space){.base = job->plan};
    const enum maq_space_kept kept = opts->quick ? MAQ_KEPT_NOTHING : opts->free ? MAQ_KEPT_FLAGS : MAQ_KEPT_ALL;
    struct list_reader r = {out, arena, diag};
    if (kept != MAQ_KEPT_ALL)
        maq_space_release(&out->base, open, kept);
    MAQ_TRY(read_section(&r, open));
    MAQ_TRY(read_options(&r, opts));
    for (int a = 0; a < MAQ_AXIS_COUNT; a++) {
        struct maq_axis_values *values = &out->axis[a];
        if (values->n > 0)
            continue;
        bool decided = maq_space_decided(open, (enum maq_axis)a, kept);
        MAQ_TRY(decided ? maq_space_keep_written(values, open, (enum maq_axis)a, arena)
                        : maq_space_default(values, out, job, (enum maq_axis)a, opts, arena));
        if (!decided)
            keep_what_runs(out, (enum maq_axis)a, job->framework.vocabulary);
    }
    if (opts->quick)
        maq_space_quick(out, job);
    sort(&out->axis[MAQ_AXIS_OFFLOAD]); /* planner/uniform/leaves.c takes them in turn and stops early */
    sort(&out->axis[MAQ_AXIS_HOST_OPTIM]);
    return maq_job_check_unused(open, diag);
}
