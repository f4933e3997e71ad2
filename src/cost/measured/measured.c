/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.c - measured kernels as an immutable table.
 *
 * Several rows of a file may answer for one operator: other driver versions, bursts and sustained runs, cold and warm
 * caches. Each question takes the row made under the conditions nearest to its own:
 *
 *   a training step (burst = false)   sustained cold, sustained warm, burst cold, burst warm
 *   a short loop (burst = true)       burst warm, burst cold, sustained warm, sustained cold
 *
 * and of equal conditions the newest. The stated error is
 *
 *   sqrt((s / (m sqrt(n)))^2 + REPEAT^2 + [conditions differ in power] POWER^2)
 *
 * with m the median, s the standard deviation and n the repetitions of the measurement.
 *
 *   REPEAT 0.02  the same kernel measured again by somebody else: three independent sources of one collective agree
 *                within 2 % (docs/cost-model.md, "Errors of collectives")
 *   POWER 0.10   a matrix kernel timed in a burst runs 7 to 17 % faster than it keeps up under the power limit
 *                (docs/cost-model.md, "Rates"); other kernels are bounded by memory, whose clock no power limit lowers
 *
 * Serving engines bring kernels of their own, so that the table answers for the training libraries only, and for their
 * usual implementation.
 */
#include "cost/measured/measured.h"
#include "cost/fitted/table.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"
#include "cost/codes.h"
#include "cost/measured/op_key.h"
#include "cost/measured/store.h"

#define REPEAT_ERROR 0.02
#define POWER_ERROR 0.10

enum purpose { FOR_STEP, FOR_LOOP, PURPOSES };

/* One operator or collective on one device, and the row that answers for each purpose. */
struct entry {
    uint64_t hash;
    const struct maq_kernel_row *best[PURPOSES]; /* NULL: a free slot */
};

struct maq_measured {
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct entry *table; /* open addressing */
    uint32_t size;
};

static uint64_t hash_device(const char *device)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *device; device++)
        h = (h ^ (unsigned char)*device) * 0x100000001b3u;
    return h;
}

_Static_assert(sizeof(struct maq_op) % 8 == 0 && sizeof(struct maq_coll) % 8 == 0, "hashed by words");
_Static_assert(offsetof(struct maq_coll, zero) == sizeof(struct maq_coll) - sizeof(uint32_t) &&
                   offsetof(struct maq_coll, zero) == offsetof(struct maq_coll, at) + sizeof(struct maq_placement) &&
                   sizeof(struct maq_placement) == 4 * sizeof(uint32_t) + 4,
               "compared and hashed byte for byte: no byte is padding");

static uint64_t hash_op(const struct maq_op *op, const char *device)
{
    return maq_hash_words(op, sizeof *op) ^ hash_device(device);
}

static uint64_t hash_coll(const struct maq_coll *coll, const char *device)
{
    return ~maq_hash_words(coll, sizeof *coll) ^ hash_device(device);
}

static bool is_of(const struct maq_kernel_row *row, const struct maq_op *op, const struct maq_coll *coll,
                  const char *device)
{
    if (row->is_coll != (coll != NULL) || strcmp(row->at.device, device) != 0)
        return false;
    return coll ? memcmp(&row->coll, coll, sizeof *coll) == 0 : memcmp(&row->op, op, sizeof *op) == 0;
}

/* The slot of a key, or the free one where it belongs. */
static struct entry *slot_of(const struct maq_measured *m, uint64_t hash, const struct maq_op *op,
                             const struct maq_coll *coll, const char *device)
{
    uint32_t mask = m->size - 1, i = (uint32_t)hash & mask;
    for (; m->table[i].best[FOR_STEP]; i = (i + 1) & mask)
        if (m->table[i].hash == hash && is_of(m->table[i].best[FOR_STEP], op, coll, device))
            break;
    return &m->table[i];
}

/* How near the conditions of a row are to those of a purpose; more is nearer. */
static int fitness(const struct maq_kernel_row *row, enum purpose purpose)
{
    bool sustained = row->mode == MAQ_KERNEL_SUSTAINED;
    return purpose == FOR_STEP ? 2 * sustained + !row->warm : 2 * !sustained + row->warm;
}

static void offer(struct entry *e, const struct maq_kernel_row *row)
{
    for (int p = 0; p < PURPOSES; p++) {
        const struct maq_kernel_row *held = e->best[p];
        int better = held ? fitness(row, (enum purpose)p) - fitness(held, (enum purpose)p) : 1;
        if (better > 0 || (better == 0 && strcmp(row->created, held->created) >= 0))
            e->best[p] = row;
    }
}

