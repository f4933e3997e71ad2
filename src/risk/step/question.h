/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question.h - one question about a step: quantiles, mean and deviation under a given variation, from draws or, where possible,
 * from the exact law.
 *
 * For each regime of communication and each kind of replica (all the same but for --slow) a sample of pipeline ends is drawn; the
 * slowest of all replicas, the factors that everything shares and spikes follow without sampling (job_law.c). Samples of
 * different regimes, kinds and questions use the same random numbers, so that differences are of what differs.
 *
 * Intervals are the sampling error: a jackknife over ten parts of the draws, each left out in turn (Efron and Stein, "The
 * jackknife estimate of variance", 1981), +-2.262 standard errors (Student, 9 degrees of freedom). The parts are independent
 * scramblings of the quasi-random numbers that the draws are made from, so the intervals are as narrow as these make the figures.
 * They do not include how well the variation itself is known.
 */
#ifndef MAQ_RISK_STEP_QUESTION_H
#define MAQ_RISK_STEP_QUESTION_H

#include "risk/step/focus.h"
#include "risk/step/job_law.h"
#include "risk/step/slowdowns.h"
#include "risk/step/tolerance_limit.h"

enum maq_step_question_figure {
    MAQ_STEP_ASK_P5,
    MAQ_STEP_ASK_P50,
    MAQ_STEP_ASK_P95,
    MAQ_STEP_ASK_P99,
    MAQ_STEP_ASK_MEAN,
    MAQ_STEP_ASK_SD,
    MAQ_STEP_ASK_FIGURES
};

#define MAQ_STEP_ASK_LEAST_DRAWS 400u
#define MAQ_STEP_ASK_PARTS MAQ_STEP_SCRAMBLINGS

/* Of the law's distribution function, at even steps. */
struct maq_step_curve {
    double x_ns[MAQ_RISK_CURVE], share[MAQ_RISK_CURVE];
};

struct maq_step_question {
    const struct maq_step_model *m;
    const struct maq_slow *slow;
    const struct maq_signatures *signatures; /* NULL: nothing varies by a law of its own, and there is no spread */
    const struct maq_spread *spread;         /* NULL: everything varies in full */
    uint64_t seed;
    uint32_t draws, threads;
    struct maq_arena *arena;      /* reset after each question */
    struct maq_step_limit *limit; /* the tolerance limit is also wanted; NULL: not */
    struct maq_step_curve *curve; /* the distribution function is also wanted; NULL: not */
    bool sampled;                 /* the exact law is not wanted */
    double tail; /* share of a replica's ends above which the last answer extrapolated its draws; 0: nowhere */
    bool exact;  /* it needed no draws */
};

/* In ns. */
struct maq_step_answer {
    double figure[MAQ_STEP_ASK_FIGURES];
    double without[MAQ_STEP_ASK_PARTS][MAQ_STEP_ASK_FIGURES]; /* the same without each part of the draws */
};

enum maq_status maq_step_question(struct maq_step_answer *out, struct maq_step_question *w,
                                  const struct maq_variation *v);

/* The figures of a law; its distribution function. */
void maq_step_question_figures(double out[MAQ_STEP_ASK_FIGURES], const struct maq_step_law *law);
void maq_step_question_curve(struct maq_step_curve *out, const struct maq_step_law *law);
/*
 * A figure with its 95 % interval, in seconds; and by how much the 95th percentile of `a` is over that of `b`, on the
 * same random numbers.
 */
struct maq_risk_quantile maq_step_answer_quantile(const struct maq_step_answer *a,
                                                  enum maq_step_question_figure figure);
struct maq_risk_quantile maq_step_answer_over(const struct maq_step_answer *a, const struct maq_step_answer *b);
/* Sorts sources by their effect alone, then by name. */
void maq_step_answer_rank(struct maq_risk_source *sources, uint32_t n);

#endif
