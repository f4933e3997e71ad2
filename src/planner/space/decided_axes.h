/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decided_axes.h - which axes of a space the job decides, and where it says so.
 */
#ifndef MAQ_PLANNER_SPACE_DECIDED_AXES_H
#define MAQ_PLANNER_SPACE_DECIDED_AXES_H

#include "base/arena.h"
#include "planner/space/axis.h"

/* Of what the job says of its plan, what holds: all of it, its flags, nothing. */
enum maq_space_kept { MAQ_KEPT_ALL, MAQ_KEPT_FLAGS, MAQ_KEPT_NOTHING };

/* Whether the job decides an axis, by its key or by others that go with it. */
bool maq_space_decided(const struct maq_loaded_job *open, enum maq_axis axis, enum maq_space_kept kept);
/* Takes from the plan what the document says beside an axis that is searched all the same. */
void maq_space_release(struct maq_plan *base, const struct maq_loaded_job *open, enum maq_space_kept kept);
/* One value, as the job has it. */
enum maq_status maq_space_keep_written(struct maq_axis_values *out, const struct maq_loaded_job *open,
                                       enum maq_axis axis, struct maq_arena *arena);
/* Where the job sets a key of the plan; nowhere: it does not. */
struct maq_span maq_space_place_of(const struct maq_loaded_job *open, const char *key);

#endif
