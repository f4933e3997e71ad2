/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_server.h - a Python program that is started once for many ranks: it runs up to the first thing in which ranks differ, and every
 * rank is forked off from there. Most of what a short run of a training program takes is the import of its libraries.
 *
 * What a rank does is what it would have done by itself, since before that place nothing says which rank it is (fork_server.py has the
 * rules). Where the program has threads there, has used the device, or ends before, there is no server: ranks start by themselves.
 *
 * A program is one for a server where its command line is `python` with options that fork_server.c knows, and a script, -m or -c.
 */
#ifndef MAQ_LAUNCH_FORK_SERVER_H
#define MAQ_LAUNCH_FORK_SERVER_H

#include "launch/workspace.h"

struct maq_fork_server {
    bool tried, runs;
    int requests;      /* our end of its socket; -1 = none */
    const char *names; /* variables in which ranks differ, with commas between; in the workspace's arena */
    struct maq_child program;
};
#define MAQ_FORK_SERVER_NONE                                                                                           \
    (struct maq_fork_server)                                                                                           \
    {                                                                                                                  \
        .requests = -1, .program = {.life = -1, .report = -1 }                                                         \
    }

/* Starts it, the first time that it is called, where the workspace's program is one for a server. */
enum maq_status maq_fork_server_open(struct maq_fork_server *s, struct maq_workspace *workspace, struct maq_diag *diag);
/* Ends it, and all that it forked. */
void maq_fork_server_close(struct maq_fork_server *s);
/*
 * Asks it for a process, which begins when the server's program is where ranks differ; opts as of maq_child_start(), with an output. false:
 * there is no server. A server that ends before it has forked the process closes p->report without a word.
 */
bool maq_fork_server_child(struct maq_fork_server *s, struct maq_child *p, const struct maq_child_opts *opts);

#endif
