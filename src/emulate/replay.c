/*
 * replay.c - replays a captured job: see maquette/replay.h and replay_engine.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "cluster/cluster_load.h"
#include "emulate/codes.h"
#include "emulate/replay_box.h"

#define FIRST_DEPTH 8u
#define LAST_DEPTH 8192u

/* Until all have ended, or nobody can go on. */
static void play(struct maq_engine *e)
{
    do
        maq_engine_run(e);
    while (!e->out_of_memory && maq_engine_look_ahead(e));
}

/* One try; *again: rings were too short for how far ranks run ahead of each other. */
static enum maq_status attempt(struct maq_replay **out, const struct maq_capture *capture,
                               const struct maq_replay_opts *opts, uint32_t depth, bool *again, struct maq_diag *diag)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct maq_engine e = {.capture = capture, .opts = opts, .arena = &arena, .diag = diag, .world = capture->world};
    struct maq_setup setup = {0};
    enum maq_status status = MAQ_OK;
    e.rank = MAQ_ARENA_NEW(&arena, struct maq_rank_state, e.world);
    if (!e.rank)
        status = maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "out of memory");
    if (status == MAQ_OK)
        status = maq_engine_open(&e, &setup, depth);
    if (status == MAQ_OK) {
        play(&e);
        *again = e.depth_was_short && e.n_ended < e.n_ranks && depth < LAST_DEPTH;
        if (!*again)
            status = maq_replay_box_of(out, &e, &setup);
    }
    maq_kernel_times_free(setup.kernels);
    free(e.channel);
    maq_arena_fini(&arena);
    return status;
}

static enum maq_status replay_on(struct maq_replay **out, const struct maq_capture *capture,
                                 const struct maq_replay_opts *opts, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    bool again = true;
    for (uint32_t depth = FIRST_DEPTH; again && status == MAQ_OK; depth *= 8) {
        again = false;
        status = attempt(out, capture, opts, depth, &again, diag);
    }
    return status;
}

/* A cluster from text. */
static enum maq_status load_cluster(struct maq_cluster *out, const char *text, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    size_t n = strlen(text);
    struct maq_node node = {
        .kind = MAQ_NODE_SCALAR, .origin = MAQ_ORIGIN_FLAG, .text = {text, n}, .used = true, .at = {0, 0, (uint32_t)n}};
    node.at.file = maq_diag_add_source(diag, "--cluster", text, n);
    return maq_cluster_load(out, &node, arena, diag);
}

enum maq_status maq_capture_replay(struct maq_replay **out, const struct maq_capture *capture,
                                   const struct maq_replay_opts *opts, struct maq_diag *diag)
{
    struct maq_replay_opts own = MAQ_REPLAY_OPTS_INIT;
    struct maq_cluster cluster;
    struct maq_arena arena;
    enum maq_status status = MAQ_OK;
    if (opts)
        own = *opts;
    maq_arena_init(&arena, 0);
    if (own.on && !own.cluster) {
        status = load_cluster(&cluster, own.on, &arena, diag);
        own.cluster = &cluster;
    }
    if (status == MAQ_OK)
        status = replay_on(out, capture, &own, diag);
    maq_arena_fini(&arena);
    return status;
}
