/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_microhttpd.c - HTTP by GNU libmicrohttpd (LGPL-2.1-or-later), as a module of its own: see http.h.
 *
 * It listens on 127.0.0.1, parses strictly, limits connections, their memory and their patience. Bodies are gathered up to what the
 * handler lets through.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ui/http.h"

#define HEADERS_MAX 64u
#define CONNECTION_BYTES ((size_t)64 * 1024) /* for the line and the headers of a request */

struct server {
    struct MHD_Daemon *daemon;
    struct ui_http_opts opts;
};

/* A request under way. */
struct exchange {
    char *body;
    size_t len, size;
};

struct headers {
    struct ui_header at[HEADERS_MAX];
    size_t n;
};

/* Of more than HEADERS_MAX the count alone goes on. */
static enum MHD_Result note_header(void *user, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                   const char *value, size_t value_len)
{
    struct headers *h = user;
    (void)kind;
    if (h->n < HEADERS_MAX)
        h->at[h->n] = (struct ui_header){{name, name_len}, {value ? value : "", value ? value_len : 0}};
    h->n++;
    return MHD_YES;
}

static enum MHD_Result send_response(struct MHD_Connection *connection, struct ui_response *out)
{
    static char none[1];
    struct MHD_Response *response = MHD_create_response_from_buffer(
        out->len, out->body ? out->body : none, out->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(out->body);
        return MHD_NO;
    }
    for (size_t i = 0; i < out->n_fields; i++)
        (void)MHD_add_response_header(response, out->fields[i].name, out->fields[i].value);
    enum MHD_Result sent = MHD_queue_response(connection, out->status, response);
    MHD_destroy_response(response);
    return sent;
}

/* What the request says of its body's length; UINT64_MAX where that is no number. */
static uint64_t length_of(const struct headers *h)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct maq_str name = h->at[i].name, value = h->at[i].value;
        if (name.len != 14 || strncasecmp(name.ptr, "Content-Length", 14) != 0)
            continue;
        uint64_t n = 0;
        for (size_t k = 0; k < value.len; k++) {
            if (value.ptr[k] < '0' || value.ptr[k] > '9' || n > UINT64_MAX / 10 - 10)
                return UINT64_MAX;
            n = n * 10 + (uint64_t)(value.ptr[k] - '0');
        }
        return n;
    }
    return 0;
}

static bool add(struct exchange *e, const char *data, size_t n)
{
    if (e->len + n > e->size) {
        size_t size = e->size * 2 > e->len + n ? e->size * 2 : e->len + n;
        char *grown = realloc(e->body, size);
        if (!grown)
            return false;
        e->body = grown;
        e->size = size;
    }
    memcpy(e->body + e->len, data, n);
    e->len += n;
    return true;
}

/* Called when the headers are there, then for each part of the body, and once more at its end. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
    struct server *s = user;
    struct exchange *e = *state;
    struct headers headers = {.n = 0};
    (void)version;
    if (e && *size > 0) {
        if (e->len + *size > s->opts.body_max || !add(e, data, *size))
            return MHD_NO; /* a body without a length that has no end: the connection is closed */
        *size = 0;
        return MHD_YES;
    }
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, note_header, &headers);
    struct ui_response out = {.status = 0};
    struct ui_request request = {.method = {method, strlen(method)},
                                 .path = {url, strlen(url)},
                                 .headers = headers.at,
                                 .n_headers = headers.n < HEADERS_MAX ? headers.n : HEADERS_MAX};
    if (headers.n > HEADERS_MAX)
        return MHD_NO;
    if (!e) {
        if (!s->opts.admit(s->opts.user, &out, &request, length_of(&headers)))
            return send_response(connection, &out);
        *state = calloc(1, sizeof *e);
        return *state ? MHD_YES : MHD_NO;
    }
    request.body = (struct maq_str){e->body, e->len};
    s->opts.handle(s->opts.user, &out, &request);
    return send_response(connection, &out);
}

static void on_end(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode how)
{
    struct exchange *e = *state;
    (void)user, (void)connection, (void)how;
    if (e)
        free(e->body);
    free(e);
    *state = NULL;
}

/* An address stands for itself: in one that is decoded "%00" would be its end. */
static size_t leave(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
}

static void close_server(struct ui_http *http)
{
    struct server *s = http->server;
    MHD_stop_daemon(s->daemon);
    free(s);
    http->server = NULL;
}

__attribute__((visibility("default"))) int maq_ui_http_open(struct ui_http *out, const struct ui_http_opts *opts);

int maq_ui_http_open(struct ui_http *out, const struct ui_http_opts *opts)
{
    const struct sockaddr_in here = {
        .sin_family = AF_INET, .sin_port = htons(opts->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct server *s = calloc(1, sizeof *s);
    if (!s)
        return ENOMEM;
    s->opts = *opts;
    errno = 0;
    s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, opts->port, NULL, NULL, on_request, s,
                                 MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&here, MHD_OPTION_THREAD_POOL_SIZE,
                                 opts->threads, MHD_OPTION_CONNECTION_LIMIT, opts->connections,
                                 MHD_OPTION_CONNECTION_TIMEOUT, opts->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, leave,
                                 NULL, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
    const int error = errno;
    const union MHD_DaemonInfo *info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) {
        if (s->daemon)
            MHD_stop_daemon(s->daemon);
        free(s);
        return error > 0 ? error : EIO;
    }
    *out = (struct ui_http){.abi = UI_HTTP_ABI, .port = info->port, .server = s, .close = close_server};
    return 0;
}
