/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - maq_capture_read(): recognises the format of the files and calls its reader.
 *
 * Every format has a probe, which looks at the first bytes of a file, and a reader, which takes all paths of one kind. The
 * first probe that says yes to the first file reads them all. A folder stands for the files in it that hold traces, in order
 * of their names.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "capture/build.h"
#include "capture/codes.h"
#include "capture/import/readers.h"
#include "capture/mqt/mqt.h"
#include "maquette/capture.h"
#include "spec/cannot_read.h"
#include "spec/foreign_file.h"

#define PROBE 4096u
#define EXPECTED "a captured job or a trace of a kind that is read"

static bool probe_rank(const unsigned char *head, size_t n)
{
    return n >= 8 && memcmp(head, MAQ_REC_MAGIC, 8) == 0;
}

/* Ranks that did not run are filled in where those that did say enough. */
static enum maq_status read_ranks(struct maq_capture **out, const char *const *paths, uint32_t n, struct maq_diag *diag)
{
    uint32_t probe, one = 1;
    MAQ_TRY(maq_capture_of_ranks(out, paths, n, diag));
    enum maq_status status = maq_capture_infer(*out, &probe, &one, diag);
    if (status == MAQ_NO) {
        char hint[64];
        snprintf(hint, sizeof hint, "run rank %u next: `maquette run --rank %u`", probe, probe);
        maq_diag_add(diag, MAQ_WARNING, MAQ_CODE_CAPTURE_UNKNOWN_RANKS, (struct maq_span){0}, hint,
                     "the ranks that ran do not say what all %u do; the others are left out", (*out)->world);
    } else if (status != MAQ_OK) {
        maq_capture_free(*out);
        *out = NULL;
        return status;
    }
    return MAQ_OK;
}

static const struct {
    bool (*probe)(const unsigned char *head, size_t n);
    enum maq_status (*read)(struct maq_capture **out, const char *const *paths, uint32_t n, struct maq_diag *diag);
    /* one that asks for what the files do not say, instead */
    enum maq_status (*read_with)(struct maq_capture **out, const char *const *paths, uint32_t n,
                                 const struct maq_capture_read_opts *opts, struct maq_diag *diag);
} readers[] = {
    {maq_mqt_probe, maq_mqt_read, NULL},
    {probe_rank, read_ranks, NULL},
    {maq_import_kineto_probe, maq_import_kineto, NULL},
    {maq_import_chakra_probe, NULL, maq_import_chakra},
};

static size_t read_front(const char *path, unsigned char *head)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, PROBE, f) : 0;
    if (f)
        (void)fclose(f);
    return n;
}

static size_t reader_of(const char *path)
{
    unsigned char head[PROBE];
    size_t n = read_front(path, head), i = 0;
    const struct maq_foreign *f = maq_foreign_file(path);
    if (f && !f->is_profile)
        return MAQ_COUNT(readers);
    while (i < MAQ_COUNT(readers) && !readers[i].probe(head, n))
        i++;
    return i;
}

bool maq_capture_probe(const char *path)
{
    return reader_of(path) < MAQ_COUNT(readers);
}

struct list {
    struct maq_arena arena;
    const char **path;
    uint32_t n, room;
    const char *foreign; /* a file of a folder that another tool wrote and no reader takes; NULL */
    bool failed;
};

static void add_path(struct list *l, const char *path)
{
    if (l->n == l->room) {
        uint32_t room = l->room ? 2 * l->room : 64;
        const char **grown = MAQ_ARENA_NEW(&l->arena, const char *, room);
        if (!grown) {
            l->failed = true;
            return;
        }
        if (l->n > 0)
            memcpy(grown, l->path, l->n * sizeof *grown);
        l->path = grown;
        l->room = room;
    }
    l->path[l->n++] = path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_folder(struct list *l, const char *folder)
{
    DIR *dir = opendir(folder);
    uint32_t first = l->n;
    const struct dirent *entry;
    struct stat s;
    while (dir && !l->failed && (entry = readdir(dir))) {
        const char *path = maq_arena_printf(&l->arena, "%s/%s", folder, entry->d_name);
        l->failed |= !path;
        if (!path || stat(path, &s) != 0 || !S_ISREG(s.st_mode))
            continue;
        if (reader_of(path) < MAQ_COUNT(readers))
            add_path(l, path);
        else if (maq_foreign_file(path) && (!l->foreign || strcmp(path, l->foreign) < 0))
            l->foreign = path;
    }
    if (dir)
        (void)closedir(dir);
    if (l->n > first)
        qsort(l->path + first, l->n - first, sizeof *l->path, by_name);
}

static enum maq_status read_list(struct maq_capture **out, const struct list *l, const char *first,
                                 const struct maq_capture_read_opts *opts, struct maq_diag *diag)
{
    if (l->failed)
        return maq_no_memory(diag, NULL);
    if (l->n == 0 && l->foreign)
        return maq_foreign_refuse(maq_foreign_file(l->foreign), l->foreign, EXPECTED, (struct maq_span){0}, diag);
    if (l->n == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0},
                             "`maquette run` and `maquette capture` write them", "%s: no trace in it", first);
    size_t reader = reader_of(l->path[0]);
    if (reader == MAQ_COUNT(readers))
        MAQ_TRY(maq_foreign_refuse(maq_foreign_file(l->path[0]), l->path[0], EXPECTED, (struct maq_span){0}, diag));
    if (reader == MAQ_COUNT(readers))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_FORM, (struct maq_span){0},
                             "`maquette run` and `maquette capture` write them",
                             "%s: not a captured job and not a trace of a kind that is known", l->path[0]);
    for (uint32_t i = 1; i < l->n; i++)
        if (reader_of(l->path[i]) != reader)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CAPTURE_RANKS, (struct maq_span){0}, NULL,
                                 "%s: another kind of file than %s", l->path[i], l->path[0]);
    return readers[reader].read ? readers[reader].read(out, l->path, l->n, diag)
                                : readers[reader].read_with(out, l->path, l->n, opts, diag);
}

enum maq_status maq_capture_read(struct maq_capture **out, const char *const *paths, uint32_t n_paths,
                                 struct maq_diag *diag)
{
    return maq_capture_read_with(out, paths, n_paths, NULL, diag);
}

enum maq_status maq_capture_read_with(struct maq_capture **out, const char *const *paths, uint32_t n_paths,
                                      const struct maq_capture_read_opts *opts, struct maq_diag *diag)
{
    struct list l = {0};
    struct stat s;
    enum maq_status status = MAQ_OK;
    MAQ_ASSERT(n_paths > 0);
    maq_arena_init(&l.arena, 0);
    for (uint32_t i = 0; i < n_paths && status == MAQ_OK; i++) {
        if (stat(paths[i], &s) != 0)
            status = maq_cannot_read(
                diag, paths[i], "a captured job or traces: `maquette capture`, `maquette run --trace`, torch.profiler",
                errno);
        else if (S_ISDIR(s.st_mode))
            add_folder(&l, paths[i]);
        else
            add_path(&l, paths[i]);
    }
    if (status == MAQ_OK)
        status = read_list(out, &l, paths[0], opts, diag);
    maq_arena_fini(&l.arena);
    return status;
}
