/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - the members of a class's communicator as a function of the rank: struct maq_pattern of shim/link.h. */
#ifndef MAQ_CAPTURE_INFER_PATTERN_H
#define MAQ_CAPTURE_INFER_PATTERN_H

#include "base/arena.h"
#include "maquette/capture.h"
#include "shim/link.h"

bool maq_pattern_same(const struct maq_pattern *a, const struct maq_pattern *b);
/* Whether the pattern agrees with every rank of the class that ran. */
bool maq_pattern_holds(const struct maq_pattern *p, const struct maq_capture *capture, const struct maq_rank_class *c,
                       uint32_t ordinal);

/* How many communicators of its size ranks of a class use before it. */
uint32_t maq_pattern_nth(const struct maq_capture *capture, const struct maq_rank_class *c, uint32_t ordinal);

/* Patterns of other communicators. */
struct maq_patterns {
    struct maq_pattern *at;
    uint32_t n;
    bool early; /* ids may not have reached all: one communicator may go by several names */
};

/*
 * The pattern of communicator `ordinal` of a class, from all its ranks that ran. NULL; or why there is none, and then
 * *probe is a rank that would tell (UINT32_MAX: none in particular). Where several would do, one that is in `like`.
 */
const char *maq_pattern_find(struct maq_pattern *out, const struct maq_capture *capture, const struct maq_rank_class *c,
                             uint32_t ordinal, const struct maq_patterns *like, uint32_t *probe);
/* The same where the members are unknown: stride.c. */
const char *maq_pattern_guess(struct maq_pattern *out, const struct maq_capture *capture,
                              const struct maq_rank_class *c, uint32_t ordinal, const struct maq_patterns *like,
                              uint32_t *probe);

#endif
