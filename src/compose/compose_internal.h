/*
 * compose_internal.h - what the parts of composing share: a table's stretches with their limits (arcs), relaxed programs over boxes of
 * bottleneck and synchronization, and the search over labels. compose.h has the public side.
 */
#ifndef MAQ_COMPOSE_COMPOSE_INTERNAL_H
#define MAQ_COMPOSE_COMPOSE_INTERNAL_H

#include <math.h>

#include "base/arena.h"
#include "compose/stage_table.h"

/* ---- arcs: one stage of one option over one stretch ---- */

struct maq_arcs {
    const struct maq_stage_table *table;
    uint32_t depth;    /* most stages */
    uint32_t rows;     /* of relaxed programs: depth, at most MAQ_REST_ROWS */
    bool mixes;        /* stages of two options */
    uint16_t *deepest; /* by maq_arc(): the position from the end up to which the stretch fits; 0: nowhere */
    double *sync_s;    /* by maq_arc(): of the option alone, or less */
    double *through_s; /* by maq_arc(): compute and hops of a stage in the middle, HUGE_VAL where it does not fit */
    double *least_s;   /* [option]: a stage in the middle takes this at least */
    double *forward_s, *backward_s; /* [option * atoms + atom]: hop to the best neighbour there is */
    /* [option] in the last stage: from it to the best and the worst first stage, and back */
    double *back_s, *back_most_s;
    double *devices; /* [option] of its kind for a whole wave */
    double update_s; /* the least there is */
};

static inline size_t maq_arc(const struct maq_stage_table *t, uint32_t option, uint32_t first, uint32_t end)
{
    return ((size_t)first * (t->n_atoms + 1) + end) * t->n_options + option;
}

static inline double maq_arc_compute(const struct maq_stage_table *t, uint32_t option, uint32_t first, uint32_t end)
{
    return t->options[option].time_s[end] - t->options[option].time_s[first] + t->options[option].each_s;
}

/* The lesser of each, into the first. */
static inline void maq_lower(double *restrict into, const double *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into[i] = from[i] < into[i] ? from[i] : into[i];
}

/* Replicas of a stage of one option. */
static inline uint32_t maq_replicas(const struct maq_stage_table *t, uint32_t option)
{
    const struct maq_stage_option *o = &t->options[option];
    return (t->wave_samples + o->samples - 1) / o->samples;
}

/* How often a stage with `behind` stages behind it is charged its hops; `first`: it begins the pipeline. */
double maq_forward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);
double maq_backward_weight(const struct maq_stage_table *t, uint32_t behind, bool first);

/* Everything lives in the arena; `table` is borrowed. false when out of memory. */
bool maq_arcs_init(struct maq_arcs *arcs, const struct maq_stage_table *table, struct maq_arena *arena);

/* What all devices together need for a wave at least, and what no composition of the table can be below: from the work alone; cheap. */
double maq_wave_bound(const struct maq_stage_table *table);
double maq_work_bound(const struct maq_stage_table *table);

/* ---- boxes ---- */

#define MAQ_REST_ROWS                                                                                                  \
    16u /* positions that relaxed programs tell apart; those behind them are taken for the first of them */
#define MAQ_BOX_DUALS 2 /* relaxed programs of a box: with its best prices, with none */

struct maq_box {
    double bottleneck_lo, bottleneck_hi, sync_lo, sync_hi;
    double least_s; /* of sum t_i and what a step waits, proven */
    double bound_s;
    bool found; /* the program's path keeps to the devices; where it lies: */
    double bottleneck_at, sync_at;
    double price[MAQ_BOX_DUALS][MAQ_STAGE_KINDS]; /* seconds per device */
    const double *rest[MAQ_BOX_DUALS];            /* [(rows + 1) * (atoms + 1)]: see compose_bound.c */
};

struct maq_boxes {
    struct maq_box *at;
    uint32_t n, room;
    double bound_s;    /* of all compositions below the cutoff; the cutoff where there is no box */
    uint64_t programs; /* relaxed programs solved */
    bool counted;      /* devices were counted */
};

/* Called with every path that a relaxed program comes upon, front stage first; it need not keep to the devices there are. */
typedef void maq_path_hook(void *user, const struct maq_composition *path);

struct maq_box_options {
    double cutoff_s;     /* only what is below it matters */
    double grain_s;      /* boxes are split until their width counts for less than this */
    uint32_t most;       /* boxes looked at; the rest are taken as they are */
    uint32_t beam;       /* states kept of those that count: for good compositions, without a bound; 0: all */
    maq_path_hook *hook; /* may be NULL */
    void *user;
};

/*
 * Covers all compositions below the cutoff by boxes, dropping those that the relaxed programs refute. A composition that a program
 * comes upon and that is better than *best becomes *best (and the cutoff follows). false when out of memory.
 */
bool maq_boxes_cover(struct maq_boxes *boxes, struct maq_composition *best, const struct maq_arcs *arcs,
                     const struct maq_box_options *options, struct maq_arena *arena);

