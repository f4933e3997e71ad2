/* SPDX-License-Identifier: Apache-2.0 */
/*
 * default_values.h - the values of an axis that neither the document nor the user decides.
 */
#ifndef MAQ_PLANNER_SPACE_DEFAULT_VALUES_H
#define MAQ_PLANNER_SPACE_DEFAULT_VALUES_H

#include "base/arena.h"
#include "maquette/planner.h"
#include "planner/space/axis.h"

enum maq_status maq_space_default(struct maq_axis_values *out, struct maq_search_space *space,
                                  const struct maq_job *job, enum maq_axis axis, const struct maq_search_opts *opts,
                                  struct maq_arena *arena);

#endif
