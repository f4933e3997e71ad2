/* SPDX-License-Identifier: Apache-2.0 */
/* http_message.h - a request and its response, whoever carries them: a server (http.h), a test, a fuzzer. */
#ifndef MAQ_CLI_UI_HTTP_MESSAGE_H
#define MAQ_CLI_UI_HTTP_MESSAGE_H

#include "maquette/diag.h"

struct ui_header {
    struct maq_str name, value;
};

/* As it came; nothing in it has been looked at. Borrowed. */
struct ui_request {
    struct maq_str method, path; /* path: without what stands behind a '?' */
    const struct ui_header *headers;
    size_t n_headers;
    struct maq_str body;
};

#define UI_FIELDS_MAX 12

struct ui_response {
    unsigned status; /* of HTTP */
    char *body;      /* the receiver's: free(); NULL where there is none */
    size_t len;
    struct {
        const char *name, *value; /* live as long as the handler */
    } fields[UI_FIELDS_MAX];
    size_t n_fields;
};

#endif
