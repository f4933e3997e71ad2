/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the parts of a step of post-training, in the order in which they run: for people and for programs. */
#ifndef MAQ_REPORT_POST_TRAINING_PARTS_H
#define MAQ_REPORT_POST_TRAINING_PARTS_H

#include "maquette/post_training.h"

#define MAQ_RL_PARTS 7
struct maq_rl_part {
    const char *key, *words;
    double seconds;
};

static inline size_t maq_rl_parts(struct maq_rl_part out[MAQ_RL_PARTS], const struct maq_post_training_result *r)
{
    const struct maq_rl_part parts[MAQ_RL_PARTS] = {{"sync_s", "sync of weights", r->sync_s},
                                                    {"generate_s", "generate", r->generate_s},
                                                    {"old_s", "score by the policy", r->old_s},
                                                    {"reference_s", "score by the reference", r->reference_s},
                                                    {"reward_s", "score by the reward", r->reward_s},
                                                    {"value_s", "values, advantages", r->value_s},
                                                    {"train_s", "train", r->train_s}};
    for (size_t i = 0; i < MAQ_RL_PARTS; i++)
        out[i] = parts[i];
    return MAQ_RL_PARTS;
}

#endif
