/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blueprint.h - a training step as its repeated parts, from which both the fast path and the full graph are made.
 *
 *   block      a distinct layer kind, the embedding, the output, an MTP depth: its segments for each pass, its parameters and
 *              activations on one rank
 *   entry      one occurrence of a block in a virtual stage, recomputed or not
 *   program    the entries of one virtual stage (position), in forward order
 *   buckets    the same entries grouped for data-parallel communication
 *
 * Data-parallel communication crosses the borders of layers, so it is not in the segments:
 *
 *   no_shard, optim   gradients are reduced once per step, bucket by bucket in backward order, each when its last entry's weight
 *                     gradient of the last microbatch is done; parameters (optim) are gathered in forward order before the first
 *                     microbatch
 *                     (no_shard under DistributedDataParallel: inside the last backward pass, which ends with it; ddp.h)
 *   optim_grads       gradients are reduce-scattered in every microbatch
 *   optim_grads_params  and parameters are gathered in every pass, `fsdp_prefetch` entries ahead (FSDP, ZeRO-3); with
 *                       reduce_once_per_step gradients are reduced in the last backward pass alone (where no backward pass gathers
 *                       again as in optim, entry by entry), with gather_once_per_step parameters are gathered as in optim too
 *
 * Parameters on the host or on NVMe come up on the copy stream: the upload of an entry is released when its gather is, and the gather waits
 * for it. Where the optimizer is on the host, reduced gradients go down on that stream, behind their reduction. One stream for both ways,
 * since where all devices of a node copy it is mostly the host's memory that limits them, and that both ways share.
 */
#ifndef MAQ_TRAIN_STEP_BLUEPRINT_H
#define MAQ_TRAIN_STEP_BLUEPRINT_H

#include "lower/lower.h"
#include "plan/schedule/schedule.h"
#include "train/step/block.h"

struct maq_cache;

struct maq_entry {
    uint16_t block;
    uint8_t redo;   /* recomputed before its backward */
    uint16_t layer; /* number among the layers of the virtual stage, UINT16_MAX for blocks that are none */
};

#define MAQ_BUCKET_REDUCES 5
#define MAQ_BUCKET_GATHERS 4

/* One data-parallel bucket: entries [first, last] of a program. Items are 0 when there is nothing to send. */
struct maq_bucket_sync {
    uint16_t first, last;
    /* One after another on the stream of collectives: of gradients, dense, its replica part (HSDP), experts; of parameters, dense and
     * experts, before the forward pass and again before the backward pass. ZeRO++ has kernels around its collectives there. */
    uint32_t reduce[MAQ_BUCKET_REDUCES];
    uint32_t gather[MAQ_BUCKET_GATHERS], again[MAQ_BUCKET_GATHERS];
    uint32_t upload;   /* offloaded parameters: the rank's shards come from the host before they are gathered */
    uint32_t download; /* and its shards of reduced gradients go there */
    double reduce_ns, gather_ns, again_ns, upload_ns, download_ns;
    double forward_ns, backward_ns, weight_ns; /* compute of its entries; backward: the input half when split */
    double done_ns;                            /* scratch of a pass's evaluation: end of its compute */
    /* DistributedDataParallel: its buckets that are full with this entry, in the order in which they are; they are the reductions */
    struct maq_ddp_bucket *ddp;
    uint32_t n_ddp;
    uint32_t fill; /* copies of the entry's gradients into buckets, divided by the ranks; 0 = none */
    double fill_ns;
};

/* A bucket of DistributedDataParallel: ddp.h. */
struct maq_ddp_bucket {
    uint32_t reduce, empty; /* items: its all-reduce; the copy back to the gradients, 0 = none */
    uint32_t tensors;
    uint16_t
        step; /* of the backward pass of the entry that it is full with: it may begin then; MAQ_STEP_NONE: at its end */
    double ready_ns; /* that time, from the beginning of the entry's backward pass */
    double reduce_ns, empty_ns;
    double reduced_ns; /* scratch of a pass's evaluation: end of its all-reduce */
};

/* Of a program with CUDA graphs, for one microbatch: train/memory/cuda_graphs.c. All zero without. */
struct maq_program_graphs {
    double nodes;                     /* kernels, copies and collectives of its graphs */
    double act_bytes;                 /* of what it keeps, in the pool of the graphs */
    double buffer_bytes, lying_bytes; /* hidden states in buffers; gradients in buffers that all graphs share */
    double working, apart;            /* working set of the graphs, of what runs outside of them */
};

