/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollout.h - how completions come about: by engines of vLLM, which take in a request as another one ends, or by the trainer's own model, whose
 * batch goes on until the last has ended. See rollout.c.
 */
#ifndef MAQ_POST_TRAINING_ROLLOUT_H
#define MAQ_POST_TRAINING_ROLLOUT_H

#include "post_training/rl_section.h"

/* What a rollout is made of; lengths and ends live in `arena`. */
struct maq_rollout_asked {
    const struct maq_loaded_job *loaded; /* the trainer's */
    const struct maq_job *policy;
    const struct maq_rl_section *section;
    struct maq_arena *arena;
};

/* Tokens of each of a generation's n completions, in [n] of the arena; *longest and *mean of all. */
enum maq_status maq_rollout_lengths(int64_t **out, struct maq_rollout *of, const struct maq_rollout_asked *asked,
                                    struct maq_diag *diag);
/* Fills `of` but for what maq_rollout_lengths() has. *bytes: of a GPU, a colocated engine's, or the cache and scores of generate(). */
enum maq_status maq_rollout_by_engines(struct maq_rollout *of, double *bytes, struct maq_loaded_job **engine,
                                       const int64_t *lengths, const struct maq_rollout_asked *asked,
                                       struct maq_diag *diag);
enum maq_status maq_rollout_by_trainer(struct maq_rollout *of, double *bytes, struct maq_loaded_job **engine,
                                       const int64_t *lengths, const struct maq_rollout_asked *asked,
                                       struct maq_diag *diag);

#endif
