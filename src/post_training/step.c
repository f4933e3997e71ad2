/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - one optimizer step of DPO, KTO, GRPO or PPO as the sum of its parts. See post_training.h.
 *
 * Trainers are TRL 1.10 (f2cd577): trainer/dpo_trainer.py, kto_trainer.py, grpo_trainer.py, experimental/ppo/ppo_trainer.py. With b sequences of a
 * microbatch, m microbatches of a step (gradient_accumulation_steps), and t(x) a forward pass of a microbatch of model x that keeps nothing:
 *
 *   DPO    chosen and rejected go through the model together, so that b and the batch are twice the pairs
 *     train      the policy's step
 *     reference  m t(reference)
 *   KTO    a batch of completions, and the same prompts with each other's completions, from which the KL term is estimated (not under apo_zero_unpaired)
 *     train      the policy's step
 *     old        m t(policy), of the mismatched
 *     reference  2 m t(reference), of both
 *   GRPO   a generation is for s = steps_per_generation microbatches, each trained on in num_iterations passes: g = m / (s num_iterations)
 *          generations a step
 *     generate   g times b x dp x s completions
 *     old        g s t(policy), where log-probabilities of what vLLM sampled are computed again, or the step is not g's end
 *     reference  g s t(reference), with beta
 *     reward     g s t(reward model)
 *     train      the policy's step; the output layer over all tokens, where TRL takes those of completions
 *     sync       min(1, g) times (weight_sync.c)
 *   PPO    a rollout is a rank's m b sequences, trained on in num_ppo_epochs steps: g = 1 / num_ppo_epochs. Its log-probabilities are made of the scores
 *          that generate() returns; the others come in n = ceil(m b / c) batches of c = local_rollout_forward_batch_size sequences, u(x) each
 *     generate   g times m b x dp completions
 *     reference  g n u(reference), reward g n u(reward model)
 *     value      g n u(value model), and g times generalized advantage estimation, one token after another (Schulman et al., arXiv 1506.02438, eq. 16):
 *                A_t = r_t + gamma V_(t+1) - V_t + gamma lambda A_(t+1), five kernels over the sequences of a rank
 *     train      the policy's step, and the value model's: both are passed forward and then backward, and share an optimizer step
 *
 * The reference is a model of its own, or the policy without its adapters. Sequences that were generated are as long as the longest of them, to which
 * the trainer pads. Nothing runs beside anything else.
 */
#include "post_training/step.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "post_training/frozen_models.h"
#include "post_training/rollout.h"

#define GAE_KERNELS 5 /* ppo_trainer.py, "6. compute advantages and returns": two products, two sums, a difference */

struct owner {
    struct maq_arena arena;
    struct maq_job policy, reward_job, value_job;
    struct maq_loaded_job *engine, *reward, *value;
};

/* Passes of models that score: how many of one optimizer step, and over how many sequences of a rank. */
struct scoring {
    double passes;
    int32_t sequences;
};

static enum maq_status score_s(double *out, struct maq_job job, struct scoring s, struct maq_diag *diag)
{
    double pass = 0;
    job.plan.mbs = s.sequences;
    MAQ_TRY(maq_rl_forward_s(&pass, &job, diag));
    *out = s.passes * pass;
    return MAQ_OK;
}

static enum maq_status add_reference(struct maq_post_training_result *r, struct scoring s, struct maq_diag *diag)
{
    const bool adapter = r->rl.reference == MAQ_RL_REFERENCE_ADAPTER;
    const struct maq_job job = maq_rl_frozen(r->job, adapter ? MAQ_RL_ADAPTERS_OFF : MAQ_RL_ADAPTERS_NONE);
    if (!adapter && r->rl.reference != MAQ_RL_REFERENCE_MODEL)
        return MAQ_OK;
    MAQ_TRY(score_s(&r->reference_s, job, s, diag));
    return adapter ? MAQ_OK : maq_rl_weights(&r->memory.reference, &job, diag);
}

static enum maq_status add_old(struct maq_post_training_result *r, struct scoring s, struct maq_diag *diag)
{
    return score_s(&r->old_s, maq_rl_frozen(r->job, MAQ_RL_ADAPTERS_ON), s, diag);
}

static enum maq_status add_reward(struct maq_post_training_result *r, struct owner *o,
                                  const struct maq_loaded_job *loaded, struct scoring s, struct maq_diag *diag)
{
    if (r->rl.reward_model.len == 0)
        return MAQ_OK;
    MAQ_TRY(
        maq_rl_scoring_job(&o->reward, &o->reward_job, loaded, "rl.reward_model", r->rl.reward_model, &o->arena, diag));
    o->reward_job.workload = r->job->workload;
    const struct maq_job job = maq_rl_frozen(&o->reward_job, MAQ_RL_ADAPTERS_NONE);
    MAQ_TRY(score_s(&r->reward_s, job, s, diag));
    return maq_rl_weights(&r->memory.reward, &job, diag);
}

