/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - from a list of operators to a plan: prices, order, what is left out and why, estimates.
 *
 * Costliest first: a measurement that is broken off has then settled most of the step. The price is that of the chain
 * without measured costs, calls counted.
 *
 *   bytes    = tensors + workspace + twice the last-level cache, which is overwritten to empty it
 *   estimate = maq_profile_measure_estimate_s()
 */
#include "measure/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "cost/measured/op_key.h"
#include "measure/codes.h"
#include "train/op_counts.h"

#define USABLE_SHARE 0.9 /* of the device's memory: the rest is the context's and the libraries' */

static const char *const state_names[] = {
    [MAQ_PROFILE_PLANNED] = "planned",   [MAQ_PROFILE_HELD] = "held",       [MAQ_PROFILE_SKIPPED] = "skipped",
    [MAQ_PROFILE_MEASURED] = "measured", [MAQ_PROFILE_REFUSED] = "refused", [MAQ_PROFILE_LEFT] = "left",
};

const char *maq_profile_state_name(enum maq_profile_state state)
{
    return (unsigned)state < MAQ_PROFILE_STATE_COUNT ? state_names[state] : "unknown";
}

/* --- collecting ----------------------------------------------------------------------------------------------- */

static bool same(const struct maq_profile_case *a, const struct maq_profile_case *b)
{
    if (a->is_coll != b->is_coll)
        return false;
    return a->is_coll ? memcmp(&a->coll, &b->coll, sizeof a->coll) == 0 : memcmp(&a->op, &b->op, sizeof a->op) == 0;
}

static void add(struct maq_profile *p, const struct maq_profile_case *c, double calls)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (same(&p->items[i].c, c)) {
            p->items[i].calls += calls;
            return;
        }
    if (p->n == p->size) {
        uint32_t size = p->size ? p->size * 2 : 64;
        struct maq_profile_item *items = MAQ_ARENA_NEW(&p->arena, struct maq_profile_item, size);
        if (!items) {
            p->failed = true;
            return;
        }
        if (p->n > 0)
            memcpy(items, p->items, p->n * sizeof *items);
        p->items = items;
        p->size = size;
    }
    p->items[p->n++] = (struct maq_profile_item){.c = *c, .calls = calls};
}

void maq_profile_add_op(struct maq_profile *p, const struct maq_op *op, double calls)
{
    struct maq_profile_case c = {.op = maq_op_canonical(op)};
    add(p, &c, calls);
}

/* A group that leaves its domain stays as it is: it is listed with the reason why it is not measured. */
void maq_profile_add_coll(struct maq_profile *p, const struct maq_coll *coll, double calls)
{
    struct maq_profile_case c = {.is_coll = true, .coll = maq_coll_is_local(coll) ? maq_coll_canonical(coll) : *coll};
    add(p, &c, calls);
}

enum maq_status maq_profile_add_job(struct maq_profile *p, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_needs needs;
    struct maq_job asked = *job;
    asked.measured = NULL; /* what is to be measured is no price for itself */
    MAQ_TRY(maq_train_needs(&needs, &asked, &p->arena, diag));
    const char *device = p->cluster.groups[p->group].device.name;
    for (uint32_t i = 0; i < needs.n; i++) {
        const struct maq_item *it = &needs.at[i].item;
        uint32_t group = it->is_coll ? it->coll.at.group : it->group;
        if (strcmp(p->cluster.groups[group].device.name, device) != 0)
            p->other_devices++;
        else if (it->is_coll)
            maq_profile_add_coll(p, &it->coll, needs.at[i].calls);
        else
            maq_profile_add_op(p, &it->op, needs.at[i].calls);
    }
    return MAQ_OK;
}

/* --- ordering ------------------------------------------------------------------------------------------------- */

static void price(struct maq_profile *p)
{
    double total = 0;
    const struct maq_device *device = &p->cluster.groups[p->group].device;
    for (uint32_t i = 0; i < p->n; i++) {
        struct maq_profile_item *it = &p->items[i];
        struct maq_coll coll = it->c.coll;
        coll.at.group = p->group;
        it->predicted_s = it->c.is_coll ? maq_cost_coll(NULL, &coll, &p->cluster).seconds
                                        : maq_cost_op(NULL, &it->c.op, device).seconds;
        it->share = it->predicted_s * (it->calls > 0 ? it->calls : 1);
        total += it->share;
    }
    for (uint32_t i = 0; i < p->n && total > 0; i++)
        p->items[i].share /= total;
}

