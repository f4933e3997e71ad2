/* SPDX-License-Identifier: Apache-2.0 */
/* starvation.c - what requests wait for that wait when nothing is left that could happen. */
#include "serve/codes.h"
#include "serve/engine/engine.h"
#include "serve/engine/run.h"

enum maq_status maq_engine_starved(const struct maq_serve_engine *engines, uint32_t n, struct maq_diag *diag)
{
    struct maq_tiers_in_vain vain;
    for (uint32_t k = 0; k < n; k++)
        if (maq_tiers_find_in_vain(&engines[k], &vain))
            return maq_diag_fail(
                MAQ_NO, diag, MAQ_CODE_SERVE_IN_VAIN, (struct maq_span){0},
                "a larger --kv-offloading-size, or no drive and no pool behind it",
                "request %u waits for ever for its beginning, of %u chunks, some of which are in a drive or "
                "pool: vLLM brings them into host memory, which holds %lld, and those that it has brought "
                "push each other out before all are there",
                vain.request + 1, vain.chunks, (long long)vain.room);
    return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0}, NULL,
                         "requests wait that never find room in the cache");
}
