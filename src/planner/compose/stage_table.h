/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_table.h - what a pipeline is composed of: the costs of every layer range of a model under every option of a stage.
 *
 * A model is a row of atoms (the embedding, the layers, the output). A *wave* is `wave_samples` samples, the micro batches of all
 * data-parallel replicas together; a step is `waves` of them. A stage is a range of atoms and the replicas that run it; every
 * replica is an *option*: a kind of device, how many of them (the TP degree), and its share of the wave (its micro batch). The
 * shares of a stage's replicas add up to the wave (the last one may get less than its share), so stages may differ in their number
 * of replicas, and the replicas of one stage in kind and share. Where costs come from (a measured profile, the cost chain) is up to
 * the caller that fills the table; an option is an id with costs, so ZeRO, recomputation, CP or EP are further options.
 *
 *   T = (waves - 1) max_i t_i + sum_i t_i + max_i sync_i + max_i update_i        (1F1B with a flush)
 *   t_i      = the slowest replica's compute + hops
 *   sync_i   = gradients of the stage, all-reduced over its replicas
 *   memory_i = context + fixed + per wave * held(i)  <=  capacity, for each replica
 *   held(i)  = min(i + more + steeper (i - 1), most) waves in flight in the i-th stage from the end; 1F1B: min(i, waves)
 *
 * A step waits where the last stage does more for some waves than for others (the output, in interleaved pipelines:
 * planner/stages/virtual_stages.h), and where waves come back to the first stage:
 *
 *   T      = (waves - 1) b + sum t_i + waits + max sync_i + max update_i                                     b = max t_i
 *   waits  = seldom_waves * max(0, max_i a_i - (rounds + 1) b)  +  rounds * max(0, sum t_i + back - between * b)
 *   a_i    = t_last + seldom + (sum of the stages behind i but the last + 2 * sum of the hops behind i) / between
 *            + (rounds - (2 n_i - 1) / between) t_i                 of stages where that share of t_i is positive; n_i: stages
 *                                                                   behind i
 *
 * Waves come in groups of `between`. One group in rounds + 1 takes longer in the last stage, t_last + seldom a wave. From one such
 * group to the next a stage i in front takes `between` a_i: the whole group at the last stage's pace and the other groups at its
 * own, but for the 2 n_i - 1 waves that are queued between the two stages, less those in transfer. A wave that comes back to the
 * first stage is waited for where its trip through the pipeline takes longer than the `between` waves that are sent in before it:
 * once a round, while the pipeline fills and drains. Both waits are 0 in other tables.
 *
 * Where transfers overlap with compute (hops_beside), t_i includes hops only in the sum: the bottleneck is max_i max(compute_i,
 * hops_i), since the transfers of a stage follow one another.
 *
 * A hop is charged to the stage that sends: activations forward, gradients backward, the slowest pair of replicas. Published cost
 * models differ in how often they charge a hop at the ends of a pipeline, hence the weights of struct maq_hop_rule.
 *
 * Requirements, on which the bounds rest: all costs are >= 0; sync_s does not fall when a member, a rank or bytes are added;
 * waves - 1 >= seldom_waves (rounds + 1) + rounds * between, so that T does not fall when the slowest stage takes longer.
 */
#ifndef MAQ_PLANNER_COMPOSE_STAGE_TABLE_H
#define MAQ_PLANNER_COMPOSE_STAGE_TABLE_H

#include "maquette/diag.h"

#define MAQ_BATCH 8u /* tables that are worked on at a time: what they find is used from the next ones on */

#define MAQ_STAGE_KINDS 8u      /* kinds of devices (islands) in a table */
#define MAQ_STAGE_PARTS 2u      /* options that share a stage */
#define MAQ_STAGE_OPTIONS 4096u /* options of a table */
#define MAQ_STAGE_ATOMS 1024u   /* atoms of a model */
#define MAQ_STAGE_DEPTH 128u    /* stages of a pipeline */

