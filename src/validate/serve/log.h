/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - a recorded run of an engine: a folder <device>/<model>/vllm with meta.json (how the engine was started) and requests.jsonl[.gz]
 * (lengths and times of each request), and beside it, if there is one, config.json with the machine: the rate of the links between its
 * devices and of their memory.
 */
#ifndef MAQ_VALIDATE_SERVE_LOG_H
#define MAQ_VALIDATE_SERVE_LOG_H

#include "base/arena.h"
#include "maquette/serve.h"

struct maq_serve_log_request {
    double arrival_s; /* from the first */
    int64_t prompt, output;
    double ttft_s, e2el_s, first_s, last_s; /* measured; the last two from the first arrival */
};

struct maq_serve_log {
    const char *folder, *model, *device, *version;
    struct maq_serve_options options;
    int32_t tp, dp;
    double link_bps, memory_bps; /* of the machine, from ../config.json; 0 = not said */
    bool ep;
    struct maq_serve_log_request *requests; /* [n], by arrival */
    uint32_t n;
};

/* Everything is in the arena. */
enum maq_status maq_serve_log_read(struct maq_serve_log *out, const char *folder, struct maq_arena *arena,
                                   struct maq_diag *diag);

#endif
