/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - reads a .mqt file: sections in order, each with its checksum and bounds on every size, since the file is
 * not trusted. See mqt.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/build.h"
#include "capture/codes.h"
#include "capture/mqt/mqt.h"
#include "spec/cannot_read.h"

#define RAW_MOST ((uint64_t)1 << 33) /* of all sections together */

struct reading {
    const char *name;
    const unsigned char *file;
    size_t size;
    struct maq_arena *arena, scratch;
    struct maq_capture *c;
    struct maq_diag *diag;
    struct maq_mqt_head head;
    uint32_t next;             /* section */
    struct maq_mqt_section at; /* that is read */
    const unsigned char *p, *end;
    uint64_t raw;
    struct maq_captured_op *ops;
    struct maq_captured_comm *comms;
    struct maq_rank_class *classes;
    uint32_t *class_of;
};

static enum maq_status damaged(const struct reading *r, const char *what)
{
    return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0}, NULL,
                         "%s: section %u at byte %" PRIu64 ": %s", r->name, r->next, r->at.at, what);
}

static enum maq_status no_memory(const struct reading *r)
{
    return maq_no_memory(r->diag, NULL);
}

/* --- values; beyond the end all are 0 and `p` is NULL --- */

static void take(struct reading *r, void *out, size_t n)
{
    if (!r->p || (size_t)(r->end - r->p) < n) {
        memset(out, 0, n);
        r->p = NULL;
        return;
    }
    if (n > 0)
        memcpy(out, r->p, n);
    r->p += n;
}

static uint32_t take32(struct reading *r)
{
    uint32_t x;
    take(r, &x, sizeof x);
    return x;
}

static uint64_t take64(struct reading *r)
{
    uint64_t x;
    take(r, &x, sizeof x);
    return x;
}

/* Whether n things of `size` bytes can still be there. */
static bool room_for(const struct reading *r, uint64_t n, uint64_t size)
{
    return r->p && n <= (uint64_t)(r->end - r->p) / size;
}

static const char *take_text(struct reading *r)
{
    uint32_t n = take32(r);
    if (n == UINT32_MAX || !room_for(r, n, 1))
        return NULL;
    const char *s = maq_arena_strdup(r->arena, (struct maq_str){(const char *)r->p, n});
    r->p += n;
    return s;
}

static uint32_t *take_differences(struct reading *r, uint64_t n, uint64_t apart)
{
    uint32_t *x = room_for(r, n, 4) ? MAQ_ARENA_NEW(r->arena, uint32_t, n) : NULL;
    for (uint64_t i = 0; x && i < n; i++)
        x[i] = take32(r) + (i >= apart ? x[i - apart] : 0);
    if (!x)
        r->p = NULL;
    return x;
}

/* --- sections --- */

static enum maq_status open_section(struct reading *r, enum maq_mqt_kind kind)
{
    struct maq_mqt_section *s = &r->at;
    if (r->next >= r->head.n_sections)
        return damaged(r, "is missing");
    memcpy(s, r->file + sizeof r->head + r->next * sizeof *s, sizeof *s);
    r->next++;
    if (s->kind != kind)
        return damaged(r, "is of another kind than it should be");
    if (s->at > r->size || s->stored > r->size - s->at || s->raw < s->stored || s->raw / 1100 > s->stored + 64 ||
        r->raw + s->raw > RAW_MOST)
        return damaged(r, "is not inside the file");
    r->raw += s->raw;
    const unsigned char *bytes = r->file + s->at;
    if (s->stored > UINT32_MAX ||
        crc32(crc32(0, NULL, 0), s->stored > 0 ? bytes : (const Bytef *)"", (uInt)s->stored) != s->crc32)
        return damaged(r, "has a wrong checksum");
    if (s->raw > s->stored) {
        uLongf n = (uLongf)s->raw;
        unsigned char *raw = maq_arena_alloc(&r->scratch, s->raw, 16);
        if (!raw)
            return no_memory(r);
        if (uncompress(raw, &n, bytes, (uLong)s->stored) != Z_OK || n != s->raw)
            return damaged(r, "cannot be unpacked");
        bytes = raw;
    }
    r->p = bytes;
    r->end = bytes + s->raw;
    return MAQ_OK;
}

