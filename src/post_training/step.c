/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - one optimizer step of DPO or GRPO as the sum of its parts. See post_training.h.
 *
 * Trainers are TRL 1.10 (f2cd577): trainer/dpo_trainer.py, grpo_trainer.py, generation/vllm_generation.py. With b sequences of a
 * microbatch, m microbatches of a step (gradient_accumulation_steps), and t(x) a forward pass of a microbatch of model x that keeps nothing:
 *
 *   DPO    chosen and rejected go through the model together, so that b and the batch are twice the pairs
 *     train      the policy's step
 *     reference  m t(reference); the policy's own pass where its adapters are off
 *   GRPO   a generation is for s = steps_per_generation microbatches, each trained on in num_iterations passes: g = m / (s num_iterations)
 *          generations a step
 *     generate   g (prefill + decode) of b x dp x s completions over the engines, in as many waves as the cache needs; those that wait on
 *                others wait whole, since TRL generates between the passes
 *     old        g s t(policy), where log-probabilities of what vLLM sampled are computed again, or the step is not g's end
 *     reference  g s t(reference), with beta
 *     reward     g s t(reward model)
 *     train      the policy's step; the output layer over all tokens, where TRL takes those of completions
 *     sync       min(1, g) (gather + load, or gather + broadcast): what is sharded is gathered layer by layer; a colocated engine copies it
 *                through its memory, a server's ranks get it whole, from the trainer's first rank
 *
 * Completions are all as long as max_completion_length. Nothing runs beside anything else.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "post_training/codes.h"
#include "post_training/rl_section.h"

struct owner {
    struct maq_arena arena;
    struct maq_job policy;
    struct maq_loaded_job *engine, *reward;
};

/* ---- models that are not trained ---- */

/* The policy's job as one whose parameters nobody trains: nothing is kept, redone or adapted. */
static struct maq_job frozen(const struct maq_job *of, bool adapted)
{
    struct maq_job job = *of;
    job.plan.recompute = MAQ_RECOMPUTE_NONE;
    job.plan.recompute_parts = 0;
    job.plan.offload_layers = 0;
    job.plan.offload_modules = 0;
    job.plan.offload_inputs = false;
    if (job.plan.sharding != MAQ_SHARDING_PARAMS)
        job.plan.sharding = MAQ_SHARDING_NONE;
    if (!adapted) {
        job.plan.lora_rank = 0;
        job.plan.lora_sites = 0;
        job.plan.base_quantization = MAQ_BASE_NONE;
    }
    return job;
}

/* Seconds of a forward pass of a microbatch; the last of a step, behind whatever comes before the first. */
static enum maq_status forward_s(double *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_train_spans spans;
    MAQ_TRY(maq_train_spans(&spans, job, diag));
    for (uint32_t i = spans.first[0]; i < spans.first[1]; i++)
        if (spans.spans[i].kind == MAQ_SPAN_FORWARD)
            *out = (double)(spans.spans[i].end_ns - spans.spans[i].start_ns) * 1e-9;
    maq_train_spans_free(&spans);
    return MAQ_OK;
}

/* Bytes of a rank's weights. */
static enum maq_status weights_of(double *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_train_result *r;
    MAQ_TRY(maq_train_predict(&r, job, diag));
    *out = r->stages[0].bytes[MAQ_MEM_WEIGHTS];
    maq_train_result_free(r);
    return MAQ_OK;
}

static enum maq_status add_reference(struct maq_post_training_result *r, double passes, struct maq_diag *diag)
{
    const bool adapter = r->rl.reference == MAQ_RL_REFERENCE_ADAPTER;
    const struct maq_job job = frozen(r->job, adapter);
    double pass = 0;
    if (!adapter && r->rl.reference != MAQ_RL_REFERENCE_MODEL)
        return MAQ_OK;
    MAQ_TRY(forward_s(&pass, &job, diag));
    r->reference_s = passes * pass;
    return adapter ? MAQ_OK : weights_of(&r->memory.reference, &job, diag);
}

static enum maq_status add_reward(struct maq_post_training_result *r, struct owner *o, const struct maq_loaded_job *box,
                                  double passes, struct maq_diag *diag)
{
    double pass = 0;
    if (r->rl.reward_model.len == 0)
        return MAQ_OK;
    const char *name = maq_arena_strdup(&o->arena, r->rl.reward_model);
    const struct maq_override overrides[] = {{"rl.reward_model", "model", name},
                                             {"rl.reward_model", "plan.lora_rank", "0"}};
    char *text = maq_job_text(box);
    if (!text || !name) {
        free(text);
        return MAQ_NO_MEMORY;
    }
    enum maq_status status =
        maq_job_parse(&o->reward, "the job of the reward model", maq_str_of(text), overrides, 2, diag);
    free(text);
    if (status != MAQ_OK)
        return status;
    const struct maq_job job = frozen(maq_job_get(o->reward), false);
    MAQ_TRY(forward_s(&pass, &job, diag));
    r->reward_s = passes * pass;
    return weights_of(&r->memory.reward, &job, diag);
}

