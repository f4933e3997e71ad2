/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inference_case.c - a row as a deployment and its requests, and what is predicted of it.
 *
 * Where a row leaves things open:
 *
 *   precision    none: 16 bits; fp8: a scale for a tensor, or blocks where the model is published so (DeepSeek, Qwen3, MiniMax), but not in
 *                TensorRT-LLM's own table, which is of NVIDIA's checkpoints (perf-overview.md); fp4: MXFP4 experts for gpt-oss, NVFP4 for
 *                others; KV cache in 16 bits, in 8 bits with FP8 by tensors and NVFP4 under TensorRT-LLM (trtllm-bench forces it, and
 *                those checkpoints)
 *   requests     waves of a concurrency, as the source's client sends them (benchmark_client.c), of which the first comes at once and the last ends among fewer
 *                and fewer. Where that is a long run four are simulated, of which the two in the middle stand for all others. Means are
 *                compared: sources do not say whether theirs are means or medians, and with medians a first token is predicted 25 to
 *                40 % too early in all of them
 *   one batch    is taken to have been in the cache and in the context, whatever is predicted of them: it was run. Where it had not
 *                room at once its engine took it in parts, and no row says so
 *   saturated    as many requests as the batch has places, over and over, with prompts of a chat
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/phrase.h"
#include "validate/serve/inference.h"

#define MOST_TRIES 6
#define TRTLLM_MAX_NUM_TOKENS 8192 /* its default, as in serve/engine/defaults.c */
#define LENGTH_SPREAD 0.1          /* the most that prompts are longer than the nominal ones */
#define MOST_WAVES 10              /* that are simulated, */
#define FEW_WAVES 4                /* of a long run */
#define LONG_RUN 100000            /* tokens that a wave generates */
#define CHAT_PROMPT 300            /* tokens of a prompt where a row does not say: short against what is generated */

static bool in(struct maq_str text, const char *phrase)
{
    return maq__phrase_in(text, phrase, NULL);
}

static enum maq_engine engine_of(struct maq_str framework)
{
    return maq_str_starts(framework, "sglang")                                         ? MAQ_ENGINE_SGLANG
           : maq_str_starts(framework, "tensorrt") || maq_str_starts(framework, "trt") ? MAQ_ENGINE_TRTLLM
                                                                                       : MAQ_ENGINE_VLLM;
}

static void set_types(struct maq_serve_options *o, const struct maq_inference_row *r)
{
    /* As the model's owner publishes it; TensorRT-LLM's own table is of NVIDIA's checkpoints, with a scale for a tensor. */
    bool own = o->engine == MAQ_ENGINE_TRTLLM && strcmp(r->kind, "offline_max_throughput") == 0;
    bool blocks = in(r->model, "*DeepSeek*") || (!own && in(r->model, "*Qwen3*|*MiniMax*"));
    o->weights = in(r->precision, "*fp8*")                   ? blocks ? MAQ_WEIGHTS_FP8_BLOCK : MAQ_WEIGHTS_FP8
                 : in(r->precision, "*fp4*|*nvfp4*|*mxfp4*") ? MAQ_WEIGHTS_NVFP4
                 : in(r->precision, "*int8*|*w8a16*")        ? MAQ_WEIGHTS_INT8
                 : in(r->precision, "*int4*|*awq*|*gptq*")   ? MAQ_WEIGHTS_INT4
                                                             : MAQ_WEIGHTS_BF16;
    o->expert_weights = o->weights;
    if (in(r->model, "*gpt-oss*")) {
        o->weights = MAQ_WEIGHTS_BF16;
        o->expert_weights = MAQ_WEIGHTS_MXFP4;
    }
    bool checkpoint =
        o->engine == MAQ_ENGINE_TRTLLM && (o->weights == MAQ_WEIGHTS_NVFP4 || o->weights == MAQ_WEIGHTS_FP8);
    o->kv_fp8 = in(r->kv_precision, "*fp8*") || (checkpoint && r->kv_precision.len == 0);
}

/* ---- the job ---- */

/* Names under which the catalogue may have a model: as it is, without its owner, without what says a precision or a tuning. */
static uint32_t names_of(const char *out[MOST_TRIES], struct maq_str model, struct maq_arena *arena)
{
    static const char *const tails[] = {"-NVFP4", "-FP8", "-Instruct", "-hf", "-Instruct-2507"};
    uint32_t n = 0;
    char *name = maq_arena_strdup(arena, model), *slash = name ? strrchr(name, '/') : NULL;
    if (!name)
        return 0;
    out[n++] = name;
    name = maq_arena_strdup(arena, maq_str_of(slash ? slash + 1 : name));
    for (size_t i = 0; name && i <= sizeof tails / sizeof *tails && n < MOST_TRIES; i++) {
        out[n++] = maq_arena_strdup(arena, maq_str_of(name));
        size_t len = strlen(name), tail = i < sizeof tails / sizeof *tails ? strlen(tails[i]) : 0;
        if (tail > 0 && len > tail && strcmp(name + len - tail, tails[i]) == 0)
            name[len - tail] = '\0';
    }
    return n;
}

