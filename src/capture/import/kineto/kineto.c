/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto.c - PyTorch-profiler traces, one file per rank, as a captured job.
 *
 * A file names its rank (distributedInfo). One that does not is rank 0 when it is alone, and otherwise has the rank of its place
 * among the paths. The world is the largest that a file names.
 */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/kineto.h"
#include "capture/import/readers.h"

static const struct maq_span nowhere;

bool maq_import_kineto_probe(const unsigned char *head, size_t n)
{
    size_t i = 0;
    if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        return true;
    if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        i = 3;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    static const char *const words[] = {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"ph\""};
    bool found = false;
    for (size_t w = 0; w < MAQ_COUNT(words); w++)
        found |= memmem(head, n, words[w], strlen(words[w])) != NULL;
    return i < n && (head[i] == '{' || head[i] == '[') && found;
}

static enum maq_status add_file(struct maq_import_job *job, const char *path, uint32_t place, bool alone,
                                struct maq_kineto *k)
{
    MAQ_TRY(maq_kineto_read(k, path, job->arena, job->diag));
    if (k->world > MAQ_IMPORT_WORLD || k->rank >= MAQ_IMPORT_WORLD || (k->world >= 1 && k->rank >= k->world))
        return maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_RANK, nowhere, NULL,
                             "%s: rank %lld of a job of %lld", path, (long long)k->rank, (long long)k->world);
    if (job->world == 0 && k->world >= 1)
        job->world = (uint32_t)k->world;
    else if (k->world >= 1 && job->world != (uint32_t)k->world)
        return maq_diag_fail(
            MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_RANK, nowhere, "give the traces of one job at a time",
            "%s is of a job of %lld ranks, the ones before of %u", path, (long long)k->world, job->world);
    if (!job->device)
        maq_import_device(job, k->device);
    if (job->per_node == 0)
        job->per_node = k->n_devices;
    struct maq_import_rank *rank = maq_import_add_rank(job, path, k->rank >= 0 ? (uint32_t)k->rank : alone ? 0 : place);
    if (!rank || job->failed)
        return maq_diag_fail(MAQ_NO_MEMORY, job->diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", path);
    return maq_kineto_records(job, rank, k);
}

enum maq_status maq_import_kineto(struct maq_capture **out, const char *const *paths, uint32_t n, struct maq_diag *diag)
{
    struct maq_import_job job;
    MAQ_TRY(maq_import_begin(&job, diag));
    for (uint32_t i = 0; i < n; i++) {
        struct maq_kineto k = {0};
        enum maq_status status = add_file(&job, paths[i], i, n == 1, &k);
        maq_kineto_fini(&k);
        if (status != MAQ_OK) {
            maq_import_drop(&job);
            return status;
        }
    }
    return maq_import_finish(out, &job);
}
