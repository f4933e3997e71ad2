/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_folder.c - mkdtemp(), recursive removal by file descriptors without following links, and the guard process
 * at the end of a pipe. See private_folder.h.
 */
#include "launch/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "launch/codes.h"

#define DEEPEST 16 /* folders in folders that are removed */

static enum maq_status fail(const char *what, const char *path, struct maq_diag *diag)
{
    int error = errno;
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_LAUNCH_FOLDER, (struct maq_span){0}, NULL, "%s '%.200s': %s", what,
                         path, strerror(error));
}

enum maq_status maq_folder_make(const char **path, struct maq_arena *arena, struct maq_diag *diag)
{
    const char *under = getenv("TMPDIR");
    if (!under || under[0] != '/' || strlen(under) > 60) /* a socket's path has 108 bytes */
        under = "/tmp";
    char *name = maq_arena_printf(arena, "%s/maquette-XXXXXX", under);
    if (!name)
        return MAQ_NO_MEMORY;
    if (!mkdtemp(name))
        return fail("cannot make the folder", name, diag);
    *path = name;
    return MAQ_OK;
}

/* An entry that is a file, or with AT_REMOVEDIR an empty folder; true when it is not there any more. */
static bool take_away(int at, const char *name, int flags)
{
    return unlinkat(at, name, flags) == 0 || errno == ENOENT; /* a guard and keepers may remove one folder at once */
}

static bool remove_entries(DIR *dir, int depth, bool *found);

/*
 * Empties the folder behind `fd`, which is closed. Names may be passed over while others remove them: it looks until there are
 * none.
 */
static bool empty(int fd, int depth)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool all = dir, found = dir;
    if (!dir && fd >= 0)
        close(fd);
    while (all && found) {
        found = false;
        all = remove_entries(dir, depth, &found);
        rewinddir(dir);
    }
    if (dir)
        closedir(dir);
    return all;
}

static bool remove_entries(DIR *dir, int depth, bool *found)
{
    int fd = dirfd(dir);
    bool all = true;
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        *found = true;
        if (take_away(fd, e->d_name, 0))
            continue;
        int inner = depth > 0 ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        (void)empty(inner, depth - 1);
        all = take_away(fd, e->d_name, AT_REMOVEDIR) && all;
    }
    return all;
}

bool maq_folder_remove(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    return empty(fd, DEEPEST) && take_away(AT_FDCWD, path, AT_REMOVEDIR);
}

/* Closes everything but the end of the pipe, so that a reader of this process's output does not wait for the guard. */
_Noreturn static void stand_guard(int life, const char *path)
{
    sigset_t all;
    char told;
    setpgid(0, 0); /* a Ctrl-C in the terminal is maquette's to handle */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (life > 0)
        close_range(0, (unsigned)life - 1, 0);
    close_range((unsigned)life + 1, ~0u, 0);
    ssize_t n;
    do
        n = read(life, &told, 1);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        (void)maq_folder_remove(path);
    _exit(0);
}

void maq_folder_guard_begin(struct maq_folder_guard *guard, const char *path)
{
    int ends[2];
    *guard = (struct maq_folder_guard){0, 0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t process = fork();
    if (process == 0) {
        close(ends[1]);
        stand_guard(ends[0], path);
    }
    close(ends[0]);
    if (process > 0)
        *guard = (struct maq_folder_guard){ends[1], process};
    else
        close(ends[1]);
}

void maq_folder_guard_end(struct maq_folder_guard *guard)
{
    if (guard->process <= 0)
        return;
    (void)!write(guard->life, "", 1);
    close(guard->life);
    while (waitpid(guard->process, NULL, 0) < 0 && errno == EINTR)
        ;
    *guard = (struct maq_folder_guard){0, 0};
}

static bool write_all(int fd, const char *at, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

enum maq_status maq_folder_write(const char *path, const void *bytes, size_t n, struct maq_diag *diag)
{
    char beside[4096];
    int len = snprintf(beside, sizeof beside, "%s.new", path);
    errno = ENAMETOOLONG;
    int fd = len > 0 && (size_t)len < sizeof beside ? open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return fail("cannot write", path, diag);
    bool fine = write_all(fd, bytes, n);
    fine = close(fd) == 0 && fine;
    if (!fine || rename(beside, path) != 0) {
        enum maq_status status = fail("cannot write", path, diag);
        unlink(beside);
        return status;
    }
    return MAQ_OK;
}

/* The rest of a file of `size` bytes; fewer when it is shorter by now. */
static ssize_t read_all(int fd, char *at, size_t size)
{
    size_t n = 0;
    while (n < size) {
        ssize_t got = read(fd, at + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

enum maq_status maq_folder_read(char **bytes, size_t *n, const char *path, size_t most, struct maq_diag *diag)
{
    struct stat info;
    *bytes = NULL;
    *n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? MAQ_OK : fail("cannot read", path, diag);
    enum maq_status status = MAQ_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0 || (uint64_t)info.st_size > most) {
        errno = EFBIG;
        status = fail("cannot read", path, diag);
    } else {
        char *text = maq__malloc((size_t)info.st_size + 1);
        ssize_t got = text ? read_all(fd, text, (size_t)info.st_size) : -1;
        if (got < 0) {
            status = text ? fail("cannot read", path, diag) : MAQ_NO_MEMORY;
            free(text);
        } else {
            text[got] = '\0';
            *bytes = text;
            *n = (size_t)got;
        }
    }
    close(fd);
    return status;
}