static enum maq_status load(struct maq_loaded_job **loaded, const struct maq_inference_row *r, struct maq_arena *arena)
{
    struct maq_str gpu = r->gpu;
    for (size_t i = 0; i < gpu.len; i++) /* "A100-SXM4-40GB (Polaris; see paper)" */
        if (gpu.ptr[i] == ' ')
            gpu.len = i;
    const char *names[MOST_TRIES],
        *tp = maq_arena_printf(arena, "%d", r->tp), *pp = maq_arena_printf(arena, "%d", r->pp),
        *dp = maq_arena_printf(arena, "%d", r->dp),
        *cluster = maq_arena_printf(arena, "%.*s:%d", (int)gpu.len, gpu.ptr, r->tp * r->pp * r->dp);
    uint32_t n = names_of(names, r->model, arena);
    enum maq_status status = MAQ_NO;
    for (uint32_t i = 0; i < n && status != MAQ_OK; i++) {
        struct maq_diag *diag = maq_diag_new();
        const struct maq_override o[] = {{"model", "model", names[i]},
                                         {"cluster", "cluster", cluster},
                                         {"tp", "plan.tensor_model_parallel_size", tp},
                                         {"pp", "plan.pipeline_model_parallel_size", pp},
                                         {"batch", "workload.global_batch_size", dp},
                                         {"batch", "plan.micro_batch_size", "1"}};
        status =
            names[i] && cluster && diag ? maq_job_load(loaded, NULL, o, sizeof o / sizeof *o, diag) : MAQ_NO_MEMORY;
        maq_diag_free(diag);
    }
    return status;
}

/* ---- predictions ---- */

static void one_batch(struct maq_inference_prediction *out, const struct maq_job *job,
                      const struct maq_serve_options *o, const struct maq_inference_row *r, struct maq_diag *diag)
{
    struct maq_serve_batch b;
    struct maq_serve_options held = *o;
    double size = r->load > 1 ? r->load : 1, passes = r->osl > 1 ? r->osl - 1 : 1;
    held.blocks = INT32_MAX;
    held.max_model_len = INT32_MAX;
    if (maq_serve_static(&b, job, &held, (int64_t)size, (int64_t)r->isl, (int64_t)(r->osl > 1 ? r->osl : 1), diag) !=
        MAQ_OK) {
        out->why_not = "it cannot be simulated";
        return;
    }
    out->ttft_s = b.prefill_s;
    out->tpot_s = r->osl > 1 ? b.decode_s / passes : 0;
    out->tokens_per_s = size * (r->total_tokens ? r->isl + r->osl : r->osl) / (b.prefill_s + b.decode_s);
}

/* Requests that keep `load` under way; or all at once, as many as the source sent, or as fill the cache several times. */
static struct maq_request_spec requests_of(const struct maq_inference_row *r, const struct maq_serve_result *plan)
{
    const struct maq_inference_client c = maq_inference_client_of(r);
    double isl = r->isl > 0 ? r->isl : CHAT_PROMPT, tokens = isl + r->osl;
    struct maq_request_spec s = {.prompt = (int64_t)ceil(isl * c.mean),
                                 .output = (int64_t)ceil(r->osl * c.mean),
                                 .spread = c.spread,
                                 .distinct = c.prompts,
                                 .seed = 1};
    if (r->load > 0) {
        uint32_t waves = r->load * r->osl > LONG_RUN ? FEW_WAVES : c.waves < MOST_WAVES ? c.waves : MOST_WAVES;
        s.concurrency = (uint32_t)r->load;
        s.warmup = s.concurrency * c.warmup_waves;
        s.n = s.warmup + s.concurrency * waves;
    } else {
        double at_once = fmin((double)plan->kv_tokens / tokens, plan->options.max_num_seqs) * r->dp; /* of each rank */
        uint32_t known = maq_inference_requests(r);
        s.n = known > 0 ? known : (uint32_t)(3 * at_once) + 1;
        s.concurrency = s.n;
    }
    return s;
}

/*
 * Means over `waves` waves of requests. The first wave queues for its prompts, and the last one decodes among few: each has its share of what a
 * client measures, however many waves were simulated.
 */
static void average(struct maq_inference_prediction *out, const struct maq_serve_result *result,
                    const struct maq_requests *requests, uint32_t waves)
{
    uint32_t n = requests->n, size = requests->concurrency, from = requests->warmup, measured = n - from;
    double middle = measured > 2 * size ? (waves - 2.0) * size / (measured - 2 * size) : 1, ttft = 0, tpot = 0, all = 0,
           decoded = 0;
    for (uint32_t i = from; i < n; i++) {
        const struct maq_served *s = &result->served[i];
        int64_t tokens = requests->at[i].output;
        double weight = i < from + size || i >= n - size ? 1 : middle;
        ttft += weight * (s->first_s - s->arrival_s);
        all += weight;
        if (tokens < 2)
            continue;
        tpot += weight * (s->last_s - s->first_s) / (double)(tokens - 1);
        decoded += weight;
    }
    out->ttft_s = ttft / all;
    out->tpot_s = decoded > 0 ? tpot / decoded : 0;
}

