/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - Chakra execution traces: bytes -> nodes, and files -> a captured job. See chakra.h for the form.
 *
 * Traces of other writers have fewer attributes. Then a node without duration_ns takes its duration_micros; one without `stream` is
 * on a stream of its kind (kernels, collectives, sends, receives, memory); a communicator without members is of all ranks; a file
 * without a rank has the number before ".et" in its name, or its place among the paths; the world is the number of files.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "capture/import/chakra/read.h"
#include "capture/import/codes.h"
#include "capture/import/readers.h"

#define MAX_MESSAGE (UINT32_C(1) << 26)
#define MAX_NODES (UINT32_C(1) << 27)

static const struct maq_span nowhere;

static enum maq_status no_memory(struct maq_diag *diag, const char *path)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "%s: out of memory", path);
}

/* --- attributes ------------------------------------------------------------------------------------------------------- */

struct attr {
    struct maq_str name, text, doc;
    struct maq_str list; /* of varints, packed */
    int64_t v;
    bool is_int;
};

/* The packed values of a list message. */
static struct maq_str packed(struct maq_str message)
{
    struct maq_pb_field f;
    struct maq_str found = {"", 0};
    while (maq_pb_get(&f, &message))
        if (f.number == 1 && f.type == MAQ_PB_BYTES)
            found = f.bytes;
    return found;
}

static bool read_attr(struct attr *a, struct maq_str s)
{
    struct maq_pb_field f;
    *a = (struct attr){.v = -1, .list = {"", 0}};
    while (maq_pb_get(&f, &s)) {
        if (f.number == MAQ_CHAKRA_ATTR_NAME)
            a->name = f.bytes;
        else if (f.number == 2)
            a->doc = f.bytes;
        else if (f.number == MAQ_CHAKRA_ATTR_STRING)
            a->text = f.bytes;
        else if (f.number == MAQ_CHAKRA_ATTR_INT64_LIST || f.number == MAQ_CHAKRA_ATTR_UINT32_LIST)
            a->list = packed(f.bytes);
        else if (f.type == MAQ_PB_VARINT) {
            a->v = (int64_t)f.v;
            a->is_int = true;
        }
    }
    return s.ptr != NULL;
}

/* Up to n varints of a list. */
static uint32_t read_list(struct maq_str list, int64_t *out, uint32_t n)
{
    uint32_t i = 0;
    uint64_t v;
    while (i < n && list.len > 0 && maq_pb_get_varint(&v, &list))
        out[i++] = (int64_t)v;
    return i;
}

