/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drafter.h - what drafts, as a model of its own on the ranks of the model that verifies.
 *
 *   MODEL    the model that was named, all of it
 *   EAGLE    a product of (state, embedding of the next token) to one state, a layer, the head of the model that verifies
 *   EAGLE3   a product of three layers' states to one, once for each verified token; a layer whose projection of queries, keys and values reads
 *            (embedding, state); a head of its own over fewer tokens
 *   MTP      norms of state and embedding, their product to one state, a layer, the head of the model that verifies
 *
 * All but MODEL look tokens up in the table of the model that verifies. A layer that is not said is like the last one of that model, without
 * window. From vLLM 0.33.0 (model_executor/models/llama_eagle.py, llama_eagle3.py, deepseek_mtp.py).
 */
#ifndef MAQ_SERVE_DRAFT_DRAFTER_H
#define MAQ_SERVE_DRAFT_DRAFTER_H

#include "base/arena.h"
#include "maquette/serve_draft.h"

struct maq_drafter {
    struct maq_job job; /* its model is what one pass of it computes */
    uint32_t depths;    /* such layers there are, with weights and a cache each */
    int64_t combines;   /* EAGLE3: features that are projected to one state for each verified token; else 0 */
    bool own_embedding, own_head;
};

/* Not for NONE and NGRAM, which have no passes. What it points to is in the arena or the jobs'. */
enum maq_status maq_drafter_init(struct maq_drafter *out, const struct maq_job *target, const struct maq_speculation *s,
                                 struct maq_arena *arena, struct maq_diag *diag);

#endif
