/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_draft.h - speculative decoding: tokens that something cheaper drafts, and that the model verifies together.
 *
 * An iteration computes for each request that decodes the token that it sampled last and its drafts. Drafts are accepted up to the first one
 * that is not, and one token more comes out of the same pass, so that a request gets 1 to `tokens` + 1 tokens an iteration. How many drafts are
 * accepted is a property of model, drafter and text: it is given, and drawn for each request by itself.
 *
 *   accepted[j]   share of the verifications in which the draft at place j is accepted, and so all before it; it never rises with j.
 *                 As vLLM's log has it ("per-position acceptance rate"). Of a rate a of each draft behind accepted ones: a^(j + 1)
 *   1 + sum of accepted[j]   tokens of a verification in the mean: (1 - a^(K + 1)) / (1 - a) of K drafts
 */
#ifndef MAQUETTE_SERVE_DRAFT_H
#define MAQUETTE_SERVE_DRAFT_H

#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who drafts: identifier, name, what it is. */
/* clang-format off */
#define MAQ_DRAFT_LIST(X)                                                                                              \
    X(NONE,   "none",        "nobody")                                                                                 \
    X(NGRAM,  "ngram",       "what followed the same last tokens earlier in the request")                              \
    X(MODEL,  "draft-model", "a smaller model")                                                                        \
    X(EAGLE,  "eagle",       "a layer behind the model's last one, of its states and the next token, with its head")   \
    X(EAGLE3, "eagle3",      "a layer of three layers' states and the next token, with a head of its own")             \
    X(MTP,    "mtp",         "the model's own layer for multi-token prediction")
/* clang-format on */
enum maq_draft_method {
#define MAQ_DRAFT_ENUM(id, name, what) MAQ_DRAFT_##id,
    MAQ_DRAFT_LIST(MAQ_DRAFT_ENUM)
#undef MAQ_DRAFT_ENUM
        MAQ_DRAFT_COUNT
};
MAQ_API const char *maq_draft_method_name(enum maq_draft_method method);

#define MAQ_DRAFT_MOST 32u

/* Zero: nobody drafts. */
struct maq_speculation {
    enum maq_draft_method method;
    int32_t tokens;   /* drafts that lie behind each other: at most so many are accepted */
    int32_t branches; /* of a tree of drafts at each of its steps (SGLang); 0 = 1: a chain */
    int32_t verified; /* tokens of a request that are verified together, the last sampled one counted; 0 = tokens + 1 */
    /* MODEL: what drafts. EAGLE and EAGLE3: a model like the head, whose last layer it has; NULL: a layer like the model's own. Borrowed. */
    const struct maq_job *draft;
    int weights, expert_weights;     /* of what drafts, enum maq_weights */
    double accepted[MAQ_DRAFT_MOST]; /* [tokens] */
    uint64_t seed;                   /* of what is accepted */
};

/*
 * Reads what is accepted for `s->tokens` drafts: one rate ("0.7": of each draft behind accepted ones), a share for each place ("0.8,0.6,0.4"), or a
 * file of them: a table with a line of column names, position (from 1) and accepted.
 */
MAQ_API enum maq_status maq_acceptance_read(struct maq_speculation *s, const char *text, struct maq_diag *diag);
/* Tokens of a verification in the mean. */
MAQ_API double maq_acceptance_length(const struct maq_speculation *s);

/* What became of drafts. */
struct maq_speculated {
    uint64_t verifications;     /* of a request in an iteration, with drafts */
    uint64_t drafted, accepted; /* drafts that lie behind each other */
    double draft_s;             /* device time of passes that draft */
};

#ifdef __cplusplus
}
#endif
#endif
