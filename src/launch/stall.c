/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall.c - processor time of a tree of processes, from /proc. See stall.h.
 *
 * Threads that look after something wake now and then: what takes less than IDLE_SHARE of a processor does nothing.
 */
#include "launch/stall.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text.h"

#define IDLE_SHARE 0.02 /* of a processor */
#define LOOK_S 0.25     /* between looks */
#define DEPTH_MAX 16u   /* of processes that start processes */

/* Reads a small file; its length, 0 = there is none. */
static size_t read_file(char *to, size_t room, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, room - 1) : 0;
    if (fd >= 0)
        close(fd);
    n = n > 0 ? n : 0;
    to[n] = '\0';
    return (size_t)n;
}

/* utime and stime of /proc/PID/stat, proc(5): the 14th and 15th word, counted behind the name in parentheses, which may have blanks. */
static uint64_t own_ticks(pid_t pid)
{
    char path[64], text[1024];
    struct maq_str rest = {NULL, 0}, word;
    uint64_t sum = 0;
    maq__snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (read_file(text, sizeof text, path) > 0)
        rest = maq_str_of(strrchr(text, ')'));
    for (unsigned n = 2; rest.ptr && n <= 15; n++) {
        int64_t ticks;
        rest = maq_str_split(rest, ' ', &word);
        if (n >= 14 && maq_str_to_i64(&ticks, word) && ticks > 0)
            sum += (uint64_t)ticks;
    }
    return sum;
}

static uint64_t children_ticks(pid_t pid, unsigned depth);

/* What a thread started, and what that started. */
static uint64_t started_ticks(const char *list_path, unsigned depth) // NOLINT(misc-no-recursion)
{
    char list[4096];
    uint64_t sum = 0;
    struct maq_str rest = {list, read_file(list, sizeof list, list_path)}, word;
    while (rest.ptr && rest.len > 0) {
        int64_t child;
        rest = maq_str_split(rest, ' ', &word);
        if (maq_str_to_i64(&child, word))
            sum += own_ticks((pid_t)child) + children_ticks((pid_t)child, depth + 1);
    }
    return sum;
}

/* Children are listed by the thread that started them. */
static uint64_t children_ticks(pid_t pid, unsigned depth) // NOLINT(misc-no-recursion)
{
    char path[96];
    uint64_t sum = 0;
    maq__snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *threads = depth < DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *e; threads && (e = readdir(threads)) != NULL;)
        if (e->d_name[0] != '.') {
            maq__snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)pid, e->d_name);
            sum += started_ticks(path, depth);
        }
    if (threads)
        closedir(threads);
    return sum;
}

bool maq_stall_look(struct maq_stall *s, pid_t keeper, double now_s, double limit_s)
{
    if (!(limit_s > 0) || keeper <= 0 || (s->since_s > 0 && now_s - s->looked_s < LOOK_S))
        return false;
    s->looked_s = now_s;
    const uint64_t ticks = children_ticks(keeper, 0);
    const double idle = 1 + IDLE_SHARE * (now_s - s->since_s) * (double)sysconf(_SC_CLK_TCK);
    if (s->since_s > 0 && ticks >= s->ticks && (double)(ticks - s->ticks) <= idle)
        return now_s - s->since_s >= limit_s;
    s->since_s = now_s;
    s->ticks = ticks;
    return false;
}