static uint32_t u32(int64_t v)
{
    return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

static void op_attr(struct maq_rec_op *op, const struct attr *a)
{
    int64_t v[6] = {0};
    uint32_t n = read_list(a->list, v, 6);
    if (maq_str_is(a->name, "op_kind") && a->v >= 0 && a->v < MAQ_REC_OP_KIND_COUNT)
        op->kind = (uint16_t)a->v;
    else if (maq_str_is(a->name, "op_d") && n == 6)
        memcpy(op->d, v, sizeof op->d);
    else if (maq_str_is(a->name, "op_type") && n == 3) {
        op->type = v[0] >= 0 && v[0] < MAQ_REC_TYPE_COUNT ? (uint8_t)v[0] : MAQ_REC_TYPE_OTHER;
        op->out = v[1] >= 0 && v[1] < MAQ_REC_TYPE_COUNT ? (uint8_t)v[1] : MAQ_REC_TYPE_OTHER;
        op->flags = u32(v[2]);
    } else if (n == 3 && (maq_str_is(a->name, "op_grid") || maq_str_is(a->name, "op_block")))
        for (int i = 0; i < 3; i++)
            (a->name.ptr[3] == 'g' ? op->grid : op->block)[i] = u32(v[i]);
    else if (maq_str_is(a->name, "op_bytes"))
        op->bytes = (uint64_t)a->v;
    else if (maq_str_is(a->name, "op_shared"))
        op->shared = u32(a->v);
}

static bool node_attr(struct maq_chakra *c, struct maq_chakra_node *v, const struct attr *a)
{
    struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"duration_ns", &v->ns},  {"stream", &v->stream},     {"record", &v->record},
                   {"copy", &v->copy},       {"mark", &v->mark},         {"comm_type", &v->comm_type},
                   {"comm_size", &v->bytes}, {"tensor_size", &v->bytes}, {"root", &v->root},
                   {"comm_src", &v->src},    {"comm_dst", &v->dst}};
    for (size_t i = 0; a->is_int && i < MAQ_COUNT(numbers); i++)
        if (maq_str_is(a->name, numbers[i].name))
            *numbers[i].to = a->v;
    if (maq_str_is(a->name, "is_cpu_op") && a->is_int)
        v->on_host = a->v != 0;
    else if (maq_str_is(a->name, "group_continues"))
        v->group_continues = a->v > 0;
    else if (maq_str_is(a->name, "comm_dtype") && a->v >= 0 && a->v < MAQ_REC_TYPE_COUNT)
        v->dtype = (uint8_t)a->v;
    else if (maq_str_is(a->name, "pg_name")) {
        v->pg = maq_arena_strdup(c->arena, a->text);
        return v->pg != NULL;
    }
    op_attr(&v->op, a);
    return true;
}

/* --- messages ----------------------------------------------------------------------------------------------------------- */

static bool add_dep(struct maq_chakra *c, struct maq_chakra_node *v, bool control, uint64_t id)
{
    if (!maq__grow((void **)&c->dep, &c->dep_size, c->n_deps, sizeof *c->dep))
        return false;
    c->dep[c->n_deps++] = (struct maq_chakra_dep){id, control};
    v->n_deps++;
    return true;
}

/* Dependencies are packed by current writers, and single in old ones. */
static bool add_deps(struct maq_chakra *c, struct maq_chakra_node *v, struct maq_pb_field *f)
{
    bool control = f->number == MAQ_CHAKRA_NODE_CTRL;
    uint64_t id;
    if (f->type == MAQ_PB_VARINT)
        return add_dep(c, v, control, f->v);
    while (f->bytes.len > 0)
        if (!maq_pb_get_varint(&id, &f->bytes) || !add_dep(c, v, control, id))
            return false;
    return true;
}

/* A node that is not kept. */
static enum maq_status leave_out(struct maq_chakra *c, uint16_t code, const char *what)
{
    c->n_deps = c->node[--c->n].dep;
    return maq_mend(&c->mended, MAQ_MEND_VALUE, c->n_seen, code, "%s: node %u %s", c->path, c->n_seen, what);
}

/* What has no duration takes as long as the median of its name. */
static enum maq_status mend(struct maq_chakra *c, struct maq_diag *diag)
{
    double *ns = MAQ_ARENA_NEW(c->arena, double, c->n + 1);
    if (!ns)
        return no_memory(diag, c->path);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < c->n && c->node[i].untimed; k++)
            if (!c->node[k].untimed && strcmp(c->node[k].name, c->node[i].name) == 0)
                ns[n++] = (double)c->node[k].ns;
        c->node[i].ns = n > 0 ? (int64_t)maq_quantile(ns, n, 0.5) : c->node[i].ns;
        c->mended.moved_s += c->node[i].untimed ? (double)c->node[i].ns * 1e-9 : 0;
        c->mended.recorded_s += (double)c->node[i].ns * 1e-9;
    }
    return maq_mending_end(&c->mended, c->n);
}

