/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of this room share: the state of a server, and the parts that a response is made by. */
#ifndef MAQ_CLI_UI_INTERNAL_H
#define MAQ_CLI_UI_INTERNAL_H

#include <jansson.h>

#include "cli/ui/handler.h"

struct ui_runs;

struct ui {
    uint16_t port;
    char *token, *file, *document;
    ui_call *call, *open;
    struct ui_runs *runs;
    char policy[512]; /* Content-Security-Policy of the page */
};

/* ---- messages. access.c ---- */

bool ui_is(struct maq_str text, const char *word);
/* The number of an address "/api/runs/12" behind `prefix`; 0: it is none. */
uint64_t ui_number_behind(struct maq_str path, const char *prefix);
/* A response with the fields that all have; `body` is taken. NULL counts as out of memory. */
void ui_respond(struct ui_response *out, unsigned status, const char *type, char *body);
void ui_respond_json(struct ui_response *out, unsigned status, json_t *value); /* taken */
/* {"message": ...} */
void ui_refuse(struct ui_response *out, unsigned status, const char *message);

/* ---- a question: a command, its job, its options. command.c ---- */

struct ui_command {
    const char *command;        /* static */
    char *document;             /* NULL where it is blank */
    const char *words[256 + 2]; /* of the command line; "-" stands for the document */
    size_t n_words;
    char *owned[256];
    size_t n_owned;
};

/* From a body. False: `why` says what is wrong with it. */
bool ui_command_read(struct ui_command *q, struct maq_str body, char why[256]);
void ui_command_free(struct ui_command *q);
/* As a person would write it, with `file` for the document; owned by the caller. NULL: out of memory. */
char *ui_command_line(const struct ui_command *q, const char *file);

/* The commands that may be asked, and whether one of them runs aside. */
extern const char *const ui_commands[]; /* NULL-terminated */
bool ui_takes_long(const char *command);
/* Whether an option may be given: none that writes a file, starts a program or says where a report goes. */
bool ui_may_be_given(const struct cli_call_option *option);

/* ---- answers. answer.c ---- */

/* Calls the command. The answer as JSON, owned by the caller; NULL: out of memory. That of a wrong job is what is wrong with it. */
char *ui_answer(const struct ui *ui, const struct ui_command *q, const struct cli_call_opts *opts);
/* The job of a question as a file, with its options laid over it; of serve there is none, whose options are on the command line alone. */
void ui_job_file(struct ui_response *out, const struct ui *ui, const struct ui_command *q);
/* What changed from one document to another. */
void ui_diff(struct ui_response *out, struct maq_str body);

/* ---- session.c, page.c ---- */

json_t *ui_session(const struct ui *ui); /* NULL: out of memory */
char *ui_page(void);                     /* NULL: out of memory */
bool ui_page_policy(char *out, size_t size);

/* ---- runs. background_runs.c ---- */

struct ui_runs *ui_runs_new(void);
void ui_runs_free(struct ui_runs *runs);
/* Takes the question where it begins. */
void ui_run_begin(struct ui *ui, struct ui_response *out, struct ui_command *q);
void ui_run_look(struct ui *ui, struct ui_response *out, uint64_t id);
void ui_run_stop(struct ui *ui, struct ui_response *out, uint64_t id);

#endif
