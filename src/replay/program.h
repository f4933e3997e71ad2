/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a class's records compiled for the replay: runs of records that concern one stream and the host are one
 * instruction.
 *
 * A launch is host += h, stream = max(stream, host) + d. Launches on one stream compose to
 *
 *     stream' = max(stream + D, host + M),   host' = host + H
 *
 * exactly, in whole nanoseconds, so that a run of launches is one instruction. An event that is never waited for is
 * host time alone; the time of another event is in a register from its record to its last wait.
 */
#ifndef MAQ_REPLAY_PROGRAM_H
#define MAQ_REPLAY_PROGRAM_H

#include "base/arena.h"
#include "capture/price/price.h"
#include "maquette/replay.h"

enum maq_ins_op {
    MAQ_INS_RUN,        /* stream; H, D, M */
    MAQ_INS_HOST,       /* host += H */
    MAQ_INS_RECORD,     /* event = max(stream, host) */
    MAQ_INS_WAIT,       /* stream waits for event; `from`: the stream that it was recorded on */
    MAQ_INS_SYNC_EVENT, /* the host waits */
    MAQ_INS_SYNC_STREAM,
    MAQ_INS_SYNC_DEVICE,
    MAQ_INS_MEET,      /* a kernel of `parts` parts, the instructions behind it */
    MAQ_INS_PART_COLL, /* communicator `id`; D; row of prices */
    MAQ_INS_PART_SEND, /* channel `id` of the rank */
    MAQ_INS_PART_RECV,
    MAQ_INS_STEP, /* the host begins the step behind it; id: which ended */
    MAQ_INS_FAIL,
    MAQ_INS_END
};

struct maq_ins {
    uint8_t op;
    bool eager; /* PART_SEND: does not wait for the receiver */
    uint16_t stream;
    uint32_t id; /* event register, communicator, channel, step */
    int64_t H, D;
    union {
        int64_t M; /* RUN */
        struct {
            uint32_t parts; /* MEET */
            uint32_t colls; /* MEET: how many of them are collectives */
        };
        struct {
            uint32_t row; /* of prices; UINT32_MAX = D stands */
            uint32_t nth; /* PART: how many of this communicator or channel come before it in its group */
        };
        uint32_t from;
    };
};
_Static_assert(sizeof(struct maq_ins) == 32, "two to a cache line");

/* A peer of a class, relative in one of its communicators. */
struct maq_channel_of {
    uint32_t comm, peer; /* ordinal; (peer - own) mod size */
    bool sends;
};

/* What a program is compiled from: a class, edits, and the prices of other hardware. */
struct maq_replay_program_of {
    const struct maq_rank_class *c;
    const struct maq_edit *edit; /* that concern its ranks */
    uint32_t n_edits;
    const struct maq_rank_delta *delta; /* of one rank, or none */
    uint32_t n_deltas;
    const double *scale;     /* [n_ops] of recorded durations; NULL = 1 */
    const double *price;     /* [n_ops] ns that stand for them; < 0 or NULL = none */
    double copy_scale[2];    /* factors of copies to and from the host, and of other copies; 0 = 1 */
    const uint32_t *step_at; /* [n_steps] records at which a step ends */
    uint32_t n_steps;
    bool folded; /* false: one instruction for each record; `record_of` maps back */
};

struct maq_replay_program {
    uint32_t n_ins, n_registers, n_channels, n_streams, n_comms, main_stream, n_rows;
    const struct maq_ins *ins;
    const uint32_t *record_of; /* [n_ins] */
    const struct maq_channel_of *channel;
    uint64_t n_records;
    uint32_t most_in_group; /* collectives of one communicator in a group, at most */
};

/* Distinct (collective or message, bytes) whose prices are asked for. */
struct maq_price_row {
    uint32_t coll; /* enum maq_rec_coll; UINT32_MAX = a message */
    uint64_t bytes;
};
struct maq_price_rows {
    struct maq_arena *arena;
    uint32_t n, room;
    struct maq_price_row *row;
};

/* Compiles a program in `arena`. Its distinct communications are added to `rows` (NULL: recorded durations are kept). */
enum maq_status maq_replay_program_make(struct maq_replay_program *out, const struct maq_replay_program_of *of,
                                        struct maq_price_rows *rows, struct maq_arena *arena);

#endif
