/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - an engine while it serves: its schedulers (whichever, scheduler.h), what is under way, the clock, what was counted.
 *
 * It has a scheduler, a KV cache and a batch for each rank of attention data parallelism, without it one. All ranks launch an iteration
 * together and wait for each other in it; who has nothing to do goes along.
 *
 * Up to `most_in_flight` iterations are under way at once: one, or one more where the next is prepared while one runs, or one for each
 * stage of a pipeline. An iteration starts on a stage when its host is ready, when it has left the stage before, and when the one
 * before it has left this stage. Its tokens are known when it has left the last, and an iteration that goes on with them starts then.
 *
 *   send() --> [ inbox: on the way to the scheduler ] --step()--> [ a rank's scheduler ] --> tokens for clients
 *
 * An engine of a pool (`role`) does a part of a request, and does not know others: what they have to know stands in its notes, which whoever
 * steps it takes after each step, and what it has to know of keys and values on their way comes as notices. pool.c
 */
#ifndef MAQ_SERVE_ENGINE_ENGINE_H
#define MAQ_SERVE_ENGINE_ENGINE_H

#include "serve/engine/adapters.h"
#include "serve/engine/attention_dp_balance.h"
#include "serve/engine/batch.h"
#include "serve/engine/clients.h"
#include "serve/engine/compiled_lengths.h"
#include "serve/engine/host_copies.h"
#include "serve/engine/host_swaps.h"
#include "serve/engine/kv_tier_transfers.h"

/* What the engine knows of the request in a slot. */
struct maq_engine_slot {
    uint32_t request;
    bool seen, sampled;
    bool here;            /* what this engine does of it has not ended */
    double last_s;        /* its last token */
    double known_s;       /* when the token that its last iteration samples is known, which the next one begins with */
    int64_t tokens;       /* that it has had */
    double waits_since_s; /* for keys and values from a tier; < 0: it does not, and did not */
    int64_t loaded[MAQ_TIER_COUNT]; /* tokens of its last load, by where they came from */
};

/* One that decides for itself which requests it computes. */
struct maq_engine_rank {
    struct maq_scheduler *sched;
    struct maq_iteration *it; /* [most_in_flight], a ring: those under way, the oldest is `first` of the engine */
    struct maq_engine_slot *slots;
    uint32_t slots_size;
    struct maq_batch_writer batch;
    struct maq_rank_tiers tiers;
    struct maq_rank_copies copies;
    struct maq_rank_swaps swaps;
    struct maq_rank_adapters adapters;
    struct maq_compiled_lengths compiled;
    struct maq_steady_decodes steady_decodes; /* room for fast_forward.c */
    int32_t *verdicts; /* [verdicts_size] tokens that come out for each of an iteration, drafts accepted */
    uint32_t verdicts_size;
};

/* A request on its way to the scheduler. */
struct maq_engine_arrival {
    uint32_t request;
    double enters_s;
};

/* What an engine of a pool has done. */
enum maq_note_kind {
    MAQ_NOTE_RESERVED, /* decode has room for a request, of which it found `tokens` in its cache */
    MAQ_NOTE_LAST,     /* prefill has launched the last iteration of a prompt, from from_s to at_s */
    MAQ_NOTE_CHUNK,    /* prefill has computed `tokens` of a prompt */
    MAQ_NOTE_COMPUTED  /* and its end; what it holds is not given back */
};
struct maq_engine_note {
    uint8_t kind; /* enum maq_note_kind */
    uint32_t request, rank, slot;
    int64_t tokens;
    double from_s, at_s;
};

/* What an engine of a pool is told: of a request in a slot, at a time, in their order. */
struct maq_engine_notice {
    double at_s;
    uint32_t rank, slot;
};

struct maq_serve_engine {
    struct maq_deployment *d;
    struct maq_clients *clients;
    struct maq_engine_rank *ranks;
    uint32_t n_ranks, next_rank;
    struct maq_pass_batch *batches; /* [n_ranks], of the iteration that is launched */
    struct maq_draft_batch *drafts; /* [n_ranks], behind it */
    double *ends_s;                 /* [most_in_flight], a ring */
    uint32_t first, in_flight, most_in_flight;
    double now_s, *stage_free_s;
    double *stage_start_s;                  /* of the iteration that is launched */
    double known_s;                         /* it begins with tokens that are not known before */
    struct maq_attention_dp_waits dp_waits; /* of ranks of attention for each other */
    int64_t recv_skips;                     /* iterations that are launched before new requests are received again */
    bool asked;                             /* the schedulers had nothing to launch, and nothing has happened since */
    bool failed;                            /* out of memory */
    struct maq_engine_arrival *inbox;
    uint32_t inbox_first, inbox_end, inbox_size;
    double looped_s, entered_s;      /* the API server's loop is done with the last of them; it enters */
    uint8_t role;                    /* enum maq_role */
    bool first_known;                /* decode gets the first token of a request with its keys and values */
    const struct maq_handed *handed; /* [requests], of a pool */
    struct maq_engine_note *notes;
    uint32_t n_notes, notes_size;
    struct maq_engine_notice *notices;
    uint32_t notices_first, notices_end, notices_size;
    double respond_s, stream_s;
    struct maq_tier_ways *ways; /* that it shares with others, or has alone; NULL: there are none */
    uint32_t first_device, drive_port, network_port; /* where it stands, and its ports there */
    double hold_s;                                   /* the next iteration does not start before */
    struct maq_layer_load load;                      /* of the next iteration */
    double encode_s;                                 /* of the next iteration: images in front of it */
    struct maq_pass_chunk *image_chunks;             /* [n_images] that pass the tower together */
    uint32_t n_images, image_chunks_size;
    struct maq_encoded encoded;
    bool compiles;                         /* the next iteration waits for a kernel of its length: compiled_lengths.h */
    double adapter_read_s, adapter_copy_s; /* that the next iteration waits for adapters: its host; its stages */
    /* counted */
    struct maq_tiers_seen tiers_seen;
    struct maq_adapters_seen adapters_seen;
    struct maq_stage_times times; /* of all stages; MAQ_STAGE_ALL of the first */
    double kv_area_s, kv_since_s, kv_peak;
    uint64_t iterations, preemptions, batch_requests, batch_tokens;
    struct maq_speculated speculated;
    uint32_t replica;     /* which of a fleet's */
    double weight;        /* of it for a router */
    bool stopped;         /* it has failed: requests may be sent to it, and nothing happens */
    uint32_t outstanding; /* requests that were sent and have not ended */
    int64_t outstanding_tokens;
};

/* ---- run.c ---- */

/* To be ended even on failure. */
enum maq_status maq_engine_init(struct maq_serve_engine *e, struct maq_deployment *d, struct maq_clients *clients,
                                enum maq_role role);
void maq_engine_fini(struct maq_serve_engine *e);
/* As it was at the beginning, but for its place in the fleet and what was counted; at at_s. Requests that it had are forgotten. */
enum maq_status maq_engine_restart(struct maq_serve_engine *e, double at_s);
/* Out of memory: what it did is not to be relied on. */
bool maq_engine_failed(const struct maq_serve_engine *e);
/* A client has sent a request (maq_clients_send()), which will be with the scheduler when host and queue have let it. */
void maq_engine_send(struct maq_serve_engine *e, uint32_t request);
/* The same, sent to it at at_s and with the scheduler not before ready_s. */
void maq_engine_send_at(struct maq_serve_engine *e, uint32_t request, double at_s, double ready_s);
/* When somebody reaches a scheduler next, or a notice does; infinity: nobody is on the way. */
double maq_engine_next_arrival(const struct maq_serve_engine *e);
/* n iterations alike have been launched, of which each has a prompt in it, or none. */
void maq_engine_count_launches(struct maq_serve_engine *e, int64_t n, bool prompts);
/* What happens next, if it does before `until_s`: false: nothing. Not to be called after a failure. */
bool maq_engine_step(struct maq_serve_engine *e, double until_s);
/* When step() would next do something, at the earliest; infinity: not before another request is sent. */
double maq_engine_next_s(const struct maq_serve_engine *e);
/* What `n` engines counted together, in *out. */
void maq_engine_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out);

