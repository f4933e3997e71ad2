/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - the events of a profiler trace, collected value by value and interpreted at their end.
 *
 * PyTorch's Kineto writes events {ph, cat, name, pid, tid, ts, dur, args}; ph "X" has a duration. The arguments used are those of
 * torch 1.13 to 2.9: correlation, stream, bytes, grid, block, "shared memory", "Input Dims", "Input type", what NCCL's kernels are
 * described with ("Collective name", "In msg nelems", ...), and those of cuda_sync events.
 */
#include "capture/import/kineto/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/import/codes.h"

#define MAX_EVENTS (UINT32_C(1) << 28)
#define MAX_MEMBERS (UINT32_C(1) << 20)
#define MAX_TEXT ((size_t)1 << 16)

static const struct maq_span nowhere;

enum maq_status maq_kineto_no_memory(struct maq_diag *diag, const char *path)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", path);
}

int maq_kineto_fail(struct maq_kineto_reader *r, enum maq_status status)
{
    if (r->status == MAQ_OK)
        r->status = status;
    return 0;
}

/* A text, held once. */
const char *maq_kineto_text(struct maq_kineto_reader *r, struct maq_str s)
{
    s.len = strnlen(s.ptr, s.len < MAX_TEXT ? s.len : MAX_TEXT);
    uint32_t id = maq_intern_put(&r->k->names, s.ptr, s.len, NULL);
    if (id == UINT32_MAX) {
        maq_kineto_fail(r, maq_kineto_no_memory(r->diag, r->k->path));
        return "";
    }
    return r->k->names.key[id].bytes;
}

/* --- numbers --------------------------------------------------------------------------------------------------------- */

