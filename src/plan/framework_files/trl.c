/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trl.c - what files say of DPO, KTO, GRPO and PPO, as the job's section `rl`. See hugging_face.h.
 *
 * axolotl (utils/schemas/enums.py, trl.py, vllm.py at 067b021) and LLaMA-Factory (hparams/finetuning_args.py at ff6d4d1) train with TRL's trainers;
 * what IPO changes of DPO takes no time, ORPO and SimPO have no reference. TRL's own configuration (1.10: trainer/grpo_config.py, kto_config.py,
 * experimental/ppo/ppo_config.py) does not name its trainer: keys that one alone has tell it, precompute_ref_log_probs without any DPO's. Without
 * use_vllm, GRPO generates with the trainer's model, and keys of engines have no effect.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "plan/framework_files/hugging_face.h"
#include "plan/rl_keys.h"

void maq_file_preferences(struct maq_file_reader *r, const struct maq_node *at, struct maq_str loss)
{
    static const char *const without[] = {"orpo", "simpo", "cpo"}, *const with[] = {"dpo", "ipo", "sigmoid", "hinge"};
    const struct maq_node *before = maq_file_get(r, "precompute_ref_log_probs");
    for (size_t i = 0; i < MAQ_COUNT(with); i++)
        if (maq_str_ieq(loss, with[i])) {
            maq_file_set(r, at, "rl.method", "dpo");
            if (before && maq_file_asks(before, NULL))
                maq_file_set(r, before, "rl.reference", "precomputed");
            return;
        }
    for (size_t i = 0; i < MAQ_COUNT(without); i++)
        if (maq_str_ieq(loss, without[i])) {
            maq_file_set(r, at, "rl.method", "dpo");
            maq_file_set(r, at, "rl.reference", "none");
            return;
        }
    maq_file_fault(r, at, "dpo, ipo, kto, orpo, simpo and grpo are", "%.*s is not modelled",
                   (int)(loss.len < 40 ? loss.len : 40), loss.ptr);
}

void maq_file_grpo(struct maq_file_reader *r, const struct maq_node *at, const char *map)
{
    static const char *const keys[] = {MAQ_RL_GRPO_KEYS(MAQ_RL_KEY_NAME)};
    char path[96];
    maq__snprintf(path, sizeof path, "%suse_vllm", map);
    const bool vllm = maq_file_true(r, path, false);
    maq_file_set(r, at, "rl.method", "grpo");
    for (size_t i = 0; i < MAQ_COUNT(keys); i++) {
        char key[96];
        maq__snprintf(key, sizeof key, "%s%s", map, keys[i]);
        maq__snprintf(path, sizeof path, "rl.%s", keys[i]);
        const struct maq_node *n = maq_file_get(r, key);
        if (n && n->kind == MAQ_NODE_SCALAR && (vllm || !maq_str_starts(maq_str_of(keys[i]), "vllm_")))
            maq_file_set(r, n, maq_arena_strdup(&r->job->arena, maq_str_of(path)),
                         maq_arena_strdup(&r->job->arena, n->text));
    }
    if (!vllm)
        maq_file_set(r, at, "rl.use_vllm", "false");
}

/* What PPOConfig and KTOConfig have, and none else. */
static void set_ppo(struct maq_file_reader *r, const struct maq_node *at)
{
    static const char *const keys[] = {"num_ppo_epochs", "num_mini_batches", "local_rollout_forward_batch_size",
                                       "response_length"};
    const struct maq_node *reward = maq_file_get(r, "reward_model_path");
    maq_file_set(r, at, "rl.method", "ppo");
    for (size_t i = 0; i < MAQ_COUNT(keys); i++) {
        char path[96];
        const struct maq_node *n = maq_file_get(r, keys[i]);
        maq__snprintf(path, sizeof path, "rl.%s", i == 3 ? "max_completion_length" : keys[i]);
        if (n && n->kind == MAQ_NODE_SCALAR)
            maq_file_set(r, n, maq_arena_strdup(&r->job->arena, maq_str_of(path)),
                         maq_arena_strdup(&r->job->arena, n->text));
        else if (i == 3)
            maq_file_set(r, NULL, "rl.max_completion_length", "53");
    }
    if (reward && reward->kind == MAQ_NODE_SCALAR)
        maq_file_set(r, reward, "rl.reward_model", maq_arena_strdup(&r->job->arena, reward->text));
}

void maq_file_kto(struct maq_file_reader *r, const struct maq_node *at)
{
    const struct maq_node *loss = maq_file_get(r, "loss_type"), *before = maq_file_get(r, "precompute_ref_log_probs");
    maq_file_set(r, at, "rl.method", "kto");
    if (loss && loss->kind == MAQ_NODE_SCALAR)
        maq_file_set(r, loss, "rl.loss_type", maq_arena_strdup(&r->job->arena, loss->text));
    if (before && maq_file_asks(before, NULL))
        maq_file_set(r, before, "rl.reference", "precomputed");
}

void maq_file_trl(struct maq_file_reader *r)
{
    static const char *const grpo[] = {"num_generations", "max_completion_length", "steps_per_generation",
                                       "num_iterations"};
    static const char *const ppo[] = {"num_ppo_epochs", "local_rollout_forward_batch_size", "response_length"},
                             *const kto[] = {"desirable_weight", "undesirable_weight"};
    const struct maq_node *before = maq_file_get(r, "precompute_ref_log_probs");
    const int64_t prompt = maq_file_number(r, "max_prompt_length", 0),
                  completion = maq_file_number(r, "max_completion_length", 0);
    if (prompt > 0 && completion > 0 && !maq_file_get(r, "max_length"))
        maq_file_set_number(r, maq_file_get(r, "max_prompt_length"), "workload.seq_length", prompt + completion);
    for (size_t i = 0; i < MAQ_COUNT(grpo); i++)
        if (maq_file_get(r, grpo[i])) {
            maq_file_grpo(r, maq_file_get(r, grpo[i]), "");
            return;
        }
    for (size_t i = 0; i < MAQ_COUNT(ppo); i++)
        if (maq_file_get(r, ppo[i])) {
            set_ppo(r, maq_file_get(r, ppo[i]));
            return;
        }
    for (size_t i = 0; i < MAQ_COUNT(kto); i++)
        if (maq_file_get(r, kto[i])) {
            maq_file_kto(r, maq_file_get(r, kto[i]));
            return;
        }
    if (before)
        maq_file_preferences(r, before, MAQ_STR("dpo"));
}
