/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - the border to the module that speaks HTTP (http_microhttpd.c), so that no other command loads what it links.
 *
 * The module listens on the loopback interface alone. It parses requests, refuses those that are malformed, and gives the others to the
 * two functions below from several threads at once.
 */
#ifndef MAQ_CLI_UI_HTTP_H
#define MAQ_CLI_UI_HTTP_H

#include "cli/ui/http_message.h"

#define UI_HTTP_ABI 1u
#define UI_HTTP_ENTRY "maq_ui_http_open"

struct ui_http_opts {
    uint16_t port; /* 0: any that is free */
    uint32_t threads, connections;
    uint32_t idle_s; /* a connection on which nothing comes for so long is closed */
    /* When the headers are there: true: go on and read `length` bytes of body; false: `out` is the response, and the body is not read. */
    bool (*admit)(void *user, struct ui_response *out, const struct ui_request *request, uint64_t length);
    void (*handle)(void *user, struct ui_response *out, const struct ui_request *request);
    uint64_t body_max; /* a body without a length may not be longer */
    void *user;
};

struct ui_http {
    uint32_t abi;
    uint16_t port; /* that it listens on */
    void *server;
    void (*close)(struct ui_http *http); /* ends connections, waits for requests under way */
};

/* 0, or an errno. */
typedef int ui_http_open_fn(struct ui_http *out, const struct ui_http_opts *opts);

#endif
