/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - a piece of a rank's program that is repeated: the forward or backward pass of one layer, an
 * optimizer step.
 *
 * A segment is a short list of steps on the streams of one rank, in program order. A step waits for the step
 * before it on its own stream and for up to two others. A segment begins when all its streams are free and
 * ends when all are done, so that segments compose by addition:
 *
 *     duration(A then B) = duration(A) + duration(B)
 *
 * (Exchanges of experts that run under another microbatch are not waited for; what they make passes wait is the program's.)
 *
 * This is what makes the fast path exact: a layer is evaluated once and then only counted. Communication that
 * crosses the border of a layer (gradient reduction, parameter gathering, pipeline transfers) is therefore
 * not in segments but in train/step/dp_comm.c and in the schedule.
 */
#ifndef MAQ_GRAPH_SEGMENT_H
#define MAQ_GRAPH_SEGMENT_H

#include "graph/items.h"
#include "maquette/graph.h"
#include "maquette/model.h"

#define MAQ_STEP_NONE UINT16_MAX

struct maq_step {
    uint32_t item;
    uint16_t name;     /* the module's, in items->names */
    uint16_t after[2]; /* earlier steps of the segment, MAQ_STEP_NONE */
    uint8_t stream, bucket, part;
};

/* Nodes of a layer with experts: where Megatron-LM's combined 1F1B cuts it (train/step/merged_pass.h). */
enum maq_layer_node { MAQ_LAYER_ATTENTION, MAQ_LAYER_DISPATCH, MAQ_LAYER_EXPERTS, MAQ_LAYER_COMBINE, MAQ_LAYER_NODES };

/* The step of the compute stream with which something is there, and when it ends, from the beginning of the segment. */
struct maq_segment_mark {
    uint16_t step; /* MAQ_STEP_NONE: nothing was computed for it */
    double end_ns;
};

struct maq_segment {
    struct maq_step *steps;
    uint32_t n, size;
    double dur_ns;                      /* of the whole, the host never late */
    double bucket_ns[MAQ_BUCKET_COUNT]; /* what the compute stream does or waits for; adds up to dur_ns */
    double experts_under_ns;            /* exchange of experts that runs under compute, less what compute loses to it */
    double node_ns[MAQ_LAYER_NODES];    /* where exchanges run apart: each node of the layer, alone */
    /* Whole backward passes: when the gradients of each of the layer's modules are there, [n_modules]; else NULL. */
    struct maq_segment_mark *gradients;
    /* the host: how long it takes to issue the segment, see train/step/host.c */
    double issue_ns;                       /* after the first read, or all of it */
    double launches;                       /* operators and collectives */
    double graphed;                        /* of those, in CUDA graphs */
    bool reads;                            /* it waits for a value of the device: */
    double issue_before_ns, run_before_ns; /* host and device time before the first read */
    double read_ns;                        /* the read itself */
};

/* Appends steps into the arena; the writer keeps what was last. */
struct maq_segment_writer {
    struct maq_segment *out;
    struct maq_items *items;
    struct maq_arena *arena;
    uint8_t bucket; /* of the compute steps that follow */
    uint8_t part;
    const char *name;
    uint16_t last;                 /* last step added */
    uint16_t on[MAQ_STREAM_COUNT]; /* last step of each stream */
    uint16_t sync;                 /* every step that follows waits for this one (a blocking collective) */
    bool serial;                   /* nothing runs beside anything: every collective is waited for */
    bool apart;                    /* exchanges of experts run on under other passes: the segment ends without them */
    uint8_t node;                  /* enum maq_layer_node, of what follows */
    uint8_t exchange;              /* the same, of the exchanges that follow */
    double node_since;             /* when it began */
    bool tp_stops;                 /* the host waits for the device before and after every collective of a TP group */
    double read_ns;                /* and that long besides, each time */
    double launch_ns;              /* host time per operator that follows */
    double kernel_ns;              /* per further kernel of an operator */
    double expert_ns;              /* per further call of one that is a loop over experts */
    double skew_ns;                /* spread of the hosts of a group at a collective */
    double collective_ns;          /* per collective */
    const double *contention;      /* [MAQ_STREAM_COUNT] share of compute lost beside communication; NULL = none */
    bool graph;                    /* what follows is captured in a CUDA graph */
    bool failed;
};

/* launch_ns and collective_ns of the writer are 0: set them. */
void maq_segment_begin(struct maq_segment_writer *w, struct maq_segment *out, struct maq_items *items,
                       struct maq_arena *arena);

/* A kernel on the compute stream. */
uint16_t maq_segment_op(struct maq_segment_writer *w, const struct maq_op *op);
/* A kernel of `launches` host launches. */
uint16_t maq_segment_ops(struct maq_segment_writer *w, const struct maq_op *op, uint32_t launches);
/* A chain of operators of the framework, each called by itself, that is one operator to the device's costs. */
uint16_t maq_segment_chain(struct maq_segment_writer *w, const struct maq_op *op);
/* A kernel that is a loop of calls of a library, over experts. */
uint16_t maq_segment_calls(struct maq_segment_writer *w, const struct maq_op *op, uint32_t calls);
/* A collective on `stream` that the compute stream waits for before it goes on. Nothing is added for groups
 * of one. */
uint16_t maq_segment_coll(struct maq_segment_writer *w, const struct maq_coll *coll, enum maq_stream stream);
/* A collective that runs beside the compute that follows; it starts when `after` (a step or MAQ_STEP_NONE) is
 * done. Join it with maq_segment_join. */
uint16_t maq_segment_coll_async(struct maq_segment_writer *w, const struct maq_coll *coll, enum maq_stream stream,
                                uint16_t after);
/* The next compute step waits for `step`. */
void maq_segment_join(struct maq_segment_writer *w, uint16_t step);
/* Host copy on the copy stream, asynchronous. */
uint16_t maq_segment_copy(struct maq_segment_writer *w, double bytes, uint16_t after);
/* The host waits for what the compute stream does so far, and the device for the host to go on. The first read of a segment is left
 * to those who know how far the host was ahead before it; a later one becomes a gap on the compute stream when the host was slower
 * since the one before. */
void maq_segment_read(struct maq_segment_writer *w, double read_ns);
/* Host time without a launch. */
void maq_segment_host(struct maq_segment_writer *w, double ns);
/* What follows belongs to this node of the layer. */
void maq_segment_node(struct maq_segment_writer *w, enum maq_layer_node node);
/* The compute stream stands still. */
void maq_segment_gap(struct maq_segment_writer *w, double ns);
/* Where the compute stream is, what it is about to wait for left out. */
struct maq_segment_mark maq_segment_here(const struct maq_segment_writer *w);
/* Time that kernels lost to communication beside them. */
void maq_segment_lose(struct maq_segment_writer *w, double ns, uint8_t bucket);
/* Evaluates, adds what is lost to contention: fills dur_ns and bucket_ns. */
void maq_segment_end(struct maq_segment_writer *w);

#endif
