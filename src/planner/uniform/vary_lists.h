/* SPDX-License-Identifier: Apache-2.0 */
/* vary_lists.h - the combinations that a section `search: {vary: ...}` asks for. */
#ifndef MAQ_PLANNER_UNIFORM_VARY_LISTS_H
#define MAQ_PLANNER_UNIFORM_VARY_LISTS_H

#include "base/arena.h"
#include "maquette/planner.h"

/* The section of the document, NULL without one. */
struct maq_node *maq_vary_section(const struct maq_loaded_job *open);

/* Every combination as an open job of its own: *at [*n] in `arena`, `open` of each owned by the caller (maq_job_free). On
 * failure those before the fault are in the list. */
enum maq_status maq_vary_list(struct maq_search_variant **at, uint32_t *n, const struct maq_loaded_job *open,
                              struct maq_arena *arena, struct maq_diag *diag);

#endif
