/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_training.h - a step of a job of several models: DPO, KTO, GRPO and PPO, as TRL runs them.
 *
 * The job is a training job with a section `rl`. Its plan and its batch are the policy's, in TRL's words: micro_batch_size is
 * per_device_train_batch_size (pairs under DPO, else sequences), seq_length is prompt and completion. One optimizer step is made of
 * readings that exist, added up:
 *
 *   generate   requests to serving engines, or a batch of the trainer's own model    maq_serve_run(), maq_serve_static()
 *   score      forward passes of policy, reference, reward and value model           the forward spans of maq_train_spans()
 *   train      steps of the policy, under PPO of the value model, too                maq_train_predict(); under DPO of twice the batch
 *   sync       the policy's new weights on their way to what generates               the cost chain's collectives and copies
 */
#ifndef MAQUETTE_POST_TRAINING_H
#define MAQUETTE_POST_TRAINING_H

#include "maquette/serve.h"
#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_rl_method { MAQ_RL_DPO, MAQ_RL_KTO, MAQ_RL_GRPO, MAQ_RL_PPO, MAQ_RL_METHODS };
MAQ_API const char *maq_rl_method_name(enum maq_rl_method method);

/* Where log-probabilities of the reference come from. */
enum maq_rl_reference {
    MAQ_RL_REFERENCE_AUTO,        /* adapter under LoRA, else model; GRPO: none without beta */
    MAQ_RL_REFERENCE_NONE,        /* there is none (ORPO- and SimPO-like losses, GRPO without KL term) */
    MAQ_RL_REFERENCE_MODEL,       /* a model of the policy's sizes in memory */
    MAQ_RL_REFERENCE_ADAPTER,     /* the policy with its adapters off */
    MAQ_RL_REFERENCE_PRECOMPUTED, /* computed before training (precompute_ref_log_probs) */
    MAQ_RL_REFERENCE_COUNT
};
MAQ_API const char *maq_rl_reference_name(enum maq_rl_reference reference);

/* KTO's losses: one of them estimates a KL term from completions that belong to other prompts. */
enum maq_kto_loss { MAQ_KTO_LOSS_KTO, MAQ_KTO_LOSS_APO_ZERO_UNPAIRED };
MAQ_API const char *maq_kto_loss_name(enum maq_kto_loss loss);

enum maq_vllm_mode { MAQ_VLLM_COLOCATE, MAQ_VLLM_SERVER };
MAQ_API const char *maq_vllm_mode_name(enum maq_vllm_mode mode);

/* The section `rl`, completed: docs/post-training.md. */
struct maq_post_training {
    int method;                 /* enum maq_rl_method */
    int reference;              /* enum maq_rl_reference, never AUTO */
    double beta;                /* GRPO: weight of the KL term */
    int kto_loss;               /* enum maq_kto_loss */
    int64_t prompt, completion; /* tokens, of a completion at most; together the job's seq_length */
    /* Tokens of completions: drawn evenly from (1 - spread) to (1 + spread) times osl, or a file's, in its order and again from its first line; at
     * most `completion` of each. */
    int64_t osl;
    double length_spread;
    struct maq_str requests; /* empty: drawn */
    int64_t seed;
    int32_t num_generations, steps_per_generation, num_iterations;        /* GRPO */
    int32_t num_ppo_epochs, num_mini_batches, rollout_forward_batch_size; /* PPO */
    bool use_vllm; /* else the policy generates itself, by the transformers library's generate(): a static batch */
    bool
        vllm_importance_sampling_correction; /* log-probabilities of what was sampled are computed again by the policy */
    int vllm_mode;                           /* enum maq_vllm_mode */
    int32_t vllm_tensor_parallel_size;
    double vllm_gpu_memory_utilization;
    bool vllm_enable_sleep_mode; /* COLOCATE: weights and cache leave the device while the policy is trained */
    struct maq_str reward_model; /* empty: rewards are functions that take no time */
    struct maq_str value_model;  /* PPO */
};
/* Whether completions are generated: GRPO and PPO. */
MAQ_API bool maq_rl_generates(const struct maq_post_training *rl);

/* Bytes on the fullest GPU of the trainer, each model's share. */
struct maq_post_training_memory {
    double policy; /* all of its training, as `train` has it */
    double value;  /* PPO: the same of the value model, without driver and communicators */
    double reference, reward;
    double engine;     /* of a colocated one while the policy is trained: 0 asleep */
    double rollout;    /* of generate(), while it generates: gathered weights, its cache, scores that PPO keeps */
    double training;   /* all of these but the rollout */
    double generating; /* states of the models beside a colocated engine that is awake, or beside the rollout */
    double capacity;
};

/* One generation: all completions that are made at once. */
struct maq_rollout {
    double per_step;                  /* generations of one optimizer step: 0.5: every second step has one */
    double seconds;                   /* until the last completion has ended */
    double sequences;                 /* all of it */
    double mean, longest;             /* tokens of a completion */
    int64_t requests;                 /* on the engine with the most */
    uint32_t engines, engine_devices; /* in all; on how many GPUs beside the trainer's (0: the trainer's) */
    const double *ends_s;             /* [engines], when each has ended its last; owned by the result */
    /* vLLM */
    int64_t held;      /* requests as long as they can be that an engine's cache holds at once */
    double busy_share; /* of the time of all engines, until the end of the slowest */
    double mean_batch, prefix_hit_rate;
    uint64_t preemptions;
    /* generate(): of the rank that takes longest, its batches one after another */
    int32_t batches;
    double prefill_s, decode_s;
};

struct maq_post_training_result {
    struct maq_post_training rl;
    const struct maq_job *job;      /* of the policy, the batch as it is trained; borrowed from the result */
    struct maq_train_result *train; /* its step; owned */
    struct maq_train_result *value; /* PPO: the value model's; owned */
    /* of one optimizer step; old: log-probabilities by the policy; value: the value model's, and advantages made of them */
    double step_s, generate_s, old_s, reference_s, reward_s, value_s, train_s, sync_s;
    double sequences; /* that are trained on: chosen and rejected both count */
    struct maq_rollout rollout;
    struct maq_post_training_memory memory;
    bool fits;
    void *owner; /* internal */
};

/* Whether a job has a section `rl`. */
MAQ_API bool maq_job_is_post_training(const struct maq_loaded_job *loaded);
/* *out is owned by the caller (maq_post_training_free) and borrows from `loaded`. What does not fit is a result, not an error. */
MAQ_API enum maq_status maq_post_training_predict(struct maq_post_training_result **out,
                                                  const struct maq_loaded_job *loaded, struct maq_diag *diag);
MAQ_API void maq_post_training_free(struct maq_post_training_result *result);

#ifdef __cplusplus
}
#endif
#endif
