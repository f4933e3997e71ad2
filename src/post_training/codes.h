/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - the diagnostics of post-training jobs, 1695 to 1699 of the range in base/codes.h: stable, never reused. Same form as there. */
#ifndef MAQ_POST_TRAINING_CODES_H
#define MAQ_POST_TRAINING_CODES_H

#define MAQ_CODE_LIST_POST_TRAINING(X)                                                                                 \
    X(RL_SECTION, 1695, "a section rl that does not go together with the job")                                         \
    X(RL_CACHE, 1696, "an engine whose cache holds not one request of a generation")

enum maq_post_training_code {
#define MAQ_CODE_ENUM(name, code, text) MAQ_CODE_##name = (code),
    MAQ_CODE_LIST_POST_TRAINING(MAQ_CODE_ENUM)
#undef MAQ_CODE_ENUM
};

#endif
