/* SPDX-License-Identifier: Apache-2.0 */
/* train_words.h - words about a training step that its text and its page share. */
#ifndef MAQ_REPORT_TRAIN_TRAIN_WORDS_H
#define MAQ_REPORT_TRAIN_TRAIN_WORDS_H

#include "base/str.h"
#include "maquette/train.h"

/* Four significant digits, where three are too few to compare two plans by. Returns buf. */
const char *maq_words_step(char buf[32], double seconds);
/* 98,099 (tokens/s), 212.2, 3.477 M. Returns buf. */
const char *maq_words_rate(char buf[32], double per_s);
/* Whether the plan fits, where that needs a word: "does not fit: ...", "fits, but only just: ..."; nothing where it simply does. */
void maq_words_train_fit(struct maq_buf *b, const struct maq_train_result *r);
/* A hundred peaks were measured: of the last percents they say nothing. */
bool maq_train_odds_matter(const struct maq_train_result *r);
/* "as far off as published peaks were from predicted ones, it fits in 72 of 100 runs", where that matters. */
void maq_words_odds(struct maq_buf *b, const struct maq_train_result *r);
/* What the costs are made of, and what the interval means. */
void maq_words_provenance(struct maq_buf *b, const struct maq_train_result *r);
/* What the file of measured kernels was good for; nothing where the job names none. */
void maq_words_measured(struct maq_buf *b, const struct maq_train_result *r);

#define MAQ_WORDS_UTILIZATION                                                                                          \
    "MFU counts model FLOP (no recompute, causal attention as causal) over the dense peak; HFU those executed."

#endif
