/*
 * import_kineto_read.c - the JSON of a profiler trace, as a stream.
 *
 * The file is an object with a long array `traceEvents` (or that array alone) and a few facts beside it. yajl calls back for every
 * value; a stack of places says where the reader is, and what is not looked at costs no memory. Keys come in any order, so an
 * event is gathered first and judged at its closing brace.
 *
 * Form: PyTorch's Kineto writes events {ph, cat, name, pid, tid, ts, dur, args}; ph "X" has a duration. The arguments used are
 * those of torch 1.13 to 2.9: correlation, stream, bytes, grid, block, "shared memory", "Input Dims", "Input type", what NCCL's
 * kernels are described with ("Collective name", "In msg nelems", ...), and those of cuda_sync events.
 */
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "emulate/import_codes.h"
#include "emulate/import_kineto.h"

#define MAX_DEPTH 64
#define MAX_EVENTS (UINT32_C(1) << 28)
#define MAX_MEMBERS (UINT32_C(1) << 20)
#define MAX_TEXT ((size_t)1 << 16)

static const struct maq_span nowhere;

enum place {
    PLACE_START, /* before anything */
    PLACE_TOP,   /* in the outer object */
    PLACE_EVENTS,
    PLACE_EVENT,
    PLACE_ARGS,
    PLACE_GRID,
    PLACE_BLOCK,
    PLACE_SHAPES, /* "Input Dims": a list of lists */
    PLACE_SHAPE,
    PLACE_TYPES,
    PLACE_JOB, /* distributedInfo */
    PLACE_GROUPS,
    PLACE_GROUP,
    PLACE_GROUP_RANKS,
    PLACE_DEVICES,
    PLACE_DEVICE,
    PLACE_ELSEWHERE
};

/* Keys that mean something, each in its place. */
#define KEY_LIST(X)                                                                                                    \
    X(TOP, EVENTS, "traceEvents")                                                                                      \
    X(TOP, JOB, "distributedInfo")                                                                                     \
    X(TOP, DEVICES, "deviceProperties")                                                                                \
    X(EVENT, PH, "ph")                                                                                                 \
    X(EVENT, CAT, "cat")                                                                                               \
    X(EVENT, NAME, "name")                                                                                             \
    X(EVENT, TID, "tid")                                                                                               \
    X(EVENT, TS, "ts")                                                                                                 \
    X(EVENT, DUR, "dur")                                                                                               \
    X(EVENT, ARGS, "args")                                                                                             \
    X(ARGS, CORRELATION, "correlation")                                                                                \
    X(ARGS, STREAM, "stream")                                                                                          \
    X(ARGS, BYTES, "bytes")                                                                                            \
    X(ARGS, GRID, "grid")                                                                                              \
    X(ARGS, BLOCK, "block")                                                                                            \
    X(ARGS, SHARED, "shared memory")                                                                                   \
    X(ARGS, SHAPES, "Input Dims")                                                                                      \
    X(ARGS, TYPES, "Input type")                                                                                       \
    X(ARGS, COLL, "Collective name")                                                                                   \
    X(ARGS, COLL_TYPE, "dtype")                                                                                        \
    X(ARGS, COLL_IN, "In msg nelems")                                                                                  \
    X(ARGS, COLL_OUT, "Out msg nelems")                                                                                \
    X(ARGS, COLL_SIZE, "Group size")                                                                                   \
    X(ARGS, COLL_GROUP, "Process Group Name")                                                                          \
    X(ARGS, COLL_DESC, "Process Group Description")                                                                    \
    X(ARGS, COLL_RANKS, "Process Group Ranks")                                                                         \
    X(ARGS, COLL_SRC, "Src Rank")                                                                                      \
    X(ARGS, COLL_DST, "Dst Rank")                                                                                      \
    X(ARGS, WAIT_STREAM, "wait_on_stream")                                                                             \
    X(ARGS, WAIT_RECORD, "wait_on_cuda_event_record_corr_id")                                                          \
    X(JOB, RANK, "rank")                                                                                               \
    X(JOB, WORLD, "world_size")                                                                                        \
    X(JOB, GROUPS, "pg_config")                                                                                        \
    X(GROUP, GROUP_NAME, "pg_name")                                                                                    \
    X(GROUP, GROUP_DESC, "pg_desc")                                                                                    \
    X(GROUP, GROUP_RANKS, "ranks")                                                                                     \
    X(DEVICE, DEVICE_NAME, "name")