/* Equal shares keep the order in which they were added: `n`th bits of a number that qsort may move. */
struct ranked {
    double share;
    uint32_t index;
};

static int by_share(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->share > y->share || x->share < y->share)
        return x->share > y->share ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool sort(struct maq_profile *p)
{
    struct ranked *ranked = MAQ_ARENA_NEW(&p->arena, struct ranked, p->n);
    struct maq_profile_item *items = MAQ_ARENA_NEW(&p->arena, struct maq_profile_item, p->n);
    if (!ranked || !items)
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        ranked[i] = (struct ranked){p->items[i].share, i};
    qsort(ranked, p->n, sizeof *ranked, by_share);
    for (uint32_t i = 0; i < p->n; i++)
        items[i] = p->items[ranked[i].index];
    p->items = items;
    p->size = p->n;
    return true;
}

/* Whether the file has it, measured under the conditions that are asked for. */
static bool held(const struct maq_kernel_rows *rows, const struct maq_profile *p, const struct maq_profile_item *it)
{
    struct maq_kernel_row row = {.is_coll = it->c.is_coll,
                                 .mode = p->opts.sustained ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST,
                                 .warm = p->opts.warm};
    row.op = it->c.op;
    row.coll = it->c.coll;
    for (uint32_t i = 0; i < rows->n; i++)
        if (strcmp(rows->at[i].at.device, p->cluster.groups[p->group].device.name) == 0 &&
            maq_kernel_same(&rows->at[i], &row))
            return true;
    return false;
}

static void decide(struct maq_profile *p, struct maq_profile_item *it, uint32_t gpus)
{
    const struct maq_device *d = &p->cluster.groups[p->group].device;
    char need[32], have[32];
    it->why = maq_profile_fill_case(&it->c);
    it->bytes = it->c.workspace_bytes + 2 * d->l2_bytes;
    for (uint32_t i = 0; i < it->c.n_buffers; i++)
        it->bytes += it->c.bytes[i];
    it->estimate_s = maq_profile_measure_estimate_s(it->predicted_s, &p->opts, d);
    if (!it->why && it->bytes > USABLE_SHARE * d->mem_bytes) {
        maq_format_bytes(need, it->bytes);
        it->why =
            maq_arena_printf(&p->arena, "it needs %s of the device's %s", need, maq_format_bytes(have, d->mem_bytes));
        it->why = it->why ? it->why : "it needs more memory than the device has";
    }
    if (!it->why && it->c.is_coll && it->c.coll.at.size > gpus) {
        it->why = maq_arena_printf(&p->arena, "it needs %u GPUs, this machine has %u", it->c.coll.at.size, gpus);
        it->why = it->why ? it->why : "it needs more GPUs than this machine has";
    }
    it->state = it->why ? MAQ_PROFILE_SKIPPED : MAQ_PROFILE_PLANNED;
}

enum maq_status maq_profile_order(struct maq_profile *p, uint32_t gpus, struct maq_diag *diag)
{
    struct maq_kernel_rows rows = {0};
    if (p->has_file && !p->opts.again)
        MAQ_TRY(maq_kernel_rows_read(&rows, p->path, &p->arena, diag));
    price(p);
    if (p->failed || !sort(p))
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_PROFILE_NO_MEMORY, (struct maq_span){0}, NULL,
                             "out of memory for a plan of %u operators", p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        struct maq_profile_item *it = &p->items[i];
        decide(p, it, gpus);
        if (it->state == MAQ_PROFILE_PLANNED && held(&rows, p, it))
            it->state = MAQ_PROFILE_HELD;
        if (it->state == MAQ_PROFILE_PLANNED)
            p->estimate_s += it->estimate_s;
        p->counts[it->state]++;
    }
    return MAQ_OK;
}
