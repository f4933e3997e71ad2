/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vary.c - maq_search_vary(): the best plan of every combination of models, workloads and devices.
 *
 * Processes that were started together take the combinations in turn. Each sends the plans that it found as documents to process 0,
 * which predicts them again: a prediction is a thousandth of a search, and the numbers are its own.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "planner/uniform/vary_lists.h"

#define DAY_S 86400.0
#define HOUR_S 3600.0
#define TRILLION 1e12

struct owner {
    struct maq_arena arena;
};

/* ---- one combination ---- */

static enum maq_status predict(struct maq_search_variant *v, struct maq_diag *diag)
{
    MAQ_TRY(maq_train_predict(&v->train, maq_job_get(v->job), diag));
    double price = maq_job_get(v->open)->cluster.groups[0].device.usd_per_hour;
    v->tokens_per_s = v->train->tokens_per_s;
    v->days = TRILLION / v->tokens_per_s / DAY_S;
    v->gpu_hours = TRILLION / v->tokens_per_s / HOUR_S * v->gpus;
    v->usd = v->gpu_hours * price;
    return MAQ_OK;
}

/* *plan: the best plan as a document, owned by the caller; NULL where nothing fits. */
static enum maq_status solve(struct maq_search_variant *v, char **plan, const struct maq_search_opts *opts,
                             struct maq_diag *diag)
{
    struct maq_search_result *found;
    MAQ_TRY(maq_search(&found, v->open, opts, diag));
    v->searched = found->complete || found->n_plans > 0;
    *plan = found->n_plans > 0 ? maq_job_write(v->open, &found->plans[0].plan) : NULL;
    enum maq_status status = found->n_plans > 0 && !*plan ? MAQ_NO_MEMORY : MAQ_OK;
    maq_search_result_free(found);
    return status;
}

static enum maq_status take(struct maq_search_variant *v, const char *plan, struct maq_diag *diag)
{
    v->searched = true;
    if (!plan)
        return MAQ_OK;
    MAQ_TRY(maq_job_parse(&v->job, "variant", maq_str_of(plan), NULL, 0, diag));
    return predict(v, diag);
}

/* ---- what processes tell each other ---- */

/* {"status": 0, "error": null, "found": [[3, "model: ..."], [5, null]]} */
static char *tell(enum maq_status status, const struct maq_diag *diag, json_t *found)
{
    char *words = status == MAQ_OK ? NULL : maq_diag_format(diag, 5, false), *text = NULL;
    json_t *all = json_pack("{s:i, s:s?, s:O}", "status", (int)status, "error", words, "found", found);
    if (all)
        text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    free(words);
    return text;
}

static enum maq_status hear(struct maq_search_variants *out, uint32_t rank, const char *text, struct maq_diag *diag)
{
    json_t *all = json_loads(text, 0, NULL), *found = json_object_get(all, "found"), *item;
    enum maq_status status = all ? (enum maq_status)json_integer_value(json_object_get(all, "status")) : MAQ_IO;
    const char *error = json_string_value(json_object_get(all, "error"));
    size_t i;
    if (status != MAQ_OK)
        (void)maq_diag_fail(status, diag, MAQ_CODE_PEERS, (struct maq_span){0}, NULL, "process %u: %s", rank,
                            error ? error : "it sent nothing that can be read");
    json_array_foreach(found, i, item)
    {
        json_int_t variant = json_integer_value(json_array_get(item, 0));
        if (status == MAQ_OK && variant >= 0 && variant < out->n)
            status = take(&out->at[variant], json_string_value(json_array_get(item, 1)), diag);
    }
    json_decref(all);
    return status;
}

static enum maq_status exchange(struct maq_search_variants *out, struct maq_peers *peers, enum maq_status status,
                                json_t *found, struct maq_diag *diag)
{
    const char *const *texts;
    char *own = tell(status, diag, found);
    enum maq_status gathered = maq_peers_gather(peers, own ? own : "", &texts, diag);
    free(own);
    MAQ_TRY(status);
    MAQ_TRY(gathered);
    for (uint32_t r = 1; texts && r < peers->size; r++)
        MAQ_TRY(hear(out, r, texts[r], diag));
    return MAQ_OK;
}