enum key {
    KEY_NONE,
#define KEY_ENUM(place, id, text) KEY_##id,
    KEY_LIST(KEY_ENUM)
#undef KEY_ENUM
};

/* An event as it is read. */
struct gathered {
    struct maq_kineto_event event;
    struct maq_kineto_coll coll;
    struct maq_kineto_shape shape;
    uint32_t n_shapes, n_grid, n_block, grid[3], block[3], shared;
    uint64_t bytes;
    int64_t on_stream, record;
    const char *cat, *ph;
    int64_t ts, dur;
    bool has_ts, has_dur, has_shapes, has_coll;
};

struct reader {
    struct maq_kineto *k;
    struct maq_diag *diag;
    enum place place[MAX_DEPTH];
    uint32_t depth, skip; /* skip: levels below MAX_DEPTH */
    enum key key;
    struct gathered g;
    struct maq_kineto_group group;
    uint32_t *member, n_members, member_size; /* a list of ranks that is being read */
    enum maq_status status;
};

static enum maq_status no_memory(struct maq_diag *diag, const char *path)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", path);
}

static int fail(struct reader *r, enum maq_status status)
{
    if (r->status == MAQ_OK)
        r->status = status;
    return 0;
}

/* A text, held once. */
static const char *text(struct reader *r, struct maq_str s)
{
    s.len = strnlen(s.ptr, s.len < MAX_TEXT ? s.len : MAX_TEXT);
    uint32_t id = maq_import_intern(&r->k->names, r->k->arena, s.ptr, s.len);
    if (id == UINT32_MAX) {
        fail(r, no_memory(r->diag, r->k->path));
        return "";
    }
    return r->k->names.value[id].bytes;
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
static int64_t whole(struct maq_str s, int64_t otherwise)
{
    int64_t v;
    double d;
    if (maq_str_to_i64(&v, s))
        return v;
    return maq_str_to_double(&d, s) && d > -9e15 && d < 9e15 ? (int64_t)d : otherwise;
}

static uint32_t size_u32(int64_t v)
{
    return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* --- lists of ranks ---------------------------------------------------------------------------------------------------- */

static bool add_member(struct reader *r, int64_t rank)
{
    if (rank < 0 || rank >= MAX_MEMBERS || r->n_members >= MAX_MEMBERS)
        return false;
    if (r->n_members == r->member_size) {
        uint32_t size = r->member_size ? r->member_size * 2 : 64;
        uint32_t *p = maq__realloc(r->member, size * sizeof *p);
        if (!p) {
            fail(r, no_memory(r->diag, r->k->path));
            return false;
        }
        r->member = p;
        r->member_size = size;
    }
    r->member[r->n_members++] = (uint32_t)rank;
    return true;
}

static const uint32_t *keep_members(struct reader *r)
{
    uint32_t *copy = MAQ_ARENA_NEW(r->k->arena, uint32_t, r->n_members);
    if (!copy)
        fail(r, no_memory(r->diag, r->k->path));
    else if (r->n_members > 0)
        memcpy(copy, r->member, r->n_members * sizeof *copy);
    return copy;
}

/* "[0, 1, 2, 3]"; a long one is cut by the profiler ("[0, 1, ..., 7]") and then says nothing. */
static void read_members(struct reader *r, struct maq_str s)
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
        if (!maq_str_to_i64(&rank, maq_str_trim(item)) || !add_member(r, rank)) {
            r->n_members = 0;
            return;
        }
    }
    r->g.coll.n_members = r->n_members;
    r->g.coll.member = r->n_members > 0 ? keep_members(r) : NULL;
}

/* --- an event ---------------------------------------------------------------------------------------------------------- */

static enum maq_kineto_kind kind_of(const struct gathered *g)
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

