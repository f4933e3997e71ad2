/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vary_lists.c - reads the section of a document that lists what is varied, and opens a job for every combination:
 *
 *   search: {vary: {model: [llama-3.1-8b, llama-3.1-70b], seq: [4096, 8192], gbs: 512, gpu: [h100-sxm, b200], gpus: 256..4096:x2}}
 *
 * A range is FIRST..LAST:xFACTOR or FIRST..LAST:+STEP. The cluster keeps its shape (devices of a node, network); its name and
 * number of nodes change. What is not in the section is as the job has it. The last axis changes fastest.
 */
#include "planner/uniform/vary_lists.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/range.h"
#include "plan/job_build.h"
#include "planner/codes.h"

#define MOST_VALUES 64
#define MOST_VARIANTS 100000u

/*    id     key in the section, key of the document, whether it is a number                                    */
#define VARY_LIST(X)                                                                                                   \
    X(MODEL, "model", "model", false)                                                                                  \
    X(SEQ, "seq", "workload.seq", true)                                                                                \
    X(GBS, "gbs", "workload.gbs", true)                                                                                \
    X(GPU, "gpu", NULL, false)                                                                                         \
    X(GPUS, "gpus", NULL, true)

enum vary_axis {
#define VARY_ENUM(id, name, key, counts) VARY_##id,
    VARY_LIST(VARY_ENUM)
#undef VARY_ENUM
        VARY_COUNT
};

static const struct {
    const char *name, *key;
    bool counts;
} axes[VARY_COUNT] = {
#define VARY_ROW(id, name, key, counts) [VARY_##id] = {name, key, counts},
    VARY_LIST(VARY_ROW)
#undef VARY_ROW
};

/* Values as text; n = 0: the axis is not varied. */
struct values {
    const char *at[MOST_VALUES];
    uint32_t n;
};

struct maq_node *maq_vary_section(const struct maq_loaded_job *open)
{
    struct maq_node *search = maq_job_search_node(open);
    return search && search->kind == MAQ_NODE_MAP ? maq_node_get(search, "vary") : NULL;
}

bool maq_search_varies(const struct maq_loaded_job *open)
{
    return maq_vary_section(open) != NULL;
}

/* ---- values ---- */

static bool add(struct values *v, const char *text)
{
    if (v->n == MOST_VALUES || !text)
        return false;
    v->at[v->n++] = text;
    return true;
}

/* "256", "256..4096:x2", "8..64:+8" */
static bool read_range(struct values *v, struct maq_str text, struct maq_arena *arena)
{
    double numbers[MOST_VALUES];
    const char *string = maq_arena_strdup(arena, text);
    uint32_t n = string ? maq_range_read(numbers, MOST_VALUES, string) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (!(numbers[i] >= 1 && numbers[i] <= UINT32_MAX && numbers[i] == floor(numbers[i])) ||
            !add(v, maq_arena_printf(arena, "%.0f", numbers[i])))
            return false;
    return n > 0;
}

static enum maq_status refuse(struct maq_diag *diag, struct maq_span at, const char *what)
{
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VARY, at,
        "vary gpus=256..4096:x2, gpus=8..64:+8, gpus=64,128, gpu=h100-sxm,b200, model=..., seq=... or gbs=...", "%s",
        what);
}

static enum maq_status read_item(struct values *v, bool counts, struct maq_node *item, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    item->used = true;
    if (item->kind != MAQ_NODE_SCALAR)
        return refuse(diag, item->at, "a list of numbers, ranges or names is wanted");
    if (counts)
        return read_range(v, item->text, arena)
                   ? MAQ_OK
                   : refuse(diag, item->at, "this is no number or range, or there are too many");
    return add(v, maq_arena_strdup(arena, item->text)) ? MAQ_OK : refuse(diag, item->at, "there are too many names");
}

static int axis_of(struct maq_str key)
{
    int a = 0;
    while (a < VARY_COUNT && !maq_str_is(key, axes[a].name))
        a++;
    return a;
}

static enum maq_status read_lists(struct values lists[VARY_COUNT], const struct maq_loaded_job *open,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_node *vary = maq_vary_section(open);
    MAQ_ASSERT(vary); /* asked only of jobs with search.vary */
    if (vary->kind != MAQ_NODE_MAP)
        return refuse(diag, vary->at, "search.vary is a map of lists");
    for (struct maq_node *n = vary->first; n; n = n->next) {
        int a = axis_of(n->key);
        if (a == VARY_COUNT)
            return refuse(diag, n->at, "only model, seq, gbs, gpu and gpus can be varied");
        if (n->kind == MAQ_NODE_SCALAR)
            MAQ_TRY(read_item(&lists[a], axes[a].counts, n, arena, diag));
        for (struct maq_node *i = n->kind == MAQ_NODE_SEQ ? n->first : NULL; i; i = i->next)
            MAQ_TRY(read_item(&lists[a], axes[a].counts, i, arena, diag));
    }
    return MAQ_OK;
}

