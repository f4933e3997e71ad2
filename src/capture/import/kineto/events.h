/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - shared state of the JSON stream (json.c) and the events (events.c): the position of the reader, and the
 * event being read.
 */
#ifndef MAQ_CAPTURE_IMPORT_KINETO_EVENTS_H
#define MAQ_CAPTURE_IMPORT_KINETO_EVENTS_H

#include "base/mended.h"
#include "capture/import/kineto/kineto.h"

#define MAQ_KINETO_DEPTH 64

enum maq_kineto_place {
    MAQ_PLACE_START, /* before anything */
    MAQ_PLACE_TOP,   /* in the outer object */
    MAQ_PLACE_EVENTS,
    MAQ_PLACE_EVENT,
    MAQ_PLACE_ARGS,
    MAQ_PLACE_GRID,
    MAQ_PLACE_BLOCK,
    MAQ_PLACE_SHAPES, /* "Input Dims": a list of lists */
    MAQ_PLACE_SHAPE,
    MAQ_PLACE_TYPES,
    MAQ_PLACE_JOB, /* distributedInfo */
    MAQ_PLACE_GROUPS,
    MAQ_PLACE_GROUP,
    MAQ_PLACE_GROUP_RANKS,
    MAQ_PLACE_DEVICES,
    MAQ_PLACE_DEVICE,
    MAQ_PLACE_ELSEWHERE
};

/* Keys that are read, each in its place. */
#define MAQ_KINETO_KEY_LIST(X)                                                                                         \
    X(TOP, EVENTS, "traceEvents")                                                                                      \
    X(TOP, JOB, "distributedInfo")                                                                                     \
    X(TOP, DEVICES, "deviceProperties")                                                                                \
    X(EVENT, PH, "ph")                                                                                                 \
    X(EVENT, CAT, "cat")                                                                                               \
    X(EVENT, NAME, "name")                                                                                             \
    X(EVENT, TID, "tid")                                                                                               \
    X(EVENT, TS, "ts")                                                                                                 \
    X(EVENT, DUR, "dur")                                                                                               \
    X(EVENT, ARGS, "args")                                                                                             \
    X(ARGS, CORRELATION, "correlation")                                                                                \
    X(ARGS, STREAM, "stream")                                                                                          \
    X(ARGS, BYTES, "bytes")                                                                                            \
    X(ARGS, GRID, "grid")                                                                                              \
    X(ARGS, BLOCK, "block")                                                                                            \
    X(ARGS, SHARED, "shared memory")                                                                                   \
    X(ARGS, SHAPES, "Input Dims")                                                                                      \
    X(ARGS, TYPES, "Input type")                                                                                       \
    X(ARGS, COLL, "Collective name")                                                                                   \
    X(ARGS, COLL_TYPE, "dtype")                                                                                        \
    X(ARGS, COLL_IN, "In msg nelems")                                                                                  \
    X(ARGS, COLL_OUT, "Out msg nelems")                                                                                \
    X(ARGS, COLL_SIZE, "Group size")                                                                                   \
    X(ARGS, COLL_GROUP, "Process Group Name")                                                                          \
    X(ARGS, COLL_DESC, "Process Group Description")                                                                    \
    X(ARGS, COLL_RANKS, "Process Group Ranks")                                                                         \
    X(ARGS, COLL_SRC, "Src Rank")                                                                                      \
    X(ARGS, COLL_DST, "Dst Rank")                                                                                      \
    X(ARGS, WAIT_STREAM, "wait_on_stream")                                                                             \
    X(ARGS, WAIT_RECORD, "wait_on_cuda_event_record_corr_id")                                                          \
    X(JOB, RANK, "rank")                                                                                               \
    X(JOB, WORLD, "world_size")                                                                                        \
    X(JOB, GROUPS, "pg_config")                                                                                        \
    X(GROUP, GROUP_NAME, "pg_name")                                                                                    \
    X(GROUP, GROUP_DESC, "pg_desc")                                                                                    \
    X(GROUP, GROUP_RANKS, "ranks")                                                                                     \
    X(DEVICE, DEVICE_NAME, "name")

enum maq_kineto_key {
    MAQ_KEY_NONE,
#define KEY_ENUM(place, id, text) MAQ_KEY_##id,
    MAQ_KINETO_KEY_LIST(KEY_ENUM)
#undef KEY_ENUM
};

/* An event as it is read. */
struct maq_kineto_gathered {
    struct maq_kineto_event event;
    struct maq_kineto_coll coll;
    struct maq_kineto_shape shape;
    uint32_t n_shapes, n_grid, n_block, grid[3], block[3], shared;
    uint64_t bytes;
    int64_t on_stream, record;
    const char *cat, *ph;
    int64_t ts, dur;
    bool has_ts, has_dur, has_shapes, has_coll;
};

struct maq_kineto_reader {
    struct maq_kineto *k;
    struct maq_diag *diag;
    enum maq_kineto_place place[MAQ_KINETO_DEPTH];
    uint32_t depth, skip; /* skip: levels below MAQ_KINETO_DEPTH */
    enum maq_kineto_key key;
    struct maq_kineto_gathered g;
    struct maq_kineto_group group;
    uint32_t *member, n_members, member_size; /* a list of ranks that is being read */
    enum maq_status status;
    uint64_t n_seen; /* events so far, kept or not */
    struct maq_mending mended;
};

/* Mends the events that were read, and says what was mended. mend.c */
enum maq_status maq_kineto_mend(struct maq_kineto_reader *r);

/* A fault ends the reading: a callback then returns the value of maq_kineto_fail(). */
enum maq_status maq_kineto_no_memory(struct maq_diag *diag, const char *path);
int maq_kineto_fail(struct maq_kineto_reader *r, enum maq_status status);

/* A text, held once. A count; `otherwise` for anything else, or none. At least 0 and at most UINT32_MAX. */
const char *maq_kineto_text(struct maq_kineto_reader *r, struct maq_str s);
int64_t maq_kineto_whole(struct maq_str s, int64_t otherwise);
uint32_t maq_kineto_size(int64_t v);

/* The list of ranks that is being read, and a copy of it. */
bool maq_kineto_add_member(struct maq_kineto_reader *r, int64_t rank);
const uint32_t *maq_kineto_keep_members(struct maq_kineto_reader *r);

/* An event: its opening brace, a number or a text of its own or of its arguments, its closing brace. */
void maq_kineto_begin_event(struct maq_kineto_reader *r);
int maq_kineto_event_value(struct maq_kineto_reader *r, struct maq_str s, bool is_text);
int maq_kineto_arg_value(struct maq_kineto_reader *r, struct maq_str s);
int maq_kineto_take_event(struct maq_kineto_reader *r);

#endif
