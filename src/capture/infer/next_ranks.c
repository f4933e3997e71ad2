/* SPDX-License-Identifier: Apache-2.0 */
/* next_ranks.c - the list of ranks that have to run next, without repetitions. See infer.h. */
#include "capture/infer/infer.h"

void maq_infer_next_ranks(struct maq_infer *f, uint32_t rank)
{
    for (uint32_t i = 0; i < f->n_asked; i++)
        if (f->asked[i] == rank)
            return;
    if (f->n_asked < f->most)
        f->asked[f->n_asked++] = rank;
}
