/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - writes a .mqt file: see mqt.h.
 *
 * Records are compressed by their period P: runs of records that are equal byte for byte to the record P before are
 * only counted, the others are written. Ascending numbers are written as differences.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/mqt/mqt.h"
#include "capture/steps.h"
#include "maquette/path_hint.h"
#include "shim/record.h"

#define SECTION_MOST ((size_t)1 << 32)

static void put32(struct maq_buf *b, uint32_t x)
{
    maq_buf_add(b, &x, sizeof x);
}

static void put64(struct maq_buf *b, uint64_t x)
{
    maq_buf_add(b, &x, sizeof x);
}

static void put_text(struct maq_buf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    put32(b, s ? (uint32_t)n : UINT32_MAX);
    maq_buf_add(b, s ? s : "", n);
}

static void put_differences(struct maq_buf *b, const uint32_t *x, size_t n, size_t apart)
{
    for (size_t i = 0; i < n; i++)
        put32(b, x[i] - (i >= apart ? x[i - apart] : 0));
}

static void put_job(struct maq_buf *b, const struct maq_capture *c)
{
    put32(b, c->world);
    put32(b, c->per_node);
    put32(b, c->n_texts);
    put32(b, c->n_ops);
    put32(b, c->n_comms);
    put32(b, c->n_classes);
    put_text(b, c->device);
}

static void put_op(struct maq_buf *b, const struct maq_captured_op *op)
{
    maq_buf_add(b, op->what, sizeof *op->what);
    maq_buf_add(b, &op->recorded_ns, sizeof op->recorded_ns);
    put64(b, op->launches);
    put_text(b, op->name);
}

static void put_class(struct maq_buf *b, const struct maq_rank_class *c)
{
    size_t table = (size_t)c->n_ranks * c->n_comms;
    put64(b, c->signature);
    put64(b, c->peak_bytes);
    put32(b, c->n_records);
    put32(b, c->n_comms);
    put32(b, c->n_ranks);
    put32(b, c->n_deltas);
    put32(b, c->probed);
    put_text(b, c->name);
    put_differences(b, c->rank, c->n_ranks, 1);
    put_differences(b, c->comm, table, c->n_comms);
    put_differences(b, c->position, table, c->n_comms);
    for (uint32_t i = 0; i < c->n_deltas; i++) {
        put32(b, c->delta[i].rank);
        put32(b, c->delta[i].record);
        put32(b, c->delta[i].host_ns);
        put64(b, c->delta[i].ns);
    }
}

static uint64_t record_key(const struct maq_rec *r)
{
    return maq_rec_hash(r, sizeof *r, 3);
}

/* Pairs (written, repeated), which end with (0, 0); then the records that are written. */
static void put_records(struct maq_buf *b, const struct maq_rank_class *c)
{
    uint64_t *key = malloc((c->n_records + (size_t)1) * sizeof *key);
    uint32_t first, count, period, i = 0;
    if (!key) {
        b->failed = true;
        return;
    }
    for (i = 0; i < c->n_records; i++)
        key[i] = record_key(&c->record[i]);
    period = maq_records_period(key, c->n_records, &first, &count);
    put32(b, period);
    for (i = 0; i < c->n_records;) {
        uint32_t start = i, same;
        while (i < c->n_records && (period == 0 || i < period || key[i] != key[i - period]))
            i++;
        same = i;
        while (same < c->n_records && key[same] == key[same - period])
            same++;
        put32(b, i - start);
        put32(b, same - i);
        i = same;
    }
    put64(b, 0);
    for (i = 0; i < c->n_records; i++)
        if (period == 0 || i < period || key[i] != key[i - period])
            maq_buf_add(b, &c->record[i], sizeof c->record[i]);
    free(key);
}

struct writing {
    struct maq_buf body;
    struct maq_mqt_section *section;
    uint32_t n, room;
    bool failed;
};

