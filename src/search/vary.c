/*
 * vary.c - what if: the same job on other numbers and kinds of devices.
 *
 *   search: {vary: {gpus: 256..4096:x2, gpu: [h100-sxm, b200]}}
 *
 * A range is FIRST..LAST:xFACTOR or FIRST..LAST:+STEP. The cluster keeps its shape (devices of a node, network); its name and
 * number of nodes change. For each combination the best plan is searched.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "search/codes.h"
#include "search/space.h"

#define MOST_VALUES 64
#define DAY_S 86400.0
#define HOUR_S 3600.0
#define TRILLION 1e12

struct owner {
    struct maq_arena arena;
};

struct lists {
    uint32_t gpus[MOST_VALUES], n_gpus;
    const char *gpu[MOST_VALUES];
    uint32_t n_gpu;
};

/* ---- what is varied ---- */

static struct maq_node *section(const struct maq_job_box *open)
{
    struct maq_node *search = maq_job_search_node(open);
    return search && search->kind == MAQ_NODE_MAP ? maq_node_get(search, "vary") : NULL;
}

bool maq_search_varies(const struct maq_job_box *open)
{
    return section(open) != NULL;
}

static bool add_count(struct lists *l, int64_t n)
{
    if (l->n_gpus == MOST_VALUES || n < 1 || n > UINT32_MAX)
        return false;
    l->gpus[l->n_gpus++] = (uint32_t)n;
    return true;
}

/* "256", "256..4096:x2", "8..64:+8" */
static bool read_range(struct lists *l, struct maq_str text)
{
    int64_t first, last, step;
    const char *dots = memmem(text.ptr, text.len, "..", 2);
    if (!dots)
        return maq_str_to_i64(&first, text) && add_count(l, first);
    struct maq_str rest = {dots + 2, text.len - (size_t)(dots - text.ptr) - 2}, end;
    rest = maq_str_split(rest, ':', &end);
    bool times = rest.len > 1 && rest.ptr[0] == 'x', plus = rest.len > 1 && rest.ptr[0] == '+';
    if (!maq_str_to_i64(&first, (struct maq_str){text.ptr, (size_t)(dots - text.ptr)}) || !maq_str_to_i64(&last, end) ||
        !(times || plus) || !maq_str_to_i64(&step, (struct maq_str){rest.ptr + 1, rest.len - 1}) || first < 1 ||
        last < first || step < (times ? 2 : 1))
        return false;
    for (int64_t n = first; n <= last; n = times ? n * step : n + step)
        if (!add_count(l, n))
            return false;
    return true;
}

static enum maq_status refuse(struct maq_diag *diag, const struct maq_node *node, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VARY, node->at,
                         "vary gpus=256..4096:x2, gpus=8..64:+8, gpus=64,128 or gpu=h100-sxm,b200", "%s", what);
}

static enum maq_status read_item(struct lists *l, bool counts, struct maq_node *item, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    item->used = true;
    if (item->kind != MAQ_NODE_SCALAR)
        return refuse(diag, item, "a list of numbers, ranges or names is wanted");
    if (counts)
        return read_range(l, item->text)
                   ? MAQ_OK
                   : refuse(diag, item, "this is no number or range of devices, or there are too many");
    if (l->n_gpu == MOST_VALUES)
        return refuse(diag, item, "there are too many kinds of devices");
    l->gpu[l->n_gpu] = maq_arena_strdup(arena, item->text);
    return l->gpu[l->n_gpu++] ? MAQ_OK : MAQ_NO_MEMORY;
}

static enum maq_status read_lists(struct lists *l, const struct maq_job_box *open, struct maq_arena *arena,
                                  struct maq_diag *diag)
{
    struct maq_node *vary = section(open);
    MAQ_ASSERT(vary); /* or nobody asks */
    if (vary->kind != MAQ_NODE_MAP)
        return refuse(diag, vary, "search.vary is a map of gpus and gpu");
    for (struct maq_node *n = vary->first; n; n = n->next) {
        bool counts = maq_str_is(n->key, "gpus");
        if (!counts && !maq_str_is(n->key, "gpu"))
            return refuse(diag, n, "only gpus and gpu can be varied");
        if (n->kind == MAQ_NODE_SCALAR)
            MAQ_TRY(read_item(l, counts, n, arena, diag));
        for (struct maq_node *i = n->kind == MAQ_NODE_SEQ ? n->first : NULL; i; i = i->next)
            MAQ_TRY(read_item(l, counts, i, arena, diag));
    }
    const struct maq_cluster *c = &maq_job_get(open)->cluster;
    if (l->n_gpus == 0)
        l->gpus[l->n_gpus++] = c->devices;
    if (l->n_gpu == 0)
        l->gpu[l->n_gpu++] = c->groups[0].device.name;
    return MAQ_OK;
}

/* ---- one variant ---- */

/* "NAME:8 x 32, rail 400G" with another name and number of nodes. */
static char *cluster_line(struct maq_arena *arena, struct maq_str text, const char *gpu, int32_t per_node,
                          uint32_t nodes)
{
    size_t comma = 0;
    while (comma < text.len && text.ptr[comma] != ',')
        comma++;
    return maq_arena_printf(arena, "\"%s:%d x %u%.*s\"", gpu, per_node, nodes, (int)(text.len - comma),
                            text.ptr + comma);
}