/* Advantages of a rollout: as many steps as the longest completion has tokens, over one number of each sequence. */
static double advantages_s(const struct maq_post_training_result *r, double sequences)
{
    const struct maq_device *device = &r->job->cluster.groups[0].device;
    const struct maq_op op = {
        .kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_FP32, .d = {(int64_t)sequences, 3, 4}}; /* two read, one written */
    const double kernel = maq_cost_op(NULL, &op, device).seconds,
                 launch = r->job->framework.host.kernel_s / maq_device_host_speed(device);
    return r->rollout.longest * GAE_KERNELS * fmax(kernel, launch);
}

static enum maq_status add_value(struct maq_post_training_result *r, struct owner *o,
                                 const struct maq_loaded_job *loaded, struct scoring s, struct maq_diag *diag)
{
    double passes = 0;
    MAQ_TRY(maq_rl_scoring_job(&o->value, &o->value_job, loaded, "rl.value_model", r->rl.value_model, &o->arena, diag));
    o->value_job.workload = r->job->workload;
    MAQ_TRY(score_s(&passes, maq_rl_frozen(&o->value_job, MAQ_RL_ADAPTERS_NONE), s, diag));
    r->value_s = passes + r->rollout.per_step * advantages_s(r, r->rollout.sequences / r->job->dp);
    return maq_train_predict(&r->value, &o->value_job, diag);
}

/* ---- memory ---- */

static double own_bytes(const struct maq_stage_result *st)
{
    return st->bytes[MAQ_MEM_CONTEXT] + st->bytes[MAQ_MEM_NCCL];
}

static double states(const struct maq_train_result *t)
{
    const struct maq_stage_result *st = &t->stages[t->worst_stage];
    return st->bytes[MAQ_MEM_WEIGHTS] + st->bytes[MAQ_MEM_GRADIENTS] + st->bytes[MAQ_MEM_OPTIMIZER];
}

/* The fullest GPU: while the policy is trained, or beside what generates. */
static void add_memory(struct maq_post_training_result *r, double generates)
{
    const struct maq_stage_result *st = &r->train->stages[r->train->worst_stage];
    struct maq_post_training_memory *m = &r->memory;
    m->policy = st->needed_bytes;
    if (r->value) { /* one process: driver and communicators are there once */
        const struct maq_stage_result *v = &r->value->stages[r->value->worst_stage];
        m->value = v->needed_bytes - own_bytes(v);
    }
    if (r->rl.use_vllm)
        m->engine = r->rl.vllm_enable_sleep_mode ? 0 : generates;
    else
        m->rollout = generates;
    m->training = m->policy + m->value + m->reference + m->reward + m->engine;
    if (generates > 0)
        m->generating =
            states(r->train) + own_bytes(st) + (r->value ? states(r->value) : 0) + m->reference + m->reward + generates;
    m->capacity = st->capacity_bytes;
    r->fits = m->training <= m->capacity && m->generating <= m->capacity;
}

/* ---- the step ---- */

static enum maq_status predict_dpo(struct maq_post_training_result *r, struct owner *o, struct maq_diag *diag)
{
    o->policy.plan.mbs *= 2; /* chosen and rejected: the number of microbatches stays */
    o->policy.workload.gbs *= 2;
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    return add_reference(r, (struct scoring){r->job->microbatches, r->job->plan.mbs}, diag);
}

static enum maq_status predict_kto(struct maq_post_training_result *r, struct maq_diag *diag)
{
    const bool mismatched = r->rl.kto_loss == MAQ_KTO_LOSS_KTO;
    const double m = r->job->microbatches;
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    if (mismatched)
        MAQ_TRY(add_old(r, (struct scoring){m, r->job->plan.mbs}, diag));
    return add_reference(r, (struct scoring){mismatched ? 2 * m : m, r->job->plan.mbs}, diag);
}

/* What is trained on has the length of the longest completion; with TP and CP, of the next that ranks can share. */
static void shorten(struct owner *o, const struct maq_post_training_result *r)
{
    const int64_t unit = (int64_t)o->policy.plan.tp * o->policy.plan.cp * (o->policy.plan.cp > 1 ? 2 : 1),
                  tokens = r->rl.prompt + (int64_t)r->rollout.longest, padded = (tokens + unit - 1) / unit * unit;
    if (padded < o->policy.workload.seq)
        o->policy.workload.seq = padded;
}

static enum maq_status generate(struct maq_post_training_result *r, struct owner *o, double *bytes,
                                const struct maq_loaded_job *loaded, const struct maq_rl_section *section,
                                struct maq_diag *diag)
{
    const struct maq_rollout_asked asked = {loaded, r->job, section, &o->arena};
    int64_t *lengths;
    MAQ_TRY(maq_rollout_lengths(&lengths, &r->rollout, &asked, diag));
    MAQ_TRY((r->rl.use_vllm ? maq_rollout_by_engines : maq_rollout_by_trainer)(&r->rollout, bytes, &o->engine, lengths,
                                                                               &asked, diag));
    r->generate_s = r->rollout.per_step * r->rollout.seconds;
    shorten(o, r);
    return MAQ_OK;
}

