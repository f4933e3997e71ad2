/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - the result of a launch while it is filled in. */
#ifndef MAQ_LAUNCH_RESULT_H
#define MAQ_LAUNCH_RESULT_H

#include "launch/workspace.h"

struct maq_launch_owner {
    struct maq_launch launch;
    struct maq_arena arena;
    struct maq_launch_rank *rank;
};

/* A result of n ranks, not yet filled in: maq_launch_free(). */
enum maq_status maq_launch_begin(struct maq_launch_owner **out, struct maq_workspace *workspace, uint32_t n,
                                 struct maq_diag *diag);
/* Adds the price requests, and the status of the whole launch. */
enum maq_status maq_launch_end(struct maq_launch_owner *owner, const struct maq_workspace *workspace);

#endif
