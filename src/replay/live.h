/*
 * live.h - a replay among ranks that run: it stands in for all others.
 */
#ifndef MAQ_REPLAY_LIVE_H
#define MAQ_REPLAY_LIVE_H

#include "maquette/replay.h"
#include "shim/meet.h"

/*
 * Plays every rank but live[n_live], which meet the others in the segment (shim/meet.h): arrives there on behalf of the
 * others as soon as all of them would have come, and sleeps where nobody can go on without a live rank. What only others
 * take part in never goes through the segment. Returns when all others have ended, or when the segment is stopped
 * (MAQ_NO, with no *out). Live ranks are ranks that ran in the capture: their communicators keep their names.
 *
 * *out (owned by the caller) has the ends of the others; those of live ranks are 0. opts as for maq_capture_replay(),
 * edits of live ranks count nothing.
 */
enum maq_status maq_replay_live(struct maq_replay **out, const struct maq_capture *capture, const uint32_t *live,
                                uint32_t n_live, struct maq_meet *meet, const struct maq_replay_opts *opts,
                                struct maq_diag *diag);

#endif
