/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the JSON of a profiler trace, as a stream.
 *
 * The file is an object with a long array `traceEvents` (or that array alone) and a few facts beside it. Every value is
 * a call (base/json_stream.h); a stack of places is the position of the reader, and values that are not needed take no
 * memory. Keys come in any order, so the values of an event are collected first and interpreted at its closing brace.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/json_stream.h"
#include "base/str.h"
#include "base/text.h"
#include "capture/import/codes.h"
#include "capture/import/kineto/events.h"

#define MAX_NESTED 4096u /* levels below those that mean something */

static const struct maq_span nowhere;

/* --- callbacks --------------------------------------------------------------------------------------------------------- */

static enum maq_kineto_place place_now(const struct maq_kineto_reader *r)
{
    return r->skip > 0 ? MAQ_PLACE_ELSEWHERE : r->place[r->depth];
}

static int enter(struct maq_kineto_reader *r, enum maq_kineto_place place)
{
    if (r->depth + 1 == MAQ_KINETO_DEPTH) {
        if (++r->skip <= MAX_NESTED)
            return 1;
        return maq_kineto_fail(r, maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_FORM, nowhere, NULL,
                                                "%s is nested more than %u levels deep", r->k->path, MAX_NESTED));
    }
    r->place[++r->depth] = place;
    return 1;
}

static void leave(struct maq_kineto_reader *r)
{
    if (r->skip > 0)
        r->skip--;
    else if (r->depth > 0)
        r->depth--;
}

