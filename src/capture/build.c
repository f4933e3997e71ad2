/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - merges the traces of ranks: one list of operators, texts and communicators, and classes of ranks by
 * signature.
 *
 * Members recognise a common communicator by its lineage. Its list of members is that of a member that knew it, or is
 * put together from the positions of the members that ran. The first rank of a class gives it its program; of the
 * others only differing durations are kept.
 */
#include "capture/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "capture/codes.h"
#include "capture/intern.h"

struct forming { /* a class */
    struct maq_rank_class c;
    uint32_t *rank, *comm, *position; /* room for all traces */
    struct maq_rank_delta *delta;
    uint32_t delta_room;
};

struct build {
    struct maq_arena *arena, scratch;
    struct maq_diag *diag;
    const struct maq_rank_trace *trace;
    uint32_t n_traces, n_classes, n_comms, comm_room;
    struct maq_intern op, text, lineage;
    struct maq_captured_op *ops; /* [op.n] */
    uint64_t *shape;             /* [op.n] */
    uint32_t op_room;
    struct maq_captured_comm *comm;
    struct forming *form;
};

struct maq_capture *maq_capture_new(void)
{
    struct maq_capture *c = calloc(1, sizeof *c);
    struct maq_arena *arena = malloc(sizeof *arena);
    if (!c || !arena) {
        free(c);
        free(arena);
        return NULL;
    }
    maq_arena_init(arena, 0);
    c->owner = arena;
    return c;
}

void maq_capture_free(struct maq_capture *capture)
{
    if (!capture)
        return;
    if (capture->owner)
        maq_arena_fini(capture->owner);
    free(capture->owner);
    free(capture);
}

/* --- operators and texts --- */

static bool more_ops(struct build *b)
{
    uint32_t room = b->op_room ? 2 * b->op_room : 64;
    struct maq_captured_op *ops = MAQ_ARENA_NEW(b->arena, struct maq_captured_op, room);
    uint64_t *shape = MAQ_ARENA_NEW(&b->scratch, uint64_t, room);
    if (!ops || !shape)
        return false;
    if (b->op_room > 0) {
        memcpy(ops, b->ops, b->op_room * sizeof *ops);
        memcpy(shape, b->shape, b->op_room * sizeof *shape);
    }
    b->ops = ops;
    b->shape = shape;
    b->op_room = room;
    return true;
}

static uint32_t add_op(struct build *b, const struct maq_trace_op *op)
{
    size_t name = strlen(op->name), len = sizeof op->what + name + 1;
    bool added;
    if (b->op.n == b->op_room && !more_ops(b))
        return UINT32_MAX;
    char *key = maq_arena_alloc(&b->scratch, len, 8);
    if (!key)
        return UINT32_MAX;
    memcpy(key, &op->what, sizeof op->what);
    memcpy(key + sizeof op->what, op->name, name + 1);
    uint32_t id = maq_intern_put(&b->op, key, len, &added);
    if (added) {
        const char *kept = b->op.key[id].bytes;
        b->ops[id].what = (const struct maq_rec_op *)(const void *)kept;
        b->ops[id].name = kept + sizeof op->what;
        b->shape[id] = maq_capture_op_shape(&b->ops[id]);
    }
    return id;
}

/* The trace's ids in ids of the job; false when out of memory. */
static bool map_ids(struct build *b, const struct maq_rank_trace *t, uint32_t **op, uint32_t **text)
{
    *op = MAQ_ARENA_NEW(&b->scratch, uint32_t, t->n_ops);
    *text = MAQ_ARENA_NEW(&b->scratch, uint32_t, t->n_texts);
    if (!*op || !*text)
        return false;
    for (uint32_t i = 0; i < t->n_ops; i++)
        if (((*op)[i] = add_op(b, &t->op[i])) == UINT32_MAX)
            return false;
    for (uint32_t i = 0; i < t->n_texts; i++)
        if (((*text)[i] = maq_intern_put(&b->text, t->text[i], strlen(t->text[i]) + 1, NULL)) == UINT32_MAX)
            return false;
    return true;
}

/* --- communicators --- */

static enum maq_status new_comm(struct build *b, uint64_t lineage, uint32_t size)
{
    if (b->n_comms == b->comm_room) {
        uint32_t room = b->comm_room ? 2 * b->comm_room : 64;
        struct maq_captured_comm *grown = MAQ_ARENA_NEW(b->arena, struct maq_captured_comm, room);
        if (!grown)
            return maq_no_memory(b->diag, NULL);
        if (b->n_comms > 0)
            memcpy(grown, b->comm, b->n_comms * sizeof *grown);
        b->comm = grown;
        b->comm_room = room;
    }
    uint32_t *member = MAQ_ARENA_NEW(b->arena, uint32_t, size);
    if (!member)
        return maq_no_memory(b->diag, NULL);
    memset(member, 0xff, size * sizeof *member);
    b->comm[b->n_comms++] = (struct maq_captured_comm){.lineage = lineage, .size = size, .member = member};
    return MAQ_OK;
}