static enum maq_status open_variant(struct maq_search_variant *v, const struct maq_job_box *open, const char *text,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_node *cluster = maq_node_peek(maq_job_document(open), "cluster");
    const struct maq_job *job = maq_job_get(open);
    const struct maq_node_group *g = &job->cluster.groups[0];
    struct maq_override set[3] = {{"--vary", "search.vary", "null"}};
    size_t n = 1;
    uint32_t nodes = v->gpus / (uint32_t)g->devices_per_node;
    if (job->cluster.n_groups > 1 || v->gpus % (uint32_t)g->devices_per_node != 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VARY, cluster->at,
                             "vary whole nodes of a cluster of one kind", "%u devices are not whole nodes of %d",
                             v->gpus, g->devices_per_node);
    if (cluster->kind == MAQ_NODE_SCALAR) {
        set[n++] = (struct maq_override){"--vary", "cluster",
                                         cluster_line(arena, cluster->text, v->gpu, g->devices_per_node, nodes)};
    } else {
        if (strcmp(v->gpu, g->device.name) != 0)
            set[n++] = (struct maq_override){"--vary", "cluster.device", v->gpu};
        set[n++] = (struct maq_override){"--vary", "cluster.nodes", maq_arena_printf(arena, "%u", nodes)};
    }
    if (!set[n - 1].value)
        return MAQ_NO_MEMORY;
    return maq_job_parse_open(&v->open, "variant", maq_str_of(text), set, n, diag);
}

static enum maq_status solve(struct maq_search_variant *v, const struct maq_search_opts *opts, struct maq_diag *diag)
{
    MAQ_TRY(maq_search(&v->search, v->open, opts, diag));
    if (v->search->n_plans == 0)
        return MAQ_OK;
    MAQ_TRY(maq_job_complete(&v->job, v->open, &v->search->plans[0].plan, diag));
    MAQ_TRY(maq_train_predict(&v->train, maq_job_get(v->job), diag));
    double price = maq_job_get(v->open)->cluster.groups[0].device.usd_per_hour;
    v->tokens_per_s = v->train->tokens_per_s;
    v->days = TRILLION / v->tokens_per_s / DAY_S;
    v->gpu_hours = TRILLION / v->tokens_per_s / HOUR_S * v->gpus;
    v->usd = v->gpu_hours * price;
    return MAQ_OK;
}

/* ---- all of them ---- */

static void mark_pareto(struct maq_search_variants *out)
{
    bool priced = true;
    for (uint32_t i = 0; i < out->n; i++)
        priced &= !out->at[i].train || out->at[i].usd > 0;
    for (uint32_t i = 0; i < out->n; i++) {
        struct maq_search_variant *v = &out->at[i];
        v->pareto = v->train != NULL;
        for (uint32_t k = 0; k < out->n && v->pareto; k++) {
            const struct maq_search_variant *w = &out->at[k];
            double own = priced ? v->usd : v->gpu_hours, other = priced ? w->usd : w->gpu_hours;
            bool better = w->train && w->days <= v->days && other <= own;
            v->pareto = k == i || !better || (w->days == v->days && other == own && k > i);
        }
    }
}

static enum maq_status fill(struct maq_search_variants *out, struct owner *o, const struct maq_job_box *open,
                            const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct lists l = {0};
    MAQ_TRY(read_lists(&l, open, &o->arena, diag));
    char *text = maq_job_text(open);
    out->at = MAQ_ARENA_NEW(&o->arena, struct maq_search_variant, (size_t)l.n_gpu * l.n_gpus);
    enum maq_status status = text && out->at ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t g = 0; g < l.n_gpu; g++)
        for (uint32_t i = 0; i < l.n_gpus && status == MAQ_OK && !(opts->stop && *opts->stop); i++) {
            struct maq_search_variant *v = &out->at[out->n++];
            v->gpu = l.gpu[g];
            v->gpus = l.gpus[i];
            status = open_variant(v, open, text, &o->arena, diag);
            if (status == MAQ_OK)
                status = solve(v, opts, diag);
        }
    free(text);
    mark_pareto(out);
    return status;
}

enum maq_status maq_search_vary(struct maq_search_variants *out, const struct maq_job_box *open,
                                const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    *out = (struct maq_search_variants){.owner = o};
    if (!o)
        return MAQ_NO_MEMORY;
    maq_arena_init(&o->arena, 0);
    struct maq_search_opts one = *opts;
    one.top = 1;
    one.pareto_memory = false;
    enum maq_status status = fill(out, o, open, &one, diag);
    if (status != MAQ_OK)
        maq_search_variants_free(out);
    return status;
}

void maq_search_variants_free(struct maq_search_variants *v)
{
    struct owner *o = v->owner;
    for (uint32_t i = 0; i < v->n; i++) {
        maq_train_result_free(v->at[i].train);
        maq_job_free(v->at[i].job);
        maq_search_result_free(v->at[i].search);
        maq_job_free(v->at[i].open);
    }
    if (o) {
        maq_arena_fini(&o->arena);
        free(o);
    }
    *v = (struct maq_search_variants){0};
}
