/* SPDX-License-Identifier: Apache-2.0 */
/* private_folder.h - private folders: made for one run, and removed with everything in them. */
#ifndef MAQ_LAUNCH_PRIVATE_FOLDER_H
#define MAQ_LAUNCH_PRIVATE_FOLDER_H

#include "base/arena.h"

/*
 * A new folder that only this user may enter, under TMPDIR or /tmp. Its path lives in `arena`; it is short enough for names of
 * sockets.
 */
enum maq_status maq_folder_make(const char **path, struct maq_arena *arena, struct maq_diag *diag);

/* Removes a folder and all that is in it; links are removed, not followed. false: something is left. */
bool maq_folder_remove(const char *path);

/*
 * A guard process that removes the folder when this process ends without having done so, for whatever reason. It only waits. If it
 * cannot be started the folder is unguarded. _end() is called when the folder has been removed, or is to stay.
 */
struct maq_folder_guard {
    int life, process; /* the end of a pipe that it listens to; 0: none */
};
void maq_folder_guard_begin(struct maq_folder_guard *guard, const char *path);
void maq_folder_guard_end(struct maq_folder_guard *guard);

/* Writes a file atomically: to a temporary name, then renamed. */
enum maq_status maq_folder_write(const char *path, const void *bytes, size_t n, struct maq_diag *diag);

/*
 * Reads a file of at most `most` bytes: *bytes is owned by the caller (free()), NULL when there is none. MAQ_IO where it cannot
 * be read.
 */
enum maq_status maq_folder_read(char **bytes, size_t *n, const char *path, size_t most, struct maq_diag *diag);

#endif