static enum maq_status close_section(struct reading *r)
{
    return r->p && r->p == r->end ? MAQ_OK : damaged(r, "is too short or too long");
}

static enum maq_status read_job(struct reading *r)
{
    struct maq_capture *c = r->c;
    MAQ_TRY(open_section(r, MAQ_MQT_JOB));
    c->world = take32(r);
    c->per_node = take32(r);
    c->n_texts = take32(r);
    c->n_ops = take32(r);
    c->n_comms = take32(r);
    c->n_classes = take32(r);
    c->device = take_text(r);
    MAQ_TRY(close_section(r));
    if (c->world == 0 || c->world > 1u << 24 || c->n_classes > c->world)
        return damaged(r, "has ranks that cannot be");
    r->class_of = MAQ_ARENA_NEW(r->arena, uint32_t, c->world);
    r->classes = MAQ_ARENA_NEW(r->arena, struct maq_rank_class, c->n_classes);
    if (!r->class_of || !r->classes)
        return no_memory(r);
    memset(r->class_of, 0xff, c->world * sizeof *r->class_of);
    c->class_of = r->class_of;
    c->class_of_ranks = r->classes;
    return MAQ_OK;
}

static enum maq_status read_texts(struct reading *r)
{
    MAQ_TRY(open_section(r, MAQ_MQT_TEXTS));
    if (!room_for(r, r->c->n_texts, 4))
        return damaged(r, "is too short");
    const char **text = MAQ_ARENA_NEW(r->arena, const char *, r->c->n_texts);
    if (!text)
        return no_memory(r);
    for (uint32_t i = 0; i < r->c->n_texts; i++)
        if (!(text[i] = take_text(r)))
            return damaged(r, "has a text that is none");
    r->c->text = text;
    return close_section(r);
}

static enum maq_status read_ops(struct reading *r)
{
    MAQ_TRY(open_section(r, MAQ_MQT_OPS));
    if (!room_for(r, r->c->n_ops, sizeof(struct maq_rec_op) + 20))
        return damaged(r, "is too short");
    r->ops = MAQ_ARENA_NEW(r->arena, struct maq_captured_op, r->c->n_ops);
    struct maq_rec_op *what = MAQ_ARENA_NEW(r->arena, struct maq_rec_op, r->c->n_ops);
    if (!r->ops || !what)
        return no_memory(r);
    for (uint32_t i = 0; i < r->c->n_ops; i++) {
        take(r, &what[i], sizeof what[i]);
        r->ops[i].what = &what[i];
        take(r, &r->ops[i].recorded_ns, sizeof r->ops[i].recorded_ns);
        r->ops[i].launches = take64(r);
        r->ops[i].name = take_text(r);
        if (!r->ops[i].name || !(r->ops[i].recorded_ns >= 0 && r->ops[i].recorded_ns < 1e19))
            return damaged(r, "has an operator that is none");
        what[i].name_bytes = (uint32_t)strlen(r->ops[i].name);
    }
    r->c->op = r->ops;
    return close_section(r);
}

static enum maq_status read_comms(struct reading *r)
{
    MAQ_TRY(open_section(r, MAQ_MQT_COMMS));
    if (!room_for(r, r->c->n_comms, 16))
        return damaged(r, "is too short");
    r->comms = MAQ_ARENA_NEW(r->arena, struct maq_captured_comm, r->c->n_comms);
    if (!r->comms)
        return no_memory(r);
    for (uint32_t i = 0; i < r->c->n_comms; i++) {
        struct maq_captured_comm *m = &r->comms[i];
        m->lineage = take64(r);
        m->size = take32(r);
        m->member = take_differences(r, m->size, 1);
        if (!m->member || m->size == 0 || m->size > r->c->world)
            return damaged(r, "has a communicator that cannot be");
        for (uint32_t k = 0; k < m->size; k++)
            if (m->member[k] >= r->c->world && m->member[k] != UINT32_MAX)
                return damaged(r, "has a member outside of the job");
    }
    r->c->comm = r->comms;
    return close_section(r);
}

