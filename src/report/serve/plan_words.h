/* SPDX-License-Identifier: Apache-2.0 */
/* plan_words.h - what is said of candidates of a search, in text and in JSON alike. */
#ifndef MAQ_REPORT_SERVE_PLAN_WORDS_H
#define MAQ_REPORT_SERVE_PLAN_WORDS_H

#include "base/str.h"
#include "maquette/report_serve.h"

/* "tp4 pp2 dp8 ep32". */
void maq_words_cut(struct maq_buf *b, const struct maq_serve_candidate *c);
/* "tp4 ep4, fp8, max_num_seqs 64": degrees, types that differ between candidates, limits that are not the engine's own. */
void maq_words_candidate(struct maq_buf *b, const struct maq_serve_search_result *r,
                         const struct maq_serve_candidate *c);
/* Why it is not the best one. */
void maq_words_verdict(struct maq_buf *b, const struct maq_serve_candidate *c);
/* "ttft_p95 < 500 ms" for each bound, cut by commas. */
void maq_words_slo(struct maq_buf *b, const struct maq_slo *slo);

/*
 * Of all candidates with the same node group, degrees and types the one that came furthest: [*n] indices, the best cut first. Owned by
 * the caller (free()); NULL when out of memory.
 */
uint32_t *maq_serve_cuts(uint32_t *n, const struct maq_serve_search_result *r);

#endif
