/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.c - what would make a plan fit into memory: the fastest plan that does among few, found by a search.
 *
 * The few are of every axis the values that good plans mostly have (planner/space/narrow.c), whatever the job says of its plan.
 * Precision, optimizer, offloading and what hides communication stay as they are. What is said are the settings in which the plan,
 * completed, differs from the job's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/planner.h"
#include "plan/keys.h"
#include "planner/space/axis.h"

#define MOST_THREADS 4 /* a search of milliseconds; each makes schedules and layers of its own */

/* What a plan has beside its axes, and that a job may have set for another plan. */
static const char *const beside[] = {"data_parallel_size",
                                     "pipeline_model_parallel_layout",
                                     "recompute_method",
                                     "recompute_num_layers",
                                     "recompute_modules",
                                     "recompute_num_layers_per_stage",
                                     "decoder_first_pipeline_num_layers",
                                     "decoder_last_pipeline_num_layers",
                                     "account_for_embedding_in_pipeline_split",
                                     "account_for_loss_in_pipeline_split",
                                     "microbatch_group_size_per_vp_stage",
                                     "hierarchical_cp_a2a_size"};

/* Plans as a document has them, before and after they are completed. */
struct change {
    const struct maq_loaded_job *open;
    const struct maq_plan *found;
    struct maq_plan_doc written, old, new;
};

static const struct maq_field *field_of(const char *key)
{
    return maq_fields_find(maq_plan_fields, maq_str_of(key));
}

/* Value of a row in words; of a list its bits. */
static void format(struct maq_buf *out, const struct maq_field *field, const struct maq_plan_doc *doc)
{
    char value[64];
    struct maq_str text;
    if (field->type == MAQ_TYPE_NODE) {
        for (int l = 0; l < MAQ_PLAN_LISTS; l++)
            if (strcmp(maq_plan_words[l].key, field->key) == 0)
                maq_plan_add_words(out, &doc->plan, (enum maq_plan_list)l, ",");
    } else if (field->type == MAQ_TYPE_STR) {
        memcpy(&text, (const char *)doc + field->offset, sizeof text);
        maq_buf_add(out, text.ptr, text.len);
    } else {
        maq_buf_adds(out, maq_field_format(value, field, doc));
    }
}

static bool same(const struct maq_field *field, const struct maq_plan_doc *a, const struct maq_plan_doc *b)
{
    struct maq_buf x, y;
    maq_buf_init(&x, 1 << 16);
    maq_buf_init(&y, 1 << 16);
    format(&x, field, a);
    format(&y, field, b);
    bool equal = x.len == y.len && (x.len == 0 || memcmp(x.ptr, y.ptr, x.len) == 0);
    maq_buf_fini(&x);
    maq_buf_fini(&y);
    return equal;
}

/* "--tp 8": by the first of a key's short names. */
static void add_option(struct maq_buf *out, const struct maq_field *field, const struct maq_plan_doc *doc)
{
    const char *name = field->aliases ? field->aliases : field->key;
    maq_buf_adds(out, " --");
    for (; *name && *name != '|'; name++)
        maq_buf_addc(out, *name == '_' ? '-' : *name);
    maq_buf_addc(out, ' ');
    format(out, field, doc);
}

/* Whether the plan is completed to the same value where the job's own stands, or none. */
static bool follows(const struct change *c, const struct maq_field *field)
{
    struct maq_plan_doc with = {.plan = *c->found};
    struct maq_loaded_job *loaded;
    if (field->type != MAQ_TYPE_I32 && field->type != MAQ_TYPE_ENUM)
        return false;
    memcpy((char *)&with + field->offset, (const char *)&c->written + field->offset, sizeof(int32_t));
    if (maq_job_complete(&loaded, c->open, &with.plan, NULL) != MAQ_OK)
        return false;
    with.plan = maq_job_get(loaded)->plan;
    maq_job_free(loaded);
    return same(field, &with, &c->new);
}

/* Of a key beside the axes: whether the new plan says it by its own value. */
static bool says(const struct change *c, const char *key)
{
    bool of_full = strcmp(key, "recompute_method") == 0 || strcmp(key, "recompute_num_layers") == 0;
    return of_full && c->new.plan.recompute == MAQ_RECOMPUTE_FULL;
}

