/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_guess.h - what each member of a gather said, and what those who have said nothing are taken to have said:
 *
 *   objects          what a pattern of the rank gives (pickle_pattern.h), where there is one
 *   a single number  where three are known, the larger of those before and behind: it may be how long an object is, and no object may be cut
 *   anything else    as the last known one before, since ranks that follow each other mostly do the same; or the first known one behind
 *
 * In a gather or all-gather proper, in broadcasts from one member after the other, and in messages to one.
 */
#ifndef MAQ_SHIM_NCCL_GATHER_GUESS_H
#define MAQ_SHIM_NCCL_GATHER_GUESS_H

#include "shim/nccl/pickle_pattern.h"

struct vg_gather_guess {
    uint32_t n, n_said;
    uint64_t bytes;             /* of each, at most */
    unsigned type;              /* enum maq_rec_type */
    const unsigned char **said; /* [n]; NULL: nothing */
    uint64_t *said_bytes;       /* [n]: of each; `bytes` from the beginning */
    uint32_t *before, *behind;  /* [n]: the nearest places that have said something; one's own: there is none */
    struct vg_pickle_pattern *pattern;
    unsigned char *object; /* by the pattern */
};
/* Nobody has said anything yet: said[] is to be filled. false: no memory. To be closed in any case. */
bool vg_gather_guess_open(struct vg_gather_guess *g, uint32_t n, uint64_t bytes, unsigned type);
/* Once said[] is filled. */
void vg_gather_guess_settle(struct vg_gather_guess *g);
/* What that member said or is taken to have said, until the next call; NULL: nobody has said anything. */
const unsigned char *vg_gather_guess_of(const struct vg_gather_guess *g, uint32_t place);
void vg_gather_guess_close(struct vg_gather_guess *g);
/* Whether a member of a group of n is one of those that are asked for its object, so that the others' follow (VG_STOPS_FOR_SAMPLES). */
bool vg_is_sample(uint32_t n, uint32_t place);

/* Of a gather by its channel, from what was recorded, for gloo, which has no types: what a member who has said nothing says by a pattern of objects or as one of two
 * numbers, in out[bytes]. false: by none of these. */
bool vg_gather_guess_by_pattern(void *out, uint64_t channel, uint32_t n, uint32_t place, uint64_t bytes);

#endif
