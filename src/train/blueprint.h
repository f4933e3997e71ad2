/*
 * blueprint.h - a training step in its repeated parts: what both the fast path and the full graph are made from.
 *
 *   block      a distinct layer kind, the embedding, the output, an MTP depth: its segments for each pass, its parameters and activations on one rank
 *   entry      one occurrence of a block in a virtual stage, recomputed or not
 *   program    the entries of one virtual stage (position), in forward order
 *   buckets    the same entries grouped for data-parallel communication
 *
 * Data-parallel communication crosses the borders of layers, so it is not in the segments:
 *
 *   no_shard, optim   gradients are reduced once per step, bucket by bucket in backward order, each when its last entry's weight gradient of the last
 *                     microbatch is done; parameters (optim) are gathered in forward order before the first microbatch
 *   optim_grads       gradients are reduce-scattered in every microbatch
 *   optim_grads_params  and parameters are gathered in every pass, `fsdp_prefetch` entries ahead (FSDP, ZeRO-3)
 */
#ifndef MAQ_TRAIN_BLUEPRINT_H
#define MAQ_TRAIN_BLUEPRINT_H

#include "plan/schedule.h"
#include "train/atoms.h"
#include "train/lower.h"

/*
 * What outlives one plan: distinct operators with their costs, lowered blocks, schedule skeletons. A planner
 * keeps one cache per (model, cluster, workload) and builds hundreds of thousands of blueprints from it;
 * nothing in it depends on more of a plan than its key holds. One thread.
 */
struct maq_cache {
    struct maq_arena arena;
    struct maq_measured *measured; /* owned; NULL = the job names no file of measured kernels */
    struct maq_costs costs;        /* the chain that prices every item, as the job asks for it */
    struct maq_items items;
    struct maq_block_slot *blocks; /* open addressing */
    uint32_t n_blocks, block_slots;
    struct maq_cached_schedule **schedules;
    uint32_t n_schedules, schedule_slots;
    double *finish; /* scratch of one evaluation, not initialised */
    size_t finish_size;
};
/* The cost chain that a job asks for. Its file of measured kernels is opened; *measured is owned by the caller (maq_measured_close), NULL where
 * the job names none or its chain does not ask it. */
enum maq_status maq_costs_of_job(struct maq_costs *out, struct maq_measured **measured, const struct maq_job *job,
                                 struct maq_diag *diag);
/* Of a job's cluster and cost chain; opens its file of measured kernels. *cache is to be ended (maq_cache_fini) even on failure. */
enum maq_status maq_cache_init(struct maq_cache *cache, const struct maq_job *job, struct maq_diag *diag);
void maq_cache_fini(struct maq_cache *cache);
/* n doubles, not initialised, valid until the next call; NULL when out of memory. */
double *maq_cache_finish(struct maq_cache *cache, size_t n);

/* What a module does to the allocator, in bytes. */
struct maq_walk_step {
    double out;  /* its output */
    double keep; /* kept for its backward pass besides its input: masks, scores, quantized copies */
    double scratch
        [2]; /* comes and goes with its forward pass, its backward pass: gathered input, raw scores, their gradients */
    double gradient;   /* of its input */
    double weight;     /* of its weights, where it is not added to the main gradient in one kernel */
    bool input_stays;  /* its input is kept for the backward pass */
    bool shares_input; /* with the module before it */
};

/* The modules of a layer in forward order. */
struct maq_walk {
    const struct maq_walk_step *steps;
    uint32_t n;
    double missing; /* parts that are recomputed, while the layer's backward pass runs */
};

struct maq_block {
    const struct maq_layer *layer;
    const struct maq_segment *forward[2];               /* [recomputed]: they differ only in what is offloaded */
    const struct maq_segment *backward[2];              /* [recomputed]; the input half when the schedule splits */
    const struct maq_segment *weight;                   /* split schedules only */
    double dense_params, expert_params, adapter_params; /* of one rank, before data-parallel sharding */
    double dense_matrices, expert_matrices;             /* of those, what Muon would update */
    double act_bytes[2];                                /* kept from forward to backward, [recomputed] */
    struct maq_walk walk[2];                            /* the tensors of a pass, [recomputed] */
    double forward_transient, backward_transient[2];
};

struct maq_entry {
    uint16_t block;
    uint8_t redo;   /* recomputed before its backward */
    uint16_t layer; /* number among the layers of the virtual stage, UINT16_MAX for blocks that are none */
};

