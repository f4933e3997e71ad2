/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_kineto.c - profiler traces from any bytes: what is read becomes a captured job, and that a graph with times. */
#include <stddef.h>
#include <stdint.h>

#include "capture/import/kineto/kineto.h"
#include "import_end.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_import_job job;
    struct maq_kineto k;
    if (!diag || maq_import_begin(&job, diag) != MAQ_OK)
        return 0;
    enum maq_status status = maq_kineto_parse(&k, "t", data, size, job.arena, diag);
    bool placed = k.world <= 0 || k.rank < k.world; /* the reader of files refuses others (MAQ1714) */
    if (status == MAQ_OK && placed && k.rank < 64 && k.world <= 64) {
        job.world = k.world > 0 ? (uint32_t)k.world : 0;
        struct maq_import_rank *rank = maq_import_add_rank(&job, "t", k.rank > 0 ? (uint32_t)k.rank : 0);
        status = rank ? maq_kineto_records(&job, rank, &k) : MAQ_NO_MEMORY;
    }
    maq_kineto_fini(&k);
    fuzz_import_end(&job, status, diag);
    maq_diag_free(diag);
    return 0;
}
