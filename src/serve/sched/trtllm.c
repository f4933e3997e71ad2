/* SPDX-License-Identifier: Apache-2.0 */
/* trtllm.c - GUARANTEED_NO_EVICT: blocks are promised to who is taken in, up to its last token. */
#include "serve/sched/trtllm.h"

#include "base/alloc.h"

struct trtllm {
    struct maq_vllm vllm; /* first: its operations are all that is different in none */
    int64_t promised;     /* blocks that those that run may come to hold */
};

/* Blocks of a request at its end, if it samples all it may. */
static int64_t whole_blocks(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    int64_t tokens = r->prompt + r->most, blocks = 0;
    if (tokens > s->knobs.max_model_len)
        tokens = s->knobs.max_model_len;
    for (uint32_t g = 0; g < s->kv.n_groups; g++) {
        int64_t n = (tokens + s->kv.group[g].block_size - 1) / s->kv.group[g].block_size;
        blocks += s->kv.cap[g] > 0 && s->kv.cap[g] < n ? s->kv.cap[g] : n;
    }
    return blocks;
}

static bool admits(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    return ((const struct trtllm *)s)->promised + whole_blocks(s, r) < s->kv.pool.n; /* block 0 is nobody's */
}

static void taken_in(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    ((struct trtllm *)s)->promised += whole_blocks(s, r);
}

static void left(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    ((struct trtllm *)s)->promised -= whole_blocks(s, r);
}

static const struct maq_vllm_admission no_evict = {admits, taken_in, left};

enum maq_status maq_trtllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                               const struct maq_kv_options *kv)
{
    struct trtllm *s = maq__malloc(sizeof *s);
    if (!s)
        return MAQ_NO_MEMORY;
    *out = &s->vllm.base;
    s->promised = 0;
    enum maq_status status = maq_vllm_init(&s->vllm, knobs, kv);
    s->vllm.admission = &no_evict;
    return status;
}
