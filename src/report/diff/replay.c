/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - what two replays of captured jobs are compared by: how long they take, and what a rank does meanwhile, in the mean over all
 * ranks: of a class the report has the mean of its ranks, and how many they are.
 */
#include "base/check.h"
#include "base/text.h"
#include "report/diff/diff.h"

static const struct {
    const char *key, *name;
} parts[] = {{"computing_s", "computing"},
             {"moving_s", "moving"},
             {"waiting_for_peers_s", "waiting for peers"},
             {"waiting_for_host_s", "waiting for the host"}};

/* Adds a class of one report to the means. */
static void add_class(struct maq_diff_reader *r, struct maq_diff_pair sum[MAQ_COUNT(parts)], double *ranks, int side,
                      struct maq_node *class)
{
    struct maq_node *of[MAQ_DIFF_SIDES] = {NULL, NULL};
    of[side] = class;
    double n = maq_diff_member(r, of, "ranks").of[side];
    *ranks += n;
    for (size_t i = 0; i < MAQ_COUNT(parts); i++) {
        struct maq_diff_pair part = maq_diff_member(r, of, parts[i].key);
        sum[i].of[side] += n * part.of[side];
        sum[i].has[side] |= part.has[side];
    }
}

static void add_rank(struct maq_diff_reader *r, struct maq_diff_pair makespan)
{
    struct maq_diff_pair sum[MAQ_COUNT(parts)] = {{{0}, {0}}};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        const struct maq_node *classes = maq_diff_node(r->diff, (enum maq_diff_side)s, "classes");
        double ranks = 0;
        for (struct maq_node *c = classes ? classes->first : NULL; c; c = c->next)
            add_class(r, sum, &ranks, s, c);
        for (size_t i = 0; i < MAQ_COUNT(parts); i++)
            sum[i].of[s] = ranks > 0 ? sum[i].of[s] / ranks : 0;
    }
    struct maq_diff_table *t =
        maq_diff_table(r, "rank", "Where the time of a rank goes, mean over all ranks", MAQ_DIFF_SECONDS, -1);
    for (size_t i = 0; i < MAQ_COUNT(parts); i++)
        maq_diff_row(r, t, parts[i].key, parts[i].name, sum[i]);
    maq_diff_add_up(r, t, "makespan_s", "until the last rank ends", makespan, "ended before the last one");
}

static void add_steps(struct maq_diff_reader *r)
{
    struct maq_diff_pair count = {0}, mean = {0};
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        struct maq_node *of[MAQ_DIFF_SIDES] = {NULL, NULL};
        const struct maq_node *steps = maq_diff_node(r->diff, (enum maq_diff_side)s, "steps");
        for (struct maq_node *x = steps ? steps->first : NULL; x; x = x->next) {
            of[s] = x;
            mean.of[s] += maq_diff_member(r, of, "time_s").of[s];
        }
        count.has[s] = mean.has[s] = steps && steps->count > 0;
        count.of[s] = steps ? steps->count : 0;
        mean.of[s] = mean.has[s] ? mean.of[s] / count.of[s] : 0;
    }
    (void)maq_diff_figure(r, "step_time_s", "step, mean", MAQ_DIFF_SECONDS, -1, mean);
    (void)maq_diff_figure(r, "steps", "steps", MAQ_DIFF_COUNT, 0, count);
}

void maq_diff_read_replay(struct maq_diff_reader *r)
{
    maq_diff_require(r, "makespan_s");
    maq_diff_require(r, "classes");
    maq_diff_settings(r, "ranks", "ranks");
    struct maq_diff_pair makespan = maq_diff_number(r, "makespan_s");
    (void)maq_diff_figure(r, "makespan_s", "the job", MAQ_DIFF_SECONDS, -1, makespan);
    (void)maq_diff_figure(r, "captured_makespan_s", "as it was captured", MAQ_DIFF_SECONDS, -1,
                          maq_diff_number(r, "captured_makespan_s"));
    add_steps(r);
    (void)maq_diff_figure(r, "records", "records", MAQ_DIFF_COUNT, 0, maq_diff_number(r, "records"));
    add_rank(r, makespan);
}