/* One data-parallel bucket: entries [first, last] of a program. Items are 0 when there is nothing to send. */
struct maq_bucket_sync {
    uint16_t first, last;
    uint32_t reduce[3]; /* dense, its replica part (HSDP), experts: collectives for the gradients, one after another */
    uint32_t gather[2]; /* dense, experts: collectives for the parameters */
    double reduce_ns, gather_ns;
    double forward_ns, backward_ns, weight_ns; /* compute of its entries; backward: the input half when split */
    double done_ns;                            /* scratch of a pass's evaluation: end of its compute */
};

/* Virtual stages that hold the same share one program. */
struct maq_program {
    struct maq_entry *entries;
    uint32_t n_entries;
    struct maq_bucket_sync *buckets; /* in forward order */
    uint32_t n_buckets;
    double forward_ns, backward_ns, weight_ns; /* makespan of the pass, its data-parallel communication included */
    double experts_under_ns;                   /* exchange of experts hidden in one forward and one backward pass */
    double plain_forward_ns, plain_backward_ns, plain_weight_ns; /* sums of segments alone */
    double dense_params, expert_params, adapter_params;
    double dense_matrices, expert_matrices; /* of those, what Muon would update */
    double act_bytes;                       /* kept per microbatch */
    double transient_bytes;                 /* working set of the heaviest moment of a pass, beyond act_bytes */
    /* FSDP: of the stream that gathers, two entries one after the other, less what is in the above */
    double gather_bytes;
    double gather_ns, reduce_ns; /* sums over the buckets */
    double forward_gap_ns, backward_gap_ns,
        weight_gap_ns; /* at the end of a pass, while the host catches up; in the makespans */
    double wait_ns; /* of its passes in a step, for the host and data parallelism, that may shrink when compute grows */
    double forward_drag_ns, backward_drag_ns,
        weight_drag_ns; /* compute lost to communication beside it; in the makespans */
};

/* The tasks that complete gradients, last one of each (device, position), in the order in which they end on a
 * stage. */
struct maq_grad_tasks {
    const uint32_t *task;  /* [first[stages]] */
    const uint32_t *first; /* [stages + 1] */
};

#define MAQ_MAX_BLOCKS 512

/* What a block is used as: embedding and output are never recomputed; an offloaded layer's activations wait on the host. */
enum maq_block_use { MAQ_BLOCK_LAYER, MAQ_BLOCK_OFFLOADED, MAQ_BLOCK_ENDS };

/* The blocks of the stages that run on one kind of device with their groups placed alike; ids into `blocks`. */
#define MAQ_MAX_SETS 32
struct maq_block_set {
    uint16_t group;                     /* node group */
    const struct maq_placement *groups; /* process groups */
    uint32_t layers, offloaded;         /* first of [n_kinds] */
    uint32_t embedding, output, mtp;
};

struct maq_blueprint {
    const struct maq_job *job;
    struct maq_arena *arena;
    struct maq_cache *cache;
    struct maq_items *items; /* the cache's */
    struct maq_lower lower;
    uint32_t n_blocks, n_sets;
    struct maq_block_set sets[MAQ_MAX_SETS];
    uint16_t *stage_set; /* [pp] -> sets */
    const struct maq_block *blocks[MAQ_MAX_BLOCKS];
    const struct maq_program **programs; /* [n_virtual] by position */
    const struct maq_schedule *schedule; /* the cache's */
    const struct maq_grad_tasks *grads;  /* of the schedule */
    const double *hop_ns; /* [n_positions] transfer between a position and the one before; NULL when pp = 1 */
    const uint32_t *hop_item;
    double nccl_bytes;      /* buffers of the communicators of one rank */
    bool stalls;            /* transfers block the sender */
    bool sync_every_pass;   /* ZeRO-2/3: gradients reduced in every backward */
    bool gather_every_pass; /* ZeRO-3 */
    bool gather_backward;   /* ZeRO-3 that reshards after the forward */
    bool gather_first;      /* parameters gathered before the first microbatch (ZeRO-1/2 with overlap) */
    const struct maq_segment *
        *optimizer; /* [pp] end-of-step segment of a stage: norm, clip, update, cast; equal stages share it */
    double *
        lost_ns; /* [pp] what the passes of a stage lost to data-parallel communication beside them, not in the makespans */
    /* [pp] exchange of experts in passes of the filling and draining pipeline, which no other microbatch hides; not in the makespans */
    double *unpaired_ns;
    uint32_t norm_item; /* the all-reduce of the gradient norm, over the whole job */
    uint32_t tied_item; /* reduction of tied embedding gradients between first and last stage; 0 = none */
};

/* Builds in `arena` what is the plan's own and in the cache what is not; job and cache are borrowed. */
enum maq_status maq_blueprint_build(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                    struct maq_arena *arena, struct maq_diag *diag);

/* The same without programs and the end of the step: sets, blocks, schedule and transfers. */
enum maq_status maq_blueprint_blocks(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                     struct maq_arena *arena, struct maq_diag *diag);

