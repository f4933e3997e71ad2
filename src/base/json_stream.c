/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.c - opens the file or the bytes, feeds yajl block by block, and finds the place of a fault.
 *
 * Between yajl and the caller's functions stands one function for each kind of value, which notes that something came.
 */
#include "base/json_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/text.h"

#define BLOCK (UINT32_C(1) << 18)

struct feed {
    struct maq_json_stream *out;
    const yajl_callbacks *on;
    void *user;
    yajl_handle yajl;
    bool heard;     /* a value since the last block began */
    uint64_t quiet; /* bytes without one */
};

static int on_null(void *ctx)
{
    struct feed *f = ctx;
    f->heard = true;
    return f->on->yajl_null ? f->on->yajl_null(f->user) : 1;
}

static int on_boolean(void *ctx, int value)
{
    struct feed *f = ctx;
    f->heard = true;
    return f->on->yajl_boolean ? f->on->yajl_boolean(f->user, value) : 1;
}

static int on_number(void *ctx, const char *s, size_t n)
{
    struct feed *f = ctx;
    f->heard = true;
    return f->on->yajl_number ? f->on->yajl_number(f->user, s, n) : 1;
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
    struct feed *f = ctx;
    f->heard = true;
    return f->on->yajl_string ? f->on->yajl_string(f->user, s, n) : 1;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
    struct feed *f = ctx;
    f->heard = true;
    return f->on->yajl_map_key ? f->on->yajl_map_key(f->user, s, n) : 1;
}

static int on_bracket(struct feed *f, int (*function)(void *user))
{
    f->heard = true;
    return function ? function(f->user) : 1;
}

static int on_map(void *ctx)
{
    return on_bracket(ctx, ((struct feed *)ctx)->on->yajl_start_map);
}

static int on_map_end(void *ctx)
{
    return on_bracket(ctx, ((struct feed *)ctx)->on->yajl_end_map);
}

static int on_array(void *ctx)
{
    return on_bracket(ctx, ((struct feed *)ctx)->on->yajl_start_array);
}

static int on_array_end(void *ctx)
{
    return on_bracket(ctx, ((struct feed *)ctx)->on->yajl_end_array);
}

static const yajl_callbacks listeners = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_map_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_array_end};

static enum maq_json_end begin(struct feed *f, struct maq_json_stream *out, const yajl_callbacks *on, void *user)
{
    *out = (struct maq_json_stream){.end = MAQ_JSON_WHOLE};
    *f = (struct feed){.out = out, .on = on, .user = user};
    f->yajl = yajl_alloc(&listeners, NULL, f);
    if (!f->yajl)
        return out->end = MAQ_JSON_NO_MEMORY;
    (void)yajl_config(f->yajl, yajl_dont_validate_strings, 1);
    return MAQ_JSON_WHOLE;
}

static enum maq_json_end end(struct feed *f, enum maq_json_end how)
{
    if (f->yajl)
        yajl_free(f->yajl);
    return f->out->end = how;
}

static void keep_why(struct feed *f, const unsigned char *bytes, size_t n)
{
    unsigned char *why = yajl_get_error(f->yajl, 0, bytes, n);
    char shown[MAQ_SHOW_SIZE];
    f->out->at += yajl_get_bytes_consumed(f->yajl);
    maq__snprintf(f->out->why, sizeof f->out->why, "%s",
                  maq_str_show(shown, maq_str_trim(maq_str_of(why ? (const char *)why : "not JSON"))));
    if (why)
        yajl_free_error(f->yajl, why);
}

/* One block, or the end of all (n = 0). */
static enum maq_json_end feed(struct feed *f, const unsigned char *bytes, size_t n)
{
    f->heard = false;
    yajl_status status = n > 0 ? yajl_parse(f->yajl, bytes, n) : yajl_complete_parse(f->yajl);
    if (status == yajl_status_client_canceled)
        return MAQ_JSON_STOPPED;
    f->quiet = f->heard ? 0 : f->quiet + n;
    if (f->quiet > MAQ_JSON_LONGEST_TEXT)
        return MAQ_JSON_ENDLESS;
    if (status != yajl_status_ok && n == 0)
        return MAQ_JSON_CUT_OFF;
    if (status != yajl_status_ok) {
        keep_why(f, bytes, n);
        return MAQ_JSON_FAULTY;
    }
    f->out->at += n;
    return MAQ_JSON_WHOLE;
}

enum maq_json_end maq_json_stream_bytes(struct maq_json_stream *out, const void *bytes, size_t n,
                                        const yajl_callbacks *callbacks, void *user)
{
    struct feed f;
    enum maq_json_end how = begin(&f, out, callbacks, user);
    const unsigned char *at = bytes;
    while (how == MAQ_JSON_WHOLE && n > 0) { /* in blocks, as from a file: the limit is one of both */
        size_t block = n < BLOCK ? n : BLOCK;
        how = feed(&f, at, block);
        at += block;
        n -= block;
    }
    return end(&f, how == MAQ_JSON_WHOLE ? feed(&f, NULL, 0) : how);
}

enum maq_json_end maq_json_stream_file(struct maq_json_stream *out, const char *path, const yajl_callbacks *callbacks,
                                       void *user)
{
    struct feed f;
    gzFile file = gzopen(path, "rb"); /* reads plain files too */
    enum maq_json_end how = begin(&f, out, callbacks, user);
    if (!file)
        return end(&f, MAQ_JSON_NOT_OPENED);
    unsigned char *block = maq__malloc(BLOCK);
    if (!block)
        how = MAQ_JSON_NO_MEMORY;
    for (bool more = true; how == MAQ_JSON_WHOLE && more;) {
        int n = gzread(file, block, BLOCK);
        how = n < 0 ? MAQ_JSON_UNREADABLE : feed(&f, block, (size_t)n);
        more = n > 0;
    }
    free(block);
    (void)gzclose_r(file);
    return end(&f, how);
}