static enum maq_status read_class(struct reading *r, struct maq_rank_class *c)
{
    MAQ_TRY(open_section(r, MAQ_MQT_CLASS));
    c->signature = take64(r);
    c->peak_bytes = take64(r);
    c->n_records = take32(r);
    c->n_comms = take32(r);
    c->n_ranks = take32(r);
    c->n_deltas = take32(r);
    c->probed = take32(r) != 0;
    c->name = take_text(r);
    if (c->n_comms > UINT16_MAX + 1u || !c->name)
        return damaged(r, "has a class that cannot be");
    uint64_t table = (uint64_t)c->n_ranks * c->n_comms;
    c->rank = take_differences(r, c->n_ranks, 1);
    c->comm = c->rank ? take_differences(r, table, c->n_comms) : NULL;
    c->position = c->comm ? take_differences(r, table, c->n_comms) : NULL;
    struct maq_rank_delta *d = c->position && room_for(r, c->n_deltas, 20)
                                   ? MAQ_ARENA_NEW(r->arena, struct maq_rank_delta, c->n_deltas)
                                   : NULL;
    if (!d)
        return damaged(r, "is too short");
    for (uint32_t i = 0; i < c->n_deltas; i++) {
        d[i].rank = take32(r);
        d[i].record = take32(r);
        d[i].host_ns = take32(r);
        d[i].ns = take64(r);
    }
    c->delta = d;
    return close_section(r);
}

static enum maq_status read_records(struct reading *r, struct maq_rank_class *c)
{
    MAQ_TRY(open_section(r, MAQ_MQT_RECORDS));
    uint32_t period = take32(r), at = 0;
    const unsigned char *pairs = r->p;
    /* every record is written or one of a pair's repeats, and repeats are bounded by what the class says it has */
    for (uint32_t written = 1, repeated = 1; r->p && (written > 0 || repeated > 0);) {
        written = take32(r);
        repeated = take32(r);
    }
    if (!r->p || r->raw + (uint64_t)c->n_records * sizeof(struct maq_rec) > RAW_MOST)
        return damaged(r, "is too short or too long");
    const unsigned char *literal = r->p;
    r->raw += (uint64_t)c->n_records * sizeof(struct maq_rec);
    struct maq_rec *rec = MAQ_ARENA_NEW(r->arena, struct maq_rec, c->n_records);
    if (!rec)
        return no_memory(r);
    for (;;) {
        uint32_t n[2];
        memcpy(n, pairs, sizeof n);
        pairs += sizeof n;
        if (n[0] == 0 && n[1] == 0)
            break;
        r->p = literal;
        if (!room_for(r, n[0], sizeof *rec) || n[0] > c->n_records - at || n[1] > c->n_records - at - n[0] ||
            (n[1] > 0 && (period == 0 || period > at + n[0])))
            return damaged(r, "has records that do not fit");
        take(r, rec + at, n[0] * sizeof *rec);
        literal = r->p;
        at += n[0];
        for (uint32_t i = 0; i < n[1]; i++, at++)
            rec[at] = rec[at - period];
    }
    r->p = literal;
    if (at != c->n_records)
        return damaged(r, "has too few records");
    c->record = rec;
    return close_section(r);
}

static enum maq_status read_classes(struct reading *r)
{
    for (uint32_t k = 0; k < r->c->n_classes; k++) {
        struct maq_rank_class *c = &r->classes[k];
        MAQ_TRY(read_class(r, c));
        MAQ_TRY(read_records(r, c));
        maq_arena_fini(&r->scratch);
        for (uint32_t i = 0; i < c->n_ranks; i++) {
            if (c->rank[i] >= r->c->world || (i > 0 && c->rank[i] <= c->rank[i - 1]) ||
                r->class_of[c->rank[i]] != UINT32_MAX)
                return damaged(r, "has a rank that is in no class or in two");
            r->class_of[c->rank[i]] = k;
        }
    }
    return MAQ_OK;
}

