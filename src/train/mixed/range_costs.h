/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_costs.h - costs of a pipeline stage that holds a layer range of a model, under a plan of its own.
 *
 * A stage of `replicas` data-parallel replicas runs one 1F1B position over `microbatches` micro batches. Its layer range is a range
 * of atoms: the embedding, the layers, all MTP depths as one where there are any, the output. It costs what the same virtual stage
 * costs in a prediction (maq_train_predict()): passes with the host's gaps (train/step/host.h), the collectives of sharding
 * (train/step/dp_comm.c) and the compute lost to them (train/step/dp_interference.h). Neighbouring stages matter only through
 * `alone`: a stage without neighbours sends nothing.
 */
#ifndef MAQ_TRAIN_MIXED_RANGE_COSTS_H
#define MAQ_TRAIN_MIXED_RANGE_COSTS_H

#include "base/arena.h"
#include "maquette/train.h"

struct maq_range_cost {
    double forward_s, backward_s; /* a pass */
    double ready_s;               /* the first forward pass does not end earlier: parameters are gathered during it */
    double gathering_s;           /* end of that gathering; the next gather of the device begins then */
    double late_s;                /* the last backward pass takes longer, where gradients are reduced in it */
    double exposed_s;             /* of the reduction of gradients, after the last backward pass */
    double reduce_s;              /* all of that reduction; the device reduces nothing else meanwhile */
    double update_s;      /* optimizer, the host's part of the step's end, what reductions took from the passes */
    double gather_s;      /* exposed gathering of new parameters */
    double exchange_s;    /* expert all-to-all hidden under another microbatch in a forward and a backward pass */
    double params;        /* of one rank, before data-parallel sharding */
    double states_bytes;  /* weights, gradients, optimizer */
    double act_bytes;     /* kept for a micro batch from forward to backward */
    double working_bytes; /* of the heaviest pass */
    double transfer_bytes,
        border_bytes; /* of these, what waits for neighbours in 1F1B; one such tensor (memory/pipeline_transfers.h) */
    double ending_bytes; /* of the update, when activations are gone */
    double matrix_bytes; /* in addition, of the matrix that Muon updates: one at a time on a device */
};

struct maq_range_costs {
    struct maq_train_sweep *sweep; /* borrowed, and busy until the end */
    uint32_t n_atoms;
    double context_bytes; /* of a rank, whatever it runs */
    double hop_bytes;     /* of a transfer between two stages, the mean of both directions */
    double grad_bytes;    /* of a parameter on the wire */
    double tied_bytes;    /* of a table that first and last stage both hold; 0: none */
    double unpaired;      /* microbatches that hide no exchange of experts, at least: they fill the pipeline */
    bool stalls;          /* transfers block the sender */
    bool reduces_beside;  /* reduction overlaps with backward passes, rather than following all of them */
    struct maq_arena_mark mark;
};

/* The position of the stage. */
struct maq_range_stage {
    uint32_t replicas, microbatches;
    uint32_t first_device; /* of the sweep's cluster: where in a node or domain its groups begin */
    bool alone;            /* it is the only stage */
};

/* Begins costing layer ranges under a plan, of which the number of stages and the layout are ignored. MAQ_BAD_INPUT where such a
 * stage is impossible, with the reason in diag (which may be NULL). */
enum maq_status maq_range_costs_begin(struct maq_range_costs *out, struct maq_train_sweep *sweep,
                                      const struct maq_plan *plan, const struct maq_range_stage *at,
                                      struct maq_diag *diag);
/* Costs of atoms [first, end). `updates`: update_s is needed as well. */
enum maq_status maq_range_costs_of(struct maq_range_cost *out, const struct maq_range_costs *range_costs,
                                   uint32_t first, uint32_t end, bool updates);
/* update_s of a device that runs n ranges (virtual stages), which are updated together. */
struct maq_atom_range {
    uint32_t first, end;
};
enum maq_status maq_range_costs_update(double *update_s, const struct maq_range_costs *range_costs,
                                       const struct maq_atom_range *ranges, uint32_t n);
void maq_range_costs_end(struct maq_range_costs *range_costs);

#endif