/* ---- one combination ---- */

/* "NAME:8 x 32, rail 400G" with another name and number of nodes. */
static char *cluster_line(struct maq_arena *arena, struct maq_str text, const char *gpu, int32_t per_node,
                          int64_t nodes)
{
    size_t comma = 0;
    while (comma < text.len && text.ptr[comma] != ',')
        comma++;
    return maq_arena_printf(arena, "\"%s:%d x %lld%.*s\"", gpu, per_node, (long long)nodes, (int)(text.len - comma),
                            text.ptr + comma);
}

/* What changes in the cluster; adds to set[*n]. */
static enum maq_status set_cluster(struct maq_override *set, size_t *n, const char *gpu, const char *gpus,
                                   const struct maq_loaded_job *open, struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_node *cluster = maq_node_peek(maq_job_document(open), "cluster");
    const struct maq_job *job = maq_job_get(open);
    const struct maq_node_group *g = &job->cluster.groups[0];
    int64_t devices = job->cluster.devices;
    if (!gpu && !gpus)
        return MAQ_OK;
    if (gpus)
        MAQ_ASSERT(maq_str_to_i64(&devices, maq_str_of(gpus))); /* written by read_range() */
    if (job->cluster.n_groups > 1 || devices % g->devices_per_node != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VARY, cluster->at,
                             "vary whole nodes of a cluster of one kind", "%lld devices are not whole nodes of %d",
                             (long long)devices, g->devices_per_node);
    gpu = gpu ? gpu : g->device.name;
    int64_t nodes = devices / g->devices_per_node;
    if (cluster->kind == MAQ_NODE_SCALAR) {
        set[(*n)++] = (struct maq_override){"--vary", "cluster",
                                            cluster_line(arena, cluster->text, gpu, g->devices_per_node, nodes)};
    } else {
        if (strcmp(gpu, g->device.name) != 0)
            set[(*n)++] = (struct maq_override){"--vary", "cluster.device", gpu};
        set[(*n)++] =
            (struct maq_override){"--vary", "cluster.nodes", maq_arena_printf(arena, "%lld", (long long)nodes)};
    }
    return set[*n - 1].value ? MAQ_OK : MAQ_NO_MEMORY;
}

static enum maq_status open_variant(struct maq_search_variant *v, const char *const picked[VARY_COUNT],
                                    const struct maq_loaded_job *open, const char *text, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    struct maq_override set[VARY_COUNT + 3] = {{"--vary", "search.vary", "null"}};
    size_t n = 1;
    for (int a = 0; a < VARY_COUNT; a++)
        if (picked[a] && axes[a].key)
            set[n++] = (struct maq_override){"--vary", axes[a].key, picked[a]};
    MAQ_TRY(set_cluster(set, &n, picked[VARY_GPU], picked[VARY_GPUS], open, arena, diag));
    MAQ_TRY(maq_job_parse_open(&v->open, "variant", maq_str_of(text), set, n, diag));
    const struct maq_job *job = maq_job_get(v->open);
    v->model = job->model.name;
    v->seq = (uint32_t)job->workload.seq;
    v->gbs = (uint32_t)job->workload.gbs;
    v->gpu = job->cluster.groups[0].device.name;
    v->gpus = job->cluster.devices;
    return MAQ_OK;
}

enum maq_status maq_vary_list(struct maq_search_variant **at, uint32_t *n, const struct maq_loaded_job *open,
                              struct maq_arena *arena, struct maq_diag *diag)
{
    struct values *lists = MAQ_ARENA_NEW(arena, struct values, VARY_COUNT);
    *n = 0;
    if (!lists)
        return MAQ_NO_MEMORY;
    MAQ_TRY(read_lists(lists, open, arena, diag));
    uint64_t total = 1;
    for (int a = 0; a < VARY_COUNT; a++)
        total *= lists[a].n > 0 ? lists[a].n : 1;
    if (total > MOST_VARIANTS)
        return refuse(diag, (struct maq_span){0}, "there are more than 100,000 combinations");
    char *text = maq_job_text(open);
    *at = MAQ_ARENA_NEW(arena, struct maq_search_variant, total);
    enum maq_status status = text && *at ? MAQ_OK : MAQ_NO_MEMORY;
    while (status == MAQ_OK && *n < total) {
        const char *picked[VARY_COUNT];
        uint64_t rest = *n;
        for (int a = VARY_COUNT; a-- > 0;) {
            uint32_t values = lists[a].n > 0 ? lists[a].n : 1;
            picked[a] = lists[a].n > 0 ? lists[a].at[rest % values] : NULL;
            rest /= values;
        }
        status = open_variant(&(*at)[(*n)++], picked, open, text, arena, diag);
    }
    free(text);
    return status;
}
