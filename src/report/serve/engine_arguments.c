/* SPDX-License-Identifier: Apache-2.0 */
/* engine_arguments.c - the options of vLLM, SGLang and TensorRT-LLM that a deployment sets. */
#include "report/serve/engine_arguments.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "maquette/serve_command.h"

static char *add(struct maq_engine_arguments *a, const char *flag)
{
    MAQ_ASSERT(a->n < MAQ_ENGINE_ARGUMENTS_MOST);
    a->at[a->n].flag = flag;
    return a->at[a->n++].value;
}

/* A count that says something: more than `plain`. */
static void count(struct maq_engine_arguments *a, const char *flag, int64_t n, int64_t plain)
{
    if (n > plain)
        maq__snprintf(add(a, flag), sizeof a->at[0].value, "%" PRId64, n);
}

static void share(struct maq_engine_arguments *a, const char *flag, double x)
{
    if (x > 0)
        maq__snprintf(add(a, flag), sizeof a->at[0].value, "%.4g", x);
}

static void word(struct maq_engine_arguments *a, const char *flag, const char *value)
{
    maq__snprintf(add(a, flag), sizeof a->at[0].value, "%s", value);
}

static void line(struct maq_engine_arguments *a, const char *text)
{
    maq__snprintf(a->config[a->n_config++], sizeof a->config[0], "%s", text);
}

static void on(struct maq_engine_arguments *a, const char *flag, bool said)
{
    if (said)
        add(a, flag);
}

/* Whether the model's config.json or name says that its weights are these, or they are those of every checkpoint. */
static bool has_weights(const struct maq_job *job, const struct maq_serve_options *o)
{
    struct maq_checkpoint_name name;
    if (!maq_checkpoint_weights(&name, &job->model) && !maq_checkpoint_name(&name, job->model.name))
        return o->weights == MAQ_WEIGHTS_BF16 && o->expert_weights == MAQ_WEIGHTS_BF16;
    return name.weights == o->weights && name.expert_weights == o->expert_weights;
}

static void weights(struct maq_engine_arguments *a, const struct maq_job *job, const struct maq_serve_options *o)
{
    if (has_weights(job, o))
        return;
    if (o->weights == MAQ_WEIGHTS_FP8 && o->expert_weights == MAQ_WEIGHTS_FP8 && o->engine != MAQ_ENGINE_TRTLLM)
        word(a, "--quantization", "fp8");
    else
        a->other_checkpoint = true;
}

/* ---- who drafts ---- */

static const char *drafter_of(const struct maq_speculation *s)
{
    return s->draft ? s->draft->model.name : NULL;
}

static void vllm_drafts(struct maq_engine_arguments *a, const struct maq_speculation *s)
{
    static const char *const methods[MAQ_DRAFT_COUNT] = {[MAQ_DRAFT_NGRAM] = "ngram",
                                                         [MAQ_DRAFT_MODEL] = "draft_model",
                                                         [MAQ_DRAFT_EAGLE] = "eagle",
                                                         [MAQ_DRAFT_EAGLE3] = "eagle3",
                                                         [MAQ_DRAFT_MTP] = "mtp"};
    if (!methods[s->method])
        return;
    word(a, "--speculative-config.method", methods[s->method]);
    count(a, "--speculative-config.num_speculative_tokens", s->tokens, 0);
    if (drafter_of(s))
        word(a, "--speculative-config.model", drafter_of(s));
    if (s->method == MAQ_DRAFT_MODEL && s->draft)
        count(a, "--speculative-config.draft_tensor_parallel_size", s->draft->plan.tp, 0);
}

static void sglang_drafts(struct maq_engine_arguments *a, const struct maq_speculation *s)
{
    static const char *const algorithms[MAQ_DRAFT_COUNT] = {[MAQ_DRAFT_NGRAM] = "NGRAM",
                                                            [MAQ_DRAFT_MODEL] = "STANDALONE",
                                                            [MAQ_DRAFT_EAGLE] = "EAGLE",
                                                            [MAQ_DRAFT_EAGLE3] = "EAGLE3",
                                                            [MAQ_DRAFT_MTP] = "NEXTN"};
    if (!algorithms[s->method])
        return;
    word(a, "--speculative-algorithm", algorithms[s->method]);
    if (drafter_of(s))
        word(a, "--speculative-draft-model-path", drafter_of(s));
    if (s->method != MAQ_DRAFT_NGRAM) {
        count(a, "--speculative-num-steps", s->tokens, 0);
        count(a, "--speculative-eagle-topk", s->branches > 0 ? s->branches : 1, 0);
    }
    count(a, "--speculative-num-draft-tokens", s->verified > 0 ? s->verified : s->tokens + 1, 0);
}

