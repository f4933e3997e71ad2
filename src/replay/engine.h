/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the state of a replay, and the loop that advances it.
 *
 * A meeting is a collective or a message; it is settled when all members have arrived. A rank runs its program until it
 * comes to a meeting that is not settled. Then it is parked, and the rank that settles the meeting puts it on the worklist
 * again. Parking stops the whole rank, although its other streams could go on. Usually that has no effect, since the rank
 * continues later at the same virtual times. Where it would leave ranks waiting for each other in a circle, the worklist
 * runs empty, and every parked rank looks ahead (look_ahead.c): it goes on with the clocks of unsettled streams unknown,
 * and arrives at every meeting whose time does not depend on them. If ranks are parked and none can arrive at any meeting,
 * the program has a deadlock.
 *
 * Arrivals are combined by maxima and counts, so the order of evaluation cannot change a time.
 */
#ifndef MAQ_REPLAY_ENGINE_H
#define MAQ_REPLAY_ENGINE_H

#include "capture/build.h"
#include "replay/program.h"

#define MAQ_UNKNOWN_NS (INT64_MAX / 4) /* a time that depends on an unsettled meeting; sums and maxima preserve it */
#define MAQ_NOBODY UINT32_MAX

/* A collective: the nth on its communicator, in a ring. */
struct maq_meeting {
    uint32_t nth, came; /* nth: UINT32_MAX = none yet */
    int64_t at, ns;     /* the latest arrival, the longest duration */
    int64_t others;     /* the latest of members that are not watched; INT64_MIN = none came */
    bool settled;
};

struct maq_meeting_place { /* a communicator */
    uint32_t need;         /* ranks that take part */
    uint32_t virtual_need; /* those of them that are replayed */
    uint32_t depth;        /* of the ring, a power of two */
    uint32_t seats, size;  /* of its entries in maq_engine.seat: the first, and how many */
    uint32_t placement;    /* of prices */
    uint32_t times;        /* number of communicators that it represents */
    bool leaves_node;
    struct maq_meeting *ring;
};

struct maq_message {
    int64_t sent, received, ns; /* arrivals */
};

struct maq_channel {
    uint32_t sends, receives; /* that arrived */
    uint32_t sent, received;  /* that the two sides have completed */
    uint32_t depth;
    uint32_t from, to; /* ranks; MAQ_NOBODY = unknown: it is taken to arrive in time */
    struct maq_message *ring;
    uint32_t comm, placement; /* job's; of prices */
    uint32_t times;           /* number of channels that it represents */
    uint32_t from_position, to_position;
    bool leaves_node;
};

struct maq_rank_state {
    int64_t host;
    const struct maq_replay_program *program;
    uint32_t pc, rank;
    uint32_t leader, times;  /* rank that represents it; number of ranks that it represents */
    int64_t *stream;         /* [n_streams] */
    int64_t *reg;            /* [n_registers] */
    uint32_t *done;          /* [n_comms] collectives that it has completed */
    uint32_t *arrived;       /* [n_comms] that it arrived at */
    const uint32_t *comm;    /* [n_comms] of the job */
    const uint32_t *channel; /* [n_channels] of the job */
    int64_t *last_comm_ns;   /* [n_streams] transfer of the last kernel of communication there */
    int64_t *last_peer_ns;   /* [n_streams] and how long it waited for peers */
    struct maq_replay_share share;
    int64_t fail_at;    /* INT64_MAX: never */
    int64_t posted_at;  /* arrival at the meeting that it is parked at */
    uint32_t parked_on; /* communicator, or channel | CHANNEL; MAQ_NOBODY = it runs */
    uint32_t part;      /* index of the first unsettled part of the group */
    double link;        /* factor on the time of communication that leaves the node */
    bool posted;        /* it arrived at all parts of its group */
    bool ended, failed, queued, live, watched;
};
#define MAQ_PARKED_CHANNEL (UINT32_C(1) << 31)

struct maq_engine;
/* Live ranks take part: live.c. */
struct maq_engine_hooks {
    void *user;
    void (*collective)(struct maq_engine *e, const struct maq_rec *rec, uint32_t comm, struct maq_meeting *m,
                       void *user);
    void (*message)(struct maq_engine *e, const struct maq_rec *rec, uint32_t channel, uint32_t nth, bool sender,
                    void *user);
};

struct maq_engine {
    const struct maq_capture *capture;
    const struct maq_replay_opts *opts;
    struct maq_arena *arena;
    struct maq_diag *diag;
    uint32_t world;
    struct maq_rank_state *rank;     /* [world]; program NULL = unknown */
    struct maq_meeting_place *place; /* [n_comms] */
    uint32_t *seat;                  /* rank at each position of each communicator; MAQ_NOBODY */
    struct maq_channel *channel;
    uint32_t n_channels;
    uint32_t *worklist; /* [world] stack */
    uint32_t n_work;
    uint64_t shuffle;
    const int64_t *price; /* [rows * n_placements]; NULL = as recorded */
    uint32_t n_placements, n_rows;
    int64_t *step_end;                  /* [n_steps] */
    uint32_t *step_ended;               /* [n_steps] ranks that ended it */
    uint32_t n_steps, n_ended, n_ranks; /* n_ranks: that are replayed */
    uint64_t meetings;
    uint64_t records;
    int64_t *chain; /* [most comms] scratch of a group */
    uint32_t *chain_of;
    uint32_t chain_stamp;
    bool out_of_memory, depth_was_short;
    struct maq_engine_hooks hooks;
};

/* Runs every rank that can run, until the worklist is empty. run.c */
void maq_engine_run(struct maq_engine *e);
/* Parked ranks look ahead; true if any arrived at a meeting. look_ahead.c */
bool maq_engine_look_ahead(struct maq_engine *e);
/* The error of a deadlock: which ranks wait for which meetings. deadlock.c */
enum maq_status maq_engine_stuck(struct maq_engine *e);

#endif
