/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a plan carried out: operator by operator, each result written before the next one begins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "graph/items.h"
#include "measure/codes.h"
#include "measure/plan.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *timestamp(char buf[32])
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(buf, 32, "1970-01-01T00:00:00Z");
    return buf;
}

/* --- which GPU ------------------------------------------------------------------------------------------------ */

/* The node group of a job's cluster that has the device. */
static bool find_group(struct maq_profile *p, const char *device)
{
    for (uint32_t g = 0; g < p->cluster.n_groups; g++)
        if (strcmp(p->cluster.groups[g].device.name, device) == 0) {
            p->group = (uint16_t)g;
            return true;
        }
    return false;
}

/* What the GPU at hand is in the catalogue; NULL when nobody says. */
static const char *device_at_hand(const struct maq_profile_opts *opts, const struct maq_profile_backend *backend)
{
    if (opts->device) {
        const char *name = maq_profile_device_named(opts->device);
        return name ? name : opts->device;
    }
    return backend ? maq_profile_device_named(backend->gpu.name) : NULL;
}

static enum maq_status choose_device(struct maq_profile *p, const struct maq_job *job,
                                     const struct maq_profile_backend *backend, struct maq_diag *diag)
{
    const char *device = device_at_hand(&p->opts, backend);
    if (job) {
        p->cluster = job->cluster;
        if (!device && backend)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_DEVICE, (struct maq_span){0},
                                 "say which GPU of the job it is with --device",
                                 "the catalogue does not know the GPU '%s' by its name", backend->gpu.name);
        if (!device || find_group(p, device))
            return MAQ_OK;
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_OTHER_DEVICE, (struct maq_span){0},
                             "change the job's cluster, or say with --device what the GPU at hand is",
                             "the job runs on %s, the GPU at hand is %s%s%s%s", p->cluster.groups[0].device.name,
                             device, backend ? " (" : "", backend ? backend->gpu.name : "", backend ? ")" : "");
    }
    if (!device)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_DEVICE, (struct maq_span){0},
                             "say which GPU it is with --device NAME; maquette show gpus lists the names",
                             backend ? "the catalogue does not know the GPU '%s' by its name"
                                     : "a grid without a GPU at hand needs the name of one%s",
                             backend ? backend->gpu.name : "");
    return maq_profile_cluster_of(&p->cluster, device, &p->arena, diag);
}

/* --- measuring ------------------------------------------------------------------------------------------------ */

/* What a run carries from operator to operator. */
struct run {
    struct maq_profile *p;
    const struct maq_profile_backend *backend;
    struct maq_kernel_store *store;
    double begin_s;
    double repetition[MAQ_PROFILE_REPETITIONS]; /* of the operator at hand */
    struct maq_diag *diag;
};

static enum maq_status keep(struct run *r, struct maq_profile_item *it, const char *kernel,
                            const struct maq_profile_sense *sense)
{
    char created[32];
    const struct maq_profile_gpu *gpu = &r->backend->gpu;
    struct maq_kernel_row row = {.at = {.device = r->p->cluster.groups[r->p->group].device.name,
                                        .gpu = gpu->name,
                                        .driver = gpu->driver,
                                        .cuda = gpu->cuda,
                                        .cublas = gpu->cublas,
                                        .cudnn = gpu->cudnn,
                                        .nccl = gpu->nccl},
                                 .is_coll = it->c.is_coll,
                                 .op = it->c.op,
                                 .coll = it->c.coll,
                                 .mode = r->p->opts.sustained ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST,
                                 .warm = r->p->opts.warm,
                                 .kernel = kernel,
                                 .times = it->times,
                                 .state = {sense->sm_hz, sense->memory_hz, sense->power_w, sense->celsius},
                                 .created = timestamp(created)};
    return maq_kernel_store_put(r->store, &row, r->diag);
}

static enum maq_status failed(struct run *r, const struct maq_profile_item *it, const char *why)
{
    char text[96];
    struct maq_item item = {.is_coll = it->c.is_coll, .op = it->c.op, .coll = it->c.coll};
    return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_PROFILE_FAILED, (struct maq_span){0},
                         "what was measured before is in the file", "%s failed: %s", maq_item_describe(text, &item),
                         why);
}

static enum maq_status measure(struct run *r, struct maq_profile_item *it)
{
    char why[MAQ_PROFILE_WHY] = "";
    const char *kernel = "unknown";
    const struct maq_profile_backend *b = r->backend;
    struct maq_profile_sense sense;
    enum maq_profile_answer answer = b->prepare(b->state, &it->c, &kernel, why);
    if (answer == MAQ_PROFILE_BROKEN)
        return failed(r, it, why);
    if (answer == MAQ_PROFILE_REFUSES) {
        it->state = MAQ_PROFILE_REFUSED;
        it->why = maq_arena_strdup(&r->p->arena, (struct maq_str){why, strnlen(why, sizeof why)});
        return it->why ? MAQ_OK : MAQ_NO_MEMORY;
    }
    bool good = maq_profile_measure(&it->times, r->repetition, &sense, b, &r->p->opts, why);
    b->release(b->state);
    if (!good)
        return failed(r, it, why);
    it->state = MAQ_PROFILE_MEASURED;
    enum maq_status status = keep(r, it, kernel, &sense);
    it->times.repetition = NULL; /* the next one's are put there */
    return status;
}