/* ---- pool.c ---- */

/* Prefill: keys and values of a request have been read. Decode: they are there. */
void maq_engine_notice(struct maq_serve_engine *e, double at_s, uint32_t rank, uint32_t slot);
/* The next notice. */
void maq_engine_take_notice(struct maq_serve_engine *e);
/* Whether it is this engine that decides when the prompt is computed, and its client that sees the first token. */
bool maq_engine_computes(const struct maq_serve_engine *e, uint32_t request);
/* What a scheduler has decided beside an iteration; what has been launched; what has ended. */
void maq_engine_note_decided(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it);
void maq_engine_note_launched(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it);
void maq_engine_note_ended(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it);
/* Whether all that it does next, if nobody comes, is to end requests. */
bool maq_engine_is_quiet(const struct maq_serve_engine *e);
/* Tokens of a request's prompt that its cache has, on the rank that has the most. */
int64_t maq_engine_cached(struct maq_serve_engine *e, uint32_t request);
/* A request has ended, or the part of it that this engine does. */
void maq_engine_ended(struct maq_serve_engine *e, uint32_t request);
/* One that was sent here and has not ended is given up, at at_s: wherever it is on its way. Not where tiers are behind the cache. */
void maq_engine_give_up(struct maq_serve_engine *e, uint32_t request, double at_s);
/* Tells a try of a request from those before it, and from all others. */
uint64_t maq_engine_order(const struct maq_serve_engine *e, uint32_t request);

