/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_trace.c - reads the trace of a rank into arrays: definitions, records, members of communicators. See
 * rank_trace.h.
 */
#include "capture/trace/rank_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/codes.h"

/* Arrays that grow while the trace is read; then they move into the arena. */
struct growing {
    void *at;
    size_t n, room, size;
};

static void *append(struct growing *g)
{
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 64;
        void *grown = realloc(g->at, room * g->size);
        if (!grown)
            return NULL;
        g->at = grown;
        g->room = room;
    }
    return memset((char *)g->at + g->size * g->n++, 0, g->size);
}

/* NULL when out of memory. */
static void *settle(struct growing *g, struct maq_arena *arena)
{
    void *out = maq_arena_array(arena, g->n, g->size, 16);
    if (out && g->n > 0)
        memcpy(out, g->at, g->n * g->size);
    return out;
}

struct loading {
    struct growing op, text, comm, record;
    struct maq_arena *arena;
};

static bool keep(struct loading *l, const struct maq_rec *rec, const unsigned char *payload)
{
    if (rec->kind == MAQ_REC_DEF_OP) {
        struct maq_trace_op *op = append(&l->op);
        if (!op)
            return false;
        memcpy(&op->what, payload, sizeof op->what);
        op->name =
            maq_arena_strdup(l->arena, (struct maq_str){(const char *)payload + sizeof op->what, op->what.name_bytes});
        return op->name != NULL;
    }
    if (rec->kind == MAQ_REC_DEF_TEXT) {
        const char **text = append(&l->text);
        return text && (*text = maq_arena_strdup(l->arena, (struct maq_str){(const char *)payload, rec->bytes}));
    }
    if (rec->kind == MAQ_REC_DEF_COMM) {
        struct maq_trace_comm *comm = append(&l->comm);
        if (!comm)
            return false;
        memcpy(&comm->head, payload, sizeof comm->head);
        uint32_t *member = MAQ_ARENA_NEW(l->arena, uint32_t, comm->head.n_members);
        if (member && comm->head.n_members > 0)
            memcpy(member, payload + sizeof comm->head, 4 * (size_t)comm->head.n_members);
        comm->member = member;
        return member != NULL;
    }
    struct maq_rec *kept = append(&l->record);
    if (kept)
        *kept = *rec;
    return kept != NULL;
}

static enum maq_status load(struct loading *l, struct maq_trace_reader *r, struct maq_diag *diag)
{
    for (;;) {
        struct maq_rec rec;
        bool more;
        MAQ_TRY(maq_trace_next(r, &more, &rec, NULL, diag));
        if (!more)
            return MAQ_OK;
        if (!keep(l, &rec, r->payload))
            return maq_no_memory(diag, NULL);
    }
}

enum maq_status maq_rank_trace_read(struct maq_rank_trace *out, const char *path, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    struct maq_trace_reader r;
    struct loading l = {.op = {.size = sizeof(struct maq_trace_op)},
                        .text = {.size = sizeof(char *)},
                        .comm = {.size = sizeof(struct maq_trace_comm)},
                        .record = {.size = sizeof(struct maq_rec)},
                        .arena = arena};
    MAQ_TRY(maq_trace_open_rank(&r, path, diag));
    enum maq_status status = load(&l, &r, diag);
    struct maq_rank_trace t = {.path = maq_arena_strdup(arena, (struct maq_str){path, strlen(path)}),
                               .world = r.head.world,
                               .rank = r.head.rank,
                               .per_node = r.head.per_node,
                               .program = r.head.program,
                               .n_ops = (uint32_t)l.op.n,
                               .n_texts = (uint32_t)l.text.n,
                               .n_comms = (uint32_t)l.comm.n,
                               .n_records = (uint32_t)l.record.n};
    t.op = settle(&l.op, arena);
    t.text = settle(&l.text, arena);
    t.comm = settle(&l.comm, arena);
    t.record = settle(&l.record, arena);
    if (status == MAQ_OK && (!t.path || !t.op || !t.text || !t.comm || !t.record))
        status = maq_no_memory(diag, NULL);
    if (status == MAQ_OK && l.record.n >= UINT32_MAX)
        status = maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CAPTURE_LIMIT, (struct maq_span){0}, NULL,
                               "%s: more than four billion records", path);
    free(l.op.at);
    free(l.text.at);
    free(l.comm.at);
    free(l.record.at);
    maq_trace_close_rank(&r);
    if (status == MAQ_OK)
        *out = t;
    return status;
}
