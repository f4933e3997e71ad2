/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle_pattern.h - objects of Python that all members of a group say, from a few that are known.
 *
 * torch.distributed gathers objects as pickles, each padded with whatever to the length of the longest. Ranks of a job mostly say the same but for
 * numbers that follow from the rank: which rows of a tensor are its own, in which file it writes. Where three members or more say pickles of the same
 * opcodes, and every number in them (whole ones, and those within texts) follows a pattern of the rank (rank_pattern.h), the others are taken to say
 * what the patterns give.
 */
#ifndef MAQ_SHIM_NCCL_PICKLE_PATTERN_H
#define MAQ_SHIM_NCCL_PICKLE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

struct vg_pickles {
    uint32_t n;                       /* members of the group */
    uint64_t bytes;                   /* of each at most, with padding */
    const unsigned char *const *said; /* [n]; NULL: not known */
    const uint64_t *said_bytes;       /* [n]; NULL: each has `bytes` */
    uint32_t node;                    /* ranks on a node */
};
struct vg_pickle_pattern;
/* The pattern by which they say what they say, to be freed; NULL: there is none, or no memory. What was said has to stay where it is. */
struct vg_pickle_pattern *vg_pickle_pattern(const struct vg_pickles *p);
void vg_pickle_pattern_free(struct vg_pickle_pattern *pattern);
/* What a member says by it, in `bytes` of `out`, with zeros behind it. false: it has not that much room, and nothing was written. */
bool vg_pickle_pattern_say(const struct vg_pickle_pattern *pattern, uint32_t place, void *out, uint64_t bytes);

#endif
