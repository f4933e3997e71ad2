/* SPDX-License-Identifier: Apache-2.0 */
/* choose_scheduler.c - which scheduler an engine has, and what it is told. */
#include <math.h>

#include "serve/engine/engine.h"
#include "serve/sched/sglang.h"
#include "serve/sched/trtllm.h"
#include "serve/sched/vllm.h"

static struct maq_vllm_knobs vllm_knobs(const struct maq_deployment *d)
{
    const struct maq_serve_options *o = &d->options;
    const struct maq_speculation *s = &o->speculation;
    return (struct maq_vllm_knobs){
        .max_num_seqs = o->max_num_seqs,
        .max_num_batched_tokens = o->max_num_batched_tokens,
        .max_model_len = o->max_model_len,
        .long_prefill_token_threshold = o->long_prefill_token_threshold,
        .chunked_prefill = !o->no_chunked_prefill,
        .priority = o->by_priority,
        .async = d->host.async,
        .stagger = (int32_t)d->passes.n_stages,
        .reserve_full_isl = true,
        .spec_tokens = s->method == MAQ_DRAFT_NONE ? 0 : s->tokens,
        .lookahead_tokens = maq_deployment_has_drafter(d) ? s->tokens : 0,
        .draft_slots = s->method == MAQ_DRAFT_MODEL,
        .image_budget = o->engine == MAQ_ENGINE_VLLM && !o->encoder.elsewhere ? o->max_num_batched_tokens : 0,
        .max_loras = o->lora.max_loras};
}

/* EAGLE's and MTP's keys at a place are made of the next token too, so that those of a prefix's last block may be another text's. */
static bool reads_next_token(const struct maq_deployment *d)
{
    enum maq_draft_method m = d->options.speculation.method;
    return m == MAQ_DRAFT_EAGLE || m == MAQ_DRAFT_EAGLE3 || m == MAQ_DRAFT_MTP;
}

/* A server that decodes alone has no tree, and rows for those on the way where it was told to run few (pd_disaggregation_hook.py). */
#define FEW_RUNNING 32

static void set_part(struct maq_sglang_knobs *k, const struct maq_serve_options *o, enum maq_role role)
{
    if (role == MAQ_ROLE_BOTH)
        return;
    k->part = role == MAQ_ROLE_PREFILL ? MAQ_PART_PREFILL : MAQ_PART_DECODE;
    k->mixed = false;
    k->preempts = false;
    if (role == MAQ_ROLE_PREFILL)
        return;
    k->caching = false;
    k->policy = MAQ_SGLANG_FCFS;
    k->reserved = o->sglang.reserved_decode_tokens;
    k->spare_rows = o->max_num_seqs <= FEW_RUNNING ? 2 * o->max_num_seqs : 0;
}

#define DEFAULT_THRESHOLD 10 /* priority_scheduling_preemption_threshold */

static struct maq_sglang_knobs sglang_knobs(const struct maq_deployment *d)
{
    const struct maq_serve_options *o = &d->options;
    const struct maq_sglang_options *g = &o->sglang;
    const struct maq_speculation *s = &o->speculation;
    int64_t half = d->kv_tokens / 2, running = o->max_num_seqs < half ? o->max_num_seqs : half;
    int32_t page = o->block_size, chunk = o->max_num_batched_tokens / page * page;
    return (struct maq_sglang_knobs){
        .tokens = d->kv_tokens,
        .host_tokens = d->tiers.copies ? d->tiers.chunks[MAQ_TIER_HOST] * d->tiers.chunk_tokens : 0,
        .hicache = o->tiers.write_policy,
        .page = page,
        .max_running = running > 1 ? (int32_t)running : 1,
        .max_prefill = g->max_prefill_tokens,
        .max_prefill_is_hard = maq_engine_release(o->version) < MAQ_SGLANG_CUTS_LAST,
        .chunk = o->no_chunked_prefill ? 0
                 : chunk > page        ? chunk
                                       : page,
        .max_requests = g->prefill_max_requests,
        .lanes = (int32_t)d->passes.n_stages,
        .max_loras = o->lora.max_loras,
        .conservativeness = g->conservativeness,
        .policy = g->policy,
        .eviction = g->eviction,
        .verified = s->verified,
        .drafts = s->tokens,
        .reserve = maq_sglang_reserve(&(struct maq_sglang_tree_of_drafts){s->tokens, s->branches, s->verified,
                                                                          s->method != MAQ_DRAFT_NGRAM, page}),
        .pairs = reads_next_token(d),
        .caching = !o->no_prefix_caching,
        .overlap = d->host.async,
        .mixed = g->mixed_chunk && s->method != MAQ_DRAFT_NGRAM && s->method != MAQ_DRAFT_MODEL,
        .by_priority = o->by_priority,
        .low_first = !g->high_first,
        .preempts = o->by_priority && !g->no_preemption,
        .preempts_by = g->preempts_by > 0 ? g->preempts_by : DEFAULT_THRESHOLD + 1};
}