struct maq_stage_option {
    uint32_t id;               /* the caller's */
    uint32_t kind;             /* of device */
    uint32_t devices, samples; /* of a replica: how many, and its share of a wave */
    uint32_t hop_class;        /* options of a class send and receive in the same time, with every neighbour */
    double context_bytes;      /* of a device, whatever it runs */
    double each_s;             /* of a stage in addition to its atoms */
    double seldom_s;           /* of the last atom: what a wave with the output takes beyond the mean */
    /* [atoms + 1]: sums over the atoms before. */
    const double *time_s;       /* forward and backward of the share */
    const double *fixed_bytes;  /* of a device: parameters, gradients, optimizer */
    const double *flight_bytes; /* of a device per wave in flight: activations of the share */
    const double *sync_bytes;   /* gradients that a device reduces */
    const double *update_s;     /* [atoms]: optimizer of a stage that begins with this atom */
    double tied_s; /* also, of the first of several stages: the all-reduce of a tied table with the last stage */
};

/* Seconds of the optimizer of a stage of one option. */
static inline double maq_stage_update_s(const struct maq_stage_option *o, uint32_t first, uint32_t end,
                                        uint32_t n_atoms)
{
    return o->update_s[first] + (first == 0 && end < n_atoms ? o->tied_s : 0);
}

struct maq_stage_part {
    uint32_t option, replicas;
};

/* How often a hop is charged: the first stage's forward hop in pipelines of at most `short_depth` stages and in deeper ones,
 * and the last stage's backward hop. The stages between are charged each hop once. */
struct maq_hop_rule {
    double first_short, first_deep, last;
    uint32_t short_depth;
};

struct maq_stage_table {
    uint32_t n_atoms, n_kinds, n_options;
    uint32_t waves, wave_samples;
    uint32_t max_parts;                         /* options that may share a stage: 1 or 2 */
    uint32_t max_stages;                        /* of a pipeline; 0: what devices and atoms allow */
    uint32_t max_in_flight;                     /* waves that a stage holds at most; 1F1B: `waves` */
    uint32_t more_in_flight, steeper_in_flight; /* than 1F1B: in every stage, and for every stage behind it */
    uint32_t available[MAQ_STAGE_KINDS];
    double capacity_bytes[MAQ_STAGE_KINDS];
    const struct maq_stage_option *options;
    struct maq_hop_rule hops;
    uint32_t seldom_waves, rounds, between; /* see above; 0: no waits */
    bool hops_beside;                       /* transfers overlap with compute: see maq_stage_pace() */
    /* Transfers from the last stage to the first for each transfer from a stage to the next; 0 unless hops_beside. */
    double wraps;
    /* [from's class * n_hop_classes + to's][n_atoms]: seconds per wave. Forward: `from` ends with this atom and sends to `to`
     * behind it. Backward: `from` begins with this atom and sends to `to` before it. */
    uint32_t n_hop_classes;
    const double *forward_s, *backward_s;
    double (*sync_s)(const struct maq_stage_table *table, const struct maq_stage_part *parts, uint32_t n_parts,
                     double bytes, uint32_t ranks);
    const void *costs; /* of sync_s */
};

/* The row of forward_s or backward_s for transfers from option `from` to option `to`. */
static inline const double *maq_hop_row(const struct maq_stage_table *t, const double *seconds, uint32_t from,
                                        uint32_t to)
{
    size_t pair = (size_t)t->options[from].hop_class * t->n_hop_classes + t->options[to].hop_class;
    return &seconds[pair * t->n_atoms];
}

/* How long the transfers of a pipeline's end hold its network port. With two stages, what goes from the last stage to the first
 * passes the same border. (In longer pipelines a stage between the ends mostly sends more than the ends do; transfers back to
 * the first stage are left out there.) */
static inline double maq_end_sends_s(const struct maq_stage_table *t, double hop_s, bool of_two)
{
    return of_two ? hop_s * (1 + t->wraps) : hop_s;
}

/* Time from one wave to the next in a stage. Transfers that overlap with compute follow one another at the port. */
static inline double maq_stage_pace(const struct maq_stage_table *t, double compute_s, double hops_s)
{
    return !t->hops_beside ? compute_s + hops_s : compute_s > hops_s ? compute_s : hops_s;
}

