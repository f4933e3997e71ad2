/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - a child process that answers lines with lines: started, sent requests with a time limit, ended together
 * with everything it started.
 *
 * The program runs in a process group of its own, so that a Ctrl-C in the terminal is maquette's to handle and its
 * children can be ended with it. Its standard input is a socket: writing to a program that has died is an error code,
 * not a SIGPIPE.
 */
#ifndef MAQ_PLANNER_EXTERNAL_PROCESS_H
#define MAQ_PLANNER_EXTERNAL_PROCESS_H

#include <signal.h>
#include <sys/types.h>

#include "base/str.h"

#define MAQ_PROCESS_LINE (64u << 20) /* longest answer */
#define MAQ_PROCESS_WORDS 160u       /* bytes kept of the end of its standard error */

struct maq_process {
    pid_t pid;                         /* 0: not running */
    int to, from, errors;              /* -1: closed */
    struct maq_buf in;                 /* received, not yet taken */
    size_t seen;                       /* bytes of `in` already searched for a line break */
    char words[MAQ_PROCESS_WORDS + 1]; /* the end of its standard error */
};

enum maq_process_outcome {
    MAQ_PROCESS_ANSWERED,
    MAQ_PROCESS_DIED,
    MAQ_PROCESS_SILENT,
    MAQ_PROCESS_TOO_LONG,
    MAQ_PROCESS_STOPPED,
    MAQ_PROCESS_NO_MEMORY
};

/* false: it cannot be started, `error` is the errno. */
bool maq_process_start(struct maq_process *p, const char *path, int *error);

/* Sends text (with its line break) and waits for a line: *line, without its break, is owned by the caller (free()). */
enum maq_process_outcome maq_process_request(struct maq_process *p, char **line, const char *text, double limit_s,
                                             const volatile sig_atomic_t *stop);

/*
 * Closes its input, gives it grace_s seconds to end by itself, then kills its process group. `how`: what it ended with, as text:
 * "status 3", "signal 11".
 */
void maq_process_end(struct maq_process *p, double grace_s, char how[32]);

#endif
