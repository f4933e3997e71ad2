/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - posix_spawn() in a process group of its own, poll() with a deadline and a look at the stop flag every
 * PAUSE_MS, and the end of the group. See process.h.
 */
#include "planner/external/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define PAUSE_MS 50 /* between looks at `stop` */

extern char **environ;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- start ---- */

/* Both ends of the program's three streams: this side's and the program's. */
struct ends {
    int ours[3], its[3];
};

static bool open_ends(struct ends *e)
{
    int pair[2];
    for (int i = 0; i < 3; i++)
        e->ours[i] = e->its[i] = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    e->ours[0] = pair[0];
    e->its[0] = pair[1];
    for (int i = 1; i < 3; i++) {
        if (pipe2(pair, O_CLOEXEC) != 0)
            return false;
        e->ours[i] = pair[0];
        e->its[i] = pair[1];
    }
    return true;
}

static int spawn(pid_t *pid, const char *path, const struct ends *e)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    size_t n = strlen(path);
    char copy[4096];
    if (n >= sizeof copy)
        return ENAMETOOLONG;
    memcpy(copy, path, n + 1);
    char *arguments[] = {copy, NULL};
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        sigemptyset(&none);
        sigemptyset(&standard);
        sigaddset(&standard, SIGINT);
        sigaddset(&standard, SIGPIPE);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &standard);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        for (int i = 0; i < 3 && error == 0; i++)
            error = posix_spawn_file_actions_adddup2(&actions, e->its[i], i);
        if (error == 0)
            error = posix_spawnp(pid, path, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool maq_process_start(struct maq_process *p, const char *path, int *error)
{
    struct ends e;
    *p = (struct maq_process){.to = -1, .from = -1, .errors = -1};
    maq_buf_init(&p->in, MAQ_PROCESS_LINE);
    *error = open_ends(&e) ? spawn(&p->pid, path, &e) : errno;
    for (int i = 0; i < 3; i++)
        close_fd(&e.its[i]);
    if (*error != 0) {
        for (int i = 0; i < 3; i++)
            close_fd(&e.ours[i]);
        p->pid = 0;
        return false;
    }
    p->to = e.ours[0];
    p->from = e.ours[1];
    p->errors = e.ours[2];
    for (int i = 0; i < 3; i++)
        fcntl(e.ours[i], F_SETFL, fcntl(e.ours[i], F_GETFL) | O_NONBLOCK);
    return true;
}

/* ---- lines ---- */

/* Reads standard error, of which only the end is kept. */
static void hear(struct maq_process *p)
{
    char chunk[1024];
    ssize_t n;
    while (p->errors >= 0 && (n = read(p->errors, chunk, sizeof chunk)) != 0) {
        if (n < 0) {
            if (errno != EINTR)
                return;
            continue;
        }
        size_t add = (size_t)n < MAQ_PROCESS_WORDS ? (size_t)n : MAQ_PROCESS_WORDS, has = strlen(p->words),
               keep = has + add > MAQ_PROCESS_WORDS ? MAQ_PROCESS_WORDS - add : has;
        memmove(p->words, p->words + has - keep, keep);
        memcpy(p->words + keep, chunk + (size_t)n - add, add);
        p->words[keep + add] = '\0';
        for (size_t i = 0; i < keep + add; i++) /* one line of a message: no control characters, no half of one */
            p->words[i] = p->words[i] >= ' ' && p->words[i] < 127 ? p->words[i] : ' ';
    }
    close_fd(&p->errors);
}

/* Reads what has arrived on standard output; false: it is closed. */
static bool take_in(struct maq_process *p)
{
    char chunk[65536];
    for (;;) {
        ssize_t n = read(p->from, chunk, sizeof chunk);
        if (n > 0)
            maq_buf_add(&p->in, chunk, (size_t)n);
        else if (n == 0)
            return false;
        else if (errno != EINTR)
            return errno == EAGAIN;
        if (p->in.failed)
            return true;
    }
}

/* The first line of what has come, taken out of it. */
static bool take_line(struct maq_process *p, char **line)
{
    char *end = p->in.len > p->seen ? memchr(p->in.ptr + p->seen, '\n', p->in.len - p->seen) : NULL;
    struct maq_buf rest, whole = p->in;
    p->seen = end ? 0 : p->in.len;
    if (!end)
        return false;
    maq_buf_init(&rest, MAQ_PROCESS_LINE);
    maq_buf_add(&rest, end + 1, whole.len - (size_t)(end + 1 - whole.ptr));
    *end = '\0';
    *line = whole.ptr;
    p->in = rest;
    return true;
}

/* Sends as much as the socket takes; false: the other end is closed. */
static bool give(struct maq_process *p, const char **text, size_t *left)
{
    while (*left > 0) {
        ssize_t n = send(p->to, *text, *left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        *text += n;
        *left -= (size_t)n;
    }
    return true;
}

enum maq_process_outcome maq_process_request(struct maq_process *p, char **line, const char *text, double limit_s,
                                             const volatile sig_atomic_t *stop)
{
    double until = now_s() + limit_s;
    size_t left = strlen(text);
    for (;;) {
        bool reads = give(p, &text, &left), writes = take_in(p);
        hear(p);
        if (left == 0 && take_line(p, line))
            return p->in.failed ? MAQ_PROCESS_NO_MEMORY : MAQ_PROCESS_ANSWERED;
        if (p->in.failed)
            return p->in.len >= MAQ_PROCESS_LINE / 2 ? MAQ_PROCESS_TOO_LONG : MAQ_PROCESS_NO_MEMORY;
        if (!writes || !reads)
            return MAQ_PROCESS_DIED;
        double wait = until - now_s();
        if (wait <= 0)
            return MAQ_PROCESS_SILENT;
        if (stop && *stop)
            return MAQ_PROCESS_STOPPED;
        struct pollfd fds[] = {{p->from, POLLIN, 0}, {p->errors, POLLIN, 0}, {left > 0 ? p->to : -1, POLLOUT, 0}};
        poll(fds, 3, wait * 1000 < PAUSE_MS ? (int)(wait * 1000) + 1 : PAUSE_MS);
    }
}

/* ---- end ---- */

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

void maq_process_end(struct maq_process *p, double grace_s, char how[32])
{
    int status = 0;
    maq__snprintf(how, 32, "an unknown status");
    if (p->pid <= 0)
        return;
    close_fd(&p->to);
    for (double until = now_s() + grace_s; !has_ended(p->pid) && now_s() < until;) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    hear(p);
    /* before waitpid(): until then its process id cannot be reused */
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status))
        maq__snprintf(how, 32, "status %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        maq__snprintf(how, 32, "signal %d", WTERMSIG(status));
    close_fd(&p->from);
    close_fd(&p->errors);
    maq_buf_fini(&p->in);
    p->pid = 0;
}
