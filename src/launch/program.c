/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the keeper process, and maquette's side of it: see program.h.
 *
 * The keeper is forked off a process that may have threads, so until its end it makes system calls and nothing else; arguments,
 * environment and the path of the program are ready before the fork.
 */
#include "launch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "launch/codes.h"
#include "launch/private_folder.h"

#define PAUSE_MS 10 /* between attempts to kill what is left */
#define KEPT 100    /* the keeper's first descriptor of its own */

/* ---- the program's own process ---- */

/* Reading from a terminal stops a process that is not in the foreground; a trainer has nothing to ask. */
static void look_away_from_terminal(void)
{
    int null;
    if (isatty(STDIN_FILENO) && (null = open("/dev/null", O_RDONLY)) >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
}

static bool redirect(const char *output)
{
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    bool fine = fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    if (fd > STDERR_FILENO)
        close(fd);
    return fine;
}

_Noreturn static void become(const struct maq_child_opts *o, int held, int tell)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    look_away_from_terminal();
    if (held > 0 && dup2(held, MAQ_CHILD_SOCKET) < 0)
        _exit(127);
    if (!o->output || redirect(o->output))
        execve(o->path, o->arguments, o->environment);
    int error = errno;
    (void)!write(tell, &error, sizeof error);
    _exit(127);
}

/* ---- the keeper ---- */

struct keeper {
    const struct maq_child_opts *opts;
    int life, report, socket, children; /* socket: the program's, 0 = none; children: readable when one ended */
    pid_t program;
    bool orphaned, ended; /* maquette is gone; the program is */
    struct maq_child_end end;
};

/* The program and what it started, whatever group that is in: children of the keeper, to whom all orphans fall. */
static void kill_all(const struct keeper *k)
{
    char list[4096];
    kill(-k->program, SIGKILL);
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, list, sizeof list - 1) : 0;
    if (fd >= 0)
        close(fd);
    pid_t pid = 0;
    for (ssize_t i = 0; i < n; i++) {
        if (list[i] >= '0' && list[i] <= '9') {
            pid = pid * 10 + (list[i] - '0');
        } else {
            if (pid > 0)
                kill(pid, SIGKILL);
            pid = 0;
        }
    }
}

