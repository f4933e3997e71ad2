/*
 * floors.h - what the plans of a cell need at least, from its atoms. The equations are in cells.h and floors.c.
 */
#ifndef MAQ_SEARCH_FLOORS_H
#define MAQ_SEARCH_FLOORS_H

#include "search/pipelines.h"
#include "train/atoms.h"

/* Sums over the atoms before each, under one recomputation: a range is a difference. */
struct maq_floor_sums {
    double *forward_ns, *backward_ns, *redone_ns; /* [atoms + 1]; redone_ns: backward with what is recomputed */
    double *act_bytes, *redone_act_bytes;
    double *dense_params, *expert_params;
    double hop_ns;
};

struct maq_cell_floors {
    struct maq_job resolved;        /* the cell's plainest plan, for what states take */
    struct maq_floor_sums *sums[2]; /* [of RECOMPUTE]; by whether the schedule puts weight gradients off; NULL: not needed */
    uint32_t n_atoms, microbatches;
    double capacity_bytes, most_host_optim;
};

/* `plain` is the plan of maq_cell_plan(). Everything lives in `arena`. */
enum maq_status maq_cell_floors(struct maq_cell_floors *out, const struct maq_search_space *space,
                                const struct maq_job *job, const struct maq_plan *plain, struct maq_train_sweep *sweep,
                                struct maq_arena *arena);

/* Which plans a floor is of: those of a pipeline under value `recompute` of that axis, the first `block` layers of each
 * virtual stage under MAQ_RECOMPUTE_VALUE_BLOCK. */
struct maq_floor_query {
    const struct maq_pipeline *pipeline;
    uint32_t recompute; /* index */
    int32_t value;      /* its value */
    int32_t block;
    bool offloads; /* activations may be on the host */
};

/* No such plan is faster. */
double maq_time_floor_s(const struct maq_cell_floors *floors, const struct maq_floor_query *query);
/* None with the sharding of `plan` needs less memory. */
double maq_memory_floor(const struct maq_cell_floors *floors, const struct maq_floor_query *query,
                        const struct maq_plan *plan);

#endif
