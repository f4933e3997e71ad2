/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.h - what `maquette ui` answers, without a socket: from a request to its response.
 *
 *   GET    /               the page. It has no data in it, and needs no token
 *   GET    /api/session    commands, their options, names of the catalogue, the job to begin with
 *   POST   /api/answer     a command with its job: the report as a page, settings, findings. At once: for `train`
 *   POST   /api/runs       the same for what takes long (`plan`, `serve`): begins it; one at a time
 *   GET    /api/runs/ID    how far it is, and at its end the answer
 *   DELETE /api/runs/ID    asks for an end: a search ends with the best so far
 *   POST   /api/job        the same question: its job as a file, with the options laid over it
 *   POST   /api/diff       two documents: what changed, as a page
 *
 * Every /api/ request needs the token of this server in `Authorization: Bearer`. A request is only answered under the name of this server
 * (Host is 127.0.0.1 or localhost with its port: a name that somebody lets point here is refused), and only to its own page (Origin, where
 * a browser sends one, is the same; Sec-Fetch-Site says same-origin). What a request may make the program do is to compute and to read
 * what a job names: options that write a file or start a program are not taken.
 *
 * Commands are called as any program calls them (cli/call.h), so an answer is that of the command line. Any number of threads may ask.
 */
#ifndef MAQ_CLI_UI_HANDLER_H
#define MAQ_CLI_UI_HANDLER_H

#include "cli/call.h"
#include "cli/ui/http_message.h"

#define UI_BODY_MAX ((uint64_t)4 << 20)

typedef enum maq_status ui_call(struct cli_called **out, const char *const *words, size_t n_words,
                                const struct cli_call_opts *opts, struct maq_diag *diag);

struct ui_opts {
    uint16_t port;
    const char *token;    /* NUL-terminated */
    const char *file;     /* name of the job to begin with; NULL = an example */
    const char *document; /* and its text */
    ui_call *call, *open; /* NULL = cli_call(), cli_call_open() */
};

struct ui;

/* Copies what it is given. NULL: out of memory. */
struct ui *ui_new(const struct ui_opts *opts);
/* Asks the run under way to end, and waits until it has. */
void ui_free(struct ui *ui);
/* The port, where the server chose it: before the first request. */
void ui_set_port(struct ui *ui, uint16_t port);

/*
 * Whether a request may be answered, by all but its body, which will have `length` bytes. False: *out says why not.
 * ui_handle() asks this again; a server asks it before it reads the body.
 */
bool ui_admit(struct ui *ui, struct ui_response *out, const struct ui_request *request, uint64_t length);
void ui_handle(struct ui *ui, struct ui_response *out, const struct ui_request *request);

#endif