static enum maq_status predict_grpo(struct maq_post_training_result *r, struct owner *o, double *bytes,
                                    const struct maq_loaded_job *loaded, const struct maq_rl_section *section,
                                    struct maq_diag *diag)
{
    const struct maq_post_training *rl = &r->rl;
    const int32_t every = rl->steps_per_generation * rl->num_iterations, m = r->job->microbatches;
    r->rollout.per_step = (double)m / every;
    r->rollout.sequences = (double)r->job->plan.mbs * r->job->dp * rl->steps_per_generation;
    const struct scoring s = {r->rollout.per_step * rl->steps_per_generation, r->job->plan.mbs};
    MAQ_TRY(generate(r, o, bytes, loaded, section, diag));
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    if ((rl->use_vllm && rl->vllm_importance_sampling_correction) || m % every != 0)
        MAQ_TRY(add_old(r, s, diag));
    MAQ_TRY(add_reference(r, s, diag));
    MAQ_TRY(add_reward(r, o, loaded, s, diag));
    r->sync_s = fmin(1, r->rollout.per_step) * maq_rl_sync_s(r);
    return MAQ_OK;
}

static enum maq_status predict_ppo(struct maq_post_training_result *r, struct owner *o, double *bytes,
                                   const struct maq_loaded_job *loaded, const struct maq_rl_section *section,
                                   struct maq_diag *diag)
{
    const struct maq_post_training *rl = &r->rl;
    const int32_t local = r->job->plan.mbs * r->job->microbatches,
                  at_once = local < rl->rollout_forward_batch_size ? local : rl->rollout_forward_batch_size;
    r->rollout.per_step = 1.0 / rl->num_ppo_epochs;
    r->rollout.sequences = (double)local * r->job->dp;
    const int32_t batches = (local + at_once - 1) / at_once;
    const struct scoring s = {r->rollout.per_step * batches, at_once};
    MAQ_TRY(generate(r, o, bytes, loaded, section, diag));
    MAQ_TRY(maq_train_predict(&r->train, r->job, diag));
    MAQ_TRY(add_reference(r, s, diag));
    MAQ_TRY(add_reward(r, o, loaded, s, diag));
    MAQ_TRY(add_value(r, o, loaded, s, diag));
    r->sync_s = r->rollout.per_step * maq_rl_sync_s(r);
    return MAQ_OK;
}

static enum maq_status predict(struct maq_post_training_result *r, struct owner *o, const struct maq_loaded_job *loaded,
                               struct maq_diag *diag)
{
    struct maq_rl_section section;
    double generates = 0;
    enum maq_status status = maq_rl_read(&section, loaded, &o->arena, diag);
    if (status != MAQ_OK)
        return status;
    r->rl = section.rl;
    switch ((enum maq_rl_method)r->rl.method) {
    case MAQ_RL_DPO:
        status = predict_dpo(r, o, diag);
        break;
    case MAQ_RL_KTO:
        status = predict_kto(r, diag);
        break;
    case MAQ_RL_GRPO:
        status = predict_grpo(r, o, &generates, loaded, &section, diag);
        break;
    case MAQ_RL_PPO:
    case MAQ_RL_METHODS:
        status = predict_ppo(r, o, &generates, loaded, &section, diag);
    }
    if (status != MAQ_OK)
        return status;
    r->train_s = r->train->step_s + (r->value ? r->value->step_s : 0);
    r->sequences = o->policy.workload.gbs;
    r->step_s = r->generate_s + r->old_s + r->reference_s + r->reward_s + r->value_s + r->train_s + r->sync_s;
    add_memory(r, generates);
    return MAQ_OK;
}

enum maq_status maq_post_training_predict(struct maq_post_training_result **out, const struct maq_loaded_job *loaded,
                                          struct maq_diag *diag)
{
    struct maq_post_training_result *r = calloc(1, sizeof *r);
    struct owner *o = calloc(1, sizeof *o);
    if (!r || !o) {
        free(r);
        free(o);
        return MAQ_NO_MEMORY;
    }
    maq_arena_init(&o->arena, 0);
    o->policy = *maq_job_get(loaded);
    r->owner = o;
    r->job = &o->policy;
    enum maq_status status = predict(r, o, loaded, diag);
    if (status != MAQ_OK) {
        maq_post_training_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

void maq_post_training_free(struct maq_post_training_result *r)
{
    struct owner *o = r ? r->owner : NULL;
    if (!r)
        return;
    maq_train_result_free(r->train);
    maq_train_result_free(r->value);
    if (o) {
        maq_job_free(o->engine);
        maq_job_free(o->reward);
        maq_job_free(o->value);
        maq_arena_fini(&o->arena);
    }
    free(o);
    free(r);
}