static int value(struct maq_kineto_reader *r, struct maq_str s, bool is_text)
{
    struct maq_kineto_gathered *g = &r->g;
    switch (place_now(r)) {
    case MAQ_PLACE_EVENT:
        return maq_kineto_event_value(r, s, is_text);
    case MAQ_PLACE_ARGS:
        return maq_kineto_arg_value(r, s);
    case MAQ_PLACE_GRID:
        if (g->n_grid < 3)
            g->grid[g->n_grid++] = maq_kineto_size(maq_kineto_whole(s, 0));
        break;
    case MAQ_PLACE_BLOCK:
        if (g->n_block < 3)
            g->block[g->n_block++] = maq_kineto_size(maq_kineto_whole(s, 0));
        break;
    case MAQ_PLACE_SHAPE:
        if (g->n_shapes < MAQ_KINETO_TENSORS && g->shape.n_dims[g->n_shapes] < MAQ_KINETO_DIMS) {
            int64_t n = maq_kineto_whole(s, 0);
            g->shape.dim[g->n_shapes][g->shape.n_dims[g->n_shapes]++] = n > 0 && n < INT64_C(1) << 40 ? n : 0;
        }
        break;
    case MAQ_PLACE_SHAPES: /* a scalar among the tensors */
        g->n_shapes++;
        break;
    case MAQ_PLACE_TYPES:
        if (!g->shape.type && s.len > 0 && is_text)
            g->shape.type = maq_kineto_text(r, s);
        break;
    case MAQ_PLACE_JOB:
        if (r->key == MAQ_KEY_RANK)
            r->k->rank = maq_kineto_whole(s, -1);
        if (r->key == MAQ_KEY_WORLD)
            r->k->world = maq_kineto_whole(s, -1);
        break;
    case MAQ_PLACE_GROUP:
        if (r->key == MAQ_KEY_GROUP_NAME)
            r->group.name = maq_kineto_text(r, s);
        if (r->key == MAQ_KEY_GROUP_DESC)
            r->group.desc = maq_kineto_text(r, s);
        break;
    case MAQ_PLACE_GROUP_RANKS:
        if (!is_text)
            (void)maq_kineto_add_member(r, maq_kineto_whole(s, -1));
        break;
    case MAQ_PLACE_DEVICE:
        if (r->key == MAQ_KEY_DEVICE_NAME && !r->k->device && is_text)
            r->k->device = maq_kineto_text(r, s);
        break;
    case MAQ_PLACE_START:
    case MAQ_PLACE_TOP:
    case MAQ_PLACE_EVENTS:
    case MAQ_PLACE_GROUPS:
    case MAQ_PLACE_DEVICES:
    case MAQ_PLACE_ELSEWHERE:
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
    struct maq_kineto_reader *r = user;
    return place_now(r) == MAQ_PLACE_SHAPES ? value(r, MAQ_STR(""), false) : 1;
}

static int on_key(void *user, const unsigned char *s, size_t n)
{
    static const struct {
        const char *text;
        uint8_t len, place, key;
    } keys[] = {
#define KEY_ROW(place, id, text) {text, sizeof(text) - 1, MAQ_PLACE_##place, MAQ_KEY_##id},
        MAQ_KINETO_KEY_LIST(KEY_ROW)
#undef KEY_ROW
    };
    struct maq_kineto_reader *r = user;
    enum maq_kineto_place here = place_now(r);
    r->key = MAQ_KEY_NONE;
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (keys[i].len == n && keys[i].place == (uint8_t)here && memcmp(keys[i].text, s, n) == 0)
            r->key = (enum maq_kineto_key)keys[i].key;
    return 1;
}

static int on_map(void *user)
{
    struct maq_kineto_reader *r = user;
    switch (place_now(r)) {
    case MAQ_PLACE_START:
        return enter(r, MAQ_PLACE_TOP);
    case MAQ_PLACE_EVENTS:
        maq_kineto_begin_event(r);
        return enter(r, MAQ_PLACE_EVENT);
    case MAQ_PLACE_EVENT:
        return enter(r, r->key == MAQ_KEY_ARGS ? MAQ_PLACE_ARGS : MAQ_PLACE_ELSEWHERE);
    case MAQ_PLACE_TOP:
        return enter(r, r->key == MAQ_KEY_JOB ? MAQ_PLACE_JOB : MAQ_PLACE_ELSEWHERE);
    case MAQ_PLACE_GROUPS:
        r->group = (struct maq_kineto_group){0};
        return enter(r, MAQ_PLACE_GROUP);
    case MAQ_PLACE_DEVICES:
        r->k->n_devices++;
        return enter(r, MAQ_PLACE_DEVICE);
    case MAQ_PLACE_ARGS:
    case MAQ_PLACE_GRID:
    case MAQ_PLACE_BLOCK:
    case MAQ_PLACE_SHAPES:
    case MAQ_PLACE_SHAPE:
    case MAQ_PLACE_TYPES:
    case MAQ_PLACE_JOB:
    case MAQ_PLACE_GROUP:
    case MAQ_PLACE_GROUP_RANKS:
    case MAQ_PLACE_DEVICE:
    case MAQ_PLACE_ELSEWHERE:
        break;
    }
    return enter(r, MAQ_PLACE_ELSEWHERE);
}

static int on_map_end(void *user)
{
    struct maq_kineto_reader *r = user;
    enum maq_kineto_place place = place_now(r);
    leave(r);
    if (place == MAQ_PLACE_EVENT)
        return maq_kineto_take_event(r);
    if (place == MAQ_PLACE_GROUP) {
        struct maq_kineto *k = r->k;
        if (k->n_groups == k->group_size) {
            uint32_t size = k->group_size ? k->group_size * 2 : 16;
            struct maq_kineto_group *p = maq__realloc(k->group, size * sizeof *p);
            if (!p)
                return maq_kineto_fail(r, maq_kineto_no_memory(r->diag, k->path));
            k->group = p;
            k->group_size = size;
        }
        k->group[k->n_groups++] = r->group;
    }
    return r->status == MAQ_OK;
}

static int on_array(void *user)
{
    struct maq_kineto_reader *r = user;
    enum maq_kineto_place here = place_now(r), to = MAQ_PLACE_ELSEWHERE;
    if (here == MAQ_PLACE_START || (here == MAQ_PLACE_TOP && r->key == MAQ_KEY_EVENTS))
        to = MAQ_PLACE_EVENTS;
    else if (here == MAQ_PLACE_TOP && r->key == MAQ_KEY_DEVICES)
        to = MAQ_PLACE_DEVICES;
    else if (here == MAQ_PLACE_JOB && r->key == MAQ_KEY_GROUPS)
        to = MAQ_PLACE_GROUPS;
    else if (here == MAQ_PLACE_GROUP && r->key == MAQ_KEY_GROUP_RANKS) {
        to = MAQ_PLACE_GROUP_RANKS;
        r->n_members = 0;
    } else if (here == MAQ_PLACE_ARGS && r->key == MAQ_KEY_GRID)
        to = MAQ_PLACE_GRID;
    else if (here == MAQ_PLACE_ARGS && r->key == MAQ_KEY_BLOCK)
        to = MAQ_PLACE_BLOCK;
    else if (here == MAQ_PLACE_ARGS && r->key == MAQ_KEY_TYPES)
        to = MAQ_PLACE_TYPES;
    else if (here == MAQ_PLACE_ARGS && r->key == MAQ_KEY_SHAPES) {
        to = MAQ_PLACE_SHAPES;
        r->g.has_shapes = true;
    } else if (here == MAQ_PLACE_SHAPES)
        to = MAQ_PLACE_SHAPE;
    return enter(r, to);
}

static int on_array_end(void *user)
{
    struct maq_kineto_reader *r = user;
    enum maq_kineto_place place = place_now(r);
    leave(r);
    if (place == MAQ_PLACE_SHAPE)
        r->g.n_shapes++;
    if (place == MAQ_PLACE_GROUP_RANKS) {
        r->group.n_members = r->n_members;
        r->group.member = maq_kineto_keep_members(r);
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

/* What the end of a stream means; r->status says why a call ended it. */
static enum maq_status conclude(struct maq_kineto_reader *r, const struct maq_json_stream *stream)
{
    const char *path = r->k->path;
    switch (stream->end) {
    case MAQ_JSON_WHOLE:
        return MAQ_OK;
    case MAQ_JSON_STOPPED:
        return r->status;
    case MAQ_JSON_ENDLESS:
        return maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_IMPORT_LIMIT, nowhere, NULL,
                             "%s: a text at byte %llu does not end within %u MiB", path, (unsigned long long)stream->at,
                             MAQ_JSON_LONGEST_TEXT >> 20);
    case MAQ_JSON_CUT_OFF:
        if (r->k->n_events > 0)
            return maq_mend(&r->mended, MAQ_MEND_END, r->n_seen, MAQ_CODE_IMPORT_READ, "%s ends in the middle", path);
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_READ, nowhere,
                             "was the program ended while it wrote the trace?", "%s ends in the middle", path);
    case MAQ_JSON_FAULTY:
        return maq_diag_fail(MAQ_BAD_INPUT, r->diag, MAQ_CODE_IMPORT_JSON, nowhere, NULL, "%s: byte %llu: %s", path,
                             (unsigned long long)stream->at, stream->why);
    case MAQ_JSON_NOT_OPENED:
        return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_IMPORT_READ, nowhere, NULL, "%s: cannot be opened", path);
    case MAQ_JSON_UNREADABLE:
        return maq_diag_fail(MAQ_IO, r->diag, MAQ_CODE_IMPORT_READ, nowhere, NULL,
                             "%s: cannot be read, or its compression is damaged", path);
    case MAQ_JSON_NO_MEMORY:
        break;
    }
    return maq_kineto_no_memory(r->diag, path);
}