/* The program of a virtual stage; virtual stages that hold the same layers share one. */
struct maq_program {
    struct maq_entry *entries;
    uint32_t n_entries;
    struct maq_bucket_sync *buckets; /* in forward order */
    uint32_t n_buckets;
    const struct maq_program *last; /* sync_last_pass: the same with the reduction in its backward pass; else NULL */
    /* DistributedDataParallel: the all-reduce that tells which parameters were used, 0 = none; copies of the last backward pass on the
     * compute stream; launches of the wrapper there */
    uint32_t used_map;
    double ddp_copies_ns, ddp_launches;
    double forward_ns, backward_ns, weight_ns; /* makespan of the pass, its data-parallel communication included */
    double experts_under_ns;                   /* exchange of experts hidden in one forward and one backward pass */
    double exchange_wait_ns; /* and what a merged pair of them waits for it; included in the backward's makespan */
    double plain_forward_ns, plain_backward_ns, plain_weight_ns; /* sums of segments alone */
    double dense_params, expert_params, adapter_params;
    double dense_matrices, expert_matrices;          /* of those, what Muon would update */
    double dense_narrow, expert_narrow;              /* of those, what the recipe quantizes */
    double dense_paged, expert_paged, adapter_paged; /* in tensors whose moments may be paged */
    struct maq_low_rank low_rank;                    /* what GaLore projects */
    double largest;                                  /* parameters of the largest tensor */
    double act_bytes;                                /* kept per microbatch */
    double transient_bytes; /* working set of the heaviest moment of a pass, beyond act_bytes */
    /* FSDP: of the stream that gathers, two entries one after the other, and the unit of what is in no layer; what of it is in
     * the above */
    double gather_bytes, ahead_bytes;
    struct maq_program_graphs graphs;
    double gather_ns, again_ns, reduce_ns, upload_ns, download_ns; /* sums over the buckets */
    double copies_ns; /* how much longer a forward and a backward pass are for them; included in the makespans */
    double forward_gap_ns, backward_gap_ns,
        weight_gap_ns; /* wait for the host at the end of a pass; included in the makespans */
    double wait_ns; /* of its passes in a step, for the host and data parallelism, that may shrink when compute grows */
    double forward_drag_ns, backward_drag_ns,
        weight_drag_ns; /* compute lost to concurrent communication; included in the makespans */
};

#define MAQ_MAX_BLOCKS 512

/* The blocks of stages on one kind of device whose process groups are placed alike; indices into `blocks`. */
#define MAQ_MAX_SETS 32
struct maq_block_set {
    uint16_t group;                     /* node group */
    const struct maq_placement *groups; /* process groups */
    uint32_t layers, offloaded;         /* first of [n_kinds] */
    uint32_t embedding, output, mtp;
    uint32_t output_apart; /* of a stage without the embedding */
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
    const double *hop_ns; /* [n_positions] transfer between a position and the one before; NULL when pp = 1 */
    const uint32_t *hop_item;
    double nccl_bytes;      /* buffers of the communicators of one rank */
    bool stalls;            /* transfers block the sender */
    bool sync_every_pass;   /* ZeRO-2/3: gradients reduced in every backward */
    bool sync_last_pass;    /* ZeRO-3: in the last one of a position, with what that gathers; DistributedDataParallel */
    bool gather_every_pass; /* ZeRO-3 */
    bool gather_backward;   /* ZeRO-3 that reshards after the forward */
    bool gather_first;      /* parameters gathered before the first microbatch (ZeRO-1/2 with overlap) */
    bool ddp;               /* DistributedDataParallel's buckets are what is reduced */
    const struct maq_segment *
        *optimizer; /* [pp] end-of-step segment of a stage: norm, clip, update, cast; equal stages share it */
    double *
        lost_ns; /* [pp] compute that the passes of a stage lost to concurrent data-parallel communication; not in the makespans */
    /* [pp] expert all-to-all of passes that fill and drain the pipeline, which no other microbatch hides; not in the makespans */
    double *unpaired_ns;
    uint32_t norm_item; /* the all-reduce of the gradient norm, over the whole job; with post_validation over a stage */
    uint32_t told_item; /* post_validation: what a stage tells the next one of norm and overflows; 0 = nothing */
    uint32_t tied_item; /* reduction of tied embedding gradients between first and last stage; 0 = none */
};

/*
 * Builds the blueprint of a job. What belongs to this plan lives in `arena`, what plans share in the cache; job and
 * cache are borrowed.
 */
enum maq_status maq_blueprint_build(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                    struct maq_arena *arena, struct maq_diag *diag);

/* The same without programs and the end of the step: sets, blocks, schedule and transfers. */
enum maq_status maq_blueprint_blocks(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                     struct maq_arena *arena, struct maq_diag *diag);

/*
 * Searched schedules: orders the tasks for the passes and transfers of this plan, in bp->arena; others are left as they are.
 * step_time.c
 */
enum maq_status maq_blueprint_order(struct maq_blueprint *bp, struct maq_diag *diag);

/*
 * Expert all-to-all of a program that is hidden under another microbatch, forward and backward; 0 where every pass has a partner
 * (DualPipe).
 */
double maq_hidden_exchange_ns(const struct maq_blueprint *bp, const struct maq_program *program);

/* The program of a layer range of the model in the place of the blueprint's stage v->stage; zeroed storage in bp->arena. */
enum maq_status maq_blueprint_program(struct maq_program *out, struct maq_blueprint *bp,
                                      const struct maq_virtual_stage *v, bool embeds, bool outputs);

/* How long a transfer between a position and the one before holds its sender's port: 0 inside a domain, and where senders stall. */
double maq_blueprint_port_ns(const struct maq_blueprint *bp, uint32_t position);

/* Bytes of one transfer between two stages behind a layer, the mean of both directions. */
double maq_blueprint_hop_bytes(const struct maq_blueprint *bp, uint32_t before);

/* Selects the stage whose device and process groups the operators and collectives lowered from now on have. */
void maq_blueprint_select(struct maq_blueprint *bp, uint32_t stage);

#endif