static void count(struct maq_child_end *end, const struct rusage *u)
{
    int64_t peak = (int64_t)u->ru_maxrss * 1024;
    end->peak_bytes = peak > end->peak_bytes ? peak : end->peak_bytes;
    end->cpu_us +=
        (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 + u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

/* Takes in what has ended; false when nothing is left. */
static bool reap(struct keeper *k)
{
    struct rusage usage;
    int status;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        count(&k->end, &usage);
        if (pid == k->program) {
            k->end.status = status;
            k->ended = true;
        }
    }
    return pid == 0 || errno != ECHILD;
}

/* Reads signals from maquette; the end of the pipe is an order to end. */
static void hear(struct keeper *k)
{
    unsigned char number;
    ssize_t n = read(k->life, &number, 1);
    if (n == 1)
        kill(-k->program, number);
    else if (n == 0 || errno != EINTR)
        k->orphaned = true;
}

static void keep(struct keeper *k)
{
    struct signalfd_siginfo told;
    while (reap(k)) {
        bool killing = k->ended || k->orphaned;
        if (killing)
            kill_all(k);
        struct pollfd fds[] = {{k->orphaned ? -1 : k->life, POLLIN, 0}, {k->children, POLLIN, 0}};
        poll(fds, 2, killing ? PAUSE_MS : -1);
        if (fds[0].revents)
            hear(k);
        if (fds[1].revents)
            (void)!read(k->children, &told, sizeof told);
    }
}

/* Starts the program: errno of what went wrong. */
static int launch(struct keeper *k)
{
    int tell[2], error = 0;
    if (pipe2(tell, O_CLOEXEC) != 0)
        return errno;
    k->program = fork();
    if (k->program == 0)
        become(k->opts, k->socket, tell[1]);
    if (k->socket > 0)
        close(k->socket);
    error = k->program < 0 ? errno : 0;
    close(tell[1]);
    if (k->program > 0) {
        setpgid(k->program, k->program);
        while (read(tell[0], &error, sizeof error) < 0 && errno == EINTR)
            continue;
    }
    close(tell[0]);
    return error;
}

/* Only our own ends stay open, as the three descriptors from KEPT on: sockets and other programs' pipes are not the keeper's to hold. */
static void keep_ends(struct keeper *k)
{
    int from[] = {k->life, k->report, k->socket}, high[MAQ_COUNT(from)];
    for (size_t i = 0; i < MAQ_COUNT(from); i++) /* above all that dup2() writes to */
        high[i] = from[i] > 0 ? fcntl(from[i], F_DUPFD_CLOEXEC, KEPT + (int)MAQ_COUNT(from)) : -1;
    for (size_t i = 0; i < MAQ_COUNT(from); i++)
        if (high[i] >= 0)
            dup3(high[i], KEPT + (int)i, O_CLOEXEC);
    close_range(3, KEPT - 1, 0);
    close_range(KEPT + (unsigned)MAQ_COUNT(from), ~0u, 0);
    k->life = KEPT;
    k->report = KEPT + 1;
    k->socket = k->socket > 0 ? KEPT + 2 : 0;
}

_Noreturn static void run_keeper(const struct maq_child_opts *opts, int life, int report)
{
    struct keeper k = {.opts = opts, .life = life, .report = report, .socket = opts->socket};
    sigset_t all, child;
    setpgid(0, 0); /* a Ctrl-C in the terminal is maquette's to handle */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    keep_ends(&k);
    k.children = signalfd(-1, &child, SFD_CLOEXEC);
    k.end.error = launch(&k);
    if (k.program > 0)
        keep(&k);
    (void)!write(k.report, &k.end, sizeof k.end);
    if (k.orphaned && opts->folder)
        maq_folder_remove(opts->folder);
    _exit(0);
}

/* ---- maquette's side ---- */

static bool runs(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

enum maq_status maq_child_find(const char **path, const char *name, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_str rest = maq_str_of(getenv("PATH")), folder;
    if (strchr(name, '/')) {
        *path = maq_arena_strdup(arena, maq_str_of(name));
        if (!*path)
            return MAQ_NO_MEMORY;
        if (runs(name))
            return MAQ_OK;
    }
    while (!strchr(name, '/') && rest.ptr) {
        rest = maq_str_split(rest, ':', &folder);
        char *at = maq_arena_printf(arena, "%.*s/%s", folder.len > 0 ? (int)folder.len : 1,
                                    folder.len > 0 ? folder.ptr : ".", name);
        if (!at)
            return MAQ_NO_MEMORY;
        if (runs(at)) {
            *path = at;
            return MAQ_OK;
        }
    }
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0},
                         "give the program and its arguments after `--`", "there is no program '%.200s'", name);
}

enum maq_status maq_child_start(struct maq_child *p, const struct maq_child_opts *opts, struct maq_diag *diag)
{
    int life[2], report[2];
    *p = (struct maq_child){.life = -1, .report = -1};
    if (pipe2(life, O_CLOEXEC) == 0) {
        if (pipe2(report, O_CLOEXEC) == 0) {
            p->keeper = fork();
            if (p->keeper == 0)
                run_keeper(opts, life[0], report[1]);
            close(report[1]);
            close(life[0]);
            p->life = life[1];
            p->report = report[0];
            if (p->keeper > 0)
                return MAQ_OK;
            close(report[0]);
        } else {
            close(life[0]);
        }
        close(life[1]);
    }
    int error = errno;
    *p = (struct maq_child){.life = -1, .report = -1};
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_PROGRAM, (struct maq_span){0}, NULL, "cannot start '%.200s': %s",
                         opts->path, strerror(error));
}

void maq_child_signal(struct maq_child *p, int number)
{
    unsigned char byte = (unsigned char)number;
    if (p->life >= 0)
        (void)!write(p->life, &byte, 1);
}

bool maq_child_finish(struct maq_child *p, struct maq_child_end *end)
{
    ssize_t n;
    while ((n = read(p->report, end, sizeof *end)) < 0 && errno == EINTR)
        continue;
    if (p->life >= 0)
        close(p->life);
    close(p->report);
    while (p->keeper > 0 && waitpid(p->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    *p = (struct maq_child){.life = -1, .report = -1};
    return n == (ssize_t)sizeof *end;
}

void maq_child_end(struct maq_child *p)
{
    struct maq_child_end end;
    if (p->report < 0)
        return;
    maq_child_signal(p, SIGKILL);
    (void)maq_child_finish(p, &end);
}
