/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - the time line of a rank: timeline.c finds its dependencies and waits, records.c writes it as records.
 */
#ifndef MAQ_CAPTURE_IMPORT_KINETO_TIMELINE_H
#define MAQ_CAPTURE_IMPORT_KINETO_TIMELINE_H

#include "capture/import/kineto/kineto.h"

#define MAQ_KINETO_GAP_NS 10000 /* a few times what launching a kernel behind another takes */
/* The latest that a kernel starts behind one of another stream that it waits for: 1 to 3 us on NVIDIA's GPUs; on an MI300X 9 to 19 us, in the
 * trace of a ResNet that AMD publishes with TraceLens (tests/traces/mi300/resnet_act_checkpoint.json.gz, 16 such waits). */
#define MAQ_KINETO_WAIT_NS 25000

enum maq_kineto_step_kind {
    MAQ_STEP_LAUNCH,
    MAQ_STEP_SYNC,
    MAQ_STEP_WAIT,
    MAQ_STEP_RECORD,
    MAQ_STEP_PUSH,
    MAQ_STEP_POP,
    MAQ_STEP_MARK
};

/* One thing that the host did, in order. */
struct maq_kineto_step {
    uint8_t kind; /* enum maq_kineto_step_kind */
    uint8_t device_wide;
    uint8_t waits;      /* the host waits in this call */
    uint8_t recorded;   /* an event is recorded after it */
    uint8_t unlaunched; /* device work whose launch is not in the trace: launches.c says where it stands */
    int64_t at, end;    /* of the call */
    int64_t tie;        /* start on the device */
    int64_t t;          /* T */
    uint32_t event;     /* of the trace */
    uint32_t until;     /* step after which the event is recorded that is waited for; NONE */
    uint32_t number;    /* of the event that is recorded after it, once that is written */
    int64_t stream;     /* -1 = none */
    uint32_t seq;       /* position in the trace: the last tie */
};

/* Device work whose launch is not in the trace. */
struct maq_kineto_unlaunched {
    uint32_t n, of;     /* of so many events of the device */
    uint32_t in_window; /* of n, those behind launched work of their stream: not in flight when the recording began */
    int64_t ns, of_ns;  /* their time, of that of all */
};

struct maq_kineto_timeline {
    struct maq_import_job *job;
    struct maq_import_rank *rank;
    struct maq_kineto *k;
    struct maq_arena scratch;
    uint32_t n, size;
    struct maq_kineto_step *step, spare; /* spare: written to when there is no memory for another */
    struct maq_intern_map call;          /* correlation -> event + 1 */
    struct maq_intern_map streams;       /* stream -> ordinal + 1 */
    uint32_t *on;                        /* [n] launches: the one before on its stream; NONE */
    uint32_t *above;                     /* [n_events] of calls: the operator of the host around it; NONE */
    bool *backward;                      /* [n_events] of calls: inside the autograd engine */
    bool says_waits;                     /* the trace has cuda_sync events */
    struct maq_kineto_unlaunched unlaunched;
    bool failed;
};

/* Adds steps, times and waits; false when out of memory. Memory: scratch, step, and the maps. */
bool maq_kineto_steps(struct maq_kineto_timeline *t);
void maq_kineto_timeline_fini(struct maq_kineto_timeline *t);
/* Moments of the launches in the host's order, of those too that the trace does not have. launches.c */
bool maq_kineto_place_launches(struct maq_kineto_timeline *t);
/* Says how much work had no launch. launches.c */
void maq_kineto_tell_unlaunched(const struct maq_kineto_timeline *t);
/* Ordinal of a stream, in order of first use. */
uint32_t maq_kineto_stream(struct maq_kineto_timeline *t, int64_t stream);

#endif