static enum maq_status take_node(struct maq_chakra *c, struct maq_str s, struct maq_diag *diag)
{
    struct maq_pb_field f;
    struct attr a;
    int64_t micros = 0;
    if (c->n >= MAX_NODES || !maq__grow((void **)&c->node, &c->size, c->n, sizeof *c->node))
        return c->n >= MAX_NODES ? maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_IMPORT_LIMIT, nowhere, NULL,
                                                 "%s has more than %u nodes", c->path, MAX_NODES)
                                 : no_memory(diag, c->path);
    struct maq_chakra_node *v = &c->node[c->n++];
    c->n_seen++;
    *v =
        (struct maq_chakra_node){.name = "",
                                 .dep = c->n_deps,
                                 .dtype = MAQ_REC_TYPE_OTHER,
                                 .ns = -1,
                                 .stream = -1,
                                 .record = -1,
                                 .copy = -1,
                                 .mark = -1,
                                 .comm_type = -1,
                                 .bytes = -1,
                                 .root = -1,
                                 .src = -1,
                                 .dst = -1,
                                 .op = {.kind = MAQ_REC_KERNEL, .type = MAQ_REC_TYPE_OTHER, .out = MAQ_REC_TYPE_OTHER}};
    bool memory = true, form = true;
    while (memory && form && maq_pb_get(&f, &s)) {
        if (f.number == MAQ_CHAKRA_NODE_ID)
            v->id = f.v;
        else if (f.number == MAQ_CHAKRA_NODE_NAME)
            memory = (v->name = maq_arena_strdup(c->arena, f.bytes)) != NULL;
        else if (f.number == MAQ_CHAKRA_NODE_TYPE)
            v->type = f.v <= MAQ_CHAKRA_COLL ? (uint8_t)f.v : MAQ_CHAKRA_INVALID;
        else if (f.number == MAQ_CHAKRA_NODE_CTRL || f.number == MAQ_CHAKRA_NODE_DATA)
            form = add_deps(c, v, &f);
        else if (f.number == MAQ_CHAKRA_NODE_DURATION)
            micros = (int64_t)f.v;
        else if (f.number == MAQ_CHAKRA_NODE_ATTR)
            memory = !(form = read_attr(&a, f.bytes)) || node_attr(c, v, &a);
    }
    if (!memory)
        return no_memory(diag, c->path);
    if (!form || !s.ptr)
        return leave_out(c, MAQ_CODE_IMPORT_FORM, "is damaged");
    if (v->ns < 0)
        v->ns = micros < 0 || micros > INT64_MAX / 4000 ? micros : micros * 1000;
    if (v->ns > INT64_MAX / 4)
        return leave_out(c, MAQ_CODE_IMPORT_NUMBER, "has a duration that cannot be");
    if (v->ns < 0) {
        v->untimed = true;
        v->ns = 0;
        return maq_mend(&c->mended, MAQ_MEND_NEGATIVE, c->n_seen, MAQ_CODE_IMPORT_NUMBER,
                        "%s: node %u has a duration that cannot be", c->path, c->n_seen);
    }
    if (c->n > 1 && v[-1].id == v->id && strcmp(v[-1].name, v->name) == 0) {
        c->n--;
        return maq_mend(&c->mended, MAQ_MEND_REPEATED, c->n_seen, MAQ_CODE_IMPORT_DEPENDENCY, "%s: node %u once more",
                        c->path, c->n_seen);
    }
    return MAQ_OK;
}

static bool take_group(struct maq_chakra *c, const struct attr *a)
{
    struct maq_str list = a->list;
    uint32_t n = 0;
    uint64_t v;
    while (list.len > 0 && maq_pb_get_varint(&v, &list))
        n++;
    uint32_t *member = MAQ_ARENA_NEW(c->arena, uint32_t, n);
    if (!member || !maq__grow((void **)&c->group, &c->group_size, c->n_groups, sizeof *c->group))
        return false;
    list = a->list;
    for (uint32_t i = 0; i < n && maq_pb_get_varint(&v, &list); i++)
        member[i] = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    struct maq_chakra_group *g = &c->group[c->n_groups++];
    g->pg = maq_arena_strdup(c->arena, (struct maq_str){a->name.ptr + 3, a->name.len - 3});
    g->name = maq_arena_strdup(c->arena, a->doc);
    g->n = n;
    g->member = member;
    return g->pg && g->name;
}