static enum maq_status build(struct maq_measured *m)
{
    m->size = 16;
    while (m->size < 2 * (uint64_t)m->rows.n)
        m->size *= 2;
    m->table = MAQ_ARENA_NEW(&m->arena, struct entry, m->size);
    if (!m->table)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < m->rows.n; i++) {
        const struct maq_kernel_row *row = &m->rows.at[i];
        const struct maq_coll *coll = row->is_coll ? &row->coll : NULL;
        uint64_t hash = coll ? hash_coll(coll, row->at.device) : hash_op(&row->op, row->at.device);
        struct entry *e = slot_of(m, hash, &row->op, coll, row->at.device);
        e->hash = hash;
        offer(e, row);
    }
    return MAQ_OK;
}

enum maq_status maq_measured_open(struct maq_measured **out, const char *path, struct maq_diag *diag)
{
    struct maq_measured *m = calloc(1, sizeof *m);
    enum maq_status status = MAQ_NO_MEMORY;
    if (m) {
        maq_arena_init(&m->arena, 0);
        status = maq_kernel_rows_read(&m->rows, path, &m->arena, diag);
        if (status == MAQ_OK)
            status = build(m);
    }
    if (status == MAQ_OK) {
        *out = m;
        return MAQ_OK;
    }
    maq_measured_close(m);
    if (status == MAQ_NO_MEMORY)
        (void)maq_diag_fail(status, diag, MAQ_CODE_KERNELS_NO_MEMORY, (struct maq_span){0}, NULL,
                            "out of memory for the measured kernels of %s", path);
    return status;
}

void maq_measured_close(struct maq_measured *measured)
{
    if (measured)
        maq_arena_fini(&measured->arena);
    free(measured);
}

uint32_t maq_measured_count(const struct maq_measured *measured, const char *device)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < measured->size; i++) {
        const struct maq_kernel_row *row = measured->table[i].best[FOR_STEP];
        n += row && (!device || strcmp(row->at.device, device) == 0);
    }
    return n;
}

/* --- answers -------------------------------------------------------------------------------------------------- */

static bool asked(const struct maq_costs *costs)
{
    return costs && costs->measured && (costs->best == MAQ_PROVIDER_NONE || costs->best == MAQ_PROVIDER_MEASURED) &&
           costs->library == MAQ_LIBRARY_TRAINING && !costs->kernel;
}

static struct maq_cost cost_of(const struct maq_kernel_row *row, bool burst)
{
    const struct maq_kernel_times *t = &row->times;
    double spread = t->stddev_s / (t->median_s * sqrt((double)t->n));
    bool other_power = !burst != (row->mode == MAQ_KERNEL_SUSTAINED);
    double power = other_power && !row->is_coll && maq_op_work(&row->op).matrix_flop > 0 ? POWER_ERROR : 0;
    return (struct maq_cost){.seconds = t->median_s,
                             .error = (float)sqrt(spread * spread + REPEAT_ERROR * REPEAT_ERROR + power * power),
                             .provider = MAQ_PROVIDER_MEASURED};
}

bool maq_measured_op(struct maq_cost *out, const struct maq_costs *costs, const struct maq_op *op,
                     const struct maq_device *device)
{
    if (!asked(costs))
        return false;
    const struct maq_op key = maq_op_canonical(op);
    const struct entry *e = slot_of(costs->measured, hash_op(&key, device->name), &key, NULL, device->name);
    const struct maq_kernel_row *row = e->best[costs->burst ? FOR_LOOP : FOR_STEP];
    if (row)
        *out = cost_of(row, costs->burst);
    if (row && !costs->burst && row->mode != MAQ_KERNEL_SUSTAINED && maq_op_work(op).matrix_flop > 0)
        out->seconds = maq__under_load_s(out->seconds, op, device, costs);
    return row != NULL;
}

bool maq_measured_coll(struct maq_cost *out, const struct maq_costs *costs, const struct maq_coll *coll,
                       const struct maq_cluster *cluster)
{
    if (!asked(costs) || !maq_coll_is_local(coll))
        return false;
    const char *device = cluster->groups[coll->at.group].device.name;
    const struct maq_coll key = maq_coll_canonical(coll);
    const struct entry *e = slot_of(costs->measured, hash_coll(&key, device), NULL, &key, device);
    const struct maq_kernel_row *row = e->best[costs->burst ? FOR_LOOP : FOR_STEP];
    if (row)
        *out = cost_of(row, costs->burst);
    return row != NULL;
}
