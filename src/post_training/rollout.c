/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollout.c - completions of a generation. See rollout.h.
 *
 * TRL 1.10 (f2cd577), generation/vllm_generation.py, scripts/vllm_serve.py, trainer/grpo_trainer.py, experimental/ppo/ppo_trainer.py.
 *
 * vLLM        a generation is a list of requests that are there at once; completions of a prompt follow each other, so that a prompt is computed once
 *             for those that share an engine's cache. Colocated engines have the next of the list each, at most so many at once as that is
 *             (max_num_seqs), and 4,096 tokens in an iteration; a server hands prompts out, an equal number to each engine. A generation has ended
 *             when its slowest engine has. Each engine is a run of maq_serve_run(), through vLLM's library (`offline`).
 * generate()  of transformers, on every data-parallel rank: the prompts in one pass, then a token of all in each until the last has ended; of PPO in
 *             batches of local_rollout_forward_batch_size, one after another. The host asks the device after each token whether all have ended, so a
 *             token takes the longer of two: the kernels with their cache, as an engine without CUDA graphs has them (maq_serve_static()), or a pass of
 *             the trainer's modules over a token of each (the host's, mostly). Under DeepSpeed's ZeRO-3 weights are whole meanwhile
 *             (ds3_gather_for_generation), under FSDP each pass gathers them. Ranks that share parameters go on until the last of all has ended.
 */
#include "post_training/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "post_training/codes.h"
#include "post_training/frozen_models.h"

#define COLOCATED_BATCHED_TOKENS 4096 /* vllm_generation.py: max_num_batched_tokens */

/* ---- how long completions are ---- */

/* A file's, or drawn as `maquette serve` draws them. */
static enum maq_status requests_of(struct maq_request_set **out, const struct maq_post_training *rl, uint32_t n,
                                   struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_request_spec spec = {
        .n = n, .prompt = rl->osl, .output = rl->osl, .spread = rl->length_spread, .seed = (uint64_t)rl->seed};
    if (rl->requests.len == 0)
        return maq_requests_generate(out, &spec, diag);
    const char *path = maq_arena_strdup(arena, rl->requests);
    return path ? maq_requests_read(out, path, &(const struct maq_request_reading){.most = n}, diag) : MAQ_NO_MEMORY;
}

enum maq_status maq_rollout_lengths(int64_t **out, struct maq_rollout *of, const struct maq_rollout_asked *asked,
                                    struct maq_diag *diag)
{
    const struct maq_post_training *rl = &asked->section->rl;
    const uint32_t n = (uint32_t)of->sequences;
    int64_t *lengths = MAQ_ARENA_NEW(asked->arena, int64_t, (size_t)n + 1);
    struct maq_request_set *set;
    double sum = 0, longest = 0;
    if (!lengths)
        return MAQ_NO_MEMORY;
    MAQ_TRY(requests_of(&set, rl, n, asked->arena, diag));
    const struct maq_requests *drawn = maq_requests_get(set);
    for (uint32_t i = 0; i < n && drawn->n > 0; i++) {
        const int64_t tokens = drawn->at[i % drawn->n].output;
        lengths[i] = tokens < 1 ? 1 : tokens > rl->completion ? rl->completion : tokens;
        sum += (double)lengths[i];
        longest = fmax(longest, (double)lengths[i]);
    }
    const bool any = drawn->n > 0;
    maq_requests_free(set);
    if (!any)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RL_SECTION, (struct maq_span){0},
                             "a table with a column output_length", "the file '%.*s' has no requests",
                             (int)rl->requests.len, rl->requests.ptr);
    of->mean = sum / n;
    of->longest = longest;
    *out = lengths;
    return MAQ_OK;
}

/* ---- vLLM ---- */

/* A generation on its engines: who has which of its completions. */
struct spread {
    int64_t first, n; /* of the list */
};

static struct spread share_of(const struct maq_rollout *of, const struct maq_post_training *rl, uint32_t engine)
{
    const int64_t all = (int64_t)of->sequences, group = rl->num_generations, engines = of->engines,
                  each = (all + engines - 1) / engines;
    int64_t first = each * engine, n = each;
    if (rl->vllm_mode == MAQ_VLLM_SERVER) { /* vllm_serve.py, chunk_list(): the first have one prompt more */
        const int64_t prompts = all / group, few = prompts / engines, more = prompts % engines, e = engine;
        first = group * (few * e + (e < more ? e : more));
        n = group * (few + (e < more));
    }
    if (first > all)
        first = all;
    return (struct spread){first, n < all - first ? n : all - first};
}