/* cache.c: a block of the model under the plan of bp, lowered once; a schedule skeleton, built once. */
enum maq_status maq_cache_block(const struct maq_block **out, struct maq_blueprint *bp, const struct maq_layer *layer,
                                enum maq_block_use use);
enum maq_status maq_cache_schedule(struct maq_blueprint *bp, struct maq_diag *diag);
/* blueprint.c: fills a block whose key is new. */
enum maq_status maq_block_lower(struct maq_block *block, struct maq_lower *lower, const struct maq_layer *layer,
                                enum maq_block_use use, bool split);

/* The programs of a stage: positions it holds (at most schedule.chunks, or 2 for dualpipe); returns how many. */
uint32_t maq_blueprint_positions(const struct maq_blueprint *bp, uint32_t stage, uint16_t *positions);

/* The program of a stretch of the model in the place of the blueprint's stage v->stage; zeroed storage in bp->arena. */
enum maq_status maq_blueprint_program(struct maq_program *out, struct maq_blueprint *bp,
                                      const struct maq_virtual_stage *v, bool embeds, bool outputs);

/* Parameters that one rank holds, before data-parallel sharding. */
struct maq_owned_params {
    double dense, expert, adapters;
    double dense_matrices, expert_matrices;
};
struct maq_owned_params maq_owned_by(const struct maq_program *const *programs, uint32_t n);

/* The end of the step on one rank that holds n programs, on the selected stage; NULL when out of memory. */
const struct maq_segment *maq_blueprint_optimizer(struct maq_blueprint *bp, const struct maq_program *const *programs,
                                                  uint32_t n);

/* Bytes of one transfer between two stages behind a layer, the mean of both directions. */
double maq_blueprint_hop_bytes(const struct maq_blueprint *bp, uint32_t before);

/* Operators and collectives made from now on are those of this stage: its device, its groups. */
void maq_blueprint_select(struct maq_blueprint *bp, uint32_t stage);

/* Layers that share one kept input where whole ones are recomputed: a checkpoint of recompute_num_layers of them; else 1. */
int32_t maq_layers_per_checkpoint(const struct maq_plan *plan);
/* Fills in transient_bytes and gather_bytes: stage_memory.c. */
void maq_program_transient(struct maq_program *program, const struct maq_blueprint *bp);

/* Bytes that one rank keeps of a layer between its passes, and the working set of its costliest moment beyond
 * them. memory.c */
void maq_block_memory(struct maq_block *block, struct maq_lower *lower);

/* Buffers that the communicators of one rank hold. stage_memory.c */
double maq_communicator_bytes(const struct maq_job *job);

/* Data-parallel buckets and their collectives. sync.c */
enum maq_status maq_blueprint_sync(struct maq_blueprint *bp, struct maq_program *program);
/* Parameters of a bucket that fills by size, over so many data-parallel ranks. */
double maq_sync_bucket_params(double ranks);
/* Backward passes: the whole one or, in schedules that split, the halves for inputs and for weights, always
 * one after the other. */
enum maq_half { MAQ_HALF_WHOLE, MAQ_HALF_INPUT, MAQ_HALF_WEIGHT };
/* What a half does besides computing: gathers parameters again (ZeRO-3); reduces the gradients it completes
 * (ZeRO-2/3). */
bool maq_half_gathers(const struct maq_blueprint *bp, enum maq_half half);
bool maq_half_reduces(const struct maq_blueprint *bp, enum maq_half half);
const struct maq_segment *maq_half_segment(const struct maq_blueprint *bp, const struct maq_entry *e,
                                           enum maq_half half);
/* What a block brings to the DP stream in each forward and backward pass, both halves together, in a bucket of its own; 0 where
 * buckets hold several (bucket_layers): together they take less. */
struct maq_atom_sync maq_sync_of_pass(struct maq_blueprint *bp, const struct maq_block *block);
/* Makespan of one pass of a program with its collectives on the DP stream. Relative to the start of the pass. */
double maq_sync_forward_ns(const struct maq_blueprint *bp, struct maq_program *program);
double maq_sync_backward_ns(const struct maq_blueprint *bp, struct maq_program *program, enum maq_half half);
/* Earliest end of the first forward pass of a program whose parameters arrive bucket by bucket from time
 * `from` on; *until = end of its last gather. */
double maq_sync_ready_ns(const struct maq_program *program, double from, double *until);
/* End of a program's gradient reduction when the last pass that completes gradients starts at `start` and the
 * DP stream is free at `free_at`. */
double maq_sync_reduced_ns(const struct maq_blueprint *bp, const struct maq_program *program, double start,
                           double free_at);

#endif
