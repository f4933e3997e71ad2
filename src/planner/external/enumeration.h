/*
 * enumeration.h - what a parallelizer is asked, and what it said: slices x islands (and parts of them) x waves x positions.
 *
 * Slices with equal signatures are one class, and a class is asked once (redundancy). A pair of class and island is
 * dropped when profile() says that it takes more memory than there is (infeasibility), and put off as long as no
 * pipeline with it can be faster than a limit that the caller gives (imbalance: pair_bound.h). Pairs are asked by as
 * many workers as there are states of the parallelizer; what comes back does not depend on how many.
 *
 * A parallelizer that answers with the best plan alone is asked for parts of an island as well (1, 2, 4, ... devices
 * of a node, then 1, 2, ... nodes), and again further from the end where a plan no longer fits (reuse: not where all
 * still do).
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

/* A parallelizer and how to tell what went wrong with one of its states; 0: nothing special. */
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

/* Opens states, slices the model, profiles every pair. `waves` is borrowed. maq_enumeration_fini() is due whatever comes back. */
enum maq_status maq_enumeration_init(struct maq_enumeration *e, const struct maq_slices_chain *chain,
                                     const struct maq_slices_source *source, const struct maq_slices_opts *opts,
                                     const struct maq_slices_wave *waves, uint32_t n_waves, struct maq_arena *arena,
                                     struct maq_diag *diag);
void maq_enumeration_fini(struct maq_enumeration *e);

/* No pipeline of the wave is faster, by the profiles. */
double maq_enumeration_root_s(const struct maq_enumeration *e, uint32_t wave);

/* Asks all pairs of a wave that could be in a pipeline of at most limit_s and were not asked yet. */
enum maq_status maq_enumeration_query(struct maq_enumeration *e, uint32_t wave, double limit_s, struct maq_diag *diag);

/* What was answered for a wave, as a table of parts. */
enum maq_status maq_enumeration_table(struct maq_piece_table *out, const struct maq_enumeration *e, uint32_t wave,
                                      struct maq_arena *arena, struct maq_diag *diag);

/* Calls made and saved by each rule. */
struct maq_slices_calls maq_enumeration_count(const struct maq_enumeration *e);

/* ---- slice_classes.c: atoms, slices, classes ---- */
enum maq_status maq_enumeration_classes(struct maq_enumeration *e, struct maq_diag *diag);

/* ---- query.c: calls on workers ---- */

/* Something went wrong with a call: the first one counts. */
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
/* Positions that are told apart. */
uint32_t maq_slices_positions(const struct maq_enumeration *e, uint32_t wave);
bool maq_slices_is_unfit(const struct maq_enumeration *e, uint32_t class_id,
                         const struct maq_parallelizer_island *part);

#endif
