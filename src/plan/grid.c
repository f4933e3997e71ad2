/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - maq_plan_grid(): the plans of a scan over settings.
 *
 * A value is read once, by the table that reads documents; a plan is then the base with the members that its values set. So a scan of a
 * thousand plans costs little beside their evaluation.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/count.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "plan/keys.h"
#include "spec/doc.h"

/* Members of a plan that a key sets: bytes [at, at + size), of a list of words perhaps others besides. */
struct member {
    size_t at, size;
};
struct axis {
    const struct maq_field *field;
    struct member members[2];
    struct maq_plan *values; /* [n] plans that have the value, and are else the base */
};

static size_t size_of(const struct maq_field *field)
{
    switch (field->type) {
    case MAQ_TYPE_I32:
        return sizeof(int32_t);
    case MAQ_TYPE_I64:
        return sizeof(int64_t);
    case MAQ_TYPE_DOUBLE:
    case MAQ_TYPE_QTY:
        return sizeof(double);
    case MAQ_TYPE_BOOL:
        return sizeof(bool);
    case MAQ_TYPE_STR:
        return sizeof(struct maq_str);
    case MAQ_TYPE_ENUM:
        return sizeof(int);
    case MAQ_TYPE_NODE:
    case MAQ_TYPE_END:
        break;
    }
    return 0;
}

static int list_of(const struct maq_field *field)
{
    for (int i = 0; i < MAQ_PLAN_LISTS; i++)
        if (field->offset == offsetof(struct maq_plan_doc, list) + (size_t)i * sizeof(struct maq_node *))
            return i;
    return -1;
}

static void find_members(struct axis *axis)
{
    int list = list_of(axis->field);
    if (list < 0)
        axis->members[0] = (struct member){axis->field->offset, size_of(axis->field)};
    else
        axis->members[0] = (struct member){maq_plan_words[list].bits, sizeof(uint32_t)};
    if (list == MAQ_PLAN_GRAPH_SCOPE) /* full_iteration is a switch of its own */
        axis->members[1] = (struct member){offsetof(struct maq_plan, cuda_graphs), sizeof(bool)};
}

static void take(struct maq_plan *plan, const struct axis *axis, const struct maq_plan *value)
{
    for (size_t i = 0; i < MAQ_COUNT(axis->members); i++)
        memcpy((char *)plan + axis->members[i].at, (const char *)value + axis->members[i].at, axis->members[i].size);
}

/* One value into *plan, which is the base. */
static enum maq_status read_value(struct maq_plan *plan, const struct axis *axis, const char *text,
                                  struct maq_loaded_job *open, const char *key, struct maq_diag *diag)
{
    const struct maq_field table[] = {*axis->field, MAQ_FIELD_END};
    struct maq_plan_doc target = {.plan = *plan};
    struct maq_doc doc;
    const char *path = maq_arena_printf(maq_job_arena(open), "plan.%s", axis->field->key);
    int list = list_of(axis->field);
    if (!path)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_doc_init_empty(&doc));
    enum maq_status status = maq_doc_set_value(&doc, path, text, key, diag);
    struct maq_node *map = status == MAQ_OK ? maq_node_get(doc.root, "plan") : NULL;
    if (status == MAQ_OK)
        status = maq_fields_read(&target, table, map, NULL, maq_job_arena(open), diag);
    if (status == MAQ_OK && list >= 0) {
        const uint32_t none = 0;
        memcpy((char *)&target.plan + maq_plan_words[list].bits, &none, sizeof none);
        target.plan.cuda_graphs = list == MAQ_PLAN_GRAPH_SCOPE ? false : target.plan.cuda_graphs;
        status = maq_plan_read_lists(&target.plan, target.list, diag);
    }
    maq_doc_fini(&doc);
    *plan = target.plan;
    return status;
}

/* An axis that is none: a key of the workload changes what is computed, not how. */
static enum maq_status refuse(const char *key, struct maq_loaded_job *open, struct maq_diag *diag)
{
    struct maq_doc doc;
    if (maq_fields_find(maq_workload_fields, maq_str_of(key)))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_UNKNOWN_KEY, (struct maq_span){0},
                             "scan for each of its values alone",
                             "'%.80s' is a key of the workload, of which a scan has one", key);
    const char *path = maq_arena_printf(maq_job_arena(open), "plan.%s", key);
    if (!path)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_doc_init_empty(&doc));
    enum maq_status status = maq_doc_set_value(&doc, path, "0", key, diag);
    if (status == MAQ_OK)
        status = maq_fields_check_keys(maq_plan_fields, NULL, maq_node_get(doc.root, "plan"), "plan", diag);
    maq_doc_fini(&doc);
    return status == MAQ_OK ? MAQ_BAD_INPUT : status;
}

static enum maq_status read_axis(struct axis *axis, const struct maq_plan_axis *given, struct maq_loaded_job *open,
                                 struct maq_diag *diag)
{
    enum maq_status worst = MAQ_OK;
    axis->field = maq_fields_find(maq_plan_fields, maq_str_of(given->key));
    if (!axis->field)
        return refuse(given->key, open, diag);
    find_members(axis);
    axis->values = malloc((given->n + 1) * sizeof *axis->values);
    if (!axis->values)
        return MAQ_NO_MEMORY;
    for (size_t i = 0; i < given->n; i++) {
        axis->values[i] = maq_job_get(open)->plan;
        enum maq_status status = read_value(&axis->values[i], axis, given->values[i], open, given->key, diag);
        worst = status != MAQ_OK ? status : worst;
    }
    return worst;
}

enum maq_status maq_plan_grid(struct maq_plan *plans, size_t *n_plans, struct maq_loaded_job *open,
                              const struct maq_plan_axis *given, size_t n_axes, struct maq_diag *diag)
{
    enum maq_status worst = MAQ_OK;
    size_t n = 1;
    for (size_t a = 0; a < n_axes; a++)
        if (__builtin_mul_overflow(n, given[a].n, &n))
            return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_TOO_MANY_NODES, (struct maq_span){0}, NULL,
                                 "a scan of more plans than can be counted");
    if (n_plans)
        *n_plans = n;
    if (!plans)
        return MAQ_OK;
    struct axis *axes = calloc(n_axes + 1, sizeof *axes);
    if (!axes)
        return MAQ_NO_MEMORY;
    for (size_t a = 0; a < n_axes; a++) {
        enum maq_status status = read_axis(&axes[a], &given[a], open, diag);
        worst = status != MAQ_OK ? status : worst;
    }
    for (size_t i = 0; i < n && worst == MAQ_OK; i++) {
        plans[i] = maq_job_get(open)->plan;
        size_t rest = i;
        for (size_t a = n_axes; a-- > 0; rest /= given[a].n)
            take(&plans[i], &axes[a], &axes[a].values[rest % given[a].n]);
    }
    for (size_t a = 0; a < n_axes; a++)
        free(axes[a].values);
    free(axes);
    return worst;
}