static void trtllm_drafts(struct maq_engine_arguments *a, const struct maq_speculation *s)
{
    static const char *const types[MAQ_DRAFT_COUNT] = {[MAQ_DRAFT_NGRAM] = "NGram",
                                                       [MAQ_DRAFT_MODEL] = "Draft_Target",
                                                       [MAQ_DRAFT_EAGLE] = "Eagle",
                                                       [MAQ_DRAFT_EAGLE3] = "Eagle3",
                                                       [MAQ_DRAFT_MTP] = "MTP"};
    const char *model = drafter_of(s);
    if (types[s->method])
        maq__snprintf(a->config[a->n_config++], sizeof a->config[0],
                      "speculative_config: {decoding_type: %s, max_draft_len: %d%s%s}", types[s->method], s->tokens,
                      model ? ", speculative_model: " : "", model ? model : "");
}

static void vllm(struct maq_engine_arguments *a, const struct maq_job *job, const struct maq_serve_options *o)
{
    static const char *const exchanges[MAQ_EXCHANGE_COUNT] = {[MAQ_EXCHANGE_GATHER] = "allgather_reducescatter",
                                                              [MAQ_EXCHANGE_DEEPEP] = "deepep_low_latency",
                                                              [MAQ_EXCHANGE_DEEPEP_NORMAL] = "deepep_high_throughput",
                                                              [MAQ_EXCHANGE_DEEPEP_LOW_LATENCY] = "deepep_low_latency",
                                                              [MAQ_EXCHANGE_ONE_SIDED] = "flashinfer_nvlink_one_sided"};
    a->program[0] = "vllm";
    a->program[1] = "serve";
    a->dynamo = "dynamo.vllm";
    count(a, "--tensor-parallel-size", job->plan.tp, 1);
    count(a, "--pipeline-parallel-size", job->plan.pp, 1);
    count(a, "--data-parallel-size", o->dp, 1);
    on(a, "--enable-expert-parallel", o->ep > 1);
    if (exchanges[o->exchange])
        word(a, "--all2all-backend", exchanges[o->exchange]);
    if (o->moe_backend != MAQ_MOE_BACKEND_AUTO)
        word(a, "--moe-backend", maq_moe_backend_name(o->moe_backend));
    weights(a, job, o);
    if (o->kv_fp8)
        word(a, "--kv-cache-dtype", "fp8");
    count(a, "--max-num-seqs", o->max_num_seqs, 0);
    count(a, "--max-num-batched-tokens", o->max_num_batched_tokens, 0);
    count(a, "--max-model-len", o->max_model_len, 0);
    count(a, "--block-size", o->block_size, 0);
    count(a, "--num-gpu-blocks-override", o->blocks, 0);
    count(a, "--long-prefill-token-threshold", o->long_prefill_token_threshold, 0);
    share(a, "--gpu-memory-utilization", o->gpu_memory_utilization);
    on(a, "--no-enable-prefix-caching", o->no_prefix_caching);
    on(a, "--no-enable-chunked-prefill", o->no_chunked_prefill);
    on(a, "--enforce-eager", o->enforce_eager);
    on(a, "--async-scheduling", o->async_scheduling == MAQ_ON);
    on(a, "--no-async-scheduling", o->async_scheduling == MAQ_OFF);
    if (o->by_priority)
        word(a, "--scheduling-policy", "priority");
    vllm_drafts(a, &o->speculation);
    on(a, "--enable-lora", o->lora.enabled);
    count(a, "--max-loras", o->lora.max_loras, 0);
    count(a, "--max-lora-rank", o->lora.max_lora_rank, 0);
    count(a, "--max-cpu-loras", o->lora.max_cpu_loras, 0);
}