/* Whether to begin another operator. */
static bool goes_on(const struct run *r, const struct maq_profile_item *it, uint32_t done)
{
    char text[96];
    struct maq_profile *p = r->p;
    struct maq_item item = {.is_coll = it->c.is_coll, .op = it->c.op, .coll = it->c.coll};
    struct maq_profile_progress progress = {.what = maq_item_describe(text, &item),
                                            .done = done,
                                            .total = p->counts[MAQ_PROFILE_PLANNED],
                                            .elapsed_s = now_s() - r->begin_s,
                                            .estimate_s = p->estimate_s};
    if (p->opts.budget_s > 0 && progress.elapsed_s >= p->opts.budget_s)
        return false;
    return !p->opts.progress || p->opts.progress(p->opts.user, &progress);
}

static enum maq_status measure_all(struct run *r)
{
    struct maq_profile *p = r->p;
    uint32_t done = 0, counts[MAQ_PROFILE_STATE_COUNT] = {0};
    bool going = true;
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < p->n; i++) {
        struct maq_profile_item *it = &p->items[i];
        if (it->state == MAQ_PROFILE_PLANNED && status == MAQ_OK) {
            going = going && goes_on(r, it, done++);
            if (going)
                status = measure(r, it);
            else
                it->state = MAQ_PROFILE_LEFT;
        }
        counts[it->state]++;
    }
    memcpy(p->counts, counts, sizeof counts);
    return status;
}

/* --- the whole ------------------------------------------------------------------------------------------------ */

static enum maq_status fill(struct maq_profile *p, const struct maq_job *job, const struct maq_profile_backend *backend,
                            struct maq_diag *diag)
{
    MAQ_TRY(choose_device(p, job, backend, diag));
    if (job)
        MAQ_TRY(maq_profile_add_job(p, job, diag));
    maq_profile_add_grid(p, p->opts.grid);
    return maq_profile_order(p, backend ? backend->gpu.count : (uint32_t)p->cluster.groups[p->group].devices_per_node,
                             diag);
}

enum maq_status maq_profile_run_with(struct maq_profile **out, const struct maq_job *job,
                                     const struct maq_profile_opts *opts, const struct maq_profile_backend *backend,
                                     struct maq_diag *diag)
{
    struct maq_profile *p = calloc(1, sizeof *p);
    struct run r = {.p = p, .backend = backend, .begin_s = now_s(), .diag = diag};
    if (!p)
        return MAQ_NO_MEMORY;
    maq_arena_init(&p->arena, 0);
    p->opts = *opts;
    p->path = opts->path;
    enum maq_status status = MAQ_OK;
    if (backend && !opts->dry_run) /* before anything is measured: a file that refuses is known now */
        status = maq_kernel_store_open(&r.store, opts->path, diag);
    if (backend && !(p->gpu = maq_arena_strdup(&p->arena, maq_str_of(backend->gpu.name))))
        status = MAQ_NO_MEMORY;
    p->has_file = r.store || (p->path && access(p->path, F_OK) == 0);
    if (status == MAQ_OK)
        status = fill(p, job, backend, diag);
    if (status == MAQ_OK && r.store)
        status = measure_all(&r);
    maq_kernel_store_close(r.store);
    if (status != MAQ_OK) {
        maq_profile_free(p);
        return status;
    }
    *out = p;
    return MAQ_OK;
}

enum maq_status maq_profile_run(struct maq_profile **out, const struct maq_job *job,
                                const struct maq_profile_opts *opts, struct maq_diag *diag)
{
    struct maq_profile_backend backend;
    void *handle;
    char why[MAQ_PROFILE_WHY] = "";
    if (!job && opts->grid == MAQ_PROFILE_NO_GRID)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_PROFILE_NOTHING, (struct maq_span){0},
                             "name a job, or a grid: maquette profile --grid quick", "there is nothing to measure");
    if (opts->dry_run)
        return maq_profile_run_with(out, job, opts, NULL, diag);
    if (!opts->path)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_PROFILE_NOTHING, (struct maq_span){0}, NULL,
                             "there is no file to write measurements into");
    if (!maq_profile_find_backend(&backend, &handle, why))
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_PROFILE_NO_GPU, (struct maq_span){0},
                             "--dry-run shows what would be measured", "nothing can be measured here: %s", why);
    enum maq_status status = maq_profile_run_with(out, job, opts, &backend, diag);
    maq_profile_close_backend(&backend, handle);
    return status;
}

void maq_profile_free(struct maq_profile *profile)
{
    if (profile)
        maq_arena_fini(&profile->arena);
    free(profile);
}