static struct maq_kineto_event *new_event(struct reader *r)
{
    struct maq_kineto *k = r->k;
    if (k->n_events == k->event_size) {
        uint32_t size = k->event_size ? k->event_size * 2 : 1024;
        struct maq_kineto_event *p = size <= MAX_EVENTS ? maq__realloc(k->event, size * sizeof *p) : NULL;
        if (!p) {
            fail(r, size > MAX_EVENTS
                        ? maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_IMPORT_LIMIT, nowhere, "record fewer steps",
                                        "%s has more than %u events", k->path, MAX_EVENTS)
                        : no_memory(r->diag, k->path));
            return NULL;
        }
        k->event = p;
        k->event_size = size;
    }
    return &k->event[k->n_events++];
}

static void *keep(struct reader *r, const void *value, size_t size)
{
    void *copy = maq_arena_alloc(r->k->arena, size, 8);
    if (!copy)
        fail(r, no_memory(r->diag, r->k->path));
    else
        memcpy(copy, value, size);
    return copy;
}

static bool wanted(const struct gathered *g, enum maq_kineto_kind kind)
{
    if (kind == MAQ_KINETO_OP)
        return g->event.name &&
               (g->has_shapes || strncmp(g->event.name, "autograd::engine::evaluate_function", 35) == 0);
    return kind != MAQ_KINETO_IGNORED;
}

/* The closing brace of an event: what it turned out to be. */
static int take_event(struct reader *r)
{
    struct gathered *g = &r->g;
    struct maq_kineto *k = r->k;
    enum maq_kineto_kind kind = kind_of(g);
    if (!g->ph || strcmp(g->ph, "X") != 0 || !g->has_ts || kind == MAQ_KINETO_IGNORED)
        return 1;
    if (!g->has_dur || g->dur < 0 || g->ts > INT64_MAX / 2 || g->ts < -INT64_MAX / 2 || g->dur > INT64_MAX / 4)
        return fail(r, maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_NUMBER, nowhere, NULL,
                                     "%s: an event '%s' with no duration, or with a negative one", k->path,
                                     g->event.name ? g->event.name : ""));
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

static void begin_event(struct reader *r)
{
    r->g = (struct gathered){.event = {.thread = -1, .stream = -1, .correlation = -1},
                             .on_stream = -1,
                             .record = -1,
                             .coll = {.in = -1, .out = -1, .size = -1, .src = -1, .dst = -1}};
}

/* A number or a text that belongs to a key of an event. */
static int event_value(struct reader *r, struct maq_str s, bool is_text)
{
    struct gathered *g = &r->g;
    int64_t n = is_text ? -1 : whole(s, -1);
    switch ((int)r->key) {
    case KEY_PH:
        g->ph = text(r, s);
        break;
    case KEY_CAT:
        g->cat = text(r, s);
        break;
    case KEY_NAME:
        g->event.name = text(r, s);
        break;
    case KEY_TID: /* a text where the thread is none */
        g->event.thread = is_text ? (int64_t)(maq_rec_hash(s.ptr, s.len, 0) >> 2) : n;
        break;
    case KEY_TS:
    case KEY_DUR: {
        bool ok = maq_kineto_ns(r->key == KEY_TS ? &g->ts : &g->dur, s);
        g->has_ts |= ok && r->key == KEY_TS;
        g->has_dur |= ok && r->key == KEY_DUR;
        break;
    }
    default:
        break;
    }
    return r->status == MAQ_OK;
}

static int arg_value(struct reader *r, struct maq_str s)
{
    struct gathered *g = &r->g;
    int64_t n = whole(s, -1); /* some are written as texts */
    switch ((int)r->key) {
    case KEY_CORRELATION:
        g->event.correlation = n;
        break;
    case KEY_STREAM:
        g->event.stream = n;
        break;
    case KEY_BYTES:
        g->bytes = n < 0 ? 0 : (uint64_t)n;
        break;
    case KEY_SHARED:
        g->shared = size_u32(n);
        break;
    case KEY_WAIT_STREAM:
        g->on_stream = n;
        break;
    case KEY_WAIT_RECORD:
        g->record = n;
        break;
    case KEY_COLL:
        g->coll.name = text(r, s);
        g->has_coll = true;
        break;
    case KEY_COLL_TYPE:
        g->coll.type = text(r, s);
        break;
    case KEY_COLL_GROUP:
        g->coll.group = text(r, s);
        break;
    case KEY_COLL_DESC:
        g->coll.group_desc = text(r, s);
        break;
    case KEY_COLL_RANKS:
        read_members(r, s);
        break;
    case KEY_COLL_IN:
        g->coll.in = n;
        break;
    case KEY_COLL_OUT:
        g->coll.out = n;
        break;
    case KEY_COLL_SIZE:
        g->coll.size = n;
        break;
    case KEY_COLL_SRC:
        g->coll.src = n;
        break;
    case KEY_COLL_DST:
        g->coll.dst = n;
        break;
    default:
        break;
    }
    return r->status == MAQ_OK;
}

