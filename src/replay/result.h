/* SPDX-License-Identifier: Apache-2.0 */
/* result.h - the result of a replay, made from the state of its engine. */
#ifndef MAQ_REPLAY_RESULT_H
#define MAQ_REPLAY_RESULT_H

#include "replay/setup.h"

/*
 * The result of an engine whose ranks have all ended, or of which one failed; otherwise the error of a deadlock. *out is
 * owned by the caller (maq_replay_free()).
 */
enum maq_status maq_replay_result_of(struct maq_replay **out, struct maq_engine *e, const struct maq_setup *setup);

#endif
