/* result.h - the result of a replay, made from the state of its engine. */
#ifndef MAQ_REPLAY_RESULT_H
#define MAQ_REPLAY_RESULT_H

#include "replay/setup.h"

/* Of an engine that came to its end: all have ended, or a rank failed; otherwise an error that says who waits for what. */
enum maq_status maq_replay_result_of(struct maq_replay **out, struct maq_engine *e, const struct maq_setup *setup);

#endif