/* Whether prices alone show that no composition is below the cutoff. false when out of memory. */
bool maq_boxes_refute(bool *refuted, const struct maq_arcs *arcs, double cutoff_s, struct maq_arena *arena);

/* What a program came upon, for the hook; *best, if it is a better composition that keeps to the devices. */
void maq_composition_offer(struct maq_composition *best, struct maq_composition *path,
                           const struct maq_stage_table *table, const struct maq_box_options *options);

/* ---- programs that price devices: compose_bound.c ---- */

struct maq_priced;
bool maq_priced_new(struct maq_priced **out, const struct maq_arcs *arcs, struct maq_arena *arena);

/* Raises box->price[0] until the box is refuted (the result is `wanted` or more) or that stops paying. What no sum of t_i is below. */
double maq_priced_raise(struct maq_priced *priced, struct maq_box *box, struct maq_composition *best, double wanted,
                        const struct maq_box_options *options, uint64_t *programs);

/* `rest` of the box at its prices: valid until the next program. */
const double *maq_priced_rest(struct maq_priced *priced, const struct maq_box *box, uint32_t dual, double wanted);

/* The path of a program: its hops are those to the best neighbours. */
struct maq_priced_path {
    uint32_t n_stages; /* 0: none below the limit */
    double fill_s, bottleneck_s, sync_s;
    double used[MAQ_STAGE_KINDS]; /* devices */
};

/* What no sum of t_i and prices[0] of a box's stages is below, or the limit if that is less. */
double maq_priced_least(struct maq_priced *priced, struct maq_priced_path *path, const struct maq_box *box,
                        double limit);

/* ---- programs that count devices: compose_counted.c ---- */

/* Devices as units: what divides the devices of all options of a kind. Packed uses a, b: (b | TOP) - a keeps TOP where b has as many of each. */
#define MAQ_UNITS_TOP 0x8080808080808080u
struct maq_units {
    uint64_t room;                    /* packed, a byte a kind: the top bit and what there is */
    uint64_t used[MAQ_STAGE_OPTIONS]; /* packed */
    uint16_t like[MAQ_STAGE_OPTIONS]; /* the first option that uses the same */
    /* Uses as numbers, so many units being one: what an option adds is rounded down. */
    uint32_t coarse, codes, radix[MAQ_STAGE_KINDS], stride[MAQ_STAGE_KINDS], code[MAQ_STAGE_OPTIONS];
};

/* false where there are too many to tell apart. compose_units.c */
bool maq_units_init(struct maq_units *units, const struct maq_arcs *arcs);

/* ---- what is left: compose_left.c ---- */

#define MAQ_LEFT_ROWS 8u        /* positions told apart */
#define MAQ_LEFT_CELLS 9000000u /* of a table: 36 MB */

struct maq_left;
bool maq_left_new(struct maq_left **out, const struct maq_arcs *arcs, const struct maq_units *units,
                  struct maq_arena *arena);

/* `priced` is added to the cost of each stage, by option. */
void maq_left_fill(struct maq_left *left, const struct maq_box *box, const double *priced);
double maq_left_of(const struct maq_left *left, uint32_t behind, uint32_t atom, uint32_t code);

struct maq_counted;

/* Whether devices are few enough to tell apart, and no stages mixed. */
bool maq_countable(const struct maq_arcs *arcs);

/* Of countable arcs; NULL, which is no error, for others. false when out of memory. */
bool maq_counted_new(struct maq_counted **out, const struct maq_arcs *arcs, struct maq_arena *arena);

struct maq_count_options {
    uint64_t work; /* most stages tried and states compared */
    uint32_t beam; /* states kept of a level, atom and group: a good path without a proof; 0: all */
    bool left;     /* prune by the table of what is left as well */
};

/*
 * The least sum of t_i of a box over compositions that keep to the devices, if it is below `wanted`, with its path;
 * otherwise `wanted`, and a path without stages. When it took too much work: what is known by then, 0 at least, and
 * no path. Sets where in the box the path lies. `rest`: at the box's prices. false when out of memory.
 */
bool maq_counted_solve(double *least, struct maq_box *box, struct maq_composition *path, struct maq_counted *counted,
                       const double *rest, double wanted, const struct maq_count_options *options);

/* ---- labels ---- */

struct maq_label_options {
    double cutoff_s;
    uint32_t beam;  /* labels kept per front atom and neighbour; 0: all */
    uint32_t most;  /* labels at the same time */
    bool no_bounds; /* for tests: prune by dominance alone */
};

struct maq_label_count {
    uint64_t considered, bounded, dominated, finished;
    bool complete; /* nothing was left out: what was found is the best below the cutoff */
};

/* The best composition of the table below the cutoff, if better than *best. false when out of memory. */
bool maq_labels_search(struct maq_composition *best, struct maq_label_count *count, const struct maq_arcs *arcs,
                       const struct maq_boxes *boxes, const struct maq_label_options *options, struct maq_arena *arena);

#endif