/* --- callbacks --------------------------------------------------------------------------------------------------------- */

static enum place place_now(const struct reader *r)
{
    return r->skip > 0 ? PLACE_ELSEWHERE : r->place[r->depth];
}

static int enter(struct reader *r, enum place place)
{
    if (r->depth + 1 == MAX_DEPTH) {
        r->skip++;
        return r->skip < UINT32_MAX / 2;
    }
    r->place[++r->depth] = place;
    return 1;
}

static void leave(struct reader *r)
{
    if (r->skip > 0)
        r->skip--;
    else if (r->depth > 0)
        r->depth--;
}

static int value(struct reader *r, struct maq_str s, bool is_text)
{
    struct gathered *g = &r->g;
    switch (place_now(r)) {
    case PLACE_EVENT:
        return event_value(r, s, is_text);
    case PLACE_ARGS:
        return arg_value(r, s);
    case PLACE_GRID:
        if (g->n_grid < 3)
            g->grid[g->n_grid++] = size_u32(whole(s, 0));
        break;
    case PLACE_BLOCK:
        if (g->n_block < 3)
            g->block[g->n_block++] = size_u32(whole(s, 0));
        break;
    case PLACE_SHAPE:
        if (g->n_shapes < MAQ_KINETO_TENSORS && g->shape.n_dims[g->n_shapes] < MAQ_KINETO_DIMS) {
            int64_t n = whole(s, 0);
            g->shape.dim[g->n_shapes][g->shape.n_dims[g->n_shapes]++] = n > 0 && n < INT64_C(1) << 40 ? n : 0;
        }
        break;
    case PLACE_SHAPES: /* a scalar among the tensors */
        g->n_shapes++;
        break;
    case PLACE_TYPES:
        if (!g->shape.type && s.len > 0 && is_text)
            g->shape.type = text(r, s);
        break;
    case PLACE_JOB:
        if (r->key == KEY_RANK)
            r->k->rank = whole(s, -1);
        if (r->key == KEY_WORLD)
            r->k->world = whole(s, -1);
        break;
    case PLACE_GROUP:
        if (r->key == KEY_GROUP_NAME)
            r->group.name = text(r, s);
        if (r->key == KEY_GROUP_DESC)
            r->group.desc = text(r, s);
        break;
    case PLACE_GROUP_RANKS:
        if (!is_text)
            (void)add_member(r, whole(s, -1));
        break;
    case PLACE_DEVICE:
        if (r->key == KEY_DEVICE_NAME && !r->k->device && is_text)
            r->k->device = text(r, s);
        break;
    case PLACE_START:
    case PLACE_TOP:
    case PLACE_EVENTS:
    case PLACE_GROUPS:
    case PLACE_DEVICES:
    case PLACE_ELSEWHERE:
        break;
    }
    return r->status == MAQ_OK;
}

static int on_number(void *user, const char *s, size_t n)
{
    return value(user, (struct maq_str){s, n}, false);
}

static int on_string(void *user, const unsigned char *s, size_t n)
{
    return value(user, (struct maq_str){(const char *)s, n}, true);
}

static int on_boolean(void *user, int b)
{
    return value(user, b ? MAQ_STR("1") : MAQ_STR("0"), false);
}

static int on_null(void *user)
{
    struct reader *r = user;
    return place_now(r) == PLACE_SHAPES ? value(r, MAQ_STR(""), false) : 1;
}