/* The options that make the job's plan the new one, and what has to go for them. */
static void add_settings(struct maq_buf *out, const struct change *c)
{
    const char *without = ", without";
    for (int a = 0; a < MAQ_AXIS_COUNT; a++) {
        const struct maq_field *f = field_of(maq_axis_key((enum maq_axis)a));
        bool none = a == MAQ_AXIS_LAYOUT && c->found->layout.len == 0;
        if (!none && !same(f, &c->old, &c->new) && !follows(c, f))
            add_option(out, f, &c->new);
    }
    for (size_t i = 0; i < MAQ_COUNT(beside); i++)
        if (says(c, beside[i]) && !same(field_of(beside[i]), &c->old, &c->new))
            add_option(out, field_of(beside[i]), &c->new);
    for (size_t i = 0; i < MAQ_COUNT(beside); i++) {
        bool layout = field_of(beside[i])->offset == offsetof(struct maq_plan_doc, plan.layout);
        if (says(c, beside[i]) || !maq_job_sets(c->open, beside[i]) || (layout && c->found->layout.len > 0) ||
            same(field_of(beside[i]), &c->written, &c->new))
            continue;
        maq_buf_addf(out, "%s %s", without, beside[i]);
        without = ",";
    }
}

static uint32_t threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < MOST_THREADS ? (uint32_t)n : MOST_THREADS;
}

/* The fastest of the few that fits in nine of ten runs; if none does, as predicted. NULL: none. */
static struct maq_search_result *search(const struct maq_loaded_job *open)
{
    struct maq_search_opts opts = {.top = 1,
                                   .threads = threads(),
                                   .quick = true,
                                   .keep_switches = true,
                                   .min_fit_probability = MAQ_SEARCH_FIT_PROBABILITY};
    struct maq_search_result *r;
    for (int as_predicted = 0; as_predicted < 2; as_predicted++) {
        opts.as_predicted = as_predicted;
        if (maq_search(&r, open, &opts, NULL) != MAQ_OK)
            return NULL;
        if (r->n_plans > 0)
            return r;
        maq_search_result_free(r);
    }
    return NULL;
}

static bool add_plan(struct maq_buf *out, const struct maq_loaded_job *job, const struct maq_loaded_job *open,
                     const struct maq_search_plan *found, double capacity_bytes)
{
    struct maq_loaded_job *loaded;
    char step[32], size[32];
    if (maq_job_complete(&loaded, open, &found->plan, NULL) != MAQ_OK)
        return false;
    const struct change c = {.open = open,
                             .found = &found->plan,
                             .written = {.plan = maq_job_get(open)->plan},
                             .old = {.plan = maq_job_get(job)->plan},
                             .new = {.plan = maq_job_get(loaded)->plan}};
    maq_buf_adds(out, "try");
    add_settings(out, &c);
    maq_buf_addf(out, " (%s a step, %s, fits in %.0f of 100 runs); maquette plan finds the best",
                 maq_format_time(step, found->step_s), maq_format_bytes(size, found->needed_bytes),
                 100 * maq_train_fit_probability(found->needed_bytes, capacity_bytes));
    maq_job_free(loaded);
    return true;
}

const char *maq_search_advice(char buf[MAQ_ADVICE_BYTES], const struct maq_loaded_job *job,
                              const struct maq_train_result *r)
{
    const struct maq_stage_result *worst = &r->stages[r->worst_stage];
    struct maq_loaded_job *open = NULL;
    struct maq_search_result *found = NULL;
    struct maq_buf words;
    char size[32];
    int largest = 0;
    buf[0] = '\0';
    if (r->fits)
        return buf;
    for (int k = 1; k < MAQ_MEM_FRAGMENTATION; k++)
        if (worst->bytes[k] > worst->bytes[largest])
            largest = k;
    maq_buf_init(&words, MAQ_ADVICE_BYTES - 1);
    maq_buf_addf(&words, "largest: %s %s; ", maq_mem_name((enum maq_mem_kind)largest),
                 maq_format_bytes(size, worst->bytes[largest]));
    if (r->job->cluster.n_groups == 1 && maq_job_reopen(&open, job, NULL) == MAQ_OK)
        found = search(open);
    if (!found || !add_plan(&words, job, open, &found->plans[0], worst->capacity_bytes))
        maq_buf_adds(&words, "no usual plan fits: maquette plan says what would");
    maq__snprintf(buf, MAQ_ADVICE_BYTES, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
    maq_search_result_free(found);
    maq_job_free(open);
    return buf;
}