static void serve(struct maq_inference_prediction *out, const struct maq_job *job, const struct maq_serve_options *o,
                  const struct maq_inference_row *r, struct maq_diag *diag)
{
    struct maq_serve_result *plan, *result = NULL;
    struct maq_request_set *set = NULL;
    out->why_not = "it cannot be simulated";
    if (maq_serve_plan(&plan, job, o, diag) != MAQ_OK)
        return;
    struct maq_request_spec spec = requests_of(r, plan);
    bool fits = plan->fits;
    maq_serve_free(plan);
    if (!fits) {
        out->why_not = "it does not fit";
        return;
    }
    if (maq_requests_generate(&set, &spec, diag) == MAQ_OK &&
        maq_serve_run(&result, job, o, maq_requests_get(set), diag) == MAQ_OK) {
        out->why_not = NULL;
        if (strcmp(r->kind, "serving") == 0 && r->load > 0)
            average(out, result, maq_requests_get(set), maq_inference_client_of(r).waves);
        else
            out->tpot_s = result->itl_s.p50;
        out->tokens_per_s = r->total_tokens   ? result->total_tokens_per_s
                            : r->input_tokens ? result->input_tokens_per_s
                                              : result->output_tokens_per_s;
    }
    maq_serve_free(result);
    maq_requests_free(set);
}

/*
 * Whether more FLOP/s than the GPUs' highest dense peak went into prompts, by Little's law: what came again was not computed again, and the
 * source does not say how much did.
 */
static bool is_impossible(const struct maq_inference_row *r, const struct maq_job *job)
{
    const struct maq_model *m = &job->model;
    const struct maq_device *d = &job->cluster.groups[0].device;
    double peak = 0, whole = r->ttft_s + r->tpot_s * (r->osl - 1);
    if (strcmp(r->kind, "serving") != 0 || r->ttft_s <= 0 || r->tpot_s <= 0)
        return false;
    for (int t = 0; t < MAQ_DTYPE_COUNT; t++)
        peak = fmax(peak, d->peak_flops[t]);
    double prompt_flop = 2 * (double)(m->active_params - m->hidden * m->vocab) * r->isl;
    return peak > 0 && r->load / whole * prompt_flop > peak * r->tp * r->pp * r->dp;
}

void maq_inference_predict(struct maq_inference_prediction *out, const struct maq_inference_row *row,
                           struct maq_arena *arena)
{
    const struct maq_inference_row started = maq_inference_as_started(row), *r = &started;
    struct maq_loaded_job *loaded;
    struct maq_diag *diag = maq_diag_new();
    *out = (struct maq_inference_prediction){0};
    if (!diag || load(&loaded, r, arena) != MAQ_OK) {
        out->why_not = "no such model or device, or they do not go together";
        maq_diag_free(diag);
        return;
    }
    const struct maq_job *job = maq_job_get(loaded);
    const struct maq_inference_client client = maq_inference_client_of(r);
    if (client.prompts == 0 && is_impossible(r, job)) {
        out->why_not = "its prompts were computed in less time than its GPUs' peak allows";
        maq_job_free(loaded);
        maq_diag_free(diag);
        return;
    }
    struct maq_serve_options o = {
        .engine = engine_of(r->framework),
        .version = r->version.len > 0 ? maq_arena_strdup(arena, r->version) : NULL,
        .dp = r->dp,
        .ep = r->ep,
        .as_it_ran = true, /* a source that says nothing of experts has them on one rank each, or not */
        .no_prefix_caching = client.prompts == 0,
        .temperature = client.temperature,
        .top_p = client.top_p,
        .expert_skew = client.expert_skew};
    set_types(&o, r);
    maq_inference_launch(&o, r);
    out->device = maq_arena_strdup(arena, maq_str_of(job->cluster.groups[0].device.name));
    double tokens = (r->isl > 0 ? r->isl : CHAT_PROMPT) + r->osl;
    if (job->model.max_seq > 0 && tokens > (double)job->model.max_seq)
        o.max_model_len = (int64_t)tokens + 64;
    double most =
        r->isl * (1 + LENGTH_SPREAD) + r->load; /* prompts are computed whole: who runs it makes room for one */
    if (o.engine == MAQ_ENGINE_TRTLLM && o.max_num_batched_tokens == 0 && most > TRTLLM_MAX_NUM_TOKENS)
        o.max_num_batched_tokens = (int32_t)most;
    if (strcmp(r->kind, "offline_max_throughput") == 0) /* trtllm-bench calls the engine in its process */
        o.front_end = MAQ_FRONT_END_NONE;
    if (strcmp(r->kind, "serving_saturated") == 0 && r->load > 0)
        o.max_num_seqs = (int32_t)r->load;
    if (strcmp(r->kind, "static_batch") == 0)
        one_batch(out, job, &o, r, diag);
    else
        serve(out, job, &o, r, diag);
    maq_job_free(loaded);
    maq_diag_free(diag);
}
