/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - the plan documents under a path: a file, the .json files of a folder and its folders, or those of a .tar[.gz]. */
#ifndef MAQ_VALIDATE_PLANS_FILES_H
#define MAQ_VALIDATE_PLANS_FILES_H

#include "base/arena.h"
#include "maquette/diag.h"

struct maq_plan_file {
    const char *name; /* path of the file, or its name in the archive */
    struct maq_str text;
};

struct maq_plan_files {
    struct maq_plan_file *at; /* by name */
    uint32_t n, size;
};

/* Everything lives in the arena. */
enum maq_status maq__plan_files(struct maq_plan_files *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag);

#endif
