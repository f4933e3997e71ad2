/*
 * lower.h - lowering: the modules of a layer, as the operators and collectives that one rank executes.
 *
 * A module says how it is cut (enum maq_shard); here the cut is made with the plan's degrees, and the
 * collectives that the cut needs are put in. One function per pass; every pass walks the same module list,
 * the backward ones from its end.
 */
#ifndef MAQ_TRAIN_LOWER_H
#define MAQ_TRAIN_LOWER_H

#include "graph/segment.h"
#include "maquette/job.h"

/* What issuing costs on the host that belongs to a device, in nanoseconds; all zero where whole steps are replayed as graphs. */
struct maq_host_rates {
    double forward_ns, backward_ns;                        /* per operator */
    double kernel_ns;                                      /* per further kernel of one */
    double expert_ns;                                      /* per further call of one that loops over experts */
    double collective_ns, skew_ns, checkpoint_ns, read_ns; /* see struct maq_host_costs */
    double p2p_ns, pass_ns;
};

/* What one rank sees of a microbatch. */
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
    int store, math;  /* enum maq_dtype */
    double store_bytes;
    const struct maq_device *device; /* whose figures follow */
    int attention;                   /* enum maq_attention_backend of that device */
    struct maq_host_rates host;
    double contention[MAQ_STREAM_COUNT]; /* see contention.h */
    double
        offload_bytes; /* of the layer being lowered: activations that travel to the host and back beside its passes */
    bool repeats;      /* the layer being lowered is no end of the model: it runs framework.forward_calls times */
    int64_t vocab_cut; /* tp, or tp * pp with vocabulary parallelism over the pipeline */
    bool failed;
};

void maq_lower_init(struct maq_lower *lower, const struct maq_job *job, struct maq_items *items,
                    struct maq_arena *arena);

/* What follows is lowered for a layer with as many tokens as this one. */
void maq_lower_size(struct maq_lower *lower, const struct maq_layer *layer);

/* What follows is lowered for a stage whose groups lie so, on the device that is selected in `items`. */
void maq_lower_select(struct maq_lower *lower, const struct maq_placement *groups);

enum maq_pass {
    MAQ_PASS_FORWARD,
    MAQ_PASS_BACKWARD,       /* input and weight gradients */
    MAQ_PASS_BACKWARD_INPUT, /* B of schedules that split */
    MAQ_PASS_BACKWARD_WEIGHT /* W */
};

/* What is recomputed in front of a layer's backward pass. */
enum maq_redo { MAQ_REDO_NOTHING, MAQ_REDO_PARTS, MAQ_REDO_LAYER };

/* One pass of a layer on one rank as a segment in lower->arena. */
struct maq_segment *maq_lower_layer(struct maq_lower *lower, const struct maq_layer *layer, enum maq_pass pass,
                                    enum maq_redo redo);

/* ---- shared by the files of the lowering ---- */

struct maq_lowering {
    struct maq_lower *lower;
    const struct maq_layer *layer;
    struct maq_segment_writer w;
    enum maq_pass pass;
    bool pruned;         /* a recomputation that leaves out what the backward pass does not need */
    bool shared_pending; /* the shared experts are to run beside the next exchange of tokens */
};

/* Rows and local widths of a module on this rank. */
struct maq_local {
    int64_t rows, in, out;
};
struct maq_local maq_lower_local(const struct maq_lower *lower, const struct maq_layer *layer,
                                 const struct maq_module *m);

/* Parameters of a module that one rank holds (before any data-parallel sharding). */
double maq_lower_local_params(const struct maq_lower *lower, const struct maq_module *m);

/* Whether a linear has a LoRA adapter; whether a module's own weights are trained. */
bool maq_lower_adapted(const struct maq_lower *lower, const struct maq_module *m);
bool maq_lower_trained(const struct maq_lower *lower);

struct maq_op maq_op_make(enum maq_op_kind kind, int dtype, unsigned flags, int64_t d0, int64_t d1, int64_t d2,
                          int64_t d3, int64_t d4, int64_t d5);
struct maq_coll maq_coll_make(const struct maq_lower *lower, enum maq_coll_kind kind, enum maq_group_kind group,
                              double bytes);

/* Calls that quantize one tensor: the scales of small blocks are swizzled for the products, row- and column-wise. */
uint32_t maq_lower_quantize_calls(const struct maq_lower *lower);
/* The pass over a tensor of which a recipe needs the maximum before it can quantize. */
void maq_lower_maximum(struct maq_lowering *l, int64_t elements);
/* Calls of a product with a weight: those scales are swizzled for every product anew (Transformer Engine, swizzle_inputs). */
uint32_t maq_lower_weight_calls(const struct maq_lower *lower);
/* Adds weight gradients of so many elements into the main ones where no product does. */
void maq_lower_accumulate(struct maq_lowering *l, int64_t elements);
void maq_lower_linear(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
void maq_lower_attention(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
/* Whether the module is a token table that is looked up by a product with one-hot vectors, one value per token and (local) row. */
bool maq_lower_one_hot(const struct maq_lower *lower, const struct maq_module *m);
/* Whether keys and values are copied out to as many heads as queries have, which fused attention then keeps. */
bool maq_lower_repeats_kv(const struct maq_lower *lower, const struct maq_attention_geometry *g);
/* Of unfused attention: whether scale, mask and softmax are one kernel. */
bool maq_lower_softmax_fused(const struct maq_lower *lower, const struct maq_attention_geometry *g);
/* Whether scores become 4-byte ones for a softmax that is no kernel with their conversion, and 16-bit ones again behind it. */
bool maq_lower_softmax_widens(const struct maq_lower *lower, const struct maq_attention_geometry *g);
void maq_lower_expert(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);
/* What PyTorch's pointwise kernels do behind the last product of the experts and before their activation. */
void maq_lower_expert_bias(struct maq_lowering *l, const struct maq_module *m, int64_t rows, int64_t groups,
                           bool forward);
void maq_lower_clamp(struct maq_lowering *l, const struct maq_module *m, int64_t rows, bool forward);
bool maq_lower_clamps_apart(const struct maq_lower *lower, const struct maq_module *m);
void maq_lower_exchange(struct maq_lowering *l, const struct maq_module *m, enum maq_pass pass);

/* The shared experts of the layer, in the direction of the pass. */
void maq_lower_shared(struct maq_lowering *l);

/* Mean keys per query for the workload's documents (packing and length distribution applied). */
double maq_lower_keys(const struct maq_lower *lower, const struct maq_attention_geometry *g);

#endif
