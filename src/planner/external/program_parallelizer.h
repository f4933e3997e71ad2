/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program_parallelizer.h - a parallelizer that is a program: the functions of maquette/parallelizer.h as requests and
 * answers in JSON lines (docs/parallelizer.md).
 */
#ifndef MAQ_PLANNER_EXTERNAL_PROGRAM_PARALLELIZER_H
#define MAQ_PLANNER_EXTERNAL_PROGRAM_PARALLELIZER_H

#include "planner/external/enumeration.h"

/* Starts the program and sends `open`: its answer says what it can do. Everything lives in the arena. */
enum maq_status maq_slices_remote(struct maq_slices_source *out, const char *path,
                                  const struct maq_parallelizer_model *model, const struct maq_slices_opts *opts,
                                  struct maq_arena *arena, struct maq_diag *diag);
/* Ends the first process if no state was opened with it. Does nothing for a source of another kind. */
void maq_slices_remote_fini(const struct maq_slices_source *source);

#endif
