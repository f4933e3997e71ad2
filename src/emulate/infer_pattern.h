/*
 * infer_pattern.h - where a communicator of a class lies, as seen from any rank of it.
 *
 * Member i of a communicator is base + sum over levels j of digit_j(i) * stride_j, digit_j(i) = i / (n_0 ... n_(j-1)) mod
 * n_j. Seen from a rank, either its digits follow from its number, digit_j = rank / stride_j mod n_j; or its position is the
 * same on all ranks of the class (`fixed`): a pipeline stage is first in its pair with the next stage wherever it is.
 */
#ifndef MAQ_EMULATE_INFER_PATTERN_H
#define MAQ_EMULATE_INFER_PATTERN_H

#include "base/arena.h"
#include "maquette/capture.h"

#define MAQ_PATTERN_LEVELS 4u

struct maq_pattern {
    uint32_t size, n_levels;
    uint32_t n[MAQ_PATTERN_LEVELS], stride[MAQ_PATTERN_LEVELS];
    bool fixed;
    uint32_t position; /* where it is fixed */
};

/* Base of the rank's communicator and its position in it; false where the rank cannot be in one like that. */
bool maq_pattern_at(const struct maq_pattern *p, uint32_t rank, uint32_t world, uint32_t *base, uint32_t *position);
uint32_t maq_pattern_member(const struct maq_pattern *p, uint32_t base, uint32_t i);

bool maq_pattern_same(const struct maq_pattern *a, const struct maq_pattern *b);
/* Whether the pattern says of every rank of the class that ran what that rank said. */
bool maq_pattern_holds(const struct maq_pattern *p, const struct maq_capture *capture, const struct maq_rank_class *c,
                       uint32_t ordinal);

/* Patterns that other communicators have. */
struct maq_patterns {
    struct maq_pattern *at;
    uint32_t n;
};

/*
 * The pattern of communicator `ordinal` of a class, from all its ranks that ran. NULL; or why there is none, and then
 * *probe is a rank that would tell (UINT32_MAX: none in particular). Where several would do, one that is in `like`.
 */
const char *maq_pattern_find(struct maq_pattern *out, const struct maq_capture *capture, const struct maq_rank_class *c,
                             uint32_t ordinal, const struct maq_patterns *like, uint32_t *probe);
/* The same where nobody said who is in it: infer_stride.c. */
const char *maq_pattern_guess(struct maq_pattern *out, const struct maq_capture *capture,
                              const struct maq_rank_class *c, uint32_t ordinal, const struct maq_patterns *like,
                              uint32_t *probe);

#endif
