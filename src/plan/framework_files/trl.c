/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trl.c - what files say of DPO and GRPO, as the job's section `rl`. See hugging_face.h.
 *
 * axolotl (utils/schemas/enums.py, trl.py, vllm.py at 067b021) and LLaMA-Factory (hparams/finetuning_args.py at ff6d4d1) train with TRL's trainers;
 * what IPO changes of DPO takes no time, ORPO and SimPO have no reference. TRL's own configuration (1.10, trainer/grpo_config.py) does not name its
 * trainer: keys that GRPO alone has tell it, precompute_ref_log_probs DPO's.
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
    maq_file_fault(r, at, "dpo, ipo, orpo, simpo and grpo are", "%.*s is not modelled",
                   (int)(loss.len < 40 ? loss.len : 40), loss.ptr);
}

void maq_file_grpo(struct maq_file_reader *r, const struct maq_node *at, const char *map)
{
    static const char *const keys[] = {MAQ_RL_GRPO_KEYS(MAQ_RL_KEY_NAME)};
    maq_file_set(r, at, "rl.method", "grpo");
    for (size_t i = 0; i < MAQ_COUNT(keys); i++) {
        char key[96], path[96];
        maq__snprintf(key, sizeof key, "%s%s", map, keys[i]);
        maq__snprintf(path, sizeof path, "rl.%s", keys[i]);
        const struct maq_node *n = maq_file_get(r, key);
        if (n && n->kind == MAQ_NODE_SCALAR)
            maq_file_set(r, n, maq_arena_strdup(&r->job->arena, maq_str_of(path)),
                         maq_arena_strdup(&r->job->arena, n->text));
    }
}

void maq_file_trl(struct maq_file_reader *r)
{
    static const char *const grpo[] = {"num_generations", "max_completion_length", "steps_per_generation",
                                       "num_iterations"};
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
    if (before)
        maq_file_preferences(r, before, MAQ_STR("dpo"));
}
