/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - what a real scheduler decided, from a file: a header with the engine's knobs, the requests, and a line for each step.
 */
#ifndef MAQ_VALIDATE_SERVE_RECORDING_H
#define MAQ_VALIDATE_SERVE_RECORDING_H

#include <jansson.h>

#include "base/arena.h"
#include "serve/sched/sglang.h"
#include "serve/sched/vllm.h"

struct maq_recorded_request {
    const char *id;
    int64_t arrive_step;
    struct maq_scheduler_request request; /* arrival and order: its place among all */
    uint32_t slot;                        /* MAQ_NO_SLOT: not there yet, or gone */
    bool shown;                           /* what was found of it in the cache has been compared */
};

struct maq_recording {
    const char *path, *engine, *version;
    bool is_sglang; /* what is asked of it is in `sglang`, else in `knobs`, `kv` and `groups` */
    struct maq_sglang_knobs sglang;
    struct maq_vllm_knobs knobs;
    struct maq_kv_options kv;
    struct maq_offload_options tiers; /* no chunks in host memory: there are none */
    struct maq_kv_group groups[MAQ_KV_MOST_GROUPS];
    struct maq_recorded_request *requests; /* [n_requests], in the order in which they come */
    uint32_t n_requests;
    json_t *by_id;         /* id -> index, owned */
    struct maq_str *steps; /* [n_steps] lines */
    uint32_t n_steps;
    bool late;            /* the outcome of a step is known one step later */
    bool records_sampled; /* steps say what was sampled; otherwise one token where a request's end is reached */
};

/* Everything but by_id is in the arena. To be ended (maq_recording_fini()) even on failure. */
enum maq_status maq_recording_read(struct maq_recording *out, const char *path, struct maq_arena *arena,
                                   struct maq_diag *diag);
void maq_recording_fini(struct maq_recording *recording);

#endif
