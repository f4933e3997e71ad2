/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - a step's composition by operation (signature): the operators of one kind, or the collectives of one kind on one
 * stream ("gemm", "all_reduce tp"), and how much longer each part of the step takes when they do.
 *
 * It is found by differences: the step is predicted again with all runs of the signature 1 + h times as long, and
 *
 *   of(part) = (part with them longer - part) / h         part: a pass, or an exposed reduction [ns]
 *
 * so that a collective that is partly hidden counts with its exposed part, and a kernel that overlaps with communication with the
 * delay that it causes. h is 0.1, or the standard deviation of the signature's own law where that is more: a rare run of ten times
 * the median is exposed even where the median is hidden. Where all signatures together exceed a pass (two overlapping operations,
 * each of which delays it) they are scaled to it; the part without a signature, mostly gaps of the host, is "rest".
 */
#ifndef MAQ_RISK_STEP_SIGNATURE_H
#define MAQ_RISK_STEP_SIGNATURE_H

#include "risk/step/model.h"

#define MAQ_SIGNATURE_NAME 40

/* Parallel dimensions: what a signature is part of. */
enum maq_dimension {
    MAQ_DIMENSION_COMPUTE,
    MAQ_DIMENSION_TP,
    MAQ_DIMENSION_CP,
    MAQ_DIMENSION_EP,
    MAQ_DIMENSION_PP,
    MAQ_DIMENSION_DP,
    MAQ_DIMENSION_COUNT
};
const char *maq_dimension_text(enum maq_dimension dimension);

struct maq_signature {
    char name[MAQ_SIGNATURE_NAME];
    uint8_t dimension;     /* enum maq_dimension */
    bool is_coll;          /* one draw for all members */
    int law;               /* of its own: number in the variation's list; -1: varies with its pass */
    const double *of_pass; /* [passes] share of the pass */
    const double *of_rest; /* [stages] share of the exposed reduction */
    const double *runs;    /* [passes] number of equal runs in a pass with the same variance as its unequal ones */
    bool transfers, joins; /* pipeline transfers; the norm's all-reduce */
    double share;          /* of the step: of the passes of a stage, mean over stages */
};

struct maq_signatures {
    uint32_t n;
    struct maq_signature *at; /* the last is the part without a signature */
    const double *meetings;   /* [passes] how often a lockstep group waits for its slowest in a pass; at least 1 */
};

/* Everything in `arena`. */
enum maq_status maq_signatures_find(struct maq_signatures *out, const struct maq_job *job,
                                    const struct maq_step_model *m, const struct maq_variation *v,
                                    struct maq_arena *arena, struct maq_diag *diag);
/* Whether a variation may name it: an operator's kind, or a collective's, with its stream or for all of them. */
bool maq_signature_known(const char *name);

#endif