struct engines {
    const struct maq_job *job;
    const struct maq_post_training *rl;
    const int64_t *lengths;
    struct maq_serve_options options;
    struct maq_request *requests; /* of one engine */
    uint64_t *prompts;            /* their names */
};

/* Whether what an engine has is what the one before it has: prompts change at the same places, completions are as long. */
static bool alike(const struct engines *e, struct spread a, struct spread b)
{
    return a.n == b.n && (a.first - b.first) % e->rl->num_generations == 0 &&
           memcmp(e->lengths + a.first, e->lengths + b.first, (size_t)a.n * sizeof *e->lengths) == 0;
}

static enum maq_status run_engine(struct maq_serve_result **out, const struct engines *e, struct spread s,
                                  struct maq_diag *diag)
{
    for (int64_t i = 0; i < s.n; i++) {
        e->prompts[i] = (uint64_t)((s.first + i) / e->rl->num_generations) + 1;
        e->requests[i] = (struct maq_request){.prompt = e->rl->prompt,
                                              .output = e->lengths[s.first + i],
                                              .max_tokens = e->rl->completion,
                                              .n_prefix = 1,
                                              .prefix = &e->prompts[i]};
    }
    const struct maq_requests requests = {
        .at = e->requests, .n = (uint32_t)s.n, .prefix_unit = (uint32_t)e->rl->prompt};
    return maq_serve_run(out, e->job, &e->options, &requests, diag);
}

/* Every engine by itself; figures of all of them. */
static enum maq_status run_engines(struct maq_rollout *of, const struct engines *e, double *ends, struct maq_diag *diag)
{
    struct spread before = {0, 0};
    struct maq_serve_result *r = NULL;
    double busy = 0, batch = 0, cached = 0, iterations = 0;
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < of->engines && status == MAQ_OK; i++) {
        const struct spread s = share_of(of, e->rl, i);
        if (s.n == 0)
            continue;
        if (!r || !alike(e, s, before)) {
            maq_serve_free(r);
            r = NULL;
            status = run_engine(&r, e, s, diag);
            if (status != MAQ_OK)
                break;
        }
        before = s;
        ends[i] = r->duration_s;
        of->seconds = fmax(of->seconds, r->duration_s);
        busy += r->duration_s;
        batch += r->mean_batch * (double)r->iterations;
        iterations += (double)r->iterations;
        cached += r->prefix_hit_rate * (double)s.n;
        of->preemptions += r->preemptions;
    }
    maq_serve_free(r);
    of->busy_share = of->seconds > 0 ? busy / (of->engines * of->seconds) : 0;
    of->mean_batch = iterations > 0 ? batch / iterations : 0;
    of->prefix_hit_rate = cached / of->sequences;
    return status;
}

static enum maq_status load_engine(struct maq_loaded_job **out, const struct maq_rollout_asked *asked, int32_t tp,
                                   struct maq_diag *diag)
{
    /* a batch that any cluster takes: an engine has none */
    static const struct maq_override batch[] = {{"rl", "workload.gradient_accumulation_steps", "1"}};
    char *text = maq_job_text_of_deployment(asked->loaded, asked->section->server, tp);
    if (!text)
        return MAQ_NO_MEMORY;
    enum maq_status status = maq_job_parse(out, "the engine of rl", maq_str_of(text), batch, MAQ_COUNT(batch), diag);
    free(text);
    return status;
}

