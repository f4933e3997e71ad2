/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - an engine while it serves: the scheduler (whichever, scheduler.h), what is under way, the clock, what was counted.
 *
 * Up to `most_in_flight` iterations are under way at once: one, or one more where the next is prepared while one runs, or one for each
 * stage of a pipeline. An iteration starts on a stage when its host is ready, when it has left the stage before, and when the one
 * before it has left this stage. Its tokens are known when it has left the last.
 */
#ifndef MAQ_SERVE_ENGINE_ENGINE_H
#define MAQ_SERVE_ENGINE_ENGINE_H

#include "serve/engine/batch.h"
#include "serve/engine/latency.h"

/* What the engine knows of the request in a slot. */
struct maq_engine_slot {
    uint32_t request;
    bool seen, sampled;
    double last_s; /* its last token */
};

struct maq_serve_engine {
    struct maq_deployment *d;
    struct maq_scheduler *sched;
    const struct maq_requests *requests;
    struct maq_serve_result *out;
    struct maq_iteration *it; /* [most_in_flight], a ring: those under way, the oldest is `first` */
    double *ends_s;           /* [most_in_flight] */
    uint32_t first, in_flight, most_in_flight;
    double now_s, *stage_free_s;
    double *stage_start_s; /* of the iteration that is launched */
    uint32_t next, sent;   /* request that enters the scheduler next; that a client sends next */
    double entered_s;      /* the last one that was sent reaches the scheduler */
    struct maq_engine_slot *slots;
    uint32_t slots_size;
    struct maq_batch_writer batch;
    struct maq_latency itl, ttft, tpot, e2el, queue;
    double kv_area_s, kv_since_s, first_arrival_s, respond_s;
    uint64_t batch_requests, batch_tokens, cached;
};

/* ---- run.c ---- */

/* A client sends the next request: when it will reach the scheduler is known then. */
void maq_engine_send(struct maq_serve_engine *e, double at_s);
/* When somebody reaches the scheduler next; infinity: nobody that is known of. */
double maq_engine_next_arrival(struct maq_serve_engine *e);

/* ---- choose_scheduler.c ---- */

/* The scheduler of a deployment's engine; up to `most_in_flight` iterations are under way. To be ended by its operations even on failure, if *out. */
enum maq_status maq_engine_scheduler(struct maq_scheduler **out, const struct maq_deployment *d,
                                     uint32_t most_in_flight);

/* ---- iterate.c ---- */

/* An iteration that was decided is launched; the oldest one under way ends. */
void maq_engine_launch(struct maq_serve_engine *e, struct maq_iteration *it);
void maq_engine_retire(struct maq_serve_engine *e);
/* The times of a launch: when a batch leaves each stage. The end is noted. `load`: for who watches. */
void maq_engine_start(struct maq_serve_engine *e, const struct maq_pass_batch *batch, uint32_t requests,
                      struct maq_scheduler_load load);
/* When the oldest iteration under way ends; the clock goes there. */
double maq_engine_end(struct maq_serve_engine *e);
void maq_engine_count_kv(struct maq_serve_engine *e, struct maq_scheduler_load load);

/* ---- fast_forward.c ---- */

/*
 * While nobody comes and nobody ends, all that changes from one iteration to the next is that each request is a token longer. Does as many
 * such iterations at once as there are, with the same outcome as one by one; false: none.
 */
bool maq_engine_fast_forward(struct maq_serve_engine *e);

#endif
