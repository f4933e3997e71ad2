/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - a recorded job for what-if analysis of stragglers: its operations, and their dependencies.
 */
#ifndef MAQ_RISK_STRAGGLERS_REPLAY_H
#define MAQ_RISK_STRAGGLERS_REPLAY_H

#include "base/arena.h"
#include "base/mended.h"
#include "maquette/risk.h"

#define MAQ_REPLAY_TYPES 64u
#define MAQ_REPLAY_NONE UINT32_MAX

/* The role of an operation in the dependency graph. */
enum maq_replay_role {
    MAQ_REPLAY_FORWARD,
    MAQ_REPLAY_BACKWARD,
    MAQ_REPLAY_FORWARD_SEND,
    MAQ_REPLAY_FORWARD_RECV,
    MAQ_REPLAY_BACKWARD_SEND,
    MAQ_REPLAY_BACKWARD_RECV,
    MAQ_REPLAY_GATHER,    /* of parameters, over the workers of a stage */
    MAQ_REPLAY_REDUCE,    /* of gradients, over the workers of a stage */
    MAQ_REPLAY_EMBEDDING, /* of the tied table's gradients, over the ends of a pipeline */
    MAQ_REPLAY_LOCAL,     /* a reduction that joins no two workers of the record */
    MAQ_REPLAY_NORM,      /* joins all workers */
    MAQ_REPLAY_UPDATE,
    MAQ_REPLAY_OTHER /* on the compute stream */
};

struct maq_replay_op {
    uint32_t step;   /* index into maq_replay_trace.steps */
    uint32_t worker; /* dp_rank * pp + stage */
    uint16_t type;
    int16_t chunk; /* -1: none */
    bool placed;   /* its start is where such an operation lies in other steps: it began as soon as it could */
    double start_us, dur_us;
};

struct maq_replay_type {
    char name[48];
    enum maq_replay_role role;
    bool communication; /* its ideal is the median; the mean otherwise */
};

struct maq_replay_trace {
    uint32_t dp, pp, chunks; /* shape of the job */
    uint32_t n_ops, n_steps, n_types;
    struct maq_replay_op *ops; /* by step, worker, start, place in the file */
    uint32_t *first;           /* [n_steps + 1] */
    uint32_t *steps;           /* [n_steps] numbers as recorded */
    struct maq_replay_type type[MAQ_REPLAY_TYPES];
};

/* A row of the table before the steps are cut: mended in place. */
struct maq_replay_row {
    struct maq_replay_op op; /* its step is the number as recorded; a duration below zero is mended */
    uint32_t at;             /* line in the file, 0 = put in */
    bool off_clock;          /* its start is not known */
    uint64_t hash;           /* of the line's text */
};
struct maq_replay_rows {
    struct maq_replay_row *row; /* owned: free() */
    uint32_t n, size;
};
/* false when out of memory, or over the limit of rows: then n is MAQ_REPLAY_MOST_OPS. read.c */
#define MAQ_REPLAY_MOST_OPS (UINT32_C(1) << 28)
bool maq_replay_rows_add(struct maq_replay_rows *rows, const struct maq_replay_row *row);
/* Mends what can be mended and sorts the rows by step, worker, start, place in the file. mend.c */
enum maq_status maq_replay_mend(struct maq_replay_rows *rows, const struct maq_replay_trace *t, struct maq_mending *m,
                                struct maq_arena *arena);

/* read.c; everything in `arena`. */
enum maq_status maq_replay_read(struct maq_replay_trace *out, const char *ops, const char *meta,
                                struct maq_arena *arena, struct maq_diag *diag);

/*
 * The order of one step. A unit is an operation, or operations of several workers that begin together; units are in an order in
 * which what they wait for comes first.
 */
struct maq_replay_graph {
    uint32_t n_ops, n_units;
    const uint32_t *unit_first; /* [n_units + 1] into member */
    const uint32_t *member;     /* [n_ops] operations of the step, from 0 */
    const uint32_t (*wait)[3];  /* [n_ops] operations that it waits for, MAQ_REPLAY_NONE */
};
/* dependencies.c */
enum maq_status maq_replay_order(struct maq_replay_graph *out, const struct maq_replay_trace *t, uint32_t step,
                                 struct maq_arena *arena, struct maq_diag *diag);
/*
 * End of the last operation, us, where each unit begins `delay_us` after what it waits for (NULL: at once); finish: [n_ops]
 * scratch.
 */
double maq_replay_time(const struct maq_replay_graph *g, const double *dur_us, const double *delay_us, double *finish);
/* How much later than what it waited for each unit began in the record: [n_units], never negative. ops: of the step; end_us: [n_ops]
 * scratch. */
void maq_replay_delays(double *delay_us, const struct maq_replay_graph *g, const struct maq_replay_op *ops,
                       double *end_us);

#endif