bool maq_kineto_ns(int64_t *out, struct maq_str us)
{
    uint64_t ns = 0;
    int decimals = -1;
    bool negative = us.len > 0 && us.ptr[0] == '-';
    for (size_t i = negative; i < us.len; i++) {
        char c = us.ptr[i];
        if (c == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (c < '0' || c > '9') { /* 1.5e6: rare, and then exact enough */
            double d;
            bool ok = maq_str_to_double(&d, us) && d > -9e15 && d < 9e15;
            *out = ok ? (int64_t)(d * 1e3 + (d < 0 ? -0.5 : 0.5)) : 0;
            return ok;
        }
        if (decimals >= 3)
            continue;
        decimals += decimals >= 0;
        if (ns > (INT64_MAX / 2 - 9) / 10)
            return false;
        ns = ns * 10 + (uint64_t)(c - '0');
    }
    for (int i = decimals < 0 ? 0 : decimals; i < 3; i++) {
        if (ns > INT64_MAX / 20)
            return false;
        ns *= 10;
    }
    *out = negative ? -(int64_t)ns : (int64_t)ns;
    return us.len > (size_t)negative;
}

/* A count; anything else, or none, is `otherwise`. */
int64_t maq_kineto_whole(struct maq_str s, int64_t otherwise)
{
    int64_t v;
    double d;
    if (maq_str_to_i64(&v, s))
        return v;
    return maq_str_to_double(&d, s) && d > -9e15 && d < 9e15 ? (int64_t)d : otherwise;
}

uint32_t maq_kineto_size(int64_t v)
{
    return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* --- lists of ranks ---------------------------------------------------------------------------------------------------- */

bool maq_kineto_add_member(struct maq_kineto_reader *r, int64_t rank)
{
    if (rank < 0 || rank >= MAX_MEMBERS || r->n_members >= MAX_MEMBERS)
        return false;
    if (r->n_members == r->member_size) {
        uint32_t size = r->member_size ? r->member_size * 2 : 64;
        uint32_t *p = maq__realloc(r->member, size * sizeof *p);
        if (!p) {
            maq_kineto_fail(r, maq_kineto_no_memory(r->diag, r->k->path));
            return false;
        }
        r->member = p;
        r->member_size = size;
    }
    r->member[r->n_members++] = (uint32_t)rank;
    return true;
}

const uint32_t *maq_kineto_keep_members(struct maq_kineto_reader *r)
{
    uint32_t *copy = MAQ_ARENA_NEW(r->k->arena, uint32_t, r->n_members);
    if (!copy)
        maq_kineto_fail(r, maq_kineto_no_memory(r->diag, r->k->path));
    else if (r->n_members > 0)
        memcpy(copy, r->member, r->n_members * sizeof *copy);
    return copy;
}

/* "[0, 1, 2, 3]"; a long one is cut by the profiler ("[0, 1, ..., 7]") and then says nothing. */
static void read_members(struct maq_kineto_reader *r, struct maq_str s)
{
    struct maq_str item;
    r->n_members = 0;
    s = maq_str_trim(s);
    if (s.len < 2 || s.ptr[0] != '[' || s.ptr[s.len - 1] != ']')
        return;
    s = (struct maq_str){s.ptr + 1, s.len - 2};
    while (s.ptr && s.len > 0) {
        int64_t rank;
        s = maq_str_split(s, ',', &item);
        if (!maq_str_to_i64(&rank, maq_str_trim(item)) || !maq_kineto_add_member(r, rank)) {
            r->n_members = 0;
            return;
        }
    }
    r->g.coll.n_members = r->n_members;
    r->g.coll.member = r->n_members > 0 ? maq_kineto_keep_members(r) : NULL;
}

/* --- an event ---------------------------------------------------------------------------------------------------------- */

static enum maq_kineto_kind kind_of(const struct maq_kineto_gathered *g)
{
    static const struct {
        const char *cat;
        enum maq_kineto_kind kind;
    } known[] = {
        {"kernel", MAQ_KINETO_KERNEL},        {"gpu_memcpy", MAQ_KINETO_MEMCPY},
        {"gpu_memset", MAQ_KINETO_MEMSET},    {"cuda_runtime", MAQ_KINETO_CALL},
        {"cuda_driver", MAQ_KINETO_CALL},     {"cuda_sync", MAQ_KINETO_SYNC},
        {"user_annotation", MAQ_KINETO_SPAN}, {"cpu_op", MAQ_KINETO_OP},
        {"Kernel", MAQ_KINETO_KERNEL},        {"Memcpy", MAQ_KINETO_MEMCPY},
        {"Memset", MAQ_KINETO_MEMSET},        {"Runtime", MAQ_KINETO_CALL}, /* torch before 1.13 */
    };
    for (size_t i = 0; g->cat && i < MAQ_COUNT(known); i++)
        if (strcmp(g->cat, known[i].cat) == 0)
            return known[i].kind;
    return MAQ_KINETO_IGNORED;
}

static struct maq_kineto_event *new_event(struct maq_kineto_reader *r)
{
    struct maq_kineto *k = r->k;
    if (k->n_events == k->event_size) {
        uint32_t size = k->event_size ? k->event_size * 2 : 1024;
        struct maq_kineto_event *p = size <= MAX_EVENTS ? maq__realloc(k->event, size * sizeof *p) : NULL;
        if (!p) {
            maq_kineto_fail(r, size > MAX_EVENTS ? maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_IMPORT_LIMIT, nowhere,
                                                                 "record fewer steps", "%s has more than %u events",
                                                                 k->path, MAX_EVENTS)
                                                 : maq_kineto_no_memory(r->diag, k->path));
            return NULL;
        }
        k->event = p;
        k->event_size = size;
    }
    return &k->event[k->n_events++];
}

static void *keep(struct maq_kineto_reader *r, const void *value, size_t size)
{
    void *copy = maq_arena_alloc(r->k->arena, size, 8);
    if (!copy)
        maq_kineto_fail(r, maq_kineto_no_memory(r->diag, r->k->path));
    else
        memcpy(copy, value, size);
    return copy;
}

static bool wanted(const struct maq_kineto_gathered *g, enum maq_kineto_kind kind)
{
    if (kind == MAQ_KINETO_OP)
        return g->event.name &&
               (g->has_shapes || strncmp(g->event.name, "autograd::engine::evaluate_function", 35) == 0);
    return kind != MAQ_KINETO_IGNORED;
}

/* The times of an event. MAQ_NO: they cannot be, and it is left out. */
static enum maq_status check_times(struct maq_kineto_reader *r)
{
    static const char fault[] = "%s: an event '%s' with no duration, or with a negative one";
    struct maq_kineto_gathered *g = &r->g;
    const char *path = r->k->path, *name = g->event.name ? g->event.name : "";
    if (g->ts > INT64_MAX / 2 || g->ts < -INT64_MAX / 2 || (g->has_dur && g->dur > INT64_MAX / 4)) {
        MAQ_TRY(maq_mend(&r->mended, MAQ_MEND_VALUE, r->n_seen, MAQ_CODE_IMPORT_NUMBER,
                         "%s: an event '%s' with a time that cannot be", path, name));
        return MAQ_NO;
    }
    g->event.untimed = !g->has_dur || g->dur < 0;
    if (g->event.untimed)
        MAQ_TRY(maq_mend(&r->mended, g->has_dur ? MAQ_MEND_NEGATIVE : MAQ_MEND_UNTIMED, r->n_seen,
                         MAQ_CODE_IMPORT_NUMBER, fault, path, name));
    g->dur = g->event.untimed ? 0 : g->dur;
    return MAQ_OK;
}

/* Whether an event is the one before once more. */
static bool repeats(const struct maq_kineto *k, const struct maq_kineto_gathered *g, enum maq_kineto_kind kind)
{
    const struct maq_kineto_event *e = k->n_events > 0 ? &k->event[k->n_events - 1] : NULL;
    return e && e->kind == kind && e->name == g->event.name && e->start == g->ts && e->end == g->ts + g->dur &&
           e->thread == g->event.thread && e->stream == g->event.stream && e->correlation == g->event.correlation &&
           e->correlation >= 0;
}

/* The closing brace of an event: what it turned out to be. */
int maq_kineto_take_event(struct maq_kineto_reader *r)
{
    struct maq_kineto_gathered *g = &r->g;
    struct maq_kineto *k = r->k;
    enum maq_kineto_kind kind = kind_of(g);
    r->n_seen++;
    if (!g->ph || strcmp(g->ph, "X") != 0 || !g->has_ts || kind == MAQ_KINETO_IGNORED)
        return 1;
    enum maq_status status = check_times(r);
    if (status == MAQ_OK && repeats(k, g, kind)) {
        status = maq_mend(&r->mended, MAQ_MEND_REPEATED, r->n_seen, MAQ_CODE_IMPORT_FORM, "%s: an event '%s' once more",
                          k->path, g->event.name);
        status = status == MAQ_OK ? MAQ_NO : status;
    }
    if (status != MAQ_OK)
        return status == MAQ_NO ? 1 : maq_kineto_fail(r, status);
    if (kind != MAQ_KINETO_SPAN && kind != MAQ_KINETO_SYNC) {
        k->begin = g->ts < k->begin ? g->ts : k->begin;
        k->end = g->ts + g->dur > k->end ? g->ts + g->dur : k->end;
    }
    if (!wanted(g, kind))
        return 1;
    struct maq_kineto_event *e = new_event(r);
    if (!e)
        return 0;
    *e = g->event;
    e->kind = (uint8_t)kind;
    e->start = g->ts;
    e->end = g->ts + g->dur;
    e->name = e->name ? e->name : "";
    if (kind == MAQ_KINETO_OP)
        e->u.shape = g->has_shapes ? keep(r, &g->shape, sizeof g->shape) : NULL;
    else if (kind == MAQ_KINETO_SYNC) {
        e->u.sync.on_stream = g->on_stream;
        e->u.sync.record = g->record;
    } else if (kind == MAQ_KINETO_KERNEL) {
        memcpy(e->u.kernel.grid, g->grid, sizeof g->grid);
        memcpy(e->u.kernel.block, g->block, sizeof g->block);
        e->u.kernel.shared = g->shared;
        e->u.kernel.coll = g->has_coll ? keep(r, &g->coll, sizeof g->coll) : NULL;
    } else
        e->u.bytes = g->bytes;
    return r->status == MAQ_OK;
}

void maq_kineto_begin_event(struct maq_kineto_reader *r)
{
    r->g = (struct maq_kineto_gathered){.event = {.thread = -1, .stream = -1, .correlation = -1},
                                        .on_stream = -1,
                                        .record = -1,
                                        .coll = {.in = -1, .out = -1, .size = -1, .src = -1, .dst = -1}};
}

/* A number or a text that belongs to a key of an event. */
int maq_kineto_event_value(struct maq_kineto_reader *r, struct maq_str s, bool is_text)
{
    struct maq_kineto_gathered *g = &r->g;
    int64_t n = is_text ? -1 : maq_kineto_whole(s, -1);
    switch ((int)r->key) {
    case MAQ_KEY_PH:
        g->ph = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_CAT:
        g->cat = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_NAME:
        g->event.name = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_TID: /* a text where the thread is none */
        g->event.thread = is_text ? (int64_t)(maq_rec_hash(s.ptr, s.len, 0) >> 2) : n;
        break;
    case MAQ_KEY_TS:
    case MAQ_KEY_DUR: {
        bool ok = maq_kineto_ns(r->key == MAQ_KEY_TS ? &g->ts : &g->dur, s);
        g->has_ts |= ok && r->key == MAQ_KEY_TS;
        g->has_dur |= ok && r->key == MAQ_KEY_DUR;
        break;
    }
    default:
        break;
    }
    return r->status == MAQ_OK;
}

int maq_kineto_arg_value(struct maq_kineto_reader *r, struct maq_str s)
{
    struct maq_kineto_gathered *g = &r->g;
    int64_t n = maq_kineto_whole(s, -1); /* some are written as texts */
    switch ((int)r->key) {
    case MAQ_KEY_CORRELATION:
        g->event.correlation = n;
        break;
    case MAQ_KEY_STREAM:
        g->event.stream = n;
        break;
    case MAQ_KEY_BYTES:
        g->bytes = n < 0 ? 0 : (uint64_t)n;
        break;
    case MAQ_KEY_SHARED:
        g->shared = maq_kineto_size(n);
        break;
    case MAQ_KEY_WAIT_STREAM:
        g->on_stream = n;
        break;
    case MAQ_KEY_WAIT_RECORD:
        g->record = n;
        break;
    case MAQ_KEY_COLL:
        g->coll.name = maq_kineto_text(r, s);
        g->has_coll = true;
        break;
    case MAQ_KEY_COLL_TYPE:
        g->coll.type = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_COLL_GROUP:
        g->coll.group = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_COLL_DESC:
        g->coll.group_desc = maq_kineto_text(r, s);
        break;
    case MAQ_KEY_COLL_RANKS:
        read_members(r, s);
        break;
    case MAQ_KEY_COLL_IN:
        g->coll.in = n;
        break;
    case MAQ_KEY_COLL_OUT:
        g->coll.out = n;
        break;
    case MAQ_KEY_COLL_SIZE:
        g->coll.size = n;
        break;
    case MAQ_KEY_COLL_SRC:
        g->coll.src = n;
        break;
    case MAQ_KEY_COLL_DST:
        g->coll.dst = n;
        break;
    default:
        break;
    }
    return r->status == MAQ_OK;
}
