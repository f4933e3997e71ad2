/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo_data.h - what ranks that are not there put into collectives of gloo: for gloo.c, which speaks for them.
 */
#ifndef MAQ_SHIM_BOOT_GLOO_DATA_H
#define MAQ_SHIM_BOOT_GLOO_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/link.h"

/* A connection of this rank, `me` of its group, with the rank `peer` of it. */
struct vg_gloo_pair;
struct vg_gloo_ends {
    struct maq_gloo_peer peer;
    uint32_t me;
};

/* What is answered to one request for data. */
struct vg_gloo_answer {
    struct vg_gloo_answer *next;
    struct vg_gloo_pair *pair;
    struct vg_gloo_ends ends;
    struct vg_gloo_call *call;
    uint64_t index; /* requests of the call before it */
    uint64_t slot, bytes;
    enum { VG_GLOO_ZEROS, VG_GLOO_KEPT, VG_GLOO_COPIED, VG_GLOO_REDUCED } with;
    const void *from; /* of COPIED; the rest is zeros */
    void *own;        /* memory that it is made in; NULL: none */
    uint64_t from_bytes;
};

/* One collective, or the messages between two ranks under one tag: what has one slot of gloo. */
struct vg_gloo_call;
struct vg_gloo_call *vg_gloo_call_of(const struct vg_gloo_ends *ends, uint64_t slot); /* NULL: no memory */
/* This rank is about to send, it has sent. `data` stays where it is until the collective ends. */
void vg_gloo_announced(struct vg_gloo_call *call, uint64_t bytes);
void vg_gloo_sent(struct vg_gloo_call *call, const struct vg_gloo_ends *ends, const void *data, uint64_t bytes);
/* A request: takes its number, and is kept count of until vg_gloo_answered(). */
void vg_gloo_asked(struct vg_gloo_answer *answer);
void vg_gloo_answered(struct vg_gloo_answer *answer);
/* Finds what it is answered with; false: that is not known before this rank has sent more. Then it waits in the call. */
bool vg_gloo_find(struct vg_gloo_answer *answer);
struct vg_gloo_answer **vg_gloo_waiting(struct vg_gloo_call *call);
/* Frees an answer, whether it was given or not. */
void vg_gloo_free(struct vg_gloo_answer *answer);
/* Forgets what waits for data on a pair that is closed. */
void vg_gloo_forget(const struct vg_gloo_pair *pair);
/* The last connection of a group is closed: another group of the same name counts from 0. */
void vg_gloo_over(uint64_t group);
/* Puts the answer into the program's buffer. */
void vg_gloo_fill(const struct vg_gloo_answer *answer, void *to);

#endif
