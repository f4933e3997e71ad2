/* SPDX-License-Identifier: Apache-2.0 */
/* rl_section.h - reads and completes a job's section `rl`. See rl_section.c. */
#ifndef MAQ_POST_TRAINING_RL_SECTION_H
#define MAQ_POST_TRAINING_RL_SECTION_H

#include "base/arena.h"
#include "maquette/post_training.h"
#include "spec/doc.h"

/* Texts of *out live in `arena`. */
struct maq_rl_section {
    struct maq_post_training rl;
    struct maq_node *server; /* the engines' cluster of vllm_mode server; NULL: none */
};
enum maq_status maq_rl_read(struct maq_rl_section *out, const struct maq_loaded_job *loaded, struct maq_arena *arena,
                            struct maq_diag *diag);

#endif