/* The part of a stage's pace to which its backward hop is added. */
static inline double maq_stage_front(const struct maq_stage_table *t, double compute_s, double forward_s)
{
    return t->hops_beside ? forward_s : compute_s + forward_s;
}

/* Whether a step of some composition may wait. */
static inline bool maq_may_wait(const struct maq_stage_table *t)
{
    return t->seldom_waves > 0 || t->rounds > 0;
}

/* State of a back part of a pipeline for the waits of a step. */
struct maq_tail {
    double chain_s;   /* a_i of the next stage in front, without its own transfers and compute */
    double slowest_s; /* max a_i */
};

static inline struct maq_tail maq_tail_of(const struct maq_stage_table *t, uint32_t option, double compute_s)
{
    struct maq_tail tail = {0, 0};
    if (t->seldom_waves > 0)
        tail.chain_s = compute_s + t->options[option].seldom_s;
    return tail;
}

/*
 * The tail with one stage more in front, which has `behind` stages behind it; sent_s: what the stage right behind sends
 * to it.
 */
static inline struct maq_tail maq_tail_grow(const struct maq_stage_table *t, struct maq_tail tail, uint32_t behind,
                                            double compute_s, double sent_s)
{
    if (t->seldom_waves == 0)
        return tail;
    double each = 1.0 / t->between, share = t->rounds - (2.0 * behind - 1) * each;
    double chain = tail.chain_s + 2 * sent_s * each, at = share > 0 ? chain + share * compute_s : 0;
    return (struct maq_tail){chain + compute_s * each, at > tail.slowest_s ? at : tail.slowest_s};
}

/* Seconds from the last stage to the first, and of the gradient back. */
static inline double maq_back_s(const struct maq_stage_table *t, uint32_t last, uint32_t first)
{
    return maq_hop_row(t, t->forward_s, last, first)[t->n_atoms - 1] + maq_hop_row(t, t->backward_s, first, last)[0];
}

/* The waits of a step, s. `loop_s`: sum t_i + back; `slowest_s`: max a_i; `alone`: the pipeline has one stage. */
static inline double maq_waits(const struct maq_stage_table *t, double loop_s, double slowest_s, double bottleneck_s,
                               bool alone)
{
    if (alone || !maq_may_wait(t))
        return 0;
    double over = slowest_s - (t->rounds + 1) * bottleneck_s, loop = loop_s - t->between * bottleneck_s;
    return (over > 0 ? t->seldom_waves * over : 0) + (loop > 0 ? t->rounds * loop : 0);
}

/* Waves that the stage at a position from the end (the last one: 1) holds. */
static inline uint32_t maq_waves_held(const struct maq_stage_table *t, uint32_t position)
{
    uint32_t held = position + t->more_in_flight + t->steeper_in_flight * (position - 1);
    return held < t->max_in_flight ? held : t->max_in_flight;
}

/* A stage of a composition and its costs. */
struct maq_stage {
    uint32_t first, end; /* atoms [first, end) */
    uint32_t n_parts;
    struct maq_stage_part parts[MAQ_STAGE_PARTS];
    double compute_s, hop_s, sync_s, update_s;
    double memory_share; /* of the fullest replica's capacity */
    uint32_t in_flight;  /* waves that a replica holds */
};

/* Seconds of a step. */
struct maq_composition {
    double step_s, bottleneck_s, fill_s, wait_s, sync_s, update_s; /* fill: the sum of the stages */
    uint32_t n_stages;
    struct maq_stage stages[MAQ_STAGE_DEPTH];
};

/*
 * Fill in the costs of stages that are given by layer range and parts, straight from the formulas above. false when they are no
 * composition of this table: gaps, shares that add up to less than the wave, too little memory; maq_composition_cost() also refuses
 * more devices than there are.
 */
bool maq_composition_time(struct maq_composition *c, const struct maq_stage_table *table);
bool maq_composition_cost(struct maq_composition *c, const struct maq_stage_table *table);

#endif
