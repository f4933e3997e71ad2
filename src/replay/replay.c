/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - maq_capture_replay(): runs the engine, with look-ahead where the worklist is empty, and repeats it with
 * longer rings where ranks run further ahead of each other than these allow. See engine.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "replay/machine.h"
#include "replay/result.h"

#define FIRST_DEPTH 8u
#define LAST_DEPTH 8192u

/* Runs until all ranks have ended, or none can go on. */
static void play(struct maq_engine *e)
{
    do
        maq_engine_run(e);
    while (!e->out_of_memory && maq_engine_look_ahead(e));
}

struct trial {
    uint32_t depth; /* of rings */
    bool folds;
    bool again;
};

/* One attempt. t->again is set where it has to be repeated: with longer rings where ranks run further ahead of each other;
 * without rank symmetry where not all ranks end, so that a deadlock is reported for every rank. */
static enum maq_status attempt(struct maq_replay **out, const struct maq_capture *capture,
                               const struct maq_replay_opts *opts, struct trial *t, struct maq_diag *diag)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct maq_engine e = {.capture = capture, .opts = opts, .arena = &arena, .diag = diag, .world = capture->world};
    struct maq_setup setup = {.folds = t->folds};
    enum maq_status status = MAQ_OK;
    t->again = false;
    e.rank = MAQ_ARENA_NEW(&arena, struct maq_rank_state, e.world);
    if (!e.rank)
        status = maq_no_memory(diag, NULL);
    if (status == MAQ_OK)
        status = maq_engine_open(&e, &setup, t->depth);
    if (status == MAQ_OK) {
        play(&e);
        bool stuck = e.n_ended < e.n_ranks && !e.out_of_memory;
        if (stuck && e.depth_was_short && t->depth < LAST_DEPTH) {
            t->depth *= 8;
            t->again = true;
        } else if (stuck && t->folds) {
            t->folds = false;
            t->again = true;
        } else {
            maq_engine_unfold(&e);
            status = maq_replay_result_of(out, &e, &setup);
        }
    }
    maq_replay_kernels_free(setup.kernels);
    free(e.channel);
    maq_arena_fini(&arena);
    return status;
}

static enum maq_status replay_on(struct maq_replay **out, const struct maq_capture *capture,
                                 const struct maq_replay_opts *opts, struct maq_diag *diag)
{
    struct trial t = {.depth = FIRST_DEPTH, .folds = !opts->every_rank, .again = true};
    enum maq_status status = MAQ_OK;
    while (t.again && status == MAQ_OK)
        status = attempt(out, capture, opts, &t, diag);
    return status;
}

enum maq_status maq_capture_replay(struct maq_replay **out, const struct maq_capture *capture,
                                   const struct maq_replay_opts *opts, struct maq_diag *diag)
{
    struct maq_replay_opts own = MAQ_REPLAY_OPTS_INIT;
    struct maq_machine machine;
    if (opts)
        own = *opts;
    if (own.n_overrides == 0 || own.cluster)
        return replay_on(out, capture, &own, diag);
    enum maq_status status = maq_machine_open(&machine, own.overrides, own.n_overrides, diag);
    own.cluster = &machine.cluster;
    own.costs = &machine.costs;
    if (status == MAQ_OK)
        status = replay_on(out, capture, &own, diag);
    maq_machine_close(&machine);
    return status;
}