/* What an engine holds in memory, and that its cache holds a request. */
static enum maq_status look_at_cache(struct maq_rollout *of, double *bytes, const struct engines *e,
                                     struct maq_diag *diag)
{
    const struct maq_post_training *rl = e->rl;
    const int64_t length = rl->prompt + rl->completion;
    struct maq_serve_result *plan;
    MAQ_TRY(maq_serve_plan(&plan, e->job, &e->options, diag));
    of->held = plan->kv_tokens / length;
    for (int k = 0; k < MAQ_SERVE_MEM_COUNT && rl->vllm_mode == MAQ_VLLM_COLOCATE; k++)
        *bytes += k == MAQ_SERVE_MEM_CONTEXT ? 0 : plan->memory[k]; /* it is in the trainer's process */
    maq_serve_free(plan);
    if (of->held < 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RL_CACHE, (struct maq_span){0},
                             "raise vllm_gpu_memory_utilization or vllm_tensor_parallel_size",
                             "the cache of an engine holds not one request of %lld tokens (vllm_gpu_memory_utilization "
                             "%g, vllm_tensor_parallel_size %d)",
                             (long long)length, rl->vllm_gpu_memory_utilization, rl->vllm_tensor_parallel_size);
    return MAQ_OK;
}

enum maq_status maq_rollout_by_engines(struct maq_rollout *of, double *bytes, struct maq_loaded_job **engine,
                                       const int64_t *lengths, const struct maq_rollout_asked *asked,
                                       struct maq_diag *diag)
{
    const struct maq_post_training *rl = &asked->section->rl;
    const bool server = rl->vllm_mode == MAQ_VLLM_SERVER;
    MAQ_TRY(load_engine(engine, asked, rl->vllm_tensor_parallel_size, diag));
    struct engines e = {.job = maq_job_get(*engine),
                        .rl = rl,
                        .lengths = lengths,
                        .options = {.engine = MAQ_ENGINE_VLLM,
                                    .offline = true,
                                    .gpu_memory_utilization = rl->vllm_gpu_memory_utilization}};
    const uint32_t devices = server ? e.job->cluster.devices : asked->policy->cluster.devices;
    of->engines = devices / (uint32_t)rl->vllm_tensor_parallel_size;
    of->engine_devices = server ? devices : 0;
    of->requests = share_of(of, rl, 0).n;
    if (!server) {
        e.options.max_num_seqs = (int32_t)of->requests;
        e.options.max_num_batched_tokens = COLOCATED_BATCHED_TOKENS;
    }
    double *ends = MAQ_ARENA_NEW(asked->arena, double, (size_t)of->engines + 1);
    e.requests = MAQ_ARENA_NEW(asked->arena, struct maq_request, (size_t)of->requests + 1);
    e.prompts = MAQ_ARENA_NEW(asked->arena, uint64_t, (size_t)of->requests + 1);
    if (!ends || !e.requests || !e.prompts)
        return MAQ_NO_MEMORY;
    of->ends_s = ends;
    MAQ_TRY(look_at_cache(of, bytes, &e, diag));
    return run_engines(of, &e, ends, diag);
}

/* ---- generate() ---- */

struct own {
    const struct maq_job *job; /* of the model as a deployment */
    struct maq_job trainer;    /* the policy as it generates */
    int64_t prompt, batch;     /* sequences of a batch; the last may be smaller */
    int64_t local;             /* sequences of a rank */
    bool together;             /* ranks go on until the last of all has ended */
};

/* The longest completion of a rank's batch, or of that batch of all ranks. */
static int64_t longest_of(const struct own *o, const int64_t *lengths, int32_t ranks, int32_t rank, int64_t first)
{
    int64_t most = 0;
    for (int32_t r = o->together ? 0 : rank; r < (o->together ? ranks : rank + 1); r++)
        for (int64_t i = first; i < first + o->batch && i < o->local; i++)
            most = lengths[r * o->local + i] > most ? lengths[r * o->local + i] : most;
    return most;
}

/* A batch from its prompts to its last token. */
static enum maq_status add_batch(struct maq_rollout *of, const struct own *o, int64_t n, int64_t tokens,
                                 struct maq_diag *diag)
{
    const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM, .offline = true, .enforce_eager = true};
    struct maq_job pass = o->trainer;
    struct maq_serve_batch kernels;
    double prompts = 0, token = 0;
    MAQ_TRY(maq_serve_static(&kernels, o->job, &options, n, o->prompt, tokens, diag));
    pass.plan.mbs = (int32_t)n;
    pass.microbatches = 1; /* the host is not ahead of the device */
    pass.workload.seq = o->prompt;
    MAQ_TRY(maq_rl_forward_s(&prompts, &pass, diag));
    pass.workload.seq = 1;
    MAQ_TRY(maq_rl_forward_s(&token, &pass, diag));
    of->prefill_s += fmax(kernels.prefill_s, prompts);
    of->decode_s += fmax(kernels.decode_s, (double)(tokens - 1) * token);
    of->batches++;
    return MAQ_OK;
}

