/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traced_job.c - the job that readers of foreign traces fill in: interned operators and texts, ranks, communicators
 * and records, with one flag for out of memory. See traced_job.h.
 */
#include "capture/import/traced_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "capture/import/codes.h"
#include "cluster/device_name.h"

/* --- a job ----------------------------------------------------------------------------------------------------------- */

enum maq_status maq_import_begin(struct maq_import_job *job, struct maq_diag *diag)
{
    *job = (struct maq_import_job){.diag = diag};
    job->arena = maq__malloc(sizeof *job->arena);
    if (!job->arena)
        return maq_no_memory(diag, "an imported trace");
    maq_arena_init(job->arena, 0);
    maq_intern_init(&job->op, job->arena);
    maq_intern_init(&job->text, job->arena);
    return MAQ_OK;
}

void maq_import_drop(struct maq_import_job *job)
{
    for (uint32_t i = 0; i < job->n_ranks; i++) {
        free(job->rank[i].record);
        free(job->rank[i].comm);
    }
    free(job->rank);
    if (job->arena)
        maq_arena_fini(job->arena);
    free(job->arena);
    *job = (struct maq_import_job){0};
}

struct maq_import_rank *maq_import_add_rank(struct maq_import_job *job, const char *path, uint32_t rank)
{
    if (!maq__grow((void **)&job->rank, &job->rank_size, job->n_ranks, sizeof *job->rank)) {
        job->failed = true;
        return NULL;
    }
    struct maq_import_rank *out = &job->rank[job->n_ranks++];
    *out = (struct maq_import_rank){.rank = rank, .path = maq_arena_strdup(job->arena, maq_str_of(path))};
    job->failed |= !out->path;
    return out;
}

void maq_import_device(struct maq_import_job *job, const char *name)
{
    if (!name || !name[0] || job->device || job->device_said)
        return;
    const struct maq_catalogue_entry *e = maq_device_named(maq_str_of(name));
    job->device = e ? e->name : NULL;
    job->device_said = true;
    if (!e)
        maq_diag_add(job->diag, MAQ_NOTE, MAQ_CODE_IMPORT_DEVICE, (struct maq_span){0},
                     "`maquette show gpus` lists the names; --cluster says what to replay on",
                     "the catalogue has no device '%.80s', which the trace is of", name);
}

uint32_t maq_import_op(struct maq_import_job *job, const struct maq_rec_op *what, struct maq_str name)
{
    struct maq_buf b;
    maq_buf_init(&b, sizeof *what + ((size_t)1 << 20));
    struct maq_rec_op op = *what;
    op.name_bytes = (uint32_t)name.len;
    maq_buf_add(&b, &op, sizeof op);
    maq_buf_add(&b, name.ptr ? name.ptr : "", name.len);
    uint32_t id = b.failed ? UINT32_MAX : maq_intern_put(&job->op, b.ptr, b.len, NULL);
    maq_buf_fini(&b);
    job->failed |= id == UINT32_MAX;
    return id == UINT32_MAX ? 0 : id;
}

uint32_t maq_import_text(struct maq_import_job *job, struct maq_str text)
{
    uint32_t id = maq_intern_put(&job->text, text.ptr ? text.ptr : "", text.len, NULL);
    job->failed |= id == UINT32_MAX;
    return id == UINT32_MAX ? 0 : id;
}

static bool same_comm(const struct maq_import_comm *c, struct maq_str name, const uint32_t *member, uint32_t size)
{
    if (c->size != size || !maq_str_eq(maq_str_of(c->name), name))
        return false;
    return c->source == member || (c->member && member && memcmp(c->member, member, size * sizeof *member) == 0);
}

uint32_t maq_import_comm(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_str name,
                         const uint32_t *member, uint32_t size)
{
    for (uint32_t i = 0; i < rank->n_comms; i++)
        if (same_comm(&rank->comm[i], name, member, size))
            return i;
    if (!maq__grow((void **)&rank->comm, &rank->comm_size, rank->n_comms, sizeof *rank->comm)) {
        job->failed = true;
        return 0;
    }
    struct maq_import_comm *c = &rank->comm[rank->n_comms];
    *c = (struct maq_import_comm){.size = size, .source = member, .position = UINT32_MAX};
    c->name = name.len > 0 ? maq_arena_strdup(job->arena, name) : NULL;
    uint32_t *copy = member ? MAQ_ARENA_NEW(job->arena, uint32_t, size) : NULL;
    job->failed |= (name.len > 0 && !c->name) || (member && !copy);
    for (uint32_t i = 0; copy && i < size; i++) {
        copy[i] = member[i];
        if (member[i] == rank->rank)
            c->position = i;
    }
    c->member = c->position != UINT32_MAX ? copy : NULL; /* a list that lacks this rank cannot be its communicator's */
    return rank->n_comms++;
}

const uint32_t *maq_import_everyone(struct maq_import_job *job, uint32_t n)
{
    if (job->n_everyone >= n)
        return job->everyone;
    job->everyone = MAQ_ARENA_NEW(job->arena, uint32_t, n);
    job->n_everyone = job->everyone ? n : 0;
    for (uint32_t i = 0; i < job->n_everyone; i++)
        job->everyone[i] = i;
    job->failed |= !job->everyone;
    return job->everyone;
}

static struct maq_rec *add_record(struct maq_import_job *job, struct maq_import_rank *rank, enum maq_rec_kind kind)
{
    if (!maq__grow((void **)&rank->record, &rank->record_size, rank->n_records, sizeof *rank->record)) {
        job->failed = true;
        return &job->spare;
    }
    struct maq_rec *r = &rank->record[rank->n_records++];
    *r = (struct maq_rec){.kind = (uint8_t)kind, .stream = MAQ_REC_HOST_STREAM};
    return r;
}

struct maq_rec *maq_import_record(struct maq_import_job *job, struct maq_import_rank *rank, enum maq_rec_kind kind,
                                  int64_t host_ns)
{
    MAQ_ASSERT(host_ns >= 0);
    if (host_ns > UINT32_MAX) {
        add_record(job, rank, MAQ_REC_HOST)->ns = (uint64_t)host_ns;
        host_ns = 0;
    }
    struct maq_rec *r = add_record(job, rank, kind);
    r->host_ns = (uint32_t)host_ns;
    return r;
}
