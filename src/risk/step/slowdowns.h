/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowdowns.h - parses --slow: "node:17=1.2x", "rank:4095=1.1x", "stage:3=1.1x", "link:rail3=0.5x".
 */
#ifndef MAQ_RISK_STEP_SLOWDOWNS_H
#define MAQ_RISK_STEP_SLOWDOWNS_H

#include "base/arena.h"
#include "risk/step/model.h"

/* Replicas that are slow in the same way. */
struct maq_slow_kind {
    double count;
    double *stage; /* [stages] factors */
};

struct maq_slow {
    uint32_t n; /* the last kind is that of all other replicas */
    struct maq_slow_kind *kind;
    double communication;
};

enum maq_status maq_slow_read(struct maq_slow *out, const char *const *texts, uint32_t n, const struct maq_job *job,
                              const struct maq_step_model *m, struct maq_arena *arena, struct maq_diag *diag);

#endif