static int on_key(void *user, const unsigned char *s, size_t n)
{
    static const struct {
        const char *text;
        uint8_t len, place, key;
    } keys[] = {
#define KEY_ROW(place, id, text) {text, sizeof(text) - 1, PLACE_##place, KEY_##id},
        KEY_LIST(KEY_ROW)
#undef KEY_ROW
    };
    struct reader *r = user;
    enum place here = place_now(r);
    r->key = KEY_NONE;
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (keys[i].len == n && keys[i].place == (uint8_t)here && memcmp(keys[i].text, s, n) == 0)
            r->key = (enum key)keys[i].key;
    return 1;
}

static int on_map(void *user)
{
    struct reader *r = user;
    switch (place_now(r)) {
    case PLACE_START:
        return enter(r, PLACE_TOP);
    case PLACE_EVENTS:
        begin_event(r);
        return enter(r, PLACE_EVENT);
    case PLACE_EVENT:
        return enter(r, r->key == KEY_ARGS ? PLACE_ARGS : PLACE_ELSEWHERE);
    case PLACE_TOP:
        return enter(r, r->key == KEY_JOB ? PLACE_JOB : PLACE_ELSEWHERE);
    case PLACE_GROUPS:
        r->group = (struct maq_kineto_group){0};
        return enter(r, PLACE_GROUP);
    case PLACE_DEVICES:
        r->k->n_devices++;
        return enter(r, PLACE_DEVICE);
    case PLACE_ARGS:
    case PLACE_GRID:
    case PLACE_BLOCK:
    case PLACE_SHAPES:
    case PLACE_SHAPE:
    case PLACE_TYPES:
    case PLACE_JOB:
    case PLACE_GROUP:
    case PLACE_GROUP_RANKS:
    case PLACE_DEVICE:
    case PLACE_ELSEWHERE:
        break;
    }
    return enter(r, PLACE_ELSEWHERE);
}

static int on_map_end(void *user)
{
    struct reader *r = user;
    enum place place = place_now(r);
    leave(r);
    if (place == PLACE_EVENT)
        return take_event(r);
    if (place == PLACE_GROUP) {
        struct maq_kineto *k = r->k;
        if (k->n_groups == k->group_size) {
            uint32_t size = k->group_size ? k->group_size * 2 : 16;
            struct maq_kineto_group *p = maq__realloc(k->group, size * sizeof *p);
            if (!p)
                return fail(r, no_memory(r->diag, k->path));
            k->group = p;
            k->group_size = size;
        }
        k->group[k->n_groups++] = r->group;
    }
    return r->status == MAQ_OK;
}

static int on_array(void *user)
{
    struct reader *r = user;
    enum place here = place_now(r), to = PLACE_ELSEWHERE;
    if (here == PLACE_START || (here == PLACE_TOP && r->key == KEY_EVENTS))
        to = PLACE_EVENTS;
    else if (here == PLACE_TOP && r->key == KEY_DEVICES)
        to = PLACE_DEVICES;
    else if (here == PLACE_JOB && r->key == KEY_GROUPS)
        to = PLACE_GROUPS;
    else if (here == PLACE_GROUP && r->key == KEY_GROUP_RANKS) {
        to = PLACE_GROUP_RANKS;
        r->n_members = 0;
    } else if (here == PLACE_ARGS && r->key == KEY_GRID)
        to = PLACE_GRID;
    else if (here == PLACE_ARGS && r->key == KEY_BLOCK)
        to = PLACE_BLOCK;
    else if (here == PLACE_ARGS && r->key == KEY_TYPES)
        to = PLACE_TYPES;
    else if (here == PLACE_ARGS && r->key == KEY_SHAPES) {
        to = PLACE_SHAPES;
        r->g.has_shapes = true;
    } else if (here == PLACE_SHAPES)
        to = PLACE_SHAPE;
    return enter(r, to);
}

static int on_array_end(void *user)
{
    struct reader *r = user;
    enum place place = place_now(r);
    leave(r);
    if (place == PLACE_SHAPE)
        r->g.n_shapes++;
    if (place == PLACE_GROUP_RANKS) {
        r->group.n_members = r->n_members;
        r->group.member = keep_members(r);
    }
    return r->status == MAQ_OK;
}