static enum maq_status contradiction(const struct build *b, const struct maq_rank_trace *t, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, b->diag, MAQ_CODE_CAPTURE_RANKS, (struct maq_span){0},
                         "capture all ranks with the same program and the same settings", "%s: rank %u: %s", t->path,
                         t->rank, what);
}

/* The job's communicator for one of a rank's. */
static enum maq_status join_comm(struct build *b, uint32_t *id, const struct maq_rank_trace *t, uint32_t local)
{
    const struct maq_trace_comm *c = &t->comm[local];
    *id = maq_intern_put(&b->lineage, &c->head.lineage, sizeof c->head.lineage, NULL);
    if (*id == UINT32_MAX)
        return maq_no_memory(b->diag, NULL);
    if (*id == b->n_comms)
        MAQ_TRY(new_comm(b, c->head.lineage, c->head.size));
    if (b->comm[*id].size != c->head.size)
        return contradiction(b, t, "a communicator has another size than on another of its members");
    uint32_t *member = (uint32_t *)(uintptr_t)b->comm[*id].member;
    for (uint32_t i = 0; i < c->head.n_members; i++) {
        if (member[i] != UINT32_MAX && member[i] != c->member[i])
            return contradiction(b, t, "a communicator has other members than on another of them");
        member[i] = c->member[i];
    }
    if (member[c->head.rank] != UINT32_MAX && member[c->head.rank] != t->rank)
        return contradiction(b, t, "two ranks have the same place in a communicator");
    member[c->head.rank] = t->rank;
    return MAQ_OK;
}

/* --- classes --- */

static bool add_delta(struct build *b, struct forming *f, struct maq_rank_delta d)
{
    if (f->c.n_deltas == f->delta_room) {
        uint32_t room = f->delta_room ? 2 * f->delta_room : 64;
        struct maq_rank_delta *grown = MAQ_ARENA_NEW(b->arena, struct maq_rank_delta, room);
        if (!grown)
            return false;
        if (f->c.n_deltas > 0)
            memcpy(grown, f->delta, f->c.n_deltas * sizeof *grown);
        f->delta = grown;
        f->delta_room = room;
    }
    f->delta[f->c.n_deltas++] = d;
    return true;
}

static enum maq_status join_class(struct build *b, struct forming *f, const struct maq_rank_trace *t,
                                  const struct maq_rec *record)
{
    for (uint32_t i = 0; i < f->c.n_records && f->c.n_ranks > 0; i++) {
        const struct maq_rec *a = &f->c.record[i], *r = &record[i];
        bool timed = r->kind != MAQ_REC_END && r->kind != MAQ_REC_BOOT;
        if ((r->host_ns != a->host_ns || (timed && r->ns != a->ns)) &&
            !add_delta(b, f, (struct maq_rank_delta){t->rank, i, r->host_ns, timed ? r->ns : a->ns}))
            return maq_no_memory(b->diag, NULL);
    }
    uint64_t peak = maq_capture_peak(record, f->c.n_records, &b->scratch);
    f->c.peak_bytes = peak > f->c.peak_bytes ? peak : f->c.peak_bytes;
    for (uint32_t k = 0; k < t->n_comms; k++) {
        MAQ_TRY(join_comm(b, &f->comm[(size_t)f->c.n_ranks * t->n_comms + k], t, k));
        f->position[(size_t)f->c.n_ranks * t->n_comms + k] = t->comm[k].head.rank;
    }
    f->rank[f->c.n_ranks++] = t->rank;
    return MAQ_OK;
}

static enum maq_status new_class(struct build *b, const struct maq_rank_trace *t, const struct maq_rec *record,
                                 uint32_t n_records, uint64_t signature)
{
    struct forming *f = &b->form[b->n_classes];
    *f = (struct forming){
        .c = {.signature = signature, .n_records = n_records, .record = record, .n_comms = t->n_comms, .probed = true}};
    f->rank = MAQ_ARENA_NEW(b->arena, uint32_t, b->n_traces);
    f->comm = MAQ_ARENA_NEW(b->arena, uint32_t, (size_t)b->n_traces * t->n_comms);
    f->position = MAQ_ARENA_NEW(b->arena, uint32_t, (size_t)b->n_traces * t->n_comms);
    f->c.name = maq_arena_printf(b->arena, "class %u", b->n_classes);
    if (!f->rank || !f->comm || !f->position || !f->c.name)
        return maq_no_memory(b->diag, NULL);
    maq_capture_count(&f->c);
    b->n_classes++;
    return join_class(b, f, t, record);
}

static void count_launches(struct build *b, const struct maq_rec *record, uint32_t n, bool first)
{
    for (uint32_t i = 0; first && i < n; i++)
        if (record[i].kind == MAQ_REC_LAUNCH) {
            struct maq_captured_op *op = &b->ops[record[i].id];
            op->launches++;
            op->recorded_ns += ((double)record[i].ns - op->recorded_ns) / (double)op->launches;
        }
}

