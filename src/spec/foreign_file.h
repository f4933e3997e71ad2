/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_file.h - files of other tools that are given where something else is expected, known by their content.
 *
 * Every reader has a form of its own and says what is wrong by it: a table lacks columns, a document has unknown keys. Where the file is
 * another tool's, that is no help; a reader asks here before it complains, and says what the file is and who takes it.
 */
#ifndef MAQ_SPEC_FOREIGN_FILE_H
#define MAQ_SPEC_FOREIGN_FILE_H

#include "maquette/diag.h"

#define MAQ_FOREIGN_HEAD 4096u /* bytes that are looked at */

struct maq_foreign {
    const char *what; /* "a log of nccl-tests" */
    const char *hint; /* who takes it, or how it becomes what is taken */
    bool is_profile;  /* a profiler's trace, which some readers take */
};

/* By the first bytes; of a regular file by those that are in it, compressed or not. NULL: none that is known, or unreadable. */
const struct maq_foreign *maq_foreign_bytes(struct maq_str head);
const struct maq_foreign *maq_foreign_file(const char *path);

/* Adds "PATH is WHAT, not EXPECTED" and returns MAQ_BAD_INPUT; MAQ_OK when f is NULL. */
enum maq_status maq_foreign_refuse(const struct maq_foreign *f, const char *path, const char *expected,
                                   struct maq_span at, struct maq_diag *diag);

#endif
