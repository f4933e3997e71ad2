/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallelizer.h - somebody else's planner for one kind of GPU, as maquette asks it for parts of a plan.
 *
 * A parallelizer (Alpa, Galvatron, Aceso, a script of your own) knows how to run a piece of a model on equal GPUs. maquette cuts
 * the model into slices, asks the parallelizer for plans of slices on islands (node groups of a cluster), and composes the answers
 * into one pipeline over all islands (maquette/planner_external.h). The parallelizer needs to know nothing of other islands, and
 * maquette nothing of its techniques: a plan is a few numbers and a text of the parallelizer's own that comes back with the result.
 *
 * Two ways in, one set of functions: a shared object that exports maq_parallelizer_entry(), and a program that speaks JSON lines
 * (docs/parallelizer.md, with an example). A program is wrapped into the same struct.
 *
 *   atom      the smallest piece that the parallelizer cuts a model into: one or more layers
 *   slice     neighbouring atoms
 *   wave      samples that go through the pipeline at a time, over all data-parallel replicas; a step is so many waves
 *   position  number of stages behind: under 1F1B a stage with k stages behind it holds min(k + 1, waves) waves of activations
 *
 * Rules for whoever writes one:
 *
 *   Errors       Functions return MAQ_OK, or a status with the reason in `why` (MAQ_PARALLELIZER_WHY bytes, 0-terminated); the
 *                search then ends with it. That there is no plan is no error: MAQ_OK and no plans.
 *   Ownership    Arguments are borrowed for the call. Arrays and texts that a function returns are owned by the parallelizer; they
 *                have to stay valid until the next call with the same state, or close(): maquette copies them.
 *   Threads      One state is used by one thread at a time. With MAQ_PARALLELIZER_THREADS, different states may be used by
 *                different threads at once, and there are several; without it there is one state.
 *   Determinism  The same question gets the same answer, whatever was asked before and of whichever state. Slices with the same
 *                signature get the same answers: they are asked for once.
 *   Bounds       samples_per_s and min_bytes of profile() are promises (see there), by which pairs of slice and island are dropped.
 *                A parallelizer that can promise nothing returns infinite (or 0 for no figure) and 0: then no pair is dropped.
 */
#ifndef MAQUETTE_PARALLELIZER_H
#define MAQUETTE_PARALLELIZER_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_PARALLELIZER_ABI 1u
#define MAQ_PARALLELIZER_WHY 256u
#define MAQ_PARALLELIZER_SIGNATURE 64u

/* Figures of a layer for one sample, at the whole width of the model, unsharded. */
struct maq_parallelizer_layer {
    const char *kind;        /* layers of one kind are equal: "embedding", "layer 0", "mtp", "output" */
    double parameters;       /* count */
    double forward_flop;     /* matrix products; backward takes twice as many */
    double kept_bytes;       /* activations that are kept from forward to backward */
    double recomputed_bytes; /* of them, kept when the whole layer is computed again */
    double boundary_bytes;   /* activations that go on to the next layer */
};

struct maq_parallelizer_model {
    uint32_t size; /* of this struct: members are only ever added at its end */
    const char *name;
    uint32_t sequence_length, global_batch_size;
    double state_bytes;    /* weights, gradients and optimizer, of a parameter that nothing shards */
    double gradient_bytes; /* of them, reduced over data-parallel replicas */
    uint32_t
        n_layers; /* front first: the embedding, the layers, multi-token prediction where there is any, the output */
    const struct maq_parallelizer_layer *layers;
};

/* Equal nodes of equal devices. */
struct maq_parallelizer_island {
    uint32_t size;
    uint32_t index; /* its number in the cluster */
    const char *device;
    uint32_t nodes,
        devices_per_node; /* parallelize() of one that is not MAQ_PARALLELIZER_FRONT is also asked for parts: then fewer */
    double memory_bytes;                           /* of a device */
    double flop_per_s, memory_bytes_per_s;         /* peaks of a device, in the job's arithmetic */
    double scale_up_bytes_per_s;                   /* of a device, inside a node, per direction */
    double network_bytes_per_s, network_latency_s; /* of a device while all of its node send */
};

struct maq_parallelizer_atom {
    uint32_t layers;                            /* how many of the model's; atoms follow each other */
    char signature[MAQ_PARALLELIZER_SIGNATURE]; /* equal: nothing tells the two atoms apart */
};