/* ---- generation ---- */

static enum maq_status load_engine(struct owner *o, const struct maq_loaded_job *box, const struct maq_rl_section *s,
                                   struct maq_diag *diag)
{
    /* a batch that any cluster takes: an engine has none */
    static const struct maq_override batch[] = {{"rl", "workload.gradient_accumulation_steps", "1"}};
    char *text = maq_job_text_of_deployment(box, s->server, s->rl.vllm_tensor_parallel_size);
    if (!text)
        return MAQ_NO_MEMORY;
    enum maq_status status =
        maq_job_parse(&o->engine, "the engine of rl", maq_str_of(text), batch, MAQ_COUNT(batch), diag);
    free(text);
    return status;
}

static enum maq_status add_generation(struct maq_post_training_result *r, struct owner *o, struct maq_diag *diag)
{
    const struct maq_job *engine = maq_job_get(o->engine), *policy = r->job;
    const struct maq_serve_options options = {.engine = MAQ_ENGINE_VLLM,
                                              .gpu_memory_utilization = r->rl.vllm_gpu_memory_utilization};
    const int64_t all = (int64_t)policy->plan.mbs * policy->dp * r->rl.steps_per_generation,
                  length = r->rl.prompt + r->rl.completion;
    struct maq_serve_result *plan;
    const uint32_t devices = r->rl.vllm_mode == MAQ_VLLM_SERVER ? engine->cluster.devices : policy->cluster.devices;
    r->engines = devices / (uint32_t)r->rl.vllm_tensor_parallel_size;
    r->engine_devices = r->rl.vllm_mode == MAQ_VLLM_SERVER ? devices : 0;
    r->requests = (all + r->engines - 1) / r->engines;
    MAQ_TRY(maq_serve_plan(&plan, engine, &options, diag));
    r->held = plan->kv_tokens / length;
    for (int k = 0; k < MAQ_SERVE_MEM_COUNT && r->rl.vllm_mode == MAQ_VLLM_COLOCATE; k++)
        r->memory.engine += k == MAQ_SERVE_MEM_CONTEXT ? 0 : plan->memory[k]; /* it is in the trainer's process */
    maq_serve_free(plan);
    if (r->held < 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RL_CACHE, (struct maq_span){0},
                             "raise vllm_gpu_memory_utilization or vllm_tensor_parallel_size",
                             "the cache of an engine holds not one request of %lld tokens (vllm_gpu_memory_utilization "
                             "%g, vllm_tensor_parallel_size %d)",
                             (long long)length, r->rl.vllm_gpu_memory_utilization, r->rl.vllm_tensor_parallel_size);
    r->waves = (int32_t)((r->requests + r->held - 1) / r->held);
    const int64_t wave = (r->requests + r->waves - 1) / r->waves;
    MAQ_TRY(maq_serve_static(&r->batch, engine, &options, wave, r->rl.prompt, r->rl.completion, diag));
    r->generate_s = r->generations * r->waves * (r->batch.prefill_s + r->batch.decode_s);
    return MAQ_OK;
}

/* ---- the new weights ---- */

/* Shards are gathered layer by layer (FSDP's summon_full_params(), DeepSpeed's GatheredParameters). */
static double gather_s(const struct maq_job *job, double bytes)
{
    const double layers = job->model.num_layers;
    struct maq_coll coll = {
        .kind = MAQ_COLL_ALL_GATHER, .sharers = 1, .bytes = bytes / layers, .at = job->groups[MAQ_GROUP_SHARD]};
    if (job->plan.sharding != MAQ_SHARDING_PARAMS || coll.at.size < 2)
        return 0;
    return layers * maq_cost_coll(NULL, &coll, &job->cluster).seconds;
}

/*
 * From the trainer's first rank to all of the engines (NCCL's broadcast, pipelined): through the one port of that rank, and among them, as
 * fast as the slower.
 */
static double broadcast_s(const struct maq_post_training_result *r, double bytes)
{
    const struct maq_cluster *cluster = &r->job->cluster;
    struct maq_coll far = {.kind = MAQ_COLL_SEND_RECV, .sharers = 1, .bytes = bytes}, near = far;
    far.at = near.at = maq_cluster_place(cluster, 0, 1, 1);
    far.at.size = far.at.domains = 2;
    near.kind = MAQ_COLL_BROADCAST;
    near.at.size = near.at.per_domain = near.at.per_node = r->engine_devices;
    const double inside = r->engine_devices > 1 ? maq_cost_coll(NULL, &near, cluster).seconds : 0;
    return fmax(maq_cost_coll(NULL, &far, cluster).seconds, inside);
}

