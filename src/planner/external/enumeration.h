/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enumeration.h - the calls of a parallelizer and its answers: slices x islands (and parts of them) x waves x positions.
 *
 * Slices with equal signatures are one class, and the parallelizer is called once for a class (redundancy). A pair of
 * class and island is dropped when profile() says that it takes more memory than the island has (infeasibility), and put
 * off as long as no pipeline with it can be faster than a limit that the caller gives (imbalance: pair_bound.h). There
 * is one worker for each state of the parallelizer; the answers do not depend on how many there are.
 *
 * A parallelizer that answers with the best plan alone is also called for parts of an island (1, 2, 4, ... devices of a
 * node, then 1, 2, ... nodes), and once more for a position further from the end where one of its plans no longer fits;
 * where all of them still fit, they are reused (reuse).
 */
#ifndef MAQ_PLANNER_EXTERNAL_ENUMERATION_H
#define MAQ_PLANNER_EXTERNAL_ENUMERATION_H

#include "maquette/planner_external.h"
#include "planner/external/pair_bound.h"
#include "planner/external/problem.h"

#define MAQ_SLICES_WORKERS 64u

struct maq_slices_wave {
    uint32_t waves, wave_samples, micro_batch; /* micro_batch 0: the parallelizer chooses */
};

struct maq_slices_answer {
    bool asked;
    uint32_t n, size;
    const struct maq_parallelizer_plan **plans; /* different ones, in the order in which they came */
};

/* A parallelizer, and the diagnostic code of the last fault of one of its states; 0: no particular code. */
struct maq_slices_source {
    struct maq_parallelizer functions;
    uint16_t (*code_of)(void *state);
};

struct maq_enumeration {
    const struct maq_slices_chain *chain;
    const struct maq_slices_opts *opts;
    struct maq_slices_source source;
    struct maq_arena *arena; /* borrowed; of the calling thread */
    uint32_t n_states;
    void *states[MAQ_SLICES_WORKERS];
    struct maq_arena arenas[MAQ_SLICES_WORKERS]; /* of the workers: copies of answers */
    uint32_t n_atoms, n_classes;
    const uint32_t *layers_before;             /* [n_atoms + 1] */
    uint32_t *class_of;                        /* [first * n_atoms + end - 1] */
    struct maq_parallelizer_slice *classes;    /* one slice of each */
    struct maq_parallelizer_profile *profiles; /* [class * n_islands + island] */
    struct maq_pair_bounds bounds;
    uint32_t n_waves;
    const struct maq_slices_wave *waves;
    struct maq_slices_answer *answers; /* [(wave * n_classes + class) * n_islands + island] */
    double best_s;                     /* for progress: 0: no plan yet */
    struct maq_slices_calls calls;     /* made, plans, profiles so far; the rest by maq_enumeration_count() */
};

/*
 * Opens states, slices the model, profiles every pair. `waves` is borrowed. To be ended by maq_enumeration_fini(), whatever the
 * status.
 */
enum maq_status maq_enumeration_init(struct maq_enumeration *e, const struct maq_slices_chain *chain,
                                     const struct maq_slices_source *source, const struct maq_slices_opts *opts,
                                     const struct maq_slices_wave *waves, uint32_t n_waves, struct maq_arena *arena,
                                     struct maq_diag *diag);
void maq_enumeration_fini(struct maq_enumeration *e);

/* Lower bound of the step of every pipeline of the wave, by the profiles. */
double maq_enumeration_root_s(const struct maq_enumeration *e, uint32_t wave);

/*
 * Calls parallelize() for all pairs of a wave that could be part of a pipeline of at most limit_s and were not asked
 * yet.
 */
enum maq_status maq_enumeration_query(struct maq_enumeration *e, uint32_t wave, double limit_s, struct maq_diag *diag);

/* The answers for a wave as a table of pieces. Lives in the arena. */
enum maq_status maq_enumeration_table(struct maq_piece_table *out, const struct maq_enumeration *e, uint32_t wave,
                                      struct maq_arena *arena, struct maq_diag *diag);

/* Calls made and saved by each rule. */
struct maq_slices_calls maq_enumeration_count(const struct maq_enumeration *e);

/* ---- slice_classes.c: atoms, slices, classes ---- */
enum maq_status maq_enumeration_classes(struct maq_enumeration *e, struct maq_diag *diag);

/* ---- query.c: calls on workers ---- */

/* The fault of a call. Of several, that of the first job counts. */
struct maq_slices_fault {
    uint32_t job; /* UINT32_MAX: none */
    enum maq_status status;
    uint16_t code;
    char why[2 * MAQ_PARALLELIZER_WHY];
};

/* The job of a worker; false: `fault` says why. */
typedef bool maq_slices_work(struct maq_enumeration *e, void *user, uint32_t job, uint32_t worker,
                             struct maq_slices_fault *fault);
/* Jobs [0, n) on all states. The fault of the first job that has one is reported. */
enum maq_status maq_slices_run(struct maq_enumeration *e, maq_slices_work *work, void *user, uint32_t n,
                               struct maq_diag *diag);
/* A call failed with `why`. */
void maq_slices_fail(struct maq_slices_fault *fault, const struct maq_enumeration *e, void *state,
                     enum maq_status status, const char *why);
enum maq_status maq_slices_report(const struct maq_enumeration *e, const struct maq_slices_fault *fault,
                                  struct maq_diag *diag);

/* Parts of an island that the parallelizer is asked for: i from 0 until false. */
bool maq_slices_island_part(struct maq_parallelizer_island *out, const struct maq_enumeration *e, uint32_t island,
                            uint32_t i);
/* Number of positions that are distinguished. */
uint32_t maq_slices_positions(const struct maq_enumeration *e, uint32_t wave);
bool maq_slices_is_unfit(const struct maq_enumeration *e, uint32_t class_id,
                         const struct maq_parallelizer_island *part);

#endif
