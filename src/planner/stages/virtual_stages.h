/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_stages.h - chunked stage tables: their compositions are interleaved pipelines (virtual stages).
 *
 * With v chunks a model of L layers is cut into v rounds of L / v layers, and every round alike: a stage of p that holds the layers
 * [a, b) of the first round holds [a + c L/v, b + c L/v) of each round c. So one atom of the *chunked* model is the layers a, a +
 * L/v, a + 2 L/v, ... together; the first one has the embedding too, the last one the output and what predicts further tokens
 * (MTP). Where v divides L + 1 the last round is a layer shorter. A stage is a range of chunked atoms, on devices of its own, and a
 * composition of the chunked model is an interleaved pipeline. Megatron-LM's schedule runs the rounds in groups of g micro batches.
 * The unit that passes a stage of such a pipeline is a chunk of a micro batch; M micro batches have v M of them. With w_i seconds
 * of all chunks of stage i for a micro batch, t_i = w_i / v, and
 *
 *   T = (v M - 1) max t_i + sum t_i + waits + max sync_i + max update_i
 *
 * which is the form of stage_table.h: the bubble is a v-th of 1F1B's. A step waits
 *
 *   for the output   which is in one of the last stage's v chunks. With o seconds of output for a micro batch, chunks take w_p / v
 *                    - o / v, and the one with the output o more. From one group of g such chunks to the next, a stage in front
 *                    needs at least all g at the last stage's pace and the other (v - 1) g at its own, but for the chunks that are
 *                    queued between both: 2 for every border, less those in transfer (a_i of stage_table.h, for a chunk). Of M / g
 *                    groups the first one is not counted: most of its wait is part of the fill
 *   between rounds   the first of g micro batches comes back to the first stage after sum (t_i + hops_i), forward and backward
 *                    together, and the transfer from the last stage to the first. The excess over g b is waited for v - 1 times,
 *                    while the pipeline fills and drains
 *
 * Both are exact for the schedule where stages are even (tests/test_mixed_virtual_stages.c). The i-th stage from the end has begun 2 (i -
 * 1) + (v - 1) g + 1 chunks when its first gradient arrives (plan/schedule/schedule.h), and never holds more.
 *
 *   time     chunks of a stage are taken to be alike but for the output (shorter: a round whose chunk is longer in one stage holds
 *            up the others). With `heaviest` every chunk takes as long as the longest (longer): the best composition under it is a
 *            further candidate to simulate. The time of a stage beyond P(end) - P(first) (column.h) is counted for every chunk
 *   waits    for the output: of one stage (shorter by a few percent of a group where several together hold up more)
 *   hops     overlap with compute, as in Megatron-LM's interleaved schedule unless the plan says otherwise: exposed once, while the
 *            pipeline fills and drains, and between rounds. Those of a stage follow one another (shorter where a pass has to wait
 *            for them in between, and at the ends of pipelines of more than two stages, which send to the next round as well;
 *            longer inside a scale-up domain, where a transfer holds no port of the network)
 *   sync     of a layer range as long as all chunks together
 *
 * The step of a plan is the simulated one (train/mixed/placed_step.c), which has none of these simplifications.
 */
#ifndef MAQ_PLANNER_STAGES_VIRTUAL_STAGES_H
#define MAQ_PLANNER_STAGES_VIRTUAL_STAGES_H

#include "planner/stages/column.h"
#include "train/atoms.h"

/* A model's atoms: the embedding, layers, and what is behind them (MTP, the output). */
struct maq_chain_atoms {
    uint32_t n, behind;
};

static inline struct maq_chain_atoms maq_chain_atoms_of(const struct maq_model *model)
{
    return (struct maq_chain_atoms){maq_atoms_of_model(model), maq_atoms_behind(model)};
}

static inline uint32_t maq_chain_layers(struct maq_chain_atoms model)
{
    return model.n - 1 - model.behind;
}

/*
 * Atoms of the chunked model; 0 where the model cannot be chunked: `chunks` has to divide its layers, or its layers plus one, which
 * the last chunk lacks. (If two were missing, a stage in front of the last one could be without layers in the last round.)
 */
static inline uint32_t maq_chain_chunked_atoms(struct maq_chain_atoms model, uint32_t chunks)
{
    uint32_t layers = maq_chain_layers(model), each = chunks > 0 ? (layers + chunks - 1) / chunks : 0;
    return each * chunks <= layers + 1 ? each : 0;
}

/* The model's atoms of one chunk of the chunked ones [first, end). */
struct maq_chain_chunk {
    uint32_t first, end;
};
struct maq_chain_chunk maq_chain_chunk_of(struct maq_chain_atoms model, uint32_t chunks, uint32_t chunk, uint32_t first,
                                          uint32_t end);

struct maq_chain_chunking {
    uint32_t chunks;
    bool heaviest;    /* every chunk takes as long as the longest */
    bool hops_beside; /* transfers overlap with compute */
};

/* A column over the atoms of a model, chunked. Lives in the arena; NULL when out of memory. */
const struct maq_chain_column *maq_chain_column_chunks(const struct maq_chain_column *column,
                                                       struct maq_chain_atoms model,
                                                       const struct maq_chain_chunking *how, struct maq_arena *arena);

/* Converts the waves of a table with such columns: micro batches become chunks, in groups of `group`. */
void maq_chain_chunk_waves(struct maq_stage_table *table, uint32_t chunks, uint32_t group);

#endif
