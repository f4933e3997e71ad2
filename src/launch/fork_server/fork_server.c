/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_server.c - maquette's side of a fork server: its command line, and requests for processes. See fork_server.h.
 *
 * A request is one message: the variables of the environment in which ranks differ, each ended by a zero, and three descriptors: the ends of the
 * two pipes of a struct maq_child that a keeper has, and the file for the process's output.
 */
#include "launch/fork_server/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "launch/codes.h"
#include "launch/fork_server/embedded_scripts.h"

#define MESSAGE_MOST 16384

/* ---- its command line ---- */

/* What `python` is asked to run. */
struct target {
    const char *kind, *what;
    size_t options;               /* words between the interpreter and it */
    const char *const *arguments; /* of it */
};

/* Options without a word of their own that change nothing of what is done here. */
static bool is_plain(const char *option)
{
    return option[0] == '-' && option[1] != '\0' && strspn(option + 1, "BEOSbdqsuv") == strlen(option + 1);
}

static bool is_python(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

/* false: it is not known what. */
static bool target_of(struct target *t, const char *const *arguments)
{
    size_t i = 1;
    if (!is_python(arguments[0]))
        return false;
    while (arguments[i]) {
        const char *word = arguments[i];
        if ((strcmp(word, "-X") == 0 || strcmp(word, "-W") == 0) && arguments[i + 1])
            i += 2;
        else if (is_plain(word))
            i++;
        else
            break;
    }
    const char *first = arguments[i];
    if (!first)
        return false;
    bool module = strcmp(first, "-m") == 0, code = strcmp(first, "-c") == 0;
    if ((first[0] == '-' && !module && !code) || ((module || code) && !arguments[i + 1]))
        return false;
    *t = (struct target){.kind = module ? "module"
                                 : code ? "code"
                                        : "script",
                         .what = arguments[i + (module || code)],
                         .options = i - 1,
                         .arguments = arguments + i + (module || code) + 1};
    return true;
}

/* The interpreter with its options, our script, and what that runs. */
static const char **command_of(const struct target *t, const char *const *program, const char *script, const char *log,
                               const char *names, struct maq_arena *arena)
{
    size_t n = 0, given = 0;
    while (t->arguments[given])
        given++;
    const char **words = MAQ_ARENA_NEW(arena, const char *, t->options + given + 7);
    if (!words)
        return NULL;
    for (size_t i = 0; i <= t->options; i++)
        words[n++] = program[i];
    words[n++] = script;
    words[n++] = log;
    words[n++] = names;
    words[n++] = t->kind;
    words[n++] = t->what;
    for (size_t i = 0; i <= given; i++)
        words[n++] = t->arguments[i];
    return words;
}

/* Whether a variable of the environment, NAME=VALUE, is one of `names`, with commas between. */
static bool is_of(const char *variable, const char *names)
{
    struct maq_str rest = maq_str_of(names), name;
    while (rest.ptr) {
        rest = maq_str_split(rest, ',', &name);
        if (strncmp(variable, name.ptr, name.len) == 0 && variable[name.len] == '=')
            return true;
    }
    return false;
}

/* The environment of all ranks: a rank's without that in which they differ, but for the card, which is the server's. */
static void keep_common(char **environment, const char *names)
{
    size_t kept = 0;
    for (size_t i = 0; environment[i]; i++)
        if (!is_of(environment[i], names) || is_of(environment[i], MAQ_RUN_CARD))
            environment[kept++] = environment[i];
    environment[kept] = NULL;
}

/* Writes the scripts into a folder of their own, so that they find each other and nothing else; *script: the one that is run. */
static enum maq_status write_scripts(const char **script, struct maq_workspace *workspace, struct maq_diag *diag)
{
    const char *folder = maq_arena_printf(&workspace->arena, "%s/fork_server", workspace->folder);
    *script = folder ? maq_arena_printf(&workspace->arena, "%s/fork_server.py", folder) : NULL;
    if (!*script)
        return maq_no_memory(diag, "a fork server");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL,
                             "cannot make the folder '%.200s': %s", folder, strerror(errno));
    for (const struct maq_embedded_text *t = maq__fork_server_script; t->name; t++) {
        const char *path = maq_arena_printf(&workspace->arena, "%s/%s", folder, t->name);
        if (!path)
            return maq_no_memory(diag, "a fork server");
        MAQ_TRY(maq_folder_write(path, t->text, strlen(t->text), diag));
    }
    return MAQ_OK;
}

