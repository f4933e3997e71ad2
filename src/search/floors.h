/*
 * floors.h - what the plans of a cell need at least, from its atoms. The equations are in cells.h and leaves.c.
 */
#ifndef MAQ_SEARCH_FLOORS_H
#define MAQ_SEARCH_FLOORS_H

#include "search/pipelines.h"
#include "train/atoms.h"

struct maq_cell_floors {
    const struct maq_job *job;
    struct maq_job resolved; /* the cell's plainest plan, for what states take */
    struct maq_atoms whole, split; /* by whether the schedule puts weight gradients off; n = 0: not needed */
    double *least_act_bytes;       /* [atoms] per microbatch, over all recomputations of the space */
    uint32_t microbatches;
    double capacity_bytes, most_host_optim;
    struct sums *sums; /* scratch, by position */
};

/* `plain` is the plan of maq_cell_plan(). Everything lives in `arena`. */
enum maq_status maq_cell_floors(struct maq_cell_floors *out, const struct maq_search_space *space,
                                const struct maq_job *job, const struct maq_plan *plain, struct maq_train_sweep *sweep,
                                struct maq_arena *arena);

/* No plan of the cell with this pipeline is faster. */
double maq_pipeline_floor_s(const struct maq_cell_floors *floors, const struct maq_pipeline *pipeline);

/* No plan with the degrees, pipeline and sharding of `plan` needs less memory. */
double maq_memory_floor(const struct maq_cell_floors *floors, const struct maq_pipeline *pipeline,
                        const struct maq_plan *plan);

#endif
