/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the progress of a run between failures: work, saves and evaluations as a function of time.
 *
 * Positions are nanoseconds of useful work at full speed. Save k stands behind k intervals of work; evaluations behind every
 * `eval_every` of work, after a save at the same place. With fewer replicas than it began with a run goes at the speed num / den;
 * saves and evaluations take as long as ever. All in whole nanoseconds, so that every one of them is in exactly one bucket.
 *
 * Save k is of level l when k is a multiple of every[l] and of no higher one's.
 */
#ifndef MAQ_RISK_RUN_PROGRESS_H
#define MAQ_RISK_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define MAQ_TRACK_LEVELS 4

struct maq_track {
    int64_t end;                         /* work of the whole run */
    int64_t interval;                    /* work between saves; > end: none */
    int n_levels;                        /* >= 1 */
    int64_t every[MAQ_TRACK_LEVELS + 1]; /* every[0] = 1, each divides the next; every[n_levels] = INT64_MAX */
    int64_t save[MAQ_TRACK_LEVELS], persist[MAQ_TRACK_LEVELS];
    int64_t eval_every, eval_pause; /* 0, 0: none */
};

struct maq_speed {
    int64_t num, den; /* num <= den */
};

/* Between save k and the next: `work` of the interval is done, and so much of its pauses. */
struct maq_track_place {
    int64_t k, work, paused;
};

/* Where the time went up to a place: with the extra time of a lower speed they add up to the time on the track. */
struct maq_track_sums {
    int64_t work, save, eval;
};

/* Time from the start of the track to a place at one constant speed; callers use differences. */
int64_t maq_track_time(const struct maq_track *t, struct maq_speed f, struct maq_track_place at);
int64_t maq_track_end(const struct maq_track *t, struct maq_speed f);
/* Time to the end of save k. */
int64_t maq_track_saved(const struct maq_track *t, struct maq_speed f, int64_t k);
/* The place at a time before the end. */
struct maq_track_place maq_track_at(const struct maq_track *t, struct maq_speed f, int64_t time);
struct maq_track_sums maq_track_sums(const struct maq_track *t, struct maq_track_place at);
struct maq_track_sums maq_track_end_sums(const struct maq_track *t);
int maq_track_level(const struct maq_track *t, int64_t k);

#endif
