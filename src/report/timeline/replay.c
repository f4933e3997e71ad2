/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - a replayed job as a trace: see maquette/trace.h.
 *
 * Collectives and messages have what they waited for peers, and their bytes, as arguments.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "maquette/trace.h"
#include "report/timeline/writer.h"

#define STREAMS 64u

struct drawn {
    uint32_t rank, process;
    uint32_t thread[STREAMS + 1]; /* the host's last */
    bool there[STREAMS + 1];
};

struct drawing {
    struct maq_trace_writer *w;
    struct drawn *drawn;
    uint32_t n;
};

static struct drawn *find(struct drawing *d, uint32_t rank)
{
    uint32_t i = 0;
    while (i + 1 < d->n && d->drawn[i].rank != rank)
        i++;
    return &d->drawn[i];
}

static uint32_t thread_of(struct drawing *d, struct drawn *r, uint32_t stream)
{
    uint32_t at = stream < STREAMS ? stream : STREAMS;
    char name[32];
    struct maq_buf text;
    if (r->there[at])
        return r->thread[at];
    maq_buf_init(&text, sizeof name);
    if (at == STREAMS)
        maq_buf_adds(&text, "host waits");
    else
        maq_buf_addf(&text, "stream %u", stream);
    r->thread[at] = maq_trace_thread(d->w, r->process, at + 1, text.ptr ? text.ptr : "", (int32_t)at);
    r->there[at] = true;
    maq_buf_fini(&text);
    return r->thread[at];
}

static void draw(const struct maq_replay_span *span, void *user)
{
    struct drawing *d = user;
    struct drawn *r = find(d, span->rank);
    struct maq_trace_arg args[2] = {MAQ_TRACE_INT("waited_ns", span->waited_ns),
                                    MAQ_TRACE_INT("bytes", (int64_t)(span->bytes & INT64_MAX))};
    bool moves = span->kind[0] == 'c' || span->kind[0] == 'm';
    maq_trace_slice(d->w, thread_of(d, r, span->stream),
                    &(struct maq_trace_slice){.start_ns = span->start_ns,
                                              .dur_ns = span->end_ns - span->start_ns,
                                              .name = span->name,
                                              .category = span->kind,
                                              .args = args,
                                              .n_args = moves ? 2 : 0});
}

static void add_process(struct drawing *d, const struct maq_capture *c, uint32_t rank)
{
    struct maq_buf text;
    uint32_t class = c->class_of[rank];
    maq_buf_init(&text, 1 << 12);
    maq_buf_addf(&text, "rank %u", rank);
    if (class != UINT32_MAX)
        maq_buf_addf(&text, " (%s)", c->class_of_ranks[class].name);
    d->drawn[d->n] = (struct drawn){.rank = rank};
    d->drawn[d->n].process = maq_trace_process(d->w, rank, text.ptr ? text.ptr : "", (int32_t)d->n);
    d->n++;
    maq_buf_fini(&text);
}

static enum maq_status write_replay(struct drawing *d, struct maq_arena *arena, struct maq_replay **out,
                                    const struct maq_capture *capture, const struct maq_replay_opts *opts,
                                    const uint32_t *ranks, uint32_t n, struct maq_diag *diag)
{
    struct maq_replay_opts own = *opts;
    uint32_t *watch = MAQ_ARENA_NEW(arena, uint32_t, n);
    d->drawn = MAQ_ARENA_NEW(arena, struct drawn, n);
    if (!watch || !d->drawn)
        return maq_no_memory(diag, NULL);
    for (uint32_t i = 0; i < n; i++) {
        watch[i] = ranks ? ranks[i] : capture->class_of_ranks[i].rank[0];
        add_process(d, capture, watch[i]);
    }
    own.watch_rank = watch;
    own.n_watch = n;
    own.watch = draw;
    own.user = d;
    return maq_capture_replay(out, capture, &own, diag);
}

enum maq_status maq_trace_replay(const char *path, struct maq_replay **out, const struct maq_capture *capture,
                                 const struct maq_replay_opts *opts, const uint32_t *ranks, uint32_t n_ranks,
                                 struct maq_diag *diag)
{
    struct drawing d = {0};
    struct maq_arena arena;
    MAQ_TRY(maq_trace_open(&d.w, maq_trace_format_of(path), path, diag));
    maq_arena_init(&arena, 0);
    enum maq_status status =
        write_replay(&d, &arena, out, capture, opts, ranks, ranks ? n_ranks : capture->n_classes, diag);
    enum maq_status closed = maq_trace_close(d.w, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK && closed != MAQ_OK)
        maq_replay_free(*out);
    return status != MAQ_OK ? status : closed;
}
