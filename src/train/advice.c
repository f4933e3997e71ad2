/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.c - changes that would make a plan fit into memory, found by predicting them.
 *
 * A change is of up to three kinds of settings: recomputation, sharding over the replicas, and one of a smaller micro batch or more
 * ranks that share the model. Every resulting plan is predicted (maq_train_sweep). The advice is the plan that fits with the fewest
 * changes, and of those the fastest; where none fits, the one that needs the least memory. Offloading and every other axis are left
 * to `maquette plan`.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/train.h"

#define MOST_SETTINGS 3
#define MOST_PLANS 512

struct change {
    struct maq_plan plan;
    uint32_t n;
    char what[MOST_SETTINGS][64]; /* "recompute_granularity: full" */
};

struct changes {
    const struct maq_job *job;
    struct change *at; /* [MOST_PLANS] */
    uint32_t n;
};

/* Adds a plan: that of `from` with a setting changed. NULL when the list is full. */
static struct maq_plan *add(struct changes *c, const struct change *from, const char *key, const char *value)
{
    if (c->n == MOST_PLANS || from->n == MOST_SETTINGS)
        return NULL;
    struct change *to = &c->at[c->n++];
    *to = *from;
    maq__snprintf(to->what[to->n++], sizeof to->what[0], "%s: %s", key, value);
    return &to->plan;
}

static void recompute_more(struct changes *c, const struct change *from)
{
    struct maq_plan *p;
    if (from->plan.recompute == MAQ_RECOMPUTE_NONE && (p = add(c, from, "recompute_granularity", "selective"))) {
        p->recompute = MAQ_RECOMPUTE_SELECTIVE;
        p->recompute_parts = 0;
    }
    if (from->plan.recompute != MAQ_RECOMPUTE_FULL && (p = add(c, from, "recompute_granularity", "full"))) {
        p->recompute = MAQ_RECOMPUTE_FULL;
        p->recompute_num_layers = 0;
        p->recompute_parts = 0;
        p->recompute_stages = (struct maq_str){0};
    }
}

