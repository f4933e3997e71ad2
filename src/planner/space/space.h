/*
 * space.h - the space of a search: a list of values for each axis of a plan.
 *
 * An axis is a key of the plan (two stand for more than their key: `recompute_granularity` also for the parts of a layer and the
 * number of layers, `pipeline_model_parallel_layout` for how many layers the ends of the pipeline count). A key that the document
 * or a flag sets has that one value. Everything else has the values that Megatron-LM runs; `full` adds the rest, and the user's own
 * lists come before both.
 *
 * A plan of the space is one value for each axis. The axes up to MAQ_AXIS_BRANCHES decide what a rank computes for a microbatch:
 * together they are a branch of branch and bound, whose layers are costed once (planner/uniform/branches.c). The others, its
 * leaves, arrange that work (planner/uniform/leaves.c).
 */
#ifndef MAQ_PLANNER_SPACE_SPACE_H
#define MAQ_PLANNER_SPACE_SPACE_H

#include "base/arena.h"
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
    X(OVERLAP_TP, overlap_tp, "tp_comm_overlap")                                                                       \
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
 * of HOST_OPTIM, thousandths; of RECOMPUTE, see below; of the others, the value in the plan.
 */
struct maq_axis_values {
    int32_t *at; /* [n] */
    uint32_t n;
    bool fixed;              /* the document, a flag or the user's list decides it */
    struct maq_span written; /* the place of that setting; none where a framework or a default decides */
};

#define MAQ_VALUE_AS_WRITTEN INT32_MIN /* the value of the document or the framework */
#define MAQ_VALUE_LIKE_TP (-1)         /* ETP: as many as TP */
#define MAQ_VALUE_PER_DOMAIN (-1)      /* REPLICAS: one copy of the sharded state in each scale-up domain */
#define MAQ_RECOMPUTE_VALUE_NONE 0
#define MAQ_RECOMPUTE_VALUE_BLOCK (-1) /* full, the first N layers of each virtual stage: every N */
#define MAQ_RECOMPUTE_VALUE_STAGES                                                                                     \
    (-2) /* full, the first N layers of each virtual stage, with the least N that fits in each stage */
#define MAQ_RECOMPUTE_VALUE_UNIFORM 0x4000 /* + layers per checkpoint: full, uniform */
#define MAQ_RECOMPUTE_VALUE_PARTS 0x10000  /* + bit set of enum maq_part: selective */

struct maq_search_space {
    struct maq_axis_values axis[MAQ_AXIS_COUNT];
    struct maq_str *orders;
    uint32_t n_orders;
    struct maq_plan base; /* a plan with the keys that are no axis */
};

/* The job that is searched: the open one with the nodes and the memory of the options. */
enum maq_status maq_search_job(struct maq_job *out, const struct maq_loaded_job *open,
                               const struct maq_search_opts *opts, struct maq_arena *arena, struct maq_diag *diag);

/* Node groups of one kind become one. */
void maq_search_join(struct maq_job *job);

/* The space of a job; its lists live in `arena`. Faults in the user's lists are diagnostics (MAQ_BAD_INPUT). */
enum maq_status maq_space_init(struct maq_search_space *out, const struct maq_loaded_job *open,
                               const struct maq_job *job, const struct maq_search_opts *opts, struct maq_arena *arena,
                               struct maq_diag *diag);

/*
 * decided.c: whether the job decides an axis, by its key or by others that go with it; `free`: only flags count, not
 * the document.
 */
bool maq_space_decided(const struct maq_loaded_job *open, enum maq_axis axis, bool free);
/* Resets the keys that go with an axis which is searched although the document sets it. */
void maq_space_release(struct maq_plan *base, const struct maq_loaded_job *open);
/* The axis with a single value, that of the job. */
enum maq_status maq_space_keep_written(struct maq_axis_values *out, const struct maq_loaded_job *open,
                                       enum maq_axis axis, struct maq_arena *arena);
/* The place in the document that sets a key of the plan; an empty span where none does. */
struct maq_span maq_space_place_of(const struct maq_loaded_job *open, const char *key);

/*
 * A small part of a space with the values that good plans mostly have: the first ones of most axes (narrow.c). Lists live in
 * `arena`.
 */
enum maq_status maq_space_narrow(struct maq_search_space *out, const struct maq_search_space *whole,
                                 struct maq_arena *arena);

/*
 * Sets the axis of a plan to one of its values. LAYOUT, and BLOCK and STAGES of RECOMPUTE, depend on other axes and are set by
 * planner/uniform/leaves.c.
 */
void maq_space_apply(struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis, int32_t value);

/* Whether the plan has that value: setting it would change nothing. BLOCK stands for any number of layers. */
bool maq_space_holds(const struct maq_plan *plan, const struct maq_search_space *space, enum maq_axis axis,
                     int32_t value);

#define MAQ_SPACE_WORD 96
/* A value as text, in the form of the user's lists ("core_attn+mlp", "E1L1"). */
const char *maq_space_word(char buf[MAQ_SPACE_WORD], const struct maq_search_space *space, enum maq_axis axis,
                           int32_t value);

/* default_values.c: the values of an axis that neither the document nor the user sets. */
enum maq_status maq_space_default(struct maq_axis_values *out, struct maq_search_space *space,
                                  const struct maq_job *job, enum maq_axis axis, bool full, struct maq_arena *arena);

#endif
