/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance.h - how many drafts of a request are accepted in an iteration. */
#ifndef MAQ_SERVE_DRAFT_ACCEPTANCE_H
#define MAQ_SERVE_DRAFT_ACCEPTANCE_H

#include "maquette/serve_draft.h"

/*
 * Of `drafts` drafts of a request behind `sampled` tokens that it has. A draft has a random number by its place in the request's output, so
 * that what is accepted of a text does not depend on who else is there, nor on when it is verified.
 */
int32_t maq_drafts_accepted(const struct maq_speculation *s, uint32_t request, int64_t sampled, int32_t drafts);

#endif
