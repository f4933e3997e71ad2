/* SPDX-License-Identifier: Apache-2.0 */
/* check_requests.c - whether a deployment can ever serve requests. */
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/deployment.h"
#include "serve/sched/sglang.h"

/* Tokens of the cache that a scheduler wants to see free for a request before it takes it in, or that it comes to hold. */
static int64_t room_of(const struct maq_deployment *d, const struct maq_request *r, enum maq_role role)
{
    int64_t output = role == MAQ_ROLE_PREFILL ? 1 : r->output, page = d->options.block_size, most = r->prompt + output;
    if (d->options.engine != MAQ_ENGINE_SGLANG)
        return most;
    if (role != MAQ_ROLE_DECODE)
        return maq_sglang_room(r->prompt, output, d->options.block_size);
    int64_t first = (r->prompt + page - 1) / page * page + d->options.sglang.reserved_decode_tokens;
    return first > most ? first : most;
}

static bool was_told(const struct maq_diag *diag, uint16_t code)
{
    for (size_t i = 0; diag && i < maq_diag_count(diag); i++)
        if (maq_diag_at(diag, i)->code == code)
            return true;
    return false;
}

/* Prompts that are computed whole and fill an iteration have no room beside anybody who decodes: requests are served one after the other. */
static void warn_of_whole_prompts(const struct maq_deployment *d, const struct maq_requests *q, enum maq_role role,
                                  struct maq_diag *diag)
{
    uint32_t filling = 0;
    if (role != MAQ_ROLE_BOTH || !d->options.no_chunked_prefill || d->options.engine == MAQ_ENGINE_SGLANG || q->n < 2)
        return;
    for (uint32_t i = 0; i < q->n; i++)
        filling += q->at[i].prompt >= d->options.max_num_batched_tokens && q->at[i].output > 1;
    if (filling > 0 && !was_told(diag, MAQ_CODE_SERVE_WHOLE))
        maq_diag_add(
            diag, MAQ_WARNING, MAQ_CODE_SERVE_WHOLE, (struct maq_span){0},
            "--max-num-batched-tokens above the longest prompt and all that decode beside it, or chunked prefill",
            "%u of %u prompts fill an iteration of %d tokens and are computed whole: only while no other request "
            "decodes",
            filling, q->n, d->options.max_num_batched_tokens);
}

/* Requests that no scheduler could ever take in are named before any runs. */
enum maq_status maq_deployment_check(const struct maq_deployment *d, const struct maq_requests *q, enum maq_role role,
                                     struct maq_diag *diag)
{
    double before = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_request *r = &q->at[i];
        int64_t tokens = r->prompt + r->output, room = room_of(d, r, role);
        if (r->prompt < 1 || r->output < 1)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_EMPTY, (struct maq_span){0}, NULL,
                                 "request %u has %lld tokens in and %lld out: both are at least 1", i + 1,
                                 (long long)r->prompt, (long long)r->output);
        if (tokens > d->options.max_model_len)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                                 "--max-model-len, or shorter requests",
                                 "request %u has %lld tokens in and %lld out, the context is %lld", i + 1,
                                 (long long)r->prompt, (long long)r->output, (long long)d->options.max_model_len);
        if (role != MAQ_ROLE_DECODE && d->options.no_chunked_prefill && d->options.engine != MAQ_ENGINE_SGLANG &&
            r->prompt > d->options.max_num_batched_tokens)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_LONG, (struct maq_span){0},
                                 "--max-num-batched-tokens, or shorter prompts",
                                 "request %u has %lld tokens in, which are computed at once, an iteration has %d",
                                 i + 1, (long long)r->prompt, d->options.max_num_batched_tokens);
        if (room > d->kv_tokens)
            return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0},
                                 "more memory for the cache: a higher --tp, a narrower type, --gpu-memory-utilization",
                                 "request %u needs room for %lld tokens, the cache holds %lld", i + 1, (long long)room,
                                 (long long)d->kv_tokens);
        if (q->concurrency == 0 && r->arrival_s < before)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_REQUEST_ORDER, (struct maq_span){0},
                                 "sort them by arrival", "request %u comes before request %u: time goes back", i + 1,
                                 i);
        if (r->adapter != 0 && !d->options.lora.enabled)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_LORA, (struct maq_span){0},
                                 "--enable-lora, with --max-loras and --max-lora-rank",
                                 "request %u has an adapter of LoRA, for which the deployment has no slots", i + 1);
        MAQ_TRY(maq_deployment_check_images(d, q, i, diag));
        before = r->arrival_s;
    }
    warn_of_whole_prompts(d, q, role, diag);
    return MAQ_OK;
}
