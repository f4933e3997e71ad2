/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post_training.h - a step of a job of several models: DPO and GRPO, as TRL runs them.
 *
 * The job is a training job with a section `rl`. Its plan and its batch are the policy's, in TRL's words: micro_batch_size is
 * per_device_train_batch_size (pairs under DPO, completions under GRPO), seq_length is prompt and completion. One optimizer step is made of
 * readings that exist, added up:
 *
 *   generate   batches of equal requests under a serving engine    maq_serve_static()
 *   score      forward passes of policy, reference, reward model   the forward spans of maq_train_spans()
 *   train      the policy's step                                   maq_train_predict(); under DPO of twice the batch
 *   sync       the policy's new weights on their way to the engine the cost chain's collectives and copies
 */
#ifndef MAQUETTE_POST_TRAINING_H
#define MAQUETTE_POST_TRAINING_H

#include "maquette/serve.h"
#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_rl_method { MAQ_RL_DPO, MAQ_RL_GRPO };
MAQ_API const char *maq_rl_method_name(enum maq_rl_method method);

/* Where log-probabilities of the reference come from. */
enum maq_rl_reference {
    MAQ_RL_REFERENCE_AUTO,        /* DPO: adapter under LoRA, else model; GRPO: none, or with beta as under DPO */
    MAQ_RL_REFERENCE_NONE,        /* there is none (ORPO- and SimPO-like losses, GRPO without KL term) */
    MAQ_RL_REFERENCE_MODEL,       /* a model of the policy's sizes in memory */
    MAQ_RL_REFERENCE_ADAPTER,     /* the policy with its adapters off */
    MAQ_RL_REFERENCE_PRECOMPUTED, /* computed before training (precompute_ref_log_probs) */
    MAQ_RL_REFERENCE_COUNT
};
MAQ_API const char *maq_rl_reference_name(enum maq_rl_reference reference);

enum maq_vllm_mode { MAQ_VLLM_COLOCATE, MAQ_VLLM_SERVER };
MAQ_API const char *maq_vllm_mode_name(enum maq_vllm_mode mode);

/* The section `rl`, completed: docs/post-training.md. */
struct maq_post_training {
    int method;                 /* enum maq_rl_method */
    int reference;              /* enum maq_rl_reference, never AUTO */
    double beta;                /* GRPO: weight of the KL term */
    int64_t prompt, completion; /* tokens; together the job's seq_length */
    int32_t num_generations, steps_per_generation, num_iterations;
    bool use_vllm; /* else the policy generates itself, which is not modelled */
    bool
        vllm_importance_sampling_correction; /* log-probabilities of what was sampled are computed again by the policy */
    int vllm_mode;                           /* enum maq_vllm_mode */
    int32_t vllm_tensor_parallel_size;
    double vllm_gpu_memory_utilization;
    bool vllm_enable_sleep_mode; /* COLOCATE: weights and cache leave the device while the policy is trained */
    struct maq_str reward_model; /* empty: rewards are functions that take no time */
};

/* Bytes on the fullest GPU of the trainer, each model's share. */
struct maq_post_training_memory {
    double policy; /* all of its training, as `train` has it */
    double reference, reward;
    double engine;     /* of a colocated one while the policy is trained: 0 asleep */
    double training;   /* all of these */
    double generating; /* with a colocated engine awake: states of the models, and the engine */
    double capacity;
};

struct maq_post_training_result {
    struct maq_post_training rl;
    const struct maq_job *job;      /* of the policy, the batch as it is trained; borrowed from the result */
    struct maq_train_result *train; /* its step; owned */
    /* of one optimizer step */
    double step_s, generate_s, old_s, reference_s, reward_s, train_s, sync_s;
    double sequences;   /* that are trained on: chosen and rejected both count */
    double generations; /* of one optimizer step: 0.5: every second step has one */
    int64_t requests;   /* of one generation, on one engine */
    int64_t held;       /* of them that the engine's cache holds at once; else they come in waves */
    int32_t waves;
    uint32_t engines, engine_devices; /* in all; on how many GPUs beside the trainer's (0: colocated) */
    struct maq_serve_batch batch;     /* one wave */
    struct maq_post_training_memory memory;
    bool fits;
    void *owner; /* internal */
};

/* Whether a job has a section `rl`. */
MAQ_API bool maq_job_is_post_training(const struct maq_loaded_job *box);
/* *out is owned by the caller (maq_post_training_free) and borrows from `box`. What does not fit is a result, not an error. */
MAQ_API enum maq_status maq_post_training_predict(struct maq_post_training_result **out,
                                                  const struct maq_loaded_job *box, struct maq_diag *diag);
MAQ_API void maq_post_training_free(struct maq_post_training_result *result);

#ifdef __cplusplus
}
#endif
#endif