static enum maq_status read_head(struct reading *r)
{
    if (r->size < sizeof r->head || memcmp(r->file, MAQ_MQT_MAGIC, 8) != 0)
        return damaged(r, "not a captured job");
    memcpy(&r->head, r->file, sizeof r->head);
    if (r->head.version != MAQ_MQT_VERSION || r->head.head_bytes != sizeof r->head)
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0}, NULL,
                             "%s: a captured job of version %u, this maquette reads %d", r->name, r->head.version,
                             MAQ_MQT_VERSION);
    if (r->head.file_bytes != r->size || r->head.n_sections > (r->size - sizeof r->head) / sizeof r->at)
        return damaged(r, "the file is cut off, or something is behind it");
    return MAQ_OK;
}

/* Of communicators; only there when one has a name. */
static enum maq_status read_names(struct reading *r)
{
    MAQ_TRY(open_section(r, MAQ_MQT_NAMES));
    for (uint32_t i = 0; i < r->c->n_comms; i++) {
        const char *name = take_text(r);
        if (!name)
            return damaged(r, "is too short");
        r->comms[i].name = name[0] ? name : NULL;
    }
    return close_section(r);
}

static enum maq_status read_all(struct reading *r)
{
    MAQ_TRY(read_head(r));
    MAQ_TRY(read_job(r));
    MAQ_TRY(read_texts(r));
    MAQ_TRY(read_ops(r));
    MAQ_TRY(read_comms(r));
    maq_arena_fini(&r->scratch);
    MAQ_TRY(read_classes(r));
    if (r->next < r->head.n_sections)
        MAQ_TRY(read_names(r));
    if (r->next != r->head.n_sections)
        return damaged(r, "is one too many");
    const char *fault = maq_capture_fault(r->c, &r->scratch);
    if (fault)
        return damaged(r, fault);
    for (uint32_t k = 0; k < r->c->n_classes; k++)
        maq_capture_count(&r->classes[k]);
    return MAQ_OK;
}

enum maq_status maq_mqt_parse(struct maq_capture **out, const void *bytes, size_t n, const char *name,
                              struct maq_diag *diag)
{
    struct reading r = {.name = name, .file = bytes, .size = n, .c = maq_capture_new(), .diag = diag};
    if (!r.c)
        return no_memory(&r);
    r.arena = r.c->owner;
    maq_arena_init(&r.scratch, 0);
    enum maq_status status = read_all(&r);
    maq_arena_fini(&r.scratch);
    if (status == MAQ_OK)
        *out = r.c;
    else
        maq_capture_free(r.c);
    return status;
}

bool maq_mqt_probe(const unsigned char *head, size_t n)
{
    return n >= 8 && memcmp(head, MAQ_MQT_MAGIC, 8) == 0;
}

enum maq_status maq_mqt_read(struct maq_capture **out, const char *const *paths, uint32_t n, struct maq_diag *diag)
{
    if (n != 1)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_CAPTURE_RANKS, (struct maq_span){0}, NULL,
                             "a captured job is one file, %u were given", n);
    FILE *f = fopen(paths[0], "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    unsigned char *bytes = size >= 0 && fseek(f, 0, SEEK_SET) == 0 ? malloc((size_t)size + 1) : NULL;
    enum maq_status status;
    if (!bytes || fread(bytes, 1, (size_t)size, f) != (size_t)size)
        status = maq_cannot_read(diag, paths[0], "a captured job: `maquette capture` writes one", errno);
    else
        status = maq_mqt_parse(out, bytes, (size_t)size, paths[0], diag);
    free(bytes);
    if (f)
        (void)fclose(f);
    return status;
}
