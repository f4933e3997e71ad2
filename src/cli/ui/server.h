/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the server of `maquette ui`: from its start to Ctrl-C. */
#ifndef MAQ_CLI_UI_SERVER_H
#define MAQ_CLI_UI_SERVER_H

#include "cli/cli.h"

struct ui_server_opts {
    uint16_t port;        /* 0: any */
    bool browser;         /* opens the page */
    const char *file;     /* the job to begin with; NULL = an example */
    const char *document; /* its text */
};

/* Prints the address, serves until a signal asks for an end. */
enum maq_status ui_serve(struct cli *cli, const struct ui_server_opts *opts);

#endif
