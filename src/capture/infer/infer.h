/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.h - inference of ranks that did not run, shared by infer.c (digits of a rank's number), rank_digits.c (the
 * class of a rank) and communicators.c (its communicators).
 */
#ifndef MAQ_CAPTURE_INFER_INFER_H
#define MAQ_CAPTURE_INFER_INFER_H

#include "capture/infer/pattern.h"

#define MAQ_DIGITS 12u

struct maq_infer {
    struct maq_capture *capture;
    struct maq_arena scratch;
    bool early;                     /* ranks have not heard of all others */
    uint32_t n_ran, *ran;           /* ranks that ran */
    uint32_t *asked, n_asked, most; /* ranks that have to run next */
    struct maq_pattern **pattern;   /* [n_classes][n_comms of it] */
    bool **settled;                 /* the same */
    uint32_t n_digits, unit[MAQ_DIGITS], size[MAQ_DIGITS];
    uint32_t *class_at; /* [world] */
};

/* Puts a rank that did not run on the list of ranks to run next, once, if the list is not full. */
void maq_infer_next_ranks(struct maq_infer *f, uint32_t rank);
/* Classes of all ranks into class_at. MAQ_NO: ranks have been asked for. */
enum maq_status maq_infer_digits(struct maq_infer *f);
/* Puts all ranks into the capture. MAQ_NO: the communicators of ranks that ran contradict the patterns. */
enum maq_status maq_infer_communicators(struct maq_infer *f);

/* A pattern, and how many communicators of its size ranks use before it. */
struct maq_seen_pattern {
    struct maq_pattern pattern;
    uint32_t nth;
};
/*
 * The patterns of ranks that ran, which need not have exchanged anything yet: all distinct, in order of size and
 * number. Those that are not determined yet are left out.
 */
enum maq_status maq_infer_patterns(struct maq_seen_pattern **out, uint32_t *n, struct maq_capture *capture,
                                   struct maq_arena *arena);

#endif