/* SGLang's name of the kernels that compute experts. */
static const char *sglang_experts(const struct maq_serve_options *o)
{
    bool mxfp4 = o->expert_weights == MAQ_WEIGHTS_MXFP4;
    if (mxfp4 && o->moe_backend == MAQ_MOE_BACKEND_TRITON)
        return "triton_kernel";
    if (mxfp4 &&
        (o->moe_backend == MAQ_MOE_BACKEND_FLASHINFER_TRTLLM || o->moe_backend == MAQ_MOE_BACKEND_FLASHINFER_AFP8))
        return "flashinfer_mxfp4";
    return maq_moe_backend_name(o->moe_backend);
}

static void sglang(struct maq_engine_arguments *a, const struct maq_job *job, const struct maq_serve_options *o)
{
    a->program[0] = "python";
    a->program[1] = "-m";
    a->program[2] = "sglang.launch_server";
    a->dynamo = "dynamo.sglang";
    a->model = "--model-path";
    count(a, "--tp-size", (int64_t)job->plan.tp * (o->dp > 1 ? o->dp : 1), 1);
    count(a, "--pp-size", job->plan.pp, 1);
    count(a, "--dp-size", o->dp, 1);
    on(a, "--enable-dp-attention", o->dp > 1);
    count(a, "--ep-size", o->ep, 1);
    if (o->exchange == MAQ_EXCHANGE_DEEPEP)
        word(a, "--moe-a2a-backend", "deepep");
    if (o->moe_backend != MAQ_MOE_BACKEND_AUTO)
        word(a, "--moe-runner-backend", sglang_experts(o));
    weights(a, job, o);
    if (o->kv_fp8)
        word(a, "--kv-cache-dtype", "fp8_e4m3");
    count(a, "--max-running-requests", o->max_num_seqs, 0);
    count(a, "--chunked-prefill-size", o->max_num_batched_tokens, 0);
    if (o->no_chunked_prefill)
        word(a, "--chunked-prefill-size", "-1");
    count(a, "--context-length", o->max_model_len, 0);
    count(a, "--page-size", o->block_size, 0);
    share(a, "--mem-fraction-static", o->static_memory_share);
    on(a, "--disable-radix-cache", o->no_prefix_caching);
    on(a, "--disable-cuda-graph", o->enforce_eager);
    on(a, "--disable-overlap-schedule", o->async_scheduling == MAQ_OFF);
    sglang_drafts(a, &o->speculation);
    on(a, "--enable-lora", o->lora.enabled);
    count(a, "--max-loras-per-batch", o->lora.max_loras, 0);
    count(a, "--max-lora-rank", o->lora.max_lora_rank, 0);
}

static void trtllm(struct maq_engine_arguments *a, const struct maq_job *job, const struct maq_serve_options *o)
{
    a->program[0] = "trtllm-serve";
    a->dynamo = "dynamo.trtllm";
    count(a, "--tp_size", (int64_t)job->plan.tp * (o->dp > 1 ? o->dp : 1), 1);
    count(a, "--pp_size", job->plan.pp, 1);
    count(a, "--ep_size", o->ep, 1);
    count(a, "--max_batch_size", o->max_num_seqs, 0);
    count(a, "--max_num_tokens", o->max_num_batched_tokens, 0);
    count(a, "--max_seq_len", o->max_model_len, 0);
    share(a, "--kv_cache_free_gpu_memory_fraction", o->free_memory_share);
    on(a, "--enable_chunked_prefill", o->chunked_prefill);
    weights(a, job, o);
    if (o->dp > 1)
        line(a, "enable_attention_dp: true");
    if (o->kv_fp8)
        line(a, "kv_cache_config: {dtype: fp8}");
    if (o->speculation.method != MAQ_DRAFT_NONE)
        trtllm_drafts(a, &o->speculation);
}

void maq_engine_arguments(struct maq_engine_arguments *out, const struct maq_job *job,
                          const struct maq_serve_options *options)
{
    *out = (struct maq_engine_arguments){.n = 0};
    if (options->engine == MAQ_ENGINE_VLLM)
        vllm(out, job, options);
    else if (options->engine == MAQ_ENGINE_SGLANG)
        sglang(out, job, options);
    else
        trtllm(out, job, options);
}
