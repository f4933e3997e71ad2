/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chakra.c - Chakra execution traces from any bytes: what is read becomes a captured job, and that a graph with times. */
#include <stddef.h>
#include <stdint.h>

#include "capture/import/chakra/read.h"
#include "import_end.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_import_job job;
    struct maq_chakra k;
    struct maq_chakra_tally tally = {0};
    if (!diag || maq_import_begin(&job, diag) != MAQ_OK)
        return 0;
    (void)maq_import_chakra_probe(data, size);
    enum maq_status status = maq_chakra_parse(&k, "t", data, size, job.arena, diag);
    job.world = k.world > 0 && k.world <= 64 ? (uint32_t)k.world : 4;
    if (status == MAQ_OK && k.rank < 64) {
        struct maq_import_rank *rank = maq_import_add_rank(&job, "t", k.rank > 0 ? (uint32_t)k.rank : 0);
        status = rank ? maq_chakra_records(&job, rank, &k, &tally) : MAQ_NO_MEMORY;
    }
    maq_chakra_fini(&k);
    fuzz_import_end(&job, status, diag);
    maq_diag_free(diag);
    return 0;
}
