/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_plan.c - mixed plans from any bytes: what parses is written and read back, and the second writing has the bytes of the first.
 * Input that starts with '+' is put into the frame of an executed plan, so that a mutation reaches its replicas.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/mixed_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct maq_mixed_plan *plan)
{
    char *once = NULL, *twice = NULL;
    struct maq_loaded_mixed_plan *box = NULL;
    MAQ_ASSERT(plan->layers > 0 && plan->n_pipelines > 0 && maq_mixed_microbatches(plan) > 0);
    if (maq_mixed_plan_write(&once, plan, NULL) != MAQ_OK)
        return; /* names that are not UTF-8 cannot come from a document: only memory is left as a reason */
    MAQ_ASSERT(maq_mixed_plan_parse(&box, "written", maq_str_of(once), NULL) == MAQ_OK);
    MAQ_ASSERT(maq_mixed_plan_write(&twice, maq_mixed_plan_get(box), NULL) == MAQ_OK);
    MAQ_ASSERT(strcmp(once, twice) == 0);
    maq_mixed_plan_free(box);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_buf text;
    struct maq_loaded_mixed_plan *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    bool framed = size > 0 && data[0] == '+';
    maq_buf_init(&text, (size_t)1 << 20);
    if (framed)
        maq_buf_adds(&text, "{\"mbs\": 1, \"gbs\": 4, \"pipeline_list\": [{\"num_stages\": 1, \"dp\": [1], "
                            "\"layers_per_stage\": [[0, 1]], \"tmp_per_stage\": [");
    maq_buf_add(&text, data + framed, size - framed);
    if (framed)
        maq_buf_adds(&text, "]}]}");
    if (diag && !text.failed) {
        struct maq_str document = {text.ptr ? text.ptr : "", text.len};
        if (maq_mixed_plan_parse(&box, "plan", document, diag) == MAQ_OK)
            round_trip(maq_mixed_plan_get(box));
        else
            MAQ_ASSERT(maq_diag_errors(diag) > 0);
    }
    maq_mixed_plan_free(box);
    free(maq_diag_format(diag, 0, false));
    maq_buf_fini(&text);
    maq_diag_free(diag);
    return 0;
}
