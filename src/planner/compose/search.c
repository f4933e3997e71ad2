/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - the passes over all tables: rank them by their work, look for good compositions under a cutoff that
 * grows until one is found, then prove or search exactly every table that the best one does not refute.
 *
 * A composition has to beat the `top` best of different tables. The bound of the result is the least over the tables:
 * the one proven, or the bound by work alone where a table was not searched to the end. See search.h.
 */
#include "planner/compose/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/threads.h"
#include "planner/compose/enumerate.h"
#include "planner/compose/labels.h"
#include "planner/compose/layer_ranges.h"

#define FIRST_CUTOFF 1.25 /* over the least work bound */
#define NEXT_CUTOFF 1.12  /* how it grows while nothing is found */
#define LATE_CUTOFF 2 /* over the least work bound: from here on tables are refuted first, since perhaps nothing fits */

#define LOOKS 30u /* boxes of a first look */
#define STATES 1u /* of a first look that counts devices: kept for each atom and group of options */

enum pass { RANK, LOOK, REFUTE, PROVE };

struct job {
    uint32_t table;
    double work_bound, ceiling; /* lower bound, and a step that no composition exceeds */
    double bound_s;
    struct maq_composition best; /* step_s = HUGE_VAL: none */
    struct maq_compose_tables_counts counts;
};

struct run {
    const struct maq_stage_source *source;
    struct maq_compose_limits options;
    enum pass pass;
    double cutoff;
    struct job **jobs;
};

/* An upper bound of every step: all hops and all stages at their slowest. */
static double ceiling_of(const struct maq_stage_table *t)
{
    double slowest = 0, hop = 0, update = 0, sync = 0, seldom = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        const struct maq_stage_option *option = &t->options[o];
        const struct maq_stage_part part = {o, maq_replicas(t, o)};
        double s = t->sync_s(t, &part, 1, option->sync_bytes[t->n_atoms], t->wave_samples);
        double whole = option->time_s[t->n_atoms] + option->each_s;
        slowest = whole > slowest ? whole : slowest;
        seldom = option->seldom_s > seldom ? option->seldom_s : seldom;
        sync += isfinite(s) ? s : 0;
        for (uint32_t a = 0; a < t->n_atoms; a++)
            update = fmax(update, option->update_s[a] + option->tied_s);
    }
    for (size_t i = 0; i < (size_t)t->n_hop_classes * t->n_hop_classes * t->n_atoms; i++) {
        hop = isfinite(t->forward_s[i]) && t->forward_s[i] > hop ? t->forward_s[i] : hop;
        hop = isfinite(t->backward_s[i]) && t->backward_s[i] > hop ? t->backward_s[i] : hop;
    }
    double weight = 2 + t->hops.first_deep + t->hops.first_short + t->hops.last;
    double all = t->n_atoms * (slowest + weight * hop);
    return t->waves * (slowest + weight * hop) + all + t->seldom_waves * (slowest + seldom) +
           t->rounds * (all + 2 * hop) + sync + update;
}

static void add_labels(struct maq_compose_tables_counts *sum, const struct maq_label_count *c)
{
    sum->considered += c->considered;
    sum->bounded += c->bounded;
    sum->dominated += c->dominated;
    sum->finished += c->finished;
}

/* One table in one pass. Its composition is only replaced by a better one. */
static bool work(void *user, uint32_t index, struct maq_arena *arena)
{
    const struct run *run = user;
    struct job *job = run->jobs[index];
    struct maq_stage_table table;
    struct maq_layer_ranges layer_ranges;
    struct maq_boxes boxes;
    struct maq_label_count count;
    if (!run->source->build(&table, run->source->ctx, job->table, arena))
        return false;
    if (run->pass == RANK) {
        job->best.step_s = HUGE_VAL;
        job->work_bound = table.n_options > 0 ? maq_work_bound(&table) : HUGE_VAL;
        job->ceiling = table.n_options > 0 ? ceiling_of(&table) : 0;
        return true;
    }
    if (run->options.stop && *run->options.stop)
        return true;
    if (run->pass == REFUTE) {
        bool refuted;
        if (!maq_layer_ranges_init(&layer_ranges, &table, arena) ||
            !maq_boxes_refute(&refuted, &layer_ranges, run->cutoff, arena))
            return false;
        job->work_bound = refuted ? HUGE_VAL : job->work_bound;
        return true;
    }
    bool prove = run->pass == PROVE;
    double cutoff = job->best.step_s < run->cutoff ? job->best.step_s : run->cutoff;
    cutoff /= prove ? 1 + run->options.aim : 1;
    struct maq_bottleneck_box_options box = {.cutoff_s = cutoff,
                                             .grain_s = cutoff * (prove ? run->options.grain : 0.04),
                                             .most = prove ? run->options.boxes : LOOKS,
                                             .beam = prove ? 0 : STATES};
    struct maq_label_options label = {cutoff, prove ? 0 : run->options.beam, prove ? run->options.labels : 50000,
                                      false};
    if (!maq_layer_ranges_init(&layer_ranges, &table, arena) ||
        !maq_boxes_cover(&boxes, &job->best, &layer_ranges, &box, arena))
        return false;
    job->counts.programs += boxes.programs;
    if (!prove && boxes.counted)
        return true;
    job->bound_s = boxes.bound_s;
    if (prove && boxes.n == 0)
        job->counts.tables_bounded++;
    if (boxes.n == 0 || (prove && label.most == 0))
        return true;
    if (!maq_labels_search(&job->best, &count, &layer_ranges, &boxes, &label, arena))
        return false;
    add_labels(&job->counts, &count);
    if (prove && count.complete)
        job->bound_s = job->best.step_s < cutoff ? job->best.step_s : cutoff;
    return true;
}