/* ---- all of them ---- */

static bool same_work(const struct maq_search_variant *a, const struct maq_search_variant *b)
{
    return a->seq == b->seq && a->gbs == b->gbs && strcmp(a->model, b->model) == 0;
}

/* Of variants [from, to), which do the same work. */
static void mark_front(struct maq_search_variants *out, uint32_t from, uint32_t to)
{
    bool priced = true;
    for (uint32_t i = from; i < to; i++)
        priced &= !out->at[i].train || out->at[i].usd > 0;
    for (uint32_t i = from; i < to; i++) {
        struct maq_search_variant *v = &out->at[i];
        v->pareto = v->train != NULL;
        for (uint32_t k = from; k < to && v->pareto; k++) {
            const struct maq_search_variant *w = &out->at[k];
            double own = priced ? v->usd : v->gpu_hours, other = priced ? w->usd : w->gpu_hours;
            bool better = w->train && w->days <= v->days && other <= own;
            v->pareto = k == i || !better || (w->days == v->days && other == own && k > i);
        }
    }
}

static void mark_pareto(struct maq_search_variants *out)
{
    for (uint32_t from = 0, to; from < out->n; from = to) {
        for (to = from + 1; to < out->n && same_work(&out->at[from], &out->at[to]);)
            to++;
        mark_front(out, from, to);
    }
}

/* Those of this process. */
static enum maq_status search_own(struct maq_search_variants *out, json_t *found, const struct maq_search_opts *opts,
                                  const struct maq_peers *peers, struct maq_diag *diag)
{
    for (uint32_t i = peers->rank; i < out->n && !(opts->stop && *opts->stop); i += peers->size) {
        char *plan;
        MAQ_TRY(solve(&out->at[i], &plan, opts, diag));
        json_t *item = out->at[i].searched ? json_pack("[i, s?]", (int)i, plan) : NULL;
        enum maq_status status = out->at[i].searched ? take(&out->at[i], plan, diag) : MAQ_OK;
        free(plan);
        if (item && json_array_append_new(found, item) != 0)
            return MAQ_NO_MEMORY;
        MAQ_TRY(status);
    }
    return MAQ_OK;
}

static enum maq_status fill(struct maq_search_variants *out, struct owner *o, const struct maq_loaded_job *open,
                            const struct maq_search_opts *opts, struct maq_peers *peers, struct maq_diag *diag)
{
    MAQ_TRY(maq_vary_list(&out->at, &out->n, open, &o->arena, diag)); /* the same in every process */
    json_t *found = json_array();
    enum maq_status status = found ? search_own(out, found, opts, peers, diag) : MAQ_NO_MEMORY;
    if (peers->size > 1)
        status = exchange(out, peers, status, found, diag);
    json_decref(found);
    mark_pareto(out);
    return status;
}

enum maq_status maq_search_vary(struct maq_search_variants *out, const struct maq_loaded_job *open,
                                const struct maq_search_opts *opts, struct maq_peers *peers, struct maq_diag *diag)
{
    struct owner *o = calloc(1, sizeof *o);
    struct maq_peers alone = {.size = 1, .on_node = 1};
    *out = (struct maq_search_variants){.owner = o};
    if (!o)
        return MAQ_NO_MEMORY;
    maq_arena_init(&o->arena, 0);
    struct maq_search_opts one = *opts;
    one.top = 1;
    one.pareto_memory = false;
    enum maq_status status = fill(out, o, open, &one, peers ? peers : &alone, diag);
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
        maq_job_free(v->at[i].open);
    }
    if (o) {
        maq_arena_fini(&o->arena);
        free(o);
    }
    *v = (struct maq_search_variants){0};
}