/* --- a file ------------------------------------------------------------------------------------------------------------ */

static const yajl_callbacks callbacks = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_map_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_array_end};

static void *take(void *user, size_t n)
{
    (void)user;
    return maq__malloc(n);
}

static void *retake(void *user, void *old, size_t n)
{
    (void)user;
    return maq__realloc(old, n);
}

static void give(void *user, void *old)
{
    (void)user;
    free(old);
}

/* One piece of the file, or its end (n = 0). at: bytes before it. */
static enum maq_status feed(struct reader *r, yajl_handle yajl, const unsigned char *bytes, size_t n, uint64_t at)
{
    yajl_status status = n > 0 ? yajl_parse(yajl, bytes, n) : yajl_complete_parse(yajl);
    if (r->status != MAQ_OK || status == yajl_status_ok)
        return r->status;
    if (n == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_READ, nowhere,
                             "was the program ended while it wrote the trace?", "%s ends in the middle", r->k->path);
    unsigned char *why = yajl_get_error(yajl, 0, bytes, n);
    char shown[MAQ_SHOW_SIZE];
    r->status = maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_JSON, nowhere, NULL, "%s: byte %llu: %s",
                              r->k->path, (unsigned long long)(at + yajl_get_bytes_consumed(yajl)),
                              maq_str_show(shown, maq_str_trim(maq_str_of(why ? (char *)why : "not JSON"))));
    if (why)
        yajl_free_error(yajl, why);
    return r->status;
}

static void begin(struct maq_kineto *out, const char *path, struct maq_arena *arena)
{
    *out = (struct maq_kineto){
        .path = path, .arena = arena, .begin = INT64_MAX, .end = INT64_MIN, .rank = -1, .world = -1};
}

static yajl_handle new_parser(struct reader *r)
{
    yajl_alloc_funcs memory = {take, retake, give, NULL};
    yajl_handle yajl = yajl_alloc(&callbacks, &memory, r);
    if (yajl)
        (void)yajl_config(yajl, yajl_dont_validate_strings, 1); /* names are only shown, and cleaned when they are */
    return yajl;
}

enum maq_status maq_kineto_parse(struct maq_kineto *out, const char *path, const void *bytes, size_t n,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct reader r = {.k = out, .diag = diag};
    begin(out, path, arena);
    yajl_handle yajl = new_parser(&r);
    if (!yajl)
        return no_memory(diag, path);
    enum maq_status status = n > 0 ? feed(&r, yajl, bytes, n, 0) : MAQ_OK;
    if (status == MAQ_OK)
        status = feed(&r, yajl, NULL, 0, n);
    yajl_free(yajl);
    free(r.member);
    return status;
}

static enum maq_status read_stream(struct reader *r, yajl_handle yajl, gzFile file, unsigned char *block, size_t size)
{
    for (uint64_t at = 0;;) {
        int n = gzread(file, block, (unsigned)size);
        if (n < 0)
            return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_IMPORT_READ, nowhere, NULL,
                                 "%s: cannot be read, or its compression is damaged", r->k->path);
        if (n == 0)
            return feed(r, yajl, NULL, 0, at);
        MAQ_TRY(feed(r, yajl, block, (size_t)n, at));
        at += (uint64_t)n;
    }
}

enum maq_status maq_kineto_read(struct maq_kineto *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    enum { BLOCK = 1 << 18 };
    struct reader r = {.k = out, .diag = diag};
    begin(out, path, arena);
    gzFile file = gzopen(path, "rb"); /* reads plain files too */
    if (!file)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_IMPORT_READ, nowhere, NULL, "%s: cannot be opened", path);
    unsigned char *block = maq__malloc(BLOCK);
    yajl_handle yajl = new_parser(&r);
    enum maq_status status = block && yajl ? read_stream(&r, yajl, file, block, BLOCK) : no_memory(diag, path);
    if (yajl)
        yajl_free(yajl);
    free(block);
    free(r.member);
    gzclose_r(file);
    return status;
}

void maq_kineto_fini(struct maq_kineto *k)
{
    maq_import_table_fini(&k->names);
    free(k->event);
    free(k->group);
    *k = (struct maq_kineto){0};
}
