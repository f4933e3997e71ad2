/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - finds a parallelizer by its name: the built-in one, a shared object, or a program. */
#ifndef MAQ_PLANNER_EXTERNAL_LOAD_H
#define MAQ_PLANNER_EXTERNAL_LOAD_H

#include "planner/external/enumeration.h"

struct maq_slices_loaded {
    struct maq_slices_source source;
    void *handle; /* of dlopen(); NULL: none */
};

/*
 * opts->parallelizer decides (maquette/planner_external.h). `opts` is borrowed until maq_slices_unload(). A fault is a
 * diagnostic that names the parallelizer.
 */
enum maq_status maq_slices_load(struct maq_slices_loaded *out, struct maq_slices_chain *chain,
                                const struct maq_slices_opts *opts, struct maq_arena *arena, struct maq_diag *diag);
void maq_slices_unload(struct maq_slices_loaded *loaded);

#endif