static enum maq_status take_metadata(struct maq_chakra *c, struct maq_str s, struct maq_diag *diag)
{
    struct maq_pb_field f;
    struct attr a;
    bool memory = true;
    while (memory && maq_pb_get(&f, &s)) {
        if (f.number != MAQ_CHAKRA_META_ATTR || f.type != MAQ_PB_BYTES || !read_attr(&a, f.bytes))
            continue;
        if (maq_str_is(a.name, "rank"))
            c->rank = a.v;
        else if (maq_str_is(a.name, "world_size"))
            c->world = a.v;
        else if (maq_str_is(a.name, "per_node"))
            c->per_node = a.v;
        else if (maq_str_is(a.name, MAQ_CHAKRA_SIZE_OF))
            c->stated = maq_str_is(a.text, MAQ_CHAKRA_OF_COUNT) ? MAQ_CHAKRA_SIZE_COUNT : MAQ_CHAKRA_SIZE_INPUT;
        else if (maq_str_is(a.name, "device"))
            memory = (c->device = maq_arena_strdup(c->arena, a.text)) != NULL;
        else if (maq_str_starts(a.name, "pg:"))
            memory = take_group(c, &a);
    }
    c->ours = c->per_node >= 0; /* no other writer has it */
    if (!memory)
        return no_memory(diag, c->path);
    return s.ptr ? MAQ_OK
                 : maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_IMPORT_FORM, nowhere, NULL,
                                 "%s: does not begin with the metadata of a Chakra trace", c->path);
}

/* --- files ---------------------------------------------------------------------------------------------------------------- */

/* Bytes, from a file or from memory. */
struct source {
    gzFile file;
    struct maq_str left;
};

/* n bytes into `to`; how many there were. */
static size_t take(struct source *s, char *to, size_t n)
{
    if (s->file) {
        int got = gzread(s->file, to, (unsigned)n);
        return got < 0 ? 0 : (size_t)got;
    }
    n = n < s->left.len ? n : s->left.len;
    if (n > 0)
        memcpy(to, s->left.ptr, n);
    s->left.ptr += n;
    s->left.len -= n;
    return n;
}

/* Length of the next message; false at the end, and with *bad when it ends in the middle. */
static bool next_length(uint64_t *out, struct source *s, bool *bad)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        char c;
        if (take(s, &c, 1) == 0) {
            *bad = shift > 0;
            return false;
        }
        *out |= (uint64_t)((unsigned char)c & 0x7f) << shift;
        if (!((unsigned char)c & 0x80))
            return true;
    }
    *bad = true;
    return false;
}

static enum maq_status read_messages(struct maq_chakra *c, struct source *s, struct maq_diag *diag)
{
    char *buf = NULL;
    uint64_t n, size = 0;
    bool bad = false, first = true;
    enum maq_status status = MAQ_OK;
    while (status == MAQ_OK && next_length(&n, s, &bad)) {
        if (n > MAX_MESSAGE) {
            bad = true;
            break;
        }
        if (n > size) {
            uint64_t want = n < 65536 ? 65536 : n;
            char *p = maq__realloc(buf, want);
            if (!p) {
                status = no_memory(diag, c->path);
                break;
            }
            buf = p;
            size = want;
        }
        if (take(s, buf, n) < n) {
            bad = true;
            break;
        }
        struct maq_str message = {buf ? buf : "", n};
        status = first ? take_metadata(c, message, diag) : take_node(c, message, diag);
        first = false;
    }
    free(buf);
    if (status == MAQ_OK && bad && c->n > 0)
        status = maq_mend(&c->mended, MAQ_MEND_END, c->n_seen, MAQ_CODE_IMPORT_READ, "%s ends in the middle of a node",
                          c->path);
    else if (status == MAQ_OK && bad)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_IMPORT_READ, nowhere, NULL,
                             "%s ends in the middle of a node", c->path);
    return status == MAQ_OK ? mend(c, diag) : status;
}