static int by_work(const void *pa, const void *pb)
{
    const struct job *a = *(struct job *const *)pa, *b = *(struct job *const *)pb;
    if (a->work_bound != b->work_bound)
        return a->work_bound < b->work_bound ? -1 : 1;
    return (a->table > b->table) - (a->table < b->table);
}

static int by_step(const void *pa, const void *pb)
{
    const struct job *a = *(struct job *const *)pa, *b = *(struct job *const *)pb;
    if (a->best.step_s != b->best.step_s)
        return a->best.step_s < b->best.step_s ? -1 : 1;
    return (a->table > b->table) - (a->table < b->table);
}

/* The step that a composition has to beat to be among the best `top`. */
static double to_beat(struct job *const *jobs, struct job **sorted, uint32_t n, uint32_t top, double cutoff)
{
    memcpy(sorted, jobs, n * sizeof(struct job *));
    qsort(sorted, n, sizeof *sorted, by_step);
    double s = top <= n ? sorted[top - 1]->best.step_s : HUGE_VAL;
    return s < cutoff ? s : cutoff;
}

/* One pass over all tables, in batches; tables whose work alone reaches the cutoff are not touched. */
static bool pass_over(struct run *run, enum pass pass, struct job **jobs, struct job **sorted, uint32_t n,
                      double cutoff)
{
    uint32_t top = run->options.top > 0 ? run->options.top : 1;
    run->pass = pass;
    run->jobs = jobs;
    for (uint32_t from = 0; from < n; from += MAQ_BATCH) {
        uint32_t size = n - from < MAQ_BATCH ? n - from : MAQ_BATCH;
        run->cutoff = to_beat(jobs, sorted, n, top, cutoff);
        while (size > 0 && jobs[from + size - 1]->work_bound >= run->cutoff && pass != RANK)
            size--; /* jobs are sorted by work_bound */
        if (size == 0)
            break;
        if (!maq_parallel_run(work, run, from, size, run->options.threads))
            return false;
    }
    return true;
}

/* Bounds: a table that was not proved is bounded by its work alone. */
static void summarize(struct maq_compose_tables_result *out, struct job **jobs, struct job **sorted, uint32_t n,
                      uint32_t top, double cutoff)
{
    double known = to_beat(jobs, sorted, n, 1, cutoff);
    out->bound_s = known;
    out->counts.tables = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct job *j = jobs[i];
        if (j->work_bound < known) {
            double bound = j->bound_s > j->work_bound ? j->bound_s : j->work_bound;
            out->bound_s = bound < out->bound_s ? bound : out->bound_s;
        }
        out->counts.programs += j->counts.programs;
        out->counts.tables_bounded += j->counts.tables_bounded + (j->work_bound >= known);
        out->counts.considered += j->counts.considered;
        out->counts.bounded += j->counts.bounded;
        out->counts.dominated += j->counts.dominated;
        out->counts.finished += j->counts.finished;
    }
    out->exact = out->bound_s >= known;
    for (uint32_t i = 0; i < n && i < top && sorted[i]->best.step_s < cutoff; i++)
        out->found[out->n++] = (struct maq_compose_found){sorted[i]->table, sorted[i]->best};
}

enum maq_status maq_compose_search(struct maq_compose_tables_result *out, const struct maq_stage_source *source,
                                   const struct maq_compose_limits *options, struct maq_arena *arena)
{
    uint32_t n = source->n, top = options->top > 0 ? options->top : 1;
    struct job *jobs = MAQ_ARENA_NEW(arena, struct job, n);
    struct job **order = MAQ_ARENA_NEW(arena, struct job *, n), **sorted = MAQ_ARENA_NEW(arena, struct job *, n);
    *out = (struct maq_compose_tables_result){.found = MAQ_ARENA_NEW(arena, struct maq_compose_found, top),
                                              .bound_s = HUGE_VAL};
    if (!jobs || !order || !sorted || !out->found)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        jobs[i].table = i;
        order[i] = &jobs[i];
    }
    struct run run = {.source = source, .options = *options};
    if (!pass_over(&run, RANK, order, sorted, n, HUGE_VAL))
        return MAQ_NO_MEMORY;
    qsort(order, n, sizeof *order, by_work);
    double ceiling = 0;
    for (uint32_t i = 0; i < n; i++)
        ceiling = jobs[i].ceiling > ceiling ? jobs[i].ceiling : ceiling;
    ceiling = options->cutoff_s < ceiling ? options->cutoff_s : ceiling;
    double cutoff = n > 0 ? order[0]->work_bound * FIRST_CUTOFF : 0, best = HUGE_VAL,
           late = n > 0 ? order[0]->work_bound * LATE_CUTOFF : HUGE_VAL;
    for (bool last = false; !last && best == HUGE_VAL; cutoff *= NEXT_CUTOFF) {
        if (cutoff > late) { /* perhaps nothing fits: refute tables at the ceiling first */
            late = HUGE_VAL;
            if (!pass_over(&run, REFUTE, order, sorted, n, ceiling))
                return MAQ_NO_MEMORY;
            qsort(order, n, sizeof *order, by_work);
        }
        last = cutoff >= ceiling;
        if (!pass_over(&run, LOOK, order, sorted, n, last ? ceiling : cutoff))
            return MAQ_NO_MEMORY;
        best = to_beat(order, sorted, n, top, HUGE_VAL);
    }
    if (!pass_over(&run, PROVE, order, sorted, n, ceiling))
        return MAQ_NO_MEMORY;
    summarize(out, order, sorted, n, top, ceiling);
    return MAQ_OK;
}