/* ---- choose_scheduler.c ---- */

/* The scheduler of a deployment's engine; up to `most_in_flight` iterations are under way. To be ended by its operations even on failure, if *out. */
enum maq_status maq_engine_scheduler(struct maq_scheduler **out, const struct maq_deployment *d,
                                     uint32_t most_in_flight, enum maq_role role);
/* The rank that a request goes to. */
uint32_t maq_engine_choose_rank(struct maq_serve_engine *e);

/* ---- iterate.c ---- */

/* The iteration that each rank has decided, in its place behind those under way, is launched; the oldest one under way ends. */
void maq_engine_launch(struct maq_serve_engine *e);
void maq_engine_retire(struct maq_serve_engine *e);
/* What the batches of all ranks are together, whatever keys they see; they are padded. */
struct maq_engine_shape {
    uint32_t requests, prompts;
    int64_t tokens;
    enum maq_launch_mode mode; /* in which they are launched */
    double host_s, transfer_s; /* of the rank that has most */
};
struct maq_engine_shape maq_engine_shape_of(struct maq_serve_engine *e);
/* The times of a launch of `batches`: when it leaves each stage. The end is noted. `load`: for who watches. */
void maq_engine_start(struct maq_serve_engine *e, const struct maq_engine_shape *shape, struct maq_scheduler_load load);
/* When the oldest iteration under way ends; the clock goes there. */
double maq_engine_end(struct maq_serve_engine *e);
/* When clients have the tokens that `requests` have of the iteration that has ended at end_s. */
double maq_engine_written_s(const struct maq_serve_engine *e, double end_s, uint32_t requests);
/* Of all ranks together. */
struct maq_scheduler_load maq_engine_load(const struct maq_serve_engine *e);
void maq_engine_count_kv(struct maq_serve_engine *e, struct maq_scheduler_load load);

/* ---- vision_tower.c ---- */

/* The images that begin in an iteration that is about to be launched; what all engines have encoded, in *out. */
void maq_images_launch(struct maq_serve_engine *e, uint32_t place);
void maq_images_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out);

/* ---- fast_forward.c ---- */

/*
 * While nobody comes and nobody ends, all that changes from one iteration to the next is that each request is a token longer. Does as many
 * such iterations at once as are launched before `until_s`, with the same outcome as one by one; false: none.
 */
bool maq_engine_fast_forward(struct maq_serve_engine *e, double until_s);
/*
 * Before when no request of an engine ends, if none is sent to it. Where all that runs decodes and so many iterations are left to whoever has
 * fewest, it is no less than those, each without its attention. Not before now.
 */
double maq_engine_quiet_until_s(struct maq_serve_engine *e);

#endif
