/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - Monte Carlo draws of the makespan of a graph.
 *
 * The variation is that of a step (risk/step/variation.h), applied to the nodes of the graph. A draw is one duration vector; the
 * static engine evaluates eight at once:
 *
 *   kernel          recorded x rank x noise(operator)          rank: of the slowest of the n ranks of the class, P(rank <= x)^n = u
 *   communication   recorded x noise(collective) x congestion  congestion not inside tensor-parallel groups
 *   either          by the law of its own, where the variation has one: recorded x rank x law(operator)
 *   host, copies    recorded
 *
 * Factors that everything shares are not drawn (risk/step/job_law.h), nor are the regime of communication and whether any GPU is
 * slow for a while: each combination of these is a part of the steps, which is drawn by itself, on the same random numbers, and has
 * its own probability.
 *
 * Numbers are quasi-random, as the lasting ones of a step: draw i is point i / 10 of the scrambling with number i % 10, with a
 * dimension for each class, each given straggler, and, as far as dimensions last, the operators that take most of the time; so the
 * differences between the ten are the sampling error. Independent draws use plain random numbers, and so does everything that has
 * no dimension.
 *
 * Lasting differences of GPUs and nodes are one lognormal of the sum of their variances, so ranks of a node are taken to be
 * independent. That the slowest rank of a class decides is exact when its ranks meet and wait for each other; kernels' noise is
 * drawn for one rank, and equal operators share it within a draw. Work that differs from microbatch to microbatch is in the record
 * already.
 *
 * Episodes: of the n ranks of a class k are slow, by Poisson's law, independently of other classes, given that at least one rank of
 * the job is.
 */
#ifndef MAQ_RISK_GRAPH_SAMPLE_H
#define MAQ_RISK_GRAPH_SAMPLE_H

#include "base/arena.h"
#include "base/stat/sobol.h"
#include "maquette/risk.h"
#include "risk/step/variation.h"

/* A cell: an item in one class. */
struct maq_graph_cell {
    double ns;
    uint32_t class_id;  /* of communication, that with the slowest link */
    uint32_t signature; /* of the item's name */
    uint8_t sort;
    bool inside; /* communication inside a tensor-parallel group */
    int16_t law; /* of its own: index of the variation's kernels; -1 = none */
};

struct maq_graph_sampler {
    const struct maq_timed_graph *timed;
    struct maq_graph graph; /* the same, its items being cells */
    uint32_t n_cells, n_signatures, *cell_of;
    struct maq_graph_cell *cell;
    bool outside;         /* some communication can be congested */
    double ranks;         /* of all classes */
    double *rank;         /* [n_classes] factors of one draw */
    double *link;         /* [n_classes] factors on communication that leaves a node */
    double *dur, *finish; /* for eight draws */
    const struct maq_risk_slow_class *slow;
    uint32_t n_slow;
    uint64_t seed;
    uint32_t draws;
    bool independent; /* plain random draws; otherwise quasi-random ones of MAQ_STEP_SCRAMBLINGS scramblings */
    const struct maq_sobol *quasi;      /* [MAQ_STEP_SCRAMBLINGS] */
    uint32_t dimensions, *dimension_of; /* of quasi; [n_signatures] */
};

/* Everything in `arena`. false: out of memory. */
bool maq_graph_sampler_init(struct maq_graph_sampler *s, const struct maq_timed_graph *timed,
                            const struct maq_risk_graph_opts *opts, const struct maq_variation *v,
                            struct maq_arena *arena);

/* A part of the steps. */
struct maq_graph_part {
    double share, congestion;
    bool episode; /* some GPU is slow for a while */
};
#define MAQ_GRAPH_PARTS 4u
/* Those that the variation has, 1 to MAQ_GRAPH_PARTS. */
uint32_t maq_graph_parts(struct maq_graph_part parts[MAQ_GRAPH_PARTS], const struct maq_graph_sampler *s,
                         const struct maq_variation *v);

/* Makespans of s->draws draws of a part. */
void maq_graph_sample(double *out_ns, struct maq_graph_sampler *s, const struct maq_variation *v,
                      const struct maq_graph_part *part);

#endif