static void begin(struct maq_kineto *out, const char *path, struct maq_arena *arena)
{
    *out = (struct maq_kineto){
        .path = path, .arena = arena, .begin = INT64_MAX, .end = INT64_MIN, .rank = -1, .world = -1};
    maq_intern_init(&out->names, arena);
}

enum maq_status maq_kineto_parse(struct maq_kineto *out, const char *path, const void *bytes, size_t n,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_kineto_reader r = {.k = out, .diag = diag};
    struct maq_json_stream stream;
    begin(out, path, arena);
    maq_mending_begin(&r.mended, path, "event", "events", diag);
    (void)maq_json_stream_bytes(&stream, bytes, n, &callbacks, &r);
    free(r.member);
    enum maq_status status = conclude(&r, &stream);
    return status == MAQ_OK ? maq_kineto_mend(&r) : status;
}

enum maq_status maq_kineto_read(struct maq_kineto *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_kineto_reader r = {.k = out, .diag = diag};
    struct maq_json_stream stream;
    begin(out, path, arena);
    maq_mending_begin(&r.mended, path, "event", "events", diag);
    (void)maq_json_stream_file(&stream, path, &callbacks, &r);
    free(r.member);
    enum maq_status status = conclude(&r, &stream);
    return status == MAQ_OK ? maq_kineto_mend(&r) : status;
}

void maq_kineto_fini(struct maq_kineto *k)
{
    free(k->event);
    free(k->group);
    *k = (struct maq_kineto){0};
}