static double sync_s(const struct maq_post_training_result *r)
{
    const struct maq_job *job = r->job;
    const double layers = job->model.num_layers, params = (double)job->model.params,
                 bytes = 2 * params; /* vLLM has them in 16 bits */
    double s = gather_s(job, bytes);
    if (r->rl.vllm_mode == MAQ_VLLM_COLOCATE) { /* read whole, written in parts */
        const struct maq_op load = {.kind = MAQ_OP_ELEMENTWISE,
                                    .dtype = MAQ_BF16,
                                    .d = {(int64_t)params / r->rl.vllm_tensor_parallel_size, 2, 2}};
        return s + maq_cost_op(NULL, &load, &job->cluster.groups[0].device).seconds;
    }
    return s + broadcast_s(r, bytes / layers) * layers;
}

/* ---- memory ---- */

/* The fullest GPU: while the policy is trained, or with an awake engine beside what is there all the time. */
static void add_memory(struct maq_post_training_result *r)
{
    const struct maq_stage_result *st = &r->train->stages[r->train->worst_stage];
    struct maq_post_training_memory *m = &r->memory;
    const double awake = m->engine, states = st->bytes[MAQ_MEM_WEIGHTS] + st->bytes[MAQ_MEM_GRADIENTS] +
                                             st->bytes[MAQ_MEM_OPTIMIZER] + st->bytes[MAQ_MEM_CONTEXT] +
                                             st->bytes[MAQ_MEM_NCCL];
    m->policy = st->needed_bytes;
    m->engine = r->rl.vllm_enable_sleep_mode ? 0 : awake;
    m->training = m->policy + m->reference + m->reward + m->engine;
    m->generating = awake > 0 ? states + m->reference + m->reward + awake : 0;
    m->capacity = st->capacity_bytes;
    r->fits = m->training <= m->capacity && m->generating <= m->capacity;
}

/* ---- the step ---- */

static enum maq_status predict_dpo(struct maq_post_training_result *r, struct owner *o, struct maq_diag *diag)
{
    o->policy.plan.mbs *= 2; /* chosen and rejected: the number of microbatches stays */
    o->policy.workload.gbs *= 2;
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    return add_reference(r, r->job->microbatches, diag);
}

static enum maq_status predict_grpo(struct maq_post_training_result *r, struct owner *o,
                                    const struct maq_loaded_job *box, const struct maq_rl_section *s,
                                    struct maq_diag *diag)
{
    const struct maq_post_training *rl = &r->rl;
    const int32_t every = rl->steps_per_generation * rl->num_iterations, m = r->job->microbatches;
    double pass = 0;
    r->generations = (double)m / every;
    const double passes = r->generations * rl->steps_per_generation;
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    MAQ_TRY(load_engine(o, box, s, diag));
    MAQ_TRY(add_generation(r, o, diag));
    if (rl->vllm_importance_sampling_correction || m % every != 0) {
        const struct maq_job job = frozen(r->job, true);
        MAQ_TRY(forward_s(&pass, &job, diag));
        r->old_s = passes * pass;
    }
    MAQ_TRY(add_reference(r, passes, diag));
    MAQ_TRY(add_reward(r, o, box, passes, diag));
    r->sync_s = fmin(1, r->generations) * sync_s(r);
    return MAQ_OK;
}

enum maq_status maq_post_training_predict(struct maq_post_training_result **out, const struct maq_loaded_job *box,
                                          struct maq_diag *diag)
{
    struct maq_post_training_result *r = calloc(1, sizeof *r);
    struct owner *o = calloc(1, sizeof *o);
    struct maq_rl_section section;
    if (!r || !o) {
        free(r);
        free(o);
        return MAQ_NO_MEMORY;
    }
    maq_arena_init(&o->arena, 0);
    o->policy = *maq_job_get(box);
    r->owner = o;
    r->job = &o->policy;
    enum maq_status status = maq_rl_read(&section, box, &o->arena, diag);
    if (status == MAQ_OK) {
        r->rl = section.rl;
        status = section.rl.method == MAQ_RL_DPO ? predict_dpo(r, o, diag) : predict_grpo(r, o, box, &section, diag);
    }
    if (status != MAQ_OK) {
        maq_post_training_free(r);
        return status;
    }
    r->train_s = r->train->step_s;
    r->sequences = o->policy.workload.gbs;
    r->step_s = r->generate_s + r->old_s + r->reference_s + r->reward_s + r->train_s + r->sync_s;
    add_memory(r);
    *out = r;
    return MAQ_OK;
}

void maq_post_training_free(struct maq_post_training_result *r)
{
    struct owner *o = r ? r->owner : NULL;
    if (!r)
        return;
    maq_train_result_free(r->train);
    if (o) {
        maq_job_free(o->engine);
        maq_job_free(o->reward);
        maq_arena_fini(&o->arena);
    }
    free(o);
    free(r);
}