struct maq_parallelizer_slice {
    uint32_t first_atom, atoms, first_layer, layers;
    char signature[MAQ_PARALLELIZER_SIGNATURE];
};

struct maq_parallelizer_profile {
    double samples_per_s; /* no plan of the slice on n of the island's N devices passes more than n/N of this */
    double min_bytes;     /* no plan of it takes less memory, over all its devices together */
};

struct maq_parallelizer_position {
    uint32_t stages_behind; /* stages of the pipeline between the slice and its end */
    uint32_t waves, wave_samples;
    uint32_t micro_batch_size; /* samples that a replica takes at a time; 0: any that makes up the wave */
};

/* One stage of a plan. All figures are of a device or of a whole wave: what each device of the stage has, or how long all take. */
struct maq_parallelizer_stage {
    uint32_t atoms;        /* of the slice, front first */
    uint32_t devices;      /* all of the stage */
    uint32_t replicas;     /* data-parallel; divides the devices. 0: 1 */
    double time_s;         /* forward and backward of a wave with what is communicated inside the stage */
    double static_bytes;   /* weights, gradients, optimizer, buffers, context */
    double flight_bytes;   /* activations of a wave in flight */
    double sync_s;         /* once per step: gradients that are not reduced beside compute, and the optimizer */
    double once_s;         /* once per step, when all stages have reduced: added to the step */
    double boundary_bytes; /* that a device sends to a neighbouring stage for a wave; maquette prices the transfer */
    /* What the stage can be written down by in a mixed plan (docs/plan-form.md); 0 and -1: not said. */
    uint32_t tensor_parallel_size, micro_batch_size;
    uint32_t context_parallel_size, expert_parallel_size; /* 0: 1 */
    int recompute, sharding;                              /* enum maq_recompute, enum maq_sharding of plan.h */
};

struct maq_parallelizer_plan {
    uint32_t n_stages; /* front first; their atoms are the slice */
    const struct maq_parallelizer_stage *stages;
    const char *text; /* the plan in the parallelizer's own words; given back with the result; NULL: none */
};

enum maq_parallelizer_flag {
    MAQ_PARALLELIZER_THREADS = 1u << 0, /* several states at once */
    /* An answer to parallelize() holds every plan that no other beats in devices, times and memory, fixed and in flight, and is
     * therefore good for all positions and parts of an island. Without it an answer is the best that fits on the devices it is
     * given. */
    MAQ_PARALLELIZER_FRONT = 1u << 1,
};

struct maq_parallelizer {
    uint32_t abi;  /* MAQ_PARALLELIZER_ABI */
    uint32_t size; /* of this struct */
    const char *name;
    uint32_t flags; /* enum maq_parallelizer_flag */
    void *context;  /* given to open() */

    /* *state is closed by close(); model holds until then. */
    enum maq_status (*open)(void **state, void *context, const struct maq_parallelizer_model *model, char *why);
    void (*close)(void *state);

    /* The atoms of the model: their layers add up to the model's. */
    enum maq_status (*slice_model)(const struct maq_parallelizer_atom **out, uint32_t *n, void *state, char *why);

    /* Signature of two neighbouring slices together. NULL: equal rows of atoms' signatures make equal slices. */
    enum maq_status (*concatenate)(char *signature, void *state, const struct maq_parallelizer_slice *front,
                                   const struct maq_parallelizer_slice *back, char *why);

    /* The best that the slice can do on the island, for any wave. It should be quick: it is called for every pair. */
    enum maq_status (*profile)(struct maq_parallelizer_profile *out, void *state,
                               const struct maq_parallelizer_slice *slice, const struct maq_parallelizer_island *island,
                               char *why);

    /* Plans of the slice on the island at the position. A plan that is returned for a position and fits further from the end as
     * well is taken to be the best there too; when a plan of an answer no longer fits, the function is called again. */
    enum maq_status (*parallelize)(const struct maq_parallelizer_plan **out, uint32_t *n, void *state,
                                   const struct maq_parallelizer_slice *slice,
                                   const struct maq_parallelizer_island *island,
                                   const struct maq_parallelizer_position *position, char *why);
};

/* What a shared object exports, under this name. The struct holds as long as the object is loaded. */
#define MAQ_PARALLELIZER_ENTRY "maq_parallelizer_entry"
typedef const struct maq_parallelizer *maq_parallelizer_entry_fn(void);

#ifdef __cplusplus
}
#endif
#endif