/* A model of states alone has no tokens that a tree could keep: vLLM's blocks of states decide for it. */
static bool keeps_tokens(const struct maq_deployment *d)
{
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (d->groups[g].kind != MAQ_KV_STATE)
            return true;
    return false;
}

/* vLLM: requests, and those that wait count more, up to four times, where more than half of the cache is in use. */
static double score_of(const struct maq_serve_engine *e, uint32_t rank)
{
    const struct maq_scheduler_load load = e->ranks[rank].sched->ops->load(e->ranks[rank].sched);
    double full = load.all > 0 ? (double)load.used / (double)load.all : 0, score = (double)load.waiting + load.running;
    if (e->d->options.engine == MAQ_ENGINE_VLLM && full > 0.5)
        score += load.waiting * 6.0 * (full - 0.5);
    return score;
}

/*
 * vLLM's front end (0.33.0, v1/engine/core_client.py, DPLBAsyncMPClient) takes the engine with the least score, of equals the first from
 * one on that is the next with each request; TensorRT-LLM the one with the fewest requests (_torch/pyexecutor,
 * _balance_requests_across_ranks); SGLang's controller goes round (managers/data_parallel_controller.py).
 */
uint32_t maq_engine_choose_rank(struct maq_serve_engine *e)
{
    double least = (double)INFINITY;
    uint32_t first = e->next_rank++ % e->n_ranks, best = first;
    if (e->n_ranks == 1 || e->d->options.engine == MAQ_ENGINE_SGLANG)
        return first;
    if (e->d->options.engine == MAQ_ENGINE_TRTLLM)
        first = 0;
    for (uint32_t i = 0; i < e->n_ranks; i++) {
        uint32_t r = (first + i) % e->n_ranks;
        double score = score_of(e, r);
        if (score < least) {
            least = score;
            best = r;
        }
    }
    return best;
}

/* vLLM 0.33 hashes the token behind each block with it; before, the last block of a prefix was computed again, as far as is known here. */
static bool hashes_ahead(const struct maq_deployment *d)
{
    return d->options.engine == MAQ_ENGINE_VLLM && reads_next_token(d) &&
           maq_engine_release(d->options.version) >= MAQ_RELEASE(0, 33, 0);
}

enum maq_status maq_engine_scheduler(struct maq_scheduler **out, const struct maq_deployment *d,
                                     uint32_t most_in_flight, enum maq_role role)
{
    const struct maq_serve_options *o = &d->options;
    struct maq_vllm_knobs knobs = vllm_knobs(d);
    const struct maq_kv_options kv = {.groups = d->groups,
                                      .n_groups = d->n_groups,
                                      .blocks = (uint32_t)d->blocks,
                                      .caching = !o->no_prefix_caching,
                                      .drops_last = reads_next_token(d) && !hashes_ahead(d),
                                      .hash_ahead = hashes_ahead(d),
                                      .max_len = o->max_model_len,
                                      .in_flight = (int64_t)o->max_num_batched_tokens * most_in_flight,
                                      .counts = role == MAQ_ROLE_BOTH && !d->tiers.any && !o->one_by_one};
    if (o->engine == MAQ_ENGINE_SGLANG && keeps_tokens(d)) {
        struct maq_sglang_knobs sglang = sglang_knobs(d);
        set_part(&sglang, o, role);
        return maq_sglang_new(out, &sglang);
    }
    knobs.defers_frees = role == MAQ_ROLE_DECODE && most_in_flight > 1;
    if (o->engine == MAQ_ENGINE_TRTLLM) {
        const struct maq_trtllm_rules rules = {.capacity = o->max_utilization ? MAQ_TRTLLM_MAX_UTILIZATION
                                                                              : MAQ_TRTLLM_NO_EVICT,
                                               .wait_iterations = o->batch_wait_iterations,
                                               .wait_tokens = o->batch_wait_share * o->max_num_batched_tokens};
        return maq_trtllm_new(out, &knobs, &kv, &rules);
    }
    return maq_vllm_new(out, &knobs, &kv);
}
