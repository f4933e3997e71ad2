/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.h - lowering: the modules of a layer, as the operators and collectives that one rank executes.
 *
 * A module has a rule by which it is cut (enum maq_shard); lowering cuts it by the plan's degrees and inserts the
 * collectives that the cut needs. One function per pass; every pass walks the same module list, the backward ones from
 * its end.
 */
#ifndef MAQ_LOWER_LOWER_H
#define MAQ_LOWER_LOWER_H

#include "graph/segment.h"
#include "maquette/job.h"

/* Time of issuing on the host of a device, in nanoseconds; all zero where whole steps are CUDA graphs. */
struct maq_host_rates {
    double forward_ns, backward_ns;                        /* per operator */
    double kernel_ns;                                      /* per further kernel of one */
    double expert_ns;                                      /* per further call of one that loops over experts */
    double collective_ns, skew_ns, checkpoint_ns, read_ns; /* see struct maq_host_costs */
    double p2p_ns, pass_ns;
};
struct maq_host_rates maq_host_rates_of(const struct maq_job *job, const struct maq_device *device);

/* State of lowering: a microbatch as one rank sees it. */
struct maq_lower {
    const struct maq_job *job;
    const struct maq_plan *plan;
    const struct maq_placement *groups; /* of the stage being lowered */
    struct maq_items *items;
    struct maq_arena *arena;
    int64_t seq;           /* tokens of a sequence in the layer being lowered */
    int64_t tokens;        /* inside the TP region: mbs * seq / cp */
    int64_t tokens_region; /* outside: tokens / tp with sequence parallelism */
    int64_t expert_rows;   /* rows that one rank's experts process, capacity applied */
    int64_t local_experts;
    double imbalance; /* busiest expert-parallel rank over the mean, where it counts */
    int store, math;  /* enum maq_dtype; math: of products that the recipe quantizes, in the layer being lowered */
    double store_bytes;
    const struct maq_device *device; /* whose figures follow */
    int attention;                   /* enum maq_attention_backend of that device */
    struct maq_host_rates host;
    double contention[MAQ_STREAM_COUNT]; /* see contention.h */
    double
        offload_bytes; /* of the layer being lowered: activations that are copied to the host and back during its passes */
    bool repeats;      /* the layer being lowered is not an end of the model: it runs framework.forward_calls times */
    int64_t vocab_cut; /* tp, or tp * pp with vocabulary parallelism over the pipeline */
    bool failed;
};

void maq_lower_init(struct maq_lower *lower, const struct maq_job *job, struct maq_items *items,
                    struct maq_arena *arena);

/* Sets sizes for lowering a layer with the tokens and widths of this one. */
void maq_lower_size(struct maq_lower *lower, const struct maq_layer *layer);

/* Selects process groups for lowering a stage, on the device that is selected in `items`. */
void maq_lower_select(struct maq_lower *lower, const struct maq_placement *groups);

enum maq_pass {
    MAQ_PASS_FORWARD,
    MAQ_PASS_BACKWARD,       /* input and weight gradients */
    MAQ_PASS_BACKWARD_INPUT, /* B of schedules that split */
    MAQ_PASS_BACKWARD_WEIGHT /* W */
};

/* What is recomputed before a layer's backward pass. */
enum maq_redo { MAQ_REDO_NOTHING, MAQ_REDO_PARTS, MAQ_REDO_LAYER };

/* Selective checkpointing by operator: outputs of some operators are kept, all else is computed again (lower.c). */
bool maq_lower_by_op(const struct maq_lower *lower);

/* The module that begins a layer's second half, MLP or experts: the norm in front of it. */
uint32_t maq_lower_second_half(const struct maq_layer *layer);
/*
 * Whether a module runs out of a CUDA graph: of all passes, or of the part of its layer that the plan's graph_scope names (Megatron
 * Core, transformer_layer.py). `second`: where the layer's second half begins.
 */
bool maq_lower_graphed(const struct maq_plan *plan, const struct maq_layer *layer, uint32_t module, uint32_t second);

/* One pass of a layer on one rank as a segment in lower->arena. */
struct maq_segment *maq_lower_layer(struct maq_lower *lower, const struct maq_layer *layer, enum maq_pass pass,
                                    enum maq_redo redo);

#endif