static void begin(struct maq_chakra *out, const char *path, struct maq_arena *arena, struct maq_diag *diag)
{
    *out = (struct maq_chakra){.path = path, .arena = arena, .rank = -1, .world = -1, .per_node = -1};
    maq_mending_begin(&out->mended, path, "node", "nodes", diag);
}

enum maq_status maq_chakra_parse(struct maq_chakra *out, const char *path, const void *bytes, size_t n,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct source s = {.left = {bytes, n}};
    begin(out, path, arena, diag);
    return read_messages(out, &s, diag);
}

enum maq_status maq_chakra_read(struct maq_chakra *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct source s = {.file = gzopen(path, "rb")};
    begin(out, path, arena, diag);
    if (!s.file)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_IMPORT_READ, nowhere, NULL, "%s: cannot be opened", path);
    enum maq_status status = read_messages(out, &s, diag);
    gzclose_r(s.file);
    return status;
}

void maq_chakra_fini(struct maq_chakra *c)
{
    free(c->node);
    free(c->dep);
    free(c->group);
    *c = (struct maq_chakra){0};
}

/* --- a job ------------------------------------------------------------------------------------------------------------------ */

bool maq_import_chakra_probe(const unsigned char *head, size_t n)
{
    struct maq_str s = {(const char *)head, n};
    uint64_t len, text;
    if (!maq_pb_get_varint(&len, &s) || len > MAX_MESSAGE || s.len == 0)
        return false;
    if (len == 0) /* metadata that says nothing, then a node that begins with its id or its name */
        return maq_pb_get_varint(&len, &s) && len > 0 && s.len > 0 && (s.ptr[0] == 0x08 || s.ptr[0] == 0x12);
    if (s.ptr[0] == 0x12)
        return true;
    if (s.ptr[0] != 0x0a)
        return false;
    s = (struct maq_str){s.ptr + 1, s.len - 1};
    return maq_pb_get_varint(&text, &s) && text < 64 && text + 1 < len + 1 && s.len > 0 &&
           (text == 0 || (s.ptr[0] >= 0x20 && s.ptr[0] < 0x7f));
}

/* The number before ".et" of a path; -1. */
static int64_t rank_in_name(const char *path)
{
    size_t n = strlen(path), at;
    int64_t rank;
    if (n > 3 && strcmp(path + n - 3, ".et") == 0)
        n -= 3;
    for (at = n; at > 0 && path[at - 1] >= '0' && path[at - 1] <= '9';)
        at--;
    return at < n && at > 0 && path[at - 1] == '.' && maq_str_to_i64(&rank, (struct maq_str){path + at, n - at}) ? rank
                                                                                                                 : -1;
}

/* What comm_size is of in a file: as the user says, as the file says, or by who wrote it (chakra.h). */
static enum maq_chakra_comm_size size_of(const struct maq_chakra *c, enum maq_chakra_comm_size chosen)
{
    if (chosen != MAQ_CHAKRA_SIZE_BY_WRITER)
        return chosen;
    if (c->stated != MAQ_CHAKRA_SIZE_BY_WRITER)
        return c->stated;
    return c->ours ? MAQ_CHAKRA_SIZE_COUNT : MAQ_CHAKRA_SIZE_INPUT;
}

