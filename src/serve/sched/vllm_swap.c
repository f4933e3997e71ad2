/* SPDX-License-Identifier: Apache-2.0 */
/* vllm_swap.c - what the GPU's blocks lose goes to host memory and is moved back for who begins with it: TensorRT-LLM's (serve/kv/swap.h). */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/sched/vllm.h"

enum maq_status maq_vllm_set_swap(struct maq_vllm *s, int64_t places)
{
    s->swap = maq__malloc(sizeof *s->swap);
    if (!s->swap)
        return MAQ_NO_MEMORY;
    s->kv.hash_all = true;
    return maq_swap_init(s->swap, places, &s->kv.pool);
}

void maq_vllm_swap_fini(struct maq_vllm *s)
{
    if (s->swap)
        maq_swap_fini(s->swap);
    free(s->swap);
    s->swap = NULL;
}

int64_t maq_vllm_swap_claim(struct maq_vllm *s, const struct maq_vllm_request *r, int64_t found)
{
    int32_t block = s->kv.group[0].block_size;
    if (!s->swap)
        return 0;
    return (int64_t)maq_swap_claim(s->swap, &r->kv, found / block, r->tokens - 1, block) * block;
}

bool maq_vllm_swap_end(struct maq_vllm *s, bool moved)
{
    if (s->swap && moved)
        maq_swap_back(s->swap);
    else if (s->swap)
        maq_swap_leave(s->swap);
    s->base.failed |= s->swap && s->swap->failed;
    return moved;
}