static enum maq_status add_trace(struct build *b, const struct maq_rank_trace *t)
{
    uint32_t *op, *text, k = 0;
    struct maq_rec *record = MAQ_ARENA_NEW(b->arena, struct maq_rec, t->n_records);
    if (!record || !map_ids(b, t, &op, &text))
        return maq_no_memory(b->diag, NULL);
    uint32_t n = maq_capture_normalise(record, t, op, text);
    if (!maq_capture_rename_events(record, n, &b->scratch))
        return maq_no_memory(b->diag, NULL);
    uint64_t signature = maq_rec_mix(maq_capture_signature(record, n, b->shape), t->n_comms);
    for (uint32_t i = 0; i < t->n_comms; i++)
        signature = maq_rec_mix(signature, t->comm[i].head.size);
    while (k < b->n_classes && (b->form[k].c.signature != signature || b->form[k].c.n_records != n))
        k++;
    count_launches(b, record, n, k == b->n_classes);
    return k < b->n_classes ? join_class(b, &b->form[k], t, record) : new_class(b, t, record, n, signature);
}

/* --- the whole --- */

static enum maq_status check_traces(const struct build *b)
{
    for (uint32_t i = 1; i < b->n_traces; i++) {
        const struct maq_rank_trace *t = &b->trace[i], *first = &b->trace[0];
        if (t->world != first->world)
            return contradiction(b, t, "another number of ranks than in the first trace");
        if (t->program != first->program)
            return contradiction(b, t, "another command line than in the first trace");
        if (t->rank <= t[-1].rank)
            return contradiction(b, t, "this rank is there twice");
    }
    return MAQ_OK;
}

static enum maq_status finish(struct build *b, struct maq_capture *c)
{
    struct maq_rank_class *classes = MAQ_ARENA_NEW(b->arena, struct maq_rank_class, b->n_classes);
    uint32_t *class_of = MAQ_ARENA_NEW(b->arena, uint32_t, b->trace[0].world);
    const char **text = MAQ_ARENA_NEW(b->arena, const char *, b->text.n);
    if (!classes || !class_of || !text)
        return maq_no_memory(b->diag, NULL);
    memset(class_of, 0xff, b->trace[0].world * sizeof *class_of);
    for (uint32_t k = 0; k < b->n_classes; k++) {
        struct forming *f = &b->form[k];
        f->c.rank = f->rank;
        f->c.comm = f->comm;
        f->c.position = f->position;
        f->c.delta = f->delta;
        classes[k] = f->c;
        for (uint32_t i = 0; i < f->c.n_ranks; i++)
            class_of[f->rank[i]] = k;
    }
    for (uint32_t i = 0; i < b->text.n; i++)
        text[i] = b->text.key[i].bytes;
    c->world = b->trace[0].world;
    c->per_node = b->trace[0].per_node;
    c->n_ops = b->op.n;
    c->op = b->ops;
    c->n_texts = b->text.n;
    c->text = text;
    c->n_comms = b->n_comms;
    c->comm = b->comm;
    c->n_classes = b->n_classes;
    c->class_of_ranks = classes;
    c->class_of = class_of;
    return MAQ_OK;
}

static enum maq_status build_all(struct build *b, struct maq_capture *c)
{
    MAQ_TRY(check_traces(b));
    b->form = MAQ_ARENA_NEW(&b->scratch, struct forming, b->n_traces);
    if (!b->form)
        return maq_no_memory(b->diag, NULL);
    for (uint32_t i = 0; i < b->n_traces; i++)
        MAQ_TRY(add_trace(b, &b->trace[i]));
    return finish(b, c);
}

enum maq_status maq_capture_build(struct maq_capture **out, const struct maq_rank_trace *traces, uint32_t n,
                                  struct maq_diag *diag)
{
    MAQ_ASSERT(n > 0);
    struct maq_capture *c = maq_capture_new();
    if (!c)
        return maq_no_memory(diag, NULL);
    struct build b = {.arena = c->owner, .diag = diag, .trace = traces, .n_traces = n};
    maq_arena_init(&b.scratch, 0);
    maq_intern_init(&b.op, b.arena);
    maq_intern_init(&b.text, b.arena);
    maq_intern_init(&b.lineage, &b.scratch);
    enum maq_status status = build_all(&b, c);
    maq_arena_fini(&b.scratch);
    if (status == MAQ_OK)
        *out = c;
    else
        maq_capture_free(c);
    return status;
}

static int by_rank(const void *a, const void *b)
{
    const struct maq_rank_trace *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : strcmp(x->path, y->path);
}

enum maq_status maq_capture_of_ranks(struct maq_capture **out, const char *const *paths, uint32_t n,
                                     struct maq_diag *diag)
{
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    struct maq_rank_trace *traces = MAQ_ARENA_NEW(&arena, struct maq_rank_trace, n);
    enum maq_status status = traces ? MAQ_OK : maq_no_memory(diag, NULL);
    for (uint32_t i = 0; i < n && status == MAQ_OK; i++)
        status = maq_rank_trace_read(&traces[i], paths[i], &arena, diag);
    if (status == MAQ_OK) {
        qsort(traces, n, sizeof *traces, by_rank);
        status = maq_capture_build(out, traces, n, diag);
    }
    maq_arena_fini(&arena);
    return status;
}
