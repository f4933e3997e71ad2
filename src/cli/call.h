/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - commands as functions, for programs that link this library: the Python package is one.
 *
 * The words are those of the command line, read by the same tables. Nothing is printed and no signal is caught; a report comes back in
 * both of its forms, and with it the results that it was made of. What is wrong is said in `diag`. Calls do not know each other: any
 * number of threads may make them.
 */
#ifndef MAQ_CLI_CALL_H
#define MAQ_CLI_CALL_H

#include <signal.h>

#include "maquette/maquette.h"

/* The line that a terminal would show, ten times a second at most, by the thread that calls; "" when it is over. */
typedef void cli_call_progress(void *user, const char *line);

struct cli_call_opts {
    const char *document;              /* a job that `-` stands for, NUL-terminated; NULL = standard input */
    const volatile sig_atomic_t *stop; /* not 0: a search ends with the best so far; NULL = never */
    uint32_t columns;                  /* width of the text; 0 = 100 */
    bool unicode;                      /* in the text */
    bool page;                         /* the report as HTML as well, where the command has --html */
    cli_call_progress *progress;       /* of what takes long; NULL = nobody looks */
    void *user;                        /* its argument */
};

struct cli_called {
    enum maq_status status; /* MAQ_OK; MAQ_NO: the answer is no, and the report says why */
    char *text, *json;      /* the report */
    char *page;             /* and as HTML; NULL = not asked for, or the command has none */
    /* What it was made of; NULL where the command has no such thing. */
    struct maq_loaded_job *job; /* open where it was searched */
    struct maq_train_result *train;
    struct maq_search_result *search;
    struct maq_serve_result *served;
    struct maq_request_set *requests;
    void *owner; /* internal */
};

/* *out is filled and owned by the caller (cli_called_free) where a report was written: MAQ_OK or MAQ_NO. Otherwise it is NULL, and the
 * status says why. */
enum maq_status cli_call(struct cli_called **out, const char *const *words, size_t n_words,
                         const struct cli_call_opts *opts, struct maq_diag *diag);
void cli_called_free(struct cli_called *called);

/* The open job that the words of a command describe, and nothing else: *out has only that. */
enum maq_status cli_call_open(struct cli_called **out, const char *const *words, size_t n_words,
                              const struct cli_call_opts *opts, struct maq_diag *diag);

/* An option of a command that may be called: its own, and behind them those of its job. */
struct cli_call_option {
    const char *name;         /* "tensor_model_parallel_size": no dashes in front; '-' and '_' are the same */
    const char *aliases;      /* "tp", between bars; "" = none */
    const char *value;        /* what stands for it in help; "" = it takes none, or its default is `otherwise` */
    const char *otherwise;    /* "" = said in `doc`, or there is none */
    const char *doc;          /* one line */
    const char *const *words; /* that it takes; NULL-terminated, NULL = not words */
    bool flag;                /* takes no value */
    bool list;                /* is path=value, and may be given again */
};
/* False: the command has no more, or may not be called. Strings are static. */
bool cli_call_option(struct cli_call_option *out, const char *command, size_t i);

#endif
