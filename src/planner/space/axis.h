/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.h - the axes of a plan: what a search chooses along, one list of values for each.
 *
 * An axis is a key of the plan (three stand for more than their key: `recompute_granularity` also for the parts of a layer and the
 * number of layers, `pipeline_model_parallel_layout` for how many layers the ends of the pipeline count, `cuda_graph_scope` also for
 * `enable_cuda_graph`).
 *
 * A plan of the space is one value for each axis. The axes up to MAQ_AXIS_BRANCHES decide what a rank computes for a microbatch:
 * together they are a branch of branch and bound, whose layers are costed once (planner/uniform/branches.c). The others, its
 * leaves, arrange that work (planner/uniform/leaves.c).
 */
#ifndef MAQ_PLANNER_SPACE_AXIS_H
#define MAQ_PLANNER_SPACE_AXIS_H

#include "maquette/planner.h"

/* clang-format off: one row, one line */
/*    id          member of struct maq_plan    key                                                                             */
#define MAQ_AXIS_LIST(X)                                                                                               \
    X(PRECISION, precision, "precision")                                                                               \
    X(TP, tp, "tensor_model_parallel_size")                                                                            \
    X(CP, cp, "context_parallel_size")                                                                                 \
    X(CP_COMM, cp_comm, "cp_comm_type")                                                                                \
    X(PP, pp, "pipeline_model_parallel_size")                                                                          \
    X(EP, ep, "expert_model_parallel_size")                                                                            \
    X(ETP, etp, "expert_tensor_parallel_size")                                                                         \
    X(MBS, mbs, "micro_batch_size")                                                                                    \
    X(SP, sequence_parallel, "sequence_parallel")                                                                      \
    X(ORDER, rank_order, "rank_order")                                                                                 \
    X(INPUTS, offload_modules, "offload_modules")                                                                      \
    X(DISPATCHER, dispatcher, "moe_token_dispatcher_type")                                                             \
    X(OVERLAP_EP, overlap_ep, "overlap_moe_expert_parallel_comm")                                                      \
    X(SHARED, overlap_shared_experts, "moe_shared_expert_overlap")                                                     \
    X(DELAY_WGRAD, delay_wgrad, "delay_wgrad_compute")                                                                 \
    X(OVERLAP_TP, overlap_tp, "tp_comm_overlap")                                                                       \
    X(GRAPHS, graph_scope, "cuda_graph_scope")                                                                         \
    X(SCHEDULE, schedule, "pipeline_schedule")                                                                         \
    X(VP, vp, "virtual_pipeline_model_parallel_size")                                                                  \
    X(LAYOUT, layout, "pipeline_model_parallel_layout")                                                                \
    X(SHARDING, sharding, "data_parallel_sharding_strategy")                                                           \
    X(REPLICAS, num_optimizer_instances, "num_distributed_optimizer_instances")                                        \
    X(RECOMPUTE, recompute, "recompute_granularity")                                                                   \
    X(OFFLOAD, offload_layers, "cpu_offloading_num_layers")                                                            \
    X(HOST_OPTIM, optimizer_offload, "optimizer_offload_fraction")
/* clang-format on */

enum maq_axis {
#define MAQ_AXIS_ENUM(id, member, key) MAQ_AXIS_##id,
    MAQ_AXIS_LIST(MAQ_AXIS_ENUM)
#undef MAQ_AXIS_ENUM
        MAQ_AXIS_COUNT
};
#define MAQ_AXIS_BRANCHES MAQ_AXIS_SCHEDULE /* axes before this one make a branch */
const char *maq_axis_key(enum maq_axis axis);

/*
 * Values are numbers: of ORDER, an index into `orders`; of LAYOUT, see layer_layouts.h; of INPUTS, bits of enum maq_offload_module;
 * of HOST_OPTIM, thousandths; of RECOMPUTE, see below; of GRAPHS, bits of enum maq_graphed_part or MAQ_GRAPHS_VALUE_ITERATION; of the
 * others, the value in the plan.
 */
struct maq_axis_values {
    int32_t *at; /* [n] */
    uint32_t n;
    bool fixed;              /* the document, a flag or the user's list decides it */
    struct maq_span written; /* the place of that setting; none where a framework or a default decides */
};

#define MAQ_VALUE_AS_WRITTEN INT32_MIN /* what the document or the framework says */
#define MAQ_VALUE_LIKE_TP (-1)         /* ETP: as many as TP */
#define MAQ_VALUE_PER_DOMAIN (-1)      /* REPLICAS: one copy of the sharded state in each scale-up domain */
#define MAQ_GRAPHS_VALUE_ITERATION (1 << MAQ_GRAPH_COUNT) /* all passes of a step: enable_cuda_graph */
#define MAQ_RECOMPUTE_VALUE_NONE 0
#define MAQ_RECOMPUTE_VALUE_BLOCK (-1) /* full, the first N layers of each virtual stage: every N */
#define MAQ_RECOMPUTE_VALUE_STAGES                                                                                     \
    (-2) /* full, in each stage the first N layers of its virtual stages: the least N that fits there */
#define MAQ_RECOMPUTE_VALUE_UNIFORM 0x4000 /* + layers per checkpoint: full, uniform */
#define MAQ_RECOMPUTE_VALUE_PARTS 0x10000  /* + bit set of enum maq_part: selective */

struct maq_search_space {
    struct maq_axis_values axis[MAQ_AXIS_COUNT];
    struct maq_str *orders;
    uint32_t n_orders;
    struct maq_plan base; /* values of the keys that are no axis */
};

/* The value of GRAPHS that a plan has. */
int32_t maq_space_graphs_of(const struct maq_plan *plan);

/* Sets the axis of a plan to a value of it; LAYOUT, BLOCK and STAGES depend on more and are set by planner/uniform/leaves.c. */
void maq_space_apply(struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis, int32_t value);

/* Whether the plan has that value: setting it would change nothing. BLOCK stands for any number of layers. */
bool maq_space_holds(const struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis,
                     int32_t value);

#define MAQ_SPACE_WORD 96
/* A value in words, as the user's lists write it ("core_attn+mlp", "E1L1"). */
const char *maq_space_word(char buf[MAQ_SPACE_WORD], const struct maq_search_space *space, enum maq_axis axis,
                           int32_t value);

#endif
