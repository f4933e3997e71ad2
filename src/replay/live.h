/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - a replay that stands in for all ranks of a job but the few that run for real (emulation). */
#ifndef MAQ_REPLAY_LIVE_H
#define MAQ_REPLAY_LIVE_H

#include <stdatomic.h>

#include "maquette/replay.h"
#include "shim/shm.h"

/*
 * Replays every rank but live[n_live], which meet the replayed ones in the shared segment (shim/shm.h): arrives there
 * on behalf of the replayed members as soon as all of them would have arrived, and sleeps while no replayed rank can go
 * on without a live one. Meetings of replayed ranks alone do not use the segment. Returns when all replayed ranks have
 * ended, or, with MAQ_NO and no *out, when the segment is stopped or they wait for live ranks that come no more: *ended is set by the caller
 * once all live ranks have ended; NULL: they never do. Live ranks must be ranks that ran in the capture, so that their communicators
 * keep their names.
 *
 * *out (owned by the caller) has the ends of the replayed ranks; those of live ranks are 0. opts as for
 * maq_capture_replay(); edits of live ranks are ignored.
 */
enum maq_status maq_replay_live(struct maq_replay **out, const struct maq_capture *capture, const uint32_t *live,
                                uint32_t n_live, struct maq_shm *meet, const atomic_bool *ended,
                                const struct maq_replay_opts *opts, struct maq_diag *diag);

#endif
