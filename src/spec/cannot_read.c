/* SPDX-License-Identifier: Apache-2.0 */
/* cannot_read.c - the reason by errno, the hint by what lies beside the path. See cannot_read.h. */
#include "spec/cannot_read.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codes.h"
#include "base/str.h"
#include "spec/doc_internal.h"

#define HINT_MOST ((size_t)8192)

/* ---- the folder of a path ---- */

static int no_folder(const struct dirent *entry)
{
    return entry->d_type != DT_DIR;
}

/* By bytes, not by the locale: which of two names is offered is the same everywhere. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* How near is near goes by the name without its extension: two letters of "a.yaml" are a third of it, and another file. */
static void begin(struct maq_nearest *near, struct maq_str name)
{
    struct maq_str stem;
    (void)maq_str_split(name, '.', &stem);
    maq__nearest_init(near, stem);
    near->word = name;
}

/* Adds the hint of a path that is not there, by what its folder has; adds nothing where that has nothing to say. */
static void look_beside(struct maq_buf *hint, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct maq_str folder = {path, (size_t)(name - path)};
    struct dirent **entry;
    struct maq_buf at;
    struct maq_nearest near;
    maq_buf_init(&at, HINT_MOST);
    maq_buf_addf(&at, "%.*s.", (int)folder.len, folder.ptr);
    int n = at.ptr && !at.failed ? scandir(at.ptr, &entry, no_folder, by_bytes) : -1;
    if (n < 0 && (errno == ENOENT || errno == ENOTDIR))
        maq_buf_addf(hint, "there is no folder '%.*s'", (int)(folder.len - (folder.len > 1)), folder.ptr);
    begin(&near, maq_str_of(name));
    for (int i = 0; i < n; i++)
        maq__nearest_try(&near, maq_str_of(entry[i]->d_name));
    if (n > 0 && near.best)
        maq_buf_addf(hint, "did you mean '%.*s%s'?", (int)folder.len, folder.ptr, near.best);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    if (n >= 0)
        free(entry);
    maq_buf_fini(&at);
}

/* ---- the error ---- */

enum maq_status maq_cannot_read(struct maq_diag *diag, const char *path, const char *wanted, int error)
{
    char reason[128];
    struct maq_buf hint;
    maq_buf_init(&hint, HINT_MOST);
    if (path[0] == '\0')
        maq_buf_addf(&hint, "the path is empty: give %s", wanted);
    else if (error == EISDIR)
        maq_buf_addf(&hint, "that is a folder: give %s", wanted);
    else if (error == EACCES)
        maq_buf_adds(&hint, "its permissions, or those of a folder above it, forbid it");
    else if (error == ENOENT || error == ENOTDIR)
        look_beside(&hint, path);
    if (hint.len == 0)
        maq_buf_addf(&hint, "give %s", wanted);
    enum maq_status status =
        maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, hint.failed ? NULL : hint.ptr,
                      "cannot read '%s': %s", path, strerror_r(error, reason, sizeof reason));
    maq_buf_fini(&hint);
    return status;
}

enum maq_status maq_file_expected(const char *path, const char *wanted, struct maq_diag *diag)
{
    struct stat there;
    if (strcmp(path, "-") == 0)
        return MAQ_OK;
    if (stat(path, &there) != 0)
        return maq_cannot_read(diag, path, wanted, errno);
    return S_ISDIR(there.st_mode) ? maq_cannot_read(diag, path, wanted, EISDIR) : MAQ_OK;
}