static enum maq_status start(struct maq_fork_server *s, struct maq_workspace *workspace, const struct target *t,
                             struct maq_diag *diag)
{
    struct maq_arena *a = &workspace->arena;
    int ends[2];
    const char *card_path = maq_arena_printf(a, "%s/fork-server.card", workspace->folder),
               *log = maq_arena_printf(a, "%s/fork-server.log", workspace->folder), *script;
    s->names = maq_environment_own(a);
    if (!card_path || !log || !s->names)
        return maq_no_memory(diag, "a fork server");
    struct maq_run_card card = {.world = workspace->world,
                                .per_node = workspace->per_node,
                                .device = &workspace->cluster.groups[0].device,
                                .memory_bytes = workspace->memory_bytes,
                                .nccl_memory = workspace->nccl_memory,
                                .tcp = workspace->opts->tcp,
                                .real_clock = workspace->opts->real_clock,
                                .forks = true};
    MAQ_TRY(maq_run_card_write(&card, card_path, diag));
    MAQ_TRY(write_scripts(&script, workspace, diag));
    char **environment = maq_environment(&card, card_path, 0, workspace->device ? &workspace->libraries : NULL, a);
    const char **words = command_of(t, workspace->opts->arguments, script, log, s->names, a);
    if (!environment || !words)
        return maq_no_memory(diag, "a fork server");
    keep_common(environment, s->names);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return MAQ_OK; /* and no server */
    struct maq_child_opts program = {.path = workspace->program,
                                     .arguments = (char *const *)(uintptr_t)words,
                                     .environment = environment,
                                     .output = log,
                                     .socket = ends[1]};
    enum maq_status status = maq_child_start(&s->program, &program, diag);
    close(ends[1]);
    s->requests = ends[0];
    s->runs = status == MAQ_OK;
    return status;
}

enum maq_status maq_fork_server_open(struct maq_fork_server *s, struct maq_workspace *workspace, struct maq_diag *diag)
{
    struct target target;
    bool before = s->tried;
    s->tried = true;
    if (before || workspace->libraries.inject || !target_of(&target, workspace->opts->arguments))
        return MAQ_OK;
    return start(s, workspace, &target, diag);
}

void maq_fork_server_close(struct maq_fork_server *s)
{
    if (s->requests >= 0)
        close(s->requests);
    maq_child_end(&s->program);
    s->requests = -1;
    s->runs = false;
}

/* ---- requests ---- */

/* The variables in which ranks differ; 0: too many. */
static size_t message_of(char *message, char *const *environment, const char *names)
{
    size_t n = 0;
    for (size_t i = 0; environment[i]; i++) {
        size_t len = strlen(environment[i]) + 1;
        if (!is_of(environment[i], names))
            continue;
        if (n + len > MESSAGE_MOST)
            return 0;
        memcpy(message + n, environment[i], len);
        n += len;
    }
    return n;
}

static bool send_request(int to, const void *message, size_t bytes, const int descriptors[3])
{
    struct iovec data = {(void *)(uintptr_t)message, bytes};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(head), descriptors, 3 * sizeof(int));
    return sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

bool maq_fork_server_child(struct maq_fork_server *s, struct maq_child *p, const struct maq_child_opts *opts)
{
    char message[MESSAGE_MOST];
    int life[2], report[2];
    if (!s->runs || !opts->output)
        return false;
    size_t n = message_of(message, opts->environment, s->names);
    if (n == 0 || pipe2(life, O_CLOEXEC) != 0)
        return false;
    if (pipe2(report, O_CLOEXEC) != 0) {
        close(life[0]);
        close(life[1]);
        return false;
    }
    int output = open(opts->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool sent = output >= 0 && send_request(s->requests, message, n, (int[]){life[0], report[1], output});
    if (output >= 0)
        close(output);
    close(life[0]);
    close(report[1]);
    *p = (struct maq_child){.life = life[1], .report = report[0]};
    if (!sent) {
        close(life[1]);
        close(report[0]);
        *p = (struct maq_child){.life = -1, .report = -1};
        maq_fork_server_close(s);
    }
    return sent;
}
