/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rl_cycle.h - a job of post-training over time, for every report that draws it: the parts of a step in the order in which they run, and one cycle
 * of them. A cycle is one generation and all that it is for: `steps` optimizer steps, several with num_iterations or num_ppo_epochs, a part of one where a
 * step has several generations. Without a generation a cycle is a step.
 */
#ifndef MAQ_REPORT_RL_CYCLE_H
#define MAQ_REPORT_RL_CYCLE_H

#include "maquette/post_training.h"
#include "report/page.h"

enum maq_rl_kind {
    MAQ_RL_SYNC,
    MAQ_RL_GENERATE,
    MAQ_RL_OLD,
    MAQ_RL_SCORE_REFERENCE,
    MAQ_RL_REWARD,
    MAQ_RL_VALUE,
    MAQ_RL_TRAIN,
    MAQ_RL_PARTS
};
struct maq_rl_part {
    const char *key, *words;
    double seconds; /* of an optimizer step */
};
void maq_rl_parts(struct maq_rl_part out[MAQ_RL_PARTS], const struct maq_post_training_result *r);

/* A part of a cycle, as nanoseconds from its begin. Training comes last, in as many pieces as there are whole steps. */
struct maq_rl_span {
    enum maq_rl_kind kind;
    uint32_t step; /* of TRAIN, from 0 */
    int64_t start_ns, end_ns;
};
struct maq_rl_cycle {
    double steps;
    uint32_t n;
    struct maq_rl_span *spans; /* [n] */
    int64_t end_ns;
};
/* False: out of memory. maq_rl_cycle_fini() frees it. */
bool maq_rl_cycle_init(struct maq_rl_cycle *out, const struct maq_post_training_result *r);
void maq_rl_cycle_fini(struct maq_rl_cycle *cycle);

/* What was asked, as lines: models, what generates. */
void maq_rl_lines(const struct maq_lines *to, const struct maq_post_training_result *r);

/* Memory of the fullest GPU, row by row: what holds it, bytes; those of sums behind those of their parts. */
#define MAQ_RL_MEMORY_ROWS 8
struct maq_rl_memory_row {
    const char *words;
    double bytes;
    bool sum;
};
void maq_rl_memory_rows(struct maq_rl_memory_row out[MAQ_RL_MEMORY_ROWS], const struct maq_post_training_result *r);

#endif