/* Takes the section's bytes; stores them smaller where they get smaller. */
static void end_section(struct writing *w, enum maq_mqt_kind kind, struct maq_buf *b)
{
    uLongf packed = compressBound((uLong)b->len);
    unsigned char *z = malloc(packed);
    const void *bytes = b->ptr;
    struct maq_mqt_section s = {.kind = kind, .at = w->body.len, .stored = b->len, .raw = b->len};
    w->failed |= b->failed || !z || w->n == w->room;
    if (!w->failed && b->len > 0 && compress2(z, &packed, (const Bytef *)b->ptr, (uLong)b->len, 6) == Z_OK &&
        packed < b->len) {
        s.stored = packed;
        bytes = z;
    }
    if (!w->failed) {
        s.crc32 =
            (uint32_t)crc32(crc32(0, NULL, 0), s.stored > 0 ? (const Bytef *)bytes : (const Bytef *)"", (uInt)s.stored);
        maq_buf_add(&w->body, bytes, s.stored);
        w->section[w->n++] = s;
    }
    free(z);
    maq_buf_fini(b);
    maq_buf_init(b, SECTION_MOST);
}

static void put_sections(struct writing *w, const struct maq_capture *c)
{
    struct maq_buf b;
    bool named = false; /* communicators of an imported job */
    maq_buf_init(&b, SECTION_MOST);
    put_job(&b, c);
    end_section(w, MAQ_MQT_JOB, &b);
    for (uint32_t i = 0; i < c->n_texts; i++)
        put_text(&b, c->text[i]);
    end_section(w, MAQ_MQT_TEXTS, &b);
    for (uint32_t i = 0; i < c->n_ops; i++)
        put_op(&b, &c->op[i]);
    end_section(w, MAQ_MQT_OPS, &b);
    for (uint32_t i = 0; i < c->n_comms; i++) {
        put64(&b, c->comm[i].lineage);
        put32(&b, c->comm[i].size);
        put_differences(&b, c->comm[i].member, c->comm[i].size, 1);
        named |= c->comm[i].name != NULL;
    }
    end_section(w, MAQ_MQT_COMMS, &b);
    for (uint32_t k = 0; k < c->n_classes; k++) {
        put_class(&b, &c->class_of_ranks[k]);
        end_section(w, MAQ_MQT_CLASS, &b);
        put_records(&b, &c->class_of_ranks[k]);
        end_section(w, MAQ_MQT_RECORDS, &b);
    }
    for (uint32_t i = 0; named && i < c->n_comms; i++)
        put_text(&b, c->comm[i].name ? c->comm[i].name : "");
    if (named)
        end_section(w, MAQ_MQT_NAMES, &b);
    maq_buf_fini(&b);
}

/* Writes a temporary file next to it and renames it, so that a reader sees the old file or the new one. */
static enum maq_status write_file(const struct writing *w, const char *path, struct maq_diag *diag)
{
    struct maq_buf name;
    uint64_t front = sizeof(struct maq_mqt_head) + w->n * sizeof *w->section;
    struct maq_mqt_head head = {.magic = MAQ_MQT_MAGIC,
                                .version = MAQ_MQT_VERSION,
                                .head_bytes = sizeof head,
                                .file_bytes = front + w->body.len,
                                .n_sections = w->n};
    maq_buf_init(&name, 1 << 16);
    maq_buf_addf(&name, "%s.part", path);
    for (uint32_t i = 0; i < w->n; i++)
        w->section[i].at += front;
    FILE *f = name.failed ? NULL : fopen(name.ptr, "wb");
    bool done = f && fwrite(&head, sizeof head, 1, f) == 1 && fwrite(w->section, sizeof *w->section, w->n, f) == w->n &&
                fwrite(w->body.ptr, 1, w->body.len, f) == w->body.len;
    int why = errno;
    if (f && fclose(f) != 0 && done) {
        why = errno;
        done = false;
    }
    if (done && rename(name.ptr, path) != 0) {
        why = errno;
        done = false;
    }
    if (!done && f)
        (void)remove(name.ptr);
    maq_buf_fini(&name);
    return done ? MAQ_OK
                : maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, maq_create_hint(why),
                                "%s: cannot be written: %s", path, strerror(why));
}

enum maq_status maq_capture_write(const struct maq_capture *capture, const char *path, struct maq_diag *diag)
{
    struct writing w = {.room = 5 + 2 * capture->n_classes};
    enum maq_status status;
    maq_buf_init(&w.body, SIZE_MAX / 2);
    w.section = calloc(w.room, sizeof *w.section);
    if (w.section)
        put_sections(&w, capture);
    if (!w.section || w.failed || w.body.failed)
        status = maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                               "out of memory while %s is written", path);
    else
        status = write_file(&w, path, diag);
    free(w.section);
    maq_buf_fini(&w.body);
    return status;
}