static void shard_more(struct changes *c, const struct change *from)
{
    static const char *const names[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    if (c->job->cluster.devices <= (uint32_t)(from->plan.tp * from->plan.pp)) /* no rank to shard over */
        return;
    for (int to = from->plan.sharding + 1; to <= MAQ_SHARDING_PARAMS; to++) {
        struct maq_plan *p = add(c, from, "data_parallel_sharding_strategy", names[to]);
        if (!p)
            return;
        if (p->sharding == MAQ_SHARDING_NONE)
            p->overlap_grad_reduce = p->overlap_param_gather = MAQ_AUTO; /* which is to overlap when sharded */
        p->sharding = to;
    }
}

/* Switches off what FSDP keeps unsharded from one microbatch to the next. */
static void keep_less_whole(struct changes *c, const struct change *from)
{
    const struct maq_plan *was = &from->plan;
    struct maq_plan *p;
    if (was->sharding != MAQ_SHARDING_PARAMS)
        return;
    if (was->gather_once && (p = add(c, from, "gather_once_per_step", "false")))
        p->gather_once = false;
    if (was->gather_once && was->reduce_once &&
        (p = add(c, from, "gather_once_per_step", "false, reduce_once_per_step: false")))
        p->gather_once = p->reduce_once = false;
    if (!was->gather_once && was->reduce_once && (p = add(c, from, "reduce_once_per_step", "false")))
        p->reduce_once = false;
}

static void take_smaller_micro_batches(struct changes *c, const struct change *from)
{
    char value[16];
    for (int32_t mbs = from->plan.mbs / 2; mbs > 0 && from->plan.mbs % mbs == 0; mbs /= 2) {
        maq__snprintf(value, sizeof value, "%d", mbs);
        struct maq_plan *p = add(c, from, "micro_batch_size", value);
        if (p)
            p->mbs = mbs;
    }
}

/*
 * Twice as many ranks that share the model, four times, ...; settings that followed from the old degree are decided
 * anew.
 */
static void share_more(struct changes *c, const struct change *from)
{
    static const char *const keys[] = {"tensor_model_parallel_size", "context_parallel_size",
                                       "pipeline_model_parallel_size"};
    const struct maq_cluster *cluster = &c->job->cluster;
    bool flash = c->job->plan.attention_backend != MAQ_ATTENTION_UNFUSED; /* CP needs it */
    const uint32_t most[] = {(uint32_t)cluster->groups[0].domain_devices, flash ? cluster->devices : 1,
                             cluster->devices};
    char value[16];
    for (size_t k = 0; k < MAQ_COUNT(keys); k++) {
        const struct maq_plan *was = &from->plan;
        uint32_t now = (uint32_t)(k == 0 ? was->tp : k == 1 ? was->cp : was->pp);
        for (uint32_t to = 2 * now; to <= most[k] && to <= 64 * now; to *= 2) {
            maq__snprintf(value, sizeof value, "%u", to);
            struct maq_plan *p = add(c, from, keys[k], value);
            if (!p)
                return;
            *(k == 0 ? &p->tp : k == 1 ? &p->cp : &p->pp) = (int32_t)to;
            p->dp = 0;
            if (k == 0 && was->tp == 1)
                p->sequence_parallel = MAQ_AUTO;
            if (k == 0 && was->etp == was->tp && was->ep == 1)
                p->etp = 0;
            if (k == 2)
                p->microbatch_group = 0;
        }
    }
}

/* Applies one kind of change to every plan in the list. */
static void lay_over(struct changes *c, void (*kind)(struct changes *c, const struct change *from))
{
    for (uint32_t i = 0, n = c->n; i < n; i++)
        kind(c, &c->at[i]);
}

static void list_changes(struct changes *c)
{
    c->at[0] = (struct change){.plan = c->job->plan};
    c->n = 1;
    take_smaller_micro_batches(c, &c->at[0]);
    share_more(c, &c->at[0]);
    lay_over(c, recompute_more);
    lay_over(c, shard_more);
    lay_over(c, keep_less_whole);
}

/* Whether x is the better advice. */
static bool better(const struct change *x, const struct maq_train_quick *qx, const struct change *y,
                   const struct maq_train_quick *qy)
{
    if (qx->fits != qy->fits)
        return qx->fits;
    if (!qx->fits)
        return qx->needed_bytes < qy->needed_bytes;
    return x->n != y->n ? x->n < y->n : qx->step_s < qy->step_s;
}

/* The best change and its prediction. false where nothing could be tried. */
static bool try_changes(struct change *best, struct maq_train_quick *comes_to, const struct maq_job *job)
{
    struct changes c = {.job = job, .at = maq__calloc(MOST_PLANS * sizeof *c.at)};
    struct maq_train_quick *quick = maq__calloc(MOST_PLANS * sizeof *quick);
    struct maq_plan *plans = maq__calloc(MOST_PLANS * sizeof *plans);
    struct maq_train_sweep *sweep = NULL;
    const struct change *found = NULL;
    bool ready = c.at && quick && plans && maq_train_sweep_new(&sweep, job, NULL) == MAQ_OK;
    if (ready) {
        list_changes(&c);
        for (uint32_t i = 0; i < c.n; i++)
            plans[i] = c.at[i].plan;
        ready = maq_train_sweep_eval(sweep, quick, plans, c.n) == MAQ_OK;
    }
    for (uint32_t i = 1; ready && i < c.n; i++)
        if (quick[i].possible && (!found || better(&c.at[i], &quick[i], found, comes_to))) {
            found = &c.at[i];
            *comes_to = quick[i];
        }
    if (found)
        *best = *found;
    maq_train_sweep_free(sweep);
    free(plans);
    free(quick);
    free(c.at);
    return found;
}

/* Bytes that the worst stage cannot free: all but cached blocks. */
static double needed_bytes(const struct maq_stage_result *st)
{
    return st->allocated_bytes + st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL];
}

static void add_advice(struct maq_buf *words, const struct maq_train_result *r)
{
    struct maq_train_quick comes_to = {.fits = false};
    struct change best = {.n = 0};
    char size[32];
    if (!try_changes(&best, &comes_to, r->job) ||
        (!comes_to.fits && comes_to.needed_bytes >= needed_bytes(&r->stages[r->worst_stage]))) {
        maq_buf_adds(words, "no change of a setting or two takes less: give it more devices, or ask maquette plan");
        return;
    }
    maq_buf_adds(words, comes_to.fits ? "try " : "nothing tried makes it fit, nearest is ");
    for (uint32_t i = 0; i < best.n; i++)
        maq_buf_addf(words, "%s%s", i > 0 ? ", " : "", best.what[i]);
    maq_buf_addf(words, " (%s)", maq_format_bytes(size, comes_to.needed_bytes));
}

const char *maq_train_advice(char buf[256], const struct maq_train_result *r)
{
    const struct maq_stage_result *st = &r->stages[r->worst_stage];
    struct maq_buf words;
    char size[32];
    int largest = 0;
    buf[0] = '\0';
    if (r->fits)
        return buf;
    for (int k = 1; k < MAQ_MEM_FRAGMENTATION; k++)
        if (st->bytes[k] > st->bytes[largest])
            largest = k;
    maq_buf_init(&words, 255);
    maq_buf_addf(&words, "largest: %s %s; ", maq_mem_name((enum maq_mem_kind)largest),
                 maq_format_bytes(size, st->bytes[largest]));
    add_advice(&words, r);
    maq__snprintf(buf, 256, "%s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
    return buf;
}
