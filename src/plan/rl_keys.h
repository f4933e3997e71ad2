/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rl_keys.h - the section `rl` of a document, as far as files of frameworks name it: keys that TRL's GRPOConfig (1.10, trainer/grpo_config.py) has too,
 * by the same name. What each means is the table of post_training/rl_section.c.
 */
#ifndef MAQ_PLAN_RL_KEYS_H
#define MAQ_PLAN_RL_KEYS_H

#define MAQ_RL_GRPO_KEYS(X)                                                                                            \
    X("beta")                                                                                                          \
    X("max_prompt_length")                                                                                             \
    X("max_completion_length")                                                                                         \
    X("num_generations")                                                                                               \
    X("steps_per_generation")                                                                                          \
    X("num_iterations")                                                                                                \
    X("use_vllm")                                                                                                      \
    X("vllm_mode")                                                                                                     \
    X("vllm_enable_sleep_mode")                                                                                        \
    X("vllm_importance_sampling_correction")                                                                           \
    X("vllm_tensor_parallel_size")                                                                                     \
    X("vllm_gpu_memory_utilization")

/* An entry of a list of their names. */
#define MAQ_RL_KEY_NAME(key) key,

#endif
