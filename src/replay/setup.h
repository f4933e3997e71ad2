/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - the setup of a replay: state that is needed until the engine runs, and for its result. */
#ifndef MAQ_REPLAY_SETUP_H
#define MAQ_REPLAY_SETUP_H

#include "capture/intern.h"
#include "replay/engine.h"

/* Records at which the steps of a class end; at = NULL: not determined yet. */
struct maq_class_steps {
    const uint32_t *at;
    uint32_t n;
    bool marked;
};

struct maq_setup {
    struct maq_engine *e;
    struct maq_class_steps *steps; /* [classes] */
    struct maq_intern variants, channels;
    struct maq_replay_program **program; /* by variant */
    uint32_t program_room, channel_room;
    bool marked; /* steps are marked by the program */
    bool folds;  /* of ranks that cannot differ one is replayed (rank_symmetry.c) */
    /* other_hardware.c */
    bool priced;
    struct maq_price_rows rows;
    struct maq_replay_kernels *kernels;
    struct maq_device old; /* the device of the capture */
    bool old_known;
    double **scale, **price; /* [groups of the cluster][n_ops] */
};

/* Prices on other hardware. other_hardware.c */
enum maq_status maq_setup_begin_prices(struct maq_setup *s);
/* Node group of a rank; 0 without a cluster. */
uint32_t maq_setup_group(const struct maq_setup *s, uint32_t rank);
void maq_setup_device(const struct maq_setup *s, uint32_t group, struct maq_replay_program_of *of);
/* Prices of all rows on all placements, once programs, communicators and channels are known. */
enum maq_status maq_setup_prices(struct maq_setup *s);

/* Opens an engine whose capture, opts, arena, diag, world and rank[] are set, with `live` of the ranks that run for
 * real. `depth`: of rings, per collective of one communicator in a group. The caller frees s->kernels and e->channel. */
enum maq_status maq_engine_open(struct maq_engine *e, struct maq_setup *s, uint32_t depth);

/* Of ranks that cannot differ, one stays on the worklist (fold), and the others get its result afterwards (unfold).
 * false: out of memory. rank_symmetry.c */
bool maq_engine_fold(struct maq_engine *e);
void maq_engine_unfold(struct maq_engine *e);

#endif
