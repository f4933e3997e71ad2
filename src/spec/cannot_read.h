/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cannot_read.h - an input that cannot be opened: MAQ1030 with the system's reason, and a hint.
 *
 * The hint is the first of these that holds: the path is empty; it is a folder's; its folder is not there; a file of that folder has
 * nearly the same name; what is wanted there.
 */
#ifndef MAQ_SPEC_CANNOT_READ_H
#define MAQ_SPEC_CANNOT_READ_H

#include "maquette/diag.h"

/* What readers want that have no better word. */
#define MAQ_WANT_TABLE "a table, whose first line names its columns"

/* Adds the error and returns MAQ_IO. `error` is the errno of the attempt; `wanted` ends "give ...": "a job file, as docs/train.md has it". */
enum maq_status maq_cannot_read(struct maq_diag *diag, const char *path, const char *wanted, int error);

/* MAQ_OK for "-" and where `path` is there and no folder; else what maq_cannot_read() returns. */
enum maq_status maq_file_expected(const char *path, const char *wanted, struct maq_diag *diag);

#endif