static enum maq_status add_file(struct maq_import_job *job, const char *path, uint32_t place, uint32_t n,
                                enum maq_chakra_comm_size chosen, struct maq_chakra *c, struct maq_chakra_tally *tally)
{
    MAQ_TRY(maq_chakra_read(c, path, job->arena, job->diag));
    int64_t rank = c->rank >= 0 ? c->rank : rank_in_name(path) >= 0 ? rank_in_name(path) : place;
    int64_t world = c->world > 0 ? c->world : n;
    world = rank >= world && c->world <= 0 ? rank + 1 : world;
    if (rank >= world || world > MAQ_IMPORT_WORLD || (job->world > 0 && c->world > 0 && job->world != (uint64_t)world))
        return maq_diag_fail(MAQ_BAD_INPUT, job->diag, MAQ_CODE_IMPORT_RANK, nowhere,
                             "give the traces of one job at a time", "%s: rank %lld of a job of %lld", path,
                             (long long)rank, (long long)world);
    job->world = job->world > (uint32_t)world ? job->world : (uint32_t)world;
    if (c->per_node > 0 && c->per_node <= world)
        job->per_node = (uint32_t)c->per_node;
    if (!c->ours)
        maq_import_device(job, c->device);
    else if (!job->device)
        job->device = c->device; /* of the catalogue, or of a file of the user's */
    struct maq_import_rank *r = maq_import_add_rank(job, path, (uint32_t)rank);
    if (!r || job->failed)
        return no_memory(job->diag, path);
    uint32_t before = tally->shared_out;
    tally->sized_by = size_of(c, chosen);
    MAQ_TRY(maq_chakra_records(job, r, c, tally));
    if (c->stated != MAQ_CHAKRA_SIZE_BY_WRITER || chosen != MAQ_CHAKRA_SIZE_BY_WRITER)
        tally->shared_out = before; /* there is nothing to say: the file says it, or the user did */
    return MAQ_OK;
}

/* What was taken to be so, once for all files. */
static void tell(const struct maq_chakra_tally *t, struct maq_diag *diag)
{
    bool count = t->sized_by == MAQ_CHAKRA_SIZE_COUNT;
    if (t->shared_out > 0)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_IMPORT_COMM_SIZE, nowhere,
                     count ? "--comm-size input: it is the size of a rank's whole input"
                           : "--comm-size count: it is NCCL's count, a rank's part",
                     count ? "comm_size of %u reduce-scatters, scatters and all-to-alls is taken for NCCL's count, as "
                             "maquette wrote it "
                             "before it said so in the file"
                           : "comm_size of %u reduce-scatters, scatters and all-to-alls is taken for the size of a "
                             "rank's whole input, "
                             "as Chakra's converter writes it and ASTRA-sim reads it",
                     t->shared_out);
    if (t->n_against > 0)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_IMPORT_DEPENDENCY, nowhere, NULL,
                     "control dependencies in a circle that are left out: %llu; data dependencies are kept",
                     (unsigned long long)t->n_against);
    if (t->n_missing > 0)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_IMPORT_DEPENDENCY, nowhere, NULL,
                     "control dependencies on nodes that are not in the trace, as filters leave them: %llu (the first: "
                     "%s, node %llu on node "
                     "%llu); the order of the file is the host's there",
                     (unsigned long long)t->n_missing, t->path, (unsigned long long)t->waiting,
                     (unsigned long long)t->missing);
}

enum maq_status maq_import_chakra(struct maq_capture **out, const char *const *paths, uint32_t n,
                                  const struct maq_capture_read_opts *opts, struct maq_diag *diag)
{
    struct maq_import_job job;
    struct maq_chakra_tally tally = {0};
    MAQ_TRY(maq_import_begin(&job, diag));
    for (uint32_t i = 0; i < n; i++) {
        struct maq_chakra c = {0};
        enum maq_status status =
            add_file(&job, paths[i], i, n, opts ? opts->comm_size : MAQ_CHAKRA_SIZE_BY_WRITER, &c, &tally);
        maq_chakra_fini(&c);
        if (status != MAQ_OK) {
            maq_import_drop(&job);
            return status;
        }
    }
    tell(&tally, diag);
    return maq_import_finish(out, &job);
}
