/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim_ranks.h - starts ranks of a program under the zero-GPU device, for tests: each is this executable again, with a run
 * card and one word that says which program it is.
 */
#ifndef MAQ_TESTS_SHIM_RANKS_H
#define MAQ_TESTS_SHIM_RANKS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/shm.h"

struct ranks {
    char folder[64];
    uint32_t world, per_node;
    const char *more; /* lines of the card */
    bool meets;
};

static inline const char *in_folder(const struct ranks *r, const char *name)
{
    static char path[4][128];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", r->folder, name);
    return out;
}

static inline struct ranks ranks_new(uint32_t world, uint32_t per_node, bool meets, const char *more)
{
    struct ranks r = {.world = world, .per_node = per_node, .meets = meets, .more = more};
    const char *tmp = getenv("TMPDIR");
    snprintf(r.folder, sizeof r.folder, "%.40s/maquette-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(r.folder))
        abort();
    return r;
}

static inline void ranks_free(struct ranks *r)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", r->folder);
    if (system(command) != 0)
        abort();
}

/* The card; with a fresh segment when ranks meet. */
static inline void ranks_card(const struct ranks *r, const struct maq_shm_opts *opts)
{
    FILE *card = fopen(in_folder(r, "card"), "w");
    fprintf(card, "world %u\nper_node %u\ncall_ns 0\nlaunch_ns 0\ntrace %s/trace.%%r\n", r->world, r->per_node,
            r->folder);
    if (r->meets) {
        struct maq_shm_opts all = {.world = r->world};
        (void)unlink(in_folder(r, "meet"));
        if (maq_shm_create(in_folder(r, "meet"), opts ? opts : &all) != 0)
            abort();
        fprintf(card, "mode meet\nmeet %s/meet\n", r->folder);
    }
    fprintf(card, "%s", r->more ? r->more : "");
    fclose(card);
}

static inline pid_t ranks_start(const struct ranks *r, const char *program, uint32_t rank)
{
    char number[16];
    snprintf(number, sizeof number, "%u", rank);
    pid_t pid = fork();
    if (pid)
        return pid;
    setenv("MAQUETTE_RUN", in_folder(r, "card"), 1);
    setenv("RANK", number, 1);
    setenv("FOLDER", r->folder, 1);
    execl("/proc/self/exe", "program", program, (char *)NULL);
    _exit(127);
}

/* True when it ended well. */
static inline bool ranks_wait(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline bool ranks_run(const struct ranks *r, const char *program, const uint32_t *which, uint32_t n)
{
    pid_t pid[64];
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        pid[i] = ranks_start(r, program, which ? which[i] : i);
    for (uint32_t i = 0; i < n; i++)
        ok = ranks_wait(pid[i]) && ok;
    return ok;
}

/* A whole file; the caller frees it. */
static inline unsigned char *ranks_file(const struct ranks *r, const char *name, uint32_t rank, size_t *bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s.%u", r->folder, name, rank);
    FILE *f = fopen(path, "rb");
    *bytes = 0;
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*bytes + 1);
    if (fread(data, 1, *bytes, f) != *bytes)
        abort();
    fclose(f);
    return data;
}

/* What a rank says at its end. */
static inline void ranks_say(const void *data, size_t bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/said.%s", getenv("FOLDER"), getenv("RANK"));
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
        abort();
}

#endif
