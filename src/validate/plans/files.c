/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - the plan documents under a path; see files.h.
 *
 * Archives are read as POSIX lays them out (ustar, IEEE 1003.1 "pax": 512-byte headers, name at 0, octal size at 124, type at 156,
 * prefix at 345), through zlib, which reads plain files as well. Long names in extension records are not needed here: such an entry has
 * its short name.
 */
#include "validate/plans/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/cannot_read.h"
#include "validate/codes.h"

#define MAX_DEPTH 8
#define MAX_FILES 65536u
#define MAX_PLAN_BYTES ((size_t)64 << 20)
#define BLOCK 512u

static const struct maq_span nowhere = {0};

static bool ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), k = strlen(tail);
    return n > k && strcmp(name + n - k, tail) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_file(const void *pa, const void *pb)
{
    const struct maq_plan_file *a = pa, *b = pb;
    int c = strcmp(a->name, b->name);
    return c != 0 ? c
                  : (a->text.ptr > b->text.ptr) - (a->text.ptr < b->text.ptr); /* same name twice: as they were read */
}

static enum maq_status add(struct maq_plan_files *out, struct maq_plan_file file, struct maq_arena *arena,
                           struct maq_diag *diag)
{
    if (out->n == MAX_FILES)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_PLAN_FILES, nowhere, NULL, "more than %u plans", MAX_FILES);
    if (out->n == out->size) {
        uint32_t size = out->size ? 2 * out->size : 64;
        struct maq_plan_file *more = MAQ_ARENA_NEW(arena, struct maq_plan_file, size);
        if (!more)
            return maq_no_memory(diag, "plans");
        if (out->n > 0)
            memcpy(more, out->at, out->n * sizeof *more);
        out->at = more;
        out->size = size;
    }
    out->at[out->n++] = file;
    return MAQ_OK;
}

/* ---- archives and single files ---- */

static enum maq_status read_bytes(gzFile in, char *to, size_t n, const char *path, struct maq_diag *diag)
{
    int got = gzread(in, to, (unsigned)n);
    return got == (int)n ? MAQ_OK
                         : maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FILES, nowhere, NULL,
                                         "%s: the archive ends in the middle of an entry", path);
}

static bool octal(size_t *out, const char *field, size_t n)
{
    size_t value = 0, i = 0;
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        value = value * 8 + (size_t)(field[i] - '0');
    *out = value;
    return i == n || field[i] == '\0' || field[i] == ' ';
}

static const char *entry_name(const char header[BLOCK], struct maq_arena *arena)
{
    int prefix = (int)strnlen(header + 345, 155), name = (int)strnlen(header, 100);
    bool ustar = memcmp(header + 257, "ustar", 5) == 0 && prefix > 0;
    return maq_arena_printf(arena, "%.*s%s%.*s", ustar ? prefix : 0, header + 345, ustar ? "/" : "", name, header);
}

static enum maq_status read_entry(struct maq_plan_files *out, gzFile in, const char header[BLOCK], const char *path,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    size_t size;
    const char *name = entry_name(header, arena);
    if (!name)
        return maq_no_memory(diag, "plans");
    if (!octal(&size, header + 124, 12) || size > MAX_PLAN_BYTES)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FILES, nowhere, NULL,
                             "%s: an entry of a size that cannot be read, or over 64 MiB", path);
    size_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    char *text = MAQ_ARENA_NEW(arena, char, padded + 1);
    if (!text)
        return maq_no_memory(diag, "plans");
    if (padded > 0)
        MAQ_TRY(read_bytes(in, text, padded, path, diag));
    if ((header[156] != '0' && header[156] != '\0') || !ends_with(name, ".json"))
        return MAQ_OK;
    return add(out, (struct maq_plan_file){name, {text, size}}, arena, diag);
}

static enum maq_status read_archive(struct maq_plan_files *out, gzFile in, const char *path, struct maq_arena *arena,
                                    struct maq_diag *diag)
{
    char header[BLOCK];
    for (int got; (got = gzread(in, header, BLOCK)) != 0 && header[0] != '\0';) {
        if (got != (int)BLOCK)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FILES, nowhere, NULL,
                                 "%s is no archive, or it is damaged", path);
        MAQ_TRY(read_entry(out, in, header, path, arena, diag));
    }
    return MAQ_OK;
}

static enum maq_status read_plan(struct maq_plan_files *out, gzFile in, const char *path, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    struct maq_buf text;
    char part[4096];
    int got;
    maq_buf_init(&text, MAX_PLAN_BYTES);
    while ((got = gzread(in, part, sizeof part)) > 0 && !text.failed)
        maq_buf_add(&text, part, (size_t)got);
    char *copy = maq_arena_strdup(arena, (struct maq_str){text.ptr ? text.ptr : "", text.len});
    size_t len = text.len;
    bool failed = text.failed;
    maq_buf_fini(&text);
    if (got < 0 || failed)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, nowhere, NULL, "%s cannot be read, or is over 64 MiB",
                             path);
    return copy ? add(out, (struct maq_plan_file){path, {copy, len}}, arena, diag) : maq_no_memory(diag, "plans");
}

#define PLANS "plans: JSON, a folder of such files or a .tar of them, as docs/validate-plans.md has it"

static enum maq_status read_path(struct maq_plan_files *out, const char *path, struct maq_arena *arena,
                                 struct maq_diag *diag)
{
    gzFile in = gzopen(path, "rb");
    if (!in)
        return maq_cannot_read(diag, path, PLANS, errno);
    bool archive = ends_with(path, ".tar") || ends_with(path, ".tar.gz") || ends_with(path, ".tgz");
    enum maq_status status = (archive ? read_archive : read_plan)(out, in, path, arena, diag);
    gzclose(in);
    return status;
}

/* ---- folders ---- */

static enum maq_status read_any(struct maq_plan_files *out, const char *path, int depth, struct maq_arena *arena,
                                struct maq_diag *diag);

static enum maq_status read_folder(struct maq_plan_files *out, DIR *folder, const char *path, int depth,
                                   struct maq_arena *arena, struct maq_diag *diag)
{
    const char *names[4096];
    size_t n = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL && n < MAQ_COUNT(names);)
        if (e->d_name[0] != '.') {
            names[n] = maq_arena_printf(arena, "%s%s%s", path, ends_with(path, "/") ? "" : "/", e->d_name);
            if (!names[n++])
                return maq_no_memory(diag, "plans");
        }
    if (n > 0)
        qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++)
        MAQ_TRY(read_any(out, names[i], depth + 1, arena, diag));
    return MAQ_OK;
}

static enum maq_status read_any(struct maq_plan_files *out, const char *path, int depth, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return maq_cannot_read(diag, path, PLANS, errno);
    if (!S_ISDIR(st.st_mode))
        return depth == 0 || ends_with(path, ".json") ? read_path(out, path, arena, diag) : MAQ_OK;
    DIR *folder = depth <= MAX_DEPTH ? opendir(path) : NULL;
    if (!folder)
        return depth > MAX_DEPTH ? MAQ_OK : maq_cannot_read(diag, path, PLANS, errno);
    enum maq_status status = read_folder(out, folder, path, depth, arena, diag);
    closedir(folder);
    return status;
}

enum maq_status maq__plan_files(struct maq_plan_files *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_plan_files files = {0};
    MAQ_TRY(read_any(&files, path, 0, arena, diag));
    if (files.n == 0)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PLAN_FILES, nowhere,
                             "a plan, a folder of .json files, or a .tar or .tar.gz of them", "%s holds no plan", path);
    qsort(files.at, files.n, sizeof *files.at, by_file);
    *out = files;
    return MAQ_OK;
}