/* The rank with the most tokens to wait for. */
static int32_t slowest(const struct own *o, const int64_t *lengths, int32_t ranks)
{
    int32_t who = 0;
    int64_t most = -1;
    for (int32_t r = 0; r < (o->together ? 1 : ranks); r++) {
        int64_t sum = 0;
        for (int64_t first = 0; first < o->local; first += o->batch)
            sum += longest_of(o, lengths, ranks, r, first);
        who = sum > most ? r : who;
        most = sum > most ? sum : most;
    }
    return who;
}

/*
 * Bytes beside the models' states: weights that are whole meanwhile, the cache of a batch; under PPO the scores of every token, in 32 bits, which are
 * stacked batch by batch and then padded to one length (batch_generation()): twice all of them.
 */
static enum maq_status own_bytes(double *bytes, const struct own *o, const struct maq_rollout *of,
                                 const struct maq_rollout_asked *asked, struct maq_diag *diag)
{
    const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM, .offline = true, .enforce_eager = true};
    const struct maq_job shards = maq_rl_frozen(asked->policy, MAQ_RL_ADAPTERS_ON);
    struct maq_serve_result *plan;
    double whole = 0, held = 0;
    MAQ_TRY(maq_serve_plan(&plan, o->job, &options, diag));
    *bytes = plan->kv_bytes_per_token * (double)o->batch * ((double)o->prompt + of->longest);
    maq_serve_free(plan);
    MAQ_TRY(maq_rl_weights(&whole, &o->trainer, diag));
    MAQ_TRY(maq_rl_weights(&held, &shards, diag));
    *bytes += fmax(0, whole - held);
    if (asked->section->rl.method == MAQ_RL_PPO)
        *bytes += 2 * (double)o->local * of->longest * (double)asked->policy->model.vocab * 4;
    return MAQ_OK;
}

enum maq_status maq_rollout_by_trainer(struct maq_rollout *of, double *bytes, struct maq_loaded_job **engine,
                                       const int64_t *lengths, const struct maq_rollout_asked *asked,
                                       struct maq_diag *diag)
{
    const struct maq_post_training *rl = &asked->section->rl;
    const struct maq_job *policy = asked->policy;
    MAQ_TRY(load_engine(engine, asked, policy->plan.tp, diag));
    struct own o = {.job = maq_job_get(*engine),
                    .trainer = maq_rl_frozen(policy, MAQ_RL_ADAPTERS_ON),
                    .prompt = rl->prompt,
                    .local = (int64_t)(of->sequences / policy->dp),
                    .together = policy->plan.sharding == MAQ_SHARDING_PARAMS};
    o.batch = o.local;
    if (rl->method == MAQ_RL_PPO && rl->rollout_forward_batch_size < o.local)
        o.batch = rl->rollout_forward_batch_size;
    o.trainer.plan.sequence_parallel = MAQ_OFF;
    if (policy->framework.low_precision_shards) /* DeepSpeed's stage 3 */
        o.trainer.plan.sharding = MAQ_SHARDING_NONE;
    of->engines = (uint32_t)policy->dp;
    of->requests = o.local;
    double *ends = MAQ_ARENA_NEW(asked->arena, double, (size_t)of->engines + 1);
    if (!ends)
        return MAQ_NO_MEMORY;
    const int32_t who = slowest(&o, lengths, policy->dp);
    for (int64_t first = 0; first < o.local; first += o.batch)
        MAQ_TRY(add_batch(of, &o, o.local - first < o.batch ? o.local - first : o.batch,
                          longest_of(&o, lengths, policy->dp, who, first), diag));
    of->seconds = of->prefill_s + of->decode_s;
    for (uint32_t i = 0; i < of->engines; i++)
        ends[i] = of->seconds;
    of->ends_s = ends;
    return own_bytes(bytes, &o, of, asked, diag);
}
