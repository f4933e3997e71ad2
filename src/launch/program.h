/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a program together with all processes that it starts: started, signalled and ended as one.
 *
 * Between maquette and the program is a keeper, a process forked off maquette. It adopts the processes that the program leaves
 * behind (PR_SET_CHILD_SUBREAPER, which a library must not set on its caller's process), waits for all of it, and reports once.
 * When maquette dies, however it dies, a pipe that it held is closed; the keeper then kills everything and removes the folder of
 * the run.
 */
#ifndef MAQ_LAUNCH_PROGRAM_H
#define MAQ_LAUNCH_PROGRAM_H

#include <sys/types.h>

#include "base/arena.h"

#define MAQ_CHILD_SOCKET 3 /* the program's descriptor of maq_child_opts.socket */

struct maq_child_opts {
    const char *path;       /* as maq_child_find() gives it */
    char *const *arguments; /* NULL-terminated */
    char *const *environment;
    const char *folder; /* removed by the keeper should maquette die first; NULL = none */
    const char *output; /* file for standard output and error; NULL = maquette's own */
    int socket;         /* a socket for the program, as MAQ_CHILD_SOCKET; 0 = none */
};

/* The report of the keeper. */
struct maq_child_end {
    int error;          /* errno of what kept it from starting; 0 = it ran */
    int status;         /* as of waitpid() */
    int64_t peak_bytes; /* resident memory of the largest process */
    int64_t cpu_us;     /* of all processes */
};

struct maq_child {
    pid_t keeper; /* 0: it is no child of this process (fork_server.h) */
    int life;     /* we write signals to it; closing it ends the program */
    int report;   /* the keeper writes a maq_child_end to it; -1: there is no program */
};

/* The file that a command's name stands for, by PATH; in `arena`. MAQ_BAD_INPUT when there is none. */
enum maq_status maq_child_find(const char **path, const char *name, struct maq_arena *arena, struct maq_diag *diag);

enum maq_status maq_child_start(struct maq_child *p, const struct maq_child_opts *opts, struct maq_diag *diag);
/* Sends a signal to its process group. */
void maq_child_signal(struct maq_child *p, int number);
/* Takes the report, once p->report is readable; false when the keeper was killed. The program is gone afterwards. */
bool maq_child_finish(struct maq_child *p, struct maq_child_end *end);
/* Kills what still runs and waits for it. Nothing when it is gone. */
void maq_child_end(struct maq_child *p);

#endif
